//! Known wrong behaviours of `sampling-filter`: real bugs, and conventions mistaken for others.
//!
//! Most are the reference's way through the filters with one step replaced.

mod nucleus;

use ndarray::Axis;

use super::reference::{Row, each_row, filter};
use super::{Options, Order, SamplingFilter, SamplingFilterCase, SamplingFilterOutput};
use shakedown_core::laws::faults::temperature;
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<SamplingFilter>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    // A diagnosis breaks ties by this order, for which the nucleus comes twice.
    let themes = [
        nucleus::edges(),
        given(),
        temperature(),
        counts(),
        nucleus::mass(),
        thresholds(),
        softmax(),
    ];
    themes.into_iter().flatten().collect()
}

/// Other probabilities are given than those of the tokens that are left.
fn given() -> Vec<Fault> {
    vec![
        Fault::new(
            "filtered-but-not-renormalised",
            "the filters take probabilities away and leave the others as they were",
        )
        .seen("transformers #19143: log-softmax first, -inf after")
        .under("{top_p: 0.5}")
        .gives(&[|case, options, dtype| {
            let give = |row: &Row<'_>| {
                let mut whole = Row::new(row.logits.clone(), row.options, dtype);
                whole.temper();
                let kept = whole.softmax().into_iter().zip(&row.z);
                kept.map(|(p, z)| if *z == f64::NEG_INFINITY { 0.0 } else { p }).collect()
            };
            stepwise(case, options, dtype, &Steps { give: &give, ..STEPS })
        }]),
        Fault::new(
            "raw-probabilities-returned",
            "the softmax of the logits as they came: no temperature, no filter",
        )
        .seen("vLLM #9453; NeMo-RL #69, #902, #935, #3392; verl #4162, #4252; SGLang #2178, #2664")
        .under("{temperature: 0.6, top_k: 2}")
        .as_if(&[|_| Options::default()]),
    ]
}

/// The temperature has no effect, the wrong one, or its effect elsewhere.
fn temperature() -> Vec<Fault> {
    let [not_applied, multiplied, twice] = temperature::faults(
        "the temperature has no effect; the filters have",
        "an option without effect: verl #4162, SGLang #2178",
    );
    vec![
        not_applied,
        multiplied.seen("`*` for `/`: transformers' `TemperatureLogitsWarper` divides the scores"),
        twice,
        Fault::new(
            "temperature-clamped",
            "the temperature is not let below a bound that nobody declared",
        )
        .seen("plausible: a guard against a division by zero, at 0.1, 0.05 or 0.5")
        .under("{temperature: 0.01}")
        .as_if(&[
            |options| temperature::at(options, |temperature| temperature.max(0.1)),
            |options| temperature::at(options, |temperature| temperature.max(0.05)),
            |options| temperature::at(options, |temperature| temperature.max(0.5)),
        ]),
        Fault::new(
            "temperature-after-the-filters",
            "the filters see the logits without the temperature, where they should with it",
        )
        .seen("the order `filters-first` where the other one is declared")
        .under("{temperature: 0.6, top_p: 0.75}")
        .as_if(&[|options| Options { order: Order::FiltersFirst, ..options }]),
        Fault::new(
            "temperature-before-the-filters",
            "the filters see the logits over the temperature, where they should without it",
        )
        .seen("transformers' order where `filters-first` is declared")
        .under("{temperature: 0.6, top_p: 0.75, order: filters-first}")
        .as_if(&[|options| Options { order: Order::TemperatureFirst, ..options }]),
    ]
}

