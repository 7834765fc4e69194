//! Components in processes of their own: Python functions, and any program on the wire protocol.

mod excerpt;
mod line;
#[cfg(unix)]
mod nursery;
pub mod parent;
#[cfg_attr(not(unix), path = "pipes_by_thread.rs")]
mod pipes;
mod wiring;
mod worker;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use ndarray::Axis;
use serde::Deserialize;

use excerpt::excerpt;
use line::{Conversation, Lost};
#[cfg(unix)]
pub use nursery::Nurseries;
use parent::Parent;
use shakedown_core::contract::component::{
    Call, Component, Failure, Gradients, Returned, no_gradients, numbers,
};
use shakedown_core::contract::coverage;
use shakedown_core::contract::erased::AnyContract;
use shakedown_core::value::error::Error;
use shakedown_core::value::place::{Device, Dtype, Place};
use shakedown_core::value::record::{Kind, Value, is_named};
use shakedown_core::value::wire::{self, Message};
pub use wiring::{Batch, Wiring};
use worker::Worker;
#[cfg(feature = "fuzz")]
pub use worker::kill_all;

/// The program that serves Python functions; standard library only. The interpreter reads it from
/// standard input, before the first request: `ps` would show an argument.
const WORKER: &str = include_str!("../../../python/shakedown/_serve.py");

/// The argument that has the interpreter read it.
fn read_worker(target: &str) -> String {
    let length = WORKER.len();
    format!(
        "# shakedown runs {target:?}\nimport os\nworker = b''\nwhile len(worker) < {length}:\n    \
         worker += os.read(0, {length} - len(worker)) or os._exit(0)\nexec(worker)"
    )
}

/// How many times its limit the first call of a process may take: it may import and compile.
const FIRST: u32 = 6;

/// The library whose arrays a Python function gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayLibrary {
    /// `torch.Tensor`, with gradients by autograd.
    #[default]
    Torch,
    /// `numpy.ndarray`.
    Numpy,
    /// Nested lists of Python numbers.
    List,
}

impl ArrayLibrary {
    fn name(self) -> &'static str {
        match self {
            ArrayLibrary::Torch => "torch",
            ArrayLibrary::Numpy => "numpy",
            ArrayLibrary::List => "list",
        }
    }

    /// Why it cannot hold arrays at a place, or `None` where it can.
    fn lacks(self, place: Place) -> Option<String> {
        match (self, place.device, place.dtype) {
            (ArrayLibrary::Torch, ..) => None,
            (_, Device::Cuda(_), _) => Some(format!("`arrays: {}` has no CUDA", self.name())),
            (ArrayLibrary::Numpy, _, Dtype::Bf16) => Some("numpy has no bf16".to_owned()),
            _ => None,
        }
    }

    /// The format in which floats travel: Python's own floats are f64.
    fn wire_dtype(self, place: Place) -> Dtype {
        if self == ArrayLibrary::List { Dtype::F64 } else { place.dtype }
    }
}

/// With which names a Python function takes its inputs: those of the contract, or, for reward
/// functions, those of a library.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Signature {
    /// The names of the contract.
    #[default]
    ByName,
    /// TRL: `f(prompts, completions, **columns)`, of strings.
    Trl,
    /// TRL: the same, of lists of messages.
    TrlChat,
    /// verl: `compute_score(data_source, solution_str, ground_truth, extra_info)`, row by row.
    Verl,
}

impl Signature {
    /// The name in manifests.
    pub fn name(self) -> &'static str {
        match self {
            Signature::ByName => "by-name",
            Signature::Trl => "trl",
            Signature::TrlChat => "trl-chat",
            Signature::Verl => "verl",
        }
    }
}

/// How Python functions are run; the same for all of a manifest.
#[derive(Clone, Debug)]
pub struct Python {
    /// The interpreter.
    pub interpreter: PathBuf,
    /// Folders put in front of `sys.path`.
    pub path: Vec<PathBuf>,
    /// What arrays the functions get.
    pub arrays: ArrayLibrary,
    /// How long one call may take.
    pub timeout: Duration,
    /// How long loading the function may take, imports included.
    pub load_timeout: Duration,
    /// How much more memory calls may take than the import took, in MiB.
    pub memory_mb: Option<u64>,
    /// Whether `torch.compile` compiles; a call may then take as long as loading.
    pub compile: bool,
    /// Whether workers may be forked from a process that has imported the library of arrays, or
    /// their module, and again once they have imported the function.
    pub fork: bool,
    /// Whether what components print is shown on standard error.
    pub show_output: bool,
    /// The working folder.
    pub folder: PathBuf,
    /// What could not be imported so far.
    pub imports: Imports,
    /// Where workers are forked.
    pub nurseries: Nurseries,
}

