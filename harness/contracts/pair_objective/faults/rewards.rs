//! Faults of the implicit rewards.

use ndarray::Array1;

use super::super::{Kind, Options, PairObjectiveCase, PairObjectiveOutput, reference};
use super::{Fault, Variant, changed};

/// The implicit rewards.
pub(super) fn rewards() -> Vec<Fault> {
    vec![
        Fault::new("simpo-rewards-of-sums", "rewards are β times sums, not averages")
            .seen("DPO's rewards where the loss averages over tokens")
            .made_of([rewarded(|side, options| match options.kind {
                Kind::Orpo | Kind::Simpo => options.beta * side.policy,
                _ => side.right(options),
            })]),
        Fault::new("rewards-of-averages", "rewards are averages where sums are declared")
            .seen("the rewards of another loss of the same trainer")
            .under("{kind: bco-pair}")
            .made_of([rewarded(|side, options| match options.kind {
                Kind::Orpo | Kind::Simpo => side.right(options),
                _ => side.right(options) / side.length,
            })]),
        Fault::new("rewards-exchanged", "the rewards carry each other's name")
            .seen("LLaMA-Factory #6050 (089e4d9e9); trl #1402 (4d862da18)")
            .made_of([changed(|output, _, _| {
                std::mem::swap(&mut output.chosen_rewards, &mut output.rejected_rewards);
            })]),
        Fault::new("rewards-without-beta", "rewards are log-ratios, not β times them")
            .seen("log-ratios logged under the name of rewards")
            .made_of([rewarded(|side, options| side.right(options) / options.beta)]),
        Fault::new("rewards-without-the-reference", "rewards leave the reference out")
            .seen("TRL CPO's β·policy where DPO's rewards are declared")
            .under("{kind: bco-pair}")
            .made_of([rewarded(|side, options| match options.kind {
                Kind::Orpo | Kind::Simpo => side.right(options),
                _ => options.beta * side.policy,
            })]),
        Fault::new("rewards-with-the-reference", "rewards hold the reference where there is none")
            .seen("DPO's rewards for a loss without a reference")
            .made_of([
                rewarded(|side, options| match options.kind {
                    Kind::Orpo | Kind::Simpo => {
                        options.beta * (side.policy - side.reference) / side.length
                    }
                    _ => side.right(options),
                }),
                rewarded(|side, options| options.beta * (side.policy - side.reference)),
            ]),
    ]
}

/// One side of a pair as numbers.
struct Numbers {
    policy: f64,
    reference: f64,
    length: f64,
}

impl Numbers {
    /// Its reward.
    fn right(&self, options: &Options) -> f64 {
        match options.kind.has_reference() {
            true => options.beta * (self.policy - self.reference),
            false => options.beta * self.policy / self.length,
        }
    }
}

/// The right losses, and other rewards.
fn rewarded(reward: fn(&Numbers, &Options) -> f64) -> Variant {
    Variant::gives(move |case: &PairObjectiveCase, options: &Options, dtype| {
        let of = |policy: &Array1<f64>, reference: &Array1<f64>, lengths: &Array1<i64>| {
            let number = |at: usize| {
                let [policy, reference] = [policy[at], reference[at]];
                reward(&Numbers { policy, reference, length: lengths[at] as f64 }, options)
            };
            Some((0..policy.len()).map(number).collect::<Array1<f64>>())
        };
        PairObjectiveOutput {
            chosen_rewards: of(&case.policy_chosen, &case.ref_chosen, &case.chosen_lengths),
            rejected_rewards: of(&case.policy_rejected, &case.ref_rejected, &case.rejected_lengths),
            ..reference::loss(case, options, dtype)
        }
    })
}
