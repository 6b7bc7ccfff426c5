//! Memory of the host and of the device that only the loop knows, and copies between it and tensors.

use std::ffi::c_void;
use std::rc::Rc;

use crate::driver::{Address, Driver, checked};

/// A block of memory on the device, freed when it is dropped.
pub struct DeviceBlock {
    driver: Rc<Driver>,
    /// Where it begins.
    pub address: Address,
    /// How long it is.
    pub bytes: usize,
}

impl DeviceBlock {
    /// Allocates a block of at least one byte.
    pub fn new(driver: &Rc<Driver>, bytes: usize) -> Result<Self, String> {
        let mut address = 0;
        // SAFETY: the driver fills the variable.
        let status = unsafe { (driver.allocate)(&raw mut address, bytes.max(1)) };
        checked(status, &format!("{bytes} bytes cannot be allocated"))?;
        Ok(Self {
            driver: Rc::clone(driver),
            address,
            bytes,
        })
    }
}

impl Drop for DeviceBlock {
    fn drop(&mut self) {
        // SAFETY: the block was allocated by this driver and is freed once. An error leaves nothing to do.
        let _freed = unsafe { (self.driver.free)(self.address) };
    }
}

/// A tensor as it lies in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Where the first element lies, on the host or the device.
    pub address: u64,
    /// The sizes of the dimensions.
    pub shape: Vec<usize>,
    /// The distance of neighbours in each dimension, in bytes.
    pub strides: Vec<isize>,
    /// Bytes of an element.
    pub element: usize,
}

impl Layout {
    /// Bytes of all elements.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.element
    }

    /// The number of trailing dimensions whose elements lie one after the other in row-major order, and their bytes.
    fn contiguous(&self) -> (usize, usize) {
        let (mut dimensions, mut bytes) = (0, self.element);
        for (size, stride) in self.shape.iter().zip(&self.strides).rev() {
            if *size != 1 && *stride != bytes as isize {
                break;
            }
            dimensions += 1;
            bytes *= size;
        }
        (dimensions, bytes)
    }

    /// Whether all elements lie one after the other in row-major order.
    pub fn is_row_major(&self) -> bool {
        self.bytes() == 0 || self.contiguous().0 == self.shape.len()
    }

    /// The address, and the strides unless the elements lie in row-major order.
    pub fn place(&self) -> Vec<i64> {
        let strides = if self.is_row_major() {
            &[][..]
        } else {
            &self.strides
        };
        let strides = strides.iter().map(|stride| *stride as i64);
        std::iter::once(self.address as i64).chain(strides).collect()
    }

    /// Whether the elements fill the bytes from the address on without gaps, in whatever order.
    pub fn is_dense(&self) -> bool {
        let steps = self.shape.iter().zip(&self.strides);
        let last: isize = steps
            .map(|(size, stride)| size.saturating_sub(1) as isize * stride)
            .sum();
        let is_forward = self.strides.iter().all(|stride| *stride >= 0);
        is_forward && self.bytes() > 0 && last + self.element as isize == self.bytes() as isize
    }

    /// Copies the elements of a tensor on the host, in row-major order.
    ///
    /// # Safety
    /// Every element of the tensor lies in memory that can be read.
    pub unsafe fn gather(&self, target: &mut [u8]) {
        let whole = self.bytes();
        if whole == 0 || target.len() < whole {
            return;
        }
        let (inner, run) = self.contiguous();
        let outer = self.shape.len() - inner;
        let mut index = vec![0; outer];
        for run_of_target in target[..whole].chunks_exact_mut(run) {
            let offset: isize = index
                .iter()
                .zip(&self.strides)
                .map(|(place, stride): (&usize, &isize)| *place as isize * stride)
                .sum();
            let source = (self.address as *const u8).wrapping_offset(offset);
            // SAFETY: the caller vouches for the elements, and this run of them lies in one piece.
            unsafe { std::ptr::copy_nonoverlapping(source, run_of_target.as_mut_ptr(), run) };
            for dimension in (0..outer).rev() {
                index[dimension] += 1;
                if index[dimension] < self.shape[dimension] {
                    break;
                }
                index[dimension] = 0;
            }
        }
    }
}

