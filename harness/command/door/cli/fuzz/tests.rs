//! What `shakedown fuzz` makes of its arguments, of what its jobs say, and of its folders.

use std::ffi::OsStr;

use clap::Parser;

use super::*;
use crate::door::planted::{case, contract};
use shakedown_contracts::REGISTRY;
use shakedown_engine::report::{Cut, Diagnosis, InvariantReport};

#[derive(Parser)]
struct Words {
    #[command(flatten)]
    arguments: FuzzArguments,
}

fn arguments(words: &[&str]) -> FuzzArguments {
    Words::parse_from(["fuzz"].iter().chain(words)).arguments
}

const COMPONENT: &str = "group-advantage/reference";

/// What the reference is fuzzed with in a folder.
fn task<'a>(arguments: &'a FuzzArguments, folder: &TempDir) -> Task<'a> {
    Task {
        arguments,
        target: Target::Builtin(COMPONENT.to_owned()),
        contract: contract(),
        places: vec![Place::CPU_F32, Place::CPU_F64],
        corpora: folder.path().to_owned(),
        corpus: folder.path().join("seeds"),
        seed: 7,
    }
}

/// What an oracle says of a number that is wrong.
const WRONG: &str = "advantages[0] is 1, expected 0 ± 1e-6";

/// A case of one group, on which an invariant breaks by a fault.
fn file(invariant: &str, fault: Option<&str>, rewards: &[f64]) -> CaseFile {
    CaseFile {
        invariant: Some(invariant.to_owned()),
        component: Some(COMPONENT.to_owned()),
        place: Some(Place::CPU_F32),
        why: Some(WRONG.to_owned()),
        diagnosis: fault.map(str::to_owned).into_iter().collect(),
        ..CaseFile::blank(contract(), case(rewards))
    }
}

/// Where a case file of this name is.
fn path(folder: &TempDir, name: &str) -> PathBuf {
    found_folder(folder.path(), "group-advantage").join(name)
}

/// Writes case files, as they are named.
fn write(folder: &TempDir, files: &[(&str, CaseFile)]) {
    for (name, file) in files {
        file.write(&path(folder, name)).expect("it can be written");
    }
}

/// The names of the case files that are there, and what they say.
fn left(folder: &TempDir) -> Vec<(String, CaseFile)> {
    let kept = kept(contract(), folder.path(), COMPONENT).into_iter();
    kept.map(|(path, file)| (path.file_name().unwrap().display().to_string(), file)).collect()
}

fn named(name: &str) -> Key {
    Key::Named(name.to_owned())
}

fn unnamed(invariant: &str, behaves: Option<&str>, finite: bool) -> Key {
    Key::Unnamed {
        invariant: invariant.to_owned(),
        place: "cpu/f32".to_owned(),
        behaves: behaves.map(str::to_owned),
        finite,
    }
}

fn finding(invariant: &str, fault: Option<&str>, case_file: Option<&Path>) -> Finding {
    let diagnosis = fault.map(|fault| Diagnosis {
        fault: fault.to_owned(),
        matches: 1,
        of: 1,
        explains: 1.0,
        summary: String::new(),
        told: String::new(),
        strength: Default::default(),
        alike: Vec::new(),
        by_outcomes: false,
        points: Vec::new(),
        texts: Vec::new(),
    });
    Finding {
        invariant: invariant.to_owned(),
        bug: 0,
        pitfall: contract().invariant(invariant).expect("an invariant of this name").pitfall,
        claim: String::new(),
        found: WRONG.to_owned(),
        cases_to_failure: 1,
        shrink_calls: 0,
        case: Default::default(),
        output: None,
        expected: Default::default(),
        shown: String::new(),
        again: None,
        case_file: case_file.map(|path| path.display().to_string()),
        replay: format!("replay {invariant}"),
        classes: Default::default(),
        diagnosis: diagnosis.into_iter().collect(),
        region: None,
    }
}

fn occurrence(place: Place, times: u64, finding: Finding) -> Occurrence {
    Occurrence { place, behaves: None, finding, times }
}

/// A report of a place with the status of some invariants.
fn report(place: Place, invariants: &[(&str, InvariantStatus)]) -> ComponentReport {
    let invariants = invariants.iter().map(|(id, status)| {
        let (id, status) = ((*id).to_owned(), *status);
        InvariantReport { id, status, cases: 1, reason: None }
    });
    let invariants = invariants.collect();
    let blank = blank_report(contract(), COMPONENT, place);
    ComponentReport { status: Status::Fail, invariants, ..blank }
}

/// What a report says of each invariant.
fn said(report: &ComponentReport) -> Vec<(&str, InvariantStatus, Option<&str>)> {
    let invariants = report.invariants.iter();
    invariants.map(|one| (&*one.id, one.status, one.reason.as_deref())).collect()
}

