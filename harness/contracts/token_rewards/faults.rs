//! Known wrong behaviours of `token-rewards`: real bugs, and conventions mistaken for others.

use ndarray::{Array1, Array2, Axis, arr0};

use super::{
    KlEstimator, Options, Place, Report, TokenRewards, TokenRewardsCase, TokenRewardsOutput,
    Unfinished, reference,
};
use shakedown_core::contract::fault;
use shakedown_core::laws::faults::masking;
use shakedown_core::numeric::conventions::{EmptyMask, EmptyRows, MaskedValues};
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

type Fault = fault::Fault<TokenRewards>;
type Variant = fault::Variant<TokenRewards>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [penalty(), estimators(), clamps(), masks(), places(), scores(), reports()];
    themes.into_iter().flatten().chain(masking::of_other_rows()).collect()
}

/// What a token pays: nothing, too much, for another one, with the other sign.
fn penalty() -> Vec<Fault> {
    vec![
        Fault::new("kl-left-out", "the rewards are the score alone: β is never read")
            .seen("slime f6f46cb17")
            .as_if(&[|options| Options { beta: 0.0, ..options }]),
        Fault::new("penalty-added", "score + β·kl for score - β·kl: distance is rewarded")
            .seen("a sign lost between a cost and a reward")
            .made_of([paid(|step| step.kl.mapv_inplace(|kl| -kl))]),
        Fault::new("beta-left-out", "each token pays its whole divergence, as with β = 1")
            .seen("a coefficient applied to the loss and forgotten in the reward")
            .as_if(&[|options| Options { beta: 1.0, ..options }]),
        Fault::new("beta-twice", "the coefficient is applied to the divergence and to the penalty")
            .seen("a KL that was scaled where it was made, and scaled again")
            .as_if(&[|options| Options { beta: options.beta * options.beta, ..options }]),
        Fault::new(
            "kl-of-another-row",
            "rows of the second half pay the divergence of the rows of the first",
        )
        .seen("ms-swift #9921 (e7b50c398): values gathered once more")
        .made_of([paid(|step| {
            let half = step.kl.nrows().div_ceil(2);
            for row in half..step.kl.nrows() {
                let first = step.kl.row(row - half).to_owned();
                step.kl.row_mut(row).assign(&first);
            }
            let mask = step.case.mask.mapv(f64::from);
            step.kl = &step.kl * &mask;
        })]),
        Fault::new("kl-of-the-next-row", "rows pay the divergence of a neighbour, or of the first")
            .seen("LLaMA-Factory #7576, verl #1943: numbers of other rows; broadcasting row 0")
            .made_of([
                of_row(|row, rows| (row + 1) % rows),
                of_row(|row, rows| (row + rows - 1) % rows),
                of_row(|_, _| 0),
                of_row(|row, rows| rows - 1 - row),
            ]),
        Fault::new("rows-in-another-order", "the reference's rows stand in the reverse order")
            .seen("verl #1943: results left in the order by length")
            .on(&[|case, options| {
                if options.masked_values == MaskedValues::Finite {
                    case.ref_log_probs.invert_axis(Axis(0));
                }
            }]),
        Fault::new(
            "reference-off-by-one",
            "the reference's log-probabilities are those of a neighbour",
        )
        .seen("trl #2058 (a5b98fcf9): shifted in one of two forward passes")
        .on(&[
            |case, _| shift(&mut case.ref_log_probs, 1),
            |case, _| {
                shift(&mut case.ref_log_probs, -1);
            },
        ]),
        Fault::new("mean-of-the-row", "every token pays the mean of its row")
            .seen("kl.mean(-1, keepdim=True), broadcast")
            .made_of([paid(|step| {
                for row in 0..step.kl.nrows() {
                    let kept = step.case.mask.row(row).mapv(f64::from);
                    let mean = step.kl.row(row).sum() / kept.sum().max(1.0);
                    step.kl.row_mut(row).assign(&(mean * &kept));
                }
            })]),
        Fault::new("all-at-the-end", "the whole penalty of a row stands where its score does")
            .seen("sequence-level rewards: score - β·Σkl as one number; OpenRLHF's `reward` mode")
            .made_of([paid(|step| {
                let sums = step.kl.sum_axis(Axis(1));
                step.kl.fill(0.0);
                for (row, column) in step.columns.iter().enumerate() {
                    if let Some(column) = column {
                        step.kl[[row, *column]] = sums[row];
                    }
                }
            })]),
        Fault::new(
            "penalty-over-the-length",
            "each token pays its divergence over the row's length",
        )
        .seen("a mean over tokens in the reward, where each pays its own")
        .made_of([paid(|step| {
            for row in 0..step.kl.nrows() {
                let tokens = step.case.mask.row(row).mapv(f64::from).sum().max(1.0);
                step.kl.row_mut(row).mapv_inplace(|kl| kl / tokens);
            }
        })]),
        Fault::new("penalty-added-up", "each token pays for all before it too")
            .seen("a cumulated penalty, cumulated again by the returns")
            .made_of([paid(|step| {
                for row in 0..step.kl.nrows() {
                    let mut sum = 0.0;
                    for token in 0..step.kl.ncols() {
                        sum += step.kl[[row, token]];
                        step.kl[[row, token]] =
                            if step.case.mask[[row, token]] { sum } else { 0.0 };
                    }
                }
            })]),
        Fault::new("penalty-of-what-comes", "each token pays for all after it too")
            .seen("the penalty turned into a return before the returns are made of the rewards")
            .made_of([paid(|step| {
                for row in 0..step.kl.nrows() {
                    let mut sum = 0.0;
                    for token in (0..step.kl.ncols()).rev() {
                        sum += step.kl[[row, token]];
                        step.kl[[row, token]] =
                            if step.case.mask[[row, token]] { sum } else { 0.0 };
                    }
                }
            })]),
        Fault::new("end-does-not-pay", "the token that has the score pays nothing")
            .seen("`rewards[last] = score` for `+=`")
            .made_of([paid(|step| {
                for (row, column) in step.columns.iter().enumerate() {
                    if let Some(column) = column {
                        step.kl[[row, *column]] = 0.0;
                    }
                }
            })]),
        Fault::new("first-token-does-not-pay", "the first token of each row pays nothing")
            .seen("verl #3287 (2d6c6dbb3): one token short")
            .made_of([paid(|step| {
                for (row, mask) in step.case.mask.rows().into_iter().enumerate() {
                    if let Some(first) = mask.iter().position(|kept| *kept) {
                        step.kl[[row, first]] = 0.0;
                    }
                }
            })]),
    ]
}

