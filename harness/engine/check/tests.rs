//! What a check counts, when it ends, and what it says.

use std::cell::RefCell;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use ndarray::Array1;

use super::*;
use crate::host::builtin::Builtin;
use crate::planted::{
    Asked, HANGS, LARGE, SMALL, Wrong, case, contract, has, nameless, not_divided, ours, raised,
    rewards, subject,
};
use shakedown_contracts as contracts;
use shakedown_core::contract::class::AnyClass;
use shakedown_core::contract::component::{Call, Component, Returned};
use shakedown_core::value::place::Device;
use shakedown_core::value::record::same_bits;

/// The reference of a contract whose defaults hide mistakes.
fn gae() -> Subject {
    let contract = contracts::find("gae").expect("a contract of this name");
    Subject::new(contract, "reference", Box::new(Builtin::reference(contract)))
}

fn report_of(cases: u64) -> ComponentReport {
    let budget = Budget { cases, seed: 1, time: None };
    run(&mut gae(), Place::CPU_F32, &budget, &|_| ()).expect("it is checked")
}

#[test]
fn what_is_looked_at_under_other_options_is_bounded_and_changes_no_declaration() {
    let [few, more] = [10, 20].map(|cases| report_of(cases).planned);
    assert!(more - few > 10, "other options have as many cases: {few}, {more}");
    let [few, more] = [CASES_BEHIND, CASES_BEHIND + 30].map(|cases| report_of(cases).planned);
    assert_eq!(more - few, 30, "no more than {CASES_BEHIND} of them");
    let mut subject = gae();
    let declared = format!("{:?}", subject.options);
    subject.only = vec!["oracle".to_owned()];
    let budget = Budget { cases: 2, seed: 1, time: None };
    run(&mut subject, Place::CPU_F32, &budget, &|_| ()).expect("it is checked");
    assert_eq!(format!("{:?}", subject.options), declared);
    assert_eq!(subject.only, ["oracle"]);
}

/// Right on one case; it raises on every other.
struct Only(Shared);

impl Component for Only {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if !same_bits(&**call.case, &*self.0) {
            let [message, traceback] = ["ValueError: unknown", ""].map(str::to_owned);
            return Err(Failure::Raised { message, traceback });
        }
        let contract = contracts::find("gae").expect("a contract of this name");
        let output = contract.reference(&**call.case, &**call.options, call.place.dtype);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::None("there are none".to_owned())
    }
}

#[test]
fn what_raises_where_another_invariant_asks_breaks_that_it_does_not_raise() {
    let Subject { contract, options, .. } = gae();
    let case = contract.corners(&*options, Dtype::F32).pop().expect("there are corners");
    let mut subject = Subject::new(contract, "only", Box::new(Only(Shared::clone(&case))));
    let report = run_on(&mut subject, Place::CPU_F32, &case).expect("it is checked");
    let of_law = report.invariants.iter().find(|one| one.id == "does-not-raise");
    assert_eq!(of_law.map(|one| one.status), Some(InvariantStatus::Fail));
    assert_eq!(report.status, Status::Fail);
}

#[test]
fn a_single_case_is_enough_to_pass() {
    let mut subject = gae();
    let corners = subject.contract.corners(&*subject.options, Dtype::F32);
    let report = run_on(&mut subject, Place::CPU_F32, &corners[0]).expect("it is checked");
    assert_eq!((report.status, report.cases, report.planned), (Status::Pass, 1, 1));
}

#[test]
fn three_reasons_are_said_and_the_others_counted() {
    let invariant = |id: &str| InvariantReport {
        id: id.to_owned(),
        status: InvariantStatus::Skipped,
        cases: 0,
        reason: Some("is left out".to_owned()),
    };
    let said = |ids: &[&str]| unjudged(&ids.iter().copied().map(invariant).collect::<Vec<_>>());
    let skipped = |why: &str| (Status::Skipped, format!("nothing was checked: {why}"));
    assert_eq!(said(&["a"]), skipped("a is left out"));
    let three = "a is left out; b is left out; c is left out";
    assert_eq!(said(&["a", "b", "c"]), skipped(three));
    assert_eq!(said(&["a", "b", "c", "d", "e"]), skipped(&format!("{three}; and 2 others")));
}

