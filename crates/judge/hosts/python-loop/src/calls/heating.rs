//! The load before a call, which the coordinator asks for: the kernel is called back to back on other operands.

use std::time::Instant;

use gauntlet_calls::{Turns, back_to_back};

use super::{Call, Host, gone};
use crate::driver::Handle;
use crate::python::{Failed, Object};

/// The load before a call.
pub(super) struct Heat {
    seconds: f64,
    /// A call on other operands. It is repeated on what the call before has left of them.
    call: Call,
    /// Whether it comes after the operands of the call in earnest, which are sealed until it is over. Copying them to a GPU
    /// takes long, and a load before that would be over too early.
    pub is_late: bool,
}

impl Heat {
    /// From a tuple of nanoseconds, a call, and whether the load comes late.
    pub fn new(heat: &Object) -> Result<Self, Failed> {
        Ok(Self {
            seconds: heat.item(0)?.number()? as f64 * 1e-9,
            call: Call::new(&heat.item(1)?)?,
            is_late: heat.item(2)?.number()? != 0,
        })
    }
}

impl Host {
    /// Loads the device, and tells the coordinator when that begins and ends. Nothing of it is kept.
    pub(super) fn heat(
        &mut self,
        turns: &mut Turns,
        kernel: &Object,
        heat: &Heat,
        poison: u8,
        stream: Handle,
    ) -> Result<(), Failed> {
        let call = &heat.call;
        self.place(call)?;
        self.poison_for(call, poison)?;
        self.settle(false)?;
        let begun = Instant::now();
        let clock = || begun.elapsed().as_secs_f64();
        let apply = || kernel.apply(&call.arguments, call.keywords.as_ref()).map(drop);
        turns.heating(heat.seconds).map_err(gone)?;
        let (calls, busy) = match &self.device {
            Some(device) => device.load(stream, heat.seconds, clock, apply)?,
            None => back_to_back(heat.seconds, clock, apply)?,
        };
        turns.heated(calls, busy).map_err(gone)?;
        self.fill_outputs(call, poison, false)?;
        self.restore(call);
        Ok(())
    }
}
