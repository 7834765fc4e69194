//! The rows that a rule speaks about: how many, and where the first of them are.

use shakedown_core::value::error::cut;

/// Where a row stands: the number of its file, and its line there, or its number where the file has
/// no lines. Both lines and rows are counted from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    pub(super) file: usize,
    pub(super) line: u64,
}

/// So many places are named.
const NAMED: usize = 5;

/// Some rows.
#[derive(Clone, Debug, Default)]
pub(super) struct Hits {
    pub(super) count: u64,
    pub(super) first: Vec<Place>,
    /// The text of the first one, where texts are to be shown.
    pub(super) sample: Option<String>,
}

impl Hits {
    /// One more.
    pub(super) fn add(&mut self, place: Place) {
        self.count += 1;
        if self.first.len() < NAMED {
            self.first.push(place);
        }
    }

    /// One more where something is wrong.
    pub(super) fn add_if(&mut self, is_hit: bool, place: Place) {
        if is_hit {
            self.add(place);
        }
    }

    /// One more, and its text where it is the first and may be shown.
    pub(super) fn add_text(&mut self, place: Place, shown: Option<&str>) {
        self.add(place);
        if let (None, Some(text)) = (&self.sample, shown) {
            self.sample = Some(cut(text));
        }
    }

    /// All of some, in the order of their places.
    pub(super) fn all<'a>(some: impl IntoIterator<Item = &'a Hits>) -> Hits {
        let mut all = Hits::default();
        for hits in some {
            all.count += hits.count;
            all.first.extend(&hits.first);
            all.first.sort_unstable();
            all.first.truncate(NAMED);
        }
        all
    }

    pub(super) fn is_empty(&self) -> bool {
        self.count == 0
    }
}
