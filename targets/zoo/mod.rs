//! Historical bugs, re-created on tensors from their reports, one a file: shakedown must find each
//! by exactly the invariants that it names, and say which known fault it behaves like.

mod half_softmax;
mod observation_reset;
mod padding_in_the_return;
mod penalty_of_a_tool;
mod precedence;
mod stride;

use shakedown::check::{Budget, Subject, run};
use shakedown::contract::Contract;
use shakedown::error::Error;
use shakedown::place::Place;
use shakedown::report::ComponentReport;
use shakedown::tensor::{TensorFunction, tch};

/// Every bug.
pub fn all() -> Vec<Bug> {
    vec![
        precedence::BUG,
        stride::BUG,
        observation_reset::BUG,
        padding_in_the_return::BUG,
        penalty_of_a_tool::BUG,
        half_softmax::BUG,
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
