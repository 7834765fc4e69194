//! Cases of `policy-update`: random draws, corners, classes, and the way to simpler cases.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Axis, arr0, arr1};

use super::{Options, PolicyUpdate, PolicyUpdateCase, softmax};
use shakedown_core::contract::class::Class;
use shakedown_core::generate::axes;
use shakedown_core::generate::draw::{AWKWARD, normal, one, uniform};
use shakedown_core::generate::measure::{Measure, complexity, simpler_numbers};
use shakedown_core::value::place::Dtype;
use shakedown_core::value::record::round;

/// The largest logit.
const LARGEST_LOGIT: f64 = 50.0;

/// The largest reward.
const LARGEST_REWARD: f64 = 100.0;

/// The largest product of reward and learning rate: beyond it a step jumps anywhere.
const LARGEST_STEP: f64 = 2.0;

pub(super) fn valid(case: &PolicyUpdateCase) -> std::result::Result<(), String> {
    let PolicyUpdateCase { logits, rewards, steps, learning_rate, seed } = case;
    let (arms, rate) = (logits.len(), learning_rate[()]);
    if arms == 0 || rewards.len() != arms {
        return Err(format!("{arms} logits and {} rewards", rewards.len()));
    }
    if let Some(z) = logits.iter().find(|z| z.is_nan() || z.abs() > LARGEST_LOGIT) {
        return Err(format!("logit {z} is not within ±{LARGEST_LOGIT}"));
    }
    if let Some(r) = rewards.iter().find(|r| r.is_nan() || r.abs() > LARGEST_REWARD) {
        return Err(format!("reward {r} is not within ±{LARGEST_REWARD}"));
    }
    if !(1..=1000).contains(&steps[()]) {
        return Err(format!("{} steps, expected 1 to 1000", steps[()]));
    }
    if !(rate > 0.0 && rate <= 1.0) {
        return Err(format!("a learning rate of {rate}, expected more than 0 and at most 1"));
    }
    if rewards.iter().any(|r| (r * rate).abs() > LARGEST_STEP) {
        return Err(format!("a reward times the learning rate is beyond ±{LARGEST_STEP}"));
    }
    if !(0..1 << 31).contains(&seed[()]) {
        return Err(format!("seed {}, expected 0 to 2^31 - 1", seed[()]));
    }
    Ok(())
}

/// What a case with a clear signal rewards.
pub(super) struct Signal {
    /// The arms with the larger one of two rewards.
    pub(super) best: Vec<usize>,
    /// The difference of the two rewards.
    pub(super) gap: f64,
    /// steps · learning rate · gap: how far the steps can go.
    pub(super) reach: f64,
}

/// The signal of a case in which every right learner becomes better in nearly every run: two
/// rewards with 0 between them or among them, the better arms neither rare nor sure, steps that
/// are small and many, and a reference that does not hold it back. Measured with REINFORCE (with
/// and without a baseline), GRPO, PPO, Adam and the exact gradient, on groups of 4 arms and more:
/// at most 1 run in 100 does not become better.
pub(super) fn signal(case: &PolicyUpdateCase, options: &Options) -> Option<Signal> {
    let lo = case.rewards.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = case.rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (gap, rate, steps) = (hi - lo, case.learning_rate[()], case.steps[()] as f64);
    let two = case.rewards.iter().all(|r| *r == lo || *r == hi);
    let best: Vec<usize> = (0..case.rewards.len()).filter(|arm| case.rewards[*arm] == hi).collect();
    let policy = softmax(&case.logits.to_vec());
    let likely: f64 = best.iter().map(|arm| policy[*arm]).sum();
    let reach = steps * rate * gap;
    let clear = (0.5..=2.0).contains(&gap)
        && two
        && lo <= 0.0
        && hi >= 0.0
        && (0.19..=0.81).contains(&likely)
        && steps >= 8.0
        && (0.05..=0.51).contains(&(rate * gap))
        && reach >= 3.9
        && options.beta <= gap / 2.0;
    clear.then_some(Signal { best, gap, reach })
}

/// The gradient of a case of one step in which a few seeds show where every right learner goes: two
/// rewards with 0 between them or among them, the better arms neither rare nor sure, and a step
/// that is small and does not drown in the rounding of the logits, a quarter of it neither.
pub(super) fn one_step(case: &PolicyUpdateCase, dtype: Dtype) -> Option<Array1<f64>> {
    let lo = case.rewards.iter().copied().fold(f64::INFINITY, f64::min);
    let hi = case.rewards.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (gap, rate) = (hi - lo, case.learning_rate[()]);
    let policy = softmax(&case.logits.to_vec());
    let best = policy.iter().zip(&case.rewards).filter(|(_, r)| **r == hi);
    let likely: f64 = best.map(|(p, _)| p).sum();
    let largest = case.logits.iter().fold(0.0, |most: f64, z| most.max(z.abs()));
    let clear = case.steps[()] == 1
        && (0.5..=2.0).contains(&gap)
        && case.rewards.iter().all(|r| *r == lo || *r == hi)
        && lo <= 0.0
        && hi >= 0.0
        && (0.19..=0.81).contains(&likely)
        && (0.05..=0.51).contains(&(rate * gap))
        && rate * gap > 400.0 * dtype.unit_roundoff() * largest;
    let expected: f64 = policy.iter().zip(&case.rewards).map(|(p, r)| p * r).sum();
    let slopes = policy.iter().zip(&case.rewards).map(|(p, r)| p * (r - expected));
    clear.then(|| slopes.collect())
}

