//! Records of CUPTI, made byte by byte as its headers lay them out.

use proptest::prelude::*;

use crate::activity::{Activity, Collected, MARK_BYTES, Record, TracedCall, Work};

/// The begin of the trace, in nanoseconds.
const SINCE: u64 = 1_795_720_055_642_553_748;

/// CUpti_ActivityKernel9, which begins as later ones do, without its name's address.
fn kernel(start: u64, end: u64, stream: u32) -> Vec<u8> {
    let mut bytes = vec![0xA5; 208];
    bytes[..4].copy_from_slice(&10_u32.to_ne_bytes());
    bytes[16..24].copy_from_slice(&start.to_ne_bytes());
    bytes[24..32].copy_from_slice(&end.to_ne_bytes());
    bytes[48..52].copy_from_slice(&stream.to_ne_bytes());
    bytes[104..112].copy_from_slice(&7_u64.to_ne_bytes());
    bytes
}

/// CUpti_ActivityMemcpy6 (kind 1) or CUpti_ActivityMemset4 (kind 2).
fn memory(kind: u32, bytes_moved: usize, start: u64, end: u64, stream: u32) -> Vec<u8> {
    let mut bytes = vec![0xA5; 88];
    bytes[..4].copy_from_slice(&kind.to_ne_bytes());
    bytes[8..16].copy_from_slice(&(bytes_moved as u64).to_ne_bytes());
    bytes[16..24].copy_from_slice(&start.to_ne_bytes());
    bytes[24..32].copy_from_slice(&end.to_ne_bytes());
    bytes[40..44].copy_from_slice(&stream.to_ne_bytes());
    bytes
}

/// A record of a kernel whose name lies at the address 7.
fn named(bytes: &[u8], name: &str) -> Result<Option<Record>, String> {
    Record::read(bytes, SINCE, |address| {
        assert_eq!(address, 7);
        name.to_owned()
    })
}

fn mark(start: u64, end: u64) -> Result<Option<Record>, String> {
    named(&memory(2, MARK_BYTES, SINCE + start, SINCE + end, 7), "")
}

fn call(records: Vec<Result<Option<Record>, String>>) -> Result<TracedCall, String> {
    let mut collected = Collected::new(SINCE);
    records.into_iter().for_each(|record| collected.add(record));
    collected.into_call()
}

fn activity(work: Work, start: i64, end: i64, stream: u32, name: &str) -> Activity {
    Activity {
        work,
        start,
        end,
        stream,
        name: name.to_owned(),
    }
}

#[test]
fn a_call_is_what_lies_around_its_marks_without_the_hold() {
    let hold = || named(&kernel(SINCE + 100, SINCE + 600_100, 7), "gauntlet_hold_back");
    let records = vec![
        hold(),
        named(&memory(1, 64, SINCE + 50, SINCE + 90, 13), ""),
        mark(600_110, 600_111),
        // Records come in any order.
        mark(618_111, 618_113),
        named(&kernel(SINCE + 600_200, SINCE + 601_200, 7), "_Z3addPf"),
        named(&memory(2, 16, SINCE + 610_111, SINCE + 610_211, 7), ""),
        named(&kernel(SINCE + 617_111, SINCE + 653_111, 13), "late"),
    ];
    let found = call(records).unwrap();
    let expected = TracedCall {
        window: 18_000,
        activities: vec![
            activity(Work::Copy, -600_061, -600_021, 13, ""),
            activity(Work::Kernel, 89, 1089, 7, "_Z3addPf"),
            activity(Work::Fill, 10_000, 10_100, 7, ""),
            activity(Work::Kernel, 17_000, 53_000, 13, "late"),
        ],
        left_out: 0,
    };
    assert_eq!(found, expected);
    // A kernel that takes the hold's name hides nothing: only one is the host's.
    let records = vec![
        named(&kernel(SINCE + 20, SINCE + 90, 13), "gauntlet_hold_back"),
        hold(),
        mark(600_110, 600_111),
        named(&kernel(SINCE + 600_200, SINCE + 600_300, 7), "gauntlet_hold_back"),
        mark(600_400, 600_401),
    ];
    let found = call(records).unwrap();
    let starts: Vec<i64> = found.activities.iter().map(|one| one.start).collect();
    assert_eq!(starts, [-600_091, 89]);
}

