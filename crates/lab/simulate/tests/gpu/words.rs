//! The effect of each word on a prediction.

use gauntlet_families::operations::{accepts, problem};
use gauntlet_problems::{
    AttentionFormat, Cluster, Epilogue, Form, Lookup, Maps, Operation, Order, Roles, Schedule, Setup,
};
use gauntlet_simulate::{HostTerm, Part, break_down, simulate};

use crate::support::{attention, cases, device, gemm, microseconds, prepared};

#[test]
fn stages_and_roles_hide_latency() {
    let b200 = device("b200");
    let persistent = |stages, roles| Schedule {
        order: Order::Static,
        roles,
        ..prepared([128, 128, 256], stages)
    };
    for problem in &cases()[..3] {
        let time = |stages, roles| microseconds(problem, &persistent(stages, roles), &b200);
        let specialised: Vec<f64> = (1..=6).map(|stages| time(stages, Roles::Specialised)).collect();
        assert!(
            specialised.windows(2).all(|pair| pair[1] <= pair[0] * 1.02),
            "{specialised:?}"
        );
        assert!(specialised[0] > 2.0 * specialised[5], "{specialised:?}");
        // Warps that only load continue with the next tile while the others finish this one.
        assert!(time(4, Roles::Specialised) <= time(4, Roles::Unified));
    }
}

#[test]
fn tiles_and_swapping_change_padding_and_traffic() {
    let h200 = device("h200");
    let swapped = |n| Schedule {
        swap_ab: true,
        order: Order::Static,
        ..prepared([128, n, 128], 4)
    };
    // 40 tokens of 7168 weights: a column tile of 64 is nearly full, one of 128 two thirds empty.
    let few = gemm(Form::Plain, &[40; 8], 7168, 2048);
    let padding = |schedule: &Schedule| {
        break_down(&few, schedule, &h200, HostTerm::default())
            .unwrap()
            .part(Part::Padding)
    };
    assert!(padding(&swapped(128)) > padding(&swapped(40)) + 1e-6);
    // Very narrow tiles read the weights again and again.
    let case = &cases()[0];
    assert!(microseconds(case, &swapped(16), &h200) > 1.5 * microseconds(case, &swapped(64), &h200));
}

#[test]
fn an_epilogue_in_whole_rows_is_shorter_but_takes_memory() {
    let b200 = device("b200");
    // Few steps, so that the cost of results is visible.
    let shallow = gemm(Form::Plain, &[4096], 4096, 256);
    let time = |epilogue, stages| {
        let schedule = Schedule {
            epilogue,
            order: Order::Static,
            ..prepared([128, 128, 256], stages)
        };
        microseconds(&shallow, &schedule, &b200)
    };
    assert!(time(Epilogue::Staged, 4) < 0.9 * time(Epilogue::Direct, 4));
    let staged = Schedule {
        epilogue: Epilogue::Staged,
        ..prepared([128, 128, 256], 6)
    };
    assert!(
        !accepts(&staged, shallow.operation(), &b200),
        "no room for six stages"
    );
}

#[test]
fn persistent_blocks_save_starting_anew_and_sorting_balances() {
    let b200 = device("b200");
    let ordered = |order| Schedule {
        order,
        epilogue: Epilogue::Staged,
        ..prepared([128, 128, 256], 4)
    };
    for problem in &cases()[..2] {
        let time = |order| microseconds(problem, &ordered(order), &b200);
        assert!(time(Order::Static) < time(Order::PerTile));
    }
    // Short tiles first and a long one last is the worst case for every order except sorted.
    let long_last = gemm(Form::Plain, &[2048, 128], 1152, 512);
    let mut operation = long_last.operation().clone();
    if let Operation::GroupedGemm(gemm) = &mut operation {
        gemm.groups[1].k = 16_384;
    }
    let problem = problem(&operation);
    let time = |order| microseconds(&problem, &ordered(order), &b200);
    assert!(time(Order::Sorted) < time(Order::Static));
    assert!(time(Order::Dynamic) <= time(Order::Static) * 1.05);
}

