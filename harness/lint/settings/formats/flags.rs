//! Flags of a command: `--name value`, `--name=value`, `--name` alone for true.

use serde_json::Value as Json;

use super::layer::{Field, How, Layer};
use super::word::{self, Word};
use crate::settings::{Library, Origin, fields};

/// Flags of the launcher, which TRL's commands pass on.
pub(super) const OF_ACCELERATE: [&str; 14] = [
    "accelerate_config",
    "config",
    "config_file",
    "deepspeed_config_file",
    "dynamo_backend",
    "gpu_ids",
    "machine_rank",
    "main_process_ip",
    "main_process_port",
    "mixed_precision",
    "multi_gpu",
    "num_machines",
    "num_processes",
    "use_deepspeed",
];

/// The name of a flag; none where the word is no flag.
pub(super) fn name(word: &str) -> Option<&str> {
    let name = word.strip_prefix("--")?;
    let name = name.split('=').next().unwrap_or(name);
    let is_letter = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    (!name.is_empty() && name.chars().all(is_letter)).then_some(name)
}

/// Sets what the flags among these words say.
pub(super) fn read(layer: &mut Layer, words: &[Word]) {
    let library = layer.library;
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        rest = behind;
        let Some(name) = name(&word.text) else {
            if !word.is_read() {
                layer.gaps.push(word::unread(word));
            }
            continue;
        };
        let name = spelled(name, library);
        if let Some((_, value)) = word.text.split_once('=') {
            let json = word.is_read().then(|| fields::scalar(value));
            layer.fields.push(set(name, json, word.origin()));
            continue;
        }
        let count = rest.iter().take_while(|word| !word.text.starts_with("--")).count();
        let (values, others) = rest.split_at(count);
        rest = others;
        let (json, is_open) = value(values, is_switch(&name, layer));
        if is_open && let Some(open) = values.iter().find(|word| !word.is_read()) {
            layer.gaps.push(word::unread(open));
        }
        layer.fields.push(set(name, json, word.origin()));
    }
}

fn set(name: String, json: Option<Json>, origin: Origin) -> Field {
    Field { name, json, origin, how: How::Set }
}

/// The name as the library writes it.
fn spelled(name: &str, library: Option<Library>) -> String {
    match library {
        Some(Library::Slime) => name.replace('_', "-"),
        _ => name.replace('-', "_"),
    }
}

/// Whether a flag has no value.
fn is_switch(name: &str, layer: &Layer) -> bool {
    const OF_SLIME: [&str; 9] = [
        "colocate",
        "apply-chat-template",
        "rollout-shuffle",
        "balance-data",
        "sequence-parallel",
        "swiglu",
        "accumulate-allreduce-grads-in-fp32",
        "attention-softmax-in-fp32",
        "use-distributed-optimizer",
    ];
    let default = |library| fields::default(library, layer.call.as_deref(), name);
    let is_bool = layer.library.and_then(default).is_some_and(Json::is_boolean);
    is_bool && layer.library != Some(Library::Trl)
        || name.ends_with("_enable")
        || layer.library == Some(Library::Slime) && OF_SLIME.contains(&name)
}

/// The value that these words are, if they can be read; and whether more flags may be among them.
fn value(words: &[Word], is_switch: bool) -> (Option<Json>, bool) {
    let read = |word: &Word| word.is_read().then(|| fields::scalar(&word.text));
    let is_open = |words: &[Word]| words.iter().any(Word::is_open);
    match words {
        [] => (Some(Json::Bool(true)), false),
        [one] if is_switch && !one.is_open() => (read(one), false),
        words if is_switch => (Some(Json::Bool(true)), is_open(words)),
        [one] => (read(one), false),
        [first, others @ ..] if is_open(others) => (read(first), true),
        words => (words.iter().map(read).collect::<Option<Vec<_>>>().map(Json::Array), false),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::Location;
    use crate::settings::formats::word::OPEN;

    fn read_words(library: Library, text: &str) -> Layer {
        let word = |text: &str| Word {
            text: text.replace('?', &OPEN.to_string()),
            at: Location { file: "a.sh".into(), line: 1 },
        };
        let words: Vec<Word> = text.split(' ').map(word).collect();
        let mut layer = Layer { library: Some(library), ..Layer::default() };
        read(&mut layer, &words);
        layer
    }

    #[test]
    fn flags_have_one_value_or_several_or_none() {
        let text = "--a-b 8 --c --d=x --e 0.2 0.27 --f -1 --use-kl-loss --lr 1e-6";
        let layer = read_words(Library::Slime, text);
        let fields: Vec<_> =
            layer.fields.iter().map(|one| (&*one.name, one.json.clone().unwrap())).collect();
        let expected = [
            ("a-b", json!(8)),
            ("c", json!(true)),
            ("d", json!("x")),
            ("e", json!([0.2, 0.27])),
            ("f", json!(-1)),
            ("use-kl-loss", json!(true)),
            ("lr", json!(1e-6)),
        ];
        assert_eq!(fields, expected);
        assert_eq!(
            read_words(Library::Trl, "--num-generations 8").fields[0].name,
            "num_generations"
        );
    }

    #[test]
    fn what_cannot_be_read_is_a_value_or_any_number_of_flags() {
        let known = |text: &str| {
            let layer = read_words(Library::Slime, text);
            (layer.fields[0].json.is_some(), layer.gaps.is_empty())
        };
        assert_eq!(known("--lr ?"), (false, true));
        assert_eq!(known("--lr x?"), (false, true));
        assert_eq!(known("--lr 1 ?"), (true, false));
        assert_eq!(known("--use-kl-loss ?"), (true, false));
        assert_eq!(known("--lr=?"), (false, true));
        assert!(!read_words(Library::Slime, "? --lr 1").gaps.is_empty());
    }
}
