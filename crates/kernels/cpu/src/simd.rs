//! Instruction sets: all that exist, those that this processor has, and the inner loops of each.
//!
//! The rest of the crate uses them through slices. The loops that must use particular registers
//! (micro-kernels) are written with intrinsics per instruction set; those that a compiler vectorises well ([`vector`])
//! are written once and compiled for each.

#[cfg_attr(not(target_arch = "x86_64"), path = "no_amx.rs")]
mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod blocks;
mod portable;
mod stream;
mod vector;

use std::fmt;
use std::str::FromStr;

use gauntlet_problems::TokenFormat;
use thiserror::Error;

pub(crate) use amx::{CHUNK, Configured, Product, SIDE, Tiles};
pub(crate) use blocks::{Ahead, Blocks, Dots, Operand, Panels, Rows};
pub(crate) use stream::{prefetch, stream_rows};

/// An instruction set for which the kernels are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SimdPath {
    /// AVX-512, plus AMX's bf16 tiles where they are exact: NVFP4, and attention on 8-bit operands.
    Amx,
    /// 512-bit vectors: AVX-512 F, VL, BW and DQ.
    Avx512,
    /// 256-bit vectors: AVX2, FMA and F16C.
    Avx2,
    /// Dot products of bytes on AArch64 (NEON with DOTPROD), and plain Rust for the rest.
    Neon,
    /// Plain Rust for the baseline of the architecture, vectorised by the compiler.
    Portable,
}

/// Why an instruction set cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum SimdError {
    /// An unknown name.
    #[error("simd: unknown path `{name}`; one of amx, avx512, avx2, neon, portable")]
    Unknown {
        /// The given name.
        name: String,
    },
    /// The processor lacks features.
    #[error("simd: {path} needs {}, which this processor lacks; use one of {}", missing.join(", "), names(available))]
    Unavailable {
        /// The requested path.
        path: SimdPath,
        /// The features it lacks.
        missing: Vec<&'static str>,
        /// The paths that this processor can run.
        available: Vec<SimdPath>,
    },
}

impl SimdPath {
    /// All paths, the widest first.
    pub const ALL: [Self; 5] = [Self::Amx, Self::Avx512, Self::Avx2, Self::Neon, Self::Portable];

    /// The paths that this processor can run, the widest first.
    pub fn available() -> Vec<Self> {
        Self::ALL
            .into_iter()
            .filter(|path| path.missing_features().is_empty())
            .collect()
    }

    /// The widest path that this processor can run.
    pub fn best() -> Self {
        Self::available().first().copied().unwrap_or(Self::Portable)
    }

    /// The features that this path needs and this processor lacks.
    pub fn missing_features(self) -> Vec<&'static str> {
        self.features()
            .into_iter()
            .filter_map(|(name, present)| (!present).then_some(name))
            .collect()
    }

    fn features(self) -> Vec<(&'static str, bool)> {
        match self {
            Self::Amx | Self::Avx512 | Self::Avx2 => self.x86_features(),
            #[cfg(target_arch = "aarch64")]
            Self::Neon => vec![("dotprod", std::arch::is_aarch64_feature_detected!("dotprod"))],
            #[cfg(not(target_arch = "aarch64"))]
            Self::Neon => vec![("an AArch64 processor", false)],
            Self::Portable => Vec::new(),
        }
    }

    #[cfg(target_arch = "x86_64")]
    fn x86_features(self) -> Vec<(&'static str, bool)> {
        macro_rules! features {
            ($($name:tt),*) => { vec![$(($name, std::arch::is_x86_feature_detected!($name))),*] };
        }
        match self {
            Self::Amx => [Self::Avx512.x86_features(), amx::features()].concat(),
            Self::Avx512 => features!(
                "avx512f", "avx512vl", "avx512bw", "avx512dq", "avx2", "fma", "f16c"
            ),
            _ => features!("avx2", "fma", "f16c"),
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn x86_features(self) -> Vec<(&'static str, bool)> {
        vec![("an x86-64 processor", false)]
    }
}

impl fmt::Display for SimdPath {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Amx => "amx",
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
            Self::Portable => "portable",
        })
    }
}

