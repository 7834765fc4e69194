//! A shell script as words and operators. What stands in braces or parentheses after `$` is kept as
//! it is.

/// A part of a script.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    Word(Word),
    /// `;`, `&&`, `|`, `(`, `>`, ..
    Operator(&'static str),
    /// The text of `((..))`.
    Arithmetic(String),
    /// `<<EOF`, by its number among the here-documents.
    Heredoc(usize),
    Newline,
}

/// A word as it is written.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Word {
    pub(super) parts: Vec<Part>,
    /// Counted from 1.
    pub(super) line: usize,
    /// What stands in `NAME=(..)`.
    pub(super) array: Option<Vec<Word>>,
}

/// A part of a word.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    Text { text: String, quoted: bool },
    Expansion { inside: String, kind: Kind, quoted: bool },
}

/// What is put in the place of an expansion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Variable,
    Command,
    Arithmetic,
}

/// The lines after a command that it reads.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Heredoc {
    pub(super) text: String,
    /// Its first line.
    pub(super) line: usize,
    /// Whether it has no expansions, as its mark is quoted.
    pub(super) is_plain: bool,
    mark: String,
    has_tabs: bool,
}

/// All of a script.
#[derive(Debug, Default)]
pub(super) struct Tokens {
    pub(super) tokens: Vec<Token>,
    pub(super) heredocs: Vec<Heredoc>,
}

/// Stands for a backslash before the end of a line, inside of quotes.
pub(super) const CONTINUED: char = '\u{f8fe}';

/// Quotes, braces and parentheses in each other beyond this are not told apart.
const DEEPEST: usize = 40;

/// Longer arithmetic is none.
const LONGEST_ARITHMETIC: usize = 512;

const OPERATORS: [&str; 21] = [
    ";;&", ";;", ";&", ";", "&&", "&>>", "&>", "&", "||", "|&", "|", "<<<", "<&", "<>", ">>", ">&",
    ">|", "<", ">", "(", ")",
];

/// The tokens of a script, whose first line has this number.
pub(super) fn tokens(text: &str, line: usize) -> Tokens {
    let mut lexer = Lexer { text, at: 0, line };
    let mut all = Tokens::default();
    let mut pending = 0;
    while let Some(token) = lexer.next(&mut all) {
        let is_end = token == Token::Newline;
        all.tokens.push(token);
        if is_end {
            all.heredocs[pending..].iter_mut().for_each(|heredoc| lexer.heredoc(heredoc));
            pending = all.heredocs.len();
        }
    }
    all
}

/// The parts of a text as of one in double quotes, or of one without any where `is_quoted` is not.
pub(super) fn parts(text: &str, is_quoted: bool) -> Vec<Part> {
    let mut lexer = Lexer { text, at: 0, line: 1 };
    let mut word = Word::default();
    while !lexer.rest().is_empty() {
        if is_quoted {
            lexer.inside_double(&mut word.parts);
            lexer.takes("\"").then(|| push(&mut word.parts, "\"", true));
        } else {
            lexer.word_parts(&mut word);
            if let Some(c) = lexer.rest().chars().next() {
                push(&mut word.parts, c.encode_utf8(&mut [0; 4]), false);
                lexer.at += c.len_utf8();
            }
        }
    }
    word.parts
}

fn push(parts: &mut Vec<Part>, text: &str, quoted: bool) {
    match parts.last_mut() {
        Some(Part::Text { text: last, quoted: of_last }) if *of_last == quoted => {
            last.push_str(text);
        }
        _ => parts.push(Part::Text { text: text.to_owned(), quoted }),
    }
}

struct Lexer<'a> {
    text: &'a str,
    at: usize,
    line: usize,
}

