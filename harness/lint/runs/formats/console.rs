//! What training prints: verl's `step:N - name:value - ..`, Python dictionaries, alone or after
//! `step N:` (slime also says `rollout N:`, `perf N:` and `eval N:`, OpenRLHF `Global step N:`),
//! and NeMo-RL's lists. All other lines are passed over.

use std::io::BufRead;

use memchr::memchr;

use crate::runs::formats::cells::Cells;
use crate::runs::formats::lines::Lines;
use crate::runs::formats::literal::{Dialect, Leaf, number, object};
use crate::runs::formats::{Warnings, unreadable};
use crate::runs::recorder::Recorder;
use shakedown_core::value::error::Error;

/// What NeMo-RL's lists call the metrics of its logs.
const BULLETS: [(&str, &str); 6] = [
    ("Loss", "loss"),
    ("Policy Loss", "loss"),
    ("Generation KL Error", "gen_kl_error"),
    ("Avg Reward", "reward"),
    // Where dynamic sampling filters, this is the one of all completions.
    ("Avg Total Reward", "reward"),
    ("Mean Generation Length", "mean_gen_tokens_per_sample"),
];

/// Reads all rows; how many there were.
pub(super) fn read(
    source: &mut dyn BufRead,
    to: &mut Recorder,
    warnings: &mut Warnings,
) -> Result<usize, Error> {
    let mut lines = Lines::new(source);
    let mut console = Console::default();
    let mut rows = 0;
    while let Some(line) = lines.next().map_err(|error| unreadable(&error))? {
        if console.take(&line.text, to) {
            rows += 1;
            to.row(line.number, console.cells.iter());
        } else if !line.is_ended && console.is_cut {
            warnings.cut(true);
        }
    }
    warnings.too_long(lines.too_long);
    Ok(rows)
}

#[derive(Default)]
struct Console {
    cells: Cells,
    /// Whether steps of rollouts were seen: those of updates count something else then.
    has_rollouts: bool,
    /// The step in which NeMo-RL is.
    step: Option<f64>,
    /// Whether the line before began a row that it did not end.
    is_cut: bool,
}

impl Console {
    /// Whether a line has a row, or a piece of one.
    fn take(&mut self, line: &str, to: &mut Recorder) -> bool {
        self.cells.clear();
        self.is_cut = false;
        let brace = memchr(b'{', line.as_bytes());
        brace.is_some_and(|brace| self.dictionary(&line[..brace], &line[brace..], to))
            || self.pairs(line)
            || self.bullet(line)
    }

    /// `step 3: {'loss': 0.5}`.
    fn dictionary(&mut self, before: &str, rest: &str, to: &mut Recorder) -> bool {
        let Some(step) = step_before(before) else { return false };
        let cells = &mut self.cells;
        let mut knows = step.is_some();
        if let Some((name, step)) = step {
            self.has_rollouts |= name == "rollout/step" && !before.contains("eval");
            if name != "step" || !self.has_rollouts {
                cells.push(name, step, "");
            }
        }
        let mut visit = |name: &str, leaf: Leaf<'_>| {
            cells.leaf(name, &leaf);
            knows = knows || (matches!(leaf, Leaf::Number(..)) && to.knows(name));
        };
        let read = object(rest, Dialect::Python, '/', &mut visit);
        self.is_cut = knows && read.is_err();
        // Programs print other dictionaries too.
        knows && read.is_ok()
    }

    /// `step:3 - actor/lr:0.000 - ..`.
    fn pairs(&mut self, line: &str) -> bool {
        let starts = line.match_indices("step:").map(|(at, _)| at);
        let is_start = |at: &usize| line[..*at].chars().next_back().is_none_or(char::is_whitespace);
        let Some(start) = starts.into_iter().find(is_start) else { return false };
        self.cells.clear();
        let mut pairs = 0;
        for pair in line[start..].split(" - ") {
            let parts = pair.rsplit_once(':');
            let read = parts.and_then(|(name, text)| Some((name.trim(), number(text)?)));
            match read {
                Some((name, (value, text))) => {
                    pairs += 1;
                    self.cells.push(name, value, text);
                }
                // Without its step a line is no row.
                None if pairs == 0 => return false,
                None => {}
            }
        }
        pairs > 1
    }

    /// `• Avg Reward: 0.5000`, after `==== Step 3/100 ====`.
    fn bullet(&mut self, line: &str) -> bool {
        let line = line.trim();
        if let Some(step) = heading(line) {
            self.step = Some(step);
            return false;
        }
        let (Some(step), Some(bullet)) = (self.step, line.strip_prefix('•')) else {
            return false;
        };
        let Some((called, text)) = bullet.split_once(':') else { return false };
        let known = BULLETS.iter().find(|(name, _)| *name == called.trim());
        let (Some((_, name)), Some((value, text))) = (known, number(text)) else { return false };
        self.cells.push("step", step, "");
        self.cells.push(name, value, text);
        true
    }
}

