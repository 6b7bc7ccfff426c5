//! The measured end of tuning: heats reduce the candidates to two finalists. These are measured again on pairs of
//! processes that took no part in choosing them, because the times they were chosen by flatter them.

use std::time::{Duration, Instant};

use gauntlet_stats::Interval;

use super::budget::{Spending, pairs_of_a_look, pairs_within};
use super::heats::{Course, PAIRS, halve, heats_for};
use super::outcome::{Contender, Finalist, Winner};
use super::ranking::Ranked;
use crate::error::TuningError;
use gauntlet_judge::Candidate;
use gauntlet_judge::ExaminationFailure;
use gauntlet_judge::Observer;
use gauntlet_judge::Setting;
use gauntlet_judge::Workshop;
use gauntlet_judge::{PairedComparison, measure};

/// The setting in which candidates are measured.
pub struct Measuring<'a> {
    /// A schedule as a candidate.
    pub candidate: &'a dyn Fn(&Ranked) -> Candidate,
    /// The workshop that runs them.
    pub workshop: &'a Workshop,
    /// The case, the device and the rules.
    pub setting: &'a Setting,
    /// The baseline.
    pub baseline: &'a Candidate,
    /// The model's first choice.
    pub first: &'a Candidate,
    /// The time of a pair of processes.
    pub pace: Duration,
    /// Receives progress reports.
    pub observer: &'a dyn Observer,
}

/// The result.
pub struct Verdict {
    /// All measured candidates, in the model's order.
    pub contenders: Vec<Contender>,
    /// The candidates measured again.
    pub finalists: Vec<Finalist>,
    /// The fastest candidate that is certainly faster than the baseline.
    pub winner: Option<Winner>,
    /// The reason.
    pub reason: String,
}

