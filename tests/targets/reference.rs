//! The references on tensors keep every invariant, under drawn options, at every place.

use shakedown::engine::check::run;
use shakedown::engine::subject::Budget;
use shakedown::place::{Device, Dtype, Place};
use shakedown::report::Status;
use shakedown::report::text::{Paint, write_component};
use shakedown_targets::references;

use crate::night::is_night;

/// The default options, and drawn ones: most at f32, where training is.
fn option_sets(place: Place) -> u64 {
    match place.dtype {
        _ if is_night() => 30,
        Dtype::F32 => 12,
        _ => 4,
    }
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

fn check(contract: &str) {
    let reference = references::find(contract).expect("the contract has a reference");
    let (mut total, mut least) = (0, 0);
    let mut skipped = Vec::new();
    for place in places() {
        if place.device == Device::Cpu {
            least += option_sets(place) * CASES;
        }
        for set in 0..option_sets(place) {
            let mut subject = reference(set);
            let budget = Budget { cases: CASES, seed: set, time: None };
            let report = run(&mut subject, place, &budget, &|_| ()).unwrap();
            if report.status == Status::Skipped {
                skipped.push(format!("{place}: {}", report.reason.unwrap()));
                break;
            }
            let mut text = Vec::new();
            write_component(&mut text, &report, Paint::default()).unwrap();
            let text = String::from_utf8_lossy(&text);
            assert_eq!(report.status, Status::Pass, "{:?}\n{text}", subject.options);
            total += report.cases;
        }
    }
    println!("{contract}: {total} cases; skipped: {skipped:?}");
    assert!(total >= least, "only {total} cases, expected {least}");
}

/// A test for each reference, called as its contract is.
macro_rules! references {
    ($( $contract:ident )+) => {
        mod keeps_every_invariant {
            $( #[test]
            fn $contract() {
                super::check(&stringify!($contract).replace('_', "-"));
            } )+
        }

        #[test]
        fn every_reference_has_a_test() {
            let tested = [$( stringify!($contract).replace('_', "-") ),+];
            let all: Vec<&str> = references::all().iter().map(|(id, _)| *id).collect();
            assert_eq!(tested.as_slice(), all);
        }
    };
}

references! {
    group_sampling
    turn_mask
    batch_collation
    sequence_packing
    batch_partition
    length_penalty
    reward_combination
    group_filter
    group_advantage
    outcome_advantage
    token_rewards
    gae
    rollout_gae
    returns
    whiten
    model_forward
    token_log_probs
    token_entropy
    kl_estimate
    importance_weights
    policy_loss
    entropy_bonus
    value_loss
    preference_loss
    pair_objective
    accumulated_loss
    sft_step
    preference_step
    kto_step
    reward_model_step
    critic_step
    grpo_step
    metric_reduction
}
