//! Tests of schedules and of what they are stored as: one program, since linking one for each file takes longer than the tests.

mod schedule;
mod storage;
