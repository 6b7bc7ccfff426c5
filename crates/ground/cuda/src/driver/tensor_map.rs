//! Tensor maps: descriptions of matrices for the copy engine.

use std::ffi::c_void;

use cudarc::driver::sys::{
    CUtensorMap, CUtensorMapDataType, CUtensorMapFloatOOBfill, CUtensorMapInterleave, CUtensorMapL2promotion,
    CUtensorMapSwizzle,
};

use super::device::driver_version;
use super::error::{DriverError, call};

/// Bytes of an encoded map.
pub const MAP_BYTES: usize = size_of::<CUtensorMap>();

/// Dimensions that a map may have (CUDA driver API, cuTensorMapEncodeTiled).
const MAX_DIMENSIONS: usize = 5;

/// A tensor map over elements that lie without gaps, fetched in boxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TensorMap<'a> {
    /// The type of its elements.
    pub element: Element,
    /// Elements along each dimension, the innermost first.
    pub sizes: &'a [u64],
    /// Elements of a box, likewise.
    pub boxes: &'a [u32],
    /// How a box's rows lie in shared memory.
    pub swizzle: Swizzle,
}

/// The element type of a tensor map; copies need only its size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Element {
    /// A byte.
    Byte,
    /// Two bytes.
    Half,
}

/// The swizzle of a box in shared memory: the order of the 16-byte pieces of its rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Swizzle {
    /// Not at all.
    None,
    /// Within the 64 bytes of a row.
    Bytes64,
    /// Within the 128 bytes of a row.
    Bytes128,
}

impl Element {
    /// Bytes of an element.
    pub fn bytes(self) -> usize {
        match self {
            Self::Byte => 1,
            Self::Half => 2,
        }
    }
}

/// Encodes a map of elements that begin at `address` without gaps; reads beyond the edges give zeros.
///
/// # Errors
/// If the driver refuses the map: addresses and rows must be multiples of 16 bytes, and a box has at most 256 elements
/// along each dimension.
pub fn encode(map: TensorMap<'_>, address: u64) -> Result<[u8; MAP_BYTES], DriverError> {
    driver_version()?;
    let mut encoded = CUtensorMap { opaque: [0; 16] };
    let rank = map.sizes.len().min(map.boxes.len()).min(MAX_DIMENSIONS);
    let mut strides = [0_u64; MAX_DIMENSIONS];
    let mut bytes = map.element.bytes() as u64;
    for (stride, size) in strides.iter_mut().zip(map.sizes) {
        bytes *= size;
        *stride = bytes;
    }
    let steps = [1_u32; MAX_DIMENSIONS];
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
    }?;
    Ok(bytemuck::cast(encoded.opaque))
}
