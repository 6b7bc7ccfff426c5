//! Decodes a mnemonic and its operands into an instruction.

mod copies;
mod tensor_core;
mod tensor_map;
mod warp;

use crate::arithmetic::atomic;
use crate::fault::Problem;
use crate::functions::function;
use crate::instruction::{
    Address, BarrierOperation, BarrierVote, CopyOperation, Operand, Operation, Order, Own, Register, Scope,
    Space, Special, VoteKind, WarpOperation,
};
use crate::module::Names;
use crate::text::{operands, within};

/// A mnemonic, split at its dots.
struct Mnemonic<'t>(&'t str);

impl<'t> Mnemonic<'t> {
    /// The part with this index, empty if there are fewer.
    fn part(&self, index: usize) -> &'t str {
        self.0.split('.').nth(index).unwrap_or_default()
    }

    /// The part with this index counted from the end.
    fn part_from_end(&self, index: usize) -> &'t str {
        self.0.rsplit('.').nth(index).unwrap_or_default()
    }

    fn has(&self, part: &str) -> bool {
        self.0.split('.').any(|one| one == part)
    }
}

/// A statement's operands.
struct Operands<'t> {
    names: &'t Names,
    texts: Vec<&'t str>,
}

/// Fences behind which the copy engine and the matrix unit see a thread's stores to its block's shared memory.
const PROXY_FENCES: [&str; 3] = [
    "fence.proxy.async",
    "fence.proxy.async.shared::cta",
    "fence.proxy.async.shared::cluster",
];

/// Decodes any statement but a branch.
pub(crate) fn operation(names: &Names, mnemonic: &str, text: &str) -> Result<Operation, Problem> {
    let mut operands = Operands {
        names,
        texts: operands(text),
    };
    let name = Mnemonic(mnemonic);
    match name.part(0) {
        "mov" if text.contains('{') => operands.moved(&name),
        "ld" | "st" if name.part(1) != "async" => operands.accessed(&name),
        "ret" | "exit" => Ok(Operation::Exit),
        "trap" => Ok(Operation::Trap),
        "fence" if mnemonic.starts_with("fence.proxy.tensormap") => {
            operands.map_fence(&name).map(Operation::Map)
        }
        "tensormap" => operands.of_map(&name),
        "fence" if PROXY_FENCES.contains(&mnemonic) => Ok(Operation::Fence),
        // `membar` is `fence.sc` (PTX ISA).
        "membar" => Ok(memory_fence(&name, true)),
        "fence" if ["acq_rel", "sc", "acquire", "release"].contains(&name.part(1)) => {
            Ok(memory_fence(&name, name.part(1) == "sc"))
        }
        "griddepcontrol" if name.part(1) == "wait" => Ok(Operation::WaitForBefore),
        "griddepcontrol" => Ok(Operation::LetNextBegin),
        "fence" | "prefetch" | "setmaxnreg" | "nanosleep" => Ok(Operation::Own(Own::Nothing)),
        "cp" if mnemonic.starts_with("cp.async.bulk.prefetch.") => Ok(Operation::Own(Own::Nothing)),
        "atom" | "red" => operands.changed(&name),
        "mapa" => Ok(Operation::MapAddress {
            to: operands.register(0)?,
            from: operands.number(1)?,
            rank: operands.number(2)?,
        }),
        "mbarrier" => operands.barrier(&name).map(Operation::Barrier),
        "bar" if name.part(1) == "warp" => Ok(Operation::Warp(WarpOperation::SynchroniseLanes {
            mask: operands.number(0)?,
        })),
        "barrier" if name.part(1) == "cluster" => Ok(match name.part(2) {
            "arrive" => Operation::ArriveInCluster {
                releases: !name.has("relaxed"),
            },
            _ => Operation::WaitForCluster,
        }),
        "bar" | "barrier" if name.has("sync") || name.has("arrive") => operands.meeting(&name, None),
        "bar" | "barrier" if name.has("red") => {
            let vote = operands.ballot(&name)?;
            operands.texts.pop();
            operands.texts.remove(0);
            operands.meeting(&name, Some(vote))
        }
        // Lanes run on their own here, so each is the only one that is active with it.
        "activemask" => Ok(Operation::Own(Own::Compute {
            function: |[lane, ..]| 1 << lane,
            to: operands.register(0)?,
            from: [
                Operand::Special(Special::Lane),
                Operand::Constant(0),
                Operand::Constant(0),
                Operand::Constant(0),
            ],
        })),
        "cp" => operands.copy(mnemonic).map(Operation::Copy),
        "st" => Ok(Operation::Copy(CopyOperation::Remote {
            to: operands.address(0)?,
            from: operands.numbers(1)?,
            barrier: operands.address(2)?,
        })),
        "tcgen05" => operands.tensor_core(&name),
        "wgmma" => operands.group_product(&name).map(Operation::Warp),
        "mma" | "ldmatrix" | "stmatrix" | "elect" | "vote" | "shfl" | "redux" | "match" => {
            operands.of_warp(&name).map(Operation::Warp)
        }
        _ => operands.computed(mnemonic),
    }
}

