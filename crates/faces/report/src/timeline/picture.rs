//! A timeline as a self-contained SVG picture.

use gauntlet_simulate::{Activity, Span, Timeline, Track};
use maud::{Markup, PreEscaped, html};

use super::grain::{Block, PARTS, Piece, pieces};
use super::group;
use super::scale::Scale;
use crate::duration::duration;
use crate::foreign::visible;
use crate::html::at;
use crate::text::fitted;

/// Both themes; the reader's system selects one.
const STYLE: &str = include_str!("picture.css");

/// Width of the picture in its own units; a viewer scales it.
const WIDTH: f64 = 1200.0;

/// The end of the names and the start of the axis.
const LEFT: f64 = 150.0;

/// Free space at the right.
const RIGHT: f64 = 20.0;

/// The top of the first tracks.
const TOP: f64 = 96.0;

/// Height of an axis above its tracks.
const AXIS: f64 = 24.0;

/// Height between two axes.
const ZOOM: f64 = 58.0;

/// Processors that begin after this share of a call get an axis of their own.
const LATE: f64 = 0.25;

/// Height of a track with the gap below it.
const ROW: f64 = 20.0;

/// Height of a span.
const BAR: f64 = 16.0;

/// Height of a processor's heading.
const HEADING: f64 = 24.0;

/// The number of letters of a track's name that fit; about 6.5 units each.
const NAME_LETTERS: usize = 20;

/// Processors whose tracks exceed this total are counted and not drawn.
const MAX_TRACKS: usize = 60;

/// The approximate number of ticks.
const TICKS: usize = 10;

/// Spans narrower than this many units are merged, at first.
const FINEST_GRAIN: f64 = 2.0;

/// Pictures above this many bytes are drawn again with a coarser grain.
const LARGEST: usize = 450_000;

/// Nothing is drawn narrower than this.
const THINNEST: f64 = 0.6;

/// Spans wider than this have room for the tile's number.
const ROOM_FOR_TILE: f64 = 34.0;

/// Draws a timeline under a title; `subtitle` states the conditions.
pub fn timeline_picture(timeline: &Timeline, title: &str, subtitle: &str) -> String {
    let (title, subtitle) = (&*visible(title), &*visible(subtitle));
    let mut grain = FINEST_GRAIN;
    loop {
        let picture = drawn(timeline, title, subtitle, grain);
        // When the grain reaches the width of the axis, every track is one block, and a coarser grain changes nothing.
        if picture.len() <= LARGEST || grain > WIDTH {
            return picture;
        }
        grain *= 2.0;
    }
}

fn drawn(timeline: &Timeline, title: &str, subtitle: &str, grain: f64) -> String {
    let panels = panels(timeline);
    let mut y = TOP;
    let mut body = Vec::new();
    for (index, panel) in panels.iter().enumerate() {
        if let Some(above) = index.checked_sub(1).and_then(|index| panels.get(index)) {
            body.push(wedge(&above.scale, &panel.scale, y));
            y += ZOOM;
        }
        let (rows, bottom) = rows(&panel.tracks, y, &panel.scale, grain);
        body.push(axis(&panel.scale, y, bottom));
        body.push(rows);
        y = bottom;
    }
    let left_out = timeline.tracks.len() - shown(timeline).len();
    let height = y + if left_out > 0 { 34.0 } else { 14.0 };
    let picture = html! {
        svg xmlns="http://www.w3.org/2000/svg" viewBox={ "0 0 " (at(WIDTH)) " " (at(height)) }
            width=(at(WIDTH)) height=(at(height)) role="img" aria-labelledby="title description" {
            title id="title" { (title) }
            desc id="description" { (description(timeline)) }
            style { (PreEscaped(STYLE)) }
            rect.page width="100%" height="100%" {}
            text.title x="16" y="26" { (title) }
            text.quiet x="16" y="45" { (subtitle) }
            (legend(timeline, 64.0))
            @for one in body { (one) }
            @if left_out > 0 {
                text.quiet x="16" y=(at(y + 22.0)) { "and " (left_out) " more tracks" }
            }
        }
    };
    picture.into_string()
}

