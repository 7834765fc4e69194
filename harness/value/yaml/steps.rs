//! Parts of a document: reading one by itself, and where it stands.

use std::fmt::Write as _;
use std::marker::PhantomData;

use serde::de::{DeserializeOwned, DeserializeSeed, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::words::{inside, located};
use crate::value::error::Error;

/// A step into a document.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// The value of a key.
    Key(&'a str),
    /// The key itself, as the last step; for [`located_at`].
    Name(&'a str),
    /// An item of a list.
    Item(usize),
}

/// Reads the part of a document at the end of `steps`, or the default where there is none. So
/// that what only a contract can read (options, a case) has errors with line and column too.
///
/// # Errors
/// With line, column and the nearest known name.
pub fn parse_at<T: DeserializeOwned + Default>(text: &str, steps: &[Step<'_>]) -> Result<T, Error> {
    // The steps, as the YAML library writes them, say nothing new to who asked.
    let mut known = String::new();
    for step in steps.iter().take(steps.len().saturating_sub(1)) {
        let _ = match step {
            Step::Key(key) | Step::Name(key) if known.is_empty() => write!(known, "{key}"),
            Step::Key(key) | Step::Name(key) => write!(known, ".{key}"),
            Step::Item(index) => write!(known, "[{index}]"),
        };
    }
    At::<T> { steps, target: PhantomData }
        .deserialize(serde_yaml::Deserializer::from_str(text))
        .map_err(|error| located(text, &error, &known))
}

/// The line and the column of a part of a document.
fn locate(text: &str, steps: &[Step<'_>]) -> Option<(usize, usize)> {
    let at = At::<Never> { steps, target: PhantomData };
    let error = at.deserialize(serde_yaml::Deserializer::from_str(text)).err()?;
    error.location().map(|place| inside(text, &place))
}

/// The line of a part of a document, counted from 1; that of its beginning where it is not there.
pub fn line_of(text: &str, steps: &[Step<'_>]) -> usize {
    locate(text, steps).map_or(1, |(line, _)| line)
}

/// An error about a part of a document: where it is, or else where the part around it is.
pub fn located_at(text: &str, steps: &[Step<'_>], why: impl Into<String>) -> Error {
    let place = (0..=steps.len()).rev().find_map(|count| locate(text, &steps[..count]));
    match place {
        Some((line, column)) => Error::new(why).line(line, column),
        None => Error::new(why),
    }
}

/// A type that no value can be read as: the error is where the value is.
#[derive(Default)]
struct Never;

impl<'de> Deserialize<'de> for Never {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(Never)
    }
}

impl Visitor<'_> for Never {
    type Value = Never;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("nothing at all")
    }
}

/// A key; one of this name is an error, where it is.
struct KeyBut<'a>(Option<&'a str>);

impl<'de> DeserializeSeed<'de> for KeyBut<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<String, D::Error> {
        from.deserialize_str(self)
    }
}

impl Visitor<'_> for KeyBut<'_> {
    type Value = String;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<String, E> {
        if self.0 == Some(key) { Err(E::custom("here it is")) } else { Ok(key.to_owned()) }
    }
}

struct At<'a, T> {
    steps: &'a [Step<'a>],
    target: PhantomData<T>,
}

impl<'de, T: Deserialize<'de> + Default> DeserializeSeed<'de> for At<'_, T> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<T, D::Error> {
        match self.steps.first() {
            None => T::deserialize(from),
            Some(Step::Key(_) | Step::Name(_)) => from.deserialize_map(self),
            Some(Step::Item(_)) => from.deserialize_seq(self),
        }
    }
}

impl<'de, T: Deserialize<'de> + Default> Visitor<'de> for At<'_, T> {
    type Value = T;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.steps.first() {
            Some(Step::Item(_)) => "a list",
            _ => "a mapping",
        })
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<T, M::Error> {
        let mut found = T::default();
        let but = match self.steps {
            [Step::Name(key)] => Some(*key),
            _ => None,
        };
        while let Some(key) = map.next_key_seed(KeyBut(but))? {
            match self.steps.first() {
                Some(Step::Key(wanted)) if *wanted == key => {
                    let rest = At { steps: &self.steps[1..], target: self.target };
                    found = map.next_value_seed(rest)?;
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(found)
    }

    fn visit_seq<S: SeqAccess<'de>>(self, mut seq: S) -> Result<T, S::Error> {
        let Some(Step::Item(wanted)) = self.steps.first() else { return Ok(T::default()) };
        let mut found = T::default();
        let mut index = 0;
        loop {
            let here = At { steps: &self.steps[1..], target: self.target };
            let more = if index == *wanted {
                seq.next_element_seed(here)?.map(|value| found = value).is_some()
            } else {
                seq.next_element::<IgnoredAny>()?.is_some()
            };
            if !more {
                return Ok(found);
            }
            index += 1;
        }
    }
}
