//! The body of every fuzz target: bytes become options, a place and a case; all invariants of a
//! builtin component are checked on it; a finding becomes a case file and a crash.

#[cfg(feature = "fuzz")]
pub(crate) mod engine;
#[cfg(feature = "fuzz")]
pub(crate) mod session;

use std::path::Path;

use arbitrary::Unstructured;

use crate::case_file::{CaseFile, found_folder, make_found_folder};
use crate::check::{Broken, Subject};
use crate::component::quiet_panics;
use crate::contract::{Contract, Options};
use crate::coverage;
use crate::fault::Builtin;
use crate::finding::{self, Shrunk};
use crate::invariant::Stop;
use crate::manifest::builtin;
use crate::place::{Device, Dtype, Place};
use crate::stream;

/// Call this first: libfuzzer-sys aborts in its own panic hook, even where the panic is caught.
pub fn init() {
    quiet_panics();
    coverage::start();
}

/// Checks one input of the fuzzer on the reference of the contract `C`, or on the fault that the
/// variable `SHAKEDOWN_FUZZ_FAULT` names.
///
/// # Panics
/// With the finding and the path of its case file, which `shakedown replay` takes.
pub fn one<C: Contract>(bytes: &[u8]) {
    let component = match std::env::var("SHAKEDOWN_FUZZ_FAULT") {
        Ok(fault) => {
            let name = format!("{}/fault/{fault}", C::ID);
            builtin::<C>(&name).unwrap_or_else(|error| panic!("SHAKEDOWN_FUZZ_FAULT: {error}"))
        }
        Err(_) => Builtin::reference(),
    };
    let mut subject = Subject::new("fuzz", component);
    let Some((place, case)) = decode(bytes, &mut subject) else { return };
    for invariant in C::invariants() {
        if !(invariant.applies)(&subject.options, place) {
            continue;
        }
        let (outcome, _) = subject.try_case(&invariant, &case, place, &mut 0);
        if let Err(Stop::Broken(found)) = outcome {
            let corpora = concat!(env!("CARGO_MANIFEST_DIR"), "/corpora");
            let broken = Broken { case, found, at_case: 1 };
            let Shrunk { case, found, .. } =
                finding::shrink(&mut subject, invariant, broken, place, &mut 0);
            let file = CaseFile::<C> {
                invariant: Some(invariant.id.to_owned()),
                component: None,
                place: Some(place),
                why: Some(found.lines().next().unwrap_or("").to_owned()),
                link: None,
                diagnosis: Vec::new(),
                options: subject.options.clone(),
                case,
            };
            let folder = found_folder(Path::new(corpora), C::ID);
            let path = folder.join(file.name());
            let written = make_found_folder(&folder).and_then(|()| file.write(&path));
            written.unwrap_or_else(|error| panic!("{error}"));
            panic!("{}: {found}\nkept as {}", invariant.id, path.display());
        }
    }
}

/// Options, then a place, then a case, from one sequence of bytes.
fn decode<C: Contract>(bytes: &[u8], subject: &mut Subject<C>) -> Option<(Place, C::Case)> {
    let mut u = Unstructured::new(bytes);
    subject.options = C::Options::draw(&mut u).ok()?;
    let (dtype, _) = *u.choose(&Dtype::ALL).ok()?;
    let place = Place { device: Device::Cpu, dtype };
    let case = stream::from_unstructured::<C>(&mut u, &subject.options, dtype);
    C::valid(&case, &subject.options, dtype).ok()?;
    Some((place, case))
}
