//! Cases of `group-advantage`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::{
    Baseline, GroupAdvantage, GroupAdvantageCase, Layout, Options, Scale, Singleton, Unscored,
    members, oracle,
};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::Rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, uniform};
use shakedown_core::generate::measure::{Measure, complexity, is_far_off, simpler_numbers};
use shakedown_core::value::place::Dtype;

pub(super) fn valid(
    case: &GroupAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let count = case.rewards.len();
    if count == 0 || case.groups.len() != count {
        let groups = case.groups.len();
        return Err(format!("{count} rewards and {groups} groups, expected N ≥ 1 of each"));
    }
    let [lo, hi] = options.reward_range.map(|end| dtype.round(end));
    for reward in &case.rewards {
        let unscored = reward.is_nan() && options.unscored == Unscored::Exclude;
        if !unscored && !(lo..=hi).contains(reward) {
            return Err(format!("reward {reward} is outside [{lo}, {hi}]"));
        }
    }
    fits(case, options)?;
    if unbounded(options) {
        // A deviation near 0 leaves a quotient that no dtype holds, where the divided difference is
        // not of the deviation's own size.
        let expected = oracle::advantages(case, options);
        let held = |value: f64| value.abs() <= dtype.max() / 2.0;
        if !expected[0].numbers.iter().all(|number| held(number.value)) {
            return Err("a deviation near 0 under a larger difference".to_owned());
        }
    }
    Ok(())
}

/// Whether a small deviation may leave an advantage that is larger than any dtype holds.
pub(crate) fn unbounded(options: &Options) -> bool {
    options.baseline == Baseline::None
        || options.scale == Scale::LooStd
        || (options.scale == Scale::BatchStd && options.singleton == Singleton::Reward)
}

/// Whether the groups are as `layout` and `singleton` say.
pub(crate) fn fits(
    case: &GroupAdvantageCase,
    options: &Options,
) -> std::result::Result<(), String> {
    let groups = members(case);
    if options.layout == Layout::Contiguous {
        let size = groups[0].len();
        let adjacent = |rows: &Vec<usize>| rows.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !groups.iter().all(|rows| rows.len() == size && adjacent(rows)) {
            return Err("groups are not equal-sized and adjacent".to_owned());
        }
    }
    let scored = |rows: &[usize]| rows.iter().filter(|row| !case.rewards[**row].is_nan()).count();
    let everyone: Vec<usize> = (0..case.rewards.len()).collect();
    let lonely_batch = options.scale == Scale::BatchStd && scored(&everyone) == 1;
    let lonely = lonely_batch || groups.iter().any(|rows| scored(rows) == 1);
    if options.singleton == Singleton::Avoid && options.baseline != Baseline::None && lonely {
        return Err("a group of one completion".to_owned());
    }
    Ok(())
}