#[test]
fn what_has_a_name_is_one_bug_wherever_it_is_and_what_has_none_is_of_its_invariant() {
    let file = |fault| file("oracle", fault, &[1.0]);
    assert_eq!(Key::of_file(&file(Some("epsilon-missing"))), named("epsilon-missing"));
    let two = vec!["first".to_owned(), "second".to_owned()];
    assert_eq!(Key::of_file(&CaseFile { diagnosis: two.clone(), ..file(None) }), named("first"));
    let why = |why: &str| CaseFile { why: Some(why.to_owned()), ..file(None) };
    assert_eq!(Key::of_file(&why("raised ValueError: 31 rows")), named("ValueError: 0 rows"));
    assert_eq!(Key::of_file(&file(None)), unnamed("oracle", None, true));
    let nan = why("advantages[0] is NaN, expected 0 ± 1e-6");
    assert_eq!(Key::of_file(&nan), unnamed("oracle", None, false));
    let behaves = CaseFile { behaves: Some("c0ffee".to_owned()), ..file(None) };
    assert_eq!(Key::of_file(&behaves), unnamed("oracle", Some("c0ffee"), true));

    let also = vec!["zero-sum".to_owned()];
    let both = CaseFile { also: also.clone(), ..behaves };
    let keys = ["oracle", "zero-sum"].map(|id| unnamed(id, Some("c0ffee"), true));
    assert_eq!(Key::all_of_file(&both), BTreeSet::from(keys));
    let both = CaseFile { also, diagnosis: two, ..file(None) };
    assert_eq!(Key::all_of_file(&both), BTreeSet::from([named("first")]));

    let mut one = occurrence(Place::CPU_F32, 1, finding("oracle", Some("first"), None));
    assert_eq!(one.key(), named("first"));
    one.finding.diagnosis.clear();
    one.behaves = Some("c0ffee".to_owned());
    assert_eq!(one.key(), unnamed("oracle", Some("c0ffee"), true));
}

#[test]
fn without_a_name_bugs_are_told_apart_by_law_and_by_whether_numbers_are_finite() {
    let [finite, not] = [true, false].map(|finite| unnamed("oracle", Some("x"), finite));
    assert_eq!(named("first").anywhere(), ("", "first"));
    assert_eq!(finite.anywhere(), ("oracle", ""));
    assert_eq!(not.anywhere(), ("oracle", "is not finite"));
    let cause = |name: &str, finite| (name.to_owned(), finite);
    assert_eq!(named("first").cause(), cause("first", true));
    // Whatever breaks by wrong outputs may be one bug.
    assert_eq!(finite.cause(), unnamed("zero-sum", None, true).cause());
    assert_eq!((finite.cause(), not.cause()), (cause("", true), cause("", false)));
    let law = unnamed("deterministic", None, true);
    assert_eq!(law.cause(), cause("unnamed deterministic", true));
}

#[test]
fn what_a_report_has_is_marked_in_its_file_and_nothing_else_is() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&[]);
    let [told, untold] = ["told", "untold"].map(|fault| file("oracle", Some(fault), &[1.0]));
    write(&folder, &[("1.yaml", told.clone()), ("2.yaml", untold)]);
    write(&folder, &[("3.yaml", CaseFile { component: Some("theirs".to_owned()), ..told })]);
    let keys = BTreeSet::from([named("told"), named("other")]);
    mark_as_reported(&task(&arguments, &folder), &keys).unwrap();
    let reported: Vec<bool> = left(&folder).iter().map(|(_, file)| file.reported).collect();
    assert_eq!(reported, [true, false]);
    let theirs = CaseFile::read_of(contract(), &path(&folder, "3.yaml")).unwrap();
    assert!(!theirs.reported);
}

/// A manifest of which one component has the name of a contract, and one that of a builtin one.
fn manifest(folder: &TempDir) -> Manifest {
    let component = |name: &str, contract: &str| {
        format!("- name: {name}\n  contract: {contract}\n  target: builtin:{contract}/reference\n")
    };
    let all = [("ours", "returns"), ("gae", "whiten"), ("other", "gae"), ("gae/reference", "gae")];
    let all: String = all.map(|(name, contract)| component(name, contract)).concat();
    let path = folder.path().join(MANIFEST);
    fs::write(&path, format!("version: 1\ncomponents:\n{all}")).unwrap();
    Manifest::read(&REGISTRY, &path).unwrap()
}

/// The names of what is to be fuzzed.
fn asked(manifest: Option<&Manifest>, words: &[&str]) -> Result<Vec<String>, String> {
    let arguments = arguments(&[words, &["--places", "cpu/f64"]].concat());
    let tasks = tasks(&arguments, manifest, 1).map_err(|error| error.to_string())?;
    let places = [Place::CPU_F64];
    assert!(tasks.iter().all(|task| task.places == places && task.seed == 1));
    Ok(tasks.iter().map(|task| task.name().to_owned()).collect())
}

