//! Logs of runs: every format gives the same series, names have their meaning, and no bytes break
//! a reader.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use shakedown_lint::runs::Run;
use shakedown_lint::runs::formats::{self, OwnNames};
use shakedown_lint::settings::Library;

/// Encoders of the binary formats, as small as they can be.
mod encode {
    /// CRC of the reversed polynomial, bit by bit.
    fn crc(polynomial: u32, bytes: &[u8]) -> u32 {
        let bit = |sum: u32, _| if sum & 1 == 1 { (sum >> 1) ^ polynomial } else { sum >> 1 };
        let byte = |sum: u32, byte: &u8| (0..8).fold(sum ^ u32::from(*byte), bit);
        !bytes.iter().fold(!0, byte)
    }

    fn masked(bytes: &[u8]) -> [u8; 4] {
        crc(0x82f6_3b78, bytes).rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
    }

    pub(super) fn varint(mut value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    /// A field of a message: a text or another message.
    pub(super) fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
        let mut all = varint(number << 3 | 2);
        all.extend(varint(bytes.len() as u64));
        all.extend(bytes);
        all
    }

    pub(super) fn number_field(number: u64, value: u64) -> Vec<u8> {
        [varint(number << 3), varint(value)].concat()
    }

    pub(super) fn float_field(number: u64, value: f32) -> Vec<u8> {
        [varint(number << 3 | 5), value.to_le_bytes().to_vec()].concat()
    }

    pub(super) fn tf_record(event: &[u8]) -> Vec<u8> {
        let length = (event.len() as u64).to_le_bytes();
        [&length[..], &masked(&length), event, &masked(event)].concat()
    }

    /// The log that W&B writes: records that may span blocks.
    pub(super) fn wandb(records: &[Vec<u8>]) -> Vec<u8> {
        const BLOCK: usize = 32 << 10;
        let mut log = b":W&B\xe1\xbe\x00".to_vec();
        for record in records {
            let (mut rest, mut is_first) = (&record[..], true);
            loop {
                let room = BLOCK - log.len() % BLOCK;
                if room < 7 {
                    log.extend(vec![0; room]);
                    continue;
                }
                let (data, after) = rest.split_at(rest.len().min(room - 7));
                let kind: u8 = match (is_first, after.is_empty()) {
                    (true, true) => 1,
                    (true, false) => 2,
                    (false, false) => 3,
                    (false, true) => 4,
                };
                let sum = crc(0xedb8_8320, &[&[kind], data].concat());
                log.extend(sum.to_le_bytes());
                log.extend((data.len() as u16).to_le_bytes());
                log.push(kind);
                log.extend(data);
                (rest, is_first) = (after, false);
                if rest.is_empty() {
                    break;
                }
            }
        }
        log
    }
}

type Rows = Vec<Vec<(&'static str, f64)>>;

const NAMES: [&str; 5] = ["reward", "grad_norm", "kl", "learning_rate", "completions/mean_length"];

/// Rows that TRL could log, each beginning with its step.
fn rows() -> Rows {
    let row = |step: i32| {
        let x = f64::from(step);
        let values =
            [0.1 + x / 97.0, 1.0 + (x * 0.7).sin() / 3.0, x * 1.234_567e-5, 1e-6, 211.0 + x / 3.0];
        // As many digits as a number of four bytes has.
        let round = |value: f64| format!("{value:.6e}").parse().unwrap();
        std::iter::once(("step", x)).chain(NAMES.into_iter().zip(values.map(round))).collect()
    };
    (1..=60).map(row).collect()
}

fn json(row: &[(&str, f64)]) -> String {
    let cells: Vec<String> =
        row.iter().map(|(name, value)| format!("\"{name}\": {value}")).collect();
    format!("{{{}}}", cells.join(", "))
}

fn json_lines(rows: &Rows) -> String {
    rows.iter().map(|row| json(row) + "\n").collect()
}

fn trainer_state(rows: &Rows) -> String {
    let entries: Vec<String> = rows.iter().map(|row| json(row)).collect();
    let entries = entries.join(",\n    ");
    let end = r#"{"step": 60, "train_runtime": 12.5, "train_loss": 0.5}"#;
    format!(
        "{{\n  \"best_metric\": null,\n  \"global_step\": 60,\n  \"log_history\": [\n    \
         {entries},\n    {end}\n  ],\n  \"max_steps\": 60\n}}\n"
    )
}

fn csv(rows: &Rows) -> String {
    let mut text = format!("step,{}\n", NAMES.join(","));
    for row in rows {
        let cells: Vec<String> = row.iter().map(|(_, value)| value.to_string()).collect();
        writeln!(text, "{}", cells.join(",")).unwrap();
    }
    text
}

/// What the command of TRL prints, without steps.
fn trl_console(rows: &Rows) -> String {
    let mut text = String::from("Loading weights: 100%|####| 5/5\nusing {'num_gpus': 8}\n");
    for row in rows {
        let cells: Vec<String> =
            row[1..].iter().map(|(name, value)| format!("'{name}': {value}")).collect();
        write!(text, "\r  3%|##    | 3/60 [00:10<01:30]\r{{{}}}\n", cells.join(", ")).unwrap();
    }
    text + "{'train_runtime': 12.5, 'train_loss': 0.5}\n"
}

fn quoted_console(rows: &Rows) -> String {
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row[1..].iter().map(|(name, value)| format!("'{name}': '{value}'")).collect();
        writeln!(text, "{{{}}}", cells.join(", ")).unwrap();
    }
    text
}

