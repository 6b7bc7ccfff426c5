//! Whole calls on GPUs: properties of every prediction, the effect of each word, and comparisons with measurements.

#![expect(clippy::unwrap_used, reason = "tests")]

mod attention;
mod blackwell;
mod counts;
mod engine;
mod measured;
mod support;
mod whole;
mod words;
