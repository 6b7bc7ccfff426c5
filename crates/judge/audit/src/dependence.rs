//! What hangs on an input: whether the reference reads it, and whether a kernel that takes other values for it would pass.

use std::fmt;

use gauntlet_task::{InputKind, Inputs, Output, TaskSizes, nrmse_between};
use gauntlet_tensors::Tensor;

use crate::made::{differ, differs, values};
use crate::operands::{Draw, result_for};

/// What a kernel that does not look at an input may take in its place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Substitute {
    /// Zeros.
    Zeros,
    /// Ones.
    Ones,
    /// What was drawn from another seed.
    Another,
    /// The one value that all its elements have for every seed.
    Fixed(f64),
}

impl fmt::Display for Substitute {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => formatter.write_str("zeros"),
            Self::Ones => formatter.write_str("ones"),
            Self::Another => formatter.write_str("what another seed draws"),
            Self::Fixed(value) => write!(formatter, "{value}, which it is throughout for every seed,"),
        }
    }
}

/// What is known of one input.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependence {
    /// Its name; a weight of a model counts as an input.
    pub input: String,
    /// Whether some other values of it gave a result that is wrong, or another by far; none if the reference took none of them. What
    /// cancels, such as a bias before a norm, gives another rounding at most.
    pub is_read: Option<bool>,
    /// What a kernel may take in its place and pass, though the reference reads it.
    pub ignorable: Option<Substitute>,
    /// Whether it holds one value, or the same flags or integers for every seed: such an input may well be a setting, as a mask or the
    /// lengths of sequences.
    pub is_setting: bool,
    /// Whether it had the same values for every seed.
    pub is_fixed: bool,
    /// Whether the result is right with its elements reversed, and with each doubled; none if that says nothing.
    pub reversed: Option<bool>,
    /// See `reversed`.
    pub doubled: Option<bool>,
}

/// The normalised difference of results from which they are no longer the same but for rounding.
const FAR: f64 = 1e-2;

impl Dependence {
    /// Whether a result for other values is right on a draw; what that says of whether they matter is noted.
    fn passes(&mut self, sizes: &dyn TaskSizes, draw: &Draw, result: &Output) -> bool {
        let is_right = !differ(result, &draw.result) || draw.fault(sizes, result).is_none();
        let mut pairs = result.0.iter().zip(&draw.result.0);
        let is_far =
            |(one, other)| nrmse_between(std::slice::from_ref(one), std::slice::from_ref(other)) > FAR;
        let matters = !is_right || pairs.any(is_far);
        self.is_read = Some(self.is_read.unwrap_or(false) || matters);
        is_right
    }
}

/// The inputs of a case.
#[derive(Debug)]
pub struct Dependences(Vec<Dependence>);

impl Dependences {
    /// Asks the reference what hangs on each input of a case, on these draws; inputs are replaced only, and neither reversed nor doubled.
    ///
    /// # Errors
    /// When the task's reference fails on its own inputs.
    pub fn of(sizes: &dyn TaskSizes, kind: InputKind, drawn: Vec<Box<dyn Inputs>>) -> Result<Self, String> {
        let draws = drawn.into_iter().map(|inputs| Draw::with(sizes, kind, inputs));
        Ok(Self::on(sizes, &draws.collect::<Result<Vec<_>, _>>()?, false))
    }

    pub(crate) fn on(sizes: &dyn TaskSizes, draws: &[Draw], changes: bool) -> Self {
        let inputs = sizes.inputs();
        let nonempty = inputs.iter().enumerate().filter(|(_, spec)| spec.elements() > 0);
        let of = |(index, _)| Question { sizes, draws, index }.answer(changes);
        let of_inputs = nonempty.map(of);
        let weights = sizes.weights().into_iter().take(MOST_WEIGHTS);
        Self(
            of_inputs
                .chain(weights.map(|weight| on_weight(sizes, draws, weight)))
                .collect(),
        )
    }

    /// Each input.
    pub fn iter(&self) -> impl Iterator<Item = &Dependence> {
        self.0.iter()
    }
}

/// Weights of a model that are asked about.
const MOST_WEIGHTS: usize = 24;

