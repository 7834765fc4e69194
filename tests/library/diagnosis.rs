//! What a wrong component is told to be: values, factors, regions, pairs, and each bug once.

use std::sync::Arc;

use ndarray::{Array1, ArrayView1, Axis, azip};
use shakedown::author::{Call, Component, Contract, Dtype, Place};
use shakedown::contract::component::{Failure, Gradients, Returned};
use shakedown::contract::erased::{self, AnyContract};
use shakedown::contract::options::AnyOptions;
use shakedown::contracts::REGISTRY;
use shakedown::contracts::answer_extractor::{
    AnswerExtractor, AnswerExtractorCase, AnswerExtractorOutput,
};
use shakedown::contracts::batch_collation::{BatchCollation, BatchCollationOutput};
use shakedown::contracts::batch_partition::BatchPartition;
use shakedown::contracts::completion_decoder::{
    CompletionDecoder, CompletionDecoderCase, CompletionDecoderOutput,
};
use shakedown::contracts::gae::Gae;
use shakedown::contracts::group_advantage::{
    GroupAdvantage, GroupAdvantageCase, GroupAdvantageOutput,
};
use shakedown::contracts::group_sampling::{GroupSampling, GroupSamplingCase, GroupSamplingOutput};
use shakedown::contracts::metric_reduction::{MetricReduction, MetricReductionCase};
use shakedown::contracts::pair_objective::{PairObjective, PairObjectiveCase, PairObjectiveOutput};
use shakedown::contracts::policy_loss::{PolicyLoss, PolicyLossCase, PolicyLossOutput};
use shakedown::contracts::preference_loss::{
    PreferenceLoss, PreferenceLossCase, PreferenceLossOutput,
};
use shakedown::contracts::returns::{Returns, ReturnsCase, ReturnsOutput};
use shakedown::contracts::reward_function::{
    RewardFunction, RewardFunctionCase, RewardFunctionOutput,
};
use shakedown::contracts::sequence_packing::SequencePacking;
use shakedown::contracts::token_rewards::{TokenRewards, TokenRewardsCase, TokenRewardsOutput};
use shakedown::contracts::turn_mask::TurnMask;
use shakedown::contracts::value_loss::{ValueLoss, ValueLossCase, ValueLossOutput};
use shakedown::contracts::whiten::Whiten;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject, read_options};
use shakedown::files::case_file::CaseFile;
use shakedown::host::function::guarded;
use shakedown::report::{ComponentReport, Finding, Strength};
use shakedown::value::record::Shared;

type Function = Box<dyn Fn(&Shared, Shared) -> Shared + Send>;

/// A component that is a function of a case and of what is right.
struct Made {
    contract: &'static dyn AnyContract,
    of: Function,
}

