//! Texts of a case: how complex they are, and simpler ones that a person can still read.
//!
//! A simpler text has fewer characters, then plainer ones. Whole segments go first (a tag, a word,
//! a run of white space), then single characters, so that what is left of a completion still looks
//! like one.

use std::ops::Range;

/// What one character costs at least: fewer characters are simpler, whichever they are, among
/// ASCII. One that is not ASCII costs more than two that are.
const CHARACTER: u64 = 128;

/// Texts of more characters are only cut by segments.
const FEW_CHARACTERS: usize = 48;

/// Two segments at once go from texts of no more than this.
const FEW_PAIRED: usize = 20;

/// Texts of more segments are only cut by halves and runs.
const FEW_SEGMENTS: usize = 48;

/// How complex a text is: 0 is the empty one.
pub fn complexity(text: &str) -> u64 {
    text.chars().map(character).sum()
}

fn character(c: char) -> u64 {
    let rank = match c {
        'a'..='z' => u64::from(u32::from(c) - u32::from('a')),
        '0'..='9' => 30 + u64::from(u32::from(c) - u32::from('0')),
        'A'..='Z' => 44,
        ' ' => 42,
        '\n' => 43,
        ' '..='~' => 45,
        '\0'..='\x7f' => 100,
        '\u{fffd}' => 700,
        c if c.is_alphanumeric() => 600,
        _ => 650,
    };
    CHARACTER + rank
}

/// Simpler texts, the boldest first.
pub fn simpler(text: &str) -> Vec<String> {
    let parts = segments(text);
    let mut candidates: Vec<String> = ["", "a", "1"].map(str::to_owned).to_vec();
    let mut keep = |range: Range<usize>| candidates.push(text[range].to_owned());
    if parts.len() > 1 {
        let middle = parts[parts.len() / 2].start;
        keep(0..middle);
        keep(middle..text.len());
    }
    let mut leave_out = |range: Range<usize>| {
        candidates.push([&text[..range.start], &text[range.end..]].concat());
    };
    if parts.len() > FEW_SEGMENTS {
        let run = parts.len().div_ceil(FEW_SEGMENTS);
        for parts in parts.chunks(run) {
            leave_out(parts[0].start..parts[parts.len() - 1].end);
        }
    } else {
        for count in [3, 2, 1] {
            for parts in parts.windows(count) {
                leave_out(parts[0].start..parts[count - 1].end);
            }
        }
        // Two parts that belong together, as tags do.
        for (first, part) in parts.iter().enumerate() {
            for other in parts[first + 1..].iter().filter(|_| parts.len() <= FEW_PAIRED) {
                let between = &text[part.end..other.start];
                let rest = [&text[..part.start], between, &text[other.end..]];
                candidates.push(rest.concat());
            }
        }
        for part in &parts {
            for plain in ["a", "1", " ", "\n"] {
                let rest = [&text[..part.start], plain, &text[part.end..]];
                candidates.push(rest.concat());
            }
        }
    }
    if text.chars().count() <= FEW_CHARACTERS {
        for (at, c) in text.char_indices() {
            let (before, after) = (&text[..at], &text[at + c.len_utf8()..]);
            candidates.push([before, after].concat());
            for plain in ["a", "b", "0", "1", " ", "\n"] {
                candidates.push([before, plain, after].concat());
            }
        }
    }
    let limit = complexity(text);
    candidates.retain(|candidate| complexity(candidate) < limit);
    let mut seen = std::collections::HashSet::new();
    candidates.retain(|candidate| seen.insert(candidate.clone()));
    candidates
}

/// The parts that a reader sees: tags, words, numbers, runs of one character, single marks.
pub fn segments(text: &str) -> Vec<Range<usize>> {
    let mut parts = Vec::new();
    let mut at = 0;
    while at < text.len() {
        let end = at + segment(&text[at..]);
        parts.push(at..end);
        at = end;
    }
    parts
}

/// The length in bytes of the segment that a text begins with.
fn segment(text: &str) -> usize {
    let first = text.chars().next().unwrap_or('a');
    if first == '<'
        && let Some(end) = text[1..].find(['<', '>']).map(|end| end + 1)
        && text.as_bytes()[end] == b'>'
    {
        return end + 1;
    }
    let same: fn(char, char) -> bool = match first {
        c if c.is_alphabetic() => |_, c| c.is_alphabetic(),
        c if c.is_ascii_digit() => |_, c| c.is_ascii_digit(),
        _ => |first, c| first == c,
    };
    // A command of LaTeX is one word.
    let skip = if first == '\\' && text[1..].starts_with(char::is_alphabetic) { 1 } else { 0 };
    let inner = &text[skip..];
    let first = inner.chars().next().map_or(first, |c| c);
    let same = if skip == 1 { |_: char, c: char| c.is_alphabetic() } else { same };
    skip + inner.find(|c| !same(first, c)).unwrap_or(inner.len()).max(first.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_what_a_reader_sees() {
        let text = "<answer>\n\n-12 a\\boxed{x}</answer>é🙂";
        let parts: Vec<&str> = segments(text).into_iter().map(|part| &text[part]).collect();
        let expected = [
            "<answer>",
            "\n\n",
            "-",
            "12",
            " ",
            "a",
            "\\boxed",
            "{",
            "x",
            "}",
            "</answer>",
            "é",
            "🙂",
        ];
        assert_eq!(parts, expected);
        assert!(segments("").is_empty());
        assert_eq!(segments("<a<b>").len(), 3);
    }

    #[test]
    fn simpler_texts_are_simpler_and_reach_every_part() {
        let text = "<think>é\u{200b}</think> so <answer>42</answer>";
        let simpler_texts = simpler(text);
        assert!(simpler_texts.iter().all(|simpler| complexity(simpler) < complexity(text)));
        for expected in
            ["", "<think>é\u{200b}</think> so 42", "<think>é</think> so <answer>42</answer>"]
        {
            assert!(simpler_texts.iter().any(|simpler| simpler == expected), "{expected}");
        }
        assert!(simpler("").is_empty());
    }

    #[test]
    fn ascii_is_preferred() {
        assert!(complexity("ab") < complexity("é"));
        assert!(complexity("a") < complexity("b") && complexity("z") < complexity("1"));
        assert!(complexity("a") < complexity("\0"));
    }
}
