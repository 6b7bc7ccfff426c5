//! The judge: one candidate against its baseline.
//!
//! A candidate and its baseline run in fresh worker processes. Gates examine the candidate, cheapest first; the last
//! gate compares both sides in pairs of processes. Each gate returns a finding with its evidence. The findings
//! determine the verdict, and the ledger records them all.
//!
//! # Layers
//!
//! Each module may import those above it in this list, and no other:
//!
//! 1. `evidence`: plain data, such as candidates, rules, findings and verdicts.
//! 2. `observer`: the interface through which progress is reported.
//! 3. `runner`: worker processes, operands, and the tools that inspect what runs.
//! 4. `comparison`: pairs of processes, recorded and predicted times, checks that both sides behave honestly.
//! 5. `gates`: one file each.
//! 6. `session`: the order of the gates, and the examination of one candidate by them.
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
    Batch, CaseConduct, Observations, PairedComparison, compare_predicted, compare_recorded, measure,
    measure_more, measure_observed, predict,
};
pub use evidence::{
    AbortRule, Around, Busy, Candidate, CaseActivity, CaseErrors, CaseFlaw, CaseTimes, CaseViolation,
    Charges, Checked, Comparison, Condition, Conduct, Counters, DeviceActivity, DeviceUse, Evidence,
    ExecutorKind, FileKernel, FileKind, Finding, HeatedCase, HeatedSide, Heating, HostCost, HostError,
    JudgeError, KernelForm, KernelText, KernelTextError, KernelTime, Launching, Look, METRICS, Measurement,
    Metrics, Outcome, PREDICTED_SPEEDUP, Part, Prediction, Preparation, Profile, Proposal, Regime, Setting,
    SideActivity, SideCharge, SideUse, Spent, Suspicion, Told, Unaccounted, Unreadable, Verdict, file_meant,
};
pub use gauntlet_worker::protocol::Scope;
pub use observer::{Blind, Narrowing, Observer};
pub use record::{ComparisonReport, Conditions, Journal, Kept, KernelReport, RecordPlace, ledger};
pub use runner::{
    CudaWorker, DeviceReading, DeviceWatch, ExaminationFailure, Executor, Fault, Operands, Readers, Sweep,
    SweepPoint, SweepReport, Thoroughness, Workers, Workshop, calibrate, copies, instruments,
    last_level_cache, sweep, traced,
};
