//! Readings of a text in the place of the declared one: another answer, other blocks, another form.

use crate::contract::erased::AnyContract;
use crate::contract::options::AnyOptions;
use crate::contract::reading::{Change, Marked, Reader};
use crate::diagnosis::text::Text;
use crate::value::record::Shared;
use crate::value::text::{number, quoted};

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

/// Where an answer begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Begin {
    FirstOpening,
    LastOpening,
    FirstOpeningOrStart,
    LastOpeningOrStart,
    Start,
    FirstClosing,
    LastClosing,
}

/// Where an answer ends, behind its begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    NextClosing,
    LastClosing,
    LastClosingOfTheLine,
    NextClosingOrText,
    AnyClosingTag,
    NextOpening,
    Line,
    Text,
}

/// Which of several answers is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pick {
    First,
    Last,
    Second,
    LastButOne,
    Longest,
    Shortest,
    Only,
    Commas,
    Lines,
}

/// Which answers count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Counts {
    OneLine,
    NotEmpty,
    WithoutTags,
    Integer,
    Number,
    OneWord,
    WithoutSpaces,
    AtTheStart,
    AtTheEnd,
}

/// What a text without an answer gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    /// Something made of the text.
    Made(Text),
    /// What stands in its last box.
    Boxed,
    /// What follows the last colon.
    BehindTheColon,
    /// Always the same.
    Always(String),
}

/// Which special tokens go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clean {
    None,
    AtTheStart,
    AtTheEnd,
    AtTheEnds,
    FirstOfEach,
    OnlyFirst,
    OnlyLast,
    SpaceForEach,
    LineEndForEach,
    WithSpacesAround,
    BeforeTheFirst,
    BeforeTheFirstOfTheLast,
}

/// What stays of a text with reasoning in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    WithoutTheFirst,
    WithoutTheLast,
    WithoutClosed,
    WithoutClosedAndTags,
    WithoutTags,
    WithoutOneAtTheStart,
    SpaceForEach,
    BeforeTheFirstOpening,
    AfterTheLastOpening,
    BeforeTheFirstClosing,
    AfterTheFirstClosing,
    AfterTheLastClosing,
    AfterTheLastTag,
    AfterTheLastClosingElseOpening,
    Inside,
}

/// What stays of a text with markers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    UntilTheFirstClosing,
    UntilTheLastClosing,
    FromTheFirstOpening,
    FromTheLastOpening,
    BetweenThem,
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
        let form = |text: &str, marks: &[String]| step(5).map_or(0.0, |one| one.share(text, marks));
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
    fn share(&self, text: &str, _: &[String]) -> f64 {
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

/// What stands between two places of a text.
fn between(begin: Begin, end: End, marked: &Marked<'_>) -> Option<String> {
    let Marked { text, open, close, .. } = marked;
    let close = if close.is_empty() { "\n" } else { close };
    let behind = |mark: &str, at: Option<usize>| at.map(|at| at + mark.len());
    let (first, last) = (behind(open, text.find(open)), behind(open, text.rfind(open)));
    let from = match begin {
        Begin::FirstOpening => first?,
        Begin::LastOpening => last?,
        Begin::FirstOpeningOrStart => first.unwrap_or(0),
        // The last one in front of what ends an answer.
        Begin::LastOpeningOrStart => {
            let until = text.rfind(close).unwrap_or(text.len());
            behind(open, text[..until].rfind(open)).unwrap_or(0)
        }
        Begin::Start => 0,
        Begin::FirstClosing => behind(close, text.find(close))?,
        Begin::LastClosing => behind(close, text.rfind(close))?,
    };
    let rest = &text[from..];
    let line = rest.split('\n').next().unwrap_or("");
    let to = match end {
        End::NextClosing => rest.find(close)?,
        End::LastClosing => rest.rfind(close)?,
        End::LastClosingOfTheLine => line.rfind(close)?,
        End::NextClosingOrText => rest.find(close).unwrap_or(rest.len()),
        End::AnyClosingTag => rest.find("</")?,
        End::NextOpening => rest.find(open).unwrap_or(rest.len()),
        End::Line => line.len(),
        End::Text => rest.len(),
    };
    Some(rest[..to].to_owned())
}

impl Begin {
    pub(crate) const ALL: [Begin; 7] = [
        Begin::FirstOpening,
        Begin::LastOpening,
        Begin::FirstOpeningOrStart,
        Begin::LastOpeningOrStart,
        Begin::Start,
        Begin::FirstClosing,
        Begin::LastClosing,
    ];

    fn told(self) -> &'static str {
        match self {
            Begin::FirstOpening => "the first opening mark",
            Begin::LastOpening => "the last opening mark",
            Begin::FirstOpeningOrStart => "the first opening mark, or the start of the text,",
            Begin::LastOpeningOrStart => "the last opening mark, or the start of the text,",
            Begin::Start => "the start of the text",
            Begin::FirstClosing => "the first closing mark",
            Begin::LastClosing => "the last closing mark",
        }
    }
}

