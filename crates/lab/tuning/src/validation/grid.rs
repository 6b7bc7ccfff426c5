//! The grid on which the model is validated: shapes of GEMMs whose kernels take microseconds, and schedules of each kind
//! of kernel.

use gauntlet_device::Device;
use gauntlet_families::operations::accepts;
use gauntlet_problems::{
    Epilogue, Form, GemmShape, GroupedGemm, Lookup, Operation, Order, OutputFormat, Roles, Schedule, Setup,
    Tile,
};
use gauntlet_simulate::Problem;

/// Schedules, a line each: one that is there already, and what is changed about it.
macro_rules! schedules {
    ($($base:expr $(, $field:ident = $value:expr)*;)+) => {
        vec![$(Schedule { $($field: $value,)* ..$base }),+]
    };
}

/// A shape with its schedules.
#[derive(Debug, Clone)]
pub struct Shape {
    /// Its name.
    pub name: &'static str,
    /// The problem.
    pub operation: Operation,
    /// The schedules that the device accepts.
    pub schedules: Vec<Schedule>,
    /// Whether its times were known when the model was made.
    pub seen: bool,
}

/// The grid for a GPU.
pub fn grid(device: &Device) -> Vec<Shape> {
    let mut shapes = shapes();
    for Shape {
        operation, schedules, ..
    } in &mut shapes
    {
        if let Operation::GroupedGemm(gemm) = &*operation {
            *schedules = all_schedules(gemm);
            schedules.retain(|schedule| accepts(schedule, operation, device));
        }
    }
    shapes
}

fn gemm(form: Form, rows: &[usize], n: usize, k: usize, output: OutputFormat) -> Operation {
    Operation::GroupedGemm(GroupedGemm {
        groups: rows.iter().map(|&m| GemmShape { m, n, k }).collect(),
        form,
        output,
        tokens: Default::default(),
    })
}

/// The cases of the competition, whose times on a prototype were known when the model was made, and further ones.
fn shapes() -> Vec<Shape> {
    let shape = |name: &'static str, seen: bool, operation: Operation| Shape {
        name,
        operation,
        schedules: Vec::new(),
        seen,
    };
    let suite = gauntlet_families::suite("group-gemm").map(|suite| suite.benchmark);
    let known = suite
        .into_iter()
        .flatten()
        .zip(["case-1", "case-2", "case-3", "case-4"]);
    let mut shapes: Vec<_> = known
        .filter_map(|(case, name)| Some(shape(name, true, Problem::of(&case.sizes)?.operation().clone())))
        .collect();
    let mut unseen = |name, form, rows: &[usize], n, k, output| {
        shapes.push(shape(name, false, gemm(form, rows, n, k, output)));
    };
    let (f16, bf16) = (OutputFormat::F16, OutputFormat::Bf16);
    unseen("ragged", Form::Plain, &[56, 120, 0, 24, 312, 8], 3072, 4096, f16);
    unseen("dual", Form::Swiglu, &[72, 200, 40, 136], 2048, 4096, f16);
    unseen("square", Form::Plain, &[1024], 4096, 4096, bf16);
    unseen("many", Form::Plain, &[17; 32], 2048, 2048, f16);
    unseen("decode", Form::Plain, &[16], 4096, 7168, f16);
    unseen(
        "decode of experts",
        Form::Plain,
        &[1, 3, 2, 1, 4, 1, 7, 2],
        4096,
        2048,
        f16,
    );
    shapes
}

/// Tokens as rows, from plain to persistent kernels, and weights as rows in several widths. Set-up is done once,
/// because the model predicts kernels.
fn all_schedules(gemm: &GroupedGemm) -> Vec<Schedule> {
    let rows = |tile: [usize; 3], stages: usize| Schedule {
        tile: Tile::from(tile),
        stages,
        setup: Setup::Once,
        ..Schedule::baseline()
    };
    let specialised = |tile: [usize; 3], stages: usize, order: Order| Schedule {
        roles: Roles::Specialised,
        order,
        lookup: Lookup::Precomputed,
        ..rows(tile, stages)
    };
    // Two groups of warps hold 64 rows of weights each; in the dual form, those of one of the two weights.
    let weights = if gemm.form == Form::Swiglu { 64 } else { 128 };
    let swapped = |width: usize, stages: usize, order: Order| Schedule {
        swap_ab: true,
        ..specialised([weights, width, 128], stages, order)
    };
    schedules! {
        rows([128, 128, 128], 1);
        rows([128, 128, 128], 2);
        rows([128, 128, 128], 3);
        rows([128, 64, 128], 2);
        rows([128, 64, 128], 4);
        rows([64, 64, 128], 4);
        rows([128, 64, 128], 3), epilogue = Epilogue::Staged;
        specialised([128, 128, 128], 3, Order::PerTile);
        specialised([128, 128, 128], 3, Order::Static);
        specialised([128, 64, 128], 4, Order::Sorted);
        specialised([128, 64, 128], 4, Order::Dynamic);
        swapped(128, 3, Order::PerTile);
        swapped(64, 4, Order::PerTile);
        swapped(128, 4, Order::Static);
        swapped(64, 4, Order::Static);
        swapped(192, 3, Order::Sorted);
        swapped(128, 4, Order::Sorted);
        swapped(64, 4, Order::Sorted);
        swapped(32, 4, Order::Sorted);
        swapped(128, 3, Order::Sorted), split_k = 2;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_grid_of_a_gpu_is_large_enough_and_half_of_it_was_never_seen() {
        let shapes = grid(&Device::builtin("h200").unwrap_or_else(|error| panic!("{error}")));
        let points: usize = shapes.iter().map(|shape| shape.schedules.len()).sum();
        assert!(points >= 100, "{points}");
        assert!(shapes.iter().filter(|shape| !shape.seen).count() * 2 >= shapes.len());
        for shape in &shapes {
            assert_eq!(shape.operation.validate(), Ok(()), "{}", shape.name);
            let different: HashSet<_> = shape.schedules.iter().collect();
            assert_eq!(different.len(), shape.schedules.len(), "{}", shape.name);
        }
    }
}
