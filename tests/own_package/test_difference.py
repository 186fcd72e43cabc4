"""Only the first sub-layer that differs is reported, by its result or by its gradients."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
import torch
from torch import Tensor

from lmcourse.course.chapters import find_chapter
from lmcourse.models.parity.difference import Difference, find_difference
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import gpt_like, llama_like
from lmcourse.own_package.modules import PARTS
from lmcourse.own_package.package.model import with_theta
from lmcourse.own_package.saved_answers import printed_notebooks
from lmcourse.own_package.standalone import needed
from lmcourse.pretrained import load_pretrained

Parts = Mapping[str, Callable[..., Any]]


def rms_norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    return torch.nn.functional.rms_norm(x, x.shape[-1:], scale, eps)


@pytest.fixture(scope="module")
def parts(course: Any) -> Parts:
    """Return the printed solutions of the notebooks."""
    found: dict[str, Callable[..., Any]] = {}
    for number in sorted(set(PARTS.values())):
        chapter = find_chapter(number)
        notebook = printed_notebooks([chapter], course)[chapter]
        names: dict[str, Any] = {}
        for name in (name for name in PARTS if PARTS[name] == number):
            statements, _ = needed(notebook.cells, notebook.places[name], name)
            exec("\n".join(one.text for one in statements), names)
            found[name] = names[name]
    return {**found, "rope": with_theta(found["rope"])}


@pytest.fixture(scope="module")
def tokens() -> Tensor:
    return torch.randint(0, 512, (2, 20), generator=torch.Generator().manual_seed(0))


def grouped() -> Transformer:
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 32, 4, 64, vocab_size=512, context=32, kv_heads=2, theta=500.0)).eval()
    with torch.no_grad():
        model.embedding.tokens.weight.mul_(0.05)  # as small as after `initialize`, so that ε matters
    return model


@pytest.mark.parametrize("model", [lambda: load_pretrained().model, grouped], ids=["trained", "grouped"])
def test_correct_parts_do_not_differ(model: Callable[[], Transformer], parts: Parts, tokens: Tensor) -> None:
    assert find_difference(parts, model(), tokens) is None


def unscaled(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    return rms_norm(x, torch.ones_like(scale), eps)


def without_eps(x: Tensor, scale: Tensor, eps: float) -> Tensor:
    return rms_norm(x, scale, 0.0)


def halves_rotated(parts: Parts) -> Parts:
    """Apply RoPE in the order of most published weights, which pairs i with i + d/2."""

    def rope(x: Tensor, positions: Tensor, base: float) -> Tensor:
        paired = torch.stack(x.chunk(2, dim=-1), dim=-1).flatten(-2)
        turned: Tensor = parts["rope"](paired, positions, base)
        return torch.cat([turned[..., ::2], turned[..., 1::2]], dim=-1)

    return {**parts, "rope": rope}


def future_seen(parts: Parts) -> Parts:
    return {
        **parts,
        "grouped_query_attention": lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
            q, k, v, enable_gqa=True
        ),
    }


def gate_exchanged(parts: Parts) -> Parts:
    return {**parts, "glu_ffn": lambda x, gate, up, down, kind: parts["glu_ffn"](x, up, gate, down, kind)}


def old_stream(parts: Parts) -> Parts:
    def parallel(x: Tensor, attention: Any, feed_forward: Any, norm_1: Any, norm_2: Any, _: bool) -> Tensor:
        return x + attention(norm_1(x)) + feed_forward(norm_2(x))

    return {**parts, "block": parallel}


def doubled(name: str) -> Callable[[Parts], Parts]:
    return lambda parts: {**parts, name: lambda *given: 2 * parts[name](*given)}


def copied_targets(parts: Parts) -> Parts:
    def loss(logits: Tensor, tokens: Tensor) -> Tensor:
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())

    return {**parts, "causal_lm_loss": loss}


def spoiling(parts: Parts) -> Parts:
    """Return a right norm that overwrites its input, and a wrong part after it."""

    def emptying(x: Tensor, scale: Tensor, eps: float) -> Tensor:
        y = rms_norm(x, scale, eps)
        x.zero_()
        return y

    return {**gate_exchanged(parts), "rms_norm": emptying}


@pytest.mark.parametrize(
    ("spoil", "place", "part"),
    [
        (lambda parts: {**parts, "rms_norm": unscaled}, "block 0, norm before attention", "rms_norm"),
        (lambda parts: {**parts, "rms_norm": without_eps}, "block 0, norm before attention", "rms_norm"),
        (halves_rotated, "block 0, rotary embedding", "rope"),
        (future_seen, "block 0, attention", "grouped_query_attention"),
        (gate_exchanged, "block 0, feed-forward", "glu_ffn"),
        (doubled("self_attention"), "block 0, attention with its matrices", "self_attention"),
        (old_stream, "block 0, all of it", "block"),
        (doubled("decoder"), "logits", "decoder"),
        (copied_targets, "loss", "causal_lm_loss"),
        (spoiling, "block 0, feed-forward", "glu_ffn"),
    ],
)
def test_the_wrong_part_is_named(
    spoil: Callable[[Parts], Parts], place: str, part: str, parts: Parts, tokens: Tensor
) -> None:
    model = grouped()
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "norm" in name:
                weight.mul_(1.5)  # with scale 1, a norm that forgets its scale would be right
    found = find_difference(spoil(parts), model, tokens)
    assert found is not None
    assert (found.place, found.part) == (place, part)
    assert str(found).startswith(f"{place}: `{part}` differs by up to ")


def detached_values(parts: Parts) -> Parts:
    attend = parts["grouped_query_attention"]
    return {**parts, "grouped_query_attention": lambda q, k, v: attend(q, k, v.detach())}


def detached_root(parts: Parts) -> Parts:
    def norm(x: Tensor, scale: Tensor, eps: float) -> Tensor:
        return x * scale / (x.square().mean(-1, keepdim=True) + eps).sqrt().detach()

    return {**parts, "rms_norm": norm}


def detached_stream(parts: Parts) -> Parts:
    def decoder(tokens: Tensor, weights: Any, sizes: Any, functions: Parts) -> Any:
        norm, last = functions["rms_norm"], weights["norm"]
        cut = {"rms_norm": lambda x, scale, eps: norm(x.detach() if scale is last else x, scale, eps)}
        return parts["decoder"](tokens, weights, sizes, {**functions, **cut})

    return {**parts, "decoder": decoder}


@pytest.mark.parametrize(
    ("cut", "told"),
    [
        (
            detached_values,
            "block 0, attention: `grouped_query_attention` has the right result, and gives `v` no gradient",
        ),
        (
            lambda parts: {**parts, "self_attention": torch.no_grad()(parts["self_attention"])},
            "block 0, attention with its matrices: `self_attention` has the right result, and lets no gradient through",
        ),
        (
            detached_root,
            "block 0, norm before attention: `rms_norm` has the right result, and gives `x` a gradient that is wrong",
        ),
        (
            detached_stream,
            'logits: `decoder` has the right result, and gives `weights["embedding"]` no gradient',
        ),
        (
            lambda parts: {**parts, "causal_lm_loss": lambda z, t: parts["causal_lm_loss"](z, t).detach()},
            "loss: `causal_lm_loss` has the right result, and lets no gradient through",
        ),
        (
            lambda parts: {**detached_values(parts), "glu_ffn": gate_exchanged(parts)["glu_ffn"]},
            "block 0, feed-forward: `glu_ffn` differs",
        ),
    ],
    ids=["values", "part", "root", "stream", "loss", "results first"],
)
def test_a_cut_gradient_is_named_when_results_agree(
    cut: Callable[[Parts], Parts], told: str, parts: Parts, tokens: Tensor
) -> None:
    assert str(find_difference(cut(parts), grouped(), tokens)).startswith(told)


def test_only_the_first_of_two_wrong_parts_is_named(parts: Parts, tokens: Tensor) -> None:
    """A norm that is right only for the first block's scale is reported in the second block."""
    model = grouped()
    with torch.no_grad():
        model.blocks[1].attention.input_norm.weight.mul_(2.0)
    found = find_difference(gate_exchanged({**parts, "rms_norm": unscaled}), model, tokens)
    assert found is not None
    assert found.part == "glu_ffn"
    found = find_difference({"rms_norm": unscaled}, model, tokens)
    assert found is not None
    assert found.place == "block 1, norm before attention"


