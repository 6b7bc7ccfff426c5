//! Plain data: candidates, rules and findings. Nothing here runs anything.

mod abort;
mod activity;
mod busy;
mod candidate;
mod comparison;
mod device_use;
mod error;
mod finding;
mod heating;
mod inspection;
mod kernel_text;
mod launching;
mod regime;
mod setting;
mod spent;
mod suspicion;
mod trust;
mod verdict;

pub use abort::{AbortRule, Condition, METRICS, Metrics, PREDICTED_SPEEDUP, Proposal};
pub use activity::{CaseActivity, DeviceActivity, KernelTime, SideActivity};
pub use busy::Busy;
pub use candidate::{Candidate, Part};
pub use comparison::{
    Around, CaseTimes, Charges, Comparison, Conduct, Look, Preparation, SideCharge, Unaccounted,
};
pub use device_use::{DeviceUse, SideUse};
pub use error::JudgeError;
pub use finding::{
    CaseErrors, CaseViolation, Evidence, Finding, OtherEvidence, Outcome, Prediction, Profile,
};
pub use heating::{HeatedCase, HeatedSide, Heating};
pub use inspection::{Checked, Counters, Told, Unreadable};
pub use kernel_text::{FileKernel, FileKind, KernelForm, KernelText, KernelTextError, file_meant};
pub use launching::Launching;
pub use regime::Regime;
pub use setting::{ExecutorKind, Measurement, Setting};
pub use spent::Spent;
pub use suspicion::Suspicion;
pub use trust::Trust;
pub use verdict::Verdict;
