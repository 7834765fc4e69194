//! A folder of its own for each test, and the command run in it.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A temporary folder; it goes with the value.
pub(crate) struct Folder(tempfile::TempDir);

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Ran {
    /// The exit code; −1 where a signal ended it.
    pub(crate) code: i32,
    /// Standard output.
    pub(crate) stdout: String,
    /// Standard error.
    pub(crate) stderr: String,
}

impl Folder {
    /// An empty folder.
    pub(crate) fn new() -> Folder {
        Folder(tempfile::tempdir().expect("a temporary folder can be made"))
    }

    /// Where a file of this name is.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// Writes a file, and the folders above it.
    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().expect("a file is in a folder")).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The built command, ready to run in this folder as if nobody had set anything.
    pub(crate) fn command(&self, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_shakedown"));
        for name in ["NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "SHAKEDOWN_PLACES"] {
            command.env_remove(name);
        }
        command.env("COLUMNS", "100").env("TERM", "xterm").stdin(Stdio::null());
        command.args(arguments).current_dir(self.0.path());
        command
    }

    /// Runs the command to its end.
    pub(crate) fn run(&self, arguments: &[impl AsRef<OsStr>]) -> Ran {
        let output = self.command(arguments).output().expect("the command starts");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("the command writes UTF-8");
        Ran {
            code: output.status.code().unwrap_or(-1),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}
