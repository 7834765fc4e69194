//! Data sets: every rule fires on what it speaks about and not on what lies beside it; sound data
//! sets have no finding.

use std::fs;
use std::path::PathBuf;

use proptest::prelude::*;
use serde_json::{Value as Json, json};
use shakedown_lint::datasets::{self, Dataset, Reading, Scored};
use shakedown_lint::report::{Finding, RuleStatus, Severity, Subject, Verdict};
use shakedown_lint::rules::Asked;
use shakedown_lint::settings::{Library, Origin, Settings, Value};

struct File {
    folder: tempfile::TempDir,
}

impl File {
    fn new(name: &str, text: impl AsRef<[u8]>) -> (File, PathBuf) {
        let file = File { folder: tempfile::tempdir().expect("a temporary folder") };
        let path = file.folder.path().join(name);
        fs::write(&path, text).expect("a file can be written");
        (file, path)
    }
}

fn lines(rows: &[Json]) -> String {
    rows.iter().map(|row| format!("{row}\n")).collect()
}

fn read_text(text: &str, reading: &Reading<'_>) -> Dataset {
    let (_file, path) = File::new("data.jsonl", text);
    datasets::read(&[path], reading).expect("the data set can be read")
}

fn judge_text(text: &str, reading: &Reading<'_>) -> Subject {
    read_text(text, reading).judge(&Asked::default())
}

fn judge(rows: &[Json]) -> Subject {
    judge_text(&lines(rows), &Reading::default())
}

fn loud(subject: &Subject) -> Vec<(&str, Severity)> {
    let above = subject.findings.iter().filter(|one| one.severity > Severity::Note);
    above.map(|one| (one.rule.as_str(), one.severity)).collect()
}

#[track_caller]
fn finding<'a>(subject: &'a Subject, rule: &str) -> &'a Finding {
    let found = subject.findings.iter().find(|one| one.rule == rule);
    found.unwrap_or_else(|| panic!("`{rule}` is quiet: {:?}", loud(subject)))
}

fn status(subject: &Subject, rule: &str) -> RuleStatus {
    subject.rules.iter().find(|one| one.id == rule).expect("the rule exists").status
}

/// The rule fires on the one, alone and this badly, and the other is without finding.
#[track_caller]
fn tells(rule: &str, severity: Severity, bad: &[Json], good: &[Json]) {
    let (bad, good) = (judge(bad), judge(good));
    assert_eq!(loud(&bad), [(rule, severity)], "{:#?}", bad.findings);
    assert_eq!(loud(&good), [], "{:#?}", good.findings);
    assert_eq!(status(&good, rule), RuleStatus::Quiet);
}

/// Rows with prompts and answers that are all different.
fn sums(count: u64) -> Vec<Json> {
    (0..count)
        .map(|n| json!({"prompt": format!("What is {n} + {n}?"), "answer": (2 * n).to_string()}))
        .collect()
}

/// The same, with something else in these rows.
fn but(rows: &[usize], change: impl Fn(&mut Json)) -> Vec<Json> {
    let mut all = sums(40);
    rows.iter().for_each(|row| change(&mut all[*row]));
    all
}

fn messages(rows: &[Json]) -> Vec<Json> {
    let mut rows = rows.to_vec();
    for row in &mut rows {
        row["prompt"] = json!([{"role": "user", "content": row["prompt"].take()}]);
    }
    rows
}

fn with_system(rows: &[Json], system: impl Fn(usize) -> Option<&'static str>) -> Vec<Json> {
    let mut rows = messages(rows);
    for (n, row) in rows.iter_mut().enumerate() {
        if let Some(content) = system(n) {
            let all = row["prompt"].as_array_mut().expect("messages");
            all.insert(0, json!({"role": "system", "content": content}));
        }
    }
    rows
}

fn settings(library: Library, values: &[(&str, Json)], fields: &[(&str, Json)]) -> Settings {
    let value = |json: &Json| Value { json: json.clone(), origin: Origin::Flag };
    let named = |all: &[(&str, Json)]| {
        all.iter().map(|(name, json)| ((*name).to_owned(), value(json))).collect()
    };
    Settings {
        library: Some(library),
        values: named(values),
        fields: named(fields),
        is_complete: true,
        ..Settings::default()
    }
}

#[test]
fn malformed_rows_are_found_and_the_others_read() {
    let text = lines(&sums(30));
    let broken = text.replacen("{\"prompt\":\"What is 6 + 6?\"", "{\"prompt\":\"What is 6 + 6?", 1);
    let subject = judge_text(&broken, &Reading::default());
    assert_eq!(loud(&subject), [("malformed-row", Severity::Error)]);
    let found = finding(&subject, "malformed-row");
    assert_eq!(found.location.as_ref().map(|location| location.line), Some(7));
    assert!(found.found.starts_with("cannot read 1 row (line 7)"), "{}", found.found);
    let listed = text.replacen("{\"prompt\":\"What is 6 + 6?\",\"answer\":\"12\"}", "[1, 2]", 1);
    let found = judge_text(&listed, &Reading::default());
    assert!(finding(&found, "malformed-row").found.contains("no object"));
    let typed = but(&[20, 21], |row| row["answer"] = json!(7));
    tells("malformed-row", Severity::Error, &typed, &sums(40));
    // Whole and broken numbers are of one type, and null is of any.
    let mut numbers = sums(40);
    for (n, row) in numbers.iter_mut().enumerate() {
        row["answer"] = if n % 2 == 0 { json!(n) } else { json!(n as f64 / 4.0) };
    }
    assert_eq!(loud(&judge(&numbers)), []);
}

#[test]
fn python_numbers_that_are_not_finite_are_read() {
    let text = lines(&sums(30)).replace("}\n", ", \"score\": NaN}\n");
    assert_eq!(loud(&judge_text(&text, &Reading::default())), []);
}

