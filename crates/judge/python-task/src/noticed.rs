//! What is noticed of a case while its inputs are drawn and its expected results computed: whether they differ from draw to draw,
//! and where they are not finite.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gauntlet_audit::{NullKernel, breaks_tolerance, differs, view_of};
use gauntlet_task::{ErrorMeasures, Expected, InputTensors, Inputs, Limits, Output, Remark};
use gauntlet_tensors::{Tensor, TensorSpec};

use crate::conduct::of_memory;
use crate::protocol::CaseTensors;
use crate::rules;

/// Draws after which a result that was never another one counts as the same for all inputs. Results of few values, such as one
/// index, are alike by chance now and then.
pub(crate) const DRAWS: usize = 4;

/// The first seed of draws that are made for remarks alone. The judge's are random.
pub(crate) const SEEDS: u64 = 0x5eed;

/// The name of the remark on inputs that are the same for all seeds.
pub(crate) const FIXED_INPUT: &str = "fixed-input";

/// Bytes of results up to which they are compared within their limits, and not only bit by bit.
const MAX_BYTES: usize = 16 << 20;

/// Elements of inputs and outputs up to which the reference is asked what depends on each input.
pub(crate) const FULL_OF_INPUTS: usize = 1 << 20;

/// Elements that are read at once.
const RUN: usize = 1 << 16;

/// What was noticed of a case so far.
#[derive(Debug, Default)]
pub(crate) struct Noticed(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Draws of the inputs.
    drawn: usize,
    /// The first two draws that differ, if they are small.
    kept: Vec<InputTensors>,
    /// For each input the digest of its first values, and whether another draw had others.
    inputs: Vec<(blake3::Hash, bool)>,
    /// The digests of inputs whose results were noted.
    known: HashSet<blake3::Hash>,
    /// The first result.
    first: Option<Kept>,
    /// Results for other inputs than those of the first.
    others: usize,
    /// For each output, whether the first result was wrong for other inputs.
    depends: Vec<bool>,
    /// For each output, the sentence that it is a view of an input, if it was for all inputs.
    views: Vec<Option<String>>,
    /// What came of null kernels on results for other inputs than those of the first.
    nulls: Vec<Null>,
    /// For each output the largest shares of elements that were NaN and that were infinite.
    shares: Vec<[f64; 2]>,
}

/// What came of a null kernel.
#[derive(Debug)]
struct Null {
    kernel: NullKernel,
    /// For each output, whether what it returned was ever wrong.
    refused: Vec<bool>,
    /// For each output, whether what it returned ever differed from what was right.
    differed: Vec<bool>,
}

impl Null {
    fn new(kernel: NullKernel, outputs: usize) -> Self {
        Self {
            kernel,
            refused: vec![false; outputs],
            differed: vec![false; outputs],
        }
    }

    /// Whether it may pass for some output yet.
    fn is_open(&self) -> bool {
        let mut outputs = self.refused.iter().zip(&self.differed);
        outputs.any(|(refused, differed)| *differed && !refused)
    }

    /// Tries it where `output` is right and `first` was right for other inputs.
    fn tried(
        &mut self,
        output: &Output,
        first: &Output,
        limits: &[Limits],
        is_refused: &dyn Fn(&Output) -> bool,
    ) {
        if !self.refused.contains(&false) {
            return;
        }
        let Some(made) = self.kernel.made(output, first) else {
            return;
        };
        let mut any_wrong = false;
        for (index, (made, own)) in made.0.iter().zip(&output.0).enumerate() {
            if self.refused[index] || !differs(made, own) {
                continue;
            }
            self.differed[index] = true;
            self.refused[index] = !would_pass(made, own, &limits[index]);
            any_wrong |= self.refused[index];
        }
        if !any_wrong && self.is_open() && is_refused(&made) {
            self.refused.fill(true);
        }
    }
}

/// A result, or what is kept of a large one.
#[derive(Debug)]
enum Kept {
    Whole(Output),
    Digests(Vec<blake3::Hash>),
}

impl Kept {
    fn of(output: &Output) -> Self {
        let bytes: usize = output.0.iter().map(|tensor| tensor.bytes.len()).sum();
        if bytes <= MAX_BYTES {
            return Self::Whole(output.clone());
        }
        Self::Digests(output.0.iter().map(digest).collect())
    }

