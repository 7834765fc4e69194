//! The body of every contract's fuzz target: bytes become options, a place and a case; all
//! invariants of a builtin component are checked on it; a finding becomes a case file and a crash.

#[cfg(feature = "fuzz")]
pub(crate) mod engine;
#[cfg(feature = "fuzz")]
pub(crate) mod job;
pub mod parsers;
#[cfg(feature = "fuzz")]
pub(crate) mod session;

use std::path::Path;
use std::sync::Arc;

use arbitrary::Unstructured;

use shakedown_core::contract::cause::Found;
use shakedown_core::contract::coverage;
use shakedown_core::contract::invariant::AnyInvariant;
use shakedown_core::contract::outcome::Stop;
use shakedown_core::contract::probe::Memo;
use shakedown_core::contract::stream;
use shakedown_core::contract::{Contract, erased};
use shakedown_core::value::place::{Device, Dtype, Place};
use shakedown_core::value::record::Shared;
use shakedown_engine::files::case_file::CaseFile;
use shakedown_engine::files::corpora::{found_folder, make_found_folder};
use shakedown_engine::host::builtin::Builtin;
use shakedown_engine::host::function::quiet_panics;
use shakedown_engine::shrink::{Shrunk, shrink};
use shakedown_engine::subject::{Broken, Subject};

/// Call this first: libfuzzer-sys aborts in its own panic hook, even where the panic is caught.
pub fn init() {
    quiet_panics();
    coverage::start();
}

/// Checks one input of the fuzzer on the reference of the contract `C`, or on the fault that the
/// variable `SHAKEDOWN_FUZZ_FAULT` names. The bytes choose the options too.
///
/// # Panics
/// With the finding and the path of its case file, which `shakedown replay` takes.
pub fn one<C: Contract>(bytes: &[u8]) {
    let contract = erased::of::<C>();
    let name = match std::env::var("SHAKEDOWN_FUZZ_FAULT") {
        Ok(fault) => format!("{}/fault/{fault}", C::ID),
        Err(_) => format!("{}/reference", C::ID),
    };
    let component = Builtin::named(contract, &name)
        .unwrap_or_else(|error| panic!("SHAKEDOWN_FUZZ_FAULT: {error}"));
    let mut subject = Subject::new(contract, name, Box::new(component));
    subject.corpora = Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora"));
    let mut u = Unstructured::new(bytes);
    let Ok(options) = contract.draw_options(&mut u) else { return };
    subject.options = options;
    let places = Dtype::ALL.map(|(dtype, _)| Place { device: Device::Cpu, dtype });
    input(&mut subject, &places, &mut u);
}

/// Checks a component on the case that some bytes stand for, at one of the places.
///
/// # Panics
/// With the finding and the path of its case file.
pub(crate) fn input(subject: &mut Subject, places: &[Place], u: &mut Unstructured<'_>) {
    let contract = subject.contract;
    let Ok(place) = u.choose(places).copied() else { return };
    let case = stream::from_unstructured(contract, u, &*subject.options, place.dtype);
    if contract.valid(&*case, &*subject.options, place.dtype).is_err() {
        return;
    }
    let left_out = |subject: &Subject, id: &str| {
        subject.skip.contains_key(id) || subject.known.contains_key(id)
    };
    let mut memo = Memo::default();
    for invariant in contract.invariants() {
        if left_out(subject, invariant.id) || !invariant.applies(&*subject.options, place) {
            continue;
        }
        let (outcome, failed) = subject.try_with(invariant, &case, place, &mut memo, &mut 0);
        match (outcome, failed) {
            (Err(Stop::Broken(found)), _) => crash(subject, invariant, case, found, place),
            (Err(Stop::Failed), Some((case, failure))) => {
                let law = contract.invariant(failure.law());
                let law = law.expect("every contract has the universal laws");
                if !left_out(subject, law.id) {
                    crash(subject, law, case, failure.found(), place)
                }
            }
            _ => {}
        }
    }
}

/// Keeps the smallest case and panics.
fn crash(
    subject: &mut Subject,
    invariant: &'static AnyInvariant,
    case: Shared,
    found: Found,
    place: Place,
) -> ! {
    let broken = Broken { case, found, at_case: 1 };
    let Shrunk { case, found, .. } = shrink(subject, invariant, broken, place, &mut 0);
    let file = CaseFile {
        also: Vec::new(),
        contract: subject.contract,
        invariant: Some(invariant.id.to_owned()),
        component: Some(subject.name.clone()),
        recorded: None,
        place: Some(place),
        why: Some(found.message.lines().next().unwrap_or("").to_owned()),
        link: None,
        diagnosis: Vec::new(),
        behaves: None,
        stateful: false,
        reported: false,
        options: Arc::clone(&subject.options),
        case,
    };
    let kept = subject.corpora.as_ref().map(|corpora| {
        let folder = found_folder(corpora, subject.contract.id());
        let written = make_found_folder(&folder).and_then(|()| file.write_in(&folder));
        let path = written.unwrap_or_else(|error| panic!("{error}"));
        format!("\nkept as {}", path.display())
    });
    panic!("{}: {found}{}", invariant.id, kept.unwrap_or_default());
}