/// The tracks that fit; the tracks of a processor are never split.
fn shown(timeline: &Timeline) -> &[Track] {
    let tracks = &timeline.tracks;
    let processors = tracks.chunk_by(|one, other| one.processor == other.processor);
    let ends = processors.scan(0, |end, tracks| {
        *end += tracks.len();
        Some(*end)
    });
    let last = ends.take_while(|end| *end <= MAX_TRACKS).last();
    &tracks[..last.unwrap_or(MAX_TRACKS.min(tracks.len()))]
}

/// Tracks that share an axis.
struct Panel<'t> {
    tracks: Vec<&'t Track>,
    scale: Scale,
}

/// The whole call; if processors begin late, also the time from their beginning, below it.
fn panels(timeline: &Timeline) -> Vec<Panel<'_>> {
    let scale = |from| Scale {
        from,
        to: timeline.seconds,
        left: LEFT,
        right: WIDTH - RIGHT,
    };
    let (call, processors): (Vec<_>, Vec<_>) = shown(timeline)
        .iter()
        .partition(|track| track.processor.is_none());
    let starts = processors
        .iter()
        .filter_map(|track| track.spans.first())
        .map(|span| span.start);
    let start = starts.fold(timeline.seconds, f64::min);
    let late = start > LATE * timeline.seconds && start < timeline.seconds;
    if !late || call.is_empty() {
        let tracks = call.into_iter().chain(processors).collect();
        return vec![Panel {
            tracks,
            scale: scale(0.0),
        }];
    }
    vec![
        Panel {
            tracks: call,
            scale: scale(0.0),
        },
        Panel {
            tracks: processors,
            scale: scale(start),
        },
    ]
}

/// Connects the lower of two axes with the part of the upper axis that it shows.
fn wedge(above: &Scale, below: &Scale, y: f64) -> Markup {
    let (from, to) = (above.x(below.from), above.x(below.to));
    let bottom = y + ZOOM - AXIS;
    let corners = [(from, y), (to, y), (below.right, bottom), (below.left, bottom)];
    let points: Vec<_> = corners
        .iter()
        .map(|(x, y)| format!("{},{}", at(*x), at(*y)))
        .collect();
    html! {
        polygon.zoom points=(points.join(" ")) {}
    }
}

/// A description of the picture for readers who cannot see it.
fn description(timeline: &Timeline) -> String {
    let tracks = timeline.tracks.iter().map(|track| {
        let busy = Activity::ALL
            .into_iter()
            .map(|activity| (activity, time(track, activity)))
            .filter(|(_, seconds)| *seconds > 0.0)
            .map(|(activity, seconds)| format!("{} {}", activity.name(), duration(seconds)));
        format!(
            "{}, {}: {}",
            group(track),
            track.name,
            busy.collect::<Vec<_>>().join(", ")
        )
    });
    let tracks: Vec<_> = tracks.take(MAX_TRACKS).collect();
    format!(
        "{} from start to end. {}.",
        duration(timeline.seconds),
        tracks.join("; ")
    )
}

fn time(track: &Track, activity: Activity) -> f64 {
    let spans = track.spans.iter().filter(|span| span.activity == activity);
    spans.map(|span| span.end - span.start).sum()
}

/// The colours of the activities that occur.
fn legend(timeline: &Timeline, y: f64) -> Markup {
    let occurs = |activity: &Activity| {
        let mut spans = timeline.tracks.iter().flat_map(|track| &track.spans);
        spans.any(|span| span.activity == *activity)
    };
    let mut x = 16.0;
    let entries: Vec<_> = Activity::ALL
        .into_iter()
        .filter(occurs)
        .map(|activity| {
            let left = x;
            x += 30.0 + 7.0 * activity.name().len() as f64;
            (activity, left)
        })
        .collect();
    html! {
        @for (activity, x) in entries {
            rect class=(class(activity)) x=(at(x)) y=(at(y - 9.0)) width="11" height="11" rx="2" {}
            text.small x=(at(x + 16.0)) y=(at(y)) { (activity.name()) }
        }
    }
}

