//! Successive halving: all are measured a little, the slower half drops out, the others are measured more. The last two
//! are then measured afresh, for what chose them flatters them.

use std::time::{Duration, Instant};

use gauntlet_stats::Interval;

use super::candidate;
use super::outcome::{Contender, Finalist, Winner};
use super::ranking::Ranked;
use crate::candidate::Candidate;
use crate::comparison::{Contest, measure};
use crate::error::LabError;
use crate::gates::Trouble;
use crate::observer::Observer;
use crate::round::{Measurement, Round};
use crate::workshop::Workshop;

/// Pairs of processes after the first heat, and further ones in each heat after it.
const PAIRS: usize = 2;

/// How many are measured afresh.
const FINALISTS: usize = 2;

/// The part of the time that the heats get; the rest is for what is left of them.
const HEATS_PART: f64 = 0.5;

/// What is needed to run them.
pub struct Heats<'a> {
    /// Where candidates run.
    pub workshop: &'a Workshop,
    /// The case as a round of its own.
    pub round: &'a Round,
    /// What all is compared with.
    pub baseline: &'a Candidate,
    /// Who watches.
    pub observer: &'a dyn Observer,
}

/// What came of them.
pub struct Verdict {
    /// All that was measured, in the model's order.
    pub contenders: Vec<Contender>,
    /// What was measured afresh.
    pub finalists: Vec<Finalist>,
    /// What is surely faster than the baseline, and fastest.
    pub winner: Option<Winner>,
    /// Why.
    pub reason: String,
}

