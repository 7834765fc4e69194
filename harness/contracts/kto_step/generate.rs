//! Cases of `kto-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2, Array3, ArrayD, Axis, IxDyn};

use super::{Kind, KtoStep, KtoStepCase, Options, oracle};
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::step::Stepped as _;
use shakedown_core::generate::draw::{chance, one};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest logit.
const LARGEST_LOGIT: f64 = 30.0;

/// The largest difference of two models' logits: more, and a loss is flat.
const FURTHEST: f64 = 6.0;

/// The ids that are neither the end nor the pad.
fn words(options: &Options, vocabulary: usize) -> Vec<i64> {
    step::words(&[options.eos, options.pad], vocabulary)
}

/// The smallest vocabulary that has the end, the pad and two words.
fn smallest_vocabulary(options: &Options) -> usize {
    step::smallest_vocabulary(&[options.eos, options.pad])
}

pub(super) fn valid(
    case: &KtoStepCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<KtoStep>(case)?;
    let (rows, plan) = (case.tokens.nrows(), options.plan());
    let (updates, vocabulary) = (case.logits.shape()[0], case.logits.shape()[3]);
    if updates != plan.updates() {
        return Err(format!("logits of {updates} updates, expected {}", plan.updates()));
    }
    if !rows.is_multiple_of(plan.parts()) {
        return Err(format!("{rows} completions do not make {} micro-batches", plan.parts()));
    }
    if rows / plan.parts() < options.fewest() {
        return Err("a micro-batch of one completion has no other one for the KL".to_owned());
    }
    if vocabulary < smallest_vocabulary(options) {
        let least = smallest_vocabulary(options);
        return Err(format!("a vocabulary of {vocabulary}, expected {least} or more"));
    }
    for (row, tokens) in case.tokens.rows().into_iter().enumerate() {
        let end = step::end_of(tokens, [options.eos, options.pad], vocabulary);
        end.map_err(|wrong| format!("completion {row} {wrong}"))?;
    }
    let has_kl = options.kind == Kind::Kto;
    if [case.kl_logits.is_some(), case.ref_kl_logits.is_some()] != [has_kl; 2] {
        return Err("`kl_logits` and `ref_kl_logits` go with `kto`".to_owned());
    }
    let kl_tables = case.kl_logits.iter().flatten().chain(case.ref_kl_logits.iter().flatten());
    let tables = case.logits.iter().chain(&case.ref_logits).chain(kl_tables);
    if let Some(z) = tables.copied().find(|z| z.is_nan() || z.abs() > LARGEST_LOGIT) {
        return Err(format!("logit {z} is not within ±{LARGEST_LOGIT}"));
    }
    let pairs = [
        (Some(&case.logits), Some(&case.ref_logits)),
        (case.kl_logits.as_ref(), case.ref_kl_logits.as_ref()),
    ];
    for (policies, reference) in pairs {
        for table in policies.iter().flat_map(|policies| policies.outer_iter()) {
            let apart = table.iter().zip(reference.into_iter().flatten()).map(|(a, b)| a - b);
            if apart.fold(0.0, |most: f64, x| most.max(x.abs())) > FURTHEST {
                return Err(format!("policy and reference are more than {FURTHEST} apart"));
            }
        }
    }
    let expected = oracle::expected(case, options, dtype);
    let known = expected[0].numbers.iter().all(|number| number.value.is_finite());
    if known { Ok(()) } else { Err("the gradient is undefined".to_owned()) }
}

/// The sizes of a case.
#[derive(Clone, Copy)]
struct Sizes {
    rows: usize,
    width: usize,
    vocabulary: usize,
}

impl Sizes {
    /// Those nearest to the wanted ones that the options allow.
    fn fitting(options: &Options, rows: usize, width: usize) -> Sizes {
        let parts = options.plan().parts();
        let rows = rows.next_multiple_of(parts).max(parts * options.fewest());
        Sizes { rows, width, vocabulary: smallest_vocabulary(options) }
    }
}

