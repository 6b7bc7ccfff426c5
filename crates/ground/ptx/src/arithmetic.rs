//! Instructions that compute, for all ordinary types: what compilers make of common kernels.
//!
//! A mnemonic is split into an operation, modifiers and types. Rounding other than to nearest is supported for
//! conversions only; any other modifier that would change the result is refused, by not being known here.

use std::cmp::Ordering;

use half::{bf16, f16};

use self::conversions::conversion;
use crate::instruction::Function;

/// A type of registers, read from and written to the low bits.
trait Element: Copy {
    fn read(bits: u64) -> Self;
    fn bits(self) -> u64;
}

macro_rules! elements {
    ($($type:ty: $read:expr, $bits:expr;)+) => {
        $(impl Element for $type {
            fn read(bits: u64) -> Self {
                let read: fn(u64) -> $type = $read;
                read(bits)
            }

            fn bits(self) -> u64 {
                let bits: fn($type) -> u64 = $bits;
                bits(self)
            }
        })+
    };
}

elements! {
    u8: |bits| bits as u8, |value| value.into();
    u16: |bits| bits as u16, |value| value.into();
    u32: |bits| bits as u32, |value| value.into();
    u64: |bits| bits, |value| value;
    i8: |bits| bits as i8, |value| u64::from(value as u8);
    i16: |bits| bits as i16, |value| u64::from(value as u16);
    i32: |bits| bits as i32, |value| u64::from(value as u32);
    i64: |bits| bits as i64, |value| value as u64;
    f32: |bits| f32::from_bits(bits as u32), |value| value.to_bits().into();
    f64: f64::from_bits, f64::to_bits;
    f16: |bits| f16::from_bits(bits as u16), |value| value.to_bits().into();
    bf16: |bits| bf16::from_bits(bits as u16), |value| value.to_bits().into();
}

/// A function of operands of one type.
macro_rules! of {
    ($type:ty, |$($name:ident),+| $result:expr) => {
        |[$($name,)+ ..]: [u64; 4]| {
            $(let $name = <$type as Element>::read($name);)+
            Element::bits($result)
        }
    };
}

// Behind the macro that it uses.
mod conversions;

/// Halves are computed in f32 and rounded once: sums, products and products of three factors of 11 bits are exact
/// enough for that.
macro_rules! half_of {
    ($type:ty, |$($name:ident),+| $result:expr) => {
        |[$($name,)+ ..]: [u64; 4]| {
            $(let $name = f64::from(<$type as Element>::read($name));)+
            <$type>::from_f64($result).bits()
        }
    };
}

/// Two halves in one register.
macro_rules! pair_of {
    ($type:ty, |$($name:ident),+| $result:expr) => {
        |operands: [u64; 4]| {
            let one = |shift: u32| {
                let [$($name,)+ ..] = operands.map(|bits| f64::from(<$type as Element>::read(bits >> shift)));
                <$type>::from_f64($result).bits()
            };
            one(16) << 16 | one(0)
        }
    };
}

/// A mnemonic without the modifiers that do not matter here.
struct Parts<'t> {
    operation: &'t str,
    modifiers: Vec<&'t str>,
    type_name: &'t str,
}

/// The function that a mnemonic computes and its number of operands.
pub(crate) fn ordinary(mnemonic: &str) -> Option<(Function, usize)> {
    let mut parts = mnemonic.split('.');
    let operation = parts.next()?;
    let mut modifiers: Vec<_> = parts.collect();
    let type_name = modifiers.pop()?;
    if operation == "cvt" {
        let from = type_name;
        let to = modifiers.pop()?;
        return conversion(to, from, &modifiers).map(|function| (function, 1));
    }
    let is_float = type_name.starts_with('f') || type_name.starts_with("bf");
    // Rounding to nearest is the default; approximations are computed exactly; denormals are kept.
    modifiers.retain(|modifier| !(is_float && ["rn", "ftz", "approx", "full"].contains(modifier)));
    let parts = Parts {
        operation,
        modifiers,
        type_name,
    };
    match parts.type_name {
        "f32" | "f64" | "f16" | "bf16" | "f16x2" | "bf16x2" => float(&parts),
        _ => whole(&parts),
    }
}