    /// For each output, whether this result is wrong where that one is expected.
    fn is_wrong_for(&self, expected: &Output, limits: &[Limits]) -> Vec<bool> {
        match self {
            Self::Whole(own) => {
                let part = 0..own.0.len();
                part.map(|part| !would_pass(&own.0[part], &expected.0[part], &limits[part]))
                    .collect()
            }
            Self::Digests(own) => {
                let others = expected.0.iter().map(digest);
                own.iter().zip(others).map(|(own, other)| *own != other).collect()
            }
        }
    }
}

fn digest(tensor: &Tensor) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    hasher.update_rayon(&tensor.bytes);
    hasher.finalize()
}

/// Whether an output keeps its limits where another one is expected.
pub(crate) fn would_pass(found: &Tensor, expected: &Tensor, limits: &Limits) -> bool {
    if rules::is_exact(&found.spec, limits) {
        return found.bytes == expected.bytes;
    }
    if breaks_tolerance(found, expected, limits) {
        return false;
    }
    let [found, expected] = [found, expected].map(|tensor| Output(vec![tensor.clone()]));
    let expected = Expected::of(&expected).within([*limits]);
    let errors = ErrorMeasures::between(&found, &expected, limits.tolerance);
    errors.parts.iter().all(|part| part.keeps(limits))
}

/// The shares of elements that are NaN and that are infinite.
fn shares(tensor: &Tensor) -> [f64; 2] {
    if !tensor.spec.data_type.has_nan() || tensor.is_empty() {
        return [0.0; 2];
    }
    let mut counts = [0_usize; 2];
    let mut run = vec![0.0; RUN];
    for first in (0..tensor.len()).step_by(RUN) {
        let values = &mut run[..RUN.min(tensor.len() - first)];
        tensor.get_all(first, values);
        counts[0] += values.iter().filter(|value| value.is_nan()).count();
        counts[1] += values.iter().filter(|value| value.is_infinite()).count();
    }
    counts.map(|count| count as f64 / tensor.len() as f64)
}

/// A share in per cent: whole per cent, or more digits where that would be 0 or 100.
pub(crate) fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    if percent > 0.0 && percent < 1.0 {
        format!("{percent:.1e} %")
    } else if percent > 99.0 && percent < 100.0 {
        "over 99 %".to_owned()
    } else {
        format!("{percent:.0} %")
    }
}

impl Noticed {
    fn seen(&self) -> MutexGuard<'_, Seen> {
        // Each change is whole, whatever happened to the thread that made it.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes drawn inputs.
    pub(crate) fn drawn(&self, drawn: &InputTensors) {
        let inputs = &drawn.0;
        let digests: Vec<_> = inputs.iter().map(digest).collect();
        let mut seen = self.seen();
        let is_small = inputs.iter().map(Tensor::len).sum::<usize>() <= FULL_OF_INPUTS;
        if is_small && seen.kept.len() < 2 && seen.kept.iter().all(|kept| kept.0 != *inputs) {
            seen.kept.push(drawn.clone());
        }
        seen.drawn += 1;
        if seen.inputs.is_empty() {
            seen.inputs = digests.into_iter().map(|digest| (digest, false)).collect();
            return;
        }
        for ((first, varies), digest) in seen.inputs.iter_mut().zip(digests) {
            *varies |= *first != digest;
        }
    }

    /// Two draws that differ; none if there were not two small ones.
    pub(crate) fn two_draws(&self) -> Vec<Box<dyn Inputs>> {
        match &self.seen().kept[..] {
            [one, other] => vec![Box::new(one.clone()), Box::new(other.clone())],
            _ => Vec::new(),
        }
    }

    /// Whether the result for inputs with this digest is to be noted, which is asked once.
    pub(crate) fn is_new(&self, key: blake3::Hash) -> bool {
        self.seen().known.insert(key)
    }

    /// Notes the expected result for other inputs than before. `is_refused` says whether the task's own check refuses another
    /// result for these inputs.
    pub(crate) fn expected(&self, output: &Output, limits: &[Limits], is_refused: &dyn Fn(&Output) -> bool) {
        let shares: Vec<_> = output.0.iter().map(shares).collect();
        let mut seen = self.seen();
        if seen.first.is_none() {
            seen.first = Some(Kept::of(output));
            seen.depends = vec![false; output.0.len()];
            let null = |kernel| Null::new(kernel, output.0.len());
            seen.nulls = NullKernel::CHEAP.into_iter().map(null).collect();
            seen.shares = shares;
            return;
        }
        for (most, share) in seen.shares.iter_mut().zip(shares) {
            *most = [most[0].max(share[0]), most[1].max(share[1])];
        }
        // The first is compared with what it is put back beside.
        let Some(first) = seen.first.take() else { return };
        if let Kept::Whole(first) = &first {
            for null in &mut seen.nulls {
                null.tried(output, first, limits, is_refused);
            }
        }
        seen.compare(&first, output, limits, is_refused);
        let is_done = !seen.depends.contains(&false) && !seen.nulls.iter().any(Null::is_open);
        // Nothing is compared with it any more.
        seen.first = Some(if is_done { Kept::Digests(Vec::new()) } else { first });
    }

