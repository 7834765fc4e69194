//! The regression corpus: every case says why it is kept, is valid, and the reference passes it.

use std::path::Path;

use shakedown::contract::Contract;
use shakedown::contract::probe::Stop;
use shakedown::contracts::{IDS, Visit, visit};
use shakedown::engine::subject::Subject;
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::regressions_folder;
use shakedown::host::builtin::Builtin;
use shakedown::value::place::Place;
use shakedown::value::record::round;

#[test]
fn every_regression_says_why_is_valid_and_passes_with_the_reference() {
    #[derive(Clone, Copy)]
    struct Test;
    impl Visit for Test {
        type Output = ();
        fn visit<C: Contract>(self) {
            let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
            let Ok(folder) = std::fs::read_dir(regressions_folder(&corpora, C::ID)) else { return };
            for entry in folder {
                let path = entry.unwrap().path();
                let file = CaseFile::<C>::read(&path).unwrap();
                let named = path.display();
                assert!(file.why.is_some_and(|why| why.len() > 20), "{named} does not say why");
                let link = file.link.unwrap_or_default();
                assert!(link.starts_with("https://github.com/"), "{named} has no link");
                let id = file.invariant.unwrap_or_else(|| panic!("{named} names no invariant"));
                for place in [Place::CPU_F32, Place::CPU_F64] {
                    let mut case = file.case.clone();
                    round(&mut case, place.dtype);
                    assert_eq!(C::valid(&case, &file.options, place.dtype), Ok(()), "{named}");
                    let mut subject = Subject::<C>::new("reference", Builtin::reference());
                    subject.options = file.options.clone();
                    for invariant in C::invariants() {
                        if !(invariant.applies)(&file.options, place) {
                            assert_ne!(invariant.id, id, "{named}: {id} does not apply");
                            continue;
                        }
                        let outcome = subject.try_case(&invariant, &case, place, &mut 0).0;
                        match outcome {
                            Ok(()) => {}
                            Err(Stop::Vacuous) if invariant.id != id => {}
                            other => panic!("{named} at {place}: {} is {other:?}", invariant.id),
                        }
                    }
                }
            }
        }
    }
    for id in IDS {
        visit(id, Test).expect("IDS names known contracts");
    }
}
