//! Further information about a comparison besides its interval: second opinions and warnings, which decide nothing.

use gauntlet_judge::Comparison;
use gauntlet_stats::{ClockFinding, Instability, Stability, percent};

/// Each in a few words; none if nothing contradicts the interval.
pub fn doubts(comparison: &Comparison) -> Vec<String> {
    let assessment = &comparison.assessment;
    let mut doubts = Vec::new();
    if let (Some(false), Some(p_value)) = (assessment.sign_flip_agrees(), assessment.sign_flip_p_value) {
        doubts.push(format!(
            "the sign-flip test sees no difference (p = {p_value:.2})"
        ));
    }
    if let Some(clock) = &assessment.clock {
        let finding = match clock.finding {
            ClockFinding::Confirmed => "confirmed in cycles",
            ClockFinding::ExplainedByClock => "gone in cycles: the clock explains it",
            ClockFinding::Unconfirmed => "not confirmed in cycles",
            ClockFinding::NoEffect => "none in cycles either",
        };
        let clock = percent(clock.clock.exp_m1());
        doubts.push(format!("{finding} (the candidate's clock {clock})"));
    }
    let is_paired = comparison.design.is_none();
    for times in &comparison.cases {
        let warnings = Stability::of(&times.blocks).map_or(Vec::new(), |stability| stability.warnings());
        doubts.extend(
            warnings
                .into_iter()
                .map(|warning| format!("{}: {}", times.case, describe(warning, is_paired))),
        );
    }
    doubts
}

fn describe(warning: Instability, is_paired: bool) -> &'static str {
    match warning {
        Instability::TimesDriftWithin if !is_paired => "times drift in the course of a process",
        Instability::TimesDriftAcross if !is_paired => "times drift from process to process",
        Instability::EffectDriftsWithin => "the speed-up drifts in the course of a process",
        Instability::EffectDriftsAcross => "the speed-up drifts from process to process",
        Instability::TimesDriftWithin => "times drift in the course of a process, which pairing removes",
        Instability::TimesDriftAcross => "times drift from process to process, which pairing removes",
        Instability::WarmUp => "processes warm up while they are timed",
        Instability::DependentBlocks => "blocks of a process repeat each other",
    }
}
