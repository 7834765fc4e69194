//! Relations between an answer and a gold answer, in the place of being the same.

use crate::diagnosis::text::Text;

/// What makes an answer right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Relation {
    kind: Kind,
    /// What is done to both before.
    after: After,
    /// Whether an answer of which nothing is left may be right.
    empty: bool,
}

/// How an answer and a gold answer stand to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Equal,
    Begins,
    Ends,
    Contains,
    IsBegin,
    IsEnd,
    IsPart,
}

/// What is taken from both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum After {
    Nothing,
    Sign,
    Case,
    Separators,
    Space,
    All,
}

impl Kind {
    const ALL: [Kind; 7] = [
        Kind::Equal,
        Kind::Begins,
        Kind::Ends,
        Kind::Contains,
        Kind::IsBegin,
        Kind::IsEnd,
        Kind::IsPart,
    ];

    fn told(self) -> &'static str {
        match self {
            Kind::Equal => "is the gold answer",
            Kind::Begins => "begins with the gold answer",
            Kind::Ends => "ends with the gold answer",
            Kind::Contains => "contains the gold answer",
            Kind::IsBegin => "is the begin of the gold answer",
            Kind::IsEnd => "is the end of the gold answer",
            Kind::IsPart => "is contained in the gold answer",
        }
    }

    fn holds(self, answer: &str, gold: &str) -> bool {
        match self {
            Kind::Equal => answer == gold,
            Kind::Begins => answer.starts_with(gold),
            Kind::Ends => answer.ends_with(gold),
            Kind::Contains => answer.contains(gold),
            Kind::IsBegin => gold.starts_with(answer),
            Kind::IsEnd => gold.ends_with(answer),
            Kind::IsPart => gold.contains(answer),
        }
    }
}

impl After {
    const ALL: [After; 6] =
        [After::Nothing, After::Sign, After::Case, After::Separators, After::Space, After::All];

    fn told(self) -> &'static str {
        match self {
            After::Nothing => "",
            After::Sign => ", both without their sign",
            After::Case => ", both in lower case",
            After::Separators => ", both without commas",
            After::Space => ", both without white space",
            After::All => ", both without sign, case, commas and white space",
        }
    }

    fn of(self, text: &str) -> String {
        let changes: &[Text] = match self {
            After::Nothing => &[],
            After::Sign => &[Text::WithoutSign],
            After::Case => &[Text::Lower],
            After::Separators => &[Text::WithoutCommas],
            After::Space => &[Text::WithoutSpaces],
            After::All => {
                &[Text::WithoutSpaces, Text::WithoutCommas, Text::WithoutSign, Text::Lower]
            }
        };
        let change = |text: String, change: &Text| change.of(&text).unwrap_or_default();
        changes.iter().fold(text.to_owned(), change)
    }
}

impl Relation {
    /// All of them, the plainest first.
    pub(crate) fn all() -> impl Iterator<Item = Relation> {
        let pairs = After::ALL.into_iter().flat_map(|after| Kind::ALL.map(|kind| (kind, after)));
        pairs.flat_map(|(kind, after)| [false, true].map(|empty| Relation { kind, after, empty }))
    }

    /// What is said of it: "an answer were right that …".
    pub(crate) fn told(self) -> String {
        self.kind.told().to_owned() + self.after.told()
    }

    /// Whether it is another one than that the texts are the same.
    pub(crate) fn removes(self) -> usize {
        usize::from(self.after != After::Nothing) + usize::from(self.after == After::All)
    }

    /// Whether an answer stands so to a gold answer.
    pub(crate) fn holds(self, answer: &str, gold: &str) -> bool {
        let [answer, gold] = [answer, gold].map(|text| self.after.of(text));
        (self.empty || !answer.is_empty()) && self.kind.holds(&answer, &gold)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_relation_holds_of_what_it_says_and_not_of_what_it_does_not() {
        let holds = |told: &str, answer: &str, gold: &str| {
            let found = Relation::all().find(|one| one.told() == told && !one.empty);
            found.expect("it is one of them").holds(answer, gold)
        };
        assert!(holds("begins with the gold answer", "10", "1"));
        assert!(!holds("begins with the gold answer", "21", "1"));
        assert!(holds("ends with the gold answer", "21", "1"));
        assert!(holds("contains the gold answer", "213", "1"));
        assert!(holds("is the begin of the gold answer", "1", "10"));
        assert!(holds("is the end of the gold answer", "0", "10"));
        assert!(holds("is contained in the gold answer", "1", "213"));
        assert!(!holds("is contained in the gold answer", "", "213"));
        assert!(holds("is the gold answer, both without their sign", "-3", "3"));
        assert!(holds("is the gold answer, both in lower case", "Paris", "paris"));
        assert!(holds("is the gold answer, both without commas", "1,000", "1000"));
        assert!(holds("is the gold answer, both without white space", "a b", "ab"));
        let all = "is the gold answer, both without sign, case, commas and white space";
        assert!(holds(all, "- 1,000 A", "1000a"));
    }
}
