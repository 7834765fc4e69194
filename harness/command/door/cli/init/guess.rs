//! Which contract a function of a training repository looks like, by its name and its parameters.

use shakedown_contracts as contracts;

/// One parameter of a function.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    /// Whether a call has to give it.
    pub(super) required: bool,
}

/// What a function was taken for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Guess {
    pub(super) contract: &'static str,
    pub(super) form: Form,
    /// The parameters that the contract can fill, in order: the function's name and the contract's.
    pub(super) arguments: Vec<(String, &'static str)>,
}

/// How a call of the function answers a case of the contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// One call, the names aside.
    Whole,
    /// A call for each row.
    PerRow,
    /// One call for equal groups in adjacent rows, whose size is an argument.
    EqualGroups,
    /// A call for each group.
    OneGroup,
    /// One call for equal groups, which are the rows of a matrix; only a trial tells.
    Matrix,
}

/// Stands for the size of the groups, which is neither an input nor an option.
pub(super) const GROUP_SIZE: &str = "group_size";

/// How functions of a contract look.
struct Look {
    contract: &'static str,
    /// One of these is in the function's name.
    words: &'static [&'static str],
    /// The inputs that it cannot do without.
    inputs: &'static [&'static str],
}

/// The first one that fits counts: those with more inputs come before those with fewer.
const LOOKS: &[Look] = &[
    Look {
        contract: "reward-function",
        words: &["reward", "score", "correct", "accuracy", "format", "verif", "grade"],
        inputs: &["completions"],
    },
    Look {
        contract: "answer-extractor",
        words: &["extract", "parse_answer", "get_answer"],
        inputs: &["texts"],
    },
    Look {
        contract: "token-rewards",
        words: &["reward", "kl"],
        inputs: &["scores", "log_probs", "ref_log_probs", "mask"],
    },
    Look {
        contract: "importance-weights",
        words: &["importance", "correction", "mismatch", "tis", "is_weight"],
        inputs: &["log_probs", "sampler_log_probs", "mask"],
    },
    Look {
        contract: "outcome-advantage",
        words: &["advantage", "grpo", "rloo"],
        inputs: &["token_rewards", "mask", "groups"],
    },
    Look { contract: "gae", words: &["gae", "advantage"], inputs: &["rewards", "values", "mask"] },
    Look {
        contract: "rollout-gae",
        words: &["gae", "advantage"],
        inputs: &["rewards", "values", "dones", "last_values"],
    },
    Look {
        contract: "group-advantage",
        words: &["advantage", "grpo", "rloo", "normalize_rewards", "group_norm"],
        inputs: &["rewards"],
    },
    Look {
        contract: "returns",
        words: &["return", "reward_to_go", "rewards_to_go", "discount"],
        inputs: &["rewards", "mask"],
    },
    Look { contract: "whiten", words: &["whiten"], inputs: &["values", "mask"] },
    Look {
        contract: "token-log-probs",
        words: &["log_prob", "logprob", "logp", "log_softmax"],
        inputs: &["logits", "tokens"],
    },
    Look { contract: "entropy-bonus", words: &["entropy"], inputs: &["logits", "mask"] },
    Look { contract: "token-entropy", words: &["entropy"], inputs: &["logits"] },
    Look {
        contract: "policy-loss",
        words: &["loss", "ppo", "grpo", "policy"],
        inputs: &["log_probs", "old_log_probs", "advantages", "mask"],
    },
    Look { contract: "kl-estimate", words: &["kl"], inputs: &["log_probs", "ref_log_probs"] },
    Look {
        contract: "value-loss",
        words: &["value", "critic"],
        inputs: &["values", "returns", "mask"],
    },
    Look {
        contract: "preference-loss",
        words: &["dpo", "preference", "ipo"],
        inputs: &["policy_chosen", "policy_rejected", "ref_chosen", "ref_rejected"],
    },
];

