//! Other values of the options: another word, null, the default, and for numbers a grid and the
//! value that fits best.

use serde_json::Value as Json;

use crate::contract::options::OptionDoc;
use crate::diagnosis::hypothesis::{Hypothesis, Part};
use crate::diagnosis::score::Bench;
use crate::value::yaml;

/// Values that people take for a constant of another size.
const GRID: [f64; 24] = [
    0.0, 1.0, -1.0, 2.0, 0.5, 0.1, 0.2, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10,
    1e-12, 0.9, 0.95, 0.99, 5.0, 10.0, 100.0, 1000.0,
];

pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let declared = bench.evidence.options.json();
    let mut parts = Vec::new();
    for doc in bench.evidence.contract.option_docs() {
        if ["rows", "deterministic"].contains(&doc.name) {
            continue;
        }
        let Some(now) = declared.get(doc.name) else { continue };
        let words = yaml::inline(now);
        let part = |value: String| Part::Option { name: doc.name, value, declared: words.clone() };
        for value in values(&doc, now) {
            if value != words {
                parts.push(part(value));
            }
        }
        if let Some(now) = now.as_f64() {
            let fitted = fitted(bench, now, |x| part(format!("{x}")));
            parts.extend(fitted);
        }
    }
    parts
}

/// The values besides the declared one that are worth a look.
fn values(doc: &OptionDoc, now: &Json) -> Vec<String> {
    let words = doc.meaning.split('`').skip(1).step_by(2);
    let mut values: Vec<String> = words.map(str::to_owned).collect();
    values.extend([doc.default.clone(), "null".to_owned()]);
    if now.is_boolean() {
        values.extend(["true", "false"].map(str::to_owned));
    }
    if let Some(now) = now.as_f64() {
        values.extend(related(now).map(|x| format!("{x}")));
    }
    if now.is_number() || now.is_null() {
        values.extend(GRID.map(|x| format!("{x}")));
    }
    let mut different: Vec<String> = Vec::new();
    for value in values {
        if !different.contains(&value) {
            different.push(value);
        }
    }
    different
}

/// Numbers that somebody may have made of a number.
fn related(x: f64) -> impl Iterator<Item = f64> {
    let all = [2.0 * x, x / 2.0, x * x, x.sqrt(), 1.0 / x, 1.0 - x, -x, x + 1.0, x - 1.0];
    all.into_iter().filter(|x| x.is_finite())
}

/// How far the best value may be from all of what is wrong.
const FITS: f64 = 0.02;

/// The value that comes closest to what the component gives, in as few digits as say it.
fn fitted(bench: &Bench<'_>, now: f64, part: impl Fn(f64) -> Part) -> Option<Part> {
    let loss = |x: f64| {
        let hypothesis = Hypothesis::of(bench.evidence, part(x));
        hypothesis.map_or(f64::INFINITY, |hypothesis| bench.loss(&hypothesis))
    };
    let mut grid: Vec<f64> = GRID.into_iter().chain(related(now)).chain([now]).collect();
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    let losses: Vec<f64> = grid.iter().map(|x| loss(*x)).collect();
    let best = (0..grid.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]))?;
    if losses[best] > 0.9 || losses[best] <= FITS {
        // Nothing comes closer than the declared value, or the grid has it already.
        return None;
    }
    let (mut low, mut high) = (grid[best.saturating_sub(1)], grid[(best + 1).min(grid.len() - 1)]);
    const GOLDEN: f64 = 0.618_033_988_749_894_9;
    for _ in 0..28 {
        let [a, b] = [high - GOLDEN * (high - low), low + GOLDEN * (high - low)];
        if loss(a) < loss(b) {
            high = b;
        } else {
            low = a;
        }
    }
    let x = (low + high) / 2.0;
    let digits = (0..6).map(|digits| format!("{x:.digits$e}").parse().unwrap_or(x));
    let shortest = digits.chain([x]).find(|x| loss(*x) <= FITS)?;
    Some(part(shortest))
}