fn checked(subject: &mut Subject, cases: u64, time: Option<Duration>) -> ComponentReport {
    let budget = Budget { cases, seed: 1, time };
    run(subject, Place::CPU_F64, &budget, &|_| ()).expect("it is checked")
}

fn right(_: &Asked<'_>, _: &mut Array1<f64>) -> Result<(), Failure> {
    Ok(())
}

fn raises(_: &Asked<'_>, _: &mut Array1<f64>) -> Result<(), Failure> {
    Err(raised("E"))
}

/// What a report says of each invariant.
fn said(report: &ComponentReport) -> Vec<(&str, InvariantStatus, u64, Option<&str>)> {
    let invariants = report.invariants.iter();
    invariants.map(|one| (&*one.id, one.status, one.cases, one.reason.as_deref())).collect()
}

/// How many cases of a subject are kept, and how many come before chance.
fn kept_and_fixed(subject: &Subject) -> (u64, u64) {
    let first = first_cases(subject, Place::CPU_F64).expect("they can be read");
    let stream = stream::cases(subject.contract, first, 1, &subject.options, Dtype::F64);
    (stream.kept(), stream.fixed())
}

const HOUR: Option<Duration> = Some(Duration::from_secs(3600));
const NO_TIME: Option<Duration> = Some(Duration::ZERO);

#[test]
fn nothing_stands_in_a_report_before_it_is_checked() {
    let report = blank_report(contract(), "ours", Place::CPU_F64);
    let ComponentReport { cases, planned, unanswered, calls, elapsed_ms, .. } = report;
    assert_eq!([cases, planned, unanswered, calls, elapsed_ms], [0; 5]);
}

#[test]
fn every_case_is_given_and_told_as_it_begins() {
    let mut subject = subject(ours(right), &["oracle"]);
    subject.first = vec![case(&[SMALL]), case(&[f64::NAN])];
    let (kept, fixed) = kept_and_fixed(&subject);
    let told = RefCell::new(Vec::new());
    let budget = Budget { cases: 5, seed: 1, time: HOUR };
    let tell = |case| told.borrow_mut().push(case);
    let report = run(&mut subject, Place::CPU_F64, &budget, &tell).unwrap();
    assert!(kept > 1 && fixed > kept);
    assert_eq!((report.planned, report.cases, report.cut), (fixed + 5, fixed + 5, None));
    assert_eq!((report.status, report.unanswered), (Status::Pass, 0));
    assert_eq!(told.into_inner(), (1..=report.cases).collect::<Vec<_>>());
    assert_eq!(said(&report), [("oracle", InvariantStatus::Pass, report.cases, None)]);
}

#[test]
fn what_holds_is_given_more_cases_under_other_options_and_they_are_told_after_those_before() {
    let told = RefCell::new(Vec::new());
    let budget = Budget { cases: 2, seed: 1, time: None };
    let tell = |case| told.borrow_mut().push(case);
    let mut subject = gae();
    subject.only = vec!["oracle".to_owned()];
    let (_, fixed) = kept_and_fixed(&subject);
    let report = run(&mut subject, Place::CPU_F64, &budget, &tell).unwrap();
    assert!(report.planned > fixed + 2);
    assert_eq!(told.into_inner(), (1..=report.cases).collect::<Vec<_>>());
    assert_eq!(said(&report), [("oracle", InvariantStatus::Pass, report.cases, None)]);
}

#[test]
fn one_case_counts_for_its_classes_and_of_no_other_anything_is_said() {
    let mut subject = subject(ours(right), &[]);
    let only = case(&[1.0, 0.0]);
    let report = run_on(&mut subject, Place::CPU_F64, &only).unwrap();
    let options = &*subject.options;
    let classes = contract().classes().iter();
    let classes =
        classes.map(|class| (class.id.to_owned(), class.contains(&*only, options).into()));
    assert_eq!(report.classes, classes.collect());
    assert_eq!((report.cases, report.planned), (1, 1));
    assert_eq!(report.warnings, [""; 0], "neither of classes nor of invariants");
}

