//! Terms: numbers of a reference that have a name on its tape, so that a diagnosis can leave one
//! out, scale it or detach it, and see what comes of that.
//!
//! ```
//! # use shakedown_core::numeric::tape::Tape;
//! # use shakedown_core::numeric::terms::{Alteration, TermChange, altered, named_in};
//! # use shakedown_core::value::place::Dtype;
//! fn loss(x: f64) -> f64 {
//!     let tape = Tape::new(Dtype::F64);
//!     let x = tape.constant(x);
//!     (x.term("policy loss") + (x * x).term("KL penalty")).value
//! }
//! assert_eq!(named_in(|| loss(3.0)), ["policy loss", "KL penalty"]);
//! let negated = Alteration { term: "KL penalty", change: TermChange::Times(-1.0) };
//! assert_eq!(altered(&[negated], || loss(3.0)), 3.0 - 9.0);
//! assert_eq!(loss(3.0), 3.0 + 9.0);
//! ```

use std::cell::RefCell;
use std::rc::Rc;

use crate::numeric::function::Function;

/// What becomes of a term.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TermChange {
    /// It is multiplied by a number; 0: it is missing.
    Times(f64),
    /// It goes through a function, and so does its gradient.
    Through(Function),
    /// It has its value, and no gradient.
    Detached,
}

/// A term that is otherwise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Alteration {
    /// Its name.
    pub term: &'static str,
    /// What becomes of it.
    pub change: TermChange,
}

/// What the tapes that are made while a function runs do about terms.
#[derive(Debug, Default)]
pub(super) struct Scope {
    alterations: Vec<Alteration>,
    /// The names that came up, in the order in which they did.
    named: RefCell<Vec<&'static str>>,
}

thread_local! {
    /// The innermost scope of this thread.
    static CURRENT: RefCell<Option<Rc<Scope>>> = const { RefCell::new(None) };
}

impl Scope {
    /// That of the function that runs, if any.
    pub(super) fn current() -> Option<Rc<Scope>> {
        CURRENT.with_borrow(Option::clone)
    }

    /// Takes down a name; what becomes of its term.
    pub(super) fn change_of(&self, term: &'static str) -> Option<TermChange> {
        let mut named = self.named.borrow_mut();
        if !named.contains(&term) {
            named.push(term);
        }
        let of_term = self.alterations.iter().find(|one| one.term == term);
        of_term.map(|one| one.change)
    }
}

/// A number under a name from the field, where a reference computes without a tape; see
/// [`Var::term`](crate::numeric::tape::Var::term). It has no gradient that could be detached.
pub fn term(name: &'static str, number: f64) -> f64 {
    match Scope::current().and_then(|scope| scope.change_of(name)) {
        // 0·∞ would be NaN, and what is missing is not.
        Some(TermChange::Times(0.0)) => 0.0,
        Some(TermChange::Times(factor)) => number * factor,
        Some(TermChange::Through(function)) => function.of(number),
        None | Some(TermChange::Detached) => number,
    }
}

/// Puts back the scope that was there before, also where a reference panics.
struct Before(Option<Rc<Scope>>);

impl Drop for Before {
    fn drop(&mut self) {
        CURRENT.replace(self.0.take());
    }
}

fn within<R>(scope: Rc<Scope>, function: impl FnOnce() -> R) -> R {
    let _before = Before(CURRENT.replace(Some(scope)));
    function()
}

/// What a function gives where these terms are otherwise on every tape that it makes.
pub fn altered<R>(alterations: &[Alteration], function: impl FnOnce() -> R) -> R {
    within(Rc::new(Scope { alterations: alterations.to_vec(), ..Scope::default() }), function)
}

/// The names of the terms on the tapes that a function makes, the first one first.
pub fn named_in<R>(function: impl FnOnce() -> R) -> Vec<&'static str> {
    let scope = Rc::new(Scope::default());
    within(Rc::clone(&scope), function);
    scope.named.take()
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use ndarray::arr1;

    use super::*;
    use crate::numeric::tape::Tape;
    use crate::value::place::Dtype;

    /// 2x + x², the value and its slope.
    fn sum(x: f64) -> (f64, f64) {
        let tape = Tape::new(Dtype::F64);
        let leaf = tape.leaf(&arr1(&[x]));
        let sum = (leaf[0] * 2.0).term("line") + (leaf[0] * leaf[0]).term("square");
        (sum.value, tape.gradient(sum, &leaf)[0])
    }

    fn with(term: &'static str, change: TermChange) -> (f64, f64) {
        altered(&[Alteration { term, change }], || sum(3.0))
    }

    #[test]
    fn a_term_is_left_out_scaled_or_detached_with_the_gradient_that_follows() {
        assert_eq!(sum(3.0), (15.0, 8.0));
        assert_eq!(with("square", TermChange::Times(0.0)), (6.0, 2.0));
        assert_eq!(with("square", TermChange::Times(-1.0)), (-3.0, -4.0));
        assert_eq!(with("line", TermChange::Times(0.5)), (12.0, 7.0));
        assert_eq!(with("line", TermChange::Detached), (15.0, 6.0));
        assert_eq!(with("square", TermChange::Through(Function::Root)), (9.0, 3.0));
        assert_eq!(with("another", TermChange::Detached), (15.0, 8.0));
    }

    #[test]
    fn a_missing_term_is_0_where_it_was_infinite_too() {
        let missing = Alteration { term: "infinite", change: TermChange::Times(0.0) };
        let value = altered(&[missing], || {
            let tape = Tape::new(Dtype::F64);
            (tape.constant(f64::INFINITY).term("infinite") + 1.0).value
        });
        assert_eq!(value, 1.0);
    }

    #[test]
    fn a_plain_number_is_a_term_too() {
        let value = || term("line", 2.0) + term("infinite", f64::INFINITY);
        assert_eq!(value(), f64::INFINITY);
        assert_eq!(named_in(value), ["line", "infinite"]);
        let changed = |term, change| altered(&[Alteration { term, change }], value);
        assert_eq!(changed("infinite", TermChange::Times(0.0)), 2.0);
        assert_eq!(changed("infinite", TermChange::Detached), f64::INFINITY);
        let negated = Alteration { term: "line", change: TermChange::Times(-1.0) };
        assert_eq!(altered(&[negated], || term("line", 2.0)), -2.0);
        let most = TermChange::Through(Function::Limited(0.0, 5.0));
        assert_eq!(changed("infinite", most), 7.0);
    }

    #[test]
    fn what_is_altered_ends_with_the_function_also_where_it_panics() {
        let negated = Alteration { term: "line", change: TermChange::Times(-1.0) };
        let panics = || altered(&[negated], || panic!("on purpose"));
        catch_unwind(AssertUnwindSafe(panics)).expect_err("it panics");
        assert_eq!(sum(3.0), (15.0, 8.0));
        // Within another one, that one is there again.
        let both = altered(&[negated], || (with("square", TermChange::Times(0.0)), sum(3.0)));
        assert_eq!(both, ((6.0, 2.0), (3.0, 4.0)));
    }
}