/// What came of the imports of modules. One that fails is the same failure for every function of
/// the module, and each try may take as long as loading may.
#[derive(Clone, Debug, Default)]
pub struct Imports(Arc<Mutex<HashMap<String, Arc<Mutex<Import>>>>>);

/// What came of the import of one module; locked while it is tried for the first time.
#[derive(Debug, Default)]
enum Import {
    #[default]
    Unknown,
    /// It can be imported, whatever comes of its functions.
    Possible,
    Failed {
        /// The component that asked for it first.
        target: String,
        why: String,
    },
}

impl Imports {
    /// What is known of the import of a module.
    fn of(&self, module: String) -> Arc<Mutex<Import>> {
        Arc::clone(self.0.lock().expect(NO_PANIC).entry(module).or_default())
    }
}

impl Import {
    /// Why a target of the module does not load, in short where another one has said it.
    fn failed(&self, for_target: &str) -> Option<String> {
        match self {
            Import::Failed { target, why } if target == for_target => Some(why.clone()),
            Import::Failed { target, why } => {
                Some(format!("as for {target}: {}", why.lines().next().unwrap_or_default()))
            }
            Import::Unknown | Import::Possible => None,
        }
    }
}

/// Where there is no `fork`, there are no nurseries.
#[cfg(not(unix))]
#[derive(Clone, Debug, Default)]
pub struct Nurseries;

const NO_PANIC: &str = "no thread panics with the lock";

impl Default for Python {
    fn default() -> Self {
        Python {
            interpreter: default_interpreter(),
            path: Vec::new(),
            arrays: ArrayLibrary::default(),
            timeout: Duration::from_secs(10),
            load_timeout: Duration::from_secs(120),
            memory_mb: None,
            compile: false,
            fork: true,
            show_output: false,
            folder: PathBuf::from("."),
            imports: Imports::default(),
            nurseries: Nurseries::default(),
        }
    }
}

impl Python {
    /// How long a call may take: what is compiled at its first call takes as long as an import.
    fn call_timeout(&self) -> Duration {
        if self.compile { self.timeout.max(self.load_timeout) } else { self.timeout }
    }
}

/// The interpreter of the active virtual environment, else `python3` on the search path.
pub fn default_interpreter() -> PathBuf {
    match std::env::var_os("VIRTUAL_ENV").filter(|folder| !folder.is_empty()) {
        Some(folder) => Path::new(&folder).join("bin/python"),
        None => PathBuf::from("python3"),
    }
}

/// A component in a process of its own.
pub struct Process {
    contract: &'static dyn AnyContract,
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: PathBuf,
    /// The part of the `load` message that says which function, and from where.
    target: String,
    path: Vec<PathBuf>,
    signature: Signature,
    wiring: Wiring,
    arrays: ArrayLibrary,
    timeout: Duration,
    load_timeout: Duration,
    memory_mb: Option<u64>,
    compile: bool,
    fork: bool,
    show_output: bool,
    imports: Imports,
    nurseries: Nurseries,
    /// Whether the process that drives this one runs it.
    is_driven: bool,
    /// The invariant whose smallest case comes next.
    shows: Option<String>,
    running: Option<Running>,
    /// Whether it gives gradients, as it said when it was loaded last.
    autograd: bool,
    /// The inputs and options that it takes, as it said then.
    takes: Vec<String>,
    /// What readers should know of how it runs, as it said then, and of how it ran.
    notes: Vec<String>,
    /// Whether a call has hung, twice in a row.
    hangs: bool,
    /// Where its function is written, as it said then.
    source: Option<(PathBuf, usize)>,
}

/// A process that has loaded the component.
struct Running {
    conversation: Conversation,
    device: Device,
    /// How long loading took.
    loaded_in: Duration,
    /// Whether it has been called.
    is_called: bool,
}

