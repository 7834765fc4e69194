//! No secret leaves: planted in every slot of what is read, looked for in all that is written.

use std::fmt::Write as _;

use proptest::prelude::*;
use shakedown::value::redact::{identity, secrets};

use crate::folder::Folder;

/// Letters by a rule, so that every run plants the same.
fn letters(seed: u64, alphabet: &str, length: usize) -> String {
    let alphabet: Vec<char> = alphabet.chars().collect();
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        alphabet[(state >> 33) as usize % alphabet.len()]
    };
    (0..length).map(|_| next()).collect()
}

const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
const MIXED: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/// Secrets that look like ones: six of each kind.
fn shaped() -> Vec<String> {
    let kinds: [(&str, &str, usize); 11] = [
        ("hf_", MIXED, 34),
        ("sk-", MIXED, 40),
        ("sk-proj-", MIXED, 40),
        ("ghp_", MIXED, 36),
        ("gho_", MIXED, 36),
        ("github_pat_", MIXED, 50),
        ("AKIA", UPPER, 16),
        ("AIza", MIXED, 35),
        ("xoxb-", MIXED, 40),
        ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIi", MIXED, 30),
        ("", MIXED, 44),
    ];
    let mut all = Vec::new();
    for (index, (before, alphabet, length)) in kinds.into_iter().enumerate() {
        for turn in 0..6 {
            let body = letters(100 * index as u64 + turn + 1, alphabet, length);
            let body = if before.starts_with("eyJ") { format!("{body}.{body}") } else { body };
            all.push(format!("{before}{body}"));
        }
    }
    all
}

/// Secrets that only their key gives away.
fn keyed() -> Vec<(&'static str, String)> {
    let keys = [
        "api_key",
        "HF_TOKEN",
        "wandb_entity",
        "db_password",
        "aws_secret_access_key",
        "auth",
        "user_email",
        "session_cookie",
        "credentials",
        "authToken",
    ];
    let word = |index: usize| format!("correct{}horse", letters(index as u64 + 900, UPPER, 4));
    keys.iter().enumerate().map(|(index, key)| (*key, word(index))).collect()
}

/// Everything that the command writes for these arguments.
fn written(folder: &Folder, arguments: &[&str]) -> String {
    let forms = ["--json", "r.json", "--junit", "r.xml", "--sarif", "r.sarif", "--html", "r.html"];
    let ran = folder.run(&[arguments, &forms, &["--github", "--verbose"]].concat());
    let mut all = ran.stdout + &ran.stderr;
    for name in ["r.json", "r.xml", "r.sarif", "r.html"] {
        all += &std::fs::read_to_string(folder.path(name)).unwrap_or_default();
        let _ = std::fs::remove_file(folder.path(name));
    }
    assert!([0, 1, 3].contains(&ran.code) && all.len() > 40, "nothing was written: {all}");
    all
}

#[track_caller]
fn assert_kept_back(all: &str, secrets: &[String], slot: &str) {
    for secret in secrets {
        for piece in [secret.as_str(), &secret[secret.len() - 12..]] {
            if let Some(at) = all.find(piece) {
                let around: String = all[at.saturating_sub(80)..].chars().take(200).collect();
                panic!("{slot}: {secret} is written:\n{around}");
            }
        }
    }
}

fn rows(mut more: impl FnMut(usize) -> String) -> String {
    let mut text = String::new();
    for step in 1..=40 {
        writeln!(
            text,
            r#"{{"step": {step}, "reward": {}{}}}"#,
            0.5 - 0.01 * step as f64,
            more(step)
        )
        .unwrap();
    }
    text
}

