//! Attention with an online softmax.
//!
//! A tile is a block of queries of one head; its steps walk the keys, skipping those that no query of the block
//! sees. Without swap-AB queries are the rows of the register block and keys its columns; with it the other way
//! round (`Sᵀ = K·Qᵀ`, `Oᵀ = Vᵀ·Pᵀ`). Either way the softmax works on panels of scores that are k-major in the
//! keys, with a lane a query: the swapped product leaves them so, the other is turned first.
//!
//! On a processor with a tile unit the products of 8-bit operands are its own, swapped (`tiles`).

mod outputs;
mod panels;
mod plan;
mod tiles;
mod work;

pub(crate) use panels::HeadRows;
pub(crate) use plan::AttentionPlan;
pub(crate) use work::turn_block;
