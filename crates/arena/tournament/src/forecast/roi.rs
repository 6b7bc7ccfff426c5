//! The expected return on an hour spent on a pitch.
//!
//! The log speed-up is estimated from three sources, each weighted by its precision: the claim, of which the record's
//! share is believed and whose own width is widened by the record's error; the model, but only on devices where its
//! predictions were tested and were accurate enough ([`Prediction::is_relied_on`]); and, for a pitch that was compared
//! without an answer, the comparison itself. The pooled estimate is capped by the roofline where the model counts,
//! multiplied by the chance of surviving the gates, and divided by the hours. A slower result counts as a loss, though
//! it would not be adopted: if it counted as zero, the vaguest pitches would rank highest because of their width.

use gauntlet_stats::{Belief, Gain, Interval};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::record::{FIELD_WEIGHT, TrackRecord};
use crate::pitch::{Odds, Quantiles};
use gauntlet_judge::Prediction;

/// Work shorter than this counts as a quarter of an hour.
pub(crate) const SHORTEST_HOURS: f64 = 0.25;

/// The probability that claims assign to q10…q90.
const CLAIMED: f64 = 0.8;

/// The probability that the model assigns to the range of its error bar.
const PREDICTED: f64 = 0.9;

/// The weight of an unknown author's own odds of being stopped; the record has the rest. Each answered forecast takes some of it:
/// odds that were stated before are worth no more than what came of them.
const STATED_PART: f64 = 0.5;

/// The expected return on an hour, in log speed-up: 0.05 is about 5 % faster.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub struct Roi {
    /// The expected log speed-up of a candidate that survives the gates, before the roofline's cap.
    pub speedup: Belief,
    /// The chance of surviving the gates.
    pub chance: f64,
    /// The hours it costs, at least `SHORTEST_HOURS`.
    pub hours: f64,
    /// Expected log speed-up per hour.
    pub mean: f64,
    /// The 10 % quantile.
    pub low: f64,
    /// The 90 % quantile.
    pub high: f64,
}

/// The inputs of an expectation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Grounds<'a> {
    /// The stated chance of each verdict; none for a fallback.
    pub odds: Option<&'a Odds>,
    /// The claimed speed-up; none for a fallback.
    pub claimed: Option<Quantiles>,
    /// The model's prediction, whether or not it is relied on.
    pub predicted: Option<Prediction>,
    /// The result of a comparison that did not answer the question.
    pub found: Option<&'a Interval>,
    /// Whether a rule of the device is broken.
    pub forbidden: bool,
    /// Working hours.
    pub hours: f64,
    /// The author's record.
    pub record: TrackRecord,
}

/// What most changes that are tried bring, in log speed-up. An assumption: a little, give or take ten per cent.
const TYPICAL: Belief = Belief {
    mean: 0.02,
    deviation: 0.1,
};

impl Roi {
    /// The expected return on an hour where hours are scarce: the belief in the change is pooled with what most changes bring.
    /// The claim of an unknown author says little then, however large; that of one whose claims came true says much. Without it the
    /// boldest strangers get the first hours (`examples/dealing.rs` of this crate).
    pub fn dealt(&self) -> f64 {
        let pooled = Belief::pooled(&[self.speedup, TYPICAL]);
        pooled.map_or(0.0, |belief| belief.mean * self.chance / self.hours)
    }
}

impl Grounds<'_> {
    /// The expected return on an hour; none if a figure is not finite.
    pub fn roi(&self) -> Option<Roi> {
        let speedup = expectation(self)?;
        let most = self
            .model()
            .map_or(f64::INFINITY, |model| model.headroom.max(1.0).ln());
        let chance = self.chance();
        let hours = self.hours.max(SHORTEST_HOURS);
        let Gain { mean, low, high } = speedup.gain(chance, most)?;
        Some(Roi {
            speedup,
            chance,
            hours,
            mean: mean / hours,
            low: low / hours,
            high: high / hours,
        })
    }

    /// The model's prediction, if it is relied on.
    fn model(&self) -> Option<Prediction> {
        self.predicted.filter(Prediction::is_relied_on)
    }

    /// The chance of surviving the gates: 1 if the candidate has already survived, 0 if the device forbids it,
    /// otherwise the mean of the chances from the odds and from the record (a linear pool).
    fn chance(&self) -> f64 {
        if self.forbidden {
            return 0.0;
        }
        if self.found.is_some() {
            return 1.0;
        }
        let recorded = self.record.stop_rate;
        let stated = self.odds.map_or(recorded, Odds::of_a_stop);
        let part = STATED_PART * FIELD_WEIGHT / (FIELD_WEIGHT + self.record.settled as f64);
        1.0 - (part * stated + (1.0 - part) * recorded)
    }
}

/// The expected log speed-up, each source weighted by its precision; none if a figure is not finite.
pub(crate) fn expectation(grounds: &Grounds) -> Option<Belief> {
    let mut beliefs = vec![believed(grounds.claimed, &grounds.record)];
    beliefs.extend(grounds.model().map(modelled));
    beliefs.extend(grounds.found.map(Belief::of_interval));
    Belief::pooled(&beliefs).filter(|pooled| pooled.mean.is_finite() && pooled.deviation.is_finite())
}

