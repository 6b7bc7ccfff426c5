//! The covering set: complete, accepted, small, and the same every time.
#![expect(clippy::unwrap_used, reason = "tests")]

use std::collections::BTreeSet;
use std::path::Path;

use gauntlet_device::Device;
use gauntlet_problem::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, OutputFormat, Problem, Scaling, Sequence,
};
use gauntlet_schedule::{Options, Roles, Schedule, Word, accepts, pairwise};

fn cpu(threads: usize) -> Device {
    let text = format!(
        "name = \"desk\"\ntitle = \"A desk\"\narch = \"cpu\"\n\
         processors = {{ value = {threads}, unit = \"thread\", source = \"made up\" }}\n\
         memory.l2-size = {{ value = 1, unit = \"MiB\", source = \"made up\" }}\n\
         cpu.simd = {{ value = [], source = \"made up\" }}\n"
    );
    Device::from_toml(&text, Path::new("desk.toml")).unwrap()
}

fn gemm(k: usize) -> Problem {
    let groups = vec![GemmShape { m: 40, n: 512, k }, GemmShape { m: 384, n: 128, k }];
    Problem::GroupedGemm(GroupedGemm {
        groups,
        form: Form::Plain,
        output: OutputFormat::F16,
    })
}

fn attention() -> Problem {
    Problem::Attention(Attention {
        sequences: vec![Sequence {
            queries: 32,
            keys: 300,
        }],
        heads: 1,
        kv_heads: 1,
        head_size: 64,
        causal: false,
        format: AttentionFormat::E4m3,
        scaling: Scaling::PerHead,
        output: OutputFormat::F16,
    })
}

/// Every schedule of the options, written out by hand rather than by the code under test.
fn everything(options: &Options) -> Vec<Schedule> {
    let mut all = vec![Schedule::baseline()];
    let mut vary = |apply: &dyn Fn(&Schedule) -> Vec<Schedule>| all = all.iter().flat_map(apply).collect();
    vary(&|s| {
        options
            .tiles
            .iter()
            .map(|&tile| Schedule { tile, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .stages
            .iter()
            .map(|&stages| Schedule { stages, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .epilogues
            .iter()
            .map(|&epilogue| Schedule {
                epilogue,
                ..s.clone()
            })
            .collect()
    });
    vary(&|s| {
        options
            .roles
            .iter()
            .map(|&roles| Schedule { roles, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .orders
            .iter()
            .map(|&order| Schedule { order, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .lookups
            .iter()
            .map(|&lookup| Schedule { lookup, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .setups
            .iter()
            .map(|&setup| Schedule { setup, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .swap_ab
            .iter()
            .map(|&swap_ab| Schedule { swap_ab, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .split_k
            .iter()
            .map(|&split_k| Schedule { split_k, ..s.clone() })
            .collect()
    });
    vary(&|s| {
        options
            .clusters
            .iter()
            .map(|&cluster| Schedule { cluster, ..s.clone() })
            .collect()
    });
    all
}

fn pairs(schedules: &[Schedule]) -> BTreeSet<(Word, String, Word, String)> {
    let mut pairs = BTreeSet::new();
    for schedule in schedules {
        for left in Word::ALL {
            for right in Word::ALL.into_iter().filter(|right| *right > left) {
                pairs.insert((left, left.value(schedule), right, right.value(schedule)));
            }
        }
    }
    pairs
}

#[test]
fn every_pair_that_can_occur_occurs() {
    for (problem, device) in [
        (gemm(768), cpu(2)),
        (gemm(256), cpu(2)),
        (gemm(768), cpu(1)),
        (attention(), cpu(2)),
    ] {
        let options = Options::cpu(&problem);
        let chosen = pairwise(&options, &problem, &device);
        assert!(chosen.iter().all(|schedule| accepts(schedule, &problem, &device)));
        let feasible: Vec<_> = everything(&options)
            .into_iter()
            .filter(|schedule| accepts(schedule, &problem, &device))
            .collect();
        assert_eq!(pairs(&chosen), pairs(&feasible));
        // 6 tiles × 4 orders are 24 pairs that need a schedule each; no set can be smaller.
        assert!(
            (16..=40).contains(&chosen.len()),
            "{} of {}",
            chosen.len(),
            feasible.len()
        );
    }
}

#[test]
fn the_set_is_the_same_every_time() {
    let problem = gemm(768);
    let options = Options::cpu(&problem);
    assert_eq!(
        pairwise(&options, &problem, &cpu(2)),
        pairwise(&options, &problem, &cpu(2))
    );
}

#[test]
fn what_a_device_refuses_is_left_out() {
    let problem = gemm(768);
    let one = pairwise(&Options::cpu(&problem), &problem, &cpu(1));
    assert!(one.iter().all(|schedule| schedule.roles == Roles::Unified));
    let none = pairwise(
        &Options {
            clusters: vec![[2, 1].into()],
            ..Options::cpu(&problem)
        },
        &problem,
        &cpu(2),
    );
    assert_eq!(none, []);
}
