//! The command that starts training: which library it is for, and what its words set.

use std::path::{Path, PathBuf};

use super::layer::{Field, Layer};
use super::word::{self, OPEN, UNREAD, Word};
use super::{flags, others, overrides, recognise, yaml};
use crate::settings::Library;
use shakedown_core::value::error::Error;

/// TRL's commands and the calls that take their flags.
const TRL_COMMANDS: [(&str, Option<&str>); 7] = [
    ("grpo", Some("GRPOConfig")),
    ("rloo", Some("RLOOConfig")),
    ("dpo", Some("DPOConfig")),
    ("kto", Some("KTOConfig")),
    ("ppo", Some("PPOConfig")),
    ("sft", None),
    ("reward", None),
];

/// What a command sets; none where it starts no training that is known. Files that it names are
/// looked for from `folder` outwards.
///
/// # Errors
/// A configuration that it names cannot be read.
pub(super) fn find(words: &[Word], folder: &Path) -> Result<Option<Layer>, Error> {
    for (at, word) in words.iter().enumerate() {
        let (before, text, behind) = (&words[..at], &*word.text, &words[at + 1..]);
        let command = Command { before, arguments: behind, folder };
        let is_module = before.last().is_some_and(|one| matches!(&*one.text, "-m" | "--module"));
        if is_training_module(text) && (is_module || text.starts_with("openrlhf.cli.")) {
            return command.module(text).map(Some);
        }
        // Where verl has no module, one of its forks has its own.
        if text == "verl.trainer.main" && is_module {
            return command.other("EasyR1").map(Some);
        }
        let name = text.rsplit('/').next().unwrap_or(text);
        if name == "trl"
            && let Some(first) = behind.first()
            && let Some((_, call)) = TRL_COMMANDS.iter().find(|(name, _)| *name == first.text)
        {
            let command = Command { arguments: &behind[1..], ..command };
            return command.trl(*call, false).map(Some);
        }
        if name.ends_with(".py") && word.is_read() {
            return command.script(text);
        }
    }
    Ok(None)
}

/// Whether a module starts training by one of the libraries.
fn is_training_module(module: &str) -> bool {
    let name = module.rsplit('.').next().unwrap_or("");
    let is_other = ["generation", "eval", "merger"].iter().any(|word| name.contains(word));
    let of_verl = module.starts_with("verl.") || module.starts_with("recipe.");
    let trains =
        name.starts_with("main_") || name.ends_with("sft_trainer") || name == "fully_async_main";
    let of_openrlhf = module.starts_with("openrlhf.cli.train_");
    of_openrlhf || module.starts_with("trl.scripts.") || of_verl && trains && !is_other
}

/// The words around a program.
#[derive(Clone, Copy)]
struct Command<'a> {
    before: &'a [Word],
    arguments: &'a [Word],
    folder: &'a Path,
}

