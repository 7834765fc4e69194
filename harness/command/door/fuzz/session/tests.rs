//! What a session counts, looks into and says, case by case.

use std::fs;
use std::sync::Mutex;
use std::time::Duration;

use ndarray::arr1;
use tempfile::TempDir;

use super::*;
use crate::door::planted::{
    Asked, HANGS, LARGE, Ours, SMALL, Wrong, case, contract, has, nameless, not_divided, ours,
    raised, rewards, subject,
};
use shakedown_contracts::group_advantage::{GroupAdvantage, GroupAdvantageOutput, Scale};
use shakedown_core::contract::component::{Component, Gradients, Returned};
use shakedown_core::contract::erased;
use shakedown_core::numeric::tolerance::{Expected, Number};
use shakedown_core::value::place::{Device, Dtype};
use shakedown_engine::files::journal::Journaled;
use shakedown_engine::host::builtin::Builtin;

fn planted(fault: &str) -> Box<dyn Component> {
    let name = format!("group-advantage/fault/{fault}");
    Box::new(Builtin::named(contract(), &name).expect("a fault of this name"))
}

fn started(subject: Subject) -> Session {
    Session::start(subject, false, &[Place::CPU_F64], 1).expect("it starts")
}

/// A session of a subject that has seen no case yet.
fn fresh_of(mut subject: Subject, any_options: bool) -> Session {
    let reference = Box::new(Builtin::reference(contract()));
    let component = std::mem::replace(&mut subject.component, Journaled::new(reference));
    let mut session =
        Session::start(subject, any_options, &[Place::CPU_F64], 1).expect("it starts");
    session.subject.component = component;
    let report = &mut session.places[0].report;
    (report.cases, report.calls) = (0, 0);
    report.classes.clear();
    session.places[0].checked.iter_mut().for_each(|progress| progress.cases = 0);
    session
}

fn fresh(component: Box<dyn Component>, only: &[&str]) -> Session {
    fresh_of(subject(component, only), false)
}

fn give(session: &mut Session, rewards: &[f64]) {
    session.case(0, &case(rewards), false).expect("it is checked");
}

/// The bugs so far: why, and how often each was met.
fn bugs(session: &Session) -> Vec<(&'static str, Option<String>, u64)> {
    let bugs = session.places[0].bugs.iter();
    bugs.map(|bug| (bug.invariant, reason(&bug.finding.diagnosis, &bug.way), bug.met)).collect()
}

/// How often each invariant was broken by what no bug explains.
fn unexplained(session: &Session) -> Vec<(&'static str, u64)> {
    let invariants = contract().invariants().iter().map(|invariant| invariant.id);
    invariants.zip(session.places[0].unexplained.clone()).filter(|(_, often)| *often > 0).collect()
}

fn checked(session: &Session) -> Vec<(&'static str, u64)> {
    let checked = session.places[0].checked.iter();
    checked.map(|progress| (progress.invariant.id, progress.cases)).collect()
}

#[test]
fn a_case_counts_for_its_classes_and_for_the_invariants_that_speak_of_it() {
    let mut session = fresh(planted("baseline-missing"), &["oracle", "zero-sum"]);
    session = session.dry();
    give(&mut session, &[0.0, 0.0]);
    give(&mut session, &[1.0]);
    give(&mut session, &[1.0, 0.0]);
    let report = &session.places[0].report;
    assert_eq!(report.cases, 3);
    let classes = ["two-completions", "singleton", "one-group", "several-groups"];
    let classes = classes.map(|id| report.classes.get(id).copied());
    assert_eq!(classes, [Some(2), Some(1), Some(3), None]);
    // A group of one says nothing about a sum.
    assert_eq!(checked(&session), [("oracle", 3), ("zero-sum", 2)]);
}

#[test]
fn without_looking_into_it_what_breaks_is_known_and_no_more() {
    let mut session = fresh(planted("baseline-missing"), &["oracle", "zero-sum"]).dry();
    give(&mut session, &[1.0, 0.0]);
    assert_eq!(session.places[0].broken, BTreeSet::from(["oracle", "zero-sum"]));
    assert_eq!((bugs(&session), unexplained(&session)), (vec![], vec![]));
}

