//! The cells of one row of text, in memory that serves every row.

use crate::runs::formats::literal::Leaf;
use crate::runs::recorder::LONGEST_NAME;
use crate::runs::row::Cell;

/// Names and numbers of a row.
#[derive(Default)]
pub(super) struct Cells {
    names: String,
    cells: Vec<(usize, f64, Option<u32>)>,
}

impl Cells {
    /// Forgets the row before.
    pub(super) fn clear(&mut self) {
        self.names.clear();
        self.cells.clear();
    }

    /// Whether the row has no number.
    pub(super) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Adds a number that stands in the log as a text.
    pub(super) fn push(&mut self, name: &str, value: f64, text: &str) {
        if name.len() > LONGEST_NAME {
            // One such name may stand before thousands of nested ones.
            return;
        }
        self.names.push_str(name);
        let decimals = if value.is_finite() { decimals(text) } else { None };
        self.cells.push((self.names.len(), value, decimals));
    }

    /// Adds a leaf, where it is a number.
    pub(super) fn leaf(&mut self, name: &str, leaf: &Leaf<'_>) {
        match leaf {
            Leaf::Number(value, text) => self.push(name, *value, text),
            // `5/500`: a step and how many there will be.
            Leaf::Text(text) if name == "global_step/max_steps" => {
                let step = text.split_once('/').and_then(|(step, _)| step.parse().ok());
                if let Some(step) = step {
                    self.push(name, step, "");
                }
            }
            _ => {}
        }
    }

    /// The names and the cells. A row is rounded where all its numbers with a point have the same
    /// two to four decimals: Python writes as many as it takes, or one.
    pub(super) fn iter(&self) -> impl Iterator<Item = (&str, Cell)> {
        let mut all = self.cells.iter().filter_map(|(_, _, decimals)| *decimals);
        let first = all.next().filter(|first| (2..=4).contains(first));
        let rounded = first.filter(|first| all.all(|decimals| decimals == *first));
        let mut start = 0;
        self.cells.iter().map(move |(end, value, decimals)| {
            let name = &self.names[start..*end];
            start = *end;
            let resolution = match (rounded, decimals) {
                (Some(digits), Some(_)) => 0.5 * 0.1_f64.powi(digits.cast_signed()),
                _ => 0.0,
            };
            (name, Cell { value: *value, resolution })
        })
    }
}

/// How many decimals a number is written with; of one with an exponent as many as there can be.
fn decimals(text: &str) -> Option<u32> {
    if text.contains(['e', 'E']) {
        return Some(u32::MAX);
    }
    let (_, after) = text.split_once('.')?;
    Some(after.len() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolutions(texts: &[&str]) -> Vec<f64> {
        let mut cells = Cells::default();
        for text in texts {
            cells.push("name", text.parse().unwrap(), text);
        }
        cells.iter().map(|(_, cell)| cell.resolution).collect()
    }

    #[test]
    fn numbers_with_the_same_few_decimals_are_rounded() {
        let found = resolutions(&["0.000", "12.500", "7", "nan"]);
        assert!((found[0] - 5e-4).abs() < 1e-12 && (found[1] - 5e-4).abs() < 1e-12);
        assert_eq!(found[2..], [0.0, 0.0]);
    }

    #[test]
    fn numbers_with_as_many_decimals_as_it_takes_are_exact() {
        assert_eq!(resolutions(&["0.0", "1.5"]), [0.0, 0.0]);
        assert_eq!(resolutions(&["0.25", "0.125"]), [0.0, 0.0]);
        assert_eq!(resolutions(&["0.25", "1e-06"]), [0.0, 0.0]);
    }
}
