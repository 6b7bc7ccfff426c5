//! Planning, which needs no device.

use gauntlet_problems::{Form, GemmShape, GroupedGemm, Operation, OutputFormat, TokenFormat};
use gauntlet_problems::{Packing, Schedule, Setup};

use super::{Choice, ServeError, choice};
use crate::plan::swapped::{Epilogue, RoutedPlan};
use crate::plan::{self, Plan, PlanError, Target};

/// A layer's computation, independent of the token counts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerShape {
    /// Its products, one a group: the experts of a mixture, or a single one.
    pub products: Vec<ProductShape>,
    /// Plain, or two products with SwiGLU fused.
    pub form: Form,
    /// The format of the results.
    pub output: OutputFormat,
    /// The format of the tokens.
    pub tokens: TokenFormat,
}

/// The sizes of one product's weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProductShape {
    /// Rows of the weights: columns of the result.
    pub n: usize,
    /// The dimension that is summed over, a multiple of 16; rows in memory are padded to a multiple of
    /// [`DEPTH_STEP`](crate::plan::DEPTH_STEP).
    pub k: usize,
}

/// Plans the calls of a layer; holds no device state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Planner {
    shape: LayerShape,
    choice: Choice,
    target: Target,
}

/// Where it is known which product each token belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Routing {
    /// On the host: the tokens of each product.
    Host(Vec<usize>),
    /// On the device, which reads at which row each product's tokens end. The host knows the rows of all products together.
    Device {
        /// The most rows.
        rows: usize,
        /// What follows the sums.
        epilogue: Option<Epilogue>,
    },
}

impl Routing {
    /// A number of rows for which a plan is made that serves `rows`, at most an eighth more: so few plans serve all numbers.
    pub fn bound(rows: usize) -> usize {
        const MOST: usize = 1 << 20;
        if rows > MOST {
            return rows;
        }
        rows.next_multiple_of((rows.next_power_of_two() / 16).max(1))
    }

    /// Rows of tokens of all products together.
    pub fn rows(&self) -> usize {
        match self {
            Self::Host(tokens) => tokens.iter().sum(),
            Self::Device { rows, .. } => *rows,
        }
    }
}

/// A planned call of a layer, not yet on a device.
#[derive(Debug)]
pub struct ShapePlan {
    planner: Planner,
    routing: Routing,
    schedule: Schedule,
    plan: Box<dyn Plan>,
}

impl Planner {
    /// A planner for a GPU.
    pub fn new(shape: LayerShape, choice: Choice, target: Target) -> Self {
        Self {
            shape,
            choice,
            target,
        }
    }

    /// The layer's shape.
    pub fn shape(&self) -> &LayerShape {
        &self.shape
    }

    /// Plans a call with these token counts, one for each product; 0 is allowed.
    ///
    /// # Errors
    /// If the number of token counts differs from the number of products, or no kernel supports the call.
    pub fn plan(&self, tokens: &[usize]) -> Result<ShapePlan, ServeError> {
        let gemm = self.gemm(tokens)?;
        let schedule = self.choice.schedule(&gemm, self.target);
        let plan = plan::plan(&Operation::GroupedGemm(gemm), &schedule, self.target)?;
        PlanError::unless(
            "setup",
            schedule.setup,
            Setup::Once,
            "plans are made before the calls",
        )?;
        Ok(ShapePlan {
            plan,
            planner: self.clone(),
            routing: Routing::Host(tokens.to_vec()),
            schedule,
        })
    }

    /// Plans calls with at most this many rows of tokens, of which the device knows how many each product has. The swapped kernel
    /// computes it: its blocks deal out the tiles by themselves.
    ///
    /// # Errors
    /// If the products have several sizes, or no kernel supports the call.
    pub fn plan_routed(&self, rows: usize) -> Result<ShapePlan, ServeError> {
        self.plan_routed_with(rows, None)
    }

    /// The same with biases and an activation.
    ///
    /// # Errors
    /// As [`plan_routed`](Self::plan_routed).
    pub fn plan_routed_with(&self, rows: usize, epilogue: Option<Epilogue>) -> Result<ShapePlan, ServeError> {
        let layer = self.gemm(&vec![0; self.shape.products.len()])?;
        plan::validate(&layer)?;
        let schedule = self.choice.routed_schedule(&layer);
        let plan = Box::new(RoutedPlan::new(&layer, rows, &schedule, self.target, epilogue)?);
        Ok(ShapePlan {
            plan,
            planner: self.clone(),
            routing: Routing::Device { rows, epilogue },
            schedule,
        })
    }

    fn gemm(&self, tokens: &[usize]) -> Result<GroupedGemm, ServeError> {
        let products = self.shape.products.len();
        if tokens.len() != products {
            return Err(ServeError::Count {
                what: "numbers of tokens",
                expected: products,
                found: tokens.len(),
            });
        }
        Ok(self.shape.gemm(tokens))
    }
}

impl LayerShape {
    /// The order of repacked weights that is best for this layer on a GPU, whatever the token counts of a call: in steps for
    /// tokens of 16 bits on Hopper, if K is the same in all products, else in fragments.
    pub fn packing(&self, target: Target) -> Packing {
        choice::packing(&self.gemm(&vec![0; self.products.len()]), target)
    }

    /// The problem with a token count for each product.
    fn gemm(&self, tokens: &[usize]) -> GroupedGemm {
        let shape = |(&m, &ProductShape { n, k }): (&usize, &ProductShape)| GemmShape { m, n, k };
        GroupedGemm {
            groups: tokens.iter().zip(&self.products).map(shape).collect(),
            form: self.form,
            output: self.output,
            tokens: self.tokens,
        }
    }
}

