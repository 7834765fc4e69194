//! What the builtin references give on the regression corpus: a change shows up as a snapshot.

#[path = "support/outputs.rs"]
mod outputs;
#[path = "support/snapshot.rs"]
mod snapshot;

use std::path::Path;

use shakedown::contract::Contract;
use shakedown::contracts::{IDS, Visit, visit};
use shakedown::fault::Builtin;
use shakedown::place::Place;

#[test]
fn references_give_what_they_gave() {
    struct Test;
    impl Visit for Test {
        type Output = ();
        fn visit<C: Contract>(self) {
            let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpora");
            for place in [Place::CPU_F32, Place::CPU_BF16] {
                let text =
                    outputs::on_regressions::<C, _>(&corpora, place, |_| Builtin::<C>::reference());
                let name = format!("builtin-{}-{}", C::ID, place.dtype.name());
                snapshot::assert_snapshot("outputs", &name, &text);
            }
        }
    }
    for id in IDS {
        visit(id, Test).expect("IDS names known contracts");
    }
}
