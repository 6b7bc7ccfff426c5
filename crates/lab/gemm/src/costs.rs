//! What the kernels of grouped GEMM cost.

mod gpu;
mod tiles;

use gauntlet_device::{Arch, Gpu};
use gauntlet_problems::resources::{converts_beforehand, is_narrow, is_unified, weights};
use gauntlet_problems::{Form, GroupedGemm, Operation, Schedule, TokenFormat};
use gauntlet_simulate::gpu::{Bundle, Kind, Machine, Results, Setting, Step};
use gauntlet_simulate::tiles::Class;
use gauntlet_simulate::{Model, Part, Problem};
use gauntlet_tile_program::TileProgram;

use crate::program;

/// Bytes of a packed NVFP4 value with its share of a scale.
const PACKED: f64 = 0.5 + 1.0 / 16.0;

/// Registers of a thread that converts NVFP4 for `wgmma`, besides its sums: 103 to 121 in the kernels with tokens as rows
/// and unified roles (`gauntlet compile rows`).
const CONVERTING_REGISTERS: f64 = 112.0;

/// These sizes as a problem that can be simulated.
pub fn problem(gemm: &GroupedGemm) -> Problem {
    let operation = Operation::GroupedGemm(gemm.clone());
    let model = Gemm {
        gemm: gemm.clone(),
        operation: operation.clone(),
    };
    Problem::new(operation, model)
}

#[derive(Debug)]
struct Gemm {
    gemm: GroupedGemm,
    operation: Operation,
}

impl Gemm {
    /// Bytes of a value of a token, with its share of a scale if it has one.
    fn token_bytes(&self) -> f64 {
        match self.gemm.tokens {
            TokenFormat::Nvfp4 => PACKED,
            floats => floats.row_bytes(1) as f64,
        }
    }
}

impl Model for Gemm {
    fn program(&self, schedule: &Schedule, arch: Arch) -> TileProgram {
        program::program(schedule, &self.gemm, &self.operation, arch)
    }

    fn groups(&self) -> usize {
        self.gemm.groups.len()
    }

    fn bytes(&self) -> f64 {
        let output = self.gemm.output.bytes() as f64;
        let groups = self.gemm.groups.iter().filter(|shape| shape.m > 0);
        groups
            .map(|shape| {
                let (m, n, k) = (shape.m as f64, shape.n as f64, shape.k as f64);
                let weights = weights(&self.gemm) as f64 * n * k * PACKED;
                m * k * self.token_bytes() + weights + m * n * output
            })
            .sum()
    }

    fn rows(&self, schedule: &Schedule, _arch: Arch) -> (usize, Vec<usize>) {
        let tile = schedule.tile;
        let step = if schedule.swap_ab { tile.n } else { tile.m };
        (step, self.gemm.groups.iter().map(|shape| shape.m).collect())
    }

    fn classes(&self, schedule: &Schedule, _arch: Arch) -> Vec<Class> {
        tiles::classes(&self.gemm, schedule)
    }

    fn levers(&self, part: Part) -> &'static [&'static str] {
        match part {
            Part::Padding => &["swap-ab"],
            _ => &[],
        }
    }

    fn converting_registers(&self, schedule: &Schedule, arch: Arch) -> Option<f64> {
        (arch == Arch::Sm90a && !is_narrow(schedule)).then_some(CONVERTING_REGISTERS)
    }

    fn kinds(
        &self,
        schedule: &Schedule,
        bundle: Bundle,
        cache: f64,
        clusters: usize,
        _arch: Arch,
    ) -> Vec<Kind> {
        tiles::kinds(&self.gemm, schedule, bundle, cache, clusters)
    }

    fn product_rate(&self, gpu: &Gpu) -> f64 {
        match self.gemm.tokens {
            TokenFormat::Nvfp4 => gpu.fp4_rate.as_ref().unwrap_or(&gpu.fp16_rate).get(),
            TokenFormat::F16 | TokenFormat::Bf16 | TokenFormat::F32 => gpu.fp16_rate.get(),
        }
    }

    fn scheduled_rate(&self, schedule: &Schedule, machine: &Machine, _gpu: &Gpu) -> f64 {
        let by_mma_sync =
            is_unified(schedule, machine.arch) || matches!(machine.arch, Arch::Sm80 | Arch::Sm89);
        if by_mma_sync {
            machine.product_rate * machine.mma_sync_share
        } else {
            machine.product_rate
        }
    }

    fn converted_beforehand(&self, schedule: &Schedule, arch: Arch) -> Option<(f64, f64)> {
        let tokens = self.gemm.groups.iter().map(|shape| (shape.m * shape.k) as f64);
        converts_beforehand(schedule, &self.operation, arch).then(|| (tokens.sum(), self.token_bytes()))
    }

    fn step(&self, kind: &Kind, setting: &Setting) -> Step {
        gpu::step(self, kind, setting)
    }

    fn results(&self, setting: &Setting) -> Results {
        Results {
            columns: setting.schedule.tile.n as f64,
            matrices: weights(&self.gemm) as f64,
            exponentials: if self.gemm.form == Form::Swiglu { 1.0 } else { 0.0 },
            merge_in_cluster: false,
        }
    }
}