/// Whether a case rewards every arm alike, in steps that are small and several, from a policy that
/// is not sure of any.
pub(super) fn is_constant(case: &PolicyUpdateCase) -> bool {
    let (rate, reward) = (case.learning_rate[()], case.rewards[0]);
    let policy = softmax(&case.logits.to_vec());
    policy.len() > 1
        && case.rewards.iter().all(|r| *r == reward)
        && (rate * reward).abs() <= 0.51
        && rate >= 0.05
        && case.steps[()] >= 8
        && policy.iter().all(|p| (0.1..=0.9).contains(p))
}

fn from_parts(
    logits: &[f64],
    rewards: &[f64],
    steps: i64,
    learning_rate: f64,
    seed: i64,
) -> PolicyUpdateCase {
    PolicyUpdateCase {
        logits: arr1(logits),
        rewards: arr1(rewards),
        steps: arr0(steps),
        learning_rate: arr0(learning_rate),
        seed: arr0(seed),
    }
}

/// Steps and learning rates with which a signal shows.
const PACES: [(i64, f64); 5] = [(16, 0.5), (8, 0.5), (16, 0.5), (16, 0.25), (32, 0.25)];

pub(super) fn draw(u: &mut Unstructured<'_>, dtype: Dtype) -> Result<PolicyUpdateCase> {
    let seed = i64::from(u.arbitrary::<u32>()? >> 1);
    let mut case = match u.choose_index(9)? {
        // A clear signal.
        0 | 1 => {
            let arms = one(u, &[2, 3, 2, 4, 5])?;
            let (steps, rate) = one(u, &PACES)?;
            let [lo, hi] = one(u, &[[0.0, 1.0], [-1.0, 0.0], [0.0, 1.0], [-0.5, 0.5]])?;
            let best = u.choose_index(arms)?;
            let several = arms > 2 && u.choose_index(4)? == 0;
            let rewards: Vec<f64> = (0..arms)
                .map(|arm| if arm == best || (several && arm > best) { hi } else { lo })
                .collect();
            let logits: Vec<f64> = match u.choose_index(3)? {
                0 => vec![0.0; arms],
                1 => (0..arms).map(|_| one(u, &[0.0, 0.5, -0.5])).collect::<Result<_>>()?,
                _ => (0..arms).map(|_| uniform(u, -0.5, 0.5)).collect::<Result<_>>()?,
            };
            from_parts(&logits, &rewards, steps, rate, seed)
        }
        // A single step of it.
        2 => {
            let arms = one(u, &[2, 3, 2, 4])?;
            let [lo, hi] = one(u, &[[0.0, 1.0], [-1.0, 0.0], [-0.5, 0.5]])?;
            let best = u.choose_index(arms)?;
            let rewards: Vec<f64> =
                (0..arms).map(|arm| if arm == best { hi } else { lo }).collect();
            let logits: Vec<f64> =
                (0..arms).map(|_| one(u, &[0.0, 0.5, -0.5])).collect::<Result<_>>()?;
            let rate = one(u, &[0.5, 0.25, 0.125])?;
            from_parts(&logits, &rewards, 1, rate, seed)
        }
        // No signal at all.
        3 => {
            let arms = one(u, &[2, 3, 2, 4])?;
            let (steps, rate) = one(u, &PACES)?;
            let reward = one(u, &[1.0, 0.0, -1.0, 0.5, 0.1])?;
            let logits: Vec<f64> =
                (0..arms).map(|_| one(u, &[0.0, 1.0, 0.5])).collect::<Result<_>>()?;
            from_parts(&logits, &vec![reward; arms], steps, rate, seed)
        }
        // Anything else.
        pattern => {
            let arms = one(u, &[2, 3, 1, 4, 8, 2])?;
            let steps = one(u, &[1, 2, 4, 1, 8])?;
            let rate = one(u, &[0.1, 0.01, 0.5, 1.0, 1e-3, 1e-4])?;
            let most = LARGEST_REWARD.min(1.0 / rate);
            let mut numbers = |most: f64| -> Result<Vec<f64>> {
                let number = |u: &mut Unstructured<'_>| {
                    Ok(match pattern {
                        4 | 5 => one(u, &AWKWARD)?,
                        6 => one(u, &[0.0, most, -most, 1.0])?,
                        _ => normal(u)?,
                    })
                };
                (0..arms).map(|_| number(u).map(|x: f64| x.clamp(-most, most))).collect()
            };
            let (logits, rewards) = (numbers(LARGEST_LOGIT)?, numbers(most)?);
            from_parts(&logits, &rewards, steps, rate, seed)
        }
    };
    round(&mut case, dtype);
    if valid(&case).is_err() {
        case.rewards.mapv_inplace(|r| r.clamp(-1.0, 1.0));
    }
    Ok(case)
}

