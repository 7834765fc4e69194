//! What libraries call the metrics. One metric is one entry of `metrics.yaml`, one name one line.

use std::collections::HashMap;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::settings::Library;

/// A metric that rules speak about.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Known {
    /// Its id: `reward.mean`; `reward.part.{name}` where there are several.
    pub id: String,
    /// Its unit.
    #[serde(default)]
    pub unit: String,
    /// What it may be: `0:1`, `0:`.
    #[serde(default)]
    pub range: String,
    /// Which way is good.
    #[serde(default)]
    pub better: String,
    /// What it is.
    #[serde(default)]
    pub means: String,
    names: HashMap<String, Vec<Name>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Name {
    name: String,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    at: String,
}

/// The metrics, in the order of the file.
pub fn known() -> &'static [Known] {
    &TABLE.known
}

/// What a name of a log stands for.
#[derive(Clone, Debug, PartialEq)]
pub struct Meaning {
    /// The id, with the name filled in: `reward.part.format`.
    pub id: String,
    /// How a value of the log becomes one of the metric.
    pub convert: Convert,
    /// The libraries that call it so.
    pub libraries: Vec<Library>,
    /// Which of several names in one log counts: the smallest.
    pub rank: usize,
}

/// How a value of a log becomes one of the metric.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Convert {
    /// It is the same.
    Same,
    /// `1-x`.
    OneMinus,
    /// `x/100` or `x/10000`: that part of it.
    Over(f64),
    /// `1-x/100`.
    OneMinusOver(f64),
}

impl Convert {
    /// The value of the metric.
    pub fn apply(self, x: f64) -> f64 {
        match self {
            Convert::Same => x,
            Convert::OneMinus => 1.0 - x,
            Convert::Over(divisor) => x / divisor,
            Convert::OneMinusOver(divisor) => 1.0 - x / divisor,
        }
    }

    /// How far a value of the metric may be off where one of the log is off by `resolution`.
    pub fn resolution(self, resolution: f64) -> f64 {
        match self {
            Convert::Same | Convert::OneMinus => resolution,
            Convert::Over(divisor) | Convert::OneMinusOver(divisor) => resolution / divisor,
        }
    }

    /// One minus what it makes.
    fn of_rest(self) -> Convert {
        match self {
            Convert::Over(divisor) => Convert::OneMinusOver(divisor),
            _ => Convert::OneMinus,
        }
    }
}

struct Table {
    known: Vec<Known>,
    exact: HashMap<String, Meaning>,
    /// What stands before and after the `{name}`, and the id with its own.
    patterns: Vec<(String, String, Meaning)>,
}

static TABLE: LazyLock<Table> = LazyLock::new(Table::read);

impl Table {
    fn read() -> Table {
        let known: Vec<Known> =
            serde_yaml::from_str(include_str!("metrics.yaml")).expect("our own file can be read");
        let mut exact: HashMap<String, Meaning> = HashMap::new();
        let mut patterns = Vec::new();
        for metric in &known {
            for (library, names) in &metric.names {
                let library = Library::ALL.into_iter().find(|one| one.name() == library);
                for (rank, name) in names.iter().enumerate() {
                    if name.name.contains("(trl<") {
                        // For people: from a name alone nobody knows the version.
                        continue;
                    }
                    let (convert, name) = converted(&name.name);
                    let id = metric.id.clone();
                    // Names of older versions count where there is no other.
                    let rank = if library.is_some() { rank } else { rank + EARLIER };
                    let libraries = library.into_iter().collect();
                    let meaning = Meaning { id, convert, libraries, rank };
                    match name.split_once("{name}") {
                        Some((before, after)) => {
                            patterns.push((before.to_owned(), after.to_owned(), meaning));
                        }
                        None => match exact.get_mut(name) {
                            Some(known) => known.libraries.extend(library),
                            None => {
                                exact.insert(name.to_owned(), meaning);
                            }
                        },
                    }
                }
            }
        }
        // The most particular one is asked first.
        patterns.sort_by_key(|(before, after, _)| std::cmp::Reverse(before.len() + after.len()));
        Table { known, exact, patterns }
    }
}

