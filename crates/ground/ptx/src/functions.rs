//! Instructions that only compute: the bits of the result from the bits of the operands.

use std::cmp::Ordering;

use gauntlet_tensors::e4m3;
use half::{bf16, f16};

use crate::arithmetic::ordinary;
use crate::instruction::Function;
use crate::memory::SHARED_WINDOW;

/// A function of integers of one type to an integer of another; operands and result are truncated as on the hardware.
macro_rules! integer {
    ($from:ty, |$($name:ident),+| $result:expr) => {
        |[$($name,)+ ..]: [u64; 4]| { $(let $name = $name as $from;)+ bits(($result) as i128) & mask::<$from>() }
    };
    ($from:ty => $to:ty, |$($name:ident),+| $result:expr) => {
        |[$($name,)+ ..]: [u64; 4]| { $(let $name = $name as $from;)+ bits(($result) as $to as i128) & mask::<$to>() }
    };
}

/// A function of fp32 numbers to an fp32 number.
macro_rules! float {
    (|$($name:ident),+| $result:expr) => {
        |[$($name,)+ ..]: [u64; 4]| { $(let $name = f32::from_bits($name as u32);)+ let result: f32 = $result; u64::from(result.to_bits()) }
    };
}

macro_rules! compare {
    ($type:ty, $sign:tt) => {
        |[left, right, ..]: [u64; 4]| u64::from((left as $type) $sign (right as $type))
    };
}

macro_rules! compare_floats {
    (|$left:ident, $right:ident| $result:expr) => {
        |[left, right, ..]: [u64; 4]| {
            let ($left, $right) = (f32::from_bits(left as u32), f32::from_bits(right as u32));
            u64::from($result)
        }
    };
}

fn bits(number: i128) -> u64 {
    number as u64
}

fn mask<T>() -> u64 {
    u64::MAX >> (64 - 8 * size_of::<T>())
}

/// The function that a mnemonic computes and its number of operands; `None` for instructions that do something else.
pub(crate) fn function(mnemonic: &str) -> Option<(Function, usize)> {
    if let Some(comparison) = mnemonic.strip_prefix("setp.") {
        return comparison_of(comparison)
            .map(|function| (function, 2))
            .or_else(|| ordinary(mnemonic));
    }
    unary(mnemonic)
        .map(|function| (function, 1))
        .or_else(|| binary(mnemonic).map(|function| (function, 2)))
        .or_else(|| ternary(mnemonic).map(|function| (function, 3)))
        .or_else(|| quaternary(mnemonic).map(|function| (function, 4)))
        .or_else(|| ordinary(mnemonic))
}

fn unary(mnemonic: &str) -> Option<Function> {
    Some(match mnemonic {
        "mov.u16" | "mov.b16" | "cvt.u16.u32" | "cvt.u32.u16" | "cvt.u64.u16" => integer!(u16, |a| a),
        "mov.u32" | "mov.s32" | "mov.b32" | "mov.f32" | "cvt.u32.u64" | "cvt.u64.u32" => integer!(u32, |a| a),
        "mov.u64" | "mov.s64" | "mov.b64" | "cvta.to.global.u64" | "cvta.global.u64" | "cvta.param.u64"
        | "cvta.local.u64" | "cvta.to.local.u64" | "cvta.const.u64" | "cvta.to.const.u64" => |[a, ..]| a,
        "cvta.shared.u64" => |[a, ..]| a & mask::<u32>() | SHARED_WINDOW,
        "cvta.to.shared.u64" => integer!(u32, |a| a),
        "cvt.s64.s32" => integer!(i32 => u64, |a| i64::from(a)),
        "mov.pred" => |[a, ..]| u64::from(a != 0),
        "not.pred" => |[a, ..]| u64::from(a == 0),
        "not.b32" => integer!(u32, |a| !a),
        "not.b64" => |[a, ..]| !a,
        "neg.s32" => integer!(i32, |a| a.wrapping_neg()),
        "neg.f32" => float!(|a| -a),
        "abs.f32" => float!(|a| a.abs()),
        // The hardware's approximations differ from these in the last few bits.
        "ex2.approx.ftz.f32" => float!(|a| flushed(flushed(a).exp2())),
        "ex2.approx.f32" => float!(|a| a.exp2()),
        "rcp.approx.ftz.f32" => float!(|a| flushed(flushed(a).recip())),
        "rcp.rn.f32" => float!(|a| a.recip()),
        "cvt.sat.f32.f32" => float!(|a| if a.is_nan() { 0.0 } else { a.clamp(0.0, 1.0) }),
        "cvt.rn.f32.u32" => |[a, ..]| u64::from((a as u32 as f32).to_bits()),
        "cvt.f32.f16" => |[a, ..]| u64::from(f16::from_bits(a as u16).to_f32().to_bits()),
        "cvt.rn.f16.f32" => |[a, ..]| u64::from(f16::from_f32(f32::from_bits(a as u32)).to_bits()),
        "cvt.rn.bf16.f32" => |[a, ..]| u64::from(bf16::from_f32(f32::from_bits(a as u32)).to_bits()),
        "cvt.rn.f16x2.e4m3x2" => |[a, ..]| {
            let half = |code: u64| f16::from_f32(e4m3::decode(code as u8)).to_bits();
            pair(half(a), half(a >> 8))
        },
        _ => return None,
    })
}