impl End {
    pub(crate) const ALL: [End; 8] = [
        End::NextClosing,
        End::LastClosing,
        End::LastClosingOfTheLine,
        End::NextClosingOrText,
        End::AnyClosingTag,
        End::NextOpening,
        End::Line,
        End::Text,
    ];

    fn told(self) -> &'static str {
        match self {
            End::NextClosing => "the next closing mark",
            End::LastClosing => "the last closing mark of the text",
            End::LastClosingOfTheLine => "the last closing mark of its line",
            End::NextClosingOrText => "the next closing mark, or the end of the text",
            End::AnyClosingTag => "the closing tag of anything",
            End::NextOpening => "the next opening mark, or the end of the text",
            End::Line => "the end of its line",
            End::Text => "the end of the text",
        }
    }
}

impl Pick {
    pub(crate) const ALL: [Pick; 9] = [
        Pick::First,
        Pick::Last,
        Pick::Second,
        Pick::LastButOne,
        Pick::Longest,
        Pick::Shortest,
        Pick::Only,
        Pick::Commas,
        Pick::Lines,
    ];

    fn told(self) -> &'static str {
        match self {
            Pick::First => "the first were taken",
            Pick::Last => "the last were taken",
            Pick::Second => "the second were taken",
            Pick::LastButOne => "the last but one were taken",
            Pick::Longest => "the longest were taken",
            Pick::Shortest => "the shortest were taken",
            Pick::Only => "none were taken",
            Pick::Commas => "all were taken, with commas between them",
            Pick::Lines => "all were taken, each on a line of its own",
        }
    }

    fn of(self, marked: &Marked<'_>) -> Option<String> {
        let all = &marked.blocks;
        let joined = |by: &str| {
            let trimmed: Vec<&str> = all.iter().map(|block| block.trim()).collect();
            (!all.is_empty()).then(|| trimmed.join(by))
        };
        // Of equal ones the first, as `max` and `min` of Python.
        let length = |block: &&&str| block.chars().count();
        let found = match self {
            Pick::First => all.first(),
            Pick::Last => all.last(),
            Pick::Second => all.get(1).or(all.first()),
            Pick::LastButOne => all.len().checked_sub(2).map_or(all.last(), |at| all.get(at)),
            Pick::Longest => all.iter().rev().max_by_key(length),
            Pick::Shortest => all.iter().min_by_key(length),
            Pick::Only => all.first().filter(|_| all.len() == 1),
            Pick::Commas => return joined(", "),
            Pick::Lines => return joined("\n"),
        };
        found.map(|block| (*block).to_owned())
    }
}

impl Counts {
    pub(crate) const ALL: [Counts; 9] = [
        Counts::OneLine,
        Counts::NotEmpty,
        Counts::WithoutTags,
        Counts::Integer,
        Counts::Number,
        Counts::OneWord,
        Counts::WithoutSpaces,
        Counts::AtTheStart,
        Counts::AtTheEnd,
    ];

