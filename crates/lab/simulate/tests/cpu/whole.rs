//! Whole calls of any schedule: parts add up, and repeats agree.

use proptest::prelude::*;

use super::*;

fn schedules() -> impl Strategy<Value = Schedule> {
    let orders = prop::sample::select(vec![Order::PerTile, Order::Static, Order::Sorted, Order::Dynamic]);
    let words = (1..5_usize, orders, any::<[bool; 4]>(), 1..4_usize);
    let tiles = (1..9_usize, 1..9_usize, 1..5_usize);
    (words, tiles).prop_map(
        |((stages, order, [specialised, staged, once, swap], split), (m, n, k))| Schedule {
            tile: Tile {
                m: 16 * m,
                n: 16 * n,
                k: 64 * k,
            },
            stages,
            order,
            roles: if specialised {
                Roles::Specialised
            } else {
                Roles::Unified
            },
            epilogue: if staged {
                Epilogue::Staged
            } else {
                Epilogue::Direct
            },
            setup: if once { Setup::Once } else { Setup::PerCall },
            swap_ab: swap,
            split_k: split,
            ..Schedule::baseline()
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn parts_add_up_and_none_is_negative(
        schedule in schedules(),
        threads in 1..6_usize,
        rows in prop::collection::vec(0..150_usize, 1..5),
        causal in any::<bool>(),
        is_calibrated in any::<bool>(),
    ) {
        let device = if is_calibrated { calibrated(threads) } else { uncalibrated(threads) };
        let host = HostTerm { constant: 1e-6, per_group: 1e-7 };
        for problem in [gemm(&rows, 200, 704), attention(rows[0] + 1, 190, causal)] {
            let simulation = simulate(&problem, &schedule, &device, host).unwrap();
            let again = simulate(&problem, &schedule, &device, host).unwrap();
            prop_assert_eq!(simulation.seconds.to_bits(), again.seconds.to_bits());
            let breakdown = break_down(&problem, &schedule, &device, host).unwrap();
            prop_assert!((breakdown.total() - simulation.seconds).abs() <= 1e-9 * simulation.seconds);
            prop_assert!(breakdown.parts.iter().all(|part| part.seconds >= 0.0));
            prop_assert!(breakdown.part(Part::Host) >= host.seconds(&problem, &schedule) * 0.999);
            prop_assert!(simulation.seconds >= simulation.roofline);
        }
    }
}
