"""The scripts of the arena answer every phase in the right form, and their changes do to the kernels what they are there for."""

import re
import subprocess
import sys
import unittest
from pathlib import Path
from tempfile import TemporaryDirectory

TESTS = Path(__file__).resolve().parent
ARENA = TESTS.parent
sys.path[:0] = [str(TESTS), str(ARENA / "agents")]

import conversation as talk  # noqa: E402

SHARED = ("contestant.py", "author.py", "on_a_gpu.py")
CONTESTANTS = sorted(path for path in (ARENA / "agents").glob("*.py") if path.name not in SHARED)
ON_A_GPU = ("one-pass", "four-loads", "big-blocks", "all-in-registers")
PANELLISTS = sorted(path for path in (ARENA / "panel").glob("*.py") if path.name != "panellist.py")
ROUNDS = {"softmax-1": "softmax", "layer-norm": "layer-norm", "matmul-1": "matmul"}


def agent(name):
    return [ARENA / "agents" / f"{name}.py"]


def past(pitch, verdict, you="Somebody", round_name="softmax-1"):
    return {"round": round_name, "pitch": pitch, "author": you, "change": "", "verdict": verdict, "reason": "",
            "claimed": 1.5, "found": None, "lesson": None}


def pitch_of(name, files, **more):
    return talk.ask(agent(name), talk.question("pitch", files, **more), refusals=more.pop("refusals", ()))


def built(name, files, **more):
    """The files that a contestant hands in, after it has pitched."""
    pitch = pitch_of(name, files, **more)["pitch"]
    workspace = talk.Workspace(files)
    answer = talk.ask(agent(name), talk.question("build", files, **talk.about(pitch), **more), workspace)
    if "patch" in answer:
        return patched(files, answer["patch"])
    return {**files, **answer["files"]} if "files" in answer else workspace.files


def patched(files, patch):
    with TemporaryDirectory() as folder:
        for name, text in files.items():
            (Path(folder) / name).write_text(text)
        subprocess.run(["git", "apply", "-"], input=patch, text=True, cwd=folder, check=True)
        return {path.name: path.read_text() for path in Path(folder).iterdir()}


def computed(text, function, inputs):
    """The results of a kernel in Python for each of the inputs, by one process, as a judge calls it."""
    space = {}
    exec(compile(text, function, "exec"), space)
    return [space[function](**of) for of in inputs]


class Forms(unittest.TestCase):
    def test_every_contestant_answers_every_phase(self):
        for script in CONTESTANTS:
            asked_before = {"pitch"}
            for round_name, folder in ROUNDS.items():
                files = talk.source(folder)
                answer = talk.ask([script], talk.question("pitch", files, round_name=round_name))
                if "pitch" not in answer:
                    continue
                # Only changes differ from kernel to kernel.
                phases = [(phase, "adopt") for phase in talk.CONTESTANT if phase not in asked_before or phase == "build"]
                asked_before.update(talk.CONTESTANT)
                for phase, verdict in [*phases, ("lesson", "incorrect"), ("lesson", "valid-negative")]:
                    with self.subTest(script=script.name, round=round_name, phase=phase, verdict=verdict):
                        more = talk.about(answer["pitch"], verdict)
                        asked = talk.question(phase, files, round_name=round_name, **more)
                        talk.ask([script], asked, talk.Workspace(files))

    def test_every_panellist_asks_and_votes_on_every_pitch(self):
        files = talk.source("softmax")
        pitches = [{**answer["pitch"], "author": script.stem} for script in CONTESTANTS
                   if "pitch" in (answer := talk.ask([script], talk.question("pitch", files)))]
        self.assertGreaterEqual(len(pitches), 5)
        more = {"pitches": pitches, "flags": [f"{pitches[0]['name']}: admits no chance of failure"]}
        asked, conditional = [], 0
        for script in PANELLISTS:
            asked.append(talk.ask([script], talk.question("question", files, **more)))
            answers = [{"from": "big_promises", "to": "Evidence", "question": "?", "text": "It is fast."}]
            votes = talk.ask([script], talk.question("vote", files, answers=answers, **more))["votes"]
            self.assertEqual([vote["pitch"] for vote in votes], [pitch["name"] for pitch in pitches], script.name)
            conditional += sum(vote["conditional"] for vote in votes)
        self.assertGreater(conditional, 0)
        # The boldest of those without a measurement is asked.
        self.assertIn("memory", [answer["question"]["to"] for answer in asked if answer])

    def test_a_wrong_form_is_noticed(self):
        for phase, answer in [("pitch", {}), ("build", {"files": {}, "patch": "--- a"}), ("deal", {"accept": "yes"}),
                              ("vote", {"votes": [{"pitch": "a", "reason": "b", "scores": {"risk": 11}}]})]:
            with self.subTest(phase), self.assertRaises(AssertionError):
                talk.is_answer(phase, answer)