    fn told(self) -> &'static str {
        match self {
            Counts::OneLine => "has no line end in it",
            Counts::NotEmpty => "is not empty",
            Counts::WithoutTags => "has no `<` in it",
            Counts::Integer => "is an integer, white space around it or not",
            Counts::Number => "is a number, white space around it or not",
            Counts::OneWord => "is one word of letters, digits and underscores",
            Counts::WithoutSpaces => "has no white space in it, not even around it",
            Counts::AtTheStart => "stands at the start of the text, white space before it or not",
            Counts::AtTheEnd => "stands at the end of the text, white space behind it or not",
        }
    }

    fn holds(self, block: &str, marked: &Marked<'_>) -> bool {
        let trimmed = block.trim();
        match self {
            Counts::OneLine => !block.contains('\n'),
            Counts::NotEmpty => !block.is_empty(),
            Counts::WithoutTags => !block.contains('<'),
            Counts::Integer => {
                let digits = trimmed.strip_prefix('-').unwrap_or(trimmed);
                !digits.is_empty() && digits.chars().all(|c| c.is_ascii_digit())
            }
            Counts::Number => trimmed.parse::<f64>().is_ok_and(f64::is_finite),
            Counts::OneWord => {
                !block.is_empty() && block.chars().all(|c| c.is_alphanumeric() || c == '_')
            }
            Counts::WithoutSpaces => !block.contains(char::is_whitespace),
            Counts::AtTheStart => marked.text.trim_start().starts_with(marked.open),
            Counts::AtTheEnd => marked.text.trim_end().ends_with(marked.close),
        }
    }
}

impl Otherwise {
    fn told(&self) -> String {
        match self {
            Otherwise::Made(text) => match text {
                Text::Trimmed => "all of it, without the white space around it".to_owned(),
                text => text.told(),
            },
            Otherwise::Boxed => "what stands in its last `\\boxed{…}`".to_owned(),
            Otherwise::BehindTheColon => "what follows its last colon".to_owned(),
            Otherwise::Always(text) => quoted(text),
        }
    }

    fn of(&self, text: &str) -> Option<String> {
        match self {
            Otherwise::Made(Text::LastLine) => Text::LastLine.of(text.trim()),
            Otherwise::Made(Text::LastWord) => text.split_whitespace().last().map(str::to_owned),
            Otherwise::Made(Text::FirstWord) => text.split_whitespace().next().map(str::to_owned),
            Otherwise::Made(made) => made.of(text),
            Otherwise::Boxed => {
                let (_, rest) = text.rsplit_once("\\boxed{")?;
                let mut depth = 1;
                let end = rest.char_indices().find(|(_, c)| {
                    depth += i32::from(*c == '{') - i32::from(*c == '}');
                    depth == 0
                });
                end.map(|(at, _)| rest[..at].trim().to_owned())
            }
            Otherwise::BehindTheColon => {
                text.rsplit_once(':').map(|(_, rest)| rest.trim().to_owned())
            }
            Otherwise::Always(text) => Some(text.clone()),
        }
    }
}

impl Clean {
    pub(crate) const ALL: [Clean; 12] = [
        Clean::None,
        Clean::AtTheStart,
        Clean::AtTheEnd,
        Clean::AtTheEnds,
        Clean::FirstOfEach,
        Clean::OnlyFirst,
        Clean::OnlyLast,
        Clean::SpaceForEach,
        Clean::LineEndForEach,
        Clean::WithSpacesAround,
        Clean::BeforeTheFirst,
        Clean::BeforeTheFirstOfTheLast,
    ];

