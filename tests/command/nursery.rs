//! Workers that are forked from a process that has imported their libraries: as far from each
//! other as those that are not, and gone with the command.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::{Command, Stdio};

use crate::folder::Folder;
use crate::process::{is_running, wait_until};
use crate::report::{Report, Status, check};

/// The beginning of every module: it notes which process imports it, and whose child that is.
const NOTES: &str = "\
import os
with open('processes', 'a') as file:
    file.write(f'{__name__} {os.getpid()} {os.getppid()}\\n')

";

/// A function that is right.
const RIGHT: &str = "
def NAME(rewards, groups, epsilon):
    advantages = [0.0] * len(rewards)
    for group in set(groups):
        rows = [row for row, other in enumerate(groups) if other == group]
        if len(rows) > 1:
            mean = sum(rewards[row] for row in rows) / len(rows)
            std = (sum((rewards[row] - mean) ** 2 for row in rows) / (len(rows) - 1)) ** 0.5
            for row in rows:
                advantages[row] = (rewards[row] - mean) / (std + epsilon)
    return advantages
";

fn right(name: &str) -> String {
    RIGHT.replace("NAME", name)
}

/// A folder with one module for each text, which is called like its function.
fn folder_with(python: &str, modules: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    for (name, text) in modules {
        folder.write(&format!("{name}.py"), format!("{NOTES}{text}"));
    }
    let targets: Vec<(&str, String)> =
        modules.iter().map(|(name, _)| (*name, format!("python:{name}.py:{name}"))).collect();
    write_manifest(&folder, python, &targets);
    folder
}

fn write_manifest(folder: &Folder, python: &str, targets: &[(&str, String)]) {
    let mut text = format!("version: 1\npython: {{{python}}}\ncomponents:\n");
    for (name, target) in targets {
        let _ =
            writeln!(text, "- {{name: {name}, contract: group-advantage, target: \"{target}\"}}");
    }
    folder.write("manifest.yaml", text);
}

/// A process that imported a module of the folder.
#[derive(Clone, Debug, PartialEq)]
struct Import {
    module: String,
    process: String,
    parent: String,
}

fn imports(folder: &Folder) -> Vec<Import> {
    let text = std::fs::read_to_string(folder.path("processes")).unwrap_or_default();
    let import = |line: &str| {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let [module, process, parent] = words.try_into().unwrap();
        Import { module, process, parent }
    };
    text.lines().map(import).collect()
}

/// The first import of each module: what comes later is forked from the process of another one.
fn first_imports(folder: &Folder) -> Vec<Import> {
    let mut first: Vec<Import> = Vec::new();
    for import in imports(folder) {
        if !first.iter().any(|known| known.module == import.module) {
            first.push(import);
        }
    }
    first
}

