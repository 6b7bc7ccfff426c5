"""The tests' own kernels and helpers are importable, and the plugin can be tested."""

import sys
from pathlib import Path

pytest_plugins = ["pytester"]

sys.path.insert(0, str(Path(__file__).with_name("kernels")))
