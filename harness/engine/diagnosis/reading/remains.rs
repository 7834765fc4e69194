//! What stays of a text otherwise: which special tokens go, which blocks of reasoning, and what
//! becomes of the text around markers that stay.

/// Which special tokens go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Clean {
    None,
    AtTheStart,
    AtTheEnd,
    AtTheEnds,
    FirstOfEach,
    OnlyFirst,
    OnlyLast,
    SpaceForEach,
    LineEndForEach,
    WithSpacesAround,
    BeforeTheFirst,
    BeforeTheFirstOfTheLast,
}

/// What stays of a text with reasoning in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outside {
    WithoutTheFirst,
    WithoutTheLast,
    WithoutClosed,
    WithoutClosedAndTags,
    WithoutTags,
    WithoutOneAtTheStart,
    SpaceForEach,
    BeforeTheFirstOpening,
    AfterTheLastOpening,
    BeforeTheFirstClosing,
    AfterTheFirstClosing,
    AfterTheLastClosing,
    AfterTheLastTag,
    AfterTheLastClosingElseOpening,
    Inside,
}

/// What stays of a text with markers in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kept {
    UntilTheFirstClosing,
    UntilTheLastClosing,
    FromTheFirstOpening,
    FromTheLastOpening,
    BetweenThem,
}

impl Clean {
    pub(crate) const ALL: [Clean; 12] = [
        Clean::None,
        Clean::AtTheStart,
        Clean::AtTheEnd,
        Clean::AtTheEnds,
        Clean::FirstOfEach,
        Clean::OnlyFirst,
        Clean::OnlyLast,
        Clean::SpaceForEach,
        Clean::LineEndForEach,
        Clean::WithSpacesAround,
        Clean::BeforeTheFirst,
        Clean::BeforeTheFirstOfTheLast,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Clean::None => "no special token were removed",
            Clean::AtTheStart => "special tokens were removed at the start only",
            Clean::AtTheEnd => "special tokens were removed at the end only",
            Clean::AtTheEnds => "special tokens were removed at both ends only",
            Clean::FirstOfEach => "of each special token only the first were removed",
            Clean::OnlyFirst => "only the first of the special tokens were known",
            Clean::OnlyLast => "only the last of the special tokens were known",
            Clean::SpaceForEach => "a space stood in place of each special token",
            Clean::LineEndForEach => "a line end stood in place of each special token",
            Clean::WithSpacesAround => "special tokens took the white space around them along",
            Clean::BeforeTheFirst => "a text ended at its first special token",
            Clean::BeforeTheFirstOfTheLast => {
                "a text ended at the last of the special tokens, where it first stands"
            }
        }
    }

    pub(super) fn of(self, text: &str, tokens: &[String]) -> String {
        let until_none = |text: &str, by: &dyn Fn(&str, &str) -> String, tokens: &[String]| {
            let mut text = text.to_owned();
            while let Some(token) = tokens.iter().find(|token| text.contains(&***token)) {
                text = by(&text, token);
            }
            text
        };
        let gone = |text: &str, token: &str| text.replace(token, "");
        let cut = |mut text: &str, start: bool, end: bool| {
            loop {
                let without = tokens.iter().find_map(|token| {
                    let at_start = || text.strip_prefix(&**token).filter(|_| start);
                    let at_end = || text.strip_suffix(&**token).filter(|_| end);
                    at_start().or_else(at_end)
                });
                match without {
                    Some(without) => text = without,
                    None => return text.to_owned(),
                }
            }
        };
        match self {
            Clean::None => text.to_owned(),
            Clean::AtTheStart => cut(text, true, false),
            Clean::AtTheEnd => cut(text, false, true),
            Clean::AtTheEnds => cut(text, true, true),
            Clean::FirstOfEach => {
                tokens.iter().fold(text.to_owned(), |text, token| text.replacen(&**token, "", 1))
            }
            Clean::OnlyFirst => until_none(text, &gone, &tokens[..tokens.len().min(1)]),
            Clean::OnlyLast => until_none(text, &gone, &tokens[tokens.len().saturating_sub(1)..]),
            Clean::SpaceForEach => {
                until_none(text, &|text, token| text.replace(token, " "), tokens)
            }
            Clean::LineEndForEach => {
                until_none(text, &|text, token| text.replace(token, "\n"), tokens)
            }
            Clean::WithSpacesAround => {
                let with = |text: &str, token: &str| {
                    let (before, after) = text.split_once(token).unwrap_or((text, ""));
                    [before.trim_end(), after.trim_start()].concat()
                };
                until_none(text, &with, tokens)
            }
            Clean::BeforeTheFirst => {
                let first = tokens.iter().filter_map(|token| text.find(&**token)).min();
                text[..first.unwrap_or(text.len())].to_owned()
            }
            Clean::BeforeTheFirstOfTheLast => {
                let before = tokens.last().and_then(|token| text.split_once(&**token));
                until_none(before.map_or(text, |(before, _)| before), &gone, tokens)
            }
        }
    }
}

