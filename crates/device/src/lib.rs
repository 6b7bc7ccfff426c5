//! Placeholder module header.
