//! A contract outside the repository of shakedown: rewards clipped to a range.

use std::fs;
use std::panic::catch_unwind;

use arbitrary::Unstructured;
use ndarray::{Array1, Ix1, arr1};
use shakedown::contract::Contract;
use shakedown::contract::class::Class;
use shakedown::contract::doc::Doc;
use shakedown::contract::fault::{Behaviour, Fault, Function, misbehaviours};
use shakedown::contract::invariant::Invariant;
use shakedown::contract::options::OptionDoc;
use shakedown::contract::options::options;
use shakedown::contract::probe::broken;
use shakedown::contract::probe::{Outcome, Probe, Stop};
use shakedown::contract::rows::Grid;
use shakedown::contract::rows::Rows;
use shakedown::contract::stage::{Pitfall, Stage};
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::files::case_file::CaseFile;
use shakedown::files::corpora::{found_folder, regressions_folder};
use shakedown::generate::axes;
use shakedown::generate::draw::{AWKWARD, chance, one, repeating, uniform};
use shakedown::generate::measure::Measure;
use shakedown::host::builtin::Builtin;
use shakedown::laws;
use shakedown::numeric::tolerance::{Expected, Number, apart};
use shakedown::report::{ComponentReport, InvariantStatus, Status};
use shakedown::value::place::{Dtype, Place};
use shakedown::value::record::record;
use shakedown::value::record::round;
use shakedown::value::text::pair;

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
    /// The conventions in which honest implementations differ.
    pub struct Options {
        /// The lowest reward.
        pub low: f64 = -1.0,
        /// The highest reward, more than `low`.
        pub high: f64 = 1.0,
    }
}

impl shakedown::contract::options::Options for Options {
    fn docs() -> Vec<OptionDoc> {
        Self::option_docs()
    }

    fn check(&self) -> Result<(), (&'static str, String)> {
        if self.low < self.high {
            Ok(())
        } else {
            Err(("high", format!("expected more than `low` ({}), found {}", self.low, self.high)))
        }
    }

    fn draw(u: &mut Unstructured<'_>) -> arbitrary::Result<Self> {
        let (low, high) = one(u, &[(-1.0, 1.0), (0.0, 1.0), (-5.0, 0.1), (0.5, 10.0)])?;
        Ok(Options { low, high, ..Options::default() })
    }
}

/// The largest reward that is generated.
const LARGEST: f64 = 1e3;

/// The contract.
pub struct RewardClip;

impl Definition for RewardClip {
    type Case = RewardClipCase;
    type Output = RewardClipOutput;
    type Options = Options;
}