/// Another estimator than the declared one, or one of its terms lost.
fn estimators() -> Vec<Fault> {
    vec![
        Fault::new("half-is-missing", "k2 is d², not d²/2")
            .seen("F.mse_loss for half a square")
            .under("{kl_estimator: k2}")
            .made_of([paid_and_reported(|step| {
                if step.options.kl_estimator == KlEstimator::K2 && step.options.kl_clamp.is_none() {
                    step.kl.mapv_inplace(|kl| 2.0 * kl);
                }
            })]),
        Fault::new("direction-reversed", "k1 of ref - policy")
            .seen("trl #168: old and new the wrong way round")
            .on(&[|case, _| std::mem::swap(&mut case.log_probs, &mut case.ref_log_probs)]),
        Fault::new("k3-for-the-declared", "k3 whatever is declared")
            .seen("an estimator that is read for the loss alone")
            .as_if(&[|options| Options { kl_estimator: KlEstimator::K3, ..options }]),
        Fault::new("k1-for-the-declared", "k1 whatever is declared")
            .seen("trl PPO before `kl_estimator` was read")
            .under("{kl_estimator: k3}")
            .as_if(&[|options| Options { kl_estimator: KlEstimator::K1, ..options }]),
        Fault::new("k2-for-the-declared", "k2 whatever is declared")
            .seen("open-instruct: kl1 is k2, counted from zero")
            .under("{kl_estimator: k3}")
            .as_if(&[|options| Options { kl_estimator: KlEstimator::K2, ..options }]),
        Fault::new("negative-estimates-dropped", "estimates of k1 below 0 become 0, or positive")
            .seen("\"a KL cannot be negative\": kl.clamp(min=0), or abs")
            .made_of([
                paid_and_reported(|step| step.kl.mapv_inplace(|kl| kl.max(0.0))),
                paid_and_reported(|step| step.kl.mapv_inplace(f64::abs)),
            ]),
        Fault::new("one-is-missing", "k3 without its - 1: a token pays where nothing moved")
            .seen("Schulman 2020: (r - 1) - log r; here r - log r")
            .under("{kl_estimator: k3}")
            .made_of([paid_and_reported(|step| {
                if step.options.kl_estimator == KlEstimator::K3 {
                    let mask = step.case.mask.mapv(f64::from);
                    step.kl = &step.kl + &mask;
                }
            })]),
        Fault::new(
            "weighted-by-the-probability",
            "the divergence is p·d, the term of a sum over V",
        )
        .seen("F.kl_div's pointwise term for an estimate on samples")
        .made_of([paid_and_reported(|step| {
            let p = step.case.log_probs.mapv(f64::exp);
            ndarray::Zip::from(&mut step.kl)
                .and(&p)
                .and(&step.case.mask)
                .for_each(|kl, p, kept| *kl = if *kept { *kl * p } else { 0.0 });
        })]),
        Fault::new(
            "k3-with-the-other-sign",
            "k3 is exp(-d) - 1 - d: its terms are of two directions",
        )
        .seen("Schulman 2020: (r - 1) - log r, with r and log r of opposite ratios")
        .under("{kl_estimator: k3}")
        .made_of([paid_and_reported(|step| {
            if step.options.kl_estimator == KlEstimator::K3 && step.options.kl_clamp.is_none() {
                let k1 = Options { kl_estimator: KlEstimator::K1, ..step.options() };
                let d = reference::divergences(step.case, &k1, step.dtype);
                step.kl = &step.kl - &(2.0 * d);
            }
        })]),
        Fault::new("log-ratio-left-out", "k3 is exp(-d) - 1: its log-ratio is missing")
            .seen("Schulman 2020: (r - 1) - log r; here r - 1, which has an expectation of 0")
            .under("{kl_estimator: k3}")
            .made_of([paid_and_reported(|step| {
                if step.options.kl_estimator == KlEstimator::K3 && step.options.kl_clamp.is_none() {
                    let k1 = Options { kl_estimator: KlEstimator::K1, ..step.options() };
                    step.kl = &step.kl - &reference::divergences(step.case, &k1, step.dtype);
                }
            })]),
        Fault::new("kl-in-half-precision", "the log-probabilities are rounded to bf16 first")
            .seen("OpenRLHF #620 (f34ef60a)")
            .on(&[|case, _| {
                let (scores, finished) = (case.scores.clone(), case.finished.clone());
                round(case, Dtype::Bf16);
                (case.scores, case.finished) = (scores, finished);
            }]),
    ]
}

