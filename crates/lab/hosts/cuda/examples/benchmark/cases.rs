//! The cases to time, by name.

use std::error::Error;

use gauntlet_problems::{
    Attention, AttentionFormat, Form, GemmShape, GroupedGemm, Operation, OutputFormat, Scaling, Sequence,
    TokenFormat,
};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// Numbers of tokens in a decode step, which produces one token per request, and the weights (N, K) of one product.
const DECODE_TOKENS: [usize; 3] = [1, 8, 16];
const DECODE_WEIGHTS: (usize, usize) = (4096, 7168);

/// Attention's operands: family, format, and granularity of the scales.
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

/// Attention with few queries and many keys, as in decoding and in prefill by chunks: family and format.
const DECODE_ATTENTION_OPERANDS: [(&str, AttentionFormat); 3] = [
    (DECODE_ATTENTION_F16, AttentionFormat::F16),
    (DECODE_ATTENTION_E4M3, AttentionFormat::E4m3),
    (DECODE_ATTENTION_INT8, AttentionFormat::Int8),
];
const DECODE_ATTENTION_F16: &str = "decode-attention-f16";
const DECODE_ATTENTION_E4M3: &str = "decode-attention-e4m3";
const DECODE_ATTENTION_INT8: &str = "decode-attention-int8";