/// What the inputs and options of contracts are called elsewhere.
const ELSEWHERE: &[(&str, &[&str])] = &[
    ("prompts", &["prompt", "question", "questions", "query", "queries"]),
    ("completions", &["completion", "response", "responses", "solution_str", "generation"]),
    ("completions", &["generations", "output", "outputs", "text", "texts"]),
    ("answers", &["answer", "solution", "solutions", "ground_truth", "ground_truths", "target"]),
    ("answers", &["targets", "gold", "golds", "label", "labels", "reference", "references"]),
    ("texts", &["text", "completion", "completions", "response", "responses", "output"]),
    ("rewards", &["reward", "scores", "group_rewards", "token_level_rewards", "r"]),
    ("token_rewards", &["token_level_rewards", "token_level_scores"]),
    ("groups", &["group_ids", "group_idx", "group", "prompt_ids", "prompt_idx", "uids", "index"]),
    (GROUP_SIZE, &["num_generations", "n_samples_per_prompt", "samples_per_prompt", "n_samples"]),
    (GROUP_SIZE, &["rollouts_per_prompt", "num_samples", "k", "n", "g"]),
    ("mask", &["response_mask", "completion_mask", "loss_mask", "action_mask", "masks"]),
    ("mask", &["attention_mask", "eos_mask"]),
    ("values", &["value", "xs", "x", "values_t"]),
    ("old_values", &["old_value", "values_old"]),
    ("returns", &["return_", "targets", "value_targets"]),
    ("dones", &["done", "terminated", "episode_starts"]),
    ("last_values", &["last_value", "next_value", "bootstrap_value"]),
    ("last_dones", &["last_done", "next_done"]),
    ("logits", &["logit", "scores"]),
    ("tokens", &["labels", "input_ids", "token_ids", "actions", "index", "targets"]),
    ("log_probs", &["logprobs", "log_prob", "logps", "logp", "new_log_probs", "new_logprobs"]),
    ("log_probs", &["per_token_logps", "curr_log_probs", "policy_log_probs"]),
    ("old_log_probs", &["old_logprobs", "old_log_prob", "old_logps", "old_per_token_logps"]),
    ("ref_log_probs", &["ref_logprobs", "ref_log_prob", "ref_logps", "ref_per_token_logps"]),
    ("sampler_log_probs", &["rollout_log_probs", "sampling_log_probs", "vllm_log_probs"]),
    ("sampler_log_probs", &["sampling_logps", "sampling_per_token_logps", "vllm_logprobs"]),
    ("sampler_log_probs", &["generation_logprobs", "inference_logprobs", "behavior_log_probs"]),
    ("scores", &["score", "outcome_rewards", "reward_scores"]),
    ("advantages", &["advantage", "advs", "adv"]),
    ("policy_chosen", &["policy_chosen_logps", "chosen_logps", "policy_chosen_log_probs"]),
    ("policy_rejected", &["policy_rejected_logps", "rejected_logps", "policy_rejected_log_probs"]),
    ("ref_chosen", &["reference_chosen_logps", "ref_chosen_logps", "ref_chosen_log_probs"]),
    ("ref_rejected", &["reference_rejected_logps", "ref_rejected_logps", "ref_rejected_log_probs"]),
    ("epsilon", &["eps"]),
    ("gamma", &["discount", "discount_factor"]),
    ("lam", &["gae_lambda", "lambda_", "lmbda", "lambd"]),
    ("clip_low", &["epsilon", "eps", "clip_eps", "cliprange", "clip_range", "clip_ratio"]),
    ("clip_low", &["epsilon_low", "cliprange_low", "clip_ratio_low", "clip_eps_low"]),
    ("clip_high", &["epsilon_high", "cliprange_high", "clip_ratio_high", "clip_eps_high"]),
    ("beta", &["kl_coef", "kl_beta"]),
];