fn numpy_console(rows: &Rows) -> String {
    let mut text = String::new();
    for row in rows {
        let cells: Vec<String> =
            row[1..].iter().map(|(name, value)| format!("'{name}': np.float64({value})")).collect();
        let (step, cells) = (row[0].1, cells.join(", "));
        writeln!(text, "\x1b[36m(Worker pid=7)\x1b[0m Global step {step}: {{{cells}}}").unwrap();
    }
    text
}

fn pairs_console(rows: &Rows) -> String {
    let mut text = String::from("step: nothing yet\n");
    for row in rows {
        let cells: Vec<String> =
            row.iter().map(|(name, value)| format!("{name}:{value}")).collect();
        writeln!(text, "(TaskRunner pid=12) {}", cells.join(" - ")).unwrap();
    }
    text
}

/// Every scalar is an event of its own.
fn tensorboard(rows: &Rows) -> Vec<u8> {
    let mut log = encode::tf_record(&encode::field(3, b"brain.Event:2"));
    for row in rows {
        for (index, (name, value)) in row[1..].iter().enumerate() {
            let name = format!("train/{name}");
            let tag = encode::field(1, name.as_bytes());
            let number = match index {
                // A tensor of one number, packed, as bytes, or the number itself.
                0 => tensor(1, &encode::field(5, &(*value as f32).to_le_bytes())),
                1 => tensor(2, &encode::field(4, &value.to_le_bytes())),
                _ => encode::float_field(2, *value as f32),
            };
            let summary = encode::field(1, &[tag, number].concat());
            let step = encode::number_field(2, row[0].1 as u64);
            log.extend(encode::tf_record(&[step, encode::field(5, &summary)].concat()));
        }
    }
    log
}

fn tensor(kind: u64, number: &[u8]) -> Vec<u8> {
    encode::field(8, &[&encode::number_field(1, kind), number].concat())
}

fn item(key: &[&str], json: &str) -> Vec<u8> {
    let key = match key {
        [key] => encode::field(1, key.as_bytes()),
        nested => nested.iter().flat_map(|part| encode::field(2, part.as_bytes())).collect(),
    };
    encode::field(1, &[key, encode::field(16, json.as_bytes())].concat())
}

fn wandb(rows: &Rows) -> Vec<u8> {
    let config = encode::field(4, &item(&["beta"], "0.04"));
    let mut records = vec![encode::field(17, &config)];
    for row in rows {
        let mut history = item(&["_step"], &row[0].1.to_string());
        for (name, value) in &row[1..] {
            history.extend(item(&[name], &value.to_string()));
        }
        // A long text, so that records span blocks.
        history.extend(item(&["completions"], &format!("\"{}\"", "x".repeat(3000))));
        records.push(encode::field(2, &history));
    }
    // One that spans three.
    records.push(encode::field(5, &[b' '; 70_000]));
    encode::wandb(&records)
}

#[cfg(feature = "parquet")]
fn parquet_table(rows: &Rows) -> Vec<u8> {
    use std::sync::Arc;

    use parquet::basic::Compression;
    use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
    use parquet::file::properties::WriterProperties;
    use parquet::file::writer::SerializedFileWriter;
    use parquet::schema::parser::parse_message_type;

    let columns: String = NAMES.iter().map(|name| format!("OPTIONAL DOUBLE {name};\n")).collect();
    let schema = "message history {\nREQUIRED INT64 _step;\nOPTIONAL BYTE_ARRAY text (UTF8);\n";
    let schema = Arc::new(parse_message_type(&format!("{schema}{columns}}}")).unwrap());
    let compressed = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema, Arc::new(compressed)).unwrap();
    for rows in rows.chunks(25) {
        let mut group = writer.next_row_group().unwrap();
        let mut index = 0;
        while let Some(mut column) = group.next_column().unwrap() {
            let there = vec![1_i16; rows.len()];
            match index {
                0 => {
                    let steps: Vec<i64> = rows.iter().map(|row| row[0].1 as i64).collect();
                    column.typed::<Int64Type>().write_batch(&steps, None, None).unwrap();
                }
                1 => {
                    let texts = vec![ByteArray::from("text"); rows.len()];
                    column
                        .typed::<ByteArrayType>()
                        .write_batch(&texts, Some(&there), None)
                        .unwrap();
                }
                _ => {
                    let values: Vec<f64> = rows.iter().map(|row| row[index - 1].1).collect();
                    column.typed::<DoubleType>().write_batch(&values, Some(&there), None).unwrap();
                }
            }
            column.close().unwrap();
            index += 1;
        }
        group.close().unwrap();
    }
    writer.into_inner().unwrap()
}

/// The same rows in every format, and what that is called.
fn every_format() -> Vec<(&'static str, Vec<u8>, &'static str)> {
    let rows = rows();
    let mut all = vec![
        ("lines.jsonl", json_lines(&rows).into_bytes(), "JSON lines"),
        ("windows.jsonl", windows(&json_lines(&rows)), "JSON lines"),
        ("trainer_state.json", trainer_state(&rows).into_bytes(), "trainer state"),
        (
            "list.json",
            format!("[{}]", json_lines(&rows).trim().replace('\n', ",\n")).into(),
            "JSON list",
        ),
        ("table.csv", csv(&rows).into_bytes(), "CSV"),
        ("windows.csv", windows(&csv(&rows)), "CSV"),
        ("tabs.tsv", csv(&rows).replace(',', "\t").into_bytes(), "CSV"),
        ("trl.log", trl_console(&rows).into_bytes(), "console"),
        ("quoted.log", quoted_console(&rows).into_bytes(), "console"),
        ("numpy.log", numpy_console(&rows).into_bytes(), "console"),
        ("verl.log", pairs_console(&rows).into_bytes(), "console"),
        ("events.out.tfevents.1", tensorboard(&rows), "TensorBoard"),
        ("run-x.wandb", wandb(&rows), "W&B"),
    ];
    #[cfg(feature = "parquet")]
    all.push(("history.parquet", parquet_table(&rows), "parquet"));
    all.sort_by_key(|(name, ..)| *name);
    all
}

