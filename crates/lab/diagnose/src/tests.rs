//! How often the true explanation is kept when times are noisy.

use gauntlet_problems::{Form, GroupedGemm, Operation};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Normal};

use super::*;

/// The four cases of the recorded tournament; they distinguish all drivers.
fn cases() -> Vec<Operation> {
    let gemm = |m: &[usize], n: usize, k: usize| {
        Operation::GroupedGemm(GroupedGemm::new(Form::Plain, m.iter().map(|&m| [m, n, k])))
    };
    vec![
        gemm(&[80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
        gemm(&[40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
        gemm(&[192, 320], 3072, 4096),
        gemm(&[128, 384], 4096, 1536),
    ]
}

/// Draws times from a true explanation with 5 % noise, and finds its rank among the explanations kept.
struct Draws {
    cases: Vec<Operation>,
    amounts: Vec<Amounts>,
    random: ChaCha8Rng,
}

impl Draws {
    fn new() -> Self {
        let device = Device::builtin("b200").unwrap();
        let cases = cases();
        let amounts = cases
            .iter()
            .map(|case| Amounts::of(case, &Schedule::baseline(), &device))
            .collect();
        Self {
            cases,
            amounts,
            random: ChaCha8Rng::seed_from_u64(4),
        }
    }

    /// The rank of the true drivers, for given shares of a mean time of 2 ms, far above the roofline.
    fn place(&mut self, truth: &[(Driver, f64)]) -> Option<usize> {
        let noise = Normal::new(0.0, 0.05).unwrap();
        let mean = |driver| {
            self.amounts
                .iter()
                .map(|amounts| amounts.count(driver))
                .sum::<f64>()
                / 4.0
        };
        let means: Vec<f64> = truth.iter().map(|(driver, _)| mean(*driver)).collect();
        let mut measurements = Vec::new();
        for (problem, amounts) in self.cases.iter().zip(&self.amounts) {
            let parts = truth
                .iter()
                .zip(&means)
                .map(|((driver, share), mean)| share * amounts.count(*driver) / mean);
            measurements.push(Measurement {
                problem: problem.clone(),
                seconds: 2e-3 * parts.sum::<f64>() * f64::exp(noise.sample(&mut self.random)),
                spread: None,
            });
        }
        let kept = kept(weighed(&measurements, &self.amounts, &Driver::ALL));
        let drivers: Vec<Driver> = truth.iter().map(|(driver, _)| *driver).collect();
        kept.iter()
            .position(|(_, posterior)| posterior.drivers == drivers)
    }
}

#[test]
fn one_true_driver_is_kept() {
    const DRAWS: usize = 1000;
    let mut draws = Draws::new();
    let (mut kept, mut first) = ([0; Driver::ALL.len()], 0);
    for draw in 0..DRAWS {
        let driver = Driver::ALL[draw % Driver::ALL.len()];
        let place = draws.place(&[(driver, 1.0)]);
        kept[driver as usize] += usize::from(place.is_some());
        first += usize::from(place == Some(0));
    }
    // Over all draws, and over the draws of each driver.
    assert!(kept.iter().sum::<usize>() * 100 >= 95 * DRAWS, "{kept:?}");
    assert!(
        kept.iter()
            .all(|kept| kept * Driver::ALL.len() * 100 >= 95 * DRAWS),
        "{kept:?}"
    );
    assert!(first * 100 >= 90 * DRAWS, "{first}");
}

#[test]
fn two_true_drivers_are_kept_whatever_their_shares() {
    const DRAWS: usize = 300;
    let mut draws = Draws::new();
    let mut kept = 0;
    for _ in 0..DRAWS {
        let (one, other) = loop {
            let mut pick = || Driver::ALL[draws.random.random_range(0..Driver::ALL.len())];
            let (one, other) = (pick(), pick());
            if one.kind() != other.kind() {
                break (one.min(other), one.max(other));
            }
        };
        let share = draws.random.random_range(0.0..1.0);
        kept += usize::from(draws.place(&[(one, share), (other, 1.0 - share)]).is_some());
    }
    // A share of a few percent is hidden by the noise, and its driver may be dropped.
    assert!(kept * 100 >= 90 * DRAWS, "{kept} of {DRAWS}");
}
