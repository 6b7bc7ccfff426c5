//! Tests that run the command: one program, since linking one for each file takes longer than most of the tests. The corpus
//! of cheats is a program of its own, because a cheat looks for the processes of other workers.

mod bad_input;
mod bad_kernels;
mod commands;
mod common;
mod compiled;
mod continuous_integration;
mod cuda;
mod environment;
mod exit_codes;
mod explain;
mod explain_times;
mod faulty_tasks;
mod forecasts;
mod foreign_tasks;
mod foreign_text;
mod front_door;
mod limits;
mod machine;
mod more;
mod places;
mod practice;
mod python_kernels;
mod python_tasks;
mod replay;
mod report;
mod resilience;
mod right_or_wrong;
mod schemas;
mod selftest;
mod solutions;
mod sustained;
mod tuning;
mod workers;