    /// Notes which outputs are nothing but a view of an input; called after [`expected`](Self::expected).
    pub(crate) fn views(&self, inputs: &[Tensor], output: &Output) {
        let mut seen = self.seen();
        let is_first = seen.others == 0;
        if is_first {
            seen.views = output.0.iter().map(|own| view_among(inputs, own)).collect();
        }
        for (view, own) in seen.views.iter_mut().zip(&output.0) {
            if !is_first && view.is_some() && *view != view_among(inputs, own) {
                *view = None;
            }
        }
    }

    /// Whether results for more inputs are needed to say if they depend on them. Of a case that was never used nothing is said.
    pub(crate) fn lacks_results(&self) -> bool {
        let seen = self.seen();
        let is_open = seen.depends.contains(&false) || seen.nulls.iter().any(Null::is_open);
        seen.drawn > 0 && seen.drawn < DRAWS && is_open
    }

    /// Whether more draws are needed to say if these inputs depend on the seed.
    pub(crate) fn lacks_inputs(&self, tensors: &CaseTensors) -> bool {
        let seen = self.seen();
        let named = tensors.inputs.iter().zip(&seen.inputs);
        let mut open = named.filter(|(spec, (_, varies))| !varies && !tensors.constant.contains(&spec.name));
        seen.drawn > 0 && seen.drawn < DRAWS && open.next().is_some()
    }

    /// A seed for another draw.
    pub(crate) fn next_seed(&self) -> u64 {
        SEEDS + self.seen().drawn as u64
    }

    /// The largest share of NaN in an output.
    pub(crate) fn share_of_nan(&self, output: usize) -> f64 {
        self.seen().shares.get(output).map_or(0.0, |shares| shares[0])
    }

    /// What makes verdicts on the case weaker; `on` says which case it is.
    pub(crate) fn remarks(&self, on: &str, tensors: &CaseTensors) -> Vec<Remark> {
        let seen = self.seen();
        let mut remarks: Vec<_> = seen.of_inputs(on, tensors).into_iter().collect();
        remarks.extend(seen.of_results(on, tensors));
        if !remarks.iter().any(|remark| remark.is_blind) {
            remarks.extend(
                seen.nulls
                    .iter()
                    .filter_map(|null| seen.of_null(on, null, tensors)),
            );
        }
        remarks.extend(seen.of_views(on, tensors));
        if seen.drawn > 0 {
            remarks.extend(of_memory(on, tensors, !seen.views.iter().any(Option::is_some)));
        }
        let noted = |(name, text)| Remark {
            name,
            input: None,
            text,
            is_blind: false,
        };
        let parts = tensors.outputs.iter().zip(&seen.shares);
        remarks.extend(
            parts
                .filter_map(|(spec, shares)| not_finite(on, spec, *shares))
                .map(noted),
        );
        remarks
    }
}

impl Seen {
    /// Compares the first result with that for other inputs.
    fn compare(
        &mut self,
        first: &Kept,
        output: &Output,
        limits: &[Limits],
        is_refused: &dyn Fn(&Output) -> bool,
    ) {
        self.others += 1;
        if !self.depends.contains(&false) {
            return;
        }
        let mut wrong = first.is_wrong_for(output, limits);
        if let Kept::Whole(first) = first
            && !wrong.contains(&true)
            && is_refused(first)
        {
            wrong.fill(true);
        }
        for (depends, wrong) in self.depends.iter_mut().zip(wrong) {
            *depends |= wrong;
        }
    }

