//! Serves Python functions through the worker protocol: `gauntlet worker python FILE:FUNCTION`.
//!
//! The worker is a Python interpreter ([`interpreter`]) that runs the files under `python/gauntlet/_host`, which are
//! embedded in this crate together with the native loop of `gauntlet-python-loop`. [`exec`] writes them to the worker's
//! own folder and becomes the interpreter. A [`Solution`] is a kernel in the form of FlashInfer-Trace, a JSON file with
//! sources; its sources are unpacked beside them. [`inspect`] tells, without running any code of the user's, whether a file has
//! a function of that name, so that a typing error is reported before anything is measured.
//!
//! ```no_run
//! let kernel = gauntlet_host_python::inspect("softmax.py".as_ref(), "fast", &[])?;
//! println!("{kernel} can be called");
//! # Ok::<(), gauntlet_host_python::KernelError>(())
//! ```

mod embedded;
mod inspect;
mod interpreter;
mod solution;

pub use embedded::{Tensors, exec, exec_solution};
pub use inspect::{KernelError, inspect, inspect_module};
pub use interpreter::{VARIABLE, interpreter};
pub use solution::{Solution, SolutionError};