/// Clamps without effect, in the wrong place, or that nobody declared.
fn clamps() -> Vec<Fault> {
    vec![
        Fault::new("clamped-after-the-coefficient", "β·kl is clamped, not kl")
            .seen("mutation: [β·kl] for β·[kl]")
            .under("{beta: 0.1, kl_clamp: [-0.3, 5]}")
            .made_of([paid(|step| {
                let Some([lo, hi]) = step.options.kl_clamp else { return };
                let free = Options { kl_clamp: None, ..step.options() };
                let beta = step.options.beta;
                if beta > 0.0 {
                    step.kl = reference::divergences(step.case, &free, step.dtype)
                        .mapv(|kl| (beta * kl).clamp(lo, hi) / beta);
                }
            })]),
        Fault::new("kl-clamp-ignored", "the divergence is not clamped")
            .seen("slime: ±10 for low_var_kl only, where it is declared for all")
            .under("{kl_clamp: [-10, 10]}")
            .as_if(&[|options| Options { kl_clamp: None, ..options }]),
        Fault::new("kl-clamped-above-only", "the lower bound of the clamp is missing")
            .seen("kl.clamp(max=10) for estimators that may be negative")
            .under("{kl_clamp: [-0.3, 5]}")
            .as_if(&[|options| {
                let kl_clamp = options.kl_clamp.map(|[_, hi]| [-1e30, hi]);
                Options { kl_clamp, ..options }
            }]),
        Fault::new("kl-clamped-at-zero", "the lower bound of the clamp is 0")
            .seen("kl.clamp(0, max), since a KL cannot be negative")
            .under("{kl_clamp: [-0.3, 5]}")
            .as_if(&[|options| {
                let kl_clamp = options.kl_clamp.map(|[_, hi]| [0.0, hi]);
                Options { kl_clamp, ..options }
            }]),
        Fault::new("beyond-the-clamp-dropped", "a divergence beyond the clamp is 0")
            .seen("masking for clamping: the two ways to hold a ratio")
            .under("{kl_clamp: [-0.3, 5]}")
            .made_of([paid_and_reported(|step| {
                if let Some([lo, hi]) = step.options.kl_clamp {
                    let free = Options { kl_clamp: None, ..step.options() };
                    step.kl = reference::divergences(step.case, &free, step.dtype)
                        .mapv(|kl| if lo <= kl && kl <= hi { kl } else { 0.0 });
                }
            })]),
        Fault::new("rewards-clamped", "the clamp of the divergence holds the finished rewards")
            .seen("one `clamp` behind the sum of score and penalty")
            .under("{kl_clamp: [-0.3, 5]}")
            .gives(&[|case, options, dtype| {
                let free = Options { kl_clamp: None, ..options.clone() };
                let mut output = reference::token_rewards(case, &free, dtype);
                if let Some([lo, hi]) = options.kl_clamp {
                    output.rewards.mapv_inplace(|reward| reward.clamp(lo, hi));
                }
                output
            }]),
        Fault::new("log-ratio-clamped-on-one-side", "the log-ratio is held above alone, or below")
            .seen("clamp(min=-10) before the exponential of k3, for every estimator")
            .under("{log_ratio_clamp: 5}")
            .gives(&[
                |case, options, dtype| held(case, options, dtype, |d, c| d.min(c)),
                |case, options, dtype| held(case, options, dtype, |d, c| d.max(-c)),
            ]),
        Fault::new("kl-clamped-although-not-declared", "the divergence is clamped to ±10, or ±5")
            .seen("verl's and OpenRLHF's 10 where null is declared")
            .as_if(&[|options| clamped_to(options, 10.0), |options| clamped_to(options, 5.0)]),
        Fault::new("log-ratio-clamp-ignored", "the log-ratio is not clamped")
            .seen("verl #1779, before the fix")
            .under("{log_ratio_clamp: 5}")
            .as_if(&[|options| Options { log_ratio_clamp: None, ..options }]),
        Fault::new(
            "log-ratio-clamp-on-the-result",
            "the bound of the log-ratio is put on the divergence",
        )
        .seen("two clamps of one pair of options, of which the wrong one is read")
        .under("{kl_estimator: k2, log_ratio_clamp: 5}")
        .as_if(&[|options| {
            let kl_clamp = options.log_ratio_clamp.map(|c| [-c, c]).or(options.kl_clamp);
            Options { log_ratio_clamp: None, kl_clamp, ..options }
        }]),
    ]
}