impl Measuring<'_> {
    /// Measures as many of the chosen candidates as can be decided within the allowed time.
    pub fn run(&self, chosen: &[Ranked], allowed: Duration) -> Result<Verdict, TuningError> {
        let start = Instant::now();
        let left = || allowed.saturating_sub(start.elapsed());
        // The baseline needs no comparison with itself.
        let mut rivals: Vec<&Ranked> = chosen
            .iter()
            .filter(|one| one.schedule != self.baseline.schedule)
            .collect();
        let spending = Spending::of(pairs_within(allowed, self.pace), rivals.len());
        rivals.truncate(spending.rivals);
        let kept = self.pace * u32::try_from(spending.kept()).unwrap_or(u32::MAX);
        let (contenders, chosen_by_heats) = self.heats(&rivals, allowed.saturating_sub(kept))?;
        let mut finalists: Vec<Finalist> = Vec::new();
        for (place, index) in chosen_by_heats.iter().enumerate() {
            let time = left();
            let pairs = pairs_within(time, self.pace);
            // A second finalist without an interval decides nothing, so the first one gets all of the time.
            let looks_left = pairs / pairs_of_a_look();
            if place > 0 && looks_left == 0 {
                break;
            }
            let sharing = (chosen_by_heats.len() - place).min(looks_left.max(1));
            let share = time / u32::try_from(sharing).unwrap_or(u32::MAX);
            finalists.push(self.over_baseline(rivals[*index], share)?);
        }
        // How far the model's first choice is from the best is worth knowing, but decides nothing.
        for finalist in &mut finalists {
            if pairs_within(left(), self.pace) >= pairs_of_a_look() {
                self.add_over_first(finalist, chosen, left())?;
            }
        }
        let (winner, reason) = self.decide(&finalists, chosen);
        Ok(Verdict {
            contenders,
            finalists,
            winner,
            reason,
        })
    }

    fn heats(
        &self,
        rivals: &[&Ranked],
        allowed: Duration,
    ) -> Result<(Vec<Contender>, Vec<usize>), TuningError> {
        let setting = self.setting_of_heats(heats_for(rivals.len()));
        let mut contests = Vec::new();
        let mut places = Vec::new();
        let mut contenders = Vec::new();
        for (place, ranked) in rivals.iter().enumerate() {
            let one = (self.candidate)(ranked);
            let contest = PairedComparison::new(
                self.workshop,
                &setting,
                self.baseline.clone(),
                one,
                rand::random(),
            );
            let fault = match contest {
                Ok(contest) => {
                    contests.push(contest);
                    places.push(place);
                    None
                }
                Err(failure) => Some(fault(failure)?),
            };
            contenders.push(Contender {
                ranked: (*ranked).clone(),
                heats: 0,
                pairs: 0,
                estimate: None,
                fault,
            });
        }
        let (courses, left) = halve(contests, allowed, self.pace, self.observer);
        for (course, place) in courses.into_iter().zip(&places) {
            let Course {
                heats,
                pairs,
                estimate,
                failure,
            } = course;
            let contender = &mut contenders[*place];
            (contender.heats, contender.pairs, contender.estimate) = (heats, pairs, estimate);
            contender.fault = failure.map(fault).transpose()?;
        }
        Ok((contenders, left.into_iter().map(|index| places[index]).collect()))
    }

    /// A look after each heat.
    fn setting_of_heats(&self, heats: usize) -> Setting {
        let mut setting = self.setting.clone();
        setting.measurement.looks = (1..=heats.max(1)).map(|heat| heat * PAIRS).collect();
        setting.criteria.looks = heats.max(1);
        (setting.measurement.open_ended, setting.criteria.open_ended) = (false, false);
        setting
    }

    fn over_baseline(&self, ranked: &Ranked, allowed: Duration) -> Result<Finalist, TuningError> {
        let one = (self.candidate)(ranked);
        let (over_baseline, fault) = match self.interval(self.baseline, &one, allowed)? {
            Ok(interval) => (interval, None),
            Err(fault) => (None, Some(fault)),
        };
        Ok(Finalist {
            rank: ranked.rank,
            over_baseline,
            over_first: None,
            fault,
        })
    }

    /// Measures a finalist against the model's first choice, unless the finalist or the baseline is that choice.
    fn add_over_first(
        &self,
        finalist: &mut Finalist,
        chosen: &[Ranked],
        allowed: Duration,
    ) -> Result<(), TuningError> {
        let Some(ranked) = chosen.iter().find(|one| one.rank == finalist.rank) else {
            return Ok(());
        };
        let first = self.first;
        if first.schedule == ranked.schedule || first.schedule == self.baseline.schedule {
            return Ok(());
        }
        let one = (self.candidate)(ranked);
        // The fault here may lie with the model's first choice, and says nothing about this finalist.
        if let Ok(interval) = self.interval(first, &one, allowed)? {
            finalist.over_first = interval;
        }
        Ok(())
    }

    /// The interval of one comparison, none if the time was up before there was one; or the error.
    fn interval(
        &self,
        baseline: &Candidate,
        one: &Candidate,
        allowed: Duration,
    ) -> Result<Result<Option<Interval>, String>, TuningError> {
        match measure(self.workshop, self.setting, baseline, one, allowed, self.observer) {
            Ok(comparison) => {
                let suspicion = comparison.conduct.as_ref().and_then(|conduct| conduct.suspicion);
                // A check that only lacked power has widened the interval.
                let suspicion = suspicion.filter(|_| comparison.doubt().is_none());
                Ok(match suspicion {
                    Some(suspicion) => Err(format!("its times cannot be believed: {suspicion}")),
                    None => Ok(comparison.assessment.suite),
                })
            }
            Err(failure) => Ok(Err(fault(failure)?)),
        }
    }

    /// The fastest of the finalists if it is certainly faster than the baseline, and the reason.
    fn decide(&self, finalists: &[Finalist], chosen: &[Ranked]) -> (Option<Winner>, String) {
        let compared: Vec<_> = finalists
            .iter()
            .filter(|finalist| finalist.fault.is_none())
            .filter_map(|finalist| Some((finalist, finalist.over_baseline.as_ref()?)))
            .collect();
        if compared.is_empty() {
            let reason = "nothing came to an interval, for want of time or for the faults named: the baseline stays; give more --budget";
            return (None, reason.to_owned());
        }
        // Certainty first, then speed: a finalist that may be the fastest but may also be slower than the baseline is
        // not chosen.
        let surely_faster = compared.into_iter().filter(|(_, interval)| interval.lower > 0.0);
        let fastest = surely_faster
            .max_by(|(_, one), (_, other)| one.estimate.total_cmp(&other.estimate))
            .and_then(|(finalist, interval)| {
                let ranked = chosen.iter().find(|one| one.rank == finalist.rank)?;
                Some((finalist, interval, ranked))
            });
        let Some((finalist, interval, ranked)) = fastest else {
            let reason = "nothing is surely faster than the baseline, so it stays";
            return (None, reason.to_owned());
        };
        let over_first = if self.first.schedule == self.baseline.schedule {
            &finalist.over_baseline
        } else {
            &finalist.over_first
        };
        let winner = Winner {
            schedule: ranked.schedule.clone(),
            rank: finalist.rank,
            speedup: interval.clone(),
            over_first: over_first.clone(),
        };
        (Some(winner), "measured beside the baseline".to_owned())
    }
}