fn windows(text: &str) -> Vec<u8> {
    ["\u{feff}", &text.replace('\n', "\r\n")].concat().into_bytes()
}

fn write(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
    let path = folder.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, content).unwrap();
    path
}

/// The only run in a file with this content.
#[track_caller]
fn run_of(content: impl AsRef<[u8]>) -> Run {
    run_named(content, &[])
}

#[track_caller]
fn run_named(content: impl AsRef<[u8]>, own: &[(&str, &str)]) -> Run {
    let mut runs = runs_of(content, own).unwrap();
    assert_eq!(runs.len(), 1);
    runs.remove(0)
}

fn runs_of(content: impl AsRef<[u8]>, own: &[(&str, &str)]) -> Result<Vec<Run>, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = write(folder.path(), "log", content);
    let own: OwnNames = own.iter().map(|(name, id)| ((*name).into(), (*id).into())).collect();
    formats::read(&path, &own).map_err(|error| error.to_string())
}

#[track_caller]
fn refused(content: impl AsRef<[u8]>) -> String {
    runs_of(content, &[]).map(|runs| runs.len()).unwrap_err()
}

/// The values of a metric.
#[track_caller]
fn values(run: &Run, id: &str) -> Vec<f64> {
    let series = run.series.get(id);
    series.unwrap_or_else(|| panic!("no {id} in {:?}", run.series.keys())).values()
}

/// Steps and means of a metric.
fn points(run: &Run, id: &str) -> Vec<(i64, f64)> {
    run.series[id].buckets.iter().map(|bucket| (bucket.steps[0], bucket.mean)).collect()
}

#[test]
fn the_same_rows_in_every_format_are_the_same_series() {
    let expected = formats::from_rows("rows", rows(), &OwnNames::new());
    assert_eq!(expected.rows, 60);
    for (name, content, format) in every_format() {
        let run = run_of(content);
        assert_eq!(run.format, format, "{name}");
        assert_eq!((run.rows, run.steps), (60, Some([1, 60])), "{name}");
        assert_eq!(run.warnings, [""; 0], "{name}");
        assert_eq!(run.has_lines, !matches!(format, "W&B" | "TensorBoard" | "parquet"), "{name}");
        let ids = |run: &Run| run.series.keys().cloned().collect::<Vec<_>>();
        assert_eq!(ids(&run), ids(&expected), "{name}");
        for (id, series) in &expected.series {
            assert_eq!(run.series[id].resolution, 0.0, "{name} {id}");
            for (found, expected) in points(&run, id).into_iter().zip(points(&expected, id)) {
                let error = (found.1 - expected.1).abs();
                assert!(found.0 == expected.0 && error <= 1e-6 * expected.1.abs(), "{name} {id}");
            }
            assert_eq!(points(&run, id).len(), series.buckets.len(), "{name} {id}");
        }
    }
}

#[test]
fn findings_can_point_at_lines() {
    let lines = |content: String| {
        let buckets = run_of(content).series["reward.mean"].buckets.clone();
        [buckets[0].line, buckets[1].line]
    };
    assert_eq!(lines(json_lines(&rows())), [1, 2]);
    assert_eq!(lines(csv(&rows())), [2, 3]);
    assert_eq!(lines(trainer_state(&rows())), [5, 6]);
    assert_eq!(lines(trl_console(&rows())), [3, 4]);
}

#[test]
fn numbers_that_are_not_finite_are_counted_and_missing_ones_are_not() {
    let run = run_of(
        r#"{"step": 1, "loss": NaN, "kl": 0.5}
        {"step": 2, "loss": Infinity, "kl": null}
        {"step": 3, "loss": "NaN", "kl": 0.25}"#,
    );
    assert_eq!(run.series["loss"].nonfinite(), 3);
    assert_eq!((run.series["kl.ref"].nonfinite(), run.series["kl.ref"].points()), (0, 2));
    let table = run_of("step,loss,kl\n1,NaN,0.5\n2,inf,\n3,nan,0.25\n");
    assert_eq!(table.series["loss"].nonfinite(), 3);
    assert_eq!((table.series["kl.ref"].nonfinite(), table.series["kl.ref"].points()), (0, 2));
    let printed = run_of("{'loss': nan, 'kl': 0.5}\n{'loss': -inf, 'kl': None}\n");
    assert_eq!((printed.series["loss"].nonfinite(), printed.series["kl.ref"].points()), (2, 1));
}

