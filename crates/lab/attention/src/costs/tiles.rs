//! The tiles of attention: the number of each kind, their order, and the share of their reads that hits a cache.

use gauntlet_device::Arch;
use gauntlet_problems::resources::{head_sets, most_visible};
use gauntlet_problems::{Attention, Schedule, Tile};
use gauntlet_simulate::gpu::{Bundle, Kind};
use gauntlet_simulate::tiles::Class;

pub(super) fn classes(attention: &Attention, schedule: &Schedule, arch: Arch) -> Vec<Class> {
    let Tile { m, n, .. } = schedule.tile;
    let sets = head_sets(schedule, attention, arch);
    let mut classes: Vec<Class> = Vec::new();
    for sequence in &attention.sequences {
        let rows = sequence.queries * sets.heads;
        for block in 0..rows.div_ceil(m) {
            let visible = most_visible(attention, *sequence, block * m..((block + 1) * m).min(rows));
            let steps = visible.div_ceil(n).div_ceil(schedule.split_k);
            let pairs = (m * n) as f64 * steps as f64;
            let class = Class {
                count: sets.count * schedule.split_k,
                steps,
                flops: 4.0 * attention.head_size as f64 * pairs,
            };
            match classes.last_mut() {
                Some(previous) if previous.steps == steps => previous.count += class.count,
                _ => classes.push(class),
            }
        }
    }
    classes
}

pub(super) fn kinds(attention: &Attention, schedule: &Schedule, bundle: Bundle, arch: Arch) -> Vec<Kind> {
    let Tile { m, n, .. } = schedule.tile;
    let sets = head_sets(schedule, attention, arch);
    let mut kinds: Vec<Kind> = Vec::new();
    for (group, sequence) in attention.sequences.iter().enumerate() {
        let rows = sequence.queries * sets.heads;
        let blocks = rows.div_ceil(m);
        let readers = blocks * sets.count / attention.kv_heads.max(1);
        for block in 0..blocks {
            let visible = most_visible(attention, *sequence, block * m..((block + 1) * m).min(rows));
            let steps = visible.div_ceil(n).div_ceil(schedule.split_k);
            let count = (sets.count * schedule.split_k).div_ceil(bundle.rows * bundle.columns);
            if let Some(previous) = kinds
                .last_mut()
                .filter(|kind| kind.group == group && kind.steps == steps)
            {
                previous.count += count;
                continue;
            }
            kinds.push(Kind {
                count,
                filled: (sets.count * schedule.split_k) as f64
                    / (count * bundle.rows * bundle.columns) as f64,
                group,
                steps,
                depth: visible as f64 / (steps * schedule.split_k).max(1) as f64,
                rows: rows as f64 / blocks as f64,
                columns: attention.head_size as f64,
                rows_from_memory: 1.0,
                // The blocks of a head read its keys and values one after another.
                columns_from_memory: 1.0 / readers as f64,
                cold: 1.0,
            });
        }
    }
    kinds
}