fn axis(scale: &Scale, top: f64, bottom: f64) -> Markup {
    html! {
        @for (tick, label) in scale.ticks(TICKS) {
            @let x = at(scale.x(tick));
            line.tick x1=(x) x2=(x) y1=(at(top - 6.0)) y2=(at(bottom)) {}
            text.scale x=(x) y=(at(top - 10.0)) { (label) }
        }
    }
}

/// The tracks under the headings of their processors, and their bottom coordinate.
fn rows(tracks: &[&Track], top: f64, scale: &Scale, grain: f64) -> (Markup, f64) {
    let mut y = top;
    let mut drawn = Vec::new();
    for of_processor in tracks.chunk_by(|one, other| one.processor == other.processor) {
        let heading = of_processor.first().map(|track| group(track)).unwrap_or_default();
        drawn.push(html! { text.heading x="16" y=(at(y + 16.0)) { (heading) } });
        y += HEADING;
        for track in of_processor {
            drawn.push(row(track, y, scale, grain));
            y += ROW;
        }
    }
    (html! { @for one in drawn { (one) } }, y)
}

fn row(track: &Track, y: f64, scale: &Scale, grain: f64) -> Markup {
    let seconds = grain * (scale.to - scale.from) / (scale.right - scale.left);
    let label = fitted(&track.name, NAME_LETTERS);
    html! {
        text.small x="24" y=(at(y + 12.0)) { (label.trim_end()) }
        line.rail x1=(at(scale.left)) x2=(at(scale.right)) y1=(at(y + BAR / 2.0)) y2=(at(y + BAR / 2.0)) {}
        @for piece in pieces(&track.spans, seconds) {
            @match piece {
                Piece::Span(span) => { (bar(span, y, scale)) }
                Piece::Block(block) => { (bands(&block, y, scale)) }
            }
        }
    }
}

/// One span; its description appears on hovering.
fn bar(span: &Span, y: f64, scale: &Scale) -> Markup {
    let (x, width) = place(span.start, span.end, scale);
    let waits = span.activity == Activity::Wait;
    html! {
        rect class=(class(span.activity)) x=(at(x)) y=(at(y)) width=(at(width)) height=(at(BAR)) {
            title { (words(span)) }
        }
        @if let Some(tile) = span.tile && !waits && width > ROOM_FOR_TILE {
            text.inside x=(at(x + width / 2.0)) y=(at(y + 11.5)) { (tile) }
        }
    }
}

/// Many merged spans: bands with heights in proportion to their shares of the time.
fn bands(block: &Block, y: f64, scale: &Scale) -> Markup {
    let (x, width) = place(block.start, block.end, scale);
    let part = BAR / PARTS as f64;
    let mut bottom = y + BAR;
    let bands: Vec<_> = block
        .heights
        .iter()
        .rev()
        .map(|(activity, parts)| {
            let height = *parts as f64 * part;
            bottom -= height;
            (*activity, bottom, height)
        })
        .collect();
    html! {
        @for (activity, top, height) in bands {
            rect class=(class(activity)) x=(at(x)) y=(at(top)) width=(at(width)) height=(at(height)) {}
        }
    }
}

fn place(start: f64, end: f64, scale: &Scale) -> (f64, f64) {
    let x = scale.x(start);
    (x, (scale.x(end) - x).max(THINNEST))
}

fn words(span: &Span) -> String {
    let mut words = span.activity.name().to_owned();
    if let Some(tile) = span.tile {
        words += &format!(", tile {tile}");
    }
    if let Some(step) = span.step {
        words += &format!(", step {step}");
    }
    words
        + &format!(
            ": {} from {}",
            duration(span.end - span.start),
            duration(span.start)
        )
}

/// The class of its colour in the style sheet.
fn class(activity: Activity) -> String {
    format!("a{}", activity as usize)
}
