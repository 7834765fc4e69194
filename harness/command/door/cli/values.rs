//! The table of `check --values`: a component's outputs on small inputs beside the oracle's.

use std::fmt::Write as _;

use shakedown_core::value::place::Place;
use shakedown_core::value::record::{floats, index};
use shakedown_core::value::text::{one_line, rounded};
use shakedown_engine::subject::Subject;

/// The table of one component at one place; suspicious lines begin with `?`.
pub(super) fn table(subject: &mut Subject, place: Place) -> String {
    let mut text = format!("\n  values of {} at {place}, beside the oracle's\n", subject.name);
    let _ = writeln!(text, "      {:<20} {:>14} {:>14}", "", "given", "oracle");
    let tolerance = subject.tolerance_at(place);
    let contract = subject.contract;
    for case in contract.samples(&*subject.options, place.dtype) {
        let case = case.rounded(place.dtype);
        let _ = writeln!(text, "    {}", one_line(&*case));
        let output = match subject.call(&case, place, false) {
            Ok(returned) => returned.output,
            Err(failure) => {
                let first = failure.to_string();
                let _ = writeln!(text, "  ?   {}", first.lines().next().unwrap_or(""));
                continue;
            }
        };
        let fields = floats(&*output);
        for expected in contract.oracle(&*case, &*subject.options, place.dtype) {
            let Some((name, found)) = fields.iter().find(|(name, _)| *name == expected.field)
            else {
                continue;
            };
            if found.shape() != expected.numbers.shape() {
                let _ = writeln!(text, "  ?   {name} has shape {:?}", found.shape());
                continue;
            }
            for ((at, found), number) in found.indexed_iter().zip(&expected.numbers) {
                let good = tolerance.accepts(*found, *number, expected.terms);
                let mark = if good { ' ' } else { '?' };
                let label = format!("{name}{}", index(&at));
                let (found, value) = (rounded(*found), rounded(number.value));
                let _ = writeln!(text, "  {mark}   {label:<20} {found:>14} {value:>14}");
            }
        }
    }
    text.push('\n');
    text
}
