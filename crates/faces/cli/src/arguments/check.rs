//! The arguments of `check` and `audit`.

use std::path::PathBuf;

use clap::Args;

use super::{JsonFile, LedgerFile};

/// `check`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet check examples/shark-tank/cpu.toml   the gates that measure nothing, for every pitch
  gauntlet check group-gemm                     this machine's kernels: a pairwise-covering set of
                                                schedules × every case × every kind of input × every SIMD path
  gauntlet check attention --schedule 'tile = [64, 64, 64]' --simd portable
  gauntlet check softmax.cu:softmax_warp --task rms-norm --device h100
                                                without a GPU: compiled for it, small cases interpreted
  gauntlet check ./libnorm.so:norm --task rms-norm
  gauntlet check 'command: python3 examples/worker/rms_norm.py' --task rms-norm
  gauntlet check --task softmax.py              the task itself, as by `gauntlet audit`

Exit codes:
  0  every gate that measures nothing is passed by every pitch, fallback and baseline, and by every suite
  1  one of them is incorrect, racy, infeasible, over budget or does not compile, or the task is blind
  4  none of these, but one is blocked or aborted, so that nothing is known about it")]
pub struct Check {
    /// Round or tournament files, suites, or kernels: `FILE.py:FUNCTION`, `FILE.cu:KERNEL`, `FILE.c:FUNCTION`, `FILE.so:FUNCTION`,
    /// `solution.json`, 'command: PROGRAM ARGUMENTS'.
    #[arg(required_unless_present = "task")]
    pub targets: Vec<String>,
    /// The task that a kernel computes, by name or file (kernels); without a kernel the task itself is examined, as by `audit`.
    #[arg(long)]
    pub task: Option<String>,
    /// The GPU to compile for, which need not be here (`.cu`); see `gauntlet devices`.
    #[arg(long)]
    pub device: Option<String>,
    /// Only this schedule (suites), or only these parameters (kernels).
    #[arg(long)]
    pub schedule: Option<String>,
    /// Only this SIMD path (suites): amx, avx512, avx2, neon or portable.
    #[arg(long)]
    pub simd: Option<String>,
    /// Write the whole result as JSON (`-`: to standard output, in place of the report).
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Leave no record of the result in the ledger.
    #[arg(long)]
    pub no_ledger: bool,
    /// The ledger.
    #[command(flatten)]
    pub ledger: LedgerFile,
}

/// `audit`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  gauntlet audit task.py
  gauntlet audit problems/sort --json audit.json
  gauntlet audit rms-norm

Exit codes:
  0  every kernel that leaves work out is refused, or the task says that it accepts it
  1  the task is blind: it takes such a kernel as right")]
pub struct Audit {
    /// The task, by name or file.
    pub task: String,
    /// Where the result goes as JSON.
    #[command(flatten)]
    pub json: JsonFile,
}