#[test]
fn a_call_that_fails_breaks_its_law_once_and_is_one_bug_on_its_smallest_case() {
    let mut session = fresh(
        ours(|call, _| if has(call, SMALL) { Err(raised("E: 3 rows")) } else { Ok(()) }),
        &[],
    );
    let law = "does-not-raise";
    let often = |session: &Session, met| {
        assert_eq!(bugs(session), [(law, Some("E: 0 rows".to_owned()), met)]);
        assert_eq!(unexplained(session), [(law, met)]);
    };
    give(&mut session, &[1.0, SMALL, 2.0]);
    often(&session, 1);
    assert_eq!(rewards(&session.places[0].bugs[0].case), [SMALL]);
    give(&mut session, &[SMALL, 3.0]);
    often(&session, 2);
    // The third is no power of two: it is called once, and nothing else is done.
    let calls = session.places[0].report.calls;
    give(&mut session, &[SMALL, 4.0]);
    often(&session, 3);
    assert_eq!(session.places[0].report.calls, calls + 1);
    assert_eq!(session.places[0].broken, BTreeSet::from([law]));
    assert!(checked(&session).contains(&(law, 3)));
    assert!(!session.is_over(), "an exception costs no patience");
}

#[test]
fn what_nothing_explains_is_looked_into_at_powers_of_two_and_some_times_only() {
    let mut session = fresh(ours(|_, _| Err(raised("E"))), &["oracle", "does-not-raise"]);
    let law = contract().invariants().iter().position(|one| one.id == "does-not-raise").unwrap();
    let last = 1 << INVESTIGATIONS;
    for (often, is_looked_into) in
        [(1, true), (2, true), (3, false), (4, true), (last / 2, true), (last, false)]
    {
        let at = &mut session.places[0];
        at.bugs.clear();
        at.unexplained[law] = often - 1;
        give(&mut session, &[1.0, 0.0]);
        assert_eq!(!session.places[0].bugs.is_empty(), is_looked_into, "{often}");
        assert_eq!(session.places[0].unexplained[law], often);
    }
    // What was found and never reported is, however often the invariant was broken.
    for (unreported, is_looked_into) in [(false, false), (true, true)] {
        session.places[0].bugs.clear();
        session.case(0, &case(&[1.0, 0.0]), unreported).unwrap();
        assert_eq!(!session.places[0].bugs.is_empty(), is_looked_into);
    }
}

#[test]
fn nothing_is_looked_into_once_patience_is_over() {
    let mut session = fresh(ours(|_, _| Err(raised("E"))), &[]);
    let invariant = contract().invariant("oracle").unwrap();
    (0..3).for_each(|_| session.patience.spend(&HANGS));
    let found = raised("E").found();
    let broken = Broken { case: case(&[1.0]), found, at_case: 1 };
    let other = session.met(0, invariant, broken, true, &Memo::default()).unwrap();
    assert!(other.is_none());
    assert_eq!((bugs(&session), unexplained(&session)), (vec![], vec![("oracle", 1)]));
}

#[test]
fn what_is_known_or_left_out_is_not_looked_into() {
    let raises = || ours(|_, _| Err(raised("E")));
    let why = || [("does-not-raise".to_owned(), "#7".to_owned())].into();
    let subjects = [
        Subject { known: why(), ..subject(raises(), &[]) },
        Subject { skip: why(), ..subject(raises(), &[]) },
        subject(raises(), &["oracle", "zero-sum"]),
    ];
    for subject in subjects {
        let mut session = fresh_of(subject, false);
        give(&mut session, &[1.0, 0.0]);
        assert_eq!((bugs(&session), unexplained(&session)), (vec![], vec![]));
        assert_eq!(session.places[0].broken, BTreeSet::from(["does-not-raise"]));
    }
}

#[test]
fn what_a_named_bug_explains_is_counted_and_not_looked_into_again() {
    let mut session = fresh(planted("baseline-missing"), &["oracle", "zero-sum"]);
    let met = |session: &Session, often| {
        let name = || Some("baseline-missing".to_owned());
        assert_eq!(bugs(session), [("oracle", name(), often), ("zero-sum", name(), often)]);
        assert_eq!(unexplained(session), [("oracle", 1), ("zero-sum", 1)]);
    };
    give(&mut session, &[1.0, 0.0]);
    met(&session, 1);
    give(&mut session, &[5.0, 1.0, 0.0]);
    met(&session, 2);
    // Two findings of one bug.
    let Session { places, .. } = &session;
    assert_eq!(session.progress(), (2, places[0].report.calls, 1));
    assert!(places[0].bugs.iter().all(|bug| bug.finding.case_file.is_none()));
    assert_eq!(places[0].behaves, None, "that is asked of what has no name");
    let name = Some("baseline-missing".to_owned());
    let bug = &places[0].bugs[0];
    assert!(bug.is_why(&name, &Cause::NotANumber), "it has that name, in whatever way it breaks");
    assert!(!bug.is_why(&Some("epsilon-missing".to_owned()), &bug.way));
    assert!(!bug.is_why(&None, &bug.way));
}

