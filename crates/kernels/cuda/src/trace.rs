//! The records of a traced kernel: which role of which block does what, and when.
//!
//! In a traced build one thread of each role writes records to a part of a buffer in device memory; their times are those
//! of `%globaltimer` (PTX ISA: nanoseconds, the same for all multiprocessors), which may tick more coarsely than it
//! counts. The other half is `kernels/trace.cuh`.

use std::collections::BTreeMap;

use bytemuck::{Pod, Zeroable};
use thiserror::Error;

/// One activity of one role of one block, as device code writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Pod, Zeroable)]
#[repr(C)]
pub struct Record {
    /// When it began, in nanoseconds.
    pub begin: u64,
    /// When it ended, in nanoseconds.
    pub end: u64,
    /// The block.
    pub block: u32,
    /// The tile's place in the order of tiles; [`NONE`] if the activity belongs to no tile.
    pub tile: u32,
    /// The step of the tile; [`NONE`] if the activity belongs to no step.
    pub step: u32,
    /// The multiprocessor that the block is on (`%smid`).
    pub processor: u16,
    /// The role, an index of [`ROLES`].
    pub role: u8,
    /// The activity, an index of [`ACTIVITIES`].
    pub what: u8,
}

/// No tile, or no step.
pub const NONE: u32 = u32::MAX;

/// The roles of a block, by their number in records: all warps where they have no roles, else the loading warps, the
/// multiplying warp groups, and warps that only store.
pub const ROLES: [&str; 9] = [
    "all warps",
    "loader",
    "multiplier 1",
    "multiplier 2",
    "multiplier 3",
    "multiplier 4",
    "weight loader",
    "token loader",
    "storing warps",
];

/// The kind of activity in a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Activity {
    /// Finding the group, making descriptors.
    Lookup,
    /// Copying operands.
    Load,
    /// Converting operands.
    Convert,
    /// Multiplying.
    Multiply,
    /// Storing results.
    Store,
    /// Adding up parts of split sums.
    Reduce,
    /// Waiting.
    Wait,
    /// Starting the kernel.
    Launch,
}

/// Activities by their number in records.
pub const ACTIVITIES: [Activity; 8] = [
    Activity::Lookup,
    Activity::Load,
    Activity::Convert,
    Activity::Multiply,
    Activity::Store,
    Activity::Reduce,
    Activity::Wait,
    Activity::Launch,
];

/// The activities of the roles of all blocks in a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// From the first record's begin to the last one's end.
    pub nanoseconds: u64,
    /// The roles, those of a multiprocessor together.
    pub roles: Vec<Role>,
}

/// The activities of one role of one block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// The multiprocessor that the block is on.
    pub processor: u16,
    /// The block.
    pub block: u32,
    /// The role, one of [`ROLES`].
    pub name: &'static str,
    /// Its activities, without overlap, in order of time.
    pub spans: Vec<TracedSpan>,
}

/// One activity of a role.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TracedSpan {
    /// The activity.
    pub activity: Activity,
    /// Nanoseconds since the first record's begin.
    pub begin: u64,
    /// Nanoseconds since the first record's begin.
    pub end: u64,
    /// The tile's place in the order of tiles, if the activity is for one.
    pub tile: Option<u32>,
    /// The step of the tile, if the activity is for one.
    pub step: Option<u32>,
}

/// Why records do not form a valid trace.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum TraceError {
    /// There are no records.
    #[error("the kernel wrote no record; was it built with -DTRACE?")]
    Empty,
    /// More were written than there was room for.
    #[error("{lost} records found no room beside the {kept} that did; trace a smaller problem")]
    Overflow {
        /// Records that threads wanted to write.
        lost: u32,
        /// Records that fit.
        kept: usize,
    },
    /// An invalid record.
    #[error("record {index} of block {block} {why}; host and device code do not agree on its layout")]
    Malformed {
        /// Its place in the buffer.
        index: usize,
        /// Its block.
        block: u32,
        /// The error in the record.
        why: &'static str,
    },
    /// Two activities of one role at the same time.
    #[error(
        "{role} of block {block} does two things at once {nanoseconds} ns after the start; a role writes one record after \
         the other"
    )]
    Overlap {
        /// The block.
        block: u32,
        /// The role.
        role: &'static str,
        /// When the second began.
        nanoseconds: u64,
    },
}

impl Trace {
    /// Reads the records of a buffer. All-zero entries were not written; `lost` is the number of records that did not
    /// fit.
    ///
    /// # Errors
    /// If there are no records, some are lost, or they contradict one another.
    pub fn new(buffer: &[Record], lost: u32) -> Result<Self, TraceError> {
        let written = || {
            let places = buffer.iter().enumerate();
            places.filter(|(_, record)| **record != Record::zeroed())
        };
        if lost > 0 {
            let kept = written().count();
            return Err(TraceError::Overflow { lost, kept });
        }
        let start = written()
            .map(|(_, record)| record.begin)
            .min()
            .ok_or(TraceError::Empty)?;
        let end = written().map(|(_, record)| record.end).max().unwrap_or(start);
        // Roles of a multiprocessor stand together.
        let mut roles: BTreeMap<(u16, u32, u8), Vec<Record>> = BTreeMap::new();
        for (index, record) in written() {
            check(index, record)?;
            let place = (record.processor, record.block, record.role);
            roles.entry(place).or_default().push(*record);
        }
        let roles = roles
            .into_iter()
            .map(|((processor, block, role), own)| Role::new(processor, block, role, own, start));
        Ok(Self {
            nanoseconds: end - start,
            roles: roles.collect::<Result<_, _>>()?,
        })
    }
}

