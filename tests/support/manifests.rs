//! Manifests that are wrong, and what is wrong with each.

/// A file that is wrong: what is wrong with it, and its text.
pub(crate) struct Malformed {
    pub(crate) what: &'static str,
    pub(crate) bytes: Vec<u8>,
}

/// A text that is wrong as a whole.
pub(crate) fn text(what: &'static str, text: impl Into<Vec<u8>>) -> Malformed {
    Malformed { what, bytes: text.into() }
}

/// A good text with one thing changed.
pub(crate) fn changed(good: &str, what: &'static str, from: &str, to: &str) -> Malformed {
    assert!(good.contains(from), "{from} is not in the good text");
    Malformed { what, bytes: good.replacen(from, to, 1).into() }
}

/// A good manifest.
pub(crate) const MANIFEST: &str = r#"version: 1
python:
  arrays: list
  timeout_ms: 1000
components:
  - name: grpo
    contract: group-advantage
    target: builtin:group-advantage/reference
    options: {epsilon: 1.0e-4, baseline: mean, reward_range: [0, 1]}
    places: [cpu/f64, cpu/f32]
    tolerance: 2
    skip: {zero-sum: "not in this trainer"}
  - name: rloo
    contract: group-advantage
    target: builtin:group-advantage/reference
"#;

/// Manifests that are good YAML, each with one wrong name or value.
pub(crate) fn wrong_words() -> Vec<Malformed> {
    let change = |what, from, to| changed(MANIFEST, what, from, to);
    let wired = |what, key: &str| {
        let tolerance = "    tolerance: 2";
        changed(MANIFEST, what, tolerance, &format!("{tolerance}\n    {key}"))
    };
    let python = |what, key: &str| {
        changed(MANIFEST, what, "  arrays: list", &format!("  arrays: list\n  {key}"))
    };
    let reward = |what, key: &str| {
        let target = "python:a.py:f";
        let component = format!("name: a, contract: reward-function, target: '{target}'");
        let component = format!("- {{{component}, signature: trl, {key}}}");
        text(what, format!("version: 1\ncomponents:\n{component}\n"))
    };
    vec![
        // Keys.
        change("unknown key at the top", "components:", "componets:"),
        change("unknown key of python", "arrays: list", "array: list"),
        change("unknown key of a component", "tolerance: 2", "tolerances: 2"),
        change("unknown key, near nothing", "tolerance: 2", "zzz: 2"),
        change(
            "signature of another contract",
            "    tolerance: 2",
            "    tolerance: 2\n    signature: trl",
        ),
        change("unknown signature", "    tolerance: 2", "    tolerance: 2\n    signature: tlr"),
        change(
            "columns without a signature that has them",
            "    tolerance: 2",
            "    tolerance: 2\n    answer_columns: [gold]",
        ),
        wired("columns without such a signature", "columns: {gold: answers}"),
        wired("init of what is built in", "init: {a: 1}"),
        wired("setup of what is built in", "setup: 'python:a.py:f'"),
        wired("setup that is no function", "setup: tokenizers.py"),
        wired("environment of what is built in", "env: {A: 1}"),
        wired("stub of what is built in", "stub: [a]"),
        python("setup without a file", "setup: 'python:f'"),
        python("list in the environment", "env: {A: [1]}"),
        python("variable without a name", "env: {'': 1}"),
        python("variable whose name has a sign", "env: {'A=B': 1}"),
        python("stub of no module", "stub: [a-b]"),
        python("stub of half a module", "stub: [a.]"),
        python("text for stubs", "stub: a"),
        reward("column of no input", "columns: {gold: answer}"),
        reward("column without a value", "columns: {gold: {}}"),
        reward("column with another key", "columns: {gold: {values: a}}"),
        change("missing version", "version: 1\n", ""),
        text("missing components", "version: 1\n"),
        change("missing target", "    target: builtin:group-advantage/reference\n", ""),
        change("key given twice", "tolerance: 2", "tolerance: 2\n    tolerance: 3"),
        change("option given twice", "baseline: mean", "epsilon: 2"),
        change("component name given twice", "name: rloo", "name: grpo"),
        // Names.
        change("unknown contract", "contract: group-advantage", "contract: group_advantages"),
        change("unknown option", "epsilon:", "epsilom:"),
        change("unknown value of an option", "baseline: mean", "baseline: leave_one_out"),
        change("unknown invariant in skip", "zero-sum:", "zero_sun:"),
        change("unknown invariant in known", "skip: {zero-sum:", "known: {is-finite:"),
        change("unknown array library", "arrays: list", "arrays: numpie"),
        change("unknown device", "cpu/f64", "gpu/f64"),
        change("unknown dtype", "cpu/f64", "cpu/fp64"),
        change("unknown kind of target", "builtin:group", "builtins:group"),
        change("unknown builtin", "/reference", "/refrence"),
        change("unknown fault", "/reference", "/fault/baseline-mising"),
        change("builtin of another contract", "builtin:group-advantage", "builtin:token-log-probs"),
        change("target without a function", "builtin:group-advantage/reference", "python:grpo.py"),
        // Values.
        change("unknown version", "version: 1", "version: 2"),
        change("epsilon below 0", "1.0e-4", "-1.0e-4"),
        change("epsilon not a number", "1.0e-4", ".nan"),
        change("reward range upside down", "[0, 1]", "[1, 0]"),
        change("reward range of one number", "[0, 1]", "[0]"),
        change("ddof of no known convention", "baseline: mean", "ddof: 2"),
        change("tolerance of 0", "tolerance: 2", "tolerance: 0"),
        change("time limit of 0", "timeout_ms: 1000", "timeout_ms: 0"),
        change("memory limit of 0", "timeout_ms: 1000", "memory_mb: 0"),
        change("word for a switch", "timeout_ms: 1000", "fork: never"),
        change("time limit below 0", "timeout_ms: 1000", "timeout_ms: -1"),
        change("reason without words", "\"not in this trainer\"", "\" \""),
        change("name without letters", "name: rloo", "name: ''"),
        change("no places", "[cpu/f64, cpu/f32]", "[]"),
        text("no components", "version: 1\ncomponents: []\n"),
        // Types.
        change("text for a number", "1.0e-4", "small"),
        change("number for a target", "builtin:group-advantage/reference", "3"),
        change("text for a list", "[cpu/f64, cpu/f32]", "cpu/f32"),
        change("list for a mapping", "{zero-sum: \"not in this trainer\"}", "[zero-sum]"),
        change("empty command", "builtin:group-advantage/reference", "{process: []}"),
        change("very long text for a number", "1.0e-4", &"1 or 2 or ".repeat(100_000)),
        text("mapping for a list", "version: 1\ncomponents:\n  grpo: {}\n"),
    ]
}