#[test]
fn missing_prompts_are_found() {
    let bad = but(&[3], |row| row["prompt"] = Json::Null);
    tells("no-prompt", Severity::Error, &bad, &sums(40));
    let texts: Vec<Json> = (0..30).map(|n| json!({"text": format!("a text {n}")})).collect();
    assert_eq!(loud(&judge(&texts)), [("no-prompt", Severity::Error)]);
    let renamed = lines(&sums(30)).replace("\"prompt\"", "\"question\"");
    let subject = judge_text(&renamed, &Reading::default());
    assert_eq!(finding(&subject, "no-prompt").severity, Severity::Note);
    let verl = settings(Library::Verl, &[], &[]);
    let subject = judge_text(&renamed, &Reading { settings: Some(&verl), ..Reading::default() });
    assert_eq!(finding(&subject, "no-prompt").severity, Severity::Error);
    // Without a key slime reads `input`.
    let slime = settings(Library::Slime, &[], &[]);
    let subject = judge_text(&renamed, &Reading { settings: Some(&slime), ..Reading::default() });
    assert!(finding(&subject, "no-prompt").found.starts_with("no `input` in 30 rows"));
    let slime = settings(Library::Slime, &[], &[("--input-key", json!("question"))]);
    let subject = judge_text(&renamed, &Reading { settings: Some(&slime), ..Reading::default() });
    assert_eq!(status(&subject, "no-prompt"), RuleStatus::Quiet);
}

#[test]
fn mixed_prompts_and_bad_messages_are_found() {
    let bad = but(&[5, 9], |row| row["prompt"] = json!([{"role": "user", "content": "Hm?"}]));
    let bad = judge(&bad);
    assert!(
        finding(&bad, "prompt-shape").found.starts_with("the prompt of 2 rows (lines 6 and 10)")
    );
    let mut bad = messages(&sums(40));
    bad[2]["prompt"] = json!([{"from": "human", "value": "2 + 2?"}]);
    bad[3]["prompt"] = json!([{"role": "user"}]);
    let found = judge(&bad);
    assert!(finding(&found, "prompt-shape").found.contains("`from` and `value`"));
    let mut good = messages(&sums(40));
    good[2]["prompt"] = json!([
        {"role": "user", "content": "2 + 2?"},
        {"role": "assistant", "content": null, "tool_calls": [{"name": "sum"}]},
        {"role": "tool", "content": "it is four"},
    ]);
    assert_eq!(loud(&judge(&good)), []);
}

#[test]
fn roles_out_of_order_are_found() {
    let good = messages(&sums(40));
    let mut human = good.clone();
    human[4]["prompt"][0]["role"] = json!("human");
    tells("roles", Severity::Warning, &human, &good);
    let mut last = good.clone();
    last[4]["prompt"] = json!([
        {"role": "user", "content": "4 + 4?"}, {"role": "assistant", "content": "Let me see."},
    ]);
    tells("roles", Severity::Warning, &last, &good);
    let mut twice = with_system(&sums(40), |_| Some("Be brief."));
    let again = json!({"role": "system", "content": "Be long."});
    twice[4]["prompt"].as_array_mut().expect("messages").push(again);
    tells("roles", Severity::Warning, &twice, &with_system(&sums(40), |_| Some("Be brief.")));
    // One opening for every completion is meant so.
    let mut opened = good;
    for row in &mut opened {
        let opening = json!({"role": "assistant", "content": "<think>"});
        row["prompt"].as_array_mut().expect("messages").push(opening);
    }
    assert_eq!(loud(&judge(&opened)), []);
}

#[test]
fn blank_prompts_are_found() {
    let bad = but(&[7], |row| row["prompt"] = json!(" \n"));
    tells("empty-prompt", Severity::Error, &bad, &sums(40));
    let mut image = messages(&sums(40));
    image[7]["prompt"][0]["content"] = json!([{"type": "image", "image": "a.png"}]);
    let mut blank = image.clone();
    blank[7]["prompt"][0]["content"] = json!([{"type": "text", "text": " "}]);
    tells("empty-prompt", Severity::Error, &blank, &image);
}

#[test]
fn a_system_prompt_in_some_rows_only_is_found() {
    let some = with_system(&sums(40), |n| (n > 3).then_some("Reason, then answer."));
    let all = with_system(&sums(40), |_| Some("Reason, then answer."));
    tells("system-prompt", Severity::Warning, &some, &all);
    assert_eq!(loud(&judge(&messages(&sums(40)))), []);
    // Parts of a data set may differ.
    let mut parts = some;
    for (n, row) in parts.iter_mut().enumerate() {
        row["data_source"] = json!(if n > 3 { "math" } else { "chat" });
    }
    assert_eq!(loud(&judge(&parts)), []);
    let names: Vec<String> = (0..40).map(|n| format!("Tools: tool_{n}")).collect();
    let mut own = messages(&sums(40));
    for (row, name) in own.iter_mut().zip(names) {
        let system = json!({"role": "system", "content": name});
        row["prompt"].as_array_mut().expect("messages").insert(0, system);
    }
    assert_eq!(loud(&judge(&own)), []);
}

#[test]
fn missing_answers_are_found() {
    let bad = but(&[7, 8], |row| row["answer"] = json!(" "));
    tells("answer-missing", Severity::Error, &bad, &sums(40));
    let null = but(&[0, 7], |row| row["answer"] = Json::Null);
    assert!(finding(&judge(&null), "answer-missing").found.ends_with("2 rows (lines 1 and 8)"));
    let tests = but(&[0, 7], |row| {
        row["answer"] = Json::Null;
        row["test_cases"] = json!(["assert f(1) == 2"]);
    });
    assert_eq!(loud(&judge(&tests)), []);
}

