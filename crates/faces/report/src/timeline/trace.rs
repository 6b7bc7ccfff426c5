//! The trace event format of Perfetto and Chrome (Google, "Trace Event Format"): a complete event for each span,
//! processors as processes, roles and units as threads.

use gauntlet_simulate::{Activity, Span, Timeline, Track};
use serde::Serialize;

use super::group;

/// A trace; its JSON is the contents of the file.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    display_time_unit: &'static str,
    trace_events: Vec<Event>,
    other_data: Origin,
}

/// An event of a trace.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Origin {
    title: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
enum Event {
    /// Names and places of processes and threads.
    Metadata {
        ph: &'static str,
        name: &'static str,
        pid: usize,
        tid: usize,
        args: Label,
    },
    /// A span, with times in microseconds.
    Complete {
        ph: &'static str,
        name: &'static str,
        cat: &'static str,
        pid: usize,
        tid: usize,
        ts: f64,
        dur: f64,
        args: Work,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Label {
    Name(String),
    SortIndex(usize),
}

/// Details of a span.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Work {
    #[serde(skip_serializing_if = "Option::is_none")]
    tile: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    step: Option<usize>,
}

/// A timeline as a trace under a title. Times are whole nanoseconds, the resolution of viewers; spans that round to
/// zero are left out.
pub fn trace(timeline: &Timeline, title: &str) -> Trace {
    let events = timeline
        .tracks
        .iter()
        .enumerate()
        .flat_map(|(index, track)| track_events(index + 1, track));
    Trace {
        display_time_unit: "ns",
        trace_events: events.collect(),
        other_data: Origin {
            title: title.to_owned(),
        },
    }
}

fn track_events(tid: usize, track: &Track) -> Vec<Event> {
    // Viewers hide or merge process 0.
    let pid = track.processor.map_or(1, |processor| processor + 2);
    let metadata = |name, args| Event::Metadata {
        ph: "M",
        name,
        pid,
        tid,
        args,
    };
    let mut events = vec![
        metadata("process_name", Label::Name(group(track))),
        metadata("process_sort_index", Label::SortIndex(pid)),
        metadata("thread_name", Label::Name(track.name.clone())),
        metadata("thread_sort_index", Label::SortIndex(tid)),
    ];
    events.extend(track.spans.iter().filter_map(|span| complete(pid, tid, span)));
    events
}

fn complete(pid: usize, tid: usize, span: &Span) -> Option<Event> {
    // Both ends are rounded, so that adjacent spans stay adjacent and nothing overlaps.
    let (start, end) = (nanoseconds(span.start), nanoseconds(span.end));
    (end > start).then(|| Event::Complete {
        ph: "X",
        name: span.activity.name(),
        cat: category(span.activity),
        pid,
        tid,
        ts: start / 1e3,
        dur: (end - start) / 1e3,
        args: Work {
            tile: span.tile,
            step: span.step,
        },
    })
}

fn nanoseconds(seconds: f64) -> f64 {
    (seconds * 1e9).round()
}

/// The category that viewers filter by.
fn category(activity: Activity) -> &'static str {
    match activity {
        Activity::Host | Activity::Launch | Activity::Lookup => "start",
        Activity::Load | Activity::Store => "memory",
        Activity::Convert | Activity::Multiply | Activity::Softmax | Activity::Reduce => "work",
        Activity::Wait => "wait",
    }
}
