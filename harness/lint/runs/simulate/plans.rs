//! Which trainings are simulated: healthy ones of every kind, and for each bug one that shows it.

use super::bug::Bug;
use super::random::Random;
use super::{Algorithm, Penalty, Schedule, Simulation};
use crate::settings::Library;

/// The libraries whose logs are simulated.
pub const LIBRARIES: [Library; 5] =
    [Library::Trl, Library::Verl, Library::OpenRlhf, Library::NemoRl, Library::Slime];

impl Simulation {
    /// A healthy training: of any library, algorithm, size and schedule.
    pub fn healthy(seed: u64) -> Simulation {
        let mut random = Random::new(seed, 3);
        use Algorithm::{Dpo, Grpo, Ppo, Reinforce, Rloo};
        let algorithm = random.pick(&[Grpo, Grpo, Grpo, Rloo, Reinforce, Ppo, Dpo]);
        let library = match algorithm {
            Dpo => random.pick(&[Library::Trl, Library::NemoRl]),
            _ => random.pick(&LIBRARIES),
        };
        let weight = random.pick(&[0.001, 0.005, 0.01]);
        let queue = random.pick(&[0, 0, 0, 1, 2]);
        let is_slow = queue > 0 || random.chance(0.2);
        let steps_per_row = random.pick(&[1, 1, 1, 1, 2, 5]);
        Simulation {
            seed,
            bug: None,
            library,
            algorithm,
            // What learns slowly is trained longer.
            steps: steps_per_row.max(2) / 2
                * if is_slow { 160 } else { random.pick(&[60, 100, 160, 240]) },
            steps_per_row,
            // A critic needs more to learn from than a mean does.
            prompts: if algorithm == Ppo { 16 } else { random.pick(&[6, 8, 12]) },
            group: random.pick(&[4, 8]),
            updates: random.pick(&[1, 1, 2, 4]),
            passes: random.pick(&[1, 1, 1, 2]),
            // Who trains on old rollouts takes small steps.
            rate: if is_slow { 5e-7 } else { random.pick(&[1e-6, 2e-6]) },
            schedule: random.pick(&[Schedule::Constant, Schedule::Linear, Schedule::Cosine]),
            warmup: random.pick(&[0, 5, 10]),
            limit: random.pick(&[24, 32, 48]),
            prompt_limit: 128,
            penalty: random.pick(&[
                Penalty::None,
                Penalty::Loss(weight),
                Penalty::Loss(weight),
                Penalty::Reward(weight),
            ]),
            entropy: random.pick(&[0.0, 0.0, 0.001]),
            clip: random.pick(&[[0.2, 0.2], [0.2, 0.28]]),
            max_norm: 1.0,
            skill: 0.3 + 0.8 * random.unit(),
            thinking: random.pick(&[0.0, 0.0, 1.0]),
            format: random.pick(&[0.0, 0.2, 0.2]),
            // Where nothing divides by the deviation, large rewards make large steps.
            reward: match algorithm {
                Rloo => [1.0, random.pick(&[0.0, -0.5])],
                _ => random.pick(&[[1.0, 0.0], [1.0, 0.0], [2.0, -1.0], [10.0, 0.0]]),
            },
            eval_every: random.pick(&[None, Some(5), Some(10)]),
            sharing: random.pick(&[0.0, 0.0, 0.1]),
            queue,
            has_actions: random.chance(0.2),
            is_corrected: random.chance(0.4),
        }
    }

    /// A training that is healthy but for a bug, of a kind that shows it.
    pub fn with(bug: Bug, seed: u64) -> Simulation {
        let mut random = Random::new(seed, 4);
        let plain = Simulation {
            algorithm: Algorithm::Grpo,
            library: random.pick(&LIBRARIES),
            steps: 160,
            steps_per_row: 1,
            prompts: 8,
            group: 8,
            updates: 2,
            passes: 1,
            rate: 1e-6,
            schedule: Schedule::Constant,
            limit: 32,
            penalty: Penalty::Loss(0.005),
            entropy: 0.0,
            max_norm: 1.0,
            skill: 0.7,
            thinking: 0.0,
            format: 0.2,
            reward: [1.0, 0.0],
            eval_every: Some(5),
            queue: 0,
            sharing: 0.0,
            has_actions: false,
            bug: Some(bug),
            ..Simulation::healthy(seed)
        };
        shown(bug, plain, &mut random)
    }
}

