//! Cases of `reward-combination`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2};

use super::{
    Layout, Normalise, Options, RewardCombination, RewardCombinationCase, Singleton, Unscored,
    WeightNorm, has_score, members, scored,
};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows::{self, Rows};
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, uniform};
use shakedown_core::numeric::tolerance::apart;
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest reward that is generated.
const LARGEST: f64 = 100.0;

/// Weights that are drawn, none of which cancel.
const WEIGHTS: [&[f64]; 10] = [
    &[1.0, 0.5],
    &[1.0],
    &[0.5, 2.0, 1.0],
    &[1.0, 0.0],
    &[1.0, -0.25],
    &[0.1, 0.2, 0.7],
    &[2.0],
    &[0.0, 1.0, 0.3],
    &[-1.0, 3.0, 0.5, 1.0],
    &[0.2, 0.8],
];

pub(super) fn draw_weights(u: &mut Unstructured<'_>, _: &Options) -> Result<Option<Vec<f64>>> {
    if chance(u, 80)? { Ok(None) } else { one(u, &WEIGHTS).map(|weights| Some(weights.to_vec())) }
}

/// The largest reward of which no sum is more than the dtype holds, for so many functions.
fn largest(options: &Options, functions: usize, dtype: Dtype) -> f64 {
    let weights = options.raw_weights(functions);
    let magnitude: f64 = weights.iter().map(|w| w.abs()).sum();
    let sum: f64 = weights.iter().sum();
    let magnitude = match options.weight_norm {
        WeightNorm::None => magnitude,
        WeightNorm::Sum => magnitude / sum.abs(),
    };
    dtype.round(LARGEST.min(dtype.max() / (8.0 * magnitude.max(1.0))))
}

pub(super) fn valid(
    case: &RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<RewardCombination>(case)?;
    let functions = case.rewards.ncols();
    if let Some(weights) = &options.weights
        && weights.len() != functions
    {
        return Err(format!("{functions} functions and {} weights", weights.len()));
    }
    let largest = largest(options, functions, dtype);
    for reward in &case.rewards {
        let unscored = reward.is_nan() && options.unscored == Unscored::Skip;
        if !unscored && apart(reward.abs(), 0.0, largest) {
            return Err(format!("reward {reward} is outside [-{largest}, {largest}]"));
        }
    }
    let groups = members(case);
    if options.layout == Layout::Contiguous {
        let size = groups[0].len();
        let adjacent = |rows: &Vec<usize>| rows.windows(2).all(|pair| pair[1] == pair[0] + 1);
        if !groups.iter().all(|rows| rows.len() == size && adjacent(rows)) {
            return Err("groups are not equal-sized and adjacent".to_owned());
        }
    }
    let lonely = |rows: &Vec<usize>| (0..functions).any(|k| scored(case, rows, k).len() == 1);
    if avoids_singletons(options) && groups.iter().any(lonely) {
        return Err("a function that scored one row of a group".to_owned());
    }
    Ok(())
}

fn avoids_singletons(options: &Options) -> bool {
    options.singleton == Singleton::Avoid && options.normalise == Normalise::Group
}

