//! Explanations and timelines made by hand.

use gauntlet_device::Arch;
use gauntlet_problems::{Form, GroupedGemm, Operation};
use gauntlet_problems::{Order, Roles, Schedule};
use gauntlet_report::Explanation;
use gauntlet_simulate::{Activity, Bound, Breakdown, Counts, Part, PartTime, Span, Timeline, Track};

/// An explanation with the roofline and the parts in microseconds.
pub fn explanation(case: &str, roofline: f64, parts: &[(Part, f64)]) -> Explanation {
    let time = |part| {
        let given = parts.iter().find(|(known, _)| *known == part);
        PartTime {
            part,
            seconds: given.map_or(0.0, |(_, time)| time * 1e-6),
        }
    };
    let breakdown = Breakdown {
        roofline: roofline * 1e-6,
        parts: Part::ALL.map(time).into(),
    };
    let seconds = breakdown.total();
    let groups = [80, 176, 64].map(|m| [m, 4096, 7168]);
    Explanation {
        case: case.to_owned(),
        operation: Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups)),
        schedule: Schedule::baseline(),
        device: "Example GPU".to_owned(),
        arch: Arch::Sm100a,
        seconds,
        low: seconds * 0.8,
        high: seconds * 1.25,
        basis: "bar from published models".to_owned(),
        bound: Bound::Memory,
        breakdown,
        counts: Counts {
            tiles: 352,
            waves: 3,
            steps: 28,
            useful_rows: 0.727,
            padding: 1.375,
        },
        processors: 148,
        blocks: 1,
        buffer_bytes: 36_864,
    }
}

/// Most of the time is on the host, and one part is too small for a line.
pub fn on_the_host() -> Explanation {
    explanation(
        "group-gemm/case-1",
        18.9,
        &[
            (Part::Host, 95.0),
            (Part::Launch, 2.2),
            (Part::Ramp, 1.4),
            (Part::Padding, 3.1),
            (Part::Idle, 2.0),
            (Part::FillAndDrain, 9.6),
            (Part::Copy, 7.7),
            (Part::Barriers, 0.05),
            (Part::Epilogue, 4.4),
            (Part::Tail, 0.9),
        ],
    )
}

/// The same without the host's work, with more stages and persistent blocks: one part is slower.
pub fn in_the_kernel() -> Explanation {
    let mut after = explanation(
        "group-gemm/case-1",
        18.9,
        &[
            (Part::Launch, 2.2),
            (Part::Ramp, 1.4),
            (Part::Padding, 3.1),
            (Part::Idle, 3.5),
            (Part::FillAndDrain, 1.6),
            (Part::Copy, 0.8),
            (Part::Epilogue, 1.4),
            (Part::Tail, 0.9),
        ],
    );
    after.schedule.stages = 4;
    after.schedule.roles = Roles::Specialised;
    after.schedule.order = Order::Static;
    after
}

/// Four cases of a suite.
pub fn suite() -> Vec<Explanation> {
    [(1, 20.0), (2, 11.0), (3, 2.5), (4, 1.6)]
        .map(|(case, roofline)| {
            let parts = [
                (Part::Launch, 2.2),
                (Part::Idle, 0.3 * roofline),
                (Part::FillAndDrain, 4.0),
            ];
            explanation(&format!("group-gemm/case-{case}"), roofline, &parts)
        })
        .into()
}

/// A call with work on the host and two kinds of processors; each tile has `steps` steps in a pipeline.
pub fn timeline(processors: usize, tiles: usize, steps: usize) -> Timeline {
    let (start, step, store) = (6e-6, 0.12e-6, 0.6e-6);
    let mut tracks = vec![Track {
        processor: None,
        alike: 1,
        name: "host".to_owned(),
        spans: vec![
            span(Activity::Host, 0.0, 4e-6, None, None),
            span(Activity::Launch, 4e-6, start, None, None),
        ],
    }];
    let mut seconds = start;
    for processor in 0..processors {
        let [mut loads, mut products, mut stores] = [Vec::new(), Vec::new(), Vec::new()];
        let mut now = start + processor as f64 * 0.3e-6;
        for tile in 0..tiles {
            loads.push(span(Activity::Lookup, now, now + 0.2e-6, Some(tile), None));
            now += 0.2e-6;
            products.push(span(Activity::Wait, now - 0.2e-6, now + step, Some(tile), None));
            for index in 0..steps {
                let from = now + step * index as f64;
                loads.push(span(
                    Activity::Load,
                    from,
                    from + 0.8 * step,
                    Some(tile),
                    Some(index),
                ));
                let (wait, end) = (from + 1.2 * step, from + 2.0 * step);
                products.push(span(Activity::Wait, from + step, wait, Some(tile), Some(index)));
                products.push(span(Activity::Multiply, wait, end, Some(tile), Some(index)));
            }
            now += step * (steps + 1) as f64;
            stores.push(span(Activity::Store, now, now + store, Some(tile), None));
        }
        seconds = seconds.max(now + store);
        let named = [("load", loads), ("multiply", products), ("epilogue", stores)];
        tracks.extend(named.map(|(name, spans)| Track {
            processor: Some(processor),
            alike: if processor == 0 { 131 } else { 1 },
            name: name.to_owned(),
            spans,
        }));
    }
    Timeline { seconds, tracks }
}

fn span(activity: Activity, start: f64, end: f64, tile: Option<usize>, step: Option<usize>) -> Span {
    Span {
        activity,
        start,
        end,
        tile,
        step,
    }
}