#[test]
fn a_class_that_no_case_belongs_to_is_said_where_all_were_given() {
    let contract = contracts::find("entropy-bonus").expect("a contract of this name");
    let unreached = |time| {
        let mut subject = Subject::new(contract, "ours", Box::new(Builtin::reference(contract)));
        let report = checked(&mut subject, 0, time);
        let is_missed = |class: &&AnyClass| {
            report.classes[class.id] == 0 && class.is_generated(&*subject.options, Dtype::F64)
        };
        let missed = contract.classes().iter().filter(is_missed);
        let missed: Vec<_> = missed.map(|class| never_reached(class.id)).collect();
        assert!(!missed.is_empty(), "chance alone reaches some");
        (report.warnings, missed)
    };
    let (said, missed) = unreached(None);
    assert_eq!(said, missed);
    let (said, _) = unreached(NO_TIME);
    assert_eq!(said.len(), 1, "{said:?}");
}

#[test]
fn once_everything_is_broken_no_case_is_given() {
    let report = checked(&mut subject(ours(raises), &["does-not-raise"]), 5, None);
    assert_eq!((report.cases, report.unanswered, report.cut), (1, 1, None));
    assert_eq!(said(&report), [("does-not-raise", InvariantStatus::Fail, 1, None)]);
    assert_eq!((report.status, report.findings[0].cases_to_failure), (Status::Fail, 1));
}

#[test]
fn what_is_kept_is_given_whatever_the_time_and_else_one_case() {
    let mut timed = subject(ours(right), &["oracle"]);
    let (kept, fixed) = kept_and_fixed(&timed);
    let report = checked(&mut timed, 5, NO_TIME);
    assert_eq!((report.cases, report.cut), (kept, Some(Cut::Time)));
    let over = format!("checked on {kept} of {} cases: the time was over", fixed + 5);
    assert_eq!(report.warnings, [over]);
    assert_eq!(said(&report), [("oracle", InvariantStatus::Pass, kept, None)]);
    timed.options = timed.options.with("reward_range", "[2000, 3000]").unwrap();
    assert_eq!(kept_and_fixed(&timed).0, 0);
    assert_eq!(checked(&mut timed, 5, NO_TIME).cases, 1);
}

#[test]
fn a_case_whose_time_is_over_is_judged_no_further_however_much_is_left_to_ask() {
    let slow: Wrong = |_, _| {
        std::thread::sleep(GRACE / 3);
        Ok(())
    };
    let mut subject = subject(ours(slow), &[]);
    subject.options = subject.options.with("reward_range", "[2000, 3000]").unwrap();
    assert_eq!(kept_and_fixed(&subject).0, 0);
    let report = checked(&mut subject, 5, NO_TIME);
    assert_eq!((report.status, report.cases, report.cut), (Status::Pass, 1, Some(Cut::Time)));
    assert!((1..=3).contains(&report.calls), "{} calls", report.calls);
    let unasked = "never exercised (no case met their conditions in time): ";
    assert!(report.warnings.iter().any(|one| one.starts_with(unasked)), "{:?}", report.warnings);
    assert!(subject.until.is_none());
}

#[test]
fn a_component_that_hangs_is_given_up_also_on_what_is_kept() {
    let report = checked(&mut subject(ours(|_, _| Err(HANGS)), &["oracle"]), 5, None);
    assert_eq!((report.cases, report.unanswered, report.cut), (2, 2, Some(Cut::GaveUp)));
    assert_eq!(report.warnings[0], "stopped after 2 cases: the component hung 2 times");
    let why = format!("no call gave an output on {}: did not answer within 1 ms", report.extent());
    assert_eq!((report.status, report.reason), (Status::Error, Some(why)));
}

#[test]
fn a_case_ends_where_patience_does_and_what_is_remembered_costs_none() {
    // Right on the case itself, and hangs where relations ask.
    let wrong: Wrong = |call, _| match call.case.rewards.as_slice() {
        Some([SMALL, 1.0]) => Ok(()),
        _ => Err(HANGS),
    };
    let relations =
        ["row-permutation", "shift-invariant", "scales-with-the-rewards", "odd", "relabelling"];
    let mut hangs = subject(ours(wrong), &relations);
    hangs.first = vec![case(&[SMALL, 1.0])];
    let report = checked(&mut hangs, 0, None);
    assert_eq!((report.cases, report.calls, report.cut), (1, 3, Some(Cut::GaveUp)));

    let wrong: Wrong = |call, _| if has(call, SMALL) { Err(HANGS) } else { Ok(()) };
    let mut hangs = subject(ours(wrong), &["oracle", "zero-sum", "finite", "well-formed"]);
    hangs.first = vec![case(&[SMALL, 1.0])];
    let report = checked(&mut hangs, 0, None);
    assert_eq!((report.unanswered, report.cut, report.status), (1, None, Status::Pass));
}

