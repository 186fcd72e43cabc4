"""Norm of a gradient after many steps back, in linear and tanh networks and in LSTMs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor, nn

from lmcourse.plots.style import GREY, PALETTE, describe, new_axes, new_figure

KINDS = ("linear", "tanh", "lstm")
WIDTH, STEPS = 64, 60
_COLOURS = ("blue", "vermilion", "orange", "purple", "green", "sky")
_RAISED = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def gradient_norms(
    kind: str = "tanh",
    radius: float = 1.0,
    forget_bias: float | None = None,
    inputs: float = 1.0,
    seed: int = 0,
) -> Tensor:
    """‖∂(v·m_T)/∂m_{T−k}‖ for k = 0 ... 59, in double precision: what remains of a gradient of length 1.

    Args:
        kind: "linear" (h ← W h + x), "tanh" (h ← tanh(W h + x)) or "lstm". m is the state h, or the cell c of an LSTM.
        radius: the spectral radius of W, its largest absolute eigenvalue; an LSTM keeps PyTorch's initial weights.
        forget_bias: the bias of an LSTM's forget gates; None keeps PyTorch's initial bias.
        inputs: the standard deviation of the inputs. Inputs, weights and v are random.
        seed: the seed of all random numbers.

    Raises:
        ValueError: there is no such kind.
    """
    if kind not in KINDS:
        raise ValueError(f"there is no kind {kind!r}; choose from {', '.join(KINDS)}")
    source = torch.Generator().manual_seed(seed)
    W, x, v, first = (
        torch.randn(*shape, generator=source, dtype=torch.float64)
        for shape in ((WIDTH, WIDTH), (STEPS, WIDTH), (WIDTH,), (WIDTH,))
    )
    states = _lstm_cells(inputs * x, forget_bias, seed) if kind == "lstm" else None
    if states is None:
        W *= radius / torch.linalg.eigvals(W).abs().max()
        states = _states(W, inputs * x, 0.01 * first, bent=kind == "tanh")
    gradients = torch.autograd.grad(states[-1] @ (v / v.norm()), states)
    return torch.stack([gradient.norm() for gradient in reversed(gradients)])


def _states(W: Tensor, x: Tensor, first: Tensor, *, bent: bool) -> list[Tensor]:
    """The state after each step; the first state is small, so that a network without inputs has a state other than
    0."""
    states, h = [], first.requires_grad_()
    for row in x:
        h = W @ h + row
        h = torch.tanh(h) if bent else h
        states.append(h)
    return states


def _lstm_cells(x: Tensor, forget_bias: float | None, seed: int) -> list[Tensor]:
    """The cells of an LSTM after each step."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        cell = nn.LSTMCell(WIDTH, WIDTH).double()
    if forget_bias is not None:
        with torch.no_grad():
            cell.bias_ih[WIDTH : 2 * WIDTH] = forget_bias
            cell.bias_hh[WIDTH : 2 * WIDTH] = 0.0
    cells, h, c = [], torch.zeros(1, WIDTH).double(), torch.zeros(1, WIDTH).double()
    for row in x:
        h, c = cell(row[None], (h, c))
        flat = c[0]
        cells.append(flat)
        c = flat[None]
    return cells


def gradient_lag(kind: str = "tanh", radius: float = 1.0, forget_bias: float = 0.0, inputs: float = 1.0) -> Figure:
    """Norm of a gradient against the number of steps back, for one network with three seeds."""
    curves = [gradient_norms(kind, radius, forget_bias, inputs, seed) for seed in range(3)]
    ends = sorted(curve[50].item() for curve in curves)
    settings = f"forget bias {forget_bias:.3g}" if kind == "lstm" else f"spectral radius {radius:.3g}"
    name = {"linear": "Linear network", "tanh": "tanh network", "lstm": "LSTM"}[kind]
    figure = new_figure(8.0, 4.0)
    axes = new_axes(figure, f"{name}, {settings}: {_size(ends[1])} is left after 50 steps", "steps back", "‖gradient‖")
    for curve in curves:
        axes.semilogy(_visible(curve), color=PALETTE["vermilion"], linewidth=1.4)
    _frame(axes)
    ignored = " A radius is set for the other two; the LSTM is as PyTorch makes it." if kind == "lstm" else ""
    caption = (
        f"State of {WIDTH} numbers, inputs with a standard deviation of {inputs:.2g}, three seeds; the grey line is a "
        f"gradient that keeps its length.{ignored}"
    )
    alt = (
        f"Length of a gradient against steps back, {name}, {settings}, inputs {inputs:.2g}; after 50 steps the middle "
        f"one of three seeds is {_size(ends[1])}"
    )
    return describe(figure, caption=caption, alt=alt)