#[test]
fn components_are_asked_for_by_name_by_contract_or_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest(&folder);
    let asked = |words: &[&str]| asked(Some(&manifest), words).unwrap();
    assert_eq!(asked(&[]), ["ours", "gae", "other", "gae/reference"]);
    assert_eq!(asked(&["other"]), ["other"]);
    assert_eq!(asked(&["whiten"]), ["gae"]);
    assert_eq!(asked(&["other", "returns"]), ["ours", "other"], "in the order of the manifest");
    assert_eq!(asked(&["gae"]), ["gae"], "a component that has the name of a contract");
    assert_eq!(asked(&["gae/reference"]), ["gae/reference"]);
    assert_eq!(asked(&["whiten/reference"]), ["whiten/reference"]);
    assert_eq!(asked(&["gae/fault/x", "ours"]), ["ours", "gae/fault/x"]);
    let arguments = arguments(&["gae/reference", "whiten/reference", "--places", "cpu/f32"]);
    let tasks = tasks(&arguments, Some(&manifest), 1).unwrap();
    let is_declared: Vec<bool> =
        tasks.iter().map(|task| matches!(task.target, Target::Declared(..))).collect();
    assert_eq!(is_declared, [true, false]);
    for task in &tasks {
        assert_eq!(task.corpora, folder.path().join("corpora"));
        assert_eq!(task.corpus, task.corpora.join(task.contract.id()).join("seeds"));
    }
}

#[test]
fn without_a_manifest_a_contract_is_its_reference_at_every_place() {
    let asked = |words: &[&str]| asked(None, words).unwrap();
    assert_eq!(asked(&["gae", "returns/fault/x"]), ["gae/reference", "returns/fault/x"]);
    let arguments = arguments(&["gae"]);
    // Whoever runs the tests may have asked for places.
    let places = Place::from_env().unwrap();
    let tasks = tasks(&arguments, None, 1).unwrap();
    let everywhere = [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16];
    assert_eq!(tasks[0].places, places.unwrap_or(everywhere.to_vec()));
    assert_eq!(tasks[0].corpora, Path::new("corpora"));
}

#[test]
fn what_is_not_there_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest(&folder);
    let said = asked(Some(&manifest), &["ours", "othe"]).unwrap_err();
    let known = ["ours", "gae", "other", "gae/reference", "returns", "whiten", "gae", "gae"];
    let unknown = unknown("component", "othe", &known);
    assert_eq!(said, format!("{}: {unknown}", manifest.path().display()));
    let unknown = REGISTRY.get("ga").err().unwrap();
    assert_eq!(asked(Some(&manifest), &["ga/reference"]), Err(unknown.clone()));
    assert_eq!(asked(None, &["ga"]), Err(unknown));
    let nothing = "there is no shakedown.yaml here: name a contract, or add --manifest";
    assert_eq!(asked(None, &[]), Err(nothing.to_owned()));
}

#[test]
fn a_corpus_is_of_one_component_and_holds_no_case_files() {
    let folder = tempfile::tempdir().unwrap();
    let corpus = folder.path().display().to_string();
    let asked = |what: &[&str]| asked(None, &[what, &["--corpus", &corpus]].concat());
    assert_eq!(asked(&["gae"]).unwrap(), ["gae/reference"]);
    let arguments = arguments(&["gae", "--corpus", &corpus]);
    assert_eq!(tasks(&arguments, None, 1).unwrap()[0].corpus, folder.path());
    let several = "--corpus is for one component, and there are several";
    assert_eq!(asked(&["gae", "whiten"]), Err(several.to_owned()));
    fs::write(folder.path().join("case.yaml"), "").unwrap();
    let why = "case files are no inputs of the fuzzer: a corpus is a folder of its own";
    assert_eq!(asked(&["gae"]), Err(format!("{corpus}: {why}")));
}

#[test]
fn inputs_choose_the_options_of_a_reference_alone() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest(&folder);
    let choose = |name: &str| {
        let arguments = arguments(&[name, "--places", "cpu/f32"]);
        let tasks = tasks(&arguments, Some(&manifest), 1).unwrap();
        let (subject, any_options) = tasks[0].subject().unwrap();
        assert_eq!(subject.corpora.as_ref(), Some(&tasks[0].corpora));
        any_options
    };
    assert!(choose("whiten/reference"));
    assert!(!choose("group-advantage/fault/baseline-missing"));
    assert!(!choose("gae/reference"), "it is declared, with its options");
}

