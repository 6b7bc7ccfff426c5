//! What an optimisation could still win.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::credible::Credible;
use super::driver::{Amounts, Driver};
use super::posterior::Sample;

/// Something that can be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Lever {
    /// Operand buffers in flight.
    Stages,
    /// The shape of a tile.
    Tile,
    /// How results leave the multiplier.
    Epilogue,
    /// Who loads, who multiplies, who stores.
    Roles,
    /// What the caller does before and after the kernel.
    Host,
}

/// The most that any change of one kind could bring.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Gain {
    /// What is changed.
    pub lever: Lever,
    /// The geometric mean over the measured problems of the time now over the time with everything gone that the change
    /// can reach, down to the roofline: 1 if it can reach nothing.
    pub speedup: Credible,
}

impl fmt::Display for Lever {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Stages => "stages",
            Self::Tile => "tile",
            Self::Epilogue => "epilogue",
            Self::Roles => "warp roles",
            Self::Host => "host code",
        })
    }
}

impl Lever {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Stages, Self::Tile, Self::Epilogue, Self::Roles, Self::Host];

    /// The part of a driver's time that a change could at best make disappear.
    ///
    /// * Stages reach what repeats with every step of the loop. What is paid once a tile they leave: the first load of
    ///   a tile waits, however many follow it.
    /// * The epilogue runs once a tile, and of the bytes it moves the results.
    /// * Tiles and roles reach all that happens on the device: another tile changes how many there are, their padding
    ///   and what is loaded twice; with roles of their own, loads and stores hide behind the products of other tiles.
    /// * Host code reaches what is paid once a call and once a group.
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

    /// The speed-up with costs as in a sample.
    fn speedup(self, drivers: &[Driver], sample: &Sample, amounts: &[Amounts]) -> f64 {
        let logarithms = amounts.iter().map(|amounts| {
            let (mut now, mut reached) = (0.0, 0.0);
            for (driver, cost) in drivers.iter().zip(sample.costs) {
                let seconds = cost * amounts.count(*driver);
                now += seconds;
                reached += seconds * self.reach(*driver, amounts.stored);
            }
            // A sample may lie a little under the roofline, as far as the noise allows; nothing is won there.
            (now / (now - reached).max(amounts.roofline.min(now))).ln()
        });
        (logarithms.sum::<f64>() / amounts.len() as f64).exp()
    }
}

/// The gains of all levers under sets of drivers, each with its samples and the weight they have.
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
