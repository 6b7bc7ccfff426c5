//! What a tile costs, so that work can be dealt out evenly.

/// Clock under load (`results/2026-11-21-h200-parameters.json`: 1.74 GHz on zeros; less on data, for power).
const GIGAHERTZ: f64 = 1.70;
/// What a multiprocessor reads from L2 while all do (same source, `bulk-copy.rate.l2.blocks-132`).
const BYTES_A_CYCLE: f64 = 33.0;
/// Cycles of the matrix unit for 64 rows, one column and 128 values of the depth: 8 `wgmma` of half a cycle a column.
const CYCLES_A_COLUMN: f64 = 4.0;
/// Cycles that four warp groups need to convert and issue a chunk, however few the columns.
const FLOOR_OF_FOUR: f64 = 700.0;
/// The same of two.
const FLOOR_OF_TWO: f64 = 450.0;

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
        let chunk = |eighth: usize| {
            let columns = 8.0 * eighth as f64;
            let matrix = columns * CYCLES_A_COLUMN * consumers as f64;
            let bytes = columns * 256.0 + 64.0 * 80.0 * consumers as f64;
            let floor = if consumers > 2 {
                FLOOR_OF_FOUR
            } else {
                FLOOR_OF_TWO
            };
            matrix.max(bytes / BYTES_A_CYCLE).max(floor) / GIGAHERTZ
        };
        Self {
            chunk: (0..=width / 8).map(chunk).collect(),
            // Assumed: filling the ring, and storing the results.
            tile: Linear {
                constant: 1000.0,
                a_column: 12.0,
            },
            // Assumed: storing partial sums, meeting, and adding up those of one other part.
            part: Linear {
                constant: 900.0,
                a_column: 12.0,
            },
            // Reading partial sums at the rate above.
            further: Linear {
                constant: 0.0,
                a_column: 64.0 * 4.0 * consumers as f64 / BYTES_A_CYCLE / GIGAHERTZ,
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