impl Operands<'_> {
    fn text(&self, index: usize) -> Result<&str, Problem> {
        self.texts
            .get(index)
            .copied()
            .ok_or_else(|| "an operand is missing".to_owned())
    }

    /// A register that is written; of `register|predicate` the first.
    fn register(&self, index: usize) -> Result<Register, Problem> {
        let text = self.text(index)?;
        self.written(text.split('|').next().unwrap_or(text))
    }

    fn written(&self, name: &str) -> Result<Register, Problem> {
        match name {
            "_" => Ok(0),
            _ => self
                .names
                .register(name)
                .ok_or_else(|| format!("no register `{name}`")),
        }
    }

    fn number(&self, index: usize) -> Result<Operand, Problem> {
        self.read(self.text(index)?)
    }

    fn read(&self, text: &str) -> Result<Operand, Problem> {
        let special = match text {
            "%tid.x" => Some(Special::ThreadX),
            "%tid.y" => Some(Special::ThreadY),
            "%tid.z" => Some(Special::ThreadZ),
            "%ntid.x" => Some(Special::ThreadsX),
            "%ntid.y" => Some(Special::ThreadsY),
            "%ntid.z" => Some(Special::ThreadsZ),
            "%ctaid.x" => Some(Special::BlockX),
            "%ctaid.y" => Some(Special::BlockY),
            "%ctaid.z" => Some(Special::BlockZ),
            "%nctaid.x" => Some(Special::BlocksX),
            "%nctaid.y" => Some(Special::BlocksY),
            "%nctaid.z" => Some(Special::BlocksZ),
            "%laneid" => Some(Special::Lane),
            "%warpid" => Some(Special::Warp),
            // Clusters lie along x.
            "%cluster_ctarank" | "%cluster_ctaid.x" => Some(Special::RankInCluster),
            "%cluster_nctarank" | "%cluster_nctaid.x" => Some(Special::BlocksInCluster),
            "%clusterid.x" => Some(Special::Cluster),
            "%clock" | "%clock64" | "%globaltimer" => Some(Special::Clock),
            "%nclusterid.x" => Some(Special::Clusters),
            _ => None,
        };
        let found = special
            .map(Operand::Special)
            .or_else(|| constant(text).map(Operand::Constant))
            .or_else(|| self.names.register(text).map(Operand::Register))
            .or_else(|| self.names.symbol(text));
        found.ok_or_else(|| format!("no register, number or variable `{text}`"))
    }

    fn numbers(&self, index: usize) -> Result<Vec<Operand>, Problem> {
        let text = self.text(index)?;
        operands(within(text, ['{', '}']).unwrap_or(text))
            .into_iter()
            .map(|one| self.read(one))
            .collect()
    }

    fn registers(&self, index: usize) -> Result<Vec<Register>, Problem> {
        let text = self.text(index)?;
        operands(within(text, ['{', '}']).unwrap_or(text))
            .into_iter()
            .map(|one| self.written(one))
            .collect()
    }

    fn address(&self, index: usize) -> Result<Address, Problem> {
        let text = self.text(index)?;
        let inner = within(text, ['[', ']']).ok_or_else(|| format!("`{text}` is no address"))?;
        let (base, offset) = inner.split_once('+').unwrap_or((inner, "0"));
        Ok(Address {
            base: self.read(base.trim())?,
            offset: constant(offset.trim()).ok_or_else(|| format!("`{offset}` is no number"))?,
        })
    }

    fn constant(&self, index: usize) -> Result<u64, Problem> {
        let text = self.text(index)?;
        constant(text).ok_or_else(|| format!("`{text}` is no number"))
    }

    fn computed(&self, mnemonic: &str) -> Result<Operation, Problem> {
        let (function, count) = function(mnemonic).ok_or("no such instruction here")?;
        if self.text(0)?.contains('|') || self.texts.len() != count + 1 {
            return Err("no such instruction with these operands here".to_owned());
        }
        let type_bits = if mnemonic.ends_with("64") { 64 } else { 32 };
        let mut from = [Operand::Constant(0); 4];
        for (index, from) in from.iter_mut().enumerate().take(count) {
            *from = match self.number(1 + index)? {
                Operand::Constant(number) => Operand::Constant(number & (u64::MAX >> (64 - type_bits))),
                other => other,
            };
        }
        Ok(Operation::Own(Own::Compute {
            function,
            to: self.register(0)?,
            from,
        }))
    }

    fn moved(&self, name: &Mnemonic<'_>) -> Result<Operation, Problem> {
        let bits = 8 * bytes_of(name.part(1))? as u32;
        if self.text(0)?.starts_with('{') {
            let to = self.registers(0)?;
            return Ok(Operation::Own(Own::Split {
                bits: bits / to.len() as u32,
                to,
                from: self.number(1)?,
            }));
        }
        let from = self.numbers(1)?;
        Ok(Operation::Own(Own::Join {
            bits: bits / from.len() as u32,
            to: self.register(0)?,
            from,
        }))
    }

    fn accessed(&self, name: &Mnemonic<'_>) -> Result<Operation, Problem> {
        let space = space(name)?;
        let bytes = bytes_of(name.part_from_end(0))?;
        Ok(match name.part(0) {
            "ld" => {
                let to = self.registers(0)?;
                // A signed number fills a wider register with its sign (PTX ISA, ld).
                let is_signed = name.part_from_end(0).starts_with('s');
                Operation::Load {
                    space,
                    bytes,
                    extends: is_signed && to.iter().any(|register| self.names.is_wide(*register)),
                    order: order(name, false),
                    to,
                    from: self.address(1)?,
                }
            }
            _ => Operation::Store {
                space,
                bytes,
                order: order(name, false),
                to: self.address(0)?,
                from: self.numbers(1)?,
            },
        })
    }

    /// `atom.global.add.f32 old, [address], value` and `red.global.add.f32 [address], value`.
    fn changed(&self, name: &Mnemonic<'_>) -> Result<Operation, Problem> {
        let returns = name.part(0) == "atom";
        let type_name = name.part_from_end(0);
        let (function, count) =
            atomic(name.part_from_end(1), type_name).ok_or("no such atomic operation here")?;
        let first = usize::from(returns);
        Ok(Operation::Change {
            space: space(name)?,
            bytes: bytes_of(type_name)?,
            order: order(name, true),
            function,
            reads: name.part_from_end(1) != "exch",
            old: if returns { self.register(0)? } else { 0 },
            to: self.address(first)?,
            from: [
                self.number(first + 1)?,
                if count > 1 {
                    self.number(first + 2)?
                } else {
                    Operand::Constant(0)
                },
            ],
        })
    }

    fn meeting(&self, name: &Mnemonic<'_>, vote: Option<BarrierVote>) -> Result<Operation, Problem> {
        let threads = (self.texts.len() > 1).then(|| self.number(1)).transpose()?;
        Ok(Operation::Meet {
            number: self.number(0)?,
            threads,
            waits: !name.has("arrive"),
            is_aligned: name.part(0) == "bar" || name.has("aligned"),
            vote,
        })
    }

    /// The first and the last operand of a barrier at which threads vote.
    fn ballot(&self, name: &Mnemonic<'_>) -> Result<BarrierVote, Problem> {
        let last = self.text(self.texts.len().saturating_sub(1))?;
        let from = last.trim_start_matches('!');
        let kinds = [
            ("and", VoteKind::All),
            ("or", VoteKind::Any),
            ("popc", VoteKind::Count),
        ];
        let kind = kinds.into_iter().find(|(one, _)| name.has(one));
        Ok(BarrierVote {
            kind: kind.ok_or("no such vote at a barrier here")?.1,
            to: self.register(0)?,
            from: self.read(from)?,
            is_negated: from != last,
        })
    }

    fn barrier(&self, name: &Mnemonic<'_>) -> Result<BarrierOperation, Problem> {
        let is_parity = name.has("parity");
        Ok(match name.part(1) {
            "init" => BarrierOperation::Initialise {
                barrier: self.address(0)?,
                arrivals: self.number(1)?,
            },
            "inval" => BarrierOperation::Invalidate {
                barrier: self.address(0)?,
            },
            "expect_tx" => BarrierOperation::Expect {
                barrier: self.address(0)?,
                expected: self.number(1)?,
            },
            "arrive" if name.has("expect_tx") => BarrierOperation::Arrive {
                barrier: self.address(1)?,
                expected: Some(self.number(2)?),
                count: Operand::Constant(1),
            },
            "arrive" if !name.has("noComplete") => BarrierOperation::Arrive {
                barrier: self.address(1)?,
                expected: None,
                count: match self.texts.len() {
                    ..=2 => Operand::Constant(1),
                    _ => self.number(2)?,
                },
            },
            "try_wait" | "test_wait" if is_parity => BarrierOperation::Test {
                ended: self.register(0)?,
                barrier: self.address(1)?,
                parity: self.number(2)?,
            },
            _ => return Err("no such instruction here".to_owned()),
        })
    }
}

