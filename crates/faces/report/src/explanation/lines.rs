//! The parts of a breakdown that get a line.

use gauntlet_simulate::{Breakdown, Part};
use owo_colors::Style;

/// Parts below this share of the prediction are named without a line of their own.
const MIN_SHARE: f64 = 0.001;

/// The roofline or a part, in the order of the sum.
pub struct Line {
    /// None for the roofline.
    pub part: Option<Part>,
    /// Its name.
    pub name: &'static str,
    /// The sum of the lines before it, in seconds.
    pub start: f64,
    /// Its duration in seconds.
    pub seconds: f64,
}

/// The lines shown, and the parts left out.
pub struct Lines {
    /// The roofline and each visible part.
    pub lines: Vec<Line>,
    /// Names of the other parts.
    pub folded: Vec<&'static str>,
}

/// The roofline and the parts; each begins where the previous one ended.
pub fn lines(breakdown: &Breakdown) -> Lines {
    let least = breakdown.total() * MIN_SHARE;
    let mut lines = vec![Line {
        part: None,
        name: "roofline",
        start: 0.0,
        seconds: breakdown.roofline,
    }];
    let mut folded = Vec::new();
    let mut start = breakdown.roofline;
    for part in Part::ALL {
        let seconds = breakdown.part(part);
        if seconds == 0.0 || seconds.abs() < least {
            folded.push(part.name());
        } else {
            lines.push(Line {
                part: Some(part),
                name: part.name(),
                start,
                seconds,
            });
        }
        start += seconds;
    }
    Lines { lines, folded }
}

impl Line {
    /// The colour of its bar: one for each kind of cause.
    pub fn style(&self) -> Style {
        style(self.part)
    }
}

/// The colour of a part's bar, or without a part, of the roofline's.
pub fn style(part: Option<Part>) -> Style {
    match part {
        None => Style::new().green(),
        Some(Part::Host | Part::Launch | Part::Ramp) => Style::new().magenta(),
        Some(Part::Padding | Part::Idle) => Style::new().blue(),
        Some(Part::FillAndDrain | Part::Copy | Part::Contention) => Style::new().cyan(),
        Some(Part::Conversion) => Style::new().red(),
        Some(Part::Epilogue | Part::Tail) => Style::new().yellow(),
        Some(Part::Barriers) => Style::new().bright_black(),
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_simulate::PartTime;

    use super::*;

    #[test]
    fn bars_are_joined_and_folded_parts_still_take_their_room() {
        let breakdown = Breakdown {
            roofline: 50.0,
            parts: vec![
                PartTime {
                    part: Part::Host,
                    seconds: 30.0,
                },
                PartTime {
                    part: Part::Ramp,
                    seconds: 0.09,
                },
                PartTime {
                    part: Part::Tail,
                    seconds: 19.91,
                },
            ],
        };
        let Lines { lines, folded } = lines(&breakdown);
        let places: Vec<_> = lines
            .iter()
            .map(|line| (line.name, line.start, line.seconds))
            .collect();
        assert_eq!(
            places,
            [
                ("roofline", 0.0, 50.0),
                ("host", 50.0, 30.0),
                ("tail", 80.09, 19.91)
            ]
        );
        assert!(folded.contains(&"ramp") && folded.len() == Part::ALL.len() - 2);
    }
}
