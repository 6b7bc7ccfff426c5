//! The null kernels, by name.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

/// A kernel that does not compute the task: what it returns is made from the reference's results.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NullKernel {
    /// Returns zeros.
    Zeros,
    /// Returns one value everywhere: the mean of the result for other inputs.
    Constant,
    /// Returns the result of an earlier call, which had other inputs.
    EarlierResult,
    /// Computes the first half, and leaves zeros in the rest.
    FirstHalf,
    /// Returns the largest element of each row, and leaves zeros in the rest.
    LargestOfRow,
    /// Returns each row, or each element of a vector, in the place of the next one.
    NeighbouringRow,
    /// Returns one output in the place of another of its form.
    OtherOutput,
    /// Returns NaN in the place of the largest element.
    NanForLargest,
    /// Returns a view of an input, and moves nothing.
    View,
    /// Computes the result without looking at one input.
    IgnoredInput,
    /// Computes with one input reversed.
    ReversedInput,
    /// Computes with one input doubled.
    DoubledInput,
    /// Returns 0 in the place of the smallest element.
    ZeroForSmallest,
    /// Returns 0 in the place of the smaller half of the elements.
    SmallerHalf,
    /// Rounds the result to bf16.
    Bf16,
    /// Rounds the result to tf32.
    Tf32,
    /// Rounds the result to e4m3.
    E4m3,
}

/// What the passing of a null kernel says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// That the task is blind: it cannot tell a kernel from one that leaves work out.
    Blindness,
    /// How wide the tolerance is, or a property of the computation; sound tasks have it too.
    Property,
}

impl NullKernel {
    /// Those whose results are made of the reference's alone.
    pub const OF_RESULTS: [Self; 13] = [
        Self::Zeros,
        Self::Constant,
        Self::EarlierResult,
        Self::FirstHalf,
        Self::LargestOfRow,
        Self::NeighbouringRow,
        Self::OtherOutput,
        Self::NanForLargest,
        Self::ZeroForSmallest,
        Self::SmallerHalf,
        Self::Bf16,
        Self::Tf32,
        Self::E4m3,
    ];

    /// Those that are tried on every result that a comparison uses anyway.
    pub const CHEAP: [Self; 4] = [Self::Zeros, Self::Constant, Self::FirstHalf, Self::LargestOfRow];

