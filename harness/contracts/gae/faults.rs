//! Known wrong behaviours of `gae`: real bugs, and conventions mistaken for others.

use ndarray::{Array2, Axis};

use super::oracle::EPSILON;
use super::{Gae, GaeCase, GaeOutput, Options, reference};
use shakedown_core::contract::fault::Variant;
use shakedown_core::laws::faults::recursion::{self, Recursive, Step, steps};
use shakedown_core::laws::faults::{masking, precision};
use shakedown_core::numeric::conventions::MaskedTokens;

type Fault = shakedown_core::contract::fault::Fault<Gae>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [places(), discounts(), ends_and_gaps(), whitening()];
    let rounded = precision::inputs_in_half_precision(
        "plausible: autocast left on around the whole computation",
    );
    themes.into_iter().flatten().chain(masking::of_other_rows()).chain([rounded]).collect()
}

/// Values, rewards and masks of other places, and returns of other advantages.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("values-one-step-early", "each token has the value of the state before its own")
            .seen("trl #137 (8070ac041)")
            .on(&[|case, _| case.values = moved(&case.values, &case.mask, 1)]),
        Fault::new("rewards-one-step-early", "each token has the reward of the next one")
            .seen("trlx #401 (a369dad): the terminal reward lands one token early")
            .on(&[|case, _| case.rewards = moved(&case.rewards, &case.mask, -1)]),
        Fault::new(
            "returns-from-stale-advantages",
            "the returns are made before the advantages are, so they are the values",
        )
        .seen("CleanRL #337 (95fcdd75)")
        .gives(&[|case, options, dtype| {
            let right = reference::gae(case, options, dtype);
            GaeOutput { returns: unmasked(&case.values, &case.mask), ..right }
        }]),
        Fault::new(
            "returns-without-lambda",
            "the returns are the discounted sums of rewards, whatever λ is",
        )
        .seen("plausible: the critic's target taken from the contract `returns`")
        .gives(&[|case, options, dtype| {
            let whole = Options { lam: 1.0, whiten: false, ..options.clone() };
            let GaeOutput { returns, .. } = reference::gae(case, &whole, dtype);
            GaeOutput { returns, ..reference::gae(case, options, dtype) }
        }]),
        Fault::new(
            "mask-applied-before-unsorting",
            "rows sorted by length are masked in the order that they had before",
        )
        .seen("verl #1440 (f147ede20)")
        .gives(&[|case, options, _| {
            let whole = GaeCase { mask: by_rank(&case.mask), ..case.clone() };
            finish(&whole, options, right(case, options))
        }]),
    ]
}

/// γ, λ and the terms of a step.
fn discounts() -> Vec<Fault> {
    vec![
        recursion::lambda_not_applied(),
        Fault::new("lambda-fixed", "λ is 0.95 whatever is declared")
            .seen("an option that never reaches the function: the default of every library")
            .under("{lam: 0}")
            .as_if(&[|options| Options { lam: 0.95, ..options }]),
        recursion::carry_left_out(),
        recursion::gamma_not_applied().under("{gamma: 0.9}"),
        Fault::new("next-value-not-discounted", "r + V' − V for r + γV' − V")
            .seen("plausible: a discount left out of the TD error")
            .under("{gamma: 0.9, lam: 1}")
            .made_of([steps(|s| s.reward + s.next - s.value + s.carry())]),
        recursion::carry_decays_without_gamma(),
        Fault::new("value-not-subtracted", "r + γV' for r + γV' − V")
            .seen("plausible: the λ-return stands for the advantage")
            .made_of([steps(|s| s.error() + s.value + s.carry())]),
    ]
}

