//! Cases of `policy-loss`: random draws, corners, small cases and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array2, ArrayD, Axis, IxDyn};

use super::{
    AdvantageShape, Advantages, ExtremeRatios, KlEstimator, Options, PolicyLoss, PolicyLossCase,
    Ratio, flat, oracle,
};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::Masked;
use shakedown_core::generate::draw::{chance, one, uniform};
use shakedown_core::generate::masks;
use shakedown_core::generate::pick::Pick;
use shakedown_core::laws;
use shakedown_core::numeric::conventions::{EmptyMask, MaskedValues};
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest magnitude of a log-probability and of an advantage that count.
const LARGEST: f64 = 1e3;

/// The largest magnitude of a finite number under the mask: a component may compute with it
/// before it masks, and must not overflow.
const MASKED: f64 = 40.0;

/// A log-probability may be this much above 0: derivatives are taken from both sides.
const ABOVE_ZERO: f64 = 0.01;

/// The largest magnitude of a log-ratio: so much that a clamp of it is passed, whatever is said of
/// extremes.
fn limit(options: &Options, clamp: Option<f64>, dtype: Dtype) -> f64 {
    let limit: f64 = match (options.extreme_ratios, dtype) {
        (ExtremeRatios::Finite, _) => 120.0,
        (ExtremeRatios::Avoid, Dtype::F16) => 10.0,
        (ExtremeRatios::Avoid, _) => 80.0,
    };
    clamp.map_or(limit, |c| limit.max((1.25 * c).max(c + 1.5)).min(0.9 * LARGEST))
}

/// The log-ratio to the reference from which on a clamp of it, or of the divergence, acts. Behind
/// that of k3 stands an exponential, which leaves the format sooner than the clamp is far.
fn kl_reach(options: &Options) -> Option<f64> {
    let result = options.kl_clamp.and_then(|[lo, hi]| match options.kl_estimator {
        KlEstimator::K1 => Some(hi.max(-lo)),
        KlEstimator::K2 => Some((2.0 * hi).sqrt()),
        KlEstimator::K3 => None,
        KlEstimator::Abs => Some(hi),
    });
    result.into_iter().chain(options.kl_log_ratio_clamp).reduce(f64::max)
}

pub(super) fn valid(
    case: &PolicyLossCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<PolicyLoss>(case)?;
    let dimensions = match options.advantage_shape {
        AdvantageShape::Token => 2,
        AdvantageShape::Row => 1,
    };
    if case.advantages.ndim() != dimensions {
        let found = case.advantages.ndim();
        return Err(format!("`advantages` has {found} dimensions, expected {dimensions}"));
    }
    match (&case.ref_log_probs, options.beta > 0.0) {
        (None, true) => return Err("`ref_log_probs` is missing, and `beta` > 0".to_owned()),
        (Some(_), false) => return Err("`ref_log_probs` is there, and `beta` is 0".to_owned()),
        _ => {}
    }
    let by_token = case.advantages.view().into_dimensionality().ok().map(|array| array.to_owned());
    let mut fields = vec![("log_probs", &case.log_probs), ("old_log_probs", &case.old_log_probs)];
    fields.extend(by_token.as_ref().map(|array| ("advantages", array)));
    fields.extend(case.ref_log_probs.as_ref().map(|array| ("ref_log_probs", array)));
    masks::check(&case.mask, options.holes, &fields, options.masked_values, LARGEST)?;
    for (name, array) in fields {
        for ((at, x), kept) in array.indexed_iter().zip(&case.mask) {
            let positive = *kept && name != "advantages" && *x > ABOVE_ZERO;
            if positive || (!*kept && x.is_finite() && x.abs() > MASKED) {
                return Err(format!("{name}[{}, {}] is {x}", at.0, at.1));
            }
        }
    }
    if by_token.is_none() && !case.advantages.iter().all(|a| a.abs() <= LARGEST) {
        return Err("`advantages` are not all finite and of magnitude 1000 at most".to_owned());
    }
    if options.empty_mask == EmptyMask::Avoid && !case.mask.iter().any(|kept| *kept) {
        return Err("no token counts, and `empty_mask: avoid` is declared".to_owned());
    }
    if options.ratio == Ratio::Sequence && kept_rows(case).any(|row| !constant(case, &row)) {
        return Err("advantages differ inside a row, and `ratio: sequence` is declared".to_owned());
    }
    for (other, clamp) in [
        (Some(&case.old_log_probs), options.log_ratio_clamp),
        (case.ref_log_probs.as_ref(), kl_reach(options)),
    ] {
        let limit = limit(options, clamp, dtype);
        let mut pairs = other.into_iter().flat_map(|other| {
            case.log_probs.iter().zip(other).zip(&case.mask).filter(|(_, kept)| **kept)
        });
        if pairs.any(|((a, b), _)| (a - b).abs() > limit) {
            return Err(format!("a log-ratio is beyond ±{limit}"));
        }
    }
    if !oracle::fits(case, options, dtype) {
        return Err("the exact loss or gradient is beyond what the dtype holds".to_owned());
    }
    Ok(())
}

