//! Signatures: what the laws that break imply together, where nothing has a name.

use crate::diagnosis::evidence::{Cell, Evidence, Given, cells};
use crate::diagnosis::hypothesis::fields;
use shakedown_core::value::place::Dtype;

/// Laws that compare two outputs of a component: which of them break says what it mixes up.
const RELATIONS: [&str; 5] =
    ["row-split", "row-permutation", "relabelling", "padding", "masked-poison"];

/// What is implied where these of the relations break, and those hold.
const IMPLIED: [(&[&str], &[&str], &str); 4] = [
    (
        &["row-split"],
        &["row-permutation"],
        "`row-split` breaks, `row-permutation` does not: a statistic of the batch enters each row",
    ),
    (
        &["row-split", "row-permutation"],
        &[],
        "`row-split` and `row-permutation` break: rows are moved, or mixed with those beside them",
    ),
    (
        &["relabelling"],
        &["row-permutation"],
        "of the relations `relabelling` alone breaks: group numbers serve as indexes",
    ),
    (
        &["padding", "masked-poison"],
        &["row-permutation"],
        "`padding` and `masked-poison` break, `row-permutation` does not: padding counts",
    ),
];

/// What is said of laws that break beside others that hold; `None` where nothing follows.
fn implied(broken: &[&str], held: &[&str]) -> Option<&'static str> {
    let related = |id: &&str| RELATIONS.contains(id);
    let count = broken.iter().copied().filter(related).count();
    let says = |(break_, hold, _): &&(&[&str], &[&str], &str)| {
        count == break_.len()
            && break_.iter().all(|id| broken.contains(id))
            && hold.iter().all(|id| held.contains(id))
    };
    IMPLIED.iter().find(says).map(|(.., told)| *told)
}

/// What is implied by the laws that break and by what is wrong: the value, its gradient, or a
/// number that is only reported. What is not the same twice implies nothing.
pub(crate) fn told(evidence: &Evidence, broken: &[&str], held: &[&str]) -> Option<String> {
    if broken.contains(&"deterministic") {
        return None;
    }
    if is_rounded(evidence) {
        let told = "wrong numbers are off by less than 1 % of their terms, up and down alike: as \
                    by rounding to bf16 or f16 on the way";
        return Some(told.to_owned());
    }
    let [wrong, right] = compared_fields(evidence);
    let optional = |name: &str| {
        evidence.contract.outputs().iter().any(|known| known.name == name && known.optional)
    };
    let of_gradient = |name: &&str| name.starts_with("grad_");
    match &wrong[..] {
        [field] if optional(field) && !of_gradient(field) && !right.is_empty() => {
            Some(format!("only the reported number `{field}` is wrong"))
        }
        [_, ..] if wrong.iter().all(of_gradient) && held.contains(&"oracle") => {
            let factor = factor(evidence).map_or_else(
                || "by no one factor".to_owned(),
                |factor| {
                    format!("{} times what it is", shakedown_core::value::text::number(factor))
                },
            );
            Some(format!("the value is right, and the gradient is wrong: {factor}"))
        }
        _ => implied(broken, held).map(str::to_owned),
    }
}

/// Fewer wrong numbers than this say nothing of how they are made.
const FEW: usize = 16;

/// Whether nearly all wrong numbers are off as by a few roundings to a format of half the size: by
/// no more and not by far less than these, and in both directions.
fn is_rounded(evidence: &Evidence) -> bool {
    let mut off: Vec<f64> = Vec::new();
    for (expected, given) in evidence.observed.iter().filter_map(|one| one.answered()) {
        for (cell, found) in cells(expected).zip(given) {
            let (Cell::Number(right, _), Given::Number(number)) = (&cell, found) else {
                return false;
            };
            let share = (number - right.value) / right.scale.max(right.value.abs());
            if evidence.wrong(found, &cell) && share.is_finite() {
                off.push(share);
            }
        }
    }
    let above = off.iter().filter(|share| **share > 0.0).count();
    if off.len() < FEW || 5 * above.min(off.len() - above) < off.len() {
        return false;
    }
    off.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    let [middle, nearly_all] = [off.len() / 2, off.len() * 19 / 20].map(|at| off[at].abs());
    evidence.place.dtype.unit_roundoff() < Dtype::F16.unit_roundoff()
        && middle >= Dtype::F16.unit_roundoff() / 64.0
        && nearly_all <= 2.0 * Dtype::Bf16.unit_roundoff()
}

/// The outputs that are compared: those in which anything is wrong, and the others.
fn compared_fields(evidence: &Evidence) -> [Vec<&'static str>; 2] {
    let mut compared: Vec<(&'static str, bool)> = Vec::new();
    for (expected, given) in evidence.observed.iter().filter_map(|one| one.answered()) {
        for ((cell, found), field) in cells(expected).zip(given).zip(fields(expected)) {
            let wrong = evidence.wrong(found, &cell);
            match compared.iter_mut().find(|(known, _)| *known == field) {
                Some((_, any)) => *any |= wrong,
                None => compared.push((field, wrong)),
            }
        }
    }
    let (wrong, right): (Vec<_>, Vec<_>) = compared.into_iter().partition(|(_, any)| *any);
    [wrong, right].map(|fields| fields.into_iter().map(|(field, _)| field).collect())
}

/// What nearly all wrong numbers are of the right ones, where that is one factor.
fn factor(evidence: &Evidence) -> Option<f64> {
    let mut factors = Vec::new();
    for (expected, given) in evidence.observed.iter().filter_map(|one| one.answered()) {
        for (cell, found) in cells(expected).zip(given) {
            let (Cell::Number(right, _), Given::Number(number)) = (&cell, found) else { continue };
            if evidence.wrong(found, &cell) && right.value.is_finite() {
                factors.push(number / right.value);
            }
        }
    }
    factors.sort_by(f64::total_cmp);
    let median = *factors.get(factors.len() / 2)?;
    let near = factors.iter().filter(|one| (**one - median).abs() <= 1e-3 * median.abs()).count();
    (median.is_finite() && near * 10 >= 9 * factors.len())
        .then(|| crate::diagnosis::families::outputs::shortest(median))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_breaks_alone_implies_something_else_than_what_breaks_with_others() {
        let of = |broken: &[&str], held: &[&str]| {
            implied(broken, held).and_then(|told| Some(told.rsplit_once(": ")?.1))
        };
        let batch = Some("a statistic of the batch enters each row");
        assert_eq!(of(&["oracle", "row-split"], &["row-permutation"]), batch);
        let mixed = Some("rows are moved, or mixed with those beside them");
        assert_eq!(of(&["oracle", "row-split", "row-permutation"], &["padding"]), mixed);
        let indexes = Some("group numbers serve as indexes");
        assert_eq!(of(&["relabelling"], &["row-permutation", "row-split"]), indexes);
        let padding = Some("padding counts");
        assert_eq!(of(&["masked-poison", "padding"], &["row-permutation"]), padding);
    }

    #[test]
    fn what_was_not_checked_or_breaks_besides_implies_nothing() {
        // Rows may be moved where nobody permuted them.
        assert_eq!(implied(&["row-split"], &[]), None);
        assert_eq!(implied(&["row-split", "relabelling"], &["row-permutation"]), None);
        assert_eq!(implied(&["oracle"], &["row-split", "row-permutation"]), None);
        assert_eq!(implied(&["padding"], &["row-permutation", "masked-poison"]), None);
    }
}
