//! How many copies of operands timed calls rotate over, so that no call finds its operands in a cache.

use gauntlet_device::{Arch, Device};

use crate::evidence::{Measurement, Setting, Trust};

/// Upper limit on the operands of one case, however large the reported last-level cache is.
const MAX_OPERAND_BYTES: u64 = 2 << 30;

/// Size of the last-level cache in bytes; 0 if unknown, so that nothing rotates.
pub fn last_level_cache(device: &Device) -> u64 {
    let of_cpu = device.cpu.as_ref().and_then(|cpu| cpu.last_level_size.as_ref());
    of_cpu
        .or(device.memory.l2_size.as_ref())
        .map_or(0, |size| size.get() as u64)
}

/// The most of a processor's cache that operands leave between calls of kernels that are trusted. Making room for twice the
/// 260 MiB of a server's cache took most of the time of a pair.
const MAX_QUICK_CACHE: u64 = 16 << 20;

/// The bytes of cache that operands leave between calls; 0 if they may stay there.
pub fn cache_to_leave(setting: &Setting) -> u64 {
    let Measurement { warm, trust, .. } = setting.measurement;
    let whole = last_level_cache(&setting.device);
    match trust {
        _ if warm => 0,
        Trust::Quick if setting.device.arch == Arch::Cpu => whole.min(MAX_QUICK_CACHE),
        _ => whole,
    }
}

/// How many copies of a problem's operands exceed the last-level cache in rotation.
pub fn copies(bytes: u64, cache: u64) -> usize {
    let wanted = (2 * cache).min(MAX_OPERAND_BYTES).div_ceil(bytes.max(1));
    usize::try_from(wanted).unwrap_or(usize::MAX >> 8).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rotation_leaves_the_cache() {
        assert_eq!(copies(100, 0), 1);
        assert_eq!(copies(100, 1040), 21);
        assert_eq!(copies(1 << 30, 1 << 40), 2);
    }
}