fn binary(mnemonic: &str) -> Option<Function> {
    Some(match mnemonic {
        "add.s32" | "add.u32" => integer!(u32, |a, b| a.wrapping_add(b)),
        "add.s64" | "add.u64" => |[a, b, ..]| a.wrapping_add(b),
        "sub.s16" => integer!(u16, |a, b| a.wrapping_sub(b)),
        "sub.s32" | "sub.u32" => integer!(u32, |a, b| a.wrapping_sub(b)),
        "sub.s64" | "sub.u64" => |[a, b, ..]| a.wrapping_sub(b),
        "mul.lo.s16" | "mul.lo.u16" => integer!(u16, |a, b| a.wrapping_mul(b)),
        "mul.lo.s32" | "mul.lo.u32" => integer!(u32, |a, b| a.wrapping_mul(b)),
        "mul.lo.s64" | "mul.lo.u64" => |[a, b, ..]| a.wrapping_mul(b),
        "mul.wide.u16" => integer!(u16 => u32, |a, b| u32::from(a) * u32::from(b)),
        "mul.wide.u32" => integer!(u32 => u64, |a, b| u64::from(a) * u64::from(b)),
        "mul.wide.s32" => integer!(i32 => u64, |a, b| i64::from(a) * i64::from(b)),
        // A division by zero sets all bits, as on the hardware.
        "div.u32" => integer!(u32, |a, b| a.checked_div(b).unwrap_or(u32::MAX)),
        "rem.u32" => integer!(u32, |a, b| a.checked_rem(b).unwrap_or(u32::MAX)),
        "and.pred" | "and.b16" | "and.b32" | "and.b64" => |[a, b, ..]| a & b,
        "or.pred" | "or.b16" | "or.b32" | "or.b64" => |[a, b, ..]| a | b,
        "xor.pred" | "xor.b16" | "xor.b32" | "xor.b64" => |[a, b, ..]| a ^ b,
        // A shift by more bits than there are gives zero.
        "shl.b16" => |[a, b, ..]| shifted_left(a, b, 16),
        "shl.b32" => |[a, b, ..]| shifted_left(a, b, 32),
        "shl.b64" => |[a, b, ..]| shifted_left(a, b, 64),
        "shr.u16" | "shr.b16" => |[a, b, ..]| shifted_right(a & mask::<u16>(), b),
        "shr.u32" | "shr.b32" => |[a, b, ..]| shifted_right(a & mask::<u32>(), b),
        "shr.u64" | "shr.b64" => |[a, b, ..]| shifted_right(a, b),
        "shr.s32" => integer!(i32, |a, b| a >> (b as u32).min(31)),
        "min.u32" => integer!(u32, |a, b| a.min(b)),
        "max.u32" => integer!(u32, |a, b| a.max(b)),
        "min.s32" => integer!(i32, |a, b| a.min(b)),
        "max.s32" => integer!(i32, |a, b| a.max(b)),
        "add.f32" | "add.rn.f32" => float!(|a, b| a + b),
        "sub.f32" | "sub.rn.f32" => float!(|a, b| a - b),
        "mul.f32" | "mul.rn.f32" => float!(|a, b| a * b),
        "div.rn.f32" | "div.approx.f32" => float!(|a, b| a / b),
        // If one operand is NaN, the result is the other.
        "min.f32" => float!(|a, b| a.min(b)),
        "max.f32" => float!(|a, b| a.max(b)),
        "copysign.f32" => float!(|a, b| b.copysign(a)),
        "mul.rn.f16x2" | "mul.f16x2" => |[a, b, ..]| halves(a, b, |a, b| a * b),
        // Products are exact in f64, so they are rounded once.
        "mul.rn.bf16x2" | "mul.bf16x2" => |[a, b, ..]| {
            let half = |shift: u32| {
                let number = |pair: u64| bf16::from_bits((pair >> shift) as u16).to_f64();
                bf16::from_f64(number(a) * number(b)).to_bits()
            };
            pair(half(0), half(16))
        },
        "add.f32x2" | "add.rn.f32x2" => |[a, b, ..]| singles([a, b, 0], |a, b, _| a + b),
        "mul.f32x2" | "mul.rn.f32x2" => |[a, b, ..]| singles([a, b, 0], |a, b, _| a * b),
        "sub.f16x2" | "sub.rn.f16x2" => |[a, b, ..]| halves(a, b, |a, b| a - b),
        // The first operand becomes the upper half.
        "cvt.rn.f16x2.f32" => |[a, b, ..]| {
            let half = |a: u64| f16::from_f32(f32::from_bits(a as u32)).to_bits();
            pair(half(b), half(a))
        },
        "cvt.rn.bf16x2.f32" => |[a, b, ..]| {
            let half = |a: u64| bf16::from_f32(f32::from_bits(a as u32)).to_bits();
            pair(half(b), half(a))
        },
        "cvt.rn.satfinite.e4m3x2.f32" => |[a, b, ..]| {
            let code = |a: u64| u64::from(e4m3::encode(f32::from_bits(a as u32)));
            code(a) << 8 | code(b)
        },
        _ => return None,
    })
}

