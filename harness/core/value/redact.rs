//! What must not leave the machine in a report: secrets, and who and where somebody is.
//!
//! Every text that is shown or written passes here once. Numbers stay as they are.

use std::borrow::Cow;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use regex_lite::{Captures, Regex};
use serde_json::Value as Json;

/// What stands in place of a secret.
pub const REDACTED: &str = "‹redacted›";

/// A text without secrets: values of names that say so, where they can be one, and what has the
/// form of a token, whatever it is called.
pub fn secrets(text: &str) -> Cow<'_, str> {
    until_nothing_is_left(text, |text| {
        for shape in SHAPES.iter() {
            replace(text, shape, by_shape);
        }
        replace(text, &KEYED, keyed);
        replace(text, &RUN, token);
    })
}

/// A text without who and where somebody is: home folders, absolute paths but for their last two
/// parts, addresses, hosts, links to runs, the name of the user and of the machine.
pub fn identity(text: &str) -> Cow<'_, str> {
    until_nothing_is_left(text, |text| {
        for (pattern, put) in IDENTITY.iter() {
            rewrite(text, pattern, put);
        }
        for name in OWN_NAMES.iter() {
            rewrite(text, name, |_| "‹name›".to_owned());
        }
    })
}

/// A text in which each home folder is `~`.
pub fn homes(text: &str) -> Cow<'_, str> {
    until_nothing_is_left(text, |text| {
        rewrite(text, &HOME, |found| format!("{}~{}", &found[1], &found[2]));
    })
}

/// What is taken out may have hidden more: neighbours share the sign between them, and a secret
/// can stand in the middle of another.
fn until_nothing_is_left(text: &str, clean: impl Fn(&mut Cow<'_, str>)) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    loop {
        let mut next = Cow::Borrowed(&*text);
        clean(&mut next);
        match next {
            Cow::Owned(next) if *next != *text => text = Cow::Owned(next),
            _ => return text,
        }
    }
}

/// The same value without secrets: the value of a key that names one, and every text; without
/// who and where somebody is, too, unless paths are kept.
pub fn json(value: Json, keep_paths: bool) -> Json {
    let clean = |text: &str| {
        let text = secrets(text);
        if keep_paths { text.into_owned() } else { identity(&text).into_owned() }
    };
    match value {
        Json::String(text) => Json::String(clean(&text)),
        Json::Array(items) => items.into_iter().map(|item| json(item, keep_paths)).collect(),
        Json::Object(fields) => {
            let one = |(key, value): (String, Json)| match value {
                Json::String(text)
                    if is_secret(&key, &text, Said::Quoted)
                        || !keep_paths && is_person(&key) && is_some_secret(&text) =>
                {
                    (clean(&key), Json::String(REDACTED.to_owned()))
                }
                value => (clean(&key), json(value, keep_paths)),
            };
            Json::Object(fields.into_iter().map(one).collect())
        }
        other => other,
    }
}

