"""Models are solved again after changes, and what HiGHS prints never stands among results."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

from equipoise.plans.highs import LinearModel

CHATTY = """
import ctypes, os, sys, threading
from equipoise.plans.highs import LinearModel, quietly

def chatty():
    os.write(1, b"written\\n")
    ctypes.CDLL(None).puts(b"waiting in the buffer of C")
    return 1
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
        print(quietly(chatty))
        print("after")
    """)
    assert found.stdout.splitlines() == ["before", "1", "after"]
    assert sorted(found.stderr.splitlines()) == ["waiting in the buffer of C", "written"]


def test_a_solver_that_fails_leaves_standard_output_as_it_was():
    found = run("""
        def failing():
            os.write(1, b"written\\n")
            raise ZeroDivisionError
        try:
            quietly(failing)
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
        threads = [
            threading.Thread(target=quietly, args=(lambda i=i: waiting(i),)) for i in (0, 1)
        ]
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
        open({str(answer)!r}, "w").write(str(quietly(lambda: 1)))
        os._exit(0)
    """)
    assert found.returncode == 0, found.stderr
    assert answer.read_text() == "1"


def test_a_model_is_solved_where_nothing_else_is_printed():
    found = run("""
        class Chatty:
            def __init__(self, highs):
                self.highs = highs
            def __getattr__(self, name):
                return getattr(self.highs, name)
            def run(self):
                chatty()
                return self.highs.run()
        model = LinearModel([1.0], low=[2], high=[9])
        model._highs = Chatty(model._highs)
        print(model.solve().cost)
    """)
    assert found.stdout == "2.0\n"
    assert sorted(found.stderr.splitlines()) == ["waiting in the buffer of C", "written"]


def knapsack():
    """Two kinds of things, of which 3.5 of the first would be enough."""
    model = LinearModel([1.0, 2.0], low=0, high=[9, 9])
    model.add_rows([0, 0], [0, 1], [2.0, 3.0], low=[7.0], high=[np.inf])
    return model


def test_a_model_is_solved_again_after_every_change():
    model = knapsack()
    assert model.solve().cost == 3.5
    model.bound_rows([0], 8.0, np.inf)
    assert model.solve().cost == 4
    model.bound_columns([0], 0, 1)
    assert model.solve().columns.tolist() == [1, 2]
    model.change(np.array([0]), np.array([1]), np.array([6.0]))
    assert model.solve().cost == pytest.approx(2 * 8 / 6)
    model.price([0], 0.1)
    assert model.solve().cost == pytest.approx(0.1 + 2)
    model.add_rows([0], [1], [1.0], low=[1.25], high=[np.inf])
    assert model.solve().cost == pytest.approx(0.1 / 4 + 2.5)
    model.drop_rows(1)
    assert model.solve().cost == pytest.approx(0.1 + 2)


def test_prices_of_rows_and_columns():
    found = knapsack().solve()
    assert found.duals.tolist() == [0.5]
    assert found.reduced.tolist() == [0, 0.5]
    assert found.bound == found.cost


def test_whole_numbers_and_real_ones_again():
    model = knapsack()
    model.whole([0, 1])
    found = model.solve()
    assert (found.status, found.cost) == ("optimal", 4)
    assert found.bound == pytest.approx(4)
    model.whole([0, 1], real=True)
    assert model.solve().cost == 3.5


def test_entries_of_the_same_place_are_summed():
    model = LinearModel([1.0], low=0, high=np.inf)
    model.add_rows([0, 0], [0, 0], [1.0, 2.0], low=[6.0], high=[np.inf])
    assert model.solve().cost == 2


def test_a_model_without_a_solution():
    model = knapsack()
    model.bound_rows([0], 99.0, np.inf)
    for whole in (False, True):
        if whole:
            model.whole([0, 1])
        found = model.solve()
        assert (found.status, found.columns, found.bound) == ("infeasible", None, np.inf)


def hard(seed=0, columns=60, rows=40):
    rng = np.random.default_rng(seed)
    weights = np.floor(rng.random((rows, columns)) * 50)
    model = LinearModel(np.floor(rng.random(columns) * 100) + 1, low=0, high=1)
    i, j = np.indices(weights.shape)
    enough = weights.sum(axis=1) / 2
    model.add_rows(i.ravel(), j.ravel(), weights.ravel(), low=enough, high=np.full(rows, np.inf))
    return model


def test_work_is_limited_by_counts_and_what_is_known_is_a_bound():
    model = hard()
    assert model.solve(iterations=2).status == "limit"
    least = model.solve().cost
    model.whole(np.arange(60))
    found = [model.solve(nodes=1) for _ in range(2)]
    assert {each.status for each in found} == {"limit"}
    assert found[0].bound == found[1].bound
    best = model.solve()
    assert best.optimal
    assert least <= found[0].bound <= best.cost
