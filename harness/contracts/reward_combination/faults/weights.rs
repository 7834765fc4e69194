//! Faults of the weights, and of how the functions are put together.

use ndarray::Axis;

use super::super::{Options, RewardCombinationCase, RewardCombinationOutput, WeightNorm};
use super::{Fault, Variant, right, whitened, with};

/// Other weights than those declared.
pub(super) fn weights() -> Vec<Fault> {
    vec![
        Fault::new("weights-lost", "the functions are added without their weights")
            .seen("atropos #485, ms-swift #2167: the weights live in a wrapper that nobody calls")
            .under("{weights: [1, 0.5]}")
            .as_if(&[|options| Options { weights: None, ..options }]),
        Fault::new("weights-in-the-denominator-only", "Σ r / Σ w: neither a sum nor a mean")
            .seen("atropos #485")
            .under("{weights: [1, 3], weight_norm: sum}")
            .gives(&[|case, options, dtype| {
                let sum: f64 = options.raw_weights(case.rewards.ncols()).iter().sum();
                let unweighted =
                    Options { weights: None, weight_norm: WeightNorm::None, ..options.clone() };
                let RewardCombinationOutput { combined, reward_mean, function_means } =
                    right(case, &unweighted, dtype);
                RewardCombinationOutput {
                    combined: combined / sum,
                    reward_mean: reward_mean.map(|mean| mean / sum),
                    function_means,
                }
            }]),
        Fault::new("weights-not-normalised", "the weights are not divided by their sum")
            .seen("an option without effect")
            .under("{weights: [1, 3], weight_norm: sum}")
            .as_if(&[|options| Options { weight_norm: WeightNorm::None, ..options }]),
        Fault::new(
            "weights-normalised",
            "the weights are divided by their sum where nobody asked for it",
        )
        .seen("a weighted mean for a weighted sum, compare atropos #485")
        .under("{weights: [1, 3]}")
        .as_if(&[|options| Options { weight_norm: WeightNorm::Sum, ..options }]),
        Fault::new(
            "weights-of-magnitude-one",
            "the weights are divided by the sum of their magnitudes",
        )
        .seen("an L1 norm for a sum: they differ once a weight is negative")
        .under("{weights: [1, -0.25], weight_norm: sum}")
        .as_if(&[|options| Options { weights: by_magnitude(&options), ..none(options) }]),
        Fault::new("weights-of-the-next-function", "each function has the weight of the next one")
            .seen("off by one: a list of functions from which one was taken, and not its weight")
            .under("{weights: [1, 0.5]}")
            .as_if(&[
                |options| Options { weights: turned(&options, 1), ..options },
                |options| Options { weights: reversed(&options), ..options },
            ]),
        Fault::new("weights-applied-twice", "each function is multiplied by its weight twice")
            .seen("a wrapper that weighs, around a trainer that weighs; compare ms-swift #2167")
            .under("{weights: [1, 0.5]}")
            .as_if(&[|options| Options { weights: each(&options, |w| w * w), ..options }]),
        Fault::new("negative-weights-lost", "a penalty counts as a bonus, or not at all")
            .seen("weights through abs or max(w, 0): probabilities of a mixture by another name")
            .under("{weights: [1, -0.25]}")
            .as_if(&[
                |options| Options { weights: each(&options, f64::abs), ..options },
                |options| Options { weights: each(&options, |w| w.max(0.0)), ..options },
            ]),
        Fault::new("zero-weight-is-one", "a weight of 0 is taken for none given, and counts as 1")
            .seen("`weight or 1.0` in Python, where 0 is false")
            .under("{weights: [1, 0]}")
            .as_if(&[|options| {
                let weights = each(&options, |w| if w == 0.0 { 1.0 } else { w });
                Options { weights, ..options }
            }]),
        Fault::new(
            "weighted-before-normalising",
            "the weights scale the scores, and normalising takes them out again",
        )
        .seen("weights inside the functions under GDPO; compare atropos #485")
        .under("{weights: [1, 0.25], normalise: group, epsilon: 0.0}")
        .gives(&[
            |case, options, dtype| {
                let signs = each(options, |w| if w == 0.0 { 0.0 } else { w.signum() });
                let lost = Options { weights: signs, ..options.clone() };
                with(case, options, dtype, right(case, &lost, dtype).combined)
            },
            // Exactly so: ε is not scaled.
            |case, options, dtype| {
                let weights = super::weights(options, case.rewards.ncols());
                let mut weighed = case.clone();
                for mut rewards in weighed.rewards.rows_mut() {
                    rewards.iter_mut().zip(&weights).for_each(|(reward, w)| *reward *= w);
                }
                let ones = Options { weights: None, ..none(options.clone()) };
                with(case, options, dtype, right(&weighed, &ones, dtype).combined)
            },
        ]),
        Fault::new("weights-through-softmax", "the weights are made a distribution by a softmax")
            .seen("the weights of a mixture, learned as logits, by another name")
            .under("{weights: [1, 0.5]}")
            .as_if(&[|options| Options {
                weights: each(&options, f64::exp).map(|weights| {
                    let sum: f64 = weights.iter().sum();
                    weights.into_iter().map(|w| w / sum).collect()
                }),
                ..none(options)
            }]),
        Fault::new("weights-truncated-to-integers", "the weights pass through an integer tensor")
            .seen("`torch.tensor([1, 2])` filled with 0.5; compare NeMo-RL #1619")
            .under("{weights: [1, 0.5]}")
            .as_if(&[|options| Options { weights: each(&options, f64::trunc), ..options }]),
        Fault::new(
            "logged-reward-by-raw-weights",
            "`reward_mean` has the weights as declared, not divided by their sum",
        )
        .seen("the logged line repeats the sum, and not what was done to the weights")
        .under("{weights: [1, 3], weight_norm: sum}")
        .gives(&[|case, options, dtype| {
            let reward_mean = right(case, &none(options.clone()), dtype).reward_mean;
            RewardCombinationOutput { reward_mean, ..right(case, options, dtype) }
        }]),
        Fault::new(
            "logged-reward-unweighted",
            "`reward_mean` is the mean of the sums without weights",
        )
        .seen("trl #5353 (eff92425d), #5352")
        .under("{weights: [1, 0.5]}")
        .gives(&[|case, options, dtype| {
            let unweighted =
                Options { weights: None, weight_norm: WeightNorm::None, ..options.clone() };
            let reward_mean = right(case, &unweighted, dtype).reward_mean;
            RewardCombinationOutput { reward_mean, ..right(case, options, dtype) }
        }]),
        Fault::new("function-means-weighted", "`function_means` has the weights in it")
            .seen("the columns are multiplied in place before they are logged")
            .under("{weights: [1, 0.5]}")
            .gives(&[|case, options, dtype| {
                let weights = super::weights(options, case.rewards.ncols());
                let mut output = right(case, options, dtype);
                let means = output.function_means.iter_mut().flatten();
                means.zip(weights).for_each(|(mean, weight)| *mean *= weight);
                output
            }]),
    ]
}

