//! The `gauntlet` command as a library: parses arguments, calls the lab, prints the report.
//!
//! Two programs run it: the binary `gauntlet`, and the Python package's command of the same name, in the interpreter's
//! process. The second sets a [`Program`](gauntlet_worker::Program) first, because workers are processes of the same program.

mod arguments;
mod calibrations;
mod commands;
#[cfg(test)]
mod documented;
mod documents;
mod environment;
mod error;
mod exit;
pub mod in_process;
mod interrupt;
mod kernel_text;
mod listing;
mod load;
mod machine;
mod named_files;
mod outputs;
mod problem_text;
mod progress;
#[cfg(test)]
mod reference;
mod requirement;
mod run_lock;
mod schedule_text;
mod schemas;
mod sink;

use std::ffi::OsString;

use clap::Parser;

use crate::arguments::{Arguments, Command};
pub use crate::commands::run::version;
pub use crate::error::CliError;
pub use gauntlet_report::visible_lines;

/// Runs the command and returns its exit code. `arguments` begin with the name of the program.
///
/// It handles interrupts for the whole process from here on: on an interrupt it ends the workers, says what is kept, and
/// exits. Help, version and bad usage exit as well.
pub fn main<T: Into<OsString> + Clone>(arguments: impl IntoIterator<Item = T>) -> u8 {
    let arguments = Arguments::parse_from(arguments);
    interrupt::handle();
    let result = match arguments.command {
        Command::Run(run) => commands::run::run(&run),
        Command::Compare(compare) => commands::compare::compare(&compare),
        Command::Judge(judge) => commands::judge::judge(&judge),
        Command::Report(report) => commands::report::report(&report),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::Check(check) => commands::check::check(&check),
        Command::Compile(compile) => commands::compile::compile(&compile),
        Command::Suites(suites) => commands::suites::suites(&suites),
        Command::Devices(devices) => commands::devices::devices(&devices),
        Command::Schedules(schedules) => commands::schedules::schedules(&schedules),
        Command::Schema(schema) => commands::schema::schema(&schema),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Ledger(ledger) => commands::ledger::ledger(&ledger),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Selftest(selftest) => commands::selftest::selftest(&selftest),
        Command::Calibrate(calibrate) => commands::calibrate::calibrate(&calibrate),
        Command::Validate(validate) => commands::validate::validate(&validate),
        Command::Worker(worker) => commands::worker::worker(&worker),
        Command::Completions(completions) => commands::completions::completions(&completions),
        Command::Man(man) => commands::man::man(&man),
    };
    result.unwrap_or_else(CliError::tell) as u8
}
