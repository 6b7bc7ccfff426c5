//! On a B200, attention and 16-bit tokens are predicted by the kernels that run there, which use nothing of Blackwell's own.

use gauntlet_device::{Arch, Device, Figure};
use gauntlet_families::operations::problem;
use gauntlet_problems::{
    AttentionFormat, Form, GemmShape, GroupedGemm, Operation, OutputFormat, Roles, Schedule, TokenFormat,
};
use gauntlet_simulate::Problem;
use gauntlet_simulate::count::Occupancy;
use gauntlet_simulate::gpu::{Machine, assumed};

use crate::support::{attention, device, microseconds, prepared};

fn tokens(tokens: TokenFormat) -> Problem {
    problem(&Operation::GroupedGemm(GroupedGemm {
        groups: vec![GemmShape {
            m: 512,
            n: 4096,
            k: 4096,
        }],
        form: Form::Plain,
        output: OutputFormat::Bf16,
        tokens,
    }))
}

/// The schedule of a kernel by `mma.sync`.
fn unified(tile: [usize; 3], swap_ab: bool) -> Schedule {
    Schedule {
        roles: Roles::Unified,
        swap_ab,
        ..prepared(tile, 2)
    }
}

/// A B200 whose own instructions are ten times as slow to begin.
fn slow_of_its_own() -> Device {
    let mut device = device("b200");
    let pipeline = &mut device.gpu.as_mut().unwrap().pipeline;
    let products = pipeline.products.as_mut().unwrap();
    products.latency = Figure::new(10.0 * products.latency.get(), "made up");
    products.batch = Some(Figure::new(1000.0, "made up"));
    let copy = pipeline.copy.as_mut().unwrap();
    copy.rate = Figure::new(copy.rate.get() / 10.0, "made up");
    device
}

#[test]
fn the_units_of_blackwell_count_only_where_a_kernel_uses_them() {
    let (b200, slow) = (device("b200"), slow_of_its_own());
    let slower = |problem: &Problem, schedule: &Schedule| {
        microseconds(problem, schedule, &slow) / microseconds(problem, schedule, &b200)
    };
    let of_attention = attention(2048, false, AttentionFormat::E4m3);
    assert_eq!(slower(&of_attention, &unified([64, 64, 64], false)), 1.0);
    assert_eq!(
        slower(&tokens(TokenFormat::Bf16), &unified([128, 64, 128], true)),
        1.0
    );
    assert!(slower(&tokens(TokenFormat::Nvfp4), &unified([128, 64, 128], true)) > 2.0);
}

#[test]
fn kernels_of_16_bit_tokens_and_attention_take_no_tensor_memory() {
    let b200 = device("b200");
    let taken = |problem: &Problem, schedule: &Schedule| {
        let occupancy = Occupancy::of(problem, schedule, &b200).unwrap();
        (occupancy.tensor_memory, occupancy.shared_memory, occupancy.warps)
    };
    let of_attention = attention(2048, false, AttentionFormat::F16);
    // 64 queries, and two stages of 64 keys and values, of 128 bytes each.
    assert_eq!(
        taken(&of_attention, &unified([64, 64, 64], false)),
        (0, 5 * 64 * 128, 4)
    );
    // Two stages of 128 rows of packed weights with scales, and of 64 tokens of fp16.
    let wide = unified([128, 64, 128], true);
    assert_eq!(
        taken(&tokens(TokenFormat::F16), &wide),
        (0, 2 * (128 * 72 + 64 * 256), 4)
    );
    assert!(taken(&tokens(TokenFormat::Nvfp4), &wide).0 > 0);
    // Few tokens: one stage of 32 rows of weights and 16 tokens, which have 16 bits in shared memory too.
    let narrow = Schedule {
        stages: 1,
        ..unified([32, 16, 1024], true)
    };
    let (_, bytes, _) = taken(&tokens(TokenFormat::F16), &narrow);
    assert_eq!(bytes, 32 * (512 + 64) + 16 * 2048);
}

#[test]
fn mma_sync_has_the_assumed_share_of_the_rate() {
    let b200 = device("b200");
    let fp16 = b200.gpu.as_ref().unwrap().fp16_rate.get();
    let of_attention = attention(2048, false, AttentionFormat::F16);
    for (problem, schedule) in [
        (of_attention, unified([64, 64, 64], false)),
        (tokens(TokenFormat::Bf16), unified([128, 64, 128], true)),
        (tokens(TokenFormat::Bf16), unified([32, 16, 1024], true)),
    ] {
        let machine = Machine::of(&b200, &problem).unwrap();
        assert_eq!((machine.arch, machine.product_rate), (Arch::Sm89, fp16));
        let scheduled = machine.scheduled(&problem, &schedule, &b200);
        assert_eq!(
            scheduled.product_rate,
            fp16 * assumed::MMA_SYNC_SHARE_OF_BLACKWELL,
            "{schedule}"
        );
    }
}
