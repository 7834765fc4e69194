//! The data sources that verl has a score for.

/// Sources that are scored where no reward function is set.
const SCORED: [&str; 25] = [
    "openai/gsm8k",
    "lighteval/MATH",
    "DigitalLearningGmbH/MATH-lighteval",
    "HuggingFaceH4/MATH-500",
    "math_dapo",
    "math",
    "math_dapo_reasoning",
    "numina_aops_forum",
    "numina_synthetic_math",
    "numina_amc_aime",
    "numina_synthetic_amc",
    "numina_cn_k12",
    "numina_olympiads",
    "codecontests",
    "apps",
    "codeforces",
    "taco",
    "hiyouga/geometry3k",
    "searchR1_nq",
    "searchR1_triviaqa",
    "searchR1_popqa",
    "searchR1_hotpotqa",
    "searchR1_2wikimultihopqa",
    "searchR1_musique",
    "searchR1_bamboogle",
];

/// Whether verl scores a source by itself.
pub(super) fn is_scored(source: &str) -> bool {
    SCORED.contains(&source) || source.starts_with("aime")
}

/// The source that was likely meant.
pub(super) fn nearest(source: &str) -> String {
    shakedown_core::value::error::nearest(source, SCORED)
}