pub(super) fn corners(dtype: Dtype) -> Vec<PolicyUpdateCase> {
    let mut cases = vec![
        from_parts(&[0.0], &[0.0], 1, 0.5, 0),
        from_parts(&[0.0], &[1.0], 1, 0.5, 0),
        from_parts(&[0.0, 0.0], &[0.0, 1.0], 1, 0.5, 0),
        from_parts(&[0.0, 0.0], &[0.0, 1.0], 1, 1e-4, 0),
        from_parts(&[LARGEST_LOGIT, -LARGEST_LOGIT], &[0.0, 1.0], 4, 0.5, 0),
        from_parts(&[0.0, 0.0], &[LARGEST_REWARD, -LARGEST_REWARD], 4, 0.01, 0),
        from_parts(&[0.1, 0.7, -0.3], &[0.1, 0.95, 0.81], 2, 0.1, 1),
    ];
    // A clear signal, with the better arm at every place, more and less likely than the others.
    for [lo, hi] in [[0.0, 1.0], [-1.0, 0.0]] {
        cases.push(from_parts(&[0.0, 0.0], &[lo, hi], 16, 0.5, 0));
        cases.push(from_parts(&[0.0, 0.0], &[hi, lo], 16, 0.5, 0));
    }
    cases.extend([
        from_parts(&[1.0, 0.0], &[0.0, 1.0], 16, 0.5, 0),
        from_parts(&[0.0, 1.0], &[1.0, 0.0], 16, 0.5, 0),
        from_parts(&[0.0, 1.0], &[0.0, 1.0], 16, 0.5, 0),
        from_parts(&[0.0, 0.0, 0.0], &[1.0, 0.0, 0.0], 16, 0.5, 0),
        from_parts(&[0.0, 0.0, 0.0], &[0.0, 1.0, 0.0], 16, 0.5, 0),
        from_parts(&[0.0, 0.0, 0.0], &[0.0, 0.0, 1.0], 16, 0.5, 0),
        from_parts(&[0.0, 0.0, 0.0], &[0.0, 1.0, 1.0], 16, 0.5, 0),
    ]);
    // A single step of it.
    for [lo, hi] in [[0.0, 1.0], [-1.0, 0.0]] {
        cases.push(from_parts(&[0.0, 0.0], &[hi, lo], 1, 0.5, 0));
        cases.push(from_parts(&[0.0, 0.0, 0.5], &[lo, hi, lo], 1, 0.25, 0));
    }
    // No signal.
    for (logits, reward) in [([0.0, 0.0], 1.0), ([1.0, 0.0], 1.0), ([0.0, 1.0], 1.0)] {
        cases.push(from_parts(&logits, &[reward, reward], 16, 0.5, 0));
    }
    cases.push(from_parts(&[1.0, 0.0], &[0.0, 0.0], 16, 0.5, 0));
    cases.push(from_parts(&[0.0, 1.0], &[0.1, 0.1], 16, 0.5, 0));
    cases.push(from_parts(&[0.0, 0.5, 1.0], &[-1.0, -1.0, -1.0], 16, 0.5, 0));
    cases.retain_mut(|case| {
        round(case, dtype);
        valid(case).is_ok()
    });
    cases.sort_by_cached_key(measure);
    cases
}

/// Arms, what logits and rewards cost, then the learning rate (0.5 is the simplest), the steps, the
/// seed, and how early the complex numbers stand.
pub(super) fn measure(case: &PolicyUpdateCase) -> Measure {
    let numbers: u64 = case.logits.iter().chain(&case.rewards).map(|x| complexity(*x)).sum();
    let rate = match case.learning_rate[()] {
        0.5 => 0,
        rate => complexity(rate),
    };
    let (steps, seed) = (case.steps[()].unsigned_abs(), case.seed[()].unsigned_abs());
    let [.., early] = axes::costs(case);
    Measure(vec![case.logits.len() as u64, numbers, rate, steps, seed, early])
}

