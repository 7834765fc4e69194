//! Regions: on which cases, rows or places a component is wrong, in features that anybody can see.

use std::collections::BTreeMap;

use crate::diagnosis::evidence::{Evidence, ExpectedCells, Given, Observed, cells, places};
use crate::diagnosis::score::{Bench, Fit};
use shakedown_core::generate::axes::Axes;
use shakedown_core::value::record::{AnyRecord, Shared, ValueRef};

/// A feature of cells: whether each has it.
pub(crate) struct Feature {
    /// What the cells have in common, after "where": "`rewards` is negative".
    pub(crate) told: String,
    /// For each cell.
    pub(crate) holds: Vec<bool>,
}

/// The features of all cells that some have and others do not.
pub(crate) fn features(bench: &Bench<'_>) -> Vec<Feature> {
    let mut known = Known { features: Vec::new(), count: bench.wrong.len() };
    for (observed, range) in bench.cases() {
        let Observed { case, expected, .. } = observed;
        each(bench.evidence, case, expected, &mut |told, at| known.set(told, range.start + at));
    }
    known.separating()
}

/// The same of whole cases.
pub(crate) fn features_of_cases(evidence: &Evidence, cases: &[&Shared]) -> Vec<Feature> {
    let mut known = Known { features: Vec::new(), count: cases.len() };
    for (at, case) in cases.iter().enumerate() {
        of_case(evidence, case).into_iter().for_each(|told| known.set(told, at));
    }
    known.separating()
}

/// For each cell of a case, whether it is in a region: has the feature that is told so.
pub(crate) fn holds(
    region: &str,
    evidence: &Evidence,
    case: &Shared,
    expected: &ExpectedCells,
) -> Vec<bool> {
    let (told, is_opposite) = match region.strip_prefix(NOT) {
        Some(told) => (told, true),
        None => (region, false),
    };
    let mut holds = vec![is_opposite; cells(expected).count()];
    each(evidence, case, expected, &mut |other, at| {
        if other == told {
            holds[at] = !is_opposite;
        }
    });
    holds
}

/// Before the words for a feature that is not there.
const NOT: &str = "not: ";

/// Features while they are collected.
struct Known {
    features: Vec<Feature>,
    count: usize,
}

impl Known {
    fn set(&mut self, told: String, at: usize) {
        let Known { features, count } = self;
        let known = features.iter().position(|feature| feature.told == told);
        let known = known.unwrap_or_else(|| {
            features.push(Feature { told, holds: vec![false; *count] });
            features.len() - 1
        });
        features[known].holds[at] = true;
    }

    /// Those that some have and others do not, and their opposites.
    fn separating(self) -> Vec<Feature> {
        let mut features = self.features;
        let opposite = |Feature { told, holds }: &Feature| Feature {
            told: format!("{NOT}{told}"),
            holds: holds.iter().map(|holds| !holds).collect(),
        };
        let opposites: Vec<Feature> = features.iter().map(opposite).collect();
        features.extend(opposites);
        features.retain(|feature| feature.holds.contains(&true) && feature.holds.contains(&false));
        features
    }
}

/// The features of a case as a whole.
fn of_case(evidence: &Evidence, case: &Shared) -> Vec<String> {
    let classes = evidence.contract.classes().iter();
    let within = classes.filter(|class| class.contains(&**case, &*evidence.options));
    let mut told: Vec<String> = within.map(|class| format!("the case is `{}`", class.id)).collect();
    told.extend(sizes(&**case, evidence.contract.axes()));
    told
}

/// Calls a function with the features of each cell of a case.
fn each(
    evidence: &Evidence,
    case: &Shared,
    expected: &ExpectedCells,
    set: &mut dyn FnMut(String, usize),
) {
    let of_case = of_case(evidence, case);
    let outputs = places(expected).into_iter().zip(cells(expected));
    for (at, ((field, place), cell)) in outputs.enumerate() {
        of_case.iter().for_each(|told| set(told.clone(), at));
        set(format!("it is `{field}`"), at);
        match cell.right() {
            Given::Number(x) if !cell.is_open() => {
                set(format!("`{field}` should be {}", sign(x)), at);
            }
            Given::Text(None) => set(format!("`{field}` should be null"), at),
            _ => {}
        }
        let axes = evidence.contract.axes();
        of_place(axes, case, field, &place, &mut |told| set(told, at));
    }
}

