//! The rules about runs, tried on simulated trainings: each finds its bugs, healthy runs have none,
//! and what does not matter in a log changes nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};

use shakedown_lint::report::{Severity, Subject};
use shakedown_lint::rules::Asked;
use shakedown_lint::runs::names::meaning;
use shakedown_lint::runs::simulate::bug::Bug;
use shakedown_lint::runs::simulate::random::Random;
use shakedown_lint::runs::simulate::{LIBRARIES, Row, Simulation, read, read_rounded};
use shakedown_lint::runs::statistics::Statistics;
use shakedown_lint::runs::{Run, rules};

const SEEDS: u64 = 30;
/// Of 30 seeds, a bug may hide in one.
const CAUGHT: usize = 29;

/// Does something for each of many cases on all cores; gives what it says of them, in order.
fn each<T: Sync, R: Send>(cases: &[T], work: impl Fn(&T) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some(case) = cases.get(at) else { break };
                    let said = work(case);
                    done.lock().expect("no panic while it is held").push((at, said));
                }
            });
        }
    });
    let mut done = done.into_inner().expect("all threads have ended");
    done.sort_by_key(|(at, _)| *at);
    done.into_iter().map(|(_, said)| said).collect()
}

fn judged(run: &Run) -> Subject {
    run.judge(&Asked::default())
}

fn fired(subject: &Subject) -> Fired {
    let above = |least: Severity| {
        let fired = subject.findings.iter().filter(|one| one.severity >= least);
        fired.map(|one| one.rule.clone()).collect()
    };
    [above(Severity::Note), above(Severity::Warning)]
}

/// Rules that never say more than a note of what they catch.
const NOTES: [&str; 5] = [
    "reward-parts-disagree",
    "gradient-always-clipped",
    "run-resumed",
    "ends-early",
    "task-solved",
];
/// A bug of which a rule says no more than a note: what is solved from the start harms nobody.
const NOTED: (&str, Bug) = ("groups-flat", Bug::TooEasy);

/// The rules that fired, and those that did so above a note.
type Fired = [BTreeSet<String>; 2];

/// For each bug and seed, what fired.
static CAUGHT_BY: LazyLock<Vec<(Bug, Vec<Fired>)>> = LazyLock::new(|| {
    let cases: Vec<(Bug, u64)> =
        Bug::ALL.iter().flat_map(|bug| (0..SEEDS).map(|seed| (*bug, seed))).collect();
    let all = each(&cases, |(bug, seed)| fired(&judged(&Simulation::with(*bug, *seed).run())));
    let chunks = all.chunks(SEEDS as usize).map(<[_]>::to_vec);
    Bug::ALL.iter().copied().zip(chunks).collect()
});

#[test]
fn every_rule_names_a_bug_that_exists() {
    let ids: BTreeSet<&str> = Bug::ALL.iter().map(|bug| bug.id()).collect();
    let mut caught = BTreeSet::new();
    for rule in rules::all() {
        assert!(!rule.head.catches.is_empty(), "{} catches no simulated bug", rule.id);
        for bug in rule.head.catches {
            assert!(ids.contains(bug), "{} catches {bug}, which no training has", rule.id);
            caught.insert(*bug);
        }
    }
    let free: Vec<_> = ids.difference(&caught).collect();
    assert!(free.is_empty(), "no rule catches {free:?}");
}

