//! Completion shapes: how completions of a language model really look, with gold answers in them.
//!
//! A completion has a reasoning part and an answer part, each between markers. Models leave markers
//! out, repeat them, nest them, quote them, stop in the middle of a character. [`Shape`] lists how,
//! [`completion`] draws one and damages it further.

use arbitrary::{Result, Unstructured};

use crate::generate::draw::{chance, one};
use crate::generate::pick::Pick;
use crate::value::choice::choice;

/// The markers around the two parts of a completion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Markers {
    /// Before and after the reasoning: `<think>`, `</think>`.
    pub reasoning: [String; 2],
    /// Before and after the answer: `<answer>`, `</answer>`; `\boxed{`, `}`.
    pub answer: [String; 2],
}

impl Markers {
    /// The markers of the two parts.
    pub fn new(reasoning: [&str; 2], answer: [&str; 2]) -> Markers {
        let owned = |pair: [&str; 2]| pair.map(str::to_owned);
        Markers { reasoning: owned(reasoning), answer: owned(answer) }
    }
}

/// Declares the shapes: variant, meaning, and the text made of the markers `[o, c]` of the
/// reasoning and `[a, z]` of the answer, the reasoning `r` and the answer `x`.
macro_rules! shapes {
    (|$o:ident, $c:ident, $a:ident, $z:ident, $r:ident, $x:ident|
     $( $(#[doc = $doc:literal])+ $variant:ident => $format:literal, )+) => {
        /// How a completion is made of its markers, its reasoning and its answer.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Shape {
            $( $(#[doc = $doc])+ $variant, )+
        }

        impl Shape {
            /// Every shape, the plainest first.
            pub const ALL: &'static [Shape] = &[$( Shape::$variant ),+];

            /// A completion of this shape.
            pub fn render(self, markers: &Markers, $r: &str, $x: &str) -> String {
                let [$o, $c] = &markers.reasoning;
                let [$a, $z] = &markers.answer;
                // Not every shape has every part.
                let _ = ($o, $c, $a, $z, $r, $x);
                match self {
                    $( Shape::$variant => format!($format), )+
                }
            }
        }
    };
}

shapes! {
    |o, c, a, z, r, x|
    /// Both parts between their markers.
    WellFormed => "{o}{r}{c}{a}{x}{z}",
    /// The same, one marker to a line.
    OnLines => "{o}\n{r}\n{c}\n{a}\n{x}\n{z}",
    /// The answer without any marker.
    Bare => "{x}",
    /// Plain prose that holds the answer.
    Prose => "{r} {x}",
    /// The answer part only.
    AnswerOnly => "{a}{x}{z}",
    /// The reasoning part only.
    ReasoningOnly => "{o}{r}{c}",
    /// The reasoning between its markers, then the answer without any.
    AnswerUnmarked => "{o}{r}{c}{x}",
    /// Prose, then the answer part: the template has put the opening marker into the prompt.
    OpenedInThePrompt => "{r}{c}{a}{x}{z}",
    /// Cut off in the reasoning.
    ReasoningUnclosed => "{o}{r}",
    /// Cut off in the answer.
    AnswerUnclosed => "{o}{r}{c}{a}{x}",
    /// A closing marker of the answer only.
    AnswerUnopened => "{r} {x}{z}",
    /// An opening marker and nothing else.
    MarkerAlone => "{a}",
    /// Nothing between the markers of the answer.
    AnswerEmpty => "{o}{r}{c}{a}{z}",
    /// White space between the markers of the answer.
    AnswerWhite => "{o}{r}{c}{a} \n{z}",
    /// White space around the answer, inside its markers.
    AnswerSpaced => "{o} {r} {c}{a} {x} {z}",
    /// The answer first.
    Reordered => "{a}{x}{z}{o}{r}{c}",
    /// The answer part twice.
    AnswerTwice => "{o}{r}{c}{a}{x}{z}\n{a}{x}{z}",
    /// The closing marker twice.
    ClosedTwice => "{o}{r}{c}{a}{x}{z}{z}",
    /// The reasoning part twice.
    ReasoningTwice => "{o}{r}{c}{o}{r}{c}{a}{x}{z}",
    /// An answer part inside the reasoning, as an example.
    QuotedInTheReasoning => "{o}{r} {a}?{z}{c}{a}{x}{z}",
    /// An answer part inside the answer part.
    AnswerNested => "{o}{r}{c}{a}{a}{x}{z}{z}",
    /// A reasoning part inside the reasoning part.
    ReasoningNested => "{o}{o}{r}{c}{c}{a}{x}{z}",
    /// The whole in a block of code.
    InACodeBlock => "```\n{o}{r}{c}{a}{x}{z}\n```",
    /// Markers named in quotation marks before they are used.
    Quoted => "I write '{a}' and '{z}'. {o}{r}{c}{a}{x}{z}",
    /// Friendly words after the end.
    Trailing => "{o}{r}{c}{a}{x}{z}\nI hope this helps!",
    /// Friendly words before the beginning.
    Leading => "Sure! {o}{r}{c}{a}{x}{z}",
    /// The reasoning closed by the marker of the answer.
    CrossClosed => "{o}{r}{z}{a}{x}{c}",
}

/// Pieces of text that implementations trip over, and what they are.
pub const NASTY: &[(&str, &str)] = &[
    ("line ends of Windows", "a\r\nb"),
    ("a NUL", "a\0b"),
    ("a byte order mark", "\u{feff}a"),
    ("a zero-width space", "a\u{200b}b"),
    ("a combining accent", "e\u{301}"),
    ("text from right to left", "\u{5e9}\u{5dc}\u{5d5}\u{5dd}"),
    ("a mark of direction", "a\u{202e}b"),
    ("a family of emoji", "👩\u{200d}👩\u{200d}👧"),
    ("a flag", "🇩🇪"),
    ("a replacement character", "a\u{fffd}"),
    ("Chinese", "答案是"),
    ("a space that does not break", "a\u{a0}b"),
    ("a line separator", "a\u{2028}b"),
    ("less than and ampersand", "a < b && c > d"),
    ("a special token of another template", "<|im_end|>"),
    ("an end of text", "<|endoftext|>"),
    ("braces", "{ } {{x}}"),
    ("a backslash", "\\n \\1 \\\\"),
    ("dollars", "$x$ $$y$$"),
    ("a block of code", "```python\nprint(1)\n```"),
    ("a tab", "a\tb"),
    ("entities of HTML", "&lt;b&gt; &amp;"),
    ("a percent and a format", "%s {0} 100%"),
];

/// Words of plain reasoning.
const WORDS: &[&str] = &[
    "so", "we", "add", "the", "two", "numbers", "and", "get", "it", "first", "then", "check",
    "that", "is", "right", "wait", "no",
];

/// Reasoning without markers, possibly empty: words, lines and nasty pieces.
pub fn prose(u: &mut Unstructured<'_>) -> Result<String> {
    let mut text = String::new();
    for _ in 0..u.choose_index(6)? {
        match u.choose_index(8)? {
            0 => text.push('\n'),
            1 => text.push_str(one(u, NASTY)?.1),
            2 => text.push_str(one(u, &["1", "2", "-3", "10", "0.5", "1,000"])?),
            _ => text.push_str(one(u, WORDS)?),
        }
        if chance(u, 180)? {
            text.push(' ');
        }
    }
    Ok(text)
}

choice! {
    /// What kind of gold answers there are.
    pub enum AnswerFamily {
        /// Integers, with signs and separators.
        Integer = "integer",
        /// Numbers with a decimal point.
        Decimal = "decimal",
        /// Words and sentences.
        Text = "text",
        /// LaTeX, with nested braces.
        Latex = "latex",
    }
}

impl AnswerFamily {
    /// Answers of the family, the plainest first.
    pub fn answers(self) -> &'static [&'static str] {
        match self {
            AnswerFamily::Integer => {
                &["1", "2", "42", "0", "-5", "10", "7", "100", "-1", "1000000", "123456789"]
            }
            AnswerFamily::Decimal => {
                &["0.5", "3.14", "-2.5", "1.0", "0.125", "10.75", "-0.1", "100.01"]
            }
            AnswerFamily::Text => &[
                "a",
                "Paris",
                "the red one",
                "New York",
                "yes",
                "B",
                "café",
                "東京",
                "O'Brien",
                "x and y",
            ],
            AnswerFamily::Latex => &[
                "x",
                "\\frac{1}{2}",
                "x^{2}",
                "\\sqrt{3}",
                "\\frac{\\sqrt{2}}{2}",
                "(1, 2)",
                "2\\pi",
                "\\text{odd}",
                "x^{y^{z}}",
                "\\{1, 2\\}",
            ],
        }
    }

    /// An answer of the family.
    pub fn draw(self, u: &mut Unstructured<'_>) -> Result<String> {
        if chance(u, 160)? {
            return Ok(one(u, self.answers())?.to_owned());
        }
        Ok(match self {
            AnswerFamily::Integer => i32::from(u.arbitrary::<i16>()?).to_string(),
            AnswerFamily::Decimal => format!("{:.2}", f64::from(u.arbitrary::<i16>()?) / 100.0),
            AnswerFamily::Text => [one(u, WORDS)?, one(u, WORDS)?].join(" "),
            AnswerFamily::Latex => {
                format!("\\frac{{{}}}{{{}}}", u.arbitrary::<u8>()?, 2 + u.choose_index(9)?)
            }
        })
    }

    /// A wrong answer of the same kind: one that contains the gold answer, one that it contains,
    /// or another one altogether. Never one that a reader could take for the gold answer.
    pub fn wrong(self, gold: &str, pick: &mut Pick) -> String {
        pick.one(&self.wrongs(gold)).clone()
    }

    /// All of these wrong answers.
    pub fn wrongs(self, gold: &str) -> Vec<String> {
        let mut candidates: Vec<String> = match self {
            AnswerFamily::Integer => ["0", "1", "3", "11", "-7"].map(str::to_owned).to_vec(),
            AnswerFamily::Decimal => ["0.25", "1.5", "7.75", "-3.5"].map(str::to_owned).to_vec(),
            AnswerFamily::Text => ["Berlin", "the blue one", "no", "Q"].map(str::to_owned).to_vec(),
            AnswerFamily::Latex => ["y", "\\frac{3}{7}", "z^{5}"].map(str::to_owned).to_vec(),
        };
        match self {
            AnswerFamily::Integer => {
                let digits = gold.trim_start_matches('-');
                candidates.extend([format!("{gold}7"), format!("{gold}1"), format!("3{digits}")]);
                candidates.extend(gold.strip_prefix('-').map(str::to_owned));
            }
            AnswerFamily::Decimal => candidates.push(format!("{gold}5")),
            AnswerFamily::Text => candidates.push(format!("not {gold}")),
            AnswerFamily::Latex => candidates.push(format!("{gold}+1")),
        }
        let number = |text: &str| text.replace(',', "").parse::<f64>().ok();
        let same = |candidate: &String| match (number(candidate), number(gold)) {
            (Some(a), Some(b)) => a == b,
            _ => candidate.to_lowercase() == gold.to_lowercase(),
        };
        candidates.retain(|candidate| !same(candidate));
        candidates
    }
}

/// A completion of any shape, perhaps damaged. `answer` is what stands in the answer part.
pub fn completion(u: &mut Unstructured<'_>, markers: &Markers, answer: &str) -> Result<String> {
    let reasoning = prose(u)?;
    let mut text = one(u, Shape::ALL)?.render(markers, &reasoning, answer);
    for _ in 0..[0, 0, 0, 1, 1, 2][u.choose_index(6)?] {
        text = damaged(u, &text, markers)?;
    }
    Ok(text)
}

/// A text with one thing wrong in it.
pub fn damaged(u: &mut Unstructured<'_>, text: &str, markers: &Markers) -> Result<String> {
    let [o, c] = &markers.reasoning;
    let [a, z] = &markers.answer;
    let all: [&str; 4] = [o, c, a, z];
    Ok(match u.choose_index(12)? {
        // Cut at a byte: what is left of a character becomes U+FFFD, as a decoder makes it.
        0 | 1 => {
            let end = u.int_in_range(0..=text.len())?;
            String::from_utf8_lossy(&text.as_bytes()[..end]).into_owned()
        }
        2 => {
            let (_, piece) = one(u, NASTY)?;
            inserted(u, text, piece)?
        }
        3 => {
            let marker = one(u, &all)?;
            inserted(u, text, marker)?
        }
        4 => {
            let marker = one(u, &all)?;
            text.replacen(marker, "", 1)
        }
        5 => {
            let marker = one(u, &all)?;
            text.replacen(marker, &marker.to_uppercase(), 1)
        }
        6 => {
            let marker = one(u, &all)?;
            text.replacen(marker, &marker.replace('>', " >"), 1)
        }
        7 => text.replace('\n', "\r\n"),
        8 => format!("{}{text}", one(u, &[" ", "\n", "\n\n", "\t", "\u{feff}"])?),
        9 => format!("{text}{}", one(u, &[" ", "\n", "\n\n", ".", "\u{200b}", "x"])?),
        10 => {
            let run = one(u, &["a", " ", "\n", "ab ", "é"])?;
            let count = one(u, &[10, 100, 400])?;
            format!("{text}{}", run.repeat(count))
        }
        _ => {
            let at = boundary(u, text)?;
            text[at..].to_owned()
        }
    })
}

/// The text with a piece put in somewhere.
pub fn inserted(u: &mut Unstructured<'_>, text: &str, piece: &str) -> Result<String> {
    let at = boundary(u, text)?;
    Ok([&text[..at], piece, &text[at..]].concat())
}

/// A place between two characters.
fn boundary(u: &mut Unstructured<'_>, text: &str) -> Result<usize> {
    let mut at = u.int_in_range(0..=text.len())?;
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn markers() -> Markers {
        Markers::new(["<think>", "</think>"], ["<answer>", "</answer>"])
    }

    #[test]
    fn shapes_render_as_they_say() {
        let render = |shape: Shape| shape.render(&markers(), "r", "x");
        assert_eq!(render(Shape::WellFormed), "<think>r</think><answer>x</answer>");
        assert_eq!(render(Shape::OpenedInThePrompt), "r</think><answer>x</answer>");
        assert_eq!(render(Shape::CrossClosed), "<think>r</answer><answer>x</think>");
    }

    #[test]
    fn completions_can_be_drawn_from_any_bytes() {
        for bytes in [vec![], vec![0; 64], vec![255; 64], (0..=255).collect::<Vec<u8>>()] {
            let mut u = Unstructured::new(&bytes);
            let answer = AnswerFamily::Latex.draw(&mut u).unwrap();
            assert!(completion(&mut u, &markers(), &answer).unwrap().len() < 4000);
        }
    }

    #[test]
    fn wrong_answers_are_wrong() {
        for family in AnswerFamily::ALL {
            for gold in family.answers() {
                for seed in 0..40 {
                    let wrong = family.wrong(gold, &mut Pick::seeded(seed));
                    assert_ne!(wrong.to_lowercase(), gold.to_lowercase());
                    let numbers = [wrong.parse::<f64>(), gold.parse::<f64>()];
                    if let [Ok(wrong), Ok(gold)] = numbers {
                        assert_ne!(wrong, gold);
                    }
                }
            }
        }
    }
}