fn whole(parts: &Parts<'_>) -> Option<(Function, usize)> {
    macro_rules! of_types {
        ($($name:literal: $type:ty, $wide:ty;)+) => {
            match parts.type_name { $($name => whole_of!($type, $wide),)+ _ => None }
        };
    }
    macro_rules! whole_of {
        ($type:ty, $wide:ty) => {{
            const BITS: u64 = <$type>::BITS as u64;
            let found: (Function, usize) = match (parts.operation, parts.modifiers.as_slice()) {
                ("add", []) => (of!($type, |a, b| a.wrapping_add(b)), 2),
                ("sub", []) => (of!($type, |a, b| a.wrapping_sub(b)), 2),
                ("mul", ["lo"]) => (of!($type, |a, b| a.wrapping_mul(b)), 2),
                ("mul", ["hi"]) => (
                    of!($type, |a, b| high_half(a as i128, b as i128, BITS) as $type),
                    2,
                ),
                ("mul", ["wide"]) => (of!($type, |a, b| (a as $wide).wrapping_mul(b as $wide)), 2),
                ("mad", ["lo"]) => (of!($type, |a, b, c| a.wrapping_mul(b).wrapping_add(c)), 3),
                ("mad", ["hi"]) => (
                    of!($type, |a, b, c| (high_half(a as i128, b as i128, BITS) as $type)
                        .wrapping_add(c)),
                    3,
                ),
                ("mad", ["wide"]) => (
                    |[a, b, c, ..]: [u64; 4]| {
                        let (a, b) = (<$type as Element>::read(a), <$type as Element>::read(b));
                        let c = <$wide as Element>::read(c);
                        (a as $wide).wrapping_mul(b as $wide).wrapping_add(c).bits()
                    },
                    3,
                ),
                // A division by zero sets all bits, as on the hardware.
                ("div", []) => (of!($type, |a, b| if b == 0 { !0 } else { a.wrapping_div(b) }), 2),
                ("rem", []) => (of!($type, |a, b| if b == 0 { !0 } else { a.wrapping_rem(b) }), 2),
                ("min", []) => (of!($type, |a, b| a.min(b)), 2),
                ("max", []) => (of!($type, |a, b| a.max(b)), 2),
                ("abs", []) => (
                    of!($type, |a| if (a as i128) < 0 {
                        (0 as $type).wrapping_sub(a)
                    } else {
                        a
                    }),
                    1,
                ),
                ("neg", []) => (of!($type, |a| (0 as $type).wrapping_sub(a)), 1),
                ("not", []) => (of!($type, |a| !a), 1),
                ("cnot", []) => (of!($type, |a| <$type>::from(a == 0)), 1),
                ("mov", []) => (of!($type, |a| a), 1),
                ("and", []) => (of!($type, |a, b| a & b), 2),
                ("or", []) => (of!($type, |a, b| a | b), 2),
                ("xor", []) => (of!($type, |a, b| a ^ b), 2),
                // A shift by more bits than there are gives zero, or the sign.
                ("shl", []) => (
                    |[a, by, ..]: [u64; 4]| {
                        let a = <$type as Element>::read(a);
                        if by as u32 as u64 >= BITS {
                            0
                        } else {
                            (a << (by as u32)).bits()
                        }
                    },
                    2,
                ),
                ("shr", []) => (
                    |[a, by, ..]: [u64; 4]| {
                        let a = <$type as Element>::read(a);
                        let by = u64::from(by as u32);
                        let sign: $type = if (a as i128) < 0 { !0 } else { 0 };
                        if by >= BITS { sign.bits() } else { (a >> by).bits() }
                    },
                    2,
                ),
                ("clz", []) => (of!($type, |a| a.leading_zeros()), 1),
                ("bfind", []) => (of!($type, |a| highest_bit(a as i128).unwrap_or(u32::MAX)), 1),
                ("bfind", ["shiftamt"]) => (
                    of!($type, |a| highest_bit(a as i128)
                        .map_or(u32::MAX, |place| BITS as u32 - 1 - place)),
                    1,
                ),
                ("popc", []) => (of!($type, |a| a.count_ones()), 1),
                ("brev", []) => (of!($type, |a| a.reverse_bits()), 1),
                ("bfe", []) => (
                    |[a, place, count, _]: [u64; 4]| {
                        let a = <$type as Element>::read(a) as i128;
                        let (place, count) = (place & 0xFF, (count & 0xFF).min(BITS));
                        (bit_field(a, place, count, BITS, <$type>::MIN != 0) as $type).bits()
                    },
                    3,
                ),
                _ => return comparison_of::<$type>(parts).map(|function| (function, 2)),
            };
            Some(found)
        }};
    }
    of_types! {
        "u16": u16, u32; "s16": i16, i32; "b16": u16, u32;
        "u32": u32, u64; "s32": i32, i64; "b32": u32, u64;
        "u64": u64, u64; "s64": i64, i64; "b64": u64, u64;
    }
}

