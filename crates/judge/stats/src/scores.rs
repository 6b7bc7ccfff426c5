//! Scores of forecasts: of odds over verdicts and of quantiles of a log speed-up. Lower is better, and each score is
//! proper: a forecaster does best by stating their true belief (Gneiting & Raftery 2007, "Strictly Proper Scoring
//! Rules, Prediction, and Estimation").

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The part of all odds that [`logarithmic_score`] spreads evenly over the classes, so that odds of zero for an outcome
/// that happened cost much but not infinitely much. It costs an honest forecaster at most 0.01.
const EVEN_PART: f64 = 0.01;

/// Bins of equal width for the probabilities of one class. Five, because records are short: the seed data has five
/// settled forecasts, and a bin with one forecast always matches its outcome perfectly.
const BINS: usize = 5;

/// The Brier score of odds over classes: Σ (p − o)² with o = 1 for the class that happened and 0 for the others
/// (Brier 1950). 0 for a certain forecast that came true, 2 for a certain forecast that did not.
pub fn brier_score(probabilities: &[f64], happened: usize) -> f64 {
    probabilities
        .iter()
        .enumerate()
        .map(|(class, probability)| (probability - f64::from(u8::from(class == happened))).powi(2))
        .sum()
}

/// The logarithmic score, −ln p for the class that happened (natural logarithm; Good 1952), where p is its probability
/// after a hundredth of all odds is spread evenly. Over nine classes it lies between 0.009 and 6.80.
pub fn logarithmic_score(probabilities: &[f64], happened: usize) -> f64 {
    let stated = probabilities.get(happened).copied().unwrap_or(0.0);
    let even = EVEN_PART / probabilities.len().max(1) as f64;
    -((1.0 - EVEN_PART) * stated + even).ln()
}

/// The pinball loss of one stated quantile: the distance to the value found, weighted by `probability` if the stated
/// value was too low and by 1 − `probability` if it was too high.
pub fn pinball_loss(quantile: f64, probability: f64, found: f64) -> f64 {
    if found >= quantile {
        probability * (found - quantile)
    } else {
        (1.0 - probability) * (quantile - found)
    }
}

/// Three stated quantiles of a log speed-up, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LogQuantiles {
    /// A value below this has a probability of one in ten.
    pub q10: f64,
    /// The median.
    pub q50: f64,
    /// A value above this has a probability of one in ten.
    pub q90: f64,
}

impl LogQuantiles {
    /// The pinball losses of the three quantiles.
    pub fn pinball_losses(&self, found: f64) -> [f64; 3] {
        [(self.q10, 0.1), (self.q50, 0.5), (self.q90, 0.9)]
            .map(|(quantile, probability)| pinball_loss(quantile, probability, found))
    }

    /// The continuous ranked probability score of the distribution that the quantiles imply, in log speed-up: twice
    /// the mean pinball loss over all its quantiles (Gneiting & Ranjan 2011, "Comparing Density Forecasts Using
    /// Threshold- and Quantile-Weighted Scoring Rules"), computed exactly as ∫ (F(x) − 1{x ≥ found})² dx.
    ///
    /// Three numbers do not determine a distribution. The assumed one has a quantile function of two straight lines
    /// that meet at q50 and continue with the same slopes beyond q10 and q90, by a quarter of the distance to q50: half
    /// of its mass is uniform on either side of q50. For three equal quantiles the score is the distance to the value
    /// found.
    pub fn crps(&self, found: f64) -> f64 {
        let least = self.q50 - 1.25 * (self.q50 - self.q10);
        let most = self.q50 + 1.25 * (self.q90 - self.q50);
        square_below([(least, 0.0), (self.q50, 0.5), (most, 1.0)], found)
            + square_below([(-most, 0.0), (-self.q50, 0.5), (-least, 1.0)], -found)
    }

    /// Whether the value found lies within q10…q90, as it should in four of five cases.
    pub fn covers(&self, found: f64) -> bool {
        (self.q10..=self.q90).contains(&found)
    }

    /// Whether any of `lower`…`upper` lies within q10…q90.
    pub fn overlaps(&self, lower: f64, upper: f64) -> bool {
        lower <= self.q90 && self.q10 <= upper
    }
}

