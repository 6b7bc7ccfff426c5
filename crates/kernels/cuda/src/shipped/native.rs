//! The native kernel's variants: the steps of the recorded tournament, from its baseline on, then the forms, results and widths
//! that its best schedules are made of.

use gauntlet_problems::{Cluster, Epilogue, Lookup, Maps, Order, Roles, Schedule, Setup, Tile};

use super::Shipped;
use super::gemm::{FEW, MANY, PLAIN, RESULTS, variant};

/// All of them.
pub(super) fn shipped() -> Vec<Shipped> {
    let mut shipped = staircase();
    shipped.extend(forms());
    shipped.extend(swapped());
    shipped.extend(pairs());
    shipped.extend(own_maps());
    shipped
}

/// A tile whose operands lie in this many stages.
fn tile(columns: usize, depth: usize, stages: usize) -> Schedule {
    Schedule {
        tile: Tile::from([128, columns, depth]),
        stages,
        ..Schedule::baseline()
    }
}

/// Persistent blocks with roles.
fn persistent(columns: usize, stages: usize, order: Order) -> Schedule {
    Schedule {
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..tile(columns, 256, stages)
    }
}

fn staged(schedule: Schedule) -> Schedule {
    Schedule {
        epilogue: Epilogue::Staged,
        ..schedule
    }
}

/// The baseline with more stages, other tiles, another epilogue, roles, and other orders, one after the other.
fn staircase() -> Vec<Shipped> {
    let specialised = Schedule {
        roles: Roles::Specialised,
        ..tile(128, 256, 4)
    };
    let walking = Schedule {
        lookup: Lookup::Linear,
        ..persistent(128, 4, Order::Static)
    };
    let split = Schedule {
        split_k: 4,
        ..persistent(128, 4, Order::Sorted)
    };
    let mut steps = vec![("one stage".to_owned(), tile(128, 256, 1))];
    steps.extend([2, 3, 6].map(|stages| (format!("{stages} stages"), tile(128, 256, stages))));
    steps.extend([
        ("64 columns".to_owned(), tile(64, 256, 3)),
        ("256 columns".to_owned(), tile(256, 256, 2)),
        ("128 deep".to_owned(), tile(128, 128, 4)),
        ("staged epilogue".to_owned(), staged(tile(128, 256, 3))),
        ("specialised".to_owned(), specialised),
        ("static, linear".to_owned(), walking),
        ("static".to_owned(), persistent(128, 5, Order::Static)),
        (
            "sorted, staged epilogue".to_owned(),
            staged(persistent(128, 4, Order::Sorted)),
        ),
        ("dynamic".to_owned(), persistent(128, 5, Order::Dynamic)),
        ("split".to_owned(), split),
    ]);
    steps
        .into_iter()
        .map(|(name, schedule)| variant(&format!("native, {name}"), PLAIN, &MANY, schedule))
        .collect()
}

/// Other forms and results; tiles of 64 columns and 192, and of 128 deep.
fn forms() -> Vec<Shipped> {
    let mut shipped = Vec::new();
    for result in &RESULTS[1..] {
        let schedules = [
            ("unified", tile(64, 256, 2)),
            ("sorted", persistent(64, 4, Order::Sorted)),
            (
                "sorted, staged epilogue",
                staged(persistent(128, 3, Order::Sorted)),
            ),
        ];
        for (name, schedule) in schedules {
            shipped.push(variant(&format!("native, {name}"), *result, &MANY, schedule));
        }
    }
    let deep = Schedule {
        tile: Tile::from([128, 192, 128]),
        ..persistent(192, 4, Order::Static)
    };
    shipped.push(variant("native, 192 columns, 128 deep", PLAIN, &MANY, deep));
    shipped
}

