//! The bugs that a simulated training can have. Each is one switch in the code that trains.

use shakedown_core::value::text::{bytes, dashed};

macro_rules! bugs {
    ($( $(#[$doc:meta])+ $variant:ident $name:ident ),+ $(,)?) => {
        /// A bug of a training loop, or a setting that ruins it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Bug {
            $( $(#[$doc])+ $variant ),+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &[Bug] = &[$( Bug::$variant ),+];

            /// Its id: `advantage-negated`.
            pub fn id(self) -> &'static str {
                match self {
                    $( Bug::$variant => const {
                        const NAME: &[u8] =
                            &bytes::<{ stringify!($name).len() }>(stringify!($name));
                        dashed(NAME)
                    } ),+
                }
            }
        }
    };
}

bugs! {
    /// Gradients in half precision overflow; the weights are not finite from then on.
    Fp16Overflow fp16_overflow,
    /// Shares are logged as percentages.
    PercentLogged percent_logged,
    /// The entropy is summed over the tokens of a batch.
    EntropySummed entropy_summed,
    /// The KL term has the wrong sign.
    KlSign kl_sign,
    /// One part of the reward is missing in the sum of some batches.
    PartDropped part_dropped,
    /// No gradient reaches the weights.
    Frozen frozen,
    /// Rounding noise of groups of one reward is divided by its own deviation.
    NoiseNormalised noise_normalised,
    /// The mean of the group is not subtracted.
    NoBaseline no_baseline,
    /// The old log-probabilities are computed with dropout.
    DropoutInOld dropout_in_old,
    /// The old log-probabilities are those of the current policy.
    OldIsCurrent old_is_current,
    /// The reference shares the weights of the policy.
    ReferenceShared reference_shared,
    /// The reference is the policy of one step ago.
    ReferenceFollows reference_follows,
    /// The reference computes with dropout.
    DropoutInReference dropout_in_reference,
    /// The reference has other weights than the start.
    ReferenceDiffers reference_differs,
    /// The scorer gives everything the same.
    ScorerConstant scorer_constant,
    /// One reward function never matches.
    PartConstant part_constant,
    /// Nearly no prompt can be answered.
    TooHard too_hard,
    /// Nearly every prompt is answered right from the start.
    TooEasy too_easy,
    /// The policy does not see the prompt, so that it has one answer for all.
    OneAnswer one_answer,
    /// Rewards belong to other rows.
    RewardsShuffled rewards_shuffled,
    /// The advantage has the wrong sign.
    AdvantageNegated advantage_negated,
    /// The loss has the wrong sign.
    LossNegated loss_negated,
    /// The learning rate grows at each step, and becomes far too high.
    RateTooHigh rate_too_high,
    /// It grows, and neither ratios nor gradients are bounded.
    UpdatesUnclipped updates_unclipped,
    /// What is scored is not what is meant.
    ProxyHacked proxy_hacked,
    /// Long completions are paid for.
    LengthPays length_pays,
    /// Each token costs too much.
    LengthPenalised length_penalised,
    /// The engine may not sample the end of the text.
    EosBanned eos_banned,
    /// Completions do not fit.
    LimitTooSmall limit_too_small,
    /// Decoding leaves nothing of some completions.
    CompletionsBlanked completions_blanked,
    /// Prompts do not fit.
    PromptsTooLong prompts_too_long,
    /// The log-ratio of the KL estimate is not clamped.
    KlUnclamped kl_unclamped,
    /// The weight of the KL is far too large.
    BetaHuge beta_huge,
    /// The entropy bonus has the wrong sign.
    EntropyLost entropy_lost,
    /// The same, with four rows in the log.
    EntropyLostAtOnce entropy_lost_at_once,
    /// The entropy bonus is far too large.
    BonusHuge bonus_huge,
    /// The old log-probabilities come from weights of many steps ago.
    OldStale old_stale,
    /// Now and then an old log-probability is far off.
    GradientOutliers gradient_outliers,
    /// The weight of the loss is reduced at every step and never reset.
    GradientDecays gradient_decays,
    /// Gradients are clipped to nearly nothing.
    LimitTiny limit_tiny,
    /// The schedule ends before the run.
    ScheduleShort schedule_short,
    /// The optimiser has another learning rate than the configured one.
    RateOverwritten rate_overwritten,
    /// The log ends long before the configured steps.
    StoppedEarly stopped_early,
    /// The learning rate is that of another kind of model.
    Rate1e2 rate_1e_2,
    /// The engine samples at another temperature.
    EngineDiffers engine_differs,
    /// The engine keeps the weights with which it started.
    WeightsNotSynchronised weights_not_synchronised,
    /// Importance weights are products over the completion of an engine that differs.
    WeightsHeavy weights_heavy,
    /// Rollouts wait in a long queue.
    QueueDeep queue_deep,
    /// The critic is not trained.
    CriticFrozen critic_frozen,
    /// The critic's targets are much larger than what its learning rate is for.
    TargetsUnscaled targets_unscaled,
    /// No gradient reaches the weights of a policy that learns from pairs.
    DpoFrozen dpo_frozen,
    /// The margin is logged times β once more.
    MarginScaled margin_scaled,
    /// Chosen and rejected are swapped.
    DpoSwapped dpo_swapped,
    /// Which one of a pair is chosen is drawn by lot.
    LabelsNoise labels_noise,
    /// The rejected ones repeat what the chosen ones consist of.
    LikelihoodDisplaced likelihood_displaced,
    /// The parser of actions expects a mark that the policy has no token for.
    ActionsInvalid actions_invalid,
    /// The run starts again from a checkpoint.
    Restarted restarted,
    /// The task is learned before the run ends.
    EasyTask easy_task,
}
