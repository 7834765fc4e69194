//! Cases of `group-filter`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::Array1;

use super::{
    Criterion, GroupFilter, GroupFilterCase, Layout, Options, Singleton, members, oracle, spread,
};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::{self, Rows};
use shakedown_core::generate::draw::{AWKWARD, chance, one};
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest magnitude of a metric and of a reward.
const LARGEST: f64 = 1e3;

/// The largest id: every format of 32 bits holds it.
const LARGEST_ID: i64 = 1 << 24;

/// The least spread of a group that has one.
fn least_spread(options: &Options) -> f64 {
    // A little less than what is drawn, which is rounded.
    0.98 * (100.0 * options.tolerance).max(1e-3)
}

pub(super) fn valid(case: &GroupFilterCase, options: &Options) -> std::result::Result<(), String> {
    rows::check_axes::<GroupFilter>(case)?;
    for (name, numbers) in [("rewards", &case.rewards), ("metric", &case.metric)] {
        if let Some(found) = numbers.iter().find(|number| apart(**number, 0.0, LARGEST)) {
            return Err(format!("`{name}` holds {found}, not within ±{LARGEST}"));
        }
    }
    let mut ids = case.ids.to_vec();
    ids.sort_unstable();
    if ids.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err("two rows have one id".to_owned());
    }
    if ids.iter().any(|id| !(0..=LARGEST_ID).contains(id)) {
        return Err(format!("an id is not from 0 to {LARGEST_ID}"));
    }
    let groups = members(case);
    fits(&groups, options)?;
    groups.iter().try_for_each(|rows| decides(case, options, rows))
}

/// Whether the groups are as `layout` and `singleton` say.
fn fits(groups: &[Vec<usize>], options: &Options) -> std::result::Result<(), String> {
    if options.layout == Layout::Contiguous {
        let size = groups[0].len();
        let adjacent = |rows: &Vec<usize>| rows.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !groups.iter().all(|rows| rows.len() == size && adjacent(rows)) {
            return Err("groups are not equal-sized and adjacent".to_owned());
        }
    }
    let avoided = options.singleton == Singleton::Avoid && options.criterion == Criterion::Spread;
    if avoided && groups.iter().any(|rows| rows.len() == 1) {
        return Err("a group of one row".to_owned());
    }
    Ok(())
}

/// Whether it is beyond doubt if a group stays: in any precision, and by spread or deviation.
fn decides(
    case: &GroupFilterCase,
    options: &Options,
    rows: &[usize],
) -> std::result::Result<(), String> {
    let (spread, group) = (spread(case, rows), case.groups[rows[0]]);
    if options.criterion == Criterion::Spread {
        let least = least_spread(options);
        return if spread == 0.0 || spread >= least {
            Ok(())
        } else {
            Err(format!("group {group} has a spread of {spread}, neither 0 nor {least}"))
        };
    }
    let mean = oracle::mean(case, rows);
    let magnitude: f64 = rows.iter().map(|row| case.metric[*row].abs()).sum();
    // The sum of equal numbers that have few digits is exact, and so is their mean.
    let exact = spread == 0.0 && mean.abs() <= 64.0 && (8.0 * mean).fract() == 0.0;
    let near = |bound: &f64| (mean - bound).abs() < 1e-6 * (1.0 + magnitude);
    match options.range.iter().find(|bound| near(bound) && !(exact && mean == **bound)) {
        Some(bound) => Err(format!("the mean of group {group} is {mean}, next to {bound}")),
        None => Ok(()),
    }
}

