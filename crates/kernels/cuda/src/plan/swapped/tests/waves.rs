//! Tiles that run at the same time share their groups' tokens where the level-2 cache cannot hold all of them.

use std::collections::BTreeSet;

use super::coverage::check;
use super::*;
use crate::plan::swapped::balance::placement;
use crate::plan::swapped::packing::Placement;

/// The automatic choice's.
fn sorted(form: Form) -> Schedule {
    let rows = match form {
        Form::Plain => 128,
        Form::Swiglu => 64,
    };
    schedule([rows, 256], 3, Order::Sorted, 4)
}

fn placement_of(gemm: &GroupedGemm) -> Placement {
    let geometry = Geometry::new(gemm, &sorted(gemm.form), hopper()).unwrap();
    let cutter = Cutter {
        gemm,
        geometry: &geometry,
        costs: &Costs::new(geometry.width),
        mixed: true,
    };
    placement(&cutter, PROCESSORS as usize)
}

/// Experts of Qwen3-235B's first product with equally many tokens.
fn even(experts: usize, tokens: usize) -> GroupedGemm {
    gemm(&vec![[tokens, 3072, 4096]; experts], Form::Plain)
}

/// The same with 8 to 512 tokens each.
fn uneven(experts: usize) -> GroupedGemm {
    let shapes: Vec<_> = (0..experts)
        .map(|expert| [8 + expert * 37 % 505, 3072, 4096])
        .collect();
    gemm(&shapes, Form::Plain)
}

/// The largest number of groups, and of bytes of their converted tokens, that workers process at the same time
/// according to the cost model.
fn most_in_flight(gemm: &GroupedGemm, plan: &SwappedPlan) -> (usize, usize) {
    let costs = Costs::new(256);
    let mut intervals = Vec::new();
    for bounds in plan.offsets().windows(2) {
        let mut start = 0.0;
        for tile in &plan.tiles()[bounds[0] as usize..bounds[1] as usize] {
            let columns = tile.width.next_multiple_of(8) as usize;
            let end = start + costs.whole(columns, tile.chunks as usize);
            intervals.push((start, end, tile.group as usize, tile.token));
            start = end;
        }
    }
    let in_flight = intervals.iter().map(|&(at, ..)| {
        let running = intervals
            .iter()
            .filter(|&&(start, end, ..)| start <= at && at < end);
        let kinds: BTreeSet<_> = running.map(|&(_, _, group, token)| (group, token)).collect();
        let groups: BTreeSet<_> = kinds.iter().map(|&(group, _)| group).collect();
        let bytes = groups
            .iter()
            .map(|&group| 2 * gemm.groups[group].m * gemm.groups[group].k);
        (groups.len(), bytes.sum::<usize>())
    });
    in_flight.fold((0, 0), |most, now| (most.0.max(now.0), most.1.max(now.1)))
}

#[test]
fn waves_are_for_calls_whose_tokens_come_from_memory_too_often() {
    assert_eq!(placement_of(&even(128, 256)), Placement::MostLeft);
    assert_eq!(placement_of(&even(64, 256)), Placement::MostLeft);
    assert_eq!(placement_of(&uneven(128)), Placement::MostLeft);
    // The tokens are as large as the cache, through which weights and results pass too.
    let down = gemm(&vec![[128, 4096, 1536]; 128], Form::Plain);
    assert_eq!(placement_of(&down), Placement::MostLeft);
    // Here this is as fast as one block a tile, which runs in waves.
    assert_eq!(placement_of(&even(32, 256)), Placement::LeastLeft);
    // The tokens fit the cache.
    assert_eq!(placement_of(&even(128, 32)), Placement::LeastLeft);
    // One product: many workers share its tokens.
    let dense = gemm(&[[4096, 8192, 8192]], Form::Plain);
    assert_eq!(placement_of(&dense), Placement::LeastLeft);
}

#[test]
fn tiles_in_flight_touch_few_groups() {
    // With 24 tiles a group, 132 workers process the tiles of 6 or 7 groups, and of the groups whose split tiles come
    // first.
    for (gemm, most_groups) in [(even(128, 256), 12), (even(64, 256), 12), (uneven(128), 24)] {
        let plan = check(&gemm, &sorted(Form::Plain), PROCESSORS);
        let (groups, bytes) = most_in_flight(&gemm, &plan);
        assert!(groups <= most_groups, "{groups} groups in flight");
        assert!(bytes <= 50 << 20, "{bytes} bytes of tokens in flight");
    }
}

#[test]
fn waves_end_together() {
    for gemm in [even(128, 256), even(64, 256), uneven(128)] {
        let balance = check(&gemm, &sorted(Form::Plain), PROCESSORS).balance();
        let even = balance.busy / f64::from(PROCESSORS);
        assert!(balance.makespan < 1.02 * even, "{balance:?}");
        assert!(balance.busy < 1.02 * balance.work, "{balance:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 30, ..ProptestConfig::default() })]

    #[test]
    fn waves_compute_every_tile_once(
        tokens in proptest::collection::vec(0usize..700, 60..140),
        dual in any::<bool>(),
        processors in 100u32..150,
    ) {
        let shapes: Vec<_> = tokens.iter().map(|&m| [m, 700, 4096]).collect();
        let form = if dual { Form::Swiglu } else { Form::Plain };
        check(&gemm(&shapes, form), &sorted(form), processors);
    }
}
