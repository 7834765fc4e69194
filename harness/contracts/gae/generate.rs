//! Cases of `gae`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{Gae, GaeCase, Options};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::draw::{AWKWARD, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::is_far_off;
use shakedown_core::laws;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::value::place::Dtype;

/// The largest reward or value: a failed reward model, a critic that diverges.
const LARGEST: f64 = 1e3;

/// The most that the magnitudes of one row may add up to, so that no sum leaves the format.
fn row_limit(dtype: Dtype) -> f64 {
    dtype.max() / 2.0
}

pub(super) fn valid(
    case: &GaeCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<Gae>(case)?;
    let fields = [("rewards", &case.rewards), ("values", &case.values)];
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)?;
    if options.empty_mask == EmptyMask::Avoid && options.too_few(case) {
        return Err("fewer than two tokens to whiten, and `empty_mask` is `avoid`".to_owned());
    }
    for row in 0..case.mask.nrows() {
        let kept = (0..case.mask.ncols()).map(|token| [row, token]).filter(|at| case.mask[*at]);
        let sum: f64 = kept.map(|at| case.rewards[at].abs() + 2.0 * case.values[at].abs()).sum();
        if sum > row_limit(dtype) {
            return Err(format!("row {row} may add up to {sum}, too much for this dtype"));
        }
    }
    Ok(())
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options, dtype: Dtype) -> Result<GaeCase> {
    let mut shape = masks::shape(u)?;
    let avoid = options.whiten && options.empty_mask == EmptyMask::Avoid;
    if avoid && shape == (1, 1) {
        shape = (1, 2);
    }
    let mut mask = masks::mask(u, shape, options.holes)?;
    if avoid && mask.iter().filter(|kept| **kept).count() < 2 {
        mask.fill(true);
    }
    let mut rewards = rewards(u, &mask)?;
    let mut values = values(u, &rewards, &mask, options)?;
    // Rounding may take a number up by its last bit.
    let largest = LARGEST.min(0.9 * row_limit(dtype) / (3.0 * shape.1 as f64));
    for array in [&mut rewards, &mut values] {
        for (x, kept) in array.iter_mut().zip(&mask) {
            *x = match kept {
                true => x.clamp(-largest, largest),
                false => masks::poison(u, options.masked_values, Gae::POISON)?,
            };
        }
    }
    Ok(GaeCase { rewards, values, mask })
}

fn rewards(u: &mut Unstructured<'_>, mask: &Array2<bool>) -> Result<Array2<f64>> {
    let pattern = u.choose_index(8)?;
    let drawn = repeating(u, mask.len(), |u| {
        Ok(match pattern {
            0 => one(u, &AWKWARD)?,
            1 => f64::from(one(u, &[0_i8, 1, -1, 2, 3])?),
            2 => uniform(u, -1.0, 1.0)?,
            3 => normal(u)? * 100.0,
            4 => one(u, &[0.0, 0.0, 0.0, 1.0, -LARGEST, LARGEST])?,
            // A spread about as small as ε in the root.
            5 => one(u, &[0.0, 1e-3, 2e-3, -1e-3, 0.01])?,
            _ => 0.0,
        })
    })?;
    let mut rewards = Array2::from_shape_vec(mask.dim(), drawn).expect("N·T rewards");
    // An outcome reward: all of it at the last token.
    if pattern >= 6 {
        for (row, mask) in mask.rows().into_iter().enumerate() {
            if let Some(last) = mask.iter().rposition(|kept| *kept) {
                rewards[[row, last]] = one(u, &[1.0, 0.0, 0.5, -1.0, 2.0])?;
            }
        }
    }
    Ok(rewards)
}