/// The rank of the names that only older versions and forks use.
const EARLIER: usize = 100;

/// `1-NAME`, `NAME/100` and `NAME/10000` are names with a conversion.
fn converted(name: &str) -> (Convert, &str) {
    let (convert, name) = match name.rsplit_once('/') {
        Some((name, "100")) => (Convert::Over(100.0), name),
        Some((name, "10000")) => (Convert::Over(10_000.0), name),
        _ => (Convert::Same, name),
    };
    match name.strip_prefix("1-") {
        Some(name) => (convert.of_rest(), name),
        None => (convert, name),
    }
}

/// A name, and what is left of it without the prefixes that say only that training logged it.
fn stripped(name: &str) -> impl Iterator<Item = &str> {
    let bare = name.strip_prefix("train/").or_else(|| name.strip_prefix("train_"));
    std::iter::once(name).chain(bare)
}

/// What a name of a log stands for; `None` where that is not known: it is never guessed.
pub fn meaning(name: &str) -> Option<Meaning> {
    if let Some(held_out) = HELD_OUT.iter().find_map(|prefix| name.strip_prefix(prefix)) {
        return score(name, held_out);
    }
    let exact = stripped(name).find_map(|name| TABLE.exact.get(name)).cloned();
    let of_pattern = |name| TABLE.patterns.iter().find_map(|pattern| pattern_of(name, pattern));
    exact.or_else(|| stripped(name).find_map(of_pattern))
}

fn pattern_of(name: &str, (before, after, meaning): &(String, String, Meaning)) -> Option<Meaning> {
    let own = name.strip_prefix(before.as_str())?.strip_suffix(after.as_str())?;
    let id = meaning.id.replace("{name}", own);
    (!own.is_empty()).then(|| Meaning { id, ..meaning.clone() })
}

/// What stands before the names of an evaluation.
const HELD_OUT: [&str; 5] = ["eval_", "eval/", "val-core/", "val/test_score/", "validation/"];

/// Parts of names of an evaluation that are no scores: a larger one is not a better one.
const NO_SCORES: [&str; 22] = [
    "loss",
    "runtime",
    "second",
    "tokens",
    "epoch",
    "step",
    "steps",
    "time",
    "length",
    "lengths",
    "len",
    "std",
    "min",
    "max",
    "ratio",
    "frac",
    "kl",
    "entropy",
    "samples",
    "perplexity",
    "count",
    "num",
];

/// The score that an evaluation logs under a name. Metrics of its completions are no scores, they
/// would be taken for those of training.
fn score(name: &str, held_out: &str) -> Option<Meaning> {
    let is_eval = |meaning: &Meaning| meaning.id == EVAL;
    let exact = TABLE.exact.get(name).filter(|meaning| is_eval(meaning)).cloned();
    let is_reward = |id: &str| id == "reward.mean" || id.starts_with("reward.part.");
    let in_training = meaning(held_out).filter(|meaning| !is_reward(&meaning.id));
    let is_score = |part: &str| !NO_SCORES.contains(&part.to_ascii_lowercase().as_str());
    let mut parts = held_out.split(|c: char| !c.is_alphanumeric()).filter(|part| !part.is_empty());
    if exact.is_none() && (in_training.is_some() || !parts.all(is_score)) {
        return None;
    }
    let pattern = || {
        let found = TABLE.patterns.iter().filter(|(_, _, meaning)| is_eval(meaning));
        found.filter_map(|pattern| pattern_of(name, pattern)).next()
    };
    let of_table = exact.map(|meaning| Meaning { id: EVAL.replace("{name}", held_out), ..meaning });
    of_table.or_else(pattern).or_else(|| {
        let id = EVAL.replace("{name}", held_out);
        (!held_out.is_empty()).then_some(Meaning {
            id,
            convert: Convert::Same,
            libraries: Vec::new(),
            rank: 0,
        })
    })
}