/// The places that count, row by row.
fn kept_rows(case: &PolicyLossCase) -> impl Iterator<Item = Vec<(usize, usize)>> + '_ {
    case.mask.rows().into_iter().enumerate().map(|(row, mask)| {
        let kept = mask.iter().enumerate().filter(|(_, kept)| **kept);
        kept.map(|(token, _)| (row, token)).collect()
    })
}

/// Whether the advantages at these places are one number.
fn constant(case: &PolicyLossCase, places: &[(usize, usize)]) -> bool {
    let advantages = Advantages::of(case);
    places
        .iter()
        .all(|(row, token)| advantages.at(*row, *token) == advantages.at(places[0].0, places[0].1))
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<PolicyLossCase> {
    let shape = masks::shape(u)?;
    draw_shaped(u, options, dtype, shape)
}

/// How many numbers of a kind are drawn; larger cases repeat them in another order.
const DRAWN: usize = 24;

/// Numbers of one kind: some are drawn, and a case of any size is made of them.
struct Numbers([f64; DRAWN]);

impl Numbers {
    fn draw(count: usize, mut draw: impl FnMut() -> Result<f64>) -> Result<Numbers> {
        let mut numbers = [0.0; DRAWN];
        for number in numbers.iter_mut().take(count) {
            *number = draw()?;
        }
        Ok(Numbers(numbers))
    }

    fn at(&self, at: usize) -> f64 {
        self.0[if at < DRAWN { at } else { (at * 7 + at / DRAWN) % DRAWN }]
    }
}

pub(super) fn draw_shaped(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
    shape: (usize, usize),
) -> Result<PolicyLossCase> {
    let (rows, width) = shape;
    let count = rows * width;
    let mut mask = masks::mask(u, shape, options.holes)?;
    if width > 6 && chance(u, 24)? {
        // Few tokens of many, at the end of long rows.
        mask = Array2::from_shape_fn(shape, |(_, token)| token + 1 == width);
    }
    if options.empty_mask == EmptyMask::Avoid && !mask.iter().any(|kept| *kept) {
        mask[[0, 0]] = true;
    }
    let [limit, kl_limit] = [options.log_ratio_clamp, kl_reach(options)]
        .map(|clamp| 0.97 * limit(options, clamp, dtype));
    let (gap, kl_gap) = (one(u, &GAPS)?, one(u, &GAPS)?);
    let (by_row, alike) = (chance(u, 128)?, chance(u, 64)?);
    let by_row = by_row
        || options.ratio == Ratio::Sequence
        || options.advantage_shape == AdvantageShape::Row;
    let size = one(u, &[0, 1, 2, 3, 4, 0, 1, 2])?;
    let advantages = Numbers::draw(if by_row { rows } else { count }, || advantage(u, size))?;
    let gaps = Numbers::draw(count, || gap.draw(u, limit, &bounds(options)))?;
    let bases = Numbers::draw(count.min(8), || one(u, &[-1.0, 0.0, -0.5, -2.0, -0.1, -5.0]))?;
    let kl_gaps = match options.beta > 0.0 {
        true => Numbers::draw(count, || kl_gap.draw(u, kl_limit, &kl_bounds(options)))?,
        false => Numbers([0.0; DRAWN]),
    };
    let mut pick = Pick::seeded(u64::from_le_bytes(u.arbitrary()?));
    let [mut log_probs, mut old, mut reference, mut by_token] =
        [0; 4].map(|_| Vec::with_capacity(count));
    for (at, kept) in mask.iter().enumerate() {
        let row = at / width;
        if *kept {
            // The one that is nearest to 0 is the base, so that none is above it.
            let gap = gaps.at(if alike { row } else { at });
            let (kl_gap, base) = (kl_gaps.at(at), bases.0[at % count.min(8)]);
            let top = base - 0.0_f64.max(-gap).max(-kl_gap);
            log_probs.push(top);
            old.push(top - gap);
            reference.push(top - kl_gap);
            by_token.push(advantages.at(if by_row { row } else { at }));
        } else {
            for numbers in [&mut log_probs, &mut old, &mut reference, &mut by_token] {
                numbers.push(poison(&mut pick, options));
            }
        }
    }
    let array = |numbers| Array2::from_shape_vec(shape, numbers).expect("N·T numbers");
    let mut case = PolicyLossCase {
        log_probs: array(log_probs),
        old_log_probs: array(old),
        advantages: match options.advantage_shape {
            AdvantageShape::Token => array(by_token).into_dyn(),
            AdvantageShape::Row => ArrayD::from_shape_fn(IxDyn(&[rows]), |at| advantages.at(at[0])),
        },
        ref_log_probs: (options.beta > 0.0).then(|| array(reference)),
        mask,
    };
    let tame = |kind: Gap| !matches!(kind, Gap::Extreme | Gap::Bounds);
    if dtype == Dtype::F16 || !tame(gap) || (options.beta > 0.0 && !tame(kl_gap)) {
        round(&mut case, dtype);
        if !oracle::fits(&case, options, dtype) {
            calm(&mut case);
        }
    }
    Ok(case)
}

/// What stands under the mask.
fn poison(pick: &mut Pick, options: &Options) -> f64 {
    if options.masked_values == MaskedValues::Any && pick.below(3) == 0 {
        *pick.one(&[f64::NAN, f64::INFINITY, f64::NEG_INFINITY])
    } else {
        *pick.one(PolicyLoss::POISON)
    }
}

/// Log-ratios and advantages near 0, so that nothing overflows.
fn calm(case: &mut PolicyLossCase) {
    let PolicyLossCase { log_probs, old_log_probs, advantages, mask, ref_log_probs } = case;
    let others = std::iter::once(old_log_probs).chain(ref_log_probs.as_mut());
    for other in others {
        for ((other, own), kept) in other.iter_mut().zip(&*log_probs).zip(&*mask) {
            if *kept && (own - *other).abs() > 1.0 {
                *other = *own;
            }
        }
    }
    advantages.mapv_inplace(|a| if a.abs() > MASKED { 1.0_f64.copysign(a) } else { a });
}

/// How far apart two policies are at a token.
#[derive(Clone, Copy)]
enum Gap {
    None,
    Simple,
    Small,
    Bounds,
    Extreme,
}

const GAPS: [Gap; 8] = [
    Gap::Simple,
    Gap::Bounds,
    Gap::Small,
    Gap::Simple,
    Gap::None,
    Gap::Small,
    Gap::Extreme,
    Gap::Simple,
];

impl Gap {
    fn draw(self, u: &mut Unstructured<'_>, limit: f64, bounds: &[f64]) -> Result<f64> {
        let gap = match self {
            Gap::None => 0.0,
            Gap::Simple => {
                one(u, &[0.0, 1.0, -1.0, 0.5, -0.5, 0.1, -0.1, 0.25, -0.25, 2.0, -2.0, 0.22])?
            }
            Gap::Small => uniform(u, -0.4, 0.4)?,
            Gap::Bounds => one(u, bounds)? + one(u, &[0.0, 1e-3, -1e-3, 1e-7, -1e-7, 0.05, -0.05])?,
            Gap::Extreme => {
                let far = [limit, -limit, 21.0, -21.0, 5.0, -5.0, 60.0, -60.0, 0.5, 10.5, -10.5];
                one(u, &far)?
            }
        };
        Ok(gap.clamp(-limit, limit))
    }
}

/// The log-ratios at which the loss bends.
fn bounds(options: &Options) -> Vec<f64> {
    let (lo, hi) = options.bounds();
    let ratios = [Some(hi), Some(lo), options.dual()];
    let mut bounds: Vec<f64> =
        ratios.into_iter().flatten().filter(|b| *b > 0.0).map(f64::ln).collect();
    bounds.extend(options.log_ratio_clamp.into_iter().flat_map(|c| [c, -c, c + 1.0, -c - 1.0]));
    bounds
}

/// The log-ratios to the reference at which the divergence bends.
fn kl_bounds(options: &Options) -> Vec<f64> {
    let mut bounds = vec![0.0];
    bounds.extend(options.kl_log_ratio_clamp.into_iter().flat_map(|c| [c, -c, c + 1.0, -c - 1.0]));
    bounds.extend(
        options.kl_clamp.into_iter().flat_map(|[lo, hi]| [hi, -hi, hi + 2.0, lo, lo - 2.0]),
    );
    bounds
}

fn advantage(u: &mut Unstructured<'_>, size: usize) -> Result<f64> {
    match size {
        0 => one(u, &[1.0, -1.0, 0.0, 2.0, -2.0, 0.5, -0.5]),
        1 => uniform(u, -2.0, 2.0),
        2 => one(u, &[1.0, -1.0]),
        3 => Ok(1.0),
        _ => one(u, &[0.1, -0.3, 10.0, -10.0, 100.0, 1e-3, -0.0, -100.0, 0.0]),
    }
}

const O: bool = true;
const X: bool = false;

/// A corner: log-probabilities of the policy, the old one and the reference, advantages, mask.
struct Corner<'a> {
    shape: (usize, usize),
    log_probs: &'a [f64],
    old: &'a [f64],
    reference: &'a [f64],
    advantages: &'a [f64],
    mask: &'a [bool],
}

