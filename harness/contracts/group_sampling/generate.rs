//! Cases of `group-sampling`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, arr0};

use super::{GroupSampling, GroupSamplingCase, Options};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::one;
use shakedown_core::generate::pick::Pick;
use shakedown_core::value::place::Dtype;

/// The largest seed: generators of some languages take 32 bits.
const LARGEST_SEED: i64 = i32::MAX as i64;

/// Batches of more prompts than this are not filled on purpose.
const FILLED: i64 = 64;

/// So many prompts that two permutations are hardly ever the same.
pub(super) const MANY: usize = 8;

pub(super) fn valid(case: &GroupSamplingCase, dtype: Dtype) -> std::result::Result<(), String> {
    rows::check_axes::<GroupSampling>(case)?;
    for (at, id) in case.prompts.iter().enumerate() {
        if *id < 0 || !is_held(*id, dtype) {
            return Err(format!("prompts[{at}] is {id}, expected an id that {dtype:?} holds"));
        }
    }
    let mut ids = case.prompts.to_vec();
    ids.sort_unstable();
    if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(format!("prompts has {} twice, expected distinct ids", twice[0]));
    }
    let seed = case.seed[()];
    if !(0..=LARGEST_SEED).contains(&seed) {
        return Err(format!("seed is {seed}, expected 0 to {LARGEST_SEED}"));
    }
    Ok(())
}

/// Whether an output of this format can say the id.
fn is_held(id: i64, dtype: Dtype) -> bool {
    dtype.round(id as f64) == id as f64
}