impl Outside {
    pub(crate) const ALL: [Outside; 15] = [
        Outside::WithoutTheFirst,
        Outside::WithoutTheLast,
        Outside::WithoutClosed,
        Outside::WithoutClosedAndTags,
        Outside::WithoutTags,
        Outside::WithoutOneAtTheStart,
        Outside::SpaceForEach,
        Outside::BeforeTheFirstOpening,
        Outside::AfterTheLastOpening,
        Outside::BeforeTheFirstClosing,
        Outside::AfterTheFirstClosing,
        Outside::AfterTheLastClosing,
        Outside::AfterTheLastTag,
        Outside::AfterTheLastClosingElseOpening,
        Outside::Inside,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Outside::WithoutTheFirst => "only the first block of reasoning were removed",
            Outside::WithoutTheLast => "only the last block of reasoning were removed",
            Outside::WithoutClosed => {
                "only reasoning between an opening and a closing tag were removed"
            }
            Outside::WithoutClosedAndTags => {
                "only reasoning between an opening and a closing tag were removed, and of other \
                 reasoning the tag"
            }
            Outside::WithoutTags => "only the tags of reasoning were removed",
            Outside::WithoutOneAtTheStart => "only a block at the start of the text were removed",
            Outside::SpaceForEach => "a space stood in place of each block of reasoning",
            Outside::BeforeTheFirstOpening => "what stands before the first opening tag stayed",
            Outside::AfterTheLastOpening => "what follows the last opening tag stayed",
            Outside::BeforeTheFirstClosing => "what stands before the first closing tag stayed",
            Outside::AfterTheFirstClosing => "what follows the first closing tag stayed",
            Outside::AfterTheLastClosing => "what follows the last closing tag stayed",
            Outside::AfterTheLastTag => "what follows the last tag of either kind stayed",
            Outside::AfterTheLastClosingElseOpening => {
                "what follows the last closing tag stayed, and without one what follows the last \
                 opening tag"
            }
            Outside::Inside => "the first block of reasoning stayed, and nothing else",
        }
    }

    pub(super) fn of(self, text: &str, tags: &[String]) -> String {
        let [open, close] = tags else { return text.to_owned() };
        let (open, close) = (&**open, &**close);
        let without_tags = |text: String| text.replace(open, "").replace(close, "");
        // A block that never ends goes on to the end of the text, one that never began is from its
        // start, as where reasoning is removed as declared.
        let declared = |text: &str, space: &str| {
            let mut rest = text;
            let mut kept = String::new();
            if let Some((before, after)) = text.split_once(close)
                && !before.contains(open)
            {
                rest = after;
                kept.push_str(space);
            }
            while let Some((before, block)) = rest.split_once(open) {
                kept.extend([before, space]);
                rest = block.split_once(close).map_or("", |(_, after)| after);
            }
            kept + rest
        };
        let one = |parts: Option<(&str, &str)>| {
            let removed = parts.map(|(before, block)| {
                [before, block.split_once(close).map_or("", |(_, after)| after)].concat()
            });
            removed.unwrap_or_else(|| declared(text, ""))
        };
        let kept = |part: Option<&str>| part.unwrap_or(text).to_owned();
        let closed = || {
            let mut kept = String::new();
            let mut rest = text;
            while let Some((before, block)) = rest.split_once(open)
                && let Some((_, after)) = block.split_once(close)
            {
                kept.push_str(before);
                rest = after;
            }
            kept + rest
        };
        match self {
            Outside::WithoutTheFirst => one(text.split_once(open)),
            Outside::WithoutTheLast => one(text.rsplit_once(open)),
            Outside::WithoutClosed => closed(),
            Outside::WithoutClosedAndTags => without_tags(closed()),
            Outside::WithoutTags => without_tags(text.to_owned()),
            Outside::WithoutOneAtTheStart => {
                let block = text.trim_start().strip_prefix(open);
                kept(block.and_then(|block| block.split_once(close)).map(|(_, after)| after))
            }
            Outside::SpaceForEach => declared(text, " "),
            Outside::BeforeTheFirstOpening => kept(text.split(open).next()),
            Outside::AfterTheLastOpening => kept(text.rsplit(open).next()),
            Outside::BeforeTheFirstClosing => kept(text.split(close).next()),
            Outside::AfterTheFirstClosing => kept(text.split_once(close).map(|(_, after)| after)),
            Outside::AfterTheLastClosing => kept(text.rsplit(close).next()),
            Outside::AfterTheLastTag => {
                kept(text.rsplit(close).next().and_then(|rest| rest.rsplit(open).next()))
            }
            Outside::AfterTheLastClosingElseOpening => {
                let tag = if text.contains(close) { close } else { open };
                kept(text.rsplit(tag).next())
            }
            Outside::Inside => {
                let block = text.split_once(open).and_then(|(_, block)| block.split_once(close));
                kept(block.map(|(block, _)| block))
            }
        }
    }
}

