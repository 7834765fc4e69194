//! Historical bugs, re-created on tensors from their reports, one a file: shakedown must find each
//! by all the invariants that it names, and say which known fault it behaves like.

mod advantages_as_mask;
mod clip_fraction;
mod divided_again;
mod empty_row;
mod excluded_row;
mod first_count;
mod half_kl;
mod half_softmax;
mod k1_loss;
mod k3_loss;
mod kl_rewarded;
mod last_stored_value;
mod lost_gradients;
mod lost_half;
mod masked_outcome;
mod mean_of_means;
mod mean_ratio;
mod moved_reference;
mod observation_reset;
mod padding_in_the_return;
mod pads_not_zeroed;
mod penalty_of_a_tool;
mod precedence;
mod preferred_rejected;
mod previous_value;
mod reversed_k3;
mod sequence_mean;
mod shifted_dones;
mod sorted_rows;
mod span_of_the_mask;
mod stale_returns;
mod statistics_over_padding;
mod stride;
mod sum_of_exponentials;
mod sum_over_length;
mod swapped_rewards;
mod unmasked_lambda;
mod unsorted_mask;

use shakedown::contract::Contract;
use shakedown::engine::check::run;
use shakedown::engine::subject::{Budget, Subject};
use shakedown::host::tensor::{TensorFunction, tch};
use shakedown::report::ComponentReport;
use shakedown::value::error::Error;
use shakedown::value::place::Place;

/// Every bug.
pub fn all() -> Vec<Bug> {
    vec![
        span_of_the_mask::BUG,
        precedence::BUG,
        stride::BUG,
        masked_outcome::BUG,
        excluded_row::BUG,
        previous_value::BUG,
        stale_returns::BUG,
        unsorted_mask::BUG,
        shifted_dones::BUG,
        last_stored_value::BUG,
        unmasked_lambda::BUG,
        observation_reset::BUG,
        padding_in_the_return::BUG,
        penalty_of_a_tool::BUG,
        statistics_over_padding::BUG,
        pads_not_zeroed::BUG,
        half_softmax::BUG,
        sorted_rows::BUG,
        reversed_k3::BUG,
        k1_loss::BUG,
        k3_loss::BUG,
        half_kl::BUG,
        kl_rewarded::BUG,
        advantages_as_mask::BUG,
        sum_of_exponentials::BUG,
        sum_over_length::BUG,
        sequence_mean::BUG,
        empty_row::BUG,
        clip_fraction::BUG,
        mean_ratio::BUG,
        lost_half::BUG,
        preferred_rejected::BUG,
        swapped_rewards::BUG,
        mean_of_means::BUG,
        first_count::BUG,
        divided_again::BUG,
        lost_gradients::BUG,
        moved_reference::BUG,
    ]
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
        function: impl TensorFunction<C> + 'static,
        options: C::Options,
        budget: &Budget,
    ) -> Result<ComponentReport, Error> {
        let mut subject = Subject::new(self.source, tch::<C>(function));
        subject.options = options;
        run(&mut subject, self.place, budget, &|_| ())
    }
}