#[test]
fn beside_a_named_bug_another_one_is_found_where_it_does_not_explain() {
    let mut session = fresh(
        ours(|call, advantages| {
            let more = if has(call, SMALL) { 0.4371 } else { 0.0 };
            *advantages = not_divided(call) + more;
            Ok(())
        }),
        &["oracle"],
    );
    give(&mut session, &[1.0, 0.0]);
    give(&mut session, &[2.0, SMALL, 1.0]);
    let named = ("oracle", Some("not-divided".to_owned()), 1);
    assert_eq!(bugs(&session), [named, ("oracle", None, 1)]);
    assert_eq!(rewards(&session.places[0].bugs[1].case), [SMALL]);
    assert_eq!(session.progress().2, 2);
}

#[test]
fn a_bug_without_a_name_is_met_on_its_smallest_case_whatever_the_way_there() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: Wrong = |call, advantages| {
        let is_large = has(call, LARGE) && advantages.len() > 2;
        *advantages += if is_large || has(call, SMALL) { 0.4371 } else { 0.0 };
        Ok(())
    };
    let state = Some(folder.path().to_owned());
    let mut session = fresh_of(Subject { state, ..subject(ours(wrong), &["oracle"]) }, false);
    let met = |session: &Session, often, smallest: usize| {
        assert_eq!(bugs(session), [("oracle", None, often)]);
        assert_eq!(rewards(&session.places[0].bugs[0].case).len(), smallest);
    };
    give(&mut session, &[LARGE, 1.0, 2.0, 3.0]);
    met(&session, 1, 3);
    // A smaller case of it takes the place of the larger one.
    give(&mut session, &[SMALL, 1.0]);
    met(&session, 2, 1);
    give(&mut session, &[LARGE, 1.0, 2.0, 4.0]);
    met(&session, 3, 1);
    // And a larger one that of none.
    give(&mut session, &[LARGE, 1.0, 2.0, 5.0]);
    met(&session, 4, 1);
    let behaves = session.places[0].behaves.clone();
    assert!(behaves.is_some() && session.subject.behaves.is_none());
    let files = kept(contract(), folder.path(), "ours");
    let files: Vec<_> = files.into_iter().map(|(path, file)| (path, file.behaves)).collect();
    assert!(files.iter().all(|(_, kept)| *kept == behaves), "{files:?}");
    let bug = &session.places[0].bugs[0];
    let path = bug.finding.case_file.as_ref().unwrap();
    assert!(files.iter().any(|(kept, _)| kept.display().to_string() == *path), "{files:?}");
    assert!(bug.is_why(&None, &Cause::Differs));
    assert!(!bug.is_why(&None, &Cause::NotANumber), "what breaks in another way is another bug");
    assert!(!bug.is_why(&Some("baseline-missing".to_owned()), &Cause::Differs));
}

#[test]
fn of_two_smallest_cases_the_first_stays() {
    let wrong: Wrong = |call, advantages| {
        *advantages += if has(call, 7.31251) || has(call, 7.31253) { 0.4371 } else { 0.0 };
        Ok(())
    };
    let mut session = fresh(ours(wrong), &["oracle"]);
    give(&mut session, &[7.31251]);
    give(&mut session, &[7.31253]);
    assert_eq!(bugs(&session), [("oracle", None, 2)]);
    assert_eq!(rewards(&session.places[0].bugs[0].case), [7.31251]);
}

#[test]
fn what_breaks_in_another_way_is_another_bug_also_on_the_way_to_a_smallest_case() {
    let wrong: Wrong = |call, advantages| {
        if has(call, SMALL) {
            *advantages += 0.4371;
        } else if has(call, LARGE) {
            advantages.fill(f64::NAN);
        }
        Ok(())
    };
    let ways = |session: &Session| {
        let bugs = session.places[0].bugs.iter();
        bugs.map(|bug| (bug.way.clone(), bug.met)).collect::<Vec<_>>()
    };
    let mut session = fresh(ours(wrong), &["oracle"]);
    give(&mut session, &[SMALL]);
    give(&mut session, &[LARGE]);
    assert_eq!(ways(&session), [(Cause::Differs, 1), (Cause::NotANumber, 1)]);

    let mut session = fresh(ours(wrong), &["oracle"]);
    (0..3).for_each(|_| give(&mut session, &[SMALL]));
    // The fourth is looked into, and what is met on the way, the fifth, as well.
    give(&mut session, &[SMALL, LARGE]);
    assert_eq!(ways(&session), [(Cause::Differs, 4), (Cause::NotANumber, 1)]);
    assert_eq!(unexplained(&session), [("oracle", 5)]);
}

