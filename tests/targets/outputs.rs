//! What the references on tensors give on the regression corpus: a change shows up as a snapshot.

#[path = "../support/outputs.rs"]
mod outputs;
#[path = "../support/snapshot.rs"]
mod snapshot;

use std::path::Path;

use shakedown::place::Place;
use shakedown_targets::{advantage, log_probs, returns};

#[test]
fn tensor_references_give_what_they_gave() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../corpora");
    for place in [Place::CPU_F32, Place::CPU_BF16] {
        let dtype = place.dtype.name();
        let text = outputs::on_regressions(&corpora, place, advantage::component);
        snapshot::assert_snapshot("outputs", &format!("tensor-group-advantage-{dtype}"), &text);
        let text = outputs::on_regressions(&corpora, place, returns::component);
        snapshot::assert_snapshot("outputs", &format!("tensor-returns-{dtype}"), &text);
        let text = outputs::on_regressions(&corpora, place, log_probs::component);
        snapshot::assert_snapshot("outputs", &format!("tensor-token-log-probs-{dtype}"), &text);
    }
}
