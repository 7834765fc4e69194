//! Runs made of functions, on which the rules are tried.

use std::collections::HashMap;

use crate::report::{RuleStatus, Severity};
use crate::rules::Asked;
use crate::runs::Run;
use crate::runs::recorder::Recorder;
use crate::runs::row::Cell;
use crate::settings::Origin;

/// A metric, and its value in each row, counted from 0; where it is NaN, the metric is not logged.
pub(in crate::runs) type Column<'a> = (&'a str, &'a dyn Fn(usize) -> f64);

/// A run of so many rows, one in seven steps: rules must not mind.
pub(in crate::runs) fn run(rows: usize, columns: &[Column<'_>]) -> Run {
    run_rounded(rows, 0.0, columns)
}

/// The same, of values that are rounded this far.
pub(in crate::runs) fn run_rounded(rows: usize, resolution: f64, columns: &[Column<'_>]) -> Run {
    let own_names: HashMap<String, String> =
        columns.iter().map(|(id, _)| ((*id).to_owned(), (*id).to_owned())).collect();
    let mut recorder = Recorder::new(own_names);
    for row in 0..rows {
        let step = ("step", Cell::from(7.0 * row as f64 + 3.0));
        let cells = columns.iter().map(|(id, of)| (*id, of(row)));
        let logged = cells.filter(|(_, value)| !value.is_nan());
        let cell = |value| Cell { value: round(value, resolution), resolution };
        recorder.row(row + 1, logged.map(|(id, value)| (id, cell(value))).chain([step]));
    }
    Run::new("trial".to_owned(), vec![], "JSON lines", recorder.finish())
}

fn round(value: f64, resolution: f64) -> f64 {
    let digit = 2.0 * resolution;
    if digit == 0.0 { value } else { (value / digit).round() * digit }
}

/// The same run, with a setting.
pub(in crate::runs) fn set(mut run: Run, id: &str, to: impl Into<serde_json::Value>) -> Run {
    run.settings.set(id, to, Origin::Flag);
    run
}

/// What a rule says of a run, in one word: that of its worst finding, else `quiet`, `insufficient`
/// or `not applicable`.
pub(in crate::runs) fn said(run: &Run, rule: &str) -> &'static str {
    let subject = run.judge(&Asked { only: vec![rule.to_owned()], skip: vec![] });
    let worst = subject.findings.iter().map(|finding| finding.severity).max();
    let status = subject.rules.iter().find(|one| one.id == rule).map(|one| one.status);
    match (worst, status) {
        (Some(Severity::Error), _) => "error",
        (Some(Severity::Warning), _) => "warning",
        (Some(Severity::Note), _) => "note",
        (None, Some(RuleStatus::Quiet)) => "quiet",
        (None, Some(RuleStatus::Insufficient)) => "insufficient",
        (None, Some(RuleStatus::NotApplicable)) => "not applicable",
        (None, status) => panic!("{rule} is {status:?}"),
    }
}

/// The steps of the first finding of a rule.
pub(in crate::runs) fn steps(run: &Run, rule: &str) -> Option<[i64; 2]> {
    run.judge(&Asked { only: vec![rule.to_owned()], skip: vec![] }).findings.first()?.steps
}

/// That a rule says the same of a run under several seeds.
pub(in crate::runs) fn always(word: &str, rule: &str, run: impl Fn(u64) -> Run) {
    for seed in 0..12 {
        assert_eq!(said(&run(seed), rule), word, "{rule}, seed {seed}");
    }
}

/// A number that looks normal, of mean 0 and deviation 1: always the same one for a seed and a row.
pub(in crate::runs) fn noise(seed: u64, row: usize) -> f64 {
    let uniform = |part: u64| {
        let mut bits = (seed + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15)
            ^ (row as u64 * 12 + part + 1).wrapping_mul(0xd1b5_4a32_d192_ed03);
        for _ in 0..3 {
            bits = (bits ^ (bits >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        }
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    };
    (0..12).map(uniform).sum::<f64>() - 6.0
}

/// A factor that scatters around 1 as gradients do.
pub(in crate::runs) fn scatter(seed: u64, row: usize, size: f64) -> f64 {
    (size * noise(seed, row)).exp()
}

mod tests {
    use super::*;
    use crate::runs::statistics::{Statistics, mean};

    #[test]
    fn noise_is_normal_enough_and_a_seed_changes_it() {
        let values: Vec<f64> = (0..4000).map(|row| noise(3, row)).collect();
        let squares: Vec<f64> = values.iter().map(|value| value * value).collect();
        assert!(mean(&values).abs() < 0.06, "{}", mean(&values));
        assert!((mean(&squares) - 1.0).abs() < 0.08, "{}", mean(&squares));
        let figures = Statistics::of_values(values).expect("values");
        assert!(figures.tau.abs() < 0.2 && (figures.sigma - 1.0).abs() < 0.1);
        assert_ne!(noise(1, 5), noise(2, 5));
    }

    /// A run with a critic, as healthy ones look: a warm-up and a decay, a KL with tails, gradients
    /// that scatter and leap up once, an engine that is a little off.
    fn healthy(seed: u64) -> Run {
        let rows = 60 + 17 * (seed as usize % 20);
        let part = |i: usize| i as f64 / rows as f64;
        let learnt = |i: usize| 1.0 - (-3.0 * part(i)).exp();
        let lr = |i: usize| 1e-6 * (12.0 * part(i)).min(0.5 + 0.5 * (3.1 * part(i)).cos());
        let reward = |i: usize| 0.2 + 0.5 * learnt(i) + 0.05 * noise(seed, i);
        let tail = |i: usize| if noise(seed + 7, i) > 2.8 { 8.0 } else { 1.0 };
        let kl = |i: usize| (1e-4 + 0.08 * part(i)) * scatter(seed + 1, i, 0.3) * tail(i);
        let entropy = |i: usize| (0.8 - 0.5 * learnt(i)) * scatter(seed + 2, i, 0.05);
        let leap = |i: usize| if i == rows / 2 { 12.0 } else { 1.0 };
        let gradient = |i: usize| 0.3 * scatter(seed + 3, i, 0.5) * leap(i);
        let flat = |i: usize| (0.3 + 0.1 * noise(seed + 4, i)).clamp(0.0, 1.0);
        let clipped = |i: usize| 0.004 * scatter(seed + 5, i, 0.5);
        let moved = |i: usize| 3e-4 * noise(seed + 6, i);
        let prob = |i: usize| 0.004 * scatter(seed + 8, i, 0.2);
        let ratio = |i: usize| 1.02 + 0.003 * noise(seed + 9, i);
        let weight = |i: usize| 1.0 + 0.02 * noise(seed + 10, i);
        let age = |i: usize| 1.5 + 0.3 * noise(seed + 11, i);
        let explained = |i: usize| -1.5 + 1.8 * learnt(i) + 0.1 * noise(seed + 12, i);
        let value_loss = |i: usize| (0.02 + 0.03 * learnt(i)) * scatter(seed + 13, i, 0.3);
        let invalid = |i: usize| 0.6 * (1.0 - learnt(i)) * scatter(seed + 14, i, 0.1);
        let columns: [Column<'_>; 16] = [
            ("lr", &lr),
            ("reward.mean", &reward),
            ("kl.ref", &kl),
            ("entropy", &entropy),
            ("grad_norm", &gradient),
            ("groups.flat", &flat),
            ("clip.frac", &clipped),
            ("kl.old", &moved),
            ("mismatch.prob", &prob),
            ("mismatch.ratio", &ratio),
            ("weights.mean", &weight),
            ("weights.ess", &|_| 0.95),
            ("stale.mean", &age),
            ("value.explained", &explained),
            ("value.loss", &value_loss),
            ("action.invalid", &invalid),
        ];
        let run = set(run(rows, &columns), "lora", false);
        set(set(run, "kl.loss", 0.001), "gradient.clip", 1.0)
    }

    /// Training on preferences: sides that part after a warm-up, the chosen one falling a little.
    fn healthy_pairs(seed: u64) -> Run {
        let rows = 25 + 13 * (seed as usize % 20);
        let part = |i: usize| i as f64 / rows as f64;
        let margin = |i: usize| 1.5 * part(i).powi(2) + 0.05 * noise(seed, i);
        let chosen = |i: usize| -0.4 * part(i) + 0.03 * noise(seed + 1, i);
        let accuracy = |i: usize| 0.5 + 0.25 * part(i) + 0.06 * noise(seed + 2, i);
        let loss = |i: usize| (1.0 + (-margin(i)).exp()).ln();
        let gradient = |i: usize| 20.0 * (-6.0 * part(i)).exp() * scatter(seed + 3, i, 0.3);
        let lr = |i: usize| 5e-7 * (10.0 * part(i)).min(1.0 - part(i));
        let columns: [Column<'_>; 6] = [
            ("lr", &lr),
            ("loss", &loss),
            ("grad_norm", &gradient),
            ("pref.margin", &margin),
            ("pref.chosen", &chosen),
            ("pref.accuracy", &accuracy),
        ];
        run(rows, &columns)
    }

    #[test]
    fn healthy_runs_have_nothing_above_a_note() {
        for seed in 0..100 {
            for run in [healthy(seed), healthy_pairs(seed)] {
                let findings = run.judge(&Asked::default()).findings.into_iter();
                let above = findings.filter(|finding| finding.severity > Severity::Note);
                let said: Vec<String> =
                    above.map(|finding| format!("{}: {}", finding.rule, finding.found)).collect();
                assert!(said.is_empty(), "seed {seed}: {said:?}");
            }
        }
    }
}
