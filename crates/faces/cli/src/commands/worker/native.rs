//! The workers of compiled kernels: shared libraries and CUDA C++.

use gauntlet_host_library::{LibraryHost, LibraryOptions, Returns, Target};
use gauntlet_host_native::{Argument, HostService};
use gauntlet_host_nvrtc::{InterpretedHost, KernelError, KernelFile, NvrtcHost};
use gauntlet_judge::{FileKernel, FileKind};

use super::answer;
use crate::arguments::Worker;
use crate::error::{CliError, say};
use crate::exit::Exit;

/// Serves a function of a shared library.
pub fn library(arguments: &Worker) -> Result<Exit, CliError> {
    let kernel = kernel(
        arguments,
        &[FileKind::Library, FileKind::C],
        "./libsoftmax.so:softmax",
    )?;
    let list = arguments.native.arguments.as_deref().map(list).transpose()?;
    let options = LibraryOptions {
        arguments: list,
        device: arguments.native.on_gpu.then_some(Target::Cuda),
        returns: arguments.native.returns_int.then_some(Returns::Int),
        ordinal: arguments.cuda.ordinal,
        parameters: kernel.parameters.clone(),
    };
    match LibraryHost::open(&kernel.file, &kernel.function, &options) {
        Ok(host) => answer(&mut HostService::new(host)),
        Err(error) => {
            say(&format!("{error}\n"));
            Ok(Exit::BadInput)
        }
    }
}

/// Serves a CUDA C++ kernel: on a GPU, or without one for an architecture.
pub fn nvrtc(arguments: &Worker) -> Result<Exit, CliError> {
    let kernel = kernel(arguments, &[FileKind::Cuda], "softmax.cu:softmax_kernel")?;
    let served =
        KernelFile::open(&kernel.file, &kernel.function).and_then(|file| match arguments.cuda.compile_for {
            Some(architecture) => {
                let host = InterpretedHost::new(file, &architecture.to_string())?;
                Ok(answer(&mut HostService::new(host)))
            }
            None => {
                let host = NvrtcHost::new(file, arguments.cuda.ordinal)?;
                Ok(answer(&mut HostService::new(host)))
            }
        });
    // The coordinator repeats what a worker says before it ends.
    served.unwrap_or_else(|error| {
        say(&format!("{error}\n"));
        Ok(match error {
            KernelError::Compiler(_) | KernelError::Driver(_) => Exit::Broken,
            _ => Exit::BadInput,
        })
    })
}

/// The kernel that this worker is to serve, which must be in a file of one of these kinds.
fn kernel(arguments: &Worker, kinds: &[FileKind], example: &str) -> Result<FileKernel, CliError> {
    let text = gauntlet_entrants::read(arguments.subject.as_deref().unwrap_or_default())?;
    let found = kinds.iter().find_map(|kind| text.in_file(*kind));
    found.cloned().ok_or_else(|| {
        CliError::bad_input(
            format!("this worker does not serve `{text}`"),
            format!("write the file, a colon and the name, as in {example}"),
        )
    })
}

/// The arguments of a function, separated by commas outside of brackets.
fn list(text: &str) -> Result<Vec<Argument>, CliError> {
    let (mut parts, mut depth) = (vec![String::new()], 0_i32);
    for letter in text.chars() {
        match letter {
            ',' if depth == 0 => parts.push(String::new()),
            letter => {
                depth += match letter {
                    '(' => 1,
                    ')' => -1,
                    _ => 0,
                };
                if let Some(part) = parts.last_mut() {
                    part.push(letter);
                }
            }
        }
    }
    let read = |part: &String| {
        part.parse().map_err(|error| {
            CliError::bad_input(
                format!("--arguments: {error}"),
                "name tensors and sizes of the task in the function's order, as in 'x,y,rows,cols'",
            )
        })
    };
    parts.iter().map(read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_cut_at_commas_outside_of_brackets() {
        let texts =
            |text: &str| -> Vec<String> { list(text).unwrap().iter().map(ToString::to_string).collect() };
        assert_eq!(
            texts("x, float* y,int ceil_div(rows, 2),stream"),
            ["x", "float* y", "int ceil_div(rows, 2)", "stream"]
        );
        assert!(
            list("x,(rows")
                .unwrap_err()
                .to_string()
                .contains("--arguments: argument `(rows`")
        );
    }
}