impl Command<'_> {
    fn module(&self, module: &str) -> Result<Layer, Error> {
        if let Some(name) = module.strip_prefix("trl.scripts.") {
            let call = TRL_COMMANDS.iter().find(|(command, _)| *command == name);
            return self.trl(call.and_then(|(_, call)| *call), true);
        }
        if module.starts_with("openrlhf.") {
            let mut layer = self.flags(Some(Library::OpenRlhf), module);
            layer.is_supervised =
                ["train_sft", "train_kd", "train_rm"].iter().any(|name| module.ends_with(name));
            return Ok(layer);
        }
        let mut layer = self.hydra(Library::Verl, module)?;
        if module != "verl.trainer.main_ppo" {
            layer.gaps.push(format!("`{module}` has a configuration of its own"));
        }
        layer.is_supervised |= module.ends_with("sft_trainer");
        Ok(layer)
    }

    /// A script by its path; which library it uses shows in its arguments.
    fn script(&self, path: &str) -> Result<Option<Layer>, Error> {
        let name = path.rsplit('/').next().unwrap_or(path);
        let names = || self.arguments.iter().filter_map(|word| overrides::name(&word.text));
        let has = |prefix: &str| names().any(|(name, ..)| name.starts_with(prefix));
        let flags = || self.arguments.iter().filter_map(|word| flags::name(&word.text));
        if has("actor_rollout_ref.") {
            let module = path.trim_end_matches(".py").replace('/', ".");
            let is_own = module.ends_with("verl.trainer.main_ppo");
            return self.module(if is_own { "verl.trainer.main_ppo" } else { &module }).map(Some);
        }
        if path.contains("openrlhf/cli/") {
            return self
                .module(&format!("openrlhf.cli.{}", name.trim_end_matches(".py")))
                .map(Some);
        }
        if self.is_nemo(name)? {
            return self.nemo(name).map(Some);
        }
        if recognise::is_slime(flags()) {
            return Ok(Some(self.flags(Some(Library::Slime), name)));
        }
        let names: Vec<String> = flags().map(str::to_owned).collect();
        let names = || names.iter().map(String::as_str);
        let is_named = |(command, _): &&(&str, _)| name.contains(*command);
        let command = TRL_COMMANDS.iter().find(is_named);
        let is_own = ["trl/scripts/", "examples/scripts/"].iter().any(|own| path.contains(own));
        let is_trl = recognise::is_trl(names())
            || is_own && command.is_some() && recognise::is_general(names())
            || self.trl_file()?.is_some();
        let plain = self.flags(None, name);
        let is_other = recognise::fork(None, None, &plain.fields).is_some();
        if is_other || !is_trl {
            return Ok((is_other || recognise::is_general(names())).then_some(plain));
        }
        let call = command.and_then(|(_, call)| *call);
        let mut layer = self.trl(call, command.is_none())?;
        layer.is_open = true;
        if !is_own && self.trl_file()?.is_none() {
            layer.gaps.push(format!("`{name}` may set more"));
        }
        Ok(Some(layer))
    }

    /// The fields of a library that is known by its name only.
    fn other(&self, name: &str) -> Result<Layer, Error> {
        let other = others::named(name);
        let mut layer = Layer { other, format: "shell", ..Layer::default() };
        self.overrides(&mut layer, Library::Verl);
        Ok(layer)
    }

    /// Whether a script is one of NeMo-RL's: its overrides say so, or the file that it names. By
    /// its name it is where it takes no flags, as these scripts do not.
    fn is_nemo(&self, name: &str) -> Result<bool, Error> {
        let words = self.arguments.iter().filter(|word| word.is_read());
        let fields = words.filter_map(|word| overrides::one(&word.text, word.origin())).flatten();
        if recognise::is_nemo(&fields.collect::<Vec<_>>()) {
            return Ok(true);
        }
        if let Some(path) = self.option(&["--config"]).and_then(|word| self.beside(&word.text)) {
            return Ok(yaml::read(&path, "YAML")?.library == Some(Library::NemoRl));
        }
        let scripts = ["run_grpo", "run_dpo", "run_ppo", "run_sft", "run_distillation"];
        let mut flags = self.arguments.iter().filter_map(|word| flags::name(&word.text));
        Ok(scripts.iter().any(|begin| name.starts_with(begin))
            && flags.all(|flag| flag == "config"))
    }

    /// Overrides on top of a configuration that is named, or of the library's own.
    fn hydra(&self, library: Library, call: &str) -> Result<Layer, Error> {
        let mut layer = Layer { format: "shell", ..Layer::default() };
        let named = self.option(&["--config-name", "-cn"]);
        let group = self.arguments.iter().find(|word| selects_group(&word.text, library));
        let mut call = call.to_owned();
        if let Some(name) = named {
            let folder = self.option(&["--config-path", "-cp", "--config-dir"]);
            self.hydra_file(&mut layer, &name, folder.as_ref())?;
            if name.text != "ppo_trainer" {
                call = format!("{call} --config-name {}", name.text);
            }
        }
        if let Some(group) = group {
            call = format!("{call} {}", group.text);
        }
        layer.library = Some(library);
        layer.call = Some(call.replace([UNREAD, OPEN], "?"));
        self.overrides(&mut layer, library);
        Ok(layer)
    }

    fn hydra_file(
        &self,
        layer: &mut Layer,
        name: &Word,
        folder: Option<&Word>,
    ) -> Result<(), Error> {
        let file = name.text.trim_end_matches(".yaml");
        let folder = folder.map_or("config", |word| &*word.text);
        match self.beside(&format!("{folder}/{file}.yaml")) {
            Some(path) if name.is_read() => layer.take(yaml::read(&path, "YAML")?),
            _ if recognise::is_verl_base(file) => {}
            _ => {
                let name = name.text.replace([UNREAD, OPEN], "?");
                layer.gaps.push(format!("the configuration `{name}` is not beside the script"));
            }
        }
        layer.format = "shell";
        Ok(())
    }

    /// A script of NeMo-RL's examples, whose configuration is named or one of its own.
    fn nemo(&self, script: &str) -> Result<Layer, Error> {
        let mut layer = Layer { format: "shell", ..Layer::default() };
        match self.option(&["--config"]) {
            Some(word) => match self.beside(&word.text) {
                Some(path) => layer.take(yaml::read(&path, "YAML")?),
                None => layer.gaps.push("the configuration is not beside the script".to_owned()),
            },
            None => layer.gaps.push(format!("`{script}` has a configuration of its own")),
        }
        layer.library = Some(Library::NemoRl);
        layer.call = Some(script.to_owned());
        layer.format = "shell";
        self.overrides(&mut layer, Library::NemoRl);
        Ok(layer)
    }

    fn overrides(&self, layer: &mut Layer, library: Library) {
        let mut is_value = false;
        for word in self.arguments {
            let is_of_option = std::mem::take(&mut is_value);
            if let Some(option) = word.text.strip_prefix('-') {
                is_value = option.starts_with("-config") || matches!(option, "cn" | "cp");
                is_value &= !option.contains('=');
                continue;
            }
            if is_of_option || selects_group(&word.text, library) {
                continue;
            }
            let Some((name, how, _)) = overrides::name(&word.text) else {
                if !word.is_read() {
                    layer.gaps.push(word::unread(word));
                }
                continue;
            };
            if name.starts_with("hydra.") {
                continue;
            }
            if word.is_read() {
                layer
                    .fields
                    .extend(overrides::one(&word.text, word.origin()).into_iter().flatten());
            } else {
                let (name, origin) = (name.to_owned(), word.origin());
                layer.fields.push(Field { name, json: None, origin, how });
            }
        }
    }

    fn flags(&self, library: Option<Library>, call: &str) -> Layer {
        let call = Some(call.to_owned());
        let mut layer = Layer { library, call, format: "shell", ..Layer::default() };
        flags::read(&mut layer, self.arguments);
        layer
    }

    /// TRL's flags, on top of the file that they name.
    fn trl(&self, call: Option<&str>, is_unsure: bool) -> Result<Layer, Error> {
        let mut layer = Layer { format: "shell", ..Layer::default() };
        if let Some(file) = self.trl_file()? {
            layer.take(file);
        } else if self.option(&["--config"]).is_some() {
            layer.gaps.push("the configuration is not beside the script".to_owned());
        }
        layer.library = Some(Library::Trl);
        layer.call = call.map(str::to_owned).or(layer.call);
        layer.is_open = false;
        layer.format = "shell";
        flags::read(&mut layer, self.arguments);
        let has = |name: &str| layer.fields.iter().any(|field| field.name == name);
        let is_rl = has("num_generations") || has("beta");
        layer.is_supervised |= call.is_none() && !is_unsure && !is_rl;
        let accelerate = |field: &Field| flags::OF_ACCELERATE.contains(&&*field.name);
        layer.fields.retain(|field| !accelerate(field));
        recognise::library(&mut layer);
        let processes = self.processes()?;
        layer.fields.extend(processes);
        Ok(layer)
    }

    /// The file of TRL's that `--config` names, if it is beside the script.
    fn trl_file(&self) -> Result<Option<Layer>, Error> {
        let Some(path) = self.option(&["--config"]).and_then(|word| self.beside(&word.text)) else {
            return Ok(None);
        };
        let layer = yaml::read(&path, "YAML")?;
        Ok((layer.library == Some(Library::Trl)).then_some(layer))
    }

    /// The processes that the launcher starts; one where Python is called by itself.
    fn processes(&self) -> Result<Option<Field>, Error> {
        let all = || self.before.iter().chain(self.arguments);
        let names = ["num_processes", "nproc_per_node", "num_gpus"];
        if let Some((number, word)) = number_of(all(), &names) {
            let nodes = number_of(all(), &["nnodes"]).map_or(1, |(nodes, _)| nodes);
            // Of accelerate's it is the number on all machines.
            let is_whole = word.text.contains("processes");
            let number = if is_whole { Some(number) } else { number.checked_mul(nodes) };
            return Ok(number.map(|number| yaml::processes(number, word.origin())));
        }
        let files = ["--config_file", "--accelerate_config"];
        let named = |name: &&str| option(all(), &[name]).and_then(|word| self.beside(&word.text));
        if let Some(path) = files.iter().find_map(named) {
            let fields = yaml::read(&path, "YAML")?.fields;
            return Ok(fields
                .into_iter()
                .find(|field| field.name == crate::settings::derive::PROCESSES));
        }
        let launchers = ["accelerate", "torchrun", "deepspeed", "trl", "torch.distributed", "srun"];
        let is_launched =
            self.before.iter().any(|word| launchers.iter().any(|one| word.text.contains(one)));
        let last = self.before.last().filter(|word| word.text.contains("python"));
        let is_alone = !is_launched && last.is_some();
        Ok(last.filter(|_| is_alone).map(|word| yaml::processes(1, word.origin())))
    }

    /// The value of one of these options.
    fn option(&self, names: &[&str]) -> Option<Word> {
        option(self.arguments.iter(), names)
    }

    fn beside(&self, path: &str) -> Option<PathBuf> {
        beside(path, self.folder)
    }
}

