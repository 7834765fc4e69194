//! Components that behave badly, each in a real process: every one is a finding or a clear error,
//! and the other components of its manifest are checked all the same.

#[path = "../support/behaviour.rs"]
pub(crate) mod behaviour;

use std::fmt::Write as _;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use shakedown::contracts::group_advantage::{GroupAdvantage, GroupAdvantageCase};

use super::FORK;
use crate::folder::Folder;
use crate::process::{is_running, wait_until};
use crate::report::{Report, Status, check};
use behaviour::{
    HASTY, INTERPRETER, PATIENT, PYTHON, assert_error, assert_finds, assert_found,
    assert_found_from_three, assert_hangs, assert_passes, assert_passing, check_one, has,
    has_python, make_executable, write_manifest,
};

// ---- Raises.

#[test]
fn raising_is_a_finding_with_the_traceback() {
    assert_finds(
        "python:bad:raises",
        &[("does-not-raise", "raised ValueError: 3 rewards are too many")],
    );
    assert_finds("python:bad:raises", &[("does-not-raise", "bad.py\", line ")]);
}

#[test]
fn raising_anything_is_a_finding() {
    let target = "python:bad:raises_what_is_no_exception";
    assert_finds(target, &[("does-not-raise", "raised KeyboardInterrupt")]);
    let target = "python:bad:raises_without_words";
    assert_finds(target, &[("does-not-raise", "raised Mute: (its message cannot be shown)")]);
    assert_finds("python:bad:raises_a_novel", &[("does-not-raise", "xxxx… (1000000 characters)")]);
    let lines = "99\n… 78 more lines …\n178";
    assert_finds("python:bad:raises_200_000_lines", &[("does-not-raise", lines)]);
}

#[test]
fn texts_that_are_too_long_to_be_judged_are_a_finding() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    folder.write(
        "manifest.yaml",
        format!(
            "version: 1\npython: {{path: [{PYTHON:?}], fork: {FORK}, {PATIENT}}}\ncomponents:\n\
             - {{name: bad, contract: completion-decoder, \
             target: python:bad:texts_of_10_megabytes}}\n"
        ),
    );
    let (_, report) = check(&folder, &["--cases", "1", "--only", "bad/well-formed"]);
    let words = "`texts`[0] has 10000000 bytes, expected 1048576 at most";
    assert_found(report.component("bad"), &[("well-formed", words)]);
}

#[test]
fn an_empty_name_of_a_virtual_environment_is_none() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    write_manifest(&folder, PATIENT, "python:bad:right");
    let arguments = ["check", "manifest.yaml", "--only", "bad/finite", "--cases", "1"];
    let mut command = folder.command(&arguments);
    let ran = command.env("VIRTUAL_ENV", "").output().unwrap();
    assert_eq!(ran.status.code(), Some(0), "{}", String::from_utf8_lossy(&ran.stdout));
}

#[test]
fn endless_recursion_is_a_finding() {
    assert_finds("python:bad:recurses", &[("does-not-raise", "raised RecursionError")]);
}

#[test]
fn exhausted_memory_is_a_finding() {
    assert_finds("python:bad:exhausts_memory", &[("does-not-raise", "raised MemoryError")]);
}

#[test]
#[cfg(target_os = "linux")]
fn a_limit_on_memory_is_kept_and_named() {
    assert_passes("python:bad:takes_400_megabytes");
    for (function, invariant, words) in [
        ("takes_400_megabytes", "does-not-raise", "raised MemoryError:  (under `memory_mb: 200`)"),
        ("segfaults", "does-not-crash", "signal 11 (SIGSEGV) (under `memory_mb: 200`)"),
    ] {
        if has_python() {
            let folder = Folder::new();
            let python = format!("{PATIENT}, memory_mb: 200");
            let (_, report) = check_one(&folder, &python, &format!("python:bad:{function}"));
            assert_found_from_three(report.component("bad"), &[(invariant, words)]);
            assert_passing(&report, "right");
        }
    }
}

// ---- Does not come back.

#[test]
fn hanging_is_a_finding() {
    assert_hangs("python:bad:hangs");
}

#[test]
fn hanging_deaf_with_a_child_is_a_finding() {
    assert_hangs("python:bad:hangs_deaf");
}

#[test]
fn exit_is_a_finding() {
    assert_finds("python:bad:exits", &[("does-not-crash", "its process ended: exit status 0")]);
}

#[test]
fn os_exit_is_a_finding() {
    assert_finds("python:bad:leaves", &[("does-not-crash", "its process ended: exit status 0")]);
}

#[test]
fn a_segmentation_fault_is_a_finding() {
    assert_finds("python:bad:segfaults", &[("does-not-crash", "killed by signal 11 (SIGSEGV)")]);
}

