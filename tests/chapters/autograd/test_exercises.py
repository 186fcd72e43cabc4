"""The references of notebook 03 against sources that share nothing with them, and answers people might hand in."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
import torch

from lmcourse import autograd
from lmcourse.accounting.counter import count_flops
from lmcourse.chapters.autograd.exercises import EXERCISES
from lmcourse.chapters.autograd.exercises.engines import Engine
from lmcourse.chapters.autograd.exercises.graphs import Graph
from lmcourse.chapters.autograd.exercises.sweep import backward_sweep
from lmcourse.exercises import check_exercise
from lmcourse.exercises.cases import Case
from lmcourse.exercises.outcome import run_case

BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def asked(name: str) -> list[Case]:
    """Public and hidden cases of an exercise."""
    return [*BY_NAME[name].cases, *BY_NAME[name].hidden]


def right(name: str, case: Case) -> Any:
    """What the reference answers."""
    outcome = run_case(BY_NAME[name].reference, case, name=name)
    assert outcome.failure is None
    return outcome.value


def test_the_gradients_of_a_linear_regression_are_differences_of_losses() -> None:
    def loss(w0: float, w1: float, x: float, y: float) -> float:
        return (w0 + w1 * x - y) ** 2

    step = 1e-6
    for case in asked("linear_regression_grads"):
        x, y, w0, w1 = case.args or [case.kwargs[name] for name in ("x", "y", "w0", "w1")]
        found = right("linear_regression_grads", case)
        slope = (loss(w0, w1 + step, x, y) - loss(w0, w1 - step, x, y)) / (2 * step)
        assert found["w1"] == pytest.approx(slope, rel=1e-5, abs=1e-5)
        slope = (loss(w0 + step, w1, x, y) - loss(w0 - step, w1, x, y)) / (2 * step)
        assert found["w0"] == found["z"] == found["u"] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def paths(graph: Graph, start: str, end: str) -> float:
    """The sum over all paths of the products along them: the definition, slow as it is."""
    if start == end:
        return 1.0
    children = [(node, parents[start]) for node, parents in graph.items() if start in parents]
    return sum(local * paths(graph, child, end) for child, local in children)


def test_the_sweep_sums_over_all_paths() -> None:
    small = [case for case in asked("backward_sweep") if len(case.args[0]) < 12]
    assert len(small) >= 7
    for case in small:
        graph, end = case.args
        expected = {node: paths(graph, node, end) for node in graph}
        assert right("backward_sweep", case) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_nodes_come_in_an_order_that_does_not_help() -> None:
    graphs = [case.args[0] for case in backward_sweep.hidden if case.name == "other graphs"]

    def helps(graph: Graph) -> bool:
        seen: set[str] = set()
        return all(parents.keys() <= seen for node, parents in graph.items() if not seen.add(node))  # type: ignore[func-returns-value]

    assert not any(map(helps, graphs))


def test_torch_and_the_courses_engine_agree_on_every_script() -> None:
    for case in asked("Value"):
        ours, theirs = run_case(autograd.Value, case, name="Value").value, right("Value", case)
        assert [number is None for number in ours] == [number is None for number in theirs]  # what backward() returns
        numbers = [number for number in theirs if number is not None]
        assert [n for n in ours if n is not None] == pytest.approx(numbers, rel=1e-9, abs=1e-12), case.script


def test_a_recursive_engine_loses_points_and_reads_why() -> None:
    class Recursive(Engine):
        def order(self) -> list[Engine]:
            done: dict[Engine, None] = {}

            def visit(node: Engine) -> None:
                if node not in done:
                    for parent, _ in node.edges:
                        visit(parent)
                    done[node] = None

            visit(self)
            return [*done][::-1]

    report = check_exercise(BY_NAME["Value"], Recursive, enforce=False)
    [failed] = [case for case in report.cases if not case.passed]
    assert failed.name == "a chain of 10,000 nodes, no recursion"
    assert "RecursionError" in failed.message


@pytest.mark.parametrize("name", ["backward_sweep", "Value"])
def test_the_longest_chain_is_longer_than_any_recursion_limit_in_use(name: str) -> None:
    sizes = [len(case.args[0]) if case.args else 10_000 for case in asked(name)]
    assert max(sizes) > 3_500  # IPython's limit is 3,000, plain Python's 1,000


def test_numeric_gradients_come_near_torchs_own() -> None:
    for case in asked("numeric_gradient"):
        if "step" not in case.kwargs:  # at a kink, where the step decides
            continue
        names: dict[str, Any] = {}
        exec(case.script.splitlines()[0], names)
        x = case.kwargs["x"].double().requires_grad_()
        [exact] = torch.autograd.grad(names["f"](x), x)
        [found] = right("numeric_gradient", case)
        assert found.shape == x.shape
        assert found.dtype == case.kwargs["x"].dtype
        torch.testing.assert_close(found.double(), exact, rtol=3e-2, atol=2 * case.kwargs["step"] ** 2 + 1e-5)


def test_beside_a_kink_the_quotient_tells_the_step() -> None:
    [case] = [case for case in asked("numeric_gradient") if "step" not in case.kwargs]
    [found] = right("numeric_gradient", case)
    torch.testing.assert_close(found, torch.tensor([4e-6 / 1e-5, -1.0], dtype=torch.float64))


def test_backward_matmul_is_the_two_products_of_the_text() -> None:
    for case in asked("backward_matmul"):
        x, w, dy = case.args
        dx, dw = right("backward_matmul", case)
        torch.testing.assert_close(dx, dy @ w.T)
        torch.testing.assert_close(dw, x.reshape(-1, x.shape[-1]).T @ dy.reshape(-1, dy.shape[-1]))


def test_the_bill_is_that_of_the_formula() -> None:
    assert right("two_layer_backward_flops", Case("the value")) == 4 * 64 * 128 * 32 + 2 * 64 * 128 * 128


def test_the_notes_formula_would_need_a_gradient_of_the_input() -> None:
    x = torch.ones(64, 128, requires_grad=True)
    w1, w2 = torch.zeros(128, 128, requires_grad=True), torch.zeros(128, 32, requires_grad=True)
    loss = (x @ w1 @ w2).pow(2).mean()
    assert count_flops(loss.backward).total == 5_242_880


@pytest.mark.parametrize("name", ["backward_two_layer", "backward_batch"])
def test_the_networks_gradients_are_differences_of_the_loss(name: str) -> None:
    for case in asked(name):
        x, w1, w2, y = (tensor.double() for tensor in case.args)
        batch = 1 if x.ndim == 1 else len(x)

        def loss(w1: torch.Tensor, w2: torch.Tensor, x: torch.Tensor = x, y: torch.Tensor = y, b: int = batch) -> float:
            return (torch.sigmoid(x @ w1.T) @ w2.T - y).square().sum().item() / 2 / b

        found = right(name, case)
        for weight, grad in zip((0, 1), found if isinstance(found, list) else (found["w1"], found["w2"]), strict=True):
            nudge = torch.zeros_like((w1, w2)[weight])
            nudge.view(-1)[-1] = 1e-5
            either = [(w1 + sign * nudge, w2) if weight == 0 else (w1, w2 + sign * nudge) for sign in (1, -1)]
            slope = (loss(*either[0]) - loss(*either[1])) / 2e-5
            rounding = 1e-6 if case.args[0].dtype == torch.float64 else 1e-5
            assert grad.view(-1)[-1].item() == pytest.approx(slope, rel=rounding, abs=1e-8)


def test_the_gradient_through_layernorm_has_the_symmetries_it_should() -> None:
    for case in asked("layernorm_backward"):
        x, gain, dy = case.args
        found = right("layernorm_backward", case)
        tolerance = 1e-4 if x.dtype == torch.float32 or case.name.startswith("rows that hardly") else 1e-9
        torch.testing.assert_close(found["x"].sum(-1), torch.zeros_like(x[..., 0]), rtol=0, atol=tolerance)
        assert found["gain"].shape == found["bias"].shape == gain.shape
        torch.testing.assert_close(found["bias"], dy.reshape(-1, gain.numel()).sum(0))


def test_what_is_kept_is_what_the_text_says() -> None:
    for case in asked("saved_bytes"):
        if "y" in case.kwargs:  # the network of two layers
            x, y, w1 = case.kwargs["x"], case.kwargs["y"], case.kwargs["w1"]
            elements = x.numel() + len(x) * w1.shape[1] + y.numel()
            assert right("saved_bytes", case) == [elements * x.element_size()]


def test_predictions_and_exercises_have_names_of_their_own() -> None:
    names = [exercise.name for exercise in EXERCISES]
    assert not [pair for pair in itertools.combinations(names, 2) if pair[0] == pair[1]]
    assert sum(exercise.points for exercise in EXERCISES) == 30
    assert all(len(e.misconceptions) >= (3 if e.value else 4) for e in EXERCISES)
