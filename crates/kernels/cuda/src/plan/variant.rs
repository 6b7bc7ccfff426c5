//! What the variants of all kernels have in common.

use gauntlet_problems::{OutputFormat, TokenFormat};

/// Registers of a multiprocessor of compute capability 9.0 (CUDA C++ Programming Guide, technical specifications).
const REGISTERS: usize = 65536;
/// Most registers of a thread (same source).
const REGISTERS_A_THREAD: usize = 255;

/// Most registers a thread may have for one block of `threads` threads to fit a multiprocessor; the hardware allocates
/// them in units of eight.
pub(super) fn most_registers(threads: usize) -> u32 {
    (REGISTERS / threads / 8 * 8).min(REGISTERS_A_THREAD) as u32
}

/// The value of `OUTPUT`.
pub(super) fn output_define(output: OutputFormat) -> usize {
    match output {
        OutputFormat::F16 => 0,
        OutputFormat::Bf16 => 1,
        OutputFormat::F32 => 2,
    }
}

/// The value of `FORMAT`; `plan` has refused f32.
pub(super) fn format_define(tokens: TokenFormat) -> usize {
    match tokens {
        TokenFormat::Nvfp4 | TokenFormat::F32 => 0,
        TokenFormat::F16 => 1,
        TokenFormat::Bf16 => 2,
    }
}
