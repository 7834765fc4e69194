//! What is remembered of the prompts.

use std::collections::{BTreeSet, HashMap};

use super::hits::{Hits, Place};
use super::known::{CountTokens, Known};
use super::prompt::{Message, Prompt, Shape};
use super::text::{Hash, estimated_tokens, shown_name};

/// Roles that chat templates know.
const ROLES: [&str; 8] =
    ["assistant", "developer", "function", "ipython", "observation", "system", "tool", "user"];

/// More names, sources or texts than this are not told apart.
const MOST: usize = 1024;

/// A data set of more parts than this has none.
pub(super) const MOST_PARTS: usize = 64;

/// What is remembered of the prompts.
#[derive(Debug, Default)]
pub(super) struct Prompts {
    pub(super) missing: Hits,
    pub(super) texts: Hits,
    pub(super) messages: Hits,
    pub(super) others: Hits,
    pub(super) incomplete: Hits,
    /// Whether an incomplete message has ShareGPT's `from` and `value`.
    pub(super) has_from_and_value: bool,
    pub(super) unknown_role: Hits,
    pub(super) unknown_roles: BTreeSet<String>,
    pub(super) last_assistant: Hits,
    pub(super) last_texts: HashMap<Hash, u64>,
    pub(super) systems_twice: Hits,
    pub(super) system_later: Hits,
    pub(super) blank: Hits,
    /// By the part of the data set: the rows of each system prompt.
    pub(super) systems: HashMap<Hash, HashMap<Option<Hash>, Hits>>,
    pub(super) too_long: Hits,
    pub(super) longest: usize,
    /// By tag: in how many prompts it stands.
    pub(super) tags: HashMap<String, u64>,
}

impl Prompts {
    pub(super) fn take(
        &mut self,
        prompt: &Prompt<'_>,
        source: Hash,
        place: Place,
        known: &Known<'_>,
    ) {
        match prompt.shape {
            Shape::Text => self.texts.add(place),
            Shape::Messages => self.messages.add(place),
            Shape::Other => return self.others.add(place),
        }
        let is_blank = prompt.is_blank()
            || prompt
                .messages
                .iter()
                .any(|one| one.role == Some("user") && one.has_content && one.is_blank());
        self.blank.add_if(is_blank, place);
        self.measure(prompt, place, known);
        self.tags(prompt);
        if prompt.shape == Shape::Messages {
            self.complete(&prompt.messages, place);
            self.roles(&prompt.messages, place);
            self.system(&prompt.messages, source, place);
        }
    }

    fn complete(&mut self, messages: &[Message<'_>], place: Place) {
        let bad = messages.iter().find(|one| one.role.is_none() || !one.has_content);
        self.incomplete.add_if(bad.is_some(), place);
        self.has_from_and_value |= bad.is_some_and(Message::has_from_and_value);
    }

    fn roles(&mut self, messages: &[Message<'_>], place: Place) {
        let mut unknown = messages
            .iter()
            .filter_map(|message| message.role)
            .filter(|role| !ROLES.contains(role))
            .peekable();
        self.unknown_role.add_if(unknown.peek().is_some(), place);
        for role in unknown.take(8) {
            if self.unknown_roles.len() < 8 {
                self.unknown_roles.insert(shown_name(role));
            }
        }
        if let Some(last) = messages.last().filter(|last| last.role == Some("assistant")) {
            self.last_assistant.add(place);
            count(&mut self.last_texts, last.hash(Hash::EMPTY));
        }
        let is_system = |message: &Message<'_>| message.role == Some("system");
        let systems = messages.iter().filter(|message| is_system(message)).count();
        self.systems_twice.add_if(systems > 1, place);
        let is_later = systems == 1 && !messages.first().is_some_and(is_system);
        self.system_later.add_if(is_later, place);
    }

    fn system(&mut self, messages: &[Message<'_>], source: Hash, place: Place) {
        let first = messages.first().filter(|first| first.role == Some("system"));
        let system = first.map(|first| first.hash(Hash::EMPTY));
        if self.systems.len() < MOST || self.systems.contains_key(&source) {
            let of_source = self.systems.entry(source).or_default();
            if of_source.len() < MOST || of_source.contains_key(&system) {
                of_source.entry(system).or_default().add(place);
            }
        }
    }

    /// Whether one message of the assistant ends all prompts: it opens the completions.
    pub(super) fn are_opened(&self) -> bool {
        let same = self.last_texts.values().copied().max().unwrap_or(0);
        same > 1 && same == self.messages.count
    }

    /// The rows of each system prompt, by part of the data set. Where parts are very many, the
    /// column that tells them apart is no name of a part: then there is one.
    pub(super) fn systems_by_part(&self) -> Vec<HashMap<Option<Hash>, Hits>> {
        if self.systems.len() <= MOST_PARTS {
            return self.systems.values().cloned().collect();
        }
        let mut all: HashMap<Option<Hash>, Hits> = HashMap::new();
        for (system, hits) in self.systems.values().flatten() {
            let so_far = all.entry(*system).or_default();
            *so_far = Hits::all([&*so_far, hits]);
        }
        vec![all]
    }

    fn measure(&mut self, prompt: &Prompt<'_>, place: Place, known: &Known<'_>) {
        let Some(limit) = known.limit else { return };
        let length = |count: CountTokens<'_>| {
            let texts = prompt.messages.iter().flat_map(|message| &message.texts);
            texts.map(|text| count(text)).sum::<usize>()
        };
        let (tokens, limit) = match known.count_tokens {
            Some(count) => (length(count), limit as f64),
            None => (length(&estimated_tokens), 1.5 * limit as f64),
        };
        self.longest = self.longest.max(tokens);
        self.too_long.add_if(tokens as f64 > limit, place);
    }

    fn tags(&mut self, prompt: &Prompt<'_>) {
        let asked = prompt.asked();
        let mut tags: BTreeSet<String> = tags(&asked).take(64).map(str::to_lowercase).collect();
        if asked.contains("\\boxed") {
            tags.insert(BOX.to_owned());
        }
        for tag in tags {
            count(&mut self.tags, tag);
        }
    }
}

/// What stands for `\boxed{…}` among the tags.
pub(super) const BOX: &str = "\\boxed";

/// The names in `<name>`.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.split('<').skip(1).filter_map(|after| {
        let (name, _) = after.split_once('>')?;
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let is_tag = (1..=32).contains(&name.len()) && name.chars().all(is_name);
        is_tag.then_some(name)
    })
}

/// One more of a kind, where that is known or there is room for another.
pub(super) fn count<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, u64>, key: K) {
    if counts.len() < MOST || counts.contains_key(&key) {
        *counts.entry(key).or_default() += 1;
    }
}