impl Contract for RewardClip {
    const ID: &'static str = "reward-clip";
    const STAGE: Stage = Stage::Reward;
    const DOC: &'static str = include_str!("own_contract.rs");
    const AXES: Axes = Axes::new(&[("rewards", "N"), ("clipped", "N")]);
    const PARTS: Parts<Self> = Parts {
        draw: |u, options, _| {
            let rows = u.int_in_range(1..=12)?;
            let rewards = repeating(u, rows, |u| {
                // The ends of the range are where a clip goes wrong.
                let ends = [options.low, options.high, options.low - 1.0, options.high + 1.0];
                if chance(u, 96)? {
                    one(u, &ends)
                } else if chance(u, 96)? {
                    one(u, &AWKWARD)
                } else {
                    uniform(u, -LARGEST, LARGEST)
                }
            })?;
            Ok(RewardClipCase { rewards: rewards.into() })
        },
        corners: |options, dtype| {
            let Options { low, high, .. } = *options;
            let rows: [&[f64]; 7] = [
                &[0.0],
                &[1.0],
                &[low],
                &[high],
                &[low - 1.0],
                &[high + 1.0],
                &[low, high, LARGEST],
            ];
            let mut cases: Vec<_> =
                rows.into_iter().map(|rewards| RewardClipCase { rewards: arr1(rewards) }).collect();
            cases.iter_mut().for_each(|case| round(case, dtype));
            cases.sort_by_cached_key(Self::measure);
            cases
        },
        valid: |case, _, _| {
            grid::check_axes::<Self>(case)?;
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
            clipped: case.rewards.mapv(|x| x.max(options.low).min(options.high)),
        },
        invariants: || {
            let mut all = laws::universal();
            all.extend([
                laws::oracle::law().catching(&["only-from-above", "scaled-into-the-range"]),
                laws::row_permutation::law().catching(&["sorted-on-the-way"]),
                laws::row_split::law().catching(&["scaled-into-the-range"]),
                Invariant {
                    id: "inside-is-untouched",
                    doc: Doc(INSIDE_IS_UNTOUCHED),
                    pitfall: Pitfall::Configuration,
                    catches: &["scaled-into-the-range"],
                    needs_gradient: false,
                    applies: |_, _| true,
                    check: inside_is_untouched,
                },
            ]);
            all
        },
        faults: || {
            let fault = |id, summary, source, variants: &'static [Function<Self>]| {
                let behaviour = Behaviour::Gives(variants);
                Fault { id, summary, source, options: "{}", behaviour }
            };
            let mut faults = vec![
                fault(
                    "only-from-above",
                    "rewards below `low` are let through",
                    "plausible: `min` without its `max`",
                    &[|case, options, _| RewardClipOutput {
                        clipped: case.rewards.mapv(|reward| reward.min(options.high)),
                    }],
                ),
                fault(
                    "scaled-into-the-range",
                    "all rewards are divided by the largest one",
                    "plausible: normalisation taken for clipping",
                    &[|case, options, _| {
                        let largest = case.rewards.iter().fold(options.high, |a, x| a.max(x.abs()));
                        RewardClipOutput { clipped: &case.rewards * (options.high / largest) }
                    }],
                ),
                fault(
                    "sorted-on-the-way",
                    "rewards are sorted, and not put back in their order",
                    "plausible: a quantile taken in place",
                    &[|case, options, dtype| {
                        let mut rewards = case.rewards.to_vec();
                        rewards.sort_by(f64::total_cmp);
                        let sorted = RewardClipCase { rewards: rewards.into() };
                        RewardClip::reference(&sorted, options, dtype)
                    }],
                ),
            ];
            faults.extend(misbehaviours());
            faults
        },
    };

    fn shapes(case: &RewardClipCase, _: &Options) -> Vec<(&'static str, Vec<usize>)> {
        vec![("clipped", case.rewards.shape().to_vec())]
    }

    /// The scale is 0, as nothing is added: all that may be lost is the rounding of the result.
    fn oracle(case: &RewardClipCase, options: &Options, _: Dtype) -> Vec<Expected> {
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

// The axes of the arrays: `grid` makes the shrinker of them, and the laws about rows their cases.

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

fn inside_is_untouched(probe: &mut Probe<'_, RewardClip>) -> Outcome {
    let range = probe.options.low..=probe.options.high;
    let inside: Vec<usize> = (0..probe.case.rewards.len())
        .filter(|row| range.contains(&probe.case.rewards[*row]))
        .collect();
    if inside.is_empty() {
        return Err(Stop::Vacuous);
    }
    let returned = probe.output()?;
    let bounds = probe.bounds("clipped");
    for row in inside {
        let (found, expected) = (returned.output.clipped[row], probe.case.rewards[row]);
        if apart(found, expected, bounds[row]) {
            let [found, expected] = pair(found, expected);
            broken!("the reward {row} is inside the range and becomes {found}, it was {expected}");
        }
    }
    Ok(())
}

/// The component under test.
fn clip(case: &RewardClipCase) -> Vec<f64> {
    case.rewards.iter().map(|reward| reward.clamp(-1.0, 1.0)).collect()
}

#[test]
fn a_right_component_passes() {
    shakedown::check::<RewardClip>(clip).without_corpora().run();
}

#[test]
fn a_wrong_component_is_found_shrunk_and_diagnosed() {
    let panic = catch_unwind(|| {
        let below = |case: &RewardClipCase| -> Vec<f64> {
            case.rewards.iter().map(|reward| reward.min(1.0)).collect()
        };
        shakedown::check::<RewardClip>(below).named("min-alone").without_corpora().run();
    });
    let text = *panic.expect_err("it is wrong").downcast::<String>().expect("panics have a text");
    for part in ["min-alone", "rewards [-2]", "behaves exactly like `only-from-above`"] {
        assert!(text.contains(part), "{part} is not in\n{text}");
    }
}

#[test]
fn every_fault_is_caught_by_the_invariants_that_claim_it_and_the_reference_by_none() {
    let check = |component: Builtin<RewardClip>, place| {
        let mut subject = Subject::new("builtin", component);
        run(&mut subject, place, &Budget::default(), &|_| ()).unwrap()
    };
    let broken = |report: ComponentReport| {
        let failed = report.invariants.into_iter().filter(|i| i.status == InvariantStatus::Fail);
        failed.map(|invariant| invariant.id).collect::<Vec<String>>()
    };
    for place in [Place::CPU_F64, Place::CPU_F32, Place::CPU_BF16, Place::CPU_F16] {
        let report = check(Builtin::reference(), place);
        // Each invariant had something to say, and cases of each class came up.
        assert!(report.warnings.is_empty(), "{:?}", report.warnings);
        assert_eq!(broken(report), [""; 0]);
        for index in 0..RewardClip::faults().len() {
            let fault = RewardClip::faults().swap_remove(index);
            let id = fault.id;
            let broken = broken(check(Builtin::fault(fault, 0), place));
            let claims = |one: &Invariant<RewardClip>| one.catches.contains(&id);
            let mut claiming = RewardClip::invariants().into_iter().filter(claims).peekable();
            assert!(claiming.peek().is_some(), "{id} is claimed by no invariant");
            claiming
                .for_each(|one| assert!(broken.contains(&one.id.to_owned()), "{} {id}", one.id));
        }
    }
}

#[test]
fn a_finding_that_is_kept_as_a_regression_is_checked_first() {
    let corpora = tempfile::tempdir().unwrap();
    let unclipped = |case: &RewardClipCase| case.rewards.to_vec();
    let check = || shakedown::check::<RewardClip>(unclipped).corpora(corpora.path());
    let reports = check().report().unwrap();
    assert_eq!(reports[0].status, Status::Fail);
    let finding = reports[0].findings.iter().find(|finding| finding.invariant == "oracle").unwrap();
    let found = finding.case_file.as_ref().unwrap();
    let file = CaseFile::<RewardClip>::read(found.as_ref()).unwrap();
    assert_eq!(file.case.rewards, Array1::from(vec![2.0]));

    let kept = regressions_folder(corpora.path(), RewardClip::ID).join("above.yaml");
    CaseFile { why: Some("never clipped".to_owned()), ..file }.write(&kept).unwrap();
    fs::remove_dir_all(found_folder(corpora.path(), RewardClip::ID)).unwrap();
    let again = check().report().unwrap();
    let finding = again[0].findings.iter().find(|finding| finding.invariant == "oracle").unwrap();
    assert_eq!(finding.cases_to_failure, 1);
}
