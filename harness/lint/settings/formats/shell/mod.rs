//! Shell scripts: as much of the language as scripts that start training use. Nothing is run.
//!
//! What is assigned inside of `if`, `case`, a loop or a function is unknown afterwards.

mod arithmetic;
mod expand;
mod lexer;

use std::path::{Path, PathBuf};

use self::expand::{Variable, Variables};
use self::lexer::{Part, Token, Tokens, Word as Raw, is_name};
use super::launch;
use super::layer::{self, Layer};
use super::word::{OPEN, UNREAD, Word};
use crate::report::Location;
use shakedown_core::value::error::Error;

/// More files than this are not sourced.
const MOST_FILES: usize = 16;

/// Blocks in each other beyond this are not followed.
const DEEPEST: usize = 500;

/// Reads the first command of a script that starts training.
///
/// # Errors
/// The script cannot be read, or no such command is there.
pub(super) fn read(path: &Path) -> Result<Layer, Error> {
    let bytes = layer::bytes(path)?;
    let folder = path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."));
    let mut script = Script::new(folder);
    script.files.push(path.to_owned());
    script.text(&String::from_utf8_lossy(&bytes), &Location::new(path, 1))?;
    let Some(mut layer) = script.first else {
        let message = "expected a command that starts training with TRL, verl, OpenRLHF, NeMo-RL \
                       or slime, such as `python3 -m verl.trainer.main_ppo`, found none";
        return Err(Error::new(message).at(path));
    };
    layer.format = "shell";
    let named = std::mem::take(&mut layer.files);
    layer.files = script.files;
    layer.files.extend(named);
    layer.warnings.extend(script.warnings);
    if script.others > 0 {
        let others = script.others;
        layer
            .warnings
            .push(format!("{others} more commands start training: only the first is read"));
    }
    Ok(layer)
}

/// Reads a text as a script, whatever it is.
pub(super) fn fuzz(text: &str) {
    let mut script = Script::new(Path::new("/nowhere"));
    drop(script.text(text, &Location { file: "script.sh".to_owned(), line: 1 }));
}

/// What a command stands in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    If,
    Loop,
    Case,
    /// Where a case waits for its next pattern.
    Pattern,
    Group,
    Subshell,
    Function,
}

/// A script while it is read.
struct Script<'a> {
    folder: &'a Path,
    variables: Variables,
    files: Vec<PathBuf>,
    blocks: Vec<Block>,
    /// After `&&`, `||` or `|`: it is not known whether the command counts.
    is_conditional: bool,
    /// Whether there were so many blocks that it is not known any more what stands in which.
    is_lost: bool,
    first: Option<Layer>,
    others: usize,
    warnings: Vec<String>,
}

impl<'a> Script<'a> {
    fn new(folder: &'a Path) -> Script<'a> {
        let own = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        Script {
            folder,
            variables: Variables::new(own),
            files: Vec::new(),
            blocks: Vec::new(),
            is_conditional: false,
            is_lost: false,
            first: None,
            others: 0,
            warnings: Vec::new(),
        }
    }

    /// Whether what stands here is done, once.
    fn is_certain(&self) -> bool {
        let is_done = self.blocks.iter().all(|block| *block == Block::Group);
        is_done && !self.is_conditional && !self.is_lost
    }

    fn open(&mut self, block: Block) {
        self.is_lost |= self.blocks.len() >= DEEPEST;
        if !self.is_lost {
            self.blocks.push(block);
        }
    }

    fn text(&mut self, text: &str, first: &Location) -> Result<(), Error> {
        // Our own marks in a text would be taken for what could not be read.
        let is_mark = |c: char| ('\u{f8fd}'..='\u{f8ff}').contains(&c);
        let tokens = match text.contains(is_mark) {
            true => lexer::tokens(&text.replace(is_mark, "\u{fffd}"), 1),
            false => lexer::tokens(text, 1),
        };
        let mut at = 0;
        while at < tokens.tokens.len() {
            at = self.step(&tokens, at, first)?;
        }
        Ok(())
    }

    /// Takes the command that begins here, and gives the place behind it.
    fn step(&mut self, all: &Tokens, at: usize, first: &Location) -> Result<usize, Error> {
        let tokens = &all.tokens;
        let in_pattern = self.blocks.last() == Some(&Block::Pattern);
        match &tokens[at] {
            Token::Word(word) if in_pattern => return Ok(self.pattern(tokens, at, word)),
            Token::Operator("(") if in_pattern => {}
            Token::Word(word) => return self.word(all, at, word, first),
            // After `&&` the command goes on in the next line.
            Token::Newline if at > 0 && matches!(tokens[at - 1], Token::Operator("&&" | "||")) => {}
            Token::Newline | Token::Operator(";" | "&") => self.is_conditional = false,
            Token::Operator(";;" | ";&" | ";;&") => {
                self.is_conditional = false;
                self.close(Block::Case);
                self.open(Block::Pattern);
            }
            Token::Operator("&&" | "||" | "|" | "|&") => self.is_conditional = true,
            Token::Operator("(") => self.open(Block::Subshell),
            Token::Operator(")") => self.close(Block::Subshell),
            Token::Operator(_) => return Ok(at + 2),
            Token::Arithmetic(text) => self.arithmetic(text),
            Token::Heredoc(_) => {}
        }
        Ok(at + 1)
    }

    /// Takes away the innermost block of a kind and what is open inside of it.
    fn close(&mut self, block: Block) {
        if let Some(at) = self.blocks.iter().rposition(|one| *one == block) {
            self.blocks.truncate(at);
        }
        self.variables.has_arguments = self.blocks.contains(&Block::Function);
    }

    /// The pattern of a case, or its end.
    fn pattern(&mut self, tokens: &[Token], at: usize, word: &Raw) -> usize {
        self.close(Block::Pattern);
        if literal(word) == Some("esac") {
            return at + 1;
        }
        self.open(Block::Case);
        let is_end = |token: &Token| *token == Token::Operator(")");
        tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end + 1)
    }

