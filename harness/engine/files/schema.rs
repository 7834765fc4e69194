//! The JSON schema of manifests, with which editors complete and check `shakedown.yaml`.

use serde_json::{Map, Value as Json, json};

use crate::files::manifest::{REWARD_FUNCTION, REWARD_INPUTS};
use crate::host::process::Batch;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::contract::registry::Registry;
use shakedown_core::contract::schema::OptionValue;
use shakedown_core::value::place::Dtype;

/// Where the schema of this version is kept.
pub fn address() -> String {
    let repository = env!("CARGO_PKG_REPOSITORY").trim_start_matches("https://github.com/");
    let version = env!("CARGO_PKG_VERSION");
    let file = "snapshots/shakedown.schema.json";
    format!("https://raw.githubusercontent.com/{repository}/v{version}/{file}")
}

/// The schema, draft 7: every key that a manifest may have, and every name that may stand there.
/// What options say of each other is left to the parser.
pub fn manifest(contracts: &Registry) -> Json {
    let of_each = |say: fn(&dyn AnyContract) -> Json| -> Map<String, Json> {
        contracts.all().map(|contract| (contract.id().to_owned(), say(contract))).collect()
    };
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "$id": address(),
        "title": "shakedown.yaml",
        "description": "The components of a training repository and what is declared about them.",
        "type": "object",
        "additionalProperties": false,
        "required": ["version", "components"],
        "properties": {
            "version": {"const": 1},
            "python": {"$ref": "#/definitions/python"},
            "corpora": {
                "type": ["string", "null"],
                "description": "The folder of regressions and findings, relative to this file.",
                "default": "corpora",
            },
            "components": {
                "type": "array",
                "minItems": 1,
                "items": {"$ref": "#/definitions/component"},
            },
        },
        "definitions": {
            "python": python(),
            "component": component(contracts),
            "options": of_each(options),
            "invariants": of_each(reasons),
            "args": of_each(args),
        },
    })
}

/// How Python functions are run.
fn python() -> Json {
    let whole = |meaning: &str| -> Json {
        json!({"type": ["integer", "null"], "minimum": 1, "description": meaning})
    };
    json!({
        "description": "How Python functions are run.",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "interpreter": {
                "type": ["string", "null"],
                "description": "The interpreter; that of the active environment, else python3.",
            },
            "path": {
                "type": ["array", "null"],
                "items": {"type": "string"},
                "default": ["."],
                "description": "Put in front of sys.path, relative to this file.",
            },
            "arrays": {
                "enum": ["torch", "numpy", "list"],
                "default": "torch",
                "description": "What functions on numbers take.",
            },
            "timeout_ms": whole("How long a call may take."),
            "load_timeout_ms": whole("How long an import may take."),
            "memory_mb": whole("How much more memory calls may take than the import took (Linux)."),
            "compile": {
                "type": "boolean",
                "default": false,
                "description": "Whether `torch.compile` compiles; else it leaves functions as \
                                they are written.",
            },
            "fork": {
                "type": ["boolean", "null"],
                "description": "Whether torch or numpy is imported once, a module for all of its \
                                components but the first, and a process forked for each.",
            },
            "setup": setup("for all Python functions"),
            "env": env("of all Python functions"),
            "stub": stub(),
        },
    })
}

fn setup(whose: &str) -> Json {
    let what =
        "`python:FILE.py:FUNCTION` or `python:MODULE:FUNCTION`: called once in each process,";
    json!({
        "type": ["string", "null"],
        "pattern": "^python:.*:",
        "description": format!(
            "{what} {whose}. It returns a dict of objects, which functions and constructors get by \
             name."
        ),
    })
}

fn env(whose: &str) -> Json {
    json!({
        "type": ["object", "null"],
        "propertyNames": {"pattern": "^[^=]+$"},
        "additionalProperties": {"type": ["string", "number", "boolean"]},
        "description": format!("Variables of the environment {whose}, set before any import."),
    })
}