#[test]
fn a_kill_is_a_finding() {
    assert_finds("python:bad:kills_itself", &[("does-not-crash", "killed by signal 9 (SIGKILL)")]);
}

#[test]
fn the_death_of_the_whole_worker_is_a_finding() {
    assert_finds("python:bad:kills_its_parent", &[("does-not-crash", "killed by signal 9")]);
}

#[test]
fn closing_the_streams_of_the_protocol_is_a_finding() {
    assert_finds("python:bad:closes_everything", &[("does-not-crash", "")]);
}

#[test]
fn what_is_compiled_at_its_first_call_may_take_as_long_as_loading() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (_, report) = check_one(&folder, HASTY, "python:bad:warms_up_for_long");
    let expected = ("within-time-limit", "did not answer within 300 ms");
    assert_found(report.component("bad"), &[expected]);
    let folder = Folder::new();
    let python = format!("{HASTY}, compile: true, load_timeout_ms: 30000");
    let (_, report) = check_one(&folder, &python, "python:bad:warms_up_for_long");
    assert_passing(&report, "bad");
}

#[test]
fn the_first_call_of_a_process_has_longer() {
    if !has_python() {
        return;
    }
    let (_, report) = check_one(&Folder::new(), HASTY, "python:bad:warms_up");
    assert_passing(&report, "bad");
    let warnings = &report.component("bad").warnings;
    assert!(!warnings.iter().any(|warning| warning.contains("took longer")), "{warnings:?}");
}

#[test]
fn a_call_that_is_slow_once_is_no_finding() {
    if !has_python() {
        return;
    }
    let (_, report) = check_one(&Folder::new(), HASTY, "python:bad:is_slow_once");
    assert_passing(&report, "bad");
    let warnings = &report.component("bad").warnings;
    let slow = "a call took longer than 300 ms, and less when repeated".to_owned();
    assert!(warnings.contains(&slow), "{warnings:?}");
}

#[test]
fn compiled_functions_run_as_they_are_written_unless_asked_for() {
    if !has("torch") {
        return;
    }
    let folder = Folder::new();
    folder.write(
        "mine.py",
        "import torch\nfrom bad_arrays import right\n\n@torch.compile\n\
         def compiled(rewards, groups, epsilon):\n    \
         assert not torch.compiler.is_compiling()\n    \
         return right(rewards, groups, epsilon)\n",
    );
    let python = "arrays: torch, timeout_ms: 5000";
    let (ran, report) = check_one(&folder, python, "python:mine.py:compiled");
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let about = |name: &str| {
        let warnings = &report.component(name).warnings;
        warnings.iter().filter(|warning| warning.contains("torch.compile")).count()
    };
    assert_eq!((about("bad"), about("right")), (1, 0), "{:?}", report.component("bad").warnings);
}

// ---- Comes back with something else.

#[test]
fn a_wrong_type_is_a_finding() {
    for (function, words) in [
        ("nothing", "returned None for `advantages`"),
        ("a_string", "returned a str for `advantages`"),
        ("strings", "advantages"),
        ("complex_numbers", "found a complex"),
        ("a_set", "returned a set for `advantages`"),
        ("a_huge_integer", "too large"),
    ] {
        assert_finds(&format!("python:bad:{function}"), &[("well-formed", words)]);
    }
}

#[test]
fn a_wrong_shape_is_a_finding() {
    for (function, words) in [
        ("nested", "`advantages`: expected 1 dimensions, found shape [3, 1]"),
        ("ragged", "nested unevenly, item 0 is [1], item 1 is []"),
        ("too_short", "`advantages` has shape [2], expected [3]"),
        ("a_number", "`advantages`: expected 1 dimensions, found shape []"),
    ] {
        assert_finds(&format!("python:bad:{function}"), &[("well-formed", words)]);
    }
}

#[test]
fn an_output_of_600_megabytes_is_a_finding_that_costs_the_harness_nothing() {
    if !has_python() {
        return;
    }
    for (function, size, kind) in [
        ("returns_600_megabytes", "shape [75000000] is 600000000 bytes", "a list"),
        ("returns_600_megabytes_in_rows", "shape [75000, 1000] is 600000000 bytes", "a list"),
        ("returns_600_megabytes_in_an_array", "shape [75000000] is 600000000 bytes", "an array"),
        ("returns_600_megabytes_ragged", "the numbers are more than 2097152", "a list"),
    ] {
        let folder = Folder::new();
        write_manifest(&folder, PATIENT, &format!("python:bad:{function}"));
        let arguments = ["check", "manifest.yaml", "--only", "bad/well-formed", "--cases", "1"];
        let started = Instant::now();
        let (stdout, peak_kb) = peak_memory_kb(folder.command(&arguments));
        let words = format!("returned {kind} for `advantages`: ");
        assert!(stdout.contains(size), "expected {size:?} in:\n{stdout}");
        assert!(stdout.contains(&words), "expected {words:?} in:\n{stdout}");
        assert!(stdout.contains("a reply has at most 16777216 bytes"), "{stdout}");
        assert!(peak_kb < 200_000, "the harness took {peak_kb} kB");
        // Only the ragged one is read as far as a reply may go.
        let limit = Duration::from_secs(if function.ends_with("ragged") { 240 } else { 60 });
        assert!(started.elapsed() < limit, "it took {:?}", started.elapsed());
    }
}

