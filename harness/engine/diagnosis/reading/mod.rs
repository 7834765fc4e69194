//! Readings of a text in the place of the declared one: another answer, other blocks, another form.

mod answer;
mod remains;

use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::options::AnyOptions;
use shakedown_core::contract::reading::{Change, Marked, Reader};
use shakedown_core::value::record::Shared;
use shakedown_core::value::text::number;

use answer::between;
pub(crate) use answer::{Begin, Counts, End, Otherwise, Pick};
pub(crate) use remains::{Clean, Kept, Outside};

/// One step of reading that is done otherwise.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reading {
    /// An answer stands elsewhere.
    Between(Begin, End),
    /// Another one of several answers.
    Picked(Pick),
    /// Not every answer counts.
    Counts(Counts),
    /// What a text without an answer gives.
    Otherwise(Otherwise),
    /// Other special tokens go.
    Clean(Clean),
    /// Other blocks of reasoning go.
    Outside(Outside),
    /// The text around the markers that stay does not.
    Kept(Kept),
    /// Other marks are asked for, all of them or any.
    Form { marks: Vec<String>, how: How, all: bool },
    /// Each mark has a weight of its own, and there is a score without any.
    Weights { marks: Vec<(String, f64)>, how: How, base: f64 },
}

/// How often a mark must stand in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum How {
    /// Once or more.
    There,
    /// Exactly once.
    Once,
    /// Once or more, each behind the one before it.
    InOrder,
}

impl Reading {
    /// What kind of step it is: of one kind there is one step only.
    pub(crate) fn step(&self) -> usize {
        match self {
            Reading::Between(..) | Reading::Picked(_) | Reading::Counts(_) => 0,
            Reading::Otherwise(_) => 1,
            Reading::Clean(_) => 2,
            Reading::Outside(_) => 3,
            Reading::Kept(_) => 4,
            Reading::Form { .. } | Reading::Weights { .. } => 5,
        }
    }

    /// How much it assumes besides.
    pub(crate) fn assumes(&self) -> usize {
        match self {
            Reading::Picked(_) | Reading::Otherwise(Otherwise::Made(_)) => 0,
            Reading::Form { marks, how, all } => {
                // Of any that may be there those are the plainest that leave the fewest out.
                let size = if *all { marks.len() } else { 6_usize.saturating_sub(marks.len()) };
                size + usize::from(*how != How::There)
            }
            Reading::Otherwise(_) | Reading::Weights { .. } => 3,
            Reading::Between(Begin::FirstClosing | Begin::LastClosing, _) => 3,
            Reading::Between(_, End::NextOpening | End::NextClosingOrText) => 2,
            _ => 1,
        }
    }

    /// How many numbers in it are fitted to what was seen.
    pub(crate) fn fitted(&self) -> usize {
        match self {
            Reading::Weights { marks, .. } => marks.len(),
            _ => 0,
        }
    }

    /// What is said of it, after "as if".
    pub(crate) fn told(&self) -> String {
        let names = |marks: &[String]| {
            marks.iter().map(|mark| format!("`{mark}`")).collect::<Vec<String>>()
        };
        match self {
            Reading::Between(begin, end) => {
                format!("an answer went from {} to {}", begin.told(), end.told())
            }
            Reading::Picked(pick) => format!("of several answers {}", pick.told()),
            Reading::Counts(counts) => format!("an answer counted only where it {}", counts.told()),
            Reading::Otherwise(otherwise) => {
                format!("a text without an answer gave {}", otherwise.told())
            }
            Reading::Clean(clean) => clean.told().to_owned(),
            Reading::Outside(outside) => outside.told().to_owned(),
            Reading::Kept(kept) => kept.told().to_owned(),
            Reading::Form { marks, how, all } => {
                let names = names(marks).join(if *all { " and " } else { " or " });
                format!("the form were {names}{}, and nothing else", how.told())
            }
            Reading::Weights { marks, how, base } => {
                let each =
                    marks.iter().map(|(mark, weight)| format!("`{mark}` {}", number(*weight)));
                let each = each.collect::<Vec<String>>().join(", ");
                let base = match base {
                    0.0 => String::new(),
                    base => format!(", beside {} without any", number(*base)),
                };
                format!("the shares of the full score were {each}{base}, for marks{}", how.told())
            }
        }
    }

