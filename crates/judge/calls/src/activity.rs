//! What a GPU did in a call, from records of its activity.
//!
//! A host marks the begin and the end of a call on the call's stream by a fill of [`MARK_BYTES`] bytes each, at the places
//! where it records events when it clocks a call. The marks are activities themselves, so work is compared with them by
//! one clock, that of the device.

use crate::hold;

/// How long the fills are that mark the begin and the end of a call. Other fills rarely have this length.
pub const MARK_BYTES: usize = 4112;

/// How many records of a call are kept.
const MAX_RECORDS: usize = 2000;

/// Marks are kept beyond that, as many as tell that there are too many.
const MAX_MARKS: usize = 16;

/// How many bytes of a kernel's name are kept.
const MAX_NAME: usize = 256;

/// An hour in nanoseconds.
const HOUR: u64 = 3_600_000_000_000;

/// How far the clocks of the host and the device may lie apart, in nanoseconds. CUPTI brings the device's times to the host's
/// clock with far smaller errors.
const SKEW: u64 = 10_000_000_000;

/// What a device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Work {
    /// It ran a kernel.
    Kernel,
    /// It copied memory.
    Copy,
    /// It filled memory with a value.
    Fill,
}

/// A record of CUPTI.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    work: Work,
    /// Nanoseconds of CUPTI's clock.
    start: u64,
    end: u64,
    stream: u32,
    /// Bytes copied or filled.
    bytes: u64,
    /// A kernel's name, as the compiler writes it.
    name: String,
}

/// Offsets in bytes of what is read of a record. They are the same in every form of these records from CUDA 9 to 13.5:
/// CUpti_ActivityKernel4 to 13, CUpti_ActivityMemcpy to 7 and CUpti_ActivityMemset to 5 in `cupti_activity.h` and
/// `cupti_activity_deprecated.h`, as a C compiler lays them out.
mod offsets {
    pub const START: usize = 16;
    pub const END: usize = 24;
    /// Of copies and fills.
    pub const BYTES: usize = 8;
    pub const STREAM: usize = 40;
    /// Of kernels.
    pub const KERNEL_STREAM: usize = 48;
    pub const KERNEL_NAME: usize = 104;
}

/// CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET and CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL.
pub(crate) const KINDS: [u32; 3] = [1, 2, 10];

impl Record {
    /// Reads a record at the beginning of these bytes, which may go on beyond it; none for a record of a kind that was not
    /// asked for. `name` reads the string at an address, and is called only if the record's times are possible ones, which
    /// lie in the hour after `since` on CUPTI's clock: a layout that is not the expected one would not have them.
    ///
    /// # Errors
    /// If the bytes end before the record does, or its times are not possible.
    pub fn read(bytes: &[u8], since: u64, name: impl FnOnce(u64) -> String) -> Result<Option<Self>, String> {
        let [copy, fill, kernel] = KINDS;
        let work = match u32_at(bytes, 0)? {
            kind if kind == copy => Work::Copy,
            kind if kind == fill => Work::Fill,
            kind if kind == kernel => Work::Kernel,
            _ => return Ok(None),
        };
        let (start, end) = (u64_at(bytes, offsets::START)?, u64_at(bytes, offsets::END)?);
        let possible = since.saturating_sub(SKEW)..=since.saturating_add(HOUR);
        if !possible.contains(&start) || !possible.contains(&end) || end < start {
            return Err(format!("a record from {start} to {end} ns is not possible"));
        }
        let is_kernel = work == Work::Kernel;
        Ok(Some(Self {
            work,
            start,
            end,
            stream: match is_kernel {
                true => u32_at(bytes, offsets::KERNEL_STREAM)?,
                false => u32_at(bytes, offsets::STREAM)?,
            },
            bytes: if is_kernel {
                0
            } else {
                u64_at(bytes, offsets::BYTES)?
            },
            name: match is_kernel {
                true => shortened(name(u64_at(bytes, offsets::KERNEL_NAME)?)),
                false => String::new(),
            },
        }))
    }