#[test]
fn what_a_component_behaves_like_is_asked_under_the_options_that_do_not_change() {
    let wrong: Wrong = |_, advantages| {
        nameless(advantages);
        Ok(())
    };
    let unscaled = contract().default_options().with("scale", "none").unwrap();
    let behaves = |options: &Arc<dyn AnyOptions>| {
        let options = Arc::clone(options);
        let mut subject = Subject { options, ..subject(ours(wrong), &[]) };
        behaviour(&mut subject, Place::CPU_F64, &mut 0)
    };
    let [by_default, declared] = [contract().default_options(), Arc::clone(&unscaled)]
        .map(|options| Some(behaves(&options)));
    assert_ne!(by_default, declared);
    for (any_options, expected) in [(true, by_default), (false, declared)] {
        let mut session = fresh_of(subject(ours(wrong), &["oracle"]), any_options);
        session.subject.options = Arc::clone(&unscaled);
        give(&mut session, &[0.0, 2.0]);
        assert_eq!(session.places[0].behaves, expected);
        assert!(Arc::ptr_eq(&session.subject.options, &unscaled));
    }
}

/// Right in its first call only.
struct Stateful(u64);

impl Component<GroupAdvantage> for Stateful {
    fn call(&mut self, call: &Asked<'_>) -> Result<Returned<GroupAdvantage>, Failure> {
        self.0 += 1;
        let mut returned = Ours(|_, _| Ok(())).call(call)?;
        if self.0 > 1 {
            nameless(&mut returned.output.advantages);
        }
        Ok(returned)
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }

    fn begin_anew(&mut self) -> bool {
        self.0 = 0;
        true
    }
}

#[test]
fn what_shows_only_after_other_calls_is_told() {
    let mut session = fresh(erased::component(Stateful(1)), &["oracle"]);
    give(&mut session, &[0.0, 2.0]);
    assert!(session.places[0].bugs[0].finding.region.is_some());
}

#[test]
fn an_invariant_is_checked_under_the_options_that_it_speaks_of() {
    let reference = || Box::new(Builtin::reference(contract()));
    let only = ["zero-sum", "leave-one-out"];
    let mut session = fresh_of(subject(reference(), &only), true);
    let declared = Arc::clone(&session.subject.options);
    let unscaled = declared.with("scale", "none").unwrap();
    session.subject.options = unscaled.with("baseline", "leave-one-out").unwrap();
    give(&mut session, &[0.0, 1.0]);
    assert_eq!(checked(&session), [("zero-sum", 1), ("leave-one-out", 1)]);
    session.subject.options = unscaled.with("baseline", "none").unwrap();
    give(&mut session, &[0.0, 1.0]);
    assert_eq!(checked(&session), [("zero-sum", 1), ("leave-one-out", 1)]);
    assert_eq!(session.places[0].broken, BTreeSet::new());
    // What is declared is so for every case.
    let session = fresh_of(subject(reference(), &only), false);
    assert_eq!(checked(&session), [("zero-sum", 0)]);
}

#[test]
fn a_component_that_hangs_is_left_alone_and_that_is_said() {
    let hangs = || ours(|call, _| if has(call, SMALL) { Err(HANGS) } else { Ok(()) });
    let mut session = fresh(hangs(), &[]).dry();
    // That all invariants ask for the same call costs nothing.
    give(&mut session, &[SMALL, 1.0]);
    assert!(!session.is_over());
    give(&mut session, &[SMALL, 1.0]);
    assert!(session.is_over());
    let [AtOnePlace { report, .. }] = &session.conclude()[..] else { panic!("one place") };
    assert_eq!(report.cut, Some(Cut::GaveUp));
    assert_eq!(report.warnings, ["stopped after 2 cases: the component hung 2 times"]);
}

/// Right on one case, and hangs on all others.
fn hangs_elsewhere() -> Box<dyn Component> {
    ours(|call, output| match call.case.rewards.as_slice() {
        Some([SMALL, 1.0]) => {
            *output += 0.4371;
            Ok(())
        }
        _ => Err(HANGS),
    })
}

