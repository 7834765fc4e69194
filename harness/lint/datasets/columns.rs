//! Which columns hold what: named by hand or by the configuration, else by the names that libraries
//! ask for.

use serde_json::{Map, Value as Json};

use crate::settings::{Library, Settings};

/// A row: its columns by name.
pub(super) type Cells = Map<String, Json>;

/// Where libraries and people keep the prompt, the usual name first.
const PROMPTS: [&str; 7] =
    ["prompt", "question", "problem", "input", "instruction", "query", "messages"];

/// Where they keep the answer.
const ANSWERS: [&str; 7] = [
    "reward_model.ground_truth",
    "answer",
    "expected_answer",
    "ground_truth",
    "solution",
    "label",
    "gold",
];

/// Columns by which a row is scored that has no answer: its own tests, its own rules.
pub(super) const OTHER_MEASURES: [&str; 14] = [
    "checker",
    "constraints",
    "expected_output",
    "instruction_id_list",
    "private_tests",
    "public_tests",
    "rubric",
    "rubrics",
    "test",
    "test_cases",
    "test_list",
    "tests",
    "unit_tests",
    "verification_info",
];

/// Columns that the model sees besides the prompt.
pub(super) const CONTEXTS: [&str; 16] = [
    "article",
    "audio",
    "audios",
    "choices",
    "context",
    "document",
    "documents",
    "image",
    "images",
    "input",
    "options",
    "passage",
    "starter_code",
    "tools",
    "video",
    "videos",
];

/// Columns with a name for the part of the data set that a row comes from.
pub(super) const SOURCES: [&str; 7] =
    ["data_source", "source", "dataset", "task", "ability", "env", "env_class"];

/// What else is known and says nothing here.
const OTHERS: [&str; 18] = [
    "agent_name",
    "answer",
    "chosen",
    "completion",
    "difficulty",
    "extra_info",
    "ground_truth",
    "id",
    "index",
    "label",
    "level",
    "metadata",
    "reasoning",
    "rejected",
    "reward_model",
    "solution",
    "subject",
    "uid",
];

/// The columns that rules speak about, nested ones with dots.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Columns {
    /// Where the prompt is; `None` where no column looks like one.
    pub prompt: Option<String>,
    /// Where the answer is.
    pub answer: Option<String>,
    /// verl: the column that chooses the score.
    pub source: Option<String>,
    /// Whether the name of the prompt column was given, and not guessed.
    pub is_prompt_given: bool,
    /// Whether the library reads `input` where it is told nothing.
    pub(super) reads_input: bool,
}

impl Columns {
    /// What the configuration calls them; what it does not say is guessed from the first rows.
    pub(super) fn given(settings: Option<&Settings>) -> Columns {
        let Some(settings) = settings else { return Columns::default() };
        let field = |names: &[&str]| {
            let is_meant = |field: &str| {
                let last = field.rsplit(['.', ':']).next().unwrap_or(field).trim_start_matches('-');
                names.contains(&last.replace('-', "_").as_str())
            };
            let found = settings.fields.iter().find(|(field, _)| is_meant(field));
            found.and_then(|(_, value)| value.json.as_str()).map(str::to_owned)
        };
        let is_verl = settings.library == Some(Library::Verl);
        let prompt = field(&["prompt_key", "input_key"]);
        let by_flag = matches!(settings.library, Some(Library::OpenRlhf | Library::Slime));
        Columns {
            reads_input: by_flag && settings.is_complete,
            is_prompt_given: prompt.is_some(),
            prompt,
            answer: field(&["label_key", "output_key", "answer_key"]),
            source: field(&["reward_fn_key"]).or_else(|| is_verl.then(|| "data_source".to_owned())),
        }
    }

