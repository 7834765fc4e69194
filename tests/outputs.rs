//! What the builtin references give on the regression corpus: a change shows up as a snapshot.

#[path = "support/outputs.rs"]
mod outputs;

use std::path::Path;

use shakedown::contract::Contract;
use shakedown::contracts::{IDS, Visit, visit};
use shakedown::host::builtin::Builtin;
use shakedown::value::place::Place;

#[test]
fn references_give_what_they_gave() {
    struct Test;
    impl Visit for Test {
        type Output = ();
        fn visit<C: Contract>(self) {
            let root = Path::new(env!("CARGO_MANIFEST_DIR"));
            let reference = |_| Builtin::<C>::reference();
            for place in [Place::CPU_F32, Place::CPU_BF16] {
                let given =
                    outputs::on_regressions::<C, _>(&root.join("corpora"), place, reference);
                let name = format!("builtin-{}-{}", C::ID, place.dtype.name());
                given.assert(&root.join("snapshots/outputs"), &name);
            }
        }
    }
    for id in IDS {
        visit(id, Test).expect("IDS names known contracts");
    }
}