/// What a command prints, and how much memory it ever took, without its children; 0 where the
/// system does not say.
fn peak_memory_kb(mut command: Command) -> (String, u64) {
    let mut child = command.stdout(std::process::Stdio::piped()).spawn().unwrap();
    let mut stdout = child.stdout.take().unwrap();
    let text = std::thread::spawn(move || std::io::read_to_string(&mut stdout).unwrap());
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().unwrap().is_none() {
        let status = std::fs::read_to_string(&status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok());
        peak = now.map_or(peak, |now: u64| peak.max(now));
        std::thread::sleep(Duration::from_millis(5));
    }
    (text.join().unwrap(), peak)
}

#[test]
fn an_answer_of_its_own_to_the_harness_is_a_finding() {
    let words = "its reply does not say which request it answers";
    assert_finds("python:bad:answers_by_itself", &[("well-formed", words)]);
}

#[test]
fn a_missing_output_is_a_finding() {
    let words = "returned a dict without `advantages` (it has `advantage`, `mean`)";
    assert_finds("python:bad:another_name", &[("well-formed", words)]);
}

#[test]
fn nan_and_infinity_are_findings() {
    for (function, words) in
        [("not_a_number", "] is NaN, expected "), ("infinite", "] is inf, expected ")]
    {
        // The first has both numbers.
        let expected =
            ["oracle", "finite", "constant-group", "singleton"].map(|invariant| (invariant, words));
        assert_finds(&format!("python:bad:{function}"), &expected);
    }
}

#[test]
fn a_wrong_dtype_is_a_finding() {
    for library in ["numpy", "torch"] {
        if has(library) {
            assert_finds_on_arrays(library, "integers", "`advantages` has dtype I64");
            assert_finds_on_arrays(library, "complex_numbers", "dtype complex");
            assert_finds_on_arrays(library, "a_column", "found shape [3, 1]");
        }
    }
    if has("numpy") {
        assert_finds_on_arrays("numpy", "objects", "dtype object");
    }
}

// ---- Leaves traces.

#[test]
fn changed_inputs_are_a_finding() {
    let words = "`rewards` is not the same after the call as before";
    assert_finds("python:bad:changes_its_inputs", &[("inputs-unchanged", words)]);
    let words = "`groups` is not the same after the call as before";
    assert_finds("python:bad:drops_an_input_row", &[("inputs-unchanged", words)]);
}

#[test]
fn changed_arrays_are_a_finding() {
    for library in ["numpy", "torch"] {
        if has(library) {
            let report = check_on_arrays(library, "changes_its_inputs");
            let words = "`rewards` is not the same after the call as before";
            assert_found(report.component("bad"), &[("inputs-unchanged", words)]);
        }
    }
}

#[test]
fn writing_to_an_input_is_one_finding_and_its_gradient_another() {
    if !has("torch") {
        return;
    }
    let findings = |function: &str| {
        let folder = Folder::new();
        let text = format!(
            "version: 1\npython: {{path: [{PYTHON:?}], timeout_ms: 20000, fork: {FORK}}}\n\
             components:\n\
             - {{name: kl, contract: kl-estimate, target: \"python:in_place:{function}\"}}\n"
        );
        folder.write("manifest.yaml", text);
        let (_, report) = check(&folder, &["--cases", "16"]);
        let found = report.component("kl").findings.iter();
        found.map(|finding| finding.invariant.clone()).collect::<Vec<_>>()
    };
    assert_eq!(findings("k3"), ["inputs-unchanged"]);
    let found = findings("k3_with_a_wrong_gradient");
    assert!(found.iter().any(|one| one == "inputs-unchanged"), "{found:?}");
    assert!(found.iter().any(|one| one == "gradient"), "{found:?}");
    assert!(!found.iter().any(|one| one == "does-not-raise"), "{found:?}");
}

#[test]
fn moving_to_cuda_at_a_place_without_it_is_said() {
    if has("torch") {
        let report = check_on_arrays("torch", "moves_to_cuda");
        let words = "the component moves tensors to CUDA itself, while this place is the CPU";
        assert_found_from_three(report.component("bad"), &[("does-not-raise", words)]);
        let folder = Folder::new();
        folder.write("mine.py", "import torch\nSCALE = torch.ones(1).cuda()\n");
        assert_error(&folder, "arrays: torch", "python:mine.py:f", &[words]);
    }
}