/// ∫ F(x)² dx below `end`, for a piecewise linear distribution function through `knots`, 0 before and 1 after them.
fn square_below(knots: [(f64, f64); 3], end: f64) -> f64 {
    let piece = |pair: &[(f64, f64)]| {
        let ((from, below), (to, above)) = (pair[0], pair[1]);
        let width = end.min(to) - from;
        if width <= 0.0 {
            return 0.0;
        }
        let reached = below + (above - below) * width / (to - from);
        width * (below * below + below * reached + reached * reached) / 3.0
    };
    knots.windows(2).map(piece).sum::<f64>() + (end - knots[2].0).max(0.0)
}

/// The parts of a mean Brier score: `calibration − resolution + uncertainty` is the mean score exactly.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BrierParts {
    /// How far the odds are from the observed frequencies (also called reliability): 0 is best.
    pub calibration: f64,
    /// How much outcomes differ between odds of different sizes: more is better.
    pub resolution: f64,
    /// How varied the outcomes were; independent of the forecaster's skill.
    pub uncertainty: f64,
}

/// Splits a mean Brier score into calibration, resolution and uncertainty (Murphy 1973, "A New Vector Partition of the
/// Probability Score"): the probabilities of each class go into bins a fifth wide, and the classes are added up. The
/// loss from unequal probabilities in one bin counts with the resolution, which makes the sum exact (Stephenson, Coelho
/// & Jolliffe 2008, "Two Extra Components in the Brier Score Decomposition"). With few forecasts both parts are
/// overstated, because chance alone fills bins unevenly.
///
/// A forecast is its probabilities (the same number in every forecast) and the class that happened. None without
/// forecasts.
pub fn brier_parts(forecasts: &[(Vec<f64>, usize)]) -> Option<BrierParts> {
    let classes = forecasts.first()?.0.len();
    let mut parts = BrierParts {
        calibration: 0.0,
        resolution: 0.0,
        uncertainty: 0.0,
    };
    for class in 0..classes {
        let pairs = forecasts.iter().map(|(probabilities, happened)| {
            (
                probabilities.get(class).copied().unwrap_or(0.0),
                f64::from(u8::from(class == *happened)),
            )
        });
        add_class(&mut parts, &pairs.collect::<Vec<_>>());
    }
    Some(parts)
}

/// Adds the parts of one class. Each pair is a probability and whether the class happened, 1 or 0.
fn add_class(parts: &mut BrierParts, pairs: &[(f64, f64)]) {
    let count = pairs.len() as f64;
    let base = pairs.iter().map(|pair| pair.1).sum::<f64>() / count;
    parts.uncertainty += base * (1.0 - base);
    for bin in 0..BINS {
        let inside: Vec<_> = pairs.iter().filter(|pair| bin_of(pair.0) == bin).collect();
        if inside.is_empty() {
            continue;
        }
        let size = inside.len() as f64;
        let stated = inside.iter().map(|pair| pair.0).sum::<f64>() / size;
        let happened = inside.iter().map(|pair| pair.1).sum::<f64>() / size;
        parts.calibration += size * (stated - happened).powi(2) / count;
        parts.resolution += size * (happened - base).powi(2) / count;
        for (probability, outcome) in inside {
            let off = probability - stated;
            parts.resolution += off * (2.0 * (outcome - happened) - off) / count;
        }
    }
}

fn bin_of(probability: f64) -> usize {
    ((probability * BINS as f64) as usize).min(BINS - 1)
}

/// How much better a score is than a reference, as a fraction of the reference: 1 is perfect, 0 no better, negative
/// worse. None against a perfect reference.
pub fn skill(score: f64, reference: f64) -> Option<f64> {
    (reference > 0.0).then(|| 1.0 - score / reference)
}

/// The mean of a short record, shrunk toward `expected`, the value expected without a record: the record's own mean has
/// the weight n / (n + `weight`). This is the linear empirical-Bayes rule (Bühlmann's credibility) with `weight` the
/// variance of a single value over the variance between records.
pub fn shrunk_mean(values: &[f64], expected: f64, weight: f64) -> f64 {
    (values.iter().sum::<f64>() + weight * expected) / (values.len() as f64 + weight)
}

#[cfg(test)]
mod tests;
