"""The figures of notebook 03: what they show, read from the artists, and what they refuse."""

import math
from collections.abc import Callable

import numpy as np
import pytest
import torch
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from lmcourse import plots
from lmcourse.autograd import EXAMPLES, example, steps_of
from lmcourse.chapters.autograd import figures
from lmcourse.chapters.autograd.figures.curves import difference_error
from lmcourse.chapters.autograd.figures.graph import KIND_COLOURS
from lmcourse.chapters.autograd.figures.tensors import example_gradients
from tests.plots.figures import check_figure

DRAWINGS: dict[str, Callable[[], Figure]] = {
    **{f"graph: {name}": (lambda name=name: figures.computation_graph(name)) for name in EXAMPLES},
    "graph without gradients": lambda: figures.computation_graph("neuron", gradients=False),
    "first step": figures.graph_step,
    "a backward step": lambda: figures.graph_step("two-word softmax", 12),
    "gaussian": figures.gaussian_loss,
    "gaussian, steep": lambda: figures.gaussian_loss(-2.5, 0.4),
    "two paths": figures.two_paths,
    "two paths at the left": lambda: figures.two_paths(-2.0),
    "check, central": figures.gradient_check_error,
    "check, forward": lambda: figures.gradient_check_error(1.0, "forward"),
    "matmuls": figures.three_matmuls,
    "matmuls, one row": lambda: figures.three_matmuls(1, 12, 2),
    "batch": figures.batch_gradients,
    "batch of one": lambda: figures.batch_gradients(1),
    "batch of 64": lambda: figures.batch_gradients(64),
    "layernorm": figures.layernorm_gradient,
    "learning curve": lambda: figures.learning_curve(lambda number: ([2.0, 0.5, 1e-3], [-1.0, 1.0, 1.0, -1.0])),
    "saved": figures.saved_for_backward,
    "saved, large batch": lambda: figures.saved_for_backward(8192, 16),
}
EACH = pytest.mark.parametrize("draw", DRAWINGS.values(), ids=DRAWINGS)


@EACH
def test_every_figure_is_described_has_room_for_its_text_and_draws_alike_twice(draw: Callable[[], Figure]) -> None:
    check_figure(draw)


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_box_for_every_node_and_an_arrow_for_every_edge(name: str) -> None:
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


