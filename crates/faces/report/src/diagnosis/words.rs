//! Drivers, costs and intervals in words.

use gauntlet_diagnose::{Cost, Credible, Driver, Explanation};

use crate::duration::duration;
use crate::speedup::times;

/// An explanation as its drivers: `constant + groups`.
pub fn name(explanation: &Explanation) -> String {
    explanation
        .drivers()
        .map(|driver| driver.to_string())
        .collect::<Vec<_>>()
        .join(" + ")
}

/// Groups explanations of the same kinds, each group with its total probability:
/// `constant + tiles or waves + FLOPs, 14 %`.
pub fn families(explanations: &[Explanation]) -> Vec<String> {
    let kinds = |one: &Explanation| one.drivers().map(Driver::kind).collect::<Vec<_>>();
    let mut families: Vec<Vec<&Explanation>> = Vec::new();
    for one in explanations {
        match families.iter_mut().find(|family| kinds(family[0]) == kinds(one)) {
            Some(family) => family.push(one),
            None => families.push(vec![one]),
        }
    }
    let probability = |family: &Vec<&Explanation>| family.iter().map(|one| one.probability).sum::<f64>();
    families.sort_by(|one, other| probability(other).total_cmp(&probability(one)));
    let written = |family: &Vec<&Explanation>| {
        let ways = kinds(family[0]).into_iter().map(|kind| {
            let drivers = Driver::ALL.into_iter().filter(|driver| driver.kind() == kind);
            let occurs = |driver: &Driver| family.iter().any(|one| one.drivers().any(|of| of == *driver));
            drivers
                .filter(occurs)
                .map(|driver| driver.to_string())
                .collect::<Vec<_>>()
                .join(" or ")
        });
        format!(
            "{}, {}",
            ways.collect::<Vec<_>>().join(" + "),
            percent(probability(family))
        )
    };
    families.iter().map(written).collect()
}

/// A fraction of a whole without its interval.
pub fn percent(part: f64) -> String {
    format!("{:.0} %", part * 100.0)
}

/// A cost with its interval, as a time or as the corresponding rate: `groups 34.9 µs [32.1 … 37.6]`,
/// `FLOPs 327 TFLOP/s [250 … 430]`.
pub fn cost(cost: &Cost) -> String {
    let seconds = &cost.seconds;
    match cost.driver {
        Driver::Flops | Driver::PaddedFlops => format!("{} {}", cost.driver, rates(seconds, "FLOP/s")),
        Driver::Bytes => format!("{} {}", cost.driver, rates(seconds, "B/s")),
        _ => format!(
            "{} {} {}",
            cost.driver,
            duration(seconds.mean),
            interval(seconds, duration)
        ),
    }
}

/// An interval, with its unit only once if both ends share it: `[32.1 … 37.6 µs]`.
pub fn interval(credible: &Credible, written: impl Fn(f64) -> String) -> String {
    let (low, high) = (written(credible.low), written(credible.high));
    match (low.split_once(' '), high.split_once(' ')) {
        (Some((bare, unit)), Some((_, same))) if unit == same => format!("[{bare} … {high}]"),
        _ => format!("[{low} … {high}]"),
    }
}

/// A fraction of a whole: `75 % [70 … 80]`.
pub fn share(credible: &Credible) -> String {
    let percent = |part: f64| format!("{:.0}", part * 100.0);
    format!(
        "{} % [{} … {}]",
        percent(credible.mean),
        percent(credible.low),
        percent(credible.high)
    )
}

/// A speed-up and its upper bound: `1.15…1.45×`, or `1.00×` if nothing else is possible.
pub fn until(speedup: &Credible) -> String {
    let (mean, high) = (times(speedup.mean), times(speedup.high));
    if mean == high || speedup.high < speedup.mean {
        mean
    } else {
        format!("{}…{high}", mean.trim_end_matches('×'))
    }
}

/// The rate that corresponds to a cost; a high cost is a low rate, so the ends are swapped.
fn rates(seconds: &Credible, unit: &str) -> String {
    let written = |rate: f64| scaled(rate, unit);
    let rates = Credible {
        low: 1.0 / seconds.high,
        mean: 1.0 / seconds.mean,
        high: 1.0 / seconds.low,
    };
    format!("{} {}", written(rates.mean), interval(&rates, written))
}

/// Three digits with a suitable prefix; a cost of zero has no limit.
fn scaled(rate: f64, unit: &str) -> String {
    if !rate.is_finite() {
        return format!("∞ {unit}");
    }
    const PREFIXES: [(&str, f64); 5] = [("P", 1e15), ("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)];
    let (prefix, size) = PREFIXES
        .into_iter()
        .find(|(_, size)| rate >= *size)
        .unwrap_or(("", 1.0));
    let value = rate / size;
    let digits = match value {
        ones if ones < 9.995 => 2,
        tens if tens < 99.95 => 1,
        _ => 0,
    };
    format!("{value:.digits$} {prefix}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREDIBLE: Credible = Credible {
        low: 2e-12,
        mean: 4e-12,
        high: 5e-12,
    };

    #[test]
    fn costs_are_times_or_rates() {
        let of = |driver| {
            cost(&Cost {
                driver,
                seconds: CREDIBLE,
            })
        };
        assert_eq!(of(Driver::Bytes), "bytes 250 GB/s [200 … 500 GB/s]");
        let group = Cost {
            driver: Driver::Groups,
            seconds: Credible {
                low: 3.2e-5,
                mean: 3.5e-5,
                high: 1.2e-3,
            },
        };
        assert_eq!(cost(&group), "groups 35.0 µs [32.0 µs … 1.20 ms]");
    }

    #[test]
    fn a_bound_that_is_no_range_is_one_figure() {
        let bound = |mean, high| until(&Credible { low: 1.0, mean, high });
        assert_eq!(bound(1.0, 1.0), "1.00×");
        assert_eq!(bound(1.153, 1.448), "1.15…1.45×");
    }
}
