//! A Python repository that has pytest: tests around what was found in it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::component::{self, Component, STAND_IN};
use super::scan::Scan;
use super::trial::{self, Trial};
use super::{EXAMPLE, between_lines, in_order};
use crate::door::cli::init::Plan;
use crate::door::cli::init::files::File;
use crate::door::cli::init::template::fill;
use crate::door::cli::output;
use shakedown_core::value::error::{Error, nearest, unknown};
use shakedown_core::value::text::count;

const TESTS: &str = include_str!("test_contracts.py");
const FILE: &str = "test_contracts.py";

/// A candidate, and what came of its trial.
struct Tried {
    component: Component,
    trial: Trial,
    /// Options that nothing declares, and under which alone it is right.
    behaves: Vec<String>,
}

/// What `init` writes into the folder. Functions are tried for a time at the most.
pub(super) fn plan(dir: &Path, scan: &Scan, trouble: Option<&str>, time: Duration) -> Plan {
    let mut said = vec![format!("Python repository in `{}`, tested by pytest.", dir.display())];
    said.extend(trouble.map(|why| format!("Its files were not read: {why}.")));
    said.extend(scan.unread.iter().map(|why| format!("Not read: {why}.")));
    let found = in_order(scan.functions.iter().filter_map(component::of).collect());
    let found = all_tried(dir, found, time);
    let mut tests = Tests::new(dir, "");
    for one in &found {
        said.push(tests.add(one));
    }
    said.extend(between_lines(scan, found.iter().map(|one| &one.component)));
    if !tests.is_filled {
        said.push("No function is a component for sure: an example is one.".to_owned());
    }
    let path = file(dir);
    let by_hand = tests.body();
    let text = tests.text(&path);
    Plan { found: said, steps: steps(&path), files: vec![File::new(path, text, by_hand)] }
}

/// One function more, where its file and its name are given.
///
/// # Errors
/// There is no such function, or it looks like no component.
pub(super) fn add(dir: &Path, scan: &Scan, target: &str, time: Duration) -> Result<Plan, Error> {
    let component = named(scan, target)?;
    let one = tried(dir, component, Instant::now() + time);
    let path = file(dir);
    let there = fs::read_to_string(dir.join(&path)).ok();
    let mut tests = Tests::new(dir, "");
    let mut said = tests.add(&one);
    if !tests.is_filled {
        let Tried { trial: Trial::Unknown(why) | Trial::Other(why), .. } = one else {
            return Err(Error::new(said));
        };
        let what = format!("{target} looks like {}, but: {why}", one.component.contract);
        return Err(Error::new(what));
    }
    let file = match there {
        Some(there) if there.contains(tests.tests[0].trim_end()) => {
            File::new(path.clone(), there, tests.body())
        }
        Some(there) => {
            tests = Tests::new(dir, &there);
            said = tests.add(&one);
            let change = format!("a test of `{}`", one.component.name);
            File { change, ..File::new(path.clone(), tests.added(&there), tests.body()) }
        }
        None => File::new(path.clone(), tests.text(&path), tests.body()),
    };
    Ok(Plan { found: vec![said], steps: steps(&path), files: vec![file] })
}

/// The function that `FILE:FUNCTION` names, as a component.
pub(super) fn named(scan: &Scan, target: &str) -> Result<Component, Error> {
    let Some((file, name)) = target.trim_start_matches("./").rsplit_once(':') else {
        return Err(Error::new(format!("--add: expected FILE:FUNCTION, found `{target}`")));
    };
    let mut of_file = scan.functions.iter().filter(|function| function.file == file).peekable();
    if of_file.peek().is_none() {
        let files = scan.functions.iter().map(|function| &*function.file);
        let near = nearest(file, files);
        return Err(Error::new(format!("--add: no function was found in `{file}`{near}")));
    }
    let names: Vec<String> = of_file.clone().map(|function| function.path()).collect();
    let Some(function) = of_file.find(|function| function.path() == name) else {
        let names: Vec<&str> = names.iter().map(|name| &**name).collect();
        let what = unknown("function", name, &names);
        return Err(Error::new(format!("--add: {file}: {what}")));
    };
    component::of(function).ok_or_else(|| {
        let parameters: Vec<&str> = function.parameters.iter().map(|one| &*one.name).collect();
        let takes = parameters.join(", ");
        Error::new(format!(
            "--add: {target} takes {takes}, which looks like no contract: `shakedown list` has \
             them, and `@shakedown.contract(NAME)` around a test takes any"
        ))
    })
}