/// Puts [`REDACTED`] where what is found says which part of it is a secret, or from where to go on.
fn replace(
    text: &mut Cow<'_, str>,
    pattern: &Regex,
    secret: impl Fn(&Captures<'_>) -> Result<Range<usize>, usize>,
) {
    let (mut clean, mut copied, mut at) = (String::new(), 0, 0);
    while let Some(found) = pattern.captures_at(text, at) {
        match secret(&found) {
            Ok(range) => {
                clean.push_str(&text[copied..range.start]);
                clean.push_str(REDACTED);
                (copied, at) = (range.end, range.end);
            }
            Err(next) => at = next,
        }
    }
    if copied > 0 {
        clean.push_str(&text[copied..]);
        *text = Cow::Owned(clean);
    }
}

fn rewrite(text: &mut Cow<'_, str>, pattern: &Regex, put: impl Fn(&Captures<'_>) -> String) {
    if pattern.is_match(text) {
        *text = Cow::Owned(pattern.replace_all(text, |found: &Captures<'_>| put(found)).into());
    }
}

fn end(found: &Captures<'_>) -> usize {
    found.get(0).expect("all that is found").end()
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("our own pattern is right")
}

/// `key=value` and `key: value`, quotes around either left where they are.
static KEYED: LazyLock<Regex> = LazyLock::new(|| {
    let key = r#"([A-Za-z][A-Za-z0-9_.\-]*)["']?\s*(=|:)\s*"#;
    let value = r#"(?:"([^"\n]+)"|'([^'\n]+)'|([^\s"',;)\]}‹]+))"#;
    regex(&format!("{key}{value}"))
});

/// The value, where the key says that it is a secret. Where not, it may hold a key itself, as in
/// `error: password: …` and `cmd=password=…`; and a value that is nothing but a key is none.
fn keyed(found: &Captures<'_>) -> Result<Range<usize>, usize> {
    let value = (3..=5).find_map(|group| found.get(group)).expect("a value");
    let (range, value) = (value.range(), value.as_str());
    let said = match &found[2] {
        "=" => Said::Assigned,
        _ if found.get(5).is_none() => Said::Quoted,
        _ => Said::Bare,
    };
    let is_key = found.get(5).is_some() && value.ends_with([':', '=']) && value.len() > 1;
    if is_secret(&found[1], value, said) && !is_key { Ok(range) } else { Err(range.start) }
}

/// How a value stands by its name.
#[derive(Clone, Copy, PartialEq)]
enum Said {
    /// `name=value`
    Assigned,
    /// `name: "value"`
    Quoted,
    /// `name: value`, as in many a sentence.
    Bare,
}

/// Whether a value is a secret by its name: anything that is assigned to a password, what can be a
/// key where the name says for what, and else what is as random as a token.
fn is_secret(name: &str, value: &str, said: Said) -> bool {
    if !is_some_secret(value) {
        return false;
    }
    let words = words(name);
    let has = |names: &[&str]| words.iter().any(|word| names.contains(&&**word));
    let last = words.last().map_or("", |word| word);
    let is_env = name.bytes().all(|byte| byte == b'_' || byte.is_ascii_uppercase());
    let is_key = ["key", "keys", "token", "tokens"].contains(&last);
    let is_for = words.len() > 1
        && (is_key || has(&["key"]))
        && OF_KEYS.iter().any(|purpose| has(&[purpose]));
    let is_long = value.len() >= 8 || has_digit(value);
    let is_strong = is_password(&words, last, is_env)
        || has(&["secret", "secrets", "secretkey", "credential", "credentials", "authorization"])
        || has(&["apikey", "authtoken", "accesstoken"])
        || is_for;
    let is_weak = is_key || has(&["key", "token", "auth", "cookie", "cookies", "session", "jwt"]);
    match said {
        Said::Assigned if is_strong => true,
        Said::Assigned if is_env && is_key => is_long,
        Said::Quoted if is_strong => true,
        Said::Bare if is_strong => has_digit(value),
        _ => is_weak && is_random(value),
    }
}

/// What a key or a token is for, where it is a secret.
const OF_KEYS: [&str; 23] = [
    "api",
    "access",
    "auth",
    "private",
    "secret",
    "master",
    "encryption",
    "signing",
    "account",
    "client",
    "service",
    "deploy",
    "ssh",
    "bearer",
    "refresh",
    "session",
    "hf",
    "wandb",
    "openai",
    "github",
    "gitlab",
    "slack",
    "npm",
];

fn is_password(words: &[String], last: &str, is_env: bool) -> bool {
    let whole = |word: &String| {
        word.starts_with("passw")
            || ["password", "passwd", "passphrase"].iter().any(|end| word.ends_with(end))
    };
    let is_short = if words.len() > 1 {
        ["pass", "pwd"].contains(&last)
    } else {
        is_env && last.ends_with("pass")
    };
    words.iter().any(whole) || is_short && last != "bypass"
}

/// Whether this key says who somebody is.
fn is_person(key: &str) -> bool {
    words(key).iter().any(|word| ["user", "username", "entity", "email"].contains(&&**word))
}

/// The words of a name, at signs and at capitals: `hfToken`, `HF_TOKEN` and `hf-token` have two.
fn words(key: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in key.chars() {
        if !c.is_alphanumeric() || (c.is_uppercase() && before.is_lowercase()) {
            words.push(String::new());
        }
        if c.is_alphanumeric() {
            words.last_mut().expect("there is one").extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Whether a value can be a secret: no number, no truth value, nothing that refers elsewhere.
fn is_some_secret(value: &str) -> bool {
    let refers = value.starts_with('$') || value.starts_with('<') || value.starts_with('{');
    let plain = ["true", "false", "null", "none", "[]", "yes", "no"];
    let plain = plain.contains(&&*value.to_lowercase()) || value.contains(REDACTED);
    // A line and a column behind the name of a file, too.
    let is_place = value.bytes().all(|byte| byte.is_ascii_digit() || byte == b':');
    !value.is_empty() && !refers && !plain && !is_place && value.parse::<f64>().is_err()
}

fn has_digit(text: &str) -> bool {
    text.bytes().any(|byte| byte.is_ascii_digit())
}

/// What gives a secret away by its shape. Where there is a group, it is the secret.
static SHAPES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let shapes = [
        r"-----BEGIN [A-Z ]+-----(?:[\s\S]*?-----END [A-Z ]+-----|[\s\S]*)",
        r"\b(hf_[A-Za-z0-9]{8,})",
        r"\b(sk-[A-Za-z0-9_\-]{8,})",
        r"\b(gh[pousr]_[A-Za-z0-9]{8,})",
        r"\b(github_pat_[A-Za-z0-9_]{8,})",
        r"\b(glpat-[A-Za-z0-9_\-]{8,})",
        r"\b(A[KS]IA[0-9A-Z]{12,})",
        r"\b(AIza[0-9A-Za-z_\-]{16,})",
        r"\b(xox[a-z]-[A-Za-z0-9\-]{8,})",
        r"\b(eyJ[A-Za-z0-9_\-]{6,}\.[A-Za-z0-9_\-]+(?:\.[A-Za-z0-9_\-]*)?)",
        r"(?i)\b(?:bearer|basic)\s+([A-Za-z0-9._~+/\-]{8,}={0,2})",
        r"(?i)authorization[\x22']?\s*[:=]\s*[\x22']?(?:bearer|basic|token)\s+([^\s\x22',;]{6,})",
        r"(?i)--[a-z0-9_.\-]*(?:password|passwd|secret|api[_-]?key|token)\s+([^\s\-]\S*)",
        r"(?i)cookie:\s*[^=\s;]+=([^;\s]{8,})",
        r"\b(SG\.[A-Za-z0-9_\-]{16,}\.[A-Za-z0-9_\-]{16,})",
        r"\b((?:npm|gsk|r8)_[A-Za-z0-9]{16,})",
        r"\b(nvapi-[A-Za-z0-9_\-]{16,})",
        r"://([^\s/:@]*:[^\s/@]+)@",
        r"(?i)[?&][a-z0-9_.\-]*(?:token|key|secret|sig|signature|password|auth)=([^&\s]+)",
        r"(?i)(?:key|token|secret|passw|credential|auth|login|wandb)[^\n]{0,40}?\b([0-9a-f]{40})\b",
    ];
    shapes.iter().map(|shape| regex(shape)).collect()
});

fn by_shape(found: &Captures<'_>) -> Result<Range<usize>, usize> {
    let secret = found.get(1).or_else(|| found.get(0)).expect("all that is found");
    let text = secret.as_str();
    // `hf_transfer` and `sk-learning` are names.
    let may_be_a_name = text.starts_with("hf_") || text.starts_with("sk-");
    let mixed = |byte: u8| byte.is_ascii_digit() || byte.is_ascii_uppercase();
    let is_name = may_be_a_name && !text.bytes().any(mixed) && text.len() < 24;
    // `Basic understanding` and `Bearer instruments` are words.
    let scheme = found[0].to_lowercase();
    let is_word = (scheme.starts_with("basic") || scheme.starts_with("bearer"))
        && !has_digit(text)
        && !text[1..].bytes().any(|byte| byte.is_ascii_uppercase());
    let is_name = is_name || is_word;
    if is_name || text == REDACTED { Err(end(found)) } else { Ok(secret.range()) }
}

/// A long run of the letters of base64, with the word before it.
static RUN: LazyLock<Regex> = LazyLock::new(|| {
    regex(r"(?:(?i:(sha256|sha512|commit|revision))[^\n]{0,12}?)?([A-Za-z0-9+/_\-]{32,}={0,2})")
});

fn token(found: &Captures<'_>) -> Result<Range<usize>, usize> {
    if is_token(found) { Ok(found.get(2).expect("a run").range()) } else { Err(end(found)) }
}

/// Whether a long run is as random as a token, and no path, no name and no checksum.
fn is_token(found: &Captures<'_>) -> bool {
    let run = found[2].trim_end_matches('=');
    let turns = turns(run);
    let is_of_words = 5 * in_words(run) > 2 * run.len();
    let is_mixed = bits(run) >= 4.0 && has_digit(run) && 5 * turns >= run.len();
    found.get(1).is_none() && is_mixed && !is_of_words
}

/// Whether a value looks drawn: letters and digits, or both cases, in turns.
fn is_random(value: &str) -> bool {
    let is_plain =
        value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/_-.=".contains(&byte));
    value.len() >= 12 && is_plain && has_digit(value) && 3 * turns(value) >= value.len()
}

/// How often a text turns from small letters to capitals to digits.
fn turns(text: &str) -> usize {
    let classes: Vec<u8> = text.bytes().map(class).collect();
    classes.windows(2).filter(|pair| pair[0] != pair[1] && !pair.contains(&3)).count()
}

/// How many of its letters are in what looks like a word: four letters and more, small but for the
/// first. What is drawn has few.
fn in_words(text: &str) -> usize {
    let (mut all, mut word) = (0, 0);
    for byte in text.bytes().chain([b' ']) {
        match byte {
            b'a'..=b'z' => word += 1,
            _ => {
                all += if word >= 4 { word } else { 0 };
                word = usize::from(byte.is_ascii_uppercase());
            }
        }
    }
    all
}

fn class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' => 0,
        b'A'..=b'Z' => 1,
        b'0'..=b'9' => 2,
        _ => 3,
    }
}

/// The entropy of a text's letters in bits each.
fn bits(text: &str) -> f64 {
    let mut counts: HashMap<u8, f64> = HashMap::new();
    text.bytes().for_each(|byte| *counts.entry(byte).or_default() += 1.0);
    let all = text.len() as f64;
    counts.values().map(|count| -(count / all) * (count / all).log2()).sum()
}

type Put = fn(&Captures<'_>) -> String;

/// Hosts that everybody knows.
const PUBLIC_HOSTS: [&str; 5] =
    ["huggingface.co", "github.com", "arxiv.org", "pypi.org", "crates.io"];

/// What says who or where somebody is, and what is put there.
static IDENTITY: LazyLock<Vec<(Regex, Put)>> = LazyLock::new(|| {
    let ends = "com|net|org|edu|gov|io|ai|dev|internal|intranet|local|lan|corp|cloud|cluster";
    let host = format!(r"(?:[A-Za-z0-9\-]+\.)+(?:{ends}|ac\.[a-z]{{2}}|co\.[a-z]{{2}})");
    let all: [(String, Put); 6] = [
        (r"https?://[^\s/]*wandb\.[a-z]+/[^\s)\]]+".to_owned(), |_| "‹run›".to_owned()),
        (r"[A-Za-z0-9._%+\-]+@[A-Za-z0-9\-]+(?:\.[A-Za-z0-9\-]+)+".to_owned(), |_| {
            "‹email›".to_owned()
        }),
        (r"(^|[\s\x22'=(,:\[])((?:/[^\s/\x22'():,;\]]+){2,}/?)".to_owned(), |found| {
            format!("{}{}", &found[1], short_path(&found[2]))
        }),
        (
            r"(^|[^0-9A-Za-z.])((?:[0-9]{1,3}\.){3}[0-9]{1,3})($|[^0-9A-Za-z.])".to_owned(),
            |found| format!("{}‹address›{}", &found[1], &found[3]),
        ),
        (r"\b(?:[0-9a-f]{1,4}:){5,7}[0-9a-f]{1,4}\b".to_owned(), |_| "‹address›".to_owned()),
        (format!(r"\b{host}\b"), |found| {
            let host = found[0].to_lowercase();
            let public =
                PUBLIC_HOSTS.iter().any(|one| host == *one || host == format!("www.{one}"));
            if public { found[0].to_owned() } else { "‹host›".to_owned() }
        }),
    ];
    all.into_iter().map(|(pattern, put)| (regex(&pattern), put)).collect()
});

static HOME: LazyLock<Regex> = LazyLock::new(|| {
    let name = r#"[^\s/\\'"():,;\]`]+"#;
    let folder = format!(r"/(?:home|Users)/{name}|/root|[A-Z]:\\Users\\{name}");
    regex(&format!(r#"(^|[\s'"=(,:\[`])(?:{folder})($|[\s/\\'"():,;\]`])"#))
});

/// The last two parts of an absolute path; of one in a home folder from there, `~/…`.
fn short_path(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
    let below_home = match parts[..] {
        ["home" | "Users", _, ..] => Some(2),
        ["root", ..] => Some(1),
        _ => None,
    };
    let kept = parts.len().saturating_sub(2).max(below_home.unwrap_or(0));
    let last = parts[kept..].join("/");
    match below_home {
        Some(home) if home == kept => format!("~/{last}").trim_end_matches('/').to_owned(),
        Some(_) => format!("~/…/{last}"),
        None if kept == 0 => path.to_owned(),
        None => format!("…/{last}"),
    }
}

/// The names of the user and of the machine, where they are no everyday words.
static OWN_NAMES: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    let names = ["USER", "LOGNAME", "USERNAME", "HOSTNAME"].map(std::env::var);
    let everyday = ["root", "user", "runner", "ubuntu", "localhost", "admin"];
    let mut names: Vec<String> = names.into_iter().flatten().collect();
    names.retain(|name| name.len() >= 4 && !everyday.contains(&name.as_str()));
    names.dedup();
    names.iter().map(|name| regex(&format!(r"\b{}\b", regex_lite::escape(name)))).collect()
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_whatever_they_are_called() {
        for secret in [
            "hf_abcdEFGHijklMNOPqrstUVWXyz0123456789",
            "sk-proj-a1B2c3D4e5F6g7H8i9J0",
            "ghp_16C7e42F292c6912E7710c838347Ae178B4a",
            "github_pat_11ABCDEFG0aBcDeFgHiJkL_mNoPqRsTuV",
            "AKIAIOSFODNN7EXAMPLE",
            "xoxb-123456789012-abcdefGHIJKL",
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.abc-DEF_123",
            "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY1",
        ] {
            for text in
                [secret.to_owned(), format!("see {secret}."), format!("{{'a': '{secret}'}}")]
            {
                let clean = secrets(&text);
                assert!(!clean.contains(&secret[4..12]), "{text} became {clean}");
                assert_eq!(secrets(&clean), clean, "again");
            }
        }
    }

    #[test]
    fn home_folders_become_a_tilde_and_nothing_else_does() {
        for (text, clean) in [
            ("File \"/home/al.ice/a b.py\", line 3", "File \"~/a b.py\", line 3"),
            ("/root/a.py: no; (/Users/bob)", "~/a.py: no; (~)"),
            (r"at C:\Users\bob\a.py", r"at ~\a.py"),
            ("path=/home/a:/home/b/lib", "path=~:~/lib"),
            ("/rooted/a /home /data/home/a/x https://a.b/home/a", ""),
        ] {
            assert_eq!(homes(text), if clean.is_empty() { text } else { clean });
        }
    }

    #[test]
    fn values_of_keys_that_say_so_go() {
        let clean = secrets("password: hunter22, WANDB_API_KEY=abcdefgh1 'db_secret': 'two words'");
        assert_eq!(
            clean,
            "password: ‹redacted›, WANDB_API_KEY=‹redacted› 'db_secret': '‹redacted›'"
        );
        for (text, clean) in [
            ("error: password: hunter22", "error: password: ‹redacted›"),
            ("password: password: hunter22 at a", "password: password: ‹redacted› at a"),
            ("--cmd=password=hunter22 x", "--cmd=password=‹redacted› x"),
            ("password=password", "password=‹redacted›"),
            ("?token=1a&token=2b", "?token=‹redacted›&token=‹redacted›"),
        ] {
            assert_eq!(secrets(text), clean);
        }
        assert_eq!(secrets("postgres://bob:pa55word@db/x"), "postgres://‹redacted›@db/x");
    }

    /// One text a line; in the first the secrets stand between brackets.
    const LEAKS: &str = include_str!("redact/leaks.txt");
    const HARMLESS: &str = include_str!("redact/harmless.txt");

    #[test]
    fn secrets_go_and_what_is_around_them_stays() {
        let wrong: Vec<String> = LEAKS
            .lines()
            .filter_map(|line| {
                let text = line.replace(['⟦', '⟧'], "");
                let mut parts = line.split('⟦');
                let mut expected = parts.next().unwrap_or_default().to_owned();
                for part in parts {
                    let (_, rest) = part.split_once('⟧').expect("a bracket is closed");
                    expected = expected + REDACTED + rest;
                }
                let clean = secrets(&text);
                let wrong = format!("{text}\n  became {clean}\n  not    {expected}");
                (clean != expected).then_some(wrong)
            })
            .collect();
        assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
        assert!(LEAKS.lines().count() >= 100);
    }

    #[test]
    fn names_numbers_and_sentences_stay() {
        let altered: Vec<String> = HARMLESS
            .lines()
            .filter(|line| secrets(line) != *line)
            .map(|line| format!("{line}\n  became {}", secrets(line)))
            .collect();
        assert!(altered.is_empty(), "{}:\n{}", altered.len(), altered.join("\n"));
        assert!(HARMLESS.lines().count() >= 100);
    }

    #[test]
    fn people_and_places_go() {
        assert_eq!(
            identity("cannot read /home/ann/runs/a/log.jsonl: no"),
            "cannot read ~/…/a/log.jsonl: no"
        );
        assert_eq!(identity("/data/team/x/run.csv"), "…/x/run.csv");
        assert_eq!(identity("runs/a/log.jsonl and a/b"), "runs/a/log.jsonl and a/b");
        assert_eq!(identity("ann@lab.edu on 10.1.2.3"), "‹email› on ‹address›");
        assert_eq!(identity("gpu7.cluster.example.com"), "‹host›");
        assert_eq!(
            identity("https://huggingface.co/Qwen/Qwen2.5"),
            "https://huggingface.co/Qwen/Qwen2.5"
        );
        assert_eq!(
            identity("kl.ref, reward.mean, data.train 1.2.3"),
            "kl.ref, reward.mean, data.train 1.2.3"
        );
    }
}
