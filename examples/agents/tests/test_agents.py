"""The examples for agents, with stubs in place of the model, of the agent and of the judge."""

import json
import os
import random
import subprocess
import sys
import textwrap
import types
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest import mock

AGENTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(AGENTS), str(AGENTS.parent / "arena" / "tests")]

import coding_agent  # noqa: E402
import conversation as talk  # noqa: E402
import evaluator  # noqa: E402
import evolve  # noqa: E402
import shinka_evaluate  # noqa: E402

# In place of the package: a program's score is in its text, and a program without one is wrong.
JUDGE = """
import os, re

def evaluate(path, task, budget):
    score = re.search(r"score = (\\S+)", open(path).read())
    return {"right": bool(score), "score": float(score[1]) if score else None,
            "verdict": "adopt" if score else "incorrect", "reasons": [f"judged by {os.getpid()}"], "cases": []}
"""
# In place of a coding agent: it keeps its prompt, thinks aloud, and edits the kernel if it finds one.
AGENT = """
import json, os, pathlib, sys

prompt = sys.stdin.read()
pathlib.Path(os.environ["KEPT"]).write_text(prompt)
kernel = pathlib.Path("kernel.py")
if kernel.is_file():
    if "np.e**" in kernel.read_text():
        kernel.write_text(kernel.read_text().replace("np.e**shifted", "np.exp(shifted)"))
    else:
        pathlib.Path("WITHDRAW").write_text("there is no power")
else:
    print("Let me see {the source} first.")
    print(os.environ["SAYS"])
"""


def found(right, score, verdict="adopt"):
    return {"right": right, "score": score, "verdict": verdict, "reasons": ["one", "two"], "cases": []}


class Stubs(unittest.TestCase):
    def setUp(self):
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.write("gauntlet.py", JUDGE)

    def write(self, name, text):
        (self.folder / name).write_text(textwrap.dedent(text), encoding="utf-8")
        return str(self.folder / name)

    def environment(self, **more):
        return mock.patch.dict(os.environ, {"PYTHONPATH": str(self.folder), **more})


class OpenEvolve(Stubs):
    def test_the_judge_runs_in_a_process_of_its_own(self):
        with self.environment():
            judged = evaluator.judged(self.write("program.py", "score = 0.5"))
        self.assertEqual(judged["score"], 0.5)
        # OpenEvolve evaluates in forked copies of a process that has evaluated before.
        self.assertNotEqual(judged["reasons"], [f"judged by {os.getpid()}"])

    def test_its_metrics_are_numbers_and_words_are_artifacts(self):
        result = types.ModuleType("openevolve.evaluation_result")
        result.EvaluationResult = types.SimpleNamespace
        modules = {"openevolve": types.ModuleType("openevolve"), "openevolve.evaluation_result": result}
        for given, score in [(found(True, 0.0), 1.0), (found(True, None), 0.01), (found(False, None), 0.0)]:
            with mock.patch.dict(sys.modules, modules), mock.patch.object(evaluator, "judged", lambda _, given=given: given):
                evaluated = evaluator.evaluate("program.py")
            self.assertEqual(evaluated.metrics, {"combined_score": score, "is_right": float(given["right"])})
            self.assertEqual(evaluated.artifacts, {"verdict": "adopt", "feedback": "one\ntwo"})


class ShinkaEvolve(Stubs):
    def test_it_writes_both_files(self):
        for text, score, right in [("score = 0.0", 1.0, True), ("nothing", 0.0, False)]:
            with self.environment():
                command = [sys.executable, AGENTS / "shinka_evaluate.py", "--program_path", self.write("program.py", text)]
                subprocess.run([*command, "--results_dir", self.folder / "results"], check=True)
            read = {name: json.loads((self.folder / "results" / f"{name}.json").read_text()) for name in ("metrics", "correct")}
            self.assertEqual((read["metrics"]["combined_score"], read["correct"]["correct"]), (score, right))
            self.assertIn("judged by", read["metrics"]["text_feedback"] if right else read["correct"]["error"])

    def test_a_right_program_that_was_not_decided_is_not_called_wrong(self):
        told = shinka_evaluate.reports(found(True, None, "inconclusive"))
        self.assertEqual(told["correct.json"], {"correct": True, "error": None})
        self.assertGreater(told["metrics.json"]["combined_score"], 0)
        self.assertFalse(shinka_evaluate.reports(found(None, None, "blocked"))["correct.json"]["correct"])


