//! The judge: one candidate against its baseline. It knows no model and no kernel: gates of others are handed to its [`Session`].
//!
//! A candidate and its baseline run in fresh worker processes. Gates examine the candidate, cheapest first; the last
//! gate compares both sides in pairs of processes. Each gate returns a finding with its evidence. The findings
//! determine the verdict, and the ledger records them all.
//!
//! A [`Session`] is the front door. Two functions of shared libraries, on a task in Python:
//!
//! ```no_run
//! use gauntlet_device::Device;
//! use gauntlet_judge::{Candidate, Executor, Measurement, Session, Setting, Workshop};
//! use gauntlet_stats::Criteria;
//! use gauntlet_worker::{Limits, Timeouts, WorkerCommand};
//!
//! let task = gauntlet_python_task::open("softmax.py".as_ref(), &Default::default())?;
//! let setting = Setting::new(Device::host(), &task, Measurement::default(), Criteria::default());
//! // `gauntlet worker library` is the host that calls such a function, in a confined process.
//! let kernel = |name, function: &str| {
//!     Candidate::hosted(name, ["gauntlet", "worker", "library", function].map(Into::into))
//! };
//! let [old, new] = [kernel("old", "./libold.so:softmax"), kernel("new", "./libnew.so:softmax")];
//! let built_in = WorkerCommand::new("gauntlet", ["worker", "cpu"].map(Into::into));
//! let executor = Executor::Live(Workshop::new(built_in, Timeouts::default(), Limits::default())?);
//! let found = Session::new(&setting, &executor, [&old, &new]).compare()?;
//! println!("{}: {}", found.verdict, found.reason);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Where a verdict comes from: [`gauntlet_stats::decide`] has the rule for intervals, the gate `faster` may withhold what it
//! says, and [`session::conclude`] says *adopt* when no gate has stopped the candidate. [`Session::compare`] asks only whether
//! both kernels are right and which is faster; [`Session::judge`] goes through all gates. A comparison whose suite interval would
//! adopt is a regression if a case is shown to be slower than the floor (`gauntlet-stats`, module `comparison`).
//!
//! A further gate is a file in [`gates`] and a place in [`OWN_GATES`]; `GATES` of `gauntlet-gates` names these in the order in which
//! the command, Python and rounds go through them, beside those that know a model.
//!
//! # Layers
//!
//! Each module may import those above it in this list, and no other:
//!
//! 1. `evidence`: plain data, such as candidates, rules, findings and verdicts.
//! 2. `observer`: the interface through which progress is reported.
//! 3. `runner`: worker processes, operands, and the tools that inspect what runs.
//! 4. `comparison`: pairs of processes, recorded times, checks that both sides behave honestly.
//! 5. `gates`: one file each.
//! 6. `session`: two kernels, taken through gates to a verdict.
//! 7. `record`: the ledger, and the journal of one run.
//!
//! A test of this crate reads the sources and refuses any other import.

mod comparison;
mod evidence;
pub mod gates;
#[cfg(test)]
mod layers;
mod observer;
mod record;
mod runner;
pub mod session;

pub use comparison::{
    Batch, CaseConduct, Observations, PairedComparison, compare_recorded, measure, measure_more,
    measure_observed,
};
pub use evidence::{
    AbortRule, Around, Busy, Candidate, CaseActivity, CaseErrors, CaseTimes, CaseViolation, Charges, Checked,
    Comparison, Condition, Conduct, Counters, DeviceActivity, DeviceUse, Evidence, ExecutorKind, FileKernel,
    FileKind, Finding, HeatedCase, HeatedSide, Heating, JudgeError, KernelForm, KernelText, KernelTextError,
    KernelTime, Launching, Look, METRICS, Measurement, Metrics, OtherEvidence, Outcome, PREDICTED_SPEEDUP,
    Part, Prediction, Preparation, Profile, Proposal, Regime, Setting, SideActivity, SideCharge, SideUse,
    Spent, Suspicion, Told, Trust, Unaccounted, Unreadable, Verdict, file_meant,
};
pub use gauntlet_worker::protocol::Scope;
pub use observer::{Blind, Narrowing, Observer};
pub use record::{ComparisonReport, Conditions, Journal, Kept, KernelReport, RecordPlace, ledger};
pub use runner::{
    CudaWorker, DeviceReading, DeviceWatch, ExaminationFailure, Executor, Fault, Operands, Readers, Sweep,
    SweepPoint, SweepReport, Workers, Workshop, copies, instruments, last_level_cache, sweep, traced,
};
pub use session::{Earlier, Judgement, OWN_GATES, Session};
