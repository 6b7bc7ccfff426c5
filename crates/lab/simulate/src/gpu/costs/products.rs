//! The cost of multiplying a step.

use gauntlet_device::Arch;

use super::Setting;

/// One product of a step on one multiprocessor.
#[derive(Debug, Clone, Copy)]
pub struct Shape {
    /// Rows of a block.
    pub rows: f64,
    /// Columns.
    pub columns: f64,
    /// Depth.
    pub depth: f64,
    /// Bytes per value in the multiplied format.
    pub bytes: f64,
    /// How often it is computed.
    pub times: f64,
    /// Whether its rows are read from shared memory.
    pub rows_shared: bool,
    /// Bytes that `mma.sync` reads from shared memory, multiplied by their bank conflicts.
    pub fragments: f64,
}

impl Shape {
    /// The slower of the unit's rate and of reading operands from shared memory, which each instruction repeats.
    pub(super) fn cycles(&self, setting: &Setting) -> f64 {
        let machine = setting.machine;
        let rate = 2.0 * self.instruction_rows(setting) * self.columns * self.depth / machine.product_rate;
        let reading = if setting.ideal.copy {
            0.0
        } else {
            self.instruction_bytes(setting) / machine.shared_rate
        };
        self.instructions(setting) * rate.max(reading)
    }

    /// Bytes of operands that it reads from shared memory.
    pub(super) fn shared_bytes(&self, setting: &Setting) -> f64 {
        self.instructions(setting) * self.instruction_bytes(setting)
    }

    /// Rows of one instruction of a block. Those of `mma.sync` are small enough to fit any tile.
    fn instruction_rows(&self, setting: &Setting) -> f64 {
        match setting.machine.arch {
            Arch::Sm100a => 128.0,
            Arch::Sm90a if self.fragments == 0.0 => 64.0,
            Arch::Sm80 | Arch::Sm89 | Arch::Sm90a | Arch::Cpu => self.rows,
        }
    }

    /// Instructions over the whole depth.
    fn instructions(&self, setting: &Setting) -> f64 {
        (self.rows / self.instruction_rows(setting)).ceil() * self.times
    }

    /// Bytes that one instruction reads from shared memory; in a pair, each block reads its half of the columns.
    /// `mma.sync` takes fragments from registers; for a GEMM, loading those is part of converting them.
    fn instruction_bytes(&self, setting: &Setting) -> f64 {
        if self.fragments > 0.0 {
            return self.fragments;
        }
        let columns = self.columns / setting.bundle.pair as f64;
        let rows = match setting.machine.arch {
            Arch::Sm80 | Arch::Sm89 | Arch::Cpu => return 0.0,
            Arch::Sm90a | Arch::Sm100a if self.rows_shared => self.instruction_rows(setting),
            Arch::Sm90a | Arch::Sm100a => 0.0,
        };
        (rows + columns) * self.depth * self.bytes
    }
}