#[test]
fn null_of_verls_file_logger_is_a_number_that_was_not_finite() {
    let run = run_of(
        r#"{"step": 1, "data": {"actor/grad_norm": null, "critic/score/mean": 0.5}}
        {"step": 2, "data": {"actor/grad_norm": 0.25, "critic/score/mean": 0.75}}"#,
    );
    assert_eq!(run.format, "verl file log");
    assert_eq!(run.library.map(|library| library.name()), Some("verl"));
    assert_eq!((run.series["grad_norm"].nonfinite(), run.series["grad_norm"].points()), (1, 1));
    assert_eq!(values(&run, "reward.mean"), [0.5, 0.75]);
    assert!(run.unknown.is_empty(), "{:?}", run.unknown);
}

#[test]
fn old_verl_prints_three_decimals_and_zero_is_not_known_to_be_zero() {
    let line = |step: i32, norm: &str| {
        format!(
            "\x1b[36m(main_task pid=3)\x1b[0m step:{step} - actor/grad_norm:{norm} - \
             actor/lr(1e-4):0.010 - critic/score/mean:0.500 - critic/lr(1e-4):0.100 - \
             response_length/clip_ratio:0.000\n"
        )
    };
    let run = run_of([line(1, "0.125"), line(2, "0.000"), "noise\n".to_owned()].concat());
    assert!((run.series["grad_norm"].resolution - 5e-4).abs() < 1e-12);
    assert!((run.series["lr"].resolution - 5e-8).abs() < 1e-15);
    assert!(values(&run, "lr").iter().all(|lr| (lr - 1e-6).abs() < 1e-15));
    assert_eq!(values(&run, "length.clipped"), [0.0, 0.0]);
    assert_eq!(run.unknown.iter().collect::<Vec<_>>(), ["critic/lr(1e-4)"]);
}

#[test]
fn new_verl_prints_all_digits_and_zero_is_zero() {
    let run = run_of(
        "step:1 - actor/lr:1e-06 - actor/grad_norm:0.0 - critic/score/mean:0.25 - \
         actor/pg_loss:nan\n\
         step:2 - actor/lr:0.0 - actor/grad_norm:np.float64(0.125) - critic/score/mean:0.5\n",
    );
    assert_eq!(values(&run, "lr"), [1e-6, 0.0]);
    assert!(run.series.values().all(|series| series.resolution == 0.0));
    assert_eq!(values(&run, "grad_norm"), [0.0, 0.125]);
    assert_eq!(run.series["pg_loss"].nonfinite(), 1);
}

#[test]
fn slime_prints_rollouts_and_updates_of_one_row() {
    let mut text = String::new();
    for step in 0..3 {
        let (first, second) = (2 * step, 2 * step + 1);
        write!(
            text,
            "(RolloutManager pid=4) [2026-02-01 10:00:00] rollout.py:80 - perf {step}: \
             {{'perf/time': 3.5, 'rollout/truncated_ratio': 0.5}}\n\
             (Actor pid=9) [2026-02-01 10:00:01] data.py:1 - rollout {step}: \
             {{'rollout/raw_reward': 0.{step}5, 'rollout/step': {step}}}\n\
             (Actor pid=9) [2026-02-01 10:00:02] model.py:9 - step {first}: \
             {{'train/loss': 0.5, 'train/step': {first}}}\n\
             (Actor pid=9) [2026-02-01 10:00:03] model.py:9 - step {second}: \
             {{'train/loss': 0.25, 'train/step': {second}}}\n"
        )
        .unwrap();
    }
    let run = run_of(text);
    assert_eq!((run.rows, run.steps), (3, Some([0, 2])));
    assert_eq!(values(&run, "reward.mean"), [0.05, 0.15, 0.25]);
    assert_eq!(values(&run, "loss"), [0.25; 3]);
    assert_eq!(values(&run, "length.clipped"), [0.5; 3]);
    assert_eq!(run.restarts, [0; 0]);
}

#[test]
fn slime_may_print_the_next_rollout_before_the_update_of_this_one() {
    let mut text =
        String::from("x.py:1 - eval 0: {'eval/aime': 0.125, 'eval/aime-truncated_ratio': 0.5}\n");
    for step in 0..4 {
        write!(
            text,
            "rollout.py:80 - perf {0}: {{'rollout/truncated_ratio': 0.5}}\n\
             data.py:1 - rollout {step}: {{'rollout/raw_reward': 0.{step}5}}\n\
             model.py:9 - step {step}: {{'train/loss': 0.{step}}}\n",
            step + 1
        )
        .unwrap();
    }
    let run = run_of(text);
    assert_eq!(run.restarts, [0; 0]);
    assert_eq!(points(&run, "loss"), [(0, 0.0), (1, 0.1), (2, 0.2), (3, 0.3)]);
    assert_eq!(points(&run, "reward.mean"), [(0, 0.05), (1, 0.15), (2, 0.25), (3, 0.35)]);
    assert_eq!(points(&run, "eval.aime"), [(0, 0.125)]);
}

#[test]
fn nemo_rl_prints_lists_under_its_steps() {
    let mut text = String::new();
    for step in 1..=3 {
        write!(
            text,
            "========================= Step {step}/100 =========================\n\
             ▶ Generating ...\n📊 Training Results:\n  • Loss: 0.0{step}25\n  \
             • Generation KL Error: 0.0012\n  \
             • Avg Reward: 0.{step}500\n  • Mean Generation Length: 512.2500\n\
             ⏱️  Timing:\n  • Total step time: 9.5s\n"
        )
        .unwrap();
    }
    let run = run_of(text);
    assert_eq!((run.rows, run.steps), (3, Some([1, 3])));
    assert_eq!(values(&run, "reward.mean"), [0.15, 0.25, 0.35]);
    assert_eq!(values(&run, "mismatch.kl"), [0.0012; 3]);
    assert!((run.series["reward.mean"].resolution - 5e-5).abs() < 1e-12);
}