/// What follows the last token, a gap or a row, and the course of the recursion.
fn ends_and_gaps() -> Vec<Fault> {
    vec![
        Fault::new(
            "pad-value-as-the-next",
            "the value of the next column, masked or not, stands for that of the next token",
        )
        .seen("torchtune estimate_advantages, which needs pads of 0; a mask that is not applied")
        .gives(&[|case, options, _| {
            Gae::recursion(case, options, |s| {
                let next = case.values.get([s.at.0, s.at.1 + 1]).copied().unwrap_or(0.0);
                Step { next: if s.kept { next } else { s.next }, ..*s }.right()
            })
        }]),
        Fault::new(
            "bootstrap-with-the-last-value",
            "the last token's own value stands for the one that follows, which is 0",
        )
        .seen("SB3 #183, #185 (fc952715), the same at the end of a completion")
        .gives(&[|case, options, _| {
            Gae::recursion(case, options, |s| {
                let last = s.kept
                    && !(s.at.1 + 1..case.mask.ncols()).any(|token| case.mask[[s.at.0, token]]);
                Step { next: if last { s.value } else { s.next }, ..*s }.right()
            })
        }]),
        Fault::new("carry-crosses-rows", "the running advantage is not reset between rows")
            .seen("packed batches without document boundaries; torchtune #2613 (b18312c7d)")
            .gives(&[|case, options, _| {
                finish(case, options, carried(case, options, true, Step::right))
            }]),
        Fault::new("reset-at-observation", "the recursion starts anew after a masked token")
            .seen("verl #7278, #7300, the same in GAE")
            .under("{holes: true}")
            .gives(&[|case, options, _| {
                let zero = Options { masked: MaskedTokens::Zero, ..options.clone() };
                let step = |s: &Step| if s.kept { s.right() } else { 0.0 };
                finish(case, options, carried(case, &zero, false, step))
            }]),
        Fault::new(
            "time-passes-at-masked-tokens",
            "masked tokens are steps with reward and value 0, where they are declared to be none",
        )
        .seen("OpenRLHF's convention where verl's is declared")
        .under("{holes: true}")
        .as_if(&[|options| Options { masked: MaskedTokens::Zero, ..options }]),
        Fault::new(
            "masked-tokens-skipped",
            "masked tokens are no steps, where time is declared to pass",
        )
        .seen("verl's convention where OpenRLHF's is declared")
        .under("{holes: true, masked: zero}")
        .as_if(&[|options| Options { masked: MaskedTokens::Skip, ..options }]),
        Fault::new(
            "masked-output-not-zeroed",
            "masked positions hold the running advantage where 0 is promised",
        )
        .seen("verl's GAE and OpenRLHF's, which do not mask again")
        .gives(&[|case, options, dtype| {
            let mut output = reference::gae(case, options, dtype);
            let carried = right(case, options);
            for (at, _) in case.mask.indexed_iter().filter(|(_, kept)| !**kept) {
                output.advantages[at] = carried[at];
                output.returns[at] = carried[at];
            }
            output
        }]),
        Fault::new("recursion-from-the-start", "what came before a token, for what comes after")
            .seen("plausible: a loop that is not reversed")
            .gives(&[|case, options, dtype| {
                let turn = |mut array: Array2<f64>| {
                    array.invert_axis(Axis(1));
                    array.as_standard_layout().into_owned()
                };
                let mut mask = case.mask.clone();
                mask.invert_axis(Axis(1));
                let [rewards, values] = [&case.rewards, &case.values].map(|a| turn(a.clone()));
                let turned = GaeCase { rewards, values, mask };
                let output = reference::gae(&turned, options, dtype);
                (turn(output.advantages), turn(output.returns)).into()
            }]),
        recursion::td_error_clipped(),
    ]
}