/// Tokens that pay and were not sampled, and the reverse.
fn masks() -> Vec<Fault> {
    vec![
        Fault::new(
            "masked-tokens-pay",
            "tokens of a tool, between the first and the last of the policy, pay too",
        )
        .seen("slime #1372 (166441911), #1370; miles #1383")
        .under("{holes: true}")
        .made_of([with_mask(|mask, (row, token)| {
            let row = mask.row(row);
            let last = row.iter().rposition(|kept| *kept);
            let first = row.iter().position(|kept| *kept);
            first.is_some_and(|first| first <= token) && last.is_some_and(|last| token <= last)
        })]),
        Fault::new("pads-pay", "every column pays")
            .seen("trl #7024: nothing is masked")
            .made_of([with_mask(|_, _| true)]),
        Fault::new("mask-off-by-one", "the mask is that of a neighbour")
            .seen("verl #3287 (2d6c6dbb3); trlx #108 (8edcd9d)")
            .made_of([
                with_mask(|mask, (row, token)| token > 0 && mask[[row, token - 1]]),
                with_mask(|mask, (row, token)| token + 1 < mask.ncols() && mask[[row, token + 1]]),
            ]),
        Fault::new("tokens-after-a-gap-do-not-pay", "a row ends at its first masked column")
            .seen("lengths for masks: arange < mask.sum()")
            .under("{holes: true}")
            .made_of([with_mask(|mask, (row, token)| {
                let row = mask.row(row);
                let tokens = row.iter().filter(|kept| **kept).count();
                let first = row.iter().position(|kept| *kept).unwrap_or(0);
                token >= first && token < first + tokens && row[token]
            })]),
        Fault::new("masked-after-the-arithmetic", "NaN under the mask survives the product with 0")
            .seen("trl #5594 (43e09b8fb)")
            .under("{masked_values: any}")
            .gives(&[|case, options, dtype| {
                let mut output = reference::token_rewards(case, options, dtype);
                for (at, kept) in case.mask.indexed_iter() {
                    let d = case.log_probs[at] - case.ref_log_probs[at];
                    if !kept && !d.is_finite() {
                        output.rewards[at] = f64::NAN;
                        output.kl = Some(arr0(f64::NAN));
                    }
                }
                output
            }]),
    ]
}

/// The score in another column, in several, or nowhere.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("score-in-the-last-column", "the score stands in the last column, pad or not")
            .seen("`rewards[:, -1] += score` on right-padded rows")
            .made_of([at(|step, _, _| Some(step.kl.ncols() - 1))]),
        Fault::new("score-by-the-length", "the score's column is the number of tokens less one")
            .seen("`mask.sum(-1) - 1`, which is right for right padding alone")
            .made_of([at(|step, row, place| {
                let tokens = step.case.mask.row(row).iter().filter(|kept| **kept).count();
                place.and(tokens.checked_sub(1))
            })]),
        Fault::new("score-before-the-gap", "the score stands before the first gap of its row")
            .seen("argmin of the mask: the first masked column for the last unmasked one")
            .under("{holes: true}")
            .made_of([at(|step, row, place| {
                let mask = step.case.mask.row(row);
                let first = mask.iter().position(|kept| *kept)?;
                let gap = (first..mask.len()).find(|token| !mask[*token]);
                gap.map(|gap| gap - 1).or(place)
            })]),
        Fault::new("score-at-the-first-token", "the score stands at the first token of its row")
            .seen("argmax of the mask for its last 1")
            .made_of([at(|step, row, _| step.case.mask.row(row).iter().position(|kept| *kept))]),
        Fault::new("score-at-both-ends", "the score stands at the first token too")
            .seen("mutation: `rewards[:, [0, -1]] += score`")
            .gives(&[|case, options, dtype| {
                let step = Step::of(case, options, dtype);
                let mut rewards = step.rewards();
                for (row, score) in step.scores.iter().enumerate() {
                    let first = case.mask.row(row).iter().position(|kept| *kept);
                    if let Some(first) = first {
                        rewards[[row, first]] += score;
                    }
                }
                TokenRewardsOutput { rewards, kl: Some(arr0(step.report())) }
            }]),
        Fault::new("score-one-late", "the score stands after the last token, where there is room")
            .seen("trl #3750: a port of the original code, contested")
            .as_if(&[|options| Options { place: Place::AfterLast, ..options }]),
        Fault::new("score-one-early", "the score stands at the last token, not after it")
            .seen("trl's PPO port, corrected where `after-last` is declared")
            .under("{place: after-last}")
            .as_if(&[|options| Options { place: Place::Last, ..options }]),
        Fault::new("score-before-the-last-token", "the score stands one column before its place")
            .seen("one taken off an index of the last token, as if it were a length")
            .made_of([
                at(|_, _, place| place.map(|place| place.saturating_sub(1))),
                at(|_, _, place| place.and_then(|place| place.checked_sub(1))),
            ]),
        Fault::new("full-row-loses-its-score", "a row without room behind it gets no score")
            .seen("an index of T, dropped by a scatter; trl clamps it")
            .under("{place: after-last}")
            .made_of([at(|step, row, place| {
                let mask = step.case.mask.row(row);
                let full = mask[mask.len() - 1] && step.options.place == Place::AfterLast;
                place.filter(|_| !full)
            })]),
        Fault::new("empty-row-gets-its-score", "a row without a token gets its score")
            .seen("index -1, or argmax of zeros: the last column, or the first")
            .made_of([
                at(|step, _, place| place.or(Some(step.kl.ncols() - 1))),
                at(|_, _, place| place.or(Some(0))),
            ]),
        Fault::new("score-at-every-token", "each token gets the whole score")
            .seen("broadcasting `[N, 1]` over `[N, T]`")
            .gives(&[|case, options, dtype| everywhere(case, options, dtype, |_| 1.0)]),
        Fault::new("score-spread", "the score is divided among the tokens of its row")
            .seen("a dense reward where a sparse one is declared")
            .gives(&[|case, options, dtype| {
                everywhere(case, options, dtype, |tokens| 1.0 / tokens)
            }]),
    ]
}

