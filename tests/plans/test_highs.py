"""What the solver writes past Python never stands among results."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

CHATTY = """
import ctypes, os, sys, threading, types
from equipoise.plans.highs import solve_milp

def chatty(*model, **options):
    os.write(1, b"written\\n")
    ctypes.CDLL(None).puts(b"waiting in the buffer of C")
    return model, options

solver = types.SimpleNamespace(milp=chatty)
sys.modules |= {"scipy": types.ModuleType("scipy"), "scipy.optimize": solver}
"""


def run(program):
    # Where that is set C has no buffer either, and nothing would wait in it.
    buffered = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return subprocess.run(
        [sys.executable, "-c", CHATTY + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=False,
        env=buffered,
    )


def test_only_what_python_prints_is_on_standard_output():
    found = run("""
        print("before")
        print(solve_milp(1, integrality=2))
        print("after")
    """)
    assert found.stdout.splitlines() == ["before", "((1,), {'integrality': 2})", "after"]
    assert sorted(found.stderr.splitlines()) == ["waiting in the buffer of C", "written"]


def test_a_solver_that_fails_leaves_standard_output_as_it_was():
    found = run("""
        def failing(*_, **__):
            os.write(1, b"written\\n")
            raise ZeroDivisionError
        solver.milp = failing
        try:
            solve_milp(1)
        except ZeroDivisionError:
            os.write(1, b"after\\n")
    """)
    assert (found.stdout, found.stderr) == ("after\n", "written\n")


def test_standard_output_comes_back_when_the_last_of_several_threads_is_done():
    found = run("""
        def files():
            return [n for n in range(100) if os.path.exists(f"/proc/self/fd/{n}")]
        before = files()
        entered, leave = threading.Barrier(3), [threading.Event(), threading.Event()]
        def waiting(i):
            os.write(1, b"written\\n")
            entered.wait()
            leave[i].wait()
            os.write(1, b"written\\n")
        solver.milp = waiting
        threads = [threading.Thread(target=solve_milp, args=(i,)) for i in (0, 1)]
        for thread in threads:
            thread.start()
        entered.wait()
        for thread, event in zip(threads, leave):
            event.set()
            thread.join()
        os.write(1, b"after\\n")
        print("open as before:", files() == before)
    """)
    assert found.stdout == "after\nopen as before: True\n"
    assert found.stderr == "written\n" * 4


@pytest.mark.parametrize(
    "without",
    [
        "import io; sys.stdout = io.StringIO()",
        "sys.stdout = None",
        "sys.stdout.close()",
        "os.close(1)",
        "os.close(2)",
    ],
)
def test_without_a_standard_output_or_error_the_model_is_solved_all_the_same(without, tmp_path):
    answer = tmp_path / "answer"
    found = run(f"""
        {without}
        solver.milp = lambda *model: model
        open({str(answer)!r}, "w").write(str(solve_milp(1)))
        os._exit(0)
    """)
    assert found.returncode == 0, found.stderr
    assert answer.read_text() == "(1,)"
