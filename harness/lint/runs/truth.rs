//! Scores that say whether a run gets better at what is meant: held-out scores, and parts of the
//! reward that are named after being right.

use crate::runs::Run;
use crate::runs::series::Series;
use crate::runs::statistics::{Statistics, TREND_POINTS, cautious_sigma, mean, median};

/// A score of what is meant, over a run.
#[derive(Clone, Debug)]
pub struct Truth {
    /// Its metric: `eval.gsm8k`, `reward.part.correctness`.
    pub id: String,
    /// Whether it is measured on data that training does not see.
    pub is_held_out: bool,
    /// The mean of its first fifth.
    pub first: f64,
    /// Its largest moving mean.
    pub best: f64,
    /// The mean of its last fifth.
    pub last: f64,
    /// The steps from where it leaves its best for good to the end.
    pub steps: [i64; 2],
    /// The standard error of a difference of two fifths, larger where there are few values.
    se: f64,
    /// What its changes are held against: its deviation where that is logged, else its best.
    size: f64,
}

/// A held-out score of fewer values than this is not judged.
const FEWEST_EVALUATIONS: usize = 6;

/// What names of parts have in them that score being right.
const RIGHT: [&str; 5] = ["correct", "accura", "answer", "exact", "solve"];

/// How words of names begin that are about something else, or count what is wrong.
const OTHER: [&str; 21] = [
    "std",
    "length",
    "trunc",
    "clip",
    "loss",
    "entrop",
    "runtime",
    "token",
    "stop",
    "format",
    "penal",
    "wrong",
    "incorrect",
    "inaccura",
    "unanswer",
    "unsolved",
    "error",
    "fail",
    "repet",
    "invalid",
    "xml",
];

/// Whole words of the same kind; `no answer`, `answer tag`.
const OTHER_WORDS: [&str; 11] =
    ["len", "kl", "time", "count", "counts", "num", "turns", "ratio", "tag", "tags", "no"];

/// The scores of what is meant that have enough values to be judged.
pub fn truths(run: &Run) -> Vec<Truth> {
    let is_score = |name: &str| !is_about_else(name) && !is_other_part(name);
    let held_out = run.starting("eval.").filter(|(id, _)| is_score(&id["eval.".len()..]));
    let held_out = held_out.filter_map(|(id, series)| Truth::of(run, id, series, true));
    let parts = parts(run).filter(|(_, name, _)| is_right(name));
    let parts = parts.filter_map(|(id, _, series)| Truth::of(run, id, series, false));
    held_out.chain(parts).collect()
}

/// The means of the parts of the reward: the metric, the part's name and the series.
pub fn parts(run: &Run) -> impl Iterator<Item = (&str, &str, &Series)> {
    let parts = run.starting("reward.part.").filter(|(id, _)| !id.ends_with(".std"));
    parts.map(|(id, series)| (id, &id["reward.part.".len()..], series))
}

/// The words of a name, in lower case.
fn words(name: &str) -> Vec<String> {
    let words = name.split(|c: char| !c.is_ascii_alphanumeric()).map(str::to_lowercase);
    words.collect()
}

/// Whether a part of the reward is named after the length of completions.
pub fn is_about_length(name: &str) -> bool {
    words(name).iter().any(|word| word.starts_with("len"))
}

/// Whether a part of the reward is named after what it takes away.
pub fn is_penalty(name: &str) -> bool {
    let words = words(name);
    words.iter().any(|word| ["penal", "overlong", "repet"].iter().any(|one| word.starts_with(one)))
}

fn is_about_else(name: &str) -> bool {
    words(name).iter().any(|word| {
        OTHER.iter().any(|beginning| word.starts_with(beginning))
            || OTHER_WORDS.contains(&word.as_str())
    })
}

/// Whether a held-out score is only that of a reward function for something else.
fn is_other_part(name: &str) -> bool {
    let words = words(name);
    let is_function =
        ["reward", "rewards", "func", "fn"].iter().any(|one| words.contains(&(*one).into()));
    is_function && words.len() > 1 && !name.contains('/') && !is_right(name)
}

fn is_right(name: &str) -> bool {
    let lower = name.to_lowercase();
    RIGHT.iter().any(|part| lower.contains(part)) && !is_about_else(name)
}

impl Truth {
    fn of(run: &Run, id: &str, series: &Series, is_held_out: bool) -> Option<Truth> {
        let figures = Statistics::of(series)?;
        if figures.n() < if is_held_out { FEWEST_EVALUATIONS } else { TREND_POINTS } {
            return None;
        }
        let std = run.get(&format!("{id}.std")).map(|std| median(&std.values()));
        let std = std.filter(|std| *std > 0.0);
        let mut widths = figures.widths().map(|one| Truth::over(run, id, &one, is_held_out, std));
        let narrow = widths.next()?;
        // The noise may hide a tenth in fifty values and show it in more.
        match 3.0 * narrow.se > 0.1 * narrow.size {
            true => Some(widths.next().unwrap_or(narrow)),
            false => Some(narrow),
        }
    }