/// A number as PTX writes it: decimal, hexadecimal, or the bits of a float; integers may end with `U`.
pub(crate) fn constant(text: &str) -> Option<u64> {
    let text = text.trim_end_matches('U');
    let prefixed = ["0x", "0X", "0f", "0F", "0d", "0D"];
    if let Some(digits) = prefixed.iter().find_map(|prefix| text.strip_prefix(prefix)) {
        return u64::from_str_radix(digits, 16).ok();
    }
    text.parse::<u64>()
        .ok()
        .or_else(|| text.parse::<i64>().ok().map(|number| number as u64))
}

/// The threads that a fence or an atomic access orders; a cluster counts as the device.
fn scope(name: &Mnemonic<'_>) -> Scope {
    match name.has("cta") {
        true => Scope::Block,
        false => Scope::Device,
    }
}

fn memory_fence(name: &Mnemonic<'_>, is_sequential: bool) -> Operation {
    Operation::OrderMemory {
        scope: scope(name),
        is_sequential,
    }
}

/// How an access is ordered with others.
fn order(name: &Mnemonic<'_>, is_atomic: bool) -> Order {
    let both = name.has("acq_rel");
    let (acquires, releases) = (both || name.has("acquire"), both || name.has("release"));
    let is_volatile = name.has("volatile");
    Order {
        is_atomic: is_atomic || is_volatile || acquires || releases || name.has("relaxed"),
        is_volatile,
        acquires,
        releases,
        scope: scope(name),
    }
}