/// Other numbers of tokens, and options without effect.
fn counts() -> Vec<Fault> {
    vec![
        Fault::new("top-k-keeps-one-extra", "k + 1 tokens are kept")
            .seen("plausible: the threshold is sorted[k], the element after the k-th")
            .under("{top_k: 2}")
            .as_if(&[|options| Options { top_k: options.top_k.map(|k| k + 1), ..options }]),
        Fault::new("top-k-takes-its-last", "the k-th token is taken away too, and of k = 1 all")
            .seen("plausible: `<=` for `<` beside the threshold")
            .under("{top_k: 2}")
            .gives(&[|case, options, dtype| {
                let top_k = |row: &mut Row<'_>| {
                    let Some(threshold) = row.kth() else { return };
                    let gone: Vec<usize> =
                        (0..row.z.len()).filter(|token| row.z[*token] <= threshold).collect();
                    row.take_away(&gone);
                };
                stepwise(case, options, dtype, &Steps { top_k: &top_k, ..STEPS })
            }]),
        Fault::new("top-k-without-effect", "top_k changes nothing")
            .seen("an option without effect")
            .under("{top_k: 2}")
            .as_if(&[|options| Options { top_k: None, ..options }]),
        Fault::new("top-p-without-effect", "top_p changes nothing")
            .seen("an option without effect")
            .under("{top_p: 0.5}")
            .as_if(&[|options| Options { top_p: None, ..options }]),
        Fault::new("min-p-without-effect", "min_p changes nothing")
            .seen("an option without effect")
            .under("{min_p: 0.5}")
            .as_if(&[|options| Options { min_p: None, ..options }]),
        Fault::new("min-keep-ignored", "the filters leave fewer tokens than must survive")
            .seen("an option without effect")
            .under("{top_p: 0.1, min_keep: 2}")
            .as_if(&[|options| Options { min_keep: 1, ..options }]),
    ]
}

/// Thresholds made of something else.
fn thresholds() -> Vec<Fault> {
    vec![
        Fault::new(
            "min-p-absolute",
            "min_p is compared with the probabilities themselves, not with the largest",
        )
        .seen("plausible: a minimum probability, as the name says")
        .under("{min_p: 0.3}")
        .gives(&[|case, options, dtype| {
            let min_p = |row: &mut Row<'_>| {
                if let Some(share) = row.options.min_p {
                    row.above(&row.softmax(), row.f(share));
                }
            };
            stepwise(case, options, dtype, &Steps { min_p: &min_p, ..STEPS })
        }]),
        Fault::new(
            "min-p-of-the-batch-maximum",
            "the threshold is made of the largest probability of the whole batch",
        )
        .seen("plausible: `probs.max()` without a dimension")
        .under("{min_p: 0.3}")
        .gives(&[|case, options, dtype| {
            let before = filter(case, &Options { min_p: None, ..options.clone() }, dtype);
            let largest = before.iter().fold(0.0, |a: f64, b| a.max(*b));
            let min_p = |row: &mut Row<'_>| {
                if let Some(share) = row.options.min_p {
                    row.above(&row.softmax(), row.f(share * largest));
                }
            };
            stepwise(case, options, dtype, &Steps { min_p: &min_p, ..STEPS })
        }]),
        Fault::new(
            "threshold-of-the-first-row",
            "the k-th logit of the first row is the threshold of all rows",
        )
        .seen("plausible: an index that drops the batch dimension")
        .under("{top_k: 2}")
        .gives(&[|case, options, dtype| {
            let mut first = Row::new(case.logits.row(0).to_vec(), options, dtype);
            if options.order == Order::TemperatureFirst {
                first.temper();
            }
            let top_k = |row: &mut Row<'_>| {
                let Some(threshold) = first.kth() else { return };
                let keep = row.keep();
                let mut order = row.ascending();
                order.truncate(order.len() - keep);
                order.retain(|token| row.z[*token] < threshold);
                row.take_away(&order);
            };
            stepwise(case, options, dtype, &Steps { top_k: &top_k, ..STEPS })
        }]),
    ]
}

