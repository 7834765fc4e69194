//! What is right in another way than the reference passes; what is wrong where only differences
//! show it does not.

use super::*;
use shakedown_contracts::accumulated_loss::{AccumulatedLoss, AccumulatedLossCase, MicroBatch};
use shakedown_contracts::group_advantage::{self, GroupAdvantage, GroupAdvantageCase};
use shakedown_contracts::kl_estimate::{
    Estimator, Gradient, KlEstimate, KlEstimateCase, KlEstimateOutput, Options,
};
use shakedown_contracts::policy_update::learner::{Learner, RIGHT};
use shakedown_contracts::policy_update::{self, PolicyUpdate, PolicyUpdateCase};
use shakedown_core::value::place::Dtype;
use shakedown_engine::report::InvariantStatus;

#[track_caller]
fn passes<C: Contract>(check: Check<C>) {
    let check = check.places([Place::CPU_F32]).without_corpora();
    for report in check.report().unwrap() {
        let found: Vec<&String> = report.findings.iter().map(|one| &one.found).collect();
        assert_eq!(report.status, Status::Pass, "{found:?}");
    }
}

/// The slope of the expected reward, arm by arm.
fn slope(logits: &[f64], case: &PolicyUpdateCase) -> Vec<f64> {
    let weights: Vec<f64> = logits.iter().map(|z| z.exp()).collect();
    let sum: f64 = weights.iter().sum();
    let policy: Vec<f64> = weights.iter().map(|weight| weight / sum).collect();
    let reward: f64 = policy.iter().zip(&case.rewards).map(|(p, r)| p * r).sum();
    policy.iter().zip(&case.rewards).map(|(p, r)| p * (r - reward)).collect()
}

/// The gradient itself, without sampling.
fn exact(case: &PolicyUpdateCase) -> Vec<f64> {
    let mut logits = case.logits.to_vec();
    for _ in 0..case.steps[()] {
        let slope = slope(&logits, case);
        logits.iter_mut().zip(slope).for_each(|(z, s)| *z += case.learning_rate[()] * s);
    }
    logits
}

/// Adam on the gradient itself.
fn adam(case: &PolicyUpdateCase) -> Vec<f64> {
    let mut logits = case.logits.to_vec();
    let mut moments = vec![[0.0; 2]; logits.len()];
    for step in 1..=case.steps[()] as i32 {
        let slope = slope(&logits, case);
        for (arm, [first, second]) in moments.iter_mut().enumerate() {
            *first = 0.9 * *first + 0.1 * slope[arm];
            *second = 0.999 * *second + 0.001 * slope[arm] * slope[arm];
            let (mean, square) =
                (*first / (1.0 - 0.9_f64.powi(step)), *second / (1.0 - 0.999_f64.powi(step)));
            logits[arm] += case.learning_rate[()] * mean / (square.sqrt() + 1e-8);
        }
    }
    logits
}

#[test]
fn right_learners_of_every_kind_pass() {
    for advantages in RIGHT {
        for group in [4, 16] {
            let learner = Learner { group, advantages, ..Learner::default() };
            let options = policy_update::Options::default();
            passes::<PolicyUpdate>(check(move |case| learner.learn(case, &options)));
        }
    }
    passes::<PolicyUpdate>(check(exact));
    passes::<PolicyUpdate>(check(adam));
}

#[test]
fn a_gradient_that_is_passed_straight_through_rounds_as_its_square_does() {
    for estimator in [Estimator::K1, Estimator::K3, Estimator::Abs] {
        let options = Options { estimator, gradient: Gradient::K2, ..Options::default() };
        let declared = options.clone();
        let through = check::<KlEstimate>(move |case| {
            let reference = (KlEstimate::PARTS.reference)(case, &declared, Dtype::F32);
            let mut kl = reference.kl;
            kl.zip_mut_with(&(&case.log_probs - &case.ref_log_probs), |value, d| {
                let (d, own) = (*d as f32, *value as f32);
                let square = 0.5 * d * d;
                *value = f64::from(own + square - square);
            });
            KlEstimateOutput { kl, ..reference }
        });
        passes(through.options(options));
    }
}

