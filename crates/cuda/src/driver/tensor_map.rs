//! Tensor maps: what the copy engine needs to know of a matrix.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

use super::device::driver_version;
use super::error::{DriverError, call};
use crate::plan::Map;

/// Bytes of an encoded map.
pub const MAP_BYTES: usize = size_of::<CUtensorMap>();

/// Encodes a map of bytes that begin at `address`: rows one after another, no swizzle, zeros beyond the edges.
///
/// # Errors
/// If the driver refuses: addresses and rows are multiples of 16 bytes, and a box has at most 256 rows and columns.
pub fn encode(map: &Map, address: u64) -> Result<[u8; MAP_BYTES], DriverError> {
    driver_version()?;
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let sizes = [map.columns, map.rows];
    let strides = [map.columns];
    let boxes = [map.box_columns, map.box_rows];
    let steps = [1_u32; 2];
    // SAFETY: the driver is loaded; the lists are as long as a map of rank 2 takes them (strides: one less). The address
    // is not read from.
    unsafe {
        call!(cuTensorMapEncodeTiled(
            &raw mut encoded,
            CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
            2,
            address as *mut c_void,
            sizes.as_ptr(),
            strides.as_ptr(),
            boxes.as_ptr(),
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ))
    }
    .map_err(|error| {
        error.about(format_args!(
            "tensor map of group {}'s {:?}, {} rows of {} bytes at {address:#x} in boxes of {} × {}",
            map.group, map.matrix, map.rows, map.columns, map.box_rows, map.box_columns
        ))
    })?;
    Ok(bytemuck::cast(encoded.opaque))
}
