//! Cases of `grpo-step`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array3, ArrayD, Axis, IxDyn};

use super::{Action, GrpoStep, GrpoStepCase, KlIn, Options, Over, oracle};
use crate::completion_mask::Unfinished;
use crate::reward_combination::Unscored;
use crate::step;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::step::Stepped as _;
use shakedown_core::generate::draw::{chance, one, uniform};
use shakedown_core::generate::measure::Measure;
use shakedown_core::generate::pick::Pick;
use shakedown_core::numeric::aggregate::Aggregate;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest logit.
const LARGEST_LOGIT: f64 = 30.0;

/// The largest reward.
const LARGEST_REWARD: f64 = 10.0;

/// The largest difference of two policies' logits at a token: more, and nothing but clipping is
/// seen.
const FURTHEST: f64 = 4.0;

/// The largest id of `eos` and of `pad`: every id is a column of the table.
const LARGEST_ID: i64 = 15;

pub(super) fn draw_eos(u: &mut Unstructured<'_>, _: &Options) -> Result<Vec<i64>> {
    one(u, &[vec![1], vec![1], vec![1, 2], vec![2]])
}

pub(super) fn draw_over(u: &mut Unstructured<'_>, options: &Options) -> Result<Over> {
    match options.aggregate {
        Aggregate::TokenMean => one(u, Over::ALL),
        _ => one(u, &[Over::MicroBatch, Over::Update]),
    }
}

pub(super) fn draw_norm_length(u: &mut Unstructured<'_>, options: &Options) -> Result<Option<u32>> {
    match options.aggregate {
        Aggregate::SeqMeanTokenSumNorm => one(u, &[Some(4), Some(7)]),
        _ => Ok(None),
    }
}

pub(super) fn draw_kl_in(u: &mut Unstructured<'_>, options: &Options) -> Result<KlIn> {
    let may = options.beta > 0.0 && !options.kl_weighted;
    if may { one(u, &[KlIn::Loss, KlIn::Loss, KlIn::Reward]) } else { Ok(KlIn::Loss) }
}

pub(super) fn draw_action(u: &mut Unstructured<'_>, options: &Options) -> Result<Action> {
    let may = options.may_be_of_completions();
    if may {
        one(u, &[Action::Token, Action::Token, Action::Completion])
    } else {
        Ok(Action::Token)
    }
}

/// Why these ids cannot be columns of a table, where they cannot.
pub(super) fn check_ids(options: &Options) -> std::result::Result<(), (&'static str, String)> {
    let expected = |id: i64| format!("expected an id from 0 to {LARGEST_ID}, found {id}");
    let wrong = |id: &i64| !(0..=LARGEST_ID).contains(id);
    if let Some(id) = options.eos.iter().copied().find(wrong) {
        return Err(("eos", expected(id)));
    }
    if wrong(&options.pad) { Err(("pad", expected(options.pad))) } else { Ok(()) }
}

/// The ends and the pad.
fn special(options: &Options) -> Vec<i64> {
    [&options.eos[..], &[options.pad]].concat()
}

/// The ids below this one that are neither an end nor a pad.
fn words(options: &Options, vocabulary: usize) -> Vec<i64> {
    step::words(&special(options), vocabulary)
}

/// The smallest vocabulary that has every end, the pad and two words.
fn smallest_vocabulary(options: &Options) -> usize {
    step::smallest_vocabulary(&special(options))
}