/// A case of these ids, the doubtful ones replaced by small ones that are free.
fn of_ids(ids: Vec<i64>, seed: i64, dtype: Dtype) -> GroupSamplingCase {
    let mut prompts: Vec<i64> = Vec::with_capacity(ids.len());
    for id in &ids {
        let fine = |id: i64| id >= 0 && is_held(id, dtype);
        let known = |id: &i64| prompts.contains(id);
        let taken = *id < 0 || !fine(*id) || known(id);
        let free = || (0..).find(|id| !known(id) && !ids.contains(id)).expect("there are many");
        let id = if taken { free() } else { *id };
        prompts.push(id);
    }
    GroupSamplingCase { prompts: Array1::from(prompts), seed: arr0(seed) }
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<GroupSamplingCase> {
    let count = draw_count(u, options)?;
    let base = one(u, &[0, 1, 10, 100, 1000, 50_000])?;
    let style = u.choose_index(8)?;
    let mut pick = Pick::seeded(u.arbitrary()?);
    let at = |index: usize| index as i64;
    let ids: Vec<i64> = match style {
        // Indices themselves, in another order.
        0 => pick.shuffled(count).into_iter().map(at).collect(),
        1 => (0..count).map(|index| base + at(index)).collect(),
        2 => (0..count).rev().map(|index| base + at(index)).collect(),
        // Two kinds of prompt that alternate.
        3 => (0..count).map(|index| at(index) + 7 * at(index % 2)).collect(),
        4 => pick.shuffled(count).into_iter().map(|index| base + 3 * at(index)).collect(),
        5 => {
            let large = one(u, &[1 << 10, 1 << 15, 1 << 20])?;
            (0..count).map(|_| at(pick.below(large))).collect()
        }
        _ => (0..count).map(|_| at(pick.below(4 * count + 8))).collect(),
    };
    let seed = match u.choose_index(4)? {
        0 => one(u, &[0, 1, 42, 7, LARGEST_SEED])?,
        _ => i64::from(u.arbitrary::<u32>()? >> 1),
    };
    Ok(of_ids(ids, seed, dtype))
}

/// How many prompts: a few, or about a whole number of batches.
fn draw_count(u: &mut Unstructured<'_>, options: &Options) -> Result<usize> {
    let few = one(u, &[2_i64, 3, 1, 4, 5, 6, 8, 9, 12])?;
    let full = options.prompts_per_batch.filter(|full| *full <= FILLED);
    let count = match (full, u.choose_index(3)?) {
        (Some(full), 0 | 1) => {
            let about = [full, 2 * full, 2 * full + 1, full - 1, full + 1, 3 * full, 3 * full - 1];
            one(u, &about)?
        }
        _ => few,
    };
    Ok(count.max(1) as usize)
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<GroupSamplingCase> {
    let mut counts: Vec<i64> = vec![1, 2, 3, 4, 5, 8, 9];
    if let Some(full) = options.prompts_per_batch.filter(|full| *full <= FILLED) {
        counts.extend([full - 1, full, full + 1, 2 * full, 2 * full + 1, 3 * full - 1]);
    }
    counts.retain(|count| *count > 0);
    counts.sort_unstable();
    counts.dedup();
    let mut cases: Vec<GroupSamplingCase> = Vec::new();
    for count in counts {
        let falling: Vec<i64> = (0..count).rev().collect();
        let alternating: Vec<i64> = (0..count).map(|at| 2 * at + (at % 2)).collect();
        let turned: Vec<i64> = (0..count).map(|at| (at + 1) % count).collect();
        let styles = [
            (0..count).collect(),
            falling,
            (10..10 + count).collect(),
            alternating,
            turned,
            (0..count).map(|at| 1000 - 3 * at).collect::<Vec<i64>>(),
        ];
        for (seed, ids) in styles.into_iter().enumerate() {
            let case = of_ids(ids, [0, 0, 1, 0, 7, 42][seed], dtype);
            if !cases.contains(&case) {
                cases.push(case);
            }
        }
    }
    cases.retain(|case| valid(case, dtype).is_ok());
    cases.sort_by_cached_key(GroupSampling::measure);
    cases
}

/// The smallest id that bf16 does not hold.
const AWKWARD_ID: i64 = 257;

/// The least id that int16 does not hold.
const WIDE_ID: i64 = 1 << 15;

/// Up to five prompts, in their order, the other way round, and turned by one.
pub(super) fn small(dtype: Dtype) -> Vec<GroupSamplingCase> {
    let mut cases = vec![of_ids(vec![AWKWARD_ID], 0, dtype)];
    for count in 1..=5_i64 {
        for first in [0, 1] {
            let rising: Vec<i64> = (first..first + count).collect();
            let falling: Vec<i64> = rising.iter().rev().copied().collect();
            let mut turned = rising.clone();
            turned.rotate_left(1);
            cases.extend([rising, falling, turned].map(|ids| of_ids(ids, 0, dtype)));
        }
    }
    cases
}

/// Fewer prompts, smaller ids, and ids that are small with the order that they have.
pub(super) fn simpler(case: &GroupSamplingCase) -> Vec<GroupSamplingCase> {
    let mut candidates = rows::simpler::<GroupSampling>(case);
    let mut sorted = case.prompts.to_vec();
    sorted.sort_unstable();
    let rank = |id: &i64| sorted.partition_point(|other| other < id) as i64;
    for prompts in [case.prompts.map(rank), Array1::from_iter(0..case.prompts.len() as i64)] {
        candidates.push(GroupSamplingCase { prompts, ..case.clone() });
    }
    for (place, id) in case.prompts.iter().enumerate() {
        for awkward in [AWKWARD_ID, WIDE_ID].into_iter().filter(|awkward| id > awkward) {
            let mut simpler = case.clone();
            simpler.prompts[place] = awkward;
            candidates.push(simpler);
        }
    }
    candidates
}

/// What a person looks at first.
pub(super) fn samples() -> Vec<GroupSamplingCase> {
    let ids: [&[i64]; 4] = [&[7], &[7, 8], &[30, 10, 20], &[11, 12, 13, 14, 15]];
    let case = |ids: &&[i64]| of_ids(ids.to_vec(), 0, Dtype::F32);
    ids.iter().map(case).collect()
}

pub(super) fn classes() -> Vec<Class<GroupSampling>> {
    type Contains = fn(&GroupSamplingCase, &Options) -> bool;
    type Generated = fn(&Options, Dtype) -> bool;
    fn count(case: &GroupSamplingCase) -> i64 {
        case.prompts.len() as i64
    }
    fn pairs(case: &GroupSamplingCase, are: impl Fn(i64, i64) -> bool) -> bool {
        case.prompts.len() > 1 && case.prompts.windows(2).into_iter().all(|two| are(two[0], two[1]))
    }
    let class = |id, meaning, contains: Contains, generated: Generated| Class {
        id,
        meaning,
        contains,
        generated,
    };
    let always: Generated = |_, _| true;
    let several: Generated =
        |options, _| options.prompts_per_batch.is_some_and(|full| (2..=FILLED).contains(&full));
    let batched: Generated = |options, _| options.prompts_per_batch.is_some_and(|b| b <= FILLED);
    vec![
        class("one-prompt", "B = 1", |case, _| count(case) == 1, always),
        class("several-prompts", "B ≥ 2", |case, _| count(case) > 1, always),
        class(
            "many-prompts",
            "B ≥ 8, so that two permutations are hardly the same",
            |case, _| case.prompts.len() >= MANY,
            always,
        ),
        class(
            "less-than-a-batch",
            "fewer prompts than a generation batch has",
            |case, options| options.prompts_per_batch.is_some_and(|full| count(case) < full),
            several,
        ),
        class(
            "one-full-batch",
            "as many prompts as a generation batch has",
            |case, options| options.prompts_per_batch == Some(count(case)),
            batched,
        ),
        class(
            "several-full-batches",
            "two generation batches or more, all of them full",
            |case, options| {
                options
                    .prompts_per_batch
                    .is_some_and(|full| count(case) > full && count(case) % full == 0)
            },
            batched,
        ),
        class(
            "a-batch-and-a-rest",
            "more prompts than fill whole batches",
            |case, options| {
                options
                    .prompts_per_batch
                    .is_some_and(|full| count(case) > full && count(case) % full > 0)
            },
            several,
        ),
        class(
            "indices",
            "ids 0, 1, 2, … in this order, which indices cannot be told from",
            |case, _| case.prompts.iter().enumerate().all(|(at, id)| *id == at as i64),
            always,
        ),
        class(
            "other-indices",
            "ids that are indices of other prompts",
            |case, _| {
                let is_index = |id: &i64| *id < count(case);
                case.prompts.iter().all(is_index) && case.prompts[0] != 0
            },
            always,
        ),
        class("falling", "ids in falling order", |case, _| pairs(case, |a, b| a > b), always),
        class("rising", "ids in rising order", |case, _| pairs(case, |a, b| a < b), always),
        class(
            "alternating",
            "three prompts or more, odd ids and even ones in turn",
            |case, _| count(case) > 2 && pairs(case, |a, b| a % 2 != b % 2),
            always,
        ),
        class(
            "large-id",
            "an id that bf16 does not hold",
            |case, _| case.prompts.iter().any(|id| !is_held(*id, Dtype::Bf16)),
            |_, dtype| dtype != Dtype::Bf16,
        ),
    ]
}
