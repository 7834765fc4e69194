//! The definition of `answer-extractor`: all answers that an honest reader could find in a text.

use super::{Format, Missing, Options, Which};
use shakedown_core::contract::coverage;
use shakedown_core::numeric::tolerance::Wanted;

/// What is expected of one text.
pub(super) fn answer(text: &str, options: &Options) -> Wanted {
    let mut accepted = Vec::new();
    for reading in readings(text, options) {
        coverage::event(&["reading", reading.name()]);
        match reading {
            Reading::Open => return Wanted::Open,
            Reading::Missing => missing(text, options, &mut accepted),
            Reading::Answers(answers) => {
                let answer = match options.pick {
                    Which::Last => answers.last(),
                    Which::First => answers.first(),
                };
                trimmed(answer.expect("a reading finds an answer"), options, &mut accepted);
            }
        }
    }
    let mut distinct = Vec::new();
    for answer in accepted {
        if !distinct.contains(&answer) {
            distinct.push(answer);
        }
    }
    Wanted::OneOf(distinct)
}

/// What one reader sees.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reading<'a> {
    /// No answer.
    Missing,
    /// These, one after the other, each as it stands.
    Answers(Vec<&'a str>),
    /// Something that no convention settles.
    Open,
}

impl Reading<'_> {
    fn name(&self) -> &'static str {
        match self {
            Reading::Missing => "no answer",
            Reading::Answers(answers) if answers.len() > 1 => "several answers",
            Reading::Answers(_) => "one answer",
            Reading::Open => "open",
        }
    }
}

/// What readers who differ where honest readers do see in a text; the strictest first.
pub(super) fn readings<'a>(text: &'a str, options: &Options) -> Vec<Reading<'a>> {
    let mut readings = match options.format {
        Format::XmlTag => {
            [exact_tags, loose_tags].map(|tags| blocks(text, tags(text, options))).into()
        }
        Format::Boxed => Escapes::ALL.map(|escapes| boxes(text, escapes)).into(),
        Format::Hash => lines(text),
    };
    readings.dedup();
    readings
}

/// The answer of a text that every reader finds in it, as it stands but for white space that is to
/// be trimmed; `None` where there is none, or more than one opinion.
pub(super) fn settled<'a>(text: &'a str, options: &Options) -> Option<&'a str> {
    let readings = readings(text, options);
    let [Reading::Answers(answers)] = readings.as_slice() else { return None };
    let answer = match options.pick {
        Which::Last => answers.last(),
        Which::First => answers.first(),
    };
    answer.map(|answer| if options.trim { answer.trim() } else { answer })
}

fn missing(text: &str, options: &Options, accepted: &mut Vec<Option<String>>) {
    match options.missing {
        Missing::Null => accepted.push(None),
        Missing::Empty => accepted.push(Some(String::new())),
        Missing::Whole => {
            accepted.push(Some(text.to_owned()));
            if options.trim {
                trimmed(text, options, accepted);
            }
        }
    }
}

/// The answer without what somebody may take for white space around it. Where it stays, a mark of
/// hashes may still have taken what separates it from the answer.
fn trimmed(answer: &str, options: &Options, accepted: &mut Vec<Option<String>>) {
    let mut accept = |answer: &str| accepted.push(Some(answer.to_owned()));
    if options.trim {
        WHITE.iter().for_each(|white| accept(answer.trim_matches(white)));
    } else {
        accept(answer);
        if options.format == Format::Hash {
            accept(answer.strip_prefix(' ').unwrap_or(answer));
            accept(answer.trim_start());
        }
    }
}

/// What is white space: in Rust, in ASCII, among typewriters, in Python, in JavaScript.
const WHITE: [fn(char) -> bool; 5] = [
    char::is_whitespace,
    |c| matches!(c, ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}'),
    |c| matches!(c, ' ' | '\t' | '\n' | '\r'),
    |c| c.is_whitespace() || ('\u{1c}'..='\u{1f}').contains(&c),
    |c| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}',
];

/// A tag in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Tag {
    start: usize,
    end: usize,
    closes: bool,
}

/// The tags exactly as they are written.
fn exact_tags(text: &str, options: &Options) -> Option<Vec<Tag>> {
    let [open, close] = options.marks();
    let tags = |mark: &str, closes| -> Vec<Tag> {
        let tag = |(start, mark): (usize, &str)| Tag { start, end: start + mark.len(), closes };
        text.match_indices(mark).map(tag).collect()
    };
    let mut all = tags(&open, false);
    all.extend(tags(&close, true));
    all.sort_by_key(|tag| tag.start);
    Some(all)
}

