//! A list of contracts by name: what the engine looks names up in.

use super::erased::AnyContract;
use crate::value::error;

/// Contracts by name, in pipeline order.
#[derive(Clone, Copy, Debug)]
pub struct Registry {
    ids: &'static [&'static str],
    find: fn(&str) -> Option<&'static dyn AnyContract>,
}

impl Registry {
    /// A registry of these ids; `find` returns the contract of each.
    pub const fn new(
        ids: &'static [&'static str],
        find: fn(&str) -> Option<&'static dyn AnyContract>,
    ) -> Registry {
        Registry { ids, find }
    }

    /// The contract of this name.
    ///
    /// # Errors
    /// There is none: the message, with the nearest known name.
    pub fn get(&self, id: &str) -> Result<&'static dyn AnyContract, String> {
        (self.find)(id).ok_or_else(|| error::unknown("contract", id, self.ids))
    }

    /// Every contract.
    ///
    /// # Panics
    /// If a name is listed that `find` does not know.
    pub fn all(&self) -> impl Iterator<Item = &'static dyn AnyContract> {
        self.ids.iter().map(|id| (self.find)(id).expect("the list names known contracts"))
    }
}
