//! The documentation of contracts and invariants: the `//!` lines at the head of their files.

/// The documentation of an invariant: the `//!` lines at the head of its file, whose headings are
/// `### Claim`, `### Why it matters`, `### Does not hold for`, `### Bugs it has caught`.
#[derive(Clone, Copy, Debug)]
pub struct Doc(pub &'static str);

impl Doc {
    /// The headings that every invariant's documentation has.
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

    fn lines(self) -> impl Iterator<Item = &'static str> {
        self.0
            .lines()
            .take_while(|line| line.starts_with("//!"))
            .map(|line| line.trim_start_matches("//!").trim())
    }
}