#[test]
fn every_rule_catches_its_bugs() {
    let mut missed = Vec::new();
    for rule in rules::all() {
        for bug in rule.head.catches {
            let (one, seeds) =
                CAUGHT_BY.iter().find(|(one, _)| one.id() == *bug).expect("it exists");
            let level = usize::from(!NOTES.contains(&rule.id) && (rule.id, *one) != NOTED);
            let fires = |fired: &Fired| fired[level].contains(rule.id);
            let seeds: Vec<usize> = (0..seeds.len()).filter(|seed| !fires(&seeds[*seed])).collect();
            if SEEDS as usize - seeds.len() < CAUGHT {
                missed.push(format!("{} misses {bug} with the seeds {seeds:?}", rule.id));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn healthy_runs_have_nothing_above_a_note() {
    let seeds: Vec<u64> = (0..200).collect();
    let found = each(&seeds, |seed| {
        let plan = Simulation::healthy(*seed);
        let rows = plan.rows();
        let unknown = read(&rows);
        let known = Run { settings: plan.settings(), ..unknown.clone() };
        let rounded = Run { settings: plan.settings(), ..read_rounded(&rows, 3) };
        let mut said = Vec::new();
        let runs = [(known, "with"), (unknown, "without"), (rounded, "rounded, with")];
        for (run, with) in runs {
            for one in judged(&run).findings.iter().filter(|one| one.severity > Severity::Note) {
                said.push(format!(
                    "seed {seed} {with} settings: {}: {} ({} {:?} of {} steps)",
                    one.rule,
                    one.found,
                    plan.library.name(),
                    plan.algorithm,
                    plan.steps
                ));
            }
        }
        said
    });
    let found: Vec<String> = found.into_iter().flatten().collect();
    assert!(found.is_empty(), "{} findings\n{}", found.len(), found.join("\n"));
}

/// Trainings of all kinds, healthy and not, and what they logged.
static LOGS: LazyLock<Vec<(Simulation, Vec<Row>)>> = LazyLock::new(|| {
    let buggy = Bug::ALL.iter().map(|bug| Simulation::with(*bug, 100));
    let plans: Vec<Simulation> = buggy.chain((300..320).map(Simulation::healthy)).collect();
    let rows = each(&plans, Simulation::rows);
    plans.into_iter().zip(rows).collect()
});

/// Compares what is found above a note in a log and in one that says the same.
fn nothing_changes(what: &str, change: impl Fn(&Simulation, &[Row]) -> Vec<Row> + Sync) {
    compare(what, |_, _| true, change);
}

/// The same where values change a little. What a bug does on the side may be near a limit: only the
/// rules that are to catch it must agree, and of a healthy run all.
fn little_changes(what: &str, change: impl Fn(&Simulation, &[Row]) -> Vec<Row> + Sync) {
    let catches = |bug: Bug, id: &str| {
        rules::all().iter().any(|rule| rule.id == id && rule.head.catches.contains(&bug.id()))
    };
    compare(what, |plan, id| plan.bug.is_none_or(|bug| catches(bug, id)), change);
}

fn compare(
    what: &str,
    counts: impl Fn(&Simulation, &str) -> bool + Sync,
    change: impl Fn(&Simulation, &[Row]) -> Vec<Row> + Sync,
) {
    let changed = each(&LOGS, |(plan, rows)| {
        let found = |rows: &[Row]| {
            let run = Run { settings: plan.settings(), ..read(rows) };
            let [_, above] = fired(&judged(&run));
            above.into_iter().filter(|id| counts(plan, id)).collect::<BTreeSet<String>>()
        };
        let (before, after) = (found(rows), found(&change(plan, rows)));
        (before != after).then(|| {
            let bug = plan.bug.map_or("healthy", Bug::id);
            let gone: Vec<_> = before.difference(&after).collect();
            let new: Vec<_> = after.difference(&before).collect();
            format!("{bug} {}: no longer {gone:?}, newly {new:?}", plan.seed)
        })
    });
    let changed: Vec<String> = changed.into_iter().flatten().collect();
    assert!(changed.is_empty(), "{what} changes {}\n{}", changed.len(), changed.join("\n"));
}

fn is_step(name: &str) -> bool {
    meaning(name).is_some_and(|meaning| meaning.id == "step")
}

/// Each value of a log, changed by what its name stands for.
fn each_value(rows: &[Row], mut change: impl FnMut(&str, f64) -> f64) -> Vec<Row> {
    let mut changed = rows.to_vec();
    for (name, value) in changed.iter_mut().flatten() {
        let known = meaning(name).filter(|meaning| meaning.id != "step");
        if let Some(known) = known {
            *value = change(&known.id, *value);
        }
    }
    changed
}

#[test]
fn the_scale_of_the_steps_does_not_matter() {
    nothing_changes("another count of steps", |_, rows| {
        let mut rows = rows.to_vec();
        for (name, value) in rows.iter_mut().flatten() {
            if is_step(name) {
                *value = *value * 7.0 + 3.0;
            }
        }
        rows
    });
}

#[test]
fn the_order_of_columns_does_not_matter() {
    nothing_changes("another order of columns", |plan, rows| {
        let mut random = Random::new(plan.seed, 11);
        let mut rows = rows.to_vec();
        rows.iter_mut().for_each(|row| random.shuffle(row));
        rows
    });
}

#[test]
fn columns_that_nobody_knows_do_not_matter() {
    nothing_changes("a column that nobody knows", |_, rows| {
        let mut rows = rows.to_vec();
        for (at, row) in rows.iter_mut().enumerate() {
            row.insert(0, ("perf/my_time_s".to_owned(), at as f64));
            row.push(("my/metric".to_owned(), f64::NAN));
        }
        rows
    });
}

#[test]
fn what_was_written_twice_counts_once() {
    nothing_changes("a segment that is written twice", |_, rows| {
        let (from, to) = (rows.len() * 4 / 10, rows.len() * 6 / 10);
        [&rows[..to], &rows[from..]].concat()
    });
}

#[test]
fn the_seventh_decimal_does_not_matter() {
    let changed = each(&LOGS, |(plan, rows)| {
        let found = |run: Run| fired(&judged(&Run { settings: plan.settings(), ..run }));
        let ([_, before], [_, after]) = (found(read(rows)), found(read_rounded(rows, 8)));
        let bug = plan.bug.map_or("healthy", Bug::id);
        (before != after).then(|| format!("{bug}: {before:?} became {after:?}"))
    });
    let changed: Vec<String> = changed.into_iter().flatten().collect();
    assert!(changed.is_empty(), "{}", changed.join("\n"));
}

#[test]
fn the_scale_of_the_rewards_does_not_matter() {
    nothing_changes("other units of the reward", |_, rows| {
        each_value(rows, |id, value| match id {
            "reward.mean" | "reward.max" | "reward.min" | "reward.shaped" => 3.0 * value + 2.0,
            _ if id.starts_with("reward.") => 3.0 * value,
            _ => value,
        })
    });
}

#[test]
fn a_twentieth_of_the_cells_may_be_missing() {
    little_changes("a twentieth of the cells missing", |plan, rows| {
        let mut random = Random::new(plan.seed, 12);
        let mut rows = rows.to_vec();
        if rows.len() >= 100 {
            rows.iter_mut().for_each(|row| {
                row.retain(|(name, _)| is_step(name) || !random.chance(0.05));
            });
        }
        rows
    });
}

/// What is exact: what was set, what was counted, and what bounds another or adds up to it.
fn is_exact(id: &str) -> bool {
    let ends = [".max", ".min", ".low", ".high", ".coef", "_max"];
    let sums = ["reward.part.", "groups.", "clip.", "stale."];
    id == "lr"
        || ends.iter().any(|end| id.ends_with(end))
        || sums.iter().any(|sum| id.starts_with(sum))
}

#[test]
fn a_little_noise_does_not_matter() {
    little_changes("noise of a tenth of the scatter", |plan, rows| {
        let run = read(rows);
        let figures: BTreeMap<&str, Statistics> = run
            .series
            .iter()
            .filter_map(|(id, series)| Some((id.as_str(), Statistics::of(series)?)))
            .collect();
        let mut random = Random::new(plan.seed, 13);
        let noisy = each_value(rows, |id, value| match figures.get(id) {
            Some(figures) if !is_exact(id) => {
                let noisy = value + 0.1 * figures.sigma * random.normal();
                noisy.clamp(run.series[id].min(), run.series[id].max())
            }
            _ => value,
        });
        noisy.into_iter().map(bounded).collect()
    });
}

/// Puts what is a mean between the smallest and the largest of its row.
fn bounded(mut row: Row) -> Row {
    let id = |name: &str| meaning(name).map(|meaning| meaning.id).unwrap_or_default();
    let values: BTreeMap<String, f64> =
        row.iter().map(|(name, value)| (id(name), *value)).collect();
    for (name, value) in &mut row {
        let id = id(name);
        let Some(of) = id.strip_suffix(".mean") else { continue };
        if let Some(most) = values.get(&format!("{of}.max")) {
            *value = value.min(*most);
        }
        if let Some(least) = values.get(&format!("{of}.min")) {
            *value = value.max(*least);
        }
    }
    row
}

#[test]
fn the_names_of_another_library_do_not_matter() {
    let changed = each(&LOGS, |(plan, rows)| {
        let others = LIBRARIES.iter().filter(|library| **library != plan.library);
        let library =
            *others.cycle().nth(plan.bug.map_or(plan.seed as usize, |bug| bug as usize))?;
        let other = Simulation { library, ..plan.clone() };
        let ids = |rows: &[Row]| -> BTreeSet<String> {
            let names = rows.iter().flatten().filter_map(|(name, _)| meaning(name));
            names.map(|meaning| meaning.id).collect()
        };
        let [ours, theirs] = [rows.clone(), other.rows()];
        let both: BTreeSet<String> = ids(&ours).intersection(&ids(&theirs)).cloned().collect();
        let found = |plan: &Simulation, mut rows: Vec<Row>| {
            let is_shared = |name: &str| meaning(name).is_some_and(|one| both.contains(&one.id));
            rows.iter_mut().for_each(|row| row.retain(|(name, _)| is_shared(name)));
            let [_, above] = fired(&judged(&Run { settings: plan.settings(), ..read(&rows) }));
            above
        };
        let (before, after) = (found(plan, ours), found(&other, theirs));
        let bug = plan.bug.map_or("healthy", Bug::id);
        let names = [plan.library.name(), library.name()];
        (before != after).then(|| format!("{bug} {names:?}: {before:?} became {after:?}"))
    });
    let changed: Vec<String> = changed.into_iter().flatten().collect();
    assert!(changed.is_empty(), "{}\n{}", changed.len(), changed.join("\n"));
}

#[test]
fn a_reward_that_is_negated_is_found() {
    for seed in 0..10 {
        let library = LIBRARIES[seed as usize % LIBRARIES.len()];
        let plan =
            Simulation { library, bug: None, ..Simulation::with(Bug::RewardsShuffled, seed) };
        let plan = Simulation { steps: 160, rate: 1e-6, prompts: 8, eval_every: None, ..plan };
        let negated = plan.rows().into_iter().map(negated).collect::<Vec<Row>>();
        let [_, found] = fired(&judged(&Run { settings: plan.settings(), ..read(&negated) }));
        assert!(found.contains("reward-declines"), "seed {seed}: {found:?}");
    }
}

/// A row whose rewards have the other sign: what was the largest is the smallest.
fn negated(row: Row) -> Row {
    let swap = |name: String, value: f64| match meaning(&name).map(|one| one.id).as_deref() {
        Some("reward.max") => (name.replace("max", "min"), -value),
        Some("reward.min") => (name.replace("min", "max"), -value),
        Some("reward.mean" | "reward.shaped") => (name, -value),
        Some(id) if id.starts_with("reward.part.") && !id.ends_with(".std") => (name, -value),
        _ => (name, value),
    };
    row.into_iter().map(|(name, value)| swap(name, value)).collect()
}

#[test]
fn a_tail_that_is_not_finite_is_found() {
    let missed = each(&LOGS, |(plan, rows)| {
        let mut rows = rows.clone();
        let from = rows.len().saturating_sub(5);
        for (name, value) in rows[from..].iter_mut().flatten() {
            if !is_step(name) {
                *value = f64::NAN;
            }
        }
        let [_, found] = fired(&judged(&Run { settings: plan.settings(), ..read(&rows) }));
        (!found.contains("non-finite")).then(|| plan.bug.map_or("healthy", Bug::id))
    });
    let missed: Vec<&str> = missed.into_iter().flatten().collect();
    assert!(missed.is_empty(), "{missed:?}");
}

#[test]
fn a_seed_always_gives_the_same_log() {
    for bug in [Bug::EasyTask, Bug::CriticFrozen, Bug::DpoSwapped] {
        let plan = Simulation::with(bug, 5);
        assert_eq!(plan.rows(), plan.rows(), "{}", bug.id());
        assert_ne!(plan.rows(), Simulation { seed: 6, ..plan }.rows(), "{}", bug.id());
    }
}
