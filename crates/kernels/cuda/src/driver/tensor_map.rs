//! Tensor maps: descriptions of matrices for the copy engine.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

use super::device::driver_version;
use super::error::{DriverError, call};
use crate::plan::{Element, Map, Swizzle};

/// Bytes of an encoded map.
pub const MAP_BYTES: usize = size_of::<CUtensorMap>();

/// Dimensions that a map may have (CUDA driver API, cuTensorMapEncodeTiled).
const MOST_DIMENSIONS: usize = 5;

/// Encodes a map of elements that begin at `address` without gaps; reads beyond the edges give zeros.
///
/// # Errors
/// If the driver refuses the map: addresses and rows must be multiples of 16 bytes, and a box has at most 256 elements
/// along each dimension.
pub fn encode(map: &Map, address: u64) -> Result<[u8; MAP_BYTES], DriverError> {
    driver_version()?;
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let rank = map.sizes.len().min(map.boxes.len()).min(MOST_DIMENSIONS);
    let mut strides = [0_u64; MOST_DIMENSIONS];
    let mut bytes = map.element.bytes() as u64;
    for (stride, size) in strides.iter_mut().zip(&map.sizes) {
        bytes *= size;
        *stride = bytes;
    }
    let steps = [1_u32; MOST_DIMENSIONS];
    let element = match map.element {
        Element::Byte => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT8,
        Element::Half => CUtensorMapDataType::CU_TENSOR_MAP_DATA_TYPE_UINT16,
    };
    let swizzle = match map.swizzle {
        Swizzle::None => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_NONE,
        Swizzle::Bytes64 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_64B,
        Swizzle::Bytes128 => CUtensorMapSwizzle::CU_TENSOR_MAP_SWIZZLE_128B,
    };
    // SAFETY: the driver is loaded; each list has at least `rank` entries (of the strides, one fewer is read). The
    // driver does not read from the address.
    unsafe {
        call!(cuTensorMapEncodeTiled(
            &raw mut encoded,
            element,
            rank as u32,
            address as *mut c_void,
            map.sizes.as_ptr(),
            strides.as_ptr(),
            map.boxes.as_ptr(),
            steps.as_ptr(),
            CUtensorMapInterleave::CU_TENSOR_MAP_INTERLEAVE_NONE,
            swizzle,
            CUtensorMapL2promotion::CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
            CUtensorMapFloatOOBfill::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE,
        ))
    }
    .map_err(|error| {
        error.about(format_args!(
            "tensor map of {:?} {}, {:?} elements of {:?} at {address:#x} in boxes of {:?}",
            map.matrix, map.group, map.sizes, map.element, map.boxes
        ))
    })?;
    Ok(bytemuck::cast(encoded.opaque))
}
