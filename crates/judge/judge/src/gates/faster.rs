//! Faster: the paired comparison. The baseline is built and run beside the candidate; earlier times are never reused.

use gauntlet_task::Cached;

use super::{Examination, Found, Gate, NOT_HERE};
use crate::comparison::compare_recorded;
use crate::evidence::{Candidate, Comparison, Evidence, Outcome, Setting, Verdict};
use crate::runner::{ExaminationFailure, Executor, last_level_cache};

/// The last gate: a candidate that passes it is adopted, and any other gets its verdict here.
pub struct Faster;

impl Gate for Faster {
    fn name(&self) -> &'static str {
        "faster"
    }

    fn examines_baselines(&self) -> bool {
        false
    }

    fn measures(&self) -> bool {
        true
    }

    fn needs_pairs(&self) -> bool {
        true
    }

    fn examine(&self, examination: &Examination) -> Result<Found, ExaminationFailure> {
        let (setting, candidate) = (examination.setting, examination.candidate);
        let comparison = match (examination.executor, &examination.comparison) {
            (Executor::Live(_), Some(comparison)) => comparison.clone(),
            (Executor::Compiled(_), _) => return Ok(Found::skip(NOT_HERE)),
            (Executor::Live(_), None) => return Ok(Found::skip("it was not measured")),
            (Executor::Recorded(record), _) => {
                match compare_recorded(record, setting, examination.baseline, candidate)? {
                    Some(comparison) => comparison,
                    None => {
                        let reason = "the record holds no times of it, and none are invented";
                        return Ok(Found::stop(Verdict::Blocked, reason, Evidence::Reason));
                    }
                }
            }
        };
        if let Some(reason) =
            impossible(examination, &comparison).or_else(|| disbelieved(examination.candidate, &comparison))
        {
            return Ok(Found::stop(
                Verdict::Blocked,
                reason,
                Evidence::Comparison(Box::new(comparison)),
            ));
        }
        let verdict = Verdict::from(comparison.assessment.decision);
        let blindness = if verdict == Verdict::Adopt {
            blindness(setting)
        } else {
            None
        };
        if let Some(reason) = blindness {
            let evidence = Evidence::Comparison(Box::new(comparison));
            return Ok(Found::stop(Verdict::Blocked, reason, evidence));
        }
        let reason = comparison.reason();
        let outcome = if verdict == Verdict::Adopt {
            Outcome::Pass
        } else {
            Outcome::Stop(verdict)
        };
        Ok(Found {
            outcome,
            reason,
            evidence: Evidence::Comparison(Box::new(comparison)),
        })
    }
}

/// A time under the roofline is a broken measurement, not a fast kernel: the comparison is void. The memory roofline
/// counts only data that cannot stay in the cache: results may stay there, and in a warm measurement operands too.
fn impossible(examination: &Examination, comparison: &Comparison) -> Option<String> {
    let setting = examination.setting;
    let (cases, device) = (&setting.benchmark_cases, &setting.device);
    // Operands rotate past the last-level cache unless the measurement is warm, or the size of that cache is unknown.
    let unknown = matches!(examination.executor, Executor::Live(_)) && last_level_cache(device) == 0;
    let cached = if setting.measurement.warm || unknown {
        Cached::Everything
    } else {
        Cached::Results
    };
    comparison.cases.iter().find_map(|times| {
        let case = cases.iter().find(|case| case.name == times.case)?;
        let limit = case.sizes.limit(device, cached)?;
        let time = [times.baseline, times.candidate]
            .into_iter()
            .find(|time| *time < limit)?;
        Some(format!(
            "void: {} took {time:.3e} s where nothing on {} takes less than {limit:.3e} s{}",
            times.case,
            device.name,
            match cached {
                Cached::Everything => ", whatever its cache holds",
                Cached::Nothing | Cached::Results => "",
            },
        ))
    })
}

/// Where a kernel that leaves work out would pass, a faster one need not compute what the task asks for.
fn blindness(setting: &Setting) -> Option<String> {
    let all = || setting.correctness_cases.iter().chain(&setting.benchmark_cases);
    let matters = |input: &String| all().any(|case| case.sizes.depends_on(input) == Some(true));
    let remarks = setting
        .benchmark_cases
        .iter()
        .flat_map(|case| case.sizes.remarks());
    let mut blind = remarks.filter(|remark| remark.is_blind);
    let remark = blind.find(|remark| !remark.input.as_ref().is_some_and(matters))?;
    Some(format!(
        "adopt is withheld, because the task is blind: {}",
        remark.text
    ))
}

