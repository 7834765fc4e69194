//! Which prompts were seen: their hashes, never their texts.

use std::collections::HashMap;
use std::collections::HashSet;

use super::hits::{Hits, Place};
use super::text::Hash;

/// Which prompts were seen.
#[derive(Debug, Default)]
pub(super) struct Identity {
    /// By prompt: the answer it had first, where there is one.
    prompts: HashMap<Hash, Option<u64>>,
    /// Rows of which a prompt has several: pairs, completions.
    rows: HashSet<Hash>,
    /// Rows that were seen before.
    pub(super) repeated: Hits,
    /// Rows whose prompt had another answer before.
    pub(super) contradicting: Hits,
    /// How many rows were held against each other.
    pub(super) count: u64,
}

impl Identity {
    pub(super) fn take(
        &mut self,
        prompt: Hash,
        row: Option<Hash>,
        answer: Option<u64>,
        place: Place,
    ) {
        self.count += 1;
        let seen = self.prompts.get_mut(&prompt);
        let is_new = match row {
            Some(row) => self.rows.insert(row),
            None => seen.is_none(),
        };
        self.repeated.add_if(!is_new, place);
        match seen {
            None => {
                self.prompts.insert(prompt, answer);
            }
            Some(first @ None) => *first = answer,
            Some(first) => {
                self.contradicting.add_if(answer.is_some() && answer != *first, place);
            }
        }
    }

    pub(super) fn knows(&self, prompt: Hash) -> bool {
        self.prompts.contains_key(&prompt)
    }

    /// How many prompts are different.
    pub(super) fn distinct(&self) -> usize {
        self.prompts.len()
    }
}
