//! What a tile costs, so that work can be dealt out evenly.

/// Columns of a tile, and the nanoseconds that its 128 rows take for a chunk of it on an H200, while all
/// multiprocessors do: rounded from traced calls of the benchmark's cases, between which medians of one width differ by a
/// tenth (`results/2026-11-22-h200-tiles.json`: 40 to 248 columns; beyond both is assumed). Below some 112 columns weights
/// are not converted as fast as they are multiplied, so narrow tiles are dear. Since then they take some 5 % less, and plans
/// by costs that have it were no faster (`results/2026-11-23-h200-issue.json`).
const CHUNKS: [(f64, f64); 16] = [
    (0.0, 380.0),
    (16.0, 390.0),
    (40.0, 440.0),
    (64.0, 500.0),
    (72.0, 512.0),
    (80.0, 560.0),
    (96.0, 615.0),
    (112.0, 640.0),
    (128.0, 668.0),
    (152.0, 770.0),
    (168.0, 815.0),
    (176.0, 845.0),
    (200.0, 990.0),
    (224.0, 1080.0),
    (248.0, 1195.0),
    (256.0, 1225.0),
];

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
    /// The costs of tiles of up to `width` columns.
    pub fn new(width: usize) -> Self {
        Self {
            chunk: (0..=width / 8)
                .map(|eighth| between(&CHUNKS, 8.0 * eighth as f64))
                .collect(),
            // Filling the ring, and storing the results: 1 to 8 µs in traced calls when results left from registers. Through
            // shared memory it is 1 to 4, but no plan made with less than this was faster.
            tile: Linear {
                constant: 1000.0,
                a_column: 22.0,
            },
            // Storing partial sums, meeting, and adding up those of one other part: 2 to 6 µs in traced calls. With the upper end
            // of that, the third grouped case in the dual form is cut into narrower tiles and takes 5 to 8 % longer, the first
            // 1.6 % less, and others the same (`results/2026-11-22-h200-tokens.json`).
            part: Linear {
                constant: 2500.0,
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