/// Whitening where none is declared, none where it is, and with other moments.
fn whitening() -> Vec<Fault> {
    vec![
        Fault::new("whitened-unasked", "the advantages are whitened where that is not declared")
            .seen("a default of another library: verl and TRL PPO always whiten")
            .gives(&[|case, options, _| {
                let whiten = Options { whiten: true, ..options.clone() };
                finish(case, &whiten, right(case, options))
            }]),
        Fault::new(
            "not-whitened",
            "the advantages are left as they are where whitening is declared",
        )
        .seen("an option without effect")
        .under("{whiten: true}")
        .as_if(&[|options| Options { whiten: false, ..options }]),
        Fault::new(
            "returns-of-whitened-advantages",
            "the critic's target is the whitened advantage and the value",
        )
        .seen("plausible: returns made one line too late")
        .under("{whiten: true}")
        .gives(&[|case, options, _| {
            let output = finish(case, options, right(case, options));
            let returns = &output.advantages + &unmasked(&case.values, &case.mask);
            GaeOutput { returns, ..output }
        }]),
        Fault::new("whitened-over-padding", "mean and deviation are those of the padded matrix")
            .seen("trlx, as in `whiten`")
            .under("{whiten: true}")
            .gives(&[|case, options, _| {
                let carried = right(case, options);
                let padded = unmasked(&carried, &case.mask);
                let whole: Vec<f64> = padded.iter().copied().collect();
                planted(case, &carried, &Moments::of(&whole))
            }]),
        Fault::new(
            "whitened-with-ddof-0",
            "the deviation is the biased one, so that one token is enough",
        )
        .seen("OpenRLHF's convention where verl's is declared")
        .under("{whiten: true, empty_mask: refuse}")
        .made_of([whitened(|moments, _| moments.deviation = moments.biased)]),
        Fault::new("whitened-row-by-row", "each row is whitened by itself")
            .seen("OpenRLHF masked_normalize, where the whole batch is declared")
            .under("{whiten: true}")
            .gives(&[|case, options, _| {
                let carried = right(case, options);
                let mut output = finish(case, options, carried.clone());
                for row in 0..case.mask.nrows() {
                    let rows = |array: &Array2<f64>| array.select(Axis(0), &[row]);
                    let alone = GaeCase {
                        rewards: rows(&case.rewards),
                        values: rows(&case.values),
                        mask: case.mask.select(Axis(0), &[row]),
                    };
                    let alone = finish(&alone, options, rows(&carried));
                    output.advantages.row_mut(row).assign(&alone.advantages.row(0));
                }
                output
            }]),
        Fault::new("whitened-without-centring", "divided by the deviation, the mean left in")
            .seen("TRL PPO's shift_mean=False, which is meant for rewards")
            .under("{whiten: true}")
            .made_of([whitened(|moments, _| moments.mean = 0.0)]),
        Fault::new("epsilon-beside-the-root", "σ + 1e-8 for √(var + 1e-8)")
            .seen("SB3 and CleanRL, where verl's convention is declared")
            .under("{whiten: true}")
            .made_of([whitened(|moments, _| moments.deviation = moments.bare + EPSILON)]),
        Fault::new("one-token-unbiased-deviation", "one token over a ddof of 1 is NaN")
            .seen("ROLL #475, #476 (370cb24c)")
            .under("{whiten: true}")
            .made_of([whitened(|moments, count| {
                if count == 1 {
                    moments.deviation = f64::NAN;
                }
            })]),
    ]
}

impl Recursive for Gae {
    fn discounted(options: Options, change: fn(f64, f64) -> (f64, f64)) -> Options {
        let (gamma, lam) = change(options.gamma, options.lam);
        Options { gamma, lam, ..options }
    }

    fn recursion(case: &GaeCase, options: &Options, step: impl Fn(&Step) -> f64) -> GaeOutput {
        finish(case, options, carried(case, options, false, step))
    }
}

/// The right advantages before whitening, and at masked positions what is carried over them.
fn right(case: &GaeCase, options: &Options) -> Array2<f64> {
    carried(case, options, false, Step::right)
}

/// The same with other steps; `crossing` leaves what is carried as it is between rows.
fn carried(
    case: &GaeCase,
    options: &Options,
    crossing: bool,
    step: impl Fn(&Step) -> f64,
) -> Array2<f64> {
    let Options { gamma, lam, .. } = *options;
    let mut carried = Array2::zeros(case.rewards.dim());
    let mut ahead = 0.0;
    for row in 0..carried.nrows() {
        ahead = if crossing { ahead } else { 0.0 };
        let mut next = 0.0;
        for token in (0..carried.ncols()).rev() {
            let (at, kept) = ((row, token), case.mask[[row, token]]);
            if kept || options.masked == MaskedTokens::Zero {
                let (reward, value) =
                    if kept { (case.rewards[at], case.values[at]) } else { (0.0, 0.0) };
                let goes_on = 1.0;
                ahead = step(&Step { at, kept, reward, value, next, ahead, goes_on, gamma, lam });
                next = value;
            }
            carried[at] = ahead;
        }
    }
    carried
}

