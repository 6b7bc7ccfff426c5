//! The simulator against figures that were published, and against itself.
