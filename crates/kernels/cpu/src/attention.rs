//! Attention with an online softmax.
//!
//! A tile is a block of queries of one head. Its steps walk the keys and skip those that no query of the block sees.
//! Without swap-AB, queries are the rows of the register block and keys its columns; with it, the other way round (`Sᵀ
//! = K·Qᵀ`, `Oᵀ = Vᵀ·Pᵀ`). In both cases the softmax works on panels of scores that are k-major in the keys, one lane
//! per query: the swapped product has this layout already, the other is transposed first.
//!
//! On a processor with a tile unit, 8-bit operands use it, always swapped (`tiles`).

mod outputs;
mod panels;
mod plan;
mod tiles;
mod work;

pub(crate) use plan::AttentionPlan;