#[test]
fn a_component_that_remembers_is_not_deterministic() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (_, report) = check_one(&folder, PATIENT, "python:bad:counts_its_calls");
    let bad = report.component("bad");
    let found = bad.findings.iter().find(|finding| finding.invariant == "deterministic");
    let found = &found.expect("it is a finding").found;
    for said in [" the first time and ", " apart; ", "`deterministic: false`"] {
        assert!(found.contains(said), "{found}");
    }
}

// ---- More than one at a time.

#[test]
fn raising_does_not_hide_a_segmentation_fault() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, PATIENT, "python:bad:raises_and_segfaults");
    assert_eq!(ran.code, 1);
    let expected = [
        ("does-not-raise", "raised ValueError: three rewards"),
        ("does-not-crash", "killed by signal 11"),
    ];
    assert_found(report.component("bad"), &expected);
}

#[test]
fn five_failures_of_one_component_are_all_found() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let (ran, report) = check_one(&folder, HASTY, "python:bad:everything");
    assert_eq!(ran.code, 1);
    let expected = [
        ("does-not-raise", "raised ValueError: three rewards"),
        ("within-time-limit", "did not answer within 300 ms"),
        ("does-not-crash", "exit status 7"),
        ("well-formed", "`advantages` has shape [1], expected [6]"),
        ("oracle", "advantages[0] is NaN"),
        ("finite", "advantages[0] is NaN"),
        ("constant-group", "advantages[0] is NaN"),
    ];
    assert_found(report.component("bad"), &expected);
}

// ---- Odd, but right.

#[test]
fn prints_are_no_matter() {
    assert_passes("python:bad:prints");
    assert_passes("python:bad:prints_from_a_child");
}

#[test]
fn standard_streams_are_the_component_s_own() {
    assert_passes("python:bad:reads_standard_input");
    assert_passes("python:bad:closes_standard_streams");
}

#[test]
fn odd_habits_are_no_findings() {
    for function in ["goes_elsewhere", "forks", "leaves_threads_behind", "sets_an_alarm"] {
        assert_passes(&format!("python:bad:{function}"));
    }
}

#[test]
fn flags_may_be_of_any_type() {
    for library in ["list", "numpy", "torch"] {
        if !has_python() || (library != "list" && !has(library)) {
            continue;
        }
        let folder = Folder::new();
        let mut text = format!(
            "version: 1\npython: {{path: [{PYTHON:?}], arrays: {library}, timeout_ms: 20000, \
             fork: {FORK}}}\ncomponents:\n"
        );
        let types = ["booleans", "integers", "bytes_", "floats"];
        for function in types.into_iter().chain(["counts"]) {
            let target = format!("\"python:flags:{function}\"");
            let contract = "contract: completion-mask";
            let _ = writeln!(text, "- {{name: {function}, {contract}, target: {target}}}");
        }
        folder.write("manifest.yaml", text);
        let (_, report) = check(&folder, &["--cases", "64"]);
        for function in types {
            assert_passing(&report, function);
        }
        let counts = report.component("counts");
        assert_eq!(counts.status, Status::Fail, "{counts:#?}");
        let found = counts.findings.iter().any(|finding| finding.invariant == "zero-or-one");
        assert!(found, "{counts:#?}");
    }
}

#[test]
fn reward_functions_of_libraries_need_no_adapter() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let mut text = format!(
        "version: 1\npython: {{path: [{PYTHON:?}], timeout_ms: 20000, fork: {FORK}}}\ncomponents:\n"
    );
    let functions = [
        ("plain", "trl"),
        ("own_column", "trl, answer_columns: [solution_of_the_book]"),
        ("keeps_its_defaults", "trl"),
        ("awaited", "trl"),
        ("chat", "trl-chat"),
        ("compute_score", "verl"),
        ("misspelt", "verl"),
        ("needs_a_difficulty", "trl"),
    ];
    for (function, signature) in functions {
        let target = format!("\"python:signatures:{function}\"");
        let rest = format!("target: {target}, signature: {signature}");
        let _ = writeln!(text, "- {{name: {function}, contract: reward-function, {rest}}}");
    }
    folder.write("manifest.yaml", text);
    let (_, report) = check(&folder, &["--cases", "64"]);
    for (function, _) in &functions[..6] {
        assert_passing(&report, function);
    }
    let keeps = "`max_len` keeps its default 1024, `tokenizer` keeps its default None: ";
    for (function, _) in &functions[..6] {
        let warnings = &report.component(function).warnings;
        let count = warnings.iter().filter(|warning| warning.starts_with(keeps)).count();
        assert_eq!(count, usize::from(*function == "keeps_its_defaults"), "{warnings:?}");
    }
    for (name, words) in [
        ("misspelt", "did you mean `ground_truth`?"),
        ("needs_a_difficulty", "requires `difficulty`; TRL gives prompts, completions"),
        ("needs_a_difficulty", "`answer_columns: [difficulty]` if it holds the gold answers"),
    ] {
        let refused = report.component(name);
        assert_eq!(refused.status, Status::Error, "{refused:#?}");
        let reason = refused.reason.as_deref().unwrap_or("");
        assert!(reason.contains(words), "{reason}");
    }
}