class OnAGpu(unittest.TestCase):
    """The contestants of the rounds on a GPU, on their files: nothing is compiled."""

    def play(self, part, phase, folder="gpu/softmax", **more):
        files = {path.name: path.read_text() for path in sorted((ARENA / folder).iterdir())}
        asked = talk.question(phase, files, round_name="gpu-softmax-2", **more)
        return files, talk.ask([ARENA / "agents" / "on_a_gpu.py", part], asked, talk.Workspace(files))

    def test_each_changes_the_kernel(self):
        for part in ON_A_GPU:
            with self.subTest(part):
                pitch = self.play(part, "pitch")[1]["pitch"]
                files, built = self.play(part, "build", **talk.about(pitch))
                self.assertTrue(built["files"])
                for path, text in built["files"].items():
                    self.assertNotEqual(text, files[path])

    def test_one_pass_changes_the_layer_norm_after_the_softmax(self):
        adopted = [past("one-pass", "adopt", round_name="softmax-9")]
        pitch = self.play("one-pass", "pitch", "gpu/layer-norm", verdicts=adopted)[1]["pitch"]
        built = self.play("one-pass", "build", "gpu/layer-norm", **talk.about(pitch))[1]
        self.assertIn("num_warps=8", built["files"]["kernel.py"])
        self.assertIn("pass", self.play("big-blocks", "pitch", "gpu/layer-norm")[1])

    def test_four_loads_reads_the_ends_of_rows_once_it_was_told(self):
        wrong = [past("four-loads", "incorrect", round_name="gpu-softmax-1")]
        pitch = self.play("four-loads", "pitch", verdicts=wrong)[1]["pitch"]
        self.assertIn("new-evidence", pitch)
        loops = []
        for verdicts in ([], wrong):
            built = self.play("four-loads", "build", verdicts=verdicts, **talk.about(pitch))[1]
            loops.append(built["files"]["softmax.cu"].count("for (; col"))
        self.assertEqual(loops, [1, 2])


class Guide(unittest.TestCase):
    """The two scripts of the guide's page, from an empty folder."""

    def setUp(self):
        page = (ARENA.parents[1] / "docs" / "guide" / "arena.md").read_text(encoding="utf-8")
        folder = TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        for name, text in re.findall(r"^```(?:python|toml)\n# (\S+)\n(.*?)^```", page, re.DOTALL | re.MULTILINE):
            (self.folder / name).parent.mkdir(exist_ok=True)
            (self.folder / name).write_text(text, encoding="utf-8")
        self.files = {"kernel.py": (self.folder / "kernel" / "kernel.py").read_text(encoding="utf-8")}

    def ask(self, script, phase, files, **more):
        return talk.ask([self.folder / script], talk.question(phase, files, you="Once", round_name="first-1", **more))

    def test_the_contestant_answers_every_phase_and_its_change_is_right(self):
        import numpy as np

        pitch = self.ask("contestant.py", "pitch", self.files)["pitch"]
        for phase in talk.CONTESTANT:
            self.ask("contestant.py", phase, self.files, **talk.about(pitch))
        built = self.ask("contestant.py", "build", self.files, **talk.about(pitch))["files"]
        self.assertEqual(built["kernel.py"].count("np.exp("), 1)
        self.assertIn("pass", self.ask("contestant.py", "pitch", built))
        inputs = [{"x": np.random.default_rng(1).standard_normal((33, 7), dtype=np.float32)}]
        space = {}
        exec((self.folder / "task.py").read_text(encoding="utf-8"), space)
        right = space["reference"](**inputs[0])["y"]
        np.testing.assert_allclose(computed(built["kernel.py"], "softmax", inputs)[0], right, rtol=1e-5, atol=1e-6)
        # What the page proposes to try is wrong indeed.
        wrong = computed(built["kernel.py"].replace("powers.sum(axis=1", "powers.sum(axis=0"), "softmax", inputs)
        self.assertFalse(np.allclose(wrong[0], right))

    def test_the_panellist_asks_and_votes(self):
        pitches = [{**self.ask("contestant.py", "pitch", self.files)["pitch"], "author": "Once"}]
        self.assertEqual(self.ask("panellist.py", "question", self.files, pitches=pitches)["question"]["to"], "Once")
        vote = self.ask("panellist.py", "vote", self.files, pitches=pitches, answers=[], flags=[])["votes"][0]
        self.assertEqual(vote["scores"], {"quality": 7})


