//! Other values of the options: another word, null, the default, and for numbers a grid and the
//! value that fits best.

use std::sync::Arc;

use serde_json::Value as Json;

use crate::diagnosis::evidence::Evidence;
use crate::diagnosis::hypothesis::{Hypothesis, Part, option_told};
use crate::diagnosis::score::Bench;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::{AnyOptions, OptionDoc};
use shakedown_core::value::yaml;

/// Values that people take for a constant of another size.
const GRID: [f64; 24] = [
    0.0, 1.0, -1.0, 2.0, 0.5, 0.1, 0.2, 0.01, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-9, 1e-10,
    1e-12, 0.9, 0.95, 0.99, 5.0, 10.0, 100.0, 1000.0,
];

/// Values that are worth a look.
pub(super) fn parts(bench: &Bench<'_>) -> Vec<Part> {
    let of = |(doc, now): (OptionDoc, Json)| {
        let part = part(&doc, &now);
        values(&doc, &now).into_iter().map(part).collect::<Vec<Part>>()
    };
    declared(bench).into_iter().flat_map(of).collect()
}

/// The numbers that fit best.
pub(super) fn fitted_parts(bench: &Bench<'_>) -> Vec<Part> {
    let of = |(doc, now): (OptionDoc, Json)| {
        let part = part(&doc, &now);
        fitted(bench, &now, |x| part(format!("{x}")))
    };
    declared(bench).into_iter().filter_map(of).collect()
}

/// The options that say something about outputs, with their values.
fn declared(bench: &Bench<'_>) -> Vec<(OptionDoc, Json)> {
    let Evidence { contract, options, .. } = bench.evidence;
    // Where a run is made, numbers are how much to do, which may take long.
    let is_run = bench.evidence.is_open() && contract.whole().is_empty();
    let is_cheap = |now: &Json| !(is_run && now.is_number());
    of_outputs(*contract, &**options).into_iter().filter(|(_, now)| is_cheap(now)).collect()
}

fn of_outputs(contract: &dyn AnyContract, options: &dyn AnyOptions) -> Vec<(OptionDoc, Json)> {
    let declared = options.json();
    let docs = contract.option_docs().into_iter();
    let docs = docs.filter(|doc| !["rows", "deterministic"].contains(&doc.name));
    docs.filter_map(|doc| Some((declared.get(doc.name)?.clone(), doc)))
        .map(|(now, doc)| (doc, now))
        .collect()
}

/// Options of which one is otherwise: its name and value, and what is said of it.
pub(crate) struct OtherOption {
    pub(crate) name: String,
    pub(crate) told: String,
    pub(crate) options: Arc<dyn AnyOptions>,
}

/// All with another word, or another truth value.
pub(crate) fn other_words(
    contract: &dyn AnyContract,
    options: &Arc<dyn AnyOptions>,
) -> Vec<OtherOption> {
    let mut others = Vec::new();
    for (doc, now) in of_outputs(contract, &**options) {
        let words = values(&doc, &now).into_iter().filter(|value| value.parse::<f64>().is_err());
        for value in words {
            let Ok(other) = options.with(doc.name, &value) else { continue };
            if other.check().is_ok() {
                let told = option_told(doc.name, &value, &yaml::inline(&now));
                let name = format!("{}: {value}", doc.name);
                others.push(OtherOption { name, told, options: other });
            }
        }
    }
    others
}

fn part(doc: &OptionDoc, now: &Json) -> impl Fn(String) -> Part {
    let (name, declared) = (doc.name, yaml::inline(now));
    move |value| Part::Option { name, value, declared: declared.clone() }
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
    let declared = yaml::inline(now);
    let mut different: Vec<String> = Vec::new();
    for value in values {
        if value != declared && !different.contains(&value) {
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

/// A hypothesis with the value of an option among its parts that fits best, where that is a number.
pub(crate) fn fitted_in(bench: &Bench<'_>, pair: &Hypothesis) -> Option<Hypothesis> {
    let at = pair.parts.iter().position(|part| part.number_of().is_some())?;
    let Part::Option { name, declared, .. } = &pair.parts[at] else { return None };
    let mut all = self::declared(bench).into_iter();
    let (_, now) = all.find(|(doc, _)| doc.name == *name)?;
    let with = |x: f64| {
        let mut parts = pair.parts.clone();
        parts[at] = Part::Option { name, value: format!("{x}"), declared: declared.clone() };
        Hypothesis::of_all(bench.evidence, parts)
    };
    let with = |x: f64| with(of_kind(&now, x));
    with(closest(bench, around(now.as_f64()?), with)?)
}

fn fitted(bench: &Bench<'_>, now: &Json, part: impl Fn(f64) -> Part) -> Option<Part> {
    let part = |x: f64| part(of_kind(now, x));
    closest(bench, around(now.as_f64()?), |x| Hypothesis::of(bench.evidence, part(x))).map(part)
}

/// A whole number where the declared one is one.
fn of_kind(now: &Json, x: f64) -> f64 {
    if now.is_f64() { x } else { x.round() + 0.0 }
}

/// Numbers between which the best one may lie.
fn around(now: f64) -> Vec<f64> {
    let around = [0.25, 0.8, 1.0, 1.25, 1.6, 2.5, 4.0].map(|factor| now * factor);
    GRID.into_iter().chain(related(now)).chain(around).collect()
}

/// The value that comes closest to what the component gives, in as few digits as say it: between
/// the neighbours of the best of some.
pub(super) fn closest(
    bench: &Bench<'_>,
    mut grid: Vec<f64>,
    with: impl Fn(f64) -> Option<Hypothesis>,
) -> Option<f64> {
    let loss = |x: f64| with(x).map_or(f64::INFINITY, |hypothesis| bench.loss(&hypothesis));
    grid.sort_by(f64::total_cmp);
    grid.dedup();
    let losses: Vec<f64> = grid.iter().map(|x| loss(*x)).collect();
    let best = (0..grid.len()).min_by(|a, b| losses[*a].total_cmp(&losses[*b]))?;
    if losses[best] > 0.97 {
        // Nothing comes closer than the declared value.
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
    let least = loss(x);
    let digits = (0..6).map(|digits| format!("{x:.digits$e}").parse().unwrap_or(x));
    let shortest = digits.chain([x]).find(|x| loss(*x) <= 1.2 * least + 1e-4)?;
    (least <= FITS).then_some(shortest)
}
