"""An agent's loop through `gauntlet mcp`: check, mend, judge, verdict. A list of kernels stands for the model that writes them.

    python mcp_loop.py TASK.py BASELINE KERNEL...     as in: ../softmax/task.py ../softmax/kernels.py:slow program.py:softmax

Needs the Python package `mcp`, 2.3 or newer, and `gauntlet` as a program or as a package of this Python. All files lie in the
current folder.
"""

import asyncio
import shutil
import sys

from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

SERVER = ["gauntlet", "mcp"] if shutil.which("gauntlet") else [sys.executable, "-m", "gauntlet", "mcp"]


async def ask(client, tool, **arguments):
    """The text of an answer. An error is one of the question's, so a model gets it like any other answer."""
    answer = await client.call_tool(tool, arguments)
    return answer.content[0].text


async def verdict_of(client, answer):
    """The verdict behind an answer that names a ticket. Each call ends before clients lose patience."""
    ticket = answer.split("`")[1]
    while any(words in answer for words in ("is queued", "is running", "Not a win yet")):
        answer = await ask(client, "verdict", ticket=ticket)
    return answer


def started(server=tuple(SERVER)):
    """A client of a server that it starts."""
    command, *arguments = server
    return Client(stdio_client(StdioServerParameters(command=command, args=arguments)))


async def search(server, task, baseline, kernels, budget="60s"):
    """Judges each kernel that is right, by the client of a server, and yields what was said of it."""
    async with server as client:
        yield await ask(client, "get_task", task=task)
        for kernel in kernels:
            checked = await verdict_of(client, await ask(client, "check", task=task, kernel=kernel))
            if ": decided" in checked and "not right" not in checked:
                judged = await ask(client, "judge", task=task, candidate=kernel, baseline=baseline, budget=budget)
                yield await verdict_of(client, judged) if "Ticket" in judged else judged
            else:
                yield checked
        yield await ask(client, "next", task=task)


async def main():
    task, baseline, *kernels = sys.argv[1:]
    async for said in search(started(), task, baseline, kernels):
        print(said, end="\n\n")


if __name__ == "__main__":
    asyncio.run(main())
