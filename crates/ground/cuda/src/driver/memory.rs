//! Device memory.

use std::ptr;

use cudarc::driver::sys::{self, CUdeviceptr};

use super::context::Context;
use super::error::{DriverError, call};
use super::stream::Stream;

/// Device memory, freed when dropped. Its initial contents are undefined.
#[derive(Debug)]
pub struct DeviceMemory {
    context: Context,
    address: CUdeviceptr,
    bytes: usize,
}

impl DeviceMemory {
    /// Allocates memory; zero bytes need no allocation.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(context: &Context, bytes: usize) -> Result<Self, DriverError> {
        context.make_current()?;
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: a context is current.
            unsafe { call!(cuMemAlloc_v2(&raw mut address, bytes)) }
                .map_err(|error| error.about(format_args!("{bytes} bytes of device memory")))?;
        }
        Ok(Self {
            context: context.clone(),
            address,
            bytes,
        })
    }

    /// Allocates memory and copies these bytes to it.
    ///
    /// # Errors
    /// If there is not enough memory, or the copy fails.
    pub fn from_bytes(context: &Context, bytes: &[u8]) -> Result<Self, DriverError> {
        let memory = Self::new(context, bytes.len())?;
        memory.write(0, bytes)?;
        memory.arrive()?;
        Ok(memory)
    }

    /// Allocates memory and copies each piece to its offset; the rest is zero.
    ///
    /// # Errors
    /// If there is not enough memory, or a copy fails.
    pub fn assembled<B: AsRef<[u8]>>(
        context: &Context,
        bytes: usize,
        pieces: &[(usize, B)],
    ) -> Result<Self, DriverError> {
        let memory = Self::new(context, bytes)?;
        if bytes > 0 {
            // SAFETY: the memory has this many bytes, and its context is current. The copies follow in the same stream.
            unsafe { call!(cuMemsetD8_v2(memory.address, 0, bytes)) }?;
        }
        for (begin, piece) in pieces {
            memory.write(*begin, piece.as_ref())?;
        }
        memory.arrive()?;
        Ok(memory)
    }

    /// Makes a copy of the same size on the device.
    ///
    /// # Errors
    /// If there is not enough memory, or the copy fails.
    pub fn copied(&self) -> Result<Self, DriverError> {
        let copy = Self::new(&self.context, self.bytes)?;
        if self.bytes > 0 {
            // SAFETY: both buffers have this many bytes, and their context is current.
            unsafe { call!(cuMemcpyDtoD_v2(copy.address, self.address, self.bytes)) }?;
        }
        copy.arrive()?;
        Ok(copy)
    }

    /// The address, a multiple of 256; 0 if the size is 0.
    pub fn address(&self) -> u64 {
        self.address
    }

    /// Its size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Copies from the host to this offset; the copy is complete only after [`arrive`](Self::arrive).
    fn write(&self, begin: usize, bytes: &[u8]) -> Result<(), DriverError> {
        assert!(
            begin
                .checked_add(bytes.len())
                .is_some_and(|end| end <= self.bytes),
            "a copy fits its destination"
        );
        if bytes.is_empty() {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: at least this many bytes were allocated from this offset on.
        unsafe {
            call!(cuMemcpyHtoD_v2(
                self.address + begin as u64,
                bytes.as_ptr().cast(),
                bytes.len()
            ))
        }
    }

    /// Copies from the host to this offset and waits until the copy is complete.
    ///
    /// # Errors
    /// If the copy fails.
    ///
    /// # Panics
    /// If the bytes do not fit.
    pub fn overwrite(&self, begin: usize, bytes: &[u8]) -> Result<(), DriverError> {
        self.write(begin, bytes)?;
        self.arrive()
    }

    /// Copies the first `bytes` of another memory to this offset, in stream order.
    ///
    /// # Errors
    /// If the driver reports an error.
    ///
    /// # Panics
    /// If there are not as many, or they do not fit.
    pub fn receive(
        &self,
        begin: usize,
        from: &Self,
        bytes: usize,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        assert!(
            bytes <= from.bytes && begin.checked_add(bytes).is_some_and(|end| end <= self.bytes),
            "a copy fits its source and its destination"
        );
        if bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: at least this many bytes were allocated from this offset on, and as many at the source.
        unsafe {
            call!(cuMemcpyDtoDAsync_v2(
                self.address + begin as u64,
                from.address,
                bytes,
                stream.handle()
            ))
        }
    }

    /// Copies `bytes` from this offset to the host, after all work of the stream.
    ///
    /// # Errors
    /// If the copy or the work before it fails.
    ///
    /// # Panics
    /// If the range does not lie in the memory.
    pub fn read_part(&self, begin: usize, bytes: &mut [u8], stream: &Stream) -> Result<(), DriverError> {
        assert!(
            begin
                .checked_add(bytes.len())
                .is_some_and(|end| end <= self.bytes),
            "the range lies in the memory"
        );
        stream.synchronise()?;
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the range lies in this memory, and the buffer on the host has its length.
        unsafe {
            call!(cuMemcpyDtoH_v2(
                bytes.as_mut_ptr().cast(),
                self.address + begin as u64,
                bytes.len()
            ))
        }
    }

    /// Waits until copies are complete. A copy from pageable memory returns when all of it is staged, and a copy on the
    /// device returns immediately (CUDA driver API, "API synchronization behavior"); non-blocking streams do not wait
    /// for either.
    fn arrive(&self) -> Result<(), DriverError> {
        self.context.make_current()?;
        // SAFETY: null denotes the default stream, in which the copies run.
        unsafe { call!(cuStreamSynchronize(ptr::null_mut())) }
    }

    /// Copies all of it to the host, after all work of the stream.
    ///
    /// # Errors
    /// If the copy or the work before it fails.
    pub fn read(&self, stream: &Stream) -> Result<Vec<u8>, DriverError> {
        let mut bytes = vec![0; self.bytes];
        stream.synchronise()?;
        if self.bytes > 0 {
            // SAFETY: both buffers have this many bytes.
            unsafe {
                call!(cuMemcpyDtoH_v2(
                    bytes.as_mut_ptr().cast(),
                    self.address,
                    self.bytes
                ))
            }?;
        }
        Ok(bytes)
    }

    /// Fills all of it with a byte, in stream order.
    ///
    /// # Errors
    /// If the driver reports an error.
    pub fn fill(&self, byte: u8, stream: &Stream) -> Result<(), DriverError> {
        if self.bytes == 0 {
            return Ok(());
        }
        self.context.make_current()?;
        // SAFETY: the memory has this many bytes, and its context is current.
        unsafe { call!(cuMemsetD8Async(self.address, byte, self.bytes, stream.handle())) }
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        if self.bytes > 0 && self.context.make_current().is_ok() {
            // SAFETY: allocated once, freed once; the driver waits for work that uses it.
            let _ = unsafe { sys::cuMemFree_v2(self.address) };
        }
    }
}

