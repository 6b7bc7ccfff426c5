//! The results that are kept of a request, and the files that they are written to.

use std::fs::File;
use std::io::Write;

use super::returned::Returned;
use super::{Call, Host};
use crate::memory::{Block, Layout};
use crate::python::{Failed, Object, Python};
use crate::results::Output;

/// The results of the last request.
#[derive(Default)]
pub(super) struct Kept {
    /// Their calls, in order.
    pub calls: Vec<usize>,
    /// On the host and on the device; the results of each call lie one after the other.
    pub blocks: [Option<Block>; 2],
}

impl Host {
    /// Makes room for the results of these calls. Memory is used again if it suffices.
    pub(super) fn keep(&mut self, calls: Vec<usize>) -> Result<(), Failed> {
        let rows = calls.len();
        self.kept.calls = calls;
        for (place, on_device) in [false, true].into_iter().enumerate() {
            let needed = rows * self.row(on_device);
            let has = self.kept.blocks[place].as_ref().map_or(0, Block::bytes);
            if needed > has {
                // Freed first, so that the old and the new block need not fit together.
                self.kept.blocks[place] = None;
                self.kept.blocks[place] = Some(Block::new(self.driver(on_device), needed)?);
            }
        }
        Ok(())
    }

    /// Bytes of the outputs of one call on the host or the device.
    pub(super) fn row(&self, on_device: bool) -> usize {
        let outputs = self.outputs.iter().filter(|output| output.on_device == on_device);
        outputs.map(Output::bytes).sum()
    }

    /// The place of a call's result among those that are kept.
    pub(super) fn row_of(&self, number: usize) -> Result<usize, Failed> {
        let row = self.kept.calls.iter().position(|kept| *kept == number);
        row.ok_or_else(|| {
            let kept = self.kept.calls.len();
            Failed::Because(format!(
                "call {number} has no result: {kept} results were kept of the last request"
            ))
        })
    }

    /// The offset of an output among the results of its call.
    pub(super) fn offset(&self, index: usize) -> usize {
        let on_device = self.outputs[index].on_device;
        let before = self.outputs[..index].iter();
        before
            .filter(|output| output.on_device == on_device)
            .map(Output::bytes)
            .sum()
    }

    /// Copies the result of a call away.
    pub(super) fn take(
        &mut self,
        number: usize,
        call: &Call,
        returned: Option<&[Returned]>,
    ) -> Result<(), Failed> {
        let row = self.row_of(number)?;
        for (index, layout) in self.layouts(call, returned).iter().enumerate() {
            self.copy(row, index, layout)?;
        }
        Ok(())
    }

    pub(super) fn copy(&mut self, row: usize, index: usize, layout: &Layout) -> Result<(), Failed> {
        let on_device = self.outputs[index].on_device;
        let start = row * self.row(on_device) + self.offset(index);
        let bytes = layout.bytes();
        match &mut self.kept.blocks[usize::from(on_device)] {
            Some(Block::Host(block)) => {
                // SAFETY: the tensor is alive, and its library gave its address, shape and strides.
                unsafe { layout.gather(&mut block[start..start + bytes]) };
                Ok(())
            }
            // SAFETY: as above, and the tensor is in row-major order.
            Some(block) => Ok(unsafe { block.take(start, layout.address, bytes) }?),
            None if bytes == 0 => Ok(()),
            None => Err(Failed::Because("there is no room for the result".to_owned())),
        }
    }

    /// Takes a tuple of the path as bytes and the number of the call.
    pub fn write(&mut self, python: Python, request: &Object) -> Result<Object, Failed> {
        use std::os::unix::ffi::OsStringExt;

        let path = std::path::PathBuf::from(std::ffi::OsString::from_vec(request.item(0)?.bytes()?));
        let number = request.item(1)?.number()?;
        let row = self.row_of(usize::try_from(number).unwrap_or(usize::MAX))?;
        let failed = |error: std::io::Error| format!("{} cannot be written: {error}", path.display());
        let mut file = File::create(&path).map_err(failed)?;
        file.write_all(&self.header).map_err(failed)?;
        let mut bytes = 0;
        for (index, output) in self.outputs.iter().enumerate() {
            let start = row * self.row(output.on_device) + self.offset(index);
            if let Some(block) = &self.kept.blocks[usize::from(output.on_device)] {
                let elements = block.read(start, output.bytes())?;
                file.write_all(&elements).map_err(failed)?;
                bytes += elements.len();
            }
        }
        python.integer(bytes as i64)
    }
}
