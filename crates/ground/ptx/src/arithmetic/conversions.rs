//! Conversions between types.

use half::{bf16, f16};

use super::Element;
use crate::instruction::Function;

/// How a conversion rounds.
#[derive(Clone, Copy)]
enum Round {
    Nearest,
    Down,
    Up,
    Zero,
}

pub(super) fn conversion(to: &str, from: &str, modifiers: &[&str]) -> Option<Function> {
    let mut rounding = None;
    let mut saturates = false;
    for modifier in modifiers {
        match *modifier {
            "rn" | "rni" => rounding = Some(Round::Nearest),
            "rmi" => rounding = Some(Round::Down),
            "rpi" => rounding = Some(Round::Up),
            "rzi" => rounding = Some(Round::Zero),
            "sat" => saturates = true,
            "ftz" => {}
            _ => return None,
        }
    }
    if saturates {
        return None;
    }
    match (is_real(from), is_real(to)) {
        (true, true) => {
            // `rn` rounds to the type, which is the default; `rni` and its like round to a whole number first.
            let to_whole = modifiers.iter().any(|one| one.ends_with('i'));
            real_to_real(from, to, rounding.filter(|_| to_whole))
        }
        (true, false) => real_to_whole(from, to, rounding?),
        (false, true) => whole_to_real(from, to),
        (false, false) => whole_to_whole(from, to),
    }
}

fn is_real(type_name: &str) -> bool {
    type_name.starts_with('f') || type_name.starts_with("bf")
}

macro_rules! by_whole {
    ($name:expr, $then:ident $(, $argument:tt)*) => {
        match $name {
            "u8" => $then!(u8 $(, $argument)*), "s8" => $then!(i8 $(, $argument)*),
            "u16" | "b16" => $then!(u16 $(, $argument)*), "s16" => $then!(i16 $(, $argument)*),
            "u32" | "b32" => $then!(u32 $(, $argument)*), "s32" => $then!(i32 $(, $argument)*),
            "u64" | "b64" => $then!(u64 $(, $argument)*), "s64" => $then!(i64 $(, $argument)*),
            _ => None,
        }
    };
}

macro_rules! by_real {
    ($name:expr, $then:ident $(, $argument:tt)*) => {
        match $name {
            "f16" => $then!(f16 $(, $argument)*), "bf16" => $then!(bf16 $(, $argument)*),
            "f32" => $then!(f32 $(, $argument)*), "f64" => $then!(f64 $(, $argument)*),
            _ => None,
        }
    };
}

/// Whole numbers are sign-extended or cut off. A narrow signed result fills its register with its sign.
fn whole_to_whole(from: &str, to: &str) -> Option<Function> {
    macro_rules! source {
        ($from:ty) => {
            by_whole!(to, target, $from)
        };
    }
    macro_rules! target {
        ($to:ty, $from:ty) => {
            Some(|[a, ..]: [u64; 4]| {
                let register = if size_of::<$to>() == 8 {
                    u64::MAX
                } else {
                    u32::MAX.into()
                };
                <$from as Element>::read(a) as $to as i64 as u64 & register
            })
        };
    }
    by_whole!(from, source)
}

fn whole_to_real(from: &str, to: &str) -> Option<Function> {
    macro_rules! source {
        ($from:ty) => {
            by_real!(to, target, $from)
        };
    }
    macro_rules! target {
        (f64, $from:ty) => {
            Some(of!($from, |a| a as f64))
        };
        (f32, $from:ty) => {
            Some(of!($from, |a| a as f32))
        };
        ($to:ty, $from:ty) => {
            Some(of!($from, |a| <$to>::from_f64(a as f64)))
        };
    }
    by_whole!(from, source)
}

fn rounded(number: f64, how: Round) -> f64 {
    match how {
        Round::Nearest => number.round_ties_even(),
        Round::Down => number.floor(),
        Round::Up => number.ceil(),
        Round::Zero => number.trunc(),
    }
}

/// Beyond the range the result is the nearest number of the type; a NaN becomes zero.
fn real_to_whole(from: &str, to: &str, how: Round) -> Option<Function> {
    macro_rules! source {
        ($from:ty) => {
            by_whole!(to, target, $from)
        };
    }
    macro_rules! target {
        ($to:ty, $from:ty) => {
            Some(match how {
                Round::Nearest => of!($from, |a| rounded(f64::from(a), Round::Nearest) as $to) as Function,
                Round::Down => of!($from, |a| rounded(f64::from(a), Round::Down) as $to) as Function,
                Round::Up => of!($from, |a| rounded(f64::from(a), Round::Up) as $to) as Function,
                Round::Zero => of!($from, |a| rounded(f64::from(a), Round::Zero) as $to) as Function,
            })
        };
    }
    by_real!(from, source)
}

fn real_to_real(from: &str, to: &str, how: Option<Round>) -> Option<Function> {
    macro_rules! source {
        ($from:ty) => {
            by_real!(to, target, $from)
        };
    }
    macro_rules! target {
        (f64, $from:ty) => {
            Some(match how {
                None => of!($from, |a| f64::from(a)) as Function,
                Some(Round::Nearest) => of!($from, |a| rounded(f64::from(a), Round::Nearest)) as Function,
                Some(Round::Down) => of!($from, |a| rounded(f64::from(a), Round::Down)) as Function,
                Some(Round::Up) => of!($from, |a| rounded(f64::from(a), Round::Up)) as Function,
                Some(Round::Zero) => of!($from, |a| rounded(f64::from(a), Round::Zero)) as Function,
            })
        };
        (f32, $from:ty) => {
            Some(match how {
                None => of!($from, |a| f64::from(a) as f32) as Function,
                Some(Round::Nearest) => {
                    of!($from, |a| rounded(f64::from(a), Round::Nearest) as f32) as Function
                }
                Some(Round::Down) => of!($from, |a| rounded(f64::from(a), Round::Down) as f32) as Function,
                Some(Round::Up) => of!($from, |a| rounded(f64::from(a), Round::Up) as f32) as Function,
                Some(Round::Zero) => of!($from, |a| rounded(f64::from(a), Round::Zero) as f32) as Function,
            })
        };
        ($to:ty, $from:ty) => {
            match how {
                None => Some(of!($from, |a| <$to>::from_f64(f64::from(a))) as Function),
                Some(_) => None,
            }
        };
    }
    by_real!(from, source)
}
