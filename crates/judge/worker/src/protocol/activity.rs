//! What a device did in a call.

use gauntlet_calls::activity::{self, TracedCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a device did in a call, and in the short time right before it in which nothing was asked of the kernel.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CallActivity {
    /// Nanoseconds on the device from the call's begin to its end, as events on the call's stream would see them.
    pub window: u64,
    /// In the order of their starts, without what the host does for the call.
    pub activities: Vec<Activity>,
    /// How many activities there were besides: a worker may list some thousand only.
    #[serde(default, skip_serializing_if = "is_none")]
    pub left_out: usize,
}

/// One thing that a device did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Activity {
    /// What it was.
    pub work: Work,
    /// Nanoseconds from the call's begin to its start; negative before it.
    pub start: i64,
    /// The same to its end.
    pub end: i64,
    /// The number of the stream.
    pub stream: u32,
    /// A kernel's name, as the compiler writes it; empty for other work.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
}

/// What a device does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Work {
    /// It runs a kernel.
    Kernel,
    /// It copies memory.
    Copy,
    /// It fills memory with a value.
    Fill,
}

fn is_none(number: &usize) -> bool {
    *number == 0
}

impl CallActivity {
    /// Whether its times are possible: nothing ends before it starts.
    pub fn is_possible(&self) -> bool {
        self.activities.iter().all(|one| one.start <= one.end)
    }
}

impl From<TracedCall> for CallActivity {
    fn from(call: TracedCall) -> Self {
        let activities = call.activities.into_iter().map(|one| Activity {
            work: match one.work {
                activity::Work::Kernel => Work::Kernel,
                activity::Work::Copy => Work::Copy,
                activity::Work::Fill => Work::Fill,
            },
            start: one.start,
            end: one.end,
            stream: one.stream,
            name: one.name,
        });
        Self {
            window: call.window,
            activities: activities.collect(),
            left_out: call.left_out,
        }
    }
}
