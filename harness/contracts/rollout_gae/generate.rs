//! Cases of `rollout-gae`: random draws, corners and classes.

use arbitrary::{Result, Unstructured};
use ndarray::{Array1, Array2, arr1, arr2};

use super::{DoneConvention, Options, RolloutGae, RolloutGaeCase};
use shakedown_core::contract::Contract;
use shakedown_core::contract::class::Class;
use shakedown_core::contract::rows;
use shakedown_core::generate::draw::{AWKWARD, chance, normal, one, repeating, uniform};
use shakedown_core::generate::masks;
use shakedown_core::value::place::Dtype;

/// The largest reward or value: an extreme penalty, a critic that diverges.
const LARGEST: f64 = 1e3;

/// The most that the magnitudes of one environment may add up to, so that no sum leaves the
/// format.
fn limit(dtype: Dtype) -> f64 {
    dtype.max() / 2.0
}

pub(super) fn valid(
    case: &RolloutGaeCase,
    options: &Options,
    dtype: Dtype,
) -> std::result::Result<(), String> {
    rows::check_axes::<RolloutGae>(case)?;
    for (name, array) in [("rewards", &case.rewards), ("values", &case.values)] {
        if let Some(((step, env), x)) =
            array.indexed_iter().find(|(_, x)| x.abs() > LARGEST || x.is_nan())
        {
            return Err(format!("{name}[{step}, {env}] is {x}"));
        }
    }
    let last = case.dones.row(case.dones.nrows() - 1);
    for (env, value) in case.last_values.indexed_iter() {
        if value.abs() > LARGEST || value.is_nan() {
            return Err(format!("last_values[{env}] is {value}"));
        }
        let after = options.done_convention == DoneConvention::After;
        if after && case.last_dones[env] != last[env] {
            return Err(format!(
                "last_dones[{env}] differs from the last row of `dones`, which `after` says twice"
            ));
        }
        let magnitudes =
            |array: &Array2<f64>| -> f64 { array.column(env).iter().map(|x| x.abs()).sum() };
        let sum = magnitudes(&case.rewards) + 2.0 * magnitudes(&case.values) + value.abs();
        if sum > limit(dtype) {
            return Err(format!("environment {env} may add up to {sum}, too much for this dtype"));
        }
    }
    Ok(())
}

pub(super) fn draw(
    u: &mut Unstructured<'_>,
    options: &Options,
    dtype: Dtype,
) -> Result<RolloutGaeCase> {
    let (envs, steps) = masks::shape(u)?;
    let mut dones = Array2::from_elem((steps, envs), false);
    let often = one(u, &[64, 0, 128, 255])?;
    let bits = u64::from_le_bytes(u.arbitrary()?);
    for (at, done) in dones.iter_mut().enumerate() {
        // The first flags are drawn, the rest repeats them in another order.
        *done = if at < 24 { chance(u, often)? } else { often > 0 && bits >> (at % 61) & 1 == 1 };
    }
    let mut last_dones = Array1::from_elem(envs, false);
    for done in &mut last_dones {
        *done = chance(u, 96)?;
    }
    if options.done_convention == DoneConvention::Before && chance(u, 128)? {
        // A rollout that begins where its environments do.
        dones.row_mut(0).fill(true);
    }
    let mut rewards = numbers(u, (steps, envs))?;
    let mut values = numbers(u, (steps, envs))?;
    let mut last_values = numbers(u, (1, envs))?.row(0).to_owned();
    if chance(u, 48)? {
        // A critic that is content: it expects the same in every state.
        let value = one(u, &[1.0, 10.0, -2.0, 0.5])?;
        rewards.fill((1.0 - options.gamma) * value);
        values.fill(value);
        last_values.fill(value);
    }
    // Rounding may take a number up by its last bit.
    let largest = LARGEST.min(0.9 * limit(dtype) / (3.0 * steps as f64 + 1.0));
    for array in [&mut rewards, &mut values] {
        array.mapv_inplace(|x| x.clamp(-largest, largest));
    }
    last_values.mapv_inplace(|x| x.clamp(-largest, largest));
    Ok(RolloutGaeCase { rewards, values, dones, last_values, last_dones }.agree(options))
}

