//! The tensors that a call returned: whether they fit the task's outputs, and where they lie.

use super::{Call, Host};
use crate::python::{Failed, Object, Python};
use crate::results::{Found, Output};

/// A tensor that a call returned.
pub(super) struct Returned {
    own: Found,
    /// The same tensor as it is copied.
    pub copied: Found,
    /// What keeps both where they are.
    _alive: [Object; 2],
}

impl Host {
    /// The tensors that a call returned; none if it wrote all of its outputs in place.
    pub(super) fn returned_of(
        &self,
        python: Python,
        number: usize,
        call: &Call,
        result: &Object,
    ) -> Result<Option<Vec<Returned>>, Failed> {
        let in_place =
            result.is_none() && call.in_place.len() == self.outputs.len() && !self.outputs.is_empty();
        if in_place {
            return Ok(None);
        }
        match self.returned(result)? {
            Some(returned) => Ok(Some(returned)),
            None => {
                let argument = python.tuple(vec![python.integer(number as i64)?, result.again()?])?;
                Err(python.raise(&self.unfit, &argument))
            }
        }
    }

    /// The returned tensors in the order of the outputs; none if they do not fit.
    fn returned(&self, result: &Object) -> Result<Option<Vec<Returned>>, Failed> {
        let mut values: Vec<Option<Object>> = self.outputs.iter().map(|_| None).collect();
        let mut fits = false;
        for form in &self.results {
            fits = fits || form.harvest(result, &mut values)?;
        }
        let mut returned = Vec::new();
        for (output, value) in self.outputs.iter().zip(values) {
            let Some(value) = value.filter(|_| fits) else {
                return Ok(None);
            };
            let Some(tensor) = self.found(&value, output)? else {
                return Ok(None);
            };
            returned.push(tensor);
        }
        Ok(Some(returned))
    }

    /// Where a returned tensor lies; none if it does not fit. One that cannot be copied as it is is converted first.
    fn found(&self, value: &Object, output: &Output) -> Result<Option<Returned>, Failed> {
        let tensor = self.library.tensor(value, output)?;
        let Some(own) = self.library.layout(&tensor, output)? else {
            return Ok(None);
        };
        let copy = self.library.to_copy(&tensor, &own, output)?;
        if let Some(device) = self.device.as_ref().filter(|_| output.on_device) {
            device.synchronise()?;
        }
        Ok(self.library.layout(&copy, output)?.map(|copied| Returned {
            own,
            copied,
            _alive: [tensor, copy],
        }))
    }

    /// Fills the memory of returned tensors, so that a later call that is given the same memory does not find the result in
    /// it.
    pub(super) fn spoil_all(&self, returned: Option<&[Returned]>, poison: u8) -> Result<(), Failed> {
        for (output, tensor) in self.outputs.iter().zip(returned.unwrap_or_default()) {
            self.spoil(output, &tensor.own, poison)?;
            // Torch gives the memory of a copy to the next tensor of its size.
            if tensor.copied.layout.address != tensor.own.layout.address {
                self.spoil(output, &tensor.copied, poison)?;
            }
        }
        Ok(())
    }

    /// Fills the memory of a returned tensor if nothing else lies in between and it can be written to.
    fn spoil(&self, output: &Output, found: &Found, byte: u8) -> Result<(), Failed> {
        let layout = &found.layout;
        if found.is_read_only || !layout.is_dense() {
            return Ok(());
        }
        match &self.device {
            Some(device) if output.on_device => device.fill(layout.address, byte, layout.bytes())?,
            _ if output.on_device => {}
            // SAFETY: the tensor is alive and may be written to, and its elements fill these bytes.
            _ => unsafe { std::ptr::write_bytes(layout.address as *mut u8, byte, layout.bytes()) },
        }
        Ok(())
    }
}