impl FromStr for SimdPath {
    type Err = SimdError;

    fn from_str(name: &str) -> Result<Self, SimdError> {
        Self::ALL
            .into_iter()
            .find(|path| path.to_string() == name)
            .ok_or_else(|| SimdError::Unknown {
                name: name.to_owned(),
            })
    }
}

fn names(paths: &[SimdPath]) -> String {
    paths
        .iter()
        .map(SimdPath::to_string)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The widest panel of any path, in lanes.
pub(crate) const LANES: usize = 32;

/// The state that a panel's softmax carries from step to step, one lane per query.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SoftmaxLanes {
    /// The largest raw score so far.
    pub maximum: [f32; LANES],
    /// The sum of exponentials relative to `maximum`.
    pub sum: [f32; LANES],
    /// What earlier sums and outputs must be multiplied by after the last step.
    pub rescale: [f32; LANES],
}

impl SoftmaxLanes {
    /// The state before the first key.
    pub const EMPTY: Self = Self {
        maximum: [f32::NEG_INFINITY; LANES],
        sum: [0.0; LANES],
        rescale: [0.0; LANES],
    };
}

/// `c = [c +] a·b` over `depth`: a is k-major `rows` wide, b k-major `columns` wide, c `rows × columns`.
type Multiply = unsafe fn(usize, *const f32, *const f32, *mut f32, bool);
/// One softmax step on a k-major panel of scores.
type Softmax = unsafe fn(&mut [f32], f32, &mut SoftmaxLanes);
/// The values of e4m3 codes.
type Widen = unsafe fn(&[u8], &mut [f32]);
/// Transposes rows of a register block.
type Turn = unsafe fn(&[f32], &mut [f32; LANES * LANES]);
/// `out = sum · scale`.
type Scale = unsafe fn(&[f32], f64, &mut [f32]);
/// `out = silu(gate · scale) · (up · scale)`.
type Swiglu = unsafe fn(&[f32], &[f32], [f64; 2], &mut [f32]);

/// f32 to the bytes of f16.
type Halve = unsafe fn(&[f32], &mut [u8]);

/// The inner loops of one instruction set, behind methods that check lengths.
///
/// A value exists only for a path whose features were detected; this makes the calls sound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Instructions {
    path: SimdPath,
    loops: &'static Loops,
    unit: Option<Tiles>,
}

#[derive(Debug)]
struct Loops {
    rows: usize,
    columns: usize,
    accumulators: usize,
    multiply: Multiply,
    softmax_rows: Softmax,
    softmax_columns: Softmax,
    widen: Widen,
    turn: Turn,
    scale: Scale,
    swiglu: Swiglu,
    halve: Halve,
}

impl Instructions {
    /// The loops of `path`, if the processor can run them.
    pub fn detect(path: SimdPath) -> Result<Self, SimdError> {
        let missing = path.missing_features();
        if !missing.is_empty() {
            return Err(SimdError::Unavailable {
                path,
                missing,
                available: SimdPath::available(),
            });
        }
        let loops = match path {
            #[cfg(target_arch = "x86_64")]
            SimdPath::Amx | SimdPath::Avx512 => &avx512::LOOPS,
            #[cfg(target_arch = "x86_64")]
            SimdPath::Avx2 => &avx2::LOOPS,
            _ => &portable::LOOPS,
        };
        // SAFETY: no feature of the path is missing.
        let unit = (path == SimdPath::Amx).then(|| unsafe { Tiles::found() });
        Ok(Self { path, loops, unit })
    }

    /// The tile unit, if the path has one.
    pub fn tiles(&self) -> Option<Tiles> {
        self.unit
    }

    /// The loops of a GEMM with `tokens` tokens of a format. NVFP4 tokens use the tile unit; fewer than a block of it would
    /// leave most of it idle, so they use dots.
    pub fn blocks(&self, tokens: usize, format: TokenFormat) -> Blocks {
        match self.unit {
            Some(unit) if tokens >= SIDE && format == TokenFormat::Nvfp4 => Blocks::Tiles(unit),
            _ => {
                // SAFETY: `detect` found all features of the path.
                let dots = unsafe { Dots::of_format(self.path, format) };
                Blocks::Dots(dots.for_tokens(tokens))
            }
        }
    }

