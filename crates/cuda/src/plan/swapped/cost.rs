//! What a tile costs, so that work can be dealt out evenly.

/// Columns of a tile, and the nanoseconds that two warp groups (128 rows) take for a chunk of it on an H200, while all
/// multiprocessors do. Register operands cost `wgmma` some 13 cycles an instruction beside its columns, so narrow tiles
/// are dear.
const CHUNKS_OF_TWO: [(f64, f64); 12] = [
    (0.0, 340.0),
    (16.0, 353.0),
    (48.0, 376.0),
    (64.0, 415.0),
    (80.0, 462.0),
    (96.0, 504.0),
    (112.0, 597.0),
    (128.0, 636.0),
    (160.0, 738.0),
    (192.0, 916.0),
    (248.0, 1126.0),
    (256.0, 1157.0),
];
/// The same of four warp groups (256 rows).
const CHUNKS_OF_FOUR: [(f64, f64); 5] = [
    (0.0, 640.0),
    (48.0, 700.0),
    (64.0, 880.0),
    (80.0, 1000.0),
    (128.0, 1450.0),
];
/// What a multiprocessor reads from L2 while all do, in bytes a nanosecond
/// (`results/2026-11-21-h200-parameters.json`, `bulk-copy.rate.l2.blocks-132`, at 1.70 GHz).
const BYTES_A_NANOSECOND: f64 = 56.0;

/// What tiles cost on one multiprocessor, in nanoseconds, by their columns.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Costs {
    /// A chunk, by eighths of the columns.
    chunk: Vec<f64>,
    tile: Linear,
    part: Linear,
    further: Linear,
}

#[derive(Debug, Clone, Copy, PartialEq)]
struct Linear {
    constant: f64,
    a_column: f64,
}

impl Linear {
    fn at(self, columns: usize) -> f64 {
        self.constant + self.a_column * columns as f64
    }
}

impl Costs {
    /// The costs of tiles of up to `width` columns, with two or four warp groups.
    pub fn new(consumers: usize, width: usize) -> Self {
        let measured: &[(f64, f64)] = if consumers > 2 {
            &CHUNKS_OF_FOUR
        } else {
            &CHUNKS_OF_TWO
        };
        Self {
            chunk: (0..=width / 8)
                .map(|eighth| between(measured, 8.0 * eighth as f64))
                .collect(),
            // Assumed: filling the ring, and storing the results.
            tile: Linear {
                constant: 800.0,
                a_column: 15.0,
            },
            // Assumed: storing partial sums, meeting, and adding up those of one other part.
            part: Linear {
                constant: 1500.0,
                a_column: 10.0,
            },
            // Reading partial sums at the rate above.
            further: Linear {
                constant: 0.0,
                a_column: 64.0 * 4.0 * consumers as f64 / BYTES_A_NANOSECOND,
            },
        }
    }

    /// One chunk of the depth.
    pub fn chunk(&self, columns: usize) -> f64 {
        self.chunk[columns / 8]
    }

    /// A tile that is not split.
    pub fn whole(&self, columns: usize, chunks: usize) -> f64 {
        self.tile.at(columns) + chunks as f64 * self.chunk(columns)
    }

    /// A part of a tile in two parts, besides its chunks.
    pub fn part(&self, columns: usize) -> f64 {
        self.tile.at(columns) + self.part.at(columns)
    }

    /// What each part of a tile costs more for each part beyond two: whichever comes last adds up all of them.
    pub fn further(&self, columns: usize) -> f64 {
        self.further.at(columns)
    }
}

/// The piecewise linear function through `points`, which rise.
fn between(points: &[(f64, f64)], at: f64) -> f64 {
    let segment = points.windows(2).find(|pair| at <= pair[1].0);
    let Some(&[(from, low), (to, high)]) = segment.and_then(|pair| <&[_; 2]>::try_from(pair).ok()) else {
        return points.last().map_or(0.0, |&(_, last)| last);
    };
    low + (high - low) * (at - from) / (to - from)
}
