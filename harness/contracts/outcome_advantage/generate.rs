//! Cases of `outcome-advantage`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2};

use super::super::group_advantage::{GroupAdvantageCase, generate as group};
use super::{
    Baseline, Layout, Options, OutcomeAdvantage, OutcomeAdvantageCase, Scale, Singleton, Unscored,
    groups, is_empty, kept, oracle, outcomes,
};
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::contract::rows::{Masked, Rows};
use shakedown_core::generate::draw::one;
use shakedown_core::generate::masks;
use shakedown_core::generate::measure::is_far_off;
use shakedown_core::laws;
use shakedown_core::numeric::conventions;
use shakedown_core::numeric::tolerance::Tolerance;
use shakedown_core::value::place::Dtype;

/// The largest magnitude of a reward that counts.
fn largest(options: &Options, dtype: Dtype) -> f64 {
    options.reward_range.iter().fold(0.0, |most: f64, end| most.max(dtype.round(*end).abs()))
}

pub(super) fn valid(
    case: &OutcomeAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<OutcomeAdvantage>(case)?;
    // A reward that counts may be NaN where rows may be unscored.
    let mut rewards = case.token_rewards.clone();
    if options.unscored == Unscored::Exclude {
        rewards.zip_mut_with(&case.mask, |r, kept| {
            if *kept && r.is_nan() {
                *r = 0.0
            }
        });
    }
    let fields = [("token_rewards", &rewards)];
    let most = largest(options, dtype);
    masks::check(&case.mask, options.holes, &fields, options.masked_values, most)?;
    let [lo, hi] = options.reward_range;
    for row in (0..case.groups.len()).filter(|row| !is_empty(case, *row)) {
        let outcome: f64 = kept(case, row).sum();
        let added: f64 = kept(case, row).map(f64::abs).sum();
        // What rounding its parts to the dtype may add to an outcome.
        let room = 2.0 * dtype.unit_roundoff() * (added + lo.abs() + hi.abs());
        if !outcome.is_nan() && !(lo - room..=hi + room).contains(&outcome) {
            return Err(format!("the outcome {outcome} of row {row} is outside [{lo}, {hi}]"));
        }
    }
    group::fits(&plain(case, options), &options.of_outcomes())?;
    if group::unbounded(&options.of_outcomes()) {
        held(case, options, dtype)?;
    }
    Ok(())
}

/// Whether the dtype holds every advantage, however the sums of its row and group are rounded.
fn held(
    case: &OutcomeAdvantageCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    let tolerance = Tolerance { dtype, factor: 1.0 };
    let advantages = oracle::by_row(case, options);
    for (row, number) in advantages.into_iter().enumerate() {
        if is_empty(case, row) || kept(case, row).any(f64::is_nan) {
            continue;
        }
        let bound = tolerance.bound(number, case.groups.len());
        let size = number.value.abs();
        // Of equal outcomes an inexact sum may leave any deviation, or none to divide by.
        let open = number.scale.is_infinite();
        let too_large = if open { dtype == Dtype::F16 } else { size + bound > dtype.max() / 2.0 };
        let lost = !open && options.epsilon == 0.0 && 2.0 * bound > size && size > 0.0;
        let divides_by_nothing = lost && matches!(options.scale, Scale::Std | Scale::BatchStd);
        if size.is_nan() || size > dtype.max() / 2.0 || too_large || divides_by_nothing {
            return Err("a deviation near 0 under a larger difference".to_owned());
        }
    }
    Ok(())
}

