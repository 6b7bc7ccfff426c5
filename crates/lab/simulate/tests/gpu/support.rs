//! Problems and schedules.

use gauntlet_device::Device;
use gauntlet_families::operations::{accepts, problem};
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm, Operation};
use gauntlet_problems::{Cluster, Epilogue, Lookup, Order, Roles, Schedule, Setup, Tile};
use gauntlet_simulate::{HostTerm, Problem, simulate};

pub fn device(name: &str) -> Device {
    Device::builtin(name).unwrap()
}

pub fn gemm(form: Form, rows: &[usize], n: usize, k: usize) -> Problem {
    let groups = rows.iter().map(|&m| [m, n, k]);
    problem(&Operation::GroupedGemm(GroupedGemm::new(form, groups)))
}

/// The four recorded benchmark cases.
pub fn cases() -> [Problem; 4] {
    [
        gemm(Form::Plain, &[80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
        gemm(Form::Plain, &[40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
        gemm(Form::Plain, &[192, 320], 3072, 4096),
        gemm(Form::Plain, &[128, 384], 4096, 1536),
    ]
}

pub fn attention(queries: usize, causal: bool, format: AttentionFormat) -> Problem {
    problem(&Operation::Attention(Attention {
        causal,
        ..Attention::new(format, [[queries, queries]], [8, 8], 64)
    }))
}

/// A specialised kernel with everything prepared, one block a tile.
pub fn prepared(tile: [usize; 3], stages: usize) -> Schedule {
    Schedule {
        tile: Tile::from(tile),
        stages,
        roles: Roles::Specialised,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..Schedule::baseline()
    }
}

/// Microseconds, without a host term.
pub fn microseconds(problem: &Problem, schedule: &Schedule, device: &Device) -> f64 {
    simulate(problem, schedule, device, HostTerm::default())
        .unwrap()
        .seconds
        * 1e6
}

/// Schedules in which every word has every value, as far as the device accepts them.
pub fn schedules(problem: &Problem, device: &Device) -> Vec<Schedule> {
    let tiles = [
        [128, 128, 256],
        [128, 64, 128],
        [256, 64, 64],
        [64, 32, 64],
        [64, 64, 64],
    ];
    let orders = [Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic];
    let clusters = [[1, 1], [2, 1], [1, 2], [4, 2]];
    let mut found = Vec::new();
    for (index, tile) in tiles.into_iter().cycle().take(400).enumerate() {
        // Mixed so that neighbours differ in several words, the same on every run.
        let digit =
            |place: usize, base: usize| index.wrapping_mul(7919).rotate_right(place as u32 * 3) % base;
        let schedule = Schedule {
            tile: Tile::from(tile),
            stages: 1 + digit(0, 5),
            epilogue: [Epilogue::Direct, Epilogue::Staged][digit(1, 2)],
            roles: [Roles::Unified, Roles::Specialised][digit(2, 2)],
            order: orders[digit(0, 4)],
            lookup: [Lookup::Linear, Lookup::Precomputed][digit(3, 2)],
            setup: [Setup::PerCall, Setup::Once][digit(4, 2)],
            swap_ab: digit(5, 2) == 1,
            split_k: 1 + digit(1, 3) / 2,
            cluster: Cluster::from(clusters[digit(2, 4)]),
            ..Schedule::baseline()
        };
        if accepts(&schedule, problem.operation(), device) && !found.contains(&schedule) {
            found.push(schedule);
        }
    }
    found
}