fn check(index: usize, record: &Record) -> Result<(), TraceError> {
    let wrong = |why| {
        Err(TraceError::Malformed {
            index,
            block: record.block,
            why,
        })
    };
    if record.end < record.begin {
        return wrong("ends before it begins");
    }
    if usize::from(record.role) >= ROLES.len() {
        return wrong("is of a role that there is not");
    }
    if usize::from(record.what) >= ACTIVITIES.len() {
        return wrong("is of an activity that there is not");
    }
    Ok(())
}

impl Role {
    /// A role's spans, from records whose roles and activities have been checked.
    fn new(
        processor: u16,
        block: u32,
        role: u8,
        mut records: Vec<Record>,
        start: u64,
    ) -> Result<Self, TraceError> {
        let name = ROLES[usize::from(role)];
        records.sort_by_key(|record| (record.begin, record.end));
        if let Some(pair) = records.windows(2).find(|pair| pair[1].begin < pair[0].end) {
            return Err(TraceError::Overlap {
                block,
                role: name,
                nanoseconds: pair[1].begin - start,
            });
        }
        let some = |number: u32| (number != NONE).then_some(number);
        let spans = records.iter().map(|record| TracedSpan {
            activity: ACTIVITIES[usize::from(record.what)],
            begin: record.begin - start,
            end: record.end - start,
            tile: some(record.tile),
            step: some(record.step),
        });
        Ok(Self {
            processor,
            block,
            name,
            spans: spans.collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(block: u32, role: u8, what: u8, begin: u64, end: u64) -> Record {
        Record {
            begin,
            end,
            block,
            tile: 7,
            step: NONE,
            processor: 100 - block as u16,
            role,
            what,
        }
    }

    #[test]
    fn a_record_has_no_gaps_and_the_size_that_device_code_counts_on() {
        assert_eq!(size_of::<Record>(), 32);
    }

    #[test]
    fn device_code_has_as_many_roles_and_the_same_activities() {
        let names = |list: &str| {
            let text = include_str!("../kernels/trace.cuh").split(list).nth(1).unwrap();
            let text = text.split('}').next().unwrap();
            text.split(',')
                .map(|name| name.trim().to_owned())
                .collect::<Vec<_>>()
        };
        let activities = ACTIVITIES.map(|activity| format!("{activity:?}"));
        assert_eq!(names("enum class Activity : u32 {"), activities);
        let roles = names("enum class Role : u32 {");
        assert_eq!(roles.iter().position(|role| role == "Count"), Some(ROLES.len()));
        for (role, name) in [
            ("Loader", "loader"),
            ("Multiplier1", "multiplier 1"),
            ("TokenLoader", "token loader"),
            ("Storer", "storing warps"),
        ] {
            let place = roles.iter().position(|one| one == role).unwrap();
            assert_eq!(ROLES[place], name);
        }
    }

    #[test]
    fn records_in_any_order_are_sorted_by_role_and_time() {
        let buffer = [
            record(1, 1, 1, 1_000_000_064, 1_000_000_128),
            record(0, 2, 3, 1_000_000_032, 1_000_000_512),
            record(1, 1, 6, 1_000_000_000, 1_000_000_064),
            Record::zeroed(),
        ];
        let trace = Trace::new(&buffer, 0).unwrap();
        assert_eq!(trace.nanoseconds, 512);
        let names: Vec<_> = trace.roles.iter().map(|role| (role.name, role.block)).collect();
        assert_eq!(names, [("loader", 1), ("multiplier 1", 0)]);
        let loader = &trace.roles[0];
        assert_eq!(loader.processor, 99);
        let activities: Vec<_> = loader.spans.iter().map(|span| span.activity).collect();
        assert_eq!(activities, [Activity::Wait, Activity::Load]);
        assert_eq!((loader.spans[1].begin, loader.spans[1].end), (64, 128));
        assert_eq!((loader.spans[1].tile, loader.spans[1].step), (Some(7), None));
    }

    #[test]
    fn what_is_lost_or_contradicts_itself_is_no_trace() {
        let good = record(0, 0, 0, 10, 20);
        assert_eq!(Trace::new(&[Record::zeroed()], 0), Err(TraceError::Empty));
        assert_eq!(
            Trace::new(&[Record::zeroed(), good], 3),
            Err(TraceError::Overflow { lost: 3, kept: 1 })
        );
        for bad in [
            record(0, 0, 0, 20, 10),
            record(0, ROLES.len() as u8, 0, 10, 20),
            record(0, 0, 8, 10, 20),
        ] {
            assert!(matches!(
                Trace::new(&[good, bad], 0),
                Err(TraceError::Malformed { index: 1, .. })
            ));
        }
        let overlapping = record(0, 0, 1, 19, 30);
        assert_eq!(
            Trace::new(&[overlapping, good], 0),
            Err(TraceError::Overlap {
                block: 0,
                role: "all warps",
                nanoseconds: 9
            })
        );
    }
}
