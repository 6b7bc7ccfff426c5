//! Weights for NVIDIA GPUs, packed in the memory of the processor.

use gauntlet_kernels_cuda::packing::{self, Packed};
use gauntlet_nvfp4::BLOCK;

use crate::status::{Failure, Status, elements, guarded, null, product};
use crate::words;

/// # Safety
/// As the header says: places for both numbers.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_packed_bytes(
    packing: i32,
    n: usize,
    k: usize,
    values: *mut usize,
    scales: *mut usize,
) -> Status {
    guarded(|| {
        product(&[
            n.saturating_add(packing::ROWS),
            k.saturating_add(packing::DEPTH_STEP),
        ])?;
        let (of_values, of_scales) = packing::packed_bytes(words::packing(packing)?, n, k);
        // SAFETY: the caller promises a place for this number.
        unsafe { put(&[of_values], values, "values") }?;
        // SAFETY: as above.
        unsafe { put(&[of_scales], scales, "scales") }
    })
}

/// # Safety
/// As the header says: a matrix of n rows of k values, and arrays of the bytes of [`gauntlet_cuda_packed_bytes`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_cuda_pack(
    packing: i32,
    tokens: i32,
    n: usize,
    k: usize,
    values: *const u8,
    scales: *const u8,
    packed_values: *mut u8,
    packed_scales: *mut u8,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises a matrix of this size.
        let values = unsafe { elements(values, product(&[n, k / 2])?, "values") }?;
        // SAFETY: as above.
        let scales = unsafe { elements(scales, product(&[n, k / BLOCK])?, "scales") }?;
        let (packing, tokens) = (words::packing(packing)?, words::layer_tokens(tokens)?);
        let Packed {
            values: of_values,
            scales: of_scales,
        } = packing::pack_as(packing, tokens, n, k, values, scales).map_err(Failure::argument)?;
        // SAFETY: the caller promises as many bytes as the header says.
        unsafe { put(&of_values, packed_values, "packed_values") }?;
        // SAFETY: as above.
        unsafe { put(&of_scales, packed_scales, "packed_scales") }
    })
}

/// Copies elements to where C wants them.
///
/// # Safety
/// The pointer must be null or have room for as many elements, which do not overlap `from`.
unsafe fn put<T: Copy>(from: &[T], to: *mut T, name: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(null(name));
    }
    // SAFETY: it is not null, and the caller promises room for as many elements apart from `from`.
    unsafe { to.copy_from_nonoverlapping(from.as_ptr(), from.len()) };
    Ok(())
}