/// The outcomes, summed in f64.
fn plain(case: &OutcomeAdvantageCase, options: &Options) -> GroupAdvantageCase {
    outcomes(case, options, |rewards| rewards.sum())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<OutcomeAdvantageCase> {
    let batch = group::draw(u, &options.as_declared(), dtype)?;
    let rows = batch.rewards.len();
    let widths = if rows > 12 { [2, 1, 3, 2, 1, 3] } else { [2, 1, rows, 3, 5, 12] };
    let shape = (rows, one(u, &widths)?);
    let mask = masks::mask(u, shape, options.holes)?;
    let style = u.choose_index(6)?;
    let part = one(u, &[1.0, -1.0, 0.5, 0.1, 2.0, -3.0])?;
    let most = largest(options, dtype);
    let mut token_rewards = Array2::zeros(shape);
    for (row, outcome) in batch.rewards.iter().enumerate() {
        let tokens: Vec<usize> = (0..shape.1).filter(|token| mask[[row, *token]]).collect();
        let Some((last, before)) = tokens.split_last() else { continue };
        let share = outcome / tokens.len() as f64;
        let parted = !before.is_empty() && (outcome - part).abs() <= most && part.abs() <= most;
        for token in &tokens {
            token_rewards[[row, *token]] = match style {
                0 | 1 => {
                    if token == last {
                        *outcome
                    } else {
                        0.0
                    }
                }
                2 => {
                    if *token == tokens[0] {
                        *outcome
                    } else {
                        0.0
                    }
                }
                3 => {
                    if *token == tokens[row % tokens.len()] {
                        *outcome
                    } else {
                        0.0
                    }
                }
                4 if parted && token == last => outcome - part,
                4 if parted && *token == tokens[0] => part,
                4 => {
                    if token == last && !parted {
                        *outcome
                    } else {
                        0.0
                    }
                }
                _ => share,
            };
        }
    }
    for (reward, kept) in token_rewards.iter_mut().zip(&mask) {
        if !*kept {
            *reward = masks::poison(u, options.masked_values, OutcomeAdvantage::POISON)?;
        }
    }
    let mut case = OutcomeAdvantageCase { token_rewards, mask, groups: batch.groups.clone() };
    shakedown_core::value::record::round(&mut case, dtype);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    // Without its mask the batch is as good as the one of group-advantage.
    let mut case = columns(&batch.rewards.to_vec(), &batch.groups.to_vec());
    shakedown_core::value::record::round(&mut case, dtype);
    if valid(&case, options, dtype).is_ok() {
        return Ok(case);
    }
    let [lo, hi] = options.reward_range;
    let mut case = columns(&[(lo + hi) / 2.0, hi], &[0, 0]);
    shakedown_core::value::record::round(&mut case, dtype);
    Ok(case)
}

/// Rows of one token each.
fn columns(rewards: &[f64], groups: &[i64]) -> OutcomeAdvantageCase {
    OutcomeAdvantageCase {
        token_rewards: Array1::from(rewards.to_vec()).insert_axis(ndarray::Axis(1)),
        mask: Array2::from_elem((rewards.len(), 1), true),
        groups: groups.to_vec().into(),
    }
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<OutcomeAdvantageCase> {
    let [lo, hi] = options.reward_range;
    let mut cases = Vec::new();
    let one_group: [&[f64]; 20] = [
        &[0.0],
        &[1.0],
        &[0.0, 1.0],
        &[1.0, 0.0],
        &[0.0, 0.0],
        &[1.0, 1.0],
        &[0.0, 2.0],
        &[-1.0, 1.0],
        &[0.0, 0.0, 1.0],
        &[0.0, 1.0, 1.0],
        &[1.0, 0.0, 2.0],
        &[0.1; 3],
        &[0.1; 7],
        &[0.81; 11],
        &[0.95; 7],
        &[lo, hi],
        &[lo, lo, hi],
        &[0.5, 0.501],
        &[0.5, 0.501, 0.503, 0.502],
        &[0.0, 1.0, 2.0, 3.0, 4.0],
    ];
    let far = group::far_end(&options.of_outcomes());
    cases.push(columns(&[far, 1.001 * far, 1.0005 * far], &[0; 3]));
    for rewards in one_group {
        cases.push(columns(rewards, &vec![0; rewards.len()]));
    }
    let groups: [(&[f64], &[i64]); 10] = [
        (&[0.0, 1.0, 1.0, 0.0, 1.0], &[0, 0, 1, 1, 1]),
        (&[0.0, 1.0, 0.0, 0.0], &[0, 0, 1, 1]),
        (&[0.0, 1.0, 0.0, 2.0], &[0, 0, 1, 1]),
        (&[0.0, 1.0, 0.0, 2.0], &[1, 1, 0, 0]),
        (&[0.0, 1.0, 0.0, 2.0], &[7, 7, -3, -3]),
        (&[0.0, 0.0, 1.0, 2.0], &[0, 1, 0, 1]),
        (&[0.0, 1.0, 3.0], &[0, 1, 0]),
        (&[1.0, 0.0, 2.0], &[0, 1, 1]),
        (&[1.0, 2.0], &[0, 1]),
        (&[0.0, 1.0, lo, hi], &[0, 0, 1, 1]),
    ];
    cases.extend(groups.map(|(rewards, groups)| columns(rewards, groups)));
    let mut tokens = |rows: &[(&[f64], &str)], groups: &[i64]| {
        let width = rows[0].0.len();
        let rewards: Vec<f64> = rows.iter().flat_map(|(rewards, _)| *rewards).copied().collect();
        let mask: Vec<bool> =
            rows.iter().flat_map(|(_, mask)| mask.chars().map(|flag| flag == 'o')).collect();
        let shape = (rows.len(), width);
        cases.push(OutcomeAdvantageCase {
            token_rewards: Array2::from_shape_vec(shape, rewards).expect("N·T rewards"),
            mask: Array2::from_shape_vec(shape, mask).expect("N·T flags"),
            groups: groups.to_vec().into(),
        });
    };
    // Padding, also with a reward on it; as many rows as tokens.
    tokens(&[(&[0.0, 1.0], "oo"), (&[0.0, 0.0], "oo")], &[0, 0]);
    tokens(&[(&[1.0, 0.0], "oo"), (&[0.0, 0.0], "ox")], &[0, 0]);
    tokens(&[(&[0.0, 1.0], "xo"), (&[0.0, 0.0], "oo")], &[0, 0]);
    tokens(&[(&[1.0, 1.0], "ox"), (&[1.0, 0.0], "oo")], &[0, 0]);
    tokens(&[(&[0.5, 0.5], "oo"), (&[0.0, 0.0], "oo")], &[0, 0]);
    tokens(&[(&[1.0, 1.0], "oo"), (&[1.0, 0.0], "ox")], &[0, 0]);
    tokens(&[(&[1.0, -1.0], "oo"), (&[1.0, 0.0], "oo")], &[0, 0]);
    tokens(&[(&[1.0, 0.0, 0.0], "oox"), (&[0.0, 0.0, 2.0], "ooo")], &[0, 0]);
    tokens(&[(&[0.5, 7.0, 0.5], "oxo"), (&[0.0, 0.0, 0.5], "ooo")], &[0, 0]);
    tokens(&[(&[1.0, 7.0, 1.0], "oxo"), (&[0.0, 0.0, 1.0], "ooo")], &[0, 0]);
    tokens(
        &[(&[0.0, 0.0, 1.0], "ooo"), (&[0.0, 0.0, 0.0], "oox"), (&[0.0, 2.0, 0.0], "oox")],
        &[0, 0, 0],
    );
    tokens(
        &[(&[0.1, 0.2], "oo"), (&[0.3, 0.0], "oo"), (&[0.2, 0.1], "oo"), (&[0.0, 0.3], "oo")],
        &[0, 0, 0, 0],
    );
    // Rows without a token, with nothing and with an extreme reward on them.
    tokens(&[(&[0.0], "x"), (&[0.0], "x")], &[0, 0]);
    tokens(&[(&[0.0], "x"), (&[1.0], "o")], &[0, 0]);
    tokens(&[(&[0.0], "x"), (&[0.0], "o"), (&[1.0], "o")], &[0, 0, 0]);
    tokens(&[(&[1.0], "o"), (&[1.0], "x"), (&[0.0], "o"), (&[0.0], "o")], &[0, 0, 0, 0]);
    tokens(&[(&[1.0], "o"), (&[1e3], "x"), (&[0.0], "o")], &[0, 0, 0]);
    tokens(&[(&[0.0], "x"), (&[0.0], "x"), (&[0.0], "o"), (&[1.0], "o")], &[0, 0, 1, 1]);
    if options.unscored == Unscored::Exclude {
        let nan = f64::NAN;
        for rewards in [&[nan, 0.0, 1.0][..], &[nan, 1.0, 1.0, 0.0], &[nan, nan], &[1.0, nan]] {
            cases.push(columns(rewards, &vec![0; rewards.len()]));
        }
        cases.push(columns(&[nan, nan, 0.0, 1.0], &[0, 0, 1, 1]));
    }
    if options.masked_values == conventions::MaskedValues::Any {
        for poison in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            let mut case = columns(&[0.0, 1.0], &[0, 0]);
            case.token_rewards = ndarray::arr2(&[[0.0, poison], [1.0, 0.0]]);
            case.mask = ndarray::arr2(&[[true, false], [true, true]]);
            cases.push(case);
        }
    }
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(rows::measure::<OutcomeAdvantage>);
    cases
}

/// The grid's simpler cases, and fewer groups: with a contiguous layout rows go together.
pub(super) fn simpler(case: &OutcomeAdvantageCase, options: &Options) -> Vec<OutcomeAdvantageCase> {
    let members = groups(case);
    let mut candidates = Vec::new();
    if members.len() > 1 {
        for left_out in &members {
            candidates.push(OutcomeAdvantage::take(case, left_out));
            let others: Vec<usize> =
                (0..case.groups.len()).filter(|row| !left_out.contains(row)).collect();
            candidates.push(OutcomeAdvantage::take(case, &others));
        }
    }
    if options.layout == Layout::Contiguous && members[0].len() > 1 {
        for place in 0..members[0].len() {
            let kept: Vec<usize> = members
                .iter()
                .flat_map(|rows| rows.iter().enumerate().filter(|(at, _)| *at != place))
                .map(|(_, row)| *row)
                .collect();
            candidates.push(OutcomeAdvantage::take(case, &kept));
        }
    }
    let mut numbered = case.clone();
    for (number, rows) in members.iter().enumerate() {
        rows.iter().for_each(|row| numbered.groups[*row] = number as i64);
    }
    candidates.push(OutcomeAdvantage::take(&numbered, &members.concat()));
    candidates.push(numbered);
    if options.unscored == Unscored::Exclude {
        let unscored = case.token_rewards.mapv(|_| f64::NAN);
        candidates.push(OutcomeAdvantageCase { token_rewards: unscored, ..case.clone() });
    }
    candidates.extend(rows::simpler::<OutcomeAdvantage>(case));
    candidates
}

/// The outcomes of each group that are not left out, of rows that have tokens.
fn scored_groups(case: &OutcomeAdvantageCase) -> Vec<Vec<f64>> {
    let outcome = |row: &usize| kept(case, *row).sum::<f64>();
    groups(case)
        .iter()
        .map(|rows| rows.iter().filter(|row| !is_empty(case, **row)).map(outcome))
        .map(|outcomes| outcomes.filter(|outcome| !outcome.is_nan()).collect())
        .collect()
}

fn width(outcomes: &[f64]) -> f64 {
    let least = outcomes.iter().copied().fold(f64::INFINITY, f64::min);
    outcomes.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least
}

fn any_group(case: &OutcomeAdvantageCase, is: impl Fn(&[f64]) -> bool) -> bool {
    scored_groups(case).iter().any(|outcomes| is(outcomes))
}

fn any_row(case: &OutcomeAdvantageCase, is: impl Fn(&[f64]) -> bool) -> bool {
    (0..case.groups.len()).any(|row| is(&kept(case, row).collect::<Vec<f64>>()))
}

pub(super) fn classes() -> Vec<Class<OutcomeAdvantage>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let ragged: fn(&Options, Dtype) -> bool = |options, _| options.layout == Layout::Any;
    let lonely: fn(&Options, Dtype) -> bool = |options, _| {
        let undefined = options.baseline == Baseline::None
            && matches!(options.scale, Scale::Std | Scale::BatchStd)
            && (options.ddof == 1 || options.epsilon == 0.0);
        options.singleton != Singleton::Avoid && !undefined
    };
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    let mut classes = laws::masks::classes::<OutcomeAdvantage>();
    for class in &mut classes {
        if class.id == "one-row" {
            class.generated = lonely;
        }
    }
    classes.extend([
        class("singleton", "a group of one outcome", |c, _| any_group(c, |g| g.len() == 1), lonely),
        class(
            "constant-group",
            "a group of two or more equal outcomes",
            |c, _| any_group(c, |g| g.len() > 1 && width(g) == 0.0),
            |options, _| {
                options.baseline != Baseline::None
                    || options.epsilon > 1e-4
                    || !matches!(options.scale, Scale::Std | Scale::BatchStd)
            },
        ),
        class(
            "varied-group",
            "a group whose outcomes differ",
            |c, _| any_group(c, |g| g.len() > 1 && width(g) > 0.0),
            always,
        ),
        class(
            "uneven-groups",
            "groups of different size",
            |c, _| groups(c).windows(2).any(|pair| pair[0].len() != pair[1].len()),
            ragged,
        ),
        class("several-groups", "two groups or more", |c, _| groups(c).len() > 1, always),
        class(
            "interleaved",
            "rows of a group that are not adjacent",
            |c, _| groups(c).iter().any(|g| g.windows(2).any(|p| p[1] != p[0] + 1)),
            ragged,
        ),
        class(
            "reward-at-one-token",
            "a row of two tokens or more, one of which has all the reward",
            |c, _| any_row(c, |r| r.len() > 1 && r.iter().filter(|x| **x != 0.0).count() == 1),
            always,
        ),
        class(
            "spread-reward",
            "a row with rewards other than 0 at two tokens or more",
            |c, _| any_row(c, |r| r.iter().filter(|x| **x != 0.0).count() > 1),
            always,
        ),
        class(
            "masked-reward",
            "a reward other than 0 under the mask",
            |c, _| c.token_rewards.iter().zip(&c.mask).any(|(r, kept)| !kept && *r != 0.0),
            always,
        ),
        class(
            "extreme-empty-row",
            "a row without a token that has a reward of 1000",
            |c, _| {
                (0..c.groups.len()).any(|row| {
                    is_empty(c, row) && c.token_rewards.row(row).iter().any(|r| r.abs() == 1e3)
                })
            },
            always,
        ),
        class(
            "far-off",
            "outcomes that differ by less than a 500th of their size",
            |c, _| any_group(c, is_far_off),
            |options, dtype| {
                group::far_end(&options.of_outcomes()).abs() > 0.5
                    && matches!(dtype, Dtype::F64 | Dtype::F32)
            },
        ),
        class(
            "unscored",
            "a row whose outcome is NaN",
            |c, _| any_row(c, |r| r.iter().any(|x| x.is_nan())),
            |options, _| options.unscored == Unscored::Exclude,
        ),
    ]);
    classes
}