#[test]
fn a_case_ends_where_patience_does() {
    let mut session = fresh(hangs_elsewhere(), &[]).dry();
    give(&mut session, &[SMALL, 1.0]);
    let calls = session.places[0].report.calls;
    assert!(session.is_over());
    give(&mut session, &[SMALL, 1.0]);
    assert_eq!(session.places[0].report.calls, calls);
    let [AtOnePlace { report, .. }] = &session.conclude()[..] else { panic!("one place") };
    assert_eq!(report.warnings, ["stopped after 2 cases: the component hung 2 times"]);
}

#[test]
fn what_is_broken_when_patience_ends_is_no_pass() {
    let skip = [("within-time-limit".to_owned(), "#7".to_owned())].into();
    let mut session = fresh_of(Subject { skip, ..subject(hangs_elsewhere(), &[]) }, false);
    give(&mut session, &[SMALL, 1.0]);
    assert_eq!(bugs(&session), []);
    let [AtOnePlace { report, .. }] = &session.conclude()[..] else { panic!("one place") };
    let oracle = report.invariants.iter().find(|one| one.id == "oracle").unwrap();
    assert_eq!((oracle.status, oracle.reason.as_deref()), (InvariantStatus::Fail, Some(NO_TIME)));
    assert_eq!(report.status, Status::Fail);
}

#[test]
fn a_case_is_in_the_journal_before_it_is_called() {
    let folder = tempfile::tempdir().unwrap();
    let state = Some(folder.path().to_owned());
    let reference = Box::new(Builtin::reference(contract()));
    let mut session = started(Subject { state, ..subject(reference, &["oracle"]) });
    let journal = || {
        let entries = fs::read_dir(found_folder(folder.path(), "group-advantage")).unwrap();
        let mut paths = entries.map(|entry| entry.unwrap().path());
        let is_journal = |path: &PathBuf| path.extension().is_some_and(|end| end == "journal");
        fs::read(paths.find(is_journal).expect("there is one")).unwrap()
    };
    let mut before = journal();
    for rewards in [[SMALL, 1.0], [LARGE, 1.0]] {
        give(&mut session, &rewards);
        assert!(session.places[0].journal.is_some());
        let after = journal();
        assert_ne!(after, before);
        before = after;
    }
}

/// A file of what was found on some rewards.
fn found(folder: &TempDir, name: &str, rewards: &[f64]) -> (PathBuf, CaseFile) {
    let file = CaseFile {
        invariant: Some("oracle".to_owned()),
        component: Some("ours".to_owned()),
        place: Some(Place::CPU_F64),
        ..CaseFile::blank(contract(), case(rewards))
    };
    (found_folder(folder.path(), "group-advantage").join(name), file)
}

#[test]
fn a_session_begins_with_the_valid_cases_that_are_kept_and_what_no_report_has() {
    let folder = tempfile::tempdir().unwrap();
    let wrong: Wrong = |call, advantages| {
        if has(call, SMALL) {
            *advantages += 0.4371;
        } else if has(call, LARGE) {
            advantages.fill(f64::NAN);
        }
        Ok(())
    };
    let cases = |first: &[&[f64]], state: Option<&TempDir>| {
        let state = state.map(|folder| folder.path().to_owned());
        let first = first.iter().map(|rewards| case(rewards)).collect();
        let subject = Subject { state, first, ..subject(ours(wrong), &["oracle"]) };
        let session = started(subject);
        (session.places[0].report.cases, bugs(&session).len())
    };
    let (regressions, _) = cases(&[], None);
    assert!(regressions > 0);
    assert_eq!(cases(&[&[SMALL], &[1.0, 0.0]], None), (regressions + 2, 1));
    assert_eq!(cases(&[&[f64::NAN]], None), (regressions, 0), "outside the contract");

    let write = |(path, file): (PathBuf, CaseFile)| file.write(&path).unwrap();
    // The third is looked into as well.
    write(found(&folder, "1.yaml", &[SMALL]));
    write(found(&folder, "2.yaml", &[SMALL, 1.0]));
    write(found(&folder, "3.yaml", &[LARGE]));
    let but = |name, change: fn(CaseFile) -> CaseFile| {
        let (path, file) = found(&folder, name, &[2.0]);
        write((path, change(file)));
    };
    but("4.yaml", |file| CaseFile { reported: true, ..file });
    but("5.yaml", |file| CaseFile { place: Some(Place::CPU_F32), ..file });
    but("6.yaml", |file| CaseFile { component: Some("theirs".to_owned()), ..file });
    but("7.yaml", |file| CaseFile { invariant: None, ..file });
    but("8.yaml", |file| CaseFile { component: None, ..file });
    assert_eq!(cases(&[], Some(&folder)), (regressions + 3, 2));
}

