"""Gauntlet's kernels in engines that serve models: `gauntlet.engines.vllm` and `gauntlet.engines.transformers`.

Each module imports its engine, and nothing else here does.
"""
