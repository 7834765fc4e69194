//! Cases of `entropy-bonus`: random draws, corners, small cases and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, Array3, ArrayView1, Axis, s};

use super::{EntropyBonus, EntropyBonusCase, NegInf, Options, tokens};
use crate::token_entropy::generate::{DOMINANT, check_position, draw_position, lead};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked as _;
use shakedown_core::generate::draw::one;
use shakedown_core::generate::masks;
use shakedown_core::generate::pick::Pick;
use shakedown_core::laws;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// Of more positions than this, those that follow have the logits of the first ones.
const DRAWN: usize = 12;

/// What is finite may be so large under the mask.
const MASKED: f64 = 1e3;

pub(super) fn valid(
    case: &EntropyBonusCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<EntropyBonus>(case)?;
    masks::check(&case.mask, options.holes, &[], options.masked_values, 0.0)?;
    if case.logits.len_of(Axis(2)) < 2 {
        return Err("a vocabulary of one token, expected V ≥ 2".to_owned());
    }
    if options.empty_mask == EmptyMask::Avoid && tokens(&case.mask) == 0 {
        return Err("no token counts, and `empty_mask: avoid` is declared".to_owned());
    }
    let of_tokens = options.of_tokens();
    for ((at, kept), logits) in case.mask.indexed_iter().zip(case.logits.lanes(Axis(2))) {
        if *kept {
            check_position(at, logits, &of_tokens, dtype)?;
        } else if options.masked_values == MaskedValues::Finite
            && let Some(logit) = logits.iter().find(|logit| apart(**logit, 0.0, MASKED))
        {
            let (row, token) = at;
            return Err(format!("logits[{row}, {token}] has {logit} under the mask"));
        }
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<EntropyBonusCase> {
    let (rows, columns) = masks::shape(u)?;
    let mut mask = masks::mask(u, (rows, columns), options.holes)?;
    let count = rows * columns;
    let size = match (count, u.arbitrary::<u8>()?) {
        (3.., 0..=40) => rows.min(6),
        (1..=4, 41..=60) => 17,
        (1..=2, 61..=70) => 33,
        _ => one(u, &[3, 2, 4, 3, 5, 2, 8])?,
    };
    let size = size.max(2);
    let mut drawn = vec![0.0; count.min(DRAWN) * size];
    for position in drawn.chunks_mut(size) {
        draw_position(u, position, &options.of_tokens())?;
    }
    let logits = (0..count).flat_map(|at| {
        let from = (at * 5 + at / DRAWN) % count.min(DRAWN);
        // So that no draw is left out of few.
        let from = if count <= DRAWN { at } else { from };
        drawn[from * size..(from + 1) * size].iter().copied()
    });
    let logits = Array3::from_shape_vec((rows, columns, size), logits.collect());
    let mut logits = logits.expect("N·T·V logits");
    if options.empty_mask == EmptyMask::Avoid && tokens(&mask) == 0 {
        mask[[0, 0]] = true;
    }
    let finite = [0.0, 1.0, -1.0, 50.0, 3.0, -20.0];
    for (at, kept) in mask.indexed_iter() {
        if !*kept {
            for logit in logits.slice_mut(s![at.0, at.1, ..]) {
                *logit = masks::poison(u, options.masked_values, &finite)?;
            }
        }
    }
    let mut case = EntropyBonusCase { logits, mask };
    round(&mut case, dtype);
    if valid(&case, options, dtype).is_err() {
        case.logits.fill(0.0);
    }
    Ok(case)
}

/// The case with other numbers under the mask.
pub(super) fn poisoned(
    case: &EntropyBonusCase,
    options: &Options,
    pick: &mut Pick,
) -> EntropyBonusCase {
    const ANY: [f64; 3] = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
    let any = options.masked_values == MaskedValues::Any && pick.below(3) > 0;
    let mut poisoned = case.clone();
    let positions = poisoned.logits.lanes_mut(Axis(2)).into_iter().zip(&case.mask);
    for (mut logits, _) in positions.filter(|(_, kept)| !**kept) {
        for logit in &mut logits {
            let values = if any && pick.below(2) == 0 { &ANY[..] } else { EntropyBonus::POISON };
            *logit = *pick.one(values);
        }
    }
    poisoned
}

const O: bool = true;
const X: bool = false;

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<EntropyBonusCase> {
    let mut cases: Vec<EntropyBonusCase> = Vec::new();
    let none = f64::NEG_INFINITY;
    let steep = |margin: f64| margin * options.temperature;
    let most = 1e3 * options.temperature.min(1.0);
    let mut add = |shape: (usize, usize, usize), logits: &[f64], mask: &[bool]| {
        let count = shape.0 * shape.1 * shape.2;
        let logits = logits.iter().copied().cycle().take(count).collect();
        let logits = Array3::from_shape_vec(shape, logits).expect("N·T·V logits");
        let mask = Array2::from_shape_vec((shape.0, shape.1), mask.to_vec()).expect("N·T flags");
        let mut case = EntropyBonusCase { logits, mask };
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    };
    let pair = |a, b| [a, b];
    for logits in [
        pair(0.0, 0.0),
        pair(1.0, 0.0),
        pair(0.0, 1.0),
        pair(2.0, 0.0),
        pair(steep(30.0), 0.0),
        pair(0.0, steep(90.0)),
        pair(steep(1e4) / 2.0, -steep(1e4) / 2.0),
        pair(100.0, 100.0 - steep(1.0)),
        pair(-200.0, -200.0),
        pair(-200.0 - steep(1.0), -200.0),
        pair(most, most),
        pair(-most, -most - steep(1.0)),
        pair(0.0, none),
    ] {
        add((1, 1, 2), &logits, &[O]);
    }
    add((1, 1, 2), &[0.0, 0.0], &[X]);
    add((1, 1, 3), &[0.0, none, 1.0], &[O]);
    add((1, 1, 3), &[none, none, 1.0], &[O]);
    add((1, 1, 3), &[0.0, 0.0, 0.0], &[O]);
    add((1, 1, 3), &[-200.0, -201.0, -202.5], &[O]);
    add((1, 1, 17), &[0.0, 1.0, -1.0, 2.0, 0.5], &[O]);
    add((1, 1, 33), &[0.0], &[O]);
    let mixed = [0.0, 1.0, 3.0, 0.0, 0.0, 0.5, -1.0, 0.0, 2.0, 0.25, 0.0];
    for mask in [[O, O], [O, X], [X, O], [X, X]] {
        add((1, 2, 2), &mixed, &mask);
        add((2, 1, 2), &mixed, &mask);
        add((1, 2, 3), &[1.0, 0.0, 0.0, 50.0, 0.0, 0.0], &mask);
    }
    add((2, 2, 2), &mixed, &[O, X, O, O]);
    add((2, 2, 2), &mixed, &[O, O, X, X]);
    add((2, 2, 3), &mixed, &[O, O, O, O]);
    add((1, 3, 2), &mixed, &[O, X, O]);
    add((1, 3, 2), &mixed, &[O, O, O]);
    add((1, 4, 2), &[0.0, 0.0, 4.0, 0.0, 1.0, 0.0, 9.0, 0.0], &[O, O, O, O]);
    add((2, 3, 2), &mixed, &[O, O, O, O, X, X]);
    add((3, 3, 3), &mixed, &[O, O, O, O, O, X, X, X, X]);
    add((2, 4, 2), &mixed, &[X, O, O, X, X, X, O, O]);
    add((3, 2, 3), &mixed, &[O, O, O, X, X, X]);
    if options.masked_values == MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, none] {
            add((1, 2, 2), &[1.0, 0.0, poison, poison], &[O, X]);
        }
    }
    cases.sort_by_cached_key(EntropyBonus::measure);
    // A case with rows of unequal length, and one with a gap, are among the first ones.
    let early = |case: &EntropyBonusCase| {
        let gap = case.mask.rows().into_iter().any(masks::has_hole);
        let lengths: Vec<usize> =
            case.mask.rows().into_iter().map(|row| row.iter().filter(|m| **m).count()).collect();
        gap || lengths.iter().any(|length| *length != lengths[0])
    };
    let first = cases.remove(0);
    let (mut begin, rest): (Vec<_>, Vec<_>) = cases.into_iter().partition(early);
    let later = begin.split_off(begin.len().min(6));
    let mut ordered = vec![first];
    ordered.extend(begin);
    ordered.extend(rest);
    ordered.extend(later);
    ordered
}