pub(super) fn valid(
    case: &GrpoStepCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<GrpoStep>(case)?;
    let (prompts, group, _) = case.tokens.dim();
    let (updates, vocabulary) = (case.logits.shape()[0], case.logits.shape()[4]);
    let generations = usize::from(options.generations);
    if updates != options.plan().updates() {
        return Err(format!("logits of {updates} updates, expected {}", options.plan().updates()));
    }
    if group < 2 {
        return Err("a prompt has one completion, expected 2 or more".to_owned());
    }
    if prompts % generations != 0 {
        return Err(format!("{prompts} prompts do not make {generations} equal generations"));
    }
    let (size, parts) = (prompts / generations * group, options.plan().parts());
    if size % parts != 0 {
        return Err(format!("{size} rows of a generation do not make {parts} micro-batches"));
    }
    if vocabulary < smallest_vocabulary(options) {
        let least = smallest_vocabulary(options);
        return Err(format!("a vocabulary of {vocabulary}, expected {least} or more"));
    }
    if case.ref_logits.is_some() != (options.beta > 0.0) {
        return Err("`ref_logits` are there with `beta` > 0, and only then".to_owned());
    }
    valid_tokens(case, options)?;
    valid_rewards(case, options)?;
    let tables = case.logits.iter().chain(case.ref_logits.iter().flatten());
    if let Some(z) = tables.copied().find(|z| z.is_nan() || z.abs() > LARGEST_LOGIT) {
        return Err(format!("logit {z} is not within ±{LARGEST_LOGIT}"));
    }
    let first = |update: usize| update - update % options.plan().updates_of_a_generation();
    for (update, table) in case.logits.outer_iter().enumerate() {
        let old = case.logits.index_axis(Axis(0), first(update));
        let others = [Some(old), case.ref_logits.as_ref().map(|table| table.view())];
        for other in others.into_iter().flatten() {
            let apart = table.iter().zip(&other).map(|(a, b)| (a - b).abs() / options.temperature);
            if apart.fold(0.0, f64::max) > FURTHEST {
                return Err(format!("two policies are more than {FURTHEST} apart"));
            }
        }
    }
    let expected = oracle::expected(case, options, dtype);
    let known = expected[0].numbers.iter().all(|number| number.value.is_finite());
    if known { Ok(()) } else { Err("the gradient is undefined".to_owned()) }
}

fn valid_tokens(case: &GrpoStepCase, options: &Options) -> std::result::Result<(), String> {
    let vocabulary = case.logits.shape()[4] as i64;
    for ((prompt, own, at), id) in case.tokens.indexed_iter() {
        let name = format!("tokens[{prompt}, {own}, {at}]");
        if !(0..vocabulary).contains(id) {
            return Err(format!("{name} is {id}, expected less than {vocabulary}"));
        }
        let before = case.tokens.slice(ndarray::s![prompt, own, ..at]);
        let ended = before.iter().any(|id| options.eos.contains(id));
        let is_end = options.eos.contains(id);
        if ended && *id != options.pad {
            return Err(format!("{name} is {id} behind the end, expected the pad"));
        }
        if !ended && *id == options.pad && !is_end {
            return Err(format!("{name} is a pad before the end"));
        }
    }
    Ok(())
}

fn valid_rewards(case: &GrpoStepCase, options: &Options) -> std::result::Result<(), String> {
    let (prompts, group, functions) = case.rewards.dim();
    if let Some(weights) = options.weights.as_ref().filter(|w| w.len() != functions) {
        return Err(format!("{functions} reward functions and {} weights", weights.len()));
    }
    for ((prompt, own, function), reward) in case.rewards.indexed_iter() {
        let name = format!("rewards[{prompt}, {own}, {function}]");
        let missing = reward.is_nan() && options.unscored == Unscored::Avoid;
        if missing || reward.abs() > LARGEST_REWARD {
            return Err(format!("{name} is {reward}, not within ±{LARGEST_REWARD}"));
        }
    }
    for prompt in 0..prompts {
        let row = |own: usize| case.rewards.slice(ndarray::s![prompt, own, ..]);
        let tokens = |own: usize| case.tokens.slice(ndarray::s![prompt, own, ..]);
        for own in 0..group {
            if row(own).iter().all(|reward| reward.is_nan()) {
                return Err(format!("no function scores completion {own} of prompt {prompt}"));
            }
            let same = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
            let differ = |other: usize| {
                tokens(other) == tokens(own)
                    && !row(other).iter().zip(row(own)).all(|(a, b)| same(a, b))
            };
            if let Some(other) = (0..own).find(|other| differ(*other)) {
                return Err(format!(
                    "completions {other} and {own} of prompt {prompt} are one text with two rewards"
                ));
            }
        }
    }
    Ok(())
}

/// The sizes of a case.
struct Sizes {
    prompts: usize,
    group: usize,
    width: usize,
    vocabulary: usize,
    functions: usize,
}

