//! Tests of the interpreter on kernels written by hand: one program, since linking one for each file takes longer than the tests.

mod cluster;
mod launch;
mod ordinary;
mod tensor_core;
mod tensor_maps;
mod watched;

/// The words that lie in memory at an address.
#[expect(clippy::unwrap_used, reason = "tests")]
fn words_at(memory: &gauntlet_ptx::Memory, address: u64) -> Vec<u32> {
    let (words, _) = memory.contents(address).unwrap().as_chunks();
    words.iter().map(|word| u32::from_le_bytes(*word)).collect()
}
