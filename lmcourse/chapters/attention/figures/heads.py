"""Attention of the heads in the small model that ships with the course, on short texts."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from matplotlib.figure import Figure
from numpy.typing import NDArray

from lmcourse.data.token_file import TokenFile
from lmcourse.inference.attention_maps import attention_maps
from lmcourse.plots.style import describe, new_axes, new_figure
from lmcourse.pretrained import load_pretrained, pretrained_folder
from lmcourse.training.command.run_folder import VALIDATION

Array = NDArray[np.float64]

TEXTS = {
    "a sentence": "If the object is not a string, a TypeError exception is raised.",
    "a repetition": "The second argument is a list. The second argument is a list.",
    "code": "for name in names:\n    print(name)",
}
"""Texts on which the figure shows the heads."""

PATTERNS = ("the previous token", "itself", "the first token", "the token after an earlier copy")
"""Tokens that a head may look at; the last is the one that followed an earlier copy of this token (induction)."""

_FARTHEST = 8
_WINDOW, _WINDOWS = 128, 8


@cache
def weights_on(text: str) -> tuple[tuple[str, ...], Array]:
    """The tokens of one of TEXTS as readable text, and the weights of all heads on them, by layer, head, query and
    key."""
    trained = load_pretrained()
    tokens = trained.tokenizer.encode(TEXTS[text])
    shown = (trained.tokenizer.decode([token]).replace(" ", "·").replace("\n", "↵") for token in tokens)
    return tuple(shown), attention_maps(trained.model, torch.tensor(tokens)).numpy().astype(np.float64)


def heads(text: str = "a sentence") -> Figure:
    """All heads of the trained model on a text: a matrix of weights for each, and the average weight one token back.

    ValueError if there is no such text.
    """
    if text not in TEXTS:
        raise ValueError(f"there is no text {text!r}; choose from {', '.join(TEXTS)}")
    tokens, weights = weights_on(text)
    layers, count = weights.shape[:2]
    figure = new_figure(8.0, 8.6)
    grid = figure.add_gridspec(layers, count)
    one_back = np.array([[shares_by_distance(one)[1] for one in layer] for layer in weights])
    for layer, head in np.ndindex(layers, count):
        panel = new_axes(figure, "")
        panel.set_title(f"layer {layer}, head {head}: {one_back[layer, head]:.2f}", loc="left", fontsize=8.5)
        panel.set_subplotspec(grid[layer, head])
        panel.imshow(weights[layer, head], cmap="Blues", vmin=0, vmax=1, aspect="equal")
        panel.set_xticks(range(len(tokens)), tokens if layer == layers - 1 else [], rotation=90, fontsize=5)
        panel.set_yticks(range(len(tokens)), tokens if head == 0 else [], fontsize=5)
        panel.tick_params(length=0)
        panel.grid(visible=False)
    caption = (
        "All heads of the model that ships with the course. A row per query, a stronger colour is more, rows sum to "
        "one; · is a space. The number is the average weight on the token one back."
    )
    layer, head = np.unravel_index(int(one_back.argmax()), one_back.shape)
    alt = (
        f"Weights of {layers} × {count} heads on {text} of {len(tokens)} tokens. The most weight one token back, "
        f"{one_back.max():.2f}, has head {head} of layer {layer}; the median of all heads is {np.median(one_back):.2f}"
    )
    return describe(figure, caption=caption, alt=alt)


def shares_by_distance(weights: Array) -> list[float]:
    """The average weight on the token 0, 1, 2, … back, over the queries that have a token that far back."""
    return [float(np.diagonal(weights, -distance).mean()) for distance in range(min(_FARTHEST + 1, len(weights)))]


@cache
def scores(pattern: str) -> Array:
    """Fraction of attention that each head (column) of each layer (row) gives to one of PATTERNS, on held-out text.

    ValueError for an unknown pattern.
    """
    if pattern not in PATTERNS:
        raise ValueError(f"there is no pattern {pattern!r}; choose from {', '.join(PATTERNS)}")
    model = load_pretrained().model
    with TokenFile(pretrained_folder() / VALIDATION) as file:
        windows = [file[start * _WINDOW : (start + 1) * _WINDOW] for start in range(_WINDOWS)]
    each = [share(attention_maps(model, window).double(), window, pattern) for window in windows]
    return torch.stack(each).mean(dim=0).numpy()


def share(maps: torch.Tensor, tokens: torch.Tensor, pattern: str) -> torch.Tensor:
    """Fraction of attention that every head gives to a pattern in one text, of shape l h.

    Args:
        maps: weights, of shape l h s s.
        tokens: the tokens of the text. A token counts only if it sees a token of this pattern.
        pattern: one of PATTERNS.
    """
    length = len(tokens)
    if pattern == "the token after an earlier copy":
        copies = torch.tril(tokens[:, None] == tokens, -1)
        wanted = torch.nn.functional.pad(copies, (1, 0))[:, :length]  # shifted right by one: the token after the copy
    else:
        wanted = torch.zeros(length, length, dtype=torch.bool)
        distances = torch.arange(length)
        column = {"the previous token": distances - 1, "itself": distances, "the first token": 0 * distances}[pattern]
        wanted[distances[1:], column[1:]] = True
    return (maps * wanted).sum(dim=-1)[..., wanted.any(dim=-1)].mean(dim=-1)


def head_scores(pattern: str = PATTERNS[0]) -> Figure:
    """Fraction of attention that each head of the trained model gives to one kind of token: a table of layers and
    heads.

    ValueError for a pattern that is not in PATTERNS.
    """
    found = scores(pattern)
    figure = new_figure(8.0, 3.4)
    panel = new_axes(figure, f"Attention to {pattern}", "head", "layer")
    panel.imshow(found, cmap="Blues", vmin=0, vmax=1, aspect="auto")
    for (layer, head), share in np.ndenumerate(found):
        panel.text(
            head, layer, f"{share:.2f}", ha="center", va="center", fontsize=9, color="white" if share > 0.6 else "black"
        )
    panel.set_xticks(range(found.shape[1]))
    panel.set_yticks(range(found.shape[0]))
    panel.grid(visible=False)
    layer, head = np.unravel_index(int(found.argmax()), found.shape)
    caption = f"The average fraction over {_WINDOWS * _WINDOW:,} tokens that the model was not trained on."
    alt = (
        f"Fraction of the attention to {pattern}, by layer and head: most in layer {layer}, head {head}, "
        f"{found.max():.2f}; median {np.median(found):.2f}"
    )
    return describe(figure, caption=caption, alt=alt)