/// A file by a path from this folder or one that holds it. Others are not read, though a script
/// may name them.
pub(super) fn beside(path: &str, folder: &Path) -> Option<PathBuf> {
    const OUTWARDS: usize = 5;
    let path = path.strip_prefix("$PWD/").unwrap_or(path);
    if path.is_empty() || path.contains([UNREAD, OPEN, '\0', '$']) {
        return None;
    }
    let folder = folder.canonicalize().ok()?;
    let path = match Path::new(path).strip_prefix(&folder) {
        Ok(inside) => inside,
        Err(_) if path.starts_with('/') => return None,
        Err(_) => Path::new(path),
    };
    let near = folder.ancestors().take(OUTWARDS).map(|folder| folder.join(path));
    near.into_iter().find(|path| path.is_file())
}

/// Whether a word takes another one of hydra's files: `model_engine=megatron`.
fn selects_group(word: &str, library: Library) -> bool {
    let Some((name, ..)) = overrides::name(word) else { return false };
    library == Library::Verl && (name.contains(['@', '/']) || !name.contains('.'))
}

/// The name of an option without its dashes.
fn bare(name: &str) -> String {
    name.trim_start_matches('-').replace('-', "_")
}

fn option<'a>(words: impl Iterator<Item = &'a Word>, names: &[&str]) -> Option<Word> {
    let mut words = words.peekable();
    while let Some(word) = words.next() {
        let (name, value) = match word.text.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (&*word.text, None),
        };
        let is_same = |one: &&str| bare(one) == bare(name);
        if name.starts_with('-') && names.iter().any(is_same) {
            return match value {
                Some(value) => Some(Word { text: value.to_owned(), at: word.at.clone() }),
                None => words.next().cloned(),
            };
        }
    }
    None
}

/// The whole number that one of these options has, and the word of it.
fn number_of<'a>(
    words: impl Iterator<Item = &'a Word> + Clone,
    names: &[&str],
) -> Option<(u64, Word)> {
    for name in names {
        let dashed = format!("--{name}");
        if let Some(value) = option(words.clone(), &[&dashed]) {
            let number = value.text.parse().ok()?;
            return Some((number, Word { text: (*name).to_owned(), at: value.at }));
        }
    }
    None
}
