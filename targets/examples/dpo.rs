//! DPO on synthetic pairs: the policy comes to prefer what a hidden reward prefers.

mod table;

use shakedown_targets::bandit::Training;
use shakedown_targets::dpo::Dpo;
use shakedown_targets::pairs::{self, PairStep};
use tch::{Device, Kind, Tensor};

/// Tokens of a completion.
const LENGTH: i64 = 6;

fn main() {
    println!("DPO, completions of {LENGTH} tokens out of 16, preferred by a hidden reward\n");
    tch::manual_seed(1);
    let rewards = Tensor::randn([16], (Kind::Float, Device::Cpu));
    let mut steps: Vec<PairStep> = Vec::new();
    let training = Training { learning_rate: 2.0, ..Training::default() };
    let logits = pairs::dpo(
        &rewards.zeros_like(),
        &rewards,
        LENGTH,
        &Dpo::default(),
        &training,
        &mut |step| steps.push(step),
    );
    let columns = ["accuracy", "margin", "loss", "kl (nats/token)", "reward/token"];
    let rows = steps.iter().map(|step| {
        let PairStep { policy, accuracy, margin } = step;
        vec![*accuracy, *margin, policy.loss, policy.kl, policy.expected_reward]
    });
    table::print(&columns, &rows.collect::<Vec<_>>());
    let rising: Vec<f64> = steps.iter().map(|step| step.accuracy).collect();
    table::line("preference accuracy", &rising);
    table::policy(&logits);
}
