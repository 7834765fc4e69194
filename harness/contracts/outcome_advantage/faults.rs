//! Known wrong behaviours of `outcome-advantage`: wrong sums, wrong places, and those of
//! `group-advantage` on the right outcomes.

use ndarray::Array2;

use super::super::group_advantage::{GroupAdvantage, GroupAdvantageCase, GroupAdvantageOutput};
use super::{
    EmptyRows, Options, OutcomeAdvantage, OutcomeAdvantageCase, OutcomeAdvantageOutput, is_empty,
    kept, outcomes, reference, spread,
};
use shakedown_core::contract::Contract;
use shakedown_core::contract::erased;
use shakedown_core::contract::fault::{self, AnyFault, AnyFunction};
use shakedown_core::laws::faults::{masking, precision};
use shakedown_core::value::place::Dtype;

type Fault = fault::Fault<OutcomeAdvantage>;
type Variant = fault::Variant<OutcomeAdvantage>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [rows(), sums(), tokens(), of_groups()];
    let rounded = precision::inputs_in_half_precision(
        "plausible: autocast left on around the whole computation",
    );
    themes.into_iter().flatten().chain(masking::of_other_rows()).chain([rounded]).collect()
}

/// Outcomes of other rows, and of rewards that are masked.
fn rows() -> Vec<Fault> {
    vec![
        Fault::new(
            "row-advantage-along-columns",
            "position (i, t) gets the advantage of row t; shows where N = T, and raises elsewhere",
        )
        .seen("trl 4db63af98; trl #6095")
        .gives(&[|case, options, dtype| {
            let right = reference::advantages(case, options, dtype).advantages;
            let by_row = by_row(case, options, dtype, |rewards| rewards.sum());
            if !case.mask.is_square() {
                return right.into();
            }
            let along = Array2::from_shape_fn(case.mask.dim(), |(_, token)| by_row[token]);
            masked(case, along).into()
        }]),
        Fault::new(
            "outcome-sums-masked-rewards",
            "the outcome is the sum of all rewards of the row, masked ones too",
        )
        .seen("verl #6362, #6310")
        .gives(&[|case, options, dtype| {
            let everything = Array2::from_elem(case.mask.dim(), true);
            let unmasked = OutcomeAdvantageCase { mask: everything, ..case.clone() };
            masked(case, reference::advantages(&unmasked, options, dtype).advantages).into()
        }]),
        Fault::new(
            "excluded-row-in-the-statistics",
            "a row without a token counts with outcome 0 where it is declared to be left out",
        )
        .seen("NeMo-RL #4061, #3467; AReaL #1351")
        .under("{empty_rows: exclude}")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Count, ..options }]),
        Fault::new(
            "excluded-reward-in-the-statistics",
            "a row without a token counts with the rewards under its mask",
        )
        .seen("AReaL #1351")
        .under("{empty_rows: exclude}")
        .gives(&[|case, options, dtype| {
            let mut unmasked = case.clone();
            for row in (0..case.groups.len()).filter(|row| is_empty(case, *row)) {
                unmasked.mask.row_mut(row).fill(true);
            }
            masked(case, reference::advantages(&unmasked, options, dtype).advantages).into()
        }]),
        Fault::new(
            "empty-row-left-out",
            "a row without a token is left out where it is declared to count",
        )
        .seen("NeMo-RL's convention where verl's is declared")
        .as_if(&[|options| Options { empty_rows: EmptyRows::Exclude, ..options }]),
    ]
}

