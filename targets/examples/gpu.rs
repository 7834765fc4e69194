//! What `tests/gpu` asks of libtorch, one question a process: is a reference right at a place, is a
//! historical bug found and named there, what does a large batch cost.

use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use shakedown::author::Component;
use shakedown::engine::check::run;
use shakedown::engine::subject::Budget;
use shakedown::place::{Device, Dtype, Place};
use shakedown::report::{ComponentReport, Diagnosis, Status};
use shakedown_targets::references::{self, Reference};
use shakedown_targets::{entropy, log_probs, policy, zoo};
use shakedown_tch::{device, kind};
use tch::{Kind, Tensor};

/// The cases of one set of options, besides the corners, and the most sets.
const CASES: u64 = 34;
const SETS: u64 = 12;

/// What one set may take: a busy machine must not keep the first one from its corners.
const ONE_SET: Duration = Duration::from_secs(60);

/// How many cases, and what came of them; the error is what is wrong.
type Answer = Result<(u64, String), String>;

/// The default options, then drawn ones, as many sets as there is time for and one at least.
fn keeps_every_invariant(reference: &Reference, place: Place, limit: Duration) -> Answer {
    let begun = Instant::now();
    let (mut cases, mut sets) = (0, 0);
    while sets == 0 || (sets < SETS && begun.elapsed() < limit) {
        let mut subject = reference(sets);
        let budget = Budget { cases: CASES, seed: sets, time: Some(limit.max(ONE_SET)) };
        let report = run(&mut subject, place, &budget, &|_| ()).map_err(|e| e.to_string())?;
        if report.status != Status::Pass {
            return Err(format!("{} under {:?}", wrong(&report), subject.options));
        }
        (cases, sets) = (cases + report.cases, sets + 1);
    }
    // Where time is short, the corners at least have to be seen.
    let said = format!("no finding, sets of options: {sets}");
    if cases < 20 { Err(format!("only {cases} cases")) } else { Ok((cases, said)) }
}

/// Whatever kept a component from passing, in one line.
fn wrong(report: &ComponentReport) -> String {
    let found = report.findings.iter().map(|one| format!("{}: {}", one.invariant, one.found));
    let all: Vec<String> = report.reason.iter().cloned().chain(found).collect();
    all.join("; ").replace(['\n', '\t'], " ")
}

/// Whether a bug is found by all the invariants that it names, and diagnosed by name there.
fn is_found(name: &str, device: Device, limit: Duration) -> Answer {
    let bug = zoo::all().into_iter().find(|(known, _)| *known == name);
    let (_, mut bug) = bug.ok_or(format!("there is no bug {name}"))?;
    bug.place.device = device;
    let budget = Budget { time: Some(limit), ..Budget::default() };
    let report = bug.check(&budget).map_err(|error| error.to_string())?;
    let is_named = |one: &Diagnosis| one.fault.split(' ').next() == Some(bug.fault);
    for invariant in bug.found_by {
        match report.findings.iter().find(|finding| finding.invariant == *invariant) {
            None => return Err(format!("{invariant} does not find it: {}", wrong(&report))),
            Some(finding) if !finding.diagnosis.iter().any(is_named) => {
                return Err(format!("{invariant} does not say `{}`", bug.fault));
            }
            Some(_) => {}
        }
    }
    Ok((report.cases, format!("found, named `{}`", bug.fault)))
}

/// What a function costs on `[N, T, V]` logits, against one read of them, without and with the
/// gradient; and whether it still is right there: the last row by itself, in f64.
fn cost(what: &str, place: Place, shape: [i64; 3]) -> Answer {
    // Also loads the half of libtorch that CUDA needs.
    let lacks = log_probs::component(Default::default()).prepare(place);
    if let Some(why) = lacks.map_err(|error| error.to_string())? {
        return Err(why);
    }
    let (device, kind) = (device(place), kind(place.dtype));
    tch::manual_seed(0);
    let mut logits = Tensor::randn(shape, (kind, device));
    let logits = logits.g_mul_scalar_(3.0).set_requires_grad(true);
    let [rows, tokens, vocabulary] = shape;
    let inputs = Other {
        tokens: Tensor::randint(vocabulary, [rows, tokens], (Kind::Int64, device)),
        advantages: Tensor::randn([rows, tokens], (Kind::Float, device)),
    };
    let work = |logits: &Tensor, inputs: &Other| match what {
        "token-log-probs" => {
            log_probs::token_log_probs(logits, &inputs.tokens, &Default::default())
        }
        "token-entropy" => entropy::token_entropy(logits, &Default::default()),
        _ => loss(logits, inputs),
    };
    let gradient = |output: &Tensor, logits: &Tensor| {
        Tensor::run_backward(&[output.sum(None)], &[logits], false, false).remove(0)
    };

    let read = median(device, || drop(tch::no_grad(|| logits.sum(Kind::Float))));
    let before = memory(device);
    let mut said = format!("1 read {}", milliseconds(read));
    for with_gradient in [false, true] {
        let took = median(device, || match with_gradient {
            true => drop(gradient(&work(&logits, &inputs), &logits)),
            false => drop(tch::no_grad(|| work(&logits, &inputs))),
        });
        let reads = took.as_secs_f64() / read.as_secs_f64();
        let peak = match (memory(device), before) {
            (Some(now), Some(before)) => format!("{:.1} GiB", (now - before) as f64 / 1024.0),
            _ => "? GiB".to_owned(),
        };
        let which = if with_gradient { "with gradient" } else { "forward" };
        said += &format!("; {which} {} = {reads:.1} reads, {peak}", milliseconds(took));
    }

    let output = work(&logits, &inputs);
    let by_rows = gradient(&output, &logits).narrow(0, rows - 1, 1).to_kind(Kind::Double);
    let alone = |row| {
        let logits = logits.detach().narrow(0, row, 1).to_kind(Kind::Double);
        let logits = logits.set_requires_grad(true);
        let inputs = Other {
            tokens: inputs.tokens.narrow(0, row, 1),
            advantages: inputs.advantages.narrow(0, row, 1).to_kind(Kind::Double),
        };
        let output = work(&logits, &inputs);
        let gradient = gradient(&output, &logits);
        (output.detach(), gradient)
    };
    let (expected, expected_gradient) = alone(rows - 1);
    // A loss is the mean of those of its rows, and a row has its share of the gradient.
    let off = if output.dim() == 0 {
        let others = (0..rows - 1).map(|row| alone(row).0);
        let sum = others.fold(expected, |sum, one| sum + one);
        apart(&output, &(sum / rows as f64)) + apart(&(by_rows * rows as f64), &expected_gradient)
    } else {
        let last = output.narrow(0, rows - 1, 1);
        apart(&last, &expected) + apart(&by_rows, &expected_gradient)
    };
    // The gradient has the format of the logits.
    let bound = if place.dtype == Dtype::F32 { 1e-4 } else { 1e-2 };
    if off.is_nan() || off > bound {
        return Err(format!("off by {off:.1e} of the largest number; {said}"));
    }
    Ok((1, said))
}

