//! Cases of `whiten`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{EmptyMask, Options, Whiten, WhitenCase, has_few, is_few, sets, statistics};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::options::RowInfluence;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::draw::{AWKWARD, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::is_far_off;
use shakedown_core::laws;
use shakedown_core::numeric::conventions;
use shakedown_core::value::place::Dtype;

/// The largest value: an extreme reward among advantages.
const LARGEST: f64 = 1e3;

pub(super) fn valid(
    case: &WhitenCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<Whiten>(case)?;
    let fields = [("values", &case.values)];
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)?;
    if options.empty_mask == EmptyMask::Avoid && has_few(case, options) {
        return Err("fewer tokens than a deviation needs".to_owned());
    }
    if options.epsilon == 0.0 {
        for set in sets(case, options).iter().filter(|set| !is_few(set.len(), options)) {
            let values: Vec<f64> = set.iter().map(|at| case.values[*at]).collect();
            let largest = values.iter().fold(0.0, |most: f64, v| most.max(v.abs()));
            let (_, variance) = statistics(&values, options.ddof);
            // A variance that is lost when squares are subtracted.
            let lost = values.len() as f64 * dtype.arithmetic().unit_roundoff() * largest * largest;
            if variance <= 16.0 * lost {
                return Err("equal values, and no ε".to_owned());
            }
        }
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<WhitenCase> {
    let shape = masks::shape(u)?;
    let mask = masks::mask(u, shape, options.holes)?;
    let pattern = u.choose_index(7)?;
    let base = if pattern == 6 { uniform(u, -10.0, 10.0)? } else { one(u, &AWKWARD)? };
    let values = repeating(u, shape.0 * shape.1, |u| {
        Ok(match pattern {
            0 => one(u, &AWKWARD)?,
            1 => f64::from(one(u, &[0_i8, 1, -1, 2, 3])?),
            2 => normal(u)?,
            3 => base,
            4 => base + 1e-3 * normal(u)?,
            5 => one(u, &[0.0, 1.0, -1.0, 10.0, LARGEST, -LARGEST])?,
            _ => base + normal(u)?,
        })
    })?;
    let mut values = Array2::from_shape_vec(shape, values).expect("N·T values");
    for (value, kept) in values.iter_mut().zip(&mask) {
        if !*kept {
            *value = masks::poison(u, options.masked_values, Whiten::POISON)?;
        }
    }
    let mut case = WhitenCase { values, mask };
    shakedown_core::value::record::round(&mut case, dtype);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    // Few tokens or equal values, where those are not generated: the same values without a mask.
    case.values.mapv_inplace(|v| if v.is_finite() { v } else { 0.5 });
    case.mask.fill(true);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    let mut case = WhitenCase {
        values: Array2::from_shape_fn((shape.0, shape.1.max(2)), |(row, token)| {
            [0.0, 1.0, -1.0, 0.5, 2.0][(row + token) % 5]
        }),
        mask: Array2::from_elem((shape.0, shape.1.max(2)), true),
    };
    shakedown_core::value::record::round(&mut case, dtype);
    Ok(case)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<WhitenCase> {
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case = |values: Array2<f64>, mask: Array2<bool>| {
        cases.push(WhitenCase { values, mask });
    };
    for values in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0], [-1.0, 1.0]] {
        case(arr2(&[[values[1]]]), arr2(&[[o]]));
        case(arr2(&[values]), arr2(&[[o, o]]));
        for mask in [[o, x], [x, o], [x, x]] {
            case(arr2(&[values]), arr2(&[mask]));
        }
        case(arr2(&[[values[0]], [values[1]]]), arr2(&[[o], [o]]));
    }
    for constant in [1.0, 0.1, 0.81, 0.95, 10.0, 9.7, -10.0 / 3.0] {
        for size in [3, 7, 13, 16] {
            case(Array2::from_elem((1, size), constant), Array2::from_elem((1, size), o));
        }
    }
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[o, o], [o, o]]));
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[o, x], [o, o]]));
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[x, x], [o, o]]));
    case(arr2(&[[1.0, 0.0], [2.0, 0.0], [4.0, 8.0]]), arr2(&[[o, x], [o, x], [o, o]]));
    case(arr2(&[[0.0, 7.0, 1.0]]), arr2(&[[o, x, o]]));
    case(arr2(&[[1.0, 2.0, 4.0], [0.0, 3.0, 7.0]]), arr2(&[[o, o, o], [o, o, x]]));
    case(arr2(&[[0.0, 0.0, 4.0, 4.0]]), arr2(&[[o, o, o, o]]));
    case(arr2(&[[1.0, 2.0, 3.0, 5.0]]), arr2(&[[o, o, o, o]]));
    case(arr2(&[[1.0, 2.0, 3.0, 0.0]]), arr2(&[[o, o, o, x]]));
    case(arr2(&[[0.5, 0.501]]), arr2(&[[o, o]]));
    case(arr2(&[[2.0, 1.999]]), arr2(&[[o, o]]));
    case(arr2(&[[9.0, 9.001, 9.002]]), arr2(&[[o, o, o]]));
    case(arr2(&[[9.0], [9.001], [9.002]]), arr2(&[[o], [o], [o]]));
    case(arr2(&[[0.0, LARGEST]]), arr2(&[[o, o]]));
    case(arr2(&[[0.0, 1.0, 0.0], [0.0, 2.0, 0.0], [3.0, 0.0, 0.0]]), arr2(&[[o; 3]; 3]));
    if options.masked_values == conventions::MaskedValues::Any {
        for poison in [f64::INFINITY, f64::NAN, f64::NEG_INFINITY] {
            case(arr2(&[[poison]]), arr2(&[[x]]));
            case(arr2(&[[0.0, 1.0, poison]]), arr2(&[[o, o, x]]));
        }
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(Whiten::measure);
    cases
}