impl Sizes {
    /// Those nearest to the wanted ones that the options allow.
    fn fitting(options: &Options, prompts: usize, group: usize, width: usize) -> Sizes {
        let parts = options.plan().parts();
        let fits = |group: &usize| (prompts * group).is_multiple_of(parts);
        let group = [group, parts.max(2)].into_iter().find(fits).unwrap_or(2 * parts);
        Sizes {
            prompts: prompts * usize::from(options.generations),
            group,
            width,
            vocabulary: smallest_vocabulary(options),
            functions: options.weights.as_ref().map_or(1, Vec::len),
        }
    }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<GrpoStepCase> {
    let (prompts, group) = (one(u, &[1, 2, 2, 3])?, one(u, &[2, 3, 4, 2])?);
    let mut sizes = Sizes::fitting(options, prompts, group, one(u, &[3, 2, 4, 1, 5])?);
    sizes.vocabulary += u.choose_index(3)?;
    if options.weights.is_none() {
        sizes.functions = one(u, &[1, 1, 2])?;
    }
    let style = Style {
        alike: chance(u, 48)?,
        finished: one(u, &[200, 120, 0, 255])?,
        constant: one(u, &[0, 0, 60, 255])?,
        rewards: u.choose_index(4)?,
        spread: one(u, &[1.0, 2.0, 0.0, 4.0])?,
        moved: one(u, &[0.1, 0.4, 0.0, 1.0])?,
        aimed: one(u, &[128, 0, 255])?,
    };
    let pick = Pick::seeded(u64::from_le_bytes(u.arbitrary()?));
    let mut case = Maker { options, sizes, pick }.case(&style, u)?;
    round(&mut case, dtype);
    // Rounding can leave two policies a little too far apart: then the policy stays.
    if valid(&case, options, dtype).is_err() {
        for update in 1..options.plan().updates() {
            let first = case.logits.index_axis(Axis(0), 0).to_owned();
            case.logits.index_axis_mut(Axis(0), update).assign(&first);
        }
        if let Some(table) = &mut case.ref_logits {
            table.assign(&case.logits.index_axis(Axis(0), 0));
        }
    }
    if valid(&case, options, dtype).is_err() {
        return Ok(corners(options, dtype).swap_remove(0));
    }
    Ok(case)
}

/// What the completions, the rewards and the policies of a case have in common.
struct Style {
    /// Whether completions begin alike.
    alike: bool,
    /// How likely a token is to end its completion, of 256.
    finished: u8,
    /// How likely a group is to have equal rewards, of 256.
    constant: u8,
    /// Which rewards there are.
    rewards: usize,
    /// How far logits are from 0.
    spread: f64,
    /// How far a policy moves at an update.
    moved: f64,
    /// How likely a token's ratio is to be one at which the loss bends, of 256.
    aimed: u8,
}

struct Maker<'a> {
    options: &'a Options,
    sizes: Sizes,
    pick: Pick,
}