#[test]
fn a_failure_breaks_its_law_once_and_on_the_first_case() {
    let wrong: Wrong = |call, _| {
        let number = call.case.rewards[0];
        if has(call, SMALL) || has(call, LARGE) {
            Err(raised(&format!("E{number}")))
        } else {
            Ok(())
        }
    };
    let mut raises = subject(ours(wrong), &[]);
    raises.first = vec![case(&[SMALL, 1.0]), case(&[LARGE])];
    let report = checked(&mut raises, 0, None);
    let law = report.invariants.iter().find(|one| one.id == "does-not-raise").unwrap();
    assert_eq!((law.status, law.cases), (InvariantStatus::Fail, 1));
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert_eq!((&*finding.invariant, finding.cases_to_failure), ("does-not-raise", 1));
    assert_eq!((report.unanswered, report.status), (2, Status::Fail));
    let others = report.invariants.iter().filter(|one| one.id != "does-not-raise");
    assert!(others.into_iter().all(|one| one.status != InvariantStatus::Fail));
}

#[test]
fn without_one_answer_nothing_was_checked_and_the_first_failure_says_why() {
    let wrong: Wrong = |call, _| Err(raised(&format!("E{}", call.case.rewards[0])));
    let mut raises = subject(ours(wrong), &["oracle"]);
    raises.first = vec![case(&[SMALL])];
    let report = checked(&mut raises, 0, None);
    assert_eq!(report.unanswered, report.cases);
    let why = format!("no call gave an output on {}: raised E7.3125", report.extent());
    assert_eq!((report.status, report.reason), (Status::Error, Some(why)));
    let report = run_on(&mut raises, Place::CPU_F64, &case(&[SMALL])).unwrap();
    assert_eq!((report.status, report.cases), (Status::Error, 1));
}

#[test]
fn where_no_invariant_applies_nothing_is_checked() {
    let report = checked(&mut subject(ours(raises), &["leave-one-out"]), 0, None);
    let why = "does not apply under these options at this place";
    assert_eq!(said(&report), [("leave-one-out", InvariantStatus::Skipped, 0, Some(why))]);
    let why = format!("nothing was checked: leave-one-out {why}");
    assert_eq!((report.status, report.reason, report.cases), (Status::Skipped, Some(why), 0));
}

#[test]
fn where_no_case_is_judged_it_is_an_error() {
    let mut silent = subject(ours(right), &["zero-sum"]);
    let report = run_on(&mut silent, Place::CPU_F64, &case(&[1.0])).unwrap();
    assert_eq!(said(&report), [("zero-sum", InvariantStatus::Vacuous, 0, None)]);
    let why = "nothing was checked: no case meets the conditions of `zero-sum`".to_owned();
    assert_eq!((report.status, report.reason), (Status::Error, Some(why)));
}

#[test]
fn cases_beyond_f64_are_none() {
    let options = contract().default_options().with("reward_range", "[-1e308, 1e308]").unwrap();
    let mut huge = Subject { options, ..subject(ours(right), &["well-formed"]) };
    let (_, fixed) = kept_and_fixed(&huge);
    let report = checked(&mut huge, 0, None);
    assert!((1..fixed).contains(&report.cases), "{} of {fixed}", report.cases);
    assert_eq!((report.planned, report.unanswered), (report.cases, 0));
    assert_eq!(report.status, Status::Pass);
}

#[test]
fn each_invariant_gets_its_status_in_the_order_of_the_contract() {
    use InvariantStatus::{Fail, Known, Skipped, Vacuous};
    let ids = ["does-not-raise", "finite", "inputs-unchanged", "oracle", "zero-sum", "relabelling"];
    let mut failing = subject(ours(raises), &ids);
    let text = str::to_owned;
    failing.known = ["does-not-raise", "finite"].map(|id| (text(id), format!("#{id}"))).into();
    failing.skip = [(text("relabelling"), text("later"))].into();
    let report = checked(&mut failing, 0, None);
    let expected = [
        ("does-not-raise", Known, 1, Some("#does-not-raise")),
        ("finite", Vacuous, 0, None),
        ("inputs-unchanged", Vacuous, 0, None),
        ("oracle", Vacuous, 0, None),
        ("zero-sum", Vacuous, 0, None),
        ("relabelling", Skipped, 0, Some("later")),
    ];
    assert_eq!(said(&report), expected);
    let silent = "never exercised (no case met their conditions): \
                  finite, inputs-unchanged, oracle, zero-sum";
    assert_eq!((&report.warnings[..], report.findings.len()), (&[text(silent)][..], 0));
    assert_eq!(report.status, Status::Error);

    let mut holds = subject(ours(right), &["oracle"]);
    holds.known = [(text("oracle"), text("#7"))].into();
    let report = checked(&mut holds, 0, None);
    let why = "holds, but is declared to fail (known: #7)";
    assert_eq!(said(&report), [("oracle", Fail, report.cases, Some(why))]);
    assert_eq!(
        (&report.warnings[..], report.status),
        (&[format!("oracle {why}")][..], Status::Fail)
    );
}

