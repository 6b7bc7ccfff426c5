//! The plan of a problem under a schedule on a GPU: the kernels, tables and launches.
//!
//! Planning needs no GPU and no driver, so all of it is tested without them. Fields that depend on addresses are filled
//! in by [`Plan::launches`], which only copies numbers because every call pays for it.

mod abi;
pub mod attention;
mod error;
#[cfg(test)]
pub(crate) mod fixture;
mod groups;
mod map;
pub mod mixture;
pub mod narrow;
pub mod native;
mod own_maps;
pub mod repacking;
pub mod rows;
mod scales;
mod source;
pub mod swapped;
mod target;
mod tiled;
mod tiles;
mod token_matrix;
mod variant;

use std::collections::BTreeMap;
use std::fmt;

use gauntlet_problems::{GroupedGemm, Maps, Operation, Schedule, TokenFormat};

pub use abi::{DEPTH_STEP, Group, MAPS_A_GROUP, Matrix};
pub use error::PlanError;
pub(crate) use groups::{depth, has_one_depth, matrices, table, token_columns};
pub use map::{Element, Map, Swizzle};
use narrow::NarrowPlan;
use native::NativePlan;
pub use own_maps::{HeadMatrices, HeadShape, MappedOperands};
use rows::RowsPlan;
pub use scales::ScaleLayout;
pub use source::Source;
use swapped::SwappedPlan;
pub use target::{Code, Target, UnsupportedGpu};
pub use tiles::Tile;
pub use token_matrix::TokenMatrix;

/// Plans a problem under a schedule for a GPU. On Blackwell a GEMM of NVFP4 tokens takes the native kernel, and all else what it
/// would take [before Hopper](Target::for_problem). On other GPUs a GEMM without
/// swap-AB takes the rows kernel; with it the narrow kernel for tiles of at most 32 weight rows and 16 tokens, and for all
/// others the unified kernel or, with roles, the swapped one.
///
/// # Errors
/// If the sizes are invalid, the family has no kernel, the kernel needs another GPU, or it does not support a value of the
/// schedule.
pub fn plan(problem: &Operation, schedule: &Schedule, target: Target) -> Result<Box<dyn Plan>, PlanError> {
    problem.validate()?;
    let target = target.for_problem(problem);
    let gemm = match problem {
        Operation::GroupedGemm(gemm) => gemm,
        Operation::Attention(attention) => return attention::plan(attention, schedule, target),
    };
    check_tokens(gemm)?;
    let source = Source::selected(schedule, target.arch);
    source.check(schedule, target.arch)?;
    if source != Source::Native {
        let why = "of the CUDA kernels only the native one, on sm_100a, makes tensor maps in its blocks";
        PlanError::unless("maps", schedule.maps, Maps::Prebuilt, why)?;
    }
    match source {
        Source::Rows => Ok(Box::new(RowsPlan::new(gemm, schedule, target.processors)?)),
        Source::Narrow => Ok(Box::new(NarrowPlan::new(gemm, schedule, target)?)),
        Source::Native => Ok(Box::new(NativePlan::new(gemm, schedule, target)?)),
        _ => Ok(Box::new(SwappedPlan::new(gemm, schedule, target)?)),
    }
}

/// Whether a GEMM is valid and has tokens that the kernels multiply.
///
/// # Errors
/// If not.
pub(crate) fn validate(gemm: &GroupedGemm) -> Result<(), PlanError> {
    Operation::GroupedGemm(gemm.clone()).validate()?;
    check_tokens(gemm)
}

fn check_tokens(gemm: &GroupedGemm) -> Result<(), PlanError> {
    match gemm.tokens {
        TokenFormat::F32 => Err(PlanError::WideTokens),
        TokenFormat::Nvfp4 | TokenFormat::F16 | TokenFormat::Bf16 => Ok(()),
    }
}

