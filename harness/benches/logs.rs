//! How fast logs are read: a million rows of 20 metrics, 600 MB, may take a minute and 200 MB.
//!
//! `cargo bench --bench logs` reads logs of 20,000 rows. `SHAKEDOWN_ROWS=1000000` makes them
//! longer; the peak of memory is printed where the system tells it.

use std::fs::{self, File};
use std::io::{BufWriter, Write as _};
use std::path::{Path, PathBuf};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use shakedown_lint::runs::formats::{self, OwnNames};

const NAMES: [&str; 20] = [
    "reward",
    "reward_std",
    "loss",
    "grad_norm",
    "learning_rate",
    "kl",
    "entropy",
    "completions/mean_length",
    "completions/max_length",
    "completions/min_length",
    "completions/clipped_ratio",
    "frac_reward_zero_std",
    "clip_ratio/region_mean",
    "clip_ratio/low_mean",
    "clip_ratio/high_mean",
    "rewards/accuracy/mean",
    "rewards/accuracy/std",
    "rewards/format/mean",
    "sampling/sampling_logp_difference/mean",
    "num_tokens",
];

/// A number with all its digits, another one for each cell.
fn number(row: usize, column: usize) -> f64 {
    0.5 + 0.5 * ((row * NAMES.len() + column) as f64).sin()
}

fn cells(row: usize, cell: impl Fn(&str, f64) -> String) -> String {
    let one = |(column, name): (usize, &&str)| cell(name, number(row, column));
    NAMES.iter().enumerate().map(one).collect::<Vec<_>>().join(", ")
}

/// The file that a writer of rows fills.
fn written(folder: &Path, name: &str, rows: usize, row: impl Fn(usize) -> String) -> PathBuf {
    let path = folder.join(name);
    let mut file = BufWriter::new(File::create(&path).unwrap());
    (0..rows).for_each(|index| writeln!(file, "{}", row(index)).unwrap());
    path
}

fn reading(criterion: &mut Criterion) {
    let rows = std::env::var("SHAKEDOWN_ROWS").ok().map_or(20_000, |rows| rows.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let json = |name: &str, value: f64| format!("\"{name}\": {value}");
    let python = |name: &str, value: f64| format!("'{name}': {value}");
    let plain = |_: &str, value: f64| value.to_string();
    let table = |row| match row {
        0 => format!("step, {}", NAMES.join(", ")),
        _ => format!("{row}, {}", cells(row, plain)),
    };
    let printed = |row| format!("Global step {row}: {{{}}}", cells(row, python));
    let lines = |row| format!("{{\"step\": {row}, {}}}", cells(row, json));
    let files = [
        written(folder.path(), "lines.jsonl", rows, lines),
        written(folder.path(), "table.csv", rows, table),
        written(folder.path(), "console.log", rows, printed),
    ];
    let mut group = criterion.benchmark_group("logs");
    group.sample_size(10);
    for path in files {
        group.throughput(Throughput::Bytes(fs::metadata(&path).unwrap().len()));
        group.bench_function(path.extension().unwrap().to_str().unwrap(), |bencher| {
            bencher.iter(|| formats::read(&path, &OwnNames::new()).unwrap());
        });
    }
    group.finish();
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    status.lines().filter(|line| line.starts_with("VmHWM")).for_each(|line| println!("{line}"));
}

criterion_group!(logs, reading);
criterion_main!(logs);