/// The losses of the tokens that count, and how many these are.
fn sum(part: &MicroBatch) -> (f64, f64) {
    let terms = part.token_losses.iter().zip(&part.mask).filter(|(_, kept)| **kept);
    terms.fold((0.0, 0.0), |(sum, count), (loss, _)| (sum + loss, count + 1.0))
}

/// What the law `gradient` says of a function on host arrays.
fn gradient_of(f: fn(&AccumulatedLossCase) -> f64) -> (InvariantStatus, u64) {
    let check = check::<AccumulatedLoss>(f).places([Place::CPU_F64]).without_corpora();
    let report = check.cases(40).report().unwrap().swap_remove(0);
    let gradient = report.invariants.iter().find(|one| one.id == "gradient").unwrap();
    (gradient.status, gradient.cases)
}

#[test]
fn gradients_of_host_functions_are_taken_by_differences_in_every_micro_batch() {
    let (status, cases) = gradient_of(|case| {
        let sums = case.micro_batches.iter().map(sum);
        let (sum, count) = sums.fold((0.0, 0.0), |all, part| (all.0 + part.0, all.1 + part.1));
        sum / f64::max(count, 1.0)
    });
    assert!(status == InvariantStatus::Pass && cases > 40, "{status:?} on {cases}");
    let (status, _) = gradient_of(|case| {
        let means = case.micro_batches.iter().map(sum).map(|(sum, count)| sum / count.max(1.0));
        means.sum::<f64>() / case.micro_batches.len() as f64
    });
    assert_eq!(status, InvariantStatus::Fail);
}

#[test]
fn a_function_that_returns_f32_is_judged_at_f32() {
    let centred = |case: &GroupAdvantageCase| {
        let mean = |group: i64| {
            let rows = case.groups.iter().zip(&case.rewards).filter(|(one, _)| **one == group);
            let of_group: Vec<f32> = rows.map(|(_, reward)| *reward as f32).collect();
            of_group.iter().sum::<f32>() / of_group.len() as f32
        };
        let rows = case.groups.iter().zip(&case.rewards);
        rows.map(|(group, reward)| *reward as f32 - mean(*group)).collect::<Vec<f32>>()
    };
    let options = group_advantage::Options::default();
    let options = group_advantage::Options { scale: group_advantage::Scale::None, ..options };
    let check = check::<GroupAdvantage>(centred).options(options).without_corpora();
    let [report] = &check.report().unwrap()[..] else { panic!("one place") };
    assert_eq!((report.place, report.status), (Place::CPU_F32, Status::Pass), "{report:?}");
}

#[test]
fn a_fuzz_target_keeps_its_findings_with_the_package_that_it_tests() {
    let folder = tempfile::tempdir().unwrap();
    let fuzz = folder.path().join("fuzz");
    std::fs::create_dir(&fuzz).unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), "[package]\n").unwrap();
    std::fs::write(fuzz.join("Cargo.toml"), "[package.metadata]\ncargo-fuzz = true\n").unwrap();
    assert_eq!(tested_by(&fuzz).as_deref(), Some(folder.path()));
    std::fs::write(fuzz.join("Cargo.toml"), "[package]\nname = \"fuzz\"\n").unwrap();
    assert_eq!(tested_by(&fuzz), None, "a package that only has the name");
    assert_eq!(tested_by(folder.path()), None);
}

/// The loss of a policy whose ratio is detached: its value is right.
#[test]
fn a_loss_whose_gradient_is_left_out_does_not_pass() {
    let reference = |case: &KlEstimateCase| -> KlEstimateOutput {
        let log_ratio = &case.log_probs - &case.ref_log_probs;
        KlEstimateOutput { kl: log_ratio, grad_log_probs: None }
    };
    let options =
        || Options { estimator: Estimator::K1, gradient: Gradient::Value, ..Options::default() };
    let check = || check::<KlEstimate>(reference).options(options()).without_corpora();
    let found = |check: Check<KlEstimate>| {
        let [report] = &check.report().unwrap()[..] else { panic!("one place") };
        let found = report.findings.iter().find(|one| one.invariant == "gradient");
        found.map(|one| one.found.clone())
    };
    let expected = "`log_probs` gets no gradient: the output is detached from it";
    assert_eq!(found(check()).as_deref(), Some(expected));
    assert_eq!(found(check().by_differences()), None);
}
