//! The kernels around the products of a mixture of experts: one sorts tokens by their experts and copies them in that order for the
//! first product, after another that counts them if there are many, and one adds up the results of the last. The host knows sizes
//! alone; the choice of experts stays on the device.

use bytemuck::{Pod, Zeroable};
use gauntlet_problems::OutputFormat;

use super::groups::within;
use super::variant::{most_registers, output_define};
use super::{Launch, Pass, PlanError, Source, Variant};

/// Most slots (tokens times experts of a token) that are sorted.
pub const MAX_SLOTS: usize = MAX_BLOCKS * MAX_BLOCK_SLOTS;
/// Most slots that every block sorts for itself, which takes one launch and not two: a step for each warp, and three more.
pub const MAX_ALONE: usize = 4096;
/// Most experts that slots are sorted by: a thread for each.
pub const MAX_EXPERTS: usize = 1024;
/// Most experts of a token. Up to here PyTorch adds them up in the order of `combine.cu`; beyond, its order depends on sizes.
pub const MAX_EXPERTS_A_TOKEN: usize = 32;

/// In place of the row of a slot whose expert is elsewhere, or which is padding: it adds nothing.
pub const ROW_OF_NONE: i32 = -1;
/// In place of the row of a slot whose id stands for no expert: its token becomes NaN.
pub const ROW_OF_WRONG: i32 = -2;

/// Threads of the kernel that sorts.
const SORTING_THREADS: usize = 1024;
/// Slots that a block of it sorts at least, and at most, and most blocks: as many as a GPU has multiprocessors, about.
const MIN_BLOCK_SLOTS: usize = 256;
const MAX_BLOCK_SLOTS: usize = 8192;
const MAX_BLOCKS: usize = 128;
/// Bytes that a thread copies at a time.
const COPIED_BYTES: usize = 16;
/// Threads of the two others, and columns that a thread adds up.
const THREADS: usize = 256;
const COLUMNS: usize = 4;

/// The sizes of a mixture of experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MixtureShape {
    /// Tokens.
    pub tokens: usize,
    /// Experts of each token.
    pub experts_a_token: usize,
    /// Experts whose weights are here.
    pub experts: usize,
    /// Values of a token, which have 16 bits, and of its result: a multiple of 8.
    pub hidden: usize,
}

/// How wide integers in device memory are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexWidth {
    /// `i32`.
    Bits32,
    /// `i64`.
    Bits64,
}

impl IndexWidth {
    /// Bytes of an integer.
    pub fn bytes(self) -> usize {
        match self {
            Self::Bits32 => 4,
            Self::Bits64 => 8,
        }
    }
}

/// Where each expert is among those here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExpertMap {
    /// The address of an integer for each expert, negative for an expert that is elsewhere.
    pub places: u64,
    /// The integers' width.
    pub width: IndexWidth,
    /// Their number.
    pub len: usize,
}

/// Addresses for sorting tokens by their experts. A slot is one of the experts of one token, in the order of the tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrangeBuffers {
    /// The experts of each token, `[tokens, experts_a_token]`.
    pub ids: u64,
    /// Their width.
    pub ids_width: IndexWidth,
    /// The places of experts, if `ids` are not places already.
    pub expert_map: Option<ExpertMap>,
    /// The tokens, 16-bit floats, `[tokens, hidden]`.
    pub hidden: u64,
    /// Result: where each expert's rows end, `i32` `[experts]`, as routed products take them.
    pub ends: u64,
    /// Result: the expert of each row, `i32` `[slots]`; 0 for the rows behind the last end.
    pub row_experts: u64,
    /// Result: the row of each slot, `i32` `[slots]`, or [`ROW_OF_NONE`] or [`ROW_OF_WRONG`].
    pub rows: u64,
    /// Result: the tokens by rows, `[slots, hidden]`; rows behind the last end are not written.
    pub gathered: u64,
    /// Scratch memory of [`MixtureShape::count_bytes`].
    pub counts: u64,
}

/// Addresses for adding up the results of each token's experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CombineBuffers {
    /// Results of the last product by rows, `f32` `[slots, hidden]`.
    pub results: u64,
    /// The row of each slot, as sorting gives them.
    pub rows: u64,
    /// The weight of each slot, `[tokens, experts_a_token]`.
    pub weights: u64,
    /// The weights' format.
    pub weight_format: OutputFormat,
    /// The sums, `[tokens, hidden]`.
    pub output: u64,
}

/// The parameters of the kernels; the other half is `kernels/mixture.cuh`.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct ArrangeParameter {
    ids: u64,
    expert_map: u64,
    counts: u64,
    ends: u64,
    row_experts: u64,
    rows: u64,
    from: u64,
    to: u64,
    slots: u32,
    slots_a_token: u32,
    experts: u32,
    map_size: u32,
    id_bytes: u32,
    map_bytes: u32,
    pieces: u32,
    block_slots: u32,
    counted: u32,
    reserved: u32,
}

#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct CombineParameter {
    results: u64,
    rows: u64,
    weights: u64,
    output: u64,
    slots_a_token: u32,
    columns: u32,
    blocks_a_token: u32,
    weight_format: u32,
}