/// A case: how long the completions are, their words and labels, a logit of the reference, and how
/// far the policy is from it, given the update, the label, and whether the logit is that of the
/// token.
fn made(
    options: &Options,
    sizes: Sizes,
    mut length: impl FnMut(usize) -> usize,
    mut word: impl FnMut(usize, usize) -> i64,
    label: impl FnMut(usize) -> bool,
    mut logit: impl FnMut(usize) -> f64,
    mut away: impl FnMut(usize, bool, bool) -> f64,
) -> KtoStepCase {
    let Sizes { rows, width, vocabulary } = sizes;
    let mut tokens = Array2::from_elem((rows, width), options.pad);
    for row in 0..rows {
        let length = length(row);
        for at in 0..length {
            tokens[[row, at]] = if at + 1 == length { options.eos } else { word(row, at) };
        }
    }
    let labels: Array1<bool> = (0..rows).map(label).collect();
    let updates = options.plan().updates();
    let mut table = |of_others: bool| {
        let reference = Array3::from_shape_fn((rows, width, vocabulary), |(_, _, id)| logit(id));
        let policies = ArrayD::from_shape_fn(IxDyn(&[updates, rows, width, vocabulary]), |at| {
            let is_token = !of_others && tokens[[at[1], at[2]]] == at[3] as i64;
            let away = away(at[0], labels[at[1]], is_token).clamp(-FURTHEST, FURTHEST);
            reference[[at[1], at[2], at[3]]] + away
        });
        (policies, reference)
    };
    let (logits, ref_logits) = table(false);
    let (kl_logits, ref_kl_logits) = (options.kind == Kind::Kto).then(|| table(true)).unzip();
    KtoStepCase {
        tokens,
        labels,
        logits,
        ref_logits,
        kl_logits,
        ref_kl_logits,
        micro_batches: None,
    }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<KtoStepCase> {
    let parts = options.plan().parts();
    let rows = if parts == 1 { one(u, &[3, 2, 4, 1])? } else { parts * one(u, &[2, 3, 1])? };
    let mut sizes = Sizes::fitting(options, rows, one(u, &[3, 2, 4, 1, 5])?);
    sizes.vocabulary += u.choose_index(3)?;
    let (alike, full) = (chance(u, 80)?, chance(u, 48)?);
    let share = one(u, &[128, 60, 200, 255, 0])?;
    let spread = one(u, &[1.0, 2.0, 0.0, 4.0])?;
    let moved = one(u, &[2.0, 1.0, 0.0, 4.0, 0.5])?;
    // Log-ratios that are large enough for the slope of the loss to differ.
    let liked = one(u, &[0.0, 2.0, 5.5, -3.5, 0.0])?;
    let seeds: [u64; 5] = u.arbitrary()?;
    let [mut lengths, mut ids, mut labels, mut logits, mut steps] = seeds.map(Pick::seeded);
    let words = words(options, sizes.vocabulary);
    let mut case = made(
        options,
        sizes,
        |_| if full { sizes.width } else { 1 + lengths.below(sizes.width) },
        |_, at| if alike { words[at % words.len()] } else { *ids.one(&words) },
        |_| labels.below(255) < share,
        |_| spread * (logits.below(17) as f64 - 8.0) / 8.0,
        |_, is_desirable, is_token| {
            let sign = if is_desirable { 1.0 } else { -1.0 };
            let liked = if is_token { sign * liked } else { 0.0 };
            liked + moved * (steps.below(33) as f64 - 16.0) / 16.0
        },
    );
    round(&mut case, dtype);
    if valid(&case, options, dtype).is_err() {
        return Ok(corners(options, dtype).swap_remove(0));
    }
    Ok(case)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<KtoStepCase> {
    let mut cases = Vec::new();
    for (rows, width, moved, liked) in [
        (1, 1, 0.0, 0.0),
        (2, 2, 0.0, 0.0),
        (2, 2, 0.5, 0.0),
        (2, 3, -0.5, 2.0),
        (3, 3, 1.0, 0.0),
        (3, 4, -1.0, 0.0),
        (4, 5, 2.0, 2.0),
        (4, 5, -2.0, -4.0),
        (4, 4, 0.25, 5.5),
    ] {
        let sizes = Sizes::fitting(options, rows, width);
        let words = words(options, sizes.vocabulary);
        let mut count = 0;
        let mut case = made(
            options,
            sizes,
            |row| width - row % width,
            |row, at| words[(row + at) % words.len()],
            |row| row % 3 != 1,
            |id| (id % 3) as f64 * 0.5,
            |update, is_desirable, is_token| {
                count += 1;
                let sign = if is_desirable { 1.0 } else { -1.0 };
                let liked = if is_token { sign * liked } else { 0.0 };
                liked + moved * ((count + update) % 3) as f64
            },
        );
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// Fewer completions, simpler words, simpler tables, shorter completions; then what the axes give.
pub(super) fn simpler(case: &KtoStepCase, options: &Options) -> Vec<KtoStepCase> {
    let (rows, width) = case.tokens.dim();
    let parts = options.plan().parts();
    let mut simpler = Vec::new();
    for kept in [parts * options.fewest(), rows / 2 / parts * parts, rows.saturating_sub(parts)] {
        if kept > 0 && kept < rows {
            for first in [0, rows - kept] {
                let kept: Vec<usize> = (first..first + kept).collect();
                simpler.push(rows::select::<KtoStep, _>(case, 'N', &kept));
            }
        }
    }
    let words = words(options, case.logits.shape()[3]);
    for (from, to) in words.iter().skip(1).flat_map(|from| words.iter().map(move |to| (from, to))) {
        if to < from && case.tokens.iter().any(|id| id == from) {
            let tokens = case.tokens.mapv(|id| if id == *from { *to } else { id });
            simpler.push(KtoStepCase { tokens, ..case.clone() });
        }
    }
    for row in 1..rows {
        let mut order: Vec<usize> = (0..rows).collect();
        order.swap(row - 1, row);
        simpler.push(rows::select::<KtoStep, _>(case, 'N', &order));
    }
    // One policy for all updates.
    let mut still = case.clone();
    for tables in [Some(&mut still.logits), still.kl_logits.as_mut()].into_iter().flatten() {
        let first = tables.index_axis(Axis(0), 0).to_owned();
        tables.outer_iter_mut().for_each(|mut table| table.assign(&first));
    }
    simpler.push(still);
    let fills =
        |row: &usize| case.tokens.row(*row).iter().take(width - 1).all(|id| *id != options.eos);
    let filling: Vec<usize> = (0..rows).filter(fills).collect();
    let columns: Vec<usize> = (0..width - 1).collect();
    for left_out in 0..width {
        let narrower = shorter(case, options, &filling, left_out);
        simpler.push(rows::select::<KtoStep, _>(&narrower, 'T', &columns));
        simpler.extend((0..rows).map(|row| shorter(case, options, &[row], left_out)));
    }
    simpler.extend(rows::simpler::<KtoStep>(case));
    simpler
}

/// The case where some completions lack a token.
fn shorter(case: &KtoStepCase, options: &Options, rows: &[usize], left_out: usize) -> KtoStepCase {
    let mut shorter = case.clone();
    for row in rows {
        let tokens = step::without(case.tokens.row(*row), left_out, options.pad);
        shorter.tokens.row_mut(*row).assign(&tokens);
    }
    shorter
}

/// Small cases from which shrinking may start: completions of up to three tokens, and policies that
/// like some tokens more or less.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<KtoStepCase> {
    let mut cases = Vec::new();
    for (rows, width) in [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (3, 2)] {
        let sizes = Sizes::fitting(options, rows, width);
        let words = words(options, sizes.vocabulary);
        let mut pick = Pick::seeded((8 * rows + width) as u64);
        for _ in 0..16 {
            let seeds = [pick.bits(), pick.bits(), pick.bits(), pick.bits(), pick.bits()];
            let [mut lengths, mut ids, mut labels, mut logits, mut steps] = seeds.map(Pick::seeded);
            let mut case = made(
                options,
                sizes,
                |_| 1 + lengths.below(width),
                |_, _| *ids.one(&words[..2]),
                |_| labels.below(2) == 0,
                |_| *logits.one(&[0.0, 0.0, 0.0, 1.0]),
                |_, _, _| *steps.one(&[0.0, 0.0, 0.0, 1.0, -1.0, 2.0]),
            );
            round(&mut case, dtype);
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &KtoStepCase) -> Measure {
    rows::measure::<KtoStep>(case)
}

pub(super) fn classes() -> Vec<Class<KtoStep>> {
    let class = |id, meaning, contains, generated| -> Class<KtoStep> {
        Class { id, meaning, contains, generated }
    };
    vec![
        class(
            "both-labels",
            "desirable completions and others",
            |case, _| case.labels.iter().any(|flag| *flag != case.labels[0]),
            |_, _| true,
        ),
        class(
            "one-label",
            "completions of one label",
            |case, _| case.labels.iter().all(|flag| *flag == case.labels[0]),
            |_, _| true,
        ),
        class(
            "unequal-lengths",
            "completions of different lengths",
            |case, options| {
                let trained = KtoStep::trained(case, options);
                let mut lengths =
                    trained.rows().into_iter().map(|row| row.iter().filter(|flag| **flag).count());
                let first = lengths.next();
                lengths.any(|length| Some(length) != first)
            },
            |_, _| true,
        ),
        class(
            "shared-beginning",
            "two different completions that begin with the same token",
            |case, _| {
                let rows: Vec<_> = case.tokens.rows().into_iter().collect();
                let alike = |a: usize, b: usize| rows[a][0] == rows[b][0] && rows[a] != rows[b];
                (0..rows.len()).any(|a| (0..a).any(|b| alike(a, b)))
            },
            |_, _| true,
        ),
        class(
            "estimate-above-0",
            "an estimate of the KL above 0",
            |case, options| {
                options.kind == Kind::Kto
                    && oracle::mean_log_ratios(case, options).iter().any(|x| *x > 0.0)
            },
            |options, _| options.kind == Kind::Kto,
        ),
        class(
            "estimate-clamped",
            "a mean log-ratio below 0, which the estimate of the KL is not",
            |case, options| {
                options.kind == Kind::Kto
                    && oracle::mean_log_ratios(case, options).iter().any(|x| *x < 0.0)
            },
            |options, _| options.kind == Kind::Kto,
        ),
        class(
            "policy-is-the-reference",
            "a policy that equals the reference",
            |case, _| {
                let reference = case.ref_logits.view().into_dyn();
                case.logits.outer_iter().any(|table| table == reference)
            },
            |_, _| true,
        ),
        class(
            "moved-policy",
            "a policy that an update has moved",
            |case, _| {
                let first = case.logits.index_axis(Axis(0), 0);
                case.logits.outer_iter().any(|table| table != first)
            },
            |options, _| options.plan().updates() > 1,
        ),
    ]
}
