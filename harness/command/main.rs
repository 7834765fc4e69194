//! The command `shakedown`.

use std::process::ExitCode;

fn main() -> ExitCode {
    shakedown::door::cli::main()
}