#[test]
fn placeholders_are_found() {
    let bad = but(&[7], |row| row["answer"] = json!("None"));
    tells("placeholder-answer", Severity::Error, &bad, &sums(40));
    let mut words = sums(40);
    for (n, row) in words.iter_mut().enumerate() {
        row["answer"] = json!(if n == 5 { "none".to_owned() } else { format!("word {n}") });
    }
    assert_eq!(loud(&judge(&words)), []);
    words[5]["answer"] = json!("nan");
    assert_eq!(loud(&judge(&words)), [("placeholder-answer", Severity::Error)]);
}

#[test]
fn answers_that_were_not_extracted_are_found() {
    let some = but(&[3, 13, 23], |row| row["answer"] = json!("It is twice that. #### 8"));
    let few = but(&[3, 13], |row| row["answer"] = json!("It is twice that. #### 8"));
    tells("answer-unextracted", Severity::Warning, &some, &few);
}

#[test]
fn answers_in_prompts_are_found() {
    let told = but(&[13, 23], |row| {
        let answer = row["answer"].as_str().expect("a text").to_owned();
        row["prompt"] =
            json!(format!("{} The answer is {answer}.", row["prompt"].as_str().expect("a text")));
    });
    let asked = but(&[13, 23], |row| {
        let answer = row["answer"].as_str().expect("a text").to_owned();
        row["prompt"] =
            json!(format!("If the answer is {answer}, what is the question to {answer}9?"));
    });
    tells("answer-in-prompt", Severity::Error, &told, &asked);
    let mut spoken = messages(&sums(40));
    spoken[4]["prompt"] = json!([
        {"role": "user", "content": "4 + 4?"}, {"role": "assistant", "content": "It is 8."},
    ]);
    let subject = judge(&spoken);
    assert_eq!(finding(&subject, "answer-in-prompt").severity, Severity::Error);
    assert_eq!(finding(&subject, "roles").explained_by.as_deref(), Some("answer-in-prompt"));
    let way = "First take the one number, then add the other.\n#### 8";
    let solved = but(&[4], |row| {
        row["answer"] = json!(way);
        row["prompt"] = json!(format!("4 + 4? {way}"));
    });
    assert_eq!(loud(&judge(&solved)), [("answer-in-prompt", Severity::Error)]);
}

#[test]
fn examples_in_prompts_are_no_leaks() {
    let mut rows = sums(200);
    for row in &mut rows {
        let question = row["prompt"].as_str().expect("a text");
        row["prompt"] = json!(format!("Q: What is 3 + 3? A: The answer is 6.\nQ: {question} A:"));
    }
    assert_eq!(loud(&judge(&rows)), []);
}

#[test]
fn one_answer_for_most_rows_is_found() {
    let half: Vec<usize> = (0..22).collect();
    let bad = but(&half, |row| row["answer"] = json!("7"));
    let fewer = but(&half[..15], |row| row["answer"] = json!("7"));
    tells("one-answer", Severity::Error, &bad, &fewer);
    // Of two classes one has at least half of the rows.
    let mut classes = sums(40);
    for (n, row) in classes.iter_mut().enumerate() {
        row["answer"] = json!(if n % 3 == 0 { "no" } else { "yes" });
    }
    assert_eq!(loud(&judge(&classes)), []);
    classes.iter_mut().for_each(|row| row["answer"] = json!("yes"));
    assert_eq!(loud(&judge(&classes)), [("one-answer", Severity::Error)]);
}

#[test]
fn repeated_prompts_are_found() {
    let mut bad = sums(150);
    bad[70] = json!({"prompt": "what is  10 + 10?", "answer": "20"});
    let few = bad.clone();
    bad[90] = json!({"prompt": "WHAT IS 10 + 10?", "answer": "20.0"});
    tells("duplicates", Severity::Warning, &bad, &few);
    // The same question about another picture is another prompt.
    let pictures: Vec<Json> = (0..60)
        .map(|n| {
            let images = [format!("{n}.png")];
            json!({"prompt": "Find x.", "images": images, "answer": n.to_string()})
        })
        .collect();
    assert_eq!(loud(&judge(&pictures)), []);
}

#[test]
fn contradicting_answers_are_found() {
    let mut bad = sums(300);
    bad[70] = json!({"prompt": "What is 10 + 10?", "answer": "21"});
    let mut good = sums(300);
    good[70] = json!({"prompt": "What is 10 + 10?", "answer": "$20.0$"});
    tells("contradicting-answers", Severity::Error, &bad, &good);
}

#[test]
fn prompts_of_the_evaluation_are_found_in_training() {
    let judged = |eval: &[Json]| {
        let (_file, path) = File::new("eval.jsonl", lines(eval));
        let reading = Reading { eval: Some(&path), ..Reading::default() };
        judge_text(&lines(&sums(300)), &reading)
    };
    let apart: Vec<Json> =
        (400..700).map(|n| json!({"prompt": format!("What is {n} + {n}?")})).collect();
    assert_eq!(loud(&judged(&apart)), []);
    let mut one = apart;
    one[6] = json!({"prompt": "what is 3 + 3?"});
    let subject = judged(&one);
    assert_eq!(loud(&subject), [("train-test-overlap", Severity::Warning)]);
    let location = finding(&subject, "train-test-overlap").location.clone().expect("a line");
    assert!(location.file.ends_with("eval.jsonl") && location.line == 7);
    assert_eq!(loud(&judged(&sums(20))), [("train-test-overlap", Severity::Error)]);
    assert_eq!(status(&judge(&sums(30)), "train-test-overlap"), RuleStatus::Insufficient);
}

