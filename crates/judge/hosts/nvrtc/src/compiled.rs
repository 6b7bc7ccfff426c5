//! A kernel for one case: its launch, its code, and what it takes up.

use gauntlet_cuda::CompileError;
use gauntlet_cuda::compiler::{Compiler, UserKernel};
use gauntlet_host_native::{broken, refused};
use gauntlet_parameters::Parameters;
use gauntlet_task::Scope;
use gauntlet_worker::protocol::{CaseRequest, Failure, Resources};

use crate::file::KernelFile;
use crate::launch::LaunchPlan;

/// The launch of a kernel for a case, under parameters of its own.
pub(crate) fn planned(
    file: &KernelFile,
    case: &CaseRequest,
    parameters: &Parameters,
) -> Result<LaunchPlan, Failure> {
    let scope = file
        .parameters()
        .scope(Scope::of(&case.sizes, &case.inputs, &case.outputs), parameters)
        .map_err(refused)?;
    if let Some(broken) = file.broken_restriction(&scope).map_err(refused)? {
        return Err(refused(broken));
    }
    file.launch(&scope).map_err(refused)
}

/// The code of a kernel for an architecture such as `sm_80`, under parameters of its own.
pub(crate) fn compiled(
    file: &KernelFile,
    compiler: &Compiler,
    architecture: &str,
    parameters: &Parameters,
) -> Result<UserKernel, Failure> {
    file.with_source(parameters, |source| compiler.compile_user(source, architecture))
        .map_err(|error| compile_failure(&error))
}

/// The resources that are known from compiler and launch.
pub(crate) fn resources(kernel: &UserKernel, plan: &LaunchPlan) -> Resources {
    let found = kernel.resources;
    let shared = found.static_shared_bytes + plan.shared_bytes;
    let cluster: u32 = plan.cluster.iter().product();
    let named = [
        ("registers", f64::from(found.registers)),
        ("spills", f64::from(found.spill_bytes)),
        ("stack-bytes", f64::from(found.stack_bytes)),
        ("shared-memory-bytes", f64::from(shared)),
        ("threads", f64::from(plan.threads())),
        ("blocks", plan.blocks() as f64),
        ("cluster", f64::from(cluster)),
        ("launches", 1.0),
        ("compiler-warnings", kernel.warnings.len() as f64),
    ];
    Resources(named.map(|(name, value)| (name.to_owned(), value)).into())
}

/// A source that does not compile is the kernel's fault; a compiler that does not work is not.
pub(crate) fn compile_failure(error: &CompileError) -> Failure {
    if error.is_of_the_kernel() {
        refused(error.to_string())
    } else {
        broken(error.to_string())
    }
}
