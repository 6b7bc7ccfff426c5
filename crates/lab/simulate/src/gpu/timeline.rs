//! Converts the engine's records to a timeline.

use std::collections::BTreeMap;

use super::ideal::Ideal;
use super::plan::Plan;
use super::record::Row;
use super::state::Processor;
use crate::host::HostTerm;
use crate::timeline::{Activity, Span, Timeline, Track};

/// One track for the host, and the tracks of one multiprocessor of each kind.
pub(super) fn of(plan: &Plan, host: HostTerm) -> Timeline {
    let ideal = Ideal::default();
    let outcome = plan.run(ideal, true);
    let (host, launch) = (plan.host(host), plan.launch());
    let (ramp, prologue) = plan.before(ideal);
    let start = host + launch + ramp + prologue;
    let mut call = vec![span(Activity::Host, 0.0, host)];
    call.push(span(Activity::Launch, host, host + launch + ramp));
    call.push(span(Activity::Convert, host + launch + ramp, start));
    call.retain(|span| span.end > span.start);
    let mut tracks = vec![Track {
        processor: None,
        alike: 1,
        name: "host".to_owned(),
        spans: call,
    }];
    for processor in &outcome.processors {
        tracks.extend(of_processor(processor, plan, start));
    }
    Timeline {
        seconds: start + plan.seconds(outcome.end, ideal) + plan.after(ideal),
        tracks,
    }
}

fn of_processor(processor: &Processor, plan: &Plan, start: f64) -> Vec<Track> {
    let mut rows: BTreeMap<Row, Vec<Span>> = BTreeMap::new();
    for noted in processor.recorded.spans() {
        let seconds = |cycles: f64| start + plan.seconds(cycles, Ideal::default());
        rows.entry(noted.row).or_default().push(Span {
            activity: noted.activity,
            start: seconds(noted.start),
            end: seconds(noted.end),
            tile: Some(noted.tile),
            step: noted.step,
        });
    }
    rows.into_iter()
        .map(|(row, spans)| Track {
            processor: Some(processor.cluster * plan.bundle.processors()),
            alike: processor.alike * plan.bundle.processors(),
            name: name(row, processor, plan),
            spans: apart(spans),
        })
        .collect()
}

/// Sorts spans by time and removes overlaps.
fn apart(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_by(|left, right| left.start.total_cmp(&right.start));
    let mut end = 0.0;
    spans.retain_mut(|span| {
        span.start = span.start.max(end);
        let remains = span.end > span.start;
        if remains {
            end = span.end;
        }
        remains
    });
    spans
}

fn name(row: Row, processor: &Processor, plan: &Plan) -> String {
    let block = |block: usize| match processor.blocks.len() {
        1 => String::new(),
        _ => format!("block {} ", block + 1),
    };
    match row {
        Row::Warps(place, warps) => {
            let role = processor.blocks[place].warps[warps].role;
            let text = &plan.code.roles[role];
            let group = processor.blocks[place].warps[..warps]
                .iter()
                .filter(|other| other.role == role)
                .count();
            if text.groups == 1 {
                format!("{}{}", block(place), text.name)
            } else {
                format!("{}{} {}", block(place), text.name, group + 1)
            }
        }
        Row::Slot(place, slot) => format!("{}copies, slot {}", block(place), slot + 1),
        Row::MatrixUnit => "matrix unit".to_owned(),
        Row::Results => "results".to_owned(),
    }
}

fn span(activity: Activity, start: f64, end: f64) -> Span {
    Span {
        activity,
        start,
        end,
        tile: None,
        step: None,
    }
}