fn stub() -> Json {
    let word = r"[\p{L}_][\p{L}\p{N}_]*";
    json!({
        "type": ["array", "null"],
        "items": {"type": "string", "pattern": format!(r"^{word}(\.{word})*$")},
        "description": "Modules that are stood in for where they are not there: whatever is \
                        imported from them can be named, and raises when it is called.",
    })
}

/// A component of any contract, then what its contract says of it.
fn component(contracts: &Registry) -> Json {
    let signature = json!({
        "if": {
            "required": ["signature"],
            "properties": {"signature": {"not": {"const": "by-name"}}},
        },
        "then": {"properties": {
            "contract": {"const": REWARD_FUNCTION},
            "target": {"type": "string", "pattern": "^python:"},
        }},
    });
    let columns = |key: &str, given: Json| {
        json!({
            "if": {"required": [key], "properties": {key: given}},
            "then": {
                "required": ["signature"],
                "properties": {"signature": {"enum": ["trl", "trl-chat"]}},
            },
        })
    };
    let python = |key: &str, given: Json| {
        json!({
            "if": {"required": [key], "properties": {key: given}},
            "then": {"properties": {"target": {"type": "string", "pattern": "^python:"}}},
        })
    };
    let of_process = json!({
        "if": {"required": ["env"], "properties": {"env": {"type": "object"}}},
        "then": {"properties": {"target": {"not": {"type": "string", "pattern": "^builtin:"}}}},
    });
    let of_targets = [
        signature,
        columns("answer_columns", json!({"type": "array", "minItems": 1})),
        columns("columns", json!({"type": "object"})),
        python("args", json!({"type": "object", "minProperties": 1})),
        python("init", json!({"type": "object"})),
        python("setup", json!({"type": "string"})),
        python("stub", json!({"type": "array"})),
        of_process,
    ];
    let by_contract = contracts.all().map(by_contract);
    let all_of: Vec<Json> = by_contract.chain(of_targets).collect();
    let dtypes = Dtype::ALL.map(|(_, name)| name);
    let places = dtypes.map(|dtype| format!("cpu/{dtype}"));
    let any_place = format!("^(cpu|cuda(:[0-9]+)?)/({})$", dtypes.join("|"));
    let word = |word: &str, meaning: &str| json!({"const": word, "description": meaning});
    let reason = |what: &str| format!("Invariants that {what}, each with the reason.");
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["name", "contract", "target"],
        "properties": {
            "name": {"type": "string", "pattern": "\\S", "description": "Its name in reports."},
            "contract": {
                "description": "What kind of component it is.",
                "oneOf": contracts.all()
                    .map(|contract| word(contract.id(), &contract.doc().summary()))
                    .collect::<Json>(),
            },
            "target": {
                "description": "Where it is: `python:FILE.py:FUNCTION`, `python:MODULE:FUNCTION`, \
                                `builtin:CONTRACT/reference`, `builtin:CONTRACT/fault/ID` or \
                                `{process: [command, argument, …]}`.",
                "anyOf": [
                    {"type": "string", "pattern": "^(python:.*:|builtin:)"},
                    {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["process"],
                        "properties": {"process": {
                            "type": "array", "minItems": 1, "items": {"type": "string"},
                        }},
                    },
                ],
            },
            "signature": {
                "description": "The names by which a Python function takes its inputs.",
                "default": "by-name",
                "oneOf": [
                    word("by-name", "The names of the contract."),
                    word("trl", "TRL's, of texts: f(prompts, completions, **columns)."),
                    word("trl-chat", "TRL's, of lists of messages."),
                    word("verl", "verl's compute_score(data_source, solution_str, ground_truth, \
                                  extra_info), row by row."),
                ],
            },
            "answer_columns": {
                "type": ["array", "null"],
                "items": {"type": "string"},
                "description": "The columns that get the gold answers besides those that are \
                                called like answers, with `signature: trl` and `trl-chat`.",
            },
            "columns": {
                "type": ["object", "null"],
                "description": "Other columns of a reward function, with `signature: trl` and \
                                `trl-chat`: an input for every row, or what every row has.",
                "additionalProperties": {"anyOf": [
                    {"enum": REWARD_INPUTS},
                    {"type": ["number", "boolean", "null", "array"]},
                    {
                        "type": "object",
                        "additionalProperties": false,
                        "required": ["value"],
                        "properties": {"value": {"description": "What every row has."}},
                    },
                ]},
            },
            "args": {
                "description": "Inputs and options, each with the name by which the Python \
                                function takes it.",
            },
            "batch": {
                "description": "How a Python function takes the groups of a batch, where not as \
                                rows that each have the number of their group.",
                "anyOf": Option::<Batch>::schema()["anyOf"],
            },
            "init": {
                "type": ["object", "null"],
                "description": "What the constructor of its class takes, where the target is a \
                                class or a method of one.",
            },
            "setup": setup("before the component is loaded"),
            "env": env("of its process"),
            "stub": stub(),
            "options": {"description": "The conventions that it follows."},
            "places": {
                "type": ["array", "null"],
                "minItems": 1,
                "description": "Where to check it: cpu/f32, cuda/bf16, cuda:1/f64.",
                "default": ["cpu/f32"],
                "items": {"anyOf": [{"enum": places}, {"type": "string", "pattern": any_place}]},
            },
            "tolerance": {
                "type": "number",
                "exclusiveMinimum": 0,
                "default": 1,
                "description": "The factor on its tolerances.",
            },
            "skip": {"description": reason("are left out")},
            "known": {"description": reason("are expected to fail")},
        },
        "allOf": all_of,
    })
}

