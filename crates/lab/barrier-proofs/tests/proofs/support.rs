//! Problems and schedules of every kind.

use gauntlet_device::Arch;
use gauntlet_families::operations;
use gauntlet_problems::{Attention, AttentionFormat, Form, GroupedGemm, Operation};
use gauntlet_problems::{Epilogue, Order, Roles, Schedule, Scores, Tile};
use gauntlet_tile_program::TileProgram;

pub const ARCHS: [Arch; 5] = [Arch::Cpu, Arch::Sm80, Arch::Sm89, Arch::Sm90a, Arch::Sm100a];

pub fn problems() -> Vec<Operation> {
    let gemm = |form| Operation::GroupedGemm(GroupedGemm::new(form, [[256, 256, 4096]]));
    let attention = |format| Operation::Attention(Attention::new(format, [[512, 512]], [8, 8], 64));
    vec![
        gemm(Form::Plain),
        gemm(Form::Swiglu),
        attention(AttentionFormat::F16),
        attention(AttentionFormat::E4m3),
    ]
}

/// All combinations of the schedule words that change the program, for a problem.
pub fn schedules(problem: &Operation) -> Vec<Schedule> {
    let (swaps, scores): (&[bool], &[Scores]) = match problem {
        Operation::GroupedGemm(_) => (&[false, true], &[Scores::Registers]),
        Operation::Attention(_) => (&[false], &[Scores::Registers, Scores::InPlace, Scores::Separate]),
    };
    let tile = Tile { m: 128, n: 64, k: 64 };
    let mut schedules = Vec::new();
    for stages in 1..=8 {
        for roles in [Roles::Unified, Roles::Specialised] {
            for epilogue in [Epilogue::Direct, Epilogue::Staged] {
                for order in [Order::PerTile, Order::Static] {
                    let words = swaps
                        .iter()
                        .flat_map(|swap| scores.iter().map(move |scores| (*swap, *scores)));
                    schedules.extend(words.map(|(swap_ab, scores)| Schedule {
                        tile,
                        stages,
                        roles,
                        epilogue,
                        order,
                        swap_ab,
                        scores,
                        ..Schedule::baseline()
                    }));
                }
            }
        }
    }
    schedules
}

/// A program, and what it was generated from.
pub struct Shipped {
    pub arch: Arch,
    pub schedule: Schedule,
    pub attention: bool,
    pub program: TileProgram,
}

/// All distinct programs.
pub fn programs() -> Vec<Shipped> {
    let mut programs: Vec<Shipped> = Vec::new();
    for arch in ARCHS {
        for problem in problems() {
            for schedule in schedules(&problem) {
                let program = operations::problem(&problem).model().program(&schedule, arch);
                if programs.iter().all(|known| known.program != program) {
                    programs.push(Shipped {
                        arch,
                        schedule,
                        attention: matches!(problem, Operation::Attention(_)),
                        program,
                    });
                }
            }
        }
    }
    programs
}