#[test]
fn a_job_gets_all_that_it_is_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let words = |task: &Task<'_>| {
        let command = command_of_job(task, 3, Path::new("results.json")).unwrap();
        let result = command.get_envs().find(|(name, _)| *name == OsStr::new(RESULT)).unwrap();
        assert_eq!(result.1, Some(OsStr::new("results.json")));
        let words = command.get_args().map(|word| word.to_str().unwrap().to_owned());
        words.collect::<Vec<_>>()
    };
    let corpus = folder.path().join("seeds").display().to_string();
    let (start, limits) = (["--places", "cpu/f32,cpu/f64", "--corpus", &corpus], "--time");
    let arguments = [arguments(&["--time", "2m"]), arguments(&["--runs", "50"])];
    let [time, mut runs] = arguments.each_ref().map(|arguments| task(arguments, &folder));
    let seed = ["--seed", "10"];
    let expected = [&["fuzz"][..], &start, &[limits, "120000ms"], &seed, &["--", COMPONENT]];
    assert_eq!(words(&time), expected.concat());
    let manifest = manifest(&folder);
    runs.target = Target::Declared(&manifest, &manifest.components[0]);
    let path = manifest.path().display().to_string();
    let begin = ["fuzz", "--manifest", &path];
    let limits = [limits, "60000ms", "--seed", "10", "--runs", "50"];
    assert_eq!(words(&runs), [&begin[..], &start, &limits, &["--", "ours"]].concat());
}

#[test]
fn a_job_is_on_the_list_for_as_long_as_it_runs() {
    let is_listed = || JOBS.lock().unwrap().contains(&u32::MAX);
    let listed = Listed::new(u32::MAX);
    assert!(is_listed());
    drop(listed);
    assert!(!is_listed());
}

#[test]
fn folders_of_dead_runs_are_taken_away() {
    let temporary = tempfile::tempdir().unwrap();
    let name = |name: &str| temporary.path().join(name);
    let (living, lock) = job_folder(temporary.path()).unwrap();
    for folder in ["shakedown-fuzz-dead", "shakedown-fuzz-foreign", "theirs"] {
        fs::create_dir(name(folder)).unwrap();
    }
    fs::write(name("shakedown-fuzz-dead/lock"), "").unwrap();
    fs::create_dir(name("shakedown-fuzz-foreign/lock")).unwrap();
    fs::write(name("theirs/lock"), "").unwrap();
    fs::write(name("shakedown-fuzz-file"), "").unwrap();
    remove_left_behind(temporary.path());
    assert!(!name("shakedown-fuzz-dead").exists());
    assert!(name("shakedown-fuzz-foreign").exists() && name("theirs").exists());
    assert!(name("shakedown-fuzz-file").exists() && living.path().exists());
    drop(lock);
    remove_left_behind(temporary.path());
    assert!(!living.path().exists());
}

#[test]
fn what_was_found_before_and_is_not_met_again_is_said_once() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&[]);
    let task = task(&arguments, &folder);
    let missed = file("oracle", Some("missed"), &[1.0]);
    let place = |device| Some(Place { device, dtype: Dtype::F32 });
    let files = [
        ("1.yaml", missed.clone()),
        ("2.yaml", CaseFile { reported: true, ..missed.clone() }),
        ("3.yaml", CaseFile { place: place(Device::Cuda(7)), ..missed.clone() }),
        ("4.yaml", CaseFile { place: None, ..missed.clone() }),
        ("5.yaml", file("oracle", Some("met"), &[1.0])),
        ("6.yaml", file("zero-sum", None, &[1.0])),
        ("7.yaml", CaseFile { also: vec!["zero-sum".to_owned()], ..file("odd", None, &[1.0]) }),
    ];
    write(&folder, &files);
    let mut before = files.map(|(name, file)| (path(&folder, name), file)).to_vec();
    before.push((path(&folder, "merged.yaml"), missed));
    // The same at another place.
    let elsewhere = Key::new("zero-sum", None, WRONG, "cpu/f64".to_owned(), None);
    let keys = BTreeSet::from([named("met"), elsewhere]);
    let mut reports = task.places.iter().map(|place| report(*place, &[])).collect::<Vec<_>>();
    warn_of_missed(&task, &before, &keys, &mut reports);
    let path = path(&folder, "1.yaml");
    let path = path.display();
    let said = format!("{path} was found by an earlier run and is not met again: replay it");
    assert_eq!(reports[0].warnings, [said]);
    assert!(reports[1].warnings.is_empty());
}

#[test]
fn a_job_that_ends_before_its_time_leaves_what_the_others_found() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&[]);
    let task = task(&arguments, &folder);
    let error = Error::new("it died");
    let states = |reports: &[ComponentReport]| {
        let states = reports.iter().map(|one| (one.place, one.status, one.reason.clone()));
        states.collect::<Vec<_>>()
    };
    let died = |place| (place, Status::Error, Some("it died".to_owned()));
    let mut none = Vec::new();
    could_not_run(&task, &error, &mut none);
    assert_eq!(states(&none), [died(Place::CPU_F32)]);
    let mut two = [Place::CPU_F64, Place::CPU_F32].map(|place| report(place, &[])).to_vec();
    could_not_run(&task, &error, &mut two);
    assert_eq!(states(&two), [died(Place::CPU_F64), (Place::CPU_F32, Status::Fail, None)]);
}

