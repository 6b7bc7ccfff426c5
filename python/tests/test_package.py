"""The package: a light import, and the command."""

import subprocess
import sys
import textwrap

import gauntlet


def run(*words):
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, timeout=600)


def test_importing_needs_neither_numpy_nor_torch():
    code = "import sys; sys.modules['numpy'] = sys.modules['torch'] = None; import gauntlet; print(gauntlet.__version__)"
    done = run("-c", code)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == gauntlet.__version__


def test_the_kernels_need_no_torch():
    code = "import sys; sys.modules['torch'] = None; from gauntlet import nvfp4; print(nvfp4.BLOCK)"
    assert run("-c", code).stdout.strip() == "16"


def test_what_a_model_needs_is_named():
    for function, arguments, missing in (
        ("convert", "None", "torch"), ("load_checkpoint", "None, '.'", "torch"), ("load_checkpoint", "None, '.'", "safetensors")
    ):
        code = f"""
            import sys, types
            sys.modules["torch"] = types.ModuleType("torch")
            sys.modules[{missing!r}] = None
            from gauntlet import nvfp4
            try:
                nvfp4.{function}({arguments})
            except ImportError as error:
                print(error)
        """
        said = run("-c", textwrap.dedent(code)).stdout.strip()
        assert said == f"nvfp4.{function} needs {missing}; install it with `pip install {missing}`"


def test_the_command_is_the_same_program():
    done = run("-m", "gauntlet", "--version")
    assert done.stdout.strip() == f"gauntlet {gauntlet.__version__}"
    assert run("-m", "gauntlet", "devices").returncode == 0
    refused = run("-m", "gauntlet", "suites", "no-such-suite")
    assert refused.returncode == 2 and "no-such-suite" in refused.stderr


def test_unknown_attributes_are_refused():
    assert not hasattr(gauntlet, "nothing")