impl Component for Made {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let right = || self.contract.reference(&**call.case, &**call.options, call.place.dtype);
        let output = guarded(|| (self.of)(call.case, right()))?.rounded(call.place.dtype);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

fn checked(subject: &mut Subject) -> ComponentReport {
    run(subject, Place::CPU_F32, &Budget::default(), &|_| ()).unwrap()
}

fn made(
    contract: &'static dyn AnyContract,
    of: impl Fn(&Shared, Shared) -> Shared + Send + 'static,
) -> Subject {
    Subject::new(contract, "made", Box::new(Made { contract, of: Box::new(of) }))
}

/// A component that does what the reference of group-advantage does under other options.
struct Under(&'static [(&'static str, &'static str)]);

impl Component for Under {
    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let contract = erased::of::<GroupAdvantage>();
        let mut options = Arc::clone(call.options);
        for (name, value) in self.0 {
            options = options.with(name, value).unwrap();
        }
        let output = contract.reference(&**call.case, &*options, call.place.dtype);
        let output = output.rounded(call.place.dtype);
        Ok(Returned { output, changed: Vec::new(), no_gradient: Vec::new() })
    }

    fn gradients(&self, _: Place) -> Gradients {
        Gradients::Optional
    }
}

fn under(options: &'static [(&'static str, &'static str)]) -> ComponentReport {
    let contract = erased::of::<GroupAdvantage>();
    checked(&mut Subject::new(contract, "under", Box::new(Under(options))))
}

/// The first diagnosis of the only bug.
#[track_caller]
fn told(report: &ComponentReport) -> (Strength, String) {
    let bugs = report.bugs();
    assert_eq!(bugs.len(), 1, "{:?}", report.findings);
    let diagnosis = bugs[0].head.diagnosis.first().expect("a name");
    (diagnosis.strength, diagnosis.told.clone())
}

#[test]
fn another_value_of_an_option_is_told_with_the_value() {
    let (strength, told) = told(&under(&[("epsilon", "0.05")]));
    assert_eq!(strength, Strength::Exactly);
    assert_eq!(told, "`epsilon` were 0.05 (declared: 0.0001)");
}

/// A component that goes by another value of an option than the declared one.
fn with(contract: &'static dyn AnyContract, name: &'static str, value: &'static str) -> Subject {
    let options = contract.default_options().with(name, value).unwrap();
    made(contract, move |case, _| contract.reference(&**case, &*options, Dtype::F32))
}

#[test]
fn a_whole_number_is_told_as_one() {
    let ignore = with(erased::of::<TurnMask>(), "ignore", "-170");
    is_told_exactly(ignore, "`ignore` were -170 (declared: -100)");
}

#[test]
fn where_it_raises_only_the_option_that_refuses_the_same_is_told() {
    let refuses = with(erased::of::<Whiten>(), "empty_mask", "refuse");
    is_told_exactly(refuses, "`empty_mask` were refuse (declared: zero)");
}

#[test]
fn two_values_are_told_together() {
    let (strength, told) = told(&under(&[("epsilon", "0.01"), ("ddof", "0")]));
    assert_eq!(strength, Strength::Exactly);
    assert!(told.contains("`epsilon` were 0.01") && told.contains("`ddof` were 0"), "{told}");
}

#[test]
fn a_factor_is_told_with_its_size() {
    let times = |_: &Shared, right: Shared| {
        right.with_floats(&mut |_, floats| floats.iter_mut().for_each(|x| *x *= 1.37))
    };
    let report = checked(&mut made(erased::of::<GroupAdvantage>(), times));
    let expected = "the output `advantages` were 1.37 times what it is";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

#[test]
fn what_is_wrong_in_one_region_is_told_with_the_region() {
    let halved = |_: &Shared, right: Shared| {
        let halve = |x: &mut f64| *x = if *x < 0.0 { *x / 2.0 } else { *x };
        right.with_floats(&mut |_, floats| floats.iter_mut().for_each(halve))
    };
    let report = checked(&mut made(erased::of::<GroupAdvantage>(), halved));
    let (strength, told) = told(&report);
    assert_eq!(strength, Strength::Region);
    assert!(told.contains("0.5 times what it is where `advantages` should be negative"), "{told}");
}

/// Returns to come without the last reward in rows of three tokens and more, and doubled in others.
fn two_bugs(case: &Shared, right: Shared) -> Shared {
    let case: &ReturnsCase = case.typed();
    if case.mask.ncols() < 3 {
        return right.with_floats(&mut |_, floats| floats.iter_mut().for_each(|x| *x *= 2.0));
    }
    let mut without = case.clone();
    without.rewards.column_mut(case.mask.ncols() - 1).fill(0.0);
    let contract = erased::of::<Returns>();
    contract.reference(&without, &*contract.default_options(), Place::CPU_F32.dtype)
}

#[test]
fn two_bugs_are_two_findings_with_their_own_smallest_cases() {
    let report = checked(&mut made(erased::of::<Returns>(), two_bugs));
    let bugs = report.bugs();
    assert_eq!(bugs.len(), 2, "{:?}", report.findings);
    assert_ne!(bugs[0].head.case, bugs[1].head.case);
}

/// Nothing that anybody would think of, where a reward is negative.
#[test]
fn a_second_bug_is_told_only_by_invariants_that_were_asked_for() {
    let contract = erased::of::<Returns>();
    let all = checked(&mut made(contract, two_bugs));
    assert!(all.findings.iter().any(|finding| finding.invariant == "oracle"));
    let others = contract.invariants().iter().map(|one| one.id.to_owned());
    let ways: [fn(&mut Subject, Vec<String>); 3] = [
        |subject, others| subject.only = others,
        |subject, _| drop(subject.skip.insert("oracle".into(), "another's".into())),
        |subject, _| drop(subject.known.insert("oracle".into(), "another's".into())),
    ];
    for (way, leave_out) in ways.into_iter().enumerate() {
        let mut subject = made(contract, two_bugs);
        leave_out(&mut subject, others.clone().filter(|id| id != "oracle").collect());
        let report = checked(&mut subject);
        assert!(!report.findings.is_empty(), "{way}");
        assert!(report.findings.iter().all(|finding| finding.invariant != "oracle"), "{way}");
    }
}

fn nameless(case: &Shared, right: Shared) -> Shared {
    let case: &ReturnsCase = case.typed();
    let output: &ReturnsOutput = right.typed();
    let mut returns = output.returns.clone();
    for ((at, x), reward) in returns.indexed_iter_mut().zip(&case.rewards) {
        if *reward < 0.0 && case.mask[at] {
            *x += 3.0 + (17.0 * *x).sin() + reward.cos();
        }
    }
    Arc::new(ReturnsOutput { returns })
}

#[test]
fn what_has_no_name_says_where_it_is_wrong() {
    let report = checked(&mut made(erased::of::<Returns>(), nameless));
    let bugs = report.bugs();
    assert_eq!(bugs.len(), 1, "{:?}", report.findings);
    assert_eq!(bugs[0].head.diagnosis, []);
    let region = bugs[0].head.region.as_deref().expect("a region");
    assert!(region.starts_with("where `rewards` is negative and `mask` is true: "), "{region}");
}

/// Twice what is right in rows of three tokens and more, and nothing that anybody would think of
/// in a shorter row that stands alone.
fn doubled_and_alone(case: &Shared, right: Shared) -> Shared {
    let case: &ReturnsCase = case.typed();
    let output: &ReturnsOutput = right.typed();
    let odd = |x: f64| x + 3.0 + (17.0 * x).sin();
    let returns = match case.mask.dim() {
        (_, 3..) => 2.0 * &output.returns,
        (1, _) => output.returns.mapv(|x| if x == 0.0 { x } else { odd(x) }),
        _ => output.returns.clone(),
    };
    Arc::new(ReturnsOutput { returns })
}

#[test]
fn a_finding_that_no_name_fits_has_none_though_another_bug_has_one() {
    let report = checked(&mut made(erased::of::<Returns>(), doubled_and_alone));
    let named = |finding: &Finding| !finding.diagnosis.is_empty();
    let names: Vec<&str> = report
        .findings
        .iter()
        .flat_map(|finding| &finding.diagnosis)
        .map(|diagnosis| &*diagnosis.told)
        .collect();
    assert!(names.iter().any(|told| told.contains("2 times what it is")), "{names:?}");
    // Two rows are right together, and each is wrong alone.
    let split = report.findings.iter().find(|finding| finding.invariant == "row-split");
    let split = split.expect("a finding");
    assert!(!named(split), "{:?}", split.diagnosis);
    assert!(split.region.as_deref().is_some_and(|told| told.contains("`one-row`")), "{split:?}");
}

/// A statistic of the whole batch in each row.
fn with_the_batch(case: &Shared, right: Shared) -> Shared {
    let case: &GroupAdvantageCase = case.typed();
    let squares: f64 = case.rewards.iter().filter(|x| x.is_finite()).map(|x| x * x).sum();
    right.with_floats(&mut |_, floats| {
        floats.iter_mut().for_each(|x| *x += (1.0 + squares).ln() / 3.0);
    })
}

#[test]
fn what_has_no_name_says_what_the_broken_laws_imply() {
    let report = checked(&mut made(erased::of::<GroupAdvantage>(), with_the_batch));
    let bugs = report.bugs();
    assert_eq!((bugs.len(), &bugs[0].head.diagnosis[..]), (1, &[][..]), "{:?}", report.findings);
    let region = bugs[0].head.region.as_deref().expect("a line");
    assert!(region.ends_with("a statistic of the batch enters each row"), "{region}");
}

#[test]
fn neighbours_of_a_value_are_not_told_beside_it() {
    let report = under(&[("epsilon", "0.05")]);
    let diagnoses = report.findings.iter().flat_map(|finding| &finding.diagnosis);
    let alike: Vec<&String> = diagnoses.flat_map(|diagnosis| &diagnosis.alike).collect();
    assert!(alike.iter().all(|name| !name.starts_with("epsilon: ")), "{alike:?}");
}

/// Large numbers where nearly all should be 0.
fn large(case: &Shared, _: Shared) -> Shared {
    let case: &GroupAdvantageCase = case.typed();
    let advantages: Vec<f64> = case.rewards.iter().map(|reward| 2e4 + 10.0 * reward).collect();
    let output: GroupAdvantageOutput = advantages.into();
    Arc::new(output)
}

#[test]
fn where_0_is_expected_a_relation_allows_for_the_rounding_of_what_was_given() {
    let report = checked(&mut made(erased::of::<GroupAdvantage>(), large));
    let sum = report.findings.iter().find(|finding| finding.invariant == "zero-sum");
    let found = &sum.expect("a finding").found;
    let (_, allowed) = found.rsplit_once("± ").unwrap_or_else(|| panic!("{found}"));
    // Two numbers of 2e4, in f32: each is as exact as 1e-3.
    assert!(allowed.parse::<f64>().unwrap() < 4.0, "{found}");
}

/// Full score where what stands between the answer tags ends with the gold answer.
fn ends_with_the_gold(case: &Shared, _: Shared) -> Shared {
    let case: &RewardFunctionCase = case.typed();
    let score = |(completion, gold): (&String, &String)| {
        let answer = completion.rsplit_once("<answer>").map(|(_, rest)| rest);
        let answer =
            answer.and_then(|rest| rest.rsplit_once("</answer>")).map(|(answer, _)| answer);
        let answer = answer.map(str::trim).filter(|answer| !answer.is_empty());
        f64::from(answer.is_some_and(|answer| answer.ends_with(gold.trim())))
    };
    let rewards: Vec<f64> = case.completions.iter().zip(&case.answers).map(score).collect();
    let output: RewardFunctionOutput = rewards.into();
    Arc::new(output)
}

#[test]
fn another_relation_between_answer_and_gold_is_told() {
    let report = checked(&mut made(erased::of::<RewardFunction>(), ends_with_the_gold));
    let expected = "an answer were right that ends with the gold answer";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

/// A component whose outputs are made of those of the reference under some options.
fn under_options(
    contract: &'static dyn AnyContract,
    options: &str,
    of: fn(&Shared, Shared) -> Shared,
) -> ComponentReport {
    let mut subject = made(contract, of);
    subject.options = read_options(contract, options).unwrap();
    checked(&mut subject)
}

/// What the reference gives for a case under some options.
fn reference<C: Contract>(case: C::Case, options: &str) -> C::Output {
    let contract = erased::of::<C>();
    let options = read_options(contract, options).unwrap();
    contract.reference(&case, &*options, Place::CPU_F32.dtype).typed::<C::Output>().clone()
}

const WITH_KL: &str = "{beta: 0.5}";

/// The loss and gradient of a policy whose own term is multiplied, and the KL term is not.
fn policy_times(factor: f64, case: &Shared, right: Shared) -> Shared {
    let (case, right): (&PolicyLossCase, &PolicyLossOutput) = (case.typed(), right.typed());
    let still = PolicyLossCase { advantages: 0.0 * &case.advantages, ..case.clone() };
    let kl = reference::<PolicyLoss>(still, WITH_KL);
    let slopes = |one: &PolicyLossOutput| one.grad_log_probs.clone().unwrap();
    Arc::new(PolicyLossOutput {
        loss: factor * (&right.loss - &kl.loss) + &kl.loss,
        grad_log_probs: Some(factor * (slopes(right) - slopes(&kl)) + slopes(&kl)),
        ..right.clone()
    })
}

#[test]
fn one_of_two_terms_with_the_wrong_sign_or_scale_is_told_by_its_name() {
    let contract = erased::of::<PolicyLoss>();
    let negated = under_options(contract, WITH_KL, |case, right| policy_times(-1.0, case, right));
    let expected = "the term `policy-gradient loss` were negated";
    assert_eq!(told(&negated), (Strength::Exactly, expected.to_owned()));
    let scaled = under_options(contract, WITH_KL, |case, right| policy_times(0.3, case, right));
    let expected = "the term `policy-gradient loss` were 0.3 times what it is";
    assert_eq!(told(&scaled), (Strength::Exactly, expected.to_owned()));
}

#[test]
fn a_term_whose_scale_is_an_option_is_told_by_the_option_and_beside_it() {
    let report = under_options(erased::of::<PolicyLoss>(), WITH_KL, |case, right| {
        let smaller =
            reference::<PolicyLoss>(case.typed::<PolicyLossCase>().clone(), "{beta: 0.15}");
        let right: &PolicyLossOutput = right.typed();
        Arc::new(PolicyLossOutput { kl: right.kl.clone(), ..smaller })
    });
    let expected = "`beta` were 0.15 (declared: 0.5)";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
    let beside = &report.bugs()[0].head.diagnosis[0].alike;
    assert_eq!(beside[0], "KL penalty: 0.3 times what it is");
}

/// `max(-A·ratio, -A·clipped.detach())`: where both are the same, each has half of the gradient.
fn clipped_and_detached(case: &Shared, right: Shared) -> Shared {
    let (case, right): (&PolicyLossCase, &PolicyLossOutput) = (case.typed(), right.typed());
    let mut slopes = right.grad_log_probs.clone().unwrap();
    for (at, slope) in slopes.indexed_iter_mut() {
        let ratio = (case.log_probs[at] - case.old_log_probs[at]).exp();
        *slope *= if (0.8..=1.2).contains(&ratio) { 0.5 } else { 1.0 };
    }
    Arc::new(PolicyLossOutput { grad_log_probs: Some(slopes), ..right.clone() })
}

#[test]
fn where_only_the_gradient_is_wrong_the_term_that_it_lacks_is_told() {
    let report = under_options(erased::of::<PolicyLoss>(), "{}", clipped_and_detached);
    let expected =
        "the term `clipped ratio` were detached (the value is right, its gradient is lost)";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

/// DPO's margin without the rejected side; the rewards are right.
fn without_the_rejected(case: &Shared, right: Shared) -> Shared {
    let (case, right): (&PreferenceLossCase, &PreferenceLossOutput) = (case.typed(), right.typed());
    let none = 0.0 * &case.policy_rejected;
    let alone = PreferenceLossCase {
        policy_rejected: none.clone(),
        ref_rejected: none.clone(),
        ..case.clone()
    };
    Arc::new(PreferenceLossOutput {
        grad_policy_rejected: Some(none),
        chosen_rewards: right.chosen_rewards.clone(),
        rejected_rewards: right.rejected_rewards.clone(),
        ..reference::<PreferenceLoss>(alone, "{}")
    })
}

#[test]
fn a_missing_side_of_a_margin_is_told_as_the_missing_term() {
    let report = under_options(erased::of::<PreferenceLoss>(), "{}", without_the_rejected);
    let expected = "the term `rejected log-ratio` were missing";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

/// DPO's margin with less of the chosen side.
fn less_of_the_chosen(case: &Shared, right: Shared) -> Shared {
    let (case, right): (&PreferenceLossCase, &PreferenceLossOutput) = (case.typed(), right.typed());
    let less = PreferenceLossCase {
        policy_chosen: 0.7 * &case.policy_chosen,
        ref_chosen: 0.7 * &case.ref_chosen,
        ..case.clone()
    };
    let less = reference::<PreferenceLoss>(less, "{}");
    Arc::new(PreferenceLossOutput {
        grad_policy_chosen: less.grad_policy_chosen.as_ref().map(|slopes| 0.7 * slopes),
        chosen_rewards: right.chosen_rewards.clone(),
        ..less
    })
}

#[test]
fn a_factor_within_a_function_is_told_with_its_size() {
    let report = under_options(erased::of::<PreferenceLoss>(), "{}", less_of_the_chosen);
    let expected = "the term `chosen log-ratio` were 0.7 times what it is";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

/// ORPO with half of its likelihood term.
fn half_the_likelihood(case: &Shared, right: Shared) -> Shared {
    let (case, right): (&PairObjectiveCase, &PairObjectiveOutput) = (case.typed(), right.typed());
    let odds = reference::<PairObjective>(case.clone(), "{kind: orpo, sft: false}");
    let between =
        |a: &Option<Array1<f64>>, b: &Option<Array1<f64>>| Some((a.as_ref()? + b.as_ref()?) / 2.0);
    Arc::new(PairObjectiveOutput {
        losses: between(&odds.losses, &right.losses),
        grad_policy_chosen: between(&odds.grad_policy_chosen, &right.grad_policy_chosen),
        grad_policy_rejected: between(&odds.grad_policy_rejected, &right.grad_policy_rejected),
        ..right.clone()
    })
}

#[test]
fn half_of_a_term_is_told_as_its_half() {
    let contract = erased::of::<PairObjective>();
    let report = under_options(contract, "{kind: orpo}", half_the_likelihood);
    let expected = "the term `SFT loss` were 0.5 times what it is";
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

#[test]
fn a_term_that_is_divided_by_another_count_is_told_with_the_count() {
    let over_the_rows = |case: &Shared, right: Shared| -> Shared {
        let (case, right): (&TokenRewardsCase, &TokenRewardsOutput) = (case.typed(), right.typed());
        let free = reference::<TokenRewards>(case.clone(), "{beta: 0}").rewards;
        let rows = case.scores.len() as f64;
        let rewards = &free + (&right.rewards - &free) / rows;
        Arc::new(TokenRewardsOutput { rewards, ..right.clone() })
    };
    let told = "the term `KL penalty` were divided by the length of N instead of nothing";
    is_told_exactly(made(erased::of::<TokenRewards>(), over_the_rows), told);
}

#[test]
fn what_is_done_to_a_term_or_to_an_input_first_is_told() {
    let of_scores = |of: fn(&Array1<f64>) -> Array1<f64>| {
        made(erased::of::<TokenRewards>(), move |case, right| {
            let case: &TokenRewardsCase = case.typed();
            let case = TokenRewardsCase { scores: of(&case.scores), ..case.clone() };
            let rewards = reference::<TokenRewards>(case, "{}").rewards;
            let right: &TokenRewardsOutput = right.typed();
            Arc::new(TokenRewardsOutput { rewards, ..right.clone() })
        })
    };
    let sigmoid = of_scores(|scores| scores.mapv(|x| 1.0 / (1.0 + (-x).exp())));
    is_told_exactly(sigmoid, "the term `score` were its sigmoid");
    let standardised = of_scores(|scores| {
        let centred = scores - scores.mean().unwrap_or(0.0);
        centred / (scores.std(0.0) + 1e-8)
    });
    let told = "the input `scores` were less its mean and over its deviation";
    is_told_exactly(standardised, told);
}

#[test]
fn what_is_done_to_a_row_or_to_all_that_a_mask_keeps_is_told() {
    let whitened = |case: &Shared, right: Shared| -> Shared {
        let (case, right): (&TokenRewardsCase, &TokenRewardsOutput) = (case.typed(), right.typed());
        let kept = || case.mask.iter().zip(&right.rewards).filter(|(kept, _)| **kept);
        let numbers: Array1<f64> = kept().map(|(_, reward)| *reward).collect();
        let (mean, deviation) = (numbers.mean().unwrap_or(0.0), numbers.std(0.0) + 1e-8);
        let mut rewards = right.rewards.clone();
        azip!((reward in &mut rewards, kept in &case.mask) if *kept {
            *reward = (*reward - mean) / deviation;
        });
        Arc::new(TokenRewardsOutput { rewards, ..right.clone() })
    };
    let told =
        "the output `rewards` were less its mean and over its deviation where `mask` is true";
    is_told_exactly(made(erased::of::<TokenRewards>(), whitened), told);
    let times_the_length = |case: &Shared, right: Shared| -> Shared {
        let (case, right): (&TokenRewardsCase, &TokenRewardsOutput) = (case.typed(), right.typed());
        let length = |row: ArrayView1<'_, bool>| row.iter().filter(|kept| **kept).count() as f64;
        let scores = &case.scores * &case.mask.map_axis(Axis(1), length);
        let rewards = reference::<TokenRewards>(TokenRewardsCase { scores, ..case.clone() }, "{}");
        Arc::new(TokenRewardsOutput { rewards: rewards.rewards, ..right.clone() })
    };
    let told = "the input `scores` were multiplied by the true positions of its row of `mask`";
    is_told_exactly(made(erased::of::<TokenRewards>(), times_the_length), told);
}

#[test]
fn a_mask_that_comes_out_one_token_too_long_is_told() {
    let one_more = |_: &Shared, right: Shared| -> Shared {
        let mut output: BatchCollationOutput = right.typed::<BatchCollationOutput>().clone();
        for mut row in output.attention_mask.iter_mut().flat_map(|mask| mask.rows_mut()) {
            let last = row.iter().rposition(|kept| *kept == 1.0);
            if let Some(next) = last.and_then(|last| row.get_mut(last + 1)) {
                *next = 1.0;
            }
        }
        Arc::new(output)
    };
    let told = "the output `attention_mask` were with one token more after each row";
    is_told_exactly(made(erased::of::<BatchCollation>(), one_more), told);
}

/// An extractor of what stands in answer tags, under the default options.
fn extracts(case: &Shared, of: impl Fn(&str) -> Option<String>) -> Shared {
    let case: &AnswerExtractorCase = case.typed();
    let answers: Vec<Option<String>> = case.texts.iter().map(|text| of(text)).collect();
    let output: AnswerExtractorOutput = answers.into();
    Arc::new(output)
}

/// All that stands in answer tags, one after the other.
fn blocks(text: &str) -> Vec<&str> {
    let parts = text.split("<answer>").skip(1);
    parts.filter_map(|part| Some(part.split_once("</answer>")?.0)).collect()
}

fn decodes(case: &Shared, of: impl Fn(&str) -> String) -> Shared {
    let case: &CompletionDecoderCase = case.typed();
    let texts: Vec<String> = case.completions.iter().map(|text| of(text)).collect();
    let output: CompletionDecoderOutput = texts.into();
    Arc::new(output)
}

#[track_caller]
fn is_told_exactly(mut subject: Subject, expected: &str) {
    let report = checked(&mut subject);
    assert_eq!(told(&report), (Strength::Exactly, expected.to_owned()));
}

fn extractor(of: impl Fn(&str) -> Option<String> + Send + 'static) -> Subject {
    made(erased::of::<AnswerExtractor>(), move |case, _| extracts(case, &of))
}

#[test]
fn another_answer_than_the_declared_one_is_told() {
    let longest = |text: &str| {
        let all = blocks(text).into_iter();
        all.rev().max_by_key(|block| block.chars().count()).map(|one| one.trim().to_owned())
    };
    let told = "of several answers the longest were taken";
    is_told_exactly(extractor(longest), told);
}

#[test]
fn an_answer_between_other_places_is_told() {
    let of = |text: &str| Some(text.split_once("</answer>")?.0.trim().to_owned());
    let told = "an answer went from the start of the text to the next closing mark";
    is_told_exactly(extractor(of), told);
}

#[test]
fn what_a_text_without_an_answer_gives_is_told() {
    let of = |text: &str| {
        let right = blocks(text).last().map(|answer| answer.trim().to_owned());
        right.or(Some("[INVALID]".to_owned()))
    };
    let told = "a text without an answer gave \"[INVALID]\"";
    is_told_exactly(extractor(of), told);
}

#[test]
fn what_is_made_of_a_right_answer_is_told() {
    let of = |text: &str| blocks(text).last().map(|answer| answer.trim().to_uppercase());
    let told = "the output `answers` were in upper case";
    is_told_exactly(extractor(of), told);
}

#[test]
fn special_tokens_that_stay_are_told_by_where_they_stand() {
    let at_the_ends = |case: &Shared, _: Shared| {
        decodes(case, |text| {
            let shorter = |text: &'_ str| {
                let cut = |token| text.strip_prefix(token).or_else(|| text.strip_suffix(token));
                ["<pad>", "<eos>"].into_iter().find_map(cut).map(str::to_owned)
            };
            let mut text = text.to_owned();
            while let Some(rest) = shorter(&text) {
                text = rest;
            }
            text.trim().to_owned()
        })
    };
    let told = "special tokens were removed at both ends only";
    is_told_exactly(made(erased::of::<CompletionDecoder>(), at_the_ends), told);
}

#[test]
fn the_marks_that_a_form_asks_for_are_told() {
    let form = |case: &Shared, _: Shared| {
        let case: &RewardFunctionCase = case.typed();
        let has =
            |text: &String| f64::from(text.contains("<answer>") && text.contains("</answer>"));
        let output: RewardFunctionOutput = case.completions.map(has).into();
        Arc::new(output) as Shared
    };
    let mut subject = made(erased::of::<RewardFunction>(), form);
    subject.options = subject.options.with("judges", "format").unwrap();
    let told = "the form were `<answer>` and `</answer>` somewhere, and nothing else";
    is_told_exactly(subject, told);
}

#[test]
fn the_weights_of_the_marks_of_a_form_are_told() {
    let form = |case: &Shared, _: Shared| {
        let case: &RewardFunctionCase = case.typed();
        let once = |text: &str, mark: &str| f64::from(text.matches(mark).count() == 1);
        let score =
            |text: &String| 0.75 * once(text, "<reasoning>") + 0.25 * once(text, "</reasoning>");
        let output: RewardFunctionOutput = case.completions.map(score).into();
        Arc::new(output) as Shared
    };
    let mut subject = made(erased::of::<RewardFunction>(), form);
    subject.options = subject.options.with("judges", "incremental-format").unwrap();
    let told = "the shares of the full score were `<reasoning>` 0.75, `</reasoning>` 0.25, \
                `<answer>` 0, `</answer>` 0, for marks exactly once";
    is_told_exactly(subject, told);
}

/// A permutation of its own, and one copy more of each prompt.
fn another_permutation(case: &Shared, _: Shared) -> Shared {
    let case: &GroupSamplingCase = case.typed();
    let mut prompts = case.prompts.to_vec();
    let key = |id: &i64| (id ^ case.seed[()]).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64);
    prompts.sort_by_key(key);
    let rows: Vec<i64> = prompts.iter().flat_map(|prompt| [*prompt; 3]).collect();
    let output: GroupSamplingOutput = rows.into();
    Arc::new(output)
}

#[test]
fn wrong_counts_have_one_name_whatever_the_permutation() {
    let mut subject = made(erased::of::<GroupSampling>(), another_permutation);
    subject.options = subject.options.with("shuffle", "true").unwrap();
    let report = checked(&mut subject);
    let (strength, told) = told(&report);
    assert_eq!(strength, Strength::Exactly);
    assert_eq!(told, "it had the bug `one-copy-more`");
    let named = |finding: &Finding| finding.diagnosis.iter().all(|one| one.told == told);
    assert!(report.findings.iter().all(named), "{:?}", report.findings);
}

/// The loss of the default options, of errors that may be rounded: the sum over `summed`, divided
/// by the number of tokens under the mask.
fn squared_error(
    case: &ValueLossCase,
    summed: impl Fn(bool) -> bool,
    rounded: impl Fn(f64) -> f64,
) -> Shared {
    let errors = case.values.iter().zip(&case.returns).zip(&case.mask);
    let errors = errors.filter(|(_, kept)| summed(**kept));
    let sum: f64 = errors.map(|((value, target), _)| rounded(0.5 * (value - target).powi(2))).sum();
    let count = case.mask.iter().filter(|kept| **kept).count().max(1);
    let loss: ValueLossOutput = (sum / count as f64).into();
    Arc::new(loss)
}

#[test]
fn a_mask_that_is_in_the_count_and_not_in_the_sum_is_told() {
    let all = |case: &Shared, right: Shared| {
        let case: &ValueLossCase = case.typed();
        if case.mask.iter().any(|kept| *kept) {
            squared_error(case, |_| true, |x| x)
        } else {
            right
        }
    };
    let told = "the input `mask` were true everywhere in sums, and as it is in their counts";
    is_told_exactly(made(erased::of::<ValueLoss>(), all), told);
}

#[test]
fn what_has_no_name_says_that_numbers_of_few_digits_would_do_it() {
    let rounded = |case: &Shared, _: Shared| {
        squared_error(case.typed(), |kept| kept, |x| Dtype::Bf16.round(x))
    };
    let report = checked(&mut made(erased::of::<ValueLoss>(), rounded));
    let finding = report.bugs()[0].head;
    assert!(finding.diagnosis.is_empty(), "{:?}", finding.diagnosis);
    let region = finding.region.as_deref().unwrap_or_default();
    let told = "up and down alike: as by rounding to bf16 or f16 on the way";
    assert!(region.contains(told), "{region}");
}

/// What a known bug of a contract gives, under other options.
fn planted(
    contract: &'static dyn AnyContract,
    id: &'static str,
    other: &'static [(&'static str, &'static str)],
) -> impl Fn(&Shared) -> Shared + Send + use<> {
    let fault = contract.faults().iter().find(|fault| fault.id == id).unwrap();
    let with = |options: Arc<_>, (name, value): &(&str, &str)| {
        AnyOptions::with(&*options, name, value).unwrap()
    };
    let options = other.iter().fold(contract.default_options(), with);
    move |case| fault.variants()[0].output(&**case, &*options, Place::CPU_F32.dtype)
}

#[test]
fn a_bug_beside_another_number_is_told_with_the_number() {
    let contract = erased::of::<Gae>();
    let of = planted(contract, "value-not-subtracted", &[("gamma", "0.6")]);
    let told = "it had the bug `value-not-subtracted`, and `gamma` were 0.6 (declared: 1.0)";
    is_told_exactly(made(contract, move |case, _| of(case)), told);
}

#[test]
fn a_bug_that_shows_rarely_is_told_beside_another_word() {
    let contract = erased::of::<MetricReduction>();
    let of = planted(contract, "equal-targets-explained", &[("unit", "row-mean")]);
    let told = "`unit` were row-mean (declared: token), and it had the bug \
                `equal-targets-explained`";
    is_told_exactly(made(contract, move |case, _| of(case)), told);
}

#[test]
fn where_other_answers_may_be_right_what_gives_the_very_same_is_told() {
    let contract = erased::of::<SequencePacking>();
    is_told_exactly(with(contract, "ignore", "-170"), "`ignore` were -170 (declared: -100)");
    let of = planted(contract, "padding-packed-too", &[("width", "needed")]);
    let told = "it had the bug `padding-packed-too`, and `width` were needed (declared: capacity)";
    is_told_exactly(made(contract, move |case, _| of(case)), told);
}

#[test]
fn where_the_oracle_has_no_say_the_reference_is_compared() {
    let contract = erased::of::<BatchPartition>();
    let of = planted(contract, "last-two-parts-merged", &[("mode", "capacity")]);
    let told = "`mode` were capacity (declared: count), and it had the bug `last-two-parts-merged`";
    is_told_exactly(made(contract, move |case, _| of(case)), told);
}

#[test]
fn one_bug_where_a_list_is_long_and_another_one_elsewhere_are_told_with_the_length() {
    let contract = erased::of::<MetricReduction>();
    let long = planted(contract, "summed-where-averaged", &[]);
    let short = planted(contract, "extremes-start-at-zero", &[]);
    let either = move |case: &Shared, _: Shared| {
        let typed: &MetricReductionCase = case.typed();
        let is_long = typed.shards.iter().any(|shard| shard.mask.nrows() > 2);
        if is_long { long(case) } else { short(case) }
    };
    let report = checked(&mut made(contract, either));
    let bugs = report.bugs();
    let mut names: Vec<&str> = bugs.iter().map(|bug| &*bug.head.diagnosis[0].fault).collect();
    names.sort_unstable();
    let region = "the longest `shards.*.mask` has 3 or more";
    let expected = [
        format!("extremes-start-at-zero where not: {region}"),
        format!("summed-where-averaged where {region}"),
    ];
    assert_eq!(names, expected);
}

#[test]
fn one_bug_is_one_finding_and_one_file() {
    let folder = tempfile::tempdir().unwrap();
    let contract = erased::of::<GroupAdvantage>();
    let ignored = |case: &Shared, _: Shared| {
        let contract = erased::of::<GroupAdvantage>();
        let case: &GroupAdvantageCase = case.typed();
        let mut one = case.clone();
        one.groups.fill(0);
        contract.reference(&one, &*contract.default_options(), Place::CPU_F32.dtype)
    };
    let mut subject = made(contract, ignored);
    subject.corpora = Some(folder.path().to_owned());
    let report = checked(&mut subject);
    assert!(report.findings.len() > 3, "{:?}", report.findings);
    assert_eq!(told(&report).0, Strength::Exactly);
    let found = folder.path().join("group-advantage/found");
    let mut files: Vec<_> = found.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some());
    assert_eq!(files.len(), 1, "{files:?}");
    let file = CaseFile::read(&REGISTRY, &files[0]).unwrap();
    assert_eq!(file.also.len(), report.findings.len() - 1);
    let is_kept = |path: &Option<String>| path.as_deref() == files[0].to_str();
    assert!(report.findings.iter().all(|finding| is_kept(&finding.case_file)));
}