#[test]
fn what_jobs_say_of_a_place_is_added_up() {
    use InvariantStatus::{Fail, Known, Pass, Vacuous};
    let pairs = [
        ([Vacuous, Pass], Pass),
        ([Pass, Vacuous], Pass),
        ([Fail, Pass], Fail),
        ([Pass, Fail], Fail),
        ([Fail, Known], Known),
        ([Known, Fail], Known),
    ];
    let job = |at: usize, place: Place, elapsed_ms: u64, warnings: &[&str]| {
        let mut report = report(place, &pairs.map(|(each, _)| ("oracle", each[at])));
        report.invariants.iter_mut().for_each(|one| one.reason = Some(at.to_string()));
        let found = [finding("oracle", None, None), finding("zero-sum", None, None)];
        let report = ComponentReport {
            cases: 3 + at as u64,
            calls: 10 + at as u64,
            elapsed_ms,
            cut: (at == 1).then_some(Cut::GaveUp),
            classes: [("singleton".to_owned(), 2)].into(),
            warnings: warnings.iter().map(|warning| (*warning).to_owned()).collect(),
            findings: found.to_vec(),
            ..report
        };
        AtOnePlace { report, met: vec![5, 6], behaves: Some(format!("as {at}")) }
    };
    let first = vec![job(0, Place::CPU_F64, 7, &["a"]), job(0, Place::CPU_F32, 9, &["b"])];
    let second = vec![job(1, Place::CPU_F64, 8, &["a", "c"])];
    let (reports, met) = merge_jobs(vec![first, second]);
    let [both, alone] = &reports[..] else { panic!("two places") };
    assert_eq!((both.place, both.cases, both.calls), (Place::CPU_F64, 7, 21));
    assert_eq!((both.elapsed_ms, both.cut), (8, Some(Cut::GaveUp)));
    assert_eq!(
        (both.classes["singleton"], &both.warnings[..]),
        (4, &["a", "c"].map(str::to_owned)[..])
    );
    let of_second = [true, false, false, true, true, false];
    let statuses = pairs.iter().zip(of_second).map(|((_, status), is_second)| {
        ("oracle", *status, Some(if is_second { "1" } else { "0" }))
    });
    assert_eq!(said(both), statuses.collect::<Vec<_>>());
    assert!(both.invariants.iter().all(|one| one.cases == 2));
    assert_eq!((alone.place, alone.cases, alone.cut), (Place::CPU_F32, 3, None));
    assert!(reports.iter().all(|report| report.findings.is_empty()));
    let met: Vec<_> = met
        .iter()
        .map(|one| (one.place, &*one.finding.invariant, one.times, one.behaves.as_deref()))
        .collect();
    let of = |place, job| [(place, "oracle", 5, Some(job)), (place, "zero-sum", 6, Some(job))];
    let [f64, f32] = [Place::CPU_F64, Place::CPU_F32];
    assert_eq!(met, [of(f64, "as 0"), of(f32, "as 0"), of(f64, "as 1")].concat());
}

/// What the reports of both places say of some findings, where some are known.
fn told(
    folder: &TempDir,
    met: Vec<Occurrence>,
    known: &[Key],
) -> ([ComponentReport; 2], BTreeSet<Key>) {
    let arguments = arguments(&["--allow-known"]);
    let task = task(&arguments, folder);
    let of_place = |place| {
        let ids = ["oracle", "zero-sum", "odd"].map(|id| {
            let fails = |one: &Occurrence| one.place == place && one.finding.invariant == id;
            let fails = met.iter().any(fails);
            (id, if fails { InvariantStatus::Fail } else { InvariantStatus::Pass })
        });
        report(place, &ids)
    };
    let reports = [Place::CPU_F32, Place::CPU_F64].map(of_place).to_vec();
    let known = known.iter().cloned().collect();
    let (reports, keys) = deduplicate((reports, met), &known, &task).unwrap();
    (reports.try_into().expect("two places"), keys)
}