    /// A keyword, or a command.
    fn word(
        &mut self,
        all: &Tokens,
        at: usize,
        word: &Raw,
        first: &Location,
    ) -> Result<usize, Error> {
        let tokens = &all.tokens;
        match literal(word).unwrap_or("") {
            "if" => self.open(Block::If),
            "while" | "until" => self.open(Block::Loop),
            "for" | "select" => {
                if let Some(Token::Word(name)) = tokens.get(at + 1) {
                    self.forget(literal(name).unwrap_or(""));
                }
                self.open(Block::Loop);
                return Ok(end_of_command(tokens, at));
            }
            "case" => {
                self.open(Block::Pattern);
                return Ok(behind_word(tokens, at, "in"));
            }
            "then" | "else" | "elif" | "do" | "!" | "time" => {}
            "fi" => self.close(Block::If),
            "done" => self.close(Block::Loop),
            "esac" => self.close(Block::Case),
            "{" => self.open(Block::Group),
            "}" => {
                let is_brace = |block: &Block| matches!(block, Block::Group | Block::Function);
                if let Some(at) = self.blocks.iter().rposition(is_brace) {
                    let block = self.blocks[at];
                    self.close(block);
                }
            }
            "function" => return Ok(self.function(tokens, at + 1)),
            "[[" => return Ok(behind_word(tokens, at, "]]")),
            _ if tokens.get(at + 1) == Some(&Token::Operator("("))
                && tokens.get(at + 2) == Some(&Token::Operator(")")) =>
            {
                return Ok(self.function(tokens, at));
            }
            _ => return self.command(all, at, first),
        }
        Ok(at + 1)
    }

    /// The beginning of a function, whose name stands here.
    fn function(&mut self, tokens: &[Token], at: usize) -> usize {
        let mut at = at + 1;
        while let Some(Token::Operator("(" | ")") | Token::Newline) = tokens.get(at) {
            at += 1;
        }
        self.open(Block::Function);
        self.variables.has_arguments = true;
        let is_brace =
            |token: &Token| matches!(token, Token::Word(word) if literal(word) == Some("{"));
        at + usize::from(tokens.get(at).is_some_and(is_brace))
    }

