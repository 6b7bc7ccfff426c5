//! One module for each property of the plan.

mod balance;
mod coverage;
mod tables;
mod waves;
mod words;

use gauntlet_problems::{Epilogue, Lookup, Order, Packing, Roles, Schedule, Tile as Block};
use gauntlet_problems::{Form, GroupedGemm};
use proptest::prelude::*;

use super::SwappedPlan;
use super::cost::Costs;
use super::geometry::Geometry;
use super::work::Cutter;
use crate::plan::Target;
use crate::plan::fixture::{PROCESSORS, gemm, hopper, shapes};

fn schedule(tile: [usize; 2], stages: usize, order: Order, split_k: usize) -> Schedule {
    Schedule {
        tile: Block {
            m: tile[0],
            n: tile[1],
            k: 128,
        },
        stages,
        epilogue: Epilogue::Direct,
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        swap_ab: true,
        split_k,
        ..Schedule::baseline()
    }
}

fn any_schedule() -> impl Strategy<Value = (Form, Schedule)> {
    let orders = [Order::PerTile, Order::Static, Order::Sorted];
    (any::<bool>(), 1usize..33, 0usize..3, 1usize..9).prop_map(move |(dual, eighths, order, split_k)| {
        let (form, rows) = if dual {
            (Form::Swiglu, 64)
        } else {
            (Form::Plain, 128)
        };
        (form, schedule([rows, 8 * eighths], 2, orders[order], split_k))
    })
}
