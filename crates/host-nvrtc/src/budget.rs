//! What a kernel takes up, and whether it fits.

use gauntlet_host_native::{broken, refused};
use gauntlet_kernels_cuda::CompileError;
use gauntlet_kernels_cuda::compiler::UserKernel;
use gauntlet_worker::protocol::{Failure, Resources};

use crate::launch::LaunchPlan;

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
