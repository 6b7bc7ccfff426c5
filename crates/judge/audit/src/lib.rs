//! The audit of tasks: which kernels that do not compute a task would its rules take as right?
//!
//! A verdict is worth what its task is worth. The audit makes the results of *null kernels*, which compute nothing or leave a part
//! out, from the task's own inputs and its reference's results, and judges them by the task's own rules. One that passes makes the
//! task *blind*: a faster kernel need not compute what the task asks for. Others say how wide the tolerance is, and accuse nothing.
//!
//! [`audit`] tries the whole battery on a suite. [`NullKernel::made`] makes single results, and [`Dependence`] says what hangs on
//! an input; tasks in Python use both for the remarks on the cases that a comparison uses.

mod case;
mod dependence;
mod kernel;
mod made;
mod operands;
mod report;
mod suite;
mod values;
mod views;

pub use dependence::{Dependence, Dependences, Substitute};
pub use kernel::{Kind, NullKernel, known_names};
pub use made::{breaks_tolerance, differ, differs};
pub use report::{AuditReport, Finding, KernelTried, Weight};
pub use suite::audit;
pub use views::view_of;