/// How long the axes of a case are.
fn sizes(case: &dyn AnyRecord, axes: &Axes) -> Vec<String> {
    let mut told: Vec<String> = lists(case);
    case.each(&mut |field, value| {
        let Some(value) = value else {
            told.push(format!("`{field}` is absent"));
            return;
        };
        for (axis, length) in value.shape().iter().enumerate() {
            let Some(letter) = axes.letter(field, axis) else { continue };
            let mut say = |feature: String| {
                if !told.contains(&feature) {
                    told.push(feature);
                }
            };
            match length {
                0 | 1 => say(format!("{letter} is {length}")),
                _ => {
                    for least in [3, 4, 8].into_iter().filter(|least| length >= least) {
                        say(format!("{letter} is {least} or more"));
                    }
                    if length % 2 == 1 {
                        say(format!("{letter} is odd"));
                    }
                }
            }
        }
        if let ValueRef::Bool(mask) = value {
            let mut rows = mask.rows().into_iter().map(|row| {
                let first = row.iter().position(|kept| *kept);
                let last = row.iter().rposition(|kept| *kept);
                let inside = first.zip(last).map(|(first, last)| last - first + 1);
                (row.iter().filter(|kept| **kept).count(), inside.unwrap_or(0))
            });
            if rows.any(|(tokens, inside)| tokens < inside) {
                told.push(format!("`{field}` has a hole"));
            }
        }
    });
    told
}

/// How many items the lists of a case have, and how long the arrays of an item are at the most.
fn lists(case: &dyn AnyRecord) -> Vec<String> {
    let mut lengths: BTreeMap<String, usize> = BTreeMap::new();
    case.each(&mut |name, value| {
        let Some((list, rest)) = name.split_once('.') else { return };
        let Some((item, field)) = rest.split_once('.') else { return };
        let Ok(item) = item.parse::<usize>() else { return };
        let mut longest = |what: String, length: usize| {
            let known = lengths.entry(what).or_default();
            *known = length.max(*known);
        };
        longest(format!("`{list}`"), item + 1);
        if let Some(length) = value.and_then(|value| value.shape().first().copied()) {
            longest(format!("the longest `{list}.*.{field}`"), length);
        }
    });
    let lengths = lengths.iter();
    let told = lengths.flat_map(|(what, length)| {
        let reached = [2, 3, 4, 8].into_iter().filter(move |least| length >= least);
        reached.map(move |least| format!("{what} has {least} or more"))
    });
    told.collect()
}

/// What stands where an output stands: in each input that shares its axes.
fn of_place(
    axes: &Axes,
    case: &Shared,
    output: &str,
    place: &[usize],
    set: &mut dyn FnMut(String),
) {
    let letters: Vec<(char, usize)> = place
        .iter()
        .enumerate()
        .filter_map(|(axis, at)| Some((axes.letter(output, axis)?, *at)))
        .collect();
    for (letter, at) in &letters {
        if *at == 0 {
            set(format!("it is the first along {letter}"));
        }
        let length = axes.find_length(&**case, *letter);
        if length == Some(at + 1) {
            set(format!("it is the last along {letter}"));
        }
    }
    case.each(&mut |field, value| {
        let Some(value) = value else { return };
        let shape = value.shape();
        let index: Option<Vec<usize>> = (0..shape.len())
            .map(|axis| {
                let letter = axes.letter(field, axis)?;
                letters.iter().find(|(other, _)| *other == letter).map(|(_, at)| *at)
            })
            .collect();
        let Some(index) = index.filter(|index| index.iter().zip(shape).all(|(at, n)| at < n))
        else {
            return;
        };
        match value {
            ValueRef::Float(array) => {
                let x = array[&*index];
                set(format!("`{field}` is {}", sign(x)));
                for limit in [1.0, 10.0, 100.0] {
                    if x.abs() > limit {
                        set(format!("`{field}` is beyond ±{limit}"));
                    }
                }
            }
            ValueRef::Bool(array) if array[&*index] => set(format!("`{field}` is true")),
            ValueRef::Text(array) => of_text(field, &array[&*index], set),
            ValueRef::TextOrNull(array) => match &array[&*index] {
                Some(text) => of_text(field, text, set),
                None => set(format!("`{field}` is null")),
            },
            _ => {}
        }
    });
}

