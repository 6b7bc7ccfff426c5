//! The names of registers, variables and labels.

use std::collections::{HashMap, HashSet};

use crate::fault::Problem;
use crate::instruction::{Operand, Register};

/// Registers and symbols by name, scope by scope.
#[derive(Debug)]
pub(crate) struct Names {
    pub(super) scopes: Vec<Scope>,
    pub(super) current: usize,
    /// Registers declared so far, and one to which unused results go.
    pub(super) registers: Register,
    pub(super) symbols: HashMap<String, Operand>,
    /// Registers of 64 bits.
    wide: HashSet<Register>,
}

#[derive(Debug, Default)]
pub(super) struct Scope {
    outer: Option<usize>,
    registers: HashMap<String, Register>,
    pub(super) labels: HashMap<String, usize>,
}

impl Default for Names {
    fn default() -> Self {
        Self {
            scopes: vec![Scope::default()],
            current: 0,
            registers: 1,
            symbols: HashMap::new(),
            wide: HashSet::new(),
        }
    }
}

impl Names {
    /// The register with this name, searched from the innermost scope outwards.
    pub fn register(&self, name: &str) -> Option<Register> {
        self.outwards(self.current)
            .find_map(|scope| scope.registers.get(name).copied())
    }

    /// The address of a variable.
    pub fn symbol(&self, name: &str) -> Option<Operand> {
        self.symbols.get(name).copied()
    }

    /// The instructions that have a label.
    pub(super) fn labels(&self) -> HashSet<usize> {
        let of_scope = |scope: &Scope| scope.labels.values().copied().collect::<Vec<_>>();
        self.scopes.iter().flat_map(of_scope).collect()
    }

    pub(super) fn outwards(&self, from: usize) -> impl Iterator<Item = &Scope> {
        std::iter::successors(Some(&self.scopes[from]), |scope| {
            scope.outer.map(|outer| &self.scopes[outer])
        })
    }

    pub(super) fn open(&mut self) {
        self.scopes.push(Scope {
            outer: Some(self.current),
            ..Scope::default()
        });
        self.current = self.scopes.len() - 1;
    }

    pub(super) fn close(&mut self) {
        self.current = self.scopes[self.current].outer.unwrap_or(0);
    }

    /// Whether a register has 64 bits.
    pub fn is_wide(&self, register: Register) -> bool {
        self.wide.contains(&register)
    }

    /// `.reg .b32 %r<8>` declares %r0 to %r7, `.reg .b16 low, high` two.
    pub(super) fn declare(&mut self, data_type: &str, names: &str) -> Result<(), Problem> {
        let first = self.registers;
        for name in names.split(',').map(str::trim) {
            let of_family = name.strip_suffix('>').and_then(|name| name.split_once('<'));
            match of_family {
                Some((prefix, count)) => {
                    let count: u32 = count.parse().map_err(|_| format!("`{count}` is no number"))?;
                    (0..count).for_each(|number| self.declare_one(format!("{prefix}{number}")));
                }
                None => self.declare_one(name.to_owned()),
            }
        }
        if data_type.ends_with("64") {
            self.wide.extend(first..self.registers);
        }
        Ok(())
    }

    fn declare_one(&mut self, name: String) {
        self.scopes[self.current].registers.insert(name, self.registers);
        self.registers += 1;
    }
}