/// Small cases over simple logits, and over margins that are nearly one-hot.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<EntropyBonusCase> {
    let logits = [0.0, 0.0, 1.0, -1.0, 2.0];
    rows::small::<EntropyBonus>(&[("logits", &logits)], options, dtype)
}

/// Whether a token that counts has such logits.
fn any(case: &EntropyBonusCase, is: impl Fn(ArrayView1<'_, f64>) -> bool) -> bool {
    let positions = case.logits.lanes(Axis(2)).into_iter().zip(&case.mask);
    positions.filter(|(_, kept)| **kept).any(|(logits, _)| is(logits))
}

pub(super) fn classes() -> Vec<Class<EntropyBonus>> {
    type Contains = fn(&EntropyBonusCase, &Options) -> bool;
    type Generated = fn(&Options, Dtype) -> bool;
    let class = |id, meaning, contains: Contains, generated: Generated| Class {
        id,
        meaning,
        contains,
        generated,
    };
    let always: Generated = |_, _| true;
    let mut classes = laws::masks::classes::<EntropyBonus>();
    classes.extend([
        class(
            "uniform",
            "a token of equal logits",
            |case, _| any(case, |logits| logits.iter().all(|logit| *logit == logits[0])),
            always,
        ),
        class(
            "near-one-hot",
            "a token whose largest logit leads by 5 temperatures or more",
            |case, o| {
                let of_tokens = o.of_tokens();
                any(case, |z| (DOMINANT..f64::INFINITY).contains(&lead(z, &of_tokens)))
            },
            always,
        ),
        class(
            "sure",
            "a token whose largest logit leads by 88 temperatures or more, beyond exp in f32",
            |case, o| {
                let of_tokens = o.of_tokens();
                any(case, |z| (88.0..f64::INFINITY).contains(&lead(z, &of_tokens)))
            },
            always,
        ),
        class(
            "far-below",
            "a token whose logits are all -88 or less",
            |case, _| any(case, |logits| logits.iter().all(|logit| *logit <= -88.0)),
            always,
        ),
        class(
            "far-above",
            "a token whose logits are all 88 or more",
            |case, _| any(case, |logits| logits.iter().all(|logit| *logit >= 88.0)),
            always,
        ),
        class(
            "neg-inf",
            "a logit of -inf at a token that counts",
            |case, _| any(case, |logits| logits.iter().any(|logit| logit.is_infinite())),
            |options, _| options.neg_inf == NegInf::Zero,
        ),
        class(
            "different-entropies",
            "tokens that count, one uniform and one sure to 5 temperatures",
            |case, o| {
                let of_tokens = o.of_tokens();
                any(case, |z| lead(z, &of_tokens) > DOMINANT)
                    && any(case, |z| z.iter().all(|logit| *logit == z[0]))
            },
            always,
        ),
        class(
            "cube",
            "N = T = V ≥ 2",
            |case, _| {
                let (rows, columns, size) = case.logits.dim();
                rows == columns && columns == size
            },
            always,
        ),
        class("one-token", "one token counts", |case, _| tokens(&case.mask) == 1, always),
        class("two-words", "V = 2", |case, _| case.logits.dim().2 == 2, always),
        class("wide-vocabulary", "V ≥ 17", |case, _| case.logits.dim().2 >= 17, always),
        class(
            "nonfinite-under-the-mask",
            "NaN or an infinity under the mask",
            |case, _| {
                let positions = case.logits.lanes(Axis(2)).into_iter().zip(&case.mask);
                let mut masked = positions.filter(|(_, kept)| !**kept);
                masked.any(|(logits, _)| logits.iter().any(|logit| !logit.is_finite()))
            },
            |options, _| options.masked_values == MaskedValues::Any,
        ),
    ]);
    classes
}
