//! What the kernels of attention cost.

mod gpu;
mod tiles;

use gauntlet_device::{Arch, Gpu};
use gauntlet_problems::resources::{
    HopperAttention, by_mma_sync, head_sets, multiplied_bytes, multiplied_value_bytes,
};
use gauntlet_problems::{Attention, AttentionFormat, Operation, Schedule};
use gauntlet_simulate::gpu::{Bundle, Kind, Machine, Results, Setting, Step};
use gauntlet_simulate::tiles::Class;
use gauntlet_simulate::{Part, Problem};
use gauntlet_tile_program::TileProgram;

use crate::program;

/// These sizes as a problem that can be simulated.
pub fn problem(attention: &Attention) -> Problem {
    let operation = Operation::Attention(attention.clone());
    let model = Model {
        attention: attention.clone(),
        operation: operation.clone(),
    };
    Problem::new(operation, model)
}

#[derive(Debug)]
struct Model {
    attention: Attention,
    operation: Operation,
}

impl gauntlet_simulate::Model for Model {
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram {
        program::program(schedule, &self.attention, &self.operation, arch)
    }

    fn groups(&self) -> usize {
        self.attention.sequences.len()
    }

    fn bytes(&self) -> f64 {
        let attention = &self.attention;
        let output = attention.output.bytes() as f64;
        let element = attention.format.bytes() as f64;
        let heads = attention.heads as f64;
        let positions: f64 = attention
            .sequences
            .iter()
            .map(|sequence| {
                let (queries, keys) = (sequence.queries as f64, sequence.keys as f64);
                queries * heads * (element + output) + 2.0 * keys * attention.kv_heads as f64 * element
            })
            .sum();
        positions * attention.head_size as f64
    }

    fn rows(&self, schedule: &Schedule, arch: Arch) -> (usize, Vec<usize>) {
        let heads = head_sets(schedule, &self.attention, arch).heads;
        let sequences = self.attention.sequences.iter();
        (
            schedule.tile.m,
            sequences.map(|sequence| sequence.queries * heads).collect(),
        )
    }

    fn classes(&self, schedule: &Schedule, arch: Arch) -> Vec<Class> {
        tiles::classes(&self.attention, schedule, arch)
    }

    fn levers(&self, part: Part) -> &'static [&'static str] {
        match part {
            // Multiply-adds take longer than the matrix unit, whatever they wait for.
            Part::Padding => &["values"],
            Part::Copy => &["layout", "arithmetic"],
            Part::Conversion => &["exponential", "arithmetic", "scores"],
            Part::Barriers => &["scores"],
            _ => &[],
        }
    }

    fn kinds(
        &self,
        schedule: &Schedule,
        bundle: Bundle,
        _cache: f64,
        _clusters: usize,
        arch: Arch,
    ) -> Vec<Kind> {
        tiles::kinds(&self.attention, schedule, bundle, arch)
    }

    fn product_rate(&self, gpu: &Gpu) -> f64 {
        let narrow = match self.attention.format {
            AttentionFormat::E4m3 => gpu.fp8_rate.as_ref(),
            AttentionFormat::Int8 | AttentionFormat::F16 | AttentionFormat::Bf16 => None,
        };
        narrow.unwrap_or(&gpu.fp16_rate).get()
    }

    fn scheduled_rate(&self, schedule: &Schedule, machine: &Machine, gpu: &Gpu) -> f64 {
        let rate = match gpu.fp8_rate.as_ref() {
            Some(narrow) if multiplied_bytes(schedule, &self.attention) == 1 => {
                // The rate of both products together, which have the same size.
                let of_values = match multiplied_value_bytes(schedule, &self.attention, machine.arch) {
                    1 => narrow.get(),
                    _ => gpu.fp16_rate.get(),
                };
                2.0 / (1.0 / narrow.get() + 1.0 / of_values)
            }
            _ => gpu.fp16_rate.get(),
        };
        if by_mma_sync(schedule, machine.arch) {
            rate * machine.mma_sync_share
        } else {
            rate
        }
    }

    fn step(&self, kind: &Kind, setting: &Setting) -> Step {
        gpu::step(&self.attention, kind, setting)
    }

    fn results(&self, setting: &Setting) -> Results {
        let schedule = setting.schedule;
        Results {
            columns: schedule.tile.k as f64,
            matrices: 1.0,
            exponentials: 0.0,
            merge_in_cluster: setting.machine.arch == Arch::Sm90a
                && HopperAttention::of(schedule) == HopperAttention::Resident,
        }
    }
}