    fn told(self) -> &'static str {
        match self {
            Clean::None => "no special token were removed",
            Clean::AtTheStart => "special tokens were removed at the start only",
            Clean::AtTheEnd => "special tokens were removed at the end only",
            Clean::AtTheEnds => "special tokens were removed at both ends only",
            Clean::FirstOfEach => "of each special token only the first were removed",
            Clean::OnlyFirst => "only the first of the special tokens were known",
            Clean::OnlyLast => "only the last of the special tokens were known",
            Clean::SpaceForEach => "a space stood in place of each special token",
            Clean::LineEndForEach => "a line end stood in place of each special token",
            Clean::WithSpacesAround => "special tokens took the white space around them along",
            Clean::BeforeTheFirst => "a text ended at its first special token",
            Clean::BeforeTheFirstOfTheLast => {
                "a text ended at the last of the special tokens, where it first stands"
            }
        }
    }

    fn of(self, text: &str, tokens: &[String]) -> String {
        let until_none = |text: &str, by: &dyn Fn(&str, &str) -> String, tokens: &[String]| {
            let mut text = text.to_owned();
            while let Some(token) = tokens.iter().find(|token| text.contains(&***token)) {
                text = by(&text, token);
            }
            text
        };
        let gone = |text: &str, token: &str| text.replace(token, "");
        let cut = |mut text: &str, start: bool, end: bool| {
            loop {
                let without = tokens.iter().find_map(|token| {
                    let at_start = || text.strip_prefix(&**token).filter(|_| start);
                    let at_end = || text.strip_suffix(&**token).filter(|_| end);
                    at_start().or_else(at_end)
                });
                match without {
                    Some(without) => text = without,
                    None => return text.to_owned(),
                }
            }
        };
        match self {
            Clean::None => text.to_owned(),
            Clean::AtTheStart => cut(text, true, false),
            Clean::AtTheEnd => cut(text, false, true),
            Clean::AtTheEnds => cut(text, true, true),
            Clean::FirstOfEach => {
                tokens.iter().fold(text.to_owned(), |text, token| text.replacen(&**token, "", 1))
            }
            Clean::OnlyFirst => until_none(text, &gone, &tokens[..tokens.len().min(1)]),
            Clean::OnlyLast => until_none(text, &gone, &tokens[tokens.len().saturating_sub(1)..]),
            Clean::SpaceForEach => {
                until_none(text, &|text, token| text.replace(token, " "), tokens)
            }
            Clean::LineEndForEach => {
                until_none(text, &|text, token| text.replace(token, "\n"), tokens)
            }
            Clean::WithSpacesAround => {
                let with = |text: &str, token: &str| {
                    let (before, after) = text.split_once(token).unwrap_or((text, ""));
                    [before.trim_end(), after.trim_start()].concat()
                };
                until_none(text, &with, tokens)
            }
            Clean::BeforeTheFirst => {
                let first = tokens.iter().filter_map(|token| text.find(&**token)).min();
                text[..first.unwrap_or(text.len())].to_owned()
            }
            Clean::BeforeTheFirstOfTheLast => {
                let before = tokens.last().and_then(|token| text.split_once(&**token));
                until_none(before.map_or(text, |(before, _)| before), &gone, tokens)
            }
        }
    }
}

impl Outside {
    pub(crate) const ALL: [Outside; 15] = [
        Outside::WithoutTheFirst,
        Outside::WithoutTheLast,
        Outside::WithoutClosed,
        Outside::WithoutClosedAndTags,
        Outside::WithoutTags,
        Outside::WithoutOneAtTheStart,
        Outside::SpaceForEach,
        Outside::BeforeTheFirstOpening,
        Outside::AfterTheLastOpening,
        Outside::BeforeTheFirstClosing,
        Outside::AfterTheFirstClosing,
        Outside::AfterTheLastClosing,
        Outside::AfterTheLastTag,
        Outside::AfterTheLastClosingElseOpening,
        Outside::Inside,
    ];

