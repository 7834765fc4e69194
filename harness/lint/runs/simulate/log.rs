//! What was logged, under the names that a library gives it. What it has no name for is not logged.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use serde::Deserialize;

use super::Row;
use super::bug::Bug;
use crate::settings::Library;

/// What a step logged, by the ids of the metrics.
pub(super) type Logged = Vec<(String, f64)>;

/// What a step logs: only what the library has a name for.
pub(super) struct Log {
    library: Library,
    /// What was logged so far.
    pub(super) row: Logged,
}

impl Log {
    /// An empty one.
    pub(super) fn of(library: Library) -> Log {
        Log { library, row: Logged::new() }
    }

    /// Whether the library has a name for a metric.
    pub(super) fn asks(&self, id: &str) -> bool {
        id.starts_with("eval.") || id.starts_with("reward.part.") || is_named(self.library, id)
    }

    /// Logs a value, where the library asks for it.
    pub(super) fn put(&mut self, id: &str, value: f64) {
        self.ask(id, || value);
    }

    /// The same of one that takes some work.
    pub(super) fn ask(&mut self, id: &str, value: impl FnOnce() -> f64) {
        if self.asks(id) {
            self.row.push((id.to_owned(), value()));
        }
    }
}

/// Rows that are means of several; the step is the last one.
pub(super) fn means(rows: Vec<Logged>, of: usize) -> Vec<Logged> {
    if of <= 1 {
        return rows;
    }
    rows.chunks(of).map(mean).collect()
}

fn mean(rows: &[Logged]) -> Logged {
    let mut means: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for (id, value) in rows.iter().flatten() {
        let (sum, count) = means.entry(id).or_default();
        if id == "step" {
            (*sum, *count) = (*value, 1.0);
        } else {
            (*sum, *count) = (*sum + value, *count + 1.0);
        }
    }
    means.into_iter().map(|(id, (sum, count))| (id.to_owned(), sum / count)).collect()
}

static ALL: LazyLock<HashMap<String, Known>> = LazyLock::new(|| {
    let all: Vec<Known> =
        serde_yaml::from_str(include_str!("../metrics.yaml")).expect("our own file can be read");
    all.into_iter().map(|known| (known.id.clone(), known)).collect()
});

fn is_named(library: Library, id: &str) -> bool {
    ALL.get(id).is_some_and(|known| known.names.contains_key(library.name()))
}

#[derive(Deserialize)]
struct Known {
    id: String,
    #[serde(default)]
    range: String,
    names: HashMap<String, Vec<Name>>,
}

#[derive(Deserialize)]
struct Name {
    name: String,
}

/// The names of one library.
pub(super) struct Names {
    /// By the id: the name, and whether it is a share.
    known: Vec<(String, String, bool)>,
    found: HashMap<String, Option<(String, bool)>>,
}

impl Names {
    /// Those of a library: the first one of each metric.
    pub(super) fn of(library: Library) -> Names {
        let named = |known: &Known| {
            let name = known.names.get(library.name())?.first()?.name.clone();
            Some((known.id.clone(), name, known.range == "0:1"))
        };
        let mut known: Vec<_> = ALL.values().filter_map(named).collect();
        // `reward.part.{name}.std` is more particular than `reward.part.{name}`.
        known.sort_by_key(|(id, _, _)| (std::cmp::Reverse(id.len()), id.clone()));
        Names { known, found: HashMap::new() }
    }

    /// A row under these names.
    pub(super) fn row(&mut self, logged: Logged, bug: Option<Bug>) -> Row {
        let mut row = Row::new();
        for (id, value) in logged {
            if !self.found.contains_key(&id) {
                let found = self.find(&id);
                self.found.insert(id.clone(), found);
            }
            let Some((name, is_share)) = &self.found[&id] else { continue };
            let is_percent = bug == Some(Bug::PercentLogged) && *is_share;
            let value = if is_percent { 100.0 * value } else { value };
            row.push(written(name, value));
        }
        row
    }

    fn find(&self, id: &str) -> Option<(String, bool)> {
        self.known.iter().find_map(|(known, name, is_share)| {
            let own = match known.split_once("{name}") {
                None => return (known == id).then(|| (name.clone(), *is_share)),
                Some((before, after)) => id.strip_prefix(before)?.strip_suffix(after)?,
            };
            Some((name.replace("{name}", own), *is_share))
        })
    }
}

/// `1-NAME` and `NAME/100` say how a log differs from the metric.
fn written(name: &str, value: f64) -> (String, f64) {
    let (name, value) = match name.strip_prefix("1-") {
        Some(name) => (name, 1.0 - value),
        None => (name, value),
    };
    let divided =
        name.rsplit_once('/').and_then(|(name, by)| Some((name, by.parse::<f64>().ok()?)));
    match divided {
        Some((name, by)) => (name.to_owned(), by * value),
        None => (name.to_owned(), value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::names::meaning;
    use crate::runs::simulate::plans::LIBRARIES;

    #[test]
    fn what_is_written_is_read_as_what_it_was() {
        for library in LIBRARIES {
            let mut names = Names::of(library);
            let ids =
                ["reward.mean", "reward.part.correct", "kl.ref", "groups.flat", "groups.kept"];
            for id in ids {
                for (name, value) in names.row(vec![(id.to_owned(), 0.25)], None) {
                    let meaning = meaning(&name).unwrap_or_else(|| panic!("{name} is not known"));
                    assert_eq!((meaning.id.as_str(), meaning.convert.apply(value)), (id, 0.25));
                }
            }
        }
    }

    #[test]
    fn a_mean_has_the_last_step() {
        let row = |step: f64, x: f64| vec![("step".to_owned(), step), ("lr".to_owned(), x)];
        let means = means(vec![row(1.0, 1.0), row(2.0, 3.0), row(3.0, 5.0)], 2);
        let expected = [[("lr", 2.0), ("step", 2.0)], [("lr", 5.0), ("step", 3.0)]];
        let expected = expected.map(|row| row.map(|(id, x)| (id.to_owned(), x)).to_vec());
        assert_eq!(means, expected);
    }
}