impl Process {
    /// A Python function: `python:FILE.py:FUNCTION` or `python:MODULE:FUNCTION`.
    pub fn python(
        contract: &'static dyn AnyContract,
        target: &str,
        signature: Signature,
        python: &Python,
    ) -> Self {
        // Functions on texts alone need no library of arrays.
        let only_texts = contract.inputs().iter().all(|field| field.kind == Kind::Text);
        let arrays = if only_texts { ArrayLibrary::List } else { python.arrays };
        Process {
            contract,
            program: python.interpreter.clone(),
            arguments: vec!["-c".into(), read_worker(target).into()],
            folder: python.folder.clone(),
            target: target.to_owned(),
            path: python.path.clone(),
            signature,
            wiring: Wiring::default(),
            arrays,
            timeout: python.call_timeout(),
            load_timeout: python.load_timeout,
            memory_mb: python.memory_mb,
            compile: python.compile,
            fork: python.fork,
            show_output: python.show_output,
            imports: python.imports.clone(),
            nurseries: python.nurseries.clone(),
            is_driven: false,
            shows: None,
            running: None,
            autograd: false,
            takes: Vec::new(),
            notes: Vec::new(),
            hangs: false,
            source: None,
        }
    }

    /// The same, found, made and called as this says. A program has an environment, and no more.
    #[must_use]
    pub fn wired(mut self, wiring: &Wiring) -> Self {
        self.wiring = wiring.clone();
        self
    }

    /// A Python function that the process which drives this one runs.
    pub fn driven(
        contract: &'static dyn AnyContract,
        target: &str,
        signature: Signature,
        python: &Python,
    ) -> Self {
        let process = Process::python(contract, target, signature, python);
        Process { is_driven: true, fork: false, program: "the driving process".into(), ..process }
    }

    /// Any program that speaks the protocol on its standard input and output; folder and time
    /// limits are those of the Python functions beside it.
    pub fn command(
        contract: &'static dyn AnyContract,
        command: &[String],
        python: &Python,
    ) -> Self {
        let (program, arguments) = command.split_first().map_or(("", &[][..]), |(p, a)| (p, a));
        Process {
            contract,
            program: PathBuf::from(program),
            arguments: arguments.iter().map(OsString::from).collect(),
            folder: python.folder.clone(),
            target: format!("process:{program}"),
            path: Vec::new(),
            signature: Signature::ByName,
            wiring: Wiring::default(),
            arrays: ArrayLibrary::Torch,
            timeout: python.timeout,
            load_timeout: python.load_timeout,
            memory_mb: None,
            compile: false,
            fork: false,
            show_output: python.show_output,
            imports: Imports::default(),
            nurseries: Nurseries::default(),
            is_driven: false,
            shows: None,
            running: None,
            autograd: false,
            takes: Vec::new(),
            notes: Vec::new(),
            hangs: false,
            source: None,
        }
    }

    /// What is imported for the target, and for others too: the module and how it is searched.
    fn module(&self, device: Device) -> String {
        let module = self.target.rsplit_once(':').map_or("", |(module, _)| module);
        let how = (&self.program, &self.folder, &self.path, self.arrays, device);
        format!("{module} {how:?} {:?}", self.wiring.of_import())
    }

    fn is_python(&self) -> bool {
        self.target.starts_with("python:")
    }

    fn load_message(&self, device: Device) -> Vec<u8> {
        let list = |names: Vec<&str>| serde_json::to_string(&names).expect("names can be written");
        let mut message = Message::new("load");
        message.text("shakedown", "1");
        message.text("target", &*self.target);
        message.text("path", list(self.path.iter().filter_map(|path| path.to_str()).collect()));
        message.text("signature", self.signature.name());
        self.wiring.write(&mut message);
        message.text("arrays", self.arrays.name());
        message.text("device", device_name(device));
        message.text("contract", self.contract.id());
        message
            .text("inputs", list(self.contract.inputs().iter().map(|field| field.name).collect()));
        message.text(
            "options",
            list(self.contract.option_docs().iter().map(|doc| doc.name).collect()),
        );
        let outputs = self.contract.outputs();
        let outputs = outputs.iter().filter(|field| !field.name.starts_with("grad_"));
        message.text("outputs", list(outputs.clone().map(|field| field.name).collect()));
        let texts = outputs.clone().filter(|field| field.kind == Kind::Text);
        message.text("texts", list(texts.map(|field| field.name).collect()));
        let optional = outputs.filter(|field| field.optional);
        message.text("optional", list(optional.map(|field| field.name).collect()));
        message.text("leaves", list(self.contract.leaves().to_vec()));
        if let Some(limit) = self.memory_mb {
            message.text("memory_mb", limit.to_string());
        }
        if self.compile {
            message.text("compile", "true");
        }
        if self.is_python() && !self.fork {
            message.text("fork", "false");
        }
        if coverage::is_counting() {
            message.text("coverage", "true");
        }
        wire::encode(&[], message.texts, Dtype::F64)
    }

