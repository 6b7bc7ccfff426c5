//! The text of diagnoses. The snapshots have no colours.

#![expect(clippy::unwrap_used, reason = "tests")]

use anstream::adapter::strip_str;
use gauntlet_device::Device;
use gauntlet_diagnose::{Measurement, Variant, changes, diagnose};
use gauntlet_problems::Schedule;
use gauntlet_problems::{Form, GroupedGemm, Operation};
use gauntlet_report::diagnoses;
use insta::assert_snapshot;

/// The four cases of the recorded tournament: M per group, N and K.
const CASES: [(&[usize], usize, usize); 4] = [
    (&[80, 176, 128, 72, 64, 248, 96, 160], 4096, 7168),
    (&[40, 76, 168, 72, 164, 148, 196, 160], 7168, 2048),
    (&[192, 320], 3072, 4096),
    (&[128, 384], 4096, 1536),
];

fn variant(name: Option<&str>, microseconds: [f64; 4]) -> Variant {
    let measured = |((m, n, k), time): ((&[usize], usize, usize), f64)| Measurement {
        problem: Operation::GroupedGemm(GroupedGemm::new(Form::Plain, m.iter().map(|&m| [m, n, k]))),
        seconds: time * 1e-6,
        spread: None,
    };
    let measurements: Vec<_> = CASES.into_iter().zip(microseconds).map(measured).collect();
    let device = Device::builtin("b200").unwrap();
    Variant {
        name: name.map(str::to_owned),
        diagnosis: diagnose(&measurements, &Schedule::baseline(), &device).unwrap(),
    }
}

fn plain(variants: &[Variant], width: usize) -> String {
    let changes = changes(variants, &Device::builtin("b200").unwrap()).unwrap();
    strip_str(&diagnoses(variants, &changes, width)).to_string()
}

fn recorded() -> Vec<Variant> {
    vec![
        variant(Some("one stage"), [373.0, 372.0, 173.0, 156.0]),
        variant(Some("three stages"), [488.0, 462.0, 249.0, 228.0]),
    ]
}

#[test]
fn the_recorded_times_at_100_columns() {
    assert_snapshot!(plain(&[variant(None, [373.0, 372.0, 173.0, 156.0])], 100));
}

#[test]
fn what_changed_between_variants() {
    let text = plain(&recorded(), 80);
    let (_, changed) = text.split_once("From one stage").unwrap();
    assert_snapshot!(format!("From one stage{changed}"));
}

#[test]
fn times_that_nothing_explains_are_called_so() {
    let text = plain(&[variant(None, [100.0, 300.0, 900.0, 2700.0])], 100);
    assert!(text.contains("✗ nothing fits"), "{text}");
}

#[test]
fn no_line_is_wider_than_the_terminal() {
    let variants = recorded();
    for width in 70..160 {
        let text = plain(&variants, width);
        let longest = text.lines().map(textwrap::core::display_width).max().unwrap();
        assert!(longest <= width, "{width}:\n{text}");
    }
}