/// One kernel with all of its compile-time constants.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The file.
    pub source: Source,
    /// Preprocessor definitions, by name.
    pub defines: BTreeMap<&'static str, String>,
    /// Threads of a block.
    pub threads: u32,
    /// Bytes of dynamic shared memory of a block.
    pub shared_bytes: u32,
    /// Most registers a thread may have for a block to fit a multiprocessor.
    pub registers: u32,
}

impl Variant {
    /// Whether the kernel waits by `griddepcontrol.wait` before it touches data of the previous launch, so that it may
    /// begin before that launch has ended (programmatic dependent launch). If so, its definition `OVERLAP` is 1.
    pub fn overlaps(&self) -> bool {
        self.defines.get("OVERLAP").is_some_and(|value| value == "1")
    }

    /// The same kernel with tracing: it records which role does what and when ([`crate::trace`]).
    #[must_use]
    pub fn traced(&self) -> Self {
        let mut traced = self.clone();
        traced.defines.insert("TRACE", "1".to_owned());
        traced
    }
}

/// Device memory that a plan needs beside the operands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Memory {
    /// Tables, to be copied to the device as they are before the first call (or in each, if set-up is per call).
    pub tables: Vec<u8>,
    /// Tensor maps, to be encoded and lie in device memory one after another, 128 bytes each.
    pub maps: Vec<Map>,
    /// Bytes of scratch memory that is written before it is read.
    pub workspace_bytes: usize,
    /// Bytes of counters: zero before the first call, and left zero by every call.
    pub counter_bytes: usize,
}

/// Operands that a call may get at addresses of its own.
pub const OPERANDS: usize = 3;

/// The addresses of a call in device memory.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Addresses {
    /// A GEMM's packed tokens (a group's begin at its [`Group::tokens`]), and of a call that is planned on the device the
    /// ends of its groups and 1 if launches before the one before wrote them, else 0; attention's Q, K and V.
    pub operands: [u64; OPERANDS],
    /// Their scales.
    pub scales: [u64; OPERANDS],
    /// The scales of all of Q, K and V if they are numbers and `scales` are null; else 1.
    pub factors: [f32; OPERANDS],
    /// The result.
    pub output: u64,
    /// The plan's tables.
    pub tables: u64,
    /// The plan's tensor maps.
    pub maps: u64,
    /// The plan's scratch memory.
    pub workspace: u64,
    /// The plan's counters.
    pub counters: u64,
    /// Rows of tokens of a call that is planned on the device, at most the plan's; other plans know theirs.
    pub rows: usize,
}

/// One of the kernels of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// The one that computes the result.
    Main,
    /// The one that prepares operands for it.
    Preparation,
    /// The one that merges what the main one leaves in parts, after it.
    Merging,
    /// The one that computes the rest of the result, after it.
    Rest,
}

/// One launch of a kernel; its one parameter is a struct, by value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launch {
    /// Which of the plan's kernels.
    pub pass: Pass,
    /// Blocks.
    pub grid: u32,
    /// Blocks of a cluster.
    pub cluster: u32,
    /// The bytes of the parameter.
    pub parameter: Vec<u8>,
    /// Operands whose tensor maps the parameter has to end with.
    pub mapped: Option<MappedOperands>,
}

/// A problem under a schedule.
pub trait Plan: fmt::Debug + Send + Sync {
    /// The kernel that computes the result.
    fn variant(&self) -> &Variant;
    /// The kernel that prepares operands for it in each call, if any.
    fn preparation(&self) -> Option<&Variant> {
        None
    }
    /// The kernel that merges the parts which the main one leaves, if it leaves any.
    fn merging(&self) -> Option<&Variant> {
        None
    }
    /// The kernel for what the main one leaves out, if it leaves out anything.
    fn rest(&self) -> Option<&Variant> {
        None
    }
    /// All kernels; [`place`](Self::place) says which is which.
    fn variants(&self) -> Vec<&Variant> {
        let others = [self.preparation(), self.merging(), self.rest()];
        [self.variant()]
            .into_iter()
            .chain(others.into_iter().flatten())
            .collect()
    }
    /// The index of a pass's kernel among [`variants`](Self::variants).
    fn place(&self, pass: Pass) -> usize {
        match pass {
            Pass::Main => 0,
            Pass::Preparation => 1,
            Pass::Merging | Pass::Rest => self.variants().len() - 1,
        }
    }
    /// The memory it needs. Tables hold the groups with the addresses of their weights, so they are made from those.
    fn memory(&self, weights: &[Weights]) -> Memory;
    /// The launches of one call, in order; each of one of its [`variants`](Self::variants).
    fn launches(&self, addresses: &Addresses) -> Vec<Launch>;
}