#[test]
fn pieces_of_one_step_are_one_row() {
    let text = "{\"_step\": 0, \"rollout/step\": 0, \"rollout/raw_reward\": 0.5}\n\
                {\"_step\": 1, \"train/step\": 0, \"train/loss\": 1.5}\n\
                {\"_step\": 2, \"rollout/step\": 1, \"rollout/raw_reward\": 0.75}\n\
                {\"_step\": 3, \"train/step\": 1, \"train/loss\": 1.25}\n";
    let run = run_of(text);
    assert_eq!((run.rows, run.steps), (2, Some([0, 1])));
    assert_eq!(points(&run, "loss"), [(0, 1.5), (1, 1.25)]);
    assert_eq!(points(&run, "reward.mean"), [(0, 0.5), (1, 0.75)]);
}

#[test]
fn a_step_that_goes_back_replaces_what_stood_there() {
    let steps = [1, 2, 3, 4, 3, 4, 5];
    let rows = steps.iter().enumerate().map(|(index, step)| {
        vec![("step", f64::from(*step)), ("reward", index as f64), ("kl", 0.5)]
    });
    let run = formats::from_rows("rows", rows, &OwnNames::new());
    assert_eq!(run.restarts, [3]);
    assert_eq!(points(&run, "reward.mean"), [(1, 0.0), (2, 1.0), (3, 4.0), (4, 5.0), (5, 6.0)]);
    assert_eq!((run.rows, run.steps), (5, Some([1, 5])));
}

#[test]
fn llama_factory_counts_its_own_steps() {
    let row = |step: u64| {
        format!(
            "{{\"current_steps\": {step}, \"total_steps\": 50, \"loss\": 0.5, \
             \"accuracy\": 0.75, \"lr\": 5e-06, \"epoch\": 0.1, \"percentage\": 2.0, \
             \"elapsed_time\": \"0:00:10\", \"remaining_time\": \"0:01:00\"}}\n"
        )
    };
    let run = run_of((1..=4).map(|at| row(10 * at)).collect::<String>());
    assert_eq!(run.library, Some(Library::LlamaFactory));
    assert_eq!((run.rows, run.steps), (4, Some([10, 40])));
    assert_eq!((run.counts_steps, run.declared_steps), (true, Some(50.0)));
    assert_eq!(points(&run, "lr"), [10, 20, 30, 40].map(|step| (step, 5e-6)));
    assert_eq!(values(&run, "pref.accuracy"), [0.75; 4]);
}

#[test]
fn stages_of_one_log_are_told_apart() {
    let supervised = |step: u64| format!("{{\"step\": {step}, \"loss\": 2.5, \"lr\": 1e-05}}\n");
    let rollouts = |step: u64| {
        format!("{{\"step\": {step}, \"loss\": 0.5, \"reward\": 0.{step}, \"lr\": 1e-06}}\n")
    };
    let text: String = (1..=9).map(supervised).chain((1..=6).map(rollouts)).collect();
    let runs = runs_of(&text, &[]).expect("it is a log");
    let [first, second] = &runs[..] else { panic!("{} runs", runs.len()) };
    assert!(first.name.ends_with("(stage 1 of 2)") && second.name.ends_with("(stage 2 of 2)"));
    assert_eq!((first.rows, first.steps), (9, Some([1, 9])));
    assert_eq!((second.rows, second.steps), (6, Some([1, 6])));
    assert_eq!((values(first, "loss"), values(second, "loss")), (vec![2.5; 9], vec![0.5; 6]));
    assert!(!first.series.contains_key("reward.mean"));
    assert_eq!(values(second, "reward.mean").len(), 6);
    assert_eq!([&first.restarts, &second.restarts], [&[0; 0]; 2]);
    // An update that is logged behind its rollouts begins no stage.
    let behind = "{\"step\": 1, \"reward\": 0.1}\n{\"step\": 2, \"reward\": 0.2}\n\
                  {\"step\": 1, \"loss\": 0.5}\n{\"step\": 3, \"reward\": 0.3}\n\
                  {\"step\": 2, \"loss\": 0.5}\n{\"step\": 4, \"reward\": 0.4}\n";
    assert_eq!(points(&run_of(behind), "reward.mean").len(), 4);
    assert_eq!(runs_of(behind, &[]).map(|runs| runs.len()), Ok(1));
}

#[test]
fn the_state_of_a_trainer_says_how_many_steps_there_are_and_whether_it_ended() {
    let state = |last: &str| {
        let row = |step: u64| format!("{{\"step\": {step}, \"loss\": 0.5, \"reward\": 0.25}}");
        let rows: Vec<String> = (1..=4).map(row).collect();
        let rows = rows.join(", ");
        format!("{{\"global_step\": 4, \"log_history\": [{rows}{last}], \"max_steps\": 160}}")
    };
    let open = run_of(state(""));
    assert_eq!((open.declared_steps, open.has_ended), (Some(160.0), false));
    let ended = run_of(state(", {\"step\": 4, \"train_runtime\": 12.5}"));
    assert_eq!((ended.declared_steps, ended.has_ended), (Some(160.0), true));
}

