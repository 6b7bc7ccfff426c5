//! The units and the engine, tested on small handwritten programs. Figures marked as inputs are in the device's
//! description or were used to derive it; the others are checks.

mod cohorts;
mod h200;
mod pipelines;
mod units;

use gauntlet_device::Device;
use gauntlet_problems::{Cluster, Roles, Schedule, Tile};
use gauntlet_problems::{Form, GroupedGemm, Operation};
use gauntlet_tile_program::{
    Action, Buffer, Contents, CopyMethod, Extent, Filled, Guard, Product, Role, Signal, Statement,
    TileProgram,
};

use gauntlet_families::operations;
use gauntlet_simulate::Problem;
use gauntlet_simulate::gpu::{
    Bundle, Code, Costs, Deal, Ideal, Kind, Machine, Outcome, Scene, Setting, Transfer, run,
};

/// One group of one product.
fn gemm(m: usize, n: usize, k: usize) -> Problem {
    groups([[m, n, k]])
}

fn groups(groups: impl IntoIterator<Item = [usize; 3]>) -> Problem {
    operations::problem(&Operation::GroupedGemm(GroupedGemm::new(Form::Plain, groups)))
}

fn specialised(tile: [usize; 3], stages: usize) -> Schedule {
    Schedule {
        tile: Tile::from(tile),
        stages,
        roles: Roles::Specialised,
        ..Schedule::baseline()
    }
}

/// The kinds of tiles when this many clusters run at a time, with their costs.
fn tiles(problem: &Problem, schedule: &Schedule, machine: &Machine, clusters: usize) -> Vec<(Kind, Costs)> {
    let bundle = Bundle::of(schedule, machine.arch);
    let setting = Setting {
        problem,
        schedule,
        machine,
        bundle,
        ideal: Ideal::default(),
    };
    problem
        .model()
        .kinds(schedule, bundle, machine.cache_size, clusters, machine.arch)
        .into_iter()
        .map(|kind| {
            let costs = Costs::of(&kind, &setting);
            (kind, costs)
        })
        .collect()
}

/// The machine and the costs of a problem that is a single tile.
fn single(name: &str, schedule: &Schedule) -> (Machine, Kind, Costs) {
    let tile = schedule.tile;
    let (m, n) = if schedule.swap_ab {
        (tile.n, tile.m)
    } else {
        (tile.m, tile.n)
    };
    let problem = gemm(m, n, 64 * tile.k);
    let device = Device::builtin(name).unwrap();
    let mut machine = Machine::of(&device, &problem).unwrap();
    machine.block_start = 0.0;
    let (kind, costs) = tiles(&problem, schedule, &machine, 1).remove(0);
    let costs = Costs {
        lookup: 0.0,
        descriptors: 0.0,
        ..costs
    };
    (machine, kind, costs)
}

/// Runs one tile of these costs on one multiprocessor.
fn one_tile(program: &TileProgram, machine: &Machine, kind: Kind, costs: Costs, pair: bool) -> Outcome {
    let code = Code::of(program);
    let kind = Kind { count: 1, ..kind };
    let deal = Deal::of(&[kind], gauntlet_problems::Order::Static, 1, 1);
    let scene = Scene {
        code: &code,
        costs: &[costs],
        machine,
        ideal: Ideal::default(),
        width: 1,
        pair,
        recording: false,
    };
    let outcome = run(scene, &deal);
    assert!(outcome.complete);
    outcome
}

fn role(name: &'static str, body: Vec<Action>) -> Role {
    let steps = Statement::Repeat(Extent::Steps, body.into_iter().map(Statement::Do).collect());
    Role {
        name,
        warps: 1,
        body: vec![Statement::Repeat(Extent::Tiles, vec![steps])],
    }
}

fn operands(slots: usize) -> Buffer {
    Buffer {
        contents: Contents::Operands,
        slots,
        filled: Filled::Step,
        guard: Guard::Barriers,
    }
}

fn producer() -> Role {
    let acquire = Action::Acquire { buffer: 0, ahead: 0 };
    let load = Action::Load {
        buffer: 0,
        ahead: 0,
        copy: CopyMethod::Bulk,
    };
    role("producer", vec![acquire, load])
}

const MULTIPLY: Action = Action::Multiply {
    product: Product::Gemm,
    from: 0,
    to: None,
    asynchronous: true,
};

fn release(when: Signal) -> Action {
    Action::Release { buffer: 0, when }
}