/// Makes any case valid with as little change as possible; `None` where that is not possible.
fn repaired(
    mut case: GroupAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> Option<GroupAdvantageCase> {
    let [lo, hi] = options.reward_range;
    case.rewards.mapv_inplace(|r| if r.is_nan() { r } else { r.clamp(lo, hi) });
    shakedown_core::value::record::round(&mut case, dtype);
    valid(&case, options, dtype).is_ok().then_some(case)
}

pub(crate) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<GroupAdvantageCase> {
    let count = one(u, &[1, 2, 1, 2, 3, 4])?;
    let least = if options.singleton == Singleton::Avoid { 2 } else { 1 };
    let mut sizes = Vec::new();
    for group in 0..count {
        let size = one(u, &[2, 3, 4, 2, 1, 5, 8, 7, 6, 16])?.max(least);
        let even = options.layout == Layout::Contiguous && group > 0;
        sizes.push(if even { sizes[0] } else { size });
    }
    let mut rewards = Vec::new();
    let mut groups = Vec::new();
    let first_id: i64 = if chance(u, 40)? { one(u, &[-1, 7, 1 << 40, i64::MAX - 9])? } else { 0 };
    let backwards = chance(u, 40)?;
    for (group, size) in sizes.iter().enumerate() {
        let drawn = draw_group(u, *size, options.reward_range)?;
        let id = if backwards { count - 1 - group } else { group } as i64;
        groups.extend(drawn.iter().map(|_| first_id + id));
        rewards.extend(drawn);
    }
    if options.unscored == Unscored::Exclude && chance(u, 128)? {
        for reward in &mut rewards {
            if chance(u, 64)? {
                *reward = f64::NAN;
            }
        }
    }
    if options.layout == Layout::Any && chance(u, 100)? {
        for row in (1..rewards.len()).rev() {
            let other = u.choose_index(row + 1)?;
            rewards.swap(row, other);
            groups.swap(row, other);
        }
    }
    let case = GroupAdvantageCase { rewards: rewards.into(), groups: groups.into() };
    let [lo, hi] = options.reward_range;
    let fallback =
        GroupAdvantageCase { rewards: vec![(lo + hi) / 2.0, hi].into(), groups: vec![0, 0].into() };
    Ok(repaired(case, options, dtype)
        .or_else(|| repaired(fallback, options, dtype))
        .expect("two different rewards of one group are always valid"))
}

/// The rewards of one group, in one of the shapes on which real bugs showed.
fn draw_group(u: &mut Unstructured<'_>, size: usize, range: [f64; 2]) -> Result<Vec<f64>> {
    let [lo, hi] = range;
    let width = hi - lo;
    let pattern = u.choose_index(10)?;
    let base = if chance(u, 128)? { one(u, &AWKWARD)? } else { uniform(u, lo, hi)? };
    let odd_one = u.choose_index(size)?;
    let mut rewards = Vec::with_capacity(size);
    for place in 0..size {
        rewards.push(match pattern {
            0 => base,
            1 => f64::from(u8::from(u.arbitrary::<bool>()?)),
            2 => base + if place == odd_one { one(u, &[1.0, -1.0, width, -width])? } else { 0.0 },
            3 => one(u, &[0.0, 0.5, 2.0, 1.0])?,
            4 => base.clamp(lo + 4e-3, hi - 4e-3) + 1e-3 * normal(u)?,
            5 => one(u, &AWKWARD)?,
            6 => f64::from(one(u, &[-3_i8, -2, -1, 0, 1, 2, 3, 4, 5])?),
            7 => base + normal(u)?,
            8 => lo + width * place as f64 / size as f64,
            _ => uniform(u, lo, hi)?,
        });
    }
    Ok(rewards)
}

/// A reward far from 0, towards the end of the range that is farther.
pub(crate) fn far_end(options: &Options) -> f64 {
    let [lo, hi] = options.reward_range;
    0.9 * if hi.abs() >= lo.abs() { hi } else { lo }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<GroupAdvantageCase> {
    let [lo, hi] = options.reward_range;
    let mut batches: Vec<Vec<(Vec<f64>, i64)>> = Vec::new();
    let mut alone = |rewards: Vec<f64>| batches.push(vec![(rewards, 0)]);
    for pair in [[0.0, 1.0], [1.0, 0.0], [0.0, 0.0], [1.0, 1.0], [0.0, 2.0], [-1.0, 1.0]] {
        alone(pair.to_vec());
    }
    alone(vec![0.0]);
    alone(vec![1.0]);
    alone(vec![0.0, 0.0, 1.0]);
    alone(vec![0.0, 1.0, 1.0]);
    alone(vec![1.0, 0.0, 2.0]);
    for constant in [1.0, 0.1, 0.81, 0.95, lo, hi, lo + (hi - lo) / 3.0, lo + (hi - lo) * 0.97] {
        for size in [2, 3, 5, 6, 7, 11, 13, 16] {
            alone(vec![constant; size]);
        }
    }
    for center in [0.0, 0.5, 1.0, lo + (hi - lo) * 0.9] {
        alone(vec![center, center + 1e-3]);
        alone(vec![center, center + 1e-3, center + 3e-3, center + 2e-3]);
    }
    let far = far_end(options);
    alone(vec![far, 1.001 * far, 1.0005 * far]);
    alone(vec![lo, hi]);
    alone(vec![lo, lo, hi]);
    alone(vec![hi, lo, 0.5, hi]);
    alone(vec![0.0, -0.0, 0.0]);
    alone(vec![0.5, 2.0, 0.0, 0.5]);
    alone((0..8).map(f64::from).collect());
    for size in [3, 4, 5, 8, 16] {
        let mut one_hot = vec![0.0; size];
        one_hot[size - 1] = 1.0;
        alone(one_hot);
    }
    if options.unscored == Unscored::Exclude {
        let nan = f64::NAN;
        alone(vec![nan, 0.0, 1.0]);
        alone(vec![nan, 1.0, 1.0, 0.0]);
        alone(vec![nan, nan]);
        alone(vec![1.0, nan]);
        alone(vec![nan, 0.95, 0.95, 0.95]);
        batches.push(vec![(vec![nan, nan], 0), (vec![0.0, 1.0], 1)]);
    }
    let mut pairs = |parts: &[(&[f64], i64)]| {
        batches.push(parts.iter().map(|(rewards, id)| (rewards.to_vec(), *id)).collect());
    };
    pairs(&[(&[0.0, 1.0], 0), (&[0.0, 0.0], 1)]);
    pairs(&[(&[0.0, 0.0], 0), (&[0.0, 1.0], 1)]);
    pairs(&[(&[0.0, 0.0], 0), (&[1.0, 1.0], 1)]);
    pairs(&[(&[0.0, 1.0], 0), (&[0.0, 2.0], 1)]);
    pairs(&[(&[0.0, 1.0], 1), (&[0.0, 2.0], 0)]);
    pairs(&[(&[0.0, 1.0], 7), (&[0.0, 2.0], -3)]);
    pairs(&[(&[1.0], 0), (&[0.0, 2.0], 1)]);
    pairs(&[(&[1.0], 0), (&[2.0], 1)]);
    pairs(&[(&[0.0, 1.0], 0), (&[1.0, 0.0, 1.0], 1)]);
    pairs(&[(&[0.5, 1.0, 0.0], 0), (&[2.0, 0.0, 0.5], 1)]);
    pairs(&[(&[0.0, 1.0], 0), (&[lo, hi], 1)]);
    pairs(&[(&[1.0, 0.0, 0.0, 2.0], 0), (&[0.5, 0.5, 0.5], 1), (&[0.0, 3.0, 1.0, 1.0], 2)]);
    let mut cases: Vec<GroupAdvantageCase> = batches
        .into_iter()
        .map(|batch| {
            let rewards = batch.iter().flat_map(|(rewards, _)| rewards).copied().collect();
            let groups = batch.iter().flat_map(|(rewards, id)| vec![*id; rewards.len()]).collect();
            GroupAdvantageCase { rewards, groups }
        })
        .collect();
    let interleaved = |rewards: &[f64], groups: &[i64]| GroupAdvantageCase {
        rewards: rewards.to_vec().into(),
        groups: groups.to_vec().into(),
    };
    cases.push(interleaved(&[0.0, 0.0, 1.0, 2.0], &[0, 1, 0, 1]));
    cases.push(interleaved(&[0.0, 1.0, 3.0], &[0, 1, 0]));
    cases.push(interleaved(&[1.0, 0.0, 0.5, 2.0, 0.0, 3.0], &[1, 0, 1, 0, 0, 1]));
    cases.into_iter().filter_map(|case| repaired(case, options, dtype)).collect()
}

/// Rows, groups, changes of group between neighbours, distinct rewards, ids, then the numbers.
pub(super) fn measure(case: &GroupAdvantageCase) -> Measure {
    let changes = case.groups.windows(2).into_iter().filter(|pair| pair[0] != pair[1]).count();
    let size = |id: &i64| 2 * u128::from(id.unsigned_abs()) + u128::from(*id < 0);
    let ids: u128 = case.groups.iter().map(size).sum();
    let numbers: u64 = case.rewards.iter().map(|r| complexity(*r)).sum();
    Measure(vec![
        case.rewards.len() as u64,
        members(case).len() as u64,
        changes as u64,
        distinct(case).len() as u64,
        u64::try_from(ids).unwrap_or(u64::MAX),
        numbers,
    ])
}

fn distinct(case: &GroupAdvantageCase) -> Vec<f64> {
    let mut rewards: Vec<f64> = Vec::new();
    for reward in &case.rewards {
        if !rewards.iter().any(|known| known.to_bits() == reward.to_bits()) {
            rewards.push(*reward);
        }
    }
    rewards
}

pub(super) fn simpler(case: &GroupAdvantageCase, options: &Options) -> Vec<GroupAdvantageCase> {
    let groups = members(case);
    let everyone: Vec<usize> = (0..case.rewards.len()).collect();
    let kept = |keep: &dyn Fn(usize) -> bool| -> Vec<usize> {
        everyone.iter().copied().filter(|row| keep(*row)).collect()
    };
    let mut candidates = Vec::new();
    let mut take = |rows: Vec<usize>| {
        if !rows.is_empty() {
            candidates.push(GroupAdvantage::take(case, &rows));
        }
    };
    for rows in &groups {
        take(rows.clone());
        take(kept(&|row| !rows.contains(&row)));
    }
    if options.layout == Layout::Contiguous {
        for place in 0..groups[0].len() {
            take(kept(&|row| groups.iter().all(|rows| rows.get(place) != Some(&row))));
        }
    } else {
        for dropped in &everyone {
            take(kept(&|row| row != *dropped));
        }
    }
    take(groups.concat());
    let numbered = |mut case: GroupAdvantageCase| {
        for (number, rows) in members(&case).iter().enumerate() {
            rows.iter().for_each(|row| case.groups[*row] = number as i64);
        }
        case
    };
    for first in &groups {
        let others = groups.iter().filter(|rows| *rows != first).flatten();
        let rows: Vec<usize> = first.iter().chain(others).copied().collect();
        candidates.push(numbered(GroupAdvantage::take(case, &rows)));
    }
    candidates.push(GroupAdvantageCase { groups: Array1::zeros(everyone.len()), ..case.clone() });
    candidates.push(numbered(case.clone()));
    let with_rewards = |change: &dyn Fn(f64) -> f64| GroupAdvantageCase {
        rewards: case.rewards.mapv(change),
        ..case.clone()
    };
    let values = distinct(case);
    for from in &values {
        for to in &values {
            candidates.push(with_rewards(&|r| if same(r, *from) { *to } else { r }));
        }
    }
    let finite: Vec<f64> = values.iter().copied().filter(|r| !r.is_nan()).collect();
    let least = finite.iter().copied().fold(f64::INFINITY, f64::min);
    let width = finite.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
    candidates.push(with_rewards(&|r| r - least));
    candidates.push(with_rewards(&|r| (r - least) / if width > 0.0 { width } else { 1.0 }));
    for decimals in 0..4 {
        let scale = 10_f64.powi(decimals);
        candidates.push(with_rewards(&|r| (r * scale).round() / scale));
    }
    for from in &values {
        for to in simpler_numbers(*from) {
            candidates.push(with_rewards(&|r| if same(r, *from) { to } else { r }));
        }
    }
    for row in &everyone {
        for to in simpler_numbers(case.rewards[*row]) {
            let mut rewards = case.rewards.clone();
            rewards[*row] = to;
            candidates.push(GroupAdvantageCase { rewards, ..case.clone() });
        }
    }
    candidates
}

fn same(a: f64, b: f64) -> bool {
    a.to_bits() == b.to_bits()
}

/// The scored rewards of each group.
fn scored_groups(case: &GroupAdvantageCase) -> Vec<Vec<f64>> {
    members(case)
        .iter()
        .map(|rows| {
            rows.iter().map(|row| case.rewards[*row]).filter(|reward| !reward.is_nan()).collect()
        })
        .collect()
}

fn spread(rewards: &[f64]) -> f64 {
    let least = rewards.iter().copied().fold(f64::INFINITY, f64::min);
    rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
}

fn any_group(case: &GroupAdvantageCase, is: impl Fn(&[f64]) -> bool) -> bool {
    scored_groups(case).iter().any(|rewards| is(rewards))
}

pub(super) fn classes() -> Vec<Class<GroupAdvantage>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let ragged: fn(&Options, Dtype) -> bool = |options, _| options.layout == Layout::Any;
    let lonely: fn(&Options, Dtype) -> bool = |options, _| {
        let undefined = options.baseline == Baseline::None
            && matches!(options.scale, Scale::Std | Scale::BatchStd)
            && (options.ddof == 1 || options.epsilon == 0.0);
        options.singleton != Singleton::Avoid && !undefined
    };
    let flat: fn(&Options, Dtype) -> bool = |options, _| {
        options.baseline != Baseline::None
            || options.epsilon > 0.0
            || !matches!(options.scale, Scale::Std | Scale::BatchStd)
    };
    let unscored: fn(&Options, Dtype) -> bool = |options, _| options.unscored == Unscored::Exclude;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class("two-completions", "a group of two", |c, _| any_group(c, |g| g.len() == 2), always),
        class("singleton", "a group of one", |c, _| any_group(c, |g| g.len() == 1), lonely),
        class(
            "constant-group",
            "a group of two or more equal rewards",
            |c, _| any_group(c, |g| g.len() > 1 && spread(g) == 0.0),
            flat,
        ),
        class(
            "awkward-constant",
            "a constant group of three or more whose reward binary cannot represent",
            |c, _| {
                any_group(c, |g| g.len() > 2 && spread(g) == 0.0 && (g[0] * 1024.0).fract() != 0.0)
            },
            |options, dtype| {
                let flat = options.baseline != Baseline::None
                    || options.epsilon > 0.0
                    || !matches!(options.scale, Scale::Std | Scale::BatchStd);
                flat && matches!(dtype, Dtype::F64 | Dtype::F32)
            },
        ),
        class(
            "one-vs-rest",
            "three or more rewards of which all but one are equal",
            |c, _| {
                any_group(c, |g| {
                    let others = |x: f64| g.iter().filter(|r| **r == x).count();
                    g.len() > 2 && spread(g) > 0.0 && g.iter().any(|r| others(*r) == g.len() - 1)
                })
            },
            always,
        ),
        class(
            "uneven-groups",
            "groups of different size",
            |c, _| members(c).windows(2).any(|pair| pair[0].len() != pair[1].len()),
            ragged,
        ),
        class("one-group", "a single group", |c, _| members(c).len() == 1, always),
        class("several-groups", "two groups or more", |c, _| members(c).len() > 1, always),
        class(
            "interleaved",
            "rows of a group that are not adjacent",
            |c, _| members(c).iter().any(|g| g.windows(2).any(|p| p[1] != p[0] + 1)),
            ragged,
        ),
        class(
            "odd-ids",
            "group numbers that are not 0, 1, 2, … in order of appearance",
            |c, _| {
                let groups = members(c);
                groups.iter().enumerate().any(|(i, rows)| c.groups[rows[0]] != i as i64)
            },
            always,
        ),
        class(
            "binary-rewards",
            "varied rewards that are all 0 or 1",
            |c, _| any_group(c, |g| spread(g) == 1.0 && g.iter().all(|r| *r == 0.0 || *r == 1.0)),
            |options, _| options.reward_range[0] <= 0.0 && options.reward_range[1] >= 1.0,
        ),
        class(
            "tiny-spread",
            "rewards that differ by less than a hundredth",
            |c, _| any_group(c, |g| spread(g) > 0.0 && spread(g) < 0.01),
            |options, _| options.reward_range[1] - options.reward_range[0] > 0.05,
        ),
        class(
            "whole-range",
            "rewards at both ends of the range",
            |c, o| any_group(c, |g| spread(g) >= 0.99 * (o.reward_range[1] - o.reward_range[0])),
            always,
        ),
        class(
            "shifted",
            "varied rewards that are all far from 0, compared with their spread",
            |c, _| any_group(c, |g| spread(g) > 0.0 && g.iter().all(|r| r.abs() > 2.0 * spread(g))),
            always,
        ),
        class(
            "far-off",
            "rewards that differ by less than a 500th of their size",
            |c, _| any_group(c, is_far_off),
            |options, dtype| {
                far_end(options).abs() > 0.5 && matches!(dtype, Dtype::F64 | Dtype::F32)
            },
        ),
        class(
            "unscored",
            "a reward that is NaN",
            |c, _| c.rewards.iter().any(|r| r.is_nan()),
            unscored,
        ),
        class(
            "unscored-group",
            "a group of which no reward is scored",
            |c, _| any_group(c, <[f64]>::is_empty),
            unscored,
        ),
    ]
}