/// Other ways to put functions together than a sum.
pub(super) fn sums() -> Vec<Fault> {
    vec![
        Fault::new("mean-for-sum", "the mean over the functions for their sum")
            .seen("`mean(dim=1)` for `sum(dim=1)`: the step shrinks with each function")
            .made_of([reduced(|terms| terms.iter().sum::<f64>() / terms.len() as f64)]),
        Fault::new("product-for-sum", "the functions are multiplied, so that one gates the others")
            .seen("conditional rewards where a sum is declared")
            .made_of([reduced(|terms| terms.iter().product())]),
        Fault::new("best-function-only", "the largest score counts, or the smallest")
            .seen("`max(dim=1)` for `sum(dim=1)`")
            .made_of([
                reduced(|terms| terms.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
                reduced(|terms| terms.iter().copied().fold(f64::INFINITY, f64::min)),
            ]),
        Fault::new("last-function-only", "each function overwrites the one before it")
            .seen("`rewards[i] = score` for `rewards[i] += score` in the loop over functions")
            .made_of([reduced(|terms| *terms.last().unwrap_or(&0.0))]),
        Fault::new("first-function-only", "the functions behind the first one are never added")
            .seen("`rewards[:, 0]` where there had been one function; a `return` inside the loop")
            .made_of([reduced(|terms| terms.first().copied().unwrap_or(0.0))]),
        Fault::new("last-function-left-out", "the last function is not added")
            .seen("off by one: `range(len(functions) - 1)`")
            .made_of([reduced(|terms| terms[..terms.len() - 1].iter().sum())]),
        Fault::new("first-function-gates", "a row that the first function gives 0 or less gets 0")
            .seen("format before correctness: conditional rewards where a sum is declared")
            .made_of([reduced(|terms| {
                let passed = terms.first().is_some_and(|term| *term > 0.0);
                if passed { terms.iter().sum() } else { 0.0 }
            })]),
        Fault::new("scores-clipped", "each function is clipped (to ±1, 0..1, ±5 or ±10)")
            .seen("a clip of single functions that nobody declared")
            .on(&[
                |case, _| case.rewards.mapv_inplace(|r| r.clamp(-1.0, 1.0)),
                |case, _| case.rewards.mapv_inplace(|r| r.clamp(0.0, 1.0)),
                |case, _| case.rewards.mapv_inplace(|r| r.clamp(-5.0, 5.0)),
                |case, _| case.rewards.mapv_inplace(|r| r.clamp(-10.0, 10.0)),
            ]),
        Fault::new("sign-flipped", "the result is multiplied by -1")
            .seen("costs for rewards")
            .made_of([super::changed(|x| -x)]),
        Fault::new("combined-clipped", "the result is clipped (to ±1, 0..1, ±5, ±10 or ≥ 0)")
            .seen("clipped rewards, as in Atari and in PPO ports of trlx")
            .made_of([
                super::changed(|x| x.clamp(-1.0, 1.0)),
                super::changed(|x| x.clamp(0.0, 1.0)),
                super::changed(|x| x.clamp(-5.0, 5.0)),
                super::changed(|x| x.clamp(-10.0, 10.0)),
                super::changed(|x| if x < 0.0 { 0.0 } else { x }),
            ]),
    ]
}

/// Another way to reduce the weighed raw scores of a row.
fn reduced(reduce: fn(&[f64]) -> f64) -> Variant {
    Variant::gives(move |case: &RewardCombinationCase, options: &Options, dtype| {
        let weights = super::weights(options, case.rewards.ncols());
        let sums = case.rewards.map_axis(Axis(1), |rewards| {
            let terms = rewards.iter().zip(&weights).filter(|(r, _)| !r.is_nan());
            let terms: Vec<f64> = terms.map(|(reward, weight)| weight * reward).collect();
            if terms.is_empty() { 0.0 } else { reduce(&terms) }
        });
        with(case, options, dtype, whitened(case, sums, options))
    })
}

fn none(options: Options) -> Options {
    Options { weight_norm: WeightNorm::None, ..options }
}

fn each(options: &Options, change: fn(f64) -> f64) -> Option<Vec<f64>> {
    options.weights.as_ref().map(|weights| weights.iter().map(|w| change(*w)).collect())
}

fn by_magnitude(options: &Options) -> Option<Vec<f64>> {
    options.weights.as_ref().map(|weights| {
        let magnitude: f64 = weights.iter().map(|w| w.abs()).sum();
        weights.iter().map(|w| w / magnitude).collect()
    })
}

fn turned(options: &Options, by: usize) -> Option<Vec<f64>> {
    options.weights.clone().map(|mut weights| {
        let by = by % weights.len();
        weights.rotate_left(by);
        weights
    })
}

fn reversed(options: &Options) -> Option<Vec<f64>> {
    options.weights.clone().map(|weights| weights.into_iter().rev().collect())
}
