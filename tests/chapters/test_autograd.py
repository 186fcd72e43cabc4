"""Notebook 03: references against independent sources, and what its figures show."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lmcourse import autograd, plots
from lmcourse.autograd import Value, example, graph_of
from lmcourse.chapters.autograd import figures, own_step
from lmcourse.chapters.autograd.exercises import EXERCISES
from lmcourse.chapters.autograd.exercises.graphs import Graph
from lmcourse.chapters.autograd.figures import GraphPlayer
from lmcourse.chapters.autograd.figures.curves import difference_error
from lmcourse.chapters.autograd.judge import judge
from lmcourse.chapters.autograd.switches import CASES, Switches
from lmcourse.exercises.cases import Case
from lmcourse.exercises.compare import equal
from lmcourse.exercises.open_task import Unfit
from lmcourse.exercises.outcome import run_case
from lmcourse.widgets.live import image_html

BY_NAME = {exercise.name: exercise for exercise in EXERCISES}


def asked(name: str) -> list[Case]:
    """Public and hidden cases of an exercise."""
    return [*BY_NAME[name].cases, *BY_NAME[name].hidden]


def right(name: str, case: Case) -> Any:
    """The answer of the reference."""
    outcome = run_case(BY_NAME[name].reference, case, name=name)
    assert outcome.failure is None
    return outcome.value


def paths(graph: Graph, start: str, end: str) -> float:
    """The sum over all paths of the products along them: the definition, although it is slow."""
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


def test_torch_and_the_courses_engine_agree_on_every_script() -> None:
    for case in asked("Value"):
        # else the course's engine would list 4 as the first parent
        lines = (case.script or "").replace("4 + b", "b + 4").replace("0 * a", "a * 0")
        swapped = replace(case, script=lines)
        ours = run_case(autograd.Value, swapped, name="Value")
        assert ours.failure is None
        assert equal(ours.value, right("Value", case)), case.script


def test_the_sweep_over_nodes_gives_torchs_gradients() -> None:
    def torchs(number: float) -> torch.Tensor:
        return torch.tensor(float(number), dtype=torch.float64, requires_grad=True)

    for case in asked("backpropagate"):
        build, end = (case.script or "").split("\n", 1)[1].split("\n_ = backpropagate(")
        names: dict[str, Any] = {"Node": torchs}
        exec(build, names)
        end, *lines = end.replace(")", "").splitlines()
        nodes = [names[line.removesuffix(".grad")] for line in lines]
        found = torch.autograd.grad(names[end], nodes, allow_unused=True)
        expected = [0.0 if grad is None else grad.item() for grad in found]
        assert right("backpropagate", case) == pytest.approx(expected, rel=1e-9), case.name


def test_chunks_give_the_loss_of_torch_and_its_gradients() -> None:
    for case in asked("ChunkedCrossEntropy"):
        if "[h, W]" not in (case.script or "") or case.name == "a loss that is only a part":
            continue
        h, W = (case.kwargs[name].clone().requires_grad_() for name in ("h", "W"))
        loss = torch.nn.functional.cross_entropy(h @ W.T, case.kwargs["y"])
        factor = 3 if case.name == "three times the loss" else 1
        value, grads = right("ChunkedCrossEntropy", case)
        torch.testing.assert_close(value, loss.detach())
        torch.testing.assert_close(grads, [factor * grad for grad in torch.autograd.grad(loss, [h, W])])


def test_numeric_gradients_are_close_to_torchs() -> None:
    for case in asked("numeric_gradient"):
        if "step" not in case.kwargs:  # at a kink, the step decides the result
            continue
        names: dict[str, Any] = {}
        exec(case.script.splitlines()[0], names)
        x = case.kwargs["x"].double().requires_grad_()
        [exact] = torch.autograd.grad(names["f"](x), x)
        [found] = right("numeric_gradient", case)
        assert found.shape == x.shape
        assert found.dtype == case.kwargs["x"].dtype
        torch.testing.assert_close(found.double(), exact, rtol=3e-2, atol=2 * case.kwargs["step"] ** 2 + 1e-5)


def test_the_switches_are_learned_by_the_courses_engine() -> None:
    network = Switches(Value)
    first = network.loss().data
    for _ in range(100):
        for parameter in network.parameters:
            parameter.grad = 0.0
        network.loss().backward()
        for parameter in network.parameters:
            parameter.data -= 0.1 * parameter.grad
    assert network.loss().data < 1e-3 < 2 < first
    assert [round(answer) for answer in network.answers] == [*CASES.values()]


def by_formulas(*inputs: torch.Tensor) -> Any:
    return BY_NAME["my_step"].course_answer(*inputs)


def halved(*inputs: torch.Tensor) -> Any:
    loss, gradients = by_formulas(*inputs)
    return loss, gradients | {"first": gradients["first"] / 2}


def test_judge_shows_how_far_a_gradient_is_off(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    numeric = BY_NAME["numeric_gradient"].course_answer
    monkeypatch.setitem(globals(), "my_step", halved)
    judge("my_step", numeric)
    lines = capsys.readouterr().out.splitlines()
    less, up_to = "off by less ", "off by up to"
    assert [line.partition(": ")[2][:12] for line in lines] == [less, less, up_to, less]
    monkeypatch.setitem(globals(), "my_step", lambda *_: 1 / 0)
    judge("my_step", numeric)
    assert capsys.readouterr().out == "`my_step` raises ZeroDivisionError: division by zero\n"


def different_when_it_is_large(*inputs: torch.Tensor) -> Any:
    return by_formulas(*inputs) if len(inputs[4]) < 1000 else (9.0, by_formulas(*inputs)[1])


def stored(*inputs: torch.Tensor, known: dict[int, Any] = {}) -> Any:  # noqa: B006
    """Compute once for each size, and return the same again."""
    return known.setdefault(len(inputs[4]), by_formulas(*inputs))


def test_a_step_is_measured_on_new_numbers() -> None:
    own_step.measure_step(stored, [])
    for answer in (stored, different_when_it_is_large):
        with pytest.raises(Unfit):
            own_step.measure_step(answer, [])


def test_work_that_no_mode_sees_is_unfit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_step, "_PART", 1.5)  # as if a third of the products were hidden
    with pytest.raises(Unfit, match=r"only 100% were seen"):
        own_step.measure_step(by_formulas, [])


def test_each_node_has_a_box_and_each_edge_an_arrow() -> None:
    name = "two-word softmax"
    graph = example(name)
    axes = figures.computation_graph(name).axes[0]
    boxes = [patch for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
    arrows = [patch for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
    assert (len(boxes), len(arrows)) == (len(graph.nodes), len(graph.edges))
    said = {text.get_text() for text in axes.texts}
    assert {f"grad {node.grad:.3g}" for node in graph.nodes} | {f"{edge.local:.3g}" for edge in graph.edges} <= said
    extents = [box.get_bbox() for box in boxes]
    for i, box in enumerate(extents):
        assert not any(box.overlaps(other) for other in extents[:i])


def test_the_slopes_of_the_gaussian_match_torchs() -> None:
    error, sigma = -2.0, 0.7
    prediction = torch.tensor(error, dtype=torch.float64, requires_grad=True)
    loss = -torch.distributions.Normal(prediction, sigma).log_prob(torch.tensor(0.0, dtype=torch.float64))
    loss.backward()
    figure = figures.gaussian_loss(error, sigma)
    assert f"{prediction.grad.item():.3g} for −log p, {2 * error:.3g} for" in figure.axes[0].get_title(loc="left")
    points = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert points == pytest.approx([error**2, loss.item()])


def test_the_error_of_a_difference_is_least_at_the_predicted_step() -> None:
    for dtype, central in [(torch.float64, True), (torch.float64, False), (torch.float32, True)]:
        decades = [np.logspace(power, power + 1, 21) for power in range(-12, 0)]
        worst = [max(difference_error(step, dtype, central=central) for step in steps) for steps in decades]
        theory = torch.finfo(dtype).eps ** (1 / 3 if central else 1 / 2)
        low, *_, high = decades[int(np.argmin(worst))]
        assert low / 2 < theory < high * 2
    assert difference_error(1e-2, torch.float64) == pytest.approx(1e-4 / (3 * 1.1**2), rel=1e-6)
    assert difference_error(1e-9, torch.float32) == 1.0


def test_the_gradient_of_a_row_matches_torchs() -> None:
    spread, offset = 0.25, -3.0
    row = torch.tensor([-1.4, 0.3, 1.1, -0.2, 0.9, -0.7], dtype=torch.float64) * spread + offset
    row.requires_grad_()
    arriving = torch.tensor([0.8, 0.5, 1.2, -0.3, 0.9, 0.1], dtype=torch.float64)
    torch.nn.functional.layer_norm(row, (6,), eps=0.0).backward(arriving)
    _, leaving = figures.layernorm_gradient(spread, offset).axes[0].containers
    assert [bar.get_height() for bar in leaving] == pytest.approx(row.grad.tolist(), abs=1e-9)


def test_the_bars_match_autograds_bytes() -> None:
    batch, width = 3, 5
    kept: dict[int, int] = {}
    x, y = torch.zeros(batch, 784), torch.zeros(batch, 10)
    weights = [torch.zeros(784, width, requires_grad=True), torch.zeros(width, 10, requires_grad=True)]

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        if all(tensor.data_ptr() != weight.data_ptr() for weight in weights):
            kept[tensor.data_ptr()] = tensor.untyped_storage().nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        loss = (((x @ weights[0]).sigmoid() @ weights[1] - y) ** 2).mean()
    loss.backward()
    (bars,) = figures.saved_for_backward(batch, width).axes[0].containers
    widths = [bar.get_width() * 1e6 for bar in bars]
    assert math.fsum(widths[2:]) == pytest.approx(sum(kept.values()))
    assert widths[:2] == pytest.approx([sum(weight.grad.nbytes for weight in weights)] * 2)


def test_a_graph_of_foreign_nodes_shows_local_derivatives() -> None:
    class Node:
        def __init__(self, data: float, parents: Any = (), locals: Any = ()) -> None:
            self.data, self.grad, self.parents, self.locals = data, 0.0, parents, locals

    x = Node(3.0)
    figure = figures.computation_graph(graph_of(Node(9.0, [x, x], [3.0, 3.0])), locals_only=True)
    written = [text.get_text() for text in figure.axes[0].texts]
    assert written.count("3") == 3  # as the value of the leaf, and on both edges
    assert "v₁ = f(3, 3)" in written
    assert not any("grad" in text for text in written)
    assert plots.alt_text(figure).count("∂v₁/∂3 = 3") == 2


def test_buttons_move_one_step_and_stop_at_both_ends() -> None:
    player = GraphPlayer("fan-out")
    last = len(player.steps) - 1
    assert (player.back.disabled, player.forward.disabled) == (True, False)
    player.forward.click()
    assert player.slider.value == 1
    assert player.picture.value == image_html(figures.graph_step("fan-out", 1))
    player.move(99)
    assert (player.back.disabled, player.forward.disabled) == (False, True)
    player.move(1)
    assert player.slider.value == last
    player.back.click()
    assert player.slider.value == last - 1
    player.move(-99)
    assert player.slider.value == 0
