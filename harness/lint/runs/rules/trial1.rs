//! Runs to try rules on: every metric is a function of the row.

use std::collections::{BTreeMap, BTreeSet};

use crate::report::Severity;
use crate::rules::Asked;
use crate::runs::Run;
use crate::runs::series::{Bucket, Series};
use crate::runs::statistics::mean;

/// A metric and its value in each row, counted from 0; NaN where it is not logged.
pub(in crate::runs) type Metric<'a> = (&'a str, &'a dyn Fn(usize) -> f64);

/// A run of so many rows, whose steps begin at 1.
pub(in crate::runs) fn run(rows: usize, metrics: &[Metric<'_>]) -> Run {
    let mut run = Run { rows: rows as u64, steps: Some([1, rows as i64]), ..Run::default() };
    for (id, value) in metrics {
        let mut series = Series { name: (*id).to_owned(), ..Series::default() };
        for row in (0..rows).filter(|row| !value(*row).is_nan()) {
            series.push(Bucket::of(row as u64, row as i64 + 1, row + 1, value(row)));
        }
        run.series.insert((*id).to_owned(), series);
    }
    run
}

/// A normal deviate that depends on nothing but a seed and a row.
pub(in crate::runs) fn noise(seed: u64, row: usize) -> f64 {
    let radius = (-2.0 * uniform(seed, 2 * row as u64).ln()).sqrt();
    radius * (std::f64::consts::TAU * uniform(seed, 2 * row as u64 + 1)).cos()
}

/// A number in (0, 1), the same for the same arguments (the finaliser of SplitMix64).
pub(in crate::runs) fn uniform(seed: u64, at: u64) -> f64 {
    let mut bits = seed.wrapping_mul(0xd1b5_4a32_d192_ed03).wrapping_add(at + 1);
    bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    ((bits >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
}

/// What a rule says of a run: its findings.
pub(in crate::runs) fn findings(run: &Run, rule: &str) -> Vec<(Severity, [i64; 2])> {
    let subject = run.judge(&Asked { only: vec![rule.to_owned()], skip: vec![] });
    let findings = subject.findings.iter();
    findings.map(|one| (one.severity, one.steps.expect("a finding has steps"))).collect()
}

/// Columns of a run, each a value a row.
pub(in crate::runs) type Columns = Vec<(&'static str, Vec<f64>)>;

/// A run of these columns.
pub(in crate::runs) fn run_of(columns: &Columns) -> Run {
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    let get = |values: &Vec<f64>| {
        let values = values.clone();
        Box::new(move |i: usize| values[i]) as Box<dyn Fn(usize) -> f64>
    };
    let columns: Vec<_> = columns.iter().map(|(id, values)| (*id, get(values))).collect();
    let metrics: Vec<Metric<'_>> = columns.iter().map(|(id, get)| (*id, &**get)).collect();
    run(rows, &metrics)
}

/// A training: completions of prompts, in groups, that are scored with 0 or 1 for being right and
/// with something for their form. Skill and difficulty are log-odds of being right.
#[derive(Clone, Debug)]
pub(in crate::runs) struct Course {
    seed: u64,
    rows: usize,
    prompts: usize,
    group: usize,
    /// How good the policy is at first, and what it gains.
    skill: [f64; 2],
    /// How fast: most of it is gained within the first 1/speed of the run.
    speed: f64,
    /// How much prompts differ.
    spread: f64,
    /// By how much they are harder in the last quarter, and for a while late.
    harder: [f64; 2],
    /// By how much they are harder and easier as the data come around again.
    drift: f64,
    /// By what the lengths are multiplied in the end.
    longer: f64,
    /// What the form is worth.
    form: f64,
}

impl Course {
    /// One in which the policy learns.
    pub(in crate::runs) fn healthy(seed: u64) -> Course {
        let pick = |at: u64, from: &[f64]| from[(uniform(seed, at) * from.len() as f64) as usize];
        let rows = pick(1, &[30.0, 60.0, 100.0, 150.0, 400.0, 1500.0]) as usize;
        Course {
            seed,
            rows: if seed % 50 == 49 { 5000 } else { rows },
            prompts: pick(2, &[4.0, 8.0, 16.0, 32.0]) as usize,
            group: pick(3, &[4.0, 8.0, 16.0]) as usize,
            skill: [pick(4, &[-1.5, -0.5, 0.5]), pick(5, &[1.5, 2.5, 3.5])],
            speed: pick(6, &[1.0, 3.0, 8.0]),
            spread: pick(7, &[0.5, 1.0, 1.5]),
            harder: [pick(8, &[0.0, 0.0, 0.7, 1.2]), pick(9, &[0.0, 0.0, 0.5])],
            drift: pick(12, &[0.0, 0.0, 0.3]),
            longer: pick(10, &[0.5, 1.0, 1.6, 3.0]),
            form: pick(11, &[0.0, 0.5]),
        }
    }

    /// The same where every step goes the wrong way.
    pub(in crate::runs) fn negated(self) -> Course {
        let [skill, gain] = self.skill;
        Course { skill: [skill + 1.0, -gain - 1.5], harder: [0.0; 2], form: 0.0, ..self }
    }

    /// The same with prompts that are hardly ever solved.
    pub(in crate::runs) fn too_hard(self) -> Course {
        Course { skill: [-9.0, 0.1], form: 0.0, ..self }
    }

    /// What it logs; some metrics are left out, and one cell in twenty.
    pub(in crate::runs) fn columns(&self) -> Columns {
        let mut columns: Columns = COLUMNS.iter().map(|id| (*id, Vec::new())).collect();
        for row in 0..self.rows {
            for ((_, column), value) in columns.iter_mut().zip(self.row(row)) {
                column.push(value);
            }
        }
        for (at, (_, column)) in columns.iter_mut().enumerate() {
            let drops = |row: usize| uniform(self.seed ^ 5, (row * 16 + at) as u64) < 0.05;
            let cells = column.iter_mut().enumerate();
            cells
                .filter(|(row, _)| self.rows >= 100 && drops(*row))
                .for_each(|(_, x)| *x = f64::NAN);
        }
        let mut at = 100;
        columns.retain(|(id, _)| {
            at += 1;
            *id == "reward.mean" || uniform(self.seed, at) < 0.7
        });
        columns
    }

    fn learned(&self, time: f64) -> f64 {
        (1.0 - (-self.speed * time).exp()) / (1.0 - (-self.speed).exp())
    }

    fn difficulty(&self, row: usize) -> f64 {
        let time = row as f64 / self.rows as f64;
        let [last, dip] = self.harder;
        let late = if time > 0.75 { last } else { 0.0 };
        let dips = if (0.8..0.9).contains(&time) { dip } else { 0.0 };
        late + dips + self.drift * (std::f64::consts::TAU * row as f64 / 37.0).sin()
    }

    /// How likely a prompt is solved that is harder than usual by so much.
    fn chance(&self, time: f64, harder: f64) -> f64 {
        let skill = self.skill[0] + self.skill[1] * self.learned(time);
        1.0 / (1.0 + (harder - skill).exp())
    }

    /// The scores of a group in which a completion is right with this chance, and how many are.
    fn group(&self, row: usize, prompt: usize, chance: f64) -> (Vec<f64>, f64) {
        let draw = |at: usize| uniform(self.seed ^ 0xbeef, (row * 4096 + at) as u64);
        let formed = 1.0 - 0.6 * (-10.0 * row as f64 / self.rows as f64).exp();
        let mut right = 0.0;
        let scores = (0..self.group).map(|one| {
            let at = 2 * (prompt * 16 + one);
            let is_right = f64::from(u8::from(draw(at) < chance));
            right += is_right;
            is_right + self.form * f64::from(u8::from(draw(at + 1) < formed))
        });
        (scores.collect(), right)
    }

    fn row(&self, row: usize) -> [f64; COLUMNS.len()] {
        let time = row as f64 / self.rows as f64;
        let (learned, late) = (self.learned(time), self.difficulty(row));
        let (mut rewards, mut right, mut stds) = (Vec::new(), 0.0, Vec::new());
        for prompt in 0..self.prompts {
            let harder = late + self.spread * noise(self.seed ^ 7, row * 64 + prompt);
            let (scores, solved) = self.group(row, prompt, self.chance(time, harder));
            right += solved / (self.prompts * self.group) as f64;
            stds.push(deviation(&scores));
            rewards.extend(scores);
        }
        let flat = stds.iter().filter(|std| **std < 1e-9).count() as f64 / stds.len() as f64;
        let of = |k: usize| noise(self.seed ^ 99, row * 16 + k);
        let length = 300.0 * self.longer.powf(learned) * (1.0 + 0.3 * late) * (1.0 + 0.05 * of(0));
        let held_out = self.chance(time, 0.0) + 0.04 * of(1);
        [
            mean(&rewards),
            deviation(&rewards),
            mean(&stds),
            flat,
            length,
            (0.02 + 0.03 * learned + 0.01 * of(2)).max(0.0),
            0.05 * learned + 0.004 * of(3).abs(),
            0.5 * (-learned).exp() * (1.0 + 0.05 * of(4)),
            0.3 * (0.3 * of(5)).exp(),
            right,
            (right * (1.0 - right)).sqrt(),
            if row % 10 == 9 { held_out } else { f64::NAN },
        ]
    }
}

const COLUMNS: [&str; 12] = [
    "reward.mean",
    "reward.std",
    "reward.group_std",
    "groups.flat",
    "length.mean",
    "length.clipped",
    "kl.ref",
    "entropy",
    "grad_norm",
    "reward.part.correct",
    "reward.part.correct.std",
    "eval.math",
];

fn deviation(values: &[f64]) -> f64 {
    let around = mean(values);
    let squares: Vec<f64> = values.iter().map(|value| (value - around).powi(2)).collect();
    mean(&squares).sqrt()
}

/// The rules that speak above a note, each with what it says.
fn above_a_note(run: &Run) -> Vec<(String, String)> {
    let subject = run.judge(&Asked::default());
    let above = subject.findings.into_iter().filter(|one| one.severity > Severity::Note);
    above.map(|one| (one.rule, one.found)).collect()
}

fn rules_above_a_note(run: &Run) -> BTreeSet<String> {
    above_a_note(run).into_iter().map(|(rule, _)| rule).collect()
}

#[test]
fn runs_that_learn_have_nothing_above_a_note() {
    let mut alarms = Vec::new();
    for seed in 0..400 {
        let found = above_a_note(&run_of(&Course::healthy(seed).columns()));
        alarms.extend(found.iter().map(|(rule, found)| format!("seed {seed}: {rule}: {found}")));
    }
    assert!(alarms.is_empty(), "{} alarms\n{}", alarms.len(), alarms.join("\n"));
}

#[test]
fn runs_that_go_wrong_are_found_whatever_else_they_log() {
    let found = |course: Course, rules: &[&str]| {
        let found = rules_above_a_note(&run_of(&course.columns()));
        rules.iter().any(|rule| found.contains(*rule))
    };
    let healthy = || (0..200).map(Course::healthy);
    // With few completions a row, the noise of 30 rows hides even this.
    let seen = healthy().filter(|one| one.rows * one.prompts >= 400);
    let negated: Vec<_> = seen.map(|one| found(one.negated(), &["reward-declines"])).collect();
    let missed = negated.iter().filter(|found| !**found).count();
    assert!(missed * 30 <= negated.len(), "{missed} of {}", negated.len());
    let nothing = ["groups-flat", "reward-constant"];
    let too_hard = healthy().filter(|one| found(one.clone().too_hard(), &nothing)).count();
    assert!(too_hard >= 194, "{too_hard} of 200");
}

/// The courses whose findings must stay what they are under a change that means nothing.
fn courses() -> impl Iterator<Item = Columns> {
    let one = |seed: u64| {
        let healthy = Course::healthy(seed);
        [healthy.clone(), healthy.clone().negated(), healthy.too_hard()]
    };
    (0..60).flat_map(one).filter(|course| course.rows < 1000).map(|course| course.columns())
}

#[test]
fn scale_and_origin_of_the_rewards_and_of_the_steps_change_no_finding() {
    for columns in courses() {
        let plain = run_of(&columns);
        let mut scaled = plain.clone();
        for (id, series) in scaled.series.iter_mut().filter(|(id, _)| id.starts_with("reward.")) {
            let shift = if id.ends_with("std") { 0.0 } else { 96.0 };
            for bucket in &mut series.buckets {
                for value in [&mut bucket.mean, &mut bucket.min, &mut bucket.max] {
                    *value = 8.0 * *value + shift;
                }
            }
        }
        for bucket in scaled.series.values_mut().flat_map(|series| &mut series.buckets) {
            bucket.steps = bucket.steps.map(|step| 20 * step + 1000);
        }
        assert_eq!(rules_above_a_note(&plain), rules_above_a_note(&scaled));
    }
}

/// What is folded under what, of the rules that fire.
fn folded(run: &Run) -> BTreeMap<String, Option<String>> {
    let findings = run.judge(&Asked::default()).findings;
    findings.into_iter().map(|one| (one.rule, one.explained_by)).collect()
}

#[test]
fn what_follows_from_another_finding_is_folded_under_it() {
    let still = |i: usize| 0.01 + 0.003 * noise(1, i);
    let flat = |i: usize| 0.97 + 0.01 * noise(2, i);
    let run_of_hard =
        run(200, &[("reward.mean", &still), ("reward.std", &|_| 0.1), ("groups.flat", &flat)]);
    let folds = folded(&run_of_hard);
    assert_eq!(folds["groups-flat"], None);
    assert_eq!(folds["reward-flat"].as_deref(), Some("groups-flat"));

    let falls = |i: usize| 0.5 * (-0.05 * i as f64).exp() + 0.01 * noise(3, i);
    let flattens = |i: usize| 1.0 - 0.9 * (-0.05 * i as f64).exp();
    let run_of_sign = run(200, &[("reward.mean", &falls), ("groups.flat", &flattens)]);
    assert_eq!(folded(&run_of_sign)["groups-flat"].as_deref(), Some("reward-declines"));

    let run_of_stuck = run(50, &[("length.clipped", &|_| 1.0), ("length.mean", &|_| 512.0)]);
    assert_eq!(folded(&run_of_stuck)["truncation"].as_deref(), Some("never-stops"));

    let grows = |i: usize| 200.0 + 4.0 * i as f64 + 5.0 * noise(4, i);
    let rises = |i: usize| 0.2 + 0.003 * i as f64 + 0.02 * noise(5, i);
    let cut = |i: usize| (0.01 * (i as f64 - 100.0)).clamp(0.0, 0.6);
    let run_of_long =
        run(200, &[("length.mean", &grows), ("reward.mean", &rises), ("length.clipped", &cut)]);
    let folds = folded(&run_of_long);
    assert_eq!(folds["length-explodes"].as_deref(), Some("length-hack"));
    assert_eq!(folds["truncation"].as_deref(), Some("length-hack"));
}
