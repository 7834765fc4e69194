//! Libraries whose configurations are not read, and forks of those whose are, by names that only
//! they have.

use crate::settings::Library;

/// Another library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Other {
    pub(super) name: &'static str,
    /// The library whose fields it takes, with other defaults and more fields.
    pub(super) fork_of: Option<Library>,
    /// Fields, or mappings that hold some. One of them is enough.
    marks: &'static [&'static str],
}

const OTHERS: [Other; 15] = [
    other("EasyR1", &["worker.actor", "worker.rollout", "worker.reward", "worker.ref"]),
    other("LLaMA-Factory", &["finetuning_type", "cutoff_len", "pref_beta", "plot_loss"]),
    other("axolotl", &["sequence_len", "sample_packing", "dataset_prepared_path"]),
    other("AReaL", &["gconfig", "stats_logger", "allocation_mode", "total_train_epochs"]),
    other("ROLL", &["actor_train", "actor_infer"]),
    other("RLinf", &["cluster.component_placement", "runner.task_type", "algorithm.adv_type"]),
    other(
        "open-instruct",
        &[
            "num_unique_prompts_rollout",
            "num_samples_per_prompt_rollout",
            "dataset_mixer_list",
            "dataset_mix_dir",
        ],
    ),
    other("ms-swift", &["rlhf_type"]),
    other("SkyRL", &["trainer.policy", "trainer.placement", "generator.n_samples_per_prompt"]),
    other("torchtune", &["model._component_", "tokenizer._component_"]),
    // It has verl's fields beside its own, and does not use all of them as verl does.
    other("rllm", &["rllm"]),
    fork(
        "Search-R1",
        Library::Verl,
        &["actor_rollout_ref.rollout.n_agent", "actor_rollout_ref.actor.state_masking"],
    ),
    fork("RAGEN", Library::Verl, &["agent_proxy", "es_manager"]),
    fork("simpleRL", Library::Verl, &["trainer.remove_clip", "trainer.remove_previous_ckpt"]),
    fork("unsloth", Library::Trl, &["vllm_sampling_params", "unsloth_num_chunks"]),
];

const fn other(name: &'static str, marks: &'static [&'static str]) -> Other {
    Other { name, fork_of: None, marks }
}

const fn fork(name: &'static str, of: Library, marks: &'static [&'static str]) -> Other {
    Other { name, fork_of: Some(of), marks }
}

/// A class of the user's own, which is called like one of TRL's.
pub(super) const OWN: Other = other("own configuration", &[]);

/// One of verl's forks, or another version, that is known by nothing else than that.
pub(super) const FORK_OF_VERL: Other = fork("fork of verl", Library::Verl, &[]);

/// The one of this name.
pub(super) fn named(name: &str) -> Option<Other> {
    OTHERS.into_iter().find(|other| other.name == name)
}

/// The one that has some of these fields.
pub(super) fn of<'a>(fields: impl Iterator<Item = &'a str> + Clone) -> Option<Other> {
    let has = |mark: &&str| fields.clone().any(|field| is_in(field, mark));
    OTHERS.into_iter().find(|other| other.marks.iter().any(has))
}

/// Whether a field is the one of this name, or inside of it.
pub(super) fn is_in(field: &str, name: &str) -> bool {
    let field = field.replace('-', "_");
    field.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::fields;

    #[test]
    fn no_mark_is_a_field_of_a_library_that_is_read() {
        let calls = [
            "GRPOConfig",
            "RLOOConfig",
            "DPOConfig",
            "KTOConfig",
            "PPOConfig",
            "verl.trainer.main_ppo",
            "openrlhf.cli.train_ppo_ray",
        ];
        let mut tried = 0;
        for (library, call) in Library::ALL.iter().flat_map(|one| calls.map(|call| (*one, call))) {
            let lists = [fields::known, fields::removed].map(|of| of(library, Some(call)));
            for field in lists.concat() {
                let other = OTHERS.iter().find(|one| one.marks.iter().any(|it| is_in(field, it)));
                assert_eq!(other, None, "{library:?}: {field}");
                tried += 1;
            }
        }
        assert!(tried > 2000, "only {tried} fields");
    }

    #[test]
    fn a_mark_is_a_field_or_the_mapping_that_holds_it() {
        for (field, name, is_it) in [
            ("worker.actor", "worker.actor", true),
            ("worker.actor.optim.lr", "worker.actor", true),
            ("worker.actors", "worker.actor", false),
            ("my.worker.actor", "worker.actor", false),
            ("rlhf-type", "rlhf_type", true),
        ] {
            assert_eq!(is_in(field, name), is_it, "{field} {name}");
        }
    }
}
