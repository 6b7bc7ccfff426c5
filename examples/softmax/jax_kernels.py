"""Softmax by JAX, on tensors of torch."""
import jax
import jax.numpy as jnp
import torch


@jax.jit
def softmax(x):
    return jax.nn.softmax(x, axis=1)


def by_jax(x):
    return torch.from_dlpack(softmax(jnp.from_dlpack(x)))