#[test]
fn defaults_that_stay_are_listed_once() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let text = "from bad import right\n\n\
                def mine(rewards, groups, epsilon=1e-4, *, max_len=1024):\n    \
                return right(rewards, groups, epsilon)\n";
    folder.write("mine.py", text);
    let (_, report) = check_one(&folder, PATIENT, "python:mine.py:mine");
    let words = "`max_len` keeps its default 1024: neither an input nor an option of the contract";
    assert_eq!(report.component("bad").warnings, [words]);
    assert_eq!(report.component("right").warnings, [""; 0]);
}

#[test]
fn reports_point_to_the_function() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let text = "import functools\n\ndef kept(f):\n    @functools.wraps(f)\n    \
                def outer(*args, **kwargs):\n        return f(*args, **kwargs)\n    \
                return outer\n\n@kept\ndef mine(rewards, groups):\n    \
                return [1.0] * len(rewards)\n";
    folder.write("code/mine.py", text);
    write_manifest(&folder, PATIENT, "python:code/mine.py:mine");
    let arguments = ["--cases", "1", "--only", "bad", "--github", "--sarif", "report.sarif"];
    let (ran, report) = check(&folder, &arguments);
    let source = report.component("bad").source.as_ref().unwrap();
    assert_eq!((&*source.file, source.line), ("code/mine.py", 9));
    assert_eq!(report.component("bad").location.as_ref().unwrap().line, 4);
    let marked = "::error file=code/mine.py,line=9,title=bad · cpu/f32 · oracle::";
    assert!(ran.stdout.contains(marked), "{}", ran.stdout);
    let sarif = std::fs::read_to_string(folder.path("report.sarif")).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    let at = |location: &serde_json::Value| {
        let physical = &location["physicalLocation"];
        let uri = physical["artifactLocation"]["uri"].as_str().unwrap().to_owned();
        (uri, physical["region"]["startLine"].as_u64().unwrap())
    };
    assert_eq!(at(&result["locations"][0]), ("code/mine.py".to_owned(), 9));
    assert_eq!(at(&result["relatedLocations"][0]), ("manifest.yaml".to_owned(), 4));
}

// ---- Does not load.

#[test]
fn a_missing_module_is_an_error() {
    assert_does_not_load("python:bat:right", &["has no module `bat`"]);
}

#[test]
fn a_missing_file_is_an_error_with_the_nearest_name() {
    let target = format!("python:{PYTHON}/baad.py:right");
    assert_does_not_load(&target, &["there is no file", "baad.py (did you mean `bad.py`?)"]);
    let target = "python:nowhere/bad.py:right";
    assert_does_not_load(target, &["nowhere is not a folder"]);
}

#[test]
fn a_missing_function_is_an_error_with_the_nearest_name() {
    let words = ["`rihgt` is not in ", "bad.py (did you mean `right`?)"];
    assert_does_not_load("python:bad:rihgt", &words);
}

#[test]
fn what_cannot_be_called_is_an_error() {
    assert_does_not_load("python:bad:not_a_function", &["is an int, expected a function"]);
}

#[test]
fn a_signature_with_unknown_names_is_an_error() {
    let words = ["`asks_for_more` requires `logits`", "inputs: rewards, groups; options: baseline"];
    assert_does_not_load("python:bad:asks_for_more", &words);
    let words = ["requires `epsilom` (did you mean `epsilon`?)"];
    assert_does_not_load("python:bad:asks_for_a_misspelt_option", &words);
}

#[test]
fn an_import_that_fails_is_an_error() {
    for (text, words) in [
        ("raise RuntimeError('no GPU')", "raised RuntimeError: no GPU"),
        ("import nothing_of_this_name", "raised ModuleNotFoundError: No module named 'nothing_of"),
        ("def f(:", "raised SyntaxError"),
        ("exit(3)", "raised SystemExit: 3"),
        ("import os; os._exit(3)", "ended while loading it: exit status 3"),
        ("import ctypes; ctypes.string_at(0)", "ended while loading it: killed by signal 11"),
    ] {
        let folder = Folder::new();
        folder.write("mine.py", format!("print('loading')\n{text}\n"));
        let where_it_is = if words.contains("ended") { "mine.py" } else { "mine.py\", line 2" };
        assert_error(&folder, PATIENT, "python:mine.py:f", &[words, where_it_is]);
    }
}