/// What goes with the logits: `[N, T]` each.
struct Other {
    tokens: Tensor,
    advantages: Tensor,
}

/// The loss of the policy that has these logits, just after the tokens were sampled.
fn loss(logits: &Tensor, inputs: &Other) -> Tensor {
    let log_probs = log_probs::token_log_probs(logits, &inputs.tokens, &Default::default());
    let inputs = policy::Inputs {
        log_probs: &log_probs,
        old_log_probs: &(log_probs.detach() - 0.05),
        ref_log_probs: None,
        advantages: &inputs.advantages,
        mask: &inputs.tokens.ones_like().to_kind(Kind::Bool),
    };
    policy::policy_loss(&inputs, &Default::default()).loss
}

/// The largest difference, as a share of the largest number; NaN where one is not a number.
fn apart(found: &Tensor, expected: &Tensor) -> f64 {
    let difference = (found.to_kind(Kind::Double) - expected).abs().max();
    (difference / expected.abs().max()).double_value(&[])
}

/// The median time of five runs after one.
fn median(device: tch::Device, mut work: impl FnMut()) -> Duration {
    let wait = || {
        if let tch::Device::Cuda(index) = device {
            tch::Cuda::synchronize(index as i64);
        }
    };
    let mut times: Vec<Duration> = (0..6)
        .map(|_| {
            wait();
            let begun = Instant::now();
            work();
            wait();
            begun.elapsed()
        })
        .skip(1)
        .collect();
    times.sort();
    times[2]
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}

/// The MiB that are in use. What libtorch once has of a GPU it keeps for later, so that this is the
/// most that was in use; on the CPU the system keeps that number.
fn memory(device: tch::Device) -> Option<i64> {
    if device == tch::Device::Cpu {
        let status = std::fs::read_to_string("/proc/self/status").ok()?;
        let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
        return Some(line.split_whitespace().nth(1)?.parse::<i64>().ok()? / 1024);
    }
    let query = ["-i", "0", "--query-gpu=memory.used", "--format=csv,noheader,nounits"];
    let said = Command::new("nvidia-smi").args(query).output().ok()?;
    String::from_utf8_lossy(&said.stdout).trim().parse().ok()
}

fn answer(words: &[&str]) -> Answer {
    let place = |text: &str| text.parse::<Place>().map_err(|error| error.to_string());
    let number = |text: &str| text.parse::<i64>().map_err(|error| format!("{text}: {error}"));
    let seconds = |text: &str| Ok::<_, String>(Duration::from_secs(number(text)?.unsigned_abs()));
    match words {
        ["reference", contract, at, limit] => {
            let known = references::find(contract);
            let reference = known.ok_or(format!("there is no reference for {contract}"))?;
            keeps_every_invariant(&reference, place(at)?, seconds(limit)?)
        }
        ["bug", name, at, limit] => is_found(name, place(at)?.device, seconds(limit)?),
        ["scale", what, at, rows, tokens, vocabulary] => {
            cost(what, place(at)?, [number(rows)?, number(tokens)?, number(vocabulary)?])
        }
        _ => Err("gpu list | reference CONTRACT PLACE SECONDS | bug NAME PLACE SECONDS | \
                  scale FUNCTION PLACE ROWS TOKENS VOCABULARY"
            .to_owned()),
    }
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    if words == ["list"] {
        // What there is to ask, one a line; a contract without a reference on tensors too.
        for id in shakedown::contracts::IDS {
            let has = references::find(id).is_some();
            println!("{} {id}", if has { "reference" } else { "none" });
        }
        // That of `policy-update` trains a policy a thousand times, which takes a GPU too long.
        let bugs = zoo::all().into_iter().map(|(name, _)| name);
        bugs.filter(|name| *name != "moved_reference").for_each(|name| println!("bug {name}"));
        return ExitCode::SUCCESS;
    }
    let (answer, code) = match answer(&words) {
        Ok((cases, said)) => (format!("{cases}\t{said}"), ExitCode::SUCCESS),
        Err(why) => (format!("\t{why}"), ExitCode::FAILURE),
    };
    println!("{answer}");
    code
}