/// The addresses of one group's weights, row by row or [repacked](crate::packing), as the schedule requires;
/// the second of each pair belongs to the dual form and is 0 otherwise.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Weights {
    /// Packed values, `[n, k / 2]`.
    pub packed: [u64; 2],
    /// Block scales, `[n, k / 16]`.
    pub scales: [u64; 2],
    /// Tensor scale of the tokens times that of the weights.
    pub scale: [f32; 2],
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Arch;
    use gauntlet_problems::{Attention, AttentionFormat, Form, Lookup, Order, Roles};

    use super::*;

    fn gemm(k: usize) -> Operation {
        Operation::GroupedGemm(fixture::gemm(&[[4, 64, k]], Form::Plain))
    }

    fn attention(head_size: usize) -> Operation {
        Operation::Attention(Attention::new(AttentionFormat::F16, [[1, 1]], [1, 1], head_size))
    }

    #[test]
    fn blackwell_computes_what_its_native_kernel_does_not_as_before_hopper() {
        let target = Target::of_arch(Arch::Sm100a, 148);
        let planned = |problem: &Operation, schedule: &Schedule| {
            let plan = plan(problem, schedule, target).map_err(|error| error.to_string())?;
            Ok::<_, String>((plan.variant().source, plan.variant().overlaps()))
        };
        let alone = Schedule {
            tile: [64, 64, 64].into(),
            lookup: Lookup::Precomputed,
            ..Schedule::baseline()
        };
        let found = planned(&attention(64), &alone);
        assert_eq!(found, Ok((Source::AttentionUnified, false)));
        let roles = Schedule {
            roles: Roles::Specialised,
            ..alone
        };
        let message = planned(&attention(64), &roles).unwrap_err();
        assert!(
            message.contains("needs a Hopper GPU, and this one runs the kernels for sm_89"),
            "{message}"
        );

        let Operation::GroupedGemm(packed) = gemm(256) else {
            panic!("no GEMM");
        };
        let half = Operation::GroupedGemm(GroupedGemm {
            tokens: TokenFormat::Bf16,
            ..packed
        });
        let wide = Schedule {
            tile: [128, 64, 128].into(),
            stages: 2,
            lookup: Lookup::Precomputed,
            order: Order::Sorted,
            swap_ab: true,
            ..Schedule::baseline()
        };
        assert_eq!(planned(&half, &wide), Ok((Source::Unified, false)));
        let message = planned(&half, &Schedule::baseline()).unwrap_err();
        assert!(message.starts_with("swap-ab = false: "), "{message}");
        // NVFP4 tokens have the native kernel, unless scales lie row by row, as in layers.
        assert_eq!(
            planned(&gemm(256), &Schedule::baseline()),
            Ok((Source::Native, false))
        );
        let common = target.for_common_kernels();
        assert_eq!(
            plan(&gemm(256), &wide, common).unwrap().variant().source,
            Source::Unified
        );
        for arch in [Arch::Sm80, Arch::Sm90a] {
            let other = Target::of_arch(arch, 2);
            assert_eq!(other.for_problem(&half), other);
        }
    }

    #[test]
    fn what_is_no_problem_here_is_refused() {
        let message = |problem| {
            plan(&problem, &Schedule::baseline(), Target::hopper(132))
                .unwrap_err()
                .to_string()
        };
        assert!(message(gemm(24)).contains("K = 24"));
        assert!(message(attention(72)).starts_with("heads of 72: "));
    }
}
