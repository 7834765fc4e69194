//! Cases of `returns`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, arr2};

use super::{Options, Returns, ReturnsCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::draw::{AWKWARD, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::laws;
use shakedown_core::numeric::conventions;
use shakedown_core::value::place::Dtype;

/// The largest reward: a failed reward model, an extreme penalty.
const LARGEST: f64 = 1e3;

pub(super) fn valid(case: &ReturnsCase, options: &Options) -> std::result::Result<(), String> {
    rows::check_axes::<Returns>(case)?;
    let fields = [("rewards", &case.rewards)];
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)
}

pub(super) fn draw(u: &mut Unstructured<'_>, options: &Options) -> Result<ReturnsCase> {
    let shape = masks::shape(u)?;
    let mask = masks::mask(u, shape, options.holes)?;
    let pattern = u.choose_index(6)?;
    let last: Vec<Option<usize>> =
        mask.rows().into_iter().map(|row| row.iter().rposition(|kept| *kept)).collect();
    let mut at = 0;
    let rewards = repeating(u, shape.0 * shape.1, |u| {
        Ok(match pattern {
            0 => one(u, &AWKWARD)?,
            1 => f64::from(one(u, &[0_i8, 1, -1, 2, 3])?),
            2 => uniform(u, -1.0, 1.0)?,
            3 => normal(u)? * 100.0,
            4 => one(u, &[0.0, 0.0, 0.0, 1.0, -LARGEST, LARGEST])?,
            _ => 1.0,
        })
    })?;
    let mut rewards = Array2::from_shape_vec(shape, rewards).expect("N·T rewards");
    // An outcome reward: all of it at the last token.
    if pattern == 5 {
        rewards = Array2::from_shape_fn(shape, |(row, token)| {
            at += 1;
            if last[row] == Some(token) { f64::from(at % 5) } else { 0.0 }
        });
    }
    for (reward, kept) in rewards.iter_mut().zip(&mask) {
        if !*kept {
            *reward = masks::poison(u, options.masked_values, Returns::POISON)?;
        }
    }
    Ok(ReturnsCase { rewards, mask })
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<ReturnsCase> {
    let (o, x) = (true, false);
    let mut cases = Vec::new();
    let mut case = |rewards: Array2<f64>, mask: Array2<bool>| {
        cases.push(ReturnsCase { rewards, mask });
    };
    for rewards in [[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0], [1.0, 2.0]] {
        case(arr2(&[[rewards[1]]]), arr2(&[[o]]));
        case(arr2(&[rewards]), arr2(&[[o, o]]));
        for mask in [[o, x], [x, o], [x, x]] {
            case(arr2(&[rewards]), arr2(&[mask]));
        }
        case(arr2(&[[rewards[0]], [rewards[1]]]), arr2(&[[o], [o]]));
    }
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[o, o], [o, o]]));
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[o, x], [o, o]]));
    case(arr2(&[[1.0, 2.0], [4.0, 8.0]]), arr2(&[[x, x], [o, o]]));
    case(arr2(&[[1.0, 1.0, 1.0]]), arr2(&[[o, x, o]]));
    case(arr2(&[[0.0, 5.0, 1.0]]), arr2(&[[o, x, o]]));
    case(arr2(&[[0.0, 0.0, 7.0, 7.0, 0.0, 1.0]]), arr2(&[[o, o, x, x, o, o]]));
    case(arr2(&[[2.5, 1.0, 0.0, 0.5]]), arr2(&[[o, o, o, x]]));
    case(arr2(&[[1.5, 1.0, 1.5, 2.0]]), arr2(&[[o, o, x, x]]));
    case(arr2(&[[LARGEST, -LARGEST, LARGEST]]), arr2(&[[o, o, o]]));
    case(arr2(&[[0.1, 0.2, 0.3], [1.0, -1.0, 2.0], [3.0, 0.5, -2.0]]), arr2(&[[o; 3]; 3]));
    case(Array2::from_elem((1, 32), 0.1), Array2::from_elem((1, 32), o));
    if options.masked_values == conventions::MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            case(arr2(&[[1.0, poison]]), arr2(&[[o, x]]));
            case(arr2(&[[1.0, poison, 1.0]]), arr2(&[[o, x, o]]));
        }
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options).is_ok()
    });
    cases.sort_by_cached_key(Returns::measure);
    cases
}

pub(super) fn classes() -> Vec<Class<Returns>> {
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let mut classes = laws::masks::classes::<Returns>();
    classes.extend([
        class(
            "outcome-reward",
            "a row of two tokens or more whose last one alone has a reward",
            |case: &ReturnsCase, _| {
                case.rewards.rows().into_iter().zip(case.mask.rows()).any(|(rewards, mask)| {
                    let kept: Vec<f64> =
                        rewards.iter().zip(mask).filter(|(_, m)| **m).map(|(r, _)| *r).collect();
                    kept.split_last().is_some_and(|(last, before)| {
                        *last != 0.0 && !before.is_empty() && before.iter().all(|r| *r == 0.0)
                    })
                })
            },
            |_, _| true,
        ),
        class(
            "masked-reward",
            "a reward other than 0 under the mask",
            |case, _| case.rewards.iter().zip(&case.mask).any(|(r, kept)| !kept && *r != 0.0),
            |_, _| true,
        ),
        class(
            "extreme-reward",
            "a reward of 1000 that counts",
            |case, _| case.rewards.iter().zip(&case.mask).any(|(r, m)| *m && r.abs() >= 1e3),
            |_, _| true,
        ),
    ]);
    classes
}