/// The score itself: scaled, clipped, or of a row that did not come to its end.
fn scores() -> Vec<Fault> {
    vec![
        Fault::new("score-scaled-too", "β multiplies the score and the divergence")
            .seen("mutation: β·(score - kl) for score - β·kl")
            .made_of([scored(|step| {
                let beta = step.options.beta;
                step.scores.iter_mut().for_each(|score| *score *= beta);
            })]),
        Fault::new("score-over-the-length", "the score is divided by the tokens of its row")
            .seen("a length normalisation where the definition has none")
            .made_of([scored(|step| {
                for (row, score) in step.scores.iter_mut().enumerate() {
                    *score /= step.case.mask.row(row).mapv(f64::from).sum().max(1.0);
                }
            })]),
        Fault::new("score-of-another-row", "the scores are in another order than the rows")
            .seen("LLaMA-Factory #7576: scores of other rows")
            .on(&[|case, _| case.scores.invert_axis(Axis(0))]),
        Fault::new("scores-centred", "the mean of the batch's scores is taken off")
            .seen("whitened scores where none are declared")
            .on(&[|case, _| {
                let mean = case.scores.mean().unwrap_or(0.0);
                case.scores.mapv_inplace(|score| score - mean);
            }]),
        Fault::new("replaced-where-subtracted", "an unfinished row's score is -p, not r - p")
            .seen("trl #3750, #2012, #2033: sibling trainers differ")
            .under("{unfinished: subtract}")
            .as_if(&[|options| {
                let unfinished = match options.unfinished {
                    Unfinished::Subtract => Unfinished::Replace,
                    other => other,
                };
                Options { unfinished, ..options }
            }]),
        Fault::new("subtracted-where-replaced", "an unfinished row's score is r - p, not -p")
            .seen("trl #3750, the reverse")
            .under("{unfinished: replace}")
            .as_if(&[|options| Options { unfinished: Unfinished::Subtract, ..options }]),
        Fault::new("replaced-by-plus-p", "an unfinished row's score is p, not -p")
            .seen("a penalty that is given as a negative number in one library and not in another")
            .under("{unfinished: replace}")
            .as_if(&[|options| Options { penalty: -options.penalty, ..options }]),
        Fault::new("subtracted-where-scaled", "an unfinished row's score is r - p, not r·p")
            .seen("OpenRLHF's and NeMo-RL's stop-properly factor read as a penalty")
            .under("{unfinished: scale, penalty: 0.5}")
            .as_if(&[|options| Options { unfinished: Unfinished::Subtract, ..options }]),
        Fault::new("unfinished-ignored", "unfinished rows keep their score")
            .seen("trl #2012: the penalty for a missing end token has no effect")
            .under("{unfinished: subtract}")
            .as_if(&[|options| Options { unfinished: Unfinished::None, ..options }]),
        Fault::new("finished-inverted", "the finished rows are penalised")
            .seen("`contains_eos` for its negation")
            .under("{unfinished: subtract}")
            .on(&[|case, _| {
                case.finished = case.finished.as_ref().map(|finished| finished.mapv(|f| !f));
            }]),
        Fault::new("finished-rows-penalised", "every row is penalised, finished or not")
            .seen("an index that was left out: `scores -= penalty`")
            .under("{unfinished: subtract}")
            .on(&[|case, _| {
                case.finished = case.finished.as_ref().map(|finished| finished.mapv(|_| false));
            }]),
        Fault::new("penalty-at-every-token", "each token of an unfinished row is penalised by p")
            .seen("`rewards[~finished] -= penalty` for the scores")
            .under("{unfinished: subtract}")
            .gives(&[|case, options, dtype| {
                if options.unfinished != Unfinished::Subtract {
                    return reference::token_rewards(case, options, dtype);
                }
                let kept = Options { unfinished: Unfinished::None, ..options.clone() };
                let mut output = reference::token_rewards(case, &kept, dtype);
                for ((row, token), kept) in case.mask.indexed_iter() {
                    if *kept && !super::is_finished(case.finished.as_ref(), row) {
                        output.rewards[[row, token]] -= options.penalty;
                    }
                }
                output
            }]),
        Fault::new("one-unfinished-row-is-enough", "one unfinished row penalises all")
            .seen("`if not finished.all()` around the whole batch")
            .under("{unfinished: subtract}")
            .on(&[|case, _| {
                case.finished = case.finished.as_ref().map(|finished| {
                    let all = finished.iter().all(|finished| *finished);
                    Array1::from_elem(finished.len(), all)
                });
            }]),
        Fault::new("penalised-after-the-clip", "the score is clipped, then penalised")
            .seen("the order of two lines, where TRL and OpenRLHF meet in one trainer")
            .under("{unfinished: subtract, score_clip: [-1.5, 1.5]}")
            .made_of([scored(|step| {
                let (Some(finished), Some([lo, hi])) =
                    (&step.case.finished, step.options.score_clip)
                else {
                    return;
                };
                let p = step.options.penalty;
                for (row, score) in step.case.scores.iter().enumerate() {
                    let clipped = score.clamp(lo, hi);
                    step.scores[row] = match step.options.unfinished {
                        _ if finished[row] => clipped,
                        Unfinished::None => clipped,
                        Unfinished::Subtract => clipped - p,
                        Unfinished::Replace => -p,
                        Unfinished::Scale => clipped * p,
                    };
                }
            })]),
        Fault::new("score-clip-ignored", "the score is not clipped")
            .seen("an option without effect")
            .under("{score_clip: [-1.5, 1.5]}")
            .as_if(&[|options| Options { score_clip: None, ..options }]),
        Fault::new("score-clipped-above-only", "the lower bound of the clip is missing")
            .seen("torch.clamp(score, max=hi)")
            .under("{score_clip: [-1.5, 1.5]}")
            .as_if(&[|options| {
                let score_clip = options.score_clip.map(|[_, hi]| [-1e30, hi]);
                Options { score_clip, ..options }
            }]),
        Fault::new("score-clipped-to-plus-minus", "the score is clipped to ± its upper bound")
            .seen("trlx's `cliprange_reward`, one number for two")
            .under("{score_clip: [0, 5]}")
            .as_if(&[|options| {
                let score_clip = options.score_clip.map(|[lo, hi]| {
                    let bound = if hi > 0.0 { hi } else { -lo };
                    [-bound, bound]
                });
                Options { score_clip, ..options }
            }]),
        Fault::new("score-clipped-although-not-declared", "the score is clipped to ±10, or ±5")
            .seen("OpenRLHF's default range of 10; trlx's `cliprange_reward`")
            .as_if(&[|options| clipped_to(options, 10.0), |options| clipped_to(options, 5.0)]),
        Fault::new("reward-clipped-with-its-penalty", "the clip holds score and penalty together")
            .seen("clamping the finished rewards; OpenRLHF clips the score alone")
            .under("{score_clip: [-1.5, 1.5], beta: 0.5}")
            .gives(&[|case, options, dtype| {
                let free = Options { score_clip: None, ..options.clone() };
                let mut output = reference::token_rewards(case, &free, dtype);
                if let Some([lo, hi]) = options.score_clip {
                    let columns = reference::columns(case, options);
                    for (row, column) in columns.into_iter().enumerate() {
                        if let Some(column) = column {
                            let reward = &mut output.rewards[[row, column]];
                            *reward = reward.clamp(lo, hi);
                        }
                    }
                }
                output
            }]),
    ]
}

