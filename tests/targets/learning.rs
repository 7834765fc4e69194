//! The four algorithms learn: what must rise rises, from the same seed in the same way.

use std::sync::Arc;

use shakedown::author::Component;
use shakedown::contract::erased;
use shakedown::contracts::policy_update::{Options, PolicyUpdate};
use shakedown::diagnosis;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::place::Place;
use shakedown::report::Status;
use shakedown::report::text::{Paint, write_component};
use shakedown::rules::Asked;
use shakedown::runs::formats::{self, OwnNames};
use shakedown_targets::bandit::{self, Step, Training};
use shakedown_targets::chance::Chance;
use shakedown_targets::dpo::Dpo;
use shakedown_targets::grpo::Grpo;
use shakedown_targets::pairs::{self, PairStep};
use shakedown_targets::ppo::Ppo;
use shakedown_targets::reinforce::Reinforce;
use tch::Tensor;

use crate::night::is_night;

/// Trains a policy: logits, rewards, how; its steps and its logits.
type Algorithm = fn(&Tensor, &Tensor, &Training) -> (Vec<Step>, Tensor);

fn reinforce(logits: &Tensor, rewards: &Tensor, training: &Training) -> (Vec<Step>, Tensor) {
    let mut steps = Vec::new();
    let objective = Reinforce::default();
    let logits =
        bandit::reinforce(logits, rewards, &objective, training, &mut |step| steps.push(step));
    (steps, logits)
}

fn ppo(logits: &Tensor, rewards: &Tensor, training: &Training) -> (Vec<Step>, Tensor) {
    let mut steps = Vec::new();
    // The entropy moves a policy where rewards do not.
    let objective = Ppo { entropy_coefficient: 0.0, ..Ppo::default() };
    let logits = bandit::ppo(logits, rewards, &objective, training, &mut |step| steps.push(step));
    (steps, logits)
}

fn grpo(logits: &Tensor, rewards: &Tensor, training: &Training) -> (Vec<Step>, Tensor) {
    let mut steps = Vec::new();
    let objective = Grpo::default();
    let logits = bandit::grpo(logits, rewards, &objective, training, &mut |step| steps.push(step));
    (steps, logits)
}

fn dpo(logits: &Tensor, rewards: &Tensor, training: &Training) -> (Vec<Step>, Tensor) {
    let mut steps = Vec::new();
    // Its gradient is that of the others times β, and smaller by half.
    let training = Training { learning_rate: training.learning_rate * 20.0, ..training.clone() };
    let logits = pairs::dpo(logits, rewards, 1, &Dpo::default(), &training, &mut |step| {
        steps.push(step.policy);
    });
    (steps, logits)
}

const ALGORITHMS: [(&str, Algorithm); 4] =
    [("reinforce", reinforce), ("ppo", ppo), ("grpo", grpo), ("dpo", dpo)];

fn numbers(tensor: &Tensor) -> Vec<f32> {
    Vec::try_from(tensor).unwrap()
}

#[test]
fn the_expected_reward_rises_from_every_seed() {
    let rewards = Tensor::from_slice(&[0.0_f32, 0.3, 0.5, 0.7, 1.0]);
    for (name, algorithm) in ALGORITHMS {
        for seed in 0..3 {
            let training = Training { seed, ..Training::default() };
            let (steps, _) = algorithm(&rewards.zeros_like(), &rewards, &training);
            let reward = steps.last().unwrap().expected_reward;
            assert!(reward > 0.8, "{name} with seed {seed}: 0.5 rose to {reward}");
        }
    }
}

#[test]
fn one_seed_gives_one_policy_and_another_seed_another() {
    let rewards = Tensor::from_slice(&[0.0_f32, 1.0, 0.2]);
    for (name, algorithm) in ALGORITHMS {
        let trained = |seed| {
            let training = Training { seed, steps: 5, ..Training::default() };
            let (steps, logits) = algorithm(&rewards.zeros_like(), &rewards, &training);
            (steps, numbers(&logits))
        };
        assert_eq!(trained(3), trained(3), "{name}");
        assert_ne!(trained(3).1, trained(4).1, "{name}");
    }
}

#[test]
fn equal_rewards_teach_nothing_and_the_starting_policy_stays_as_it_is() {
    let logits = Tensor::from_slice(&[0.5_f32, -1.0, 0.0, 0.25]);
    for (name, algorithm) in ALGORITHMS {
        // A number that binary cannot represent: its mean is rounded.
        let (_, trained) = algorithm(&logits, &logits.full_like(0.1), &Training::default());
        assert_eq!(numbers(&trained), numbers(&logits), "{name}");
        let rewards = Tensor::from_slice(&[0.0_f32, 1.0, 2.0, 3.0]);
        let (_, trained) = algorithm(&logits, &rewards, &Training::default());
        assert_ne!(numbers(&trained), numbers(&logits), "{name}");
        assert_eq!(numbers(&logits), [0.5, -1.0, 0.0, 0.25], "{name}");
    }
}