/// The tags as somebody reads them who does not mind case, white space and attributes; `None` where
/// the name only begins as it should, or a tag opens and closes at once: some read these too.
fn loose_tags(text: &str, options: &Options) -> Option<Vec<Tag>> {
    let mut tags = Vec::new();
    for (start, _) in text.match_indices('<') {
        let inner = &text[start + 1..];
        let words = inner.trim_start();
        let closes = words.starts_with('/');
        let words = words.trim_start_matches('/').trim_start();
        let begins = words.get(..options.tag.len());
        if !begins.is_some_and(|name| name.eq_ignore_ascii_case(&options.tag)) {
            continue;
        }
        let rest = &words[options.tag.len()..];
        // Without an end it is no tag to anybody.
        let Some(end) = rest.find('>') else { continue };
        let attributes = &rest[..end];
        let ends = attributes.is_empty() || attributes.starts_with(char::is_whitespace);
        if !ends || attributes.contains('<') || attributes.ends_with('/') {
            return None;
        }
        tags.push(Tag { start, end: text.len() - rest.len() + end + 1, closes });
    }
    Some(tags)
}

/// What stands between tags, if they come in pairs one after the other.
fn blocks(text: &str, tags: Option<Vec<Tag>>) -> Reading<'_> {
    let Some(tags) = tags else { return Reading::Open };
    let opener = tags.iter().position(|tag| !tag.closes).unwrap_or(tags.len());
    if !tags[opener..].iter().any(|tag| tag.closes) {
        return Reading::Missing;
    }
    let paired = |pair: &[Tag]| pair.len() == 2 && !pair[0].closes && pair[1].closes;
    if !tags.chunks(2).all(paired) {
        return Reading::Open;
    }
    Reading::Answers(tags.chunks(2).map(|pair| &text[pair[0].end..pair[1].start]).collect())
}

/// Which braces count.
#[derive(Clone, Copy, Debug)]
enum Escapes {
    /// All.
    Count,
    /// Those that do not follow a backslash.
    Behind,
    /// Those that do not follow a backslash which is not itself escaped.
    Latex,
}

impl Escapes {
    const ALL: [Escapes; 3] = [Escapes::Count, Escapes::Behind, Escapes::Latex];
}

const BOX: &str = "\\boxed";

/// What stands in boxes, if each is closed and none is in another.
fn boxes(text: &str, escapes: Escapes) -> Reading<'_> {
    let mut answers = Vec::new();
    let (mut all, mut until) = (0, 0);
    for (start, _) in text.match_indices(BOX) {
        let inner = start + BOX.len();
        // A line break before the word `boxed`; a box without braces, or another command.
        if text[..start].ends_with('\\') || !text[inner..].starts_with('{') {
            return Reading::Open;
        }
        all += 1;
        let Some(end) = closing_brace(text, inner, escapes) else { continue };
        if start < until {
            return Reading::Open;
        }
        until = end;
        answers.push(&text[inner + 1..end]);
    }
    match (answers.len(), all) {
        (0, 0) if text.contains("\\fbox") => Reading::Open,
        (0, _) => Reading::Missing,
        (closed, all) if closed == all => Reading::Answers(answers),
        _ => Reading::Open,
    }
}

/// Where the brace that stands at `open` is closed.
fn closing_brace(text: &str, open: usize, escapes: Escapes) -> Option<usize> {
    let (mut depth, mut backslashes) = (0, 0);
    for (at, c) in text[open..].char_indices() {
        let escaped = match escapes {
            Escapes::Count => false,
            Escapes::Behind => backslashes > 0,
            Escapes::Latex => backslashes % 2 == 1,
        };
        match c {
            '{' if !escaped => depth += 1,
            '}' if !escaped => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(open + at);
        }
        backslashes = if c == '\\' { backslashes + 1 } else { 0 };
    }
    None
}

const HASHES: &str = "####";

/// The first line of a text: to a line feed; without the carriage return before it; to a carriage
/// return too; to wherever Python's `splitlines` ends a line.
const LINES: [fn(&str) -> &str; 4] = [
    |text| before(text, &['\n']),
    |text| text.lines().next().unwrap_or(""),
    |text| before(text, &['\n', '\r']),
    |text| before(text, SEPARATORS),
];