/// The divergence that is reported.
fn reports() -> Vec<Fault> {
    vec![
        Fault::new(
            "kl-reused-in-place",
            "what is reported is the tensor of the penalty: -β·kl, and the score in it",
        )
        .seen("slime #2114 (045310b2b)")
        .gives(&[|case, options, dtype| {
            let output = reference::token_rewards(case, options, dtype);
            let report = reference::report(&output.rewards, case, options, dtype);
            TokenRewardsOutput { kl: Some(arr0(report)), ..output }
        }]),
        Fault::new("reported-with-its-weight", "what is reported is β·kl")
            .seen("`kl_penalty` logged as `kl`")
            .made_of([reported(|kl, options| kl * options.beta)]),
        Fault::new("reported-with-the-other-sign", "what is reported is -kl")
            .seen("ref - policy in the log, policy - ref in the reward")
            .made_of([reported(|kl, _| -kl)]),
        Fault::new("reported-before-the-clamp", "the clamp holds the rewards and not the report")
            .seen("slime, NeMo-RL: a metric of other numbers than those that train")
            .under("{kl_clamp: [-0.3, 5]}")
            .gives(&[|case, options, dtype| {
                let free = Options { kl_clamp: None, ..options.clone() };
                let kl = reference::token_rewards(case, &free, dtype).kl;
                TokenRewardsOutput { kl, ..reference::token_rewards(case, options, dtype) }
            }]),
        Fault::new("sum-reported", "the report is a sum over tokens where a mean is declared")
            .seen("a mean that is left to a logger")
            .gives(&[|case, options, dtype| {
                let kl = reference::divergences(case, options, dtype).sum();
                let output = reference::token_rewards(case, options, dtype);
                TokenRewardsOutput { kl: Some(arr0(kl)), ..output }
            }]),
        Fault::new(
            "reported-by-another-estimator",
            "the report is of another estimator than the rewards",
        )
        .seen("NeMo-RL, verl: k3 in the metrics whatever trains")
        .gives(&[
            |case, options, dtype| reported_by(KlEstimator::K3, case, options, dtype),
            |case, options, dtype| reported_by(KlEstimator::K1, case, options, dtype),
            |case, options, dtype| reported_by(KlEstimator::K2, case, options, dtype),
        ]),
        Fault::new("empty-row-gives-nan", "the report is NaN where a row has no token: 0/0")
            .seen("`(kl * mask).sum(1) / mask.sum(1)`, of a row that is all padding")
            .under("{report: row-mean}")
            .gives(&[|case, options, dtype| {
                let output = reference::token_rewards(case, options, dtype);
                let empty = case.mask.rows().into_iter().any(|row| !row.iter().any(|kept| *kept));
                if empty && options.report == Report::RowMean {
                    return TokenRewardsOutput { kl: Some(arr0(f64::NAN)), ..output };
                }
                output
            }]),
        Fault::new("mean-over-padding", "pads are in the denominator of the report")
            .seen("trlx: means of the padded matrix")
            .gives(&[|case, options, dtype| {
                let output = reference::token_rewards(case, options, dtype);
                let kl = reference::divergences(case, options, dtype);
                TokenRewardsOutput { kl: Some(arr0(kl.mean().unwrap_or(0.0))), ..output }
            }]),
        Fault::new("mean-of-rows-for-tokens", "the mean over rows where tokens are declared")
            .seen("verl's report where OpenRLHF's is declared")
            .as_if(&[|options| {
                let report = match options.report {
                    Report::TokenMean => Report::RowMean,
                    other => other,
                };
                Options { report, ..options }
            }]),
        Fault::new("mean-of-tokens-for-rows", "the mean over tokens where rows are declared")
            .seen("OpenRLHF's report where verl's is declared")
            .under("{report: row-mean}")
            .as_if(&[|options| Options { report: Report::TokenMean, ..options }]),
        Fault::new("mean-for-the-sum", "rows are averaged where their sums are declared")
            .seen("trl logs the mean over rows of the sum as `objective/kl`")
            .under("{report: row-sum}")
            .as_if(&[|options| Options { report: Report::RowMean, ..options }]),
        Fault::new("empty-rows-counted", "a row without a token counts in the mean of rows")
            .seen("trl #6320, for losses")
            .under("{report: row-mean}")
            .as_if(&[|options| Options { empty_rows: EmptyRows::Count, ..options }]),
        Fault::new("empty-rows-skipped", "a row without a token is left out of the mean of rows")
            .seen("verl's masked_mean counts it; others drop it")
            .under("{report: row-mean, empty_rows: count}")
            .as_if(&[|options| Options { empty_rows: EmptyRows::Skip, ..options }]),
        Fault::new("no-token-gives-nan", "the report of a batch without a token is 0/0")
            .seen("ROLL #475: none is refused, but the mean of nothing is NaN")
            .made_of([no_token_gives_nan()]),
        Fault::new(
            "epsilon-in-the-denominator",
            "the report is over the count + ε (1e-3, 1), which also makes 0 of no token at all",
        )
        .seen("verl's and torchtune's masked means with a larger ε than their 1e-8")
        .under("{empty_mask: refuse}")
        .made_of([1e-3, 1.0].map(wider)),
    ]
}

