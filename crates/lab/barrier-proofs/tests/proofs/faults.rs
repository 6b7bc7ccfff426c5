//! Loops with faults of every kind.

use gauntlet_barrier_proofs::{Flaw, FlawKind, prove, recorded};
use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{Epilogue, Roles, Schedule, Tile};
use gauntlet_tile_program::{
    Action, Buffer, Condition, Contents, Extent, Filled, Guard, Role, Signal, Statement, TileProgram,
};

use crate::support::problems;

fn flaw(program: &TileProgram) -> Flaw {
    *prove(program).unwrap_err()
}

fn unified(stages: usize, arch: Arch) -> TileProgram {
    let schedule = Schedule {
        tile: Tile { m: 128, n: 64, k: 64 },
        stages,
        roles: Roles::Unified,
        epilogue: Epilogue::Direct,
        ..Schedule::baseline()
    };
    operations::problem(&problems()[0])
        .model()
        .program(&schedule, arch)
}

/// The program with each statement replaced, innermost first.
fn with(mut program: TileProgram, change: &dyn Fn(Statement) -> Statement) -> TileProgram {
    fn body(statements: Vec<Statement>, change: &dyn Fn(Statement) -> Statement) -> Vec<Statement> {
        let inner = |statement| match statement {
            Statement::Repeat(extent, inner) => Statement::Repeat(extent, body(inner, change)),
            Statement::If(condition, inner) => Statement::If(condition, body(inner, change)),
            Statement::Do(operation) => Statement::Do(operation),
        };
        statements
            .into_iter()
            .map(|statement| change(inner(statement)))
            .collect()
    }
    for role in &mut program.roles {
        role.body = body(std::mem::take(&mut role.body), change);
    }
    program
}

#[test]
fn a_barrier_taken_out_is_a_race_on_the_scores() {
    let flaw = flaw(&recorded::barrier_removed());
    assert_eq!(
        (flaw.kind, flaw.tiles.as_slice()),
        (FlawKind::ReadBeforeFull, &[1][..])
    );
    assert_eq!(
        flaw.sentence,
        "warp 0 of `everyone` takes the softmax of step 0, but warp 1 of `everyone` has yet to multiply step 0 \
         into it"
    );
    let barriers = |text: &&String| text.contains("meet");
    assert_eq!(flaw.interleaving.iter().filter(barriers).count(), 1);
}

#[test]
fn a_wait_for_the_copy_just_committed_overlaps_nothing() {
    let flaw = flaw(&recorded::waits_for_the_copy_just_committed());
    assert_eq!(flaw.kind, FlawKind::NothingOverlaps);
    // The wait before the first product also waits for the copy of the next step.
    let landed = "copy of step 1 into slot 1 of the operands is done";
    assert!(
        flaw.interleaving.iter().any(|event| event.contains(landed)),
        "{flaw:?}"
    );
}

#[test]
fn a_commit_left_out_at_the_end_races_on_the_last_step() {
    let flaw = flaw(&recorded::races_on_the_last_step());
    assert_eq!(
        (flaw.kind, flaw.tiles.as_slice()),
        (FlawKind::MissingCommit, &[2][..])
    );
    assert!(flaw.sentence.contains("step 1 from slot 1"), "{flaw}");
}

#[test]
fn a_prologue_that_commits_only_what_it_loads_races_on_short_tiles() {
    let short = with(unified(4, Arch::Sm80), &|statement| match statement {
        Statement::Repeat(Extent::Times(count), body) => Statement::Repeat(Extent::FirstSteps(count), body),
        other => other,
    });
    let flaw = flaw(&short);
    assert!(flaw.kind.is_race(), "{flaw}");
    assert!(flaw.tiles[0] < 3, "{flaw:?}");
}

#[test]
fn a_barrier_under_a_condition_is_found() {
    let diverging = with(unified(2, Arch::Sm80), &|statement| match statement {
        Statement::Do(Action::Synchronise) => Statement::If(Condition::FirstWarp, vec![statement]),
        other => other,
    });
    let flaw = flaw(&diverging);
    assert_eq!(flaw.kind, FlawKind::DivergentBarrier, "{flaw}");
}

#[test]
fn a_barrier_that_a_role_never_comes_to_is_a_deadlock() {
    let schedule = Schedule {
        roles: Roles::Specialised,
        stages: 2,
        ..Schedule::baseline()
    };
    let program = operations::problem(&problems()[0])
        .model()
        .program(&schedule, Arch::Sm90a);
    let whole = with(program, &|statement| match statement {
        Statement::Do(Action::SynchroniseRole) => Action::Synchronise.into(),
        other => other,
    });
    let flaw = flaw(&whole);
    assert_eq!(flaw.kind, FlawKind::Deadlock);
    assert!(
        flaw.sentence.contains("waits for all warps of the block to meet"),
        "{flaw}"
    );
    assert!(flaw.sentence.ends_with("no warp can go on"), "{flaw}");
}

#[test]
fn a_wait_one_group_too_lenient_reads_what_has_not_landed() {
    for stages in 2..=8 {
        let lenient = with(unified(stages, Arch::Sm89), &|statement| match statement {
            Statement::Do(Action::AwaitCopies { outstanding }) => Action::AwaitCopies {
                outstanding: outstanding + 1,
            }
            .into(),
            other => other,
        });
        let flaw = flaw(&lenient);
        assert_eq!(flaw.kind, FlawKind::ReadBeforeFull, "{flaw}");
    }
}

#[test]
fn a_ring_one_slot_short_is_written_before_it_is_empty() {
    let mut program = unified(3, Arch::Sm80);
    program.buffers[0].slots = 2;
    assert_eq!(flaw(&program).kind, FlawKind::WrittenBeforeEmpty);
}

#[test]
fn two_warps_behind_the_first_may_race_where_none_races_with_the_first() {
    let buffer = |contents| Buffer {
        contents,
        slots: 1,
        filled: Filled::Tile,
        guard: Guard::Barriers,
    };
    let (queries, shared, told) = (0, 1, 2);
    let publish = |buffer| Action::Publish {
        buffer,
        when: Signal::Now,
    };
    // Every warp converts its part and signals that. Only the first warp waits for these signals; the others wait for
    // the first warp, which has only signalled that its own part is there.
    let body = vec![
        Action::Convert {
            from: queries,
            to: Some(shared),
        }
        .into(),
        publish(told).into(),
        Statement::If(
            Condition::FirstWarp,
            vec![publish(shared).into(), Action::Await { buffer: told }.into()],
        ),
        Action::Await { buffer: shared }.into(),
        Action::Convert {
            from: shared,
            to: None,
        }
        .into(),
    ];
    let program = |warps| TileProgram {
        buffers: [Contents::Queries, Contents::Converted, Contents::Scores]
            .map(buffer)
            .into(),
        roles: vec![Role {
            name: "everyone",
            warps,
            body: body.clone(),
        }],
    };
    assert!(prove(&program(2)).is_ok());
    let flaw = flaw(&program(4));
    assert_eq!(flaw.kind, FlawKind::ReadBeforeFull);
    assert!(flaw.sentence.starts_with("warp 1 of `everyone`"), "{flaw}");
    assert!(
        flaw.sentence.contains("warp 2 of `everyone` has yet to convert"),
        "{flaw}"
    );
}
