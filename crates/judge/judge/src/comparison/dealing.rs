//! How many sets of operands a pair of processes gets, and their seeds.

/// The stream of the known sets, one for each case.
pub const KNOWN: u64 = u64::MAX;

/// The seed of a set of operands. No seed follows from another: a worker sees the known set, and generators of tasks take
/// so few bits that it could find out that set's seed by trying all.
pub fn seed_of_set(seed: u64, stream: u64, set: usize) -> u64 {
    let mut hasher = blake3::Hasher::new_derive_key("gauntlet: seeds of sets of operands");
    for part in [seed, stream, set as u64] {
        hasher.update(&part.to_le_bytes());
    }
    let mut bytes = [0; 8];
    hasher.finalize_xof().fill(&mut bytes);
    u64::from_le_bytes(bytes)
}

/// Size of a pair's fresh operands, unless calls leave the last-level cache only with more. More sets give more first
/// calls, and a worker that computes while it loads has to do so for each set.
const FRESH_BYTES: u64 = 32 << 20;

/// Whether the contents of sets of this size are kept in memory. Larger ones are read again when a result is checked.
pub fn fits_memory(bytes: u64) -> bool {
    bytes <= MAX_KEPT
}

/// Largest set that is kept in memory. All sets of a pair then take 128 MiB, or twice the last-level cache if that is more.
const MAX_KEPT: u64 = 64 << 20;

/// At least two, so that each of two loads brings new values.
const MIN_SETS: usize = 2;
const MAX_SETS: usize = 64;

/// How many sets of fresh operands a pair gets: where possible as many as leave a cache of this size in rotation, so that
/// no set is copied. The work of a call that is done while a set is loaded then stands out from the loading.
pub fn sets(bytes: u64, cache: u64) -> usize {
    usize::try_from(FRESH_BYTES.max(2 * cache) / bytes.max(1))
        .unwrap_or(MAX_SETS)
        .clamp(MIN_SETS, MAX_SETS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_of_a_set_does_not_follow_from_another() {
        let seeds = [(0, KNOWN, 0), (0, 0, 0), (0, 0, 1), (0, 1, 0), (1, 0, 0)];
        let seeds = seeds.map(|(seed, stream, set)| seed_of_set(seed, stream, set));
        let far = |one: u64, other: u64| (one ^ other).count_ones() > 12;
        for (index, seed) in seeds.iter().enumerate() {
            assert!(
                seeds[..index].iter().all(|other| far(*seed, *other)),
                "{seeds:x?}"
            );
        }
        assert_eq!(seed_of_set(7, 1, 2), seed_of_set(7, 1, 2));
    }

    #[test]
    fn a_pair_gets_two_to_sixty_four_sets_of_operands() {
        let cache = 64 << 20;
        assert_eq!(
            [sets(100, cache), sets(4 << 20, cache), sets(1 << 40, cache)],
            [64, 32, 2]
        );
        assert_eq!(sets(10 << 20, 0), 3);
    }
}
