//! Known wrong behaviours of `token-entropy`: real bugs, and conventions mistaken for others.
//!
//! Each is written as a person writes an entropy from logits, with one step replaced; the gradient
//! follows.

use ndarray::{Array2, Array3, Axis};

use super::{
    NegInf, Options, TokenEntropy, TokenEntropyCase, TokenEntropyOutput, reference, vocabulary,
};
use shakedown_core::laws::faults::entropy::{self, At, OfLogits};
use shakedown_core::laws::faults::temperature;
use shakedown_core::numeric::tape::{Tape, Var};
use shakedown_core::value::place::Dtype;

type Fault = shakedown_core::contract::fault::Fault<TokenEntropy>;

/// Every fault of the contract.
pub(super) fn all() -> Vec<Fault> {
    let themes = [places(), temperature(), formula(), numerics(), gradient()];
    themes.into_iter().flatten().collect()
}

/// Right entropies of other positions.
fn places() -> Vec<Fault> {
    vec![
        Fault::new("rows-left-in-sorted-order", "the rows come back in another order")
            .seen("verl #1943 (b4aa2dce8), #2185")
            .gives(&[|case, options, dtype| {
                moved(case, options, dtype, |(row, column), (rows, _)| (rows - 1 - row, column))
            }]),
        Fault::new(
            "shifted-by-one",
            "a position has the entropy of the next one, or of the one before",
        )
        .seen("trl #2058 (a5b98fcf9): logits and tokens shifted once more")
        .gives(&[
            |case, options, dtype| {
                moved(case, options, dtype, |(row, column), (_, columns)| {
                    (row, (column + 1) % columns)
                })
            },
            |case, options, dtype| {
                moved(case, options, dtype, |(row, column), (_, columns)| {
                    (row, (column + columns - 1) % columns)
                })
            },
        ]),
    ]
}

/// The temperature has no effect, or the wrong one.
fn temperature() -> Vec<Fault> {
    Vec::from(temperature::faults(
        "the entropy of the logits, not of the logits over the temperature",
        "OpenRLHF takes the entropy before it divides",
    ))
}

/// Another quantity than the entropy.
fn formula() -> Vec<Fault> {
    vec![
        Fault::new("sign-flipped", "Σ p·log p, without the minus")
            .seen("`(p * log_p).sum(-1)` without its minus")
            .made_of([entropy::at_each(|at| -at.entropy())]),
        Fault::new("minus-infinity-gives-nan", "0·log 0 is NaN where it is declared to be 0")
            .seen(
                "TRL, verl, OpenRLHF, open-instruct, prime-rl and slime: 0·∞ beside a masked token",
            )
            .under("{neg_inf: zero}")
            .as_if(&[|options| Options { neg_inf: NegInf::Nan, ..options }]),
        entropy::logarithm_in_another_base(),
        entropy::divided_by_its_maximum(),
        entropy::mean_over_the_vocabulary(),
        entropy::surprise_of_the_likeliest(),
        Fault::new(
            "softmax-over-another-axis",
            "the softmax runs over the tokens of the row, or over the rows of the batch",
        )
        .seen("softmax(dim=1) on [N, T, V]")
        .gives(&[
            |case, options, dtype| along(case, options, dtype, 1),
            |case, options, dtype| along(case, options, dtype, 0),
        ]),
    ]
}

/// Numbers that leave their format, or entries that are left out.
fn numerics() -> Vec<Fault> {
    vec![
        entropy::epsilon_in_the_logarithm(),
        entropy::maximum_not_subtracted(),
        entropy::logits_in_half_precision(),
        Fault::new(
            "first-or-last-entry-left-out",
            "the distribution is over all tokens but the last, or the first",
        )
        .seen("vocabularies padded to a multiple, trimmed by one too many")
        .gives(&[
            |case, options, dtype| trimmed(case, options, dtype, false),
            |case, options, dtype| trimmed(case, options, dtype, true),
        ]),
    ]
}