fn ternary(mnemonic: &str) -> Option<Function> {
    Some(match mnemonic {
        "mad.lo.s32" | "mad.lo.u32" => integer!(u32, |a, b, c| a.wrapping_mul(b).wrapping_add(c)),
        "fma.rn.f32" => float!(|a, b, c| a.mul_add(b, c)),
        "fma.rm.f32" => float!(|a, b, c| rounded_down(f64::from(a).mul_add(f64::from(b), f64::from(c)))),
        "fma.rn.f32x2" => |[a, b, c, _]| singles([a, b, c], f32::mul_add),
        "prmt.b32" => |[a, b, c, _]| permuted(a & mask::<u32>() | b << 32, c),
        "shf.r.wrap.b32" => |[a, b, c, _]| (a & mask::<u32>() | b << 32) >> (c & 31) & mask::<u32>(),
        "shf.l.wrap.b32" => |[a, b, c, _]| (a & mask::<u32>() | b << 32) << (c & 31) >> 32,
        _ if mnemonic.starts_with("selp.") => |[a, b, c, _]| if c != 0 { a } else { b },
        _ => return None,
    })
}

fn quaternary(mnemonic: &str) -> Option<Function> {
    Some(match mnemonic {
        // Inserts the lowest `count` bits of the first operand into the second, at bit `place`.
        "bfi.b32" => |[a, b, place, count]| {
            let ones = shifted_left(1, count & 0xFF, 64).wrapping_sub(1);
            let (place, whole) = (place & 0xFF, mask::<u32>());
            (b & !shifted_left(ones, place, 64) | shifted_left(a & ones, place, 64)) & whole
        },
        "bfi.b64" => |[a, b, place, count]| {
            let (place, ones) = (place & 0xFF, shifted_left(1, count & 0xFF, 64).wrapping_sub(1));
            b & !shifted_left(ones, place, 64) | shifted_left(a & ones, place, 64)
        },
        // Bit abc of the table is the result where the operands' bits are a, b and c.
        "lop3.b32" => |[a, b, c, table]| {
            let bit = |at: u32| table >> (4 * (a >> at & 1) + 2 * (b >> at & 1) + (c >> at & 1)) & 1;
            (0..32).fold(0, |bits, at| bits | bit(at) << at)
        },
        _ => return None,
    })
}