#[test]
fn an_evaluation_that_is_logged_late_is_no_restart() {
    let run = run_of(
        r#"{"step": 1, "reward": 0.5}
        {"step": 2, "reward": 0.5}
        {"step": 3, "reward": 0.5}
        {"step": 2, "eval_reward": 0.25}
        {"step": 4, "reward": 0.5}"#,
    );
    assert_eq!(run.restarts, [0; 0]);
    assert_eq!(points(&run, "reward.mean").len(), 4);
    assert_eq!(points(&run, "eval.reward"), [(2, 0.25)]);
    assert_eq!(run.steps, Some([1, 4]));
}

#[test]
fn rows_under_two_names_of_the_step_stay_rows() {
    let text = "{\"global_step\": 1, \"reward\": 0.5}\n{\"step\": 2, \"eval_reward\": 0.5}\n\
                {\"global_step\": 3, \"reward\": 0.5}\n{\"global_step\": 4, \"reward\": 0.5}\n";
    assert_eq!(points(&run_of(text), "reward.mean").len(), 3);
}

#[test]
fn one_metric_is_read_under_one_name() {
    let text = "{\"step\": 1, \"rollout_corr/kl\": 9, \"rollout_corr/k3_kl\": 0.5}\n\
                {\"step\": 2, \"rollout_corr/kl\": 9}\n\
                {\"step\": 3, \"rollout_corr/k3_kl\": 0.25, \"rollout_corr/kl\": 9}\n";
    let run = run_of(text);
    assert_eq!(points(&run, "mismatch.kl"), [(1, 0.5), (3, 0.25)]);
    assert_eq!(run.series["mismatch.kl"].name, "rollout_corr/k3_kl");
}

#[test]
fn a_name_of_ones_own_is_the_only_one_of_its_metric() {
    let text = r#"{"step": 1, "reward": 9, "my/score": 0.5}
        {"step": 2, "reward": 9, "my/score": 1}"#;
    let run = run_named(text, &[("my/score", "reward.mean")]);
    assert_eq!(values(&run, "reward.mean"), [0.5, 1.0]);
    assert!(run.unknown.contains("reward"));
    let error = runs_of(text, &[("my/score", "reward.meen")]).unwrap_err();
    assert!(
        error.contains("unknown metric `reward.meen`") && error.contains("reward.mean"),
        "{error}"
    );
}

#[test]
fn a_step_may_have_a_name_of_ones_own() {
    let own = [("batch", "step")];
    for text in
        ["batch,loss\n5,1\n7,2\n", "{\"batch\": 5, \"loss\": 1}\n{\"batch\": 7, \"loss\": 2}\n"]
    {
        assert_eq!(points(&run_named(text, &own), "loss"), [(5, 1.0), (7, 2.0)]);
    }
}

#[test]
fn accuracy_alone_is_not_that_of_preferences() {
    let alone = run_of(
        "{\"step\": 1, \"accuracy\": 0.5}\n{\"step\": 2, \"accuracy\": 0.5, \"reward\": 1}\n",
    );
    assert!(!alone.series.contains_key("pref.accuracy") && alone.unknown.contains("accuracy"));
    let pairs = "{\"step\": 1, \"accuracy\": 0.5, \"rewards_chosen_mean\": 1}\n";
    assert_eq!(values(&run_of(pairs.repeat(2)), "pref.accuracy"), [0.5]);
}

#[test]
fn the_last_line_of_a_log_may_be_cut() {
    let text = json_lines(&rows());
    let cut = &text[..text.len() - 20];
    let run = run_of(cut);
    assert_eq!(run.rows, 59);
    assert_eq!(run.warnings, ["the log is cut: its last row is left out"]);
    let table = csv(&rows());
    let run = run_of(&table[..table.trim_end().rfind(',').unwrap()]);
    assert_eq!((run.rows, run.warnings.len()), (59, 1));
    let state = trainer_state(&rows());
    let run = run_of(&state[..state.len() / 2]);
    assert!(run.rows > 20 && run.warnings.len() == 1, "{:?}", run.warnings);
    let two = run_of("{\"step\": 1, \"loss\": 1}\n{\"step\": 2, \"lo");
    assert_eq!((two.rows, &*two.format), (1, "JSON lines"));
    for bytes in [tensorboard(&rows()), wandb(&rows()[..50].to_vec())] {
        let run = run_of(&bytes[..bytes.len() - 100]);
        assert!(run.rows > 40);
        assert_eq!(run.warnings, ["the log is cut: its last row is left out"]);
    }
}

#[test]
fn broken_lines_are_left_out_and_counted() {
    let lines = json_lines(&rows());
    let broken = lines.replacen("\"step\": 7,", "\"step\" 7,", 1).replacen("\"step\": 9,", "", 1);
    let run = run_of(&broken);
    assert_eq!(run.warnings, ["line 7 is left out: expected JSON objects"]);
    let two = broken.replacen("{\"step\": 12", "{step: 12", 1);
    assert_eq!(run_of(two).warnings, ["2 lines are left out, line 7 first: expected JSON objects"]);
    let table = csv(&rows()).replacen("\n3,", "\n3,4,5,", 1);
    assert_eq!(run_of(table).warnings.len(), 1);
}

#[test]
fn a_damaged_record_is_left_out() {
    let mut log = tensorboard(&rows());
    let middle = log.len() / 2;
    // Inside an event: no length is damaged.
    let at = log.windows(9).skip(middle).position(|bytes| bytes == b"grad_norm").unwrap();
    log[middle + at] ^= 1;
    let run = run_of(&log);
    assert_eq!(run.rows, 60);
    assert_eq!(run.warnings, ["1 records are left out: their checksums are wrong"]);
    let mut log = wandb(&rows());
    let at = log.windows(9).skip(40_000).position(|bytes| bytes == b"grad_norm").unwrap();
    log[40_000 + at] ^= 1;
    let run = run_of(&log);
    assert_eq!(run.rows, 59);
    assert_eq!(run.warnings, ["1 records are left out: their checksums are wrong"]);
}