impl<'a> Lexer<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn takes(&mut self, text: &str) -> bool {
        let is_here = self.rest().starts_with(text);
        self.at += if is_here { text.len() } else { 0 };
        is_here
    }

    /// Goes on by so many bytes, and counts the lines.
    fn skip(&mut self, bytes: usize) -> &'a str {
        let skipped = &self.rest()[..bytes];
        self.line += skipped.bytes().filter(|byte| *byte == b'\n').count();
        self.at += bytes;
        skipped
    }

    fn next(&mut self, all: &mut Tokens) -> Option<Token> {
        self.skip_blanks();
        let rest = self.rest();
        if rest.is_empty() {
            return None;
        }
        if rest.starts_with('\n') {
            self.skip(1);
            return Some(Token::Newline);
        }
        if rest.starts_with("<<") && !rest.starts_with("<<<") {
            return Some(self.begin_heredoc(all));
        }
        if let Some(inside) = rest.strip_prefix("((")
            && begins_command(&all.tokens)
            && let Some(length) = arithmetic_length(inside)
        {
            self.skip(length + 4);
            return Some(Token::Arithmetic(inside[..length].to_owned()));
        }
        // A process in the place of a file is a word.
        let is_process = rest.starts_with("<(") || rest.starts_with(">(");
        let operator = OPERATORS.iter().find(|one| rest.starts_with(**one)).filter(|_| !is_process);
        if let Some(operator) = operator {
            self.at += operator.len();
            return Some(Token::Operator(operator));
        }
        let mut word = Word { line: self.line, ..Word::default() };
        if is_process {
            self.at += 1;
            let inside = self.balanced(b'(', b')', 0).to_owned();
            word.parts.push(Part::Expansion { inside, kind: Kind::Command, quoted: true });
        }
        self.word_parts(&mut word);
        let is_number = |part: &Part| match part {
            Part::Text { text, quoted: false } => text.bytes().all(|byte| byte.is_ascii_digit()),
            _ => false,
        };
        // The number of what is redirected.
        if self.rest().starts_with(['<', '>']) && word.parts.iter().all(is_number) {
            return self.next(all);
        }
        Some(Token::Word(word))
    }

    /// Goes over blanks, comments and lines that go on.
    fn skip_blanks(&mut self) {
        loop {
            let rest = self.rest();
            if rest.starts_with([' ', '\t', '\r']) {
                self.at += 1;
            } else if rest.starts_with("\\\n") {
                self.skip(2);
            } else if rest.starts_with("\\\r\n") {
                self.skip(3);
            } else if rest.starts_with('#') {
                self.at += rest.find('\n').unwrap_or(rest.len());
            } else {
                return;
            }
        }
    }

    /// Reads on to the end of a word.
    fn word_parts(&mut self, word: &mut Word) {
        while let Some(c) = self.rest().chars().next() {
            match c {
                '(' if takes_array(&word.parts) && word.array.is_none() => {
                    self.at += 1;
                    word.array = Some(self.array());
                    return;
                }
                ' ' | '\t' | '\r' | '\n' | ';' | '&' | '|' | '<' | '>' | '(' | ')' => return,
                '\\' => self.escaped(&mut word.parts),
                '\'' => {
                    let rest = &self.rest()[1..];
                    let length = rest.find('\'').unwrap_or(rest.len());
                    push(&mut word.parts, &rest[..length], true);
                    self.skip((length + 2).min(rest.len() + 1));
                }
                '"' => {
                    self.at += 1;
                    push(&mut word.parts, "", true);
                    self.inside_double(&mut word.parts);
                    self.takes("\"");
                }
                '$' | '`' => self.expansion(&mut word.parts, false),
                c => {
                    push(&mut word.parts, c.encode_utf8(&mut [0; 4]), false);
                    self.at += c.len_utf8();
                }
            }
        }
    }

    fn escaped(&mut self, parts: &mut Vec<Part>) {
        self.at += 1;
        let rest = self.rest();
        if rest.starts_with("\r\n") {
            self.skip(2);
        } else if let Some(c) = rest.chars().next() {
            if c != '\n' {
                push(parts, c.encode_utf8(&mut [0; 4]), true);
            }
            self.skip(c.len_utf8());
        }
    }

    /// Reads on to a double quote, or the end.
    fn inside_double(&mut self, parts: &mut Vec<Part>) {
        while let Some(c) = self.rest().chars().next() {
            match c {
                '"' => return,
                '$' | '`' => self.expansion(parts, true),
                '\\' => {
                    let next = self.rest()[1..].chars().next();
                    let kept = match next {
                        Some('\n') => CONTINUED.to_string(),
                        Some(c @ ('$' | '`' | '"' | '\\')) => c.to_string(),
                        Some(c) => format!("\\{c}"),
                        None => "\\".to_owned(),
                    };
                    push(parts, &kept, true);
                    self.skip(1 + next.map_or(0, char::len_utf8));
                }
                c => {
                    push(parts, c.encode_utf8(&mut [0; 4]), true);
                    self.skip(c.len_utf8());
                }
            }
        }
    }

    /// Reads what `$` or a back quote begins.
    fn expansion(&mut self, parts: &mut Vec<Part>, quoted: bool) {
        let rest = self.rest();
        let mut add = |inside: &str, kind| {
            parts.push(Part::Expansion { inside: inside.to_owned(), kind, quoted });
        };
        if let Some(inside) = rest.strip_prefix('`') {
            let length = inside.find('`').unwrap_or(inside.len());
            self.skip((length + 2).min(rest.len()));
            return add(&inside[..length], Kind::Command);
        }
        if let Some(inside) = rest.strip_prefix("$((")
            && let Some(length) = arithmetic_length(inside)
        {
            self.skip(length + 5);
            return add(&inside[..length], Kind::Arithmetic);
        }
        self.at += 1;
        let rest = self.rest();
        let name =
            rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(rest.len());
        match rest.chars().next() {
            Some('(') => add(self.balanced(b'(', b')', 0), Kind::Command),
            Some('{') => add(self.balanced(b'{', b'}', 0), Kind::Variable),
            Some(c) if c.is_ascii_alphabetic() || c == '_' => add(self.skip(name), Kind::Variable),
            Some(c) if c.is_ascii_digit() || "@*#?$!-".contains(c) => {
                add(self.skip(1), Kind::Variable)
            }
            Some('\'') if !quoted => {}
            _ => push(parts, "$", quoted),
        }
    }

    /// What stands between a bracket here and the one that closes it, and goes behind that.
    fn balanced(&mut self, open: u8, close: u8, depth: usize) -> &'a str {
        let begin = self.at + 1;
        let end = self.closing(open, close, depth);
        let inside = &self.text[begin.min(end)..end];
        self.at = begin - 1;
        let behind = (end + 1).min(self.text.len());
        self.skip(behind - self.at);
        inside
    }

    /// Where the bracket closes that stands here, or the end.
    fn closing(&self, open: u8, close: u8, depth: usize) -> usize {
        let bytes = self.text.as_bytes();
        let mut at = self.at;
        let mut level = 0_usize;
        while at < bytes.len() {
            match bytes[at] {
                b'\\' => at += 1,
                b'\'' if open == b'(' => at = find(bytes, at + 1, b'\''),
                b'"' if depth < DEEPEST => at = self.double_quote(at + 1, depth + 1),
                byte if byte == open => level += 1,
                byte if byte == close && level <= 1 => return at,
                byte if byte == close => level -= 1,
                _ => {}
            }
            at += 1;
        }
        bytes.len()
    }

    /// Where a double quote closes that has begun before `at`.
    fn double_quote(&self, mut at: usize, depth: usize) -> usize {
        let bytes = self.text.as_bytes();
        while at < bytes.len() && bytes[at] != b'"' {
            let inner = Lexer { text: self.text, at: at + 1, line: 0 };
            at = match (bytes[at], bytes.get(at + 1)) {
                (b'\\', _) => at + 1,
                (b'$', Some(b'(')) if depth < DEEPEST => inner.closing(b'(', b')', depth + 1),
                (b'$', Some(b'{')) if depth < DEEPEST => inner.closing(b'{', b'}', depth + 1),
                _ => at,
            } + 1;
        }
        at
    }

    /// The words of an array, to its closing parenthesis.
    fn array(&mut self) -> Vec<Word> {
        let mut words = Vec::new();
        loop {
            self.skip_blanks();
            let Some(c) = self.rest().chars().next() else { return words };
            match c {
                ')' => {
                    self.at += 1;
                    return words;
                }
                '\n' | ';' | '&' | '|' | '<' | '>' | '(' => drop(self.skip(1)),
                _ => {
                    let mut word = Word { line: self.line, ..Word::default() };
                    self.word_parts(&mut word);
                    words.push(word);
                }
            }
        }
    }

    fn begin_heredoc(&mut self, all: &mut Tokens) -> Token {
        self.at += 2;
        let has_tabs = self.takes("-");
        while self.rest().starts_with([' ', '\t']) {
            self.at += 1;
        }
        let mut word = Word::default();
        self.word_parts(&mut word);
        let mut heredoc = Heredoc { has_tabs, ..Heredoc::default() };
        for part in &word.parts {
            if let Part::Text { text, quoted } = part {
                heredoc.mark.push_str(text);
                heredoc.is_plain |= quoted;
            }
        }
        all.heredocs.push(heredoc);
        Token::Heredoc(all.heredocs.len() - 1)
    }

    /// Reads the lines of a here-document, which begin here.
    fn heredoc(&mut self, heredoc: &mut Heredoc) {
        heredoc.line = self.line;
        let begin = self.at;
        let mut end = self.at;
        for line in self.rest().split_inclusive('\n') {
            let text = line.trim_end_matches(['\n', '\r']);
            let text = if heredoc.has_tabs { text.trim_start_matches('\t') } else { text };
            if text == heredoc.mark {
                heredoc.text = self.text[begin..end].to_owned();
                self.skip(end + line.len() - begin);
                return;
            }
            end += line.len();
        }
        heredoc.text = self.text[begin..end].to_owned();
        self.skip(end - begin);
    }
}