/// What hangs on a weight of a model, which is the same for every seed.
fn on_weight(sizes: &dyn TaskSizes, draws: &[Draw], weight: String) -> Dependence {
    let mut found = Dependence {
        input: weight,
        is_read: None,
        ignorable: None,
        is_setting: false,
        is_fixed: true,
        reversed: None,
        doubled: None,
    };
    for (substitute, value) in [(Substitute::Zeros, 0.0), (Substitute::Ones, 1.0)] {
        let passes = draws.iter().all(|draw| {
            let result = sizes.probed_with_weight(&*draw.inputs, &found.input, value);
            result.is_ok_and(|result| found.passes(sizes, draw, &result))
        });
        if passes {
            found.ignorable.get_or_insert(substitute);
        }
    }
    if found.is_read != Some(true) {
        found.ignorable = None;
    }
    found
}

/// What hangs on one input.
struct Question<'q> {
    sizes: &'q dyn TaskSizes,
    draws: &'q [Draw],
    index: usize,
}

impl Question<'_> {
    fn drawn(&self, draw: usize) -> &Tensor {
        &self.draws[draw % self.draws.len()].tensors[self.index]
    }

    fn answer(&self, changes: bool) -> Dependence {
        let spec = &self.drawn(0).spec;
        let is_fixed = (1..self.draws.len()).all(|draw| self.drawn(draw).bytes == self.drawn(0).bytes);
        let mut found = Dependence {
            input: spec.name.clone(),
            is_read: None,
            ignorable: None,
            is_setting: spec.elements() == 1 || is_fixed && !spec.data_type.has_nan(),
            is_fixed,
            reversed: None,
            doubled: None,
        };
        for substitute in [Substitute::Zeros, Substitute::Ones, Substitute::Another] {
            if let Some(passes) = self.passes(&mut found, &|draw| self.substituted(substitute, draw))
                && passes
            {
                found.ignorable.get_or_insert(substitute);
            }
        }
        if changes && spec.data_type.has_nan() {
            found.reversed = self.altered(&mut found, &|draw| {
                let mut reversed = values(self.drawn(draw));
                reversed.reverse();
                Tensor::of(spec.clone(), reversed)
            });
            found.doubled = self.altered(&mut found, &|draw| {
                let doubled = values(self.drawn(draw)).into_iter().map(|value| 2.0 * value);
                Tensor::of(spec.clone(), doubled)
            });
        }
        let first = values(self.drawn(0));
        let is_uniform = first.iter().all(|value| *value == first[0]);
        if is_fixed && is_uniform && self.draws.len() > 1 {
            found.ignorable.get_or_insert(Substitute::Fixed(first[0]));
        }
        if found.is_read != Some(true) {
            found.ignorable = None;
        }
        found
    }

    /// The input with a substitute in its place; none if there is no other.
    fn substituted(&self, substitute: Substitute, draw: usize) -> Option<Tensor> {
        let own = self.drawn(draw);
        let filled = |value| Tensor::of(own.spec.clone(), std::iter::repeat_n(value, own.len()));
        match substitute {
            Substitute::Zeros => Some(filled(0.0)),
            Substitute::Ones => Some(filled(1.0)),
            Substitute::Another => {
                let other = self.drawn(draw + 1);
                differs(own, other).then(|| other.clone())
            }
            Substitute::Fixed(value) => Some(filled(value)),
        }
    }

    /// Whether a change that leaves no draw as it was is right.
    fn altered(&self, found: &mut Dependence, change: &dyn Fn(usize) -> Tensor) -> Option<bool> {
        let alters = (0..self.draws.len()).all(|draw| differs(&change(draw), self.drawn(draw)));
        alters.then(|| self.passes(found, &|draw| Some(change(draw))))?
    }

    /// Whether the result for another input is right on every draw; none if the reference does not take it. What it says of
    /// whether the input is read is noted.
    fn passes(&self, found: &mut Dependence, other: &dyn Fn(usize) -> Option<Tensor>) -> Option<bool> {
        for (number, draw) in self.draws.iter().enumerate() {
            let other = other(number)?;
            if !differs(&other, self.drawn(number)) {
                continue;
            }
            let result = self.result(draw, other)?;
            if !found.passes(self.sizes, draw, &result) {
                return Some(false);
            }
        }
        Some(true)
    }

    fn result(&self, draw: &Draw, other: Tensor) -> Option<Output> {
        let mut tensors = draw.tensors.clone();
        tensors[self.index] = other;
        // Those of a single input may be what another seed drew.
        if let Some(known) = self.draws.iter().find(|draw| draw.tensors == tensors) {
            return Some(known.result.clone());
        }
        result_for(self.sizes, &*draw.inputs, tensors).ok()
    }
}