#[test]
fn dpo_tells_completions_apart_that_it_has_never_seen() {
    let rewards = Tensor::from_slice(&[-1.0_f32, -0.5, 0.0, 0.25, 0.5, 1.0]);
    for seed in 0..3 {
        let training = Training { seed, learning_rate: 2.0, ..Training::default() };
        let mut steps: Vec<PairStep> = Vec::new();
        let objective = Dpo::default();
        let start = rewards.zeros_like();
        let _logits =
            pairs::dpo(&start, &rewards, 4, &objective, &training, &mut |step| steps.push(step));
        let last = steps.last().unwrap();
        assert!(last.accuracy > 0.9, "seed {seed}: {last:?}");
        assert!(last.margin > steps[0].margin, "seed {seed}: {last:?}");
    }
}

#[test]
fn arms_are_drawn_as_often_as_their_probabilities_say() {
    let probs = Tensor::from_slice(&[0.0_f32, 0.25, 0.0, 0.75, 0.0]);
    let drawn: Vec<i64> = Vec::try_from(Chance::new(7).draw(&probs, 10_000)).unwrap();
    let share = |arm| drawn.iter().filter(|drawn| **drawn == arm).count() as f64 / 10_000.0;
    assert_eq!(share(1) + share(3), 1.0);
    assert!((share(1) - 0.25).abs() < 0.02, "{}", share(1)); // five standard deviations
}

/// Cases of one algorithm; in each of them some invariants train a policy dozens of times.
fn cases() -> u64 {
    if is_night() { 60 } else { 16 }
}

fn learns(name: &str, component: impl Component<PolicyUpdate> + 'static, options: Options) {
    let component = erased::component::<PolicyUpdate>(component);
    let mut subject = Subject::new(erased::of::<PolicyUpdate>(), name, component);
    subject.options = Arc::new(options);
    let budget = Budget { cases: cases(), ..Budget::default() };
    let report = run(&mut subject, Place::CPU_F32, &budget, &|_| ()).unwrap();
    let mut text = Vec::new();
    write_component(&mut text, &report, Paint::default()).unwrap();
    assert_eq!(report.status, Status::Pass, "{}", String::from_utf8_lossy(&text));
}

/// With the KL to the starting policy and without it.
fn pulled() -> [Options; 2] {
    [0.0, 0.5].map(|beta| Options { beta, ..Options::default() })
}

#[test]
fn reinforce_keeps_every_invariant_of_policy_update() {
    for options in pulled() {
        learns("reinforce", bandit::reinforce_component(options.clone()), options);
    }
}

#[test]
fn ppo_keeps_every_invariant_of_policy_update() {
    for options in pulled() {
        learns("ppo", bandit::ppo_component(options.clone()), options);
    }
}

#[test]
fn grpo_keeps_every_invariant_of_policy_update() {
    for options in pulled() {
        learns("grpo", bandit::grpo_component(options.clone()), options);
    }
}

#[test]
fn dpo_keeps_every_invariant_of_policy_update() {
    learns("dpo", pairs::dpo_component(), Options::default());
}

/// What a run logs, under TRL's names, judged by all rules. `sign` is that of the rewards which it
/// trains on: −1 where a bug turns them round.
fn judged(name: &str, algorithm: Algorithm, sign: f64) -> diagnosis::Subject {
    let rewards = Tensor::from_slice(&[0.0_f32, 0.3, 0.5, 0.7, 1.0]);
    let training = Training { learning_rate: 0.1, ..Training::default() };
    let (steps, _) = algorithm(&rewards.zeros_like(), &(&rewards * sign), &training);
    let rows = steps.iter().enumerate().map(|(step, logged)| {
        [
            ("step", step as f64 + 1.0),
            ("reward", sign * logged.expected_reward),
            ("loss", logged.loss),
            ("entropy", logged.entropy),
        ]
    });
    formats::from_rows(name, rows, &OwnNames::new()).judge(&Asked::default())
}

#[test]
fn their_logs_are_sound_and_tell_where_the_rewards_are_turned_round() {
    for (name, algorithm) in ALGORITHMS {
        let healthy = judged(name, algorithm, 1.0);
        let above: Vec<&str> = healthy.heads().map(|finding| &*finding.rule).collect();
        assert_eq!(above, [""; 0], "{name}");
        assert!(healthy.judged() >= 8, "{name}: {} rules were judged", healthy.judged());
        let wrong = judged(name, algorithm, -1.0);
        let first = wrong.heads().next().map(|finding| &*finding.rule);
        assert_eq!(first, Some("reward-declines"), "{name}");
    }
}