/// Names for one row of an input that a contract gives for all rows.
const ONE_ROW: &[&str] = &[
    "prompt",
    "question",
    "query",
    "completion",
    "response",
    "solution_str",
    "generation",
    "output",
    "text",
    "answer",
    "solution",
    "ground_truth",
    "target",
    "gold",
    "label",
    "reference",
];

/// The contracts whose functions are often written for one row.
const ROW_BY_ROW: [&str; 2] = ["reward-function", "answer-extractor"];

/// The contract that the function fits, where it fits one.
pub(super) fn guess(function: &str, parameters: &[Parameter]) -> Option<Guess> {
    let function = function.to_lowercase();
    let named = |look: &&Look| look.words.iter().any(|word| function.contains(word));
    LOOKS.iter().filter(named).find_map(|look| fit(look, parameters))
}

fn fit(look: &Look, parameters: &[Parameter]) -> Option<Guess> {
    let names = names_of(look.contract)?;
    let mut arguments: Vec<(String, &'static str)> = Vec::new();
    for Parameter { name, required } in parameters {
        let ours = names.ours(name, look).filter(|ours| arguments.iter().all(|(_, o)| o != ours));
        match ours {
            Some(ours) => arguments.push((name.clone(), ours)),
            None if *required => return None,
            None => {}
        }
    }
    let gives = |input: &str| arguments.iter().any(|(_, ours)| *ours == input);
    if !look.inputs.iter().all(|input| gives(input)) {
        return None;
    }
    let one_row = |(name, _): &(String, _)| ONE_ROW.contains(&&*name.to_lowercase());
    let form = if look.contract == GROUPS {
        match (gives("groups"), gives(GROUP_SIZE)) {
            (true, false) => Form::Whole,
            (true, true) => return None,
            (false, true) => Form::EqualGroups,
            (false, false) => Form::OneGroup,
        }
    } else if ROW_BY_ROW.contains(&look.contract) && arguments.iter().any(one_row) {
        Form::PerRow
    } else {
        Form::Whole
    };
    Some(Guess { contract: look.contract, form, arguments })
}

/// The contract whose functions may know groups by their size only.
const GROUPS: &str = "group-advantage";

/// The names that the contract calls a component with.
pub(super) struct Names {
    pub(super) inputs: Vec<&'static str>,
    pub(super) options: Vec<&'static str>,
}

impl Names {
    /// The contract's name of a parameter.
    fn ours(&self, parameter: &str, look: &Look) -> Option<&'static str> {
        let parameter = parameter.to_lowercase();
        let size = (look.contract == GROUPS).then_some(GROUP_SIZE);
        let known = || self.inputs.iter().chain(&self.options).copied().chain(size);
        let elsewhere = |ours: &&str| {
            let mut lists = ELSEWHERE.iter().filter(|(name, _)| name == ours);
            lists.any(|(_, others)| others.contains(&&*parameter))
        };
        known().find(|ours| *ours == parameter).or_else(|| known().find(elsewhere))
    }
}

/// The option of a contract that the parameter of a constructor is.
pub(super) fn option(contract: &str, parameter: &str) -> Option<&'static str> {
    let names = names_of(contract)?;
    let look = LOOKS.iter().find(|look| look.contract == contract)?;
    names.ours(parameter, look).filter(|ours| names.options.contains(ours))
}

/// The names of a contract.
pub(super) fn names_of(contract: &str) -> Option<Names> {
    let contract = contracts::find(contract)?;
    Some(Names {
        inputs: contract.inputs().iter().map(|field| field.name).collect(),
        options: contract.option_docs().iter().map(|doc| doc.name).collect(),
    })
}