impl Maker<'_> {
    fn case(mut self, style: &Style, u: &mut Unstructured<'_>) -> Result<GrpoStepCase> {
        let tokens = self.tokens(style, u)?;
        let rewards = self.rewards(style, &tokens, u)?;
        let options = self.options;
        let mut tables: Vec<ArrayD<f64>> = Vec::new();
        for update in 0..options.plan().updates() {
            let first = update - update % options.plan().updates_of_a_generation();
            let table = match tables.get(first) {
                None => self.table(style.spread),
                Some(old) => {
                    let old = old.clone();
                    self.away(&old, &tokens, style)
                }
            };
            tables.push(table);
        }
        // Every policy is near the first: a reference is one of all generations.
        let base = tables[0].clone();
        for table in tables.iter_mut().skip(1) {
            let apart = (&*table - &base).mapv(|d| d.clamp(-1.0, 1.0) * options.temperature);
            if options.generations > 1 {
                *table = &base + &apart;
            }
        }
        let ref_logits =
            (options.beta > 0.0).then(|| self.away(&base, &tokens, &Style { aimed: 0, ..*style }));
        let views: Vec<_> = tables.iter().map(|table| table.view()).collect();
        let logits = ndarray::stack(Axis(0), &views).expect("tables of one shape");
        Ok(GrpoStepCase { tokens, rewards, logits, ref_logits, micro_batches: None })
    }

    fn tokens(&mut self, style: &Style, u: &mut Unstructured<'_>) -> Result<Array3<i64>> {
        let Sizes { prompts, group, width, vocabulary, .. } = self.sizes;
        let words = words(self.options, vocabulary);
        let mut tokens = Array3::from_elem((prompts, group, width), self.options.pad);
        for mut completion in tokens.rows_mut() {
            for (at, id) in completion.iter_mut().enumerate() {
                if chance(u, style.finished / if at == 0 { 4 } else { 2 })? {
                    *id = *self.pick.one(&self.options.eos);
                    break;
                }
                *id = if style.alike { words[at % words.len()] } else { *self.pick.one(&words) };
            }
        }
        Ok(tokens)
    }

    fn rewards(
        &mut self,
        style: &Style,
        tokens: &Array3<i64>,
        u: &mut Unstructured<'_>,
    ) -> Result<Array3<f64>> {
        let Sizes { prompts, group, functions, .. } = self.sizes;
        let mut rewards = Array3::zeros((prompts, group, functions));
        for prompt in 0..prompts {
            let constant = chance(u, style.constant)?;
            for own in 0..group {
                let same = |other: &usize| {
                    let of = |own: usize| tokens.slice(ndarray::s![prompt, own, ..]);
                    of(*other) == of(own)
                };
                let first = (0..own).find(|other| same(other) || constant);
                for function in 0..functions {
                    rewards[[prompt, own, function]] = match first {
                        Some(first) => rewards[[prompt, first, function]],
                        None => reward(u, style.rewards, self.options, function)?,
                    };
                }
            }
        }
        Ok(rewards)
    }

    /// A table of logits.
    fn table(&mut self, spread: f64) -> ArrayD<f64> {
        let Sizes { prompts, group, width, vocabulary, .. } = self.sizes;
        let shape = IxDyn(&[prompts, group, width, vocabulary]);
        ArrayD::from_shape_simple_fn(shape, || {
            let step = self.pick.below(17) as f64 - 8.0;
            spread * step / 8.0
        })
    }

    /// A table not far from another one: each logit a little moved, or that of the token so that
    /// its ratio is near one at which the loss bends.
    fn away(&mut self, old: &ArrayD<f64>, tokens: &Array3<i64>, style: &Style) -> ArrayD<f64> {
        let (options, mut table) = (self.options, old.clone());
        table.mapv_inplace(|z| {
            let step = self.pick.below(33) as f64 - 16.0;
            z + style.moved * options.temperature * step / 16.0
        });
        for ((prompt, own, at), id) in tokens.indexed_iter() {
            if self.pick.below(255) >= usize::from(style.aimed) {
                continue;
            }
            let bound = *self.pick.one(&[
                1.0 + options.clip_high,
                1.0 - options.clip_low,
                options.dual_clip.unwrap_or(3.0),
                1.0,
            ]);
            let ratio = bound * *self.pick.one(&[1.1, 0.9, 1.02, 0.98, 1.3]);
            let place = |id: usize| IxDyn(&[prompt, own, at, id]);
            let z = |id: usize| old[place(id)] / options.temperature;
            let ids = 0..self.sizes.vocabulary;
            let sum: f64 = ids.clone().map(|other| z(other).exp()).sum();
            let p = z(*id as usize).exp() / sum;
            if ratio <= 0.0 || ratio * p >= 0.98 {
                continue;
            }
            // p' = ratio·p, where one logit moves and the others stay.
            for other in ids {
                table[place(other)] = old[place(other)];
            }
            let moved = (ratio * (1.0 - p) / (1.0 - ratio * p)).ln() * options.temperature;
            table[place(*id as usize)] += moved;
        }
        table
    }
}

