//! What must hold of `reward-function`: the laws that apply, and one file for each of its own.

use crate::reward_function::RewardFunction;
use shakedown_core::contract::prelude::*;
use shakedown_core::laws;

/// Every invariant of the contract, in the order in which they are checked.
pub(super) fn all() -> Vec<Invariant<RewardFunction>> {
    let mut all = laws::universal_and(&[
        ("does-not-raise", &["raises-without-tags"]),
        ("finite", &["no-score-without-tags"]),
    ]);
    all.extend([
        laws::row_permutation::law().catching(&["mini-batch-slices-the-mapping"]),
        laws::row_split::law()
            .catching(&["prompts-of-other-rows", "mini-batch-slices-the-mapping"]),
    ]);
    all.extend(own());
    all
}

invariants! {
    RewardFunction;
    in_range,
    well_formed_is_the_maximum,
    empty_completion,
    wrong_scores_less,
    zero_is_a_score,
    gold_in_the_prompt,
    reasoning_irrelevant,
    answer_irrelevant,
    one_more_tag,
    every_tag_counts,
    answers_repeated,
    candidates,
    empty_answer,
    gold_in_the_reasoning,
    blank_gold,
    trailing_text,
    closed_twice,
}
