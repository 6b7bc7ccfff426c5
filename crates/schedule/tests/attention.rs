//! Attention's words on sm_90a: what a block takes, and what it does.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::path::Path;

use gauntlet_device::Device;
use gauntlet_problem::{Attention, AttentionFormat, OutputFormat, Problem, Scaling, Sequence};
use gauntlet_schedule::program::{Contents, Copy, Operation, Product, Statement, TileProgram};
use gauntlet_schedule::{Schedule, ScheduleChange, check, resources};

fn attention(format: AttentionFormat) -> Problem {
    Problem::Attention(Attention {
        sequences: vec![Sequence {
            queries: 512,
            keys: 512,
        }],
        heads: 8,
        kv_heads: 8,
        head_size: 64,
        causal: false,
        format,
        scaling: Scaling::default(),
        output: OutputFormat::F16,
    })
}

fn schedule(change: &str) -> Schedule {
    ScheduleChange::from_toml(change, Path::new("s.toml"))
        .unwrap()
        .apply(&Schedule::baseline())
}

fn program(change: &str) -> TileProgram {
    let h200 = Device::builtin("h200").unwrap();
    TileProgram::of(&schedule(change), &attention(AttentionFormat::E4m3), h200.arch)
}

fn operations(body: &[Statement]) -> Vec<Operation> {
    body.iter()
        .flat_map(|statement| match statement {
            Statement::Repeat(_, body) | Statement::If(_, body) => operations(body),
            Statement::Do(operation) => vec![*operation],
        })
        .collect()
}

#[test]
fn hopper_takes_each_step_of_attention() {
    let h200 = Device::builtin("h200").unwrap();
    let problem = attention(AttentionFormat::E4m3);
    let bytes = |change: &str| {
        let schedule = schedule(change);
        assert_eq!(check(&schedule, &problem, &h200), [], "{change}");
        resources::block_bytes(&schedule, &problem, h200.arch)
    };
    let steps = "tile = [64, 64, 64]\nlayout = \"plain\"\n";
    // Queries, keys and values as they lie in memory; scores of 4 bytes, weights of 2.
    let (operands, scores, weights) = (3 * 4_096, 16_384, 8_192);
    assert_eq!(
        bytes(&format!("{steps}scores = \"separate\"\nvalues = \"scalar\"")),
        operands + scores + weights
    );
    assert_eq!(bytes(&format!("{steps}scores = \"in-place\"")), operands + scores);
    assert_eq!(bytes(steps), operands);
    assert_eq!(
        bytes("tile = [64, 64, 64]\nexponential = \"polynomial\""),
        operands
    );
    assert_eq!(
        bytes("tile = [64, 64, 64]\nexponential = \"table\""),
        operands + 4_096
    );
    // By roles operands lie as they are multiplied: fp16, or half of it.
    let roles = "tile = [128, 128, 64]\nroles = \"specialised\"\nstages = 3\n";
    assert_eq!(bytes(roles), 16_384 + 3 * 32_768);
    assert_eq!(bytes(&format!("{roles}arithmetic = \"fp8\"")), 8_192 + 3 * 16_384);
    bytes(&format!("{roles}split-k = 2\ncluster = [1, 2]"));
}

#[test]
fn scores_say_which_buffers_there_are_and_who_meets() {
    let steps = "tile = [64, 64, 64]\nstages = 2\n";
    let of = |scores: &str| {
        let program = program(&format!("{steps}scores = \"{scores}\""));
        let contents: Vec<_> = program.buffers[2..]
            .iter()
            .map(|buffer| buffer.contents)
            .collect();
        let all = operations(&program.roles[0].body);
        let barriers = all
            .iter()
            .filter(|operation| **operation == Operation::Synchronise)
            .count();
        (contents, barriers)
    };
    // In registers: when a step's operands are there, and when a tile's queries are done with.
    assert_eq!(of("registers"), (vec![], 2));
    assert_eq!(of("in-place"), (vec![Contents::Scores], 3));
    assert_eq!(
        of("separate"),
        (vec![Contents::Scores, Contents::Probabilities], 3)
    );
}

#[test]
fn roles_say_what_copies_and_what_multiplies() {
    let unified = operations(&program("tile = [128, 64, 64]\nstages = 2").roles[0].body);
    let loads = |all: &[Operation], by: Copy| {
        all.iter()
            .any(|operation| matches!(operation, Operation::Load { copy, .. } if *copy == by))
    };
    let waits_for_products = |all: &[Operation]| {
        let products = all.iter().filter_map(|operation| match operation {
            Operation::Multiply {
                product: Product::Scores | Product::Values,
                asynchronous,
                ..
            } => Some(*asynchronous),
            _ => None,
        });
        products.collect::<Vec<_>>()
    };
    assert!(loads(&unified, Copy::Asynchronous) && !loads(&unified, Copy::Bulk));
    assert_eq!(waits_for_products(&unified), [false, false], "mma.sync");
    assert!(
        unified
            .iter()
            .any(|operation| matches!(operation, Operation::Convert { to: None, .. }))
    );
    let roles = program("tile = [128, 64, 64]\nstages = 2\nroles = \"specialised\"");
    assert!(loads(&operations(&roles.roles[0].body), Copy::Bulk));
    assert_eq!(
        waits_for_products(&operations(&roles.roles[1].body)),
        [true, true],
        "wgmma"
    );
}

#[test]
fn who_converts_e4m3() {
    let e4m3 = attention(AttentionFormat::E4m3);
    let h200 = Device::builtin("h200").unwrap().arch;
    let beforehand =
        |change: &str, problem: &Problem| resources::converts_beforehand(&schedule(change), problem, h200);
    let roles = "roles = \"specialised\"\n";
    assert!(beforehand(roles, &e4m3));
    assert!(!beforehand(&format!("{roles}arithmetic = \"fp8\""), &e4m3));
    assert!(!beforehand("", &e4m3), "by mma.sync in registers");
    assert!(!beforehand(roles, &attention(AttentionFormat::Bf16)));
}
