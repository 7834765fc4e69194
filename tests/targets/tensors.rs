//! What a function on tensors can do wrong, each the right finding; and places that are not here.

use shakedown::author::Contract;
use shakedown::contract::erased;
use shakedown::contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase};
use shakedown::contracts::token_log_probs::{
    TokenLogProbs, TokenLogProbsCase, TokenLogProbsOutput,
};
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::place::Place;
use shakedown::report::{ComponentReport, Status};
use shakedown_targets::{advantage, log_probs};
use shakedown_tch::{TensorFunction, Tensors, tch};
use tch::{Device, Kind, Tensor};

/// Floats in main memory.
const CPU: (Kind, Device) = (Kind::Float, Device::Cpu);

fn report<C: Contract>(
    function: impl TensorFunction<Tensors, C> + Send + 'static,
    place: &str,
) -> ComponentReport {
    let component = erased::component::<C>(tch::<C>(function));
    let mut subject = Subject::new(erased::of::<C>(), "ours", component);
    let budget = Budget { cases: 20, ..Budget::default() };
    run(&mut subject, place.parse().unwrap(), &budget, &|_| ()).unwrap()
}

/// The invariants that a function breaks, and what is said of the first.
fn findings<C: Contract>(
    function: impl TensorFunction<Tensors, C> + Send + 'static,
) -> (Vec<&'static str>, String) {
    let report = report::<C>(function, "cpu/f32");
    let is_broken = |id: &&str| report.findings.iter().any(|finding| finding.invariant == *id);
    let ids = erased::of::<C>().invariants().iter().map(|invariant| invariant.id);
    let broken = ids.filter(is_broken).collect();
    let found = report.findings.first().map_or(String::new(), |finding| finding.found.clone());
    (broken, found)
}

fn grpo(case: &GroupAdvantageCase<Tensors>) -> Tensor {
    advantage::group_advantage(&case.rewards, &case.groups, &Default::default())
}

fn selective(case: &TokenLogProbsCase<Tensors>) -> Tensor {
    log_probs::token_log_probs(&case.logits, &case.tokens, &Default::default())
}

#[test]
fn right_functions_have_no_findings() {
    assert_eq!(findings::<GroupAdvantage>(grpo), (vec![], String::new()));
    assert_eq!(findings::<TokenLogProbs>(selective), (vec![], String::new()));
}

#[test]
fn a_function_may_return_the_record_of_its_outputs() {
    let (broken, found) = findings::<TokenLogProbs>(|case| TokenLogProbsOutput::<Tensors> {
        log_probs: selective(case),
        grad_logits: Some(case.logits.zeros_like()), // not its to give: autograd has it
    });
    assert_eq!((broken, found), (vec![], String::new()));
}

#[test]
fn a_changed_input_is_a_finding() {
    let (broken, found) = findings::<TokenLogProbs>(|case| {
        let log_probs = selective(case);
        let _ = case.logits.detach().g_div_scalar_(2.0);
        log_probs
    });
    assert_eq!(broken, ["inputs-unchanged"]);
    assert_eq!(found, "`logits` is not the same after the call as before");
}

#[test]
fn an_input_of_another_shape_is_a_finding() {
    let (broken, found) = findings::<GroupAdvantage>(|case| {
        let advantages = grpo(case);
        let _ = case.groups.shallow_clone().unsqueeze_(0);
        advantages
    });
    assert_eq!(broken, ["inputs-unchanged"]);
    assert_eq!(found, "`groups` is not the same after the call as before");
}

#[test]
fn a_detached_output_has_no_gradient() {
    let (broken, found) = findings::<TokenLogProbs>(|case| selective(case).detach());
    assert_eq!(broken, ["gradient"]);
    assert!(found.contains("`logits` gets no gradient"), "{found}");
}

#[test]
fn integers_are_not_well_formed() {
    let (broken, found) = findings::<GroupAdvantage>(|case| grpo(case).to_kind(Kind::Int64));
    assert_eq!(broken, ["well-formed"]);
    assert_eq!(found, "`advantages` has dtype Int64, expected a float dtype");
}

#[test]
fn another_shape_is_not_well_formed() {
    let (broken, found) = findings::<GroupAdvantage>(|case| grpo(case).unsqueeze(1));
    assert_eq!(broken, ["well-formed"]);
    assert!(found.contains("expected 1 dimensions, found shape [1, 1]"), "{found}");
    let (broken, found) = findings::<TokenLogProbs>(|case| selective(case).repeat([2, 1]));
    assert_eq!(broken, ["well-formed"]);
    assert!(found.contains("`log_probs` has shape [2, 1], expected [1, 1]"), "{found}");
}

#[test]
fn a_tensor_without_content_is_not_well_formed() {
    let (broken, found) = findings::<TokenLogProbs>(|_| Tensor::new());
    assert_eq!(broken, ["well-formed"]);
    assert_eq!(found, "`log_probs`: missing");
}

#[test]
fn a_panic_is_an_exception() {
    let (broken, found) = findings::<GroupAdvantage>(|case| {
        assert!(case.rewards.numel() != 2, "two completions");
        grpo(case)
    });
    assert_eq!(broken, ["does-not-raise"]);
    let (message, place) = found.split_once('\n').unwrap();
    assert_eq!(message, "raised a panic: two completions");
    assert!(place.contains("tests/targets/tensors.rs:"), "{place}");
}

#[test]
fn an_error_of_libtorch_is_told_without_its_backtrace() {
    let (broken, found) =
        findings::<GroupAdvantage>(|case| case.rewards.matmul(&case.rewards.new_zeros([99], CPU)));
    assert_eq!(broken, ["does-not-raise"]);
    assert!(found.starts_with("raised an error of libtorch: inconsistent tensor size"), "{found}");
    assert!(found.ends_with("1 and 99 elements respectively"), "{found}");
}

#[test]
fn an_error_in_backward_is_an_exception() {
    let (broken, found) = findings::<TokenLogProbs>(|case| {
        let mut log_probs = case.logits.log_softmax(-1, None);
        let picked = log_probs.gather(-1, &case.tokens.unsqueeze(-1), false).squeeze_dim(-1);
        let _ = log_probs.zero_(); // which the softmax has kept for its gradient
        picked
    });
    assert_eq!(broken, ["does-not-raise"]);
    assert!(found.starts_with("raised in backward: "), "{found}");
    assert!(found.contains("modified by an inplace operation"), "{found}");
}

#[test]
fn a_function_gets_tensors_of_the_place() {
    for (place, expected) in
        [("cpu/f64", Kind::Double), ("cpu/bf16", Kind::BFloat16), ("cpu/f16", Kind::Half)]
    {
        let report = report::<GroupAdvantage>(
            move |case| {
                assert_eq!(case.rewards.kind(), expected);
                assert_eq!(case.groups.kind(), Kind::Int64);
                grpo(case)
            },
            place,
        );
        assert_eq!(report.status, Status::Pass, "{place}: {:?}", report.findings);
    }
}

/// On a machine with fewer than 100 GPUs.
#[test]
fn a_cuda_place_that_is_not_here_is_skipped_by_name() {
    let report = report::<GroupAdvantage>(grpo, "cuda:99/bf16");
    assert_eq!(report.status, Status::Skipped);
    assert_eq!(report.place, "cuda:99/bf16".parse::<Place>().unwrap());
    let mut text = Vec::new();
    shakedown::report::text::write_component(&mut text, &report, Default::default()).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert!(text.starts_with("- advantage · ours · cuda:99/bf16   skipped: "), "{text}");
    assert_eq!(report.cases, 0);
}