/// Right values with a wrong gradient.
fn gradient() -> Vec<Fault> {
    vec![
        entropy::gradient_zero(),
        entropy::normaliser_detached(),
        Fault::new(
            "gradient-without-temperature",
            "the gradient is not divided by the temperature",
        )
        .seen("logits.div_(temperature) under no_grad")
        .under("{temperature: 0.6}")
        .gives(&[|case, options, dtype| {
            let output = reference::entropy(case, options, dtype);
            let scaled = output.grad_logits.map(|gradient| gradient * options.temperature);
            TokenEntropyOutput { grad_logits: scaled, ..output }
        }]),
    ]
}

impl OfLogits for TokenEntropy {
    fn mapped(
        case: &TokenEntropyCase,
        options: &Options,
        dtype: Dtype,
        entropy: impl for<'t> Fn(&At<'t>) -> Var<'t>,
    ) -> TokenEntropyOutput {
        let tape = Tape::new(dtype);
        let leaf = tape.leaf(&case.logits);
        let (rows, columns, _) = case.logits.dim();
        let strict = options.neg_inf == NegInf::Nan;
        let entropies: Array2<Var<'_>> = Array2::from_shape_fn((rows, columns), |(row, column)| {
            let logits = leaf.index_axis(Axis(0), row).index_axis_move(Axis(0), column);
            entropy(&At::position(&tape, logits, options.temperature, strict))
        });
        let sum = tape.sum(entropies.iter().copied());
        let gradient = options.gradient.then(|| tape.gradient(sum, &leaf));
        let entropy = entropies.map(|entropy| entropy.value);
        TokenEntropyOutput { entropy, grad_logits: gradient }
    }
}

/// The right entropies at other positions: `from` says which, given N and T.
fn moved(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    from: impl Fn((usize, usize), (usize, usize)) -> (usize, usize),
) -> TokenEntropyOutput {
    let output = reference::entropy(case, options, dtype);
    let shape = output.entropy.dim();
    let entropy = Array2::from_shape_fn(shape, |at| output.entropy[from(at, shape)]);
    TokenEntropyOutput { entropy, ..output }
}

/// The softmax along another axis, and the sum over the vocabulary.
fn along(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    axis: usize,
) -> TokenEntropyOutput {
    let tape = Tape::new(dtype);
    let leaf = tape.leaf(&case.logits);
    let strict = options.neg_inf == NegInf::Nan;
    let parts: Array3<Option<Var<'_>>> =
        Array3::from_shape_fn(leaf.dim(), |(row, column, entry)| {
            let mut others = leaf.index_axis(Axis(2), entry);
            others.collapse_axis(Axis(1 - axis), if axis == 1 { row } else { column });
            let z = others.iter().map(|logit| *logit / options.temperature).collect();
            let lane = At::of(&tape, z, strict);
            let own = leaf[[row, column, entry]] / options.temperature;
            let log_prob = own - lane.log_sum();
            let part = -(log_prob.exp() * log_prob);
            lane.counts(part).then_some(part)
        });
    let entropies: Array2<Var<'_>> =
        parts.map_axis(Axis(2), |parts| tape.sum(parts.iter().flatten().copied()));
    let sum = tape.sum(entropies.iter().copied());
    let gradient = options.gradient.then(|| tape.gradient(sum, &leaf));
    TokenEntropyOutput { entropy: entropies.map(|entropy| entropy.value), grad_logits: gradient }
}

/// The right entropies without the first token of the vocabulary, or without the last.
fn trimmed(
    case: &TokenEntropyCase,
    options: &Options,
    dtype: Dtype,
    first: bool,
) -> TokenEntropyOutput {
    let last = vocabulary(case) - 1;
    let mut kept = case.clone();
    let entry = if first { 0 } else { last };
    for mut logits in kept.logits.lanes_mut(Axis(2)) {
        // What is left of the distribution must be one.
        let others = logits.iter().enumerate().filter(|(at, _)| *at != entry);
        if others.clone().any(|(_, logit)| logit.is_finite()) {
            logits[entry] = f64::NEG_INFINITY;
        }
    }
    let zero = Options { neg_inf: NegInf::Zero, ..options.clone() };
    reference::entropy(&kept, &zero, dtype)
}
