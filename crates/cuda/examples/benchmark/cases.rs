//! What is timed, by name.

use std::error::Error;

use gauntlet_problem::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, OutputFormat, Problem, Scaling, Sequence, Suite,
};
use serde::Serialize;

/// Tokens of a step that makes one token for each of so many requests, and one product's weights.
const DECODE_TOKENS: [usize; 3] = [1, 8, 16];
const DECODE_WEIGHTS: (usize, usize) = (4096, 7168);

/// Attention's operands: family, format, and who shares their scales.
const ATTENTION_OPERANDS: [(&str, AttentionFormat, Scaling); 4] = [
    ("attention-f16", AttentionFormat::F16, Scaling::PerHead),
    ("attention-e4m3", AttentionFormat::E4m3, Scaling::PerHead),
    (
        "attention-e4m3-per-block",
        AttentionFormat::E4m3,
        Scaling::PerBlock,
    ),
    ("attention-int8", AttentionFormat::Int8, Scaling::PerHead),
];

/// Attention's shapes: name, batch, heads, positions, head size, and whether with a causal mask.
const ATTENTION: [(&str, usize, usize, usize, usize, bool); 5] = [
    ("mission", 1, 8, 512, 64, false),
    ("long", 1, 8, 2048, 64, false),
    ("large-64", 4, 16, 4096, 64, false),
    ("large-128", 4, 16, 4096, 128, false),
    ("large-128-causal", 4, 16, 4096, 128, true),
];

/// A problem with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    pub name: String,
    pub problem: Problem,
}

/// The benchmark cases of both GEMM suites, the grouped ones in the dual form too, then decoding, plain and dual, then
/// attention in each of its operands.
pub fn all() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    for suite in ["group-gemm", "dual-gemm"] {
        for case in Suite::builtin(suite)?.benchmark {
            cases.push(Case {
                name: format!("{suite}/{}", case.name),
                problem: case.problem,
            });
        }
    }
    for case in Suite::builtin("group-gemm")?.benchmark {
        if let Problem::GroupedGemm(gemm) = case.problem {
            cases.push(Case {
                name: format!("group-gemm-dual/{}", case.name),
                problem: Problem::GroupedGemm(GroupedGemm {
                    form: Form::Swiglu,
                    ..gemm
                }),
            });
        }
    }
    for (family, form) in [("decode", Form::Plain), ("decode-dual", Form::Swiglu)] {
        cases.extend(DECODE_TOKENS.map(|tokens| decode(family, form, tokens)));
    }
    for operands in ATTENTION_OPERANDS {
        cases.extend(ATTENTION.map(|shape| attention(operands, shape)));
    }
    Ok(cases)
}

/// Those whose name is one of `wanted` or begins with one and a slash; all if nothing is named.
pub fn named(wanted: &[String]) -> Result<Vec<Case>, Box<dyn Error>> {
    let all = all()?;
    let belongs = |case: &Case, want: &str| {
        case.name == want
            || case
                .name
                .split_once('/')
                .is_some_and(|(family, _)| family == want)
    };
    if let Some(unknown) = wanted
        .iter()
        .find(|want| all.iter().all(|case| !belongs(case, want)))
    {
        let names: Vec<_> = all.iter().map(|case| case.name.as_str()).collect();
        return Err(format!("there is no case `{unknown}`; there are {}", names.join(", ")).into());
    }
    let chosen = |case: &Case| wanted.is_empty() || wanted.iter().any(|want| belongs(case, want));
    Ok(all.into_iter().filter(chosen).collect())
}

fn decode(family: &str, form: Form, tokens: usize) -> Case {
    let (n, k) = DECODE_WEIGHTS;
    Case {
        name: format!("{family}/m{tokens}"),
        problem: Problem::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: tokens, n, k }],
            form,
            output: OutputFormat::F16,
        }),
    }
}

fn attention(
    (family, format, scaling): (&str, AttentionFormat, Scaling),
    (name, batch, heads, positions, head_size, causal): (&str, usize, usize, usize, usize, bool),
) -> Case {
    let sequence = Sequence {
        queries: positions,
        keys: positions,
    };
    Case {
        name: format!("{family}/{name}"),
        problem: Problem::Attention(Attention {
            sequences: vec![sequence; batch],
            heads,
            kv_heads: heads,
            head_size,
            causal,
            format,
            scaling,
            output: OutputFormat::F16,
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(wanted: &[&str]) -> Vec<String> {
        let wanted: Vec<_> = wanted.iter().map(|&name| name.to_owned()).collect();
        let cases = named(&wanted).unwrap();
        cases.into_iter().map(|case| case.name).collect()
    }

    #[test]
    fn there_are_eighteen_gemms_in_their_forms_and_attention_in_four_kinds_of_operands() {
        let all = all().unwrap();
        assert_eq!(all.len(), 18 + 4 * ATTENTION.len());
        for case in &all {
            let dual = match &case.problem {
                Problem::GroupedGemm(gemm) => gemm.form == Form::Swiglu,
                Problem::Attention(_) => false,
            };
            assert_eq!(dual, case.name.contains("dual"), "{}", case.name);
        }
    }

    #[test]
    fn a_family_or_a_case_is_named() {
        assert_eq!(names(&[]).len(), 18 + 4 * ATTENTION.len());
        assert_eq!(names(&["attention-e4m3"]).len(), ATTENTION.len());
        assert_eq!(names(&["decode"]), ["decode/m1", "decode/m8", "decode/m16"]);
        assert_eq!(
            names(&["decode/m8", "group-gemm/case-2"]),
            ["group-gemm/case-2", "decode/m8"]
        );
        let error = named(&["group".to_owned()]).unwrap_err().to_string();
        assert!(
            error.starts_with("there is no case `group`; there are group-gemm/case-1, "),
            "{error}"
        );
    }
}