/// No token at all, the grid's simpler cases, and a column turned into a row.
pub(super) fn simpler(case: &WhitenCase) -> Vec<WhitenCase> {
    let nothing = WhitenCase { values: arr2(&[[0.0]]), mask: arr2(&[[false]]) };
    let mut candidates = vec![nothing];
    candidates.extend(rows::simpler::<Whiten>(case));
    if case.values.ncols() == 1 {
        candidates.push(WhitenCase {
            values: case.values.t().as_standard_layout().into_owned(),
            mask: case.mask.t().as_standard_layout().into_owned(),
        });
    }
    candidates
}

/// The values of the sets that have enough of them.
fn whole_sets(case: &WhitenCase, options: &Options) -> Vec<Vec<f64>> {
    sets(case, options)
        .into_iter()
        .filter(|set| !is_few(set.len(), options))
        .map(|set| set.into_iter().map(|at| case.values[at]).collect())
        .collect()
}

fn any_set(case: &WhitenCase, options: &Options, is: impl Fn(&[f64]) -> bool) -> bool {
    whole_sets(case, options).iter().any(|values| is(values))
}

fn width(values: &[f64]) -> f64 {
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
}

pub(super) fn classes() -> Vec<Class<Whiten>> {
    let class = |id, meaning, contains, generated: fn(&Options, Dtype) -> bool| Class {
        id,
        meaning,
        contains,
        generated,
    };
    let mut classes = laws::masks::classes::<Whiten>();
    for class in &mut classes {
        // A row by itself may be too short for a deviation, where that is not generated.
        if ["one-column", "one-token-of-several"].contains(&class.id) {
            class.generated = |options, _| match options.ddof {
                _ if options.rows == RowInfluence::Batch => true,
                1 => options.empty_mask != EmptyMask::Avoid,
                _ => options.epsilon > 0.0,
            };
        }
        if class.id == "empty-row" {
            class.generated = |options, _| {
                options.empty_mask != EmptyMask::Avoid || options.rows == RowInfluence::Batch
            };
        }
    }
    classes.extend([
        class(
            "constant",
            "two equal values or more, and no others",
            |c, o| any_set(c, o, |v| v.len() > 1 && width(v) == 0.0),
            |options, _| options.epsilon > 0.0,
        ),
        class(
            "awkward-constant",
            "three or more equal values that binary cannot represent",
            |c, o| {
                any_set(c, o, |v| v.len() > 2 && width(v) == 0.0 && (v[0] * 1024.0).fract() != 0.0)
            },
            |options, dtype| options.epsilon > 0.0 && matches!(dtype, Dtype::F64 | Dtype::F32),
        ),
        class(
            "varied",
            "values that differ",
            |c, o| any_set(c, o, |v| v.len() > 1 && width(v) > 0.0),
            |_, _| true,
        ),
        class(
            "tiny-spread",
            "values that differ by less than a hundredth",
            |c, o| any_set(c, o, |v| width(v) > 0.0 && width(v) < 0.01),
            |options, _| options.epsilon > 0.0,
        ),
        class(
            "shifted",
            "varied values that are all far from 0, compared with their spread",
            |c, o| any_set(c, o, |v| width(v) > 0.0 && v.iter().all(|x| x.abs() > 2.0 * width(v))),
            |options, _| options.epsilon > 0.0,
        ),
        class(
            "far-off",
            "values that differ by less than a 500th of their size",
            |c, o| any_set(c, o, is_far_off),
            |options, dtype| options.epsilon > 0.0 && matches!(dtype, Dtype::F64 | Dtype::F32),
        ),
        class(
            "too-few",
            "a set of tokens that is too small for a deviation",
            has_few,
            |options, _| options.empty_mask != EmptyMask::Avoid,
        ),
        class(
            "one-token",
            "a single token that counts, with an unbiased deviation",
            |c, o| o.ddof == 1 && sets(c, o).iter().any(|set| set.len() == 1),
            |options, _| options.ddof == 1 && options.empty_mask != EmptyMask::Avoid,
        ),
        class(
            "masked-value",
            "a value other than 0 under the mask",
            |c, _| c.values.iter().zip(&c.mask).any(|(v, kept)| !kept && *v != 0.0),
            |_, _| true,
        ),
        class(
            "rows-differ",
            "rows with different means",
            |c, _| {
                let means: Vec<f64> = (0..c.mask.nrows())
                    .map(|row| {
                        let tokens = c.values.row(row).into_iter().zip(c.mask.row(row));
                        tokens.filter(|(_, kept)| **kept).map(|(v, _)| *v).collect::<Vec<f64>>()
                    })
                    .filter(|values| !values.is_empty())
                    .map(|values| statistics(&values, 0).0)
                    .collect();
                means.windows(2).any(|pair| pair[0] != pair[1])
            },
            |_, _| true,
        ),
    ]);
    classes
}
