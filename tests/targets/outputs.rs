//! What the references on tensors give on the regression corpus: a change shows up as a snapshot.

use std::path::Path;
use std::sync::Arc;

use shakedown::author::{Component, Contract};
use shakedown::contract::erased;
use shakedown::contract::options::AnyOptions;
use shakedown::place::Place;
use shakedown_targets::{
    accumulate, advantage, entropy, gae, kl, length_penalty, log_probs, outcome, policy,
    preference, returns, rollout_gae, value, whiten,
};

use crate::recorded;

fn give_what_they_gave<C: Contract, K: Component<C> + 'static>(component: fn(C::Options) -> K) {
    let make = |options: &Arc<dyn AnyOptions>| {
        erased::component::<C>(component(options.typed::<C::Options>().clone()))
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for place in [Place::CPU_F32, Place::CPU_BF16] {
        let given = recorded::on_regressions(erased::of::<C>(), &root.join("corpora"), place, make);
        let name = format!("tensor-{}-{}", C::ID, place.dtype.name());
        given.assert(&root.join("snapshots/outputs"), &name);
    }
}

/// All but `policy-update`: what is trained depends on the last digit of every step.
#[test]
fn tensor_references_give_what_they_gave() {
    give_what_they_gave(length_penalty::component);
    give_what_they_gave(advantage::component);
    give_what_they_gave(outcome::component);
    give_what_they_gave(gae::component);
    give_what_they_gave(rollout_gae::component);
    give_what_they_gave(returns::component);
    give_what_they_gave(whiten::component);
    give_what_they_gave(log_probs::component);
    give_what_they_gave(entropy::component);
    give_what_they_gave(kl::component);
    give_what_they_gave(policy::component);
    give_what_they_gave(value::component);
    give_what_they_gave(preference::component);
    give_what_they_gave(accumulate::component);
}