#[test]
fn without_two_marks_records_are_not_believed() {
    for marks in [0, 1, 3] {
        let records = (0..marks).map(|mark_number| mark(mark_number, mark_number + 1));
        let error = call(records.collect()).unwrap_err();
        assert!(error.contains(&format!("{marks} fills of 4112 bytes")), "{error}");
    }
}

#[test]
fn other_kinds_are_passed_over_and_what_cannot_be_is_refused() {
    let mut driver = kernel(SINCE, SINCE, 1);
    driver[0] = 4;
    assert_eq!(named(&driver, ""), Ok(None));
    // A name is read only where a layout that is not the expected one would have shown.
    let unread = |bytes: &[u8]| Record::read(bytes, SINCE, |_| panic!("the name is read"));
    let whole = kernel(SINCE, SINCE + 1, 1);
    assert!(
        unread(&kernel(SINCE + 2, SINCE + 1, 1))
            .unwrap_err()
            .contains("not possible")
    );
    assert!(unread(&kernel(0, 0, 1)).unwrap_err().contains("not possible"));
    assert!(
        unread(&kernel(SINCE, u64::MAX, 1))
            .unwrap_err()
            .contains("not possible")
    );
    assert!(unread(&whole[..111]).unwrap_err().contains("shorter"));
    assert!(unread(&[]).unwrap_err().contains("shorter"));
    let broken = call(vec![mark(1, 2), mark(3, 4), unread(&whole[..111])]);
    assert!(broken.unwrap_err().contains("shorter"));
}

#[test]
fn long_traces_and_names_are_cut_and_counted() {
    let name = "é".repeat(300);
    let mut records: Vec<_> = (0..2500)
        .map(|_| named(&kernel(SINCE + 10, SINCE + 11, 7), &name))
        .collect();
    // The end of the call comes after thousands of records, and still counts.
    records.insert(0, mark(1, 2));
    records.push(mark(20, 21));
    let found = call(records).unwrap();
    assert_eq!((found.window, found.left_out), (18, 501));
    assert_eq!(found.activities[0].name, "é".repeat(128));
}

proptest! {
    /// Bytes that are no records give an error or a record, and never reach beyond the bytes.
    #[test]
    fn any_bytes_can_be_read(bytes in proptest::collection::vec(any::<u8>(), 0..250), kind in 0_u32..16) {
        let mut bytes = bytes;
        if let Some(first) = bytes.first_chunk_mut() {
            *first = kind.to_ne_bytes();
        }
        if let Ok(Some(_)) = Record::read(&bytes, 0, |_| String::new()) {
            prop_assert!(bytes.len() >= 44 && [1, 2, 10].contains(&kind));
        }
    }

    /// Work that lies anywhere around the marks comes back at the same distance from the call's begin, in order.
    #[test]
    fn times_are_kept(starts in proptest::collection::vec((0_u64..2_000, 0_u64..500), 0..20)) {
        let records = starts.iter().map(|(start, length)| {
            named(&kernel(SINCE + start, SINCE + start + length, 3), "k")
        });
        let found = call(records.chain([mark(990, 1_000), mark(1_500, 1_510)]).collect()).unwrap();
        let mut expected: Vec<(i64, i64)> = starts
            .iter()
            .map(|(start, length)| (*start as i64 - 1_000, (start + length) as i64 - 1_000))
            .collect();
        expected.sort_unstable();
        let times: Vec<(i64, i64)> = found.activities.iter().map(|one| (one.start, one.end)).collect();
        prop_assert_eq!(times, expected);
        prop_assert_eq!(found.window, 500);
    }
}
