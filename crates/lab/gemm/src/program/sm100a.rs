//! sm_100a: bulk copies, `tcgen05` issued by one warp, sums in tensor memory.

use gauntlet_problems::resources::tile_sums;
use gauntlet_problems::{Operation, Roles, Schedule};
use gauntlet_tile_program::{Contents, Extent, Filled, Guard, Product, Statement, TileProgram};
use gauntlet_tiled_family::program::{
    Buffers, EVERYONE, READERS, acquire, asynchronous, bulk_epilogue, bulk_producer, first_loads, first_warp,
    loads_of_a_step, now, publish_done, release_when_done, repeat, role, stages, statements, storing_tiles,
    synchronise, wait_for,
};

pub(super) fn program(schedule: &Schedule, operation: &Operation) -> TileProgram {
    let mut buffers = Buffers::default();
    let operands = buffers.operands(schedule, Guard::Barriers);
    let slots = tile_sums(schedule, operation);
    let sums = buffers.add(Contents::Accumulators, slots, Filled::Tile, Guard::Barriers);
    let staging = buffers.staging(schedule);
    let mut finish: Vec<Statement> = vec![wait_for(sums).into()];
    finish.extend(bulk_epilogue(
        staging,
        Some(sums),
        Some(now(sums)),
        synchronise(schedule),
    ));
    let step = [
        wait_for(operands),
        asynchronous(Product::Gemm, operands, Some(sums)),
        release_when_done(operands),
    ];
    let roles = match schedule.roles {
        // Four warps, the first of which loads and multiplies.
        Roles::Unified => {
            let mut tile = first_loads(operands, stages(schedule));
            tile.push(first_warp([acquire(sums)]));
            let (mut body, after) = loads_of_a_step(operands, stages(schedule));
            body.push(first_warp(step));
            body.extend(after);
            tile.push(repeat(Extent::Steps, body));
            tile.push(first_warp([publish_done(sums)]));
            tile.extend(finish);
            vec![role(EVERYONE, READERS, storing_tiles(tile, staging))]
        }
        Roles::Specialised => {
            let multiply = vec![
                acquire(sums).into(),
                repeat(Extent::Steps, statements(step)),
                publish_done(sums).into(),
            ];
            vec![
                bulk_producer(operands, None),
                role("multiplier", 1, vec![repeat(Extent::Tiles, multiply)]),
                role("epilogue", READERS, storing_tiles(finish, staging)),
            ]
        }
    };
    buffers.program(roles)
}
