//! The regression corpus: every case says why it is kept, is valid, and the reference passes it.

use std::path::Path;
use std::sync::Arc;

use shakedown::author::{Place, Stop};
use shakedown::contract::erased::AnyContract;
use shakedown::contracts;
use shakedown::engine::subject::Subject;
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::regressions_folder;
use shakedown::host::builtin::Builtin;

#[test]
fn every_regression_says_why_is_valid_and_passes_with_the_reference() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
    for contract in contracts::all() {
        for entry in std::fs::read_dir(regressions_folder(&corpora, contract.id())).unwrap() {
            check(contract, &entry.unwrap().path());
        }
    }
}

fn check(contract: &'static dyn AnyContract, path: &Path) {
    let file = CaseFile::read_of(contract, path).unwrap();
    let named = path.display();
    assert!(file.why.is_some_and(|why| why.len() > 20), "{named} does not say why");
    let link = file.link.unwrap_or_default();
    assert!(link.starts_with("https://github.com/"), "{named} has no link");
    let id = file.invariant.unwrap_or_else(|| panic!("{named} names no invariant"));
    for place in [Place::CPU_F32, Place::CPU_F64] {
        let case = file.case.rounded(place.dtype);
        assert_eq!(contract.valid(&*case, &*file.options, place.dtype), Ok(()), "{named}");
        let reference = Box::new(Builtin::reference(contract));
        let mut subject = Subject::new(contract, "reference", reference);
        subject.options = Arc::clone(&file.options);
        for invariant in contract.invariants() {
            if !invariant.applies(&*file.options, place) {
                assert_ne!(invariant.id, id, "{named}: {id} does not apply");
                continue;
            }
            match subject.try_case(invariant, &case, place, &mut 0).0 {
                Ok(()) => {}
                Err(Stop::Vacuous) if invariant.id != id => {}
                other => panic!("{named} at {place}: {} is {other:?}", invariant.id),
            }
        }
    }
}
