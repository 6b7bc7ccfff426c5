//! The `gauntlet` command: parses arguments, calls the lab, prints the report.

mod arguments;
mod calibrations;
mod commands;
mod error;
mod exit;
mod interrupt;
mod kernel_text;
mod listing;
mod load;
mod machine;
mod problem_text;
mod progress;
mod requirement;
mod run_lock;
mod schedule_text;
mod sink;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::error::CliError;
use crate::exit::Exit;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    interrupt::handle();
    let result = match arguments.command {
        Command::Run(run) => commands::run::run(&run),
        Command::Compare(compare) => commands::compare::compare(&compare),
        Command::Judge(judge) => commands::judge::judge(&judge),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::Check(check) => commands::check::check(&check),
        Command::Compile(compile) => commands::compile::compile(&compile),
        Command::Suites(suites) => commands::suites::suites(&suites),
        Command::Devices(devices) => commands::devices::devices(&devices),
        Command::Schedules(schedules) => commands::schedules::schedules(&schedules),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Ledger(ledger) => commands::ledger::ledger(&ledger),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Selftest(selftest) => commands::selftest::selftest(&selftest),
        Command::Calibrate(calibrate) => commands::calibrate::calibrate(&calibrate),
        Command::Validate(validate) => commands::validate::validate(&validate),
        Command::Worker(worker) => commands::worker::worker(&worker),
        Command::Completions(completions) => commands::completions::completions(&completions),
    };
    result.unwrap_or_else(CliError::tell).into()
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