fn values(
    u: &mut Unstructured<'_>,
    rewards: &Array2<f64>,
    mask: &Array2<bool>,
    options: &Options,
) -> Result<Array2<f64>> {
    let pattern = u.choose_index(8)?;
    let constant = one(u, &[1.0, 0.5, 10.0, -2.0, 0.1])?;
    let drawn = repeating(u, mask.len(), |u| {
        Ok(match pattern {
            0 => 0.0,
            1 => one(u, &AWKWARD)?,
            2 => f64::from(one(u, &[0_i8, 1, -1, 2, 3])?),
            3 => uniform(u, -2.0, 2.0)?,
            4 => normal(u)? * 100.0,
            5 => one(u, &[0.0, 1.0, -LARGEST, LARGEST])?,
            _ => constant,
        })
    })?;
    let mut values = Array2::from_shape_vec(mask.dim(), drawn).expect("N·T values");
    if pattern == 7 {
        // A critic that is always right.
        for (row, mut values) in values.rows_mut().into_iter().enumerate() {
            let mut ahead = 0.0;
            for token in (0..values.len()).rev().filter(|token| mask[[row, *token]]) {
                ahead = rewards[[row, token]] + options.gamma * ahead;
                values[token] = ahead;
            }
        }
    }
    Ok(values)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<GaeCase> {
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case = |rewards: Array2<f64>, values: Array2<f64>, mask: Array2<bool>| {
        cases.push(GaeCase { rewards, values, mask });
    };
    let pairs = [
        ([0.0, 0.0], [0.0, 0.0]),
        ([0.0, 1.0], [0.0, 0.0]),
        ([1.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([0.0, 0.0], [1.0, 0.0]),
        ([0.0, 1.0], [1.0, 1.0]),
        ([1.0, 1.0], [0.0, 1.0]),
        ([1.0, 2.0], [3.0, 5.0]),
    ];
    for (r, v) in pairs {
        case(arr2(&[[r[1]]]), arr2(&[[v[1]]]), arr2(&[[o]]));
        case(arr2(&[[r[0]], [r[1]]]), arr2(&[[v[0]], [v[1]]]), arr2(&[[o], [o]]));
        for mask in [[o, o], [o, x], [x, o]] {
            case(arr2(&[r]), arr2(&[v]), arr2(&[mask]));
        }
    }
    case(arr2(&[[1.0, 2.0]]), arr2(&[[3.0, 5.0]]), arr2(&[[x, x]]));
    case(arr2(&[[1.0], [2.0]]), arr2(&[[0.0], [0.0]]), arr2(&[[o], [x]]));
    case(arr2(&[[0.01], [0.0]]), arr2(&[[0.0], [0.0]]), arr2(&[[o], [o]]));
    let far = arr2(&[[9.0], [9.002], [9.001]]);
    case(far, Array2::zeros((3, 1)), arr2(&[[o], [o], [o]]));
    case(arr2(&[[1e-3], [0.0], [0.0]]), Array2::zeros((3, 1)), arr2(&[[o], [o], [o]]));
    let (r, v) = (arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[3.0, 5.0], [7.0, 9.0]]));
    for mask in [[[o, o], [o, o]], [[o, x], [o, o]], [[o, o], [o, x]], [[x, x], [o, o]]] {
        case(r.clone(), v.clone(), arr2(&mask));
    }
    for mask in [[o, x, o], [o, o, x], [x, o, o], [o, o, o]] {
        case(arr2(&[[0.0, 5.0, 1.0]]), arr2(&[[2.0, 7.0, 3.0]]), arr2(&[mask]));
        case(arr2(&[[0.0, 0.0, 1.0]]), arr2(&[[1.0, 1.0, 1.0]]), arr2(&[mask]));
    }
    let turns = arr2(&[[o, o, x, x, o, o]]);
    case(arr2(&[[0.0, 0.0, 7.0, 7.0, 0.0, 1.0]]), Array2::zeros((1, 6)), turns.clone());
    case(Array2::zeros((1, 6)), arr2(&[[1.0, 2.0, 9.0, 9.0, 3.0, 4.0]]), turns);
    case(
        arr2(&[[0.1, 0.2, 0.3], [1.0, -1.0, 2.0], [3.0, 0.5, -2.0]]),
        arr2(&[[0.3, 0.7, -0.1], [0.0, 0.5, 1.5], [2.0, -1.0, 0.81]]),
        arr2(&[[o, o, x], [o, o, o], [o, x, x]]),
    );
    let largest = arr2(&[[LARGEST, -LARGEST, LARGEST]]);
    case(largest.clone(), -largest, arr2(&[[o; 3]]));
    case(Array2::from_elem((2, 2), 0.1), Array2::zeros((2, 2)), arr2(&[[o; 2]; 2]));
    case(Array2::from_elem((4, 1), 0.7), Array2::from_elem((4, 1), 0.1), arr2(&[[o]; 4]));
    case(
        Array2::from_elem((1, 32), 0.1),
        Array2::from_shape_fn((1, 32), |(_, t)| 0.1 * (32 - t) as f64),
        Array2::from_elem((1, 32), o),
    );
    if options.masked_values == MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            case(arr2(&[[1.0, poison]]), arr2(&[[0.0, poison]]), arr2(&[[o, x]]));
            case(arr2(&[[1.0, poison, 1.0]]), arr2(&[[1.0, poison, 2.0]]), arr2(&[[o, x, o]]));
        }
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(Gae::measure);
    cases
}

