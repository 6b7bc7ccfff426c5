//! The `gauntlet` command: arguments in, lab called, report out.

mod arguments;
mod calibrations;
mod commands;
mod exit;
mod lease;
mod listing;
mod problem_text;
mod progress;
mod schedule_text;
mod sink;
mod trouble;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::{Arguments, Command};
use crate::calibrations::Calibrations;
use crate::exit::Exit;
use crate::trouble::Trouble;

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    // Workers are in process groups of their own, which an interrupt at the terminal does not reach.
    let handled = ctrlc::set_handler(|| {
        gauntlet_executor::end_all_workers();
        std::process::exit(INTERRUPTED);
    });
    if let Err(error) = handled {
        anstream::eprintln!("interrupts cannot be caught ({error}): workers may outlive this program");
    }
    let calibrations = Calibrations::new(&arguments.ledger, arguments.calibration.as_deref());
    let result = match arguments.command {
        Command::Run(run) => commands::run::run(&run, &arguments.ledger, &calibrations),
        Command::Bench(bench) => commands::bench::bench(&bench),
        Command::Tune(tune) => commands::tune::tune(&tune, &calibrations),
        Command::Check(check) => commands::check::check(&check, &calibrations),
        Command::Compile(compile) => commands::compile::compile(&compile),
        Command::Suites(suites) => commands::suites::suites(&suites),
        Command::Devices(devices) => commands::devices::devices(&devices),
        Command::Schedules(schedules) => commands::schedules::schedules(&schedules),
        Command::Explain(explain) => commands::explain::explain(&explain, &calibrations),
        Command::Ledger(ledger) => commands::ledger::ledger(&ledger, &arguments.ledger),
        Command::Doctor(doctor) => commands::doctor::doctor(&doctor),
        Command::Selftest(selftest) => commands::selftest::selftest(&selftest),
        Command::Calibrate(calibrate) => commands::calibrate::calibrate(&calibrate, &calibrations),
        Command::Validate(validate) => commands::validate::validate(&validate, &calibrations),
        Command::Worker(worker) => commands::worker::worker(&worker),
        Command::Completions(completions) => commands::completions::completions(&completions),
    };
    result.unwrap_or_else(Trouble::tell).into()
}

/// What shells expect of a program ended by an interrupt: 128 and the signal's number.
const INTERRUPTED: i32 = 130;

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
