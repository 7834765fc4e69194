//! Templates: how a well-formed completion looks, cut into what can be left out or repeated.

use super::{Options, RewardFunctionCase};
use shakedown_core::generate::completions::Markers;

/// A part of a template.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// White space.
    White(String),
    /// A tag or a word that must be there.
    Mark(String),
    /// Where the reasoning stands.
    Reasoning,
    /// Where the answer stands.
    Answer,
}

impl Piece {
    /// What it says, where that is always the same.
    fn literal(&self) -> &str {
        match self {
            Piece::White(text) | Piece::Mark(text) => text,
            Piece::Reasoning | Piece::Answer => "",
        }
    }
}

/// A template, piece by piece.
#[derive(Clone, Debug)]
pub(super) struct Template(Vec<Piece>);

impl Template {
    /// The template of some options.
    pub(super) fn of(options: &Options) -> Template {
        let mut pieces = Vec::new();
        let mut rest = options.template.as_str();
        while let Some(first) = rest.chars().next() {
            if let Some(after) = rest.strip_prefix("{reasoning}") {
                pieces.push(Piece::Reasoning);
                rest = after;
            } else if let Some(after) = rest.strip_prefix("{answer}") {
                pieces.push(Piece::Answer);
                rest = after;
            } else if first.is_whitespace() {
                let (white, after) = rest.split_at(rest.len() - rest.trim_start().len());
                pieces.push(Piece::White(white.to_owned()));
                rest = after;
            } else {
                let (mark, after) = rest.split_at(mark(rest));
                pieces.push(Piece::Mark(mark.to_owned()));
                rest = after;
            }
        }
        Template(pieces)
    }

    /// The tags and words, in their order.
    pub(super) fn marks(&self) -> Vec<&str> {
        let marks = self.0.iter().filter(|piece| matches!(piece, Piece::Mark(_)));
        marks.map(Piece::literal).collect()
    }

    /// A well-formed completion.
    pub(super) fn render(&self, reasoning: &str, answer: &str) -> String {
        self.render_marks(reasoning, answer, |_, mark| mark.to_owned())
    }

    /// A completion with something else in the place of marks, given their number and text.
    pub(super) fn render_marks(
        &self,
        reasoning: &str,
        answer: &str,
        mut replace: impl FnMut(usize, &str) -> String,
    ) -> String {
        let mut number = 0;
        let mut text = String::new();
        for piece in &self.0 {
            match piece {
                Piece::White(white) => text.push_str(white),
                Piece::Mark(mark) => {
                    text.push_str(&replace(number, mark));
                    number += 1;
                }
                Piece::Reasoning => text.push_str(reasoning),
                Piece::Answer => text.push_str(answer),
            }
        }
        text
    }

    /// The answer part alone.
    pub(super) fn answer_part(&self, answer: &str) -> String {
        let [open, close] = self.around_answer();
        [&open, answer, &close].concat().trim().to_owned()
    }

    /// What stands before and after an answer and belongs to it, white space included.
    pub(super) fn around_answer(&self) -> [String; 2] {
        self.around(self.place(&Piece::Answer).expect("a template has an answer"))
    }

    /// What stands before and after the reasoning and belongs to it.
    fn around_reasoning(&self) -> [String; 2] {
        self.place(&Piece::Reasoning).map(|place| self.around(place)).unwrap_or_default()
    }

    /// Whether a mark ends the answer, which may then have several lines.
    pub(super) fn closes(&self) -> bool {
        !self.around_answer()[1].trim().is_empty()
    }

    /// The marks around both parts, without white space.
    pub(super) fn markers(&self) -> Markers {
        let trimmed = |pair: [String; 2]| pair.map(|text| text.trim().to_owned());
        Markers {
            reasoning: trimmed(self.around_reasoning()),
            answer: trimmed(self.around_answer()),
        }
    }

    /// Whether there is a place for reasoning.
    pub(super) fn reasons(&self) -> bool {
        self.place(&Piece::Reasoning).is_some()
    }

    /// The mark with which a well-formed completion ends, where it ends with one.
    pub(super) fn closing(&self) -> Option<&str> {
        let last = self.0.iter().rev().find(|piece| !matches!(piece, Piece::White(_)))?;
        match last {
            Piece::Mark(mark) => Some(mark),
            _ => None,
        }
    }

    fn place(&self, wanted: &Piece) -> Option<usize> {
        self.0.iter().position(|piece| piece == wanted)
    }

    /// The literal text on both sides of a part: a closing tag belongs to the part before it, and
    /// other marks to the part after them.
    fn around(&self, place: usize) -> [String; 2] {
        let is_part = |piece: &&Piece| matches!(piece, Piece::Reasoning | Piece::Answer);
        let is_closing =
            |piece: &Piece| matches!(piece, Piece::Mark(mark) if mark.starts_with("</"));
        let before: Vec<&Piece> =
            self.0[..place].iter().rev().take_while(|piece| !is_part(piece)).collect();
        let own = before.iter().take_while(|piece| !is_closing(piece));
        let mut open: Vec<&str> = own.map(|piece| piece.literal()).collect();
        open.reverse();
        let after: Vec<&Piece> =
            self.0[place + 1..].iter().take_while(|piece| !is_part(piece)).collect();
        // At the end of the template all that follows is the part's own.
        let own = match place + 1 + after.len() == self.0.len() {
            true => after.len(),
            false => after.iter().position(|piece| is_closing(piece)).map_or(0, |at| at + 1),
        };
        let close: Vec<&str> = after[..own].iter().map(|piece| piece.literal()).collect();
        [open.concat(), close.concat()]
    }