#[test]
fn a_bug_is_told_once_where_its_smallest_case_was_found() {
    use InvariantStatus::{Fail, Known, Pass};
    let folder = tempfile::tempdir().unwrap();
    let large = file("oracle", Some("bug"), &[1.0, 2.0, 3.0]);
    let f64 = Some(Place::CPU_F64);
    write(
        &folder,
        &[
            ("large.yaml", large),
            ("small.yaml", CaseFile { place: f64, ..file("oracle", Some("bug"), &[1.0]) }),
            ("sum.yaml", CaseFile { place: f64, ..file("zero-sum", Some("bug"), &[1.0]) }),
        ],
    );
    let [large, small, sum] =
        ["large.yaml", "small.yaml", "sum.yaml"].map(|name| path(&folder, name));
    let of = |invariant, path: &Path| finding(invariant, Some("bug"), Some(path));
    let met = vec![
        occurrence(Place::CPU_F32, 1, of("odd", &path(&folder, "unwritten.yaml"))),
        occurrence(Place::CPU_F32, 1, of("oracle", &large)),
        occurrence(Place::CPU_F64, 1, of("zero-sum", &sum)),
        occurrence(Place::CPU_F64, 1, of("oracle", &small)),
        occurrence(Place::CPU_F64, 1, finding("oracle", Some("bug"), None)),
    ];
    let ([elsewhere, here], keys) = told(&folder, met, &[]);
    assert_eq!(keys, BTreeSet::from([named("bug")]));
    let findings = |report: &ComponentReport| {
        let findings = report.findings.iter();
        let each = findings
            .map(|one| (one.invariant.clone(), one.bug, one.case_file.clone(), one.replay.clone()));
        each.collect::<Vec<_>>()
    };
    let kept = |id: &str| {
        (id.to_owned(), 1, Some(small.display().to_string()), "replay oracle".to_owned())
    };
    assert_eq!(findings(&here), [kept("oracle"), kept("zero-sum")]);
    assert_eq!(findings(&elsewhere), []);
    let (before, fail) = (Some("found before, or at another place"), Fail);
    let expected = [("oracle", Known, before), ("zero-sum", Pass, None), ("odd", Known, before)];
    assert_eq!((elsewhere.status, said(&elsewhere)), (Status::Pass, expected.to_vec()));
    let expected = [("oracle", fail, None), ("zero-sum", fail, None), ("odd", Pass, None)];
    assert_eq!((here.status, said(&here)), (Status::Fail, expected.to_vec()));
    assert!(here.warnings.is_empty() && elsewhere.warnings.is_empty());
    // One case of the bug at each place.
    let names: Vec<String> = left(&folder).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["large.yaml", "small.yaml"]);
}

#[test]
fn what_is_known_is_counted_and_what_is_new_beside_it_is_told() {
    use InvariantStatus::{Fail, Known, Pass};
    let folder = tempfile::tempdir().unwrap();
    let [f32, f64] = [Place::CPU_F32, Place::CPU_F64];
    let met = vec![
        occurrence(f32, 3, finding("oracle", Some("old"), None)),
        occurrence(f32, 9, finding("zero-sum", Some("old"), None)),
        occurrence(f64, 4, finding("oracle", Some("old"), None)),
        occurrence(f64, 2, finding("odd", Some("new"), None)),
    ];
    let ([first, second], keys) = told(&folder, met, &[named("old")]);
    assert_eq!(keys, BTreeSet::from([named("new"), named("old")]));
    assert_eq!(first.warnings, ["oracle (old) is a known finding, met 9 times"]);
    assert_eq!((first.status, first.findings.len()), (Status::Pass, 0));
    let before = Some("found before, or at another place");
    let expected = [("oracle", Known, before), ("zero-sum", Known, before), ("odd", Pass, None)];
    assert_eq!(said(&first), expected);
    assert_eq!((second.status, second.findings.len(), second.warnings.len()), (Status::Fail, 1, 0));
    let expected = [("oracle", Known, before), ("zero-sum", Pass, None), ("odd", Fail, None)];
    assert_eq!(said(&second), expected);
}

#[test]
fn a_known_bug_without_a_name_is_known_for_as_long_as_the_component_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let met = |behaves: &str| {
        let one = occurrence(Place::CPU_F32, 1, finding("oracle", None, None));
        vec![Occurrence { behaves: Some(behaves.to_owned()), ..one }]
    };
    let known = [unnamed("oracle", Some("before"), true)];
    let ([same, _], _) = told(&folder, met("before"), &known);
    assert_eq!(same.warnings, ["oracle is a known finding, met 1 time"]);
    assert_eq!(same.status, Status::Pass);
    let ([other, _], _) = told(&folder, met("after"), &known);
    assert_eq!((other.warnings.len(), other.status), (0, Status::Fail));
}

#[test]
fn an_invariant_that_fails_for_a_reason_is_said_to() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&[]);
    let task = task(&arguments, &folder);
    let mut fails = report(Place::CPU_F32, &[("oracle", InvariantStatus::Fail)]);
    fails.invariants[0].reason = Some("holds".to_owned());
    fails.invariants.push(InvariantReport { id: "odd".to_owned(), ..fails.invariants[0].clone() });
    let new = occurrence(Place::CPU_F32, 1, finding("odd", Some("new"), None));
    let mut errs = report(Place::CPU_F64, &[("oracle", InvariantStatus::Pass)]);
    errs.status = Status::Error;
    let known = BTreeSet::new();
    let (reports, _) = deduplicate((vec![fails, errs], vec![new]), &known, &task).unwrap();
    assert_eq!(
        (&reports[0].warnings[..], reports[0].status),
        (&["oracle holds".to_owned()][..], Status::Fail)
    );
    let (fail, holds) = (InvariantStatus::Fail, Some("holds"));
    // That of which a finding stands there needs no reason.
    assert_eq!(said(&reports[0]), [("oracle", fail, holds), ("odd", fail, None)]);
    assert_eq!((reports[1].warnings.len(), reports[1].status), (0, Status::Error));
}

