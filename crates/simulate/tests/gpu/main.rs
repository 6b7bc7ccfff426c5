//! Whole calls on GPUs: what must hold of every prediction, what each word does, and what has been measured.

#![expect(clippy::unwrap_used, reason = "tests")]

mod attention;
mod counts;
mod measured;
mod support;
mod whole;
mod words;
