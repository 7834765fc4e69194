//! The documentation of contracts and invariants: the `//!` lines at the head of their files.

/// The documentation of an invariant: the `//!` lines at the head of its file, whose headings are
/// `### Claim`, `### Why it matters`, `### Does not hold for`, `### Bugs it has caught`, and
/// `### Example` above a diff.
#[derive(Clone, Copy, Debug)]
pub struct Doc(pub &'static str);

impl Doc {
    /// The headings of the texts that every invariant's documentation has.
    pub const HEADINGS: [&'static str; 4] =
        ["Claim", "Why it matters", "Does not hold for", "Bugs it has caught"];

    /// The text under a heading, unwrapped to one line a paragraph.
    pub fn section(self, heading: &str) -> String {
        let mut lines = self.lines().skip_while(|line| *line != format!("### {heading}"));
        lines.next();
        let mut text = String::new();
        for line in lines.take_while(|line| !line.starts_with("### ")) {
            match (line.is_empty(), text.is_empty()) {
                (true, _) => text.push('\n'),
                (false, true) => text.push_str(line),
                (false, false) if text.ends_with('\n') => text.push_str(line),
                (false, false) => {
                    text.push(' ');
                    text.push_str(line);
                }
            }
        }
        text.trim().to_owned()
    }

    /// The items of the list under a heading, which begin with `- `, unwrapped to one line each.
    pub fn items(self, heading: &str) -> Vec<String> {
        let text = self.section(heading);
        let items = text.strip_prefix("- ").unwrap_or(&text).split(" - ");
        items.map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
    }

    /// The first sentence.
    pub fn summary(self) -> String {
        self.lines().next().unwrap_or("").to_owned()
    }

    /// What stands before the first heading.
    pub fn body(self) -> String {
        let lines: Vec<&str> = self.lines().take_while(|line| !line.starts_with("### ")).collect();
        lines.join("\n").trim().to_owned()
    }

    /// The claim, as reports quote it: its first sentence without the full stop.
    pub fn claim(self) -> String {
        let claim = self.section("Claim");
        let end = claim.find(". ").unwrap_or(claim.len());
        claim[..end].trim_end_matches('.').to_owned()
    }

    /// The example of an invariant, where it has one.
    pub fn example(self) -> Option<Example> {
        let mut lines = self.raw_lines().skip_while(|line| *line != "### Example");
        lines.next()?;
        let (before, diff): (Vec<&str>, Vec<&str>) = lines
            .take_while(|line| !line.starts_with("### "))
            .filter(|line| !line.starts_with("```") && !line.is_empty())
            .partition(|line| !line.starts_with(['-', '+', ' ']));
        let indent = |line: &&str| line[1..].len() - line[1..].trim_start().len();
        let indent = diff.iter().map(indent).min().unwrap_or(0);
        let diff = diff.iter().map(|line| format!("{} {}", &line[..1], &line[1 + indent..]));
        Some(Example { of: before.join(" "), diff: diff.collect() })
    }

    fn lines(self) -> impl Iterator<Item = &'static str> {
        self.raw_lines().map(str::trim)
    }

    /// The lines as they are indented.
    fn raw_lines(self) -> impl Iterator<Item = &'static str> {
        let lines = self.0.lines().map_while(|line| line.strip_prefix("//!"));
        lines.map(|line| line.strip_prefix(' ').unwrap_or(line))
    }
}

/// What a mistake looks like in Python, and the right lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Example {
    /// The contract and the options that it needs, if not the defaults: ``Under `ddof=0`:``.
    pub of: String,
    /// The lines of a diff: those that begin with `-` are wrong, those with `+` right.
    pub diff: Vec<String>,
}

impl Example {
    /// All of it, as `shakedown explain` shows it.
    pub fn shown(&self) -> String {
        let of = Some(&self.of).filter(|of| !of.is_empty());
        let lines = of.into_iter().chain(&self.diff).map(|line| format!("\n  {line}"));
        format!("example (- wrong, + right){}", lines.collect::<String>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_example_keeps_its_lines_and_loses_their_common_indent() {
        let doc = Doc("//! One.\n//!\n//! ### Example\n//! Under `ddof=0`:\n//! ```diff\n\
             //! -    a = 1\n//! +    if b:\n//! +        a = 2\n//! ```\n\nuse x;\n");
        let example = doc.example().expect("it has one");
        assert_eq!(example.diff, ["- a = 1", "+ if b:", "+     a = 2"]);
        let shown =
            "example (- wrong, + right)\n  Under `ddof=0`:\n  - a = 1\n  + if b:\n  +     a = 2";
        assert_eq!(example.shown(), shown);
        assert_eq!(doc.summary(), "One.");
        assert_eq!(Doc("//! One.\n").example(), None);
    }
}