#[test]
fn wandb_keeps_the_configuration_and_nested_keys() {
    let history = [item(&["train/loss"], "\"NaN\""), item(&["rewards", "x"], "1.5")].concat();
    let step = encode::field(2, &encode::number_field(1, 7));
    let config = encode::field(4, &[item(&["beta"], "0.04"), item(&["a", "b"], "\"c\"")].concat());
    let records = [encode::field(17, &config), encode::field(2, &[history, step].concat())];
    let run = run_of(encode::wandb(&records));
    assert_eq!(run.config["beta"], 0.04);
    assert_eq!(run.config["a.b"], "c");
    assert_eq!((run.series["loss"].nonfinite(), run.steps), (1, Some([7, 7])));
    assert!(run.unknown.contains("rewards.x"));
}

#[test]
fn a_table_that_wandb_exports_has_several_runs() {
    let names = [
        "a - b - train/reward",
        "a - b - train/reward__MIN",
        "a - b - train/reward__MAX",
        "other - train/reward",
        "other - _step",
    ];
    let rows = r#""1","0.5","0.5","0.5","",""
        "2","0.75","0","1","0.25","2"
        "3","","","","NaN","3""#
        .replace("        ", "");
    let text = format!("\"Step\",\"{}\"\n{rows}", names.join("\",\""));
    let runs = runs_of(text, &[]).unwrap();
    let names: Vec<&str> = runs.iter().map(|run| run.name.as_str()).collect();
    assert_eq!(names, ["a - b", "other"]);
    assert_eq!(points(&runs[0], "reward.mean"), [(1, 0.5), (2, 0.75)]);
    assert_eq!(values(&runs[1], "reward.mean"), [0.25]);
    assert_eq!((runs[1].series["reward.mean"].nonfinite(), runs[1].rows), (1, 2));
    assert!(runs.iter().all(|run| run.unknown.is_empty()));
}

#[test]
fn one_object_is_one_row() {
    for text in [
        "{\"_step\": 60, \"train/reward\": 0.5, \"_wandb\": {\"runtime\": 7}}\n",
        "{\n  \"_step\": 60,\n  \"train/reward\": 0.5\n}",
    ] {
        let run = run_of(text);
        assert_eq!((run.rows, run.steps, &*run.format), (1, Some([60, 60]), "summary"));
        assert_eq!(run.warnings.len(), 1);
    }
}

#[test]
fn a_console_may_begin_like_another_format() {
    let printed = quoted_console(&rows());
    for start in [
        "{\"model\": \"m\"}\n",
        "{\"model\": \"m\"}\n{\"lr\": 1}\n",
        "{\n  \"model\": \"m\"\n}\n",
        "{'step': 'no'}\n",
        "[{\"model\": 1}]\n",
    ] {
        let run = run_of([start, &printed].concat());
        assert!((60..=61).contains(&run.rows), "{start}: {}", run.rows);
    }
}

#[test]
fn what_is_no_log_is_refused_with_what_was_found() {
    for (content, expected) in [
        (&b""[..], "is empty"),
        (b"just a text\nwithout metrics\n", "text without a row of metrics"),
        (b"\x1f\x8b\x08\x00\x00", "begins with 1f 8b 08 00"),
        (b"\xff\xfe{\x00", "UTF-16"),
        (b"loss,reward\n1,2\n", "CSV with a column `step`"),
        (b"{\n \"a\": [1,\n", "is it cut"),
    ] {
        let error = refused(content);
        assert!(error.contains(expected), "{error}");
    }
    let error = formats::read(Path::new("no/such/log"), &OwnNames::new()).unwrap_err().to_string();
    assert!(error.contains("no/such/log") && error.contains("cannot be read"), "{error}");
}

#[test]
fn the_log_that_says_most_is_read_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rows = rows();
    let part = |n: usize| rows[..n].to_vec();
    write(root, "run/checkpoint-20/trainer_state.json", trainer_state(&part(20)));
    write(root, "run/checkpoint-60/trainer_state.json", trainer_state(&rows));
    write(root, "run/runs/Jan01/events.out.tfevents.1", tensorboard(&part(30)));
    write(root, "run/wandb/run-1/run-1.wandb", wandb(&part(10)));
    write(root, "run/train.jsonl", "{\"prompt\": \"a\", \"answer\": 1}\n".repeat(3));
    write(root, "run/config.yaml", "algorithm: grpo\n");
    write(root, "run/.hydra/config.yaml", "algorithm: grpo\n");
    write(root, "run/training_args.json", "{}");
    write(root, "run/training_args.bin", "pickle");
    let runs = formats::read(root, &OwnNames::new()).unwrap();
    assert_eq!(runs.len(), 1);
    assert_eq!(runs[0].files, [root.join("run/checkpoint-60/trainer_state.json")]);
    assert_eq!(runs[0].rows, 60);
    let warning = runs[0].warnings.join("\n");
    for other in ["checkpoint-20/trainer_state.json", "runs/Jan01/events", "run-1.wandb"] {
        assert!(warning.contains(other), "{warning}");
    }
    let config = ["run/config.yaml", "run/.hydra/config.yaml", "run/training_args.json"];
    assert_eq!(runs[0].config_files, config.map(|path| root.join(path)));
}

