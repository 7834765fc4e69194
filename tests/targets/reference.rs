//! The references on tensors keep every invariant, under drawn options, at every place.

use std::sync::Arc;

use arbitrary::Unstructured;
use proptest::prelude::Rng;
use shakedown::author::{Component, Contract, Options};
use shakedown::contract::erased;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::place::{Device, Dtype, Place};
use shakedown::report::Status;
use shakedown::report::text::{Paint, write_component};
use shakedown_targets::{
    accumulate, advantage, batch_collation, batch_partition, entropy, entropy_bonus, gae,
    group_filter, group_sampling, importance_weights, kl, length_penalty, log_probs,
    metric_reduction, outcome, pair_objective, policy, preference, returns, reward_combination,
    rollout_gae, sequence_packing, token_rewards, turn_mask, value, whiten,
};

/// The default options, and drawn ones.
fn option_sets() -> u64 {
    let is_night = std::env::var_os("SHAKEDOWN_NIGHT").is_some_and(|set| set == "1");
    if is_night { 30 } else { 12 }
}

/// Cases of one option set at one place, besides the corners.
const CASES: u64 = 34;

fn places() -> Vec<Place> {
    let cuda = |dtype| Place { device: Device::Cuda(0), dtype };
    Place::from_env().unwrap().unwrap_or_else(|| {
        let cpu = [Place::CPU_F32, Place::CPU_BF16, Place::CPU_F64];
        cpu.into_iter().chain([cuda(Dtype::F32), cuda(Dtype::Bf16)]).collect()
    })
}

fn options<C: Contract>(set: u64) -> C::Options {
    if set == 0 {
        return C::Options::default();
    }
    let mut bytes = [0; 256];
    shakedown::contract::stream::rng(set, C::ID).fill_bytes(&mut bytes);
    C::Options::draw(&mut Unstructured::new(&bytes)).unwrap()
}

fn keeps_every_invariant<C: Contract, K: Component<C> + 'static>(component: fn(C::Options) -> K) {
    let mut total = 0;
    let mut skipped = Vec::new();
    for place in places() {
        for set in 0..option_sets() {
            let options = options::<C>(set);
            let component = erased::component::<C>(component(options.clone()));
            let mut subject = Subject::new(erased::of::<C>(), C::ID, component);
            subject.options = Arc::new(options.clone());
            let budget = Budget { cases: CASES, seed: set, time: None };
            let report = run(&mut subject, place, &budget, &|_| ()).unwrap();
            if report.status == Status::Skipped {
                skipped.push(format!("{place}: {}", report.reason.unwrap()));
                break;
            }
            let mut text = Vec::new();
            write_component(&mut text, &report, Paint::default()).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert_eq!(report.status, Status::Pass, "{options:?}\n{text}");
            total += report.cases;
        }
    }
    println!("{}: {total} cases; skipped: {skipped:?}", C::ID);
    let of_cpu = 3 * option_sets() * CASES;
    assert!(total >= of_cpu || Place::from_env().unwrap().is_some(), "only {total} cases");
}

#[test]
fn group_advantage_keeps_every_invariant() {
    keeps_every_invariant(advantage::component);
}

#[test]
fn token_log_probs_keeps_every_invariant() {
    keeps_every_invariant(log_probs::component);
}

#[test]
fn returns_keeps_every_invariant() {
    keeps_every_invariant(returns::component);
}

#[test]
fn length_penalty_keeps_every_invariant() {
    keeps_every_invariant(length_penalty::component);
}

#[test]
fn outcome_advantage_keeps_every_invariant() {
    keeps_every_invariant(outcome::component);
}

#[test]
fn gae_keeps_every_invariant() {
    keeps_every_invariant(gae::component);
}

#[test]
fn rollout_gae_keeps_every_invariant() {
    keeps_every_invariant(rollout_gae::component);
}

#[test]
fn kl_estimate_keeps_every_invariant() {
    keeps_every_invariant(kl::component);
}

#[test]
fn preference_loss_keeps_every_invariant() {
    keeps_every_invariant(preference::component);
}

#[test]
fn accumulated_loss_keeps_every_invariant() {
    keeps_every_invariant(accumulate::component);
}

#[test]
fn token_entropy_keeps_every_invariant() {
    keeps_every_invariant(entropy::component);
}

#[test]
fn policy_loss_keeps_every_invariant() {
    keeps_every_invariant(policy::component);
}

#[test]
fn whiten_keeps_every_invariant() {
    keeps_every_invariant(whiten::component);
}

#[test]
fn value_loss_keeps_every_invariant() {
    keeps_every_invariant(value::component);
}

#[test]
fn token_rewards_keeps_every_invariant() {
    keeps_every_invariant(token_rewards::component);
}

#[test]
fn group_filter_keeps_every_invariant() {
    keeps_every_invariant(group_filter::component);
}

#[test]
fn importance_weights_keeps_every_invariant() {
    keeps_every_invariant(importance_weights::component);
}

#[test]
fn reward_combination_keeps_every_invariant() {
    keeps_every_invariant(reward_combination::component);
}

#[test]
fn pair_objective_keeps_every_invariant() {
    keeps_every_invariant(pair_objective::component);
}

#[test]
fn group_sampling_keeps_every_invariant() {
    keeps_every_invariant(group_sampling::component);
}

#[test]
fn entropy_bonus_keeps_every_invariant() {
    keeps_every_invariant(entropy_bonus::component);
}

#[test]
fn batch_collation_keeps_every_invariant() {
    keeps_every_invariant(batch_collation::component);
}

#[test]
fn sequence_packing_keeps_every_invariant() {
    keeps_every_invariant(sequence_packing::component);
}

#[test]
fn batch_partition_keeps_every_invariant() {
    keeps_every_invariant(batch_partition::component);
}

#[test]
fn metric_reduction_keeps_every_invariant() {
    keeps_every_invariant(metric_reduction::component);
}

#[test]
fn turn_mask_keeps_every_invariant() {
    keeps_every_invariant(turn_mask::component);
}
