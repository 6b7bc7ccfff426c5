//! Predicted shares of a call's time, in the vocabulary of measured profiles.

use std::collections::BTreeMap;

use gauntlet_judge::{Candidate, Profile, Setting};
use gauntlet_simulate::{Bound, NoEstimate, Part, Subject};
use gauntlet_task::Case;

use super::host_term;

/// The predicted profile of each benchmark case.
///
/// # Errors
/// [`NoEstimate`] if the device's description lacks a figure that the model needs.
pub fn profiles(setting: &Setting, candidate: &Candidate) -> Result<BTreeMap<String, Profile>, NoEstimate> {
    setting
        .benchmark_cases
        .iter()
        .map(|case| Ok((case.name.clone(), profile(setting, candidate, case)?)))
        .collect()
}

fn profile(setting: &Setting, candidate: &Candidate, case: &Case) -> Result<Profile, NoEstimate> {
    let schedule = candidate.schedule_for(&case.sizes, &setting.device);
    let term = host_term(setting.host.as_ref());
    let subject = Subject::of(&case.sizes, schedule)?;
    let bound = subject.simulate(&setting.device, term)?.bound;
    let breakdown = subject.break_down(&setting.device, term)?;
    let call = breakdown.total();
    let mut shares = BTreeMap::new();
    let mut add = |phase: &str, seconds: f64| {
        *shares.entry(phase.to_owned()).or_insert(0.0) += seconds / call;
    };
    add(
        match bound {
            Bound::Memory => "load",
            Bound::Compute => "multiply",
        },
        breakdown.roofline,
    );
    for part in &breakdown.parts {
        add(phase(part.part), part.seconds);
    }
    let outside = breakdown.part(Part::Host);
    Ok(Profile {
        call,
        kernel: Some(call - outside),
        shares,
    })
}

/// The phase to which a profiler would assign a part.
fn phase(part: Part) -> &'static str {
    match part {
        Part::Host | Part::Launch => "setup",
        Part::Copy | Part::Conversion => "load",
        Part::Padding => "multiply",
        Part::Epilogue => "epilogue",
        Part::Ramp | Part::Idle | Part::FillAndDrain | Part::Barriers | Part::Contention | Part::Tail => {
            "wait"
        }
    }
}
