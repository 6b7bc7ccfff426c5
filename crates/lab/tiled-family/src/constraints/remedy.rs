//! The nearest schedules that keep every rule.

use gauntlet_device::Arch;
use gauntlet_problems::Schedule;
use gauntlet_task::Remedy;

use super::lever::{Lever, SWAP_AB, TILE_M, TILE_N};
use super::{Rule, Situation};
use crate::TiledFamily;

/// Further changes allowed after the first: a remedy with more changes would be a new schedule.
const FURTHER_CHANGES: usize = 2;

/// The distance each of them adds, in doublings of a number: one larger step is easier to follow than two small ones.
const FURTHER_DISTANCE: f64 = 2.0;

/// For each lever of the broken rule the nearest schedule, if any, that begins with moving this lever.
pub(super) fn find<F: TiledFamily>(situation: &Situation<F>, rule: &Rule<F>) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    for &lever in rule.levers {
        let Some(schedule) = nearest(situation, lever) else {
            continue;
        };
        let parameters = schedule.clone().into();
        if remedies.iter().all(|remedy| remedy.parameters != parameters) {
            let sentence = sentence(situation, rule, lever, &schedule);
            remedies.push(Remedy { sentence, parameters });
        }
    }
    remedies
}

fn nearest<F: TiledFamily>(situation: &Situation<F>, lever: Lever) -> Option<Schedule> {
    let mut search = Search {
        situation,
        first: lever,
        best: None,
    };
    search.from(situation.schedule, &[lever], 0.0, FURTHER_CHANGES);
    search.best.map(|(_, schedule)| schedule)
}

struct Search<'a, F: TiledFamily> {
    situation: &'a Situation<'a, F>,
    first: Lever,
    best: Option<(f64, Schedule)>,
}

impl<F: TiledFamily> Search<'_, F> {
    /// Tries every move of `levers`; where a rule is still broken, moves what may keep that rule, and so on.
    fn from(&mut self, schedule: &Schedule, levers: &[Lever], distance: f64, further: usize) {
        let depth = F::fixed_depth(self.situation.sizes);
        for lever in levers {
            for (step, candidate) in lever.alternatives(schedule, depth) {
                let distance = distance + step;
                if self.best.as_ref().is_some_and(|(best, _)| *best <= distance) {
                    break;
                }
                let open = self.situation.with(&candidate).broken().next();
                let open = open.map(|(rule, _)| rule.levers);
                match open {
                    None if self.helps(&candidate) => self.best = Some((distance, candidate)),
                    Some(levers) if further > 0 => {
                        self.from(&candidate, levers, distance + FURTHER_DISTANCE, further - 1);
                    }
                    _ => {}
                }
            }
        }
    }

    /// Whether moving the first lever is part of the remedy, and the other moves alone do not suffice.
    fn helps(&self, candidate: &Schedule) -> bool {
        let without = self.first.carry(self.situation.schedule, candidate);
        !self.situation.with(&without).is_kept()
    }
}

fn sentence<F: TiledFamily>(
    situation: &Situation<F>,
    rule: &Rule<F>,
    lever: Lever,
    schedule: &Schedule,
) -> String {
    let before = situation.schedule;
    let changed: Vec<Lever> = Lever::all()
        .into_iter()
        .filter(|lever| lever.value(before) != lever.value(schedule))
        .collect();
    let list = |levers: &[Lever]| {
        let parts: Vec<_> = levers
            .iter()
            .map(|lever| format!("{} {}", lever.name(), lever.value(schedule)))
            .collect();
        match parts.split_last() {
            Some((last, rest)) if !rest.is_empty() => format!("{} and {last}", rest.join(", ")),
            _ => parts.concat(),
        }
    };
    if lever == SWAP_AB && schedule.swap_ab && schedule.tile.n == before.tile.m {
        let rest: Vec<_> = changed
            .into_iter()
            .filter(|lever| ![SWAP_AB, TILE_M, TILE_N].contains(lever))
            .collect();
        let rest = if rest.is_empty() {
            String::new()
        } else {
            format!(", with {}", list(&rest))
        };
        let columns = columns(situation.arch());
        return format!(
            "swap A and B so that N{columns} carries the {} rows{rest}",
            before.tile.m
        );
    }
    match changed.as_slice() {
        [only] if *only == rule.parameter() => format!("try {}", only.value(schedule)),
        several => format!("try {}", list(several)),
    }
}

/// The widths the instruction set gives the column side, in brackets of commas; nothing where any will do.
fn columns(arch: Arch) -> &'static str {
    match arch {
        Arch::Sm90a | Arch::Sm100a => ", 8…256,",
        Arch::Cpu | Arch::Sm80 | Arch::Sm89 => "",
    }
}
