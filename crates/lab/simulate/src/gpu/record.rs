//! Records spans for a timeline.

use crate::timeline::Activity;

/// The track of a span.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Row {
    /// A group of warps of a block.
    Warps(usize, usize),
    /// A slot of a block's operands, filled by copies.
    Slot(usize, usize),
    /// The matrix unit.
    MatrixUnit,
    /// The path for results.
    Results,
}

/// A span in cycles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Noted {
    pub(super) row: Row,
    pub(super) activity: Activity,
    pub(super) start: f64,
    pub(super) end: f64,
    /// The tile's number among the tiles of this place.
    pub(super) tile: usize,
    pub(super) step: Option<usize>,
}

/// The spans of one multiprocessor; empty unless recording was requested.
#[derive(Debug, Clone, Default)]
pub(super) struct Recorded {
    spans: Option<Vec<Noted>>,
}

impl Recorded {
    pub(super) fn new(wanted: bool) -> Self {
        Self {
            spans: wanted.then(Vec::new),
        }
    }

    pub(super) fn note(&mut self, span: Noted) {
        if let Some(spans) = &mut self.spans
            && span.end > span.start
        {
            spans.push(span);
        }
    }

    pub(super) fn spans(&self) -> &[Noted] {
        self.spans.as_deref().unwrap_or_default()
    }
}
