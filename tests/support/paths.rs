//! The paths of a crate that its files name: which module imports from which.

use std::collections::BTreeSet;

/// Where something is in a crate: `["value", "record", "Record"]`.
pub(crate) type Path = Vec<String>;

/// Every path that begins with `crate`, `super`, `self` or the name of a module that the file
/// declares, as that of the file with the name of the crate first, outside comments, texts and
/// tests. What macros name as `$crate` counts where they are used.
pub(crate) fn named(text: &str, module: &[&str]) -> BTreeSet<Path> {
    let tokens = without_tests(&tokens(text));
    let declared = declared(&tokens);
    let here: Path = module.iter().map(|part| (*part).to_owned()).collect();
    let mut found = BTreeSet::new();
    for at in 0..tokens.len() {
        let inside = at > 0 && ["::", "$", "."].contains(&tokens[at - 1]);
        if inside || tokens.get(at + 1) != Some(&"::") {
            continue;
        }
        let base = match tokens[at] {
            "crate" => here[..1].to_vec(),
            "self" => here.clone(),
            "super" => parent(&here),
            name if declared.contains(name) => [&here[..], &[name.to_owned()]].concat(),
            _ => continue,
        };
        tree(&tokens, at + 2, base, &mut found);
    }
    found
}

/// Adds the paths of what follows `base::`, and gives the place behind it.
fn tree(tokens: &[&str], at: usize, base: Path, found: &mut BTreeSet<Path>) -> usize {
    match tokens.get(at) {
        Some(&"{") => {
            let mut at = at + 1;
            while tokens.get(at).is_some_and(|token| *token != "}") {
                at = tree(tokens, at, base.clone(), found);
                at += usize::from(tokens.get(at) == Some(&","));
            }
            at + 1
        }
        Some(&name) if is_name(name) => {
            let path = match name {
                "super" => parent(&base),
                "self" => base,
                name => [&base[..], &[name.to_owned()]].concat(),
            };
            match (tokens.get(at + 1), tokens.get(at + 2)) {
                (Some(&"::"), _) => tree(tokens, at + 2, path, found),
                (Some(&"as"), Some(_)) => {
                    found.insert(path);
                    at + 3
                }
                _ => {
                    found.insert(path);
                    at + 1
                }
            }
        }
        // `*`, or the `<` of types.
        _ => {
            found.insert(base);
            at + 1
        }
    }
}

fn parent(path: &Path) -> Path {
    path[..path.len().saturating_sub(1)].to_vec()
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The modules that a file declares: `mod name;`.
fn declared<'a>(tokens: &[&'a str]) -> BTreeSet<&'a str> {
    let windows = tokens.windows(3).filter(|three| three[0] == "mod" && three[2] == ";");
    windows.map(|three| three[1]).collect()
}

/// The tokens without the items that are compiled for tests only.
fn without_tests<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mark = ["#", "[", "cfg", "(", "test", ")", "]"];
    let mut kept = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if !tokens[at..].starts_with(&mark) {
            kept.push(tokens[at]);
            at += 1;
            continue;
        }
        let mut depth = 0_i32;
        at += mark.len();
        while at < tokens.len() {
            let token = tokens[at];
            depth += i32::from(token == "{") - i32::from(token == "}");
            at += 1;
            if depth == 0 && ["}", ";"].contains(&token) {
                break;
            }
        }
    }
    kept
}

/// Names, `::`, and single other characters; without comments and literals.
fn tokens(text: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let length = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(length) = text_length(rest) {
            length
        } else {
            let name = |c: char| c.is_alphanumeric() || c == '_';
            let length = match first {
                _ if name(first) => rest.find(|c| !name(c)).unwrap_or(rest.len()),
                ':' if rest.starts_with("::") => 2,
                _ => first.len_utf8(),
            };
            if !first.is_whitespace() {
                tokens.push(&rest[..length]);
            }
            length
        };
        rest = &rest[length..];
    }
    tokens
}

/// The length of the text or character that something begins with, if it does.
fn text_length(rest: &str) -> Option<usize> {
    let plain = rest.strip_prefix('b').unwrap_or(rest);
    let before = rest.len() - plain.len();
    if let Some(raw) = plain.strip_prefix('r') {
        let hashes = raw.len() - raw.trim_start_matches('#').len();
        let end = format!("\"{}", "#".repeat(hashes));
        let inside = raw[hashes..].strip_prefix('"')?;
        return Some(before + 2 + hashes + inside.find(&end)? + end.len());
    }
    let quote = plain.chars().next().filter(|quote| ['"', '\''].contains(quote))?;
    let mut escaped = false;
    for (at, c) in plain.char_indices().skip(1) {
        if c == quote && !escaped {
            return Some(before + at + 1);
        }
        escaped = c == '\\' && !escaped;
        // `'a` without a quote behind it is a lifetime.
        if quote == '\'' && at > 1 && !plain[1..].starts_with('\\') {
            return None;
        }
    }
    None
}
