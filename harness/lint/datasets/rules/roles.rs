//! A prompt's messages come in an order that chat templates do not know.
//!
//! ### Fires when
//! A role is none of system, developer, user, assistant, tool, function, ipython and observation;
//! the last message is the assistant's; there are two system messages, or one that is not first.
//! It is a note where the last message is one and the same in all rows: then it opens the
//! completion.
//!
//! ### Not said
//! That the template of the model refuses it: some leave such messages out without a word.
//!
//! ### Causes
//! - a whole conversation where only its beginning is the prompt
//! - names of another format: human, gpt, bot
//! - a system message added to prompts that had one
//!
//! ### Next
//! - end every prompt with the message that is to be answered, then shakedown check-data FILE
//! - print one prompt behind the model's chat template and read it
//!
//! ### Source
//! The chat templates of Llama, Qwen and Gemma; `add_generation_prompt` opens a new turn behind
//! the last one.

use crate::datasets::Dataset;
use crate::datasets::hits::Hits;
use crate::report::Severity;
use crate::rules::{Head, Judgement, insufficient};
use shakedown_core::contract::stage::Stage;

pub(super) const HEAD: Head<Dataset> = Head {
    stage: Stage::Decoding,
    needs: &["prompt"],
    explains: &[],
    contracts: &[("turn-mask", &["trained-roles"])],
    catches: &[],
    check,
};

fn check(data: &Dataset) -> Judgement {
    let seen = &data.seen.prompts;
    if seen.messages.is_empty() {
        return Err(insufficient("no prompt is a list of messages"));
    }
    let names: Vec<&str> = seen.unknown_roles.iter().map(String::as_str).collect();
    let unknown = format!("unknown roles: `{}`", names.join("`, `"));
    // One text that opens every completion is meant so.
    let of_last = if seen.are_opened() { Severity::Note } else { Severity::Warning };
    let warning = Severity::Warning;
    let what: [(&Hits, Severity, &str); 4] = [
        (&seen.unknown_role, warning, &unknown),
        (&seen.last_assistant, of_last, "the assistant has the last message"),
        (&seen.systems_twice, warning, "several system messages"),
        (&seen.system_later, warning, "a system message that is not the first"),
    ];
    let hit = what.into_iter().filter(|(hits, ..)| !hits.is_empty());
    let fired = hit.map(|(hits, severity, what)| {
        let found = format!("{}: {what}", data.rows_of(hits));
        data.firing(severity, hits, data.prompt_column(), found)
    });
    Ok(fired.collect())
}