/// Changes a training so that it shows a bug, and is logged by a library that logs what shows it.
fn shown(bug: Bug, plain: Simulation, random: &mut Random) -> Simulation {
    use Library::{NemoRl, OpenRlhf, Slime, Trl, Verl};
    let mut by = |libraries: &[Library]| random.pick(libraries);
    match bug {
        Bug::EntropySummed => {
            Simulation { library: by(&[Trl, Verl, OpenRlhf, Slime, NemoRl]), ..plain }
        }
        Bug::PercentLogged => Simulation { updates: 4, ..plain },
        Bug::PartDropped => Simulation { library: by(&[Trl, Verl]), ..plain },
        Bug::PartConstant => Simulation { library: Trl, ..plain },
        Bug::Frozen => Simulation { library: by(&[Trl, Verl, OpenRlhf, NemoRl]), ..plain },
        Bug::ReferenceShared => Simulation { updates: 1, ..plain },
        Bug::NoiseNormalised => Simulation {
            library: by(&[Trl, OpenRlhf]),
            format: 0.0,
            penalty: Penalty::None,
            prompts: 2,
            group: 4,
            updates: 1,
            skill: 2.5,
            ..plain
        },
        Bug::NoBaseline => Simulation { library: by(&[Verl, NemoRl]), ..plain },
        Bug::DropoutInOld => {
            Simulation { library: by(&[Verl, OpenRlhf, Slime]), updates: 1, ..plain }
        }
        Bug::OldIsCurrent => {
            Simulation { library: by(&[Verl, OpenRlhf, Slime, Trl]), updates: 4, ..plain }
        }
        Bug::TooHard | Bug::TooEasy | Bug::OneAnswer => {
            let library = if bug == Bug::OneAnswer { OpenRlhf } else { by(&[Trl, Trl]) };
            let skill = if bug == Bug::TooEasy { 6.0 } else { plain.skill };
            let rate = if bug == Bug::OneAnswer { 6e-6 } else { 2e-6 };
            let steps = if bug == Bug::OneAnswer { 240 } else { 160 };
            Simulation { library, skill, rate, steps, format: 0.0, ..plain }
        }
        Bug::RateTooHigh | Bug::UpdatesUnclipped => Simulation {
            library: by(&[Verl, OpenRlhf, Slime]),
            rate: if bug == Bug::RateTooHigh { 2e-6 } else { 7e-7 },
            warmup: 0,
            updates: 4,
            passes: 3,
            penalty: Penalty::Loss(0.05),
            max_norm: if bug == Bug::RateTooHigh { 0.01 } else { 1.0 },
            clip: if bug == Bug::RateTooHigh { [0.2, 0.2] } else { [0.99, 50.0] },
            sharing: if bug == Bug::RateTooHigh { 0.3 } else { 0.6 },
            ..plain
        },
        Bug::RewardsShuffled => Simulation {
            library: by(&[Trl, Verl, OpenRlhf]),
            rate: 5e-7,
            steps: 100,
            prompts: 32,
            ..plain
        },
        Bug::GradientOutliers => Simulation { is_corrected: false, ..plain },
        Bug::LimitTiny => Simulation { max_norm: 1e-3, ..plain },
        Bug::ProxyHacked => Simulation { eval_every: Some(5), rate: 2e-6, ..plain },
        Bug::LengthPays => Simulation { limit: 32, rate: 2e-6, skill: 2.5, ..plain },
        Bug::LengthPenalised => {
            Simulation { rate: 6e-6, thinking: 4.0, limit: 48, skill: 2.5, ..plain }
        }
        Bug::LimitTooSmall => Simulation { limit: 6, thinking: 3.0, rate: 5e-7, ..plain },
        Bug::CompletionsBlanked => Simulation { library: Verl, ..plain },
        Bug::PromptsTooLong => Simulation { library: Verl, prompt_limit: 45, ..plain },
        Bug::KlUnclamped => Simulation { rate: 5e-7, ..plain },
        Bug::BetaHuge => Simulation { penalty: Penalty::Loss(2.0), ..plain },
        Bug::EntropyLost => Simulation { entropy: 3.0, ..plain },
        Bug::EntropyLostAtOnce => Simulation { entropy: 3.0, steps_per_row: 40, ..plain },
        Bug::StoppedEarly => Simulation { library: by(&[Trl, Verl, NemoRl, Slime]), ..plain },
        Bug::ReferenceFollows => Simulation { library: Verl, rate: 2e-6, ..plain },
        Bug::DropoutInReference => Simulation { rate: 3e-7, updates: 1, ..plain },
        Bug::BonusHuge => Simulation { entropy: 0.5, ..plain },
        Bug::OldStale => Simulation {
            rate: 3e-6,
            passes: 3,
            steps: 60,
            library: by(&[Verl, OpenRlhf, Slime, Trl]),
            ..plain
        },
        Bug::ReferenceDiffers => Simulation { rate: 5e-7, ..plain },
        Bug::Rate1e2 => Simulation { rate: 1e-2, ..plain },
        Bug::WeightsHeavy => Simulation { library: Verl, is_corrected: true, ..plain },
        Bug::QueueDeep => Simulation { library: by(&[Verl, NemoRl]), queue: 8, ..plain },
        Bug::CriticFrozen => Simulation {
            algorithm: Algorithm::Ppo,
            library: by(&[Verl, NemoRl]),
            rate: 5e-7,
            ..plain
        },
        Bug::TargetsUnscaled => Simulation {
            algorithm: Algorithm::Ppo,
            library: by(&[Verl, OpenRlhf, Slime, Trl]),
            ..plain
        },
        Bug::DpoFrozen
        | Bug::MarginScaled
        | Bug::DpoSwapped
        | Bug::LabelsNoise
        | Bug::LikelihoodDisplaced => {
            Simulation { algorithm: Algorithm::Dpo, library: by(&[Trl, Trl]), ..plain }
        }
        Bug::ActionsInvalid => {
            Simulation { has_actions: true, library: by(&[Verl, Trl, NemoRl]), ..plain }
        }
        Bug::EasyTask => {
            Simulation { rate: 6e-6, skill: 2.0, steps: 240, library: by(&[Trl, Verl]), ..plain }
        }
        _ => plain,
    }
}
