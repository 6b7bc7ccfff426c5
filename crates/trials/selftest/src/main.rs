//! The program `gauntlet-selftest`.

use std::process::ExitCode;

fn main() -> ExitCode {
    gauntlet_selftest::main(std::env::args_os()).into()
}
