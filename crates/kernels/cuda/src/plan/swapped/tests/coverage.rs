//! Checks that every output is computed once, in an order that the kernel supports.

use std::collections::BTreeMap;

use super::*;
use crate::plan::DEPTH_STEP;
use crate::plan::swapped::{Tile, WHOLE};

/// Every output of every group must get every value of the depth exactly once.
fn check_coverage(gemm: &GroupedGemm, schedule: &Schedule, plan: &SwappedPlan) {
    let mut tiles: BTreeMap<[u32; 4], Vec<Tile>> = BTreeMap::new();
    for &tile in plan.tiles() {
        let place = [tile.group, tile.row, tile.token, tile.width];
        tiles.entry(place).or_default().push(tile);
    }
    let mut slots = Vec::new();
    let mut tokens: BTreeMap<[u32; 2], Vec<[u32; 2]>> = BTreeMap::new();
    for (&[group, row, token, width], parts) in &mut tiles {
        assert!(width > 0 && width as usize <= schedule.tile.n && token.is_multiple_of(8));
        tokens.entry([group, row]).or_default().push([token, width]);
        parts.sort_by_key(|tile| tile.first_chunk);
        let count = parts.len() as u32;
        assert!(count as usize <= schedule.split_k);
        let mut chunk = 0;
        for (index, tile) in (0..).zip(parts.iter()) {
            assert!(tile.chunks > 0 && tile.chunks.is_multiple_of(2));
            assert_eq!((tile.first_chunk, tile.parts), (chunk, index | count << 16));
            assert_eq!(tile.slot, parts[0].slot);
            chunk += tile.chunks;
        }
        let depth = gemm.groups[group as usize].k.next_multiple_of(DEPTH_STEP);
        assert_eq!(chunk as usize * 128, depth);
        if count == 1 {
            assert_eq!(parts[0].slot, WHOLE);
        } else {
            slots.extend(parts[0].slot..parts[0].slot + count);
        }
    }
    slots.sort_unstable();
    assert!(
        slots.iter().copied().eq(0..slots.len() as u32),
        "each part has a place of its own"
    );
    for (index, shape) in gemm.groups.iter().enumerate() {
        for row in (0..shape.n).step_by(schedule.tile.m) {
            let mut end = 0;
            for [token, width] in tokens.remove(&[index as u32, row as u32]).unwrap_or_default() {
                assert_eq!(token, end, "tokens of group {index}, row {row}");
                end += width;
            }
            assert_eq!(end as usize, shape.m);
        }
    }
    assert!(tokens.is_empty(), "{tokens:?}");
}

/// The widths that are computed must not rise within a worker, and parts of split tiles come before whole ones of the same width.
fn check_order(plan: &SwappedPlan) {
    for bounds in plan.offsets().windows(2) {
        let share = &plan.tiles()[bounds[0] as usize..bounds[1] as usize];
        let keys = share.iter().map(|tile| {
            (
                plan.tables.geometry.columns(tile.width as usize),
                tile.slot != WHOLE,
            )
        });
        assert!(keys.is_sorted_by(|left, right| left >= right));
    }
}

pub fn check(gemm: &GroupedGemm, schedule: &Schedule, processors: u32) -> SwappedPlan {
    let plan = SwappedPlan::new(gemm, schedule, Target::hopper(processors)).unwrap();
    check_coverage(gemm, schedule, &plan);
    let offsets = plan.offsets();
    assert_eq!(
        (offsets[0], offsets.last()),
        (0, Some(&(plan.tiles().len() as u32)))
    );
    assert!(offsets.is_sorted());
    match schedule.order {
        Order::PerTile => assert!((0..).zip(offsets).all(|(worker, &offset)| worker == offset)),
        Order::Sorted => check_order(&plan),
        Order::Static | Order::Dynamic => {}
    }
    if schedule.order != Order::PerTile {
        assert_eq!(plan.workers(), processors);
    }
    assert_eq!(offsets.len(), plan.workers() as usize + 1);
    plan
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_output_gets_all_of_its_depth_once(
        shapes in shapes(2000),
        (form, schedule) in any_schedule(),
        processors in 1u32..150,
    ) {
        check(&gemm(&shapes, form), &schedule, processors);
    }

    #[test]
    fn a_plan_is_the_same_each_time(shapes in shapes(2000), (form, schedule) in any_schedule()) {
        let gemm = gemm(&shapes, form);
        let plan = || SwappedPlan::new(&gemm, &schedule, hopper()).unwrap();
        let (first, second) = (plan(), plan());
        prop_assert_eq!(first.tiles(), second.tiles());
        prop_assert_eq!(first.offsets(), second.offsets());
    }
}