    /// A command with all its words.
    fn command(&mut self, all: &Tokens, at: usize, first: &Location) -> Result<usize, Error> {
        let tokens = &all.tokens;
        self.variables.is_certain = self.is_certain();
        let mut words: Vec<&Raw> = Vec::new();
        let mut heredoc = None;
        let mut end = at;
        while let Some(token) = tokens.get(end) {
            match token {
                Token::Word(word) => words.push(word),
                Token::Heredoc(number) => heredoc = Some(*number),
                Token::Operator(one) if one.contains(['<', '>']) => end += 1,
                Token::Arithmetic(_) => {}
                Token::Operator(_) | Token::Newline => break,
            }
            end += 1;
        }
        let count = words.iter().take_while(|word| assignment(word).is_some()).count();
        let place = |word: &Raw| Location { line: word.line, ..first.clone() };
        if count == words.len() {
            for word in words {
                self.assign(word, &place(word));
            }
            return Ok(end);
        }
        let name = literal(words[count]).unwrap_or("");
        let others = &words[count + 1..];
        match name {
            "export" | "declare" | "typeset" | "local" | "readonly" => {
                for word in others {
                    self.assign(word, &place(word));
                }
            }
            "unset" => others.iter().for_each(|word| self.unset(literal(word).unwrap_or(""))),
            "read" => {
                self.read_lines(others, heredoc.and_then(|number| all.heredocs.get(number)), first)
            }
            "mapfile" | "readarray" | "getopts" | "printf" | "let" => {
                for word in others {
                    let text = literal(word).unwrap_or("");
                    self.forget(text.split(['=', '+', '-']).next().unwrap_or(""));
                }
            }
            "source" | "." => {
                if let Some(word) = others.first() {
                    self.source(word, &place(word))?;
                }
            }
            "echo" | "cat" | "grep" | "pkill" | "pip" | "test" | "[" | "cd" | "mkdir" | "set" => {}
            _ => self.launch(&words[count..], &place)?,
        }
        Ok(end)
    }

    fn launch(&mut self, words: &[&Raw], place: &dyn Fn(&Raw) -> Location) -> Result<(), Error> {
        let mut all: Vec<Word> =
            words.iter().flat_map(|word| self.variables.words(word, &place(word))).collect();
        // A command in one word is a command again.
        let is_shell = |at: usize| {
            at > 0
                && matches!(&*all[at - 1].text, "-c" | "-lc" | "-ic" | "eval")
                && all[at].is_read()
        };
        if let Some(at) = (0..all.len()).find(|at| is_shell(*at)) {
            let line = all[at].at.clone();
            let inner = lexer::tokens(&all[at].text, 1);
            let words = inner.tokens.iter().filter_map(|token| match token {
                Token::Word(word) => Some(word),
                _ => None,
            });
            let words: Vec<Word> =
                words.flat_map(|word| self.variables.words(word, &line)).collect();
            all.splice(at.., words);
        }
        if let Some(layer) = launch::find(&all, self.folder)? {
            if self.first.is_some() {
                self.others += 1;
            } else {
                self.first = Some(layer);
            }
        }
        Ok(())
    }

    /// Makes a variable unknown.
    fn forget(&mut self, name: &str) {
        if is_name(name) {
            self.variables.all.insert(name.to_owned(), Variable::Unknown);
        }
    }

    fn unset(&mut self, name: &str) {
        if self.is_certain() {
            self.variables.all.remove(name);
        } else {
            self.forget(name);
        }
    }

    /// Variables that `((..))` assigns to are unknown.
    fn arithmetic(&mut self, text: &str) {
        let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '_';
        if text.contains('=') || text.contains("++") || text.contains("--") {
            text.split(is_end).for_each(|name| self.forget(name));
        }
    }

    /// Assigns what a word says, if it is an assignment.
    fn assign(&mut self, word: &Raw, at: &Location) {
        let Some(Assignment { name, is_more, has_index, value }) = assignment(word) else { return };
        let name = name.to_owned();
        if !self.is_certain() || has_index {
            return self.forget(&name);
        }
        let new = match &word.array {
            Some(items) => {
                let place = |item: &Raw| Location { line: item.line, ..at.clone() };
                let words = items.iter().flat_map(|item| self.variables.words(item, &place(item)));
                Variable::List(words.collect())
            }
            None => Variable::Text(self.variables.text(&value, at, 0)),
        };
        let old = if is_more { self.variables.all.remove(&name) } else { None };
        let sum = match (old, new) {
            (None, new) => new,
            (Some(Variable::List(mut old)), Variable::List(new)) => {
                old.extend(new);
                Variable::List(old)
            }
            (Some(Variable::Text(old)), Variable::List(mut new)) => {
                new.insert(0, old);
                Variable::List(new)
            }
            (Some(Variable::Text(old)), Variable::Text(new)) if old.text.len() < 1 << 17 => {
                Variable::Text(Word { text: old.text + &new.text, at: old.at })
            }
            _ => Variable::Unknown,
        };
        self.variables.all.insert(name, sum);
    }