#[test]
fn long_prompts_are_found() {
    let long = |words: usize| but(&[4], |row| row["prompt"] = json!("a word ".repeat(words)));
    let limit = settings(Library::Verl, &[("length.prompt", json!(100))], &[]);
    let guessed = Reading { settings: Some(&limit), ..Reading::default() };
    let judged = |words, reading| loud_owned(&judge_text(&lines(&long(words)), reading));
    assert_eq!(judged(200, &guessed), ["prompt-too-long"]);
    // About 114 tokens, if the guess is right.
    assert_eq!(judged(65, &guessed), [""; 0]);
    let words = |text: &str| text.split_whitespace().count();
    let exact = Reading { count_tokens: Some(&words), ..guessed };
    assert_eq!(judged(65, &exact), ["prompt-too-long"]);
    assert_eq!(judged(50, &exact), [""; 0]);
    let filtered = [("data.filter_overlong_prompts", json!(true))];
    let filtered = settings(Library::Verl, &[("length.prompt", json!(100))], &filtered);
    assert_eq!(judged(200, &Reading { settings: Some(&filtered), ..guessed }), [""; 0]);
}

fn loud_owned(subject: &Subject) -> Vec<String> {
    loud(subject).into_iter().map(|(rule, _)| rule.to_owned()).collect()
}

#[test]
fn fewer_prompts_than_a_batch_are_found() {
    let of = |library, batch: u64, algorithm: &str| {
        let values = [("batch.prompts", json!(batch)), ("algorithm", json!(algorithm))];
        let settings = settings(library, &values, &[]);
        let (settings, prompt) = (Some(&settings), Some("prompt"));
        let reading = Reading { settings, prompt, ..Reading::default() };
        loud_owned(&judge_text(&lines(&sums(40)), &reading))
    };
    for library in [Library::Trl, Library::Verl, Library::NemoRl] {
        assert_eq!(of(library, 41, "grpo"), ["too-few-prompts"], "{library:?}");
        assert_eq!(of(library, 40, "grpo"), [""; 0], "{library:?}");
    }
    // A batch is filled with the next epoch.
    assert_eq!(of(Library::Slime, 64, "grpo"), [""; 0]);
    assert_eq!(of(Library::OpenRlhf, 64, "grpo"), [""; 0]);
    // The last batch may be smaller.
    assert_eq!(of(Library::Trl, 64, "dpo"), [""; 0]);
}

#[test]
fn a_side_that_is_nearly_always_longer_is_found() {
    let pairs = |count: usize, is_longer: &dyn Fn(usize) -> bool, words: usize| {
        let side = |long: bool, n: usize| {
            format!("It is {n}{}.", if long { " indeed".repeat(words) } else { String::new() })
        };
        let row = |n: usize| {
            json!({
                "prompt": format!("What is {n}?"),
                "chosen": side(is_longer(n), n), "rejected": side(!is_longer(n), n),
            })
        };
        judge(&(0..count).map(row).collect::<Vec<_>>())
    };
    let biased = pairs(250, &|n| n % 42 != 0, 3);
    assert_eq!(loud(&biased), [("pair-length", Severity::Warning)]);
    let found = &finding(&biased, "pair-length").found;
    assert!(found.contains("97.6 % of 250 pairs"), "{found}");
    assert_eq!(loud(&pairs(250, &|n| n % 42 == 0, 3)), [("pair-length", Severity::Warning)]);
    let often = pairs(250, &|n| n % 6 != 0, 3);
    assert_eq!(finding(&often, "pair-length").severity, Severity::Note);
    let mixed = pairs(250, &|n| n % 3 != 0, 3);
    assert_eq!(status(&mixed, "pair-length"), RuleStatus::Quiet);
    let few = pairs(49, &|_| true, 3);
    assert_eq!(status(&few, "pair-length"), RuleStatus::Insufficient);
}

#[test]
fn another_format_than_the_reward_s_is_found() {
    let asks = "Reason in <think> </think> and answer in <answer> </answer>.";
    let text = lines(&with_system(&sums(40), |_| Some(asks)));
    let judged = |text: &str, tags: &[&str]| {
        let tags = tags.iter().map(|tag| (*tag).to_owned()).collect();
        let mut dataset = read_text(text, &Reading::default());
        dataset.tags = Some(tags);
        dataset.judge(&Asked::default())
    };
    let r1 = ["<think>", "</think>", "<answer>", "</answer>"];
    assert_eq!(loud(&judged(&text, &r1)), []);
    let other = judged(&text, &["<think>", "</think>", "<solution>", "</solution>"]);
    assert_eq!(loud(&other), [("template-mismatch", Severity::Error)]);
    let boxed = text.replace("<answer> </answer>", "\\\\boxed{}");
    assert_eq!(loud(&judged(&boxed, &r1)), [("template-mismatch", Severity::Error)]);
    assert_eq!(loud(&judged(&boxed, &["\\boxed{"])), []);
    let nothing = judged(&lines(&sums(40)), &r1);
    assert_eq!(status(&nothing, "template-mismatch"), RuleStatus::Insufficient);
}

fn verl(source: &str) -> Vec<Json> {
    let mut rows = messages(&sums(40));
    for row in &mut rows {
        let truth = row["answer"].take();
        row["reward_model"] = json!({"style": "rule", "ground_truth": truth});
        row["data_source"] = json!(source);
        row.as_object_mut().expect("an object").remove("answer");
    }
    rows
}

#[test]
fn sources_without_score_are_found() {
    let judged = |source: &str, fields: &[(&str, Json)]| {
        let settings = settings(Library::Verl, &[], fields);
        let reading = Reading { settings: Some(&settings), ..Reading::default() };
        judge_text(&lines(&verl(source)), &reading)
    };
    let subject = judged("openai/gsm8K", &[]);
    assert_eq!(loud(&subject), [("unscored-source", Severity::Error)]);
    assert!(finding(&subject, "unscored-source").found.ends_with("did you mean `openai/gsm8k`?"));
    assert_eq!(loud(&judged("openai/gsm8k", &[])), []);
    assert_eq!(loud(&judged("aime_2024", &[])), []);
    let own = [("custom_reward_function.path", json!("reward.py"))];
    assert_eq!(loud(&judged("mine", &own)), []);
    assert_eq!(status(&judge(&verl("mine")), "unscored-source"), RuleStatus::Insufficient);
}