#[test]
fn an_import_that_fails_is_tried_once_for_all_functions_of_the_module() {
    if !has_python() {
        return;
    }
    for (text, words, whole) in [
        ("raise RuntimeError('no GPU')", "raised RuntimeError: no GPU", "mine.py\", line 2"),
        ("import time; time.sleep(600)", "did not load it within 9000 ms", "load_timeout_ms"),
        ("import os; os._exit(3)", "ended while loading it: exit status 3", "exit status 3"),
    ] {
        let folder = Folder::new();
        folder.write("mine.py", format!("open('imports', 'a').write('once\\n')\n{text}\n"));
        // A busy machine needs its time until the import begins.
        let limit = if whole == "load_timeout_ms" { 9000 } else { 60_000 };
        let mut manifest = format!(
            "version: 1\npython: {{arrays: list, load_timeout_ms: {limit}, fork: {FORK}}}\n\
             components:\n"
        );
        for name in ["one", "two", "three"] {
            let target = format!("\"python:mine.py:{name}\"");
            let contract = "contract: group-advantage";
            let _ = writeln!(manifest, "- {{name: {name}, {contract}, target: {target}}}");
        }
        folder.write("manifest.yaml", manifest);
        let (ran, report) = check(&folder, &[]);
        assert_eq!(ran.code, 2, "{}{}", ran.stdout, ran.stderr);
        assert_eq!(std::fs::read_to_string(folder.path("imports")).unwrap(), "once\n");
        let reason = |name: &str| report.component(name).reason.clone().unwrap();
        // Several are loaded at a time: any of them may be the first.
        let names = ["one", "two", "three"];
        let first = names.into_iter().filter(|name| !reason(name).contains(": as for "));
        let first: Vec<&str> = first.collect();
        let [first] = first[..] else { panic!("tried for {first:?}") };
        assert!(
            reason(first).contains(words) && reason(first).contains(whole),
            "{}",
            reason(first)
        );
        for name in names.into_iter().filter(|name| *name != first) {
            let short = format!("python:mine.py:{name}: as for python:mine.py:{first}: ");
            let reason = reason(name);
            assert!(reason.starts_with(&short) && reason.contains(words), "{reason}");
            assert_eq!(reason.lines().count(), 1, "{reason}");
        }
    }
}

#[test]
fn a_missing_interpreter_is_an_error() {
    let python = format!("{PATIENT}, interpreter: no-such-python");
    let words = ["python:bad:right: cannot start the interpreter no-such-python: "];
    assert_error(&Folder::new(), &python, "python:bad:right", &words);
    let python = format!("{PATIENT}, interpreter: .venv/bin/python");
    let words = ["cannot start the interpreter /", "/.venv/bin/python: No such file"];
    assert_error(&Folder::new(), &python, "python:bad:right", &words);
}

#[test]
fn a_missing_library_is_an_error() {
    for (library, text) in [
        ("torch", "raise ImportError('libcudart.so.13: cannot open shared object file')"),
        ("torch", "raise OSError('libtorch.so: undefined symbol')"),
        ("numpy", "raise ImportError('numpy was built for another Python')"),
    ] {
        let folder = Folder::new();
        folder.write(&format!("{library}.py"), text);
        let text = text.split('\'').nth(1).unwrap();
        let python = format!("arrays: {library}");
        let words = [format!("cannot import {library}: {text}"), "Python 3".to_owned()];
        assert_error(&folder, &python, "python:bad:right", &[&words[0], &words[1]]);
    }
}

#[test]
fn a_load_that_hangs_is_an_error() {
    let folder = Folder::new();
    folder.write("mine.py", "import time\ntime.sleep(600)\n");
    let python = format!("{PATIENT}, load_timeout_ms: 300");
    assert_error(&folder, &python, "python:mine.py:f", &["did not load it within 300 ms"]);
}

// ---- Files named like standard modules.

#[test]
fn files_named_like_standard_modules_break_nothing_and_are_named() {
    for library in ["list", "numpy", "torch"] {
        if !has_python() || (library != "list" && !has(library)) {
            continue;
        }
        let folder = Folder::new();
        let names = ["warnings", "math", "types", "json", "random", "tracemalloc", "queue"];
        for name in names {
            let text = format!("raise RuntimeError('{name} is not the standard one')\n");
            folder.write(&format!("{name}.py"), text);
        }
        folder.write("mine.py", "from bad_arrays import right\n");
        folder.write("lists.py", "from bad import right\n");
        let file = if library == "list" { "lists" } else { "mine" };
        let python = format!("arrays: {library}, timeout_ms: 20000");
        let target = format!("python:{file}.py:right");
        let (ran, report) = check_one(&folder, &python, &target);
        assert_eq!(ran.code, 0, "{library}: {}{}", ran.stdout, ran.stderr);
        for name in ["bad", "right"] {
            let warnings = &report.component(name).warnings;
            let about = |warning: &&String| names.iter().all(|name| warning.contains(name));
            assert_eq!(warnings.iter().filter(about).count(), 1, "{library}: {warnings:?}");
        }
    }
}

