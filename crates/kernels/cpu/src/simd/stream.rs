//! Stores that bypass the caches, and prefetches. Both are in the baseline of x86-64 (SSE, SSE2); on other
//! architectures a stream is a copy and a prefetch does nothing.

/// Copies rows, each given as a pair (target, source) of the same length, with non-temporal stores if available, and
/// orders them before this thread's later stores.
pub(crate) fn stream_rows<'t, 's>(rows: impl Iterator<Item = (&'t mut [u8], &'s [u8])>) {
    for (target, source) in rows {
        stream(target, source);
    }
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is in the baseline of x86-64, and a fence touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Copies `source` to `target`. No other access to `target` may happen before the fence of [`stream_rows`].
#[cfg(target_arch = "x86_64")]
fn stream(target: &mut [u8], source: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

    assert_eq!(target.len(), source.len());
    let head = target.as_ptr().align_offset(16).min(target.len());
    let (target_head, target) = target.split_at_mut(head);
    let (source_head, source) = source.split_at(head);
    target_head.copy_from_slice(source_head);
    let (target_vectors, target_tail) = target.as_chunks_mut::<16>();
    let (source_vectors, source_tail) = source.as_chunks::<16>();
    for (target, source) in target_vectors.iter_mut().zip(source_vectors) {
        // SAFETY: both are 16 bytes, and `head` aligned the target to a multiple of 16. `stream_rows` issues the fence
        // required before the next access, and holds the target exclusively until then.
        unsafe {
            let vector = _mm_loadu_si128(source.as_ptr().cast::<__m128i>());
            _mm_stream_si128(target.as_mut_ptr().cast::<__m128i>(), vector);
        }
    }
    target_tail.copy_from_slice(source_tail);
}

/// Copies `source` to `target`.
#[cfg(not(target_arch = "x86_64"))]
fn stream(target: &mut [u8], source: &[u8]) {
    target.copy_from_slice(source);
}

/// Prefetches the cache lines of `bytes`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    for line in bytes.chunks(64) {
        // SAFETY: a prefetch has no effect that could be unsound, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

/// Does nothing on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch(_bytes: &[u8]) {}

/// Prefetches a line into the second-level cache; the address may be outside of all memory. The first-level cache
/// supports fewer concurrent misses: prefetching into it would stream weights more slowly than memory delivers them.
#[inline(always)]
pub(super) fn prefetch_at(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is in the baseline of x86-64, and a prefetch of any address has no observable effect.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}
