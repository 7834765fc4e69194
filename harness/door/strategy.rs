//! The cases of a contract as a proptest strategy.

use proptest::strategy::{NewTree, Strategy, ValueTree};
use proptest::test_runner::TestRunner;

/// The cases of a contract as a proptest [`Strategy`], for `proptest!` properties of your own.
/// They shrink as everywhere in shakedown: by value, to the same minimum.
pub fn cases<C: Contract>(options: C::Options, dtype: Dtype) -> Cases<C> {
    Cases { options, dtype }
}

/// See [`cases`].
pub struct Cases<C: Contract> {
    options: C::Options,
    dtype: Dtype,
}

impl<C: Contract> std::fmt::Debug for Cases<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Cases({}, {:?})", C::ID, self.options)
    }
}

impl<C: Contract> Strategy for Cases<C> {
    type Tree = CaseTree<C>;
    type Value = C::Case;

    fn new_tree(&self, runner: &mut TestRunner) -> NewTree<Self> {
        let case = crate::engine::stream::draw::<C>(runner.rng(), &self.options, self.dtype);
        Ok(CaseTree {
            current: case.clone(),
            failing: case,
            candidates: None,
            options: self.options.clone(),
            dtype: self.dtype,
        })
    }
}

/// A walk among the simpler cases of a failing one.
pub struct CaseTree<C: Contract> {
    current: C::Case,
    failing: C::Case,
    candidates: Option<std::vec::IntoIter<C::Case>>,
    options: C::Options,
    dtype: Dtype,
}

impl<C: Contract> CaseTree<C> {
    fn next_candidate(&mut self) -> bool {
        let limit = C::measure(&self.failing);
        let candidates = self.candidates.get_or_insert_with(|| {
            rounded_simpler::<C>(&self.failing, &self.options, self.dtype).into_iter()
        });
        let next = candidates.find(|candidate| {
            C::measure(candidate) < limit && C::valid(candidate, &self.options, self.dtype).is_ok()
        });
        match next {
            Some(candidate) => {
                self.current = candidate;
                true
            }
            None => {
                self.current = self.failing.clone();
                false
            }
        }
    }
}

impl<C: Contract> ValueTree for CaseTree<C> {
    type Value = C::Case;

    fn current(&self) -> C::Case {
        self.current.clone()
    }

    fn simplify(&mut self) -> bool {
        self.failing = self.current.clone();
        self.candidates = None;
        self.next_candidate()
    }

    fn complicate(&mut self) -> bool {
        self.next_candidate()
    }
}
