//! The kernel that opens sealed operands on a GPU, and how it is launched.
//!
//! `seal.rs` says how operands are sealed, and why.

/// PTX, as the driver takes it: the text ends with a null byte.
///
/// The kernel has four parameters of eight bytes: the address of the operand on the device, the number of its blocks, the
/// address of the host to which the coordinator wrote it, and the key.
pub const CODE: &str = concat!(include_str!("seal.ptx"), "\0");

/// The name of the kernel.
pub const ENTRY: &str = "gauntlet_open";

/// Bytes that a thread opens at a time.
pub const BLOCK: usize = 16;

/// Threads of a block of the launch.
pub const THREADS: u32 = 256;

/// Most blocks of a launch: enough to keep any device's memory busy.
const MAX_GROUPS: usize = 4096;

/// How many blocks of [`THREADS`] a launch has that opens this many blocks of [`BLOCK`] bytes. Each thread opens several if
/// there are more.
pub fn groups(blocks: usize) -> u32 {
    blocks.div_ceil(THREADS as usize).min(MAX_GROUPS) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_launch_has_a_thread_for_each_block_up_to_a_limit() {
        let launched = [0, 1, 256, 257, 256 * 4096, usize::MAX].map(groups);
        assert_eq!(launched, [0, 1, 1, 2, 4096, 4096]);
    }
}
