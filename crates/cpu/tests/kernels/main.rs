//! Both kernel families against the f64 oracle, and what the engine around them promises.
#![expect(clippy::unwrap_used, reason = "tests")]

mod attention;
mod engine;
mod gemm;
mod service;
mod support;