/// Right, and says all that a component may say of itself.
struct Told {
    problem: Option<&'static str>,
}

impl Component for Told {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        ours(right).call(call)
    }

    fn prepare(&mut self, _: Place) -> Result<Option<String>, Error> {
        match self.problem {
            Some("it is elsewhere") => Ok(self.problem.map(str::to_owned)),
            Some(problem) => Err(Error::new(problem)),
            None => Ok(None),
        }
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::None("there are none".to_owned())
    }

    fn notes(&self) -> Vec<String> {
        vec!["a note".to_owned()]
    }

    fn source(&self) -> Option<(PathBuf, usize)> {
        Some((PathBuf::from("ours.py"), 7))
    }
}

#[test]
fn what_a_component_says_of_itself_stands_in_its_report() {
    let of = |problem| Subject::new(contract(), "told", Box::new(Told { problem }));
    let mut told = of(None);
    told.tolerance = 2.0;
    let (report, checked) = begin(&mut told, Place::CPU_F64, false);
    assert_eq!(report.warnings, ["every tolerance is multiplied by 2", "a note"]);
    assert_eq!(report.source.map(|source| source.line), Some(7));
    assert!(!checked.is_empty() && checked.iter().all(|progress| progress.cases == 0));
    let (report, _) = begin(&mut of(None), Place::CPU_F64, false);
    assert_eq!(report.warnings, ["a note"]);
    for (problem, status) in [("it is elsewhere", Status::Skipped), ("it is broken", Status::Error)]
    {
        let report = self::checked(&mut of(Some(problem)), 0, None);
        assert_eq!((report.status, report.reason.as_deref()), (status, Some(problem)));
        assert_eq!((report.cases, report.invariants.len()), (0, 0));
    }
}

#[test]
fn without_gradients_what_needs_them_is_skipped() {
    let contract = contracts::find("policy-loss").expect("a contract of this name");
    let mut told = Subject::new(contract, "told", Box::new(Told { problem: None }));
    let (report, checked) = begin(&mut told, Place::CPU_F64, false);
    let none = Some("there are none");
    let skipped: Vec<_> =
        report.invariants.iter().filter(|one| one.reason.as_deref() == none).collect();
    assert!(!skipped.is_empty() && !checked.is_empty());
    assert!(skipped.iter().all(|one| contract.invariant(&one.id).unwrap().needs_gradient));
    assert!(checked.iter().all(|progress| !progress.invariant.needs_gradient));
}

#[test]
fn a_warning_is_said_once() {
    let warned = || {
        let mut warned = subject(ours(right), &["oracle"]);
        warned.warnings = ["a", "b", "a"].map(str::to_owned).to_vec();
        warned
    };
    assert_eq!(checked(&mut warned(), 0, None).warnings, ["a", "b"]);
    let report = run_on(&mut warned(), Place::CPU_F64, &case(&[1.0])).unwrap();
    assert_eq!(report.warnings, ["a", "b"]);
}