fn reward(
    u: &mut Unstructured<'_>,
    kind: usize,
    options: &Options,
    function: usize,
) -> Result<f64> {
    // The first function scores every completion.
    if options.unscored == Unscored::Skip && function > 0 && chance(u, 80)? {
        return Ok(f64::NAN);
    }
    match kind {
        0 => one(u, &[1.0, 0.0, -1.0, 0.5]),
        1 => one(u, &[1.0, 0.0]),
        2 => uniform(u, -2.0, 2.0),
        _ => one(u, &[0.1, 0.7, 3.0, -0.3, 10.0, 1e-3]),
    }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<GrpoStepCase> {
    let mut cases = Vec::new();
    for (prompts, group, width, ends, moved) in [
        (1, 2, 1, true, 0.0),
        (1, 2, 1, false, 0.0),
        (1, 2, 2, true, 0.0),
        (1, 2, 2, false, 0.3),
        (1, 3, 3, true, 0.5),
        (2, 2, 2, true, 0.0),
        (2, 2, 3, true, 0.5),
        (2, 2, 3, false, -0.5),
        (2, 4, 4, true, 0.3),
        (3, 2, 4, true, -0.3),
    ] {
        let sizes = Sizes::fitting(options, prompts, group, width);
        let mut case = corner(options, &sizes, ends, moved);
        round(&mut case, dtype);
        if valid(&case, options, dtype).is_ok() && !cases.contains(&case) {
            cases.push(case);
        }
    }
    cases
}

/// A case by rule: completions of different lengths and words, rewards 1 and 0 in turn, and a
/// policy that likes the sampled tokens more from update to update.
fn corner(options: &Options, sizes: &Sizes, ends: bool, moved: f64) -> GrpoStepCase {
    let Sizes { prompts, group, width, vocabulary, functions } = *sizes;
    let words = words(options, vocabulary);
    let mut tokens = Array3::from_elem((prompts, group, width), options.pad);
    for ((prompt, own, at), id) in tokens.indexed_iter_mut() {
        let length = width - own % width;
        let is_last = ends && at + 1 == length;
        if is_last {
            *id = options.eos[own % options.eos.len()];
        } else if at < length || !ends {
            *id = words[(own + prompt + at * (own / 2)) % words.len()];
        }
    }
    let mut rewards = Array3::from_shape_fn((prompts, group, functions), |(_, own, function)| {
        (own % 2 + own / 2 * function) as f64 / (1 + function) as f64
    });
    for prompt in 0..prompts {
        for own in 0..group {
            let of = |own: usize| tokens.slice(ndarray::s![prompt, own, ..]);
            if let Some(first) = (0..own).find(|other| of(*other) == of(own)) {
                for function in 0..functions {
                    rewards[[prompt, own, function]] = rewards[[prompt, first, function]];
                }
            }
        }
    }
    let shape = IxDyn(&[options.plan().updates(), prompts, group, width, vocabulary]);
    let pass = options.plan().updates_of_a_generation();
    let logits = ArrayD::from_shape_fn(shape, |at| {
        let sampled = tokens[[at[1], at[2], at[3]]] as usize == at[4];
        let base = (at[4] % 3) as f64 * 0.5;
        base + if sampled { moved * (at[0] % pass) as f64 } else { 0.0 }
    });
    let ref_logits = (options.beta > 0.0).then(|| {
        let first = logits.index_axis(Axis(0), 0).to_owned();
        first.mapv(|z| z + if z > 0.4 { moved } else { 0.0 })
    });
    GrpoStepCase { tokens, rewards, logits, ref_logits, micro_batches: None }
}

/// Fewer prompts, as many of each generation as of any other; then what the axes give.
pub(super) fn simpler(case: &GrpoStepCase, options: &Options) -> Vec<GrpoStepCase> {
    let generations = usize::from(options.generations);
    let each = case.tokens.dim().0 / generations;
    let mut simpler = Vec::new();
    for left_out in 0..each {
        let kept: Vec<usize> =
            (0..each * generations).filter(|prompt| prompt % each != left_out).collect();
        if !kept.is_empty() {
            simpler.push(rows::select::<GrpoStep, _>(case, 'P', &kept));
        }
    }
    // A group can be cut in half only as a whole where micro-batches have to come out even.
    let group = case.tokens.dim().1;
    for size in [2, group / 2, group - 1] {
        if size < group {
            simpler.push(rows::select::<GrpoStep, _>(case, 'G', &(0..size).collect::<Vec<_>>()));
            simpler.push(rows::select::<GrpoStep, _>(
                case,
                'G',
                &(group - size..group).collect::<Vec<_>>(),
            ));
        }
    }
    // Prompts of a generation made one.
    if each > 1 {
        let (prompts, group, _) = case.tokens.dim();
        simpler.push(regrouped(case, [generations, prompts * group / generations]));
    }
    // Simpler tokens: a smaller word in place of a larger one, two completions exchanged.
    let vocabulary = case.logits.shape()[case.logits.ndim() - 1];
    let words = words(options, vocabulary);
    for (from, to) in words.iter().skip(1).flat_map(|from| words.iter().map(move |to| (from, to))) {
        if to < from && case.tokens.iter().any(|id| id == from) {
            let tokens = case.tokens.mapv(|id| if id == *from { *to } else { id });
            simpler.push(GrpoStepCase { tokens, ..case.clone() });
        }
    }
    for own in 1..group {
        let mut order: Vec<usize> = (0..group).collect();
        order.swap(own - 1, own);
        simpler.push(rows::select::<GrpoStep, _>(case, 'G', &order));
        let tokens = case.tokens.select(Axis(1), &order);
        simpler.push(GrpoStepCase { tokens, ..case.clone() });
    }
    // All policies the first one.
    let mut still = case.clone();
    let first = case.logits.index_axis(Axis(0), 0).to_owned();
    for mut table in still.logits.outer_iter_mut() {
        table.assign(&first);
    }
    simpler.push(still);
    simpler.extend(rows::simpler::<GrpoStep>(case));
    simpler
}

/// The same completions as others of other prompts.
fn regrouped(case: &GrpoStepCase, [prompts, group]: [usize; 2]) -> GrpoStepCase {
    let (_, _, width) = case.tokens.dim();
    let functions = case.rewards.dim().2;
    let table = |table: &ArrayD<f64>, updates: &[usize]| {
        let vocabulary = table.shape()[table.ndim() - 1];
        let shape = [updates, &[prompts, group, width, vocabulary]].concat();
        table.to_shape(IxDyn(&shape)).expect("as many completions").to_owned()
    };
    let tokens = case.tokens.to_shape((prompts, group, width));
    let rewards = case.rewards.to_shape((prompts, group, functions));
    GrpoStepCase {
        tokens: tokens.expect("as many completions").to_owned(),
        rewards: rewards.expect("as many completions").to_owned(),
        logits: table(&case.logits, &[case.logits.shape()[0]]),
        ref_logits: case.ref_logits.as_ref().map(|logits| table(logits, &[])),
        micro_batches: None,
    }
}

/// Small cases from which shrinking may start: completions of a token or two, rewards of small
/// integers, and policies that like some of the sampled tokens more or less.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<GrpoStepCase> {
    let mut cases = Vec::new();
    for (prompts, group, width) in [(1, 2, 1), (1, 3, 1), (2, 2, 1), (1, 2, 2), (1, 4, 1)] {
        let sizes = Sizes::fitting(options, prompts, group, width);
        let Sizes { prompts, group, width, vocabulary, functions } = sizes;
        let words = words(options, vocabulary);
        let mut pick = Pick::seeded((8 * prompts + 4 * width + group) as u64);
        for _ in 0..160 {
            let mut tokens = Array3::from_elem((prompts, group, width), options.pad);
            for mut completion in tokens.rows_mut() {
                for id in &mut completion {
                    *id = *pick.one(&[options.eos[0], words[0], words[0], words[1]]);
                    if *id == options.eos[0] {
                        break;
                    }
                }
            }
            let shape = (prompts, group, functions);
            let rewards =
                Array3::from_shape_simple_fn(shape, || *pick.one(&[0.0, 1.0, 0.0, 1.0, 0.1, 3.0]));
            let mut liked = |table: &mut ArrayD<f64>, most: usize| {
                for ((prompt, own, at), id) in tokens.indexed_iter() {
                    if pick.below(4) < most {
                        let place = IxDyn(&[prompt, own, at, *id as usize]);
                        table[place] = *pick.one(&[1.0, -1.0, 2.0, 3.0, -2.0]);
                    }
                }
            };
            let table = ArrayD::zeros(IxDyn(&[prompts, group, width, vocabulary]));
            let tables: Vec<ArrayD<f64>> = (0..options.plan().updates())
                .map(|update| {
                    let mut table = table.clone();
                    let is_moved = update % options.plan().updates_of_a_generation() > 0;
                    liked(&mut table, usize::from(is_moved));
                    table
                })
                .collect();
            let mut reference = table;
            liked(&mut reference, 1);
            let views: Vec<_> = tables.iter().map(|table| table.view()).collect();
            let mut case = GrpoStepCase {
                logits: ndarray::stack(Axis(0), &views).expect("tables of one shape"),
                ref_logits: (options.beta > 0.0).then_some(reference),
                micro_batches: None,
                tokens,
                rewards,
            };
            round(&mut case, dtype);
            if valid(&case, options, dtype).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn measure(case: &GrpoStepCase) -> Measure {
    rows::measure::<GrpoStep>(case)
}

/// Whether some completions fulfil a condition: prompt and place in the group.
fn any(case: &GrpoStepCase, is: impl Fn(usize, usize) -> bool) -> bool {
    let (prompts, group, _) = case.tokens.dim();
    (0..prompts).any(|prompt| (0..group).any(|own| is(prompt, own)))
}

fn is_finished(case: &GrpoStepCase, options: &Options, prompt: usize, own: usize) -> bool {
    let completion = case.tokens.slice(ndarray::s![prompt, own, ..]);
    completion.iter().any(|id| options.eos.contains(id))
}

/// Whether a completion has a trained token.
fn is_trained(case: &GrpoStepCase, options: &Options, prompt: usize, own: usize) -> bool {
    options.unfinished != Unfinished::Drop || is_finished(case, options, prompt, own)
}

pub(super) fn is_constant(case: &GrpoStepCase, prompt: usize) -> bool {
    let rewards = case.rewards.index_axis(Axis(0), prompt);
    rewards.outer_iter().all(|row| row == rewards.index_axis(Axis(0), 0))
}

pub(super) fn classes() -> Vec<Class<GrpoStep>> {
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "truncated-completion",
            "a completion without an end",
            |case, options| any(case, |prompt, own| !is_finished(case, options, prompt, own)),
            |_, _| true,
        ),
        class(
            "ended-completion",
            "a completion that ends before the others",
            |case, options| {
                let width = case.tokens.dim().2;
                any(case, |prompt, own| {
                    let completion = case.tokens.slice(ndarray::s![prompt, own, ..]);
                    let end = completion.iter().position(|id| options.eos.contains(id));
                    end.is_some_and(|end| end + 1 < width)
                })
            },
            |_, _| true,
        ),
        class(
            "shared-prefix",
            "two completions of a prompt begin with the same token",
            |case, options| {
                let shape = GrpoStep::shape(case, options);
                let shares = |row: usize| shape.home(row, 1) != [row, 1];
                shape.width() > 1 && (0..shape.all_rows()).any(shares)
            },
            |_, _| true,
        ),
        class(
            "constant-rewards",
            "a group whose completions have equal rewards",
            |case, _| (0..case.rewards.dim().0).any(|prompt| is_constant(case, prompt)),
            |_, _| true,
        ),
        class(
            "telling-rewards",
            "a group whose completions have different rewards",
            |case, _| (0..case.rewards.dim().0).any(|prompt| !is_constant(case, prompt)),
            |_, _| true,
        ),
        class(
            "several-prompts",
            "a generation of several prompts",
            |case, options| case.tokens.dim().0 > usize::from(options.generations),
            |_, _| true,
        ),
        class(
            "moved-policy",
            "a policy that is not the one that sampled",
            |case, options| {
                case.logits.outer_iter().enumerate().any(|(update, table)| {
                    let first = update - update % options.plan().updates_of_a_generation();
                    table != case.logits.index_axis(Axis(0), first)
                })
            },
            |options, _| options.plan().updates_of_a_generation() > 1,
        ),
        class(
            "unscored",
            "a reward that is NaN",
            |case, _| case.rewards.iter().any(|reward| reward.is_nan()),
            |options, _| {
                let functions = options.weights.as_ref().map_or(2, Vec::len);
                options.unscored == Unscored::Skip && functions > 1
            },
        ),
        class(
            "nothing-trained",
            "a completion without a trained token",
            |case, options| any(case, |prompt, own| !is_trained(case, options, prompt, own)),
            |options, _| options.unfinished == Unfinished::Drop,
        ),
    ]
}