#[test]
fn of_a_bug_at_a_place_the_smallest_case_is_left_and_names_what_breaks_besides() {
    let folder = tempfile::tempdir().unwrap();
    let bug = |id, rewards| file(id, Some("bug"), rewards);
    let reported = |file| CaseFile { reported: true, ..file };
    let also = vec!["signal".to_owned(), "zero-sum".to_owned(), "oracle".to_owned()];
    write(
        &folder,
        &[
            ("a.yaml", bug("odd", &[0.0])),
            ("b.yaml", bug("oracle", &[1.0, 2.0, 3.0])),
            ("c.yaml", bug("oracle", &[1.0, 2.0])),
            ("d.yaml", CaseFile { also, ..reported(bug("zero-sum", &[1.0])) }),
            ("e.yaml", CaseFile { place: Some(Place::CPU_F64), ..bug("oracle", &[0.0]) }),
            ("f.yaml", file("oracle", Some("another"), &[0.0])),
        ],
    );
    let arguments = arguments(&[]);
    let measures = remove_larger(&task(&arguments, &folder)).unwrap();
    let rows = |name: &str| {
        let (measure, left) = &measures[&path(&folder, name).display().to_string()];
        (measure.0[0], Path::new(left).file_name().unwrap().to_str().unwrap())
    };
    let [c, e, f] = ["c.yaml", "e.yaml", "f.yaml"];
    let expected = [(1, c), (3, c), (2, c), (1, c), (1, e), (1, f)];
    let names = ["a.yaml", "b.yaml", "c.yaml", "d.yaml", "e.yaml", "f.yaml"];
    assert_eq!(names.map(rows), expected);
    let left = left(&folder).into_iter().map(|(name, file)| (name, file.also, file.reported));
    let [c, e, f] = &left.collect::<Vec<_>>()[..] else { panic!("three are left") };
    let also = ["odd", "zero-sum", "signal"].map(str::to_owned).to_vec();
    assert_eq!(*c, ("c.yaml".to_owned(), also, true));
    for (one, name) in [(e, "e.yaml"), (f, "f.yaml")] {
        assert_eq!(*one, (name.to_owned(), vec![], false));
    }
}

#[test]
fn a_file_that_is_left_says_what_the_others_said_and_no_more() {
    let left_file = |first: CaseFile, second: CaseFile| {
        let folder = tempfile::tempdir().unwrap();
        write(&folder, &[("1.yaml", first), ("2.yaml", second)]);
        let arguments = arguments(&[]);
        remove_larger(&task(&arguments, &folder)).unwrap();
        let [(name, file)] = &left(&folder)[..] else { panic!("one is left") };
        (name.clone(), file.also.clone(), file.reported)
    };
    let [small, large] =
        [&[1.0][..], &[1.0, 2.0]].map(|rewards| file("oracle", Some("bug"), rewards));
    let reported = |file: &CaseFile| CaseFile { reported: true, ..file.clone() };
    let name = || "1.yaml".to_owned();
    let other = file("zero-sum", Some("bug"), &[1.0]);
    assert_eq!(left_file(small.clone(), other), (name(), vec!["zero-sum".to_owned()], false));
    assert_eq!(left_file(small.clone(), reported(&large)), (name(), vec![], true));
    assert_eq!(left_file(reported(&small), large.clone()), (name(), vec![], true));
    assert_eq!(left_file(small, large), (name(), vec![], false));
}

/// Which of two files are left, of which the first has the smaller case.
fn left_of(first: CaseFile, second: CaseFile, target: Target<'_>) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    write(&folder, &[("1.yaml", first), ("2.yaml", second)]);
    let arguments = arguments(&[]);
    remove_larger(&Task { target, ..task(&arguments, &folder) }).unwrap();
    left(&folder).into_iter().map(|(name, _)| name).collect()
}

