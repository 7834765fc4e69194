//! A contract outside the repository of shakedown: rewards clipped to a range.

use std::fs;
use std::panic::catch_unwind;

use ndarray::{Ix1, arr1};
use shakedown::author::*;
use shakedown::check;
use shakedown::report::{Finding, Status};

record! {
    /// The inputs.
    pub struct RewardClipCase {
        /// The reward of each completion, `[N]`.
        pub rewards: A::Float<Ix1>,
    }
}

record! {
    /// The output.
    pub struct RewardClipOutput {
        /// The clipped reward of each completion, `[N]`.
        pub clipped: A::Float<Ix1>,
    }
}

// What a component may return.
impl From<Vec<f64>> for RewardClipOutput {
    fn from(clipped: Vec<f64>) -> Self {
        Self { clipped: clipped.into() }
    }
}

options! {
    check: |options| {
        let Self { low, high, .. } = options;
        let why = || ("high", format!("expected more than `low` ({low}), found {high}"));
        (low < high).then_some(()).ok_or_else(why)
    };
    /// The conventions in which honest implementations differ.
    pub struct RewardClipOptions {
        /// The lowest reward.
        pub low: f64 = -1.0, draw [-1.0, 0.0, -5.0];
        /// The highest reward, more than `low`.
        pub high: f64 = 1.0, draw [1.0, 0.1, 10.0];
    }
}

/// The contract.
pub struct RewardClip;

impl Definition for RewardClip {
    type Case = RewardClipCase;
    type Output = RewardClipOutput;
    type Options = RewardClipOptions;
}

/// The largest reward that is generated.
const LARGEST: f64 = 1e3;

impl Contract for RewardClip {
    const ID: &'static str = "reward-clip";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("own_contract.rs");
    // Shapes, shrinking and the cases of the laws about rows follow from the axes.
    const AXES: Axes = Axes::new(&[("rewards", "N"), ("clipped", "N")]);

    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| {
            let count = u.int_in_range(1..=12)?;
            let rewards = draw::repeating(u, count, |u| {
                // The ends of the range are where a clip goes wrong.
                let ends = [options.low, options.high, options.low - 1.0, options.high + 1.0];
                if draw::chance(u, 96)? {
                    draw::one(u, &ends)
                } else if draw::chance(u, 96)? {
                    draw::one(u, &draw::AWKWARD)
                } else {
                    draw::uniform(u, -LARGEST, LARGEST)
                }
            })?;
            Ok(RewardClipCase { rewards: rewards.into() })
        },
        corners: |options, _| {
            let (low, high) = (options.low, options.high);
            let one = |reward| RewardClipCase { rewards: arr1(&[reward]) };
            let mut cases = [0.0, 1.0, low, high, low - 1.0, high + 1.0].map(one).to_vec();
            cases.push(RewardClipCase { rewards: arr1(&[low, high, LARGEST]) });
            cases.sort_by_cached_key(Self::measure);
            cases
        },
        valid: |case, _, _| {
            rows::check_axes::<Self>(case)?;
            match case.rewards.iter().find(|reward| !(-LARGEST..=LARGEST).contains(*reward)) {
                Some(reward) => Err(format!("expected rewards from -1000 to 1000, found {reward}")),
                None => Ok(()),
            }
        },
        classes: || {
            vec![Class {
                id: "outside",
                meaning: "a reward outside the range",
                contains: |case, options| {
                    case.rewards.iter().any(|x| !(options.low..=options.high).contains(x))
                },
                generated: |_, _| true,
            }]
        },
        reference: |case, options, _| RewardClipOutput {
            clipped: case.rewards.mapv(|reward| reward.max(options.low).min(options.high)),
        },
        invariants: || {
            let mut all = laws::universal();
            all.extend([
                laws::oracle::law().catching(&["only-from-above", "scaled-into-the-range"]),
                laws::row_permutation::law().catching(&["sorted-on-the-way"]),
                laws::row_split::law().catching(&["scaled-into-the-range"]),
                Invariant::own("inside-is-untouched", INSIDE_IS_UNTOUCHED, RULE),
            ]);
            all
        },
        faults: || {
            let fault = Fault::<Self>::new;
            vec![
                fault("only-from-above", "rewards below `low` are let through")
                    .seen("plausible: `min` without its `max`")
                    .as_if(&[|options| RewardClipOptions { low: f64::MIN, ..options }]),
                fault("scaled-into-the-range", "all rewards are divided by the largest one")
                    .seen("plausible: normalisation taken for clipping")
                    .gives(&[|case, options, _| {
                        let largest = case.rewards.iter().fold(options.high, |a, x| a.max(x.abs()));
                        RewardClipOutput { clipped: &case.rewards * (options.high / largest) }
                    }]),
                fault("sorted-on-the-way", "rewards are sorted, and not put back")
                    .seen("plausible: a quantile taken in place")
                    .on(&[|case, _| {
                        let mut rewards = case.rewards.to_vec();
                        rewards.sort_by(f64::total_cmp);
                        case.rewards = rewards.into();
                    }]),
            ]
        },
    };

    /// The scale is 0, as nothing is added: all that may be lost is the rounding of the result.
    fn oracle(case: &RewardClipCase, options: &RewardClipOptions, _: Dtype) -> Vec<Expected> {
        let clip = |reward: f64| {
            if reward < options.low {
                options.low
            } else if reward > options.high {
                options.high
            } else {
                reward
            }
        };
        let numbers = case.rewards.mapv(|reward| Number::new(clip(reward), 0.0));
        vec![Expected { field: "clipped", numbers: numbers.into_dyn(), terms: 1 }]
    }
}

