"""Asks a program one question, as Gauntlet does, and checks the form of what comes back. No Gauntlet is needed.

    python3 conversation.py PROGRAM…            # asks it each phase once, about the softmax of this folder

The page on contestants and panellists (docs/reference/contestants.md) says what the forms are.
"""

import json
import subprocess
import sys
from pathlib import Path

ARENA = Path(__file__).resolve().parents[1]

VERDICTS = {
    "adopt", "marginal", "valid-negative", "regression", "inconclusive", "infeasible", "over-budget", "does-not-compile",
    "incorrect", "racy", "aborted", "blocked",
}
EVIDENCE = {"intuition", "precedent", "reference", "calculation", "profile", "measurement"}
RISKS = {"none", "low", "medium", "high", "very-high"}
REQUIRED = {"name", "problem", "change", "claim", "odds", "cost", "risk", "evidence", "abort", "fallback"}
OPTIONAL = {"after", "schedule", "new-evidence"}
CONTESTANT = ("research", "mend", "pitch", "answer", "deal", "build", "lesson")
PANELLIST = ("question", "vote")


def fault(condition, message):
    if condition:
        raise AssertionError(message)


def texts(table, *keys):
    for key in keys:
        fault(not isinstance(table.get(key), str) or not table[key], f"{key}: no text in {table}")


def is_evidence(given):
    fault(not given, "no evidence")
    for evidence in given:
        fault(evidence["kind"] not in EVIDENCE, f"no kind of evidence: {evidence}")
        texts(evidence, "text")


def are_terms(terms):
    for term in terms:
        texts(term, "when", "why")
        metric, sign, number = term["when"].split()
        fault("." not in metric or sign not in "<>", f"no condition: {term}")
        float(number)


def is_pitch(pitch):
    fault(not REQUIRED <= pitch.keys(), f"without {REQUIRED - pitch.keys()}")
    fault(not pitch.keys() <= REQUIRED | OPTIONAL, f"unknown: {pitch.keys() - REQUIRED - OPTIONAL}")
    texts(pitch, "name", "problem", "change")
    quantiles = [pitch["claim"]["speedup"][at] for at in ("q10", "q50", "q90")]
    fault(quantiles != sorted(quantiles) or quantiles[0] <= 0, f"quantiles {quantiles}")
    fault(not pitch["odds"].keys() <= VERDICTS, f"odds of {pitch['odds'].keys() - VERDICTS}")
    fault(abs(sum(pitch["odds"].values()) - 1) > 1e-6, f"odds add up to {sum(pitch['odds'].values())}")
    fault(pitch["cost"]["hours"] < 0, "hours below 0")
    fault(pitch["risk"]["level"] not in RISKS, f"no level of risk: {pitch['risk']}")
    texts(pitch["risk"], "why")
    texts(pitch["fallback"], "plan")
    is_evidence(pitch["evidence"])
    are_terms(pitch["abort"])


def is_build(answer):
    fault(answer.keys() & {"workspace", "files", "patch", "schedule", "withdraw"} == set(), f"no form of an answer: {answer}")
    fault(len(answer.keys() - {"kernel"}) != 1, f"more than one form: {answer.keys()}")
    fault(answer.get("workspace", True) is not True, "workspace is true or left out")
    fault(not all(isinstance(text, str) for text in answer.get("files", {}).values()), "a file is no text")
    fault("patch" in answer and not answer["patch"].startswith("--- "), "no unified diff")


def is_answer(phase, answer):
    """Raises an `AssertionError` if this is no answer of a phase."""
    if phase == "research":
        texts(answer, "bound-by")
        is_evidence(answer["evidence"])
    elif phase == "pitch":
        fault(answer.keys() not in ({"pitch"}, {"pass"}), f"neither a pitch nor a pass: {answer}")
        texts(answer, "pass") if "pass" in answer else is_pitch(answer["pitch"])
    elif phase in ("build", "mend"):
        is_build(answer)
    elif phase == "question":
        if answer:
            fault(answer.keys() != {"question"}, f"no question: {answer}")
            texts(answer["question"], "to", "text")
    elif phase == "answer":
        texts(answer, "text")
    elif phase == "vote":
        for vote in answer["votes"]:
            texts(vote, "pitch", "reason")
            fault(not vote["scores"].keys() <= {"speedup", "feasibility", "risk", "quality"}, f"scores: {vote['scores']}")
            fault(not all(0 <= score <= 10 for score in vote["scores"].values()), f"scores: {vote['scores']}")
            are_terms(vote["terms"])
            fault(not isinstance(vote["conditional"], bool), "conditional: neither true nor false")
    elif phase == "deal":
        fault(answer not in ({"accept": True}, {"accept": False}) and answer.keys() != {"withdraw"}, f"no answer: {answer}")
    elif phase == "lesson":
        texts(answer, "wrong", "follows")
    else:
        fault(True, f"no phase: {phase}")