/// The report of a larger denominator, which is never 0.
fn wider(epsilon: f64) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let options = Options { empty_mask: EmptyMask::Zero, ..options.clone() };
        let output = reference::token_rewards(case, &options, dtype);
        let tokens = case.mask.iter().filter(|kept| **kept).count() as f64;
        let kl = output.kl.map(|kl| kl.mapv(|kl| kl * tokens / (tokens + epsilon)));
        TokenRewardsOutput { kl, ..output }
    })
}

fn no_token_gives_nan() -> Variant {
    Variant::gives(|case: &TokenRewardsCase, options: &Options, dtype| {
        let output = reference::token_rewards(case, options, dtype);
        let kl = if super::is_empty(case) { Some(arr0(f64::NAN)) } else { output.kl.clone() };
        TokenRewardsOutput { kl, ..output }
    })
}

/// Right rewards, and the report of another estimator.
fn reported_by(
    kl_estimator: KlEstimator,
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
) -> TokenRewardsOutput {
    let other = Options { kl_estimator, ..options.clone() };
    let kl = reference::token_rewards(case, &other, dtype).kl;
    TokenRewardsOutput { kl, ..reference::token_rewards(case, options, dtype) }
}

/// The output of log-ratios that are held by something else than their clamp.
fn held(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
    hold: fn(f64, f64) -> f64,
) -> TokenRewardsOutput {
    let Some(c) = options.log_ratio_clamp else {
        return reference::token_rewards(case, options, dtype);
    };
    let d = (&case.log_probs - &case.ref_log_probs).mapv(|d| hold(d, c));
    let held: TokenRewardsCase =
        TokenRewardsCase { log_probs: d, ref_log_probs: case.mask.mapv(|_| 0.0), ..case.clone() };
    let free = Options { log_ratio_clamp: None, ..options.clone() };
    reference::token_rewards(&held, &free, dtype)
}