    /// The same, with what is missing guessed from some rows.
    pub(super) fn completed(mut self, rows: &[&Cells]) -> Columns {
        let first = |names: &[&str], is_meant: fn(&Json) -> bool| {
            let holds = |name: &&&str| rows.iter().any(|row| cell(row, name).is_some_and(is_meant));
            names.iter().find(holds).map(|name| (*name).to_owned())
        };
        // Pairs are read by other flags.
        let has_pairs = rows.iter().any(|row| has(row, "chosen"));
        if self.prompt.is_none() && self.reads_input && !has_pairs {
            self.prompt = Some("input".to_owned());
            self.is_prompt_given = true;
        }
        self.prompt = self.prompt.or_else(|| first(&PROMPTS, |_| true));
        // KTO's label and a classifier's are truth values: what is right is not in them.
        self.answer = self.answer.or_else(|| first(&ANSWERS, |value| !value.is_boolean()));
        self.answer = self.answer.or_else(|| first(&["answer"], Json::is_boolean));
        let is_verl = self.answer.as_deref() == Some("reward_model.ground_truth");
        if is_verl {
            self.source = self.source.or_else(|| first(&["data_source"], |_| true));
        }
        // `answer: null` in all of the first rows is still the column of answers.
        let stands = |name: &&&str| rows.iter().any(|row| has(row, name));
        self.answer =
            self.answer.or_else(|| ANSWERS[..5].iter().find(stands).map(|name| (*name).to_owned()));
        self.prompt =
            self.prompt.or_else(|| PROMPTS.iter().find(stands).map(|name| (*name).to_owned()));
        self
    }

    /// Whether something is known about a column.
    pub(super) fn knows(&self, name: &str) -> bool {
        let own = [&self.prompt, &self.answer, &self.source];
        let is_own = |column: &&Option<String>| {
            column.as_deref().and_then(|column| column.split('.').next()) == Some(name)
        };
        let known: [&[&str]; 5] = [&PROMPTS, &OTHER_MEASURES, &CONTEXTS, &SOURCES, &OTHERS];
        own.iter().any(is_own) || known.iter().any(|names| names.contains(&name))
    }
}

/// The value of a column, nested names with dots; `None` where it is missing or null.
pub(super) fn cell<'a>(row: &'a Cells, name: &str) -> Option<&'a Json> {
    find(row, name).filter(|value| !value.is_null())
}

/// Whether a row has a column, be it null.
fn has(row: &Cells, name: &str) -> bool {
    find(row, name).is_some()
}

fn find<'a>(row: &'a Cells, name: &str) -> Option<&'a Json> {
    row.get(name).or_else(|| {
        let (outer, inner) = name.split_once('.')?;
        find(row.get(outer)?.as_object()?, inner)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn guessed(row: Json) -> Columns {
        Columns::default().completed(&[row.as_object().expect("an object")])
    }

    #[test]
    fn the_usual_names_are_found() {
        let verl = guessed(json!({
            "data_source": "openai/gsm8k", "prompt": [], "reward_model": {"ground_truth": "1"},
        }));
        assert_eq!(verl.prompt.as_deref(), Some("prompt"));
        assert_eq!(verl.answer.as_deref(), Some("reward_model.ground_truth"));
        assert_eq!(verl.source.as_deref(), Some("data_source"));
        let kto = guessed(json!({"prompt": "a", "completion": "b", "label": true}));
        assert_eq!(kto.answer, None);
        let empty = guessed(json!({"problem": "a", "answer": null}));
        assert_eq!(
            (empty.prompt.as_deref(), empty.answer.as_deref()),
            (Some("problem"), Some("answer"))
        );
    }

    #[test]
    fn a_configuration_names_them() {
        let mut settings = Settings { library: Some(Library::Slime), ..Settings::default() };
        for (field, column) in [("--input-key", "text"), ("--label-key", "truth")] {
            let origin = crate::settings::Origin::Flag;
            let value = crate::settings::Value { json: column.into(), origin };
            settings.fields.insert(field.to_owned(), value);
        }
        let columns = Columns::given(Some(&settings));
        assert_eq!(columns.prompt.as_deref(), Some("text"));
        assert_eq!(columns.answer.as_deref(), Some("truth"));
        assert!(columns.is_prompt_given);
    }
}
