//! NVFP4 matrices in the memory of the processor.

use gauntlet_nvfp4::{BLOCK, Nvfp4Tensor};

use crate::status::{Failure, Status, destroy, elements, guarded, hand_over, product};

/// `gauntlet_matrix`.
pub struct Matrix(pub Nvfp4Tensor);

/// # Safety
/// As the header says: arrays of the sizes' lengths, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_matrix_create(
    rows: usize,
    columns: usize,
    values: *const u8,
    scales: *const u8,
    tensor_scale: f32,
    matrix: *mut *mut Matrix,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises arrays of these lengths.
        let values = unsafe { elements(values, product(&[rows, columns / 2])?, "values") }?;
        // SAFETY: as above.
        let scales = unsafe { elements(scales, product(&[rows, columns / BLOCK])?, "scales") }?;
        let made = Nvfp4Tensor::new(rows, columns, values.to_vec(), scales.to_vec(), tensor_scale)
            .map_err(Failure::argument)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(Matrix(made), matrix, "matrix") }
    })
}

/// # Safety
/// As the header says: rows × columns elements, and a place for the pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_matrix_quantize(
    rows: usize,
    columns: usize,
    values: *const f32,
    matrix: *mut *mut Matrix,
) -> Status {
    guarded(|| {
        // SAFETY: the caller promises rows × columns elements.
        let values = unsafe { elements(values, product(&[rows, columns])?, "elements") }?;
        let made = Nvfp4Tensor::quantise(rows, columns, values).map_err(Failure::argument)?;
        // SAFETY: the caller promises a place for the pointer.
        unsafe { hand_over(Matrix(made), matrix, "matrix") }
    })
}

/// # Safety
/// The matrix must come from this library, and not be used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gauntlet_matrix_destroy(matrix: *mut Matrix) {
    // SAFETY: the caller's promise is the same.
    unsafe { destroy(matrix) }
}