/// The inputs without which there is no call.
pub(super) fn required_inputs(contract: &str) -> Option<Vec<&'static str>> {
    let inputs = contracts::find(contract)?.inputs();
    Some(inputs.iter().filter(|field| !field.optional).map(|field| field.name).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(function: &str, required: &[&str], optional: &[&str]) -> Option<Guess> {
        let parameter =
            |required: bool| move |name: &&str| Parameter { name: (*name).to_owned(), required };
        let mut parameters: Vec<_> = required.iter().map(parameter(true)).collect();
        parameters.extend(optional.iter().map(parameter(false)));
        guess(function, &parameters)
    }

    fn contract_and_form(function: &str, required: &[&str]) -> Option<(&'static str, Form)> {
        of(function, required, &[]).map(|guess| (guess.contract, guess.form))
    }

    #[test]
    fn groups_are_known_by_number_by_size_or_one_at_a_time() {
        let found = |parameters: &[&str]| contract_and_form("grpo_advantages", parameters);
        assert_eq!(found(&["rewards", "group_ids"]), Some(("group-advantage", Form::Whole)));
        assert_eq!(
            found(&["scores", "num_generations"]),
            Some(("group-advantage", Form::EqualGroups))
        );
        assert_eq!(found(&["rewards"]), Some(("group-advantage", Form::OneGroup)));
    }

    #[test]
    fn a_parameter_that_nobody_fills_is_left_out_where_it_may_be() {
        assert_eq!(of("advantages", &["rewards", "tokenizer"], &[]), None);
        let guess = of("advantages", &["rewards", "group"], &["eps", "verbose"]).unwrap();
        let arguments: Vec<_> =
            guess.arguments.iter().map(|(theirs, ours)| (theirs.as_str(), *ours)).collect();
        assert_eq!(arguments, [("rewards", "rewards"), ("group", "groups"), ("eps", "epsilon")]);
    }

    #[test]
    fn a_reward_of_one_row_is_told_from_one_of_all() {
        let found = |parameters: &[&str]| contract_and_form("math_reward", parameters);
        assert_eq!(found(&["completion", "answer"]), Some(("reward-function", Form::PerRow)));
        assert_eq!(found(&["completions", "answers"]), Some(("reward-function", Form::Whole)));
    }

    #[test]
    fn the_more_a_function_takes_the_more_it_does() {
        let found = |function: &str, parameters: &[&str]| {
            contract_and_form(function, parameters).map(|(contract, _)| contract)
        };
        let penalised = ["scores", "log_probs", "ref_log_probs", "mask"];
        assert_eq!(found("kl_rewards", &penalised), Some("token-rewards"));
        assert_eq!(found("kl_rewards", &penalised[1..3]), Some("kl-estimate"));
        let corrected = ["log_probs", "rollout_log_probs", "response_mask"];
        assert_eq!(found("rollout_correction", &corrected), Some("importance-weights"));
        assert_eq!(found("entropy_loss", &["logits", "mask"]), Some("entropy-bonus"));
        assert_eq!(found("entropy", &["logits"]), Some("token-entropy"));
    }

    #[test]
    fn a_name_alone_says_nothing() {
        assert_eq!(contract_and_form("log_rewards", &["step", "writer"]), None);
        assert_eq!(contract_and_form("helper", &["rewards", "groups"]), None);
    }

    /// As `init` says that lines may be moved into one.
    #[test]
    fn a_function_called_like_its_contract_is_known() {
        let source = include_str!("python/scan.py");
        let steps = source.split("STEPS = {").nth(1).unwrap().split("\n}\n").next().unwrap();
        let named = steps.lines().filter_map(|line| line.strip_prefix("    \"")?.split('"').next());
        let contracts: Vec<&str> = named.collect();
        assert!(contracts.len() > 5, "{contracts:?}");
        for contract in contracts {
            let inputs = required_inputs(contract).expect(contract);
            let guess = of(&contract.replace('-', "_"), &inputs, &[]);
            assert_eq!(guess.map(|guess| guess.contract), Some(contract));
        }
    }

    #[test]
    fn every_look_is_of_a_contract_and_of_its_inputs() {
        for look in LOOKS {
            let names = names_of(look.contract).expect(look.contract);
            for input in look.inputs {
                assert!(names.inputs.contains(input), "{}: {input}", look.contract);
            }
        }
    }
}
