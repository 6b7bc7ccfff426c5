use super::*;

fn of(mnemonic: &str, operands: [u64; 4]) -> u64 {
    ordinary(mnemonic).unwrap_or_else(|| panic!("{mnemonic}")).0(operands)
}

fn float_bits(value: f32) -> u64 {
    value.to_bits().into()
}

#[test]
fn whole_numbers_wrap_and_keep_their_width() {
    assert_eq!(of("add.s32", [u32::MAX.into(), 2, 0, 0]), 1);
    assert_eq!(of("mul.hi.u32", [1 << 31, 6, 0, 0]), 3);
    assert_eq!(
        of("mul.hi.s32", [-4_i32 as u32 as u64, 1 << 30, 0, 0]),
        u64::from(u32::MAX)
    );
    assert_eq!(of("mul.hi.u64", [u64::MAX, u64::MAX, 0, 0]), u64::MAX - 1);
    assert_eq!(of("mul.hi.s64", [-1_i64 as u64, 5, 0, 0]), u64::MAX);
    assert_eq!(
        of("mul.wide.s16", [-2_i16 as u16 as u64, 3, 0, 0]),
        u64::from(-6_i32 as u32)
    );
    assert_eq!(of("mad.wide.s32", [-2_i32 as u32 as u64, 3, 10, 0]), 4);
    assert_eq!(of("mad.lo.s64", [3, 4, 5, 0]), 17);
    assert_eq!(
        of("div.s32", [-7_i32 as u32 as u64, 2, 0, 0]),
        u64::from(-3_i32 as u32)
    );
    assert_eq!(of("rem.s64", [-7_i64 as u64, 2, 0, 0]), -1_i64 as u64);
    assert_eq!(of("div.u64", [7, 0, 0, 0]), u64::MAX);
    assert_eq!(of("shr.s64", [-8_i64 as u64, 70, 0, 0]), u64::MAX);
    assert_eq!(of("shl.b64", [1, 40, 0, 0]), 1 << 40);
    assert_eq!(of("clz.b32", [1, 0, 0, 0]), 31);
    assert_eq!(of("bfind.u32", [0x80, 0, 0, 0]), 7);
    assert_eq!(of("bfind.shiftamt.u32", [0x80, 0, 0, 0]), 24);
    assert_eq!(of("bfind.u32", [0; 4]), u64::from(u32::MAX));
    assert_eq!(of("bfind.s32", [0xFFFF_FF00, 0, 0, 0]), 7);
    assert_eq!(of("bfind.u64", [1 << 63, 0, 0, 0]), 63);
    assert_eq!(of("bfe.u32", [0xABCD, 4, 8, 0]), 0xBC);
    assert_eq!(of("bfe.s32", [0xFFFF_FF80, 4, 4, 0]), u64::from(-8_i32 as u32));
    assert_eq!(of("setp.lo.u64", [1, 2, 0, 0]), 1);
    assert_eq!(of("setp.gt.s64", [-1_i64 as u64, 2, 0, 0]), 0);
    assert_eq!(of("abs.s32", [-5_i32 as u32 as u64, 0, 0, 0]), 5);
}

