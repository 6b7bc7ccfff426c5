//! What is noticed of a case while its inputs are drawn and its expected results computed: whether they differ from draw to draw,
//! and where they are not finite.

use std::collections::HashSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use gauntlet_task::{ErrorMeasures, Expected, Limits, Output, Remark};
use gauntlet_tensors::{Tensor, TensorSpec};

use crate::protocol::CaseTensors;
use crate::rules;

/// Draws after which a result that was never another one counts as the same for all inputs. Results of few values, such as one
/// index, are alike by chance now and then.
pub(crate) const DRAWS: usize = 4;

/// The first seed of draws that are made for remarks alone. The judge's are random.
const SEEDS: u64 = 0x5eed;

/// Bytes of results up to which they are compared within their limits, and not only bit by bit.
const MAX_BYTES: usize = 16 << 20;

/// Elements that are read at once.
const RUN: usize = 1 << 16;

/// What was noticed of a case so far.
#[derive(Debug, Default)]
pub(crate) struct Noticed(Mutex<Seen>);

#[derive(Debug, Default)]
struct Seen {
    /// Draws of the inputs.
    drawn: usize,
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
    /// For each output the largest shares of elements that were NaN and that were infinite.
    shares: Vec<[f64; 2]>,
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
    pub(crate) fn drawn(&self, inputs: &[Tensor]) {
        let digests: Vec<_> = inputs.iter().map(digest).collect();
        let mut seen = self.seen();
        seen.drawn += 1;
        if seen.inputs.is_empty() {
            seen.inputs = digests.into_iter().map(|digest| (digest, false)).collect();
            return;
        }
        for ((first, varies), digest) in seen.inputs.iter_mut().zip(digests) {
            *varies |= *first != digest;
        }
    }

    /// Whether the result for inputs with this digest is to be noted, which is asked once.
    pub(crate) fn is_new(&self, key: blake3::Hash) -> bool {
        self.seen().known.insert(key)
    }

    /// Notes the expected result for other inputs than before. `is_refused` says whether the task's own check refuses another
    /// result for these inputs.
    pub(crate) fn expected(
        &self,
        output: &Output,
        limits: &[Limits],
        is_refused: impl FnOnce(&Output) -> bool,
    ) {
        let shares: Vec<_> = output.0.iter().map(shares).collect();
        let mut seen = self.seen();
        if seen.first.is_none() {
            seen.first = Some(Kept::of(output));
            seen.depends = vec![false; output.0.len()];
            seen.shares = shares;
            return;
        }
        for (most, share) in seen.shares.iter_mut().zip(shares) {
            *most = [most[0].max(share[0]), most[1].max(share[1])];
        }
        let Some(first) = &seen.first else {
            return;
        };
        if seen.depends.iter().all(|depends| *depends) {
            return;
        }
        let mut wrong = first.is_wrong_for(output, limits);
        if let Kept::Whole(first) = first
            && !wrong.contains(&true)
            && is_refused(first)
        {
            wrong.fill(true);
        }
        for (depends, wrong) in seen.depends.iter_mut().zip(wrong) {
            *depends |= wrong;
        }
        seen.others += 1;
        if !seen.depends.contains(&false) {
            // Nothing is compared with it any more.
            seen.first = Some(Kept::Digests(Vec::new()));
        }
    }

    /// Whether results for more inputs are needed to say if they depend on them. Of a case that was never used nothing is said.
    pub(crate) fn lacks_results(&self) -> bool {
        let seen = self.seen();
        seen.drawn > 0 && seen.drawn < DRAWS && seen.depends.contains(&false)
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
        let noted = |text| Remark {
            text,
            tests_nothing: false,
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
                tests_nothing: true,
            });
        }
        let is_constant = |spec: &TensorSpec| tensors.constant.contains(&spec.name);
        if self.drawn > 0 && tensors.inputs.iter().all(is_constant) {
            return Some(Remark {
                text: format!(
                    "{on}, every input is `constant`: a kernel may compute its whole result before it is timed"
                ),
                tests_nothing: false,
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
            tests_nothing: false,
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
        let tests_nothing = self.depends.iter().all(|depends| !depends);
        let what = match tests_nothing {
            true => "the expected result".to_owned(),
            false => format!("what is expected of {}", same.join(", ")),
        };
        Some(Remark {
            text: format!(
                "{on}, {what} was the same for {} draws of the inputs, or within its limits: a kernel that returns a constant would \
                 pass; let it depend on the values of the inputs, and state narrower limits by `tolerance`",
                1 + self.others
            ),
            tests_nothing,
        })
    }
}

fn not_finite(on: &str, spec: &TensorSpec, [nan, infinite]: [f64; 2]) -> Option<String> {
    let name = &spec.name;
    if nan > 0.0 {
        return Some(format!(
            "{on}, the reference is NaN in {} of the elements of `{name}`, where only NaN is right; correct the reference if that is \
             not meant",
            percent(nan)
        ));
    }
    (infinite == 1.0).then(|| format!("{on}, the reference is infinite in all elements of `{name}`"))
}
