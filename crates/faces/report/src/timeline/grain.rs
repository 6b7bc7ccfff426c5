//! Visible spans, and blocks of spans too thin to be seen.

use gauntlet_simulate::{Activity, Span};

/// Heights in a block are multiples of 1 / `PARTS`.
pub const PARTS: usize = 6;

/// A visible piece of a track.
#[derive(Debug, Clone, PartialEq)]
pub enum Piece<'s> {
    /// A span wide enough to be seen.
    Span(&'s Span),
    /// Many thin spans, merged.
    Block(Block),
}

/// A range with many thin spans: how much of its time each activity takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Seconds since the start of the call.
    pub start: f64,
    /// Seconds since the start of the call.
    pub end: f64,
    /// Heights of its activities, in the order of the legend; together at most [`PARTS`].
    pub heights: Vec<(Activity, usize)>,
}

/// Divides a track: spans of `grain` seconds or more are kept, others are merged in cells of that width, and
/// neighbouring cells that look the same become one block.
pub fn pieces(spans: &[Span], grain: f64) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    for run in spans.chunk_by(|one, other| !wide(one, grain) && !wide(other, grain)) {
        match run {
            [span] if wide(span, grain) => pieces.push(Piece::Span(span)),
            thin => pieces.extend(blocks(thin, grain).into_iter().map(Piece::Block)),
        }
    }
    pieces
}

fn wide(span: &Span, grain: f64) -> bool {
    span.end - span.start >= grain
}

fn blocks(spans: &[Span], grain: f64) -> Vec<Block> {
    let (Some(first), Some(last)) = (spans.first(), spans.last()) else {
        return Vec::new();
    };
    let (start, length) = (first.start, last.end - first.start);
    let cells = ((length / grain).floor() as usize).max(1);
    let width = length / cells as f64;
    let mut blocks: Vec<Block> = Vec::new();
    let mut next = 0;
    for cell in 0..cells {
        let from = start + cell as f64 * width;
        let to = from + width;
        // Spans that end before this cell are finished; the last span of a cell may extend into the next.
        while next < spans.len() && spans[next].end <= from {
            next += 1;
        }
        let inside = spans[next..].iter().take_while(|span| span.start < to);
        let heights = heights(inside, from, to);
        match blocks.last_mut() {
            Some(block) if block.heights == heights && from - block.end < 0.5 * width => block.end = to,
            _ if heights.is_empty() => {}
            _ => blocks.push(Block {
                start: from,
                end: to,
                heights,
            }),
        }
    }
    blocks
}

/// The parts of a cell's height that activities get by their share of its time. If anything happens in the cell, at
/// least one activity is visible.
fn heights<'s>(spans: impl Iterator<Item = &'s Span>, from: f64, to: f64) -> Vec<(Activity, usize)> {
    let mut shares = Activity::ALL.map(|activity| (activity, 0.0));
    for span in spans {
        let inside = (span.end.min(to) - span.start.max(from)).max(0.0) / (to - from);
        if let Some((_, share)) = shares.iter_mut().find(|(activity, _)| *activity == span.activity) {
            *share += inside;
        }
    }
    let rounded = shares.map(|(activity, share)| (activity, (share * PARTS as f64).round() as usize));
    let mut heights: Vec<_> = rounded.into_iter().filter(|(_, height)| *height > 0).collect();
    if heights.is_empty() {
        let greatest = shares.into_iter().max_by(|one, other| one.1.total_cmp(&other.1));
        heights.extend(
            greatest
                .filter(|(_, share)| *share > 0.0)
                .map(|(activity, _)| (activity, 1)),
        );
    }
    // Halves that are all rounded up can exceed the whole.
    while heights.iter().map(|(_, height)| height).sum::<usize>() > PARTS {
        if let Some((_, tallest)) = heights.iter_mut().max_by_key(|(_, height)| *height) {
            *tallest -= 1;
        }
    }
    heights
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn span(activity: Activity, start: f64, end: f64) -> Span {
        Span {
            activity,
            start,
            end,
            tile: None,
            step: None,
        }
    }

    /// A repeated load of 2 and product of 4, after a wait of 60.
    fn loop_of(steps: usize) -> Vec<Span> {
        let mut spans = vec![span(Activity::Wait, 0.0, 60.0)];
        for step in 0..steps {
            let start = 60.0 + 6.0 * step as f64;
            spans.push(span(Activity::Load, start, start + 2.0));
            spans.push(span(Activity::Multiply, start + 2.0, start + 6.0));
        }
        spans
    }

    #[test]
    fn wide_spans_stay_and_a_steady_state_becomes_one_block() {
        let spans = loop_of(100);
        let pieces = pieces(&spans, 12.0);
        assert_eq!(pieces[0], Piece::Span(&spans[0]));
        let Piece::Block(block) = &pieces[1] else {
            panic!("{pieces:?}")
        };
        assert_eq!((block.start, block.end.round()), (60.0, 660.0));
        assert_eq!(block.heights, [(Activity::Load, 2), (Activity::Multiply, 4)]);
        assert_eq!(pieces.len(), 2);
    }

    #[test]
    fn blocks_end_where_nothing_happens() {
        let mut spans = loop_of(10);
        spans.extend(
            loop_of(10)
                .iter()
                .skip(1)
                .map(|one| span(one.activity, one.start + 500.0, one.end + 500.0)),
        );
        let shown: Vec<_> = pieces(&spans[1..], 12.0)
            .iter()
            .map(|piece| match piece {
                Piece::Block(block) => (block.start.round(), block.end.round()),
                Piece::Span(span) => panic!("{span:?}"),
            })
            .collect();
        assert_eq!((shown[0].0, shown[shown.len() - 1].1), (60.0, 620.0));
        assert!(shown.iter().all(|(start, end)| end - start < 100.0), "{shown:?}");
    }

    #[test]
    fn everything_stays_where_it_can_be_seen() {
        let spans = loop_of(10);
        assert_eq!(pieces(&spans, 1.0).len(), spans.len());
    }

    proptest! {
        #[test]
        fn pieces_keep_order_and_never_overlap(
            lengths in prop::collection::vec((0usize..10, 0.01..5.0f64, 0.0..2.0f64), 1..200),
            grain in 0.1..10.0f64,
        ) {
            let mut now = 0.0;
            let mut spans = Vec::new();
            for (activity, length, gap) in lengths {
                now += gap;
                spans.push(span(Activity::ALL[activity], now, now + length));
                now += length;
            }
            let mut end = 0.0;
            for piece in pieces(&spans, grain) {
                let (from, to) = match &piece {
                    Piece::Span(span) => (span.start, span.end),
                    Piece::Block(block) => {
                        let height: usize = block.heights.iter().map(|(_, height)| height).sum();
                        prop_assert!((1..=PARTS).contains(&height));
                        (block.start, block.end)
                    }
                };
                prop_assert!(from >= end - 1e-9 && to > from, "{piece:?} after {end}");
                end = to;
            }
        }
    }
}
