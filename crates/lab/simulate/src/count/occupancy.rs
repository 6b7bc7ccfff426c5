//! How many blocks fit on a multiprocessor.

use crate::Problem;
use gauntlet_device::{Arch, Device};
use gauntlet_problems::resources::{accumulators, block_bytes, kernel_arch, tensor_memory_columns};
use gauntlet_problems::{Order, Schedule};
use gauntlet_tile_program::{Action, Statement};

/// Registers per thread besides its sums: addresses, counters, temporary fragments. An estimate; compilers differ.
const BASE_REGISTERS: f64 = 40.0;
/// Shared memory that the system reserves per block, in bytes (CUDA C++ Programming Guide, compute capability 8.0 and
/// later).
const RESERVED: usize = 1024;

/// The fewest columns of tensor memory that a block can allocate; allocations are powers of two (PTX ISA,
/// `tcgen05.alloc`).
const MIN_COLUMNS: usize = 32;

/// The resources of a block, and how many blocks fit on a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Blocks on one multiprocessor at a time; 1 for persistent blocks.
    pub blocks: usize,
    /// The resource that prevents a further block.
    pub limit: Limit,
    /// Shared memory per block in bytes.
    pub shared_memory: usize,
    /// Registers of a thread that multiplies (estimated).
    pub registers: usize,
    /// Warps per block.
    pub warps: usize,
    /// Columns of tensor memory that a block allocates; 0 without tensor memory.
    pub tensor_memory: usize,
}

/// The limit on the blocks of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Shared memory.
    SharedMemory,
    /// Registers.
    Registers,
    /// Warps.
    Warps,
    /// Tensor memory.
    TensorMemory,
    /// The schedule asks for one persistent block.
    Persistent,
}

impl Occupancy {
    /// The occupancy of a schedule on a GPU; `None` on other devices.
    pub fn of(problem: &Problem, schedule: &Schedule, device: &Device) -> Option<Self> {
        let gpu = device.gpu.as_ref()?;
        let arch = kernel_arch(problem.operation(), device.arch);
        let program = problem.model().program(schedule, arch);
        let warps: usize = program.roles.iter().map(|role| role.warps).sum();
        let multiplying: usize = program
            .roles
            .iter()
            .filter(|role| multiplies(&role.body))
            .map(|role| role.warps)
            .sum();
        let blackwell = arch == Arch::Sm100a;
        let sums = if blackwell {
            0
        } else {
            accumulators(schedule, problem.operation())
        };
        let converting = problem.model().converting_registers(schedule, arch);
        let base = converting.unwrap_or(BASE_REGISTERS);
        let registers = (sums as f64 / (32 * multiplying.max(1)) as f64 + base)
            .min(gpu.registers_thread.get())
            .ceil();
        // Roles that only load or store give registers away (`setmaxnreg`) if the architecture supports it.
        let of_block = 32.0
            * match arch {
                Arch::Sm90a | Arch::Sm100a => {
                    multiplying as f64 * registers + (warps - multiplying) as f64 * BASE_REGISTERS
                }
                _ => warps as f64 * registers,
            };
        let shared_memory = block_bytes(schedule, problem.operation(), arch);
        let tensor_memory = if blackwell {
            tensor_memory_columns(schedule, problem.operation())
                .max(MIN_COLUMNS)
                .next_power_of_two()
        } else {
            0
        };
        let fits = |has: f64, needs: f64| (has / needs.max(1.0)) as usize;
        let mut limits = vec![
            (
                fits(gpu.shared_memory.get(), (shared_memory + RESERVED) as f64),
                Limit::SharedMemory,
            ),
            (fits(gpu.registers.get(), of_block), Limit::Registers),
            (fits(gpu.warps.get(), warps as f64), Limit::Warps),
        ];
        if let Some(columns) = gpu.tensor_memory.as_ref().filter(|_| blackwell) {
            limits.push((fits(columns.get(), tensor_memory as f64), Limit::TensorMemory));
        }
        if schedule.order != Order::PerTile {
            limits.push((1, Limit::Persistent));
        }
        let (blocks, limit) = limits.into_iter().min_by_key(|(blocks, _)| *blocks)?;
        Some(Self {
            // A block that does not fit is refused by the constraints; here it counts as one.
            blocks: blocks.max(1),
            limit,
            shared_memory,
            registers: registers as usize,
            warps,
            tensor_memory,
        })
    }
}

fn multiplies(body: &[Statement]) -> bool {
    body.iter().any(|statement| match statement {
        Statement::Repeat(_, body) | Statement::If(_, body) => multiplies(body),
        Statement::Do(operation) => matches!(operation, Action::Multiply { .. }),
    })
}