/// Times that cannot be believed decide nothing. A check without power has widened the interval and voids nothing.
fn disbelieved(candidate: &Candidate, comparison: &Comparison) -> Option<String> {
    let suspicion = comparison.conduct.as_ref()?.suspicion?;
    let advice = suspicion.advice(candidate.is_hosted());
    let advice = advice.map_or(String::new(), |advice| format!("; {advice}"));
    suspicion
        .least_gain()
        .is_none()
        .then(|| format!("void: {suspicion}{advice}"))
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Device;
    use gauntlet_parameters::Parameters;
    use gauntlet_stats::{Criteria, without_interval};
    use gauntlet_task::Suite;

    use super::*;
    use crate::evidence::{CaseTimes, Conduct, Measurement, Suspicion};
    use crate::observer::Blind;

    /// A problem with few tokens: it is memory-bound, and all of it fits the cache of an H200.
    fn suite() -> Suite {
        let mut suite = gauntlet_families::suite("group-gemm").unwrap();
        suite.benchmark.truncate(1);
        suite.benchmark[0].sizes = gauntlet_families::open(&serde_json::json!({
            "family": "grouped-gemm", "groups": [{ "m": 8, "n": 4096, "k": 7168 }]
        }))
        .unwrap();
        suite
    }

    /// A comparison in which the candidate took these seconds.
    fn comparison_with(seconds: f64) -> Comparison {
        let name = &suite().benchmark[0].name;
        Comparison {
            cases: vec![CaseTimes {
                case: name.clone(),
                baseline: 1.0,
                candidate: seconds,
                blocks: Vec::new(),
            }],
            ended_early: None,
            spent: None,
            assessment: without_interval(std::slice::from_ref(name), &Criteria::default()),
            regime: None,
            scope: None,
            looks: Vec::new(),
            seed: 0,
            conduct: None,
            declared: None,
            design: None,
            trust: crate::evidence::Trust::Watched,
            predicted: None,
        }
    }

    /// The objection to a time of it.
    fn said(seconds: f64, warm: bool) -> Option<String> {
        let suite = suite();
        let measurement = Measurement {
            warm,
            ..Measurement::default()
        };
        let device = Device::builtin("h200").unwrap();
        let setting = Setting::new(device, &suite, measurement, Criteria::default());
        let candidate = Candidate::new("candidate", Parameters::new());
        let comparison = comparison_with(seconds);
        let executor = Executor::without_times();
        let examination = Examination::new(&setting, [&candidate; 2], &executor, &Blind);
        impossible(&examination, &comparison)
    }

    /// What the gate says of a comparison with this suspicion, of a kernel that this program calls or of a worker program.
    fn disbelief(suspicion: Suspicion, is_hosted: bool) -> Option<String> {
        let mut candidate = Candidate::new("candidate", Parameters::new());
        candidate.command = (!is_hosted).then(|| vec!["worker".into()]);
        let mut comparison = comparison_with(1.0);
        let conduct: Conduct = serde_json::from_str("{}").unwrap();
        comparison.conduct = Some(Conduct {
            suspicion: Some(suspicion),
            ..conduct
        });
        disbelieved(&candidate, &comparison)
    }

    #[test]
    fn advice_is_given_to_those_who_can_follow_it() {
        for lie in [
            Suspicion::OwnClock { factor: 1.2 },
            Suspicion::Unconfirmed { own: 1.3, seen: 1.0 },
        ] {
            assert!(disbelief(lie, false).unwrap().contains("report each call"));
            let told = disbelief(lie, true).unwrap();
            assert!(
                !told.contains("report each call") && told.contains("before it returns"),
                "{told}"
            );
        }
    }

    #[test]
    fn a_check_without_power_voids_nothing() {
        for doubt in [
            Suspicion::Unchecked {
                own: 1.1,
                hidden: 1.2,
            },
            Suspicion::Unfamiliar {
                own: 1.1,
                memory: None,
            },
            Suspicion::Unresolved {
                own: 1.1,
                lower: 0.9,
                upper: 1.5,
                pairs: 40,
            },
        ] {
            assert_eq!(disbelief(doubt, true), None);
            assert!(doubt.may_pass() && doubt.least_gain().unwrap() <= 0.0, "{doubt}");
        }
    }

    #[test]
    fn what_stays_in_the_cache_need_not_come_from_memory() {
        let device = Device::builtin("h200").unwrap();
        let problem = &suite().benchmark[0].sizes;
        let [cold, warm] =
            [Cached::Results, Cached::Everything].map(|cached| problem.limit(&device, cached).unwrap());
        assert!(warm < 0.9 * cold, "{warm} and {cold}");
        let between = (cold * warm).sqrt();
        let whole = problem.limit(&device, Cached::Nothing).unwrap();
        assert!(cold < whole && said((cold * whole).sqrt(), false).is_none());
        assert!(said(between, false).unwrap().contains("void"));
        assert_eq!(said(between, true), None);
        assert!(said(0.9 * warm, true).unwrap().contains("cache"));
    }
}