/// Other outcomes than the sum of the rewards.
fn sums() -> Vec<Fault> {
    vec![
        Fault::new(
            "outcome-is-the-mean",
            "the mean of the token rewards for their sum: long completions are scored down",
        )
        .seen("aggregation slip: `masked_mean` where the sum under the mask is meant")
        .made_of([
            summed(|rewards, _| {
                let rewards: Vec<f64> = rewards.collect();
                rewards.iter().sum::<f64>() / rewards.len().max(1) as f64
            }),
            summed(|rewards, width| rewards.sum::<f64>() / width as f64),
        ]),
        Fault::new(
            "outcome-is-the-last-reward",
            "the reward of the last token that counts, for the sum of the row",
        )
        .seen("verl's placement of outcome rewards taken for granted")
        .made_of([summed(|rewards, _| rewards.last().unwrap_or(0.0))]),
        Fault::new(
            "outcome-is-the-last-column",
            "the reward of the last column, padding or not: `token_rewards[:, -1]`",
        )
        .seen("rewards read at -1 on right-padded batches")
        .gives(&[|case, options, dtype| {
            let mut last = case.clone();
            last.mask = Array2::from_elem(case.mask.dim(), true);
            let before = case.mask.ncols() - 1;
            (0..before).for_each(|token| last.token_rewards.column_mut(token).fill(0.0));
            masked(case, reference::advantages(&last, options, dtype).advantages).into()
        }]),
        Fault::new(
            "first-token-left-out",
            "the sum begins at the second token: `token_rewards[:, 1:]`",
        )
        .seen("off by one, compare trl #2332")
        .on(&[|case, _| case.token_rewards.column_mut(0).fill(0.0)]),
        Fault::new("outcome-is-the-largest-reward", "the largest reward of the row for the sum")
            .seen("`max` where `sum` is meant, as for binary rewards both agree")
            .made_of([summed(|rewards, _| rewards.reduce(f64::max).unwrap_or(0.0))]),
    ]
}

/// The right outcomes at the wrong tokens.
fn tokens() -> Vec<Fault> {
    vec![
        Fault::new(
            "advantage-at-the-last-token-only",
            "the advantage stands at the last token of its row and nowhere else",
        )
        .seen("outcome rewards written back as token rewards")
        .gives(&[|case, options, dtype| {
            let mut advantages = reference::advantages(case, options, dtype).advantages;
            for (row, mut advantages) in advantages.rows_mut().into_iter().enumerate() {
                let last = case.mask.row(row).iter().rposition(|kept| *kept);
                for (token, advantage) in advantages.iter_mut().enumerate() {
                    *advantage = if Some(token) == last { *advantage } else { 0.0 };
                }
            }
            advantages.into()
        }]),
        Fault::new(
            "tokens-keep-their-own-reward",
            "each token's own reward is centred and scaled, not the outcome of its row",
        )
        .seen("process rewards where outcome rewards are declared")
        .gives(&[|case, options, dtype| {
            let mut own = reference::advantages(case, options, dtype).advantages;
            for token in 0..case.mask.ncols() {
                let mut alone = case.clone();
                for (mut rewards, mask) in
                    alone.token_rewards.rows_mut().into_iter().zip(case.mask.rows())
                {
                    let reward = if mask[token] { rewards[token] } else { 0.0 };
                    let first = mask.iter().position(|kept| *kept);
                    rewards.fill(0.0);
                    first.into_iter().for_each(|first| rewards[first] = reward);
                }
                let advantages = reference::advantages(&alone, options, dtype).advantages;
                own.column_mut(token).assign(&advantages.column(token));
            }
            own.into()
        }]),
        Fault::new("divided-by-the-length", "the advantage is shared among the tokens of its row")
            .seen("GRPO's 1/|o| moved from the loss into the advantage")
            .gives(&[|case, options, dtype| {
                let mut advantages = reference::advantages(case, options, dtype).advantages;
                for (row, mut advantages) in advantages.rows_mut().into_iter().enumerate() {
                    advantages /= kept(case, row).count().max(1) as f64;
                }
                advantages.into()
            }]),
        Fault::new(
            "masked-output-not-zeroed",
            "masked positions hold the advantage of their row where 0 is promised",
        )
        .seen("`unsqueeze(-1).expand` without the mask, compare verl #1527")
        .gives(&[|case, options, dtype| {
            let by_row = by_row(case, options, dtype, |rewards| rewards.sum());
            Array2::from_shape_fn(case.mask.dim(), |(row, _)| by_row[row]).into()
        }]),
        Fault::new(
            "rows-weighted-by-length",
            "mean and deviation over the tokens, so that a long row counts more than a short one",
        )
        .seen("statistics taken after the outcome was spread over the tokens")
        .gives(&[|case, options, dtype| {
            // A row of n tokens is n rows.
            let right = outcomes(case, options, |rewards| rewards.sum());
            let counts: Vec<usize> =
                (0..case.groups.len()).map(|row| kept(case, row).count()).collect();
            let repeat = |row: usize| std::iter::repeat_n(row, counts[row]);
            let rows: Vec<usize> = (0..counts.len()).flat_map(repeat).collect();
            if rows.is_empty() {
                return Array2::<f64>::zeros(case.mask.dim()).into();
            }
            let many = GroupAdvantageCase {
                rewards: rows.iter().map(|row| right.rewards[*row]).collect(),
                groups: rows.iter().map(|row| right.groups[*row]).collect(),
            };
            let weighted = (GroupAdvantage::PARTS.reference)(&many, &options.of_outcomes(), dtype);
            let mut by_row = vec![0.0; counts.len()];
            for (row, advantage) in rows.into_iter().zip(weighted.advantages) {
                by_row[row] = advantage;
            }
            spread(&case.mask, &by_row, 0.0).into()
        }]),
    ]
}

