//! A document, parsed once: a tree of which each node and each key knows its place.

use std::cell::Cell;

use serde::de::{DeserializeOwned, IgnoredAny};

use super::events::Place;
use super::failed::{Failed, Trail};
use super::line_and_column;
use super::reader::Reader;
use super::tree::{Tree, Value};
use super::words::{in_our_words, located};
use crate::value::error::Error;

/// A parsed document. Whatever is wrong with it, reading says so, after what it finds before that.
#[derive(Debug)]
pub struct Document {
    tree: Tree,
    /// Why the text is not one document of YAML.
    trouble: Option<Error>,
    lines: usize,
    end: (usize, usize),
}

/// A step into a document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The value of a key.
    Key(&'a str),
    /// The key itself, as the last step; for [`Document::wrong`].
    Name(&'a str),
    /// An item of a list.
    Item(usize),
}

impl Document {
    /// Parses a text.
    pub fn new(text: &str) -> Document {
        let (tree, whole) = Tree::new(text);
        // The parser's own words for what is wrong; they say nothing of a tree.
        let trouble = || {
            let error = serde_yaml::from_str::<IgnoredAny>(text).err();
            located(text, &error.expect("one parser reads both times"))
        };
        Document {
            tree,
            trouble: if whole { None } else { Some(trouble()) },
            lines: text.split('\n').count(),
            end: line_and_column(text.as_bytes(), text.len()),
        }
    }

    /// Reads the whole of it.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Error> {
        self.read_node(self.tree.root, Trail::Root)
    }

    /// Reads the part at the end of `steps`, or the default where there is none. So that what only
    /// a contract can read (options, a case) has errors with line and column too.
    ///
    /// # Errors
    /// With line, column and the nearest known name.
    pub fn read_at<T: DeserializeOwned + Default>(&self, steps: &[Step<'_>]) -> Result<T, Error> {
        let Some(node) = self.find(steps) else { return Ok(T::default()) };
        // All steps but the last say nothing new to who asked.
        let trail = match steps.last() {
            Some(Step::Key(key) | Step::Name(key)) => Trail::Key(&Trail::Root, key),
            Some(Step::Item(index)) => Trail::Item(&Trail::Root, *index),
            None => Trail::Root,
        };
        self.read_node(node, trail)
    }

    fn read_node<T: DeserializeOwned>(&self, node: usize, trail: Trail<'_>) -> Result<T, Error> {
        let jumps = Cell::new(0);
        match (T::deserialize(Reader::new(&self.tree, node, trail, &jumps)), &self.trouble) {
            (Ok(_) | Err(Failed::Cut), Some(trouble)) => Err(trouble.clone()),
            (Ok(read), None) => Ok(read),
            (Err(Failed::Cut), None) => unreachable!("the text is cut where it is in trouble"),
            (Err(Failed::Aliases), _) => Err(Error::new(Failed::Aliases.to_string())),
            (Err(Failed::Wrong { message, place, trail }), _) => {
                let error = Error::new(in_our_words(&message));
                let error = if trail.is_empty() { error } else { error.within(trail) };
                Err(match place.map(|place| self.inside(place)) {
                    Some((line, column)) => error.line(line, column),
                    None => error,
                })
            }
        }
    }

    /// The line of a part, counted from 1; that of its beginning where it is not there.
    pub fn line(&self, steps: &[Step<'_>]) -> usize {
        self.find(steps).map_or(1, |node| self.inside(self.tree.nodes[node].place).0)
    }

    /// An error about a part: where it is, or else where the part around it is.
    pub fn wrong(&self, steps: &[Step<'_>], why: impl Into<String>) -> Error {
        let around = (0..=steps.len()).rev().find_map(|count| self.find(&steps[..count]));
        let (line, column) = self.inside(self.tree.nodes[around.unwrap_or(self.tree.root)].place);
        Error::new(why).line(line, column)
    }

    /// The node at the end of steps.
    fn find(&self, steps: &[Step<'_>]) -> Option<usize> {
        steps.iter().try_fold(self.unfolded(self.tree.root), |node, step| {
            let next = match (step, &self.tree.nodes[node].value) {
                (Step::Item(index), Value::List(items)) => items.get(*index).copied(),
                (Step::Key(key), Value::Map(entries)) => self.entry(entries, key).map(|(_, v)| v),
                (Step::Name(key), Value::Map(entries)) => self.entry(entries, key).map(|(k, _)| k),
                _ => None,
            };
            next.map(|node| self.unfolded(node))
        })
    }

    /// A key of a mapping, and its value.
    fn entry(&self, entries: &[usize], key: &str) -> Option<(usize, usize)> {
        let is_key = |node: usize| match &self.tree.nodes[self.unfolded(node)].value {
            Value::Scalar { text, .. } => text == key,
            _ => false,
        };
        entries.chunks_exact(2).find(|entry| is_key(entry[0])).map(|entry| (entry[0], entry[1]))
    }

    /// The node, or that which it is an alias of.
    fn unfolded(&self, node: usize) -> usize {
        match self.tree.nodes[node].value {
            Value::Alias(anchor) => anchor,
            _ => node,
        }
    }

    /// A place inside the text: the parser counts one more line where the last one has no end.
    fn inside(&self, place: Place) -> (usize, usize) {
        if place.line <= self.lines { (place.line, place.column) } else { self.end }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;

    use super::*;

    type Yaml = serde_yaml::Value;

    #[test]
    fn every_spelling_is_read_as_the_yaml_library_reads_it() {
        let texts = [
            "",
            "~",
            "null",
            "NULL",
            "nul",
            "true",
            "False",
            "yes",
            "0",
            "-0",
            "+7",
            "-7",
            "08",
            "-08",
            "0x1F",
            "-0x1f",
            "+0x1f",
            "0x-1",
            "0x",
            "0o17",
            "0b101",
            "-0b1",
            "++1",
            "+-1",
            "-+1",
            "18446744073709551615",
            "-9223372036854775808",
            "1.",
            ".5",
            "+.5",
            "1e3",
            "1e400",
            "inf",
            ".inf",
            "-.INF",
            "+.Inf",
            "+-.inf",
            ".nan",
            "-.nan",
            "nan",
            "1_000",
            "a: b",
            "a b",
            "'1'",
            "'it''s'",
            "\"\\u00e9\\n\"",
            "|\n  a\n  b\n",
            ">-\n  a\n  b\n",
            "a\n  b",
            "[]",
            "[1, [2], {a: b}]",
            "{}",
            "{a, b: }",
            "- 1\n-\n- - 2",
            "? a\n: b",
            "? [a]\n: b",
            "{1: a, ~: b}",
            "a: 1\na: 2",
            "&x a",
            "[&x {a: 1}, *x]",
            "[*x]",
            "[&x a, &x b, *x]",
            "[a",
            "a: b: c",
            "\t- a",
            "%YAML 1.1\n---\na",
            "a\n---\nb",
            "a\n...\n",
            "---",
            "# a",
            "\u{feff}a",
            "@a",
            "\"a",
        ];
        for text in texts.map(|text| format!("{text}\n")) {
            let text = &*text;
            let whole = Document::new(text).read::<Yaml>();
            match serde_yaml::from_str::<Yaml>(text) {
                Ok(value) => assert_eq!(whole.as_ref(), Ok(&value), "{text:?}"),
                Err(error) => {
                    let place = error.location().map(|place| (place.line(), place.column()));
                    let found = whole.expect_err(text).position();
                    assert!(place.is_none() || found == place, "{text:?}: {found:?}, {place:?}");
                }
            }
            macro_rules! typed {
                ($($kind:ty),*) => {$(
                    let (ours, theirs) = (Document::new(text).read(), serde_yaml::from_str(text));
                    let (ours, theirs): (Option<$kind>, Option<$kind>) = (ours.ok(), theirs.ok());
                    let kind = stringify!($kind);
                    assert_eq!(format!("{ours:?}"), format!("{theirs:?}"), "{text:?} as {kind}");
                )*};
            }
            typed!(bool, u8, i32, u64, i64, f64, String, Option<f64>, Vec<Yaml>, (Yaml, Yaml));
            typed!(BTreeMap<String, Yaml>, BTreeMap<String, f64>, Vec<Option<String>>);
        }
    }

    const TEXT: &str = "\
list:
  - name: a
  - &b
    name: b
  - *b
\"quoted\": {x: 1, 'y': [2, 3]}
";

    #[test]
    fn each_node_and_each_key_has_its_place() {
        let document = Document::new(TEXT);
        let [list, quoted] = ["list", "quoted"].map(Step::Key);
        for (steps, place) in [
            (vec![], (1, 1)),
            (vec![Step::Name("list")], (1, 1)),
            (vec![list], (2, 3)),
            (vec![list, Step::Item(0)], (2, 5)),
            (vec![list, Step::Item(1)], (3, 5)),
            (vec![list, Step::Item(2), Step::Key("name")], (4, 11)),
            (vec![quoted], (6, 11)),
            (vec![quoted, Step::Name("y")], (6, 18)),
            (vec![quoted, Step::Key("y"), Step::Item(1)], (6, 27)),
            // Where there is none, that of what is around it.
            (vec![quoted, Step::Key("z"), Step::Item(1)], (6, 11)),
            (vec![list, Step::Item(3)], (2, 3)),
        ] {
            assert_eq!(document.wrong(&steps, "").position(), Some(place), "{steps:?}");
        }
        assert_eq!(document.line(&[quoted]), 6);
        assert_eq!(document.line(&[list, Step::Item(3)]), 1);
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Pair {
        #[serde(default)]
        x: u8,
        #[serde(default)]
        y: Vec<f64>,
    }

    #[test]
    fn a_part_is_read_by_itself_and_one_that_is_missing_is_the_default() {
        let read = |text: &str, key| Document::new(text).read_at::<Pair>(&[Step::Key(key)]);
        assert_eq!(read(TEXT, "quoted"), Ok(Pair { x: 1, y: vec![2.0, 3.0] }));
        assert_eq!(read(TEXT, "other"), Ok(Pair::default()));
        assert_eq!(read("quoted:", "quoted"), Ok(Pair::default()));
        let wrong = |text: &str| {
            let error = read(text, "quoted").unwrap_err();
            (error.position(), error.to_string())
        };
        let error = "quoted.y[1]: expected a number, found \"3\"".to_owned();
        assert_eq!(wrong(&TEXT.replace('3', "'3'")), (Some((6, 27)), error));
        assert_eq!(wrong("quoted: {x: 1}\na: [").0, Some((2, 5)), "what is cut is never read");
        for (tag, text) in [("!z", "quoted: !z {x: 1}"), ("!!int", "quoted: {x: !!int 1}")] {
            let (place, error) = wrong(text);
            assert_eq!(place.map(|(line, _)| line), Some(1));
            let expected = format!("expected a value without a tag, found `{tag}`");
            assert!(error.ends_with(&expected), "{error}");
        }
    }

    #[test]
    fn what_is_wrong_before_the_text_ends_to_be_yaml_is_said_first() {
        let first = |text: &str| Document::new(text).read::<Pair>().unwrap_err().to_string();
        assert_eq!(first("z: 1\ny: ["), "unknown key `z`, expected one of `x`, `y`");
        assert_eq!(
            first("x: 1\ny: [2, 3"),
            "did not find expected ',' or ']', while parsing a flow sequence"
        );
        assert_eq!(first("x: -1\n---\n"), "x: expected a whole number from 0 to 255, found -1");
        assert_eq!(first("x: 1\n---\n"), "expected one document, found another after `---`");
        assert_eq!(first(&"- ".repeat(10_000)), "expected a mapping, found a list");
        let deep = Document::new(&"- ".repeat(10_000)).read::<Yaml>().unwrap_err();
        assert_eq!(deep.to_string(), "recursion limit exceeded");
    }
}