/// The case with the groups that leave a doubt replaced by constant ones.
fn repaired(mut case: GroupFilterCase, options: &Options, dtype: Dtype) -> Option<GroupFilterCase> {
    case.metric.mapv_inplace(|x| x.clamp(-LARGEST, LARGEST));
    round(&mut case, dtype);
    let [lo, hi] = options.range;
    for rows in members(&case) {
        let first = case.metric[rows[0]];
        for constant in [first, 0.5 * (lo + hi), hi + 5.0, lo - 5.0] {
            if decides(&case, options, &rows).is_ok() {
                break;
            }
            rows.iter().for_each(|row| case.metric[*row] = dtype.round(constant));
        }
    }
    valid(&case, options).is_ok().then_some(case)
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<GroupFilterCase> {
    let count = one(u, &[1, 2, 3, 2, 4, 3])?;
    let least = if options.singleton == Singleton::Avoid { 2 } else { 1 };
    let mut sizes: Vec<usize> = Vec::new();
    for group in 0..count {
        let size = one(u, &[2, 3, 1, 4, 2, 5, 8, 7, 6])?.max(least);
        let even = options.layout == Layout::Contiguous && group > 0;
        sizes.push(if even { sizes[0] } else { size });
    }
    let first_group: i64 = one(u, &[0, 0, 0, -1, 7, 1 << 40, i64::MAX - 9])?;
    let backwards = chance(u, 60)?;
    let (mut metric, mut groups) = (Vec::new(), Vec::new());
    for (group, size) in sizes.iter().enumerate() {
        let drawn = draw_group(u, *size, options)?;
        let number = if backwards { count - 1 - group } else { group } as i64;
        groups.extend(vec![first_group + number; *size]);
        metric.extend(drawn);
    }
    if options.layout == Layout::Any && chance(u, 110)? {
        for row in (1..metric.len()).rev() {
            let other = u.choose_index(row + 1)?;
            metric.swap(row, other);
            groups.swap(row, other);
        }
    }
    let rewards = draw_rewards(u, &metric)?;
    let ids = draw_ids(u, metric.len())?;
    let array = |numbers: Vec<f64>| Array1::from(numbers);
    let case = GroupFilterCase {
        rewards: array(rewards),
        metric: array(metric),
        groups: groups.into(),
        ids: ids.into(),
    };
    let fallback = GroupFilterCase {
        rewards: array(vec![0.0; 2]),
        metric: array(vec![0.0; 2]),
        groups: vec![0, 0].into(),
        ids: vec![0, 1].into(),
    };
    Ok(repaired(case, options, dtype)
        .or_else(|| repaired(fallback, options, dtype))
        .expect("a constant group is always valid"))
}

/// The metric of one group, in one of the shapes on which real bugs showed.
fn draw_group(u: &mut Unstructured<'_>, size: usize, options: &Options) -> Result<Vec<f64>> {
    let [lo, hi] = options.range;
    let step = (100.0 * options.tolerance).max(1e-3);
    let base = match u.choose_index(4)? {
        0 => one(u, &AWKWARD)?,
        1 => one(u, &[0.0, 1.0, lo, hi])?,
        2 => one(u, &[0.81, 0.95, 0.1, 0.3, 0.7])?,
        _ => lo + (hi - lo) * f64::from(u.arbitrary::<u8>()?) / 255.0,
    };
    let pattern = u.choose_index(7)?;
    let odd_one = u.choose_index(size)?;
    let mut metric = Vec::with_capacity(size);
    for place in 0..size {
        metric.push(match pattern {
            0 | 1 => base,
            2 => f64::from(u8::from(u.arbitrary::<bool>()?)),
            3 => base + if place == odd_one { one(u, &[1.0, -1.0, hi - lo])? } else { 0.0 },
            4 => base + if place == odd_one { 1.01 * step } else { 0.0 },
            5 => base + 1.01 * step * f64::from(one(u, &[0_i8, 1, 2, -1])?),
            _ => one(u, &[0.0, 0.5, 1.0, 2.0, -1.0])?,
        });
    }
    Ok(metric)
}

/// The metric itself, or another number for each row: shaped, constant, or unlike it.
fn draw_rewards(u: &mut Unstructured<'_>, metric: &[f64]) -> Result<Vec<f64>> {
    let pattern = u.choose_index(4)?;
    let rewards = metric.iter().enumerate().map(|(row, metric)| {
        Ok(match pattern {
            0 => *metric,
            1 => one(u, &[0.0, 1.0, -1.0, 0.5, 3.0])?,
            2 => 1.0,
            _ => (metric - 0.125 * row as f64).clamp(-LARGEST, LARGEST),
        })
    });
    rewards.collect()
}

/// Ids, no two alike: counted, from somewhere on, backwards, or far apart.
fn draw_ids(u: &mut Unstructured<'_>, count: usize) -> Result<Vec<i64>> {
    let first: i64 = one(u, &[100, 0, 1, 5000])?;
    let pattern = u.choose_index(4)?;
    let id = |row: usize| match pattern {
        0 => row as i64,
        1 => (count - 1 - row) as i64,
        2 => 3 * row as i64,
        // Another order, since 7 divides no number of rows that is drawn and less than 7 times it.
        _ => ((row * 37) % 101) as i64,
    };
    Ok((0..count).map(|row| first + id(row)).collect())
}

/// A case of these groups, one after the other, with rewards that say where each row was.
fn laid_out(groups: &[(&[f64], i64)]) -> GroupFilterCase {
    let metric: Vec<f64> = groups.iter().flat_map(|(metric, _)| metric.to_vec()).collect();
    let numbers = groups.iter().flat_map(|(metric, number)| vec![*number; metric.len()]);
    let count = metric.len();
    GroupFilterCase {
        rewards: (0..count).map(|row| 0.5 * row as f64).collect(),
        metric: metric.into(),
        groups: numbers.collect(),
        ids: (0..count as i64).collect(),
    }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<GroupFilterCase> {
    let [lo, hi] = options.range;
    let step = 1.01 * (100.0 * options.tolerance).max(1e-3);
    let mid = 0.5 * (lo + hi);
    let mut cases = small(options, dtype);
    cases.truncate(24);
    let mut batch = |groups: &[(&[f64], i64)]| cases.push(laid_out(groups));
    for constant in [0.0, 1.0, 0.1, 0.81, 0.95, lo, hi, mid, lo - 1.0, hi + 1.0] {
        for size in [1, 2, 3, 5, 8] {
            batch(&[(&vec![constant; size], 0)]);
        }
        batch(&[(&[constant; 3], 0), (&[constant, constant, constant + 3.0 * step], 1)]);
        batch(&[(&[constant, constant + step], 0), (&[constant; 2], 1)]);
    }
    let varied = [0.0, 1.0];
    batch(&[(&varied, 0), (&varied, 1), (&varied, 2)]);
    batch(&[(&[0.0; 2], 0), (&varied, 1), (&[1.0; 2], 2), (&varied, 3)]);
    batch(&[(&varied, 3), (&[0.5; 2], 2), (&varied, 1), (&varied, 0)]);
    batch(&[(&varied, 1 << 40), (&[0.5; 2], -7), (&varied, 11)]);
    batch(&[(&[0.0, 0.0, 1.0], 0), (&[1.0; 3], 1)]);
    batch(&[(&[0.0, 1.0, 1.0], 0), (&[0.5; 3], 1)]);
    batch(&[(&[0.0; 2], 0), (&[1.0; 2], 1)]);
    batch(&[(&[1.0, -1.0], 0), (&[-0.5, 0.5, -0.5], 1)]);
    // Numbers that are alike in their last 8 or 32 bits, or as f32.
    batch(&[(&varied, 3), (&[0.5; 2], 259)]);
    batch(&[(&[0.5; 2], 1), (&varied, (1 << 32) + 1)]);
    batch(&[(&[0.5; 2], 1 << 40), (&[1.5; 2], (1 << 40) + 1)]);
    batch(&[(&[1.5; 2], 7), (&[0.5; 2], 7 + (1 << 32))]);
    batch(&[(&[1.5; 2], 5), (&[0.5; 2], 261)]);
    batch(&[(&[1.0], 0), (&varied, 1), (&[0.0, 0.0, 1.0, 0.0], 2)]);
    batch(&[(&[0.0, 0.0, 0.0], 0), (&varied, 1)]);
    batch(&[(&[0.5, 0.5, 0.5, 0.5], 0), (&[0.5, 0.5, 0.5, 0.5 + step], 1)]);
    batch(&[(&[-1.0, 0.5, 0.0], 0), (&[2.0, -1.0, 1.0], 1)]);
    let order = |metric: &[f64], groups: &[i64]| GroupFilterCase {
        groups: groups.to_vec().into(),
        ..laid_out(&[(metric, 0)])
    };
    cases.push(order(&[0.0, 0.0, 1.0, 0.0], &[0, 1, 0, 1]));
    cases.push(order(&[0.0, 0.0, 1.0, 0.0, 0.0], &[1, 0, 1, 0, 0]));
    cases.push(order(&[0.0, 1.0, 0.0, 1.0, 1.0, 1.0], &[2, 1, 2, 0, 1, 0]));
    cases.push(order(&[1.0, 0.0, 0.0, 1.0, 0.5, 0.5], &[5, 3, 5, 3, 4, 4]));
    let mut shaped = laid_out(&[(&[0.0; 2], 0), (&[1.0, 0.0], 1)]);
    shaped.rewards = vec![0.0, -1.0, 1.0, 1.0].into();
    cases.push(shaped);
    let mut turned = laid_out(&[(&[1.0, 0.0], 0), (&[0.0; 2], 1), (&[0.0, 1.0], 2)]);
    turned.ids = vec![105, 104, 103, 102, 101, 100].into();
    cases.push(turned);
    let mut cases: Vec<GroupFilterCase> = cases
        .into_iter()
        .filter_map(|mut case| {
            round(&mut case, dtype);
            valid(&case, options).is_ok().then_some(case)
        })
        .collect();
    cases.sort_by_cached_key(GroupFilter::measure);
    cases.dedup_by(|a, b| shakedown_core::value::record::same_bits(a, b));
    cases
}

/// Every case of up to four rows whose metric is 0 or 1, under a few layouts.
pub(super) fn small(options: &Options, dtype: Dtype) -> Vec<GroupFilterCase> {
    let layouts: [&[i64]; 15] = [
        &[0],
        &[0, 0],
        &[0, 1],
        &[0, 0, 0],
        &[0, 0, 1],
        &[0, 1, 1],
        &[0, 1, 0],
        &[1, 0, 0],
        &[0, 0, 0, 0],
        &[0, 0, 1, 1],
        &[1, 1, 0, 0],
        &[0, 1, 0, 1],
        &[0, 1, 1, 1],
        &[0, 0, 0, 1],
        &[0, 1, 1, 0],
    ];
    let mut cases = Vec::new();
    for groups in layouts {
        let count = groups.len();
        for bits in 0_u32..1 << count {
            for other in [0_u32, 1, 2, bits] {
                let numbers = |bits: u32| -> Array1<f64> {
                    (0..count).map(|row| f64::from(bits >> row & 1)).collect()
                };
                let mut case = GroupFilterCase {
                    rewards: numbers(other),
                    metric: numbers(bits),
                    groups: groups.to_vec().into(),
                    ids: (0..count as i64).collect(),
                };
                round(&mut case, dtype);
                if valid(&case, options).is_ok() {
                    cases.push(case);
                }
            }
        }
    }
    // Numbers that cancel, a row on the mean, a group that is larger than the one that stays.
    let others: [(&[i64], &[f64]); 4] = [
        (&[0, 0], &[1.0, -1.0]),
        (&[0, 0, 0], &[0.0, 1.0, -1.0]),
        (&[0, 0, 0, 1, 1], &[0.0, 0.0, 0.0, 0.0, 1.0]),
        (&[0, 0, 1, 1, 1], &[0.0, 1.0, 0.0, 0.0, 0.0]),
    ];
    for (groups, metric) in others {
        for rewards in [Array1::zeros(metric.len()), metric.to_vec().into()] {
            let case = GroupFilterCase {
                rewards,
                metric: metric.to_vec().into(),
                groups: groups.to_vec().into(),
                ids: (0..metric.len() as i64).collect(),
            };
            if valid(&case, options).is_ok() {
                cases.push(case);
            }
        }
    }
    cases
}

pub(super) fn simpler(case: &GroupFilterCase, options: &Options) -> Vec<GroupFilterCase> {
    let groups = members(case);
    let everyone: Vec<usize> = (0..case.metric.len()).collect();
    let mut candidates = Vec::new();
    let mut take = |rows: Vec<usize>| {
        if !rows.is_empty() {
            candidates.push(GroupFilter::take(case, &rows));
        }
    };
    for rows in &groups {
        take(rows.clone());
        take(everyone.iter().copied().filter(|row| !rows.contains(row)).collect());
    }
    if options.layout == Layout::Contiguous {
        for place in 0..groups[0].len() {
            let dropped = |row: &usize| groups.iter().any(|rows| rows.get(place) == Some(row));
            take(everyone.iter().copied().filter(|row| !dropped(row)).collect());
        }
    }
    take(groups.concat());
    candidates.push(GroupFilterCase {
        ids: everyone.iter().map(|row| *row as i64).collect(),
        ..case.clone()
    });
    let mut numbered = case.clone();
    for (number, rows) in groups.iter().enumerate() {
        rows.iter().for_each(|row| numbered.groups[*row] = number as i64);
    }
    candidates.push(numbered);
    for rows in &groups {
        for constant in [0.0, 1.0, case.metric[rows[0]]] {
            let mut flat = case.clone();
            rows.iter().for_each(|row| flat.metric[*row] = constant);
            candidates.push(flat);
        }
    }
    // A small difference at 0 is simpler than one elsewhere.
    let least = case.metric.iter().copied().fold(f64::INFINITY, f64::min);
    for scale in [1.0, 10.0, 100.0, 1e3, 1e4] {
        let metric = case.metric.mapv(|x| ((x - least) * scale).round() / scale);
        // Rewards that are no part of it would be numbers more.
        let rewards = Array1::zeros(metric.len());
        candidates.push(GroupFilterCase { metric: metric.clone(), rewards, ..case.clone() });
        candidates.push(GroupFilterCase { metric, ..case.clone() });
    }
    candidates.extend(rows::simpler::<GroupFilter>(case));
    candidates
}

fn any_group(case: &GroupFilterCase, is: impl Fn(&[f64]) -> bool) -> bool {
    members(case).iter().any(|rows| {
        let metric: Vec<f64> = rows.iter().map(|row| case.metric[*row]).collect();
        is(&metric)
    })
}

fn flat(metric: &[f64]) -> bool {
    metric.iter().all(|x| *x == metric[0])
}

pub(super) fn classes() -> Vec<Class<GroupFilter>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let ragged: fn(&Options, Dtype) -> bool = |options, _| options.layout == Layout::Any;
    let by_spread: fn(&Options, Dtype) -> bool =
        |options, _| options.criterion == Criterion::Spread;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "constant-group",
            "a group of two or more rows of one metric",
            |c: &GroupFilterCase, _| any_group(c, |g| g.len() > 1 && flat(g)),
            always,
        ),
        class(
            "constant-at-an-end",
            "a group of two or more rows that are all 0, or all 1",
            |c, _| any_group(c, |g| g.len() > 1 && flat(g) && (g[0] == 0.0 || g[0] == 1.0)),
            always,
        ),
        class(
            "awkward-constant",
            "a constant group of three or more whose metric binary cannot represent",
            |c, _| any_group(c, |g| g.len() > 2 && flat(g) && (g[0] * 1024.0).fract() != 0.0),
            |_, dtype| matches!(dtype, Dtype::F64 | Dtype::F32),
        ),
        class(
            "binary",
            "a group of zeros and ones",
            |c, _| any_group(c, |g| !flat(g) && g.iter().all(|x| *x == 0.0 || *x == 1.0)),
            |options, _| options.criterion == Criterion::Range || options.tolerance <= 0.01,
        ),
        class(
            "one-differs",
            "three or more rows of which all but one have one metric",
            |c, _| {
                any_group(c, |g| {
                    let equal = |x: f64| g.iter().filter(|y| **y == x).count();
                    g.len() > 2 && g.iter().any(|x| equal(*x) == g.len() - 1)
                })
            },
            always,
        ),
        class(
            "tiny-spread",
            "a spread of less than a hundredth",
            |c, _| any_group(c, |g| !flat(g) && g.iter().all(|x| (x - g[0]).abs() < 0.01)),
            |options, _| options.tolerance <= 1e-5,
        ),
        class(
            "singleton",
            "a group of one row",
            |c, _| any_group(c, |g| g.len() == 1),
            |options, _| options.singleton != Singleton::Avoid,
        ),
        class(
            "large-group",
            "a group of eight rows",
            |c, _| any_group(c, |g| g.len() >= 8),
            always,
        ),
        class("several-groups", "two groups or more", |c, _| members(c).len() > 1, always),
        class("several-rows", "N ≥ 2", |c, _| c.metric.len() > 1, always),
        class(
            "uneven-groups",
            "groups of different size",
            |c, _| members(c).windows(2).any(|pair| pair[0].len() != pair[1].len()),
            ragged,
        ),
        class(
            "interleaved",
            "rows of a group that are not adjacent",
            |c, _| members(c).iter().any(|g| g.windows(2).any(|p| p[1] != p[0] + 1)),
            ragged,
        ),
        class(
            "odd-groups",
            "group numbers that are not 0, 1, 2, … in order of appearance",
            |c, _| {
                let groups = members(c);
                groups.iter().enumerate().any(|(i, rows)| c.groups[rows[0]] != i as i64)
            },
            always,
        ),
        class(
            "nothing-stays",
            "no group stays, though nothing is limited to none",
            |c, o| o.limit != Some(0) && !oracle::keep(c, o).contains(&true),
            |options, _| options.limit != Some(0),
        ),
        class(
            "dropped-before-kept",
            "a row that stays, after one that does not",
            |c, o| oracle::keep(c, o).windows(2).any(|pair| !pair[0] && pair[1]),
            |options, _| options.limit != Some(0),
        ),
        class(
            "more-than-the-limit",
            "more groups that would stay than may",
            |c, o| {
                let groups = members(c);
                let stay = groups.iter().filter(|rows| oracle::stays(c, o, rows)).count();
                o.limit.is_some_and(|limit| stay as i64 > limit)
            },
            |options, _| options.limit.is_some_and(|limit| limit < 3),
        ),
        class(
            "shaped-rewards",
            "a group of one metric whose rewards differ",
            |c, _| {
                members(c).iter().any(|rows| {
                    let rewards = rows.iter().map(|row| c.rewards[*row]);
                    spread(c, rows) == 0.0 && rewards.clone().any(|r| r != c.rewards[rows[0]])
                })
            },
            always,
        ),
        class(
            "flat-rewards",
            "a group whose metric differs and whose rewards do not",
            |c, _| {
                members(c).iter().any(|rows| {
                    let mut rewards = rows.iter().map(|row| c.rewards[*row]);
                    spread(c, rows) > 0.0 && rewards.all(|r| r == c.rewards[rows[0]])
                })
            },
            always,
        ),
        class(
            "constant-inside-the-mean",
            "a constant group between 0 and 1, which a mean would keep",
            |c, _| any_group(c, |g| g.len() > 1 && flat(g) && g[0] > 0.0 && g[0] < 1.0),
            by_spread,
        ),
        class(
            "on-the-edge",
            "a mean that is a bound of `range`",
            |c, o| any_group(c, |g| flat(g) && o.range.contains(&g[0])),
            |options, _| {
                let exact = |bound: &f64| (8.0 * bound).fract() == 0.0 && bound.abs() <= 64.0;
                options.criterion == Criterion::Range && options.range.iter().any(exact)
            },
        ),
    ]
}
