//! Cases of `value-loss`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{EmptyMask, Errors, Options, ValueLoss, ValueLossCase, is_empty, oracle};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::draw::{AWKWARD, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::laws;
use shakedown_core::numeric::conventions;
use shakedown_core::value::place::Dtype;

/// The largest value, old value and return; less at f16, where its square must fit.
fn largest(dtype: Dtype) -> f64 {
    if dtype == Dtype::F16 { 100.0 } else { 1e3 }
}

pub(super) fn valid(
    case: &ValueLossCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<ValueLoss>(case)?;
    let fields =
        [("values", &case.values), ("old_values", &case.old_values), ("returns", &case.returns)];
    let most = largest(dtype);
    masks::check(&case.mask, options.holes, &fields, options.masked_values, most)?;
    if options.empty_mask == EmptyMask::Avoid && is_empty(case) {
        return Err("no token counts".to_owned());
    }
    let loss = oracle::loss(case, options, dtype)[0].numbers.first().map_or(0.0, |n| n.value);
    if loss.abs() > dtype.max() / 2.0 {
        return Err(format!("a loss of {loss}, which the dtype does not hold"));
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<ValueLossCase> {
    let shape = masks::shape(u)?;
    let mask = masks::mask(u, shape, options.holes)?;
    let cells = shape.0 * shape.1;
    let pattern = u.choose_index(6)?;
    let most = largest(dtype);
    let clip = options.clip.unwrap_or(0.5);
    let old = repeating(u, cells, |u| {
        Ok(match pattern {
            0 => one(u, &AWKWARD)?,
            1 => f64::from(one(u, &[0_i8, 1, -1, 2])?),
            2 => one(u, &[0.0, 1.0, -1.0, most, -most])?,
            3 => 0.0,
            _ => normal(u)?,
        })
    })?;
    let moved = repeating(u, cells, |u| {
        Ok(match pattern {
            1 => f64::from(one(u, &[0_i8, 1, -1, 2])?),
            2 => 0.0,
            3 => one(u, &[0.0, 0.5, -0.5, 1.0, -1.0, 2.0, 1.5])? * clip,
            _ => uniform(u, -3.0, 3.0)? * clip.min(2.0),
        })
    })?;
    let gaps = repeating(u, cells, |u| {
        Ok(match pattern {
            1 | 3 => f64::from(one(u, &[0_i8, 1, -1, 2, -2])?),
            5 => 0.0,
            _ => normal(u)?,
        })
    })?;
    let array = |numbers: Vec<f64>| Array2::from_shape_vec(shape, numbers).expect("N·T numbers");
    let within = |x: f64| x.clamp(-most, most);
    let values: Vec<f64> = old.iter().zip(&moved).map(|(old, moved)| within(old + moved)).collect();
    let returns: Vec<f64> = values.iter().zip(&gaps).map(|(v, gap)| within(v + gap)).collect();
    let mut case: ValueLossCase = ValueLossCase {
        values: array(values),
        old_values: array(old),
        returns: array(returns),
        mask,
    };
    let mask = case.mask.clone();
    let ValueLossCase { values, old_values, returns, .. } = &mut case;
    for (at, _) in mask.indexed_iter().filter(|(_, kept)| !**kept) {
        for field in [&mut *values, &mut *old_values, &mut *returns] {
            field[at] = masks::poison(u, options.masked_values, ValueLoss::POISON)?;
        }
    }
    shakedown_core::value::record::round(&mut case, dtype);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    // No token, or a sum that is too large: the same shape with small numbers and no mask.
    case.mask.fill(true);
    case.old_values.fill(0.0);
    case.values = Array2::from_shape_fn(shape, |(row, token)| ((row + token) % 3) as f64);
    case.returns.fill(1.0);
    Ok(case)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<ValueLossCase> {
    let clip = options.clip.unwrap_or(0.5);
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case =
        |values: Array2<f64>, old_values: Array2<f64>, returns: Array2<f64>, mask: Array2<bool>| {
            cases.push(ValueLossCase { values, old_values, returns, mask });
        };
    // One token: at the target; off it; moved to it and past it, within the clip and beyond.
    let moves = [0.0, 0.5, 1.0, 2.0, -0.5, -1.0, -2.0].map(|share| share * clip);
    for moved in moves {
        for target in [0.0, 1.0, moved, -1.0] {
            case(arr2(&[[moved]]), arr2(&[[0.0]]), arr2(&[[target]]), arr2(&[[o]]));
        }
    }
    // A wide clip acts from one end of what is generated to the other.
    let most = largest(dtype);
    if 2.0 * clip > most {
        for target in [0.0, most, -most] {
            case(arr2(&[[most]]), arr2(&[[-most]]), arr2(&[[target]]), arr2(&[[o]]));
            case(arr2(&[[-most]]), arr2(&[[most]]), arr2(&[[target]]), arr2(&[[o]]));
        }
    }
    case(arr2(&[[1.0]]), arr2(&[[0.0]]), arr2(&[[0.0]]), arr2(&[[o]]));
    case(arr2(&[[2.0]]), arr2(&[[0.0]]), arr2(&[[2.0]]), arr2(&[[o]]));
    case(arr2(&[[2.0]]), arr2(&[[1.0]]), arr2(&[[2.0]]), arr2(&[[o]]));
    case(arr2(&[[0.0]]), arr2(&[[0.0]]), arr2(&[[0.0]]), arr2(&[[x]]));
    for mask in [[o, x], [x, o], [x, x], [o, o]] {
        case(arr2(&[[1.0, 2.0]]), arr2(&[[0.0, 0.0]]), arr2(&[[0.0, 0.0]]), arr2(&[mask]));
        case(arr2(&[[2.0, 2.0]]), arr2(&[[0.0, 0.0]]), arr2(&[[0.0, 2.0]]), arr2(&[mask]));
        case(arr2(&[[1.0, 1.0]]), arr2(&[[1.0, 1.0]]), arr2(&[[0.0, 1.0]]), arr2(&[mask]));
    }
    let mut batch = |values: Array2<f64>, mask: Array2<bool>| {
        let zeros = Array2::zeros(values.dim());
        case(values, zeros.clone(), zeros, mask);
    };
    batch(arr2(&[[1.0], [2.0]]), arr2(&[[o], [x]]));
    batch(arr2(&[[1.0], [0.0]]), arr2(&[[o], [o]]));
    batch(arr2(&[[1.0, 1.0], [2.0, 0.0]]), arr2(&[[o, o], [o, x]]));
    batch(arr2(&[[1.0, 2.0], [3.0, 4.0]]), arr2(&[[o, o], [o, o]]));
    batch(arr2(&[[1.0, 1.0], [2.0, 0.0]]), arr2(&[[o, o], [x, x]]));
    batch(arr2(&[[1.0, 2.0, 3.0]]), arr2(&[[o, x, o]]));
    batch(arr2(&[[1.0; 3], [2.0; 3], [0.5; 3]]), arr2(&[[o, o, o], [o, o, x], [o, x, x]]));
    batch(arr2(&[[0.1, 0.2, 0.3], [1.0, -1.0, 2.0], [3.0, 0.5, -2.0]]), arr2(&[[o; 3]; 3]));
    batch(Array2::from_elem((1, 32), 0.1), Array2::from_elem((1, 32), o));
    batch(arr2(&[[largest(dtype)]]), arr2(&[[o]]));
    if options.masked_values == conventions::MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let zeros = arr2(&[[0.0, poison]]);
            case(arr2(&[[1.0, poison]]), zeros.clone(), zeros, arr2(&[[o, x]]));
        }
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(ValueLoss::measure);
    cases
}

fn any_token(case: &ValueLossCase, options: &Options, is: impl Fn(Errors) -> bool) -> bool {
    let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
    kept.into_iter().any(|(at, _)| is(Errors::of(case, options, at)))
}

pub(super) fn classes() -> Vec<Class<ValueLoss>> {
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let clips: fn(&Options, Dtype) -> bool = |options, _| options.clip.is_some();
    let mut classes = laws::masks::classes::<ValueLoss>();
    classes.extend([
        class(
            "at-the-target",
            "a value equal to its return",
            |c, o| any_token(c, o, |e| e.plain == 0.0),
            always,
        ),
        class(
            "too-high",
            "a value above its return",
            |c, o| any_token(c, o, |e| e.plain > 0.0),
            always,
        ),
        class(
            "too-low",
            "a value below its return",
            |c, o| any_token(c, o, |e| e.plain < 0.0),
            always,
        ),
        class(
            "clipped-error-larger",
            "a value beyond the clip range whose clipped error is the larger",
            |c, o| any_token(c, o, |e| e.outside && e.clips()),
            clips,
        ),
        class(
            "moved-away",
            "a value beyond the clip range whose own error is the larger",
            |c, o| any_token(c, o, |e| e.outside && e.plain.abs() > e.clipped.abs()),
            clips,
        ),
        class(
            "within-the-range",
            "a value that moved and is not clipped",
            |c, o| {
                let kept = c.mask.indexed_iter().filter(|(_, kept)| **kept);
                kept.into_iter().any(|(at, _)| {
                    c.values[at] != c.old_values[at] && !Errors::of(c, o, at).outside
                })
            },
            clips,
        ),
        class(
            "end-of-the-range",
            "a value at an end of the clip range",
            |c, o| any_token(c, o, |e| e.distance < 1e-3),
            clips,
        ),
        class(
            "on-policy",
            "every value is still the old one",
            |c, _| c.values.indexed_iter().all(|(at, v)| !c.mask[at] || *v == c.old_values[at]),
            always,
        ),
        class(
            "large",
            "a value or return of 100 or more that counts",
            |c, _| {
                let kept = c.mask.indexed_iter().filter(|(_, kept)| **kept);
                kept.into_iter().any(|(at, _)| c.values[at].abs().max(c.returns[at].abs()) >= 100.0)
            },
            always,
        ),
        class(
            "masked-error",
            "a value other than its return under the mask",
            |c, _| c.mask.indexed_iter().any(|(at, kept)| !kept && c.values[at] != c.returns[at]),
            always,
        ),
    ]);
    classes
}
