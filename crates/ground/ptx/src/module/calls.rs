//! Calls of functions: their bodies are put in place of the calls.

use super::variables::declared;
use super::{MAX_INSTRUCTIONS, Reader};
use crate::fault::Problem;
use crate::instruction::{Instruction, Operand, Operation, Own};
use crate::memory::LOCAL;
use crate::text::{items, operands, pieces};

/// Most bytes of a thread's own memory (CUDA C++ Programming Guide, "Technical Specifications per Compute Capability").
const MAX_LOCAL: usize = 512 << 10;

/// Where a function that was called goes on when it returns.
const RETURN: &str = "%return";

impl Reader {
    /// `call (result), function, (arguments)`; results and arguments are variables of the caller.
    pub(super) fn call(
        &mut self,
        text: &str,
        (guard, at): (Option<(u32, bool)>, usize),
        operands: &str,
    ) -> Result<(), Problem> {
        let (results, rest) = list(operands.trim());
        let (name, rest) = rest.split_once(',').unwrap_or((rest, ""));
        let (name, (arguments, _)) = (name.trim(), list(rest.trim()));
        if name.starts_with('%') {
            return Err(
                "unsupported: a call of a function that is known only when the kernel runs".to_owned(),
            );
        }
        if self.calls.iter().any(|caller| caller == name) {
            return Err(format!("unsupported: recursion: `{name}` calls itself"));
        }
        if self.instructions.len() > MAX_INSTRUCTIONS {
            return Err("unsupported: its calls amount to too many instructions".to_owned());
        }
        let instruction = |operation| Instruction { guard, operation, at };
        match name {
            "__assertfail" => {
                self.push(instruction(Operation::Trap));
                return Ok(());
            }
            // What is printed does not matter here.
            "vprintf" => {
                self.push(instruction(Operation::Own(Own::Nothing)));
                return Ok(());
            }
            _ => {}
        }
        let Some((head, body)) = function(text, name) else {
            return Err(format!(
                "unsupported: a call of `{name}`, whose code the PTX does not have"
            ));
        };
        let symbols = self.names.symbols.clone();
        let (formal_results, rest) = list(head.split_once(".func").map_or("", |(_, rest)| rest).trim());
        let (_, formal) = rest.split_once(name).unwrap_or_default();
        let (formal_arguments, _) = list(formal.trim());
        let mut bound = Vec::new();
        for (formal, given) in [(formal_results, results), (formal_arguments, arguments)] {
            if formal.len() != given.len() {
                return Err(format!(
                    "{} values where `{name}` has {}",
                    given.len(),
                    formal.len()
                ));
            }
            for (formal, given) in formal.into_iter().zip(given) {
                let place = self.names.symbol(given);
                let place = place.ok_or_else(|| format!("no variable `{given}`"))?;
                bound.push((declared(formal)?.name.to_owned(), place));
            }
        }
        self.names.open();
        let scope = self.names.current;
        if let Some((register, set)) = guard {
            self.branch(Some((register, !set)), at, RETURN);
        }
        self.names.symbols.extend(bound);
        self.calls.push(name.to_owned());
        for (at, piece) in pieces(text, body) {
            self.take(text, at, piece)?;
        }
        self.calls.pop();
        let end = self.instructions.len();
        self.names.scopes[scope].labels.insert(RETURN.to_owned(), end);
        self.names.close();
        self.names.symbols = symbols;
        // A branch to the end needs an instruction there.
        self.push(Instruction {
            guard: None,
            operation: Operation::Own(Own::Nothing),
            at,
        });
        Ok(())
    }

    /// `ret` in a function that was called.
    pub(super) fn go_back(&mut self, guard: Option<(u32, bool)>, at: usize) {
        self.branch(guard, at, RETURN);
    }

    /// Declares a variable of the function, `.local .align 16 .b8 depot[64]` or `.param .b32 param0`, in the thread's own memory.
    pub(super) fn declare_local(&mut self, declaration: &str) -> Result<(), Problem> {
        let variable = declared(declaration)?;
        self.local_bytes = self.local_bytes.next_multiple_of(variable.alignment.max(8));
        let address = LOCAL + self.local_bytes as u64;
        self.local_bytes += variable.bytes;
        if self.local_bytes > MAX_LOCAL {
            return Err(format!(
                "{} bytes of a thread's own memory, where {MAX_LOCAL} are possible",
                self.local_bytes
            ));
        }
        let name = variable.name.to_owned();
        self.names.symbols.insert(name, Operand::Constant(address));
        Ok(())
    }
}

/// `(a, b)` at the begin of a text, in parts, and what follows, without a comma.
fn list(text: &str) -> (Vec<&str>, &str) {
    let Some(rest) = text.strip_prefix('(') else {
        return (Vec::new(), text);
    };
    let (inner, rest) = rest.split_once(')').unwrap_or((rest, ""));
    (
        operands(inner),
        rest.trim_start().trim_start_matches(',').trim_start(),
    )
}

/// The head of a function, and where its body begins.
fn function<'t>(text: &'t str, name: &str) -> Option<(&'t str, usize)> {
    items(text).into_iter().find_map(|(head, body)| {
        let (_, rest) = head.split_once(".func")?;
        let (_, rest) = list(rest.trim());
        (rest.split(['(', ' ', '\n', '\t']).next()? == name).then_some((head, body?))
    })
}