/// The memory that an access names; without a name it is generic.
fn space(name: &Mnemonic<'_>) -> Result<Space, Problem> {
    let has = |one: &str| name.has(one);
    if has("shared::cluster") {
        return Err("no ordinary accesses to the shared memory of another block here".to_owned());
    }
    Ok(if has("global") {
        Space::Global
    } else if has("shared") || has("shared::cta") {
        Space::Shared
    } else if has("local") {
        Space::Local
    } else if has("const") {
        Space::Global
    } else if has("param") {
        Space::Parameter
    } else {
        Space::Generic
    })
}

pub(crate) fn bytes_of(type_name: &str) -> Result<usize, Problem> {
    match type_name.trim_start_matches(['u', 's', 'b', 'f']) {
        "8" => Ok(1),
        "16" => Ok(2),
        "32" => Ok(4),
        "64" => Ok(8),
        _ => Err(format!("no type `{type_name}` here")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_decimal_hexadecimal_or_bits_of_floats() {
        for (text, expected) in [
            ("12", Some(12)),
            ("-1", Some(u64::MAX)),
            ("0x7701U", Some(0x7701)),
            ("3U", Some(3)),
            ("0f3F800000", Some(0x3F80_0000)),
            ("0F3F800000", Some(0x3F80_0000)),
            ("U", None),
            ("row", None),
        ] {
            assert_eq!(constant(text), expected, "{text}");
        }
    }
}