    fn of_inputs(&self, on: &str, tensors: &CaseTensors) -> Option<Remark> {
        let named = tensors.inputs.iter().zip(&self.inputs);
        let same = named.filter(|(_, (_, varies))| !varies).map(|(spec, _)| spec);
        if self.drawn >= DRAWS && !self.inputs.iter().any(|(_, varies)| *varies) {
            return Some(Remark {
                text: format!(
                    "{on}, all inputs were the same for {} seeds: a kernel that remembers its first result would pass; let \
                     `generate` draw them from its seed",
                    self.drawn
                ),
                name: "same-inputs",
                input: None,
                is_blind: true,
            });
        }
        let is_constant = |spec: &TensorSpec| tensors.constant.contains(&spec.name);
        if self.drawn > 0 && tensors.inputs.iter().all(is_constant) {
            return Some(Remark {
                text: format!(
                    "{on}, every input is `constant`: a kernel may compute its whole result before it is timed"
                ),
                name: "constant-inputs",
                input: None,
                is_blind: false,
            });
        }
        let same: Vec<_> = same
            .filter(|spec| spec.elements() > 0 && !is_constant(spec))
            .map(|spec| format!("`{}`", spec.name))
            .collect();
        (self.drawn >= DRAWS && !same.is_empty()).then(|| Remark {
            text: format!(
                "{on}, {} had the same values for {} seeds: what a kernel remembers of them is never wrong here; draw them from \
                 the seed, or name them in `constant`",
                same.join(", "),
                self.drawn
            ),
            name: FIXED_INPUT,
            input: None,
            is_blind: false,
        })
    }

    fn of_results(&self, on: &str, tensors: &CaseTensors) -> Option<Remark> {
        let named = tensors.outputs.iter().zip(&self.depends);
        let same: Vec<_> = named
            .filter(|(spec, depends)| !**depends && spec.elements() > 0)
            .map(|(spec, _)| format!("`{}`", spec.name))
            .collect();
        if self.drawn < DRAWS || self.others == 0 || same.is_empty() {
            return None;
        }
        let is_blind = self.depends.iter().all(|depends| !depends);
        let what = match is_blind {
            true => "the expected result".to_owned(),
            false => format!("what is expected of {}", same.join(", ")),
        };
        Some(Remark {
            text: format!(
                "{on}, {what} was the same for {} draws of the inputs, or within its limits: a kernel that returns a constant would \
                 pass; let it depend on the values of the inputs, and state narrower limits by `tolerance`",
                1 + self.others
            ),
            name: NullKernel::EarlierResult.name(),
            input: None,
            is_blind,
        })
    }

    /// That outputs are views; one of several does not make a task blind.
    fn of_views(&self, on: &str, tensors: &CaseTensors) -> Vec<Remark> {
        let named = tensors.outputs.iter().zip(&self.views);
        let mut moved = named.filter(|(spec, view)| view.is_none() && spec.elements() > 0);
        let is_blind = moved.next().is_none();
        let views = self.views.iter().flatten().filter(|_| self.others > 0);
        let remark = |view: &String| Remark {
            name: NullKernel::View.name(),
            input: None,
            text: format!("{on}, {}", NullKernel::View.sentence(view)),
            is_blind,
        };
        views.map(remark).collect()
    }

    /// That a null kernel passes, for all outputs or for some.
    fn of_null(&self, on: &str, null: &Null, tensors: &CaseTensors) -> Option<Remark> {
        if self.drawn < DRAWS || self.others + 1 < DRAWS {
            return None;
        }
        let named = tensors.outputs.iter().enumerate();
        let passing = |index: &usize| null.differed[*index] && !null.refused[*index] && self.depends[*index];
        let passes: Vec<_> = named
            .filter(|(index, _)| passing(index))
            .map(|(_, spec)| format!("`{}`", spec.name))
            .collect();
        let is_blind = !null.refused.contains(&true);
        (!passes.is_empty()).then(|| Remark {
            name: null.kernel.name(),
            input: None,
            text: format!("{on}, {}", null.kernel.sentence(&passes.join(", "))),
            is_blind,
        })
    }
}

/// That an output is a view of one of the inputs.
fn view_among(inputs: &[Tensor], own: &Tensor) -> Option<String> {
    let mut views = inputs.iter().filter_map(|input| {
        let which = view_of(own, input)?;
        Some(format!("`{}` is `{}` {which}", own.spec.name, input.spec.name))
    });
    views.next()
}

fn not_finite(on: &str, spec: &TensorSpec, [nan, infinite]: [f64; 2]) -> Option<(&'static str, String)> {
    let name = &spec.name;
    if nan > 0.0 {
        let text = format!(
            "{on}, the reference is NaN in {} of the elements of `{name}`, where only NaN is right; correct the reference if that is \
             not meant",
            percent(nan)
        );
        return Some(("nan-reference", text));
    }
    (infinite == 1.0).then(|| {
        let text = format!("{on}, the reference is infinite in all elements of `{name}`");
        ("infinite-reference", text)
    })
}
