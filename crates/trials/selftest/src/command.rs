//! The command `gauntlet-selftest`, which `gauntlet selftest` starts. It serves its own workers; kernels in files are compared by
//! `gauntlet`.

mod characteristics;
mod cheats;
mod honest;
mod power;
mod worker;

use std::ffi::OsString;
use std::process::Command;
use std::time::Duration;

use clap::{Parser, Subcommand};
use gauntlet_cli::error::{CliError, say_line};
use gauntlet_cli::exit::Exit;
use gauntlet_cli::machine::Hold;
use gauntlet_cli::{MeasuredExecutor, Selftest, VERSION, interrupt, of_the_installation, this_program};
use gauntlet_worker::Program;

use self::worker::Worker;
use crate::burner::Burner;
use crate::cheats::Quiet;

/// Measures how often verdicts err where the truth is known; `gauntlet selftest` starts it.
#[derive(Debug, Parser)]
#[command(name = "gauntlet-selftest", version = VERSION, args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    selftest: Selftest,
    /// The `gauntlet` that is tested: its file, then each argument that precedes those of its commands. By default the one beside this
    /// program, or else in PATH.
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    program: Vec<OsString>,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Serve a worker of the self-test.
    #[command(hide = true, subcommand)]
    Worker(Worker),
}

impl Arguments {
    /// The program that is tested.
    fn gauntlet(&self) -> Result<Program, CliError> {
        let program = match self.program.split_first() {
            Some((file, arguments)) => Program {
                file: file.into(),
                arguments: arguments.to_vec(),
            },
            None => Program::new(of_the_installation("gauntlet", "kernel-gauntlet")?),
        };
        check_version(&program)?;
        Ok(program)
    }
}

/// Refuses a program that was built from other sources than this one.
fn check_version(program: &Program) -> Result<(), CliError> {
    let shown = program.file.display();
    let said = Command::new(&program.file)
        .args(program.with(["--version"]))
        .output();
    let said = said.map_err(|error| {
        CliError::bad_input(
            format!("{shown} does not start: {error}"),
            "name `gauntlet` by --program",
        )
    })?;
    let said = String::from_utf8_lossy(&said.stdout);
    if said.trim() == format!("gauntlet {VERSION}") {
        return Ok(());
    }
    Err(CliError::bad_input(
        format!(
            "the self-test is of version {VERSION}, and {shown} says that it is `{}`",
            said.trim()
        ),
        "install both from the same release, or build both from the same checkout",
    ))
}

/// Runs the command and returns its exit code. `arguments` begin with the name of the program.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let mut arguments = Arguments::parse_from(arguments);
    interrupt::handle();
    let result = match arguments.task.take() {
        Some(Task::Worker(worker)) => worker.serve(),
        None => selftest(&arguments),
    };
    result.unwrap_or_else(CliError::tell) as u8
}

fn selftest(arguments: &Arguments) -> Result<Exit, CliError> {
    if !arguments.program.is_empty() {
        arguments.gauntlet()?;
    }
    match &arguments.selftest {
        Selftest { cheats: true, .. } => cheats::cheats(arguments),
        Selftest { honest: true, .. } => honest::honest(arguments),
        Selftest { power: true, .. } => power::power(arguments),
        _ => characteristics::characteristics(arguments),
    }
}

/// How long the load of the machine is measured before a test.
const LISTEN: Duration = Duration::from_secs(2);

/// Measures how quiet the machine is and says so, then runs a test: alone on the machine, or beside the neighbour if the
/// self-test is to be contested.
fn tested<T>(
    arguments: &Selftest,
    executor: MeasuredExecutor,
    test: impl FnOnce() -> Result<T, CliError>,
) -> Result<(Quiet, T), CliError> {
    let _hold = Hold::take(executor)?;
    let quiet = Quiet::measure(LISTEN);
    say_line(format_args!("{quiet}"));
    let _neighbour = neighbour(arguments, &this_program()?)?;
    Ok((quiet, test()?))
}

fn neighbour(arguments: &Selftest, program: &Program) -> Result<Option<Burner>, CliError> {
    let started = arguments.contested.then(|| Burner::start(program)).transpose();
    started.map_err(|error| {
        CliError::broken(format!(
            "the neighbour cannot be started: {error}; leave out --contested"
        ))
    })
}

/// Refuses names that `known` does not hold.
fn check_names(wanted: &[String], known: &[&str]) -> Result<(), CliError> {
    match wanted.iter().find(|name| !known.contains(&name.as_str())) {
        None => Ok(()),
        Some(stranger) => Err(CliError::bad_input(
            format!("--only: there is no candidate `{stranger}`"),
            format!("one of {}", known.join(", ")),
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use gauntlet_cli::documents::Document;
    use gauntlet_cli::schemas::{PUBLISHED, text, written};

    use super::*;

    /// As the command's own test of its schemas, for the documents of this program.
    fn check<D: Document>() {
        let published = PUBLISHED
            .iter()
            .find(|published| published.name == D::NAME)
            .unwrap();
        assert_eq!(published.version, D::VERSION, "{}", D::NAME);
        let made = text(published, written::<D>());
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/reference/schemas");
        let path = folder.join(format!("{}.json", D::NAME));
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, &made).unwrap();
        }
        assert!(
            std::fs::read_to_string(&path).unwrap() == made,
            "{} is stale: run `UPDATE_REFERENCE=1 cargo test -p gauntlet-selftest schemas`",
            path.display()
        );
    }

    #[test]
    fn the_schemas_of_its_documents_are_what_the_types_generate() {
        check::<self::characteristics::Tested>();
        check::<self::cheats::Tried>();
        check::<self::honest::Accepted>();
        check::<self::power::Powered>();
    }
}