#[test]
fn lookup_costs_more_the_more_groups_there_are() {
    let b200 = device("b200");
    let extra = |groups: usize| {
        let problem = gemm(Form::Plain, &vec![128; groups], 512, 256);
        let time = |lookup| {
            let schedule = Schedule {
                lookup,
                roles: Roles::Unified,
                order: Order::Static,
                ..prepared([128, 128, 256], 1)
            };
            microseconds(&problem, &schedule, &b200)
        };
        time(Lookup::Linear) - time(Lookup::Precomputed)
    };
    assert!(
        extra(4) > 0.0 && extra(64) > 2.0 * extra(4),
        "{} {}",
        extra(4),
        extra(64)
    );
}

#[test]
fn setting_up_in_every_call_costs_the_host_and_the_descriptors() {
    let b200 = device("b200");
    let host = HostTerm {
        constant: 95e-6,
        per_group: 35e-6,
    };
    let case = &cases()[0];
    let once = prepared([128, 128, 256], 4);
    let per_call = Schedule {
        setup: Setup::PerCall,
        ..once.clone()
    };
    let breakdown = break_down(case, &per_call, &b200, host).unwrap();
    assert!((breakdown.part(Part::Host) - (95e-6 + 8.0 * 35e-6)).abs() < 1e-12);
    assert!(breakdown.part(Part::FillAndDrain) > 1e-6);
    assert_eq!(
        break_down(case, &once, &b200, host).unwrap().part(Part::Host),
        0.0
    );
    assert!(microseconds(case, &per_call, &b200) > microseconds(case, &once, &b200) + 1.0);
}

#[test]
fn maps_that_blocks_make_cost_the_descriptors_and_no_host() {
    let b200 = device("b200");
    let case = &cases()[0];
    let prebuilt = prepared([128, 128, 256], 4);
    let own = Schedule {
        maps: Maps::PerBlock,
        ..prebuilt.clone()
    };
    let breakdown = break_down(case, &own, &b200, HostTerm::default()).unwrap();
    assert_eq!(breakdown.part(Part::Host), 0.0);
    assert!(microseconds(case, &own, &b200) > microseconds(case, &prebuilt, &b200) + 1.0);
}

#[test]
fn splitting_the_depth_fills_idle_processors_and_costs_a_reduction() {
    let b200 = device("b200");
    let time = |problem, split_k| {
        let schedule = Schedule {
            split_k,
            epilogue: Epilogue::Staged,
            ..prepared([128, 128, 256], 4)
        };
        microseconds(problem, &schedule, &b200)
    };
    // 16 tiles of 64 steps on 148 multiprocessors.
    let deep = gemm(Form::Plain, &[128], 2048, 16_384);
    assert!(time(&deep, 4) < 0.6 * time(&deep, 1));
    assert!(time(&cases()[1], 2) > time(&cases()[1], 1));
}

#[test]
fn clusters_share_loads() {
    // All operands are in the cache, and its rate is the limit: sharing helps.
    let mut h200 = device("h200");
    h200.memory.l2_rate = Some(gauntlet_device::Figure::new(11.5, "made up, to limit"));
    let large = gemm(Form::Plain, &[4096], 4096, 2048);
    let time = |m, n| {
        let schedule = Schedule {
            cluster: Cluster { m, n },
            swap_ab: true,
            order: Order::Static,
            ..prepared([128, 128, 128], 4)
        };
        microseconds(&large, &schedule, &h200)
    };
    assert!(time(2, 1) < 0.95 * time(1, 1), "{} {}", time(2, 1), time(1, 1));
    // A pair on sm_100a multiplies one tile of 256 rows; each block copies half of the columns.
    let b200 = device("b200");
    let narrow = |m, cluster| Schedule {
        swap_ab: true,
        order: Order::Static,
        cluster: Cluster { m: cluster, n: 1 },
        ..prepared([m, 64, 256], 5)
    };
    let case = &cases()[0];
    assert!(microseconds(case, &narrow(256, 2), &b200) < microseconds(case, &narrow(128, 1), &b200));
}

#[test]
fn e4m3_is_converted_where_it_is_not_multiplied() {
    let schedule = Schedule {
        lookup: Lookup::Precomputed,
        ..prepared([64, 64, 64], 2)
    };
    let conversion = |name, format| {
        let problem = attention(2048, false, format);
        let breakdown = break_down(&problem, &schedule, &device(name), HostTerm::default()).unwrap();
        breakdown.part(Part::Conversion)
            / simulate(&problem, &schedule, &device(name), HostTerm::default())
                .unwrap()
                .seconds
    };
    assert!(conversion("a100", AttentionFormat::E4m3) > conversion("a100", AttentionFormat::F16));
}