#[test]
fn what_was_found_under_options_that_an_input_chose_is_given_under_them() {
    let wrong: Wrong = |call, advantages| {
        *advantages += if call.options.scale == Scale::None { 0.4371 } else { 0.0 };
        Ok(())
    };
    for (any_options, count) in [(true, 1), (false, 0)] {
        let folder = tempfile::tempdir().unwrap();
        let (path, file) = found(&folder, "1.yaml", &[1.0, 0.0]);
        let options = file.options.with("scale", "none").unwrap();
        CaseFile { options, ..file }.write(&path).unwrap();
        let state = Some(folder.path().to_owned());
        let subject = Subject { state, ..subject(ours(wrong), &["oracle"]) };
        let declared = Arc::clone(&subject.options);
        let session = Session::start(subject, any_options, &[Place::CPU_F64], 1).unwrap();
        assert_eq!(bugs(&session).len(), count);
        assert!(Arc::ptr_eq(&session.subject.options, &declared));
    }
}

#[test]
fn an_input_chooses_options_a_place_that_is_here_and_a_case() {
    let reference = || subject(Box::new(Builtin::reference(contract())), &["oracle"]);
    let cuda = Place { device: Device::Cuda(0), dtype: Dtype::F32 };
    let bytes: Vec<u8> = (0..=255).map(|byte: u8| byte.wrapping_mul(89)).collect();

    let mut nowhere = Session::start(reference(), false, &[cuda], 1).unwrap();
    assert!(nowhere.is_over() && nowhere.places[0].journal.is_none());
    assert_eq!(nowhere.progress().0, 0);
    assert!(!nowhere.input(&bytes).unwrap());

    let places = [cuda, Place::CPU_F32, Place::CPU_F64, cuda];
    let mut session = Session::start(reference(), true, &places, 1).unwrap();
    let cases = |session: &Session| -> Vec<u64> {
        session.places.iter().map(|at| at.report.cases).collect()
    };
    assert!(!session.is_over());
    let declared = Arc::clone(&session.subject.options);
    let mut before = cases(&session);
    assert_eq!(
        before.iter().map(|cases| *cases > 0).collect::<Vec<_>>(),
        [false, true, true, false]
    );
    let mut met = BTreeSet::new();
    for start in 0..16 {
        let bytes = &bytes[start..];
        let (options, index, _) = session.drawn(&mut Unstructured::new(bytes)).unwrap();
        before[index] += 1;
        assert!(session.input(bytes).unwrap());
        assert_eq!(cases(&session), before);
        assert_eq!(session.subject.options.yaml(), options.yaml());
        met.insert(index);
        assert!(session.read(bytes) > 0 && session.read(bytes) < bytes.len());
    }
    assert_eq!(met, BTreeSet::from([1, 2]));
    assert_ne!(session.subject.options.yaml(), declared.yaml());

    let mut first = Session::start(reference(), false, &[Place::CPU_F32, cuda], 1).unwrap();
    let declared = Arc::clone(&first.subject.options);
    assert!(first.input(&bytes).unwrap());
    assert!(Arc::ptr_eq(&first.subject.options, &declared));
}

#[test]
fn what_an_input_breaks_is_no_known_finding() {
    let mut session = fresh(ours(|_, _| Err(raised("E"))), &["does-not-raise"]);
    (0..3).for_each(|_| assert!(session.input(&[7; 64]).unwrap()));
    assert_eq!(unexplained(&session), [("does-not-raise", 3)]);
    let calls = session.places[0].report.calls;
    session.places[0].unexplained.fill(2);
    session.input(&[7; 64]).unwrap();
    assert_eq!(session.places[0].report.calls, calls + 1, "the third is not looked into");
}

/// What is said of each invariant.
fn said(report: &ComponentReport) -> Vec<(&str, InvariantStatus, Option<&str>)> {
    let invariants = report.invariants.iter();
    invariants.map(|one| (&*one.id, one.status, one.reason.as_deref())).collect()
}