/// The step that is named before a dictionary; `None` where something else is said there.
fn step_before(before: &str) -> Option<Option<(&'static str, f64)>> {
    let before = before.trim_end();
    let Some(before) = before.strip_suffix(':') else {
        // Ray and loggers begin a line with who speaks: `(Worker pid=7)`, `[12:00]`, `INFO -`.
        let is_alone = before.is_empty() || before.ends_with([')', ']', '-', '|']);
        return is_alone.then_some(None);
    };
    let (before, step) = before.rsplit_once(|c: char| c.is_whitespace())?;
    let step: f64 = step.parse().ok()?;
    let mut words = before.split_whitespace().rev();
    match (words.next()?, words.next()) {
        ("rollout" | "perf" | "eval", _) => Some(Some(("rollout/step", step))),
        ("step", Some("Global")) => Some(Some(("global_step", step))),
        ("step", _) => Some(Some(("step", step))),
        _ => None,
    }
}

/// The step of `==== Step 3/100 ====`.
fn heading(line: &str) -> Option<f64> {
    let inner = line.strip_prefix("===")?.strip_suffix("===")?.trim_matches(['=', ' ']);
    inner.strip_prefix("Step ")?.split_once('/')?.0.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::formats::OwnNames;

    fn cells(line: &str) -> Vec<(String, f64)> {
        let mut console = Console::default();
        let mut recorder = Recorder::new(OwnNames::new());
        match console.take(line, &mut recorder) {
            true => {
                console.cells.iter().map(|(name, cell)| (name.to_owned(), cell.value)).collect()
            }
            false => Vec::new(),
        }
    }

    #[test]
    fn the_step_stands_before_a_dictionary_or_nothing_does() {
        for (line, expected) in [
            ("(Actor pid=7) [12:00:00] data.py:12 - step 3: {'loss': 1}", Some(("step", 3.0))),
            ("rollout 4: {'loss': 1}", Some(("rollout/step", 4.0))),
            ("2026-01-01 INFO Global step 5: {'loss': 1}", Some(("global_step", 5.0))),
        ] {
            let found = cells(line);
            let expected = expected.map(|(name, step)| (name.to_owned(), step));
            assert_eq!(found.first().cloned(), expected, "{line}");
            assert_eq!(found[1], ("loss".to_owned(), 1.0), "{line}");
        }
        for before in ["(Worker pid=7) ", "[12:00] ", "12:00 - INFO - ", " 3%|#| 3/60 [00:10]"] {
            assert_eq!(cells(&format!("{before}{{'loss': 1}}")).len(), 1, "{before}");
        }
    }

    #[test]
    fn other_lines_are_passed_over() {
        for line in [
            "batch 3: {'loss': 1}",
            "using {'loss': 1}",
            "{'num_gpus': 8}",
            "step 3: {'loss': 1",
            "step:three - loss:1",
            "epoch:1 - loss:1",
            "last step: 5",
            "• Loss: 1.0",
        ] {
            assert_eq!(cells(line), [], "{line}");
        }
    }
}
