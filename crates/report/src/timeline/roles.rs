//! What each role does with its time, in a table.

use std::collections::BTreeMap;

use gauntlet_model::{Activity, Timeline, Track};

use super::{ACTIVITIES, name};
use crate::duration::duration;
use crate::table::{Column, table};
use crate::text::usable;

/// All tracks of one name.
#[derive(Default)]
struct Role {
    /// How many, those not shown apart included.
    tracks: usize,
    /// Seconds of all tracks together, by the activity's place.
    seconds: [f64; ACTIVITIES.len()],
    /// When each track begins with what is neither a launch nor waiting.
    starts: Vec<f64>,
    /// What is left of the call when each track has ended.
    tails: Vec<f64>,
}

/// The share of the call that each role spends on each activity, when it starts to work, and how long before the call's
/// end it has ended: medians over blocks, and the longest.
pub fn timeline_roles(timeline: &Timeline, width: usize) -> String {
    let mut roles: Vec<(&str, Role)> = Vec::new();
    let mut places = BTreeMap::new();
    for track in timeline.tracks.iter().filter(|track| !track.spans.is_empty()) {
        let place = *places.entry(role_name(track)).or_insert_with_key(|name| {
            roles.push((name, Role::default()));
            roles.len() - 1
        });
        roles[place].1.add(track, timeline.seconds);
    }
    let shown: Vec<usize> = (0..ACTIVITIES.len())
        .filter(|&activity| roles.iter().any(|(_, role)| role.seconds[activity] > 0.0))
        .collect();
    let mut head = vec![("role", Column::Whole), ("tracks", Column::Figures)];
    head.extend(
        shown
            .iter()
            .map(|&activity| (name(ACTIVITIES[activity]), Column::Figures)),
    );
    head.extend(["nothing", "starts at", "tail", "longest"].map(|name| (name, Column::Figures)));
    let rows = roles
        .iter()
        .map(|(name, role)| role.row(name, &shown, timeline.seconds));
    table(&head, rows.collect(), 2, usable(width))
}

/// Without the block that it is of.
fn role_name(track: &Track) -> &str {
    match track.name.strip_prefix("block ") {
        Some(rest) => {
            rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ',' || letter == ' ')
        }
        None => &track.name,
    }
}

impl Role {
    fn add(&mut self, track: &Track, end: f64) {
        let alike = track.alike.max(1);
        self.tracks += alike;
        for span in &track.spans {
            if let Some(place) = ACTIVITIES.iter().position(|activity| *activity == span.activity) {
                self.seconds[place] += (span.end - span.start) * alike as f64;
            }
        }
        let idle = |activity| matches!(activity, Activity::Launch | Activity::Wait);
        let first = track.spans.iter().find(|span| !idle(span.activity));
        let last = track.spans.last().map_or(0.0, |span| span.end);
        self.starts
            .extend(std::iter::repeat_n(first.map_or(last, |span| span.start), alike));
        self.tails
            .extend(std::iter::repeat_n((end - last).max(0.0), alike));
    }

    fn row(&self, name: &str, shown: &[usize], end: f64) -> Vec<String> {
        let whole = end * self.tracks as f64;
        let share = |seconds: f64| match seconds / whole {
            share if share >= 0.0005 => format!("{:.1} %", share * 100.0),
            _ => String::new(),
        };
        let busy: f64 = self.seconds.iter().sum();
        let mut row = vec![name.to_owned(), self.tracks.to_string()];
        row.extend(shown.iter().map(|&activity| share(self.seconds[activity])));
        row.push(share(whole - busy));
        let longest = self.tails.iter().copied().fold(0.0, f64::max);
        row.extend([median(&self.starts), median(&self.tails), longest].map(duration));
        row
    }
}

/// The upper one; of none nothing.
fn median(values: &[f64]) -> f64 {
    let mut values = values.to_vec();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use gauntlet_model::Span;

    use super::*;

    fn track(name: &str, alike: usize, spans: &[(Activity, f64, f64)]) -> Track {
        let span = |&(activity, start, end): &(Activity, f64, f64)| Span {
            activity,
            start: start * 1e-6,
            end: end * 1e-6,
            tile: None,
            step: None,
        };
        Track {
            processor: Some(0),
            alike,
            name: name.to_owned(),
            spans: spans.iter().map(span).collect(),
        }
    }

    #[test]
    fn tracks_of_one_role_are_one_row_whichever_block_they_are_of() {
        use Activity::{Launch, Load, Multiply, Wait};
        let timeline = Timeline {
            seconds: 10e-6,
            tracks: vec![
                track("block 0, loader", 1, &[(Launch, 0.0, 1.0), (Load, 1.0, 10.0)]),
                track(
                    "block 0, multiplier 1",
                    1,
                    &[(Wait, 1.0, 2.0), (Multiply, 2.0, 10.0)],
                ),
                track(
                    "block 12, multiplier 1",
                    3,
                    &[(Wait, 1.0, 4.0), (Multiply, 4.0, 8.0)],
                ),
            ],
        };
        let text = strip_str(&timeline_roles(&timeline, 120)).to_string();
        let rows: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        let head = "role tracks launch load multiply wait nothing starts at tail longest";
        assert_eq!(rows[0].join(" "), head, "{text}");
        assert_eq!(
            rows[2].join(" "),
            "loader 1 10.0 % 90.0 % 1.00 µs 0 ns 0 ns",
            "{text}"
        );
        // One track multiplies for 8 of 10, three for 4.
        assert_eq!(
            rows[3].join(" "),
            "multiplier 1 4 50.0 % 25.0 % 25.0 % 4.00 µs 2.00 µs 2.00 µs",
            "{text}"
        );
    }

    #[test]
    fn nothing_makes_an_empty_table() {
        let timeline = Timeline {
            seconds: 0.0,
            tracks: Vec::new(),
        };
        assert!(timeline_roles(&timeline, 80).contains("role"));
    }
}
