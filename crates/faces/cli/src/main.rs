//! The binary `gauntlet`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gauntlet_cli::main(std::env::args_os()).into()
}