#[test]
fn floats_of_all_widths_compute() {
    assert_eq!(of("sqrt.rn.f32", [float_bits(9.0), 0, 0, 0]), float_bits(3.0));
    assert_eq!(
        of("rsqrt.approx.ftz.f32", [float_bits(4.0), 0, 0, 0]),
        float_bits(0.5)
    );
    assert_eq!(
        of(
            "fma.rn.f64",
            [2.0_f64.to_bits(), 3.0_f64.to_bits(), 1.0_f64.to_bits(), 0]
        ),
        7.0_f64.to_bits()
    );
    let half = |value: f32| u64::from(f16::from_f32(value).to_bits());
    assert_eq!(of("fma.rn.f16", [half(2.0), half(3.0), half(0.5), 0]), half(6.5));
    let pair = |low: f32, high: f32| {
        let [low, high] = [low, high].map(|value| u64::from(bf16::from_f32(value).to_bits()));
        high << 16 | low
    };
    assert_eq!(
        of("add.bf16x2", [pair(1.0, 2.0), pair(0.5, -2.0), 0, 0]),
        pair(1.5, 0.0)
    );
    let nan = float_bits(f32::NAN);
    assert_eq!(of("setp.nan.f32", [nan, 0, 0, 0]), 1);
    assert_eq!(of("setp.ne.f32", [nan, 0, 0, 0]), 0);
    assert_eq!(of("setp.geu.f64", [f64::NAN.to_bits(), 0, 0, 0]), 1);
    assert_eq!(of("max.f32", [nan, float_bits(1.0), 0, 0]), float_bits(1.0));
}

#[test]
fn conversions_round_as_they_say() {
    let minus = float_bits(-2.5);
    for (mnemonic, expected) in [
        ("cvt.rni.s32.f32", -2),
        ("cvt.rmi.s32.f32", -3),
        ("cvt.rpi.s32.f32", -2),
        ("cvt.rzi.s32.f32", -2),
    ] {
        assert_eq!(
            of(mnemonic, [minus, 0, 0, 0]),
            u64::from(expected as u32),
            "{mnemonic}"
        );
    }
    assert_eq!(of("cvt.rzi.u32.f32", [minus, 0, 0, 0]), 0);
    assert_eq!(
        of("cvt.rn.f32.s32", [-3_i32 as u32 as u64, 0, 0, 0]),
        float_bits(-3.0)
    );
    assert_eq!(
        of("cvt.rn.f32.u64", [1 << 40, 0, 0, 0]),
        float_bits(1_099_511_627_776.0)
    );
    assert_eq!(of("cvt.f64.f32", [float_bits(0.5), 0, 0, 0]), 0.5_f64.to_bits());
    assert_eq!(
        of("cvt.rn.f32.f64", [0.1_f64.to_bits(), 0, 0, 0]),
        float_bits(0.1)
    );
    assert_eq!(of("cvt.rmi.f32.f32", [minus, 0, 0, 0]), float_bits(-3.0));
    assert_eq!(of("cvt.s64.s32", [-1_i32 as u32 as u64, 0, 0, 0]), u64::MAX);
    assert_eq!(of("cvt.u16.u32", [0x12345, 0, 0, 0]), 0x2345);
    assert_eq!(of("cvt.s32.s8", [0xFF, 0, 0, 0]) as u32, u32::MAX);
    let one = u64::from(bf16::from_f32(1.5).to_bits());
    assert_eq!(of("cvt.f32.bf16", [one, 0, 0, 0]), float_bits(1.5));
}

#[test]
fn what_would_change_the_result_is_not_known() {
    for mnemonic in [
        "add.rz.f32",
        "add.sat.f32",
        "add.cc.u32",
        "cvt.rz.f32.f64",
        "cvt.sat.u8.s32",
        "sad.u32",
    ] {
        assert!(ordinary(mnemonic).is_none(), "{mnemonic}");
    }
}

#[test]
fn atomics_give_the_new_word() {
    let of = |operation: &str, type_name: &str, operands| atomic(operation, type_name).unwrap().0(operands);
    assert_eq!(
        of("add", "f32", [float_bits(1.0), float_bits(2.0), 0, 0]),
        float_bits(3.0)
    );
    assert_eq!(of("max", "s32", [-1_i32 as u32 as u64, 0, 0, 0]), 0);
    assert_eq!(of("cas", "b32", [5, 5, 9, 0]), 9);
    assert_eq!(of("cas", "b32", [5, 6, 9, 0]), 5);
    assert_eq!(of("exch", "b32", [5, 6, 0, 0]), 6);
    assert_eq!(of("inc", "u32", [3, 3, 0, 0]), 0);
    assert!(atomic("mul", "f32").is_none());
}
