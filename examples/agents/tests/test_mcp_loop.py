"""The loop through `gauntlet mcp`, by Python's client of the protocol."""

import asyncio
import importlib.util
import os
import sys
import tempfile
import unittest
from pathlib import Path

FOLDER = Path(__file__).parents[1]
sys.path.insert(0, str(FOLDER))

TASK = '''
import numpy as np
cases = {"correctness": [{"rows": 3, "cols": 5}], "benchmark": [{"name": "wide", "rows": 64, "cols": 2000}]}
def generate(rows, cols, seed):
    return {"x": np.random.default_rng(seed).random((rows, cols), dtype=np.float32) + 1}
def reference(x):
    return {"y": x / x.sum(1, keepdims=True)}
'''

KERNELS = '''
import numpy as np
def slow(x):
    return np.stack([row / row.sum() for row in x])
def wrong(x):
    return x / x.sum(0, keepdims=True)
def fast(x):
    return x / x.sum(1, keepdims=True)
'''


def missing():
    """Why the loop cannot be run here; none if it can."""
    for name in ("mcp", "gauntlet", "numpy"):
        if importlib.util.find_spec(name) is None:
            return f"not tried: the Python package `{name}` is not installed"
    return None


@unittest.skipIf(missing(), missing() or "")
class Loop(unittest.TestCase):
    def test_wrong_kernels_are_mended_and_right_ones_judged(self):
        import mcp_loop
        from mcp import Client
        from mcp.client.stdio import StdioServerParameters, stdio_client

        async def protocol():
            async with Client(stdio_client(StdioServerParameters(command=sys.executable, args=["-m", "gauntlet", "mcp"]))) as client:
                return client.protocol_version

        async def heard():
            return [said async for said in mcp_loop.search("task.py", "k.py:slow", ["k.py:wrong", "k.py:fast"], "6s")]

        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "task.py").write_text(TASK)
            Path(folder, "k.py").write_text(KERNELS)
            before = os.getcwd()
            os.chdir(folder)
            try:
                version = asyncio.run(protocol())
                task, wrong, judged, then = asyncio.run(heard())
            finally:
                os.chdir(before)
        self.assertEqual(version, "2026-07-28")
        self.assertIn("wide", task)
        self.assertIn("not right", wrong)
        self.assertIn("Comparison 1 of this task by", judged)
        self.assertTrue(then)
        for said in (task, wrong, judged, then):
            self.assertLessEqual(len(said.encode()), 1500)


if __name__ == "__main__":
    unittest.main()
