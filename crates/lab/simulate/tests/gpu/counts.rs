//! Counts compared with values worked out by hand.

use gauntlet_problems::{Cluster, Epilogue, Order, Roles, Schedule, Tile};
use gauntlet_simulate::count::{self, Limit, Occupancy, Traffic};

use crate::support::{cases, device, prepared};

#[test]
fn a_stage_of_the_recorded_baseline_takes_36_864_bytes() {
    let occupancy = Occupancy::of(&cases()[0], &Schedule::baseline(), &device("b200")).unwrap();
    assert_eq!(occupancy.shared_memory, 36_864);
    // Shared memory would hold six; 128 columns of sums and 32 of scales are rounded up to 256 of 512.
    assert_eq!(occupancy.tensor_memory, 256);
    assert_eq!((occupancy.blocks, occupancy.limit), (2, Limit::TensorMemory));
    let six = prepared([128, 128, 256], 6);
    let occupancy = Occupancy::of(&cases()[0], &six, &device("b200")).unwrap();
    assert_eq!((occupancy.blocks, occupancy.limit), (1, Limit::SharedMemory));
}

#[test]
fn occupancy_on_other_devices_by_hand() {
    // 128 × 128 sums among 8 warps are 64 a thread, and 112 besides; a warp that loads has 40: (8 × 176 + 40) × 32
    // registers, which fit once in 65,536. Four stages of 8,192 + 32,768 B, four slots of
    // scales and the barriers fit once in 228 KB; three would not leave room to convert tokens beside one of them.
    let swapped = Schedule {
        swap_ab: true,
        ..prepared([128, 128, 128], 4)
    };
    let occupancy = Occupancy::of(&cases()[0], &swapped, &device("h200")).unwrap();
    assert_eq!((occupancy.registers, occupancy.warps), (176, 9));
    assert_eq!(occupancy.shared_memory, 4 * (8_192 + 32_768) + 4 * 2_048 + 1_024);
    assert_eq!((occupancy.blocks, occupancy.limit), (1, Limit::SharedMemory));
    // 64 × 64 sums among 4 warps are 32 a thread: 72 × 128 registers, seven times; 2 × 72 B × 64 and 1 KB of shared
    // memory go 22 times into 100 KB.
    let small = Schedule {
        tile: Tile { m: 64, n: 64, k: 64 },
        roles: Roles::Unified,
        ..Schedule::baseline()
    };
    let occupancy = Occupancy::of(&cases()[0], &small, &device("l4")).unwrap();
    assert_eq!((occupancy.registers, occupancy.warps), (72, 4));
    assert_eq!((occupancy.blocks, occupancy.limit), (7, Limit::Registers));
    let persistent = Schedule {
        order: Order::Dynamic,
        ..small
    };
    let occupancy = Occupancy::of(&cases()[0], &persistent, &device("l4")).unwrap();
    assert_eq!((occupancy.blocks, occupancy.limit), (1, Limit::Persistent));
}

#[test]
fn traffic_by_level_by_hand() {
    let b200 = device("b200");
    let case = &cases()[3];
    let schedule = Schedule {
        order: Order::Static,
        ..prepared([128, 128, 256], 4)
    };
    let traffic = Traffic::of(case, &schedule, &b200).unwrap();
    // Everything fits the cache, so memory sees each byte once.
    assert!((traffic.memory / count::bytes(case) - 1.0).abs() < 1e-9);
    // 128 tiles read 256 rows of 1536 values, 0.5625 B each; the results are 512 × 4096 × 2 B.
    let read = 128.0 * 256.0 * 1536.0 * 0.5625;
    let written = 512.0 * 4096.0 * 2.0;
    assert_eq!(traffic.cache, read + written);
    // All that is read is written to shared memory; products read it, without scales, once.
    assert_eq!(traffic.shared, read + read * 0.5 / 0.5625);
    // Staged, results go in and out of shared memory as well.
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..schedule.clone()
    };
    let staged = Traffic::of(case, &staged, &b200).unwrap();
    assert_eq!(staged.shared, traffic.shared + 2.0 * written);
    // A pair of blocks reads each half of the columns.
    let paired = Schedule {
        tile: Tile {
            m: 256,
            n: 128,
            k: 256,
        },
        swap_ab: true,
        cluster: Cluster { m: 2, n: 1 },
        ..schedule
    };
    let paired = Traffic::of(case, &paired, &b200).unwrap();
    // 16 × 4 tiles of 256 weights and 128 tokens.
    assert_eq!(paired.cache, 64.0 * 384.0 * 1536.0 * 0.5625 + written);
}