    /// The name by which a task accepts it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Zeros => "zeros",
            Self::Constant => "constant",
            Self::EarlierResult => "earlier-result",
            Self::FirstHalf => "first-half",
            Self::LargestOfRow => "largest-of-row",
            Self::NeighbouringRow => "neighbouring-row",
            Self::OtherOutput => "other-output",
            Self::NanForLargest => "nan-for-largest",
            Self::View => "view",
            Self::IgnoredInput => "ignored-input",
            Self::ReversedInput => "reversed-input",
            Self::DoubledInput => "doubled-input",
            Self::ZeroForSmallest => "zero-for-smallest",
            Self::SmallerHalf => "smaller-half",
            Self::Bf16 => "bf16",
            Self::Tf32 => "tf32",
            Self::E4m3 => "e4m3",
        }
    }

    /// What its passing says.
    pub fn kind(self) -> Kind {
        match self {
            Self::Zeros
            | Self::Constant
            | Self::EarlierResult
            | Self::FirstHalf
            | Self::LargestOfRow
            | Self::NeighbouringRow
            | Self::OtherOutput
            | Self::NanForLargest
            | Self::View
            | Self::IgnoredInput => Kind::Blindness,
            Self::ReversedInput
            | Self::DoubledInput
            | Self::ZeroForSmallest
            | Self::SmallerHalf
            | Self::Bf16
            | Self::Tf32
            | Self::E4m3 => Kind::Property,
        }
    }

    /// Those that compute less: where one of them passes, this one says nothing new.
    pub(crate) fn implied_by(self) -> &'static [Self] {
        match self {
            Self::Constant => &[Self::Zeros],
            Self::EarlierResult => &[Self::Zeros, Self::Constant],
            Self::ZeroForSmallest | Self::SmallerHalf => &[
                Self::Zeros,
                Self::Constant,
                Self::EarlierResult,
                Self::LargestOfRow,
            ],
            Self::FirstHalf
            | Self::LargestOfRow
            | Self::NeighbouringRow
            | Self::OtherOutput
            | Self::IgnoredInput
            | Self::E4m3 => &[Self::Zeros, Self::Constant, Self::EarlierResult],
            Self::Bf16 => &[Self::Zeros, Self::Constant, Self::EarlierResult, Self::E4m3],
            Self::Tf32 => &[
                Self::Zeros,
                Self::Constant,
                Self::EarlierResult,
                Self::E4m3,
                Self::Bf16,
            ],
            _ => &[],
        }
    }

    /// What is right though it should not be, for some outputs in words or for an input; and how to mend it.
    pub fn sentence(self, subject: &str) -> String {
        let (what, remedy) = match self {
            Self::Zeros => (
                format!("a kernel that returns zeros for {subject} would pass"),
                "let the results be larger, or state narrower limits by `tolerance`",
            ),
            Self::Constant => (
                format!("a kernel that returns one constant for {subject} would pass"),
                "draw inputs whose results differ more, or state narrower limits by `tolerance`",
            ),
            Self::EarlierResult => (
                format!("a kernel that returns {subject} of an earlier call would pass, whatever its inputs"),
                "let the result depend on the values of the inputs, and state narrower limits by `tolerance`",
            ),
            Self::FirstHalf => (
                format!(
                    "a kernel that computes the first half of {subject} and leaves zeros in the rest would pass"
                ),
                "let the rest be as large, or state narrower limits by `tolerance`",
            ),
            Self::LargestOfRow => (
                format!(
                    "a kernel that returns only the largest element of each row of {subject}, and zeros in the rest, would pass"
                ),
                "draw inputs, such as smaller ones, whose results are not one element alone, or state narrower limits by `tolerance`",
            ),
            Self::NeighbouringRow => (
                format!("a kernel that returns each row of {subject} in the place of the next would pass"),
                "draw inputs whose rows differ, or state narrower limits by `tolerance`",
            ),
            Self::OtherOutput => (
                format!("a kernel that returns another output in the place of {subject} would pass"),
                "draw inputs for which they differ, or state narrower limits by `tolerance`",
            ),
            Self::NanForLargest => (
                format!("a kernel that returns NaN for the largest element of {subject} would pass"),
                "let `check` refuse NaN where the reference has none",
            ),
            Self::View => (
                format!("{subject}: a kernel that returns a view of it moves nothing"),
                "let the task compute something of the values, such as their double",
            ),
            Self::IgnoredInput => (
                format!("nothing depends on {subject} would pass"),
                "draw other values for it",
            ),
            Self::ReversedInput => (
                format!("the result is right with the elements of {subject} in reverse order"),
                "that is well if their order does not matter",
            ),
            Self::DoubledInput => (
                format!("the result is right with {subject} doubled"),
                "that is well if its scale does not matter",
            ),
            Self::ZeroForSmallest => (
                format!("the smallest element of {subject} may be 0"),
                "that is well if it is less than an error of rounding",
            ),
            Self::SmallerHalf => (
                format!("the smaller half of the elements of {subject} may be 0"),
                "state a smaller `atol` if they matter",
            ),
            Self::Bf16 => rounded("bf16", subject),
            Self::Tf32 => rounded("tf32", subject),
            Self::E4m3 => rounded("e4m3", subject),
        };
        format!("{what}; {remedy}")
    }
}

fn rounded(format: &str, subject: &str) -> (String, &'static str) {
    (
        format!("the tolerance is as wide as {format}: {subject} may be rounded to it"),
        "state a smaller `rtol` if kernels must be more exact",
    )
}

impl fmt::Display for NullKernel {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// Faults of inputs that a task accepts by name too: the same for all seeds altogether, or one of them.
const OF_INPUTS: [&str; 2] = ["same-inputs", "fixed-input"];

/// The names that a task may list in `accepts`.
pub fn known_names() -> impl Iterator<Item = &'static str> {
    let all = NullKernel::OF_RESULTS.into_iter();
    let all = all.chain([NullKernel::View, NullKernel::IgnoredInput]);
    let blind = all.filter(|kernel| kernel.kind() == Kind::Blindness);
    blind.map(NullKernel::name).chain(OF_INPUTS)
}
