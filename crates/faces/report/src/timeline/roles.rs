//! The use of each role's time, in a table.

use gauntlet_simulate::{Activity, Timeline, Track};

use crate::duration::duration;
use crate::table::{Column, columns, table};
use crate::text::usable;

/// All tracks with the same name.
struct Role<'t> {
    name: &'t str,
    tracks: Vec<&'t Track>,
}

/// Smaller shares get no line.
const MIN_SHARE: f64 = 0.0005;

/// The columns of the table.
const COLUMNS: [(&str, Column); 6] = columns!(
    Whole "role"; Figures "tracks"; Words "share of the call"; Figures "starts at", "tail", "longest"
);

/// The share of the call that each role spends on each activity, greatest first; when it first does its main activity;
/// and how long before the call's end it ends: medians over blocks, and the longest.
pub fn timeline_roles(timeline: &Timeline, width: usize) -> String {
    let roles = roles(timeline);
    let rows = roles.iter().map(|role| role.row(timeline.seconds));
    // Figures stay with their activity and their unit.
    table(&COLUMNS, rows.collect(), 2, usable(width)).replace('\u{a0}', " ")
}

/// The roles in the order of their first appearance; roles without spans are left out.
fn roles(timeline: &Timeline) -> Vec<Role<'_>> {
    let mut roles: Vec<Role<'_>> = Vec::new();
    for track in timeline.tracks.iter().filter(|track| !track.spans.is_empty()) {
        let name = role_name(track);
        match roles.iter_mut().find(|role| role.name == name) {
            Some(role) => role.tracks.push(track),
            None => roles.push(Role {
                name,
                tracks: vec![track],
            }),
        }
    }
    roles
}

/// The name without the block: the model puts the block first, if there are several, and measurements put it last.
fn role_name(track: &Track) -> &str {
    match track.name.strip_prefix("block ") {
        Some(rest) => rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == ' '),
        None => track.name.split(", block ").next().unwrap_or(&track.name),
    }
}

impl Role<'_> {
    /// Seconds over all tracks, including those not shown individually.
    fn seconds(&self, activity: Activity) -> f64 {
        let of_track = |track: &&Track| {
            let spans = track.spans.iter().filter(|span| span.activity == activity);
            spans.map(|span| span.end - span.start).sum::<f64>() * track.alike.max(1) as f64
        };
        self.tracks.iter().map(of_track).sum()
    }

    /// Its main activity; waiting and launching do not count as activities.
    fn occupation(&self) -> Option<Activity> {
        Activity::ALL
            .into_iter()
            .filter(|activity| !matches!(activity, Activity::Launch | Activity::Wait))
            .max_by(|one, other| self.seconds(*one).total_cmp(&self.seconds(*other)))
    }

    fn row(&self, end: f64) -> Vec<String> {
        let tracks: usize = self.tracks.iter().map(|track| track.alike.max(1)).sum();
        let occupation = self.occupation();
        let starts = self.of_each(|track| {
            let mut spans = track.spans.iter();
            spans
                .find(|span| Some(span.activity) == occupation)
                .map(|span| span.start)
        });
        let tails = self.of_each(|track| track.spans.last().map(|span| (end - span.end).max(0.0)));
        let longest = tails.iter().copied().fold(0.0, f64::max);
        let mut row = vec![
            self.name.to_owned(),
            tracks.to_string(),
            self.shares(end * tracks as f64),
        ];
        row.extend([median(starts), median(tails), longest].map(duration));
        row
    }

    /// Its activities and the rest of the whole, greatest first.
    fn shares(&self, whole: f64) -> String {
        let mut shares: Vec<_> = Activity::ALL
            .map(|activity| (activity.name(), self.seconds(activity) / whole))
            .to_vec();
        let busy: f64 = shares.iter().map(|(_, share)| share).sum();
        shares.push(("nothing", 1.0 - busy));
        shares.retain(|(_, share)| *share >= MIN_SHARE);
        shares.sort_by(|one, other| other.1.total_cmp(&one.1));
        let entries = shares
            .iter()
            .map(|(name, share)| format!("{name}\u{a0}{:.1}\u{a0}%", share * 100.0));
        entries.collect::<Vec<_>>().join(", ")
    }

    /// The figure for all tracks that have it, including once for each track not shown individually.
    fn of_each(&self, figure: impl Fn(&Track) -> Option<f64>) -> Vec<f64> {
        let times = |track: &&Track| std::iter::repeat_n(figure(track), track.alike.max(1)).flatten();
        self.tracks.iter().flat_map(times).collect()
    }
}

/// The upper median; 0 for an empty list.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    use anstream::adapter::strip_str;
    use gauntlet_simulate::Span;

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
        use Activity::{Convert, Launch, Load, Multiply, Wait};
        let timeline = Timeline {
            seconds: 10e-6,
            tracks: vec![
                track("loader, block 0", 1, &[(Launch, 0.0, 1.0), (Load, 1.0, 10.0)]),
                track(
                    "block 1 multiplier 1",
                    1,
                    &[(Wait, 1.0, 2.0), (Multiply, 2.0, 10.0)],
                ),
                track(
                    "multiplier 1, block 12",
                    3,
                    &[(Convert, 1.0, 4.0), (Multiply, 4.0, 8.0)],
                ),
            ],
        };
        let text = strip_str(&timeline_roles(&timeline, 120)).to_string();
        let rows: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert_eq!(
            rows[0], "role tracks share of the call starts at tail longest",
            "{text}"
        );
        assert_eq!(
            rows[2], "loader 1 load 90.0 %, launch 10.0 % 1.00 µs 0 ns 0 ns",
            "{text}"
        );
        // One track multiplies for 8 of 10, three for 4.
        let shares = "multiply 50.0 %, nothing 25.0 %, convert 22.5 %, wait 2.5 %";
        let multiplier = format!("multiplier 1 4 {shares} 4.00 µs 2.00 µs 2.00 µs");
        assert_eq!(rows[3], multiplier, "{text}");
        let narrow = strip_str(&timeline_roles(&timeline, 70)).to_string();
        assert!(crate::text::widest(narrow.lines()) <= 70, "{narrow}");
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
