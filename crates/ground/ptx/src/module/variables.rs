//! Variables of a module in the memory of the device (`.global`, `.const`).

use std::hash::{DefaultHasher, Hash, Hasher};

use super::Reader;
use crate::fault::Problem;
use crate::instruction::Operand;
use crate::memory::VARIABLES;
use crate::text::{operands, within};

/// The gap between two variables: an index beyond the end of one hits nothing.
const GAP: u64 = 1 << 12;

/// Most bytes of a variable.
const MAX_BYTES: usize = 64 << 20;

/// A variable: where it lies, and its first contents.
#[derive(Debug, Clone)]
pub(crate) struct Global {
    pub name: String,
    pub address: u64,
    pub bytes: Vec<u8>,
}

impl Reader {
    /// Declares the variables among a module's statements. All kernels of a module have the same: their addresses follow from its text.
    /// One whose first value is not understood, or which another module defines, is not known, and a kernel that uses it is refused.
    pub(super) fn declare_globals<'t>(&mut self, text: &str, statements: impl Iterator<Item = &'t str>) {
        let mut hasher = DefaultHasher::new();
        text.hash(&mut hasher);
        let mut next = VARIABLES + (hasher.finish() >> 36 << 32);
        for statement in statements {
            let mut words = statement.split_whitespace();
            let is_variable = words.clone().any(|word| [".global", ".const"].contains(&word));
            if !is_variable || words.any(|word| [".extern", ".func", ".entry"].contains(&word)) {
                continue;
            }
            let Ok((name, alignment, bytes)) = defined(statement) else {
                continue;
            };
            next = next.next_multiple_of(alignment.max(256) as u64);
            let address = next;
            next += bytes.len() as u64 + GAP;
            self.names
                .symbols
                .insert(name.clone(), Operand::Constant(address));
            self.globals.push(Global { name, address, bytes });
        }
    }
}

/// The name, the alignment and the first contents of `.global .align 4 .u32 table[2] = {1, 2}`; without values they are zeros.
fn defined(statement: &str) -> Result<(String, usize, Vec<u8>), Problem> {
    let (declaration, values) = match statement.split_once('=') {
        Some((declaration, values)) => (declaration, values.trim()),
        None => (statement, ""),
    };
    let variable = declared(declaration)?;
    let inner = within(values, ['{', '}'])
        .unwrap_or(values)
        .replace(['{', '}'], " ");
    let mut bytes = Vec::with_capacity(variable.bytes);
    for value in operands(&inner) {
        let number = crate::decode::constant(value).ok_or_else(|| format!("`{value}` is no number"))?;
        bytes.extend_from_slice(&number.to_le_bytes()[..variable.element]);
    }
    bytes.resize(variable.bytes, 0);
    Ok((variable.name.to_owned(), variable.alignment, bytes))
}

/// A variable that a text declares.
pub(super) struct Variable<'t> {
    pub name: &'t str,
    pub alignment: usize,
    /// Bytes of an element of an array.
    pub element: usize,
    pub bytes: usize,
}

/// Reads `.align 4 .b8 name[8]`, `.f32 name` or `.u64 .ptr .align 1 name`; an array without a length has no bytes.
pub(super) fn declared(declaration: &str) -> Result<Variable<'_>, Problem> {
    let words: Vec<&str> = declaration.split_whitespace().collect();
    let element = words
        .iter()
        .filter_map(|word| word.strip_prefix('.'))
        .find_map(|word| crate::decode::bytes_of(word).ok())
        .ok_or_else(|| format!("no type in `{declaration}`"))?;
    // Behind `.ptr` stands the alignment of what it points to.
    let own = words
        .iter()
        .position(|word| *word == ".align")
        .filter(|at| !words[..*at].contains(&".ptr"));
    let alignment = own
        .and_then(|at| words.get(at + 1)?.parse().ok())
        .unwrap_or(element)
        .max(1);
    let last = words.last().copied().unwrap_or_default();
    let (name, bytes) = match last.find('[') {
        Some(at) => {
            let sides = last[at..].split(']').filter(|side| !side.is_empty());
            let sides = sides.map(|side| side.trim_start_matches('[').parse().unwrap_or(0_usize));
            let bytes = sides.fold(element, usize::saturating_mul);
            if bytes > MAX_BYTES {
                return Err(format!(
                    "{bytes} bytes of a variable, where {MAX_BYTES} are possible here"
                ));
            }
            (&last[..at], bytes)
        }
        None => (last, element),
    };
    Ok(Variable {
        name,
        alignment,
        element,
        bytes,
    })
}