    /// Which path it is.
    pub fn path(&self) -> SimdPath {
        self.path
    }

    /// Rows of the register block.
    pub fn rows(&self) -> usize {
        self.loops.rows
    }

    /// Columns of the register block.
    pub fn columns(&self) -> usize {
        self.loops.columns
    }

    /// Vector registers that hold the register block.
    pub fn accumulators(&self) -> usize {
        self.loops.accumulators
    }

    /// `c = a·bᵀ`, or `c += a·bᵀ`, for one register block over `depth`: `a[k · rows + r]`, `b[k · columns + c]`,
    /// `c[r · columns + c]`.
    #[inline]
    pub fn multiply(&self, depth: usize, a: &[f32], b: &[f32], c: &mut [f32], accumulate: bool) {
        let (rows, columns) = (self.loops.rows, self.loops.columns);
        assert!(a.len() >= depth * rows && b.len() >= depth * columns && c.len() >= rows * columns);
        // SAFETY: CPU features were checked in `detect`, and the lengths are checked above.
        unsafe { (self.loops.multiply)(depth, a.as_ptr(), b.as_ptr(), c.as_mut_ptr(), accumulate) }
    }

    /// Replaces the raw scores of `panel` by `exp((score − maximum) · scale)`, and updates `lanes`. The panel is
    /// k-major and `width` queries wide; `width` must be the rows or the columns of the register block.
    #[inline]
    pub fn softmax(&self, panel: &mut [f32], width: usize, scale: f32, lanes: &mut SoftmaxLanes) {
        assert!(width == self.loops.rows || width == self.loops.columns);
        assert!(panel.len().is_multiple_of(width));
        let softmax = if width == self.loops.rows {
            self.loops.softmax_rows
        } else {
            self.loops.softmax_columns
        };
        // SAFETY: CPU features were checked in `detect`; the function itself only uses slices.
        unsafe { softmax(panel, scale, lanes) }
    }

    /// The values of e4m3 codes, none of which is NaN.
    #[inline]
    pub fn widen(&self, codes: &[u8], values: &mut [f32]) {
        // SAFETY: CPU features were checked in `detect`; the function itself only uses slices.
        unsafe { (self.loops.widen)(codes, values) }
    }

    /// Transposes rows of register blocks that lie below each other, at most [`LANES`] of them, into as many rows as
    /// the block has columns; these begin `LANES` values apart.
    #[inline]
    pub fn turn(&self, rows: &[f32], turned: &mut [f32; LANES * LANES]) {
        assert!(rows.len().is_multiple_of(self.loops.columns) && rows.len() <= LANES * self.loops.columns);
        // SAFETY: CPU features were checked in `detect`, and the lengths are checked above.
        unsafe { (self.loops.turn)(rows, turned) }
    }

    /// `out = sums · scale`, multiplied in f64 so that no scale overflows or loses bits before its result does.
    #[inline]
    pub fn scale(&self, sums: &[f32], scale: f64, out: &mut [f32]) {
        // SAFETY: CPU features were checked in `detect`; the function itself only uses slices.
        unsafe { (self.loops.scale)(sums, scale, out) }
    }

    /// `out = silu(gate · scales[0]) · (up · scales[1])`.
    #[inline]
    pub fn swiglu(&self, gate: &[f32], up: &[f32], scales: [f64; 2], out: &mut [f32]) {
        // SAFETY: CPU features were checked in `detect`; the function itself only uses slices.
        unsafe { (self.loops.swiglu)(gate, up, scales, out) }
    }

    /// Rounds values to f16, to nearest and ties to even, into as many pairs of little-endian bytes.
    #[inline]
    pub fn halve(&self, values: &[f32], bytes: &mut [u8]) {
        assert_eq!(bytes.len(), 2 * values.len());
        // SAFETY: CPU features were checked in `detect`; the function itself only uses slices.
        unsafe { (self.loops.halve)(values, bytes) }
    }
}

#[cfg(test)]
mod tests;