fn find(bytes: &[u8], from: usize, wanted: u8) -> usize {
    let behind = bytes.get(from..).unwrap_or(&[]);
    behind.iter().position(|byte| *byte == wanted).map_or(bytes.len(), |at| from + at)
}

/// Whether the word so far is `NAME=` or `NAME+=`.
fn takes_array(parts: &[Part]) -> bool {
    let [Part::Text { text, quoted: false }] = parts else { return false };
    let name = text.strip_suffix("+=").or(text.strip_suffix('='));
    name.is_some_and(is_name)
}

/// Whether a text may name a variable.
pub(super) fn is_name(text: &str) -> bool {
    let is_letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_') && text.chars().all(is_letter)
}

/// Whether a command may begin after these.
fn begins_command(tokens: &[Token]) -> bool {
    match tokens.last() {
        None | Some(Token::Newline) => true,
        Some(Token::Operator(one)) => !one.contains(['<', '>']),
        Some(Token::Word(word)) => {
            let keywords = ["if", "while", "until", "for", "then", "do", "else", "elif", "!"];
            matches!(&word.parts[..], [Part::Text { text, quoted: false }]
                if keywords.contains(&&**text))
        }
        Some(Token::Arithmetic(_) | Token::Heredoc(_)) => false,
    }
}

