//! How much each kind of optimisation could still gain.

use gauntlet_parameters::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::driver::{Amounts, Driver};
use super::posterior::Sample;

named! {
    /// A kind of change.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Lever {
        /// Operand buffers in flight.
        Stages = "stages",
        /// The shape of a tile.
        Tile = "tile",
        /// The way from the multiplier's results to memory.
        Epilogue = "epilogue",
        /// The division of loading, multiplying and storing among warps.
        Roles = "warp roles",
        /// The caller's work before and after the kernel.
        Host = "host code",
    }
}

/// The largest gain that any change of one kind could bring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// The kind of change.
    pub lever: Lever,
    /// The time now over the time without everything that the change can reach, though not below the roofline; the
    /// geometric mean over the measured problems. 1 if the change can reach nothing.
    pub speedup: Credible,
}

impl Lever {
    /// The part of a driver's time that a change could remove at best.
    ///
    /// * Stages reach what repeats with every step of the loop, but not what is paid once per tile: the first load of a
    ///   tile waits, no matter how many follow it.
    /// * The epilogue runs once per tile, and moves only the bytes of the results.
    /// * Tiles and roles reach everything on the device: the tile shape changes the number of tiles, their padding and
    ///   repeated loads; with specialised roles, loads and stores overlap the products of other tiles.
    /// * Host code reaches what is paid once per call and once per group.
    fn reach(self, driver: Driver, stored: f64) -> f64 {
        let reaches = match self {
            Self::Host => driver.is_host(),
            Self::Tile | Self::Roles => !driver.is_host(),
            Self::Stages => !driver.is_host() && !matches!(driver, Driver::Tiles | Driver::Waves),
            Self::Epilogue => match driver {
                Driver::Bytes => return stored,
                _ => matches!(driver, Driver::Tiles | Driver::Waves),
            },
        };
        if reaches { 1.0 } else { 0.0 }
    }

    /// The speed-up under the costs of one sample.
    fn speedup(self, drivers: &[Driver], sample: &Sample, amounts: &[Amounts]) -> f64 {
        let logarithms = amounts.iter().map(|amounts| {
            let (mut now, mut reached) = (0.0, 0.0);
            for (driver, cost) in drivers.iter().zip(sample.costs) {
                let seconds = cost * amounts.count(*driver);
                now += seconds;
                reached += seconds * self.reach(*driver, amounts.stored);
            }
            // A sample may be a little below the roofline, as far as the noise allows; there is nothing to gain there.
            (now / (now - reached).max(amounts.roofline.min(now))).ln()
        });
        (logarithms.sum::<f64>() / amounts.len() as f64).exp()
    }
}

/// The gains of all levers over several explanations, each with its drivers, samples and weight.
pub(super) fn gains(explanations: &[(&[Driver], &[Sample], f64)], amounts: &[Amounts]) -> Vec<Gain> {
    let of = |lever: Lever| Gain {
        lever,
        speedup: Credible::of(explanations.iter().flat_map(|(drivers, samples, weight)| {
            samples
                .iter()
                .map(move |sample| (lever.speedup(drivers, sample, amounts), weight * sample.weight))
        })),
    };
    Lever::ALL.map(of).to_vec()
}
