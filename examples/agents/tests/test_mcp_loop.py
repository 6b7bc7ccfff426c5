"""The loop through `gauntlet mcp` and `gauntlet serve`, by Python's client of the protocol."""

import asyncio
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
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
    needed = ["mcp", "numpy"] if shutil.which("gauntlet") else ["mcp", "numpy", "gauntlet"]
    for name in needed:
        if importlib.util.find_spec(name) is None:
            return f"not tried: the Python package `{name}` is not installed"
    return None


@unittest.skipIf(missing(), missing() or "")
class Loop(unittest.TestCase):
    """Each test has a folder with a task and kernels to itself, and a ledger in it."""

    def setUp(self):
        place = tempfile.TemporaryDirectory()
        self.addCleanup(place.cleanup)
        Path(place.name, "task.py").write_text(TASK)
        Path(place.name, "k.py").write_text(KERNELS)
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(place.name)
        environment = unittest.mock.patch.dict(os.environ, GAUNTLET_PYTHON=sys.executable, GAUNTLET_LEDGER=f"{place.name}/ledger.sqlite")
        environment.start()
        self.addCleanup(environment.stop)

    def goes_through_the_loop(self, client, version):
        """Asks for two kernels, of which the first is wrong."""
        import mcp_loop

        async def heard():
            said = []
            async for one in mcp_loop.search(client, "task.py", "k.py:slow", ["k.py:wrong", "k.py:fast"], "6s"):
                self.assertEqual(client.protocol_version, version)
                said.append(one)
            return said

        said = asyncio.run(heard())
        task, wrong, judged, then = said
        self.assertIn("wide", task)
        self.assertIn("not right", wrong)
        self.assertIn("Comparison 1 of this task by", judged)
        self.assertTrue(then)
        for one in said:
            self.assertLessEqual(len(one.encode()), 1500)

    def test_wrong_kernels_are_mended_and_right_ones_judged(self):
        import mcp_loop

        self.goes_through_the_loop(mcp_loop.started(), "2026-07-28")

    def over_http(self, mode, version):
        import httpx2
        import mcp_loop
        from mcp import Client
        from mcp.client.streamable_http import streamable_http_client

        program = mcp_loop.SERVER[:-1]
        token = subprocess.run([*program, "serve", "token", "add", "ada", "--scope", "submit"], capture_output=True, text=True, check=True)
        with subprocess.Popen([*program, "serve", "--listen", "127.0.0.1:0", "--folder", "."], stdout=subprocess.PIPE, text=True) as server:
            try:
                address = server.stdout.readline().split()[-1]
                headers = {"Authorization": f"Bearer {token.stdout.strip()}"}
                http = httpx2.AsyncClient(headers=headers, timeout=90)
                self.goes_through_the_loop(Client(streamable_http_client(f"{address}/mcp", http_client=http), mode=mode), version)
            finally:
                server.terminate()

    def test_the_same_over_http_with_a_token(self):
        self.over_http("auto", "2026-07-28")

    def test_the_same_over_http_by_the_older_protocol(self):
        self.over_http("legacy", "2025-11-25")


if __name__ == "__main__":
    unittest.main()