impl Rows for RewardClip {}

const INSIDE_IS_UNTOUCHED: &str = "\
//! Clipping leaves alone what needs no clipping.
//!
//! ### Claim
//! A reward that is inside the range is not changed.
//!
//! ### Why it matters
//! What is scaled instead of clipped has another ratio of rewards to KL penalty in each batch.
//!
//! ### Does not hold for
//! Nothing.
//!
//! ### Bugs it has caught
//! None yet.
";

const RULE: Rule<RewardClip> =
    Rule::new(Pitfall::Configuration, &["scaled-into-the-range"], inside_is_untouched);

fn inside_is_untouched(probe: &mut Probe<'_, RewardClip>) -> Outcome {
    let rewards = &probe.case.rewards;
    let range = probe.options.low..=probe.options.high;
    let inside: Vec<usize> =
        (0..rewards.len()).filter(|row| range.contains(&rewards[*row])).collect();
    if inside.is_empty() {
        return Err(Stop::Vacuous);
    }
    let clipped = &probe.output()?.output.clipped;
    let bounds = probe.bounds("clipped");
    for row in inside {
        if apart(clipped[row], rewards[row], bounds[row]) {
            let [found, expected] = pair(clipped[row], rewards[row]);
            broken!("the reward {row} is inside the range and becomes {found}, it was {expected}");
        }
    }
    Ok(())
}

#[test]
fn the_contract_is_proved() {
    prove::<RewardClip>();
}

/// The component under test.
fn clip(case: &RewardClipCase) -> Vec<f64> {
    case.rewards.iter().map(|reward| reward.clamp(-1.0, 1.0)).collect()
}

#[test]
fn a_right_component_passes() {
    check::<RewardClip>(clip).without_corpora().run();
}

#[test]
fn a_wrong_component_is_found_shrunk_and_diagnosed() {
    let panic = catch_unwind(|| {
        let above = |case: &RewardClipCase| -> Vec<f64> {
            case.rewards.iter().map(|reward| reward.min(1.0)).collect()
        };
        check::<RewardClip>(above).named("min-alone").without_corpora().run();
    });
    let text = *panic.expect_err("it is wrong").downcast::<String>().expect("panics have a text");
    for part in ["min-alone", "rewards [-2]", "it had the bug `only-from-above`"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn a_finding_that_is_kept_as_a_regression_is_checked_first() {
    let corpora = tempfile::tempdir().unwrap();
    let find = || -> Finding {
        let unclipped = |case: &RewardClipCase| case.rewards.to_vec();
        let reports = check::<RewardClip>(unclipped).corpora(corpora.path()).report().unwrap();
        assert_eq!(reports[0].status, Status::Fail);
        let mut findings = reports.into_iter().flat_map(|report| report.findings);
        findings.find(|finding| finding.invariant == "oracle").unwrap()
    };
    let found = find();
    assert!(found.shown.starts_with("rewards [2]"), "{}", found.shown);

    let regressions = corpora.path().join("reward-clip/regressions");
    fs::create_dir_all(&regressions).unwrap();
    fs::rename(found.case_file.unwrap(), regressions.join("above.yaml")).unwrap();
    fs::remove_dir_all(corpora.path().join("reward-clip/found")).unwrap();
    assert_eq!(find().cases_to_failure, 1);
}
