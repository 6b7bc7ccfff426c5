//! The grid on which the model is validated: shapes whose calls take milliseconds, and schedules that differ in every
//! parameter.

/// Schedules, a line each: one that is there already, and what is changed about it.
macro_rules! schedules {
    ($($base:expr $(, $field:ident = $value:expr)*;)+) => {
        vec![$(Schedule { $($field: $value,)* ..$base }),+]
    };
}

mod gpus;

use gauntlet_device::{Arch, Device};
use gauntlet_families::operations::accepts;
use gauntlet_problems::{
    Attention, AttentionFormat, Epilogue, Form, GemmShape, GroupedGemm, Lookup, Operation, Order,
    OutputFormat, Roles, Schedule, Setup, Tile,
};

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

/// The grid for a device.
pub fn grid(device: &Device) -> Vec<Shape> {
    let mut shapes = match device.arch {
        Arch::Cpu => operations(),
        _ => gpus::shapes(),
    };
    for shape in &mut shapes {
        let schedules = match &shape.operation {
            Operation::GroupedGemm(gemm) if device.arch != Arch::Cpu => gpus::schedules(gemm),
            Operation::GroupedGemm(_) => gemm_schedules(),
            Operation::Attention(attention) => attention_schedules(attention.head_size),
        };
        shape.schedules = schedules
            .into_iter()
            .filter(|schedule| accepts(schedule, &shape.operation, device))
            .collect();
    }
    shapes
}

fn operations() -> Vec<Shape> {
    let shape = |name, operation| Shape {
        name,
        operation,
        schedules: Vec::new(),
        seen: false,
    };
    vec![
        shape(
            "ragged",
            gemm(Form::Plain, &[56, 120, 24], 768, 1280, OutputFormat::F16),
        ),
        shape("dual", gemm(Form::Swiglu, &[72, 40], 512, 896, OutputFormat::F16)),
        shape(
            "decode",
            gemm(Form::Plain, &[1, 3, 2, 1, 4, 1], 1024, 1536, OutputFormat::Bf16),
        ),
        shape("square", gemm(Form::Plain, &[288], 640, 768, OutputFormat::F32)),
        shape("many", gemm(Form::Plain, &[17; 14], 256, 640, OutputFormat::F16)),
        shape(
            "prefill",
            attention(3, 224, 224, 4, 2, 64, true, AttentionFormat::E4m3),
        ),
        shape(
            "whole",
            attention(2, 160, 320, 4, 4, 64, false, AttentionFormat::F16),
        ),
        shape(
            "chunk",
            attention(4, 24, 768, 4, 1, 128, true, AttentionFormat::Bf16),
        ),
    ]
}

pub(super) fn gemm(form: Form, rows: &[usize], n: usize, k: usize, output: OutputFormat) -> Operation {
    Operation::GroupedGemm(GroupedGemm {
        groups: rows.iter().map(|&m| GemmShape { m, n, k }).collect(),
        form,
        output,
        tokens: Default::default(),
    })
}

#[expect(clippy::too_many_arguments, reason = "a line of a table")]
fn attention(
    sequences: usize,
    queries: usize,
    keys: usize,
    heads: usize,
    kv_heads: usize,
    head_size: usize,
    causal: bool,
    format: AttentionFormat,
) -> Operation {
    Operation::Attention(Attention {
        causal,
        ..Attention::new(
            format,
            vec![[queries, keys]; sequences],
            [heads, kv_heads],
            head_size,
        )
    })
}

/// The baseline; set-up is kept between calls unless a line of the table says otherwise.
fn kept(tile: [usize; 3]) -> Schedule {
    Schedule {
        tile: Tile::from(tile),
        setup: Setup::Once,
        ..Schedule::baseline()
    }
}

fn gemm_schedules() -> Vec<Schedule> {
    schedules! {
        Schedule::baseline();
        kept([128, 128, 256]);
        kept([128, 128, 256]), stages = 2, order = Order::Static;
        kept([64, 64, 256]), stages = 2, order = Order::Dynamic;
        kept([32, 128, 512]), order = Order::Static, epilogue = Epilogue::Staged, lookup = Lookup::Precomputed;
        kept([64, 128, 256]), stages = 2, roles = Roles::Specialised, order = Order::Dynamic;
        kept([32, 64, 128]), stages = 4, roles = Roles::Specialised, order = Order::Static, epilogue = Epilogue::Staged;
        kept([128, 32, 256]), swap_ab = true, order = Order::Static;
        kept([64, 64, 128]), swap_ab = true, stages = 3, order = Order::Sorted;
        kept([64, 128, 256]), split_k = 2, order = Order::Dynamic;
        kept([128, 128, 128]), split_k = 4, stages = 2, order = Order::Static, setup = Setup::PerCall;
        kept([16, 256, 128]), stages = 4, order = Order::Sorted, setup = Setup::PerCall;
        kept([256, 32, 64]);
    }
}

fn attention_schedules(head: usize) -> Vec<Schedule> {
    schedules! {
        kept([128, 128, head]), setup = Setup::PerCall;
        kept([64, 64, head]), order = Order::Static;
        kept([32, 128, head]), stages = 2, order = Order::Dynamic;
        kept([64, 128, head]), epilogue = Epilogue::Staged, order = Order::Sorted;
        kept([64, 64, head]), stages = 2, roles = Roles::Specialised, order = Order::Dynamic;
        kept([64, 32, head]), swap_ab = true, order = Order::Dynamic;
        kept([64, 64, head]), split_k = 2, stages = 2, order = Order::Static;
        kept([16, 256, head]), stages = 2, order = Order::Sorted, lookup = Lookup::Precomputed, setup = Setup::PerCall;
        kept([32, 32, head]), stages = 3;
        kept([128, 64, head]), swap_ab = true, order = Order::Static;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_grid_is_large_enough_and_no_point_is_there_twice() {
        let shapes = grid(&Device::host());
        let points: usize = shapes.iter().map(|shape| shape.schedules.len()).sum();
        // A machine of one thread has no specialised roles.
        assert!(points >= 80, "{points}");
        for shape in &shapes {
            assert_eq!(shape.operation.validate(), Ok(()), "{}", shape.name);
            let different: HashSet<_> = shape.schedules.iter().collect();
            assert_eq!(different.len(), shape.schedules.len());
            assert!(
                (20_000_000..700_000_000).contains(&shape.operation.flops()),
                "{}",
                shape.name
            );
        }
    }
}
