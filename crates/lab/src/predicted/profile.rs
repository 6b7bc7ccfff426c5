//! Where the time would go, in the words that measured profiles use.

use std::collections::BTreeMap;

use gauntlet_model::{Bound, MissingFigure, Part, break_down, simulate};
use gauntlet_problem::Case;

use crate::candidate::Candidate;
use crate::finding::Profile;
use crate::round::Round;

/// The predicted profile of each benchmark case.
///
/// # Errors
/// [`MissingFigure`] if the device's description lacks a figure without which nothing can be said.
pub fn profiles(round: &Round, candidate: &Candidate) -> Result<BTreeMap<String, Profile>, MissingFigure> {
    round
        .benchmark_cases
        .iter()
        .map(|case| Ok((case.name.clone(), profile(round, candidate, case)?)))
        .collect()
}

fn profile(round: &Round, candidate: &Candidate, case: &Case) -> Result<Profile, MissingFigure> {
    let schedule = candidate.schedule_for(&case.problem, &round.device);
    let term = round.host_term();
    let bound = simulate(&case.problem, schedule, &round.device, term)?.bound;
    let breakdown = break_down(&case.problem, schedule, &round.device, term)?;
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

/// The phase in which a profiler would see a part.
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
