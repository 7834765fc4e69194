//! Snapshots of a suite: recorded, unchanged, with noise, changed. The program runs itself as the
//! suite of a package whose folder is a temporary one.

#[path = "support/folder.rs"]
#[expect(dead_code, reason = "the command is of no use here")]
mod folder;

use std::process::{Command, ExitCode};

use folder::Folder;
use libtest_mimic::{Arguments, Failed, Trial};
use shakedown::Suite;
use shakedown::contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase, Options, Scale};
use shakedown::value::place::Place;

/// The factor on the advantages of the suite, and the sign that the program is to be the suite.
const FACTOR: &str = "SHAKEDOWN_TEST_FACTOR";

/// Where the suite's snapshot is.
const SNAPSHOT: &str = "kept/dr.-grpo-cpu-f32.snap";

fn main() -> ExitCode {
    match std::env::var(FACTOR) {
        Ok(factor) => suite(factor.parse().expect("the factor is a number")),
        Err(_) => libtest_mimic::run(&Arguments::from_args(), trials()).exit_code(),
    }
}

/// Rewards less the mean of their group, times a factor.
fn suite(factor: f64) -> ExitCode {
    let centred = move |case: &GroupAdvantageCase| {
        let mean = |group: i64| {
            let rows = case.groups.iter().zip(&case.rewards).filter(|(other, _)| **other == group);
            let (count, sum) = rows.fold((0.0, 0.0), |(count, sum), (_, r)| (count + 1.0, sum + r));
            sum / count
        };
        let rows = case.rewards.iter().zip(&case.groups);
        rows.map(|(reward, group)| factor * (reward - mean(*group))).collect::<Vec<f64>>()
    };
    let options = Options { scale: Scale::None, ..Options::default() };
    let check = |name| {
        let check = shakedown::check::<GroupAdvantage>(centred).named(name).without_corpora();
        check.options(options.clone()).places([Place::CPU_F32])
    };
    let mut suite = Suite::new().with(check("dr. grpo")).snapshots("kept");
    if std::env::var_os("TWO_OF_A_NAME").is_some() {
        suite = suite.with(check("dr. grpo"));
    }
    suite.run()
}

type Test = fn() -> Result<(), Failed>;

fn trials() -> Vec<Trial> {
    let tests: [(&str, Test); 7] = [
        ("a_snapshot_test_is_listed_for_each_component_and_place", listed),
        ("without_a_snapshot_the_test_fails_and_leaves_one_to_review", first),
        ("unchanged_outputs_pass", unchanged),
        ("noise_of_the_last_bits_passes_and_rewrites_nothing", noise),
        ("changed_behaviour_fails_with_the_difference_and_leaves_one_to_review", changed),
        ("a_change_can_be_accepted_without_cargo_insta", accepted),
        ("two_components_of_one_snapshot_are_refused", twins),
    ];
    tests.into_iter().map(|(name, test)| Trial::test(name, test)).collect()
}

/// What the suite says, as the package in a folder; `update` is what insta is to do.
fn run(folder: &Folder, factor: &str, update: &str, arguments: &[&str]) -> (bool, String) {
    let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
    for name in ["CI", "INSTA_FORCE_PASS", "INSTA_OUTPUT", "INSTA_PENDING_DIR"] {
        command.env_remove(name);
    }
    command.env("CARGO_MANIFEST_DIR", folder.path("")).env("INSTA_UPDATE", update);
    command.env("NO_COLOR", "1").env(FACTOR, factor).args(arguments);
    let output = command.output().expect("the suite starts");
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).expect("the suite writes UTF-8"))
}

fn recorded() -> Folder {
    let folder = Folder::new();
    let (passed, text) = run(&folder, "1", "always", &["snapshot"]);
    assert!(passed, "{text}");
    folder
}

fn kept(folder: &Folder) -> String {
    std::fs::read_to_string(folder.path(SNAPSHOT)).expect("the snapshot was written")
}

fn pending(folder: &Folder) -> bool {
    folder.path(&format!("{SNAPSHOT}.new")).exists()
}

fn listed() -> Result<(), Failed> {
    let (_, text) = run(&Folder::new(), "1", "no", &["--list"]);
    assert!(text.contains("dr. grpo::snapshot::cpu/f32: test"), "{text}");
    Ok(())
}

fn first() -> Result<(), Failed> {
    let folder = Folder::new();
    let (passed, text) = run(&folder, "1", "auto", &["snapshot"]);
    assert!(!passed && pending(&folder) && text.contains("cargo insta review"), "{text}");
    assert!(text.contains("INSTA_UPDATE=always"), "{text}");
    Ok(())
}

fn unchanged() -> Result<(), Failed> {
    let folder = recorded();
    let (passed, text) = run(&folder, "1", "no", &["snapshot"]);
    assert!(passed && text.contains("1 passed"), "{text}");
    let kept = kept(&folder);
    assert!(kept.contains("\n  advantages [-"), "{kept}");
    Ok(())
}

fn noise() -> Result<(), Failed> {
    let folder = recorded();
    let before = kept(&folder);
    for factor in ["1.00000006", "0.99999994"] {
        let (passed, text) = run(&folder, factor, "always", &["snapshot"]);
        assert!(passed, "{text}");
    }
    assert_eq!(kept(&folder), before);
    Ok(())
}

fn changed() -> Result<(), Failed> {
    let folder = recorded();
    let before = kept(&folder);
    for factor in ["1.00001", "-1", "NaN"] {
        let (passed, text) = run(&folder, factor, "auto", &["snapshot"]);
        assert!(!passed && pending(&folder), "{text}");
        assert!(text.contains("cargo insta review") && text.contains("-old snapshot"), "{text}");
        assert_eq!(kept(&folder), before);
    }
    Ok(())
}

fn accepted() -> Result<(), Failed> {
    let folder = recorded();
    let before = kept(&folder);
    assert!(run(&folder, "2", "always", &["snapshot"]).0);
    assert_ne!(kept(&folder), before);
    assert!(run(&folder, "2", "no", &["snapshot"]).0 && !pending(&folder));
    Ok(())
}

fn twins() -> Result<(), Failed> {
    let folder = Folder::new();
    let mut command = Command::new(std::env::current_exe().expect("the program has a path"));
    command.env("CARGO_MANIFEST_DIR", folder.path("")).env(FACTOR, "1");
    let output = command.env("TWO_OF_A_NAME", "1").output().expect("the suite starts");
    let text = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(text.contains("two components would have the snapshot"), "{text}");
    Ok(())
}