#[test]
fn each_invariant_gets_its_status_in_the_order_of_the_contract() {
    let text = str::to_owned;
    let known = ["oracle", "zero-sum", "singleton"].map(|id| (text(id), format!("#{id}"))).into();
    let skip = [(text("relabelling"), text("later"))].into();
    let ids = ["oracle", "zero-sum", "signal", "order-preserved", "relabelling", "singleton"];
    let reference = || Box::new(Builtin::reference(contract()));
    let mut session = fresh_of(Subject { known, skip, ..subject(reference(), &ids) }, false);
    give(&mut session, &[0.0, 0.0]);
    session.places[0].broken.insert("oracle");
    session.subject.warnings = ["b", "a", "b"].map(text).to_vec();
    session.started -= Duration::from_secs(3600);
    let [AtOnePlace { report, .. }] = &session.conclude()[..] else { panic!("one place") };
    let holds = known_holds("#zero-sum");
    assert_eq!(
        said(report),
        [
            ("oracle", InvariantStatus::Known, Some("#oracle")),
            ("zero-sum", InvariantStatus::Fail, Some(&*holds)),
            ("signal", InvariantStatus::Vacuous, None),
            ("order-preserved", InvariantStatus::Pass, None),
            ("relabelling", InvariantStatus::Skipped, Some("later")),
            ("singleton", InvariantStatus::Vacuous, None),
        ]
    );
    assert_eq!(report.status, Status::Fail, "something holds that is declared to fail");
    assert_eq!((&report.warnings[..], report.cut), (&["a", "b"].map(text)[..], None));
    assert!(report.elapsed_ms >= 3_600_000);
}

#[test]
fn an_invariant_fails_that_has_a_finding_and_no_other_does() {
    let raises: Wrong = |call, _| if has(call, SMALL) { Err(raised("E")) } else { Ok(()) };
    let mut session = fresh(ours(raises), &["does-not-raise", "oracle", "singleton"]);
    give(&mut session, &[SMALL]);
    give(&mut session, &[1.0, 0.0]);
    session.places[0].checked[0].cases = 0;
    let concluded = session.conclude();
    let [AtOnePlace { report, met, behaves }] = &concluded[..] else { panic!("one place") };
    assert_eq!(
        said(report),
        [
            ("does-not-raise", InvariantStatus::Fail, None),
            ("oracle", InvariantStatus::Pass, None),
            ("singleton", InvariantStatus::Vacuous, None),
        ]
    );
    assert_eq!((report.status, report.findings.len(), &met[..]), (Status::Fail, 1, &[1][..]));
    assert_eq!((report.warnings.len(), behaves), (0, &None));
}

#[test]
fn a_place_where_nothing_was_checked_does_not_pass() {
    let concluded = |only: &str, place: Place| {
        let reference = Box::new(Builtin::reference(contract()));
        let mut session = Session::start(subject(reference, &[only]), false, &[place], 1).unwrap();
        session.places[0].checked.iter_mut().for_each(|progress| progress.cases = 0);
        if session.places[0].report.reason.is_none() {
            give(&mut session, &[1.0, 0.0]);
        }
        let report = session.conclude().remove(0).report;
        (report.status, report.reason)
    };
    assert_eq!(concluded("oracle", Place::CPU_F64), (Status::Pass, None), "one case is enough");
    let nothing = "nothing was checked: no case meets the conditions of `singleton`".to_owned();
    assert_eq!(concluded("singleton", Place::CPU_F64), (Status::Error, Some(nothing)));
    let cuda = Place { device: Device::Cuda(0), dtype: Dtype::F32 };
    let elsewhere = "a component on host arrays runs on the CPU only".to_owned();
    assert_eq!(concluded("oracle", cuda), (Status::Skipped, Some(elsewhere)));
}

#[test]
fn what_could_not_be_kept_is_said_once() {
    let reference = Box::new(Builtin::reference(contract()));
    let places = [Place::CPU_F64, Place::CPU_F32];
    let mut session = Session::start(subject(reference, &["oracle"]), false, &places, 1).unwrap();
    session.subject.warnings = vec!["it is full".to_owned()];
    let warnings = session.conclude().into_iter().map(|at| at.report.warnings);
    assert_eq!(warnings.collect::<Vec<_>>(), [vec!["it is full".to_owned()], vec![]]);
}

/// What was counted since that was cleared, each with its range.
fn counted() -> BTreeSet<(usize, u8)> {
    coverage::features().collect()
}

/// What is counted where something happens once.
fn once(words: &[&str]) -> (usize, u8) {
    coverage::clear();
    coverage::event(words);
    counted().pop_first().expect("it is counted")
}

