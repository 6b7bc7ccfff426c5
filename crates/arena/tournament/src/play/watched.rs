//! What a round with `trust = "quick"` does before it adopts: a candidate whose quick pairs say *adopt* is compared once more,
//! watched for cheats, and that comparison alone decides.

use std::time::Duration;

use gauntlet_judge::{
    Candidate, Comparison, ExaminationFailure, Measurement, PairedComparison, Setting, Trust, Workshop,
};
use gauntlet_stats::Decision;

use crate::observer::RoundObserver;
use crate::round::Round;

/// The watched comparisons of a quick round.
pub struct Watching<'a> {
    /// The round's setting, but watched.
    setting: Setting,
    observer: &'a dyn RoundObserver,
}

impl<'a> Watching<'a> {
    /// None of a round that is watched from the beginning.
    pub fn of(round: &Round, observer: &'a dyn RoundObserver) -> Option<Self> {
        let measurement = &round.setting.measurement;
        (!measurement.trust.is_watched()).then(|| Self {
            setting: Setting {
                measurement: watched(measurement),
                ..round.setting.clone()
            },
            observer,
        })
    }

    /// The comparison itself unless it would be adopted; else the watched one in its place, with the time that took. It takes
    /// no more than the `allowed` time beyond its first look.
    pub fn judge_again(
        &self,
        workshop: &Workshop,
        [baseline, candidate]: [&Candidate; 2],
        compared: Result<Comparison, ExaminationFailure>,
        allowed: Duration,
    ) -> (Result<Comparison, ExaminationFailure>, Duration) {
        let adopted = |compared: &Comparison| compared.assessment.decision == Decision::Adopt;
        if !compared.as_ref().is_ok_and(adopted) {
            return (compared, Duration::ZERO);
        }
        let name = &candidate.name;
        self.observer.notice(&format!(
            "{name}: its quick pairs say adopt; it is compared once more, watched for cheats"
        ));
        let sides = (baseline.clone(), candidate.clone());
        let begun = PairedComparison::new(workshop, &self.setting, sides.0, sides.1, rand::random());
        match begun {
            Ok(comparison) => measured(comparison, allowed, self.observer),
            Err(failure) => (Err(failure), Duration::ZERO),
        }
    }
}

/// Measures a comparison until it is over, for no more than the `allowed` time beyond its first look; with the time that took.
pub fn measured(
    mut comparison: PairedComparison,
    allowed: Duration,
    observer: &dyn RoundObserver,
) -> (Result<Comparison, ExaminationFailure>, Duration) {
    while !comparison.is_over() {
        let left = match comparison.pairs() {
            0 => Duration::MAX,
            _ => allowed.saturating_sub(comparison.spent()),
        };
        match comparison.advance(left, observer) {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) => return (Err(failure), comparison.spent()),
        }
    }
    let spent = comparison.spent();
    (comparison.finish(), spent)
}

/// The looks and blocks of a watched comparison, with the rest as the round says.
fn watched(measurement: &Measurement) -> Measurement {
    let usual = Measurement::default();
    Measurement {
        trust: Trust::Watched,
        looks: usual.looks,
        blocks: usual.blocks,
        ..measurement.clone()
    }
}