    /// `read -r -d '' NAME <<EOF` assigns the lines; other reads assign what is not known.
    fn read_lines(&mut self, words: &[&Raw], heredoc: Option<&lexer::Heredoc>, first: &Location) {
        let names = words.iter().filter_map(|word| literal(word)).filter(|name| is_name(name));
        let names: Vec<String> = names.map(str::to_owned).collect();
        names.iter().for_each(|name| self.forget(name));
        if let (Some(heredoc), [name], true) = (heredoc, &names[..], self.is_certain()) {
            let at = Location { line: heredoc.line, ..first.clone() };
            let text = match heredoc.is_plain {
                true => Word { text: heredoc.text.clone(), at },
                false => self.variables.text(&lexer::parts(&heredoc.text, true), &at, 0),
            };
            self.variables.all.insert(name.clone(), Variable::Text(text));
        }
    }

    /// Reads a file that is beside the script. What others assign stays unknown.
    fn source(&mut self, word: &Raw, at: &Location) -> Result<(), Error> {
        let text = self.variables.text(&word.parts, at, 0).text;
        let path = launch::beside(&text, &self.variables.folder)
            .or_else(|| launch::beside(&text, self.folder));
        let is_new = |path: &PathBuf| {
            self.files.len() < MOST_FILES && self.files.iter().all(|file| !is_same(file, path))
        };
        let Some(path) = path.filter(is_new) else {
            let shown = text.replace([UNREAD, OPEN], "?");
            let shown = shakedown_core::value::error::cut(&shown);
            self.warnings.push(format!("{}:{}: `{shown}` is not read", at.file, at.line));
            return Ok(());
        };
        self.files.push(path.clone());
        let bytes = layer::bytes(&path)?;
        let own = path.parent().unwrap_or(Path::new("/")).to_owned();
        let before = std::mem::replace(&mut self.variables.folder, own);
        let read = self.text(&String::from_utf8_lossy(&bytes), &Location::new(&path, 1));
        self.variables.folder = before;
        read
    }
}

/// Whether two paths are of one file.
fn is_same(one: &Path, other: &Path) -> bool {
    one == other
        || one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|two| one == two))
}

/// A word that is one text without quotes.
fn literal(word: &Raw) -> Option<&str> {
    match &word.parts[..] {
        [Part::Text { text, quoted: false }] if word.array.is_none() => Some(text),
        _ => None,
    }
}

/// The end of a command: a semicolon or a line's end.
fn end_of_command(tokens: &[Token], at: usize) -> usize {
    let is_end = |token: &Token| matches!(token, Token::Newline | Token::Operator(";"));
    tokens[at..].iter().position(is_end).map_or(tokens.len(), |end| at + end)
}

/// The place behind a word, or the end.
fn behind_word(tokens: &[Token], at: usize, text: &str) -> usize {
    let is_it = |token: &Token| matches!(token, Token::Word(word) if literal(word) == Some(text));
    tokens[at..].iter().position(is_it).map_or(tokens.len(), |end| at + end + 1)
}

/// `NAME=..`, `NAME+=..`, `NAME[..]=..`.
struct Assignment<'a> {
    name: &'a str,
    is_more: bool,
    has_index: bool,
    value: Vec<Part>,
}