/// How long the text before the `))` is that closes; none where that is far away.
fn arithmetic_length(text: &str) -> Option<usize> {
    let mut level = 0_usize;
    let bytes = text.as_bytes();
    for (at, byte) in bytes.iter().enumerate().take(LONGEST_ARITHMETIC) {
        match byte {
            b'(' => level += 1,
            b')' if level > 0 => level -= 1,
            b')' => return (bytes.get(at + 1) == Some(&b')')).then_some(at),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tokens in short: parts in brackets, expansions with a dollar.
    fn short(text: &str) -> String {
        let part = |part: &Part| match part {
            Part::Text { text, quoted: false } => text.clone(),
            Part::Text { text, quoted: true } => format!("'{text}'"),
            Part::Expansion { inside, kind, quoted } => {
                let quote = if *quoted { "\"" } else { "" };
                let kind = match kind {
                    Kind::Variable => "",
                    Kind::Command => "!",
                    Kind::Arithmetic => "#",
                };
                format!("${quote}{kind}[{inside}]")
            }
        };
        let word = |word: &Word| {
            let text: String = word.parts.iter().map(part).collect();
            match &word.array {
                None => format!("{text}:{}", word.line),
                Some(items) => format!("{text}({}):{}", items.len(), word.line),
            }
        };
        let tokens = tokens(text, 1).tokens;
        let shown = tokens.iter().map(|token| match token {
            Token::Word(one) => word(one),
            Token::Operator(one) => (*one).to_owned(),
            Token::Arithmetic(text) => format!("(({text}))"),
            Token::Heredoc(number) => format!("<<{number}"),
            Token::Newline => "/".to_owned(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn words_and_operators_are_told_apart() {
        for (text, tokens) in [
            ("a b  # c\nd", "a:1 b:1 / d:2"),
            ("a \\\n  b", "a:1 b:2"),
            ("a=\"x y\"'z'w", "a='x yz'w:1"),
            ("a=${B:-\"}\"} c", "a=$[B:-\"}\"]:1 c:1"),
            ("$(f \"$(g ')')\") h", "$![f \"$(g ')')\"]:1 h:1"),
            ("x=$((2*(3+1))) y", "x=$#[2*(3+1)]:1 y:1"),
            ("((i++)); a", "((i++)) ; a:1"),
            ("A=(\n --x 1 # c\n 'y z'\n)\nb", "A=(3):1 / b:5"),
            ("A+=(1) b", "A+=(1):1 b:1"),
            ("f() { a; }", "f:1 ( ) {:1 a:1 ; }:1"),
            ("a 2>&1 | b &> c", "a:1 >& 1:1 | b:1 &> c:1"),
            ("a <<EOF\nx $y\nEOF\nb", "a:1 <<0 / b:4"),
            ("echo \"a $B${C} \\$d\"", "echo:1 'a '$\"[B]$\"[C]' $d':1"),
            ("a `b c` d", "a:1 $![b c]:1 d:1"),
            ("\"a", "'a':1"),
            ("$(a", "$![a]:1"),
            ("${a", "$[a]:1"),
            ("$", "$:1"),
            ("a <(b) c", "a:1 $\"![b]:1 c:1"),
            ("", ""),
        ] {
            assert_eq!(short(text), tokens, "{text}");
        }
    }

    #[test]
    fn a_heredoc_keeps_its_lines() {
        let tokens = tokens("read X <<-'E'\n\ta $b\n\tE\nc", 1);
        let heredoc = &tokens.heredocs[0];
        assert_eq!((heredoc.text.as_str(), heredoc.line, heredoc.is_plain), ("\ta $b\n", 2, true));
    }
}