def source(folder):
    """The files of one of the three kernels, as a question shows them."""
    own = {"task.py", "task.toml", "reference.py", "libmatmul.toml"}
    paths = [path for path in sorted((ARENA / folder).iterdir()) if path.is_file()]
    return {path.name: path.read_text() for path in paths if path.name not in own and path.suffix in (".py", ".c", ".sh")}


def question(phase, files, you="Somebody", round_name="softmax-1", **more):
    """A question with everything that the page names."""
    case = "rows=128,cols=512"
    situation = {
        "task": {"name": "softmax", "description": "", "cases": [{"name": case, "sizes": {"rows": 128, "cols": 512}}]},
        "source": {"kernel": "kernel.py:softmax", "build": None, "files": files, "protected": ["reference.py", "task.py"]},
        "baseline": {"kernel": "kernel.py:softmax", "described": "", "times": {case: 1e-3}, "findings": [], "figures": {}},
        "device": {"name": "host"},
        "verdicts": more.pop("verdicts", []),
        "rules": {"criteria": {}, "budgets": {}, "notes": []},
    }
    left = {"turns": 40, "tokens": 200000, "wall": 1200.0, "checks": 10}
    asked = {"protocol": 1, "phase": phase, "you": you, "tournament": "arena", "round": round_name}
    return {**asked, "situation": situation, "tools": [], "left": left, **more}


class Workspace:
    """The tools, on files in memory. `right` and `verdict` are what `check` and `quick` say."""

    def __init__(self, files, right=True, verdict="adopt"):
        self.files, self.right, self.verdict, self.used = dict(files), right, verdict, []

    def use(self, tool, arguments):
        self.used.append(tool)
        if tool == "list":
            return {"result": sorted(self.files)}
        if tool == "read":
            return {"result": {"text": self.files[arguments["path"]]}}
        if tool == "write":
            self.files[arguments["path"]] = arguments["text"]
            return {"result": {}}
        if tool == "check":
            return {"result": {"right": self.right, "findings": []}}
        if tool == "quick":
            return {"result": {"verdict": self.verdict, "reason": "said by a test", "found": None}}
        return {"error": f"there is no tool {tool}"}


def ask(program, asked, workspace=None, refusals=(), seconds=20, **settings):
    """The last answer of a program, whose form is right; the answers before it are refused with `refusals`."""
    workspace = workspace or Workspace({})
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    # Without the packages of this Python, which no script needs: it starts faster.
    with subprocess.Popen([sys.executable, "-S", *map(str, program)], **pipes, **settings) as running:
        say = lambda message: print(json.dumps(message), file=running.stdin, flush=True)  # noqa: E731
        say(asked)
        refusals = list(refusals)
        while line := running.stdout.readline():
            message = json.loads(line)
            if "call" in message:
                say(workspace.use(message["call"], message["arguments"]))
                continue
            is_answer(asked["phase"], message["answer"])
            if not refusals:
                running.stdin.close()
                running.wait(seconds)
                return message["answer"]
            say({"refused": refusals.pop(0)})
    raise AssertionError(f"{program} ended without an answer to {asked['phase']}")


def about(pitch, verdict="adopt"):
    """What the questions of all phases need beside the situation."""
    found = {"lower": 1.2, "middle": 1.5, "upper": 1.8} if verdict in ("adopt", "valid-negative") else None
    return {
        "pitch": pitch,
        "rank": 1,
        "workspace": ".",
        "terms": [{"from": "Caution", "when": "predicted.speedup < 1.0", "why": "no gain", "conditional": True}],
        "question": {"from": "Evidence", "text": "Which measurement says so?"},
        "mend": {"pitch": pitch["name"], "reason": "21 elements of `y` are never written"},
        "verdict": verdict,
        "reason": "said by a test",
        "found": found,
        "findings": [],
    }


def main(program):
    files = source("softmax")
    answered = ask(program, question("pitch", files))
    print("pitch", json.dumps(answered))
    pitch = answered.get("pitch") or {"name": "another", "claim": {"speedup": {"q10": 1.0, "q50": 1.1, "q90": 1.2}}}
    for phase in CONTESTANT:
        if phase != "pitch":
            print(phase, json.dumps(ask(program, question(phase, files, **about(pitch)), Workspace(files))))


if __name__ == "__main__":
    main(sys.argv[1:])