#[test]
fn what_a_case_made_happen_is_counted_and_what_looking_into_it_did_is_not() {
    coverage::apart();
    coverage::start();
    let wrong: Wrong = |call, advantages| {
        if has(call, SMALL) {
            advantages.fill(f64::NAN);
        }
        Ok(())
    };
    let mut session = fresh(ours(wrong), &["oracle", "zero-sum", "signal"]);
    let mut made = || {
        coverage::clear();
        give(&mut session, &[SMALL, SMALL]);
        counted()
    };
    // The third is not looked into.
    let [first, _, third] = [made(), made(), made()];
    assert_eq!(first, third);
    for words in [
        &["class", "two-completions"][..],
        &["oracle", "broken"],
        &["signal", "says nothing"],
        &["output", "advantages", "NaN"],
        &["oracle", "advantages", "zero"],
    ] {
        assert!(first.contains(&once(words)), "{words:?}");
    }
    let fails: Wrong = |call, _| match call.case.rewards[0] {
        SMALL => Err(raised("ValueError: 3 rows")),
        LARGE => Err(HANGS),
        _ => Ok(()),
    };
    let mut session = fresh(ours(fails), &["oracle"]);
    let mut made = |rewards: &[f64]| {
        coverage::clear();
        give(&mut session, rewards);
        counted()
    };
    let (raised, hung, right) = (made(&[SMALL]), made(&[LARGE]), made(&[0.0]));
    assert!(raised.contains(&once(&["oracle", "failed"])));
    assert!(raised.contains(&once(&["raised", "ValueError"])));
    assert!(hung.contains(&once(&["failed", "within-time-limit"])));
    assert!(right.contains(&once(&["oracle", "holds"])));
}

#[test]
fn each_kind_of_number_is_counted_once() {
    coverage::apart();
    coverage::start();
    let number = |value, scale| Number { value, scale, slack: 0.0 };
    let numbers =
        [number(1.0, 1.0), number(0.0, 1.0), number(1.0, 1.0), number(3.0, f64::INFINITY)];
    let mut memo = Memo::default();
    let output: GroupAdvantageOutput = vec![0.0, 2.0, 0.0, -1.5].into();
    let (changed, no_gradient) = (Vec::new(), Vec::new());
    memo.output = Some(Ok(Arc::new(Returned { output: Arc::new(output), changed, no_gradient })));
    let numbers = arr1(&numbers).into_dyn();
    memo.expected = Some(Arc::new(vec![Expected { field: "advantages", numbers, terms: 1 }]));
    coverage::clear();
    events_of_output(&memo);
    let found = counted();
    let output = ["zero", "positive", "negative"].map(|kind| once(&["output", "advantages", kind]));
    let oracle = ["zero", "one", "open"].map(|kind| once(&["oracle", "advantages", kind]));
    assert_eq!(found, output.into_iter().chain(oracle).collect());
}

#[test]
fn numbers_are_told_apart_by_what_bugs_do_to_them() {
    for (kind_of, numbers) in [
        ("NaN", &[f64::NAN][..]),
        ("infinity", &[f64::INFINITY]),
        ("-infinity", &[f64::NEG_INFINITY]),
        ("zero", &[0.0, -0.0]),
        ("one", &[1.0]),
        ("tiny", &[1e-31, -1e-31]),
        ("huge", &[2e30, -2e30]),
        ("negative", &[-1.0, -0.5, -1e-30, -1e30]),
        ("positive", &[2.0, 0.5, 1e-30, 1e30]),
    ] {
        for number in numbers {
            assert_eq!(kind(*number), kind_of, "{number}");
        }
    }
}

#[test]
fn only_the_first_call_for_a_case_is_followed() {
    static FOLLOWED: Mutex<Vec<bool>> = Mutex::new(Vec::new());
    coverage::apart();
    let follows: Wrong = |_, _| {
        FOLLOWED.lock().unwrap().push(coverage::is_followed());
        Ok(())
    };
    let mut session = fresh(ours(follows), &["oracle", "deterministic", "zero-sum"]);
    give(&mut session, &[1.0, 0.0]);
    let followed = FOLLOWED.lock().unwrap();
    assert!(followed.len() > 1 && followed[0]);
    assert!(!followed[1..].contains(&true));
}

#[test]
fn a_bug_is_named_by_its_first_fault_and_else_by_its_exception() {
    let diagnosis = |fault: &str| -> Diagnosis {
        let (matches, of, explains, summary, by_outcomes) = (1, 1, 1.0, "", false);
        serde_json::from_value(serde_json::json!({
            "fault": fault, "matches": matches, "of": of, "explains": explains,
            "summary": summary, "by_outcomes": by_outcomes,
        }))
        .unwrap()
    };
    let raised = Cause::raised("E: 3");
    let two = [diagnosis("first"), diagnosis("second")];
    assert_eq!(reason(&two, &raised).as_deref(), Some("first"));
    assert_eq!(reason(&[], &raised).as_deref(), Some("E: 0"));
    assert_eq!(reason(&[], &Cause::Differs), None);
}