/// What the rewards are made of.
struct Step<'a> {
    case: &'a TokenRewardsCase,
    options: &'a Options,
    dtype: Dtype,
    /// The divergence of each token, 0 under the mask.
    kl: Array2<f64>,
    /// The score of each row, as it is added.
    scores: Vec<f64>,
    /// The column of each score.
    columns: Vec<Option<usize>>,
}

impl Step<'_> {
    fn of<'a>(case: &'a TokenRewardsCase, options: &'a Options, dtype: Dtype) -> Step<'a> {
        let kl = reference::divergences(case, options, dtype);
        let scores = reference::shaped(case, options, dtype);
        Step { case, options, dtype, kl, scores, columns: reference::columns(case, options) }
    }

    fn options(&self) -> Options {
        self.options.clone()
    }

    fn rewards(&self) -> Array2<f64> {
        reference::rewards(&self.kl, &self.scores, &self.columns, self.options, self.dtype)
    }

    fn report(&self) -> f64 {
        reference::report(&self.kl, self.case, self.options, self.dtype)
    }
}

/// Rewards of changed divergences; the report is right.
fn paid(change: fn(&mut Step<'_>)) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let mut step = Step::of(case, options, dtype);
        let report = step.report();
        change(&mut step);
        TokenRewardsOutput { rewards: step.rewards(), kl: Some(arr0(report)) }
    })
}

/// The same, and the report is of the changed ones.
fn paid_and_reported(change: fn(&mut Step<'_>)) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let mut step = Step::of(case, options, dtype);
        change(&mut step);
        TokenRewardsOutput { rewards: step.rewards(), kl: Some(arr0(step.report())) }
    })
}

/// Rewards of changed scores.
fn scored(change: fn(&mut Step<'_>)) -> Variant {
    paid(change)
}

/// Rewards of the divergences of other rows, under the own mask, and their report.
fn of_row(other: fn(usize, usize) -> usize) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let rows: Vec<usize> = (0..case.mask.nrows()).collect();
        let rows: Vec<usize> = rows.iter().map(|row| other(*row, rows.len())).collect();
        let of = |array: &Array2<f64>| array.select(Axis(0), &rows);
        let (log_probs, ref_log_probs) = (of(&case.log_probs), of(&case.ref_log_probs));
        let moved: TokenRewardsCase = TokenRewardsCase { log_probs, ref_log_probs, ..case.clone() };
        reference::token_rewards(&moved, options, dtype)
    })
}

/// Each score in another column, made of the row and the right one.
fn at(column: fn(&Step<'_>, usize, Option<usize>) -> Option<usize>) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let mut step = Step::of(case, options, dtype);
        let columns = step.columns.iter().enumerate();
        step.columns = columns.map(|(row, right)| column(&step, row, *right)).collect();
        TokenRewardsOutput { rewards: step.rewards(), kl: Some(arr0(step.report())) }
    })
}

/// Divergences under another mask; the scores stay where they are.
fn with_mask(
    kept: impl Fn(&Array2<bool>, (usize, usize)) -> bool + Send + Sync + 'static,
) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let mask = Array2::from_shape_fn(case.mask.dim(), |at| kept(&case.mask, at));
        let other: TokenRewardsCase = TokenRewardsCase { mask, ..case.clone() };
        let mut step = Step::of(case, options, dtype);
        let report = step.report();
        step.kl = reference::divergences(&other, options, dtype);
        TokenRewardsOutput { rewards: step.rewards(), kl: Some(arr0(report)) }
    })
}

/// The score at every token, as large as its number of tokens says.
fn everywhere(
    case: &TokenRewardsCase,
    options: &Options,
    dtype: Dtype,
    share: fn(f64) -> f64,
) -> TokenRewardsOutput {
    let mut step = Step::of(case, options, dtype);
    let report = step.report();
    step.columns = vec![None; step.scores.len()];
    let mut rewards = step.rewards();
    for (row, score) in step.scores.iter().enumerate() {
        let kept = case.mask.row(row).mapv(f64::from);
        let part = &kept * (score * share(kept.sum().max(1.0)));
        let mut row = rewards.row_mut(row);
        row += &part;
    }
    TokenRewardsOutput { rewards, kl: Some(arr0(report)) }
}

/// Right rewards, and another number in the report.
fn reported(change: fn(f64, &Options) -> f64) -> Variant {
    Variant::gives(move |case: &TokenRewardsCase, options: &Options, dtype| {
        let output = reference::token_rewards(case, options, dtype);
        let kl = output.kl.map(|kl| kl.mapv(|kl| change(kl, options)));
        TokenRewardsOutput { kl, ..output }
    })
}

fn clamped_to(options: Options, bound: f64) -> Options {
    Options { kl_clamp: options.kl_clamp.or(Some([-bound, bound])), ..options }
}

fn clipped_to(options: Options, bound: f64) -> Options {
    Options { score_clip: options.score_clip.or(Some([-bound, bound])), ..options }
}

/// Each row moved by some columns, its end filled with what stood there.
fn shift(array: &mut Array2<f64>, by: isize) {
    let before = array.clone();
    let last = array.ncols() as isize - 1;
    for ((row, token), x) in array.indexed_iter_mut() {
        *x = before[[row, (token as isize + by).clamp(0, last) as usize]];
    }
}
