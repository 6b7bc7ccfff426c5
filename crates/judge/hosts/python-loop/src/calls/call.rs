//! One call of a request, as Python gives it.

use crate::python::{Failed, Object};

/// One call of a request.
pub(super) struct Call {
    pub arguments: Object,
    pub keywords: Option<Object>,
    pub file: usize,
    /// Addresses of the inputs.
    pub inputs: Vec<u64>,
    /// Addresses of outputs that are written in place; empty if there are none.
    pub in_place: Vec<u64>,
    /// The line that says where the inputs lie, for a coordinator that writes them.
    pub ready: Vec<u8>,
}

impl Call {
    /// From a tuple; see [`Host::run`](super::Host::run).
    pub fn new(call: &Object) -> Result<Self, Failed> {
        let keywords = call.item(1)?;
        Ok(Self {
            arguments: call.item(0)?,
            keywords: (!keywords.is_none()).then_some(keywords),
            file: call.item(2)?.number()? as usize,
            inputs: addresses(&call.item(3)?)?,
            in_place: addresses(&call.item(4)?)?,
            ready: call.item(5)?.bytes()?,
        })
    }
}

fn addresses(tuple: &Object) -> Result<Vec<u64>, Failed> {
    tuple.items()?.iter().map(Object::address).collect()
}