def test_the_text_of_a_node_stays_in_its_box() -> None:
    for name in EXAMPLES:
        figure = figures.computation_graph(name)
        figure.draw_without_rendering()
        axes = figure.axes[0]
        boxes = [patch.get_window_extent() for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
        titles = [text.get_window_extent() for text in axes.texts if text.get_fontweight() == "bold"]
        assert len(titles) == len(boxes)
        for title in titles:
            assert any(box.x0 <= title.x0 and title.x1 <= box.x1 for box in boxes), name


def test_without_gradients_no_derivative_is_shown() -> None:
    texts = [text.get_text() for text in figures.computation_graph("fan-out", gradients=False).axes[0].texts]
    assert not any("grad" in text for text in texts)
    assert "44" not in plots.alt_text(figures.computation_graph("fan-out", gradients=False))
    assert len(texts) == 2 * len(example("fan-out").nodes)


def test_the_kinds_of_nodes_are_told_apart() -> None:
    axes = figures.computation_graph().axes[0]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == list(KIND_COLOURS)


def test_a_step_lights_what_it_touches() -> None:
    graph = example("linear regression")
    for number, step in enumerate(steps_of(graph)):
        axes = figures.graph_step(graph, number).axes[0]
        boxes = [patch.get_linewidth() > 2 for patch in axes.patches if isinstance(patch, FancyBboxPatch)]
        assert [i for i, lit in enumerate(boxes) if lit] == ([] if step.node is None else [step.node])
        arrows = [patch.get_linewidth() > 2 for patch in axes.patches if isinstance(patch, FancyArrowPatch)]
        if step.phase == "backward":
            assert [graph.edges[i] for i, lit in enumerate(arrows) if lit] == [step.edge]
        assert step.text in axes.get_title(loc="left")
    with pytest.raises(ValueError, match="no step 13: this graph has the steps 0 to 12"):
        figures.graph_step(graph, 13)


@pytest.mark.parametrize(("error", "sigma"), [(1.0, 1.0), (-2.0, 0.5), (0.3, 2.0)])
def test_the_slopes_of_the_gaussian_are_torchs(error: float, sigma: float) -> None:
    prediction = torch.tensor(error, dtype=torch.float64, requires_grad=True)
    loss = -torch.distributions.Normal(prediction, sigma).log_prob(torch.tensor(0.0, dtype=torch.float64))
    loss.backward()
    figure = figures.gaussian_loss(error, sigma)
    assert f"{prediction.grad.item():.3g} for −log p, {2 * error:.3g} for" in figure.axes[0].get_title(loc="left")
    points = [line.get_ydata()[0] for line in figure.axes[0].lines if line.get_marker() == "o"]
    assert points == pytest.approx([error**2, loss.item()])
    with pytest.raises(ValueError, match="positive"):
        figures.gaussian_loss(1.0, 0.0)


@pytest.mark.parametrize("x", [-1.3, 0.0, 1.5])
def test_only_both_paths_together_are_the_slope(x: float) -> None:
    variable = torch.tensor(x, dtype=torch.float64, requires_grad=True)
    (3 * variable**2 + variable**4).backward()
    lines = figures.two_paths(x).axes[0].lines
    slopes = [np.diff(line.get_ydata())[0] / np.diff(line.get_xdata())[0] for line in lines[1:4]]
    assert slopes[0] == pytest.approx(variable.grad.item(), abs=1e-9)
    assert slopes[0] == pytest.approx(slopes[1] + slopes[2], abs=1e-9)


def test_the_error_of_a_difference_has_a_valley_where_theory_says() -> None:
    for dtype, central in [(torch.float64, True), (torch.float64, False), (torch.float32, True)]:
        decades = [np.logspace(power, power + 1, 21) for power in range(-12, 0)]
        worst = [max(difference_error(step, dtype, central=central) for step in steps) for steps in decades]
        theory = torch.finfo(dtype).eps ** (1 / 3 if central else 1 / 2)
        low, *_, high = decades[int(np.argmin(worst))]
        assert low / 2 < theory < high * 2
    assert difference_error(1e-2, torch.float64) == pytest.approx(1e-4 / (3 * 1.1**2), rel=1e-6)
    assert difference_error(1e-9, torch.float32) == 1.0
    with pytest.raises(ValueError, match="'central' or 'forward'"):
        figures.gradient_check_error(1e-3, "backward")


def test_the_matmuls_say_their_shapes() -> None:
    text = plots.alt_text(figures.three_matmuls(5, 3, 2))
    x, w, dy = torch.ones(5, 3), torch.ones(3, 2), torch.ones(5, 2)
    assert f"= {tuple((x @ w).shape)}. Weight: (3, 5) @ (5, 2) = {tuple((x.T @ dy).shape)}" in text
    assert text.endswith(f"= {tuple((dy @ w.T).shape)}. 60 FLOPs each")
    with pytest.raises(ValueError, match="at least 1"):
        figures.three_matmuls(0)


def test_the_arrows_of_a_batch_add_up_to_the_sum() -> None:
    gradients = example_gradients(8)
    each, total, mean = figures.batch_gradients(8).axes[0].collections
    assert (each.U.sum(), each.V.sum()) == pytest.approx((total.U.item(), total.V.item()))
    assert (total.U.item(), total.V.item()) == pytest.approx(tuple(8 * gradients.mean(axis=0)))
    assert (mean.U.item(), mean.V.item()) == pytest.approx(tuple(gradients.mean(axis=0)))
    with pytest.raises(ValueError, match="1 to 64"):
        figures.batch_gradients(65)


@pytest.mark.parametrize(("spread", "offset"), [(1.0, 0.0), (0.25, -3.0)])
def test_the_gradient_of_a_row_is_torchs(spread: float, offset: float) -> None:
    row = torch.tensor([-1.4, 0.3, 1.1, -0.2, 0.9, -0.7], dtype=torch.float64) * spread + offset
    row.requires_grad_()
    arriving = torch.tensor([0.8, 0.5, 1.2, -0.3, 0.9, 0.1], dtype=torch.float64)
    torch.nn.functional.layer_norm(row, (6,), eps=0.0).backward(arriving)
    _, leaving = figures.layernorm_gradient(spread, offset).axes[0].containers
    assert [bar.get_height() for bar in leaving] == pytest.approx(row.grad.tolist(), abs=1e-9)
    with pytest.raises(ValueError, match="positive"):
        figures.layernorm_gradient(0.0)


@pytest.mark.parametrize(("batch", "width"), [(64, 256), (3, 5)])
def test_the_bars_are_what_autograd_keeps(batch: int, width: int) -> None:
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
    with pytest.raises(ValueError, match="at least 1"):
        figures.saved_for_backward(0)


def test_until_there_is_a_value_the_course_s_trains() -> None:
    class Stub:
        def __init__(self, data: float) -> None:
            raise NotImplementedError

    def train(number: type) -> tuple[list[float], list[float]]:
        return [2.0, number(0.5).data], [1.0]

    assert "the course's Value, until yours is there" in plots.alt_text(figures.learning_curve(train, Stub))
    assert "your Value" in plots.alt_text(figures.learning_curve(train))
