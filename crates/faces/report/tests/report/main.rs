//! Tests of the reports on fixed results: one program, since linking one for each file takes longer than the tests.

mod activity;
mod counted;
mod diagnoses;
mod explained;
mod explanations;
mod fixture;
mod reports;
mod results;
mod story;
