//! Operands that a held worker gets before it may know them.
//!
//! A worker on a GPU is put under load after the operands of the next call have been copied there, which takes long: a load
//! that came before the copy would be over when the call begins. The kernel runs in the load, so it could read the operands
//! and compute their result before the clock of their call starts. Therefore they come sealed, and the key follows after
//! the load.
//!
//! The seal is the exclusive or with numbers of Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as
//! easy as 1, 2, 3", SC 2011), a counter-based generator that a GPU computes about as fast as it copies memory. Its key has 64
//! bits, and each call has its own: a load is too short to try them all.

/// Bytes that one count of the generator seals.
pub const BLOCK: usize = 16;

const MULTIPLIERS: [u32; 2] = [0xD251_1F53, 0xCD9E_8D57];
const STEPS: [u32; 2] = [0x9E37_79B9, 0xBB67_AE85];
const ROUNDS: usize = 10;

/// Seals bytes, or opens sealed ones. They lie `offset` bytes after the beginning of the tensor whose address in the worker's
/// memory of the host is `tensor`: no two tensors of a call are sealed with the same numbers.
pub fn apply(key: u64, tensor: u64, offset: usize, bytes: &mut [u8]) {
    let begin = offset % BLOCK;
    let head = bytes.len().min((BLOCK - begin) % BLOCK);
    let (head, rest) = bytes.split_at_mut(head);
    let first = offset / BLOCK;
    if !head.is_empty() {
        mix(&numbers(key, tensor, first)[begin..], head);
    }
    for (place, block) in rest.chunks_mut(BLOCK).enumerate() {
        mix(&numbers(key, tensor, offset.div_ceil(BLOCK) + place), block);
    }
}

fn mix(numbers: &[u8], bytes: &mut [u8]) {
    for (byte, number) in bytes.iter_mut().zip(numbers) {
        *byte ^= number;
    }
}

/// The numbers of a block, as they lie in memory.
fn numbers(key: u64, tensor: u64, block: usize) -> [u8; BLOCK] {
    let halves = |whole: u64| [whole as u32, (whole >> 32) as u32];
    let ([low, high], key) = (halves(tensor), halves(key));
    let mut bytes = [0; BLOCK];
    let words = philox([block as u32, low, high, 0], key);
    for (four, word) in bytes.chunks_exact_mut(4).zip(words) {
        four.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for _ in 0..ROUNDS {
        let [one, other] =
            [(0, 0), (1, 2)].map(|(index, word)| u64::from(MULTIPLIERS[index]) * u64::from(counter[word]));
        counter = [
            (other >> 32) as u32 ^ counter[1] ^ key[0],
            other as u32,
            (one >> 32) as u32 ^ counter[3] ^ key[1],
            one as u32,
        ];
        key = [key[0].wrapping_add(STEPS[0]), key[1].wrapping_add(STEPS[1])];
    }
    counter
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_generator_is_philox() {
        // The known answers of Random123, the authors' library.
        assert_eq!(
            philox([0; 4], [0; 2]),
            [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]
        );
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
    }

    #[test]
    fn what_is_sealed_in_parts_is_opened_as_a_whole() {
        let plain: Vec<u8> = (0..100).collect();
        for cuts in [vec![100], vec![3, 100], vec![16, 17, 40, 99, 100]] {
            let mut sealed = plain.clone();
            let mut begin = 0;
            for cut in cuts {
                apply(7, 4096, begin, &mut sealed[begin..cut]);
                begin = cut;
            }
            assert!(
                sealed
                    .iter()
                    .zip(&plain)
                    .filter(|(one, other)| one == other)
                    .count()
                    < 10
            );
            for (key, tensor) in [(8, 4096), (7, 4352)] {
                let mut opened = sealed.clone();
                apply(key, tensor, 0, &mut opened);
                assert_ne!(opened, plain);
            }
            apply(7, 4096, 0, &mut sealed);
            assert_eq!(sealed, plain);
        }
    }
}