fn comparison_of(comparison: &str) -> Option<Function> {
    Some(match comparison {
        "eq.s16" | "eq.u16" | "eq.b16" => compare!(u16, ==),
        "ne.s16" | "ne.u16" | "ne.b16" => compare!(u16, !=),
        "eq.s32" | "eq.u32" | "eq.b32" => compare!(u32, ==),
        "ne.s32" | "ne.u32" | "ne.b32" => compare!(u32, !=),
        "lt.u32" => compare!(u32, <),
        "le.u32" => compare!(u32, <=),
        "gt.u32" => compare!(u32, >),
        "ge.u32" => compare!(u32, >=),
        "lt.s32" => compare!(i32, <),
        "le.s32" => compare!(i32, <=),
        "gt.s32" => compare!(i32, >),
        "ge.s32" => compare!(i32, >=),
        "eq.s64" | "eq.u64" | "eq.b64" => compare!(u64, ==),
        "ne.s64" | "ne.u64" | "ne.b64" => compare!(u64, !=),
        "lt.u64" => compare!(u64, <),
        "ge.u64" => compare!(u64, >=),
        "eq.f32" => compare_floats!(|a, b| a == b),
        "lt.f32" => compare_floats!(|a, b| a < b),
        "le.f32" => compare_floats!(|a, b| a <= b),
        "gt.f32" => compare_floats!(|a, b| a > b),
        "ge.f32" => compare_floats!(|a, b| a >= b),
        // These are true if an operand is NaN.
        "neu.f32" => compare_floats!(|a, b| a != b),
        "ltu.f32" => compare_floats!(|a, b| a.partial_cmp(&b).is_none_or(Ordering::is_lt)),
        "leu.f32" => compare_floats!(|a, b| a.partial_cmp(&b).is_none_or(Ordering::is_le)),
        "gtu.f32" => compare_floats!(|a, b| a.partial_cmp(&b).is_none_or(Ordering::is_gt)),
        "geu.f32" => compare_floats!(|a, b| a.partial_cmp(&b).is_none_or(Ordering::is_ge)),
        _ => return None,
    })
}

fn pair(low: u16, high: u16) -> u64 {
    u64::from(high) << 16 | u64::from(low)
}

/// Two fp16 at a time, rounded once: sums and products of two are exact in f64.
fn halves(left: u64, right: u64, function: fn(f64, f64) -> f64) -> u64 {
    let half = |bits: u64| f16::from_bits(bits as u16).to_f64();
    let result = |shift: u32| f16::from_f64(function(half(left >> shift), half(right >> shift))).to_bits();
    pair(result(0), result(16))
}

/// Two fp32 at a time.
fn singles(operands: [u64; 3], function: fn(f32, f32, f32) -> f32) -> u64 {
    let result = |shift: u32| {
        let [a, b, c] = operands.map(|bits| f32::from_bits((bits >> shift) as u32));
        u64::from(function(a, b, c).to_bits()) << shift
    };
    result(0) | result(32)
}

fn flushed(number: f32) -> f32 {
    if number.is_subnormal() {
        0.0_f32.copysign(number)
    } else {
        number
    }
}

fn rounded_down(number: f64) -> f32 {
    let near = number as f32;
    if f64::from(near) > number {
        near.next_down()
    } else {
        near
    }
}

fn shifted_left(bits: u64, by: u64, width: u32) -> u64 {
    match u32::try_from(by) {
        Ok(by) if by < width => bits << by & (u64::MAX >> (64 - width)),
        _ => 0,
    }
}

fn shifted_right(bits: u64, by: u64) -> u64 {
    u32::try_from(by)
        .ok()
        .and_then(|by| bits.checked_shr(by))
        .unwrap_or(0)
}