    /// Starts the process and loads the component, where it is not running yet.
    fn start(&mut self, device: Device) -> Result<&mut Running, Refusal> {
        if self.running.as_ref().is_some_and(|running| running.device != device) {
            self.running = None;
        }
        if self.running.is_none() {
            let import = self.imports.of(self.module(device));
            let mut import = import.lock().expect(NO_PANIC);
            if let Some(why) = import.failed(&self.target) {
                return Err(Refusal::Error(Error::new(why).within(self.target.clone())));
            }
            if matches!(*import, Import::Possible) {
                drop(import); // nobody needs to wait for what cannot fail
                self.running = Some(self.load(device, &mut Import::Possible)?);
            } else {
                self.running = Some(self.load(device, &mut import)?);
            }
        }
        Ok(self.running.as_mut().expect("it was just started"))
    }

    fn load(&mut self, device: Device, import: &mut Import) -> Result<Running, Refusal> {
        // An import that only asks whether there is a GPU keeps forked processes from using it.
        let is_shared = device == Device::Cpu && matches!(import, Import::Possible);
        if let Some(forked) = self.fork(is_shared)
            && let Some(running) = self.load_in(forked, device, import)?
        {
            return Ok(running);
        }
        let conversation = self.begin()?;
        let program = self.program.clone();
        self.load_in(conversation, device, import)?.ok_or_else(|| {
            let why = format!("{} refused to load it in a process of its own", program.display());
            Refusal::Error(Error::new(why).within(self.target.clone()))
        })
    }

