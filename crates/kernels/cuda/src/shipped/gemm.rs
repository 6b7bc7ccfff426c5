//! The variants of the GEMM kernels that convert NVFP4 for the matrix unit: tokens as rows or swapped, with roles or unified, and
//! for few tokens. What all kinds of GEMM variants share is here too.

use gauntlet_problems::{Epilogue, Lookup, Order, Packing, Roles, Schedule, Setup, Tile};
use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, OutputFormat, TokenFormat};

use super::Shipped;

pub(super) const PLAIN: (Form, OutputFormat) = (Form::Plain, OutputFormat::F16);

/// The forms and results that are shipped.
pub(super) const RESULTS: [(Form, OutputFormat); 4] = [
    PLAIN,
    (Form::Plain, OutputFormat::Bf16),
    (Form::Plain, OutputFormat::F32),
    (Form::Swiglu, OutputFormat::F16),
];

/// A mixture of groups, one of them empty, none a multiple of any tile.
fn problem((form, output): (Form, OutputFormat), tokens: &[usize]) -> Operation {
    Operation::GroupedGemm(GroupedGemm {
        groups: tokens
            .iter()
            .map(|&m| GemmShape { m, n: 4096, k: 7168 })
            .collect(),
        form,
        output,
        tokens: Default::default(),
    })
}

pub(super) fn variant(
    name: &str,
    result: (Form, OutputFormat),
    tokens: &[usize],
    schedule: Schedule,
) -> Shipped {
    let form = match result.0 {
        Form::Plain => "",
        Form::Swiglu => ", dual",
    };
    let output = match result.1 {
        OutputFormat::F16 => "",
        OutputFormat::Bf16 => ", bf16",
        OutputFormat::F32 => ", f32",
    };
    Shipped {
        name: format!("{name}{form}{output}"),
        problem: problem(result, tokens),
        schedule,
    }
}

pub(super) const MANY: [usize; 3] = [80, 0, 248];
pub(super) const FEW: [usize; 2] = [1, 13];

/// The staircase with tokens as rows, a step after the other.
pub(super) fn rows() -> Vec<Shipped> {
    let plain = Schedule {
        tile: Tile::from([128, 128, 128]),
        ..Schedule::baseline()
    };
    let with = |stages: usize| Schedule {
        stages,
        ..plain.clone()
    };
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..with(3)
    };
    let specialised = Schedule {
        roles: Roles::Specialised,
        ..staged.clone()
    };
    let persistent = |order| Schedule {
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        ..specialised.clone()
    };
    let split = Schedule {
        split_k: 4,
        ..persistent(Order::Sorted)
    };
    let mut steps = vec![("rows, one stage".to_owned(), with(1))];
    steps.extend((2..=4).map(|stages| (format!("rows, {stages} stages"), with(stages))));
    steps.extend([
        ("rows, staged epilogue".to_owned(), staged),
        ("rows, specialised".to_owned(), specialised.clone()),
        ("rows, static".to_owned(), persistent(Order::Static)),
        ("rows, sorted".to_owned(), persistent(Order::Sorted)),
        ("rows, dynamic".to_owned(), persistent(Order::Dynamic)),
        ("rows, split".to_owned(), split),
    ]);
    let mut shipped: Vec<_> = steps
        .into_iter()
        .map(|(name, schedule)| variant(&name, PLAIN, &MANY, schedule))
        .collect();
    for epilogue in [Epilogue::Direct, Epilogue::Staged] {
        // Two products hold twice the sums and twice the weights.
        for result in &RESULTS[1..] {
            let schedule = Schedule {
                tile: Tile::from([128, 64, 128]),
                epilogue,
                ..with(2)
            };
            let name = format!("rows, {epilogue} epilogue, half a tile");
            shipped.push(variant(&name, *result, &MANY, schedule));
        }
    }
    shipped
}

