//! Historical bugs, re-created on tensors from their reports, one a file: shakedown must find each
//! by all the invariants that it names, and say which known fault it behaves like.

use std::sync::Arc;

use shakedown::Error;
use shakedown::author::Contract;
use shakedown::contract::erased;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::place::Place;
use shakedown::report::ComponentReport;
use shakedown_tch::{TensorFunction, Tensors, tch};

/// Declares the modules of the bugs, and the list of them.
macro_rules! zoo {
    ($( $bug:ident ),+ $(,)?) => {
        $( mod $bug; )+

        /// Every bug with its name.
        pub fn all() -> Vec<(&'static str, Bug)> {
            vec![$( (stringify!($bug), $bug::BUG) ),+]
        }
    };
}

zoo! {
    span_of_the_mask,
    precedence,
    stride,
    masked_outcome,
    excluded_row,
    previous_value,
    stale_returns,
    unsorted_mask,
    shifted_dones,
    last_stored_value,
    unmasked_lambda,
    observation_reset,
    padding_in_the_return,
    penalty_of_a_tool,
    statistics_over_padding,
    pads_not_zeroed,
    half_softmax,
    sorted_rows,
    reversed_k3,
    k1_loss,
    k3_loss,
    half_kl,
    kl_rewarded,
    advantages_as_mask,
    sum_of_exponentials,
    sum_over_length,
    sequence_mean,
    empty_row,
    clip_fraction,
    mean_ratio,
    lost_half,
    preferred_rejected,
    swapped_rewards,
    mean_of_means,
    first_count,
    divided_again,
    lost_gradients,
    moved_reference,
    reported_penalty,
    unfiltered_rewards,
    mean_for_a_spread,
    mismatch_of_weights,
    drift_of_tokens,
    logged_unweighted,
    row_of_none,
    odds_of_sums,
    likelihood_left_out,
    discarded_shuffle,
    copies_of_copies,
    maximum_of_zero,
    pads_have_entropy,
    columns_of_the_padded,
    row_shifted,
    ceil_chunks,
    mean_of_rank_means,
    ones_for_tokens,
    falsy_end,
}

/// A historical bug.
pub struct Bug {
    /// The repository, the number there, and the commit that mended it.
    pub source: &'static str,
    /// Where it shows.
    pub place: Place,
    /// The invariants that must find it, in the order of the contract.
    pub found_by: &'static [&'static str],
    /// The fault that it must be diagnosed as.
    pub fault: &'static str,
    check: fn(&Bug, &Budget) -> Result<ComponentReport, Error>,
}

impl Bug {
    /// Checks the code that has the bug.
    ///
    /// # Errors
    /// shakedown could not run.
    pub fn check(&self, budget: &Budget) -> Result<ComponentReport, Error> {
        (self.check)(self, budget)
    }

    fn check_on<C: Contract>(
        &self,
        function: impl TensorFunction<Tensors, C> + Send + 'static,
        options: C::Options,
        budget: &Budget,
    ) -> Result<ComponentReport, Error> {
        let component = erased::component::<C>(tch::<C>(function));
        let mut subject = Subject::new(erased::of::<C>(), self.source, component);
        subject.options = Arc::new(options);
        run(&mut subject, self.place, budget, &|_| ())
    }
}