class Loop(Stubs):
    def test_better_programs_come_first_and_the_same_program_is_judged_once(self):
        answers = ["x = 1  # the start, with a comment", "x = 2", "x = 2", "no block", "(", "x = 9", "x = 5"]
        prompts, judged = [], []

        def propose(prompt):
            prompts.append(prompt)
            answer = answers[len(prompts) - 1]
            return answer if answer == "no block" else f"I think:\n```python\n{answer}\n```\n"

        def evaluate(code):
            judged.append(code.strip())
            return {"combined_score": float(code.split("=")[1].split("#")[0]), "feedback": f"told of {code.strip()}"}

        archive = evolve.search("x = 1", propose, evaluate, len(answers), random.Random(1))
        self.assertEqual(judged, ["x = 1", "x = 2", "x = 9", "x = 5"])
        self.assertEqual([program.score for program in archive], [9, 5, 2, 1])
        self.assertIn("told of x = 1", prompts[0])
        self.assertTrue(any("Another program" in prompt for prompt in prompts))

    def test_it_runs_as_its_page_says(self):
        model = self.write("model.py", """
            import sys
            score = sys.stdin.read().count("score = ")
            print(f"```python\\nscore = {score / 10}\\n```")
        """)
        with self.environment(MODEL_COMMAND=f"{sys.executable} {model}"):
            command = [sys.executable, AGENTS / "evolve.py", self.write("program.py", "score = 0.0"), "--generations", "2"]
            done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        lines = done.stdout.splitlines()
        self.assertTrue(lines[0].startswith("generation 2: 1.221"), done.stdout)
        self.assertEqual(lines[-1], "score = 0.2")


class CodingAgent(Stubs):
    def ask(self, phase, says="", refusals=(), files=None, **more):
        files = files or talk.source("softmax")
        agent, kept = self.write("agent.py", AGENT), self.folder / "prompt.txt"
        with self.environment(AGENT_COMMAND=f"{sys.executable} {agent}", KEPT=str(kept), SAYS=says):
            asked = talk.question(phase, files, **more)
            answer = talk.ask([AGENTS / "coding_agent.py"], asked, refusals=refusals)
        return answer, kept.read_text(encoding="utf-8")

    def pitch(self):
        return json.loads(coding_agent.FORMS["pitch"].split(", or ")[0])["pitch"]

    def test_it_answers_questions_by_the_last_object_that_the_agent_writes(self):
        pitch = self.pitch()
        answer, prompt = self.ask("pitch", 'not {"this": 1}, but\n' + json.dumps({"pitch": pitch}, indent=2))
        self.assertEqual(answer, {"pitch": pitch})
        self.assertIn('"new-evidence"', prompt)
        self.assertIn("np.e**shifted", prompt)
        for phase, says in [("answer", {"text": "counted"}), ("deal", {"accept": False}),
                            ("lesson", {"wrong": "a", "follows": "b"}),
                            ("research", {"bound-by": "powers", "evidence": [{"kind": "calculation", "text": "two"}]})]:
            self.assertEqual(self.ask(phase, json.dumps(says), **talk.about(pitch))[0], says)

    def test_a_refusal_is_told_to_the_agent(self):
        answer, prompt = self.ask("pitch", '{"pass": "nothing"}', refusals=["it was refuted in softmax-1"])
        self.assertEqual(answer, {"pass": "nothing"})
        self.assertIn("Your last answer was refused: it was refuted in softmax-1", prompt)

    def test_it_edits_the_workspace_or_withdraws(self):
        workspace = self.folder / "workspace"
        workspace.mkdir()
        (workspace / "kernel.py").write_text(talk.source("softmax")["kernel.py"])
        about = {**talk.about(self.pitch()), "workspace": str(workspace)}
        answer, prompt = self.ask("build", **about)
        self.assertEqual(answer, {"workspace": True})
        self.assertIn("np.exp(shifted)", (workspace / "kernel.py").read_text())
        self.assertIn("Edit the files", prompt)
        self.assertEqual(self.ask("mend", **about)[0], {"withdraw": "there is no power"})


if __name__ == "__main__":
    unittest.main()
