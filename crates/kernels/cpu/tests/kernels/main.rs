//! Both kernel families are compared with the f64 oracle, and the engine is held to what it documents.
#![expect(clippy::unwrap_used, reason = "tests")]

mod attention;
mod engine;
mod gemm;
mod moe;
mod support;