/// What a contract says of its components.
fn by_contract(contract: &dyn AnyContract) -> Json {
    let id = contract.id();
    let faults = contract.faults().iter().map(|fault| format!("builtin:{id}/fault/{}", fault.id));
    let reference = [format!("builtin:{id}/reference")];
    let builtin: Vec<String> = reference.into_iter().chain(faults).collect();
    let then = json!({
        "args": {"$ref": format!("#/definitions/args/{id}")},
        "options": {"$ref": format!("#/definitions/options/{id}")},
        "target": {
            "anyOf": [{"enum": builtin}, {"not": {"type": "string", "pattern": "^builtin:"}}],
        },
        "skip": {"$ref": format!("#/definitions/invariants/{id}")},
        "known": {"$ref": format!("#/definitions/invariants/{id}")},
    });
    json!({
        "if": {"required": ["contract"], "properties": {"contract": {"const": id}}},
        "then": {"properties": then},
    })
}

/// The options of a contract.
fn options(contract: &dyn AnyContract) -> Json {
    let defaults = contract.default_options().json();
    let mut properties = Map::new();
    for mut option in contract.option_docs() {
        option.schema["description"] = option.meaning.into();
        option.schema["default"] = defaults[option.name].clone();
        properties.insert(option.name.to_owned(), option.schema);
    }
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties})
}

/// Inputs and options of a contract, each with a name of the function's own.
fn args(contract: &dyn AnyContract) -> Json {
    let inputs = contract.inputs().into_iter().map(|field| (field.name, field.meaning.to_owned()));
    let options = contract.option_docs().into_iter().map(|option| (option.name, option.meaning));
    let named = |(name, meaning): (&str, String)| {
        (name.to_owned(), json!({"type": "string", "description": meaning}))
    };
    let properties: Map<String, Json> = inputs.chain(options).map(named).collect();
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties})
}

/// Invariants of a contract, each with a reason.
fn reasons(contract: &dyn AnyContract) -> Json {
    let reason = json!({"type": "string", "pattern": "\\S"});
    let mut properties = Map::new();
    for invariant in contract.invariants() {
        let mut reason = reason.clone();
        reason["description"] = invariant.doc.claim().into();
        properties.insert(invariant.id.to_owned(), reason);
    }
    json!({"type": ["object", "null"], "additionalProperties": false, "properties": properties})
}
