//! Attention's parameters on sm_90a: a block's memory and its program.
#![expect(clippy::unwrap_used, reason = "tests")]

use gauntlet_device::Device;
use gauntlet_families::operations::{check, problem};
use gauntlet_problems::{Attention, AttentionFormat, Operation, Schedule, resources};
use gauntlet_tile_program::{Action, Contents, CopyMethod, Product, Role, Statement, TileProgram};

fn attention(format: AttentionFormat) -> Operation {
    Operation::Attention(Attention::new(format, [[512, 512]], [8, 8], 64))
}

fn schedule(change: &str) -> Schedule {
    toml::from_str(change).unwrap()
}

fn program(change: &str) -> TileProgram {
    let h200 = Device::builtin("h200").unwrap();
    let problem = problem(&attention(AttentionFormat::E4m3));
    problem.model().program(&schedule(change), h200.arch)
}

fn operations(body: &[Statement]) -> Vec<Action> {
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
    // Queries, keys and values as they lie in memory; scores of 4 bytes with what sums are multiplied by; weights.
    let (operands, scores, weights) = (3 * 4_096, 16_384 + 256, 8_192);
    let separate = format!("{steps}scores = \"separate\"\n");
    assert_eq!(bytes(&separate), operands + scores + weights);
    // Multiply-adds read weights of 4 bytes.
    assert_eq!(
        bytes(&format!("{separate}values = \"scalar\"")),
        operands + scores + 2 * weights
    );
    assert_eq!(bytes(&format!("{steps}scores = \"in-place\"")), operands + scores);
    // Exponentials of any kind need no room.
    for exponential in ["hardware", "polynomial", "table"] {
        assert_eq!(
            bytes(&format!("{steps}exponential = \"{exponential}\"")),
            operands
        );
    }
    // With roles, queries lie as they were copied, and keys and values as they are multiplied: fp16, or half of it.
    // Beside them are three stages that are not converted yet, and barriers.
    let roles = "tile = [128, 128, 64]\nroles = \"specialised\"\nstages = 3\n";
    let copied = 8_192 + 3 * 8_192 + 1_024;
    assert_eq!(bytes(roles), copied + 3 * 32_768);
    assert_eq!(
        bytes(&format!("{roles}arithmetic = \"fp8\"")),
        copied + 3 * (8_192 + 16_384) + 128 * (256 + 32),
        "keys of e4m3, values of fp16, and sums of 128 queries with what belongs to them"
    );
    // All keys together: queries, 256 keys and values as copied and converted, and parts of 2 × 64 rows.
    let resident = "tile = [64, 128, 64]\nroles = \"specialised\"\nsplit-k = 2\ncluster = [1, 2]\n";
    let parts = 128 * (128 + 8) + 64;
    assert_eq!(bytes(resident), 4_096 + 2 * 16_384 + 2 * 32_768 + parts);
    // A smaller block still takes half of a multiprocessor, so that it has the multiprocessor alone.
    assert_eq!(bytes(&format!("{resident}arithmetic = \"fp8\"")), 114 << 10);
}

#[test]
fn parts_of_the_keys_may_be_empty() {
    let h200 = Device::builtin("h200").unwrap();
    let few = match attention(AttentionFormat::F16) {
        Operation::Attention(mut attention) => {
            attention.sequences[0].keys = 3;
            Operation::Attention(attention)
        }
        other => other,
    };
    let split = schedule("tile = [64, 64, 64]\nroles = \"specialised\"\nsplit-k = 4\ncluster = [1, 4]");
    assert_eq!(check(&split, &few, &h200), []);
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
            .filter(|operation| **operation == Action::Synchronise)
            .count();
        (contents, barriers)
    };
    // In registers: barriers when a step's operands have arrived, and when a tile's queries are done with.
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
    let loads = |all: &[Action], by: CopyMethod| {
        all.iter()
            .any(|operation| matches!(operation, Action::Load { copy, .. } if *copy == by))
    };
    let waits_for_products = |all: &[Action]| {
        let products = all.iter().filter_map(|operation| match operation {
            Action::Multiply {
                product: Product::Scores | Product::Values,
                asynchronous,
                ..
            } => Some(*asynchronous),
            _ => None,
        });
        products.collect::<Vec<_>>()
    };
    assert!(loads(&unified, CopyMethod::Asynchronous) && !loads(&unified, CopyMethod::Bulk));
    assert_eq!(waits_for_products(&unified), [false, false], "mma.sync");
    assert!(
        unified
            .iter()
            .any(|operation| matches!(operation, Action::Convert { to: None, .. }))
    );
    let roles = program("tile = [128, 64, 64]\nstages = 2\nroles = \"specialised\"");
    assert!(loads(&operations(&roles.roles[0].body), CopyMethod::Bulk));
    let converts = |role: &Role| {
        let all = operations(&role.body);
        all.iter()
            .any(|operation| matches!(operation, Action::Convert { to: Some(_), .. }))
    };
    let names: Vec<_> = roles.roles.iter().map(|role| role.name).collect();
    assert_eq!(names, ["producer", "converter", "consumer"]);
    assert!(converts(&roles.roles[1]) && !converts(&roles.roles[2]));
    assert_eq!(
        waits_for_products(&operations(&roles.roles[2].body)),
        [true, true],
        "wgmma"
    );
    // The multiplying warps also convert, where all keys are in shared memory together.
    let resident = program("tile = [64, 128, 64]\nroles = \"specialised\"\nsplit-k = 2\ncluster = [1, 2]");
    assert_eq!(resident.roles.len(), 2);
    assert!(converts(&resident.roles[1]));
}

#[test]
fn who_converts_e4m3() {
    let e4m3 = attention(AttentionFormat::E4m3);
    let roles = "roles = \"specialised\"\n";
    let eights = format!("{roles}arithmetic = \"fp8\"");
    for device in ["h200", "b200"] {
        let arch = Device::builtin(device).unwrap().arch;
        assert!(
            !resources::converts_beforehand(&schedule(""), &e4m3, arch),
            "{device}"
        );
    }
    let made_ready = |change: &str, problem: &Operation| match problem {
        Operation::Attention(attention) => resources::operands_made_ready(&schedule(change), attention),
        Operation::GroupedGemm(_) => 0,
    };
    assert_eq!(made_ready(roles, &e4m3), 2);
    assert_eq!(made_ready(&eights, &e4m3), 1, "V");
    assert_eq!(made_ready("", &e4m3), 0, "by mma.sync in registers");
    assert_eq!(made_ready(roles, &attention(AttentionFormat::Bf16)), 0);
}