/// Selects four of eight bytes: the lower three bits of a selector give the byte; with the fourth bit, the byte's sign
/// is repeated eight times.
fn permuted(bytes: u64, selectors: u64) -> u64 {
    let byte = |place: u32| {
        let selector = selectors >> (4 * place);
        let byte = bytes >> (8 * (selector & 7)) & 0xFF;
        match selector & 8 {
            0 => byte,
            _ => 0xFF * (byte >> 7),
        }
    };
    (0..4).fold(0, |result, place| result | byte(place) << (8 * place))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(mnemonic: &str, operands: [u64; 4]) -> u64 {
        function(mnemonic).unwrap().0(operands)
    }

    #[test]
    fn bits_are_moved_as_the_manual_says() {
        assert_eq!(of("prmt.b32", [0x3322_1100, 0x7766_5544, 0x7531, 0]), 0x7755_3311);
        assert_eq!(of("prmt.b32", [0x0000_0080, 0, 0x0008, 0]) & 0xFF, 0xFF);
        assert_eq!(
            of("shf.r.wrap.b32", [0x8000_0001, 0x8000_0001, 1, 0]),
            0xC000_0000
        );
        assert_eq!(of("shf.l.wrap.b32", [0x8000_0001, 0x8000_0001, 4, 0]), 0x18);
        assert_eq!(of("lop3.b32", [0xF0F0, 0xCCCC, 0xAAAA, 0xE4]), 0xE4E4);
        assert_eq!(of("bfi.b32", [0b101, 0xFFFF_FFFF, 4, 3]), 0xFFFF_FFDF);
        assert_eq!(of("shl.b32", [1, 32, 0, 0]), 0);
        assert_eq!(of("shr.s32", [0x8000_0000, 40, 0, 0]), 0xFFFF_FFFF);
        assert_eq!(of("neg.s32", [1, 0, 0, 0]), 0xFFFF_FFFF);
        assert_eq!(of("mul.wide.s32", [0xFFFF_FFFF, 2, 0, 0]), (-2_i64) as u64);
    }

    #[test]
    fn halves_are_rounded_once() {
        let pair_of = |low: f32, high: f32| pair(f16::from_f32(low).to_bits(), f16::from_f32(high).to_bits());
        assert_eq!(
            of("mul.rn.f16x2", [pair_of(3.0, -0.5), pair_of(0.25, 6.0), 0, 0]),
            pair_of(0.75, -3.0)
        );
        let [one, two] = [1.0_f32, 2.0].map(|number| u64::from(number.to_bits()));
        let brains =
            |low: f32, high: f32| pair(bf16::from_f32(low).to_bits(), bf16::from_f32(high).to_bits());
        // A subnormal number too: 2⁻¹²⁷ · 2¹¹⁹.
        let subnormal = 2.0_f32.powi(-127);
        assert_eq!(
            of(
                "mul.rn.bf16x2",
                [brains(subnormal, -0.5), brains(2.0_f32.powi(119), 6.0), 0, 0]
            ),
            brains(2.0_f32.powi(-8), -3.0)
        );
        assert_eq!(of("cvt.rn.f16x2.f32", [one, two, 0, 0]), pair_of(2.0, 1.0));
        let singles = |low: f32, high: f32| u64::from(high.to_bits()) << 32 | u64::from(low.to_bits());
        let operands = [singles(3.0, -0.5), singles(0.25, 6.0), singles(1.0, 2.0), 0];
        assert_eq!(of("fma.rn.f32x2", operands), singles(1.75, -1.0));
        assert_eq!(of("mul.rn.f32x2", operands), singles(0.75, -3.0));
        assert_eq!(of("add.rn.f32x2", operands), singles(3.25, 5.5));
        assert_eq!(of("cvt.rn.f16x2.e4m3x2", [0x7E38, 0, 0, 0]), pair_of(1.0, 448.0));
    }

    #[test]
    fn a_nan_compares_with_nothing() {
        let nan = u64::from(f32::NAN.to_bits());
        assert_eq!(
            ["setp.lt.f32", "setp.eq.f32", "setp.leu.f32", "setp.neu.f32"]
                .map(|one| of(one, [nan, nan, 0, 0])),
            [0, 0, 1, 1]
        );
    }
}