#[test]
fn a_folder_may_hold_several_runs() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    let rows = rows();
    write(root, "logs/a.jsonl", json_lines(&rows));
    write(root, "logs/b.jsonl", json_lines(&rows[..20].to_vec()));
    write(root, "other/trainer_state.json", trainer_state(&rows));
    write(root, "third/wandb/run-1/run-1.wandb", wandb(&rows));
    write(root, "third/wandb/run-2/run-2.wandb", wandb(&rows));
    write(root, "third/wandb/run-2/files/config.yaml", "beta: {value: 0.04}\n");
    // Two event files of one launch, the second after a restart.
    write(root, "fourth/events.out.tfevents.1", tensorboard(&rows[..30].to_vec()));
    write(root, "fourth/events.out.tfevents.2", tensorboard(&rows[20..].to_vec()));
    let runs = formats::read(root, &OwnNames::new()).unwrap();
    let found: BTreeMap<String, u64> = runs
        .iter()
        .map(|run| (run.files[0].strip_prefix(root).unwrap().display().to_string(), run.rows))
        .collect();
    let expected = [
        ("fourth/events.out.tfevents.1", 60),
        ("logs/a.jsonl", 60),
        ("logs/b.jsonl", 20),
        ("other/trainer_state.json", 60),
        ("third/wandb/run-1/run-1.wandb", 60),
        ("third/wandb/run-2/run-2.wandb", 60),
    ];
    assert_eq!(found, expected.map(|(name, rows)| (name.to_owned(), rows)).into());
    let resumed = runs.iter().find(|run| run.files.len() == 2).unwrap();
    assert_eq!(resumed.restarts, [21]);
    let second = runs.iter().find(|run| run.files[0].ends_with("run-2/run-2.wandb")).unwrap();
    assert_eq!(second.config_files, [root.join("third/wandb/run-2/files/config.yaml")]);
}

#[test]
fn a_folder_without_a_log_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "notes.txt", "nothing");
    let error = formats::read(folder.path(), &OwnNames::new()).unwrap_err().to_string();
    assert!(error.contains("no log with a known metric: 1 files"), "{error}");
}

#[test]
fn a_log_of_endless_names_or_lines_is_read_in_bounded_memory() {
    let mut text = String::new();
    for step in 0..30_000 {
        writeln!(text, "{{\"step\": {step}, \"rewards/r{step}/mean\": 1, \"x{step}\": 2}}")
            .unwrap();
    }
    let run = run_of(text);
    assert!(run.series.len() <= 600 && run.unknown.len() <= 20_000);
    assert_eq!(run.warnings.len(), 1);
    let long = format!("{{\"step\": 1, \"loss\": 1, \"text\": \"{}\"}}\n", "x".repeat(17 << 20));
    let run = run_of(json_lines(&rows()) + &long);
    assert_eq!((run.rows, run.warnings.len()), (60, 1));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_read_or_refused(
        start in prop::sample::select(vec![
            &b""[..], b":W&B\xe1\xbe\x00", b"{\"step\":", b"{'loss':", b"step:1 - ", b"step,loss\n",
            b"[{", b"{\"log_history\":[", b"\xef\xbb\xbf", b"\x1b[",
        ]),
        bytes in prop::collection::vec(any::<u8>(), 0..2000),
    ) {
        formats::fuzz(&[start, &bytes].concat());
    }

    #[test]
    fn any_signs_of_a_log_are_read_or_refused(
        parts in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", "(", ")", "\"", "'", ":", ",", " ", "\n", "\r", "\\", "\\u00e9",
            "step", "loss", "1", "-1e999", "nan", "NaN", "null", "None", "np.float64(", " - ",
            "step:1", "é", "log_history", "data", ";", "\t", "__MIN", "•", "=== Step 1/2 ===",
            "\u{1b}[0m", "\u{feff}", "eval_", "train_runtime", "99999999999999999999",
        ]), 0..200),
    ) {
        formats::fuzz(parts.concat().as_bytes());
    }

    #[test]
    fn damaged_logs_are_read_or_refused(
        format in 0..every_format().len(),
        cut in 0.0..1.0,
        damage in prop::collection::vec((0.0..1.0, any::<u8>()), 0..8),
    ) {
        let (_, mut bytes, _) = every_format().swap_remove(format);
        let place = |share: f64, length: usize| ((length as f64) * share) as usize;
        for (at, byte) in damage {
            let at = place(at, bytes.len());
            bytes[at] = byte;
        }
        formats::fuzz(&bytes);
        bytes.truncate(place(cut, bytes.len()));
        formats::fuzz(&bytes);
    }
}

#[cfg(feature = "parquet")]
#[test]
fn damaged_parquet_is_refused() {
    let table = parquet_table(&rows());
    for length in (4..table.len()).step_by(97) {
        let error = refused(&table[..length]);
        assert!(error.contains("cannot be read as parquet"), "{error}");
    }
    for at in (4..table.len()).step_by(41) {
        let mut damaged = table.clone();
        damaged[at] ^= 0x55;
        // Values have no checksum: what can be read is.
        runs_of(damaged, &[]).ok();
    }
}

#[cfg(not(feature = "parquet"))]
#[test]
fn parquet_needs_its_feature() {
    assert!(refused(b"PAR1").contains("feature `parquet`"));
}
