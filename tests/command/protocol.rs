//! Programs that speak the protocol themselves, and badly: every one is a finding or a clear error,
//! as what a worker for Python does is (`bad_behaviour.rs`).

use crate::bad_behaviour::behaviour::{
    INTERPRETER, PATIENT, PYTHON, assert_error, assert_finds, assert_found, assert_hangs,
    assert_passes, check_one, has_python, make_executable,
};
use crate::folder::Folder;

/// The target of `protocol.py`, behaving in some way.
fn process(behaviour: &str) -> String {
    format!("{{process: [{:?}, \"{PYTHON}/protocol.py\", {behaviour}]}}", *INTERPRETER)
}

#[test]
fn a_process_on_the_protocol_passes() {
    assert_passes(&process("right"));
}

#[test]
fn a_process_beside_the_manifest_is_found_from_anywhere() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let script = format!("#!/bin/sh\nexec {:?} {PYTHON:?}/protocol.py right\n", *INTERPRETER);
    folder.write("below/component", script);
    make_executable(&folder.path("below/component"));
    let manifest = "version: 1\ncomponents:\n- name: here\n  contract: group-advantage\n  \
                    target: {process: [./component]}\n";
    folder.write("below/manifest.yaml", manifest);
    let ran = folder.run(&["check", "below/manifest.yaml", "--cases", "1"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_process_that_breaks_the_stream_is_a_finding() {
    let words =
        "standard output holds something that is not a message: it begins with \"a line f\"";
    assert_finds(&process("prints"), &[("does-not-crash", words)]);
    assert_finds(&process("stops-half-way"), &[("does-not-crash", "exit status 0")]);
    assert_finds(&process("promises-too-much"), &[("does-not-crash", "not a message")]);
    assert_finds(
        &process("promises-terabytes"),
        &[("well-formed", "4398046511104 bytes, `advantages` among them of shape [1099511627776]")],
    );
    assert_finds(
        &process("promises-gigabytes"),
        &[("well-formed", "its reply has 2147483648 bytes, `advantages` among them of shape [536")],
    );
}

#[test]
fn a_reply_to_another_request_is_a_finding() {
    let words = "its reply does not say which request it answers";
    assert_finds(&process("answers-nothing"), &[("well-formed", words)]);
    assert_finds(&process("answers-the-last"), &[("well-formed", "its reply answers request ")]);
}

#[test]
fn an_answer_too_many_is_a_finding_and_no_answer_to_the_next_call() {
    let target = process("answers-twice");
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, PATIENT, &target);
    assert_eq!(ran.code, 1);
    let bad = report.component("bad");
    assert_found(bad, &[("well-formed", "its reply answers request ")]);
}

#[test]
fn a_process_that_ends_is_a_finding() {
    assert_finds(&process("leaves"), &[("does-not-crash", "exit status 3")]);
}

#[test]
fn a_process_that_raises_is_a_finding() {
    assert_finds(&process("raises"), &[("does-not-raise", "raised Exception: three rewards")]);
}

#[test]
fn a_process_that_hangs_is_a_finding() {
    assert_hangs(&process("hangs"));
}

#[test]
fn a_process_that_answers_something_else_is_a_finding() {
    assert_finds(&process("another-kind"), &[("well-formed", "answered `thanks` to a call")]);
    assert_finds(&process("another-name"), &[("well-formed", "`advantages`: missing")]);
}

#[test]
fn a_process_that_does_not_load_is_an_error() {
    let error = |target: &str, words: &[&str]| {
        assert_error(&Folder::new(), PATIENT, target, words);
    };
    error("{process: [no-such-program]}", &["cannot start the program no-such-program: "]);
    error(&process("exits"), &["exit status 1", "there is no model here"]);
    error(&process("greets"), &["is not a message", "it begins with \"Welcome \""]);
    error(&process("refuses"), &["no licence"]);
    error("{process: [cat]}", &["did not answer `load`: its reply does not say which request"]);
    error("{process: [\"true\"]}", &["exit status 0"]);
    let python = format!("{PATIENT}, load_timeout_ms: 300");
    let words = ["did not load it within 300 ms"];
    assert_error(&Folder::new(), &python, &process("silent"), &words);
}
