//! Objects as JSON and Python write them, with `NaN`, `Infinity`, `None`, `np.float64(0.5)` and
//! numbers in quotes. Nested ones become names joined by a separator; lists are passed over.

use std::borrow::Cow;

use memchr::memchr2;

/// Objects that are nested deeper than this are no rows of metrics.
const DEEPEST: usize = 32;

/// A value that is no object and no list.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Leaf<'a> {
    /// `null`, `None`, and what is no number.
    Null,
    /// A number and how it is written; a text too where it spells a number.
    Number(f64, &'a str),
    /// `true` or `false`.
    Truth,
    /// A text.
    Text(Cow<'a, str>),
    /// An object without a member, which a visitor would not see otherwise.
    Nothing,
}

/// Who wrote an object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dialect {
    /// JSON, with `NaN` and `Infinity` as Python's `json` writes them.
    Json,
    /// A printed dictionary.
    Python,
}

/// What takes the leaves of an object under their names.
type Visit<'v, 'a> = &'v mut dyn FnMut(&str, Leaf<'a>);

/// Reads the object with which a text begins, up to the place after it.
///
/// # Errors
/// The place where it is no object.
pub(super) fn object<'a>(
    text: &'a str,
    dialect: Dialect,
    separator: char,
    visit: Visit<'_, 'a>,
) -> Result<usize, usize> {
    let mut reader = Reader { text, at: 0, dialect, separator, path: String::new(), hidden: 0 };
    reader.skip_blanks();
    match reader.object(0, visit) {
        Some(()) => Ok(reader.at),
        None => Err(reader.at),
    }
}

/// Whether a text is one object and nothing else.
pub(super) fn is_object(text: &str, dialect: Dialect) -> bool {
    let end = object(text, dialect, '/', &mut |_, _| ());
    end.is_ok_and(|end| text[end..].trim().is_empty())
}

/// The value of JSON that is no object: what W&B keeps of each metric.
pub(super) fn leaf(text: &str) -> Option<Leaf<'_>> {
    let mut reader = Reader {
        text,
        at: 0,
        dialect: Dialect::Json,
        separator: '.',
        path: String::new(),
        hidden: 0,
    };
    reader.skip_blanks();
    match reader.peek()? {
        b'{' | b'[' => None,
        _ => reader.leaf(),
    }
}

/// A number as a text spells it, alone or as Python prints those of libraries: `np.float64(0.5)`.
pub(super) fn number(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    if let (Some((called, inner)), true) = (text.split_once('('), text.ends_with(')')) {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '.';
        let inner = inner.trim_end_matches(')').split(',').next().unwrap_or_default().trim();
        let inner = inner.trim_matches(['\'', '"', '[', ']']);
        return called.chars().all(is_name).then(|| plain(inner)).flatten();
    }
    plain(text)
}

fn plain(text: &str) -> Option<(f64, &str)> {
    let begins = |byte: &u8| byte.is_ascii_digit() || b"+-.nNiI".contains(byte);
    text.as_bytes().first().filter(|byte| begins(byte))?;
    Some((text.parse().ok()?, text))
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    dialect: Dialect,
    separator: char,
    path: String,
    /// How many lists are open: what is in them has no name.
    hidden: usize,
}

impl<'a> Reader<'a> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_blanks(&mut self) {
        while self.peek().is_some_and(|byte| byte.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Passes a byte where it is next.
    fn takes(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn object(&mut self, depth: usize, visit: Visit<'_, 'a>) -> Option<()> {
        if depth > DEEPEST || !self.takes(b'{') {
            return None;
        }
        self.skip_blanks();
        if self.takes(b'}') {
            if depth > 0 && self.hidden == 0 {
                visit(&self.path, Leaf::Nothing);
            }
            return Some(());
        }
        loop {
            self.skip_blanks();
            let outer = self.path.len();
            let name = self.name()?;
            if outer > 0 {
                self.path.push(self.separator);
            }
            self.path.push_str(&name);
            self.skip_blanks();
            self.takes(b':').then_some(())?;
            self.value(depth, visit)?;
            self.path.truncate(outer);
            if self.is_last(b'}')? {
                return Some(());
            }
        }
    }

    /// Whether a bracket ends what is read, and no comma; Python has commas before brackets too.
    fn is_last(&mut self, bracket: u8) -> Option<bool> {
        self.skip_blanks();
        if self.takes(b',') {
            self.skip_blanks();
            return Some(self.dialect == Dialect::Python && self.takes(bracket));
        }
        self.takes(bracket).then_some(true)
    }

    fn name(&mut self) -> Option<Cow<'a, str>> {
        match (self.peek()?, self.dialect) {
            (b'"', _) | (b'\'', Dialect::Python) => self.quoted(),
            (byte, Dialect::Python) if byte.is_ascii_digit() => {
                let start = self.at;
                while self.peek().is_some_and(|byte| byte.is_ascii_digit()) {
                    self.at += 1;
                }
                Some(Cow::Borrowed(&self.text[start..self.at]))
            }
            _ => None,
        }
    }

    fn value(&mut self, depth: usize, visit: Visit<'_, 'a>) -> Option<()> {
        self.skip_blanks();
        match (self.peek()?, self.dialect) {
            (b'{', _) => self.object(depth + 1, visit),
            (b'[', _) => self.list(depth + 1, b']', visit),
            (b'(', Dialect::Python) => self.list(depth + 1, b')', visit),
            _ => {
                let leaf = self.leaf()?;
                if self.hidden == 0 {
                    visit(&self.path, leaf);
                }
                Some(())
            }
        }
    }

    fn list(&mut self, depth: usize, bracket: u8, visit: Visit<'_, 'a>) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        self.at += 1;
        self.skip_blanks();
        if self.takes(bracket) {
            return Some(());
        }
        self.hidden += 1;
        loop {
            self.value(depth, visit)?;
            if self.is_last(bracket)? {
                self.hidden -= 1;
                return Some(());
            }
        }
    }