/// What a check reports, and the process id of the command.
fn check_as(folder: &Folder, set: &[(&str, &str)]) -> (Report, String) {
    let mut command = folder.command(&["check", "manifest.yaml", "--cases", "4", "--json", "json"]);
    command.envs(set.iter().copied()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    let id = child.id().to_string();
    child.wait().unwrap();
    let text = std::fs::read_to_string(folder.path("json")).unwrap();
    (serde_json::from_str(&text).unwrap(), id)
}

fn statuses(report: &Report) -> Vec<Status> {
    report.components.iter().map(|component| component.status).collect()
}

#[test]
fn workers_are_forked_from_one_process_and_without_it_started_by_the_command() {
    if !has("json") {
        return;
    }
    let texts = ["one", "two", "three"].map(|name| (name, right(name)));
    let modules = texts.each_ref().map(|(name, text)| (*name, &**text));
    for (python, is_forked) in [
        ("arrays: list", true),
        ("arrays: list, fork: true", true),
        ("arrays: list, fork: false", false),
    ] {
        let folder = folder_with(python, &modules);
        let (report, command) = check_as(&folder, &[]);
        assert_eq!(statuses(&report), [Status::Pass; 3], "{report:#?}");
        let imports = imports(&folder);
        assert_eq!(imports.len(), 3, "{imports:?}");
        let parents: BTreeSet<&String> = imports.iter().map(|import| &import.parent).collect();
        assert_eq!(parents.len(), if is_forked { 1 } else { 3 }, "{python}: {imports:?}");
        assert!(!parents.contains(&command), "{imports:?}");
        for import in &imports {
            wait_until("the worker has gone", || !is_running(&import.process));
            wait_until("its parent has gone", || !is_running(&import.parent));
        }
    }
}

/// `ps` would show all of the program that serves it.
#[test]
#[cfg(target_os = "linux")]
fn the_title_of_a_worker_is_short_and_names_the_component() {
    if !has("json") {
        return;
    }
    let title = "\nwith open('/proc/self/cmdline') as file:\n    title = file.read()\n\
                 with open('titles', 'a') as file:\n    file.write(f'{len(title)} {title!r}\\n')\n";
    for python in ["arrays: list", "arrays: list, fork: false"] {
        let folder = folder_with(python, &[("a", &format!("{title}{}", right("a")))]);
        assert_eq!(statuses(&check_as(&folder, &[]).0), [Status::Pass]);
        for line in std::fs::read_to_string(folder.path("titles")).unwrap().lines() {
            let (length, title) = line.split_once(' ').unwrap();
            assert!(length.parse::<usize>().unwrap() < 300, "{line}");
            assert!(title.contains("shakedown runs") && title.contains("a.py:a"), "{title}");
        }
    }
}

#[test]
fn components_of_one_module_do_not_see_what_others_do_to_it() {
    if !has("json") {
        return;
    }
    // Each changes the module, a module of Python, the environment and the folder.
    let mut text = "import json, sys\nseen = []\n".to_owned();
    let names = ["one", "two", "three", "four"];
    for name in names {
        text += &right(&format!("inner_{name}"));
        let _ = write!(
            text,
            "\ndef {name}(rewards, groups, epsilon):\n    \
             others = [one for one in seen if one != '{name}']\n    \
             others += [os.environ.get('SEEN', '{name}'), getattr(json, 'seen', '{name}')]\n    \
             assert set(others) == {{'{name}'}}, others\n    \
             seen.append('{name}'); os.environ['SEEN'] = json.seen = '{name}'\n    \
             os.chdir('/')\n    \
             return inner_{name}(rewards, groups, epsilon)\n"
        );
    }
    let folder = Folder::new();
    folder.write("mine.py", format!("{NOTES}{text}"));
    let targets = names.map(|name| (name, format!("python:mine.py:{name}")));
    write_manifest(&folder, "arrays: list", &targets);
    let (report, command) = check_as(&folder, &[]);
    assert_eq!(statuses(&report), [Status::Pass; 4], "{report:#?}");
    let imports = imports(&folder);
    assert_eq!(imports.len(), 2, "once for the first, once for all others: {imports:?}");
    assert!(imports[0].parent != command && imports[1].parent == command, "{imports:?}");
}

#[test]
fn a_module_that_seeds_or_that_leaves_a_thread_is_imported_by_each_component() {
    if !has("numpy") {
        return;
    }
    let names = ["one", "two", "three"];
    let functions = names.map(right).concat();
    let thread = "import threading, time\n\
                  threading.Thread(target=time.sleep, args=(600,), daemon=True).start()";
    for (line, expected) in [("", 2), ("numpy.random.seed(0)", 4), (thread, 4)] {
        let folder = Folder::new();
        folder.write("mine.py", format!("import numpy\n{line}\n{NOTES}{functions}"));
        let targets = names.map(|name| (name, format!("python:mine.py:{name}")));
        write_manifest(&folder, "arrays: numpy", &targets);
        let (report, _) = check_as(&folder, &[]);
        assert_eq!(statuses(&report), [Status::Pass; 3], "{report:#?}");
        let imports = imports(&folder);
        // One more in vain, by the process that was to be forked.
        assert_eq!(imports.len(), expected, "{line}: {imports:?}");
    }
}

#[test]
fn what_becomes_of_a_worker_becomes_of_no_other() {
    if !has("json") {
        return;
    }
    let dies = |how: &str| format!("import ctypes, signal, time\n{how}\n");
    let call = |how: &str| dies(&format!("def NAME(rewards, groups):\n    {how}"));
    let (first, last) = (right("first"), right("last"));
    for (name, text, status) in [
        ("at_import", dies("ctypes.string_at(0)"), Status::Error),
        ("leaves", dies("os._exit(3)"), Status::Error),
        ("hangs", dies("time.sleep(600)"), Status::Error),
        ("group", dies("os.killpg(0, signal.SIGKILL)"), Status::Error),
        ("in_call", call("ctypes.string_at(0)"), Status::Fail),
        ("exits", call("os._exit(0)"), Status::Fail),
        // The nursery itself: another one takes its place.
        ("parent", dies("os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(600)"), Status::Error),
    ] {
        let text = text.replace("NAME", name);
        let modules = [("first", &*first), (name, &*text), ("last", &*last)];
        let folder = folder_with("arrays: list, load_timeout_ms: 6000", &modules);
        let (report, command) = check_as(&folder, &[]);
        assert_eq!(statuses(&report), [Status::Pass, status, Status::Pass], "{report:#?}");
        let imports = first_imports(&folder);
        assert!(imports.iter().all(|import| import.parent != command), "{imports:?}");
    }
}

#[test]
fn a_library_that_starts_a_thread_or_that_is_the_component_s_own_is_not_inherited() {
    if !has("json") {
        return;
    }
    let threads = "import threading, time\n__version__ = '1'\n\
                   threading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n";
    let quiet = "__version__ = '1'\n";
    for (text, is_own, is_forked) in
        [(quiet, false, true), (threads, false, false), (quiet, true, false)]
    {
        let modules = ["one", "two"].map(|name| (name, right(name)));
        let modules = modules.each_ref().map(|(name, text)| (*name, &**text));
        let folder = folder_with("arrays: numpy, path: [own]", &modules);
        folder.write("site/numpy.py", text);
        if is_own {
            folder.write("own/numpy.py", text);
        }
        let site = folder.path("site");
        let (_, command) = check_as(&folder, &[("PYTHONPATH", site.to_str().unwrap())]);
        let imports = first_imports(&folder);
        assert!(!imports.is_empty());
        for import in &imports {
            assert_eq!(import.parent != command, is_forked, "{text}: {imports:?}");
        }
    }
}

#[test]
fn torch_is_imported_once_for_functions_on_lists_whose_files_import_it() {
    if !has("json") {
        return;
    }
    let torch = format!("{NOTES}class cuda:\n    is_initialized = staticmethod(lambda: False)\n");
    for (line, own, imported) in [
        ("import torch", None, 1),
        ("from torch import cuda", None, 1),
        ("import torchvision_is_missing_here as torch", None, 0),
        ("os.environ['OMP_NUM_THREADS'] = '1'\nimport torch", None, 2),
        // What is theirs is imported by each, and so is all where a part is.
        ("import torch", Some("torch.py"), 3),
        ("import torch, json", Some("json.py"), 3),
    ] {
        let modules = ["one", "two"].map(|name| (name, format!("{line}\n{}", right(name))));
        let modules = modules.each_ref().map(|(name, text)| (*name, &**text));
        let folder = folder_with("arrays: list", &modules);
        folder.write("site/torch.py", &torch);
        if let Some(own) = own {
            folder.write(own, &torch);
        }
        let site = folder.path("site");
        check_as(&folder, &[("PYTHONPATH", site.to_str().unwrap())]);
        let of_torch = imports(&folder).iter().filter(|import| import.module == "torch").count();
        assert_eq!(of_torch, imported, "{line}, {own:?}: {:?}", imports(&folder));
    }
}

#[test]
fn threads_that_an_import_leaves_are_there_in_calls() {
    if !has("json") {
        return;
    }
    let text = format!(
        "import queue, threading\nasked, answered = queue.Queue(), queue.Queue()\n{}\n\
         def work():\n    while True:\n        answered.put(inner(*asked.get()))\n\n\
         threading.Thread(target=work, daemon=True).start()\n\n\
         def mine(rewards, groups, epsilon):\n    asked.put((rewards, groups, epsilon))\n    \
         return answered.get(timeout=15)\n",
        right("inner")
    );
    for python in ["arrays: list", "arrays: list, fork: false"] {
        let folder = folder_with(python, &[("mine", &text)]);
        let (_, report) = check(&folder, &["--cases", "4"]);
        assert_eq!(statuses(&report), [Status::Pass], "{report:#?}");
    }
}

#[test]
fn nothing_that_was_imported_is_forked_where_that_is_forbidden() {
    if !has("json") {
        return;
    }
    // What a library in C++ that has threads cannot bear.
    let text = format!(
        "importer = os.getpid()\n{}\n\
         def mine(rewards, groups, epsilon):\n    if len(rewards) == 5:\n        os._exit(3)\n    \
         assert os.getpid() == importer\n    return inner(rewards, groups, epsilon)\n",
        right("inner")
    );
    for (python, expected) in [
        ("arrays: list, fork: false", &["does-not-crash"][..]),
        ("arrays: list", &["does-not-raise", "does-not-crash"]),
    ] {
        let folder = folder_with(python, &[("mine", &text)]);
        let (_, report) = check(&folder, &["--cases", "4"]);
        let findings = report.component("mine").findings.iter();
        let found: Vec<&str> = findings.map(|finding| &*finding.invariant).collect();
        assert_eq!(found, expected, "{python}");
    }
}

#[test]
fn chance_is_another_one_in_each_worker() {
    if !has("json") {
        return;
    }
    let texts = ["one", "two", "three"].map(|name| {
        let draws = "import random, sys\n\
                     numpy, torch = sys.modules.get('numpy'), sys.modules.get('torch')\n\
                     draws = [numpy.random.random()] if numpy else []\n\
                     draws += [torch.rand(1).item()] if torch else []\n\
                     with open(f'draws-{__name__}', 'w') as file:\n    \
                     file.write(' '.join(map(repr, [random.random(), *draws])))\n";
        (name, format!("{draws}{}", right(name)))
    });
    let modules = texts.each_ref().map(|(name, text)| (*name, &**text));
    let library = ["torch", "numpy"].into_iter().find(|name| has(name)).unwrap_or("list");
    let folder = folder_with(&format!("arrays: {library}"), &modules);
    let (ran, _) = check(&folder, &["--cases", "4"]);
    assert_eq!(ran.code, 0, "{}{}", ran.stdout, ran.stderr);
    let draws = ["one", "two", "three"].map(|name| {
        let text = std::fs::read_to_string(folder.path(&format!("draws-{name}"))).unwrap();
        text.split(' ').map(str::to_owned).collect::<Vec<_>>()
    });
    let [one, two, three] = &draws;
    for ((one, two), three) in one.iter().zip(two).zip(three) {
        assert!(one != two && two != three && three != one, "{draws:?}");
    }
}

#[test]
fn a_killed_command_leaves_no_nursery() {
    if !has("json") {
        return;
    }
    // Once while a worker hangs in a call, once while the nursery itself imports.
    let hangs = "import time\ndef mine(rewards, groups):\n    time.sleep(600)\n";
    let folder = folder_with("arrays: list, timeout_ms: 600000", &[("mine", hangs)]);
    kill_when(&folder, &[], || !imports(&folder).is_empty());
    for import in imports(&folder) {
        wait_until("the worker has gone", || !is_running(&import.process));
        wait_until("the nursery has gone", || !is_running(&import.parent));
    }

    let folder = folder_with("arrays: numpy", &[("mine", &right("mine"))]);
    folder.write("site/numpy.py", format!("{NOTES}import time\ntime.sleep(600)\n"));
    let site = folder.path("site");
    let set = [("PYTHONPATH", site.to_str().unwrap())];
    kill_when(&folder, &set, || !imports(&folder).is_empty());
    let nursery = imports(&folder).remove(0);
    wait_until("the nursery has gone", || !is_running(&nursery.process));
}

/// Starts a check and kills it once something is so.
fn kill_when(folder: &Folder, set: &[(&str, &str)], is_so: impl Fn() -> bool) {
    let mut command = folder.command(&["check", "manifest.yaml"]);
    let mut child = command.envs(set.iter().copied()).stdout(Stdio::null()).spawn().unwrap();
    wait_until("it has begun", is_so);
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Whether the interpreter has a module; says what is left out where it has not.
fn has(module: &str) -> bool {
    let python = shakedown::host::process::default_interpreter();
    let found = Command::new(python).args(["-c", &format!("import {module}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("left out: there is no python3 with the module {module}");
    }
    found
}