/// The metrics of held-out scores.
const EVAL: &str = "eval.{name}";

/// Whether a metric has this id: `reward.mean`, `reward.part.format`.
pub fn is_known(id: &str) -> bool {
    known().iter().any(|metric| match metric.id.split_once("{name}") {
        Some((before, after)) => {
            let own = id.strip_prefix(before).and_then(|rest| rest.strip_suffix(after));
            own.is_some_and(|own| !own.is_empty())
        }
        None => metric.id == id,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Option<String> {
        meaning(name).map(|meaning| meaning.id)
    }

    #[test]
    fn names_are_stripped_of_who_logs_them() {
        for (name, expected) in [
            ("train/reward", "reward.mean"),
            ("train_rollout_logprob_abs_diff", "mismatch.logp"),
            ("train/train_rollout_logprob_abs_diff", "mismatch.logp"),
            ("train/rewards/format/mean", "reward.part.format"),
            ("rollout/response_lengths", "length.mean"),
            ("actor/lr(1e-4)", "lr"),
            ("rewards/format/mean", "reward.part.format"),
            ("rewards/format/std", "reward.part.format.std"),
            ("rewards/margins", "pref.margin"),
        ] {
            assert_eq!(id(name).as_deref(), Some(expected), "{name}");
        }
    }

    #[test]
    fn names_that_look_alike_are_different_metrics() {
        for (name, expected) in [
            ("reward_std", Some("reward.std")),
            ("reward_std(trl<0.24)", None),
            ("objective/kl", Some("kl.ref.seq")),
            ("objective/entropy", None),
            ("completions/clipped_ratio", Some("length.clipped")),
            ("response_length/clip_ratio", Some("length.clipped")),
            ("clip_ratio/region_mean", Some("clip.frac")),
            ("train_loss", Some("loss")),
        ] {
            assert_eq!(id(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn evaluations_log_scores_and_other_things() {
        for (name, expected) in [
            ("eval_reward", Some("eval.reward")),
            ("eval/reward", Some("eval.reward")),
            ("eval_rewards/accuracy/mean", Some("eval.accuracy")),
            ("eval_math_pass1", Some("eval.math")),
            ("eval/aime", Some("eval.aime")),
            ("val-core/openai/gsm8k/reward/mean@8", Some("eval.openai/gsm8k/reward/mean@8")),
            ("val/test_score/gsm8k", Some("eval.gsm8k")),
            ("validation/accuracy", Some("eval.accuracy")),
            ("eval_loss", None),
            ("eval_runtime", None),
            ("eval/samples_per_second", None),
            ("eval/aime/response_len/mean", None),
            ("eval/aime-truncated_ratio", None),
            ("eval_completions/mean_length", None),
            ("eval_reward_std", None),
            ("eval_entropy", None),
            ("val-core/gsm8k/reward/best@8/std", None),
            ("val/ratio", Some("ratio.mean")),
        ] {
            assert_eq!(id(name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn values_are_converted() {
        let convert = |name: &str| meaning(name).unwrap().convert;
        assert_eq!(convert("baseline_reward/pct_mixed").apply(25.0), 0.75);
        assert_eq!(convert("baseline_reward/pct_0").apply(25.0), 0.25);
        assert_eq!(convert("env/ratio_of_valid_action").apply(0.75), 0.25);
        assert!((convert("actor/lr(1e-4)").apply(0.01) - 1e-6).abs() < 1e-12);
        assert!((convert("actor/lr(1e-4)").resolution(5e-4) - 5e-8).abs() < 1e-12);
    }

    #[test]
    fn ids_are_known() {
        assert!(is_known("reward.mean") && is_known("reward.part.format"));
        assert!(!is_known("reward.part.") && !is_known("rewards"));
    }
}