fn pairs() -> Vec<Json> {
    (0..40)
        .map(|n| {
            json!({
                "prompt": format!("Say {n}."), "chosen": format!("{n}!"), "rejected": "No.",
            })
        })
        .collect()
}

#[test]
fn equal_sides_are_found() {
    let mut bad = pairs();
    bad[6]["rejected"] = json!("6! ");
    tells("pair-equal", Severity::Error, &bad, &pairs());
}

#[test]
fn pairs_without_prompt_are_found() {
    let mut bad = pairs();
    for row in &mut bad {
        row.as_object_mut().expect("an object").remove("prompt");
    }
    assert_eq!(loud(&judge(&bad)), [("pair-prompt", Severity::Error)]);
    let shared: Vec<Json> = (0..40)
        .map(|n| {
            let user = json!({"role": "user", "content": format!("Say {n}.")});
            let says = |text: &str| json!([user, {"role": "assistant", "content": text}]);
            json!({"chosen": says("Yes."), "rejected": says("No.")})
        })
        .collect();
    assert_eq!(loud(&judge(&shared)), []);
    let mut cut = shared;
    cut[3]["rejected"].as_array_mut().expect("messages").pop();
    assert_eq!(loud(&judge(&cut)), [("pair-prompt", Severity::Error)]);
}

#[test]
fn gold_answers_that_score_less_than_nothing_are_found() {
    let judged = |scored: Vec<Scored>| {
        let mut dataset = read_text(&lines(&sums(40)), &Reading::default());
        dataset.scored = Some(scored);
        dataset.judge(&Asked::default())
    };
    let one = |row, gold, empty| Scored { row, gold, empty };
    let subject = judged(vec![one(1, 1.0, 0.0), one(2, -1.0, 0.0)]);
    assert_eq!(loud(&subject), [("gold-not-scored", Severity::Error)]);
    assert!(finding(&subject, "gold-not-scored").found.contains("1 row of 2 (row 2)"));
    assert_eq!(loud(&judged(vec![one(1, 1.0, 0.0), one(2, 0.0, 0.0)])), []);
}

#[test]
fn every_rule_has_a_whole_head() {
    assert_eq!(datasets::rules::all().len(), 22);
    for rule in datasets::rules::all() {
        for heading in shakedown_lint::rules::HEADINGS {
            assert!(!rule.doc.section(heading).is_empty(), "{}: {heading}", rule.id);
        }
        let listed = rule.doc.items("Causes").len() * rule.doc.items("Next").len();
        assert!(listed > 0, "{}", rule.id);
        for other in rule.head.explains {
            let is_rule = datasets::rules::all().iter().any(|rule| rule.id == *other);
            assert!(is_rule, "{} explains `{other}`", rule.id);
        }
    }
}

// Sound data sets, one function a shape.

#[track_caller]
fn is_sound(rows: &[Json]) {
    let subject = judge(rows);
    assert_eq!(loud(&subject), [], "{:#?}", subject.findings);
    assert_eq!(subject.verdict, Verdict::NothingFound);
    assert_eq!(subject.rows, rows.len() as u64);
}

/// GSM8K as it is distributed.
fn gsm8k() -> Vec<Json> {
    (2..202)
        .map(|n| {
            let (half, all) = (n, n + 2 * n);
            json!({
                "question": format!(
                    "Natalia sold {} clips in April, and half as many in May. How many clips did \
                     she sell in April and May?", 2 * n,
                ),
                "answer": format!(
                    "Natalia sold {}/2 = <<{}/2={half}>>{half} clips in May.\nNatalia sold \
                     {}+{half} = <<{}+{half}={all}>>{all} clips in April and May.\n#### {all}",
                    2 * n, 2 * n, 2 * n, 2 * n,
                ),
            })
        })
        .collect()
}

#[test]
fn gsm8k_is_sound_raw_and_for_every_library() {
    is_sound(&gsm8k());
    let system = "Reason in <think> tags, then give the answer in <answer> tags.";
    let trl: Vec<Json> = gsm8k()
        .into_iter()
        .map(|row| {
            let prompt = json!([
                {"role": "system", "content": system}, {"role": "user", "content": row["question"]},
            ]);
            json!({"prompt": prompt, "question": row["question"], "answer": row["answer"]})
        })
        .collect();
    is_sound(&trl);
    let verl: Vec<Json> = gsm8k()
        .iter()
        .zip(0..)
        .map(|(row, index)| {
            let ask = "Let's think step by step and output the final answer after \"####\".";
            let content = format!("{} {ask}", row["question"].as_str().expect("a text"));
            let answer = row["answer"].as_str().expect("a text");
            let truth = answer.rsplit("#### ").next();
            json!({
                "data_source": "openai/gsm8k",
                "prompt": [{"role": "user", "content": content}],
                "ability": "math",
                "reward_model": {"style": "rule", "ground_truth": truth},
                "extra_info": {"split": "train", "index": index, "answer": answer},
            })
        })
        .collect();
    is_sound(&verl);
}

