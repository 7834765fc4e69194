//! What must hold of `answer-extractor`: the laws that apply, and one file for each of its own.

use crate::answer_extractor::oracle::{Reading, answer, readings};
use crate::answer_extractor::{AnswerExtractor, AnswerExtractorCase};
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<AnswerExtractor>> {
    let mut all = laws::universal();
    all.extend([
        laws::oracle::law().catching(&[
            "full-stop-in-the-answer",
            "tag-option-without-effect",
            "white-space-kept",
            "white-space-removed",
            "only-the-tail-is-searched",
            "last-closing-brace",
            "rest-of-the-text",
            "xml-parser-for-prose",
        ]),
        laws::row_permutation::law().catching(&["previous-answer-kept"]),
        laws::row_split::law().catching(&["previous-answer-kept"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    AnswerExtractor;
    recovered,
    piece_of_the_text,
    missing,
    pick_honoured,
    text_before,
    white_space_after,
}

/// Whether the answers stay what they are when every text gets an addition that means nothing:
/// `what` in front or at the end, as `place` says. Only texts that every reader reads the same way
/// before and after are compared.
fn unchanged(
    probe: &mut Probe<'_, AnswerExtractor>,
    place: &str,
    what: &str,
    add: impl Fn(&str) -> String,
) -> Outcome {
    let texts = probe.case.texts.map(|text| add(text));
    let same = |row: usize| {
        let both = [&probe.case.texts[row], &texts[row]];
        let agreed = both.iter().all(|text| match readings(text, probe.options).as_slice() {
            [reading] => *reading != Reading::Open,
            _ => false,
        });
        let [before, after] = both.map(|text| answer(text, probe.options));
        agreed && before == after
    };
    let rows: Vec<usize> = (0..texts.len()).filter(|row| same(*row)).collect();
    if rows.is_empty() {
        return Err(Stop::Vacuous);
    }
    let first = probe.output()?;
    let second = probe.call(&AnswerExtractorCase { texts })?;
    for row in rows {
        let [expected, found] =
            [&first.output, &second].map(|output| output.answers[row].as_deref());
        if found != expected {
            let text = quoted(&probe.case.texts[row]);
            broken!(
                "with {} {place} {text} the answer is {}",
                quoted(what),
                found_for(found, expected)
            );
        }
    }
    Ok(())
}
