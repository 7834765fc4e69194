//! How much is read of what a component says: everything that is said of it again costs time.

use std::borrow::Cow;

use shakedown_core::value::record::Value;

/// Lines of a message: half of them from its beginning, half from its end.
const LINES: usize = 200;
/// Bytes of a line, in the same way.
const WIDTH: usize = 4000;

/// A message, without the middle where it is long.
pub(super) fn excerpt(text: &str) -> Cow<'_, str> {
    let count = text.lines().count();
    if count <= LINES && text.lines().all(|line| line.len() <= WIDTH) {
        return Cow::Borrowed(text);
    }
    let mut lines: Vec<Cow<'_, str>> = text.lines().map(shortened).collect();
    if count > LINES {
        let (first, last) = (LINES / 2, count - LINES / 2);
        let left_out = format!("… {} more lines …", last - first);
        lines.splice(first..last, [Cow::Owned(left_out)]);
    }
    Cow::Owned(lines.join("\n"))
}

fn shortened(line: &str) -> Cow<'_, str> {
    if line.len() <= WIDTH {
        return Cow::Borrowed(line);
    }
    let (first, last) =
        (line.floor_char_boundary(WIDTH / 2), line.ceil_char_boundary(line.len() - WIDTH / 2));
    let [start, end] = [&line[..first], &line[last..]];
    Cow::Owned(format!("{start} … {} more bytes … {end}", last - first))
}

/// Bytes of a returned text: the longest that is generated is far shorter.
const LONGEST_TEXT: usize = 1 << 20;

/// Whether the texts of an output are short enough to be judged; which one is not.
pub(super) fn all_readable(name: &str, value: &Value) -> Result<(), String> {
    let Value::Text(texts) = value else { return Ok(()) };
    let too_long = texts.iter().flatten().zip(0..).find(|(text, _)| text.len() > LONGEST_TEXT);
    match too_long {
        Some((text, at)) => {
            let found = text.len();
            Err(format!("`{name}`[{at}] has {found} bytes, expected {LONGEST_TEXT} at most"))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_stay_and_long_ones_lose_their_middle() {
        let usual = "KeyError: 'answer'\n  at a.py, é\n";
        assert_eq!(excerpt(usual), usual);
        let lines: Vec<String> = (0..200_000).map(|line| line.to_string()).collect();
        let lines = excerpt(&lines.join("\n")).into_owned();
        let ends = lines.starts_with("0\n1\n") && lines.ends_with("\n199998\n199999");
        assert!(ends && lines.contains("\n99\n… 199800 more lines …\n199900\n"), "{lines}");
        let wide = excerpt(&"é".repeat(5_000_000)).into_owned();
        assert!(wide.starts_with("éé") && wide.ends_with("éé") && wide.len() < 4100, "{wide}");
        assert!(wide.contains("é … 9996000 more bytes … é"), "{wide}");
    }
}