class Changes(unittest.TestCase):
    def setUp(self):
        import numpy as np

        draw = np.random.default_rng(5).standard_normal
        self.close = lambda a, b: a.shape == b.shape and bool(np.allclose(a, b, rtol=1e-5, atol=1e-6))
        self.inputs = {
            "softmax": [{"x": draw((rows, 20), dtype=np.float32)} for rows in (32, 3, 45, 32)],
            "layer_norm": [{"x": draw((rows, 20), dtype=np.float32), "gamma": draw(20, dtype=np.float32),
                            "beta": draw(20, dtype=np.float32)} for rows in [3, 45, *[32] * 30]],
        }

    def right(self, files, function):
        folder = "layer-norm" if function == "layer_norm" else function
        want = computed(talk.source(folder)["kernel.py"], function, self.inputs[function])
        have = computed(files["kernel.py"], function, self.inputs[function])
        return [self.close(a, b) for a, b in zip(have, want, strict=True)]

    def test_one_pass_stays_right(self):
        files = built("one_pass", talk.source("softmax"))
        self.assertEqual((files["kernel.py"].count("np.e**"), files["kernel.py"].count("np.exp(")), (0, 1))
        self.assertTrue(all(self.right(files, "softmax")))
        self.assertIn("pass", pitch_of("one_pass", files))
        self.assertTrue(all(self.right(built("one_pass", talk.source("layer-norm")), "layer_norm")))

    def test_one_pass_pitches_again_what_is_open_and_nothing_that_was_refuted(self):
        for verdict, form in [("inconclusive", "pitch"), ("blocked", "pitch"), ("regression", "pass")]:
            verdicts = [past("one-exponential", verdict)]
            self.assertIn(form, pitch_of("one_pass", talk.source("softmax"), verdicts=verdicts))

    def test_one_pass_withdraws_what_its_own_pairs_refute(self):
        files = talk.source("softmax")
        asked = talk.question("build", files, **talk.about(pitch_of("one_pass", files)["pitch"]))
        for right, verdict, used in [(False, "adopt", ["write", "check"]), (True, "regression", ["write", "check", "quick"])]:
            workspace = talk.Workspace(files, right, verdict)
            self.assertIn("withdraw", talk.ask(agent("one_pass"), asked, workspace))
            self.assertEqual(workspace.used, used)

    def test_row_blocks_leaves_out_the_rows_that_fill_no_block_until_it_is_told(self):
        files = talk.source("softmax")
        self.assertEqual(self.right(built("row_blocks", files), "softmax"), [True, False, False, True])
        wrong = [past("row-blocks", "incorrect")]
        pitch = pitch_of("row_blocks", files, verdicts=wrong)["pitch"]
        self.assertIn("new-evidence", pitch)
        self.assertTrue(all(self.right(built("row_blocks", files, verdicts=wrong), "softmax")))
        workspace = talk.Workspace(files)
        asked = talk.question("mend", files, verdicts=wrong, **talk.about(pitch))
        self.assertEqual(talk.ask(agent("row_blocks"), asked, workspace), {"workspace": True})
        self.assertTrue(all(self.right(workspace.files, "softmax")))

    def test_tidy_code_changes_no_result_and_passes_when_it_was_refuted(self):
        files = talk.source("softmax")
        after = built("tidy_code", files)
        self.assertNotEqual(after, files)
        self.assertTrue(all(self.right(after, "softmax")))
        self.assertIn("pass", pitch_of("tidy_code", files, verdicts=[past("tidy", "valid-negative")]))

    def test_memory_is_wrong_on_later_inputs(self):
        self.assertEqual(self.right(built("memory", talk.source("softmax")), "softmax"), [True, True, True, False])
        caught = [past("by-shape", "incorrect")]
        found = self.right(built("memory", talk.source("layer-norm"), verdicts=caught), "layer_norm")
        self.assertTrue(all(found[:20]) and not any(found[20:]), found)

    def test_memory_mends_nothing_but_hands_in_another_kernel(self):
        verdicts = [past("by-shape", "incorrect")]
        more = {"verdicts": verdicts, **talk.about({"name": "by-shape"})}
        kernel = talk.source("softmax")
        withdrawal = {"withdraw": "without the memory nothing is left of it"}
        for round_name, answer in [("softmax-2", withdrawal), ("layer-norm", {"files": kernel})]:
            asked = talk.question("mend", {**kernel, "task.py": "protected"}, round_name=round_name, **more)
            self.assertEqual(talk.ask(agent("memory"), asked), answer)

    def test_big_promises_pitches_again_and_names_new_evidence_only_when_refused(self):
        files = talk.source("softmax")
        refuted = [past("running-totals", "valid-negative")]
        self.assertNotIn("new-evidence", pitch_of("big_promises", files, verdicts=refuted)["pitch"])
        asked = talk.question("pitch", files, verdicts=refuted)
        self.assertIn("new-evidence", talk.ask(agent("big_promises"), asked, refusals=["it was refuted"])["pitch"])
        self.assertIn("pass", pitch_of("big_promises", files, verdicts=refuted * 2))
        for source in (files, built("one_pass", files)):
            promised = built("big_promises", source)
            self.assertIn("np.cumsum(", promised["kernel.py"])
            self.assertTrue(all(self.right(promised, "softmax")))

    def test_compiler_flags_waits_until_the_loops_have_changed(self):
        files, refuted = talk.source("matmul"), [past("flags", "regression", round_name="matmul-1")]
        self.assertIn("-O3 -march=native", built("compiler_flags", files)["build.sh"])
        self.assertIn("pass", pitch_of("compiler_flags", files, verdicts=refuted))
        exchanged = built("one_pass", files)
        again = pitch_of("compiler_flags", exchanged, verdicts=refuted)["pitch"]
        self.assertIn("new-evidence", again)

    def test_the_exchanged_loops_give_the_same_product(self):
        import numpy as np

        given, product = [], []
        for files in (talk.source("matmul"), built("one_pass", talk.source("matmul"))):
            given.append(files["matmul.c"])
            with TemporaryDirectory() as folder:
                for name, text in files.items():
                    (Path(folder) / name).write_text(text)
                subprocess.run(["sh", "build.sh"], cwd=folder, check=True)
                product.append(product_by(Path(folder) / "libmatmul.so"))
        self.assertNotEqual(*given)
        np.testing.assert_allclose(*product, rtol=1e-5)

    def test_the_person_s_patch_applies_and_keeps_the_result(self):
        files = talk.source("layer-norm")
        after = patched(files, (ARENA / "pitches" / "reciprocal.diff").read_text())
        self.assertNotEqual(after, files)
        self.assertTrue(all(self.right(after, "layer_norm")))


def product_by(library):
    import ctypes

    import numpy as np

    m, n, k = 5, 7, 9
    a, b, c = (np.arange(1.0, size + 1, dtype=np.float32) for size in (m * k, k * n, m * n))
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (a, b, c)]
    ctypes.CDLL(str(library)).matmul(*pointers, *map(ctypes.c_int64, (m, n, k)))
    return c


if __name__ == "__main__":
    unittest.main()