/// The rewards and values of each row's tokens, in order.
fn tokens(case: &GaeCase) -> impl Iterator<Item = Vec<(f64, f64)>> {
    (0..case.mask.nrows()).map(|row| {
        let kept = (0..case.mask.ncols()).map(|token| [row, token]).filter(|at| case.mask[*at]);
        kept.map(|at| (case.rewards[at], case.values[at])).collect()
    })
}

pub(super) fn classes() -> Vec<Class<Gae>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let mut classes = laws::masks::classes::<Gae>();
    classes.extend([
        class(
            "outcome-reward",
            "a row of two tokens or more whose last one alone has a reward",
            |case: &GaeCase, _: &Options| {
                tokens(case).any(|row| {
                    row.split_last().is_some_and(|(last, before)| {
                        last.0 != 0.0 && !before.is_empty() && before.iter().all(|(r, _)| *r == 0.0)
                    })
                })
            },
            always,
        ),
        class(
            "values-that-vary",
            "a row whose values are not all the same",
            |case, _| tokens(case).any(|row| row.iter().any(|(_, v)| *v != row[0].1)),
            always,
        ),
        class(
            "exact-values",
            "a row of two tokens or more with rewards, whose values are its returns",
            |case, options| {
                // As near as the coarsest format stores them.
                let near = |a: f64, b: f64| (a - b).abs() <= 0.01 * b.abs();
                tokens(case).any(|row| {
                    let exact = row.windows(2).all(|pair| {
                        let [(reward, value), (_, next)] = [pair[0], pair[1]];
                        near(value, reward + options.gamma * next)
                    });
                    let last = row.last().is_some_and(|(reward, value)| near(*value, *reward));
                    exact && last && row.len() > 1 && row.iter().any(|(reward, _)| *reward != 0.0)
                })
            },
            always,
        ),
        class(
            "value-behind-the-end",
            "a token before a masked column that holds a value other than 0",
            |case, _| {
                case.mask.indexed_iter().any(|((row, token), kept)| {
                    let next = case.mask.get([row, token + 1]) == Some(&false);
                    *kept && next && case.values[[row, token + 1]] != 0.0
                })
            },
            always,
        ),
        class(
            "extreme-reward",
            "a reward of 1000 that counts",
            |case, _| tokens(case).flatten().any(|(reward, _)| reward.abs() >= LARGEST),
            always,
        ),
        class(
            "one-token-batch",
            "a batch with a single token",
            |case, _| case.mask.iter().filter(|kept| **kept).count() == 1,
            |options, _| !(options.whiten && options.empty_mask == EmptyMask::Avoid),
        ),
        class(
            "far-off",
            "single rewards that differ by less than a 500th of their size",
            |case, _| {
                let rows: Vec<_> = tokens(case).collect();
                let single = rows.iter().all(|row| row.len() == 1 && row[0].1 == 0.0);
                single
                    && is_far_off(&rows.iter().flatten().map(|token| token.0).collect::<Vec<_>>())
            },
            |options, dtype| options.whiten && matches!(dtype, Dtype::F64 | Dtype::F32),
        ),
        class(
            "constant-advantages",
            "two tokens or more, each with a row, a reward and a value like the others",
            |case, _| {
                let rows: Vec<_> = tokens(case).filter(|row| !row.is_empty()).collect();
                rows.len() > 1 && rows.iter().all(|row| row.len() == 1 && row[0] == rows[0][0])
            },
            always,
        ),
        class(
            "small-spread",
            "rewards that differ, all of them and all values of 0.01 at most",
            |case, _| {
                let all: Vec<(f64, f64)> = tokens(case).flatten().collect();
                let small = |x: f64| x.abs() <= 0.0101;
                let differ = all.iter().any(|(reward, _)| *reward != all[0].0);
                differ && all.iter().all(|(reward, value)| small(*reward) && small(*value))
            },
            always,
        ),
    ]);
    classes
}