/// The faults of `group-advantage` that are faults here too, on the right outcomes.
fn of_groups() -> Vec<Fault> {
    [
        "mean-over-std-precedence",
        "group-stride-applied-twice",
        "every-row-its-own-group",
        "one-row-unbiased-deviation",
        "baseline-missing",
        "epsilon-swallows-the-signal",
        "epsilon-of-another-size",
        "epsilon-missing",
        "residue-of-a-rounded-mean",
        "epsilon-clamped-for-added",
        "biased-for-unbiased-deviation",
        "divided-by-the-variance",
        "not-divided",
        "divided-although-not-declared",
        "groups-ignored",
        "batch-deviation-for-the-group-s",
        "groups-assumed-contiguous",
        "rows-in-group-order",
        "sign-flipped",
        "sum-for-mean",
        "own-reward-in-the-baseline",
        "leave-one-out-divided-by-the-group-size",
        "singleton-keeps-its-reward",
        "singleton-gets-zero",
        "constant-group-keeps-its-reward",
        "rewards-truncated-to-integers",
        "unscored-counted-as-zero",
        "unscored-spoils-its-group",
        "negative-advantages-dropped",
        "last-row-left-out-of-the-statistics",
    ]
    .map(inherited)
    .into()
}

/// The fault of this name of `group-advantage`.
fn inherited(id: &'static str) -> Fault {
    let fault = erased::of::<GroupAdvantage>().fault(id).expect("inherited faults exist");
    let AnyFault { summary, source, options, .. } = *fault;
    let made = |variant: &'static AnyFunction| {
        Variant::gives(move |case: &_, options, dtype| on_outcomes(case, options, dtype, variant))
    };
    Fault::new(id, summary).seen(source).under(options).made_of(fault.variants().iter().map(made))
}

/// What a fault of `group-advantage` makes of the right outcomes.
fn on_outcomes(
    case: &OutcomeAdvantageCase,
    options: &Options,
    dtype: Dtype,
    wrong: &AnyFunction,
) -> OutcomeAdvantageOutput {
    let right = outcomes(case, options, |rewards| in_arithmetic(dtype, rewards));
    let output = wrong.output(&right, &options.of_outcomes(), dtype);
    let output: &GroupAdvantageOutput = output.typed();
    spread(&case.mask, output.advantages.as_slice().expect("one row of numbers"), 0.0).into()
}

/// The sum as the dtype's arithmetic gives it.
fn in_arithmetic(dtype: Dtype, rewards: &mut dyn Iterator<Item = f64>) -> f64 {
    rewards.fold(0.0, |sum, reward| dtype.arithmetic().round(sum + reward))
}

/// The right advantages of wrong outcomes, row by row.
fn by_row(
    case: &OutcomeAdvantageCase,
    options: &Options,
    dtype: Dtype,
    outcome: impl Fn(&mut dyn Iterator<Item = f64>) -> f64,
) -> Vec<f64> {
    let outcomes = outcomes(case, options, outcome);
    (GroupAdvantage::PARTS.reference)(&outcomes, &options.of_outcomes(), dtype).advantages.to_vec()
}

/// The right advantages of wrong outcomes: of the rewards that count, in rows of such a width.
fn summed(outcome: fn(&mut dyn Iterator<Item = f64>, usize) -> f64) -> Variant {
    Variant::gives(move |case: &OutcomeAdvantageCase, options: &Options, dtype| {
        let outcome = |rewards: &mut dyn Iterator<Item = f64>| outcome(rewards, case.mask.ncols());
        spread(&case.mask, &by_row(case, options, dtype, outcome), 0.0).into()
    })
}

/// 0 where the mask is false.
fn masked(case: &OutcomeAdvantageCase, mut advantages: Array2<f64>) -> Array2<f64> {
    advantages.zip_mut_with(&case.mask, |advantage, kept| {
        *advantage = if *kept { *advantage } else { 0.0 };
    });
    advantages
}