fn numbers(u: &mut Unstructured<'_>, shape: (usize, usize)) -> Result<Array2<f64>> {
    let pattern = u.choose_index(7)?;
    let drawn = repeating(u, shape.0 * shape.1, |u| {
        Ok(match pattern {
            0 => one(u, &AWKWARD)?,
            1 => f64::from(one(u, &[0_i8, 1, -1, 2, 3])?),
            2 => uniform(u, -2.0, 2.0)?,
            3 => normal(u)? * 100.0,
            4 => one(u, &[0.0, 0.0, 1.0, -LARGEST, LARGEST])?,
            5 => 1.0,
            _ => 0.0,
        })
    })?;
    Ok(Array2::from_shape_vec(shape, drawn).expect("T·E numbers"))
}

pub(super) fn corners(options: &Options, dtype: Dtype) -> Vec<RolloutGaeCase> {
    let mut cases = Vec::new();
    // One environment: rewards, values, flags, and what follows the last step.
    let mut one = |rewards: &[f64], values: &[f64], dones: &[bool], last: (f64, bool)| {
        let column = |x: &[f64]| Array2::from_shape_fn((x.len(), 1), |(step, _)| x[step]);
        cases.push(RolloutGaeCase {
            rewards: column(rewards),
            values: column(values),
            dones: Array2::from_shape_fn((dones.len(), 1), |(step, _)| dones[step]),
            last_values: arr1(&[last.0]),
            last_dones: arr1(&[last.1]),
        });
    };
    let (o, x) = (false, true);
    for last in [(0.0, x), (0.0, o), (1.0, x), (1.0, o), (5.0, o)] {
        for (reward, value) in [(0.0, 0.0), (1.0, 0.0), (0.0, 1.0), (1.0, 3.0)] {
            one(&[reward], &[value], &[last.1], last);
        }
    }
    for (rewards, values) in [
        ([0.0, 1.0], [0.0, 0.0]),
        ([1.0, 0.0], [0.0, 0.0]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([0.0, 0.0], [1.0, 0.0]),
        ([1.0, 2.0], [3.0, 5.0]),
    ] {
        for dones in [[o, o], [x, o], [o, x], [x, x]] {
            one(&rewards, &values, &dones, (0.0, dones[1]));
            one(&rewards, &values, &dones, (2.0, dones[1]));
        }
    }
    // An end in the middle, and a value other than 0 after it.
    one(&[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 10.0, 10.0], &[o, x, o, o], (10.0, o));
    one(&[0.0, 1.0, 0.0, 0.0], &[0.0, 0.0, 10.0, 10.0], &[x, o, x, o], (10.0, x));
    // A cut in the middle of an episode, where the values differ.
    one(&[0.0, 0.0, 0.0], &[1.0, 2.0, 3.0], &[o, o, o], (7.0, o));
    one(&[LARGEST, -LARGEST, LARGEST], &[-LARGEST, LARGEST, 0.0], &[o, o, x], (LARGEST, x));
    one(&[0.1; 32], &[0.7; 32], &[o; 32], (0.3, o));
    let square = |dones: [[bool; 2]; 2], last_dones: [bool; 2]| RolloutGaeCase {
        rewards: arr2(&[[1.0, 2.0], [4.0, 8.0]]),
        values: arr2(&[[3.0, 5.0], [7.0, 9.0]]),
        dones: arr2(&dones),
        last_values: arr1(&[11.0, 13.0]),
        last_dones: arr1(&last_dones),
    };
    for dones in [[[o, o], [o, o]], [[x, o], [o, o]], [[o, x], [o, x]], [[x, x], [x, x]]] {
        cases.push(square(dones, dones[1]));
        cases.push(square(dones, [o, x]));
    }
    cases.push(RolloutGaeCase {
        rewards: arr2(&[[1.0, 2.0]]),
        values: arr2(&[[0.0, 5.0]]),
        dones: arr2(&[[o, x]]),
        last_values: arr1(&[3.0, 4.0]),
        last_dones: arr1(&[o, x]),
    });
    cases.retain_mut(|case| {
        shakedown_core::value::record::round(case, dtype);
        valid(case, options, dtype).is_ok()
    });
    cases.sort_by_cached_key(RolloutGae::measure);
    cases
}

/// Whether some step of some environment is such a step; `ends` says whether each ended its
/// episode.
fn any(
    case: &RolloutGaeCase,
    options: &Options,
    mut is: impl FnMut(&Array2<bool>, usize, usize) -> bool,
) -> bool {
    let ends = case.ends(options);
    (0..ends.nrows()).any(|step| (0..ends.ncols()).any(|env| is(&ends, step, env)))
}

pub(super) fn classes() -> Vec<Class<RolloutGae>> {
    let always: fn(&Options, Dtype) -> bool = |_, _| true;
    let class = |id, meaning, contains, generated| Class { id, meaning, contains, generated };
    vec![
        class(
            "end-in-the-middle",
            "an episode that ends before the last step, and a value other than 0 after it",
            |case: &RolloutGaeCase, options: &Options| {
                any(case, options, |ends, step, env| {
                    let next = case.values.get([step + 1, env]);
                    ends[[step, env]] && next.is_some_and(|next| *next != 0.0)
                })
            },
            always,
        ),
        class(
            "cut-in-mid-episode",
            "a last step that ended nothing, and a value after it other than its own",
            |case, options| {
                any(case, options, |ends, step, env| {
                    let last = step + 1 == ends.nrows() && !ends[[step, env]];
                    last && case.last_values[env] != case.values[[step, env]]
                })
            },
            always,
        ),
        class(
            "end-at-the-last-step",
            "a last step that ended its episode, and a value after it other than 0",
            |case, options| {
                any(case, options, |ends, step, env| {
                    let last = step + 1 == ends.nrows() && ends[[step, env]];
                    last && case.last_values[env] != 0.0
                })
            },
            always,
        ),
        class(
            "no-end",
            "no episode ends, in two steps or more",
            |case, options| {
                case.dones.nrows() > 1 && !any(case, options, |ends, step, env| ends[[step, env]])
            },
            always,
        ),
        class(
            "episodes-of-one-step",
            "every step ends its episode, two steps or more",
            |case, options| {
                case.dones.nrows() > 1 && !any(case, options, |ends, step, env| !ends[[step, env]])
            },
            always,
        ),
        class(
            "content-critic",
            "no end, the same value everywhere, and the reward that keeps it: (1 − γ)·V",
            |case, options| {
                let value = case.values[[0, 0]];
                let same = |x: &f64| *x == value && value != 0.0;
                case.values.iter().chain(&case.last_values).all(same)
                    && case.rewards.iter().all(|reward| {
                        (reward - (1.0 - options.gamma) * value).abs() <= 1e-2 * value.abs()
                    })
            },
            always,
        ),
        class(
            "environments-that-differ",
            "a step that ends an episode in one environment and not in another",
            |case, options| {
                any(case, options, |ends, step, env| ends[[step, env]] && !ends[[step, 0]])
            },
            always,
        ),
        class(
            "extreme",
            "a reward or a value of 1000",
            |case, _| case.rewards.iter().chain(&case.values).any(|x| x.abs() >= LARGEST),
            always,
        ),
        class("one-environment", "E = 1", |case, _| case.dones.ncols() == 1, always),
        class("one-step", "T = 1", |case, _| case.dones.nrows() == 1, always),
        class(
            "square",
            "T = E ≥ 2",
            |case, _| case.dones.is_square() && case.dones.nrows() > 1,
            always,
        ),
        class("long", "T ≥ 12", |case, _| case.dones.nrows() >= 12, always),
    ]
}