/// Weights as rows, with tokens as few columns.
fn swapped() -> Vec<Shipped> {
    let swapped = |schedule: Schedule| Schedule {
        swap_ab: true,
        ..schedule
    };
    let mut shipped = Vec::new();
    for (width, tokens) in [(8, &[1, 7][..]), (16, &FEW), (64, &MANY), (248, &MANY)] {
        let name = format!("native, swapped, {width} tokens");
        let schedule = swapped(persistent(width, 4, Order::Sorted));
        shipped.push(variant(&name, PLAIN, tokens, schedule));
    }
    let per_tile = swapped(tile(64, 256, 3));
    shipped.push(variant("native, swapped, per tile", PLAIN, &MANY, per_tile));
    let split = Schedule {
        split_k: 4,
        ..swapped(staged(persistent(16, 6, Order::Static)))
    };
    shipped.push(variant("native, swapped, split", PLAIN, &FEW, split));
    for result in &RESULTS[1..] {
        let schedule = swapped(staged(persistent(64, 3, Order::Dynamic)));
        shipped.push(variant(
            "native, swapped, dynamic, staged epilogue",
            *result,
            &MANY,
            schedule,
        ));
    }
    let dual = swapped(persistent(128, 4, Order::Sorted));
    shipped.push(variant(
        "native, swapped, sorted, 128 tokens",
        RESULTS[3],
        &MANY,
        dual,
    ));
    shipped
}

/// Pairs of blocks, with tokens as rows and as columns.
fn pairs() -> Vec<Shipped> {
    let pair = |swap_ab: bool, schedule: Schedule| Schedule {
        tile: Tile {
            m: 256,
            ..schedule.tile
        },
        cluster: Cluster { m: 2, n: 1 },
        swap_ab,
        ..schedule
    };
    let split = Schedule {
        split_k: 4,
        ..persistent(64, 4, Order::Sorted)
    };
    vec![
        variant(
            "native, pairs",
            PLAIN,
            &MANY,
            pair(false, persistent(128, 4, Order::Static)),
        ),
        variant(
            "native, pairs, 256 columns",
            RESULTS[1],
            &MANY,
            pair(false, persistent(256, 3, Order::Sorted)),
        ),
        variant(
            "native, pairs",
            RESULTS[3],
            &MANY,
            pair(false, persistent(128, 3, Order::Sorted)),
        ),
        variant(
            "native, pairs, swapped",
            PLAIN,
            &MANY,
            pair(true, staged(persistent(128, 4, Order::Sorted))),
        ),
        variant(
            "native, pairs, swapped, 16 tokens",
            PLAIN,
            &FEW,
            pair(true, persistent(16, 6, Order::Sorted)),
        ),
        variant(
            "native, pairs, swapped, split",
            RESULTS[2],
            &MANY,
            pair(true, split),
        ),
        variant(
            "native, pairs, swapped",
            RESULTS[3],
            &MANY,
            pair(true, persistent(64, 3, Order::Static)),
        ),
    ]
}

/// Blocks that make their tensor maps: one tile a block as in the tournament's baseline, and blocks that go from group to group.
fn own_maps() -> Vec<Shipped> {
    let own = |schedule: Schedule| Schedule {
        maps: Maps::PerBlock,
        ..schedule
    };
    let split = Schedule {
        split_k: 4,
        ..persistent(64, 3, Order::Static)
    };
    let pairs = Schedule {
        tile: Tile::from([256, 128, 256]),
        cluster: Cluster { m: 2, n: 1 },
        swap_ab: true,
        ..persistent(128, 4, Order::Static)
    };
    vec![
        variant(
            "native, own maps, one stage",
            PLAIN,
            &MANY,
            own(tile(128, 256, 1)),
        ),
        variant(
            "native, own maps, static",
            PLAIN,
            &MANY,
            own(persistent(128, 5, Order::Static)),
        ),
        variant(
            "native, own maps, sorted",
            RESULTS[3],
            &MANY,
            own(persistent(128, 3, Order::Sorted)),
        ),
        variant(
            "native, own maps, dynamic, split",
            PLAIN,
            &MANY,
            own(Schedule {
                order: Order::Dynamic,
                ..split
            }),
        ),
        variant("native, own maps, pairs, swapped", PLAIN, &MANY, own(pairs)),
    ]
}