#[test]
fn an_import_that_a_shadow_breaks_names_the_shadow() {
    let folder = Folder::new();
    folder.write("queue.py", "raise RuntimeError('these are rewards')\n");
    folder.write("mine.py", "import queue\n");
    let words =
        ["raised RuntimeError: these are rewards", "`queue.py`: shadows the standard module"];
    assert_error(&folder, PATIENT, "python:mine.py:f", &words);
    // One that Python has imported already stays what it is.
    let folder = Folder::new();
    folder.write("types.py", "class Reward: pass\n");
    folder.write("mine.py", "from types import Reward\n");
    let words = ["cannot import name 'Reward'", "`types.py`: the standard module of that name is"];
    assert_error(&folder, PATIENT, "python:mine.py:f", &words);
}

// ---- A worker that cannot fork, as on Windows or with a GPU.

/// An interpreter without `os.fork`.
fn write_no_fork(folder: &Folder) -> String {
    let script = "import os, sys; del os.fork; exec(sys.argv[2])";
    folder.write("no-fork", format!("#!/bin/sh\nexec {:?} -c '{script}' \"$@\"\n", *INTERPRETER));
    make_executable(&folder.path("no-fork"));
    "interpreter: ./no-fork".to_owned()
}

#[test]
fn a_worker_that_cannot_fork_finds_the_same() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let python = format!("{PATIENT}, {}", write_no_fork(&folder));
    for (function, expected) in [
        ("raises", ("does-not-raise", "raised ValueError")),
        ("segfaults", ("does-not-crash", "killed by signal 11")),
        ("leaves", ("does-not-crash", "exit status 0")),
    ] {
        let (_, report) = check_one(&folder, &python, &format!("python:bad:{function}"));
        assert_found_from_three(report.component("bad"), &[expected]);
        assert_passing(&report, "right");
    }
}

// ---- A harness that is killed.

/// Starts a check, waits until its component sleeps in some call, kills the harness, and waits
/// until its processes have gone. Gives the inputs of that call.
fn kill_in_a_call(folder: &Folder, python: &str, number: u32) -> String {
    write_manifest(folder, python, "python:bad:sleeps_on_a_call");
    folder.write("nap", number.to_string());
    let mut harness = folder.command(&["check", "manifest.yaml", "--only", "bad"]);
    let mut harness = harness.stdout(std::process::Stdio::null()).spawn().unwrap();
    let asleep = folder.path("asleep");
    wait_until("the component sleeps", || asleep.exists());
    assert_eq!(records(folder).len(), 1, "no case is in flight");

    harness.kill().unwrap();
    harness.wait().unwrap();
    let text = std::fs::read_to_string(&asleep).unwrap();
    std::fs::remove_file(&asleep).unwrap();
    let (processes, inputs) = text.trim_end().split_once('\n').unwrap();
    let [worker, parent] = [0, 1].map(|index| processes.split(' ').nth(index).unwrap());
    wait_until("the component has gone", || !is_running(worker));
    if !python.contains("interpreter") {
        wait_until("its parent has gone", || !is_running(parent));
    }
    inputs.to_owned()
}

/// The journals of runs that live or were killed.
fn records(folder: &Folder) -> Vec<String> {
    let found = folder.path("corpora/group-advantage/found");
    let names = std::fs::read_dir(found).into_iter().flatten().flatten();
    let names = names.map(|entry| entry.file_name().into_string().unwrap());
    names.filter(|name| name.starts_with("in-flight-")).collect()
}

/// The first call of a new run of the component.
fn first_call(folder: &Folder) -> String {
    write_manifest(folder, PATIENT, "python:bad:records_its_calls");
    let ran = folder.run(&["check", "manifest.yaml", "--only", "bad", "--cases", "1"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let calls = std::fs::read_to_string(folder.path("calls")).unwrap();
    std::fs::remove_file(folder.path("calls")).unwrap();
    calls.lines().next().unwrap().to_owned()
}

#[test]
fn a_killed_harness_leaves_no_process_and_begins_again_with_the_call_in_flight() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let usual = first_call(&folder);
    // Among the corners, among the random cases, and while a finding is shrunk and diagnosed.
    for number in [2, 60, 250, 600] {
        let inputs = kill_in_a_call(&folder, "arrays: list, timeout_ms: 600000", number);
        assert_eq!(first_call(&folder), inputs, "killed in call {number}");
        assert!(records(&folder).is_empty());
    }
    assert_eq!(first_call(&folder), usual, "what came back is no longer in flight");
}

#[test]
fn a_worker_that_cannot_fork_goes_with_its_harness() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let python = format!("arrays: list, timeout_ms: 600000, {}", write_no_fork(&folder));
    let inputs = kill_in_a_call(&folder, &python, 20);
    assert_eq!(first_call(&folder), inputs);
}

