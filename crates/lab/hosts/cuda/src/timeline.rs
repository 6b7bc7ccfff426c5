//! Converts the trace of a call into the model's timeline.

use gauntlet_kernels_cuda::trace::{Activity, Trace};
use gauntlet_simulate::{Activity as Modelled, Span, Timeline, Track};

/// Converts a trace into a timeline with one track for each role of each block.
pub fn timeline(trace: &Trace) -> Timeline {
    let tracks = trace.roles.iter().map(|role| Track {
        processor: Some(role.processor.into()),
        alike: 1,
        name: format!("{}, block {}", role.name, role.block),
        spans: role
            .spans
            .iter()
            .map(|span| Span {
                activity: activity(span.activity),
                start: seconds(span.begin),
                end: seconds(span.end),
                tile: span.tile.map(|tile| tile as usize),
                step: span.step.map(|step| step as usize),
            })
            .collect(),
    });
    Timeline {
        seconds: seconds(trace.nanoseconds),
        tracks: tracks.collect(),
    }
}

fn activity(activity: Activity) -> Modelled {
    match activity {
        Activity::Lookup => Modelled::Lookup,
        Activity::Load => Modelled::Load,
        Activity::Convert => Modelled::Convert,
        Activity::Multiply => Modelled::Multiply,
        Activity::Store => Modelled::Store,
        Activity::Reduce => Modelled::Reduce,
        Activity::Wait => Modelled::Wait,
        Activity::Launch => Modelled::Launch,
    }
}

fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 * 1e-9
}

#[cfg(test)]
mod tests {
    use gauntlet_kernels_cuda::trace::{ACTIVITIES, Role, TracedSpan};

    use super::*;

    #[test]
    fn a_role_becomes_a_track_in_seconds() {
        let span = |activity, begin, end, tile| TracedSpan {
            activity,
            begin,
            end,
            tile,
            step: None,
        };
        let trace = Trace {
            nanoseconds: 512,
            roles: vec![Role {
                processor: 99,
                block: 1,
                name: "loader",
                spans: vec![
                    span(Activity::Wait, 0, 64, None),
                    span(Activity::Load, 64, 128, Some(7)),
                ],
            }],
        };
        let timeline = timeline(&trace);
        assert!((timeline.seconds - 512e-9).abs() < 1e-15);
        let loader = &timeline.tracks[0];
        assert_eq!((loader.processor, loader.alike), (Some(99), 1));
        assert_eq!(loader.name, "loader, block 1");
        let activities: Vec<_> = loader.spans.iter().map(|span| span.activity).collect();
        assert_eq!(activities, [Modelled::Wait, Modelled::Load]);
        assert!((loader.spans[1].start - 64e-9).abs() < 1e-15);
        assert_eq!((loader.spans[1].tile, loader.spans[1].step), (Some(7), None));
    }

    #[test]
    fn activities_keep_their_names() {
        for one in ACTIVITIES {
            assert_eq!(format!("{one:?}"), format!("{:?}", activity(one)));
        }
    }
}