    /// A conversation with the parent process, or with a worker that is started now.
    fn begin(&self) -> Result<Conversation, Refusal> {
        if self.is_driven {
            return Ok(Conversation::over(Parent));
        }
        let shown_as = self.show_output.then_some(&*self.target);
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).current_dir(&self.folder).envs(&self.wiring.env);
        let program = if self.is_python() { WORKER } else { "" };
        Worker::start(command, program, shown_as)
            .map(Conversation::over)
            .map_err(|error| Refusal::Error(self.cannot_start(&error)))
    }

    /// A worker that has imported already what it needs, its own module too where that may be
    /// shared; `None` where it is to be a process of its own.
    #[cfg(unix)]
    fn fork(&self, may_be_shared: bool) -> Option<Conversation> {
        if !self.fork {
            return None;
        }
        let library = if self.mentions_torch() { ArrayLibrary::Torch } else { self.arrays };
        let imports = if self.compile { "compile" } else { "" };
        let imports = format!("{} {imports}", library.name());
        let from_nursery = |module: &str| {
            let start = || {
                let mut command = Command::new(&self.program);
                let words = ["nursery", &imports, module];
                command.args(&self.arguments).args(words).current_dir(&self.folder);
                command.envs(&self.wiring.env);
                command
            };
            let how = (&self.program, &self.folder, &self.wiring.env);
            let name = format!("{how:?} {imports} {module}");
            self.nurseries.fork(name, start, WORKER, self.load_timeout)
        };
        // What a setup or a stand-in does comes before the import, and what that prints is shown.
        let Wiring { setup, stub, .. } = &self.wiring;
        let is_shared = may_be_shared && setup.is_none() && stub.is_empty() && !self.show_output;
        let own_module = is_shared.then(|| from_nursery(&self.own_module())).flatten();
        let (forked, streams) = own_module.or_else(|| from_nursery(""))?;
        let shown_as = self.show_output.then_some(&*self.target);
        Some(Conversation::over(Worker::forked(forked, streams, shown_as)))
    }

    /// Its module, in the words of `_serve.py`.
    #[cfg(unix)]
    fn own_module(&self) -> String {
        let module = self.target.trim_start_matches("python:").rsplit_once(':');
        let module = module.map_or("", |(module, _)| module);
        let arrays = self.arrays.name();
        serde_json::json!({"where": module, "path": self.path, "arrays": arrays}).to_string()
    }

    /// Whether its file imports torch, and sets nothing of the environment that torch may read.
    #[cfg(unix)]
    fn mentions_torch(&self) -> bool {
        let module = self.target.trim_start_matches("python:").rsplit_once(':');
        let module = module.map_or("", |(module, _)| module);
        let files: Vec<PathBuf> = if module.ends_with(".py") {
            vec![self.folder.join(module)]
        } else {
            let module = module.replace('.', "/");
            let names = [format!("{module}.py"), format!("{module}/__init__.py")];
            self.path.iter().flat_map(|path| names.each_ref().map(|name| path.join(name))).collect()
        };
        let text = files.iter().find_map(|file| std::fs::read_to_string(file).ok());
        text.is_some_and(|text| {
            let imports = |line: &str| {
                let mut words = line.split([' ', '.', ',']);
                matches!(words.next(), Some("import" | "from")) && words.next() == Some("torch")
            };
            text.lines().any(imports) && !text.contains("environ")
        })
    }

    #[cfg(not(unix))]
    fn fork(&self, _: bool) -> Option<Conversation> {
        let Nurseries = self.nurseries; // none here
        None
    }

    /// Loads the component in a worker; `None` where it cannot do so in one that was forked.
    fn load_in(
        &mut self,
        mut conversation: Conversation,
        device: Device,
        import: &mut Import,
    ) -> Result<Option<Running>, Refusal> {
        let started = Instant::now();
        let program = self.program.display();
        let failed = |why: String| Refusal::Error(Error::new(why).within(self.target.clone()));
        // What is wrong with the whole module, and not with one function of it.
        let mut broken = |why: String| {
            *import = Import::Failed { target: self.target.clone(), why: why.clone() };
            failed(why)
        };
        let reply = match conversation.ask(self.load_message(device), self.load_timeout) {
            Ok(reply) => reply,
            Err(Lost::TimedOut) => {
                let limit = self.load_timeout.as_millis();
                let why = format!("{program} did not load it within {limit} ms (load_timeout_ms)");
                return Err(broken(why));
            }
            Err(Lost::Ended { how, stderr }) => {
                let stderr = if stderr.is_empty() { stderr } else { format!("\n{stderr}") };
                return Err(broken(format!("{program} ended while loading it: {how}{stderr}")));
            }
            Err(Lost::Confused(why)) => {
                return Err(failed(format!("{program} did not answer `load`: {why}")));
            }
        };
        match (reply.get("kind"), reply.get("problem")) {
            ("loaded", _) => {
                self.autograd = reply.get("autograd") == "true";
                self.takes = reply.names("takes");
                self.notes = reply.names("notes");
                let line = reply.get("line").parse().ok().filter(|line| *line > 0);
                self.source = line.map(|line| (PathBuf::from(reply.get("file")), line));
                *import = Import::Possible;
                let loaded_in = started.elapsed();
                Ok(Some(Running { conversation, device, loaded_in, is_called: false }))
            }
            ("refused", "not-forked") if self.fork => Ok(None),
            ("refused", "device-missing") => Err(Refusal::NotHere(reply.get("message").to_owned())),
            ("refused", _) => {
                let traceback = reply.get("traceback").trim_end();
                let separator = if traceback.is_empty() { "" } else { "\n" };
                let message = reply.get("message");
                let hint = match reply.get("problem") {
                    "arrays-missing" => "; see `interpreter` and `arrays` of `python`",
                    _ => "",
                };
                let why = format!("{message}{hint}{separator}{traceback}");
                Err(if reply.get("problem") == "import-raised" { broken(why) } else { failed(why) })
            }
            (kind, _) => Err(failed(format!("{program} answered `{kind}` to `load`"))),
        }
    }

    fn cannot_start(&self, error: &std::io::Error) -> Error {
        let program = self.program.display();
        let what = if self.is_python() { "interpreter" } else { "program" };
        Error::new(format!("cannot start the {what} {program}: {error}"))
            .within(self.target.clone())
    }

    /// The reply to a call. One that takes too long is made again: where it takes too long twice,
    /// it hangs, and else the machine was busy.
    fn ask(&mut self, device: Device, request: &[u8]) -> Result<Message, Failure> {
        let first = self.ask_once(device, request);
        let Err(Failure::TimedOut { limit_ms }) = first else {
            return first;
        };
        let again = self.ask_once(device, request);
        if matches!(again, Err(Failure::TimedOut { .. })) {
            self.hangs = true;
        } else {
            self.notes
                .push(format!("a call took longer than {limit_ms} ms, and less when repeated"));
        }
        again
    }

    fn ask_once(&mut self, device: Device, request: &[u8]) -> Result<Message, Failure> {
        let mut is_first = true;
        loop {
            let (timeout, hangs) = (self.timeout, self.hangs);
            let began = Instant::now();
            let running = self.start(device).map_err(|refusal| Failure::Died {
                how: format!("and could not be started again: {}", refusal.why()),
                restart: Some(began.elapsed()),
            })?;
            let restart = running.loaded_in;
            let is_patient = !std::mem::replace(&mut running.is_called, true) && !hangs;
            let timeout = if is_patient { timeout.saturating_mul(FIRST) } else { timeout };
            match running.conversation.ask(request.to_vec(), timeout) {
                Ok(reply) if reply.get("kind") == "timed-out" => {
                    let limit_ms = reply.get("limit_ms").parse().unwrap_or(0);
                    return Err(Failure::TimedOut { limit_ms });
                }
                Ok(reply) => return Ok(reply),
                Err(Lost::Confused(problem)) => {
                    self.running = None;
                    return Err(Failure::Confused { problem, restart });
                }
                Err(Lost::TimedOut) => {
                    self.running = None;
                    let limit_ms = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
                    return Err(Failure::TimedOut { limit_ms });
                }
                // The worker gives up with status 1 when a stream was cut in the middle of a
                // message; the call in flight may be innocent, so it is made once more.
                Err(Lost::Ended { how, .. }) if how == "exit status 1" && is_first => {
                    self.running = None;
                    is_first = false;
                }
                Err(Lost::Ended { how, stderr }) => {
                    self.running = None;
                    let last = stderr.lines().last().unwrap_or("").to_owned();
                    let how = if last.is_empty() { how } else { format!("{how}: {last}") };
                    let how = self.under_limit(how);
                    return Err(Failure::Died { how, restart: Some(restart) });
                }
            }
        }
    }

    /// An exception in words, with the limit where memory ran out.
    fn out_of_memory(&self, kind: &str, message: &str) -> String {
        let message = format!("{kind}: {message}");
        let is_memory = ["MemoryError", "allocate memory"].iter().any(|&it| message.contains(it));
        if is_memory { self.under_limit(message) } else { message }
    }

    /// With the limit on memory, where there is one.
    fn under_limit(&self, what: String) -> String {
        match self.memory_mb {
            Some(limit) => format!("{what} (under `memory_mb: {limit}`)"),
            None => what,
        }
    }

    fn is_one_number(&self, output: &str) -> bool {
        self.contract.outputs().iter().any(|field| field.name == output && field.ndim == Some(0))
    }

    fn returned(&self, reply: &Message, inputs: &[(&str, Value)]) -> Result<Returned, Failure> {
        let malformed = |problem: String| Failure::Malformed { problem };
        let (changed, no_gradient) = (reply.names("changed"), reply.names("no_grad"));
        let mut values = no_gradients(&no_gradient, inputs);
        for (name, tensor) in &reply.tensors {
            let value = numbers(self.contract.whole(), name, tensor.value.clone());
            let Value::Float(mut array) = value else {
                return Err(malformed(format!(
                    "`{name}` has dtype {:?}, expected a float dtype",
                    tensor.dtype
                )));
            };
            // A loss of shape `[1]` trains as one of shape `[]`.
            if array.shape() == [1] && self.is_one_number(name) {
                array = array.index_axis_move(Axis(0), 0);
            }
            values.insert(name.clone(), Value::Float(array));
        }
        for (name, value) in reply.lists().map_err(malformed)? {
            excerpt::all_readable(&name, &value).map_err(malformed)?;
            values.insert(name, value);
        }
        let output = self
            .contract
            .output(&mut |name| values.remove(name))
            .map_err(|(name, why)| malformed(format!("`{name}`: {why}")))?;
        Ok(Returned { output, changed, no_gradient })
    }
}