/// Tries one after the other, and says so before: this imports and calls code of the repository.
fn all_tried(dir: &Path, found: Vec<Component>, time: Duration) -> Vec<Tried> {
    let until = Instant::now() + time;
    let (mut to, _) = output();
    let mut say = |line: String| {
        let _ = writeln!(to, "{line}").and_then(|()| to.flush());
    };
    if !found.is_empty() {
        let (functions, seconds) = (count(found.len() as u64, "function"), time.as_secs());
        say(format!(
            "Imports and calls {functions} of this repository, for {seconds} s at most (--time):"
        ));
    }
    let tried = |one: Component| {
        say(format!("  `{}` ({})", one.name, one.at.as_deref().unwrap_or_default()));
        tried(dir, one, until)
    };
    found.into_iter().map(tried).collect()
}

fn tried(dir: &Path, component: Component, until: Instant) -> Tried {
    let mut one = called(dir, component, until);
    if !matches!(one.trial, Trial::Right) {
        return one;
    }
    let Tried { component, trial, behaves } = &mut one;
    if component.judges_answers() {
        match trial::template(dir, component, until) {
            Some(template) => component.read_from(template),
            None => {
                let why = "it gives a right answer no more than a wrong one in any usual form: \
                           say yours in `template`";
                *trial = Trial::Unknown(why.to_owned());
            }
        }
    } else {
        let options = trial::accepted(component);
        for (name, value) in trial::conventions(dir, component, &options, until) {
            behaves.push(format!("`{name}: {value}`"));
            component.options.retain(|(option, _)| *option != name);
            component.options.push((name, value));
        }
    }
    one
}

/// A candidate called once, in the form in which it gives what the contract asks for.
fn called(dir: &Path, mut component: Component, until: Instant) -> Tried {
    let behaves = Vec::new();
    let options = trial::accepted(&mut component);
    let trial = trial::of(dir, &component, &options, until);
    let Trial::Other(why) = &trial else { return Tried { component, trial, behaves } };
    let first = || component.clone().first().filter(|_| why.starts_with("returned"));
    let others = [first(), component.clone().of_matrix()];
    for mut other in others.into_iter().flatten() {
        let options = trial::accepted(&mut other);
        if let Trial::Right = trial::of(dir, &other, &options, until) {
            return Tried { component: other, trial: Trial::Right, behaves };
        }
    }
    Tried { component, trial, behaves }
}

/// Where the tests go.
fn file(dir: &Path) -> PathBuf {
    let folder =
        if !dir.join("tests").is_dir() && dir.join("test").is_dir() { "test" } else { "tests" };
    Path::new(folder).join(FILE)
}

fn steps(path: &Path) -> Vec<String> {
    vec![
        "pip install shakedown-rl".to_owned(),
        format!("pytest {}", path.display()),
        "Compare the options with what your functions do: shakedown list CONTRACT".to_owned(),
        "Keep what was found and fixed: shakedown adopt FILE --why \"…\"".to_owned(),
    ]
}

/// The tests of one file.
struct Tests {
    /// Folders that are searched for modules, from the folder of the repository.
    roots: BTreeSet<PathBuf>,
    imports: BTreeSet<String>,
    /// The modules of what is imported, by its name.
    modules: BTreeMap<String, String>,
    tests: Vec<String>,
    names: BTreeSet<String>,
    is_filled: bool,
    /// Whether pytest puts the repository itself on the search path.
    has_conftest: bool,
}

impl Tests {
    /// None yet, beside the text of the file.
    fn new(dir: &Path, there: &str) -> Tests {
        let imported = there.lines().filter_map(|line| {
            let (module, name) = line.strip_prefix("from ")?.split_once(" import ")?;
            let name = name.rsplit(" as ").next().unwrap_or(name);
            Some((name.to_owned(), module.to_owned()))
        });
        let tests = there.lines().filter_map(|line| {
            let name = line.trim_start_matches("async ").strip_prefix("def ")?;
            Some(name.split('(').next().unwrap_or(name).to_owned())
        });
        Tests {
            modules: imported.collect(),
            names: tests.collect(),
            roots: BTreeSet::new(),
            imports: BTreeSet::new(),
            tests: Vec::new(),
            is_filled: false,
            has_conftest: dir.join("conftest.py").is_file(),
        }
    }