/// Memory on the host or the device.
pub enum Block {
    /// On the host.
    Host(Vec<u8>),
    /// On the device.
    Device(DeviceBlock),
}

impl Block {
    /// A block on the device if there is a driver, else on the host.
    pub fn new(driver: Option<&Rc<Driver>>, bytes: usize) -> Result<Self, String> {
        Ok(match driver {
            Some(driver) => Self::Device(DeviceBlock::new(driver, bytes)?),
            None => Self::Host(vec![0; bytes]),
        })
    }

    /// Bytes of the block.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Host(bytes) => bytes.len(),
            Self::Device(block) => block.bytes,
        }
    }

    /// Copies `bytes` bytes from an address of the same kind of memory to an offset of this block.
    ///
    /// # Safety
    /// As many bytes can be read at the address.
    pub unsafe fn take(&mut self, offset: usize, address: u64, bytes: usize) -> Result<(), String> {
        if offset + bytes > self.bytes() {
            return Err("a tensor is longer than its place".to_owned());
        }
        match self {
            Self::Host(own) => {
                // SAFETY: the caller vouches for the source, and the block is long enough.
                unsafe {
                    std::ptr::copy_nonoverlapping(address as *const u8, own.as_mut_ptr().add(offset), bytes);
                }
                Ok(())
            }
            Self::Device(own) if bytes > 0 => {
                // SAFETY: as above, on the device.
                let status = unsafe { (own.driver.copy)(own.address + offset as u64, address, bytes) };
                checked(status, "a tensor cannot be copied")
            }
            Self::Device(_) => Ok(()),
        }
    }

    /// Copies the whole block to an address of the same kind of memory.
    ///
    /// # Safety
    /// As many bytes can be written at the address, and nothing else uses them meanwhile.
    pub unsafe fn give(&self, address: u64) -> Result<(), String> {
        match self {
            Self::Host(own) => {
                // SAFETY: the caller vouches for the target.
                unsafe { std::ptr::copy_nonoverlapping(own.as_ptr(), address as *mut u8, own.len()) };
                Ok(())
            }
            Self::Device(own) if own.bytes > 0 => {
                // SAFETY: as above, on the device.
                let status = unsafe { (own.driver.copy)(address, own.address, own.bytes) };
                checked(status, "a tensor cannot be copied")
            }
            Self::Device(_) => Ok(()),
        }
    }

    /// Writes the block's bytes back to an address on the host if they differ there; whether they did.
    ///
    /// # Safety
    /// As many bytes can be read and written at the address, and nothing else uses them meanwhile.
    pub unsafe fn restore(&self, address: u64) -> bool {
        let Self::Host(own) = self else { return false };
        // SAFETY: the caller vouches for the bytes.
        let there = unsafe { std::slice::from_raw_parts_mut(address as *mut u8, own.len()) };
        let differs = there != own.as_slice();
        if differs {
            there.copy_from_slice(own);
        }
        differs
    }

    /// A part of the block, on the host.
    pub fn read(&self, offset: usize, bytes: usize) -> Result<Vec<u8>, String> {
        match self {
            Self::Host(own) => Ok(own[offset..offset + bytes].to_vec()),
            Self::Device(own) => {
                let mut target = vec![0_u8; bytes];
                if bytes > 0 {
                    let start = own.address + offset as u64;
                    // SAFETY: the target is as long as the bytes that are copied, which lie within the block.
                    let status =
                        unsafe { (own.driver.copy_down)(target.as_mut_ptr().cast::<c_void>(), start, bytes) };
                    checked(status, "a result cannot be read")?;
                }
                Ok(target)
            }
        }
    }
}