/// Makes any case valid with as little change as possible; `None` where that is not possible.
fn repaired(
    mut case: RewardCombinationCase,
    options: &Options,
    dtype: Dtype,
) -> Option<RewardCombinationCase> {
    let largest = largest(options, case.rewards.ncols(), dtype);
    case.rewards.mapv_inplace(|r| if r.is_nan() { r } else { r.clamp(-largest, largest) });
    if avoids_singletons(options) && options.unscored == Unscored::Skip {
        for rows in members(&case) {
            for function in 0..case.rewards.ncols() {
                if let [row] = scored(&case, &rows, function)[..] {
                    case.rewards[[row, function]] = f64::NAN;
                }
            }
        }
    }
    round(&mut case, dtype);
    valid(&case, options, dtype).is_ok().then_some(case)
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<RewardCombinationCase> {
    let functions = match &options.weights {
        Some(weights) => weights.len(),
        None => one(u, &[2, 1, 3, 2, 4])?,
    };
    let count = one(u, &[1, 2, 1, 2, 3])?;
    let least = if avoids_singletons(options) { 2 } else { 1 };
    let mut sizes: Vec<usize> = Vec::new();
    for group in 0..count {
        let size = one(u, &[2, 3, 4, 2, 1, 5, 8, 7])?.max(least);
        let even = options.layout == Layout::Contiguous && group > 0;
        sizes.push(if even { sizes[0] } else { size });
    }
    let first_id: i64 = if chance(u, 40)? { one(u, &[-1, 7, 1 << 40, i64::MAX - 9])? } else { 0 };
    let backwards = chance(u, 40)?;
    let ids = (0..count).map(|group| if backwards { count - 1 - group } else { group } as i64);
    let each = ids.zip(&sizes).flat_map(|(id, size)| vec![first_id + id; *size]);
    let groups: Array1<i64> = each.collect();
    let mut rewards = Array2::zeros((groups.len(), functions));
    for mut column in rewards.columns_mut() {
        let drawn = draw_function(u, &sizes)?;
        column.iter_mut().zip(drawn).for_each(|(reward, drawn)| *reward = drawn);
    }
    let mut case = RewardCombinationCase { rewards, groups };
    if options.unscored == Unscored::Skip && chance(u, 150)? {
        leave_out(u, &mut case)?;
    }
    if options.layout == Layout::Any && chance(u, 100)? {
        let mut order: Vec<usize> = (0..case.groups.len()).collect();
        for row in (1..order.len()).rev() {
            order.swap(row, u.choose_index(row + 1)?);
        }
        case = RewardCombination::take(&case, &order);
    }
    let flat = RewardCombinationCase { rewards: case.rewards.mapv(|_| 1.0), ..case.clone() };
    Ok(repaired(case, options, dtype)
        .or_else(|| repaired(flat, options, dtype))
        .expect("equal rewards in these groups are valid"))
}

/// The rewards that one function gives, in one of the shapes that functions have.
fn draw_function(u: &mut Unstructured<'_>, sizes: &[usize]) -> Result<Vec<f64>> {
    let everywhere = one(u, &AWKWARD)?;
    let kind = u.choose_index(10)?;
    let mut rewards = Vec::new();
    for size in sizes {
        let base = one(u, &AWKWARD)?;
        let kind = if kind == 9 { u.choose_index(9)? } else { kind };
        for _ in 0..*size {
            rewards.push(match kind {
                0 => f64::from(u8::from(u.arbitrary::<bool>()?)),
                1 => uniform(u, 0.0, 1.0)?,
                2 => everywhere,
                3 => base,
                4 => 0.01 * uniform(u, -1.0, 1.0)?,
                5 => 100.0 * uniform(u, -1.0, 1.0)?,
                6 => one(u, &[0.0, 0.5, 2.0, 1.0])?,
                7 => base + 1e-3 * normal(u)?,
                _ => one(u, &AWKWARD)?,
            });
        }
    }
    Ok(rewards)
}

/// Takes scores away: here and there, of a whole row, or of a function in a whole group.
fn leave_out(u: &mut Unstructured<'_>, case: &mut RewardCombinationCase) -> Result<()> {
    let functions = case.rewards.ncols();
    if chance(u, 128)? {
        for reward in &mut case.rewards {
            if chance(u, 50)? {
                *reward = f64::NAN;
            }
        }
    }
    if chance(u, 80)? {
        let row = u.choose_index(case.groups.len())?;
        case.rewards.row_mut(row).fill(f64::NAN);
    }
    if chance(u, 80)? {
        let groups = members(case);
        let (rows, function) = (one(u, &groups)?, u.choose_index(functions)?);
        rows.iter().for_each(|row| case.rewards[[*row, function]] = f64::NAN);
    }
    Ok(())
}

/// Corners of three functions, of which narrower ones take the first columns.
fn widest(options: &Options) -> Vec<(Vec<[f64; 3]>, Vec<i64>)> {
    let mut corners: Vec<(Vec<[f64; 3]>, Vec<i64>)> = Vec::new();
    let mut add = |rewards: &[[f64; 3]], groups: &[i64]| {
        corners.push((rewards.to_vec(), groups.to_vec()));
    };
    add(&[[0.0; 3]], &[0]);
    add(&[[0.0; 3]; 2], &[0, 0]);
    add(&[[1.0, 0.5, 2.0]], &[0]);
    add(&[[0.0, 1.0, 2.0], [1.0, 0.5, 0.0]], &[0, 0]);
    add(&[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], &[0, 0]);
    add(&[[0.9, 0.3, 10.0], [1.0, 0.1, 10.0]], &[0, 0]);
    add(&[[1.0, 0.0, 0.5], [0.0, 0.5, 0.5], [1.0, 1.0, 0.0], [0.0, 0.5, 2.0]], &[0, 0, 1, 1]);
    add(&[[1.0, 0.0, 0.5], [1.0, 1.0, 0.5], [0.0, 0.5, 0.0], [2.0, 0.5, 2.0]], &[0, 1, 0, 1]);
    add(&[[1.0, 0.5, 0.5], [0.0, 0.0, 0.5], [3.0, 0.5, 2.0]], &[4, 4, -2]);
    add(&[[1.0, 0.0, 3.0], [0.0, 0.5, 1.0], [2.0, 1.0, 0.0]], &[0, 0, 0]);
    for constant in [1.0, 0.1, 0.81, 0.95, 16.0, -3.0] {
        for size in [2, 3, 5, 7, 11, 13] {
            let varied = |row: usize| [constant, (row % 2) as f64, constant];
            add(&(0..size).map(varied).collect::<Vec<_>>(), &vec![0; size]);
        }
        add(&[[constant; 3]; 3], &[7, 7, 7]);
    }
    let scales = |row: u8| [0.01 * f64::from(row), f64::from(3 - row), 25.0 * f64::from(row)];
    add(&[0, 1, 3, 2].map(scales), &[0, 0, 0, 0]);
    add(&[1, 0, 2, 3].map(scales), &[0, 0, 1, 1]);
    let turned = |row: u8| [scales(row)[2], scales(row)[0], scales(row)[1]];
    add(&[0, 1, 3, 2].map(turned), &[0, 0, 0, 0]);
    let turned = |row: u8| [scales(row)[1], scales(row)[2], scales(row)[0]];
    add(&[0, 1, 3, 2].map(turned), &[0, 0, 0, 0]);
    add(&[[50.0, 90.0, 70.0], [50.03, 90.06, 70.05], [50.01, 90.01, 70.0]], &[0, 0, 0]);
    add(&[[0.3, 0.7, 0.2], [0.6, 0.1, 0.9], [0.25, 0.75, 0.4]], &[0, 1, 0]);
    let mixed = [[1.0, 0.25, -1.0], [0.0, 0.5, 2.0], [0.0, 0.75, 0.5], [1.0, 0.1, 0.0]];
    add(&[mixed[0], mixed[1], mixed[2], mixed[3], mixed[1], mixed[0]], &[1, 1, 1, 0, 0, 0]);
    add(&[mixed[3], mixed[0], mixed[1], mixed[2], mixed[2]], &[0, 1, 1, 0, 1]);
    if options.unscored == Unscored::Skip {
        let nan = f64::NAN;
        add(&[[nan; 3]], &[0]);
        add(&[[1.0, nan, nan], [nan; 3], [0.0, 1.0, nan]], &[0, 0, 0]);
        add(&[[nan; 3], [1.0, 2.0, 0.5]], &[0, 0]);
        add(&[[nan; 3], [1.0, 2.0, 0.5], [0.0, 3.0, 1.0]], &[0, 0, 0]);
        add(&[[nan, 1.0, 0.0], [1.0, nan, 0.5], [0.5, 0.0, nan]], &[0, 0, 0]);
        let half = [[1.0, nan, 0.5], [0.0, nan, 0.1], [nan, 1.0, 0.5], [0.5, 0.0, 0.5]];
        add(&half, &[0, 0, 1, 1]);
        add(&[half[0], half[2], half[1], half[3]], &[0, 1, 0, 1]);
        let never = [[nan, 1.0, 0.5], [nan, 0.0, 0.1], [1.0, 0.5, nan], [0.5, 0.0, nan]];
        add(&never, &[0, 0, 1, 1]);
        add(&[[nan, 0.0, 1.0], [nan, 1.0, 0.0], [nan, 2.0, 2.0]], &[0, 0, 0]);
        let lacking = [[nan, nan, nan], [1.0, 0.0, 0.5], [0.0, 1.0, 2.0], [2.0, 0.5, 1.0]];
        add(&lacking, &[0, 0, 0, 0]);
        add(&[[0.81, nan, 0.1], [0.81, 1.0, 0.1], [0.81, 0.0, 0.1], [nan, 2.0, nan]], &[0; 4]);
    }
    corners
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<RewardCombinationCase> {
    let widths = match &options.weights {
        Some(weights) => vec![weights.len()],
        None => vec![1, 2, 3],
    };
    let mut corners = Vec::new();
    // Repaired, a row alone would be one that nobody scored: simpler than what leads to it.
    let least = if avoids_singletons(options) { 2 } else { 1 };
    for (rewards, groups) in widest(options).into_iter().filter(|(rows, _)| rows.len() >= least) {
        for width in &widths {
            let reward = |(row, k): (usize, usize)| rewards[row][k % 3];
            let rewards = Array2::from_shape_fn((groups.len(), *width), reward);
            let case = RewardCombinationCase { rewards, groups: groups.clone().into() };
            corners.extend(repaired(case, options, dtype));
        }
    }
    corners
}

pub(super) fn simpler(
    case: &RewardCombinationCase,
    options: &Options,
) -> Vec<RewardCombinationCase> {
    let groups = members(case);
    let everyone = 0..case.groups.len();
    let mut candidates = Vec::new();
    let mut take = |rows: Vec<usize>| {
        if !rows.is_empty() && rows.len() < case.groups.len() {
            candidates.push(RewardCombination::take(case, &rows));
        }
    };
    for rows in &groups {
        take(rows.clone());
        take(everyone.clone().filter(|row| !rows.contains(row)).collect());
    }
    if options.layout == Layout::Contiguous {
        for place in 0..groups[0].len() {
            let is_there = |row: &usize| groups.iter().any(|rows| rows.get(place) == Some(row));
            take(everyone.clone().filter(|row| !is_there(row)).collect());
        }
    }
    let mut numbered = case.clone();
    for (number, rows) in groups.iter().enumerate() {
        rows.iter().for_each(|row| numbered.groups[*row] = number as i64);
    }
    candidates.push(numbered);
    candidates.extend(rows::simpler::<RewardCombination>(case));
    candidates
}

/// What a function gave to the rows of a group that it scored.
fn given(case: &RewardCombinationCase) -> Vec<Vec<f64>> {
    let mut given = Vec::new();
    for rows in members(case) {
        for function in 0..case.rewards.ncols() {
            let rows = scored(case, &rows, function);
            given.push(rows.iter().map(|row| case.rewards[[*row, function]]).collect());
        }
    }
    given
}

fn any_given(case: &RewardCombinationCase, is: impl Fn(&[f64]) -> bool) -> bool {
    given(case).iter().any(|rewards| is(rewards))
}

fn spread(rewards: &[f64]) -> f64 {
    let least = rewards.iter().copied().fold(f64::INFINITY, f64::min);
    rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
}

/// The spread of every function over all rows that it scored.
fn spreads(case: &RewardCombinationCase) -> Vec<f64> {
    let columns = case.rewards.columns().into_iter();
    let scored = columns.map(|column| {
        column.iter().copied().filter(|reward| !reward.is_nan()).collect::<Vec<f64>>()
    });
    scored.filter(|rewards| !rewards.is_empty()).map(|rewards| spread(&rewards)).collect()
}

pub(super) fn classes() -> Vec<Class<RewardCombination>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let ragged: fn(&Options, Dtype) -> bool = |options, _| options.layout == Layout::Any;
    let skipped: fn(&Options, Dtype) -> bool = |options, _| options.unscored == Unscored::Skip;
    let lonely: fn(&Options, Dtype) -> bool = |options, _| !avoids_singletons(options);
    let free: fn(&Options, Dtype) -> bool = |options, _| options.weights.is_none();
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "binary",
            "a function that gives 0 and 1 to the rows of a group",
            |c, _| any_given(c, |g| spread(g) == 1.0 && g.iter().all(|r| [0.0, 1.0].contains(r))),
            always,
        ),
        class(
            "unit-interval",
            "a function that gives different numbers from 0 to 1, not these two alone",
            |c, _| {
                any_given(c, |g| {
                    let unit = g.iter().all(|r| (0.0..=1.0).contains(r));
                    unit && spread(g) > 0.0 && spread(g) < 1.0
                })
            },
            always,
        ),
        class(
            "constant-function",
            "a function that gives two rows or more of a group the same, not 0",
            |c, _| any_given(c, |g| g.len() > 1 && spread(g) == 0.0 && g[0] != 0.0),
            always,
        ),
        class(
            "constant-everywhere",
            "a function that gives all of several groups the same",
            |c, _| members(c).len() > 1 && spreads(c).contains(&0.0),
            always,
        ),
        class(
            "scales",
            "functions of which one varies a hundred times as much as another",
            |c, _| {
                let spreads = spreads(c);
                let varied = || spreads.iter().copied().filter(|spread| *spread > 0.0);
                varied().any(|small| varied().any(|large| large > 100.0 * small))
            },
            |options, _| options.weights.as_ref().is_none_or(|weights| weights.len() > 1),
        ),
        class("one-function", "K = 1", |c, _| c.rewards.ncols() == 1, free),
        class("two-functions", "K = 2", |c, _| c.rewards.ncols() == 2, free),
        class("three-functions", "K = 3", |c, _| c.rewards.ncols() == 3, free),
        class(
            "square",
            "N = K, two or more",
            |c, _| c.rewards.is_square() && c.groups.len() > 1,
            free,
        ),
        class("one-row", "a batch of one row", |c, _| c.groups.len() == 1, lonely),
        class(
            "several-rows",
            "two rows or more that differ",
            |c, _| c.rewards.rows().into_iter().any(|row| row != c.rewards.row(0)),
            always,
        ),
        class("several-groups", "two groups or more", |c, _| members(c).len() > 1, always),
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
            "singleton",
            "a function that scored one row of a group",
            |c, _| any_given(c, |g| g.len() == 1),
            lonely,
        ),
        class(
            "unscored",
            "a row that one function scored and another did not",
            |c, _| {
                (0..c.groups.len())
                    .any(|row| has_score(c, row) && c.rewards.row(row).iter().any(|r| r.is_nan()))
            },
            |options, _| {
                let several = options.weights.as_ref().is_none_or(|weights| weights.len() > 1);
                options.unscored == Unscored::Skip && several
            },
        ),
        class(
            "nothing-scored",
            "a row that no function scored",
            |c, _| (0..c.groups.len()).any(|row| !has_score(c, row)),
            skipped,
        ),
        class(
            "function-without-a-group",
            "a function that scored one group and another not at all",
            |c, _| {
                (0..c.rewards.ncols()).any(|k| {
                    let mut counts = members(c).into_iter().map(|rows| scored(c, &rows, k).len());
                    counts.clone().any(|count| count == 0) && counts.any(|count| count > 0)
                })
            },
            skipped,
        ),
    ]
}