def test_an_error_a_shape_and_a_nan_are_differences(tokens: Tensor) -> None:
    def broken(x: Tensor, scale: Tensor, eps: float) -> Tensor:
        raise RuntimeError("no\nsecond line")

    model = grouped()
    for norm, what in [
        (broken, "raises RuntimeError: no"),
        (lambda x, scale, eps: x[:1], "gives shape (1, 20, 32), not (2, 20, 32)"),
        (lambda x, scale, eps: x * torch.nan, "differs by up to nan"),
    ]:
        found = find_difference({"rms_norm": norm}, model, tokens)
        assert isinstance(found, Difference)
        assert found.what.startswith(what)


def test_a_model_with_unknown_parts_is_rejected(parts: Parts, tokens: Tensor) -> None:
    model = Transformer(gpt_like(1, 16, 4, vocab_size=512, context=32))
    with pytest.raises(ValueError, match="these parts need a model with"):
        find_difference(parts, model, tokens)
    with pytest.raises(ValueError, match="there is no part called norm"):
        find_difference({"norm": rms_norm}, grouped(), tokens)


def test_a_loss_without_a_gradient_is_compared_too(tokens: Tensor) -> None:
    found = find_difference({"next_token_loss": lambda logits, tokens: 0.0}, grouped(), tokens)
    assert found is not None
    assert (found.place, found.part) == ("loss", "next_token_loss")
