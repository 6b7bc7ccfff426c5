"""What a mixture of experts computes between its two products."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

FUNCTIONS = ("silu", "gelu", "gelu_tanh", "relu2")


class Activation(NamedTuple):
    """A function of the first weights' sums, times the second weights' sums: ``f(gate) * (up + beta)``.

    `silu` is ``gate * sigmoid(alpha * gate)``; `gelu` uses the error function and `gelu_tanh` its approximation; `relu2` is the
    square of the positive part. With a limit, sums of the first weights are at most that and those of the second lie within
    it on both sides. The model gpt-oss has `silu` with alpha 1.702, beta 1 and limit 7.
    """

    function: str = "silu"
    alpha: float = 1.0
    beta: float = 0.0
    limit: float | None = None

    @classmethod
    def checked(cls, function: str, alpha: float, beta: float, limit: float | None) -> Activation:
        """Raises ValueError, which names the argument, for what no activation has."""
        if function not in FUNCTIONS:
            raise ValueError(f"activation: {function!r} is not known; use {', '.join(FUNCTIONS)}")
        if alpha != 1.0 and function != "silu":
            raise ValueError(f"alpha: it belongs to silu, and the activation is {function}; leave it out")
        for name, number in {"alpha": alpha, "beta": beta}.items():
            if not math.isfinite(number):
                raise ValueError(f"{name}: it is {number}; give a finite number")
        if limit is not None and not limit > 0:
            raise ValueError(f"limit: it is {limit}; give a positive number, or None for no limit")
        return cls(function, float(alpha), float(beta), None if limit is None else float(limit))

    @property
    def is_plain(self) -> bool:
        """Whether it is SwiGLU, which the products compute wherever they run."""
        return self == Activation()

    def of(self, gate: Any, up: Any) -> Any:
        """The activation of sums in float32, PyTorch tensors of one shape."""
        import torch

        if self.limit is not None:
            gate, up = gate.clamp(max=self.limit), up.clamp(-self.limit, self.limit)
        if self.function == "silu":
            activated = gate * torch.sigmoid(self.alpha * gate)
        elif self.function == "relu2":
            activated = torch.relu(gate).square()
        else:
            kind = "tanh" if self.function == "gelu_tanh" else "none"
            activated = torch.nn.functional.gelu(gate, approximate=kind)
        return activated * (up + self.beta)