    fn leaf(&mut self) -> Option<Leaf<'a>> {
        match (self.peek()?, self.dialect) {
            (b'"', _) | (b'\'', Dialect::Python) => Some(match self.quoted()? {
                Cow::Borrowed(text) => match plain(text.trim()) {
                    Some((value, text)) => Leaf::Number(value, text),
                    None => Leaf::Text(Cow::Borrowed(text)),
                },
                owned => Leaf::Text(owned),
            }),
            _ => self.word(),
        }
    }

    fn word(&mut self) -> Option<Leaf<'a>> {
        let start = self.at;
        let is_word = |byte: u8| byte.is_ascii_alphanumeric() || b"+-._".contains(&byte);
        while self.peek().is_some_and(is_word) {
            self.at += 1;
        }
        let word = &self.text[start..self.at];
        if self.dialect == Dialect::Python && self.peek() == Some(b'(') {
            self.skip_call()?;
            let leaf = number(&self.text[start..self.at]);
            return Some(leaf.map_or(Leaf::Null, |(value, text)| Leaf::Number(value, text)));
        }
        match word {
            "null" | "None" => Some(Leaf::Null),
            "true" | "false" | "True" | "False" => Some(Leaf::Truth),
            _ => match plain(word) {
                Some((value, text)) => Some(Leaf::Number(value, text)),
                None => {
                    self.at = start;
                    None
                }
            },
        }
    }

    /// Passes the arguments of a call.
    fn skip_call(&mut self) -> Option<()> {
        let mut open = 0_usize;
        loop {
            match self.peek()? {
                b'"' | b'\'' => {
                    self.quoted()?;
                    continue;
                }
                b'(' => open += 1,
                b')' => open -= 1,
                _ => {}
            }
            self.at += 1;
            if open == 0 {
                return Some(());
            }
        }
    }

    /// A text in the quotes with which it begins.
    fn quoted(&mut self) -> Option<Cow<'a, str>> {
        let quote = self.peek()?;
        let start = self.at + 1;
        let mut at = start;
        let mut is_escaped = false;
        loop {
            at += memchr2(quote, b'\\', &self.text.as_bytes()[at..])?;
            if self.text.as_bytes()[at] == quote {
                break;
            }
            is_escaped = true;
            at += 2;
            if at > self.text.len() {
                return None;
            }
        }
        let text = &self.text[start..at];
        self.at = at + 1;
        Some(if is_escaped { Cow::Owned(unescaped(text)) } else { Cow::Borrowed(text) })
    }
}

fn unescaped(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(letter) = rest.next() {
        match if letter == '\\' { rest.next() } else { None } {
            None => plain.push(letter),
            Some('n') => plain.push('\n'),
            Some('t') => plain.push('\t'),
            Some('r') => plain.push('\r'),
            Some('u') => {
                let digits: String = rest.by_ref().take(4).collect();
                let code = u32::from_str_radix(&digits, 16).ok();
                plain.push(code.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            Some(other) => plain.push(other),
        }
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str, dialect: Dialect) -> Option<Vec<(String, String)>> {
        let mut all = Vec::new();
        let mut visit = |name: &str, leaf: Leaf<'_>| {
            let told = match leaf {
                Leaf::Number(value, _) => format!("{value}"),
                other => format!("{other:?}"),
            };
            all.push((name.to_owned(), told));
        };
        object(text, dialect, '/', &mut visit).ok()?;
        Some(all)
    }

    fn numbers(text: &str, dialect: Dialect) -> String {
        let all = leaves(text, dialect).expect(text);
        let told: Vec<String> = all.iter().map(|(name, leaf)| format!("{name}={leaf}")).collect();
        told.join(" ")
    }

    #[test]
    fn json_has_numbers_that_are_not_finite() {
        let text = r#"{"a": NaN, "b": -Infinity, "c": "NaN", "d": 1e-06, "e": {"f": 2}, "g": [3]}"#;
        assert_eq!(numbers(text, Dialect::Json), "a=NaN b=-inf c=NaN d=0.000001 e/f=2");
        assert_eq!(numbers("{}", Dialect::Json), "");
        assert_eq!(numbers(r#"{"a": {}}"#, Dialect::Json), "a=Nothing");
        assert_eq!(numbers(r#"{"a\"\u00e9": 1}"#, Dialect::Json), "a\"é=1");
    }

    #[test]
    fn dictionaries_have_what_python_prints() {
        let text = "{'a': np.float64(0.5), 'b': '0.25', 'c': nan, 'd': None, \
                    'e': tensor(1.5, device='cuda:0'), 'f': (1, 2), 'g': inf,}";
        let expected = "a=0.5 b=0.25 c=NaN d=Null e=1.5 g=inf";
        assert_eq!(numbers(text, Dialect::Python), expected);
        assert_eq!(numbers("{'at': datetime.timedelta(seconds=3)}", Dialect::Python), "at=Null");
    }

    #[test]
    fn what_is_cut_or_of_the_other_dialect_is_no_object() {
        for text in
            ["{\"a\": 1", "{\"a\": 1,}", "{'a': 1}", "{\"a\" 1}", "{\"a\": x}", "{\"\\", "["]
        {
            assert_eq!(leaves(text, Dialect::Json), None, "{text}");
        }
        assert_eq!(leaves(&"{'a':".repeat(10_000), Dialect::Python), None);
        assert_eq!(leaves(&format!("{{'a':{}", "[".repeat(10_000)), Dialect::Python), None);
    }
}