/// Its shapes, with heads of 128: name, batch, heads, key heads, queries, keys, and whether with a causal mask.
const DECODE_ATTENTION: [DecodeShape; 9] = [
    ("b1-h8-1x8192", 1, 8, 8, 1, 8192, false),
    ("b1-h32-kv8-1x8192", 1, 32, 8, 1, 8192, false),
    ("b8-h8-1x8192", 8, 8, 8, 1, 8192, false),
    ("b8-h32-kv8-1x8192", 8, 32, 8, 1, 8192, false),
    ("b1-h8-1x1024", 1, 8, 8, 1, 1024, false),
    ("b1-h32-kv8-1x1024", 1, 32, 8, 1, 1024, false),
    ("b1-h8-16x4096", 1, 8, 8, 16, 4096, false),
    ("b1-h32-kv8-16x4096", 1, 32, 8, 16, 4096, false),
    ("b1-h32-kv8-128x8192-causal", 1, 32, 8, 128, 8192, true),
];
type DecodeShape = (&'static str, usize, usize, usize, usize, usize, bool);

/// The families of mixtures of experts, whose weights take gigabytes, of dense products, and of attention with few queries:
/// timed only on request. So are cases with bf16 tokens, whose names begin with [`BRAIN`].
const MOE: &str = "moe";
const DENSE: &str = "dense";
const ON_REQUEST: [&str; 5] = [
    MOE,
    DENSE,
    DECODE_ATTENTION_F16,
    DECODE_ATTENTION_E4M3,
    DECODE_ATTENTION_INT8,
];
const BRAIN: &str = "bf16-";

/// Weights (N, K) of dense models, and numbers of tokens.
const DENSE_WEIGHTS: [(usize, usize); 4] = [(8192, 8192), (28672, 8192), (8192, 28672), (4096, 4096)];
const DENSE_TOKENS: [usize; 8] = [1, 7, 16, 33, 64, 129, 1000, 4096];

/// One product of a mixture of experts: name, experts, N, K. `ep8` has the experts of one GPU out of eight.
const DEEPSEEK_GATE_UP: Product = ("deepseek-v3-gate-up", 256, 4096, 7168);
const DEEPSEEK_DOWN: Product = ("deepseek-v3-down", 256, 7168, 2048);
const DEEPSEEK_GATE_UP_EP8: Product = ("deepseek-v3-ep8-gate-up", 32, 4096, 7168);
const DEEPSEEK_DOWN_EP8: Product = ("deepseek-v3-ep8-down", 32, 7168, 2048);
const QWEN_GATE_UP: Product = ("qwen3-235b-gate-up", 128, 3072, 4096);
const QWEN_DOWN: Product = ("qwen3-235b-down", 128, 4096, 1536);
type Product = (&'static str, usize, usize, usize);

/// For each product, numbers of tokens that the router sends to all experts together (tokens of a batch times experts
/// per token).
const ROUTED: [(Product, &[usize]); 6] = [
    (DEEPSEEK_GATE_UP_EP8, &[64, 512, 4096]),
    (DEEPSEEK_DOWN_EP8, &[64, 512, 4096]),
    (QWEN_GATE_UP, &[64, 512, 4096, 16384]),
    (QWEN_DOWN, &[64, 512, 4096, 16384]),
    (DEEPSEEK_GATE_UP, &[512]),
    (DEEPSEEK_DOWN, &[512]),
];

/// Numbers of experts in Qwen3-235B's first product that get equally many tokens, and the tokens per expert.
const EVEN_EXPERTS: [usize; 3] = [32, 64, 128];
const EVEN_TOKENS: usize = 256;

/// A problem with a name.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Case {
    pub name: String,
    pub problem: Operation,
}

impl Case {
    /// The same case in another family.
    fn in_family(self, family: &str) -> Self {
        let own = self
            .name
            .split_once('/')
            .map_or(self.name.as_str(), |(_, own)| own);
        Self {
            name: format!("{family}/{own}"),
            ..self
        }
    }
}

/// The benchmark cases of both GEMM suites, the grouped ones in the dual form too; then decoding, plain and dual; then
/// attention with each kind of operands, also with few queries; then mixtures of experts.
pub fn all() -> Result<Vec<Case>, Box<dyn Error>> {
    let mut cases = Vec::new();
    for suite in ["group-gemm", "dual-gemm"] {
        for (name, problem) in benchmark(suite)? {
            cases.push(Case {
                name: format!("{suite}/{name}"),
                problem,
            });
        }
    }
    for (name, problem) in benchmark("group-gemm")? {
        if let Operation::GroupedGemm(gemm) = problem {
            cases.push(Case {
                name: format!("group-gemm-dual/{name}"),
                problem: Operation::GroupedGemm(GroupedGemm {
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
    for operands in DECODE_ATTENTION_OPERANDS {
        cases.extend(DECODE_ATTENTION.map(|shape| decode_attention(operands, shape)));
    }
    for (product, totals) in ROUTED {
        cases.extend(totals.iter().map(|&total| routed(product, total)));
    }
    cases.extend(EVEN_EXPERTS.map(even));
    for (n, k) in DENSE_WEIGHTS {
        cases.extend(DENSE_TOKENS.map(|m| dense(m, n, k)));
    }
    let with_brains: Vec<Case> = cases.iter().filter_map(brain_tokens).collect();
    cases.extend(with_brains);
    Ok(cases)
}

/// The benchmark cases of a built-in suite, each with its name.
fn benchmark(suite: &str) -> Result<Vec<(String, Operation)>, Box<dyn Error>> {
    let cases = gauntlet_families::suite(suite)?.benchmark.into_iter();
    let operation = |case: gauntlet_task::Case| match gauntlet_tiled_family::operation(&case.sizes) {
        Some(operation) => Ok((case.name, operation.clone())),
        None => Err(format!("{suite}/{}: there is no CUDA kernel of its task", case.name).into()),
    };
    cases.map(operation).collect()
}

/// One product of a dense model.
fn dense(m: usize, n: usize, k: usize) -> Case {
    mixture(format!("{n}x{k}-m{m}"), &[m], n, k).in_family(DENSE)
}

/// The same case with bf16 tokens and results, if it is a GEMM.
fn brain_tokens(case: &Case) -> Option<Case> {
    let Operation::GroupedGemm(gemm) = &case.problem else {
        return None;
    };
    Some(Case {
        name: format!("{BRAIN}{}", case.name),
        problem: Operation::GroupedGemm(GroupedGemm {
            tokens: TokenFormat::Bf16,
            output: OutputFormat::Bf16,
            ..gemm.clone()
        }),
    })
}

/// The cases whose name equals an entry of `wanted` or begins with an entry and a slash; if `wanted` is empty, all but
/// mixtures of experts.
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
    let chosen = |case: &Case| match wanted {
        [] => !ON_REQUEST.iter().any(|family| belongs(case, family)) && !case.name.starts_with(BRAIN),
        wanted => wanted.iter().any(|want| belongs(case, want)),
    };
    Ok(all.into_iter().filter(chosen).collect())
}

fn decode(family: &str, form: Form, tokens: usize) -> Case {
    let (n, k) = DECODE_WEIGHTS;
    Case {
        name: format!("{family}/m{tokens}"),
        problem: Operation::GroupedGemm(GroupedGemm {
            groups: vec![GemmShape { m: tokens, n, k }],
            form,
            output: OutputFormat::F16,
            tokens: Default::default(),
        }),
    }
}

/// Distributes tokens unevenly over a product's experts: at twice as many tokens as experts, a third of the experts get
/// none.
fn routed((name, experts, n, k): Product, total: usize) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    // Exponentially distributed shares, divided by their sum, are uniform on the simplex.
    let mut bounds = Vec::with_capacity(experts);
    let mut sum = 0.0;
    for _ in 0..experts {
        sum -= (1.0 - rng.random::<f64>()).ln();
        bounds.push(sum);
    }
    let mut tokens = vec![0; experts];
    for _ in 0..total {
        let at = rng.random::<f64>() * sum;
        tokens[bounds.partition_point(|&bound| bound <= at).min(experts - 1)] += 1;
    }
    mixture(format!("{name}-{total}"), &tokens, n, k)
}

/// The same number of tokens for each of some experts.
fn even(experts: usize) -> Case {
    let (name, _, n, k) = QWEN_GATE_UP;
    mixture(
        format!("{name}-{experts}x{EVEN_TOKENS}"),
        &vec![EVEN_TOKENS; experts],
        n,
        k,
    )
}

fn mixture(name: String, tokens: &[usize], n: usize, k: usize) -> Case {
    Case {
        name: format!("{MOE}/{name}"),
        problem: Operation::GroupedGemm(GroupedGemm {
            groups: tokens.iter().map(|&m| GemmShape { m, n, k }).collect(),
            form: Form::Plain,
            output: OutputFormat::Bf16,
            tokens: Default::default(),
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
        problem: Operation::Attention(Attention {
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

fn decode_attention(
    (family, format): (&str, AttentionFormat),
    (name, batch, heads, kv_heads, queries, keys, causal): DecodeShape,
) -> Case {
    Case {
        name: format!("{family}/{name}"),
        problem: Operation::Attention(Attention {
            sequences: vec![Sequence { queries, keys }; batch],
            heads,
            kv_heads,
            head_size: 128,
            causal,
            format,
            scaling: Scaling::PerHead,
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

    const UNNAMED: usize = 18 + 4 * ATTENTION.len();

    #[test]
    fn there_are_eighteen_gemms_in_their_forms_and_attention_in_four_kinds_of_operands() {
        let all = all().unwrap();
        let on_request = 16 + EVEN_EXPERTS.len() + DENSE_WEIGHTS.len() * DENSE_TOKENS.len();
        let with_brains = 18 + on_request;
        let few_queries = 3 * DECODE_ATTENTION.len();
        assert_eq!(all.len(), UNNAMED + on_request + with_brains + few_queries);
        for case in &all {
            let dual = match &case.problem {
                Operation::GroupedGemm(gemm) => gemm.form == Form::Swiglu,
                Operation::Attention(_) => false,
            };
            assert_eq!(dual, case.name.contains("dual"), "{}", case.name);
        }
    }

    #[test]
    fn a_family_or_a_case_is_named() {
        assert_eq!(names(&[]).len(), UNNAMED);
        assert_eq!(names(&["moe"]).len(), 16 + EVEN_EXPERTS.len());
        assert_eq!(names(&["attention-e4m3"]).len(), ATTENTION.len());
        assert_eq!(names(&["decode-attention-int8"]).len(), DECODE_ATTENTION.len());
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

    #[test]
    fn a_router_deals_out_all_tokens_unevenly() {
        for case in named(&["moe".to_owned()]).unwrap() {
            let Operation::GroupedGemm(gemm) = &case.problem else {
                panic!("{} is no GEMM", case.name)
            };
            let tokens = || gemm.groups.iter().map(|shape| shape.m);
            let (total, idle) = (tokens().sum::<usize>(), tokens().filter(|&m| m == 0).count());
            match case.name.rsplit_once('-').unwrap().1.parse::<usize>() {
                Ok(expected) => assert_eq!(total, expected, "{}", case.name),
                Err(_) => assert_eq!(total, EVEN_TOKENS * gemm.groups.len(), "{}", case.name),
            }
            if case.name == "moe/deepseek-v3-ep8-down-64" {
                assert!((6..=16).contains(&idle), "{idle} experts without tokens");
                assert!(tokens().all(|m| m <= 16));
            }
        }
    }
}
