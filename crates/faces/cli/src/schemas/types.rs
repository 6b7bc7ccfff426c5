//! The types behind the schemas.

use std::collections::BTreeMap;

use gauntlet_audit::AuditReport;
use gauntlet_device::Device;
use gauntlet_families::TASKS;
use gauntlet_history::series::Series;
use gauntlet_host_library::FunctionTable;
use gauntlet_host_nvrtc::KernelTable;
use gauntlet_judge::ComparisonReport;
use gauntlet_judge::ledger::{Entry, Judged, RunSummary};
use gauntlet_parameters::Parameters;
use gauntlet_python_task::TaskToml;
use gauntlet_queue::{JobResult, Status, Ticket};
use gauntlet_task::{DispatchTable, OwnTable, Suite, Violation};
use gauntlet_tournament::forecast::{Forecasters, Prospect};
use gauntlet_tournament::{Answers, PROTOCOL, Pitch, RoundFile, TournamentFile, TournamentReport};
use gauntlet_worker::Record;
use gauntlet_worker::protocol::{self, Envelope, Reply};
use schemars::Schema;

use super::result_file::ResultFile;
use super::{read, written};
use crate::commands::bisect::Bisection;
use crate::commands::check::Checked;
use crate::commands::compile::Compiled;
use crate::commands::doctor::Findings;
use crate::commands::explain::counted::KernelExplained;
use crate::commands::explain::schedule::Explained;
use crate::commands::explain::times::Diagnosed;
use crate::commands::ledger::Shown;
use crate::commands::schedules::Row;
use crate::commands::several::Comparisons;
use crate::commands::time::Timed;
use crate::commands::tune::Tuned;
use crate::commands::tune::replay::Replayed;
use crate::commands::validate::Validated;
use crate::commands::watch::{WatchList, Watching};
use crate::documents::Document;

/// Documents of the self-test. Its own tests compare their schemas with its types.
pub const OF_THE_SELFTEST: [&str; 4] = ["operating-characteristics", "cheats", "honest-workers", "power"];

/// A name with its version, and the schema of the type.
pub type Type = (&'static str, u32, fn() -> Schema);

fn document<D: Document>() -> Type {
    (D::NAME, D::VERSION, written::<D>)
}

/// The types of this program.
pub fn types() -> Vec<Type> {
    vec![
        document::<ComparisonReport>(),
        document::<Comparisons>(),
        document::<Timed>(),
        document::<TournamentReport>(),
        document::<Checked>(),
        document::<AuditReport>(),
        document::<Tuned>(),
        document::<Replayed>(),
        document::<Compiled>(),
        document::<Explained>(),
        document::<KernelExplained>(),
        document::<Diagnosed>(),
        document::<Findings>(),
        document::<Validated>(),
        document::<Suite>(),
        document::<Device>(),
        document::<Shown>(),
        document::<Entry>(),
        document::<Forecasters>(),
        document::<Bisection>(),
        document::<Watching>(),
        document::<Status>(),
        ("suites", 1, written::<Vec<Suite>>),
        ("devices", 1, written::<Vec<Device>>),
        ("parameters", 1, written::<Vec<Row>>),
        ("violations", 1, written::<Vec<Violation>>),
        ("runs", 1, written::<Vec<RunSummary>>),
        ("verdicts", 1, written::<Vec<Judged>>),
        ("history", 1, written::<Vec<Series>>),
        ("prospects", 1, written::<Vec<Prospect>>),
        ("tickets", 1, written::<Vec<Status>>),
        ("ticket-file", 1, read::<Ticket>),
        ("job-result", 1, written::<JobResult>),
        ("task-file", 1, read::<TaskToml>),
        ("suite-file", 1, || Suite::file_schema(TASKS)),
        ("parameters-file", 1, read::<Parameters>),
        ("kernel-table", 1, read::<BTreeMap<String, KernelTable>>),
        ("function-table", 1, read::<BTreeMap<String, FunctionTable>>),
        ("parameter-table", 1, read::<BTreeMap<String, OwnTable>>),
        ("dispatch-table", 1, read::<DispatchTable>),
        ("watch-list", 1, read::<WatchList>),
        ("round-file", 1, read::<RoundFile>),
        ("tournament-file", 1, read::<TournamentFile>),
        ("pitch-file", 1, read::<Pitch>),
        ("record-file", 1, read::<Record>),
        ("device-file", 1, read::<Device>),
        ("result-file", 1, read::<ResultFile>),
        ("worker-request", protocol::VERSION, written::<Envelope>),
        ("worker-reply", protocol::VERSION, read::<Reply>),
        ("contestant-answers", PROTOCOL, read::<Answers>),
    ]
}