#[test]
fn options_that_hide_mistakes_are_said_where_nothing_else_is_taken() {
    let warnings = |options: &[(&str, &str)], place, hangs: bool| {
        let contract = gae().contract;
        let component = Deaf { hangs, place };
        let mut deaf = Subject::new(contract, "deaf", Box::new(component));
        deaf.only = vec!["oracle".to_owned()];
        for (name, value) in options {
            deaf.options = deaf.options.with(name, value).unwrap();
        }
        let budget = Budget { cases: 0, seed: 1, time: None };
        let report = run(&mut deaf, place, &budget, &|_| ()).unwrap();
        report.warnings.iter().filter(|warning| warning.starts_with("`gamma` and `lam`")).count()
    };
    let equal = [("gamma", "0.9"), ("lam", "0.9")];
    assert_eq!(warnings(&equal, Place::CPU_F32, false), 1);
    assert_eq!(warnings(&[], Place::CPU_F32, false), 0);
    assert_eq!(warnings(&equal, Place::CPU_BF16, false), 0);
    assert_eq!(warnings(&equal, Place::CPU_F32, true), 0, "it was given up");
    let cuda = Place { device: Device::Cuda(0), dtype: Dtype::F32 };
    assert_eq!(warnings(&equal, cuda, false), 0, "it is not here");
}

/// The reference of a contract, which takes no options.
struct Deaf {
    hangs: bool,
    place: Place,
}

impl Component for Deaf {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        if self.hangs {
            return Err(HANGS);
        }
        assert_eq!(call.place, self.place);
        Builtin::reference(gae().contract).call(call)
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

#[test]
fn half_formats_are_not_looked_at_under_other_options() {
    let planned = |cases| {
        let budget = Budget { cases, seed: 1, time: None };
        run(&mut gae(), Place::CPU_BF16, &budget, &|_| ()).unwrap().planned
    };
    assert_eq!(planned(12) - planned(10), 2);
}

#[test]
fn a_run_begins_with_what_was_in_flight_then_what_is_handed_in_then_what_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let mut subject = subject(ours(right), &["oracle"]);
    subject.corpora = Some(folder.path().to_owned());
    let place = Place::CPU_F64;
    let regressions = first_cases(&subject, place).unwrap();
    assert!(!regressions.is_empty());
    subject.first = vec![case(&[LARGE])];
    // The journal of a run that was killed: a copy, which nobody has locked.
    let mut report = blank_report(contract(), "ours", place);
    open_journal(&mut subject, place, &mut report);
    subject.call(&case(&[SMALL]), place, false).expect("it is right");
    let found = corpora::found_folder(folder.path(), "group-advantage");
    let journals = || {
        let entries = fs::read_dir(&found).unwrap().map(|entry| entry.unwrap().path());
        entries.filter(|path| path.extension().is_some_and(|end| end == "journal"))
    };
    let journal = journals().next().expect("there is one");
    let dead = journal.with_file_name(
        journal.file_name().unwrap().display().to_string().replace(".journal", "x.journal"),
    );
    fs::copy(&journal, &dead).unwrap();
    subject.component.journal = None;
    assert_eq!(report.warnings, [""; 0]);
    let first = first_cases(&subject, place).unwrap();
    let begins: Vec<_> = first.iter().take(2).map(rewards).collect();
    assert_eq!((begins, first.len()), (vec![vec![SMALL], vec![LARGE]], regressions.len() + 2));
    // After a run there is none.
    checked(&mut subject, 0, None);
    assert!(subject.component.journal.is_none());
    assert_eq!(journals().count(), 0);
}

#[test]
fn each_case_is_in_the_journal_and_without_one_that_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let mut kept = subject(ours(right), &["oracle"]);
    kept.state = Some(folder.path().join("state"));
    checked(&mut kept, 0, None);
    assert!(folder.path().join("state/group-advantage/found").is_dir());
    fs::write(folder.path().join("file"), "").unwrap();
    let file = folder.path().join("file");
    let error = Journal::open(contract(), &file, "ours", Place::CPU_F64, &*kept.options).err();
    kept.state = Some(file);
    let report = checked(&mut kept, 0, None);
    assert_eq!(
        (report.warnings, report.status),
        (vec![unjournaled(&error.unwrap())], Status::Pass)
    );
}

/// Wrong in one way on one reward, and in another on another.
fn two_ways(call: &Asked<'_>, advantages: &mut Array1<f64>) -> Result<(), Failure> {
    if has(call, SMALL) {
        *advantages += 0.4371;
    } else if has(call, LARGE) {
        advantages.fill(f64::NAN);
    }
    Ok(())
}