    fn told(self) -> &'static str {
        match self {
            Outside::WithoutTheFirst => "only the first block of reasoning were removed",
            Outside::WithoutTheLast => "only the last block of reasoning were removed",
            Outside::WithoutClosed => {
                "only reasoning between an opening and a closing tag were removed"
            }
            Outside::WithoutClosedAndTags => {
                "only reasoning between an opening and a closing tag were removed, and of other \
                 reasoning the tag"
            }
            Outside::WithoutTags => "only the tags of reasoning were removed",
            Outside::WithoutOneAtTheStart => "only a block at the start of the text were removed",
            Outside::SpaceForEach => "a space stood in place of each block of reasoning",
            Outside::BeforeTheFirstOpening => "what stands before the first opening tag stayed",
            Outside::AfterTheLastOpening => "what follows the last opening tag stayed",
            Outside::BeforeTheFirstClosing => "what stands before the first closing tag stayed",
            Outside::AfterTheFirstClosing => "what follows the first closing tag stayed",
            Outside::AfterTheLastClosing => "what follows the last closing tag stayed",
            Outside::AfterTheLastTag => "what follows the last tag of either kind stayed",
            Outside::AfterTheLastClosingElseOpening => {
                "what follows the last closing tag stayed, and without one what follows the last \
                 opening tag"
            }
            Outside::Inside => "the first block of reasoning stayed, and nothing else",
        }
    }

    fn of(self, text: &str, tags: &[String]) -> String {
        let [open, close] = tags else { return text.to_owned() };
        let (open, close) = (&**open, &**close);
        let without_tags = |text: String| text.replace(open, "").replace(close, "");
        // A block that never ends goes on to the end of the text, one that never began is from its
        // start, as where reasoning is removed as declared.
        let declared = |text: &str, space: &str| {
            let mut rest = text;
            let mut kept = String::new();
            if let Some((before, after)) = text.split_once(close)
                && !before.contains(open)
            {
                rest = after;
                kept.push_str(space);
            }
            while let Some((before, block)) = rest.split_once(open) {
                kept.extend([before, space]);
                rest = block.split_once(close).map_or("", |(_, after)| after);
            }
            kept + rest
        };
        let one = |parts: Option<(&str, &str)>| {
            let removed = parts.map(|(before, block)| {
                [before, block.split_once(close).map_or("", |(_, after)| after)].concat()
            });
            removed.unwrap_or_else(|| declared(text, ""))
        };
        let kept = |part: Option<&str>| part.unwrap_or(text).to_owned();
        let closed = || {
            let mut kept = String::new();
            let mut rest = text;
            while let Some((before, block)) = rest.split_once(open)
                && let Some((_, after)) = block.split_once(close)
            {
                kept.push_str(before);
                rest = after;
            }
            kept + rest
        };
        match self {
            Outside::WithoutTheFirst => one(text.split_once(open)),
            Outside::WithoutTheLast => one(text.rsplit_once(open)),
            Outside::WithoutClosed => closed(),
            Outside::WithoutClosedAndTags => without_tags(closed()),
            Outside::WithoutTags => without_tags(text.to_owned()),
            Outside::WithoutOneAtTheStart => {
                let block = text.trim_start().strip_prefix(open);
                kept(block.and_then(|block| block.split_once(close)).map(|(_, after)| after))
            }
            Outside::SpaceForEach => declared(text, " "),
            Outside::BeforeTheFirstOpening => kept(text.split(open).next()),
            Outside::AfterTheLastOpening => kept(text.rsplit(open).next()),
            Outside::BeforeTheFirstClosing => kept(text.split(close).next()),
            Outside::AfterTheFirstClosing => kept(text.split_once(close).map(|(_, after)| after)),
            Outside::AfterTheLastClosing => kept(text.rsplit(close).next()),
            Outside::AfterTheLastTag => {
                kept(text.rsplit(close).next().and_then(|rest| rest.rsplit(open).next()))
            }
            Outside::AfterTheLastClosingElseOpening => {
                let tag = if text.contains(close) { close } else { open };
                kept(text.rsplit(tag).next())
            }
            Outside::Inside => {
                let block = text.split_once(open).and_then(|(_, block)| block.split_once(close));
                kept(block.map(|(block, _)| block))
            }
        }
    }
}

impl Kept {
    pub(crate) const ALL: [Kept; 5] = [
        Kept::UntilTheFirstClosing,
        Kept::UntilTheLastClosing,
        Kept::FromTheFirstOpening,
        Kept::FromTheLastOpening,
        Kept::BetweenThem,
    ];

    fn told(self) -> &'static str {
        match self {
            Kept::UntilTheFirstClosing => {
                "what follows the closing marker that stays, where it first stands, were lost"
            }
            Kept::UntilTheLastClosing => {
                "what follows the closing marker that stays, where it last stands, were lost"
            }
            Kept::FromTheFirstOpening => {
                "what precedes the opening marker that stays, where it first stands, were lost"
            }
            Kept::FromTheLastOpening => {
                "what precedes the opening marker that stays, where it last stands, were lost"
            }
            Kept::BetweenThem => "only what stands between the markers stayed",
        }
    }

    fn of(self, text: &str, markers: &[String]) -> String {
        let [open, .., close] = markers else { return text.to_owned() };
        let (open, close) = (&**open, &**close);
        let until =
            |at: Option<usize>| text[..at.map_or(text.len(), |at| at + close.len())].to_owned();
        let from = |at: Option<usize>| text[at.unwrap_or(0)..].to_owned();
        match self {
            Kept::UntilTheFirstClosing => until(text.find(close)),
            Kept::UntilTheLastClosing => until(text.rfind(close)),
            Kept::FromTheFirstOpening => from(text.find(open)),
            Kept::FromTheLastOpening => from(text.rfind(open)),
            Kept::BetweenThem => {
                let inner = text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
                inner.map_or(text, |(inner, _)| inner).to_owned()
            }
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
