//! The rules about data sets, one file each.

use crate::datasets::Dataset;
use crate::rules::rules;

rules! {
    Dataset;
    malformed_row,
    no_prompt,
    prompt_shape,
    roles,
    empty_prompt,
    system_prompt,
    answer_missing,
    placeholder_answer,
    answer_unextracted,
    answer_in_prompt,
    one_answer,
    duplicates,
    contradicting_answers,
    train_test_overlap,
    prompt_too_long,
    too_few_prompts,
    template_mismatch,
    unscored_source,
    pair_equal,
    pair_prompt,
    pair_length,
    gold_not_scored,
}