impl Corner<'_> {
    /// The case, with advantages as the options want them.
    fn case(&self, options: &Options) -> PolicyLossCase {
        let array = |numbers: &[f64]| {
            Array2::from_shape_vec(self.shape, numbers.to_vec()).expect("as many as cells")
        };
        let mut advantages = array(self.advantages);
        let firsts = advantages.index_axis(Axis(1), 0).to_owned();
        if options.ratio == Ratio::Sequence {
            for (mut row, first) in advantages.rows_mut().into_iter().zip(&firsts) {
                row.fill(*first);
            }
        }
        PolicyLossCase {
            log_probs: array(self.log_probs),
            old_log_probs: array(self.old),
            advantages: match options.advantage_shape {
                AdvantageShape::Token => advantages.into_dyn(),
                AdvantageShape::Row => firsts.into_dyn(),
            },
            ref_log_probs: (options.beta > 0.0).then(|| array(self.reference)),
            mask: Array2::from_shape_vec(self.shape, self.mask.to_vec()).expect("as many as cells"),
        }
    }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<PolicyLossCase> {
    let mut cases = Vec::new();
    let mut add = |corner: Corner<'_>| {
        let mut case = corner.case(options);
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    };
    let mut single = |log_prob: f64, old: f64, reference: f64, advantage: f64, kept: bool| {
        add(Corner {
            shape: (1, 1),
            log_probs: &[log_prob],
            old: &[old],
            reference: &[reference],
            advantages: &[advantage],
            mask: &[kept],
        });
    };
    single(0.0, 0.0, 0.0, 0.0, O);
    single(0.0, 0.0, 0.0, 1.0, X);
    // On the policy, both sides of either bound with either sign, and without an advantage.
    for (log_prob, old) in [
        (0.0, 0.0),
        (-1.0, -1.0),
        (0.0, -1.0),
        (-1.0, 0.0),
        (0.0, -0.1),
        (-0.1, 0.0),
        (0.0, -0.22),
        (-0.25, 0.0),
        (0.0, -2.0),
    ] {
        for advantage in [1.0, -1.0] {
            single(log_prob, old, log_prob, advantage, O);
        }
    }
    single(0.0, -1.0, 0.0, 0.0, O);
    single(-1.0, 0.0, -1.0, 2.0, O);
    for (log_prob, reference) in [(0.0, -1.0), (-1.0, 0.0), (-1.0, -3.0), (-3.0, 0.0)] {
        single(log_prob, log_prob, reference, 0.0, O);
        single(log_prob, log_prob, reference, 1.0, O);
    }
    for far in [10.5, 12.0, 21.0, 60.0, 80.0, 100.0, 120.0] {
        single(0.0, -far, 0.0, 1.0, O);
        single(0.0, -far, 0.0, -1.0, O);
        single(-far, 0.0, -far, 1.0, O);
        single(-far, 0.0, 0.0, -1.0, O);
        single(0.0, 0.0, -far, 1.0, O);
    }
    // Where a bound of these options acts, or just does not.
    for bound in bounds(options) {
        for gap in [bound - 0.05, bound + 0.05, 1.2 * bound] {
            let (log_prob, old) = if gap > 0.0 { (0.0, -gap) } else { (gap, 0.0) };
            single(log_prob, old, log_prob, 1.0, O);
            single(log_prob, old, log_prob, -1.0, O);
        }
    }
    for gap in kl_bounds(options).into_iter().flat_map(|bound| [bound, 1.2 * bound]) {
        let (log_prob, reference) = if gap > 0.0 { (0.0, -gap) } else { (gap, 0.0) };
        single(log_prob, log_prob, reference, 1.0, O);
    }
    let mut several = |(rows, width): (usize, usize), advantages: &[f64], mask: &[bool]| {
        let count = rows * width;
        let of = |numbers: &[f64]| -> Vec<f64> {
            (0..count).map(|at| numbers[at % numbers.len()]).collect()
        };
        add(Corner {
            shape: (rows, width),
            log_probs: &of(&[-1.0]),
            old: &of(&[-1.0]),
            reference: &of(&[-1.0]),
            advantages: &of(advantages),
            mask,
        });
        add(Corner {
            shape: (rows, width),
            log_probs: &of(&[-1.0, -0.5, 0.0]),
            old: &of(&[-1.0, -0.6, -1.0, 0.0]),
            reference: &of(&[0.0, -0.5]),
            advantages: &of(advantages),
            mask,
        });
    };
    for mask in [[O, O], [O, X], [X, O]] {
        several((1, 2), &[1.0, -1.0], &mask);
        several((2, 1), &[1.0, -1.0], &mask);
        several((1, 2), &[1.0], &mask);
    }
    several((2, 2), &[1.0, 1.0, -1.0, -1.0], &[O, X, O, O]);
    several((2, 2), &[1.0], &[O, O, O, X]);
    several((2, 2), &[1.0], &[X, X, O, O]);
    several((2, 2), &[1.0, 2.0, -1.0, 0.5], &[O, O, O, O]);
    several((1, 3), &[1.0, 1.0, -1.0], &[O, X, O]);
    several((2, 4), &[1.0], &[O, O, O, O, O, X, X, X]);
    several((1, 8), &[1.0], &[X, X, X, X, X, X, X, O]);
    several((3, 3), &[1.0, -0.5, 2.0, 0.0], &[O, O, O, O, O, X, X, X, X]);
    // A clipped token beside a masked one.
    add(Corner {
        shape: (1, 2),
        log_probs: &[0.0, -1.0],
        old: &[0.0, 0.0],
        reference: &[0.0, -1.0],
        advantages: &[0.0, -1.0],
        mask: &[X, O],
    });
    if options.masked_values == MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut add = |log_prob, old, reference, advantage| {
                add(Corner {
                    shape: (1, 2),
                    log_probs: &[-1.0, log_prob],
                    old: &[-1.0, old],
                    reference: &[-1.0, reference],
                    advantages: &[1.0, advantage],
                    mask: &[O, X],
                });
            };
            add(poison, 0.0, 0.0, 1.0);
            add(0.0, poison, 0.0, 1.0);
            add(0.0, 0.0, poison, 1.0);
            add(0.0, 0.0, 0.0, poison);
        }
    }
    cases.sort_by_cached_key(PolicyLoss::measure);
    cases
}