/// The high half of a product.
fn high_half(left: i128, right: i128, bits: u64) -> i128 {
    // Products of two 64-bit numbers without a sign may exceed i128 by its sign bit alone, which the shift keeps.
    ((left as u128).wrapping_mul(right as u128) >> bits) as i128
}

/// The place of the highest bit that is not the sign.
fn highest_bit(number: i128) -> Option<u32> {
    let number = if number < 0 { !number } else { number };
    number.checked_ilog2()
}

/// `count` bits from `place` on; in a signed type the last of them is the sign.
fn bit_field(number: i128, place: u64, count: u64, bits: u64, is_signed: bool) -> i128 {
    if count == 0 {
        return 0;
    }
    let mask = (1_i128 << count) - 1;
    let last = (place + count - 1).min(bits - 1);
    let is_negative = is_signed && number >> last & 1 == 1;
    let field = if place < bits { number >> place & mask } else { 0 };
    if is_negative { field | !mask } else { field }
}

fn comparison_of<T: Element + PartialOrd>(parts: &Parts<'_>) -> Option<Function> {
    if parts.operation != "setp" {
        return None;
    }
    /// The order of two numbers; none if one of them is NaN.
    fn order<T: Element + PartialOrd>(operands: [u64; 4]) -> Option<Ordering> {
        T::read(operands[0]).partial_cmp(&T::read(operands[1]))
    }
    macro_rules! function {
        ($holds:expr) => {
            |operands| u64::from($holds(order::<T>(operands)))
        };
    }
    // The names that end in `u` are true if an operand is NaN; `lo` to `hs` compare without sign.
    let found: Function = match parts.modifiers.as_slice() {
        ["eq"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_eq)),
        ["ne"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_ne)),
        ["lt" | "lo"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_lt)),
        ["le" | "ls"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_le)),
        ["gt" | "hi"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_gt)),
        ["ge" | "hs"] => function!(|order: Option<Ordering>| order.is_some_and(Ordering::is_ge)),
        ["equ"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_eq)),
        ["neu"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_ne)),
        ["ltu"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_lt)),
        ["leu"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_le)),
        ["gtu"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_gt)),
        ["geu"] => function!(|order: Option<Ordering>| order.is_none_or(Ordering::is_ge)),
        ["num"] => function!(|order: Option<Ordering>| order.is_some()),
        ["nan"] => function!(|order: Option<Ordering>| order.is_none()),
        _ => return None,
    };
    Some(found)
}

