//! GRPO on a softmax bandit with five arms: the expected reward rises towards the best.

mod table;

use shakedown_targets::bandit::{self, Step, Training};
use shakedown_targets::grpo::Grpo;
use tch::Tensor;

fn main() {
    let rewards = [0.0_f32, 0.3, 0.5, 0.7, 1.0];
    println!("GRPO, five arms with rewards {rewards:?}, from a policy that has no preference\n");
    let rewards = Tensor::from_slice(&rewards);
    let mut steps: Vec<Step> = Vec::new();
    let logits = bandit::grpo(
        &rewards.zeros_like(),
        &rewards,
        &Grpo::default(),
        &Training::default(),
        &mut |step| steps.push(step),
    );
    let columns = ["expected reward", "loss", "kl (nats)", "entropy (nats)"];
    let rows =
        steps.iter().map(|step| vec![step.expected_reward, step.loss, step.kl, step.entropy]);
    table::print(&columns, &rows.collect::<Vec<_>>());
    let rising: Vec<f64> = steps.iter().map(|step| step.expected_reward).collect();
    table::line("expected reward", &rising);
    table::policy(&logits);
}