#[test]
fn no_planted_secret_of_a_log_is_written() {
    let folder = Folder::new();
    let planted = shaped();
    let one = |step: usize| planted[step % planted.len()].clone();
    let slots: [(&str, String); 3] = [
        ("metric names", rows(|step| format!(r#", "my/{}": 1.0"#, one(step)))),
        ("values", rows(|step| format!(r#", "note": "{}""#, one(step)))),
        ("a console", {
            let lines = (1..60).map(|step| {
                let reward = 0.5 - 0.01 * step as f64;
                format!("login with {}\nstep:{step} - critic/score/mean:{reward}\n", one(step))
            });
            lines.collect()
        }),
    ];
    for (slot, text) in slots {
        folder.write("run.log", text);
        assert_kept_back(&written(&folder, &["check-run", "run.log"]), &planted, slot);
    }
    for secret in &planted[..12] {
        let name = format!("{secret}.jsonl").replace('/', "_");
        folder.write(&name, rows(|_| String::new()));
        assert_kept_back(
            &written(&folder, &["check-run", &name]),
            std::slice::from_ref(secret),
            "file name",
        );
    }
}

#[test]
fn no_planted_secret_of_a_configuration_is_written() {
    let folder = Folder::new();
    let (planted, keyed) = (shaped(), keyed());
    let words: Vec<String> = keyed.iter().map(|(_, word)| word.clone()).collect();
    let mut yaml = String::from("learning_rate: 1.0\nnum_generations: 1\n");
    let mut script = String::from("#!/bin/bash\n");
    for (key, word) in &keyed {
        writeln!(yaml, "{key}: {word}").unwrap();
        writeln!(script, "export {key}={word}").unwrap();
    }
    for (index, secret) in planted.iter().enumerate() {
        writeln!(yaml, "field_{index}: {secret}").unwrap();
        writeln!(script, "V{index}={secret}").unwrap();
    }
    script += "python -m verl.trainer.main_ppo algorithm.adv_estimator=grpo ";
    for (index, secret) in planted.iter().enumerate().take(20) {
        write!(script, "+x.y{index}=${{V{index}}} trainer.z{index}={secret} ").unwrap();
    }
    let all: Vec<String> = planted.iter().chain(&words).cloned().collect();
    folder.write("train.yaml", yaml);
    assert_kept_back(&written(&folder, &["check-config", "train.yaml"]), &all, "YAML");
    folder.write("run.sh", script + "\n");
    assert_kept_back(&written(&folder, &["check-config", "run.sh"]), &all, "a script");
}

#[test]
fn no_planted_secret_of_a_data_set_is_written() {
    let folder = Folder::new();
    let planted = shaped();
    let mut text = String::new();
    for (index, secret) in planted.iter().enumerate() {
        let twice = index / 2;
        writeln!(text, r#"{{"prompt": "{secret} {twice}", "answer": "{}"}}"#, planted[twice])
            .unwrap();
        writeln!(text, r#"{{"prompt": "{secret} {twice}", "answer": "7", "{secret}": 1}}"#)
            .unwrap();
    }
    folder.write("train.jsonl", text);
    let arguments = ["check-data", "train.jsonl", "--show-text"];
    assert_kept_back(&written(&folder, &arguments), &planted, "cells");
}

#[test]
fn no_planted_secret_of_a_component_is_written() {
    let folder = Folder::new();
    let planted = shaped();
    for (index, secret) in planted.iter().enumerate().step_by(7) {
        let code = format!(
            "def rewards(prompts, completions, answers):\n    \
             raise ValueError('no access: {secret}')\n"
        );
        folder.write("broken.py", code);
        folder.write(
            "shakedown.yaml",
            "version: 1\npython: {path: [.], arrays: list}\ncomponents:\n\
             - {name: broken, contract: reward-function, target: 'python:broken:rewards'}\n",
        );
        let all = written(&folder, &["check", "shakedown.yaml", "--cases", "2"]);
        assert!(all.contains("no access"), "{index}: {all}");
        assert_kept_back(&all, std::slice::from_ref(secret), "an exception");
    }
}

#[test]
fn who_and_where_somebody_is_is_written_only_on_request() {
    let folder = Folder::new();
    folder.write("deep/er/run.jsonl", rows(|_| String::new()));
    let path = folder.path("deep/er/run.jsonl");
    let path = path.to_str().expect("UTF-8");
    let above = folder.path("deep");
    let above = above.to_str().expect("UTF-8");
    let all = written(&folder, &["check-run", path]);
    assert!(!all.contains(above) && all.contains("er/run.jsonl"), "{all}");
    assert!(written(&folder, &["check-run", path, "--paths"]).contains(above));
}

proptest! {
    #[test]
    fn cleaning_twice_changes_nothing_more(
        text in "[ -~]{0,80}|(key|token|user)[=: ]{1,2}[!-~]{1,40}",
    ) {
        let once = secrets(&text).into_owned();
        prop_assert_eq!(secrets(&once), once.as_str());
        let once = identity(&text).into_owned();
        prop_assert_eq!(identity(&once), once.as_str());
    }

    #[test]
    fn numbers_stay(x: f64, n: i64, key in "[a-z_]{1,12}") {
        for text in [format!("{x}"), format!("{n}"), format!("{key}: {x:e}, {key}={n}")] {
            prop_assert_eq!(secrets(&text), text.as_str());
        }
    }
}
