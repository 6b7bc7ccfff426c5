//! Stores that bypass the caches, and prefetches. Both are in the baseline of x86-64 (SSE, SSE2); elsewhere a
//! stream is a copy and a prefetch nothing.

/// Copies `source` to `target` (of the same length) with non-temporal stores where there are any. The stores of a
/// whole tile are to be closed by [`store_rows_end`].
#[cfg(target_arch = "x86_64")]
pub(crate) fn stream(target: &mut [u8], source: &[u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

    assert_eq!(target.len(), source.len());
    let head = target.as_ptr().align_offset(16).min(target.len());
    let (target_head, target) = target.split_at_mut(head);
    let (source_head, source) = source.split_at(head);
    target_head.copy_from_slice(source_head);
    let (target_vectors, target_tail) = target.as_chunks_mut::<16>();
    let (source_vectors, source_tail) = source.as_chunks::<16>();
    for (target, source) in target_vectors.iter_mut().zip(source_vectors) {
        // SAFETY: both are 16 bytes, and `head` brought the target to a multiple of 16.
        unsafe {
            let vector = _mm_loadu_si128(source.as_ptr().cast::<__m128i>());
            _mm_stream_si128(target.as_mut_ptr().cast::<__m128i>(), vector);
        }
    }
    target_tail.copy_from_slice(source_tail);
}

/// Copies `source` to `target` (of the same length).
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn stream(target: &mut [u8], source: &[u8]) {
    target.copy_from_slice(source);
}

/// Orders the streamed stores of this thread before whatever it publishes next.
pub(crate) fn store_rows_end() {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: SSE is in the baseline of x86-64, and a fence touches no memory.
    unsafe {
        std::arch::x86_64::_mm_sfence();
    }
}

/// Asks for the cache lines of `bytes`.
#[cfg(target_arch = "x86_64")]
pub(crate) fn prefetch(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};

    for line in bytes.chunks(64) {
        // SAFETY: a prefetch has no effect that could be unsound, whatever the address.
        unsafe { _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast()) };
    }
}

/// Asks for the cache lines of `bytes`; nothing on this architecture.
#[cfg(not(target_arch = "x86_64"))]
pub(crate) fn prefetch(_bytes: &[u8]) {}
