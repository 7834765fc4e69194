//! What must hold of `model-forward`: the laws that apply, and one file for each of its own.

use ndarray::{Array3, s};

use crate::model_forward::{ModelForward, Options, Padding};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<ModelForward>> {
    let mut all = laws::universal_and(&[("finite", &["empty-row-spreads-nan"])]);
    all.extend([
        laws::row_permutation::law().catching(&["positions-of-the-first-row"]),
        laws::row_split::law().catching(&["positions-of-the-first-row", "statistic-of-the-batch"]),
        laws::padding::law()
            .under(|options: &Options| options.padding.is_on_the_right())
            .catching(&["positions-scaled-by-the-length"]),
        laws::masked_poison::law()
            .under(|options: &Options| options.padding != Padding::None)
            .catching(&["attention-mask-ignored", "attention-mask-one-late"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    ModelForward;
    left_padding,
    causal,
    prefix,
    packed_alone,
    cache,
    own_token,
}

/// Breaks the invariant where the logits behind a token differ from those that are expected, by
/// more than twice what rounding may do. `at` has row and column in the case, and in `logits`,
/// whose name is `name`.
fn same(
    probe: &mut Probe<'_, ModelForward>,
    what: &str,
    name: &str,
    logits: &Array3<f64>,
    expected: &Array3<f64>,
    at: &[[(usize, usize); 2]],
) -> Outcome {
    let allowed = probe.related("logits");
    for [(row, column), (to, other)] in at {
        let allowed = 2.0 * allowed[[*row, *column, 0]];
        let found = logits.slice(s![*to, *other, ..]);
        for ((entry, found), expected) in
            found.indexed_iter().zip(expected.slice(s![*row, *column, ..]))
        {
            if apart(*found, *expected, allowed) {
                let [text, expected] = pair(*found, *expected);
                let name = format!("{name}[{to}, {other}, {entry}]");
                let message = format!(
                    "{what} {name} is {text}, expected {expected}; allowed difference {allowed:.1e}"
                );
                return Err(Stop::number(message, *found));
            }
        }
    }
    Ok(())
}

/// The rows and columns of the tokens.
fn tokens(probe: &Probe<'_, ModelForward>) -> Vec<(usize, usize)> {
    let mask = probe.case.attention_mask.indexed_iter();
    mask.filter(|(_, kept)| **kept).map(|(at, _)| at).collect()
}