fn sign(x: f64) -> &'static str {
    match x {
        x if x.is_nan() => "NaN",
        x if x < 0.0 => "negative",
        0.0 => "0",
        _ => "positive",
    }
}

fn of_text(field: &str, text: &str, set: &mut dyn FnMut(String)) {
    let features: [(&str, bool); 11] = [
        ("is empty", text.is_empty()),
        ("is white space", !text.is_empty() && text.trim().is_empty()),
        ("has several lines", text.trim_end().contains('\n')),
        ("ends in white space", text.trim_end() != text),
        ("begins with white space", text.trim_start() != text),
        ("has an upper-case letter", text.chars().any(char::is_uppercase)),
        ("has a letter outside ASCII", !text.is_ascii()),
        ("has a comma", text.contains(',')),
        ("has a minus sign", text.contains('-')),
        ("has a decimal point", text.contains('.')),
        ("has a digit", text.contains(|c: char| c.is_ascii_digit())),
    ];
    for (told, _) in features.into_iter().filter(|(_, holds)| *holds) {
        set(format!("`{field}` {told}"));
    }
}

/// The fit of a hypothesis that acts in a region only.
pub(crate) fn within(fit: &Fit, feature: &Feature) -> Fit {
    let both = |flags: &[bool]| -> Vec<bool> {
        flags.iter().zip(&feature.holds).map(|(a, b)| *a && *b).collect()
    };
    Fit { acts: both(&fit.acts), agrees: both(&fit.agrees) }
}

/// Features that are looked at together with another one.
const TOGETHER: usize = 8;

/// Where a component is wrong, if one feature says so, or two together: the words, how many of the
/// cells with the feature are wrong, and of how many wrong ones it is the feature.
pub(crate) fn separating(features: &[Feature], wrong: &[bool]) -> Option<(String, [usize; 3])> {
    let count = |flags: &mut dyn Iterator<Item = bool>| flags.filter(|flag| *flag).count();
    let all = count(&mut wrong.iter().copied());
    // How many of some cells are wrong, and how many they are.
    let of = |holds: &mut dyn Iterator<Item = (bool, &bool)>| {
        let (mut both, mut of) = (0, 0);
        for (holds, wrong) in holds {
            of += usize::from(holds);
            both += usize::from(holds && *wrong);
        }
        (both, of)
    };
    let score = |(both, of): (usize, usize)| 2.0 * both as f64 / (of + all).max(1) as f64;
    let mut single: Vec<((usize, usize), String, &Feature)> = features
        .iter()
        .map(|one| (of(&mut one.holds.iter().copied().zip(wrong)), one.told.clone(), one))
        .collect();
    single.sort_by(|(a, ..), (b, ..)| score(*b).total_cmp(&score(*a)));
    let pairs = single.iter().take(TOGETHER).flat_map(|(alone, told, one)| {
        features.iter().filter_map(move |other| {
            let both = one.holds.iter().zip(&other.holds).map(|(a, b)| *a && *b);
            let counts = of(&mut both.zip(wrong));
            // What is said of two features must be worth the words.
            let told = format!("{told} and {}", other.told);
            (score(counts) > score(*alone) + 0.05).then_some((counts, told))
        })
    });
    let pairs: Vec<((usize, usize), String)> = pairs.collect();
    let alone = single.iter().map(|(counts, told, _)| (*counts, told.clone()));
    // Of equal ones the first.
    let mut best: Option<((usize, usize), String)> = None;
    for one in alone.chain(pairs) {
        if best.as_ref().is_none_or(|(counts, _)| score(one.0) > score(*counts)) {
            best = Some(one);
        }
    }
    let (counts, told) = best?;
    let everywhere = score((all, wrong.len()));
    (score(counts) > 0.6 && score(counts) > everywhere + 0.1)
        .then_some((told, [counts.0, counts.1, all]))
}