impl MixtureShape {
    /// Whether the kernels take these sizes.
    ///
    /// # Errors
    /// If not.
    pub fn check(&self) -> Result<(), PlanError> {
        within(
            "the number of tokens times experts of each",
            self.tokens.saturating_mul(self.experts_a_token.max(1)),
            MAX_SLOTS,
        )?;
        within("the number of experts", self.experts, MAX_EXPERTS)?;
        within(
            "the number of experts of a token",
            self.experts_a_token,
            MAX_EXPERTS_A_TOKEN,
        )?;
        within("the values of a token", self.hidden, u16::MAX as usize)?;
        match self.hidden.is_multiple_of(COPIED_BYTES / 2) {
            true => Ok(()),
            false => Err(PlanError::Pieces { size: self.hidden }),
        }
    }

    /// Tokens times experts of each: rows, if all experts are here.
    pub fn slots(&self) -> usize {
        self.tokens * self.experts_a_token
    }

    /// Slots of a block, if not every block sorts all of them, and blocks.
    fn parts(&self) -> Option<(usize, usize)> {
        let slots = self.slots();
        let of_block = slots
            .div_ceil(MAX_BLOCKS)
            .max(MIN_BLOCK_SLOTS)
            .next_multiple_of(32);
        (slots > MAX_ALONE).then(|| (of_block, slots.div_ceil(of_block)))
    }

    /// Bytes of scratch memory in which blocks tell one another their counts.
    pub fn count_bytes(&self) -> usize {
        self.parts()
            .map_or(0, |(_, blocks)| blocks * self.experts * size_of::<u32>())
    }

    /// The launches that sort tokens and copy them: of [`count`], if there are many, and of [`arrange`].
    pub fn arrangement(&self, buffers: &ArrangeBuffers) -> Vec<Launch> {
        let map = buffers.expert_map;
        let parts = self.parts();
        let parameter = ArrangeParameter {
            ids: buffers.ids,
            expert_map: map.map_or(0, |map| map.places),
            counts: buffers.counts,
            ends: buffers.ends,
            row_experts: buffers.row_experts,
            rows: buffers.rows,
            from: buffers.hidden,
            to: buffers.gathered,
            slots: self.slots() as u32,
            slots_a_token: self.experts_a_token as u32,
            experts: self.experts as u32,
            map_size: map.map_or(0, |map| u32::try_from(map.len).unwrap_or(u32::MAX)),
            id_bytes: buffers.ids_width.bytes() as u32,
            map_bytes: map.map_or(0, |map| map.width.bytes() as u32),
            pieces: (self.hidden * 2 / COPIED_BYTES) as u32,
            block_slots: parts.map_or(0, |(of_block, _)| of_block) as u32,
            counted: u32::from(parts.is_some()),
            reserved: 0,
        };
        match parts {
            Some((_, blocks)) => vec![
                launch(Pass::Preparation, blocks, &parameter),
                launch(Pass::Main, blocks, &parameter),
            ],
            None => {
                // A slot for each warp, as long as there are multiprocessors.
                let blocks = self.slots().div_ceil(SORTING_THREADS / 32).clamp(1, MAX_BLOCKS);
                vec![launch(Pass::Main, blocks, &parameter)]
            }
        }
    }

    /// The launch that adds up results, of [`combine`]; none without tokens.
    pub fn combination(&self, buffers: &CombineBuffers) -> Option<Launch> {
        let blocks_a_token = self.hidden.div_ceil(COLUMNS * THREADS);
        let parameter = CombineParameter {
            results: buffers.results,
            rows: buffers.rows,
            weights: buffers.weights,
            output: buffers.output,
            slots_a_token: self.experts_a_token as u32,
            columns: self.hidden as u32,
            blocks_a_token: blocks_a_token as u32,
            weight_format: output_define(buffers.weight_format) as u32,
        };
        let blocks = self.tokens * blocks_a_token;
        (blocks > 0).then(|| launch(Pass::Main, blocks, &parameter))
    }
}

fn launch(pass: Pass, grid: usize, parameter: &impl Pod) -> Launch {
    Launch {
        pass,
        grid: grid as u32,
        cluster: 1,
        parameter: bytemuck::bytes_of(parameter).to_vec(),
        mapped: None,
    }
}

/// The kernel that counts.
pub fn count() -> Variant {
    let mut variant = plain(Source::Count, THREADS);
    variant.defines.insert("MAX_EXPERTS", MAX_EXPERTS.to_string());
    variant
}

/// The kernel that sorts and copies.
pub fn arrange() -> Variant {
    let words = size_of::<u32>() * (MAX_BLOCK_SLOTS + 2 * MAX_EXPERTS);
    let counts = size_of::<u16>() * SORTING_THREADS / 32 * MAX_EXPERTS;
    let mut variant = plain(Source::Arrange, SORTING_THREADS);
    variant
        .defines
        .insert("MAX_BLOCK_SLOTS", MAX_BLOCK_SLOTS.to_string());
    variant.defines.insert("MAX_EXPERTS", MAX_EXPERTS.to_string());
    Variant {
        shared_bytes: (words + counts) as u32,
        ..variant
    }
}

/// The kernel that adds up, to sums of this format.
pub fn combine(output: OutputFormat) -> Variant {
    let mut variant = plain(Source::Combine, THREADS);
    variant
        .defines
        .insert("OUTPUT", output_define(output).to_string());
    variant
}

fn plain(source: Source, threads: usize) -> Variant {
    Variant {
        source,
        defines: [("OVERLAP", "1".to_owned())].into(),
        threads: threads as u32,
        shared_bytes: 0,
        registers: most_registers(threads),
    }
}
