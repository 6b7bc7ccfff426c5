"""As nvfp4_products.py, on the CPU: hide GPUs from PyTorch (CUDA_VISIBLE_DEVICES=) where there are any."""

from nvfp4_products import SMALL_PRODUCTS, generate, reference, tolerance  # noqa: F401
from shapes import ON_CPU

cases = {"correctness": SMALL_PRODUCTS, "benchmark": ON_CPU}