    fn is_mark(&self) -> bool {
        self.work == Work::Fill && self.bytes == MARK_BYTES as u64
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> Result<u32, String> {
    let found = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    found.copied().map(u32::from_ne_bytes).ok_or_else(too_short)
}

fn u64_at(bytes: &[u8], offset: usize) -> Result<u64, String> {
    let found = bytes.get(offset..).and_then(|rest| rest.first_chunk());
    found.copied().map(u64::from_ne_bytes).ok_or_else(too_short)
}

fn too_short() -> String {
    "a record is shorter than its kind's".to_owned()
}

fn shortened(mut name: String) -> String {
    let most = (0..=MAX_NAME.min(name.len()))
        .rev()
        .find(|end| name.is_char_boundary(*end));
    name.truncate(most.unwrap_or(0));
    name
}

/// The records since the last call, as they come.
#[derive(Debug)]
pub struct Collected {
    /// When they began, in nanoseconds of CUPTI's clock.
    pub since: u64,
    records: Vec<Record>,
    left_out: usize,
    /// Why a record could not be read.
    fault: Option<String>,
}

impl Collected {
    /// No records since then.
    pub const fn new(since: u64) -> Self {
        Self {
            since,
            records: Vec::new(),
            left_out: 0,
            fault: None,
        }
    }

    /// Adds a record, or why it could not be read. Beyond a limit records are only counted.
    pub fn add(&mut self, read: Result<Option<Record>, String>) {
        match read {
            Err(fault) => self.fault = Some(fault),
            Ok(None) => {}
            Ok(Some(record)) => {
                let most = MAX_RECORDS + if record.is_mark() { MAX_MARKS } else { 0 };
                if self.records.len() < most {
                    self.records.push(record);
                } else {
                    self.left_out += 1;
                }
            }
        }
    }

    /// The call between the two marks, with everything else that was recorded but the hold.
    ///
    /// # Errors
    /// If a record could not be read, or there are not two marks: then records of this version of CUPTI mean something else,
    /// its records got lost, or the kernel fills as many bytes as a mark.
    pub fn into_call(self) -> Result<TracedCall, String> {
        if let Some(fault) = self.fault {
            return Err(format!("CUPTI's records cannot be read: {fault}"));
        }
        let (mut marks, mut rest): (Vec<Record>, Vec<Record>) =
            self.records.into_iter().partition(Record::is_mark);
        marks.sort_by_key(|mark| mark.start);
        let [begin, end] = marks.as_slice() else {
            return Err(format!(
                "CUPTI's records cannot be read: {} fills of {MARK_BYTES} bytes, where the begin and the end of the call are one each",
                marks.len()
            ));
        };
        let (begin, end) = (begin.end, end.start);
        rest.sort_by_key(|record| (record.start, record.end));
        // Only one hold is the host's. It ends right before the call begins.
        let held = rest.iter().rposition(|record| {
            record.work == Work::Kernel && record.name == hold::ENTRY && record.end <= begin
        });
        if let Some(held) = held {
            rest.remove(held);
        }
        let activity = |record: Record| Activity {
            work: record.work,
            start: since(record.start, begin),
            end: since(record.end, begin),
            stream: record.stream,
            name: record.name,
        };
        Ok(TracedCall {
            window: end.saturating_sub(begin),
            activities: rest.into_iter().map(activity).collect(),
            left_out: self.left_out,
        })
    }
}

/// A time less another, both of the same clock.
fn since(time: u64, begin: u64) -> i64 {
    time.wrapping_sub(begin) as i64
}

/// What a device did in a call and right before it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TracedCall {
    /// Nanoseconds from the begin of the call on its stream to its end there.
    pub window: u64,
    /// In the order of their starts.
    pub activities: Vec<Activity>,
    /// How many activities there were besides.
    pub left_out: usize,
}

/// One thing that a device did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Activity {
    /// What it was.
    pub work: Work,
    /// Nanoseconds since the begin of the call; negative before it.
    pub start: i64,
    /// The same for its end.
    pub end: i64,
    /// The number of the stream.
    pub stream: u32,
    /// A kernel's name, as the compiler writes it; empty for other work.
    pub name: String,
}