    /// The answer that stands last in a text, as a tolerant reader finds it.
    pub(super) fn answer_in<'a>(&self, text: &'a str) -> Option<&'a str> {
        let Markers { reasoning, answer: [open, close] } = self.markers();
        let lead = if open.is_empty() { &reasoning[1] } else { &open };
        let start = text.rfind(lead.as_str())? + lead.len();
        let rest = if lead.is_empty() { text } else { &text[start..] };
        let end = if close.is_empty() { rest.len() } else { rest.rfind(close.as_str())? };
        Some(&rest[..end])
    }

    /// The reasoning and the answer of a well-formed text.
    pub(super) fn parts<'a>(&self, text: &'a str) -> Option<Vec<&'a str>> {
        let mut rest = text.trim();
        let mut parts = Vec::new();
        let mut literal = String::new();
        let mut open = false;
        let end = [Piece::White(String::new())];
        for (place, piece) in self.0.iter().chain(&end).enumerate() {
            if let Piece::White(text) | Piece::Mark(text) = piece {
                literal.push_str(text);
            }
            if place < self.0.len() && !matches!(piece, Piece::Reasoning | Piece::Answer) {
                continue;
            }
            // What ends the text may end in white space, and nothing may follow it.
            let at = match (open, place == self.0.len()) {
                (false, _) => rest.starts_with(literal.trim_start()).then_some(0)?,
                (true, true) => rest.strip_suffix(literal.trim_end())?.len(),
                (true, false) => rest.find(&literal)?,
            };
            if open {
                parts.push(&rest[..at]);
            }
            let skipped = if open { literal.len() } else { literal.trim_start().len() };
            rest = rest.get(at + skipped..).unwrap_or_default();
            open = true;
            literal.clear();
        }
        let once = |mark: &&str| !is_tag(mark) || text.matches(*mark).count() == self.count(mark);
        self.marks().iter().all(once).then_some(parts)
    }

    /// How often a mark stands in a well-formed completion.
    pub(super) fn count(&self, mark: &str) -> usize {
        self.marks().iter().filter(|known| **known == mark).count()
    }

    /// Whether a text of a case is a well-formed completion with the gold answer.
    pub(super) fn is_gold(&self, case: &RewardFunctionCase, row: usize) -> bool {
        let answer = self.answer_in(&case.completions[row]);
        let formed = self.parts(&case.completions[row]).is_some();
        formed && answer.is_some_and(|answer| answer.trim() == case.answers[row].trim())
    }
}

/// Whether a mark is a tag: `<answer>`.
pub(super) fn is_tag(mark: &str) -> bool {
    mark.starts_with('<') && mark.ends_with('>')
}

/// The length in bytes of the mark that a text begins with: a tag, or a word.
fn mark(text: &str) -> usize {
    if let (true, Some(end)) = (text.starts_with('<'), text.find('>')) {
        return end + 1;
    }
    let ends = ["{reasoning}", "{answer}", "<"].map(|end| {
        let first = text.chars().next().map_or(0, char::len_utf8);
        text[first..].find(end).map_or(text.len(), |at| at + first)
    });
    let white = text.find(char::is_whitespace).unwrap_or(text.len());
    ends.into_iter().fold(white, usize::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn template(text: &str) -> Template {
        Template::of(&Options { template: text.to_owned(), ..Options::default() })
    }

    #[test]
    fn the_default_template_is_four_tags() {
        let template = Template::of(&Options::default());
        assert_eq!(template.marks(), ["<reasoning>", "</reasoning>", "<answer>", "</answer>"]);
        assert_eq!(template.answer_part("1"), "<answer>\n1\n</answer>");
        assert_eq!(template.closing(), Some("</answer>"));
        let text = template.render("r\ns", "1");
        assert_eq!(text, "<reasoning>\nr\ns\n</reasoning>\n<answer>\n1\n</answer>");
        assert_eq!(template.answer_in(&text), Some("\n1\n"));
        assert_eq!(template.parts(&text), Some(vec!["r\ns", "1"]));
        assert_eq!(template.parts(&format!("{text}</answer>")), None);
        assert_eq!(template.parts(&format!("{text} x")), None);
        assert_eq!(template.parts(&text.replace("</reasoning>", "")), None);
        assert_eq!(template.parts(""), None);
    }

    #[test]
    fn an_answer_may_have_no_tags() {
        let hashes = template("{reasoning}\n#### {answer}");
        assert_eq!(hashes.marks(), ["####"]);
        assert_eq!(hashes.answer_part("1"), "#### 1");
        assert_eq!(hashes.answer_in("so 2\n#### 1"), Some(" 1"));
        assert_eq!(hashes.closing(), None);
        let boxed = template("{reasoning} \\boxed{{answer}}");
        assert_eq!(boxed.answer_part("\\frac{1}{2}"), "\\boxed{\\frac{1}{2}}");
        assert_eq!(boxed.answer_in("so \\boxed{\\frac{1}{2}}"), Some("\\frac{1}{2}"));
        let think = template("<think>\n{reasoning}\n</think>\n{answer}");
        assert_eq!(think.answer_in("<think>\nr\n</think>\n1"), Some("\n1"));
        assert_eq!(think.parts("<think>\nr\n</think>\n1"), Some(vec!["r", "1"]));
        assert_eq!(template("{answer}").answer_in("1"), Some("1"));
    }
}
