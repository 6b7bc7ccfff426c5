//! The noise model: how far a right explanation may be from a measured time.

/// The centre of the prior of the noise, as a relative error. It covers measurement error and effects that the drivers
/// leave out. An assumption; times of the recorded tournament have no spread.
pub const NOISE: f64 = 0.05;

/// The weight of the prior of the noise, in measurements. With 6, the noise is between 3.5 and 9.6 % with 90 %
/// probability.
pub const NOISE_WORTH: f64 = 6.0;

/// Log times under log-normal noise of unknown width σ, with σ² ~ scaled inverse χ²([`NOISE_WORTH`], [`NOISE`]²).
///
/// The prior is conjugate, so σ and the common scale of all costs, whose prior is flat in its logarithm, are integrated
/// out in closed form (Gelman et al., *Bayesian Data Analysis*, 3rd edition, §3.2). The remaining likelihood is (ν s² +
/// R)^(−(ν + n − 1)/2), where R is the sum of squares around the best scale.
#[derive(Debug, Clone)]
pub(super) struct Noise {
    logarithms: Vec<f64>,
    precisions: Vec<f64>,
    total: f64,
}

/// The fit of predictions that are known up to a common factor.
#[derive(Debug, Clone, Copy)]
pub(super) struct Match {
    /// The logarithm of the likelihood, up to a constant that all explanations of the same times share.
    pub(super) likelihood: f64,
    /// The logarithm of the best-fitting factor from predictions to times.
    pub(super) scale: f64,
    /// The standard deviation of that logarithm.
    pub(super) scale_deviation: f64,
    /// The sum of squares around it, in units of log time.
    pub(super) squares: f64,
}

impl Noise {
    /// From times in seconds, each with its relative spread (0 if unknown). A known spread adds to the noise that all
    /// times share: at the prior's centre the variances add up.
    pub(super) fn of(times: impl Iterator<Item = (f64, f64)>) -> Self {
        let (logarithms, precisions): (Vec<_>, Vec<_>) = times
            .map(|(seconds, spread)| (seconds.ln(), 1.0 / (1.0 + (spread / NOISE).powi(2))))
            .unzip();
        let total = precisions.iter().sum();
        Self {
            logarithms,
            precisions,
            total,
        }
    }

    pub(super) fn measurements(&self) -> usize {
        self.logarithms.len()
    }

    /// Compares predictions, on any scale, with the times.
    pub(super) fn hold(&self, predictions: impl Iterator<Item = f64>) -> Match {
        // Subtract the first time, so that squares of small differences are summed rather than squares of logarithms.
        let origin = self.logarithms[0];
        let (mut sum, mut squares) = (0.0, 0.0);
        for ((logarithm, precision), prediction) in
            self.logarithms.iter().zip(&self.precisions).zip(predictions)
        {
            let difference = logarithm - origin - prediction.ln();
            sum += precision * difference;
            squares += precision * difference * difference;
        }
        let mean = sum / self.total;
        let squares = (squares - mean * sum).max(0.0);
        let prior = NOISE_WORTH * NOISE * NOISE;
        Match {
            likelihood: -0.5 * self.freedom() * (squares / prior).ln_1p(),
            scale: origin + mean,
            scale_deviation: ((prior + squares) / self.freedom() / self.total).sqrt(),
            squares,
        }
    }

    /// The likely noise given a sum of squares: the root of the mean of σ².
    pub(super) fn likely(&self, squares: f64) -> f64 {
        ((NOISE_WORTH * NOISE * NOISE + squares) / (self.freedom() - 2.0).max(1.0)).sqrt()
    }

    fn freedom(&self) -> f64 {
        NOISE_WORTH + self.measurements() as f64 - 1.0
    }
}
