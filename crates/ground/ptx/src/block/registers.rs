//! The registers of a block's threads.

use super::WARP;
use crate::instruction::Register;

/// The registers of all threads of a block. Within a warp, the values of a register in all lanes are neighbours: lanes execute
/// the same instructions one after another, and each finds in the processor's cache what the lane before it has fetched.
#[derive(Debug)]
pub(crate) struct Registers {
    /// For each warp, for each register, the value in each lane.
    values: Vec<u64>,
    /// Registers of a thread.
    count: usize,
}

impl Registers {
    /// Zeros: `count` registers for each thread of `warps` warps.
    pub fn new(count: usize, warps: usize) -> Self {
        Self {
            values: vec![0; warps * count * WARP],
            count,
        }
    }

    /// The registers of one thread.
    #[inline]
    pub fn of(&self, thread: usize) -> OfThread<&[u64]> {
        OfThread(&self.values[self.begin(thread)..])
    }

    /// The same, to be changed.
    #[inline]
    pub fn of_mut(&mut self, thread: usize) -> OfThread<&mut [u64]> {
        let begin = self.begin(thread);
        OfThread(&mut self.values[begin..])
    }

    fn begin(&self, thread: usize) -> usize {
        thread / WARP * self.count * WARP + thread % WARP
    }
}

/// The registers of a thread: every 32nd value, from the first on.
#[derive(Debug)]
pub(crate) struct OfThread<V>(V);

impl<V: AsRef<[u64]>> OfThread<V> {
    #[inline]
    pub fn get(&self, register: Register) -> u64 {
        self.0.as_ref()[register as usize * WARP]
    }
}

impl<V: AsMut<[u64]>> OfThread<V> {
    #[inline]
    pub fn set(&mut self, register: Register, bits: u64) {
        self.0.as_mut()[register as usize * WARP] = bits;
    }
}