#[test]
fn dapo_math_is_sound() {
    let rows: Vec<Json> = (0..300)
        .map(|n| {
            let content = format!(
                "Solve the following math problem step by step. The last line of your response \
                 should be of the form Answer: $Answer (without quotes) where $Answer is the \
                 answer to the problem.\n\nLet $f(x) = x^2 - {n}$. Find the sum of the squares of \
                 its roots.\n\nRemember to put your answer on its own line after \"Answer:\".",
            );
            json!({
                "data_source": "math_dapo",
                "prompt": [{"role": "user", "content": content}],
                "ability": "MATH",
                "reward_model": {
                    "ground_truth": (2 * n).to_string(), "style": "rule-lighteval/MATH_v2",
                },
                "extra_info": {"index": format!("9a9b6eb4-a1cb-49d1-8c1e-62eaf2f74{n:03}")},
            })
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn competition_problems_with_solutions_are_sound() {
    let rows: Vec<Json> = (1..120)
        .map(|n| {
            let square = n * n;
            let problem = format!("Let $x$ be a positive number with $x^2 = {square}$. Find $x$.");
            let way = format!("Since $x$ is positive, $x = \\sqrt{{{square}}} = \\boxed{{{n}}}$.");
            let solution = format!("{problem} {way}");
            json!({"problem": problem, "solution": solution, "answer": n.to_string()})
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn preference_pairs_with_a_shared_beginning_are_sound() {
    let rows: Vec<Json> = (0..80)
        .map(|n| {
            let begin = format!("\n\nHuman: What is {n} times ten?\n\nAssistant:");
            let [chosen, rejected] = [format!("{begin} {n}0."), format!("{begin} {n}1.")];
            json!({"chosen": chosen, "rejected": rejected})
        })
        .collect();
    is_sound(&rows);
    // Several pairs of one prompt.
    let rows: Vec<Json> = (0..80)
        .map(|n| {
            let user = json!({"role": "user", "content": format!("Tell me about {}.", n / 4)});
            let says = |text: String| json!([user, {"role": "assistant", "content": text}]);
            json!({
                "prompt": format!("Tell me about {}.", n / 4),
                "chosen": says(format!("A tale of {n}.")),
                "rejected": says(format!("A tail of {n}.")),
                "score_chosen": 8.0, "score_rejected": 3.5,
            })
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn labelled_completions_are_sound() {
    let rows: Vec<Json> = (0..80)
        .map(|n| {
            json!({
                "prompt": format!("Name a number above {}.", n / 2),
                "completion": n.to_string(), "label": n % 2 == 0,
            })
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn conversations_with_tools_are_sound() {
    let rows: Vec<Json> = (0..60)
        .map(|n| {
            let function = json!({"name": "sum", "arguments": "{}"});
            let call = json!([{"id": "1", "type": "function", "function": function}]);
            json!({
                "prompt": [
                    {"role": "system", "content": "You may call tools."},
                    {"role": "user", "content": format!("What is {n} + 1?")},
                    {"role": "assistant", "content": format!("It is {}.", n + 1)},
                    {"role": "user", "content": "Are you sure? Ask the tool."},
                    {"role": "assistant", "content": "", "tool_calls": call},
                    {"role": "tool", "content": (n + 1).to_string(), "tool_call_id": "1"},
                ],
                "answer": (n + 1).to_string(),
                "tools": [{"type": "function", "function": {"name": "sum"}}],
            })
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn pictures_with_questions_are_sound() {
    let rows: Vec<Json> = (0..60)
        .map(|n| {
            json!({
                "data_source": "hiyouga/geometry3k",
                "prompt": [{"role": "user", "content": [
                    {"type": "image", "image": format!("{n}.png"), "text": null},
                    {"type": "text", "text": "Find x."},
                ]}],
                "images": [{"bytes": format!("{n}"), "path": null}],
                "reward_model": {"style": "rule", "ground_truth": format!("{n} \\sqrt {{ 3 }}")},
            })
        })
        .collect();
    is_sound(&rows);
}

#[test]
fn programs_with_tests_are_sound() {
    let rows: Vec<Json> = (0..60)
        .map(|n| {
            let tests = json!({"inputs": [format!("{n}\n")], "outputs": [format!("{}\n", n + 1)]});
            json!({
                "data_source": "codecontests",
                "prompt": [{"role": "user", "content": format!("Print a number plus {n}.")}],
                "reward_model": {"style": "rule", "ground_truth": tests.to_string()},
            })
        })
        .collect();
    is_sound(&rows);
    let fixes: Vec<Json> = (0..60)
        .map(|n| {
            let rest = "    for item in items:\n        total += item\n    return total";
            json!({
                "prompt": format!("Repair this:\ndef f{n}(items):\n    total = 1\n{rest}"),
                "solution": format!("def f{n}(items):\n    total = 0\n{rest}"),
            })
        })
        .collect();
    is_sound(&fixes);
}

#[test]
fn choices_and_passages_are_sound() {
    let choices: Vec<Json> = (0..80)
        .map(|n| {
            let right = format!("The mitochondrion is the power house of cell number {n}");
            json!({
                "prompt": format!("Which is it?\nA. {right}\nB. It has no house\nThe answer is"),
                "answer": if n % 2 == 0 { "A" } else { "B" }, "solution": right,
            })
        })
        .collect();
    is_sound(&choices);
    let passages: Vec<Json> = (0..80)
        .map(|n| {
            json!({
                "question": "Who wrote the book that the passage speaks about, and when was it?",
                "context": format!("It was written by Author Number {n} in {}.", 1800 + n),
                "answer": format!("Author Number {n} in {}", 1800 + n),
            })
        })
        .collect();
    is_sound(&passages);
}

#[test]
fn mixed_tasks_are_sound() {
    let rows: Vec<Json> = (0..80)
        .map(|n| match n % 4 {
            0 => json!({"prompt": format!("A poem about {n}."), "task": "poem", "answer": null}),
            _ => json!({"prompt": format!("{n} + 1?"), "task": "sum", "answer": n + 1}),
        })
        .collect();
    is_sound(&rows);
}

// How they are read.

#[test]
fn an_array_is_read_as_its_lines_are() {
    let rows = but(&[7, 9], |row| row["answer"] = Json::Null);
    let (_file, path) = File::new("data.json", serde_json::to_string_pretty(&rows).expect("JSON"));
    let array = datasets::read(&[path], &Reading::default()).expect("an array is read");
    let array = array.judge(&Asked::default());
    assert_eq!(array.format, "JSON");
    assert_eq!(loud(&array), loud(&judge(&rows)));
    // Each row has four lines behind the first of the file.
    let location = finding(&array, "answer-missing").location.clone();
    assert_eq!(location.map(|at| at.line), Some(7 * 4 + 2));
}

#[test]
fn rows_in_memory_are_judged_as_those_of_a_file() {
    let rows = but(&[7, 9], |row| row["answer"] = Json::Null);
    let memory = datasets::from_rows(rows.clone(), &Reading::default()).expect("rows");
    let (memory, file) = (memory.judge(&Asked::default()), judge(&rows));
    assert_eq!(loud(&memory), loud(&file));
    let texts = |subject: &Subject| -> Vec<String> {
        subject.findings.iter().map(|one| one.found.replace("lines", "rows")).collect()
    };
    assert_eq!(texts(&memory), texts(&file));
    assert!(memory.findings.iter().all(|one| one.location.is_none()));
}

#[test]
fn several_files_are_one_data_set() {
    let (_one, first) = File::new("a.jsonl", lines(&sums(30)));
    let (_other, second) = File::new("b.jsonl", lines(&sums(3)));
    let read = datasets::read(&[first, second], &Reading::default()).expect("two files");
    let subject = read.judge(&Asked::default());
    let found = finding(&subject, "duplicates");
    assert!(found.found.contains("1 of b.jsonl"), "{}", found.found);
    assert!(found.location.as_ref().is_some_and(|at| at.file.ends_with("b.jsonl") && at.line == 1));
}

#[test]
fn columns_can_be_named() {
    let rows: Vec<Json> = (0..30)
        .map(|n| {
            let truth = if n == 4 { String::new() } else { n.to_string() };
            json!({"data": {"text": format!("{n}?")}, "truth": truth})
        })
        .collect();
    let reading =
        Reading { prompt: Some("data.text"), answer: Some("truth"), ..Reading::default() };
    let subject = judge_text(&lines(&rows), &reading);
    assert_eq!(loud(&subject), [("answer-missing", Severity::Error)]);
}

#[test]
fn texts_are_shown_only_on_request() {
    let bad = lines(&but(&[7], |row| row["answer"] = json!("n/a")));
    let quiet = judge_text(&bad, &Reading::default());
    assert!(!finding(&quiet, "placeholder-answer").found.contains("\"n/a\""));
    let shown = judge_text(&bad, &Reading { shows_text: true, ..Reading::default() });
    assert!(finding(&shown, "placeholder-answer").found.contains("\"n/a\""));
}

#[test]
fn what_stands_in_a_row_is_no_name() {
    let mut rows = messages(&sums(40));
    rows[3]["prompt"][0]["role"] = json!("my password is swordfish, tell nobody");
    let subject = judge(&rows);
    assert!(finding(&subject, "roles").found.contains("`…`"));
}

#[test]
fn columns_of_urls_are_no_parts() {
    let mut rows = with_system(&sums(100), |n| (n % 20 > 0).then_some("Reason, then answer."));
    for (n, row) in rows.iter_mut().enumerate() {
        row["source"] = json!(format!("https://example.org/{n}"));
    }
    rows[50]["answer"] = Json::Null;
    let found = loud_owned(&judge(&rows));
    assert_eq!(found, ["answer-missing", "system-prompt"]);
}

#[test]
fn an_opening_of_the_assistant_holds_no_answer() {
    let mut rows = messages(&sums(40));
    for (n, row) in rows.iter_mut().enumerate() {
        let opening = json!({"role": "assistant", "content": "Let me take a look."});
        row["prompt"].as_array_mut().expect("messages").push(opening);
        row["answer"] = json!(["A", "B", "C", "D"][n % 4]);
    }
    is_sound(&rows);
}

#[test]
fn rows_of_an_environment_may_have_one_prompt() {
    let rows: Vec<Json> =
        (0..40).map(|n| json!({"prompt": "Play the game.", "extra_info": {"seed": n}})).collect();
    is_sound(&rows);
}

#[test]
fn what_is_no_data_set_is_an_error_with_its_path() {
    let said = |name: &str, bytes: &[u8]| {
        let (_file, path) = File::new(name, bytes);
        let error = datasets::read(&[path], &Reading::default()).expect_err("no data set");
        error.to_string()
    };
    assert!(said("a.jsonl", b"").contains("a.jsonl: empty"));
    assert!(said("a.csv", b"prompt,answer\n1,2\n").contains("a.csv:1:1: expected JSON objects"));
    assert!(said("a.arrow", b"ARROW1\0\0").contains("Arrow"));
    assert!(said("a.jsonl.gz", &[0x1f, 0x8b, 8, 0]).contains("compressed"));
    assert!(said("a.json", b"[]").contains("no rows"));
    let missing = datasets::read(&[PathBuf::from("no/such.jsonl")], &Reading::default());
    assert!(missing.expect_err("no file").to_string().contains("cannot read no/such.jsonl"));
}

#[test]
fn a_row_of_more_than_64_mib_is_passed_over() {
    let mut text = lines(&sums(1));
    text.push_str(&format!("{{\"prompt\": \"{}\"}}\n", "a".repeat(64 << 20)));
    text.push_str(&lines(&sums(1)));
    let subject = judge_text(&text, &Reading::default());
    let found = finding(&subject, "malformed-row");
    assert_eq!(found.found, "cannot read 1 row (line 2): longer than 64 MiB");
}

#[cfg(feature = "parquet")]
mod in_parquet {
    use std::sync::Arc;

    use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    use super::*;

    const SCHEMA: &str = "message rows {
        optional binary data_source (UTF8);
        optional group prompt (LIST) {
            repeated group list {
                optional group element {
                    optional binary content (UTF8);
                    optional binary role (UTF8);
                }
            }
        }
        optional group reward_model { optional binary ground_truth (UTF8); }
        optional int64 index;
    }";

    /// Definition levels and repetition levels of a column.
    type Levels = (Vec<i16>, Option<Vec<i16>>);

    /// verl's rows, one message each.
    pub(super) fn write(rows: &[Json]) -> Vec<u8> {
        let schema = Arc::new(parse_message_type(SCHEMA).expect("a schema"));
        let mut bytes = Vec::new();
        let properties = Arc::new(WriterProperties::new());
        let mut file = SerializedFileWriter::new(&mut bytes, schema, properties).expect("a writer");
        let mut group = file.next_row_group().expect("a row group");
        let text = |pointer: &str| -> Vec<Option<String>> {
            rows.iter().map(|row| row.pointer(pointer)?.as_str().map(str::to_owned)).collect()
        };
        // How deep each column is defined where it has a value, and whether it repeats.
        let columns = [
            ("/data_source", 1, false),
            ("/prompt/0/content", 4, true),
            ("/prompt/0/role", 4, true),
            ("/reward_model/ground_truth", 2, false),
        ];
        for (pointer, depth, repeats) in columns {
            let cells = text(pointer);
            let values: Vec<ByteArray> =
                cells.iter().flatten().map(|text| text.as_str().into()).collect();
            let defined = cells.iter().map(|cell| if cell.is_some() { depth } else { depth - 1 });
            let levels: Levels = (defined.collect(), repeats.then(|| vec![0; rows.len()]));
            let mut column = group.next_column().expect("columns").expect("a column");
            let typed = column.typed::<ByteArrayType>();
            typed.write_batch(&values, Some(&levels.0), levels.1.as_deref()).expect("values");
            column.close().expect("a column can be closed");
        }
        let numbers: Vec<i64> = (0..rows.len() as i64).collect();
        let mut column = group.next_column().expect("columns").expect("a column");
        let typed = column.typed::<Int64Type>();
        typed.write_batch(&numbers, Some(&vec![1; rows.len()]), None).expect("values");
        column.close().expect("a column can be closed");
        group.close().expect("a row group can be closed");
        file.close().expect("a file can be closed");
        bytes
    }

    #[test]
    fn parquet_is_read_as_json_lines_are() {
        let mut rows = verl("math_dapo");
        rows[7]["reward_model"]["ground_truth"] = Json::Null;
        rows[9]["prompt"][0]["role"] = json!("human");
        rows[11]["prompt"][0]["content"] = json!(" ");
        let (_file, path) = File::new("train.parquet", write(&rows));
        let parquet = datasets::read(&[path], &Reading::default()).expect("parquet is read");
        let (parquet, json) = (parquet.judge(&Asked::default()), judge(&rows));
        assert_eq!(parquet.format, "parquet");
        assert_eq!(loud(&parquet).len(), 3);
        let said = |subject: &Subject| -> Vec<String> {
            subject.findings.iter().map(|one| one.found.replace("line ", "row ")).collect()
        };
        assert_eq!(said(&parquet), said(&json));
        assert_eq!(parquet.library.as_deref(), Some("verl"));
        assert!(parquet.findings.iter().all(|one| one.location.is_none()));
    }

    #[test]
    fn damaged_parquet_is_an_error_or_a_finding() {
        let whole = write(&verl("math_dapo"));
        for at in (0..whole.len()).step_by(97) {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x55;
            for bytes in [damaged.as_slice(), &whole[..at]] {
                let (_file, path) = File::new("damaged.parquet", bytes);
                match datasets::read(std::slice::from_ref(&path), &Reading::default()) {
                    Ok(read) => drop(read.judge(&Asked::default())),
                    Err(error) => assert!(error.to_string().contains("damaged.parquet:")),
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 200, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn no_bytes_end_the_program(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        datasets::judge::fuzz(&bytes);
    }

    #[test]
    fn no_json_ends_the_program(pieces in prop::collection::vec(0..PIECES.len(), 0..60)) {
        let text: String = pieces.into_iter().map(|piece| PIECES[piece]).collect();
        datasets::judge::fuzz(text.as_bytes());
    }
}

const PIECES: [&str; 32] = [
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\n",
    "\"",
    "\\",
    "null",
    "NaN",
    "1e999",
    "-",
    "true",
    "\u{feff}",
    "é",
    "\"prompt\":",
    "\"answer\":",
    "\"chosen\":",
    "\"rejected\":",
    "\"messages\":",
    "{\"role\":\"user\",\"content\":\"\"}",
    "{\"role\":\"assistant\",\"content\":[{}]}",
    "{\"prompt\":\"the answer is 4\",\"answer\":\"4\"}\n",
    "{\"prompt\":[{\"role\":\"user\",\"content\":\"\\\\boxed{\"}],\"answer\":\"\\\\boxed{{\"}\n",
    "{\"prompt\":\"<a><b>\",\"answer\":[]}\n",
    "\"reward_model\":{\"ground_truth\":{}}",
    "\"data_source\":\"aime\"",
    "{\"chosen\":[],\"rejected\":[]}\n",
    "{\"prompt\":{},\"solution\":\"####\"}\n",
    "{\"prompt\":null}\n",
    "\r",
];

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_without_its_feature_is_a_clear_error() {
    let (_file, path) = File::new("train.parquet", b"PAR1");
    let error = datasets::read(&[path], &Reading::default()).expect_err("no reader");
    assert!(error.to_string().contains("train.parquet: parquet is not built in"), "{error}");
}
