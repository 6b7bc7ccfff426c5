//! The `gauntlet` command as a library: parses arguments, calls the lab, prints the report. What its programs have in common, as
//! messages, progress and files of results, is for `gauntlet-selftest` too.
//!
//! Two programs run it: the binary `gauntlet`, and the Python package's command of the same name, in the interpreter's
//! process. The second sets a [`Program`](gauntlet_worker::Program) first, because workers are processes of the same program.

mod arguments;
mod commands;
#[cfg(test)]
mod documented;
pub mod documents;
mod environment;
pub mod error;
pub mod exit;
pub mod in_process;
mod installation;
pub mod interrupt;
mod listing;
mod load;
pub mod machine;
mod outputs;
mod problem_text;
pub mod progress;
mod recording;
#[cfg(test)]
mod reference;
mod requirement;
mod run_lock;
pub mod schemas;
pub mod sink;

use std::ffi::OsString;

use clap::Parser;

use crate::arguments::{Arguments, Command};
pub use crate::arguments::{MeasuredExecutor, Selftest};
pub use crate::commands::run::{VERSION, cpu_worker, environment, this_program, version};
pub use crate::commands::worker::{answer, cpu_host};
pub use crate::error::CliError;
pub use crate::installation::of_the_installation;
pub use gauntlet_report::visible_lines;

/// Runs the command and returns its exit code. `arguments` begin with the name of the program.
///
/// It handles interrupts for the whole process from here on: on an interrupt it ends the workers, says what is kept, and
/// exits. Help, version and bad usage exit as well.
pub fn main<T: Into<OsString>>(arguments: impl IntoIterator<Item = T>) -> u8 {
    let words: Vec<OsString> = arguments.into_iter().map(Into::into).collect();
    let arguments = Arguments::parse_from(&words);
    interrupt::handle();
    recording::runs(
        words
            .iter()
            .skip(1)
            .map(|word| word.to_string_lossy().into_owned()),
    );
    let result = match arguments.command {
        Command::Run(run) => commands::run::run(&run),
        Command::Compare(compare) => commands::compare::compare(&compare),
        Command::Time(time) => commands::time::time(&time),
        Command::Judge(judge) => commands::judge::judge(&judge),
        Command::Report(report) => commands::report::report(&report),
        Command::Tune(tune) => commands::tune::tune(&tune),
        Command::Check(check) => commands::check::check(&check),
        Command::Audit(audit) => commands::audit::audit(&audit),
        Command::Compile(compile) => commands::compile::compile(&compile),
        Command::Task(task) => commands::task::task(&task),
        Command::Suites(suites) => commands::suites::suites(&suites),
        Command::Devices(devices) => commands::devices::devices(&devices),
        Command::Schedules(schedules) => commands::schedules::schedules(&schedules),
        Command::Schema(schema) => commands::schema::schema(&schema),
        Command::Explain(explain) => commands::explain::explain(&explain),
        Command::Ledger(ledger) => commands::ledger::ledger(&ledger),
        Command::Bisect(bisect) => commands::bisect::bisect(&bisect),
        Command::Watch(watch) => commands::watch::watch(watch),
        Command::History(history) => commands::history::history(&history),
        Command::Job(job) => commands::job::job(&job),
        Command::Errand(errand) => commands::errand::errand(&errand),
        Command::Queue(queue) => commands::queue::queue(&queue),
        Command::Pages(pages) => commands::pages::pages(&pages),
        Command::Mcp(mcp) => commands::mcp::mcp(&mcp),
        Command::Serve(serve) => commands::serve::serve(&serve),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Selftest(_) => commands::selftest::selftest(&words),
        Command::Validate(validate) => commands::validate::validate(&validate),
        Command::Worker(worker) if worker.is_of_the_selftest() => commands::selftest::worker(&words),
        Command::Worker(worker) => commands::worker::worker(&worker),
        Command::Completions(completions) => commands::completions::completions(&completions),
        Command::Man(man) => commands::man::man(&man),
    };
    result.unwrap_or_else(CliError::tell) as u8
}
