//! Reads a kernel from PTX.

mod calls;
mod names;
mod source;
mod variables;

use crate::decode;
use crate::fault::{Problem, ReadError, Spot};
use crate::instruction::{Instruction, Operand, Operation, Own, Register, WarpOperation};
use crate::memory::SHARED_BEGIN;
use crate::tensor_core;
use crate::text::{Piece, items, pieces, without_comments};

pub(crate) use names::Names;
use source::Source;
pub(crate) use variables::Global;
use variables::{Variable, declared};

/// Addresses of the launch's parameter begin here, where there is no memory.
pub(crate) const PARAMETER: u64 = 0x7000_0000_0000_0000;

/// Alignment of dynamic shared memory behind static: the most that kernels ask for.
const DYNAMIC_ALIGNMENT: u32 = 1024;

/// Most instructions of a kernel, with those of the functions that it calls, once for each call.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// One kernel, ready to run.
#[derive(Debug, Clone)]
pub struct Kernel {
    pub(crate) instructions: Vec<Instruction>,
    /// Registers of a thread; unused results go to the first.
    pub(crate) registers: usize,
    parameters: Vec<KernelParameter>,
    /// Bytes of all parameters.
    pub(crate) parameter_bytes: usize,
    /// Bytes of shared memory before the dynamic.
    pub(crate) static_bytes: u32,
    /// Bytes of shared memory up to the last variable.
    pub(crate) variable_bytes: u32,
    /// Bytes of memory that each thread has for itself.
    local_bytes: usize,
    /// The variables of its module.
    pub(crate) globals: Vec<Global>,
    text: String,
    source: Source,
    /// Variables in shared memory, with their addresses, in ascending order.
    variables: Vec<(u32, String)>,
    /// Whether it changes tensor maps: its writes to global memory are then tracked.
    pub(crate) changes_maps: bool,
}

/// Where a parameter lies among the bytes of all parameters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KernelParameter {
    /// Its first byte.
    pub offset: usize,
    /// Its bytes.
    pub bytes: usize,
}

impl Kernel {
    /// Reads the kernel with this name.
    ///
    /// # Errors
    /// If there is no such kernel, or one of its lines is not understood.
    pub fn read(text: &str, name: &str) -> Result<Self, ReadError> {
        let text = without_comments(text);
        let head = format!(".entry {name}(");
        let begin = text
            .find(&head)
            .ok_or_else(|| ReadError::NoKernel(name.to_owned()))?
            + head.len();
        let body = text[begin..].find('{').map(|at| begin + at + 1);
        let body = body.ok_or_else(|| ReadError::NoKernel(name.to_owned()))?;
        let mut reader = Reader::default();
        let body = pieces(&text, body);
        let items = items(&text);
        let of_module = items.iter().map(|(head, _)| *head);
        // Functions that the kernel calls may have some too.
        let functions = items.iter().filter(|(head, _)| !head.contains(".entry"));
        let functions = functions.filter_map(|(_, body)| Some(pieces(&text, (*body)?)));
        let functions: Vec<_> = functions.flatten().collect();
        let of_kernel = functions
            .iter()
            .chain(&body)
            .filter_map(|(_, piece)| match piece {
                Piece::Statement(statement) => Some(*statement),
                _ => None,
            });
        reader.declare_globals(&text, of_module.clone());
        reader.declare_shared(of_module.chain(of_kernel));
        let list = text[begin..].split(')').next().unwrap_or_default();
        let parameters = reader
            .declare_parameters(list)
            .map_err(|problem| line_error(&text, begin, problem))?;
        for (at, piece) in body {
            reader.take(&text, at, piece).map_err(|problem| {
                let source = std::mem::take(&mut reader.source).with_files(&text);
                ReadError::Line {
                    spot: Spot {
                        source: source.here(),
                        ..spot(&text, at)
                    },
                    problem,
                }
            })?;
        }
        for (index, label, scope) in std::mem::take(&mut reader.branches) {
            let target = reader.label(&label, scope);
            let instruction = &mut reader.instructions[index];
            let target =
                target.ok_or_else(|| line_error(&text, instruction.at, format!("no label `{label}`")))?;
            instruction.operation = Operation::Own(Own::Branch(target));
        }
        tensor_core::check_groups(&reader.instructions)
            .map_err(|(at, problem)| line_error(&text, at, problem))?;
        let is_move = |at: usize| text[at..].starts_with("mov.");
        tensor_core::find_moves(&mut reader.instructions, &reader.names.labels(), is_move);
        let changes_maps = reader.instructions.iter().any(|one| {
            matches!(
                one.operation,
                Operation::Map(_) | Operation::Warp(WarpOperation::PublishMap { .. })
            )
        });
        Ok(Self {
            changes_maps,
            instructions: reader.instructions,
            registers: reader.names.registers as usize,
            parameter_bytes: parameters.last().map_or(0, |last| last.offset + last.bytes),
            parameters,
            static_bytes: reader.static_bytes,
            variable_bytes: reader.variable_bytes,
            local_bytes: reader.local_bytes,
            globals: reader.globals,
            source: reader.source.with_files(&text),
            variables: reader.variables,
            text,
        })
    }