impl Heats<'_> {
    /// Measures the chosen, the model's first choice among them at the front.
    pub fn run(&self, chosen: &[Ranked], allowed: Duration) -> Result<Verdict, LabError> {
        let start = Instant::now();
        // The baseline needs no comparison with itself.
        let measured: Vec<&Ranked> = chosen
            .iter()
            .filter(|one| one.schedule != self.baseline.schedule)
            .collect();
        let contenders = self.halve(&measured, allowed.mul_f64(HEATS_PART))?;
        let mut best: Vec<&Contender> = contenders
            .iter()
            .filter(|one| one.fault.is_none() && one.estimate.is_some())
            .collect();
        best.sort_by(|one, other| {
            let speed = |one: &Contender| (one.heats, one.estimate.unwrap_or(f64::MIN));
            let ((more, faster), (less, slower)) = (speed(other), speed(one));
            more.cmp(&less).then(faster.total_cmp(&slower))
        });
        best.truncate(FINALISTS);
        let first = chosen.first().map(|first| candidate("the model's first choice", &first.schedule));
        let mut finalists = Vec::new();
        for (index, one) in best.iter().enumerate() {
            let left = allowed.saturating_sub(start.elapsed());
            let share = left / u32::try_from(best.len() - index).unwrap_or(1);
            finalists.push(self.measure_afresh(one, first.as_ref(), share)?);
        }
        let fastest = finalists
            .iter()
            .zip(&best)
            .filter_map(|(finalist, contender)| Some((finalist, *contender, finalist.over_baseline.as_ref()?)))
            .max_by(|one, other| one.2.estimate.total_cmp(&other.2.estimate));
        let (winner, reason) = match fastest {
            None => (None, "nothing could be measured against the baseline".to_owned()),
            Some((_, _, interval)) if interval.lower <= 0.0 => (
                None,
                "nothing is surely faster than the baseline, so it stays".to_owned(),
            ),
            Some((finalist, contender, interval)) => {
                let winner = Winner {
                    schedule: contender.ranked.schedule.clone(),
                    rank: finalist.rank,
                    speedup: interval.clone(),
                    over_first: match first.as_ref().is_some_and(|first| first.schedule == self.baseline.schedule) {
                        true => finalist.over_baseline.clone(),
                        false => finalist.over_first.clone(),
                    },
                };
                (Some(winner), "measured beside the baseline".to_owned())
            }
        };
        Ok(Verdict {
            contenders,
            finalists,
            winner,
            reason,
        })
    }

    fn halve(&self, measured: &[&Ranked], allowed: Duration) -> Result<Vec<Contender>, LabError> {
        let start = Instant::now();
        let round = self.round_of_heats(measured.len());
        let mut contenders: Vec<Contender> = measured
            .iter()
            .map(|ranked| Contender {
                ranked: (*ranked).clone(),
                heats: 0,
                pairs: 0,
                estimate: None,
                fault: None,
            })
            .collect();
        let mut contests: Vec<(usize, Contest)> = Vec::new();
        for (index, ranked) in measured.iter().enumerate() {
            let one = candidate(&format!("{} of the model's order", ranked.rank), &ranked.schedule);
            let contest = Contest::new(self.workshop, &round, self.baseline.clone(), one, rand::random());
            match contest {
                Ok(contest) => contests.push((index, contest)),
                Err(trouble) => contenders[index].fault = Some(fault(trouble)?),
            }
        }
        while contests.len() > FINALISTS || contenders.iter().all(|one| one.heats == 0) {
            let mut open = Vec::new();
            let mut in_time = true;
            let count = contests.len();
            for (place, (index, mut contest)) in contests.into_iter().enumerate() {
                let left = allowed.saturating_sub(start.elapsed());
                let share = left / u32::try_from(count - place).unwrap_or(1);
                // The first pair of each is measured however little time there is: without it there is no choice.
                let (contender, advanced) = (&mut contenders[index], contest.advance(share, self.observer));
                contender.pairs = contest.pairs();
                contender.estimate = contest.estimate();
                match advanced {
                    Ok(reached) => {
                        in_time &= reached;
                        contender.heats += usize::from(reached || contender.heats == 0);
                        open.push((index, contest));
                    }
                    Err(trouble) => contender.fault = Some(fault(trouble)?),
                }
            }
            open.sort_by(|one, other| {
                let estimate = |index: usize| contenders[index].estimate.unwrap_or(f64::MIN);
                estimate(other.0).total_cmp(&estimate(one.0))
            });
            open.truncate(open.len().div_ceil(2).max(FINALISTS));
            contests = open;
            if !in_time || contests.is_empty() {
                break;
            }
        }
        Ok(contenders)
    }

    /// As many looks as there can be heats.
    fn round_of_heats(&self, contenders: usize) -> Round {
        let mut round = self.round.clone();
        let heats = contenders.max(2).ilog2() as usize + 1;
        let file = &mut round.source.value;
        file.measurement = Measurement {
            looks: (1..=heats).map(|heat| heat * PAIRS).collect(),
            ..file.measurement.clone()
        };
        file.criteria.looks = heats;
        round
    }

    fn measure_afresh(
        &self,
        contender: &Contender,
        first: Option<&Candidate>,
        allowed: Duration,
    ) -> Result<Finalist, LabError> {
        let one = candidate(
            &format!("{} of the model's order", contender.ranked.rank),
            &contender.ranked.schedule,
        );
        let rival = first
            .filter(|first| first.schedule != one.schedule && first.schedule != self.baseline.schedule);
        let share = if rival.is_some() { allowed / 2 } else { allowed };
        let mut finalist = Finalist {
            rank: contender.ranked.rank,
            over_baseline: None,
            over_first: None,
            fault: None,
        };
        match self.interval(self.baseline, &one, share)? {
            Ok(interval) => finalist.over_baseline = interval,
            Err(fault) => finalist.fault = Some(fault),
        }
        if let Some(rival) = rival {
            match self.interval(rival, &one, share)? {
                Ok(interval) => finalist.over_first = interval,
                Err(fault) => finalist.fault = Some(fault),
            }
        }
        Ok(finalist)
    }

    /// The interval of one comparison, or what went wrong.
    fn interval(
        &self,
        control: &Candidate,
        one: &Candidate,
        allowed: Duration,
    ) -> Result<Result<Option<Interval>, String>, LabError> {
        match measure(self.workshop, self.round, control, one, allowed, self.observer) {
            Ok(comparison) => {
                let suspicion = comparison.conduct.and_then(|conduct| conduct.suspicion);
                Ok(match suspicion {
                    Some(suspicion) => Err(format!("its times cannot be believed: {suspicion}")),
                    None => Ok(comparison.assessment.suite),
                })
            }
            Err(trouble) => Ok(Err(fault(trouble)?)),
        }
    }
}

/// A candidate's trouble in words; the lab's own ends the tuning.
fn fault(trouble: Trouble) -> Result<String, LabError> {
    match trouble {
        Trouble::Candidate(error) => Ok(error.to_string()),
        Trouble::Control(error) => Ok(format!("what it was compared with failed: {error}")),
        Trouble::Void(reason) | Trouble::Wrong(reason) => Ok(reason),
        Trouble::Lab(error) => Err(error),
    }
}