#[test]
fn without_a_name_a_case_stays_that_may_be_of_another_bug() {
    let left = |first, second| left_of(first, second, Target::Builtin(COMPONENT.to_owned()));
    let small = |behaves: Option<&str>| CaseFile {
        behaves: behaves.map(str::to_owned),
        ..file("oracle", None, &[1.0])
    };
    let large = |behaves: Option<&str>, reported| CaseFile {
        behaves: behaves.map(str::to_owned),
        reported,
        ..file("zero-sum", None, &[1.0, 2.0])
    };
    let both = ["1.yaml", "2.yaml"];
    assert_eq!(left(small(Some("x")), large(Some("x"), false)), ["1.yaml"]);
    assert_eq!(left(small(Some("x")), large(Some("y"), false)), both, "the component changed");
    assert_eq!(left(small(None), large(None, false)), both, "nobody knows what it behaved like");
    // What one report has and the other has not may be two bugs, unless the report has both.
    assert_eq!(left(small(Some("x")), large(Some("x"), true)), both);
    let reported = CaseFile { reported: true, ..small(Some("x")) };
    assert_eq!(left(reported.clone(), large(Some("x"), false)), both);
    let also = vec!["zero-sum".to_owned()];
    assert_eq!(left(CaseFile { also, ..reported }, large(Some("x"), false)), ["1.yaml"]);
    // A name is the same bug, reported or not.
    let named = |rewards, reported| CaseFile { reported, ..file("oracle", Some("bug"), rewards) };
    assert_eq!(left(named(&[1.0], true), named(&[1.0, 2.0], false)), ["1.yaml"]);
}

#[test]
fn what_is_declared_under_other_options_is_kept_beside() {
    let folder = tempfile::tempdir().unwrap();
    let manifest = manifest(&folder);
    let mut declared = manifest.components[0].clone();
    declared.name = COMPONENT.to_owned();
    let other = file("oracle", Some("bug"), &[1.0, 2.0]);
    let options = other.options.with("scale", "none").unwrap();
    let other = CaseFile { options, ..other };
    let left = |target| left_of(file("oracle", Some("bug"), &[1.0]), other.clone(), target);
    assert_eq!(left(Target::Declared(&manifest, &declared)), ["1.yaml", "2.yaml"]);
    assert_eq!(left(Target::Builtin(COMPONENT.to_owned())), ["1.yaml"], "inputs chose them");
}

/// Random bytes.
fn bytes(seed: u8, count: usize) -> Vec<u8> {
    let mut state = u32::from(seed) + 1;
    let next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state.to_be_bytes()[0]
    };
    std::iter::repeat_with(next).take(count).collect()
}

/// The names in a folder.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().display().to_string()).collect();
    names.sort();
    names
}

#[test]
fn a_corpus_made_small_keeps_the_smallest_inputs_that_do_all_that_it_did() {
    coverage::apart();
    let folder = tempfile::tempdir().unwrap();
    let other = tempfile::tempdir().unwrap();
    let (merging, alone) =
        (arguments(&["--merge", other.path().to_str().unwrap()]), arguments(&[]));
    let merging = task(&merging, &folder);
    let corpus = merging.corpus.clone();
    fs::create_dir_all(corpus.join("folder")).unwrap();
    // They stand for the same case.
    let [short, long] = [300, 400].map(|count| vec![0; count]);
    let other_case = bytes(1, 400);
    let write =
        |folder: &Path, name: &str, bytes: &[u8]| fs::write(folder.join(name), bytes).unwrap();
    write(&corpus, "a-longer", &long);
    write(&corpus, "copy", &short);
    write(&corpus, "shortest", &short);
    write(other.path(), "again", &long);
    write(other.path(), "new", &other_case);
    let said = minimise(&merging).unwrap();
    assert_eq!(names(&corpus), ["copy", "folder", "new"]);
    assert_eq!(names(other.path()), ["again", "new"]);
    assert_eq!(fs::read(corpus.join("new")).unwrap(), other_case);
    let shown = corpus.display();
    let (kept, events) = said.rsplit_once(", ").unwrap();
    assert_eq!(kept, format!("{shown}: 2 of 5 inputs kept (3 were there)"));
    assert_ne!(events, "0 events");
    let again = minimise(&task(&alone, &folder)).unwrap();
    assert_eq!(again, format!("{shown}: 2 of 2 inputs kept (2 were there), {events}"));
    assert_eq!(names(&corpus), ["copy", "folder", "new"]);
}

#[test]
fn what_cannot_be_called_costs_no_input() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = arguments(&[]);
    let task = |target: &str, place| Task {
        target: Target::Builtin(target.to_owned()),
        places: vec![place],
        ..task(&arguments, &folder)
    };
    let cuda = Place { device: Device::Cuda(0), dtype: Dtype::F32 };
    let nowhere = task(COMPONENT, cuda);
    fs::create_dir_all(&nowhere.corpus).unwrap();
    for seed in 0..24 {
        fs::write(nowhere.corpus.join(seed.to_string()), bytes(seed, 400)).unwrap();
    }
    let why = "the component does not load, hangs or dies: nothing was removed";
    let said = |task: &Task<'_>| minimise(task).unwrap_err().to_string();
    assert_eq!(said(&nowhere), format!("{COMPONENT}: {why}"));
    let hangs = "group-advantage/fault/hangs";
    assert_eq!(said(&task(hangs, Place::CPU_F32)), format!("{hangs}: {why}"));
    assert_eq!(names(&nowhere.corpus).len(), 24);
}