/// The failure of a candidate, in words; a failure of the judge itself ends the tuning.
pub fn fault(failure: ExaminationFailure) -> Result<String, TuningError> {
    match failure {
        ExaminationFailure::Candidate(error) => Ok(error.to_string()),
        ExaminationFailure::Baseline(error) => Ok(format!("what it was compared with failed: {error}")),
        ExaminationFailure::Void(reason) | ExaminationFailure::Wrong(reason) => Ok(reason),
        ExaminationFailure::Judge(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {

    use gauntlet_device::Device;
    use gauntlet_parameters::{Parameters, Value};
    use gauntlet_stats::Origin;
    use gauntlet_worker::{Limits, Timeouts, WorkerCommand};

    use super::*;
    use crate::setting_of;
    use gauntlet_judge::Blind;
    use gauntlet_judge::Measurement;

    fn ranked(rank: usize, stages: usize) -> Ranked {
        Ranked {
            rank,
            schedule: Parameters::new().with("stages", stages),
            predicted: Some(1.0),
            screened: None,
        }
    }

    fn finalist(rank: usize, log: f64) -> Finalist {
        finalist_within(rank, log, 0.1)
    }

    fn finalist_within(rank: usize, log: f64, doubt: f64) -> Finalist {
        let interval = Interval {
            estimate: log,
            lower: log - doubt,
            upper: log + doubt,
            origin: Origin::Measured {
                confidence: 0.95,
                processes: 4,
            },
        };
        Finalist {
            rank,
            over_baseline: Some(interval.clone()),
            over_first: (rank > 1).then_some(interval),
            fault: None,
        }
    }

    #[test]
    fn the_fastest_wins_if_it_is_surely_faster_and_nothing_is_wrong_with_it() {
        let nobody = WorkerCommand::new("", []);
        let workshop = Workshop::new(nobody, Timeouts::default(), Limits::default()).unwrap();
        let case = &gauntlet_families::suite("group-gemm").unwrap().benchmark[0];
        let chosen = [ranked(1, 2), ranked(2, 3)];
        let measuring = Measuring {
            candidate: &|ranked| Candidate::new(ranked.name(), ranked.schedule.clone()),
            workshop: &workshop,
            setting: &setting_of(case, &Device::host(), &Measurement::default()),
            baseline: &Candidate::new("baseline", Parameters::new()),
            first: &Candidate::new("first", chosen[0].schedule.clone()),
            pace: Duration::from_secs(1),
            observer: &Blind,
        };
        let decide = |finalists: &[Finalist]| measuring.decide(finalists, &chosen);

        let (winner, _) = decide(&[finalist(1, 0.2), finalist(2, 0.3)]);
        let winner = winner.unwrap();
        assert_eq!(winner.rank, 2);
        assert_eq!(winner.schedule.get("stages"), Some(&Value::Number(3)));
        assert_eq!(winner.over_first.unwrap().estimate, 0.3);

        let (winner, _) = decide(&[finalist_within(1, 0.06, 0.07), finalist_within(2, 0.05, 0.01)]);
        assert_eq!(
            winner.unwrap().rank,
            2,
            "what is sure comes before what may be faster"
        );

        let mut wrong = finalist(2, 0.3);
        wrong.fault = Some("it computes something else".to_owned());
        assert_eq!(decide(&[finalist(1, 0.2), wrong]).0.unwrap().rank, 1);

        let (winner, reason) = decide(&[finalist(1, 0.05), finalist(2, 0.09)]);
        assert!(winner.is_none() && reason.contains("surely"), "{reason}");
        assert!(decide(&[]).1.contains("--budget"));
    }
}