    /// Adds a candidate as a test, or as a comment; says which.
    fn add(&mut self, Tried { component, trial, behaves }: &Tried) -> String {
        let looks = component.looks();
        let component = &self.apart(component);
        let test = component.code.as_ref().and_then(|code| {
            let words = code.words.trim_start_matches('_');
            let mut name = format!("test_{words}");
            for number in 2.. {
                if self.names.insert(name.clone()) {
                    break;
                }
                name = format!("test_{words}_{number}");
            }
            Some((component.test(&name)?, code.imports()))
        });
        match (trial, test) {
            (Trial::Other(why), _) => format!("Left out: {looks}, but: {why}."),
            (Trial::Right, Some((test, import))) => {
                self.is_filled = true;
                self.roots.extend(component.path.iter().cloned());
                self.imports.extend(import.lines().map(str::to_owned));
                self.tests.push(test);
                let at = component.at.as_deref().unwrap_or_default();
                let as_it_is = match behaves.join(", ") {
                    options if options.is_empty() => ".".to_owned(),
                    options => format!(", under {options}, as it behaves: is that meant?"),
                };
                let (name, contract) = (&component.name, component.contract);
                format!("Filled in: `{name}` ({at}) as {contract}{as_it_is}")
            }
            (Trial::Unknown(why), Some((test, import))) => {
                let why = format!("Also found, and not tried: {looks}; {why}");
                let test = format!("{why}\n\n{import}\n\n\n{test}");
                let comment = test.trim_end().lines().map(|line| format!("# {line}"));
                let comment: Vec<String> = comment.map(|line| line.trim_end().to_owned()).collect();
                self.tests.push(comment.join("\n") + "\n");
                format!("Also found: {looks}; {why}.", why = why.rsplit("; ").next().unwrap_or(""))
            }
            (_, None) => format!("Also found: {looks}; no import or call by name reaches it."),
        }
    }

    /// The component, by another name where what it imports has that of another module.
    fn apart(&mut self, component: &Component) -> Component {
        let Some(code) = &component.code else { return component.clone() };
        let taken = |name: &str| self.modules.get(name).is_some_and(|it| *it != code.module);
        if !taken(&code.import) {
            self.modules.insert(code.import.clone(), code.module.clone());
            return component.clone();
        }
        let alias = format!("{}_{}", code.module.replace('.', "_"), code.import);
        self.modules.insert(alias.clone(), code.module.clone());
        component.clone().called(&alias)
    }

    /// The tests alone.
    fn body(&self) -> String {
        let imports: Vec<&str> = self.imports.iter().map(|import| &**import).collect();
        format!("{}\n\n\n{}", imports.join("\n"), self.tests.join("\n\n"))
    }

    /// A file with them.
    fn text(&self, path: &Path) -> String {
        let mut tests = self.tests.clone();
        let mut imports: Vec<String> = vec!["import shakedown".to_owned()];
        if !self.is_filled {
            imports.insert(0, "import math\n".to_owned());
            let example =
                EXAMPLE.replace("import math\n\n\n", "").replace("def example", "def test_example");
            let decorator = "@shakedown.contract(\"group-advantage\").settings(arrays=\"list\")";
            tests.insert(0, format!("{decorator}\n{example}"));
        }
        let roots: Vec<&PathBuf> = self
            .roots
            .iter()
            .filter(|root| !(self.has_conftest && **root == Path::new(".")))
            .collect();
        let mut standard = Vec::new();
        if !roots.is_empty() {
            standard.extend(["import pathlib", "import sys"]);
        }
        if self.imports.contains(STAND_IN) {
            standard.push(STAND_IN);
        }
        if !standard.is_empty() {
            imports.insert(0, standard.join("\n") + "\n");
        }
        if !roots.is_empty() {
            imports.push("\nROOT = pathlib.Path(__file__).parents[1]".to_owned());
            let roots = roots.iter().map(|root| match root.to_str() {
                Some(".") | None => "str(ROOT)".to_owned(),
                Some(root) => format!("str(ROOT / \"{root}\")"),
            });
            let roots: Vec<String> = roots.collect();
            imports.push(format!("sys.path[:0] = [{}]\n", roots.join(", ")));
        } else if !self.imports.is_empty() {
            imports.push(String::new());
        }
        imports.extend(self.imports.iter().filter(|import| *import != STAND_IN).cloned());
        let (path, tests) = (path.display().to_string(), tests.join("\n\n"));
        let values =
            [("FILE", &*path), ("IMPORTS", &imports.join("\n")), ("TESTS", tests.trim_end())];
        fill(TESTS, &values)
    }

    /// What was there, with these tests at the end of it.
    fn added(&self, there: &str) -> String {
        let missing: Vec<&str> = self
            .imports
            .iter()
            .map(|import| &**import)
            .filter(|import| !there.lines().any(|line| line == *import))
            .collect();
        let imports = match missing.join("\n") {
            text if text.is_empty() => text,
            text => format!("{text}\n\n\n"),
        };
        format!("{}\n\n\n{imports}{}", there.trim_end(), self.tests.join("\n\n"))
    }
}