    /// Its parameters, in order.
    pub fn parameters(&self) -> &[KernelParameter] {
        &self.parameters
    }

    /// The registers of a thread, and the bytes that it has for itself.
    pub(crate) fn takes(&self) -> (usize, usize) {
        (self.registers, self.local_bytes)
    }

    /// Whether it changes memory atomically: then the order in which threads do it may show in results of a kernel without races.
    pub fn changes_atomically(&self) -> bool {
        let changes = |one: &Instruction| matches!(one.operation, Operation::Change { .. });
        self.instructions.iter().any(changes)
    }

    /// Bytes of its static shared memory.
    pub fn static_shared_bytes(&self) -> u32 {
        self.static_bytes
    }

    /// Where an instruction stands.
    pub(crate) fn spot(&self, instruction: usize) -> Spot {
        match self.instructions.get(instruction) {
            Some(Instruction { at, .. }) => Spot {
                source: self.source.of(instruction),
                ..spot(&self.text, *at)
            },
            None => Spot {
                source: None,
                line: self.text.lines().count(),
                text: "the end".to_owned(),
            },
        }
    }

    /// The variable in whose shared memory an address lies, as an addition to the address.
    pub(crate) fn variable(&self, address: u32) -> String {
        let place = self.variables.partition_point(|(begin, _)| *begin <= address);
        match place.checked_sub(1).map(|place| &self.variables[place]) {
            Some((begin, name)) => format!(" ({}+{})", source::short(name), address - begin),
            None => String::new(),
        }
    }
}

fn spot(text: &str, at: usize) -> Spot {
    let line = text[..at].lines().count().max(1);
    let statement = text[at..].split(';').next().unwrap_or_default();
    Spot {
        source: None,
        line,
        text: statement.chars().take(100).collect(),
    }
}

fn line_error(text: &str, at: usize, problem: Problem) -> ReadError {
    ReadError::Line {
        spot: spot(text, at),
        problem,
    }
}

#[derive(Debug, Default)]
struct Reader {
    names: Names,
    instructions: Vec<Instruction>,
    /// Branches whose targets are not resolved yet: instruction, label, scope.
    branches: Vec<(usize, String, usize)>,
    static_bytes: u32,
    source: Source,
    variables: Vec<(u32, String)>,
    variable_bytes: u32,
    local_bytes: usize,
    globals: Vec<Global>,
    /// The functions that are being put in place of their calls.
    calls: Vec<String>,
}