/// A claim corrected by the record: the believed share, with the claim's own width and the record's error added as
/// variances, so that a narrow claim gains no more weight than the record allows. Without a claim, no gain.
fn believed(claimed: Option<Quantiles>, record: &TrackRecord) -> Belief {
    let (middle, width) = claimed.map_or((0.0, 0.0), |Quantiles { q10, q50, q90 }| {
        (q50.ln(), Belief::between(q10.ln(), q90.ln(), CLAIMED).deviation)
    });
    Belief {
        mean: record.credibility * middle,
        deviation: width.hypot(record.error),
    }
}

fn modelled(model: Prediction) -> Belief {
    Belief {
        mean: model.middle.ln(),
        ..Belief::between(model.low.ln(), model.high.ln(), PREDICTED)
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Accuracy;
    use proptest::prelude::*;

    use super::*;

    fn claiming(q10: f64, q50: f64, q90: f64) -> Grounds<'static> {
        Grounds {
            odds: None,
            claimed: Some(Quantiles { q10, q50, q90 }),
            predicted: None,
            found: None,
            forbidden: false,
            hours: 2.0,
            record: TrackRecord::default(),
        }
    }

    #[test]
    fn a_strangers_claim_by_hand() {
        // A point claim of 4×: half of ln 4, a chance of three in four, over two hours.
        let roi = claiming(4.0, 4.0, 4.0).roi().unwrap();
        assert!((roi.mean - 0.75 * 0.5 * 4f64.ln() / 2.0).abs() < 1e-12);
        assert!((roi.speedup.deviation - 2f64.ln()).abs() < 1e-12 && roi.chance == 0.75);
        assert!(roi.low < 0.0 && roi.high > roi.mean);
    }

    #[test]
    fn a_model_that_may_be_wrong_by_nine_hardly_counts() {
        // Weights: (1 / (ln 9 / 1.644854))² = 0.5604 for the model and (1 / ln 2)² = 2.0814 for the claim.
        let model = Prediction {
            low: 1.0 / 9.0,
            middle: 1.0,
            high: 9.0,
            headroom: 100.0,
            accuracy: Some(well_tested()),
        };
        let both = Grounds {
            predicted: Some(model),
            ..claiming(4.0, 4.0, 4.0)
        };
        let expected = expectation(&both).unwrap();
        let weights = ((9f64.ln() / 1.644_853_627).powi(-2), 2f64.ln().powi(-2));
        let by_hand = weights.1 * 2f64.ln() / (weights.0 + weights.1);
        assert!((expected.mean - by_hand).abs() < 1e-9 && (by_hand / 2f64.ln() - 0.788).abs() < 1e-3);
    }

    /// A prediction record that is good enough to be relied on.
    fn well_tested() -> Accuracy {
        Accuracy {
            points: 200,
            mean_error: Some(0.1),
            rank_correlation: [0.95; 2],
            regret: [0.02; 2],
            regret_of_constant_rule: None,
        }
    }

    #[test]
    fn a_model_that_was_not_tested_or_did_badly_does_not_count() {
        let poor = Accuracy {
            rank_correlation: [-0.18, 0.16],
            ..well_tested()
        };
        let alone = claiming(4.0, 4.0, 4.0);
        for accuracy in [None, Some(poor)] {
            let predicted = Some(Prediction {
                low: 0.99,
                middle: 1.0,
                high: 1.01,
                headroom: 1.0,
                accuracy,
            });
            let with = Grounds { predicted, ..alone };
            assert_eq!(with.roi(), alone.roi());
            assert_eq!(expectation(&with), expectation(&alone));
        }
    }

    #[test]
    fn what_was_measured_outweighs_every_claim() {
        let nothing = gauntlet_stats::declared_interval(1.0, 1.0, 0.01).unwrap();
        let roi = Grounds {
            found: Some(&nothing),
            ..claiming(2.0, 4.0, 8.0)
        }
        .roi()
        .unwrap();
        assert!(roi.mean.abs() < 1e-3 && roi.chance == 1.0, "{roi:?}");
    }

    #[test]
    fn what_is_forbidden_brings_nothing() {
        let roi = Grounds {
            forbidden: true,
            ..claiming(2.0, 4.0, 8.0)
        }
        .roi()
        .unwrap();
        assert_eq!((roi.mean, roi.low, roi.high), (0.0, 0.0, 0.0));
    }

    proptest! {
        #[test]
        fn more_hours_and_more_stops_bring_less(
            q50 in 1.01..8.0f64,
            hours in 0.25..100.0f64,
            more in 1.01..10.0f64,
            stop_rate in 0.0..0.5f64,
        ) {
            let grounds = Grounds { hours, record: TrackRecord { stop_rate, ..TrackRecord::default() }, ..claiming(1.0, q50, 9.0) };
            let roi = grounds.roi().unwrap();
            let costly = Grounds { hours: hours * more, ..grounds }.roi().unwrap();
            prop_assert!((roi.mean / costly.mean - more).abs() < 1e-9);
            let record = TrackRecord { stop_rate: stop_rate * more.min(2.0), ..grounds.record };
            let riskier = Grounds { record, ..grounds }.roi().unwrap();
            prop_assert!(riskier.mean <= roi.mean);
            prop_assert!(roi.low <= roi.high);
        }
    }
}