/// Small cases over simple values, and over those at which the options make a difference.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<PolicyLossCase> {
    let mut cases = Vec::new();
    let mut log_ratios = vec![0.0, 1.0, -1.0, 0.1, -0.1, -0.25, 0.22, 2.0, -2.0, 3.0];
    let steep = |c: &f64| *c > 2.0;
    log_ratios.extend(options.log_ratio_clamp.iter().filter(|c| steep(c)).map(|c| c + 1.0));
    for shape in [(1, 1), (1, 2), (2, 1), (1, 3), (3, 1), (2, 2), (1, 4)] {
        let count = shape.0 * shape.1;
        let mut pick = Pick::seeded((8 * shape.0 + shape.1) as u64);
        for _ in 0..72 {
            let simple = pick.below(2) == 0;
            let mut numbers =
                |values: &[f64]| -> Vec<f64> { (0..count).map(|_| *pick.one(values)).collect() };
            let tops = numbers(&[0.0, -1.0]);
            let gaps = numbers(if simple { &[0.0] } else { &log_ratios });
            let kl_gaps = numbers(if simple { &[0.0, 1.0, -1.0] } else { &[0.0] });
            let advantages = numbers(&[1.0, -1.0, 0.0, 2.0, 1.0]);
            let above = |at: usize| 0.0_f64.max(-gaps[at]).max(-kl_gaps[at]);
            let log_probs: Vec<f64> = (0..count).map(|at| tops[at] - above(at)).collect();
            let old: Vec<f64> = (0..count).map(|at| log_probs[at] - gaps[at]).collect();
            let reference: Vec<f64> = (0..count).map(|at| log_probs[at] - kl_gaps[at]).collect();
            let mask: Vec<bool> = (0..count).map(|_| pick.below(4) > 0).collect();
            let corner = Corner {
                shape,
                log_probs: &log_probs,
                old: &old,
                reference: &reference,
                advantages: &advantages,
                mask: &mask,
            };
            let mut case = corner.case(options);
            round(&mut case, dtype);
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

/// Whether a token that counts is so: its ratio, its advantage.
fn any(case: &PolicyLossCase, is: impl Fn(f64, f64) -> bool) -> bool {
    let advantages = Advantages::of(case);
    case.mask.indexed_iter().any(|(at, kept)| {
        let log_ratio = case.log_probs[at] - case.old_log_probs[at];
        *kept && is(log_ratio.exp(), advantages.at(at.0, at.1))
    })
}

/// Whether the log-ratio to the reference of a token that counts is so.
fn any_kl(case: &PolicyLossCase, is: impl Fn(f64) -> bool) -> bool {
    case.ref_log_probs.as_ref().is_some_and(|reference| {
        let pairs = case.log_probs.iter().zip(reference).zip(&case.mask);
        pairs.into_iter().any(|((own, reference), kept)| *kept && is(own - reference))
    })
}

pub(super) fn classes() -> Vec<Class<PolicyLoss>> {
    type Contains = fn(&PolicyLossCase, &Options) -> bool;
    type Generated = fn(&Options, Dtype) -> bool;
    let class = |id, meaning, contains: Contains, generated: Generated| Class {
        id,
        meaning,
        contains,
        generated,
    };
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let bounded: fn(&Options, Dtype) -> bool = |options, _| options.bounds().0 > 0.0;
    let mut classes = laws::masks::classes::<PolicyLoss>();
    classes.extend([
        class(
            "on-policy",
            "every ratio is 1",
            |case, _| !any(case, |ratio, _| ratio != 1.0),
            always,
        ),
        class(
            "above-with-positive-advantage",
            "a ratio above the upper bound, A > 0",
            |case, options| any(case, |ratio, a| a > 0.0 && ratio > options.bounds().1),
            always,
        ),
        class(
            "above-with-negative-advantage",
            "a ratio above the upper bound, A < 0",
            |case, options| any(case, |ratio, a| a < 0.0 && ratio > options.bounds().1),
            always,
        ),
        class(
            "below-with-negative-advantage",
            "a ratio below the lower bound, A < 0",
            |case, options| any(case, |ratio, a| a < 0.0 && ratio < options.bounds().0),
            bounded,
        ),
        class(
            "below-with-positive-advantage",
            "a ratio below the lower bound, A > 0",
            |case, options| any(case, |ratio, a| a > 0.0 && ratio < options.bounds().0),
            bounded,
        ),
        class(
            "dual-clipped",
            "a ratio above `dual_clip`, A < 0",
            |case, options| {
                options.dual().is_some_and(|c| any(case, |ratio, a| a < 0.0 && ratio > c))
            },
            |options, _| options.dual().is_some(),
        ),
        class(
            "near-a-bound",
            "a ratio within 1e-4 of a bound",
            |case, options| {
                let (lo, hi) = options.bounds();
                any(case, |ratio, _| (ratio - lo).abs() < 1e-4 || (ratio - hi).abs() < 1e-4)
            },
            |_, dtype| matches!(dtype, Dtype::F64 | Dtype::F32),
        ),
        class(
            "zero-advantage",
            "A = 0 at a ratio other than 1",
            |case, _| any(case, |ratio, a| a == 0.0 && ratio != 1.0),
            always,
        ),
        class(
            "advantages-sum-to-zero",
            "advantages that add up to 0 and are not all 0",
            |case, _| {
                let advantages = Advantages::of(case);
                let kept = case.mask.indexed_iter().filter(|(_, kept)| **kept);
                let sum: f64 = kept.map(|(at, _)| advantages.at(at.0, at.1)).sum();
                sum == 0.0 && any(case, |_, a| a != 0.0)
            },
            always,
        ),
        class(
            "advantages-vary-in-a-row",
            "a row whose advantages are not all the same",
            |case, _| kept_rows(case).any(|row| !constant(case, &row)),
            |options, _| {
                options.advantage_shape == AdvantageShape::Token && options.ratio != Ratio::Sequence
            },
        ),
        class(
            "extreme-ratio",
            "a log-ratio beyond ±9",
            |case, _| any(case, |ratio, _| ratio.ln().abs() > 9.0),
            always,
        ),
        class(
            "overflowing-ratio",
            "a log-ratio beyond 88, whose exponential f32 does not hold",
            |case, _| any(case, |ratio, _| ratio.ln() > 88.0),
            |options, _| options.extreme_ratios == ExtremeRatios::Finite,
        ),
        class(
            "clamped-ratio",
            "a log-ratio beyond `log_ratio_clamp`",
            |case, options| {
                options.log_ratio_clamp.is_some_and(|c| any(case, |ratio, _| ratio.ln().abs() > c))
            },
            |options, _| options.log_ratio_clamp.is_some_and(|c| c < 0.7 * LARGEST),
        ),
        class(
            "away-from-the-reference",
            "policy and reference differ",
            |case, _| any_kl(case, |d| d != 0.0),
            |options, _| options.beta > 0.0,
        ),
        class(
            "few-tokens",
            "fewer than 15% of the places count, and one does",
            |case, _| {
                let kept = case.mask.iter().filter(|kept| **kept).count() as f64;
                kept > 0.0 && kept < 0.15 * case.mask.len() as f64
            },
            always,
        ),
        class(
            "nonfinite-under-the-mask",
            "NaN or an infinity under the mask",
            |case, _| {
                let all = [&case.log_probs, &case.old_log_probs];
                all.into_iter().any(|array| flat(array).iter().any(|x| !x.is_finite()))
            },
            |options, _| options.masked_values == MaskedValues::Any,
        ),
    ]);
    classes
}