fn float(parts: &Parts<'_>) -> Option<(Function, usize)> {
    macro_rules! arithmetic {
        ($of:ident, $type:ty) => {
            match (parts.operation, parts.modifiers.as_slice()) {
                ("mov", []) => Some(($of!($type, |a| a) as Function, 1)),
                ("add", []) => Some(($of!($type, |a, b| a + b) as Function, 2)),
                ("sub", []) => Some(($of!($type, |a, b| a - b) as Function, 2)),
                ("mul", []) => Some(($of!($type, |a, b| a * b) as Function, 2)),
                ("fma" | "mad", []) => Some(($of!($type, |a, b, c| a.mul_add(b, c)) as Function, 3)),
                // If one operand is NaN, the result is the other.
                ("min", []) => Some(($of!($type, |a, b| a.min(b)) as Function, 2)),
                ("max", []) => Some(($of!($type, |a, b| a.max(b)) as Function, 2)),
                ("neg", []) => Some(($of!($type, |a| -a) as Function, 1)),
                ("abs", []) => Some(($of!($type, |a| a.abs()) as Function, 1)),
                _ => None,
            }
        };
    }
    macro_rules! functions {
        ($type:ty) => {
            match (parts.operation, parts.modifiers.as_slice()) {
                ("div", []) => Some((of!($type, |a, b| a / b) as Function, 2)),
                ("rcp", []) => Some((of!($type, |a| a.recip()) as Function, 1)),
                ("sqrt", []) => Some((of!($type, |a| a.sqrt()) as Function, 1)),
                ("rsqrt", []) => Some((of!($type, |a| a.sqrt().recip()) as Function, 1)),
                ("ex2", []) => Some((of!($type, |a| a.exp2()) as Function, 1)),
                ("lg2", []) => Some((of!($type, |a| a.log2()) as Function, 1)),
                ("sin", []) => Some((of!($type, |a| a.sin()) as Function, 1)),
                ("cos", []) => Some((of!($type, |a| a.cos()) as Function, 1)),
                ("tanh", []) => Some((of!($type, |a| a.tanh()) as Function, 1)),
                ("copysign", []) => Some((of!($type, |a, b| b.copysign(a)) as Function, 2)),
                ("testp", ["finite"]) => Some((of!($type, |a| u32::from(a.is_finite())) as Function, 1)),
                ("testp", ["infinite"]) => Some((of!($type, |a| u32::from(a.is_infinite())) as Function, 1)),
                ("testp", ["notanumber"]) => Some((of!($type, |a| u32::from(a.is_nan())) as Function, 1)),
                _ => comparison_of::<$type>(parts).map(|function| (function, 2)),
            }
        };
    }
    match parts.type_name {
        "f32" => arithmetic!(of, f32).or_else(|| functions!(f32)),
        "f64" => arithmetic!(of, f64).or_else(|| functions!(f64)),
        "f16" => arithmetic!(half_of, f16)
            .or_else(|| comparison_of::<f16>(parts).map(|function| (function, 2)))
            .or_else(|| half_functions(parts)),
        "bf16" => {
            arithmetic!(half_of, bf16).or_else(|| comparison_of::<bf16>(parts).map(|function| (function, 2)))
        }
        "f16x2" => arithmetic!(pair_of, f16),
        "bf16x2" => arithmetic!(pair_of, bf16),
        _ => None,
    }
}

fn half_functions(parts: &Parts<'_>) -> Option<(Function, usize)> {
    match (parts.operation, parts.modifiers.as_slice()) {
        ("ex2", []) => Some((half_of!(f16, |a| a.exp2()), 1)),
        ("tanh", []) => Some((half_of!(f16, |a| a.tanh()), 1)),
        _ => None,
    }
}

/// The new value of a word that an atomic operation changes, from the old value, the operand, and for `cas` the value
/// to store; and the operation's number of operands. The bytes are those of the word.
pub(crate) fn atomic(operation: &str, type_name: &str) -> Option<(Function, usize)> {
    if operation == "cas" {
        let function: Function = match type_name {
            "b32" | "u32" | "s32" => of!(u32, |old, compared, new| if old == compared { new } else { old }),
            "b64" | "u64" | "s64" => of!(u64, |old, compared, new| if old == compared { new } else { old }),
            "b16" => of!(u16, |old, compared, new| if old == compared { new } else { old }),
            _ => return None,
        };
        return Some((function, 2));
    }
    let function: Function = match (operation, type_name) {
        ("exch", "b32" | "b64") => |[_, value, ..]| value,
        ("inc", "u32") => of!(u32, |old, most| if old >= most { 0 } else { old + 1 }),
        ("dec", "u32") => of!(u32, |old, most| if old == 0 || old > most {
            most
        } else {
            old - 1
        }),
        ("add" | "min" | "max" | "and" | "or" | "xor", _) => {
            let name = format!("{operation}.{type_name}");
            ordinary(&name).filter(|(_, count)| *count == 2)?.0
        }
        _ => return None,
    };
    Some((function, 1))
}

#[cfg(test)]
mod tests;