#[test]
fn an_import_that_hangs_goes_with_its_harness() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let code = "import os, time\nopen('pid.partial', 'w').write(str(os.getpid()))\n\
                os.rename('pid.partial', 'pid')\ntime.sleep(600)\n";
    folder.write("mine.py", code);
    write_manifest(&folder, PATIENT, "python:mine.py:f");
    let mut harness = folder.command(&["check", "manifest.yaml", "--only", "bad"]).spawn().unwrap();
    wait_until("the import hangs", || folder.path("pid").exists());
    harness.kill().unwrap();
    harness.wait().unwrap();
    let process = std::fs::read_to_string(folder.path("pid")).unwrap();
    wait_until("the worker has gone", || !is_running(&process));
}

/// Says to this test program that it is the one that shall be aborted, and in which folder.
const ABORTS_IN: &str = "SHAKEDOWN_TEST_ABORTS_IN";

#[test]
fn a_rust_function_that_aborts_the_harness_begins_again_with_the_call_in_flight() {
    let last = GroupAdvantageCase {
        rewards: vec![0.5, 2.0, 0.0, 0.5].into(),
        groups: vec![0, 0, 0, 0].into(),
    };
    if let Some(folder) = std::env::var_os(ABORTS_IN) {
        let aborts = move |case: &GroupAdvantageCase| {
            if *case == last {
                std::process::abort();
            }
            vec![0.0; case.rewards.len()]
        };
        let _ = shakedown::check::<GroupAdvantage>(aborts).corpora(folder).report();
        return;
    }
    let folder = Folder::new();
    let name = "a_rust_function_that_aborts_the_harness_begins_again_with_the_call_in_flight";
    let module = module_path!().split_once("::").map(|(_, module)| format!("{module}::"));
    let name = format!("{}{name}", module.unwrap_or_default());
    let mut command = Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", &name]).env(ABORTS_IN, folder.path("corpora")).output();
    assert!(!output.unwrap().status.success(), "it was not aborted");

    let calls = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&calls);
    let records = move |case: &GroupAdvantageCase| {
        seen.lock().unwrap().push(case.clone());
        vec![0.0; case.rewards.len()]
    };
    let check = shakedown::check::<GroupAdvantage>(records).corpora(folder.path("corpora"));
    check.report().unwrap();
    assert_eq!(calls.lock().unwrap()[0], last);
}

#[test]
fn a_call_in_flight_of_a_living_harness_is_left_alone() {
    if !has_python() {
        return;
    }
    let folder = Folder::new();
    let usual = first_call(&folder);
    write_manifest(&folder, "arrays: list, timeout_ms: 600000", "python:bad:sleeps_on_a_call");
    folder.write("nap", "20");
    let mut harness = folder.command(&["check", "manifest.yaml", "--only", "bad"]);
    let mut harness = harness.stdout(std::process::Stdio::null()).spawn().unwrap();
    wait_until("the component sleeps", || folder.path("asleep").exists());
    let first = first_call(&folder);
    harness.kill().unwrap();
    harness.wait().unwrap();
    assert_eq!(first, usual);
    assert_ne!(first_call(&folder), usual, "nothing was lost");
}

// ---- What the tests share.

/// As [`assert_finds`], on the arrays of a library.
#[track_caller]
fn assert_finds_on_arrays(library: &str, function: &str, words: &str) {
    let report = check_on_arrays(library, function);
    assert_found_from_three(report.component("bad"), &[("well-formed", words)]);
}

fn check_on_arrays(library: &str, function: &str) -> Report {
    let folder = Folder::new();
    let python = format!("arrays: {library}, timeout_ms: 20000");
    let (ran, report) = check_one(&folder, &python, &format!("python:bad_arrays:{function}"));
    assert_eq!(ran.code, 1, "{}{}", ran.stdout, ran.stderr);
    report
}

/// A function of `bad.py` does not load; its neighbour of the same file runs on.
#[track_caller]
fn assert_does_not_load(target: &str, words: &[&str]) {
    if let Some(report) = assert_error(&Folder::new(), PATIENT, target, words) {
        assert_passing(&report, "right");
    }
}