/// Weights as rows: each form and result sorted, then widths and orders. With sorted tiles a kernel contains code for
/// every width up to its widest; at 256 that takes the compiler a minute, so there is only one such kernel for each
/// result.
pub(super) fn swapped() -> Vec<Shipped> {
    let swapped = |rows: usize, width: usize, order: Order| Schedule {
        tile: Tile::from([rows, width, 128]),
        stages: 3,
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let mut shipped = Vec::new();
    for result in RESULTS {
        // In the dual form a tile's rows are those of each of the two weights.
        let rows = if result.0 == Form::Swiglu { 64 } else { 128 };
        let sorted = swapped(rows, 256, Order::Sorted);
        shipped.push(variant("swapped, sorted", result, &MANY, sorted));
    }
    for width in [64, 128, 256] {
        let name = format!("swapped, static, {width} tokens");
        shipped.push(variant(&name, PLAIN, &MANY, swapped(128, width, Order::Static)));
    }
    let per_tile = swapped(128, 192, Order::PerTile);
    shipped.push(variant("swapped, per tile", PLAIN, &MANY, per_tile));
    let dual = swapped(64, 128, Order::Static);
    shipped.push(variant("swapped, static", RESULTS[3], &MANY, dual));
    let split = Schedule {
        split_k: 4,
        ..swapped(128, 64, Order::Sorted)
    };
    shipped.push(variant("swapped, split", PLAIN, &MANY, split));
    for (result, schedule) in [
        (PLAIN, swapped(128, 256, Order::Sorted)),
        (RESULTS[3], swapped(64, 256, Order::Sorted)),
        (PLAIN, swapped(128, 64, Order::Static)),
    ] {
        let (order, width) = (schedule.order, schedule.tile.n);
        let name = format!("swapped, {order}, {width} tokens, repacked");
        shipped.push(variant(&name, result, &MANY, repacked(schedule)));
    }
    let (plain, dual) = (swapped(128, 256, Order::Sorted), swapped(64, 256, Order::Sorted));
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(plain)),
        (TokenFormat::Bf16, RESULTS[3], dual),
        (TokenFormat::Bf16, RESULTS[2], swapped(128, 64, Order::Static)),
        (TokenFormat::F16, PLAIN, swapped(128, 128, Order::Static)),
        (
            TokenFormat::Bf16,
            RESULTS[1],
            in_steps(swapped(128, 256, Order::Sorted)),
        ),
        (
            TokenFormat::Bf16,
            RESULTS[3],
            in_steps(swapped(64, 256, Order::Sorted)),
        ),
        (
            TokenFormat::Bf16,
            RESULTS[2],
            in_steps(swapped(128, 64, Order::Static)),
        ),
        (
            TokenFormat::F16,
            PLAIN,
            in_steps(swapped(128, 128, Order::Static)),
        ),
        (
            TokenFormat::F16,
            RESULTS[3],
            in_steps(swapped(64, 96, Order::Static)),
        ),
    ] {
        let packing = match schedule.packing {
            Packing::Steps => ", in steps",
            _ => "",
        };
        let name = format!("swapped, {}{packing}", schedule.order);
        shipped.push(with_tokens(&name, format, result, &MANY, schedule));
    }
    shipped
}

