//! Tests of the families that come with Gauntlet: one program, since linking one for each file takes longer than the tests.

mod attention;
mod constraints;
mod covering;
mod dispatch;
mod edges;
mod levers;
mod rules;
mod storage;
mod suites;