/// What is given for tokens that were taken away, and the softmax of the others.
fn softmax() -> Vec<Fault> {
    vec![
        Fault::new(
            "filter-fills-with-a-number",
            "what top-k takes away is set to 0, or to -10, and not to -inf",
        )
        .seen("plausible: logits multiplied by a mask")
        .under("{top_k: 2}")
        .gives(&[
            |case, options, dtype| filled(case, options, dtype, 0.0),
            |case, options, dtype| filled(case, options, dtype, -10.0),
        ]),
        Fault::new(
            "dust-on-every-token",
            "no probability is below a small number, so that its logarithm is finite",
        )
        .seen("plausible: probs.clamp(min=ε) with 1e-4, 1e-6 or 1e-8")
        .under("{top_k: 2}")
        .gives(&[
            |case, options, dtype| dust(case, options, dtype, 1e-4),
            |case, options, dtype| dust(case, options, dtype, 1e-6),
            |case, options, dtype| dust(case, options, dtype, 1e-8),
        ]),
        Fault::new("minus-infinity-gives-nan", "a logit of -inf makes its row NaN")
            .seen("plausible: logits multiplied by 0 where a token may not come")
            .gives(&[|case, options, dtype| {
                let give = |row: &Row<'_>| {
                    let probs = row.softmax();
                    let banned = row.logits.contains(&f64::NEG_INFINITY);
                    if banned { vec![f64::NAN; probs.len()] } else { probs }
                };
                stepwise(case, options, dtype, &Steps { give: &give, ..STEPS })
            }]),
        Fault::new("maximum-not-subtracted", "exp of the logits as they are: infinite beyond 88")
            .seen("softmax written as exp / sum(exp)")
            .gives(&[|case, options, dtype| {
                let give = |row: &Row<'_>| {
                    let weights: Vec<f64> = row.z.iter().map(|z| row.f(z.exp())).collect();
                    row.normalised(&weights)
                };
                stepwise(case, options, dtype, &Steps { give: &give, ..STEPS })
            }]),
        Fault::new("softmax-over-the-rows", "the softmax runs over the rows of the batch")
            .seen("softmax(dim=0) on [N, V]")
            .gives(&[|case, options, dtype| {
                let turned = SamplingFilterCase {
                    logits: case.logits.t().as_standard_layout().into_owned(),
                };
                let plain = Options { top_k: None, top_p: None, min_p: None, ..options.clone() };
                let probs = filter(&turned, &plain, dtype).reversed_axes();
                probs.as_standard_layout().into_owned().into()
            }]),
        Fault::new("logits-in-half-precision", "logits are rounded to bf16 before anything else")
            .seen("autocast left on: bf16 logits of an f32 head")
            .on(&[|case, _| case.logits.mapv_inplace(|logit| Dtype::Bf16.round(logit))]),
        Fault::new("rows-left-in-sorted-order", "the rows come back in another order")
            .seen("verl #1943 (b4aa2dce8), #2185")
            .gives(&[|case, options, dtype| {
                let mut probs = filter(case, options, dtype);
                probs.invert_axis(Axis(0));
                probs.as_standard_layout().into_owned().into()
            }]),
    ]
}

/// The steps through the filters, each of which may be another one.
struct Steps<'a> {
    top_k: &'a dyn Fn(&mut Row<'_>),
    top_p: &'a dyn Fn(&mut Row<'_>),
    min_p: &'a dyn Fn(&mut Row<'_>),
    give: &'a dyn Fn(&Row<'_>) -> Vec<f64>,
}

/// The right ones.
const STEPS: Steps<'static> = Steps {
    top_k: &|row| row.top_k(),
    top_p: &|row| row.top_p(),
    min_p: &|row| row.min_p(),
    give: &|row| row.softmax(),
};

/// The way of a row through these steps, the temperature where it is declared.
fn stepwise(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
    steps: &Steps<'_>,
) -> SamplingFilterOutput {
    let probs = each_row(case, options, dtype, |mut row| {
        if options.order == Order::TemperatureFirst {
            row.temper();
        }
        (steps.top_k)(&mut row);
        (steps.top_p)(&mut row);
        (steps.min_p)(&mut row);
        if options.order == Order::FiltersFirst {
            row.temper();
        }
        (steps.give)(&row)
    });
    probs.into()
}

/// Top-k that sets what it takes away to a number.
fn filled(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
    number: f64,
) -> SamplingFilterOutput {
    let top_k = |row: &mut Row<'_>| {
        let Some(threshold) = row.kth() else { return };
        let gone = row.z.iter_mut().filter(|z| **z < threshold && **z > f64::NEG_INFINITY);
        gone.for_each(|z| *z = number);
    };
    stepwise(case, options, dtype, &Steps { top_k: &top_k, ..STEPS })
}

/// Right probabilities, none of them below a small number.
fn dust(
    case: &SamplingFilterCase,
    options: &Options,
    dtype: Dtype,
    least: f64,
) -> SamplingFilterOutput {
    filter(case, options, dtype).mapv(|p| p.max(least)).into()
}