/// Weights as rows, without Hopper's instructions: every result in the order that is chosen automatically, then widths,
/// stages and orders, repacked weights, and tokens of 16 bits.
pub(super) fn unified() -> Vec<Shipped> {
    let unified = |rows: usize, width: usize, stages: usize, order: Order| Schedule {
        tile: Tile::from([rows, width, 128]),
        stages,
        order,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let sorted = |rows: usize, width: usize, stages: usize| unified(rows, width, stages, Order::Sorted);
    let mut shipped = Vec::new();
    for result in RESULTS {
        let rows = if result.0 == Form::Swiglu { 64 } else { 128 };
        shipped.push(variant("unified, sorted", result, &MANY, sorted(rows, 64, 3)));
    }
    let wide = sorted(128, 128, 2);
    let per_tile = unified(128, 64, 2, Order::PerTile);
    let split = Schedule {
        split_k: 4,
        ..unified(128, 32, 4, Order::PerTile)
    };
    let fixed = unified(64, 96, 2, Order::Static);
    shipped.extend([
        variant("unified, sorted, 128 tokens", PLAIN, &MANY, wide.clone()),
        variant(
            "unified, sorted, 128 tokens",
            RESULTS[3],
            &MANY,
            sorted(64, 128, 2),
        ),
        variant("unified, split", PLAIN, &MANY, split),
        variant("unified, per tile", PLAIN, &MANY, per_tile),
        variant("unified, static", RESULTS[3], &MANY, fixed),
        variant(
            "unified, sorted, 128 tokens, repacked",
            PLAIN,
            &MANY,
            repacked(wide),
        ),
        variant(
            "unified, sorted, repacked",
            RESULTS[3],
            &MANY,
            repacked(sorted(64, 64, 3)),
        ),
    ]);
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(sorted(128, 64, 3))),
        (TokenFormat::Bf16, RESULTS[3], sorted(64, 128, 2)),
        (TokenFormat::Bf16, RESULTS[2], sorted(128, 128, 2)),
        (TokenFormat::F16, PLAIN, sorted(128, 32, 4)),
    ] {
        shipped.push(with_tokens("unified, sorted", format, result, &MANY, schedule));
    }
    shipped
}

/// A kernel on 16-bit tokens.
fn with_tokens(
    name: &str,
    format: TokenFormat,
    result: (Form, OutputFormat),
    tokens: &[usize],
    schedule: Schedule,
) -> Shipped {
    let name = format!("{name}, {format} tokens");
    let mut shipped = variant(&name, result, tokens, schedule);
    if let Operation::GroupedGemm(gemm) = &mut shipped.problem {
        gemm.tokens = format;
    }
    shipped
}

fn repacked(schedule: Schedule) -> Schedule {
    Schedule {
        packing: Packing::Fragments,
        ..schedule
    }
}

fn in_steps(schedule: Schedule) -> Schedule {
    Schedule {
        packing: Packing::Steps,
        ..schedule
    }
}

/// Few tokens, in the plain form with this many warps, and with tokens of 16 bits.
pub(super) fn narrow(warps: usize, warps_with_halves: usize) -> Vec<Shipped> {
    // Weight rows and the depth of a step as each form is best served (`Choice::Automatic`): half of the warps where a block
    // has half of the rows of each weight.
    let narrow_of = |warps: usize, rows: usize, width: usize| Schedule {
        tile: Tile::from([rows, width, 4 * warps * rows]),
        stages: 2,
        lookup: Lookup::Precomputed,
        setup: Setup::Once,
        swap_ab: true,
        ..Schedule::baseline()
    };
    let narrow = |rows: usize, width: usize| narrow_of(warps, rows, width);
    let on_halves = |rows: usize, width: usize| narrow_of(warps_with_halves, rows, width);
    let mut shipped: Vec<_> = [8, 16]
        .into_iter()
        .map(|width| variant(&format!("narrow, {width} tokens"), PLAIN, &FEW, narrow(32, width)))
        .collect();
    for result in &RESULTS[1..] {
        let rows = if result.0 == Form::Swiglu { 16 } else { 32 };
        shipped.push(variant("narrow, 16 tokens", *result, &FEW, narrow(rows, 16)));
    }
    for (format, result, schedule) in [
        (TokenFormat::Bf16, RESULTS[1], repacked(on_halves(32, 16))),
        (TokenFormat::Bf16, RESULTS[3], on_halves(16, 8)),
        (TokenFormat::F16, RESULTS[2], on_halves(32, 8)),
    ] {
        shipped.push(with_tokens("narrow", format, result, &FEW, schedule));
    }
    for (result, rows) in [(PLAIN, 32), (RESULTS[3], 16)] {
        let schedule = repacked(narrow(rows, 16));
        shipped.push(variant("narrow, 16 tokens, repacked", result, &FEW, schedule));
    }
    shipped
}