#[test]
fn what_breaks_in_another_way_on_the_way_and_nowhere_else_is_a_finding_too() {
    let findings = |only: &[&str], first: &[&[f64]]| {
        let mut both = subject(ours(two_ways), only);
        both.first = first.iter().map(|rewards| case(rewards)).collect();
        let report = checked(&mut both, 0, None);
        let findings = report.findings.into_iter();
        let each = findings.map(|one| (one.invariant, one.found.contains("NaN")));
        let mut each: Vec<_> = each.collect();
        each.sort();
        each
    };
    let oracle = |is_nan| ("oracle".to_owned(), is_nan);
    assert_eq!(findings(&["oracle"], &[&[SMALL, LARGE]]), [oracle(false), oracle(true)]);
    assert_eq!(findings(&["oracle"], &[&[SMALL]]), [oracle(false)]);
    let finite = ("finite".to_owned(), true);
    let both = findings(&["oracle", "finite"], &[&[SMALL, LARGE], &[LARGE]]);
    assert_eq!(both, [finite, oracle(false)]);
}

#[test]
fn beside_a_bug_with_a_name_another_one_is_told() {
    let wrong: Wrong = |call, advantages| {
        *advantages = not_divided(call);
        if advantages.len() == 16 {
            nameless(advantages);
        }
        Ok(())
    };
    let report = checked(&mut subject(ours(wrong), &["oracle"]), 40, None);
    let names = report.findings.iter().map(|one| one.diagnosis.first().map(|first| &*first.fault));
    assert_eq!(names.collect::<Vec<_>>(), [Some("not-divided"), None]);
    assert_eq!(report.findings[1].cases_to_failure, report.cases);
}

/// Wrong by the numbers of groups that have so many rows.
fn by_numbers(call: &Asked<'_>, advantages: &mut Array1<f64>, least: usize) {
    let groups = &call.case.groups;
    for (advantage, group) in advantages.iter_mut().zip(groups) {
        if groups.iter().filter(|other| *other == group).count() >= least {
            *advantage += 0.3 * (*group as f64 * 1.7).sin();
        }
    }
}

/// What is implied where relabelling alone breaks.
const IMPLIED: &str = "of the relations `relabelling` alone breaks: group numbers serve as indexes";

const RELATIONS: [&str; 5] =
    ["does-not-raise", "oracle", "row-permutation", "row-split", "relabelling"];

#[test]
fn of_what_has_no_name_it_is_told_where_it_is_wrong_and_what_that_implies() {
    let wrong: Wrong = |call, advantages| {
        by_numbers(call, advantages, 0);
        if has(call, SMALL) { Err(raised("E")) } else { Ok(()) }
    };
    let mut numbers = subject(ours(wrong), &RELATIONS);
    numbers.first = vec![case(&[SMALL])];
    let report = checked(&mut numbers, 40, None);
    let regions = report.findings.iter().map(|one| {
        let lines = one.region.iter().flat_map(|region| region.lines());
        (&*one.invariant, lines.collect::<Vec<_>>())
    });
    let regions: Vec<_> = regions.collect();
    let [(law, none), (oracle, told), (relation, again)] = &regions[..] else {
        panic!("{regions:?}")
    };
    assert_eq!([*law, *oracle, *relation], ["does-not-raise", "oracle", "relabelling"]);
    assert!(none.is_empty() && told.len() == 2 && told[1] == IMPLIED, "{regions:?}");
    assert_eq!(told, again);
}

#[test]
fn beside_a_bug_with_a_name_nothing_is_implied() {
    let wrong: Wrong = |call, advantages| {
        *advantages = not_divided(call);
        by_numbers(call, advantages, 4);
        Ok(())
    };
    let report = checked(&mut subject(ours(wrong), &RELATIONS), 40, None);
    let broken = report.findings.iter().map(|one| (&*one.invariant, one.diagnosis.len()));
    assert_eq!(broken.collect::<Vec<_>>(), [("oracle", 1), ("relabelling", 0)]);
    let region = report.findings[1].region.as_deref().expect("it is told where");
    assert!(!region.contains(IMPLIED), "{region}");
}

#[test]
fn findings_of_a_run_whose_time_was_over_may_be_smaller() {
    let short = "the time was over: cases may not be minimal, and diagnoses may be incomplete";
    let is_said = |time| {
        let mut wrong = subject(ours(two_ways), &["oracle"]);
        wrong.first = vec![case(&[SMALL, 1.0])];
        let report = checked(&mut wrong, 0, time);
        assert_eq!(report.status, Status::Fail);
        report.warnings.iter().any(|warning| warning == short)
    };
    assert!(is_said(NO_TIME));
    assert!(!is_said(HOUR) && !is_said(None));
}