    /// What the reference would give with these steps done otherwise; `None` where they do not go
    /// together, or the contract has no such step.
    pub(crate) fn output(
        all: &[&Reading],
        contract: &dyn AnyContract,
        case: &Shared,
        options: &dyn AnyOptions,
    ) -> Option<Shared> {
        let step = |step| all.iter().copied().find(|one: &&Reading| one.step() == step);
        let (find, otherwise) = (step(0), step(1));
        let find_it = |marked: &Marked<'_>| find.and_then(|one| one.found(marked));
        let otherwise_gives = |text: &str| match otherwise {
            Some(Reading::Otherwise(otherwise)) => otherwise.of(text),
            _ => None,
        };
        let change = |text: &str, words: &[String], one: Option<&Reading>| match one {
            Some(Reading::Clean(clean)) => clean.of(text, words),
            Some(Reading::Outside(outside)) => outside.of(text, words),
            Some(Reading::Kept(kept)) => kept.of(text, words),
            _ => text.to_owned(),
        };
        let changes = [2, 3, 4].map(|at| {
            let one = step(at);
            one.map(|one| move |text: &str, words: &[String]| change(text, words, Some(one)))
        });
        let form = |text: &str, _: &[String]| step(5).map_or(0.0, |one| one.share(text));
        let reader = match all.first()?.step() {
            0 | 1 => Reader::Answer {
                find: find.map(|_| &find_it as _),
                otherwise: otherwise.map(|_| &otherwise_gives as _),
            },
            5 => Reader::Form(&form),
            _ => {
                let [clean, outside, kept] =
                    changes.each_ref().map(|one| one.as_ref().map(|one| one as Change<'_>));
                Reader::Remains { clean, outside, kept }
            }
        };
        contract.reread(&**case, options, &reader)
    }

    /// The answer that is found.
    fn found(&self, marked: &Marked<'_>) -> Option<String> {
        match self {
            Reading::Between(begin, end) => between(*begin, *end, marked),
            Reading::Picked(pick) => pick.of(marked),
            Reading::Counts(counts) => {
                let mut all = marked.blocks.iter().filter(|block| counts.holds(block, marked));
                let found = if marked.last { all.next_back() } else { all.next() };
                found.map(|block| (*block).to_owned())
            }
            _ => None,
        }
    }

    /// The share of the full score that a text gets.
    fn share(&self, text: &str) -> f64 {
        match self {
            Reading::Form { marks, how, all } => {
                let holds = match (how, all) {
                    (How::InOrder, _) => {
                        let behind = |rest: &mut Option<&'_ str>, mark: &String| {
                            *rest = rest.and_then(|rest| Some(rest.split_once(&**mark)?.1));
                        };
                        let mut rest = Some(text);
                        marks.iter().for_each(|mark| behind(&mut rest, mark));
                        rest.is_some()
                    }
                    (_, true) => marks.iter().all(|mark| how.holds(text, mark)),
                    (_, false) => marks.iter().any(|mark| how.holds(text, mark)),
                };
                f64::from(holds)
            }
            Reading::Weights { marks, how, base } => {
                let there = marks.iter().filter(|(mark, _)| how.holds(text, mark));
                base + there.map(|(_, weight)| weight).sum::<f64>()
            }
            _ => 0.0,
        }
    }
}

impl How {
    fn told(self) -> &'static str {
        match self {
            How::There => " somewhere",
            How::Once => " exactly once",
            How::InOrder => " in this order",
        }
    }

    pub(crate) fn holds(self, text: &str, mark: &str) -> bool {
        match self {
            How::There | How::InOrder => text.contains(mark),
            How::Once => text.matches(mark).count() == 1,
        }
    }
}
