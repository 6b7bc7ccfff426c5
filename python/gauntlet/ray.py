"""Runs the tickets of a queue on a Ray cluster: one ticket, one task, one card of one node.

Each task runs ``gauntlet job``, which publishes once, however often Ray starts it. So a lost node costs an attempt and no verdict. The
folder of the queue must lie under the same path on every node, and every node's Python must have this package.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ray

from gauntlet._errors import BadInput, Broken
from gauntlet._program import command

#: Exit codes of a job that may succeed elsewhere: it broke, or was interrupted.
_TRY_AGAIN = (3, 130)


class JobDied(RuntimeError):
    """A job ended without a result; Ray starts it again."""


def _run(ticket: str, results: str, ledgers: str) -> dict[str, Any]:
    """Runs a ticket on this node and returns what was published, by whichever attempt was first."""
    node = ray.get_runtime_context().get_node_id()
    # A database on a shared disk bears one writer, so each node has a ledger of its own.
    environment = {**os.environ, "GAUNTLET_PYTHON": sys.executable, "GAUNTLET_LEDGER": f"{ledgers}/{node}.sqlite"}
    ran = subprocess.run([*command(), "job", ticket, "--out", results], capture_output=True, text=True, env=environment, check=False)
    published = Path(results, f"{Path(ticket).stem}.json")
    if published.exists():
        document: dict[str, Any] = json.loads(published.read_text())
        return document
    what = f"{ticket} ended with {ran.returncode} on node {node}: {ran.stderr.strip()}"
    if ran.returncode in _TRY_AGAIN or ran.returncode < 0:
        raise JobDied(what)
    raise Broken(what)


def waiting(queue: str | os.PathLike[str]) -> list[str]:
    """The ids of the tickets of a queue that wait, oldest first.

    Raises:
        BadInput: There is no queue in the folder.
    """
    words = ["queue", "list", "--last", "10000", "--queue", os.fspath(queue), "--json", "-"]
    ran = subprocess.run([*command(), *words], capture_output=True, text=True, check=False)
    if ran.returncode:
        raise BadInput(ran.stderr.strip())
    ids = []
    for status in reversed(json.loads(ran.stdout)):
        # A candidate that was found faster by the target is compared a second time, by a ticket of its own.
        second = status["confirmation"]
        if status["state"] == "queued":
            ids.append(status["id"])
        if second and second["state"] == "queued":
            ids.append(second["ticket"])
    return ids


def work(
    queue: str | os.PathLike[str], *, num_cpus: float = 2, num_gpus: float = 0, resources: dict[str, float] | None = None, retries: int = 3
) -> dict[str, dict[str, Any] | Exception]:
    """Runs every ticket of a queue that waits, and returns by its id what was published, or why nothing was.

    Args:
        queue: The folder of the queue, on a disk that every node sees.
        num_cpus: Processors that a job needs.
        num_gpus: Cards that a job needs; a comparison uses one.
        resources: Further resources of the nodes that may run it.
        retries: How often a job that died, or whose node was lost, is started again.

    The queue records what was published when it is next looked at, as by ``gauntlet queue list``. It is not told that a ticket runs, so run
    either this or ``gauntlet queue work`` on a queue: both at once would measure tickets twice, of which one result counts.
    """
    folder = Path(queue).absolute()
    results, ledgers = folder / "results", folder / "ledgers"
    ledgers.mkdir(exist_ok=True)
    task = ray.remote(num_cpus=num_cpus, num_gpus=num_gpus, resources=resources, max_retries=retries, retry_exceptions=[JobDied])(_run)
    found: dict[str, dict[str, Any] | Exception] = {}
    while new := [ticket for ticket in waiting(folder) if ticket not in found]:
        places = [str(folder / "tickets" / f"{ticket}.json") for ticket in new]
        jobs = [task.remote(place, str(results), str(ledgers)) for place in places]
        for ticket, job in zip(new, jobs, strict=True):
            try:
                found[ticket] = ray.get(job)
            except (ray.exceptions.RayError, Broken) as error:
                found[ticket] = error
    return found
