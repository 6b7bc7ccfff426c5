//! Products of f32 by the crate that a Rust program would otherwise use (`faer` is based on a version of it).

use gauntlet_nvfp4::Nvfp4Tensor;
use gauntlet_problems::GroupInputs;
use gemm::Parallelism;

/// Operands dequantised beforehand, which is not counted in the crate's time, and memory for the products.
pub struct Dense {
    a: Vec<f32>,
    weights: Vec<Vec<f32>>,
    products: Vec<Vec<f32>>,
    shape: [usize; 3],
    threads: usize,
}

impl Dense {
    pub fn new(inputs: &GroupInputs, threads: usize) -> Self {
        let rounded =
            |values: Vec<f64>| -> Vec<f32> { values.into_iter().map(|value| value as f32).collect() };
        let scaled = |tensor: &Nvfp4Tensor| rounded(tensor.dequantise_scaled());
        let (m, n) = (inputs.a.rows(), inputs.b.rows());
        let weights: Vec<Vec<f32>> = std::iter::once(&inputs.b).chain(&inputs.b2).map(scaled).collect();
        Self {
            a: rounded(inputs.a.dequantise_scaled()),
            products: vec![vec![0.0; m * n]; weights.len()],
            weights,
            shape: [m, n, inputs.a.columns()],
            threads,
        }
    }

    /// By the crate `gemm`.
    pub fn gemm(&mut self) -> &[f32] {
        let [m, n, k] = self.shape;
        for (weights, product) in self.weights.iter().zip(&mut self.products) {
            assert!(self.a.len() >= m * k && weights.len() >= n * k && product.len() >= m * n);
            // SAFETY: all three are row-major of the lengths checked above, and the product overlaps neither operand.
            unsafe {
                gemm::gemm(
                    m,
                    n,
                    k,
                    product.as_mut_ptr(),
                    1,
                    n as isize,
                    false,
                    self.a.as_ptr(),
                    1,
                    k as isize,
                    weights.as_ptr(),
                    k as isize,
                    1,
                    0.0,
                    1.0,
                    false,
                    false,
                    false,
                    Parallelism::Rayon(self.threads),
                );
            }
        }
        self.join()
    }

    /// The result; for the dual form `silu(gate) · up`.
    fn join(&mut self) -> &[f32] {
        if let [gate, up] = self.products.as_mut_slice() {
            for (gate, up) in gate.iter_mut().zip(up) {
                *gate *= *up / (1.0 + (-*gate).exp());
            }
        }
        &self.products[0]
    }
}