impl ShapePlan {
    /// What was known of the routing.
    pub fn routing(&self) -> &Routing {
        &self.routing
    }

    /// The layer's shape.
    pub fn layer(&self) -> &LayerShape {
        &self.planner.shape
    }

    /// The schedule of the kernel.
    pub fn schedule(&self) -> &Schedule {
        &self.schedule
    }

    /// Kernel, tables and launches.
    pub fn plan(&self) -> &dyn Plan {
        self.plan.as_ref()
    }

    /// Whether an equal planner made it.
    pub(super) fn is_of(&self, planner: &Planner) -> bool {
        self.planner == *planner
    }
}

#[cfg(test)]
mod tests {
    use gauntlet_device::Arch;

    use super::*;

    fn planner(choice: Choice) -> Planner {
        let shape = LayerShape {
            products: vec![ProductShape { n: 512, k: 256 }, ProductShape { n: 264, k: 512 }],
            form: Form::Plain,
            output: OutputFormat::F16,
            tokens: TokenFormat::Nvfp4,
        };
        Planner::new(shape, choice, Target::hopper(132))
    }

    #[test]
    fn planning_may_leave_its_thread() {
        let planner = planner(Choice::Automatic);
        let plan = std::thread::spawn(move || planner.plan(&[20, 3]))
            .join()
            .unwrap()
            .unwrap();
        assert_eq!(*plan.routing(), Routing::Host(vec![20, 3]));
    }

    #[test]
    fn plans_may_be_shared_between_threads() {
        fn shared<T: Send + Sync>() {}
        shared::<Planner>();
        shared::<ShapePlan>();
    }

    #[test]
    fn a_call_that_sets_up_each_time_is_no_plan() {
        let narrow = planner(Choice::Automatic).plan(&[1, 1]).unwrap();
        let schedule = Schedule {
            setup: Setup::PerCall,
            ..narrow.schedule().clone()
        };
        let error = planner(Choice::Fixed(schedule)).plan(&[1, 1]).unwrap_err();
        assert!(error.to_string().starts_with("setup = per-call: "), "{error}");
    }

    #[test]
    fn few_plans_serve_all_numbers_of_rows() {
        let found: Vec<usize> = (1..=4096).map(Routing::bound).collect();
        let mut bounds = found.clone();
        bounds.dedup();
        assert_eq!(bounds.len(), 80);
        assert_eq!(
            (bounds[..17].to_vec(), Routing::bound(0)),
            ((1..=16).chain([18]).collect(), 0)
        );
        for (bound, rows) in found.into_iter().zip(1..) {
            assert!((rows..=rows + rows / 8).contains(&bound), "{bound} for {rows}");
        }
        assert_eq!(Routing::bound((1 << 20) + 1), (1 << 20) + 1);
    }

    #[test]
    fn routed_calls_need_hopper() {
        let shape = LayerShape {
            products: vec![ProductShape { n: 512, k: 256 }; 2],
            form: Form::Plain,
            output: OutputFormat::Bf16,
            tokens: TokenFormat::Bf16,
        };
        for target in [
            Target::of_arch(Arch::Sm80, 108),
            Target::of_arch(Arch::Sm100a, 148),
        ] {
            let target = target.for_common_kernels();
            let planner = Planner::new(shape.clone(), Choice::Automatic, target);
            assert!(planner.plan(&[1, 20]).is_ok());
            let error = planner.plan_routed(8).unwrap_err().to_string();
            assert!(
                error.ends_with("give the token counts of each product on the host"),
                "{error}"
            );
        }
    }

    #[test]
    fn routed_calls_have_products_of_one_size() {
        let error = planner(Choice::Automatic).plan_routed(8).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("product 1 is 264×512, and the first 512×256: "),
            "{error}"
        );
        let mut shape = planner(Choice::Automatic).shape;
        shape.products[1] = shape.products[0];
        for choice in [Choice::Automatic, Choice::Repacked(Packing::Fragments)] {
            let plan = Planner::new(shape.clone(), choice, Target::hopper(132))
                .plan_routed(8)
                .unwrap();
            assert!(matches!(plan.routing(), Routing::Device { rows: 8, .. }));
            assert_eq!(plan.plan().variants().len(), 2);
        }
        let rows = Planner::new(shape, Choice::Fixed(Schedule::baseline()), Target::hopper(132));
        let error = rows.plan_routed(8).unwrap_err().to_string();
        assert!(error.starts_with("swap-ab = false: "), "{error}");
    }

    #[test]
    fn a_wrong_number_of_numbers_is_told() {
        let error = planner(Choice::Automatic).plan(&[1]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "1 numbers of tokens for a layer of 2 products; give one for each, in their order"
        );
    }

    #[test]
    fn a_schedule_that_no_kernel_can_do_is_an_error() {
        let schedule = Schedule {
            swap_ab: true,
            ..Schedule::baseline()
        };
        let error = planner(Choice::Fixed(schedule)).plan(&[1, 1]).unwrap_err();
        assert!(error.to_string().starts_with("lookup = linear: "), "{error}");
    }

    #[test]
    fn a_plan_knows_whose_it_is() {
        let automatic = planner(Choice::Automatic);
        let plan = automatic.plan(&[20, 3]).unwrap();
        assert!(plan.is_of(&automatic.clone()));
        assert!(!plan.is_of(&planner(Choice::Fixed(Schedule::baseline()))));
    }
}