    fn over(
        run: &Run,
        id: &str,
        figures: &Statistics,
        is_held_out: bool,
        std: Option<f64>,
    ) -> Truth {
        let first = mean(&figures.values[..figures.window]);
        let last = mean(figures.tail());
        let (best, _) = figures.peak();
        // With few values their scatter is not known well either, as with Student's t.
        let few = 1.0 + 4.0 / (figures.n() as f64 - 3.0);
        let sigma = cautious_sigma(&figures.values);
        let se = few * 1.25 * sigma * (2.0 / figures.window as f64).sqrt();
        let size = std.unwrap_or(best.abs().max(first.abs()));
        let steps = run.steps_from(id, figures.since(|mean| mean < best - 3.0 * se));
        Truth { id: id.to_owned(), is_held_out, first, best, last, steps, se, size }
    }

    /// Whether it falls: from its first fifth to its last by 3 standard errors and a tenth, or from
    /// its best by 4 and two fifths. On training data, where later prompts may be harder, only the
    /// former, and by a fifth.
    pub fn falls(&self) -> bool {
        let lost = |from: f64, errors: f64, share: f64| {
            let lost = from - self.last;
            lost > 0.0 && lost >= errors * self.se && lost >= share * self.size
        };
        match self.is_held_out {
            true => lost(self.first, 3.0, 0.1) || lost(self.best, 4.0, 0.4),
            false => lost(self.first, 3.0, 0.2),
        }
    }

    /// Whether it rises by 3 standard errors, and does not fall.
    pub fn rises(&self) -> bool {
        self.last > self.first && self.last - self.first >= 3.0 * self.se && !self.falls()
    }
}

/// Whether the run gets better at what is meant, as far as that is measured: some score of it rises
/// and none falls. Rewards of training may then stay or fall because the prompts become harder.
pub fn improves(run: &Run) -> bool {
    let truths = truths(run);
    truths.iter().any(Truth::rises) && !truths.iter().any(Truth::falls)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::rules::trial1::{noise, run};

    /// How often a score of `n` evaluations that only scatters is said to fall, of 400.
    fn false_falls(n: usize) -> usize {
        let falls = |seed: u64| {
            let score = move |i: usize| 0.3 + 0.05 * noise(seed, i);
            truths(&run(n, &[("eval.task", &score)])).iter().any(Truth::falls)
        };
        (0..400).filter(|seed| falls(*seed)).count()
    }

    #[test]
    fn scatter_is_hardly_ever_a_fall_however_few_the_evaluations() {
        for n in [6, 8, 10, 20, 50] {
            let falls = false_falls(n);
            assert!(falls <= 4, "{falls} of 400 with {n} evaluations");
        }
    }

    #[test]
    fn a_score_that_halves_falls_and_one_that_doubles_rises() {
        let is_seen = |seed: &u64| {
            let scatter = |i: usize| 0.02 * noise(*seed, i);
            let halves = |i: usize| 0.6 - 0.03 * i as f64 + scatter(i);
            let doubles = |i: usize| 0.3 + 0.03 * i as f64 + scatter(i);
            let run = run(10, &[("eval.down", &halves), ("eval.up", &doubles)]);
            let [down, up] = &truths(&run)[..] else { panic!("two scores are there") };
            down.falls() && !down.rises() && up.rises() && !up.falls()
        };
        let seen = (0..100).filter(is_seen).count();
        assert!(seen >= 97, "{seen} of 100");
    }

    #[test]
    fn a_part_that_falls_shows_in_a_long_noisy_run() {
        let falls = |n: usize| {
            let score = |i: usize| 0.5 - 0.2 * i as f64 / n as f64 + 0.3 * noise(2, i);
            truths(&run(n, &[("reward.part.correct", &score)]))[0].falls()
        };
        assert!(!falls(100) && falls(5000));
    }

    #[test]
    fn what_is_gained_and_lost_again_falls() {
        let hill = |i: usize| if i < 12 { 0.2 + 0.05 * i as f64 } else { 0.2 } + 0.01 * noise(3, i);
        let truths = truths(&run(24, &[("eval.task", &hill)]));
        assert!(truths[0].falls());
        assert!((9..=13).contains(&truths[0].steps[0]), "{:?}", truths[0].steps);
    }

    #[test]
    fn names_say_what_is_a_score_of_being_right() {
        let right =
            ["correctness_reward_func", "accuracy", "answer-reward", "exact_match", "solved"];
        assert!(right.iter().all(|name| is_right(name)));
        let other =
            ["format", "answer_format", "answer_tag", "incorrect", "no_answer", "accuracy/std"];
        assert!(!other.iter().any(|name| is_right(name)));
        assert!(!is_about_else("countdown/challenge/acc"));
        assert!(is_other_part("style_reward_func") && !is_other_part("correctness_reward_func"));
        assert!(!is_other_part("openai/gsm8k/reward/mean@1") && !is_other_part("reward"));
        assert!(is_about_else("aime/response_len/mean") && is_about_length("reward_len"));
    }

    #[test]
    fn five_evaluations_are_too_few() {
        assert!(truths(&run(5, &[("eval.task", &|i| 1.0 - 0.2 * i as f64)])).is_empty());
    }
}
