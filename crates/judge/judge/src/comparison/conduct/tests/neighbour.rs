//! Workers beside another load of the machine.

use super::*;

/// Reproducible pseudo-random numbers, uniform between 0 and 1.
struct Dice(u64);

impl Dice {
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Exponentially distributed with this mean.
    fn wait(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.throw()).ln()
    }
}

/// A slot of forty half-millisecond calls on a machine where another load occasionally takes the processor for some
/// milliseconds, during calls and during the messages between them.
fn beside_a_neighbour(dice: &mut Dice, report: fn(&[f64]) -> Vec<f64>) -> Slot {
    let taken = |dice: &mut Dice| if dice.throw() < 0.1 { dice.wait(4e-3) } else { 0.0 };
    let calls: Vec<f64> = (0..40)
        .map(|_| 0.5e-3 * (1.0 + 0.05 * dice.throw()) + taken(dice))
        .collect();
    let messages = 150e-6 + taken(dice) + taken(dice);
    let reported = report(&calls);
    Slot::of(reported, effort(calls.iter().sum::<f64>() + messages))
}

/// Four pairs under such a load, and their judgement.
fn judge_beside_a_neighbour(seed: u64, report: fn(&[f64]) -> Vec<f64>) -> Conduct {
    let mut dice = Dice(seed);
    let mut reports = Vec::new();
    let seen: Vec<CaseConduct> = (0..4)
        .map(|process| {
            let mut conduct = CaseConduct::new(process, false);
            let slots: Vec<(Arm, Slot)> = (0..12)
                .map(|turn| match turn % 2 {
                    0 => (Arm::Baseline, beside_a_neighbour(&mut dice, <[f64]>::to_vec)),
                    _ => (Arm::Candidate, beside_a_neighbour(&mut dice, report)),
                })
                .collect();
            let medians = |wanted| {
                let own = slots.iter().filter(|(arm, _)| *arm == wanted);
                own.map(|(_, slot)| slot.typical).collect()
            };
            reports.push(Block::new(
                process,
                medians(Arm::Baseline),
                medians(Arm::Candidate),
            ));
            conduct.note_slots(&slots);
            conduct
        })
        .collect();
    let sample = Sample::from_blocks(&reports).unwrap();
    let assessment = compare(&[(SUITE[0].to_owned(), sample)], &Criteria::default(), 1, 0).unwrap();
    Conduct::judge(&[seen], &assessment, &Criteria::default()).unwrap()
}

fn best_of(calls: &[f64]) -> Vec<f64> {
    let best = calls.iter().copied().fold(f64::INFINITY, f64::min);
    vec![best; calls.len()]
}

#[test]
fn a_noisy_neighbour_hides_no_worker_that_reports_its_best_and_accuses_no_honest_one() {
    for seed in 0..50 {
        let honest = judge_beside_a_neighbour(seed, <[f64]>::to_vec);
        assert!(
            honest.suspicion.is_none_or(|suspicion| !suspicion.accuses()),
            "{seed}: {honest:?}"
        );
        let cheat = judge_beside_a_neighbour(seed, best_of);
        assert!(
            matches!(cheat.suspicion, Some(Suspicion::OwnClock { factor }) if factor > 1.2),
            "{seed}: {cheat:?}"
        );
    }
}