const SEPARATORS: &[char] =
    &['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

fn before<'a>(text: &'a str, ends: &[char]) -> &'a str {
    &text[..text.find(ends).unwrap_or(text.len())]
}

/// The rests of the lines with hashes in them, for all who differ in what ends a line, whether
/// hashes must be followed by a space, and whether nothing can be an answer.
fn lines(text: &str) -> Vec<Reading<'_>> {
    let twice = |line: &str| line.matches(HASHES).count() > 1;
    if text.contains("#####") || text.split('\n').any(twice) {
        return vec![Reading::Open];
    }
    let mut readings = Vec::new();
    for line in LINES {
        let rests: Vec<&str> =
            text.match_indices(HASHES).map(|(at, _)| line(&text[at + HASHES.len()..])).collect();
        let blank = |rest: &&str| rest.trim().is_empty();
        // Somebody who skips white space after the hashes comes to the next line.
        let after = text.match_indices(HASHES).map(|(at, _)| &text[at + HASHES.len()..]);
        if after.zip(&rests).any(|(after, rest)| blank(rest) && !blank(&after)) {
            return vec![Reading::Open];
        }
        let spaced = |rest: &&str| rest.starts_with(' ');
        for (only_spaced, only_full) in [(false, false), (true, false), (false, true), (true, true)]
        {
            let counts =
                |rest: &&str| (spaced(rest) || !only_spaced) && !(blank(rest) && only_full);
            let answers: Vec<&str> = rests.iter().copied().filter(counts).collect();
            readings.push(match answers.is_empty() {
                true => Reading::Missing,
                false => Reading::Answers(answers),
            });
        }
    }
    readings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(text: &str, options: &Options) -> Option<Vec<Option<String>>> {
        match answer(text, options) {
            Wanted::OneOf(texts) => Some(texts),
            Wanted::Pieces(_) | Wanted::Open => None,
        }
    }

    /// What is accepted, with `-` for null and nothing at all for an open text.
    fn shown(text: &str, options: &Options) -> Vec<String> {
        let texts = accepted(text, options).unwrap_or_default();
        texts.into_iter().map(|text| text.unwrap_or_else(|| "-".to_owned())).collect()
    }

    fn of(format: Format) -> Options {
        Options { format, ..Options::default() }
    }

    const OPEN: [&str; 0] = [];

    #[test]
    fn a_tag_gives_what_stands_in_it() {
        let tag = of(Format::XmlTag);
        assert_eq!(shown("a <answer> 4\n2 </answer> b", &tag), ["4\n2"]);
        assert_eq!(shown("<answer></answer>", &tag), [""]);
        assert_eq!(shown("<answer>1</answer><answer>2</answer>", &tag), ["2"]);
        let first = Options { pick: Which::First, ..tag.clone() };
        assert_eq!(shown("<answer>1</answer><answer>2</answer>", &first), ["1"]);
        for none in ["", "42", "<answer>42", "42</answer>", "</answer>42<answer>"] {
            assert_eq!(shown(none, &tag), ["-"], "{none}");
        }
        let kept = Options { trim: false, ..tag };
        assert_eq!(shown("<answer> 42\n</answer>", &kept), [" 42\n"]);
    }

    #[test]
    fn unbalanced_and_nested_tags_are_open() {
        let tag = of(Format::XmlTag);
        for open in [
            "<answer>1</answer></answer>",
            "<answer><answer>1</answer>",
            "<answer><answer>1</answer></answer>",
            "<answer>1</answer><answer>2",
            "</answer><answer>1</answer>",
            "<answer/><answer>1</answer>",
        ] {
            assert_eq!(shown(open, &tag), OPEN, "{open}");
        }
    }

    #[test]
    fn a_reader_may_mind_case_and_white_space_in_tags() {
        let tag = of(Format::XmlTag);
        for loose in ["<Answer>1</ANSWER>", "<answer >1< / answer>", "<answer n=\"1\">1</answer>"] {
            assert_eq!(shown(loose, &tag), ["-", "1"], "{loose}");
        }
        assert_eq!(shown("<answers>1</answers>", &tag), OPEN);
        assert_eq!(shown("<answer>1</answer", &tag), ["-"]);
    }

    #[test]
    fn a_box_gives_what_stands_in_its_braces() {
        let boxed = of(Format::Boxed);
        assert_eq!(shown("so $\\boxed{\\frac{1}{2}}$.", &boxed), ["\\frac{1}{2}"]);
        assert_eq!(shown("\\boxed{1}\\boxed{2}", &boxed), ["2"]);
        assert_eq!(shown("\\boxed{}", &boxed), [""]);
        assert_eq!(shown("\\boxed{\\{1, 2\\}}", &boxed), ["\\{1, 2\\}"]);
        for none in ["", "42", "\\boxed{1", "\\boxed{{1}", "{1}", "\\boxed{\\boxed{1"] {
            assert_eq!(shown(none, &boxed), ["-"], "{none}");
        }
    }

    #[test]
    fn what_no_convention_settles_about_boxes_is_open() {
        let boxed = of(Format::Boxed);
        for open in [
            "\\boxed 42",
            "\\fbox{3}",
            "\\boxed{1}\\boxed{2",
            "\\boxed{\\boxed{1}}",
            "\\\\boxed{1}",
            "\\boxed {1}",
        ] {
            assert_eq!(shown(open, &boxed), OPEN, "{open}");
        }
        assert_eq!(shown("\\boxed{\\{1}", &boxed), ["-", "\\{1"]);
        assert_eq!(shown("\\boxed{1\\\\}", &boxed), ["1\\\\", "-"]);
    }

    #[test]
    fn what_is_settled_is_the_answer_that_is_picked() {
        let last = Options { format: Format::XmlTag, pick: Which::Last, ..Options::default() };
        let two = "<answer> 1</answer><answer> 2</answer>";
        assert_eq!(settled(two, &last), Some("2"));
        let first = Options { pick: Which::First, trim: false, ..last };
        assert_eq!(settled(two, &first), Some(" 1"));
        assert_eq!(settled("<Answer>1</answer>", &first), None);
    }

    #[test]
    fn readers_of_escapes_differ_where_braces_balance_for_each_of_them() {
        let boxed = of(Format::Boxed);
        // Two backslashes escape nothing in LaTeX, and all for who looks one back.
        let both = [r"a\{b\\}", r"a\{b\\"];
        assert_eq!(shown(r"\boxed{a\{b\\}}", &boxed), both);
        assert_eq!(shown(r"\boxed{a\{b\\\}}", &boxed), [r"a\{b\\\}"]);
    }

    #[test]
    fn readers_of_hashes_differ_in_what_can_be_an_answer() {
        let hash = of(Format::Hash);
        // All rests; those after a space; those that are not blank; those that are both.
        assert_eq!(shown("#### 4\n####5\n#### ", &hash), ["", "5", "4"]);
        assert_eq!(shown("#### 4\n####", &hash), ["", "4"]);
    }

    #[test]
    fn hashes_give_the_rest_of_the_line() {
        let hash = of(Format::Hash);
        assert_eq!(shown("so\n#### 42\nbye", &hash), ["42"]);
        assert_eq!(shown("#### 1\n#### New York.", &hash), ["New York."]);
        assert_eq!(shown("42", &hash), ["-"]);
        assert_eq!(shown("### 42", &hash), ["-"]);
        assert_eq!(shown("####42", &hash), ["42", "-"]);
        assert_eq!(shown("#### \n", &hash), ["", "-"]);
        assert_eq!(shown("#### 1\r2", &hash), ["1\r2", "1"]);
        for open in ["#### 1 #### 2", "##### 1", "####\n42", "####\n####"] {
            assert_eq!(shown(open, &hash), OPEN, "{open}");
        }
        let kept = Options { trim: false, ..hash };
        assert_eq!(shown("#### 42\n", &kept), [" 42", "42"]);
    }

    #[test]
    fn without_an_answer_the_options_say_what_is_given() {
        let with = |missing| Options { missing, ..Options::default() };
        assert_eq!(shown("a", &with(Missing::Empty)), [""]);
        assert_eq!(shown(" a", &with(Missing::Whole)), [" a", "a"]);
        let kept = Options { trim: false, ..with(Missing::Whole) };
        assert_eq!(shown(" a", &kept), [" a"]);
    }

    #[test]
    fn white_space_beyond_ascii_may_stay() {
        let tag = of(Format::XmlTag);
        assert_eq!(shown("<answer>\u{a0}1</answer>", &tag), ["1", "\u{a0}1"]);
        assert_eq!(shown("<answer>\u{200b}1</answer>", &tag), ["\u{200b}1"]);
    }
}