impl Reader {
    /// Declares variables in shared memory: `.shared .align 4 .b8 name[8];`, or, if `.extern`, with the size given by
    /// the launch.
    fn declare_shared<'t>(&mut self, statements: impl Iterator<Item = &'t str>) {
        let declarations: Vec<(bool, &str)> = statements
            .map(|one| one.trim_start_matches(|letter: char| letter.is_whitespace() || letter == '}'))
            .filter(|one| one.starts_with('.') && one.split_whitespace().any(|word| word == ".shared"))
            .filter_map(|one| Some((one.contains(".extern"), one.split_once(".shared")?.1)))
            .collect();
        let of_kind = |external: bool| {
            declarations
                .iter()
                .filter(move |(is_external, _)| *is_external == external)
        };
        for (_, declaration) in of_kind(false) {
            let Ok(Variable { name, bytes, .. }) = declared(declaration) else {
                continue;
            };
            self.static_bytes = self.static_bytes.next_multiple_of(16);
            self.name_shared(name);
            self.static_bytes += bytes as u32;
        }
        self.variable_bytes = self.static_bytes;
        self.static_bytes = self.static_bytes.next_multiple_of(DYNAMIC_ALIGNMENT);
        for (_, declaration) in of_kind(true) {
            if let Ok(Variable { name, .. }) = declared(declaration) {
                self.name_shared(name);
            }
        }
    }

    /// Names the shared memory that follows what is declared so far.
    fn name_shared(&mut self, name: &str) {
        let address = Operand::Shared(SHARED_BEGIN + self.static_bytes);
        self.names.symbols.insert(name.to_owned(), address);
        self.variables
            .push((SHARED_BEGIN + self.static_bytes, name.to_owned()));
    }

    /// `.param .u64 .ptr .align 1 one_param_0, .param .align 8 .b8 one_param_1[16]`.
    fn declare_parameters(&mut self, list: &str) -> Result<Vec<KernelParameter>, Problem> {
        let mut parameters: Vec<KernelParameter> = Vec::new();
        for declaration in list.split(',').map(str::trim).filter(|one| !one.is_empty()) {
            let Variable {
                name,
                alignment,
                bytes,
                ..
            } = declared(declaration)?;
            let end = parameters.last().map_or(0, |last| last.offset + last.bytes);
            let offset = end.next_multiple_of(alignment);
            let address = Operand::Constant(PARAMETER + offset as u64);
            self.names.symbols.insert(name.to_owned(), address);
            parameters.push(KernelParameter { offset, bytes });
        }
        Ok(parameters)
    }

    fn take(&mut self, text: &str, at: usize, piece: Piece<'_>) -> Result<(), Problem> {
        match piece {
            Piece::Open => self.names.open(),
            Piece::Close => self.names.close(),
            Piece::Label(name) => {
                let next = self.instructions.len();
                self.names.scopes[self.names.current]
                    .labels
                    .insert(name.to_owned(), next);
            }
            Piece::Statement(statement) => self.statement(text, at, statement)?,
        }
        Ok(())
    }

    fn statement(&mut self, text: &str, at: usize, statement: &str) -> Result<(), Problem> {
        if let Some(line) = statement
            .strip_prefix(".loc")
            .filter(|rest| rest.starts_with(char::is_whitespace))
        {
            self.source.stand(line);
            return Ok(());
        }
        if let Some(declaration) = statement.strip_prefix(".reg") {
            let declaration = declaration.trim_start();
            let (data_type, names) = declaration
                .split_once(char::is_whitespace)
                .unwrap_or((declaration, ""));
            return self.names.declare(data_type, names);
        }
        if statement.starts_with(".local") || statement.starts_with(".param") {
            return self.declare_local(statement);
        }
        // Shared memory was declared before, since its size decides where dynamic memory begins.
        let is_shared = statement
            .split_whitespace()
            .next()
            .is_some_and(|word| word == ".shared");
        if statement.is_empty() || statement.starts_with(".pragma") || is_shared {
            return Ok(());
        }
        let (guard, rest) = match statement.strip_prefix('@') {
            Some(guarded) => {
                let (name, rest) = guarded
                    .split_once(char::is_whitespace)
                    .ok_or("a guard of nothing")?;
                let (name, set) = name.strip_prefix('!').map_or((name, true), |name| (name, false));
                let register = self
                    .names
                    .register(name)
                    .ok_or_else(|| format!("no register `{name}`"))?;
                (Some((register, set)), rest.trim_start())
            }
            None => (None, statement),
        };
        let (mnemonic, operands) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
        let operation = match mnemonic {
            "bra" | "bra.uni" => {
                self.branch(guard, at, operands.trim());
                return Ok(());
            }
            "call" | "call.uni" => return self.call(text, (guard, at), operands),
            "ret" if !self.calls.is_empty() => {
                self.go_back(guard, at);
                return Ok(());
            }
            _ => decode::operation(&self.names, mnemonic, operands)?,
        };
        self.push(Instruction { guard, operation, at });
        Ok(())
    }

    /// A branch to a label, which is looked up once all are known.
    fn branch(&mut self, guard: Option<(Register, bool)>, at: usize, label: &str) {
        let branch = (self.instructions.len(), label.to_owned(), self.names.current);
        self.branches.push(branch);
        self.push(Instruction {
            guard,
            operation: Operation::Own(Own::Nothing),
            at,
        });
    }

    fn push(&mut self, instruction: Instruction) {
        self.source.note();
        self.instructions.push(instruction);
    }

    fn label(&self, name: &str, scope: usize) -> Option<usize> {
        self.names
            .outwards(scope)
            .find_map(|scope| scope.labels.get(name).copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "
.extern .shared .align 1024 .b8 memory[];
.visible .entry one(.param .align 8 .b8 one_param_0[16])
.maxntid 32, 1, 1
{
  .reg .b32 %r<2>;
  .reg .pred %p<1>;
  mov.u32 %r0, %tid.x;   // which
  { .reg .pred done; again: setp.ne.u32 done, %r0, 0; @!done bra again; }
  { .reg .pred done; again: setp.ne.u32 done, %r0, 0; @done bra again; }
  ret;
}";

    #[test]
    fn labels_belong_to_their_scope() {
        let kernel = Kernel::read(TEXT, "one").unwrap();
        let targets: Vec<_> = kernel
            .instructions
            .iter()
            .filter_map(|one| match one.operation {
                Operation::Own(Own::Branch(target)) => Some((target, one.guard.map(|(_, set)| set))),
                _ => None,
            })
            .collect();
        assert_eq!(targets, [(1, Some(false)), (3, Some(true))]);
        assert_eq!((kernel.parameter_bytes, kernel.registers), (16, 1 + 2 + 1 + 2));
        assert_eq!(kernel.spot(0).to_string(), "line 8, `mov.u32 %r0, %tid.x`");
    }

    #[test]
    fn what_is_not_understood_is_named_with_its_line() {
        assert_eq!(
            Kernel::read(TEXT, "two").unwrap_err().to_string(),
            "the PTX has no kernel `two`"
        );
        let refused = |from: &str, to: &str| {
            Kernel::read(&TEXT.replace(from, to), "one")
                .unwrap_err()
                .to_string()
        };
        assert_eq!(
            refused("mov.u32 %r0", "sad.f32 %r0"),
            "line 8, `sad.f32 %r0, %tid.x`: no such instruction here"
        );
        assert_eq!(
            refused("%tid.x", "%r7"),
            "line 8, `mov.u32 %r0, %r7`: no register, number or variable `%r7`"
        );
        assert_eq!(
            refused("@done bra again", "@done bra there"),
            "line 10, `@done bra there`: no label `there`"
        );
    }
}