/// Mean and deviation of some numbers.
struct Moments {
    mean: f64,
    /// √(var + ε), ddof 1.
    deviation: f64,
    /// The same with ddof 0.
    biased: f64,
    /// √var, ddof 1.
    bare: f64,
}

impl Moments {
    /// Those of none are 0 and √ε.
    fn of(numbers: &[f64]) -> Moments {
        let count = numbers.len() as f64;
        let mean = numbers.iter().sum::<f64>() / count.max(1.0);
        let squares: f64 = numbers.iter().map(|x| (x - mean).powi(2)).sum();
        let variance = |ddof: f64| squares / (count - ddof).max(1.0);
        Moments {
            mean,
            deviation: (variance(1.0) + EPSILON).sqrt(),
            biased: (variance(0.0) + EPSILON).sqrt(),
            bare: variance(1.0).sqrt(),
        }
    }
}

/// The numbers of unmasked tokens.
fn kept(numbers: &Array2<f64>, mask: &Array2<bool>) -> Vec<f64> {
    numbers.iter().zip(mask).filter(|(_, kept)| **kept).map(|(x, _)| *x).collect()
}

/// The numbers, 0 where the mask is false.
fn unmasked(numbers: &Array2<f64>, mask: &Array2<bool>) -> Array2<f64> {
    let mut numbers = numbers.clone();
    numbers.zip_mut_with(mask, |x, kept| *x = if *kept { *x } else { 0.0 });
    numbers
}

/// The outputs of advantages that are right, or wrong before they are whitened.
fn finish(case: &GaeCase, options: &Options, carried: Array2<f64>) -> GaeOutput {
    let moments = if options.whiten {
        Moments::of(&kept(&carried, &case.mask))
    } else {
        Moments { mean: 0.0, deviation: 1.0, biased: 1.0, bare: 1.0 }
    };
    planted(case, &carried, &moments)
}

/// The right advantages, whitened with other moments than those of so many.
fn whitened(change: fn(&mut Moments, usize)) -> Variant<Gae> {
    Variant::gives(move |case, options, _| {
        let carried = right(case, options);
        let kept = kept(&carried, &case.mask);
        let mut moments = Moments::of(&kept);
        change(&mut moments, kept.len());
        planted(case, &carried, &moments)
    })
}

/// The outputs of advantages, whitened with the given mean and deviation.
fn planted(case: &GaeCase, carried: &Array2<f64>, moments: &Moments) -> GaeOutput {
    let whitened = carried.mapv(|x| (x - moments.mean) / moments.deviation);
    let returns = carried + &unmasked(&case.values, &case.mask);
    (unmasked(&whitened, &case.mask), unmasked(&returns, &case.mask)).into()
}

/// Each token's number replaced by that of the token before it (1) or after it (-1) in its row; 0
/// where there is none.
fn moved(numbers: &Array2<f64>, mask: &Array2<bool>, steps: isize) -> Array2<f64> {
    let mut moved = numbers.clone();
    for row in 0..mask.nrows() {
        let kept: Vec<usize> = (0..mask.ncols()).filter(|token| mask[[row, *token]]).collect();
        for (at, token) in kept.iter().enumerate() {
            let from = at.checked_add_signed(-steps).and_then(|from| kept.get(from));
            moved[[row, *token]] = from.map_or(0.0, |from| numbers[[row, *from]]);
        }
    }
    moved
}

/// For each row the mask of the row whose number is its rank by length, the longest first, where
/// its own is true too.
fn by_rank(mask: &Array2<bool>) -> Array2<bool> {
    let mut order: Vec<usize> = (0..mask.nrows()).collect();
    let length = |row: &usize| mask.row(*row).iter().filter(|kept| **kept).count();
    order.sort_by_key(|row| std::cmp::Reverse(length(row)));
    let mut ranked = mask.clone();
    for (rank, row) in order.iter().enumerate() {
        let other = mask.row(rank);
        ranked.row_mut(*row).zip_mut_with(&other, |own, other| *own &= *other);
    }
    ranked
}
