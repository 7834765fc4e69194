//! Shards: a run in several parts, each on a machine of its own.

use std::fmt;
use std::str::FromStr;

use shakedown_core::value::error::Error;

/// One of the parts of a run: `2/8` is the second of eight.
///
/// The components, once for each of their places, are dealt out like cards: every part gets one,
/// then every part a second one, and so on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    index: usize,
    of: usize,
}

impl Shard {
    /// Which part it is, counted from 1.
    pub fn index(self) -> usize {
        self.index
    }

    /// How many parts there are.
    pub fn of(self) -> usize {
        self.of
    }

    /// Whether it has the component and place of this number, counted from 0.
    pub fn has(self, number: usize) -> bool {
        number % self.of == self.index - 1
    }

    /// How many it has of so many components and places.
    pub fn share(self, all: usize) -> usize {
        (0..all).filter(|number| self.has(*number)).count()
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index, self.of)
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Shard, Error> {
        let expected = "expected I/N, the I-th of N parts, such as 2/8";
        let number = |text: &str| text.parse::<usize>().ok();
        let parts = text.split_once('/').map(|(index, of)| (number(index), number(of)));
        let Some((Some(index), Some(of))) = parts else { return Err(Error::new(expected)) };
        match (index, of) {
            (_, 0) => Err(Error::new(format!("{expected}; there must be a part"))),
            (0, _) => Err(Error::new(format!("{expected}; the first part is 1/{of}"))),
            _ if index > of => Err(Error::new(format!("{expected}; the last part is {of}/{of}"))),
            _ => Ok(Shard { index, of }),
        }
    }
}

impl serde::Serialize for Shard {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Shard {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Shard, D::Error> {
        String::deserialize(from)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_are_disjoint_and_complete() {
        for (all, of) in [(0, 1), (1, 3), (7, 3), (8, 8), (9, 8)] {
            let shards: Vec<Shard> = (1..=of).map(|index| Shard { index, of }).collect();
            for number in 0..all {
                assert_eq!(shards.iter().filter(|shard| shard.has(number)).count(), 1);
            }
            assert_eq!(shards.iter().map(|shard| shard.share(all)).sum::<usize>(), all);
        }
    }

    #[test]
    fn shards_read_back_as_written() {
        assert_eq!("2/8".parse::<Shard>().unwrap().to_string(), "2/8");
        for wrong in ["", "x", "2", "2/", "/8", "0/8", "9/8", "1/0", "-1/8", "1.5/8", "1/8/2"] {
            assert!(wrong.parse::<Shard>().is_err(), "{wrong}");
        }
    }
}