/// Why a component does not load.
enum Refusal {
    /// The place is not on this machine.
    NotHere(String),
    /// It cannot run anywhere.
    Error(Error),
}

impl Refusal {
    fn why(self) -> String {
        match self {
            Refusal::NotHere(why) => why,
            Refusal::Error(error) => error.to_string(),
        }
    }
}

fn device_name(device: Device) -> String {
    match device {
        Device::Cpu => "cpu".to_owned(),
        Device::Cuda(index) => format!("cuda:{index}"),
    }
}

impl Component for Process {
    fn prepare(&mut self, place: Place) -> Result<Option<String>, Error> {
        if let Some(why) = self.arrays.lacks(place) {
            return Ok(Some(why));
        }
        match self.start(place.device) {
            Ok(_) => Ok(None),
            Err(Refusal::NotHere(why)) => Ok(Some(why)),
            Err(Refusal::Error(error)) => Err(error),
        }
    }

    fn call(&mut self, call: &Call<'_>) -> Result<Returned, Failure> {
        let values: Vec<(&str, Value)> = call
            .case
            .values()
            .into_iter()
            .filter_map(|(name, value)| Some((name, value?)))
            .collect();
        let mut message = Message::new("call");
        let options = serde_json::to_string(&call.options.json()).expect("options can be written");
        message.text("options", options);
        let required = self.contract.required(&**call.case, &**call.options);
        message.text("required", serde_json::to_string(&required).expect("names can be written"));
        if call.gradient {
            let leaves = values.iter().map(|(name, _)| *name);
            let leaves: Vec<&str> =
                leaves.filter(|name| is_named(self.contract.leaves(), name)).collect();
            message.text("grad", leaves.join(","));
        }
        if let Some(invariant) = self.shows.take().filter(|_| self.is_driven) {
            message.text("final", invariant);
        }
        if coverage::is_followed() {
            message.text("follow", "true");
        }
        let request = wire::encode(&values, message.texts, self.arrays.wire_dtype(call.place));
        let reply = self.ask(call.place.device, &request)?;
        reply.get("ran").split(',').filter_map(|place| place.parse().ok()).for_each(coverage::ran);
        for note in reply.names("notes") {
            if !self.notes.contains(&note) {
                self.notes.push(note);
            }
        }
        match reply.get("kind") {
            "returned" => self.returned(&reply, &values),
            "raised" => Err(Failure::Raised {
                message: self.out_of_memory(reply.get("type"), &excerpt(reply.get("message"))),
                traceback: excerpt(reply.get("traceback").trim_end()).into_owned(),
            }),
            "malformed" => {
                let problem = excerpt(reply.get("message")).into_owned();
                Err(Failure::Malformed { problem })
            }
            "died" => {
                let get = |key| reply.get(key);
                let how = match get("how") {
                    "signal" => format!("killed by signal {} ({})", get("signal"), get("name")),
                    "device" => format!("its GPU is lost to it: {}", get("message")),
                    _ => format!("exit status {}", get("code")),
                };
                let ended = if get("last") == "true" { self.running.take() } else { None };
                let restart = ended.map(|it| it.loaded_in);
                Err(Failure::Died { how: self.under_limit(how), restart })
            }
            kind => {
                let problem = format!("answered `{kind}` to a call: {}", reply.get("message"));
                Err(Failure::Malformed { problem })
            }
        }
    }

    fn gradients(&self, _: Place) -> Gradients {
        match self.autograd {
            true => Gradients::Returned,
            false if self.is_python() => {
                Gradients::None(format!("`arrays: {}` has no autograd", self.arrays.name()))
            }
            false => Gradients::None("the process gives no gradients".to_owned()),
        }
    }

    fn notes(&self) -> Vec<String> {
        self.notes.clone()
    }

    fn source(&self) -> Option<(PathBuf, usize)> {
        self.source.clone()
    }

    fn shows(&mut self, invariant: &str) {
        self.shows = Some(invariant.to_owned());
    }

    fn begin_anew(&mut self) -> bool {
        // The process that drives this one has to live on.
        if !self.is_driven {
            self.running = None;
        }
        !self.is_driven
    }

    fn reads(&self, option: &str) -> bool {
        self.takes.iter().any(|name| name == option)
    }
}