fn assignment(word: &Raw) -> Option<Assignment<'_>> {
    let Some(Part::Text { text, quoted: false }) = word.parts.first() else { return None };
    let (left, right) = text.split_once('=')?;
    let (left, is_more) = match left.strip_suffix('+') {
        Some(left) => (left, true),
        None => (left, false),
    };
    let (name, has_index) = match left.split_once('[') {
        Some((name, _)) => (name, true),
        None => (left, false),
    };
    let first = Part::Text { text: right.to_owned(), quoted: false };
    let value = std::iter::once(first).chain(word.parts[1..].iter().cloned()).collect();
    is_name(name).then_some(Assignment { name, is_more, has_index, value })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::formats::word::{OPEN, UNREAD};

    /// What the words after a script become, unread parts as `?` and open ones as `*`.
    fn words(script: &str, words: &str) -> String {
        let at = Location { file: "a.sh".to_owned(), line: 1 };
        let mut read = Script::new(Path::new("."));
        read.text(script, &at).unwrap();
        read.variables.is_certain = true;
        let tokens = lexer::tokens(words, 1).tokens;
        let raw = tokens.iter().map(|token| match token {
            Token::Word(word) => word.clone(),
            other => panic!("{other:?}"),
        });
        let expanded: Vec<Word> = raw.flat_map(|word| read.variables.words(&word, &at)).collect();
        let text = |word: &Word| word.text.replace(UNREAD, "?").replace(OPEN, "*");
        expanded.iter().map(text).collect::<Vec<_>>().join("|")
    }

    #[test]
    fn variables_are_put_in_and_split_as_the_shell_does() {
        for (script, text, expected) in [
            ("A=1", "x=$A y${A}z", "x=1|y1z"),
            ("A='1 2'", "$A \"$A\" '$A'", "1|2|1 2|$A"),
            ("A='1 2'", "x$A", "x1|2"),
            ("", "${A:-d} ${A-e} ${A:=f} $A", "d|e|f|f"),
            ("A=", "x${A:-d} x${A-d} \"\"", "xd|x|"),
            ("A=1", "${A:+yes} ${B:+no}x", "yes|x"),
            ("B=2", "${A:-${B:-3}} ${A:-x${B}y}", "2|x2y"),
            ("N=4", "$((N * 2 + 1)) $(( $N ** 2 )) $((M + 1))", "9|16|*"),
            ("A=(1 'b c' $X)", "\"${A[@]}\" ${A[1]} ${#A[@]}", "1|b c|*|b|c|3"),
            ("A=(1 2); A+=(3)", "x\"${A[@]}\"y $A", "x1|2|3y|1"),
            ("A=1; A+=2", "$A", "12"),
            ("", "\"$@\" $@ x", "x"),
            ("", "$1 ${1:-d} $(date) `date` \"$(date)\"", "*|d|*|*|?"),
            ("A=x/y/z", "${A##*/} ${A%/*} ${A/x/y}", "z|x/y|*"),
            ("A=$Y/b", "$A \"$A\"", "*/b|?/b"),
            ("", "$HOME/data", "$HOME/data"),
            ("export A=1 B=2", "$A$B", "12"),
            ("A=\"1 \\\n 2\"", "$A", "1|2"),
            ("", "\"${@:2}\" $(pwd)/a $(seq 1 2 5) $(seq 3)", "$PWD/a|1|3|5|1|2|3"),
        ] {
            assert_eq!(words(script, text), expected, "{script} {text}");
        }
    }

    #[test]
    fn what_is_assigned_under_a_condition_is_unknown() {
        for script in [
            "A=1; if x; then A=2; fi",
            "A=1\nif [ -z \"$B\" ]\nthen\n  A=2\nelse\n  A=3\nfi",
            "A=1; for A in 1 2; do :; done",
            "A=1\nwhile true; do\n A=2\ndone",
            "A=1; f() { A=2; }",
            "A=1; function f {\n A=2\n}",
            "A=1; case $B in x) A=2;; (y|z) A=3 ;; esac",
            "A=1; [ -n \"$B\" ] && A=2",
            "A=1; [[ $B =~ (x|y) ]] && A=2",
            "A=1; test x || A=2",
            "A=1; test x &&\n A=2",
            "A=1; ((A += 1))",
            "A=1; read -p '? ' A",
            "A=1; (A=2)",
            "if x; then : ${A:=1}; fi",
        ] {
            assert_eq!(words(script, "\"$A\""), "?", "{script}");
        }
        for script in [
            "if x; then B=2; fi; A=1",
            "{ A=1; }",
            "case $B in x) C=2;; *) C=3;; esac\nA=1",
            "f() { B=2; }\nA=1",
            ": ${A:=1}",
            "x && y; A=1",
            "for i in 1 2; do echo $i; done\nA=1",
            "if a; then if b; then c; fi; fi; A=1",
            "cat <<EOF\nif A=2\nEOF\nA=1",
            "A=2 python x.py; A=1",
            "x=$(if a; then b; fi); A=1",
        ] {
            assert_eq!(words(script, "\"$A\""), "1", "{script}");
        }
    }

    #[test]
    fn scripts_that_grow_without_end_are_not_followed() {
        let doubling = "A=$A$A;".repeat(100);
        assert_eq!(words(&format!("A=x;{doubling}"), "\"${A:0:1}\""), "?");
        let lists = "A=(\"${A[@]}\" \"${A[@]}\");".repeat(40);
        words(&format!("A=(x);{lists}"), "y");
        words(&"${A:-".repeat(10_000), "y");
        words(&"$(\"".repeat(10_000), "y");
    }
}