/// Device memory of one call, allocated and freed in stream order, as in a framework that allocates its buffers in
/// every call.
#[derive(Debug)]
pub struct CallMemory<'a> {
    stream: &'a Stream,
    address: CUdeviceptr,
}

impl<'a> CallMemory<'a> {
    /// Allocates memory; zero bytes need no allocation.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn new(stream: &'a Stream, bytes: usize) -> Result<Self, DriverError> {
        let mut address = 0;
        if bytes > 0 {
            // SAFETY: the stream is alive.
            unsafe { call!(cuMemAllocAsync(&raw mut address, bytes, stream.handle())) }
                .map_err(|error| error.about(format_args!("{bytes} bytes of device memory")))?;
        }
        Ok(Self { stream, address })
    }

    /// Allocates memory and copies these bytes to it. Pageable memory is staged before the call returns, so the bytes
    /// need not outlive it (CUDA driver API, "API synchronization behavior").
    ///
    /// # Errors
    /// If there is not enough memory, or the copy fails.
    pub fn from_bytes(stream: &'a Stream, bytes: &[u8]) -> Result<Self, DriverError> {
        let memory = Self::new(stream, bytes.len())?;
        if !bytes.is_empty() {
            // SAFETY: this many bytes were allocated.
            unsafe {
                call!(cuMemcpyHtoDAsync_v2(
                    memory.address,
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    stream.handle()
                ))
            }?;
        }
        Ok(memory)
    }

    /// Allocates memory and fills it with zero.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn zeroed(stream: &'a Stream, bytes: usize) -> Result<Self, DriverError> {
        let memory = Self::new(stream, bytes)?;
        if bytes > 0 {
            // SAFETY: this many bytes were allocated.
            unsafe { call!(cuMemsetD8Async(memory.address, 0, bytes, stream.handle())) }?;
        }
        Ok(memory)
    }

    /// The address, a multiple of 256; 0 if the size is 0.
    pub fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for CallMemory<'_> {
    fn drop(&mut self) {
        if self.address != 0 {
            // SAFETY: allocated once from a stream's pool, freed once, after the stream's work.
            let _ = unsafe { sys::cuMemFreeAsync(self.address, self.stream.handle()) };
        }
    }
}