/// Few: each one may cost many runs.
pub(super) fn simpler(case: &PolicyUpdateCase) -> Vec<PolicyUpdateCase> {
    let mut candidates = Vec::new();
    let arms = case.logits.len();
    let mut keep = |kept: Vec<usize>| {
        candidates.push(PolicyUpdateCase {
            logits: case.logits.select(Axis(0), &kept),
            rewards: case.rewards.select(Axis(0), &kept),
            ..case.clone()
        });
    };
    for left_out in (0..arms).filter(|_| arms > 1) {
        keep((0..arms).filter(|arm| *arm != left_out).collect());
    }
    for arm in 1..arms {
        let mut order: Vec<usize> = (0..arms).collect();
        order.swap(arm - 1, arm);
        keep(order);
    }
    let mut push = |change: &dyn Fn(&mut PolicyUpdateCase)| {
        let mut changed = case.clone();
        change(&mut changed);
        candidates.push(changed);
    };
    push(&|case| case.seed.fill(0));
    push(&|case| case.logits.fill(0.0));
    push(&|case| case.rewards.fill(0.0));
    push(&|case| case.rewards.fill(1.0));
    for steps in [1, 2, 4, 8, 16] {
        push(&|case| case.steps.fill(steps));
    }
    push(&|case| case.learning_rate.fill(0.5));
    push(&|case| case.seed.mapv_inplace(|seed| seed / 2));
    push(&|case| case.steps.mapv_inplace(|steps| steps - 1));
    let field = |numbers: &Array1<f64>, put: &dyn Fn(&mut PolicyUpdateCase, Array1<f64>)| {
        let mut changed = Vec::new();
        let mut values = numbers.to_vec();
        values.sort_by(f64::total_cmp);
        values.dedup_by_key(|x| x.to_bits());
        for from in &values {
            for to in values.iter().copied().chain(simpler_numbers(*from)) {
                if complexity(to) <= complexity(*from) && to.to_bits() != from.to_bits() {
                    let mut new = case.clone();
                    put(
                        &mut new,
                        numbers.mapv(|x| if x.to_bits() == from.to_bits() { to } else { x }),
                    );
                    changed.push(new);
                }
            }
        }
        for arm in 0..numbers.len() {
            for to in simpler_numbers(numbers[arm]) {
                let mut new = case.clone();
                let mut numbers = numbers.clone();
                numbers[arm] = to;
                put(&mut new, numbers);
                changed.push(new);
            }
        }
        changed
    };
    candidates.extend(field(&case.rewards, &|case, rewards| case.rewards = rewards));
    candidates.extend(field(&case.logits, &|case, logits| case.logits = logits));
    for rate in simpler_numbers(case.learning_rate[()]) {
        candidates.push(PolicyUpdateCase { learning_rate: arr0(rate), ..case.clone() });
    }
    candidates
}

pub(super) fn classes() -> Vec<Class<PolicyUpdate>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "clear-signal",
            "two rewards that every learner tells apart in a few steps",
            |c: &PolicyUpdateCase, o| signal(c, o).is_some(),
            always,
        ),
        class("no-signal", "every arm has the same reward", |c, _| is_constant(c), always),
        class(
            "unlikely-best",
            "a clear signal for arms that are less likely than the others",
            |c, o| {
                let policy = softmax(&c.logits.to_vec());
                signal(c, o)
                    .is_some_and(|s| s.best.iter().map(|arm| policy[*arm]).sum::<f64>() < 0.4)
            },
            always,
        ),
        class(
            "several-best",
            "a clear signal for two arms or more",
            |c, o| signal(c, o).is_some_and(|s| s.best.len() > 1),
            always,
        ),
        class(
            "negative-rewards",
            "no reward above 0, and one below",
            |c, _| c.rewards.iter().all(|r| *r <= 0.0) && c.rewards.iter().any(|r| *r < 0.0),
            always,
        ),
        class(
            "uniform-start",
            "all logits equal, two arms or more",
            |c, _| c.logits.len() > 1 && c.logits.iter().all(|z| *z == c.logits[0]),
            always,
        ),
        class("two-arms", "A = 2", |c, _| c.logits.len() == 2, always),
        class("several-arms", "A ≥ 3", |c, _| c.logits.len() > 2, always),
        class("one-arm", "A = 1", |c, _| c.logits.len() == 1, always),
        class("one-step", "a single step", |c, _| c.steps[()] == 1, always),
        class(
            "clear-step",
            "a single step that every learner takes to the same side",
            |c, _| one_step(c, Dtype::F32).is_some(),
            always,
        ),
        class(
            "sure-policy",
            "an arm with a probability of 0.999 or more, beside others",
            |c, _| c.logits.len() > 1 && softmax(&c.logits.to_vec()).iter().any(|p| *p >= 0.999),
            always,
        ),
        class(
            "extreme-reward",
            "a reward of 100",
            |c, _| c.rewards.iter().any(|r| r.abs() >= LARGEST_REWARD),
            always,
        ),
    ]
}
