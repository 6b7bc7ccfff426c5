//! The lines between a `step` and its answer.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::is_false;
#[cfg(doc)]
use super::{Request, Sample};

/// A line that a held worker sends between `step` and its answer. For each call these lines go to the worker (→) and come
/// from it (←), in this order:
///
/// ```text
/// ← heating, heated   two lines: a load, if one is asked for and the operands are not sealed
/// ← inputs, sealed    the worker waits
/// →                   a blank line: the coordinator has stopped the worker, written the operands, and started its clock
/// ← heating, heated   two lines: a load, if the operands are sealed; the worker waits
/// → key               sixteen hexadecimal digits, which open them
/// ← placed            only where tensors lie on a GPU; the worker waits
/// →                   a blank line: the coordinator has restarted the clock of the call
/// ← over              only where tensors lie on a GPU: the clock of the call stops
/// ← call, outputs     where tensors lie on the host, the clock of the call stops; the worker waits
/// →                   a blank line: the coordinator has read the outputs if the call was drawn
/// ```
///
/// A line that comes while the worker should wait, or in another order, ends the worker. In place of any line of its own the
/// worker may send its reply with a failure, which ends the request.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Turn {
    /// The worker waits for the operands of the call.
    Ready {
        /// Where the inputs of the call lie, by name.
        inputs: BTreeMap<String, Place>,
        /// Whether the operands have to be written sealed, since the load comes after them. Only if a load is asked for and
        /// tensors lie on a GPU.
        #[serde(default, skip_serializing_if = "is_false")]
        sealed: bool,
    },
    /// The load before a call begins. The worker goes on at once.
    Heating {
        /// The seconds that the load is to last, as the request says.
        heating: f64,
    },
    /// The load before a call is over, and the device is idle. The worker waits only if the operands are sealed: for the key.
    Heated {
        /// How many calls the load was.
        heated: usize,
        /// Seconds in which calls ran; on a GPU, until all of them had ended.
        busy: f64,
    },
    /// The call is over, and its outputs lie in the worker's memory. The worker waits until it may overwrite them.
    Done {
        /// Seconds that the whole call took, as in [`Sample::call`].
        call: f64,
        /// Where the outputs lie, in the order of the case.
        outputs: Vec<Place>,
    },
    /// The operands have been copied to the GPU, and the device is idle. The worker waits until it may call.
    Placed {
        /// The seconds that this took, for the reader of a log: the coordinator uses its own clock.
        placed: f64,
    },
    /// The call on the GPU is over. The worker goes on at once, and copies the outputs to its memory.
    Over {
        /// Seconds that the whole call took, for the reader of a log: the coordinator uses those of the next line.
        over: f64,
        /// Seconds that the host took for the call before it waited for the device, where the call is clocked on the device.
        #[serde(default)]
        host: f64,
    },
}

/// Where a tensor lies in a worker's memory: its address, followed by its strides in bytes unless it is row-major. If
/// there are fewer strides than dimensions, the last dimensions lie in one piece.
pub type Place = Vec<i64>;
