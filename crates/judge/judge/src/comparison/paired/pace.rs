//! How long pairs take: said after the first one, and at the end of a comparison that time has cut short.

use std::time::Duration;

use gauntlet_stats::Decision;

use super::{Pair, PairedComparison};
use crate::observer::Observer;

/// A first look that comes later than this is announced.
const LONG: Duration = Duration::from_secs(20);

impl PairedComparison<'_> {
    /// Says after the first pair how long the first look will take, if that is long.
    pub(super) fn forecast(&self, first_look: usize, allowed: Duration, observer: &dyn Observer) {
        let pair = self.pace();
        let whole = pair * u32::try_from(first_look).unwrap_or(u32::MAX);
        if whole < LONG {
            return;
        }
        let [pair, whole] = [pair, whole].map(|time| time.as_secs_f64().ceil());
        let short = match whole > allowed.as_secs_f64() {
            true => "; there is not enough time for that: give more with --budget",
            false => "",
        };
        observer.notice(&format!(
            "{}: a pair of processes takes about {pair} s, and the first look at the figures comes after {first_look} of them, \
             about {whole} s{short}",
            self.candidate.name
        ));
    }

    pub(super) fn ended_early(&self) -> Option<String> {
        if self.interrupted {
            return Some(format!("interrupted after {} pairs of processes", self.pairs));
        }
        let doubt = self.suspicion.map(|suspicion| suspicion.least_gain().is_some());
        if !doubt.unwrap_or(self.assessment.decision == Decision::Inconclusive) {
            return None;
        }
        let pairs = self.pairs;
        let mut said = (!self.setting.measurement.ends_at(pairs)).then(|| match self.pairs_of_batch() {
            more if more < pairs => format!("{more} more pairs of processes were measured, {pairs} in all"),
            _ => format!("the time was up after {pairs} pairs of processes"),
        });
        let first_look = self
            .setting
            .measurement
            .looks
            .first()
            .copied()
            .unwrap_or_default();
        if pairs < first_look {
            let seconds = (self.pace().as_secs_f64() * first_look as f64).ceil();
            let hint = format!(
                "a verdict needs at least {first_look}, about {seconds} s here: give more time with --budget"
            );
            said = Some(said.map_or(hint.clone(), |said| format!("{said}; {hint}")));
        }
        if let Some(needed) = self.needed().filter(|needed| *needed > pairs) {
            let minutes = self.pace().as_secs_f64() * needed as f64 / 60.0;
            let would = format!("about {needed} pairs ({minutes:.1} min) would have decided it");
            said = Some(said.map_or(would.clone(), |said| format!("{said}; {would}")));
        }
        said
    }

    /// The average time of a pair.
    pub(super) fn pace(&self) -> Duration {
        let ahead: f64 = self.started.iter().map(Pair::starting).sum();
        let spent = self.spent.saturating_sub(Duration::from_secs_f64(ahead));
        spent / u32::try_from(self.pairs_of_batch().max(1)).unwrap_or(u32::MAX)
    }
}