impl Kept {
    pub(crate) const ALL: [Kept; 5] = [
        Kept::UntilTheFirstClosing,
        Kept::UntilTheLastClosing,
        Kept::FromTheFirstOpening,
        Kept::FromTheLastOpening,
        Kept::BetweenThem,
    ];

    pub(super) fn told(self) -> &'static str {
        match self {
            Kept::UntilTheFirstClosing => {
                "what follows the closing marker that stays, where it first stands, were lost"
            }
            Kept::UntilTheLastClosing => {
                "what follows the closing marker that stays, where it last stands, were lost"
            }
            Kept::FromTheFirstOpening => {
                "what precedes the opening marker that stays, where it first stands, were lost"
            }
            Kept::FromTheLastOpening => {
                "what precedes the opening marker that stays, where it last stands, were lost"
            }
            Kept::BetweenThem => "only what stands between the markers stayed",
        }
    }

    pub(super) fn of(self, text: &str, markers: &[String]) -> String {
        let [open, .., close] = markers else { return text.to_owned() };
        let (open, close) = (&**open, &**close);
        let until =
            |at: Option<usize>| text[..at.map_or(text.len(), |at| at + close.len())].to_owned();
        let from = |at: Option<usize>| text[at.unwrap_or(0)..].to_owned();
        match self {
            Kept::UntilTheFirstClosing => until(text.find(close)),
            Kept::UntilTheLastClosing => until(text.rfind(close)),
            Kept::FromTheFirstOpening => from(text.find(open)),
            Kept::FromTheLastOpening => from(text.rfind(open)),
            Kept::BetweenThem => {
                let inner = text.split_once(open).and_then(|(_, rest)| rest.split_once(close));
                inner.map_or(text, |(inner, _)| inner).to_owned()
            }
        }
    }
}
