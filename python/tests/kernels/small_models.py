"""Random models of transformers with two layers, small enough for tests of seconds. Imports torch and transformers."""

import torch
import transformers

SIZES = {
    "vocab_size": 128,
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 128,
    # No text ends early.
    "eos_token_id": None,
    "pad_token_id": 0,
}
KINDS = ("llama", "qwen3_moe")


def config(kind, between=128):
    """`between` is the width between the products of an expert."""
    if kind == "llama":
        return transformers.LlamaConfig(**SIZES)
    experts = {"moe_intermediate_size": between, "num_experts": 8, "num_experts_per_tok": 2, "norm_topk_prob": True}
    # PyTorch's grouped products do not take float64, which the reference is computed in.
    return transformers.Qwen3MoeConfig(**SIZES, **experts, head_dim=64, experts_implementation="eager")


def model(kind, seed=1, between=128):
    torch.manual_seed(seed)
    classes = {"llama": transformers.LlamaForCausalLM, "qwen3_moe": transformers.Qwen3MoeForCausalLM}
    return classes[kind](config(kind, between)).eval()


def tokens(length=24):
    return torch.randint(0, SIZES["vocab_size"], (2, length), generator=torch.Generator().manual_seed(3))


def logits(model, ids=None):
    with torch.no_grad():
        return model(tokens() if ids is None else ids).logits


def rms(values):
    return values.double().pow(2).mean().sqrt().item()