def compare_networks(networks: Mapping[str, Mapping[str, object]]) -> Figure:
    """Gradient against lag for several networks, three seeds each.

    Args:
        networks: for each name the arguments of `gradient_norms`.
    """
    figure = new_figure(8.0, 4.4)
    axes = new_axes(figure, "What is left of a gradient, step by step back", "steps back", "‖gradient‖")
    told = []
    for colour, (name, settings) in zip(_COLOURS, networks.items(), strict=False):
        curves = [gradient_norms(**settings, seed=seed) for seed in range(3)]  # type: ignore[arg-type]
        for curve in curves:
            axes.semilogy(_visible(curve), color=PALETTE[colour], linewidth=1.2)
        middle = sorted(curve[50].item() for curve in curves)[1]
        axes.plot([], [], color=PALETTE[colour], linewidth=2.4, label=name)
        told.append(f"{name} {_size(middle)}")
    _frame(axes)
    axes.legend(frameon=False, fontsize=9, loc="lower left")
    caption = (
        f"Each line is a fresh network with a state of {WIDTH} numbers that reads {STEPS} random inputs, three seeds. "
        "The scale is logarithmic: a straight line downwards loses the same factor in each step. The "
        "grey line is a gradient that keeps its length."
    )
    return describe(
        figure, caption=caption, alt=f"Length of gradients 50 steps back, middle of three: {'; '.join(told)}"
    )


def sigmoid(bias: float) -> float:
    """Return the value of a gate that depends on its bias alone."""
    return 1 / (1 + math.exp(-bias))


def spans(measured: Mapping[float, Sequence[int | None]], steps: int = 200) -> Figure:
    """Number of steps back after which half of a gradient is lost, against the bias of the forget gate.

    Args:
        measured: for each bias the span of each seed; None if it is larger than `steps`.
        steps: the number of inputs that each network read.
    """
    figure = new_figure(8.0, 4.0)
    title = "How far an untrained LSTM remembers"
    axes = new_axes(figure, title, "bias of the forget gate", "steps until half is lost")
    line = [min(measured) + (max(measured) - min(measured)) * place / 50 for place in range(51)]
    alone = [math.log(0.5) / math.log(sigmoid(bias)) for bias in line]
    axes.semilogy(line, alone, color=PALETTE["blue"], linewidth=1.8, label="by the forget gate alone")
    inside = [(bias, span) for bias, each in measured.items() for span in each if span is not None]
    never = [bias for bias, each in measured.items() for span in each if span is None]
    axes.semilogy(*zip(*inside, strict=True), "o", color=PALETTE["vermilion"], label="measured, a dot for each seed")
    if never:
        axes.semilogy(never, [steps] * len(never), "^", color=PALETTE["vermilion"], label=f"beyond {steps} steps")
    axes.axhline(steps, color=GREY, linewidth=1, linestyle="--")
    axes.set_xticks(list(measured))
    axes.legend(frameon=False, fontsize=10, loc="lower right")
    caption = (
        "The line follows from σ(bias). Above it, other paths than the cell carry the gradient: the gates and the "
        "state h. The scale of the steps is logarithmic."
    )
    told = "; ".join(f"bias {bias:g}: {_spans(each, steps)}" for bias, each in measured.items())
    return describe(figure, caption=caption, alt=f"Steps until half of the gradient is lost, one number a seed. {told}")


def _spans(each: Sequence[int | None], steps: int) -> str:
    return ", ".join(f"beyond {steps}" if span is None else str(span) for span in each)


def _visible(curve: Tensor) -> Tensor:
    """Replace zeros, so that they have a place on the logarithmic scale."""
    return curve.clamp(min=1e-18)


def _frame(axes: Axes) -> None:
    axes.axhline(1.0, color=GREY, linewidth=1)
    axes.set_ylim(1e-16, 1e12)
    powers = range(-15, 11, 5)
    axes.set_yticks([10.0**power for power in powers], [f"$10^{{{power}}}$" if power else "1" for power in powers])
    axes.minorticks_off()
    axes.set_xlim(0, STEPS - 1)


def _size(value: float) -> str:
    """Return the order of magnitude, or one digit from 0.01 to 100, so that texts are the same on all processors."""
    if 0.01 <= value < 100:
        return f"about {float(f'{value:.1g}'):g}"
    exponent = str(round(math.log10(max(value, 1e-18))))
    return f"about 10{exponent.translate(_RAISED)}"
