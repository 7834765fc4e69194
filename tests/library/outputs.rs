//! What the builtin references give on the regression corpus: a change shows up as a snapshot.

use std::path::Path;

use shakedown::author::{Component, Place};
use shakedown::contracts;
use shakedown::host::builtin::Builtin;

use crate::recorded;

#[test]
fn references_give_what_they_gave() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for contract in contracts::all() {
        for place in [Place::CPU_F32, Place::CPU_BF16] {
            let reference = |_: &_| Box::new(Builtin::reference(contract)) as Box<dyn Component>;
            let given = recorded::on_regressions(contract, &root.join("corpora"), place, reference);
            let name = format!("builtin-{}-{}", contract.id(), place.dtype.name());
            given.assert(&root.join("snapshots/outputs"), &name);
        }
    }
}
