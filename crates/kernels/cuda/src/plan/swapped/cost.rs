//! What a tile costs, so that work can be dealt out evenly.

/// Columns of a tile, and the nanoseconds that its 128 rows take for one chunk on an H200 under load: measured by calls
/// in the middle of a long replay (2026-11-24, `docs/notebook/history.md`: 40 to 248 columns; values outside are
/// assumed), at 1.55 GHz. From 128 columns on this is the matrix unit's time plus at most 4 %; below, converting
/// weights takes longer than multiplying them, so narrow tiles are expensive.
const CHUNKS: [(f64, f64); 16] = [
    (0.0, 387.0),
    (40.0, 441.0),
    (64.0, 494.0),
    (72.0, 521.0),
    (80.0, 542.0),
    (96.0, 587.0),
    (112.0, 639.0),
    (128.0, 674.0),
    (152.0, 806.0),
    (160.0, 844.0),
    (168.0, 887.0),
    (176.0, 916.0),
    (200.0, 1065.0),
    (224.0, 1181.0),
    (248.0, 1287.0),
    (256.0, 1329.0),
];

/// The cost of a tile on one multiprocessor by its columns, in nanoseconds.
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
    /// The costs of tiles of up to `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            chunk: (0..=width / 8)
                .map(|eighth| between(&CHUNKS, 8.0 * eighth as f64))
                .collect(),
            // Waiting for the first chunk, and storing the results as fast as a multiprocessor stores anything: 0.9 µs at 40
            // columns, 2.0 at 200, and up to twice that where the code for it is not in the instruction cache (the same file).
            tile: Linear {
                constant: 800.0,
                a_column: 9.0,
            },
            // Storing partial sums, synchronising, and adding those of one other part: 1.9 to 3.2 µs at 64 columns (the
            // same file). With one microsecond less than this value, a single dual product of 3072 rows is cut into
            // wider parts and takes 7 % longer (`results/h200/plans-tried/2026-11-24.json`).
            part: Linear {
                constant: 2400.0,
                a_column: 15.0,
            },
            // Assumed: reading the partial sums of another part.
            further: Linear {
                constant: 0.0,
                a_column: 15.0,
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

    /// The additional cost of each part of a tile for each part beyond two: the part that arrives last adds up all of
    /// them.
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
