"""Compare the mask of every pattern with its definition, pair by pair."""

from __future__ import annotations

import random

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from lmcourse.nn.attention_pattern import PADDING_POSITION, AttentionPattern
from lmcourse.nn.context import ForwardContext

SIZED = ("window", "chunk", "strided", "fixed")


def in_words(kind: str, size: int | None, q: int, k: int) -> bool:
    """Return the definition of a pattern for one pair, without causality."""
    if size is None or kind == "full":
        return True
    distance, blocks = abs(q - k), (q // size, k // size)
    if kind == "window":
        return distance < size
    if kind == "chunk":
        return blocks[0] == blocks[1]
    if kind == "strided":
        return distance < size or distance % size == 0
    return blocks[0] == blocks[1] or (k + 1) % size == 0


rules = st.one_of(
    st.builds(AttentionPattern, causal=st.booleans()),
    st.builds(AttentionPattern, kind=st.sampled_from(SIZED), size=st.integers(1, 7), causal=st.booleans()),
)
EVERY_RULE = [AttentionPattern(), AttentionPattern(causal=False)] + [
    AttentionPattern(kind, size, causal)  # type: ignore[arg-type]
    for kind in SIZED
    for size in (1, 2, 5)
    for causal in (True, False)
]


def visible(pattern: AttentionPattern, prefix: int | None, q: int, k: int) -> bool:
    allowed = not pattern.causal or k <= q or (prefix is not None and k < prefix)
    return k != PADDING_POSITION and allowed and in_words(pattern.kind, pattern.size, q, k)


@pytest.mark.parametrize("prefix", [None, 0, 5])
def test_every_pair_follows_the_rule_in_words(prefix: int | None) -> None:
    places = list(range(-1, 18))
    told = None if prefix is None else torch.tensor([prefix])
    wrong = []
    for pattern in EVERY_RULE:
        seen = pattern.visible(torch.tensor([places]), torch.tensor([places]), told)[0].tolist()
        if seen != [[visible(pattern, prefix, q, k) for k in places] for q in places]:
            wrong.append(pattern)
    assert wrong == []


@given(pattern=rules, places=st.lists(st.integers(0, 40), min_size=2, max_size=9), order=st.randoms())
def test_masks_depend_only_on_positions(pattern: AttentionPattern, places: list[int], order: random.Random) -> None:
    """A key's visibility depends on its position, not on its place in memory, which a rolling cache requires."""
    shuffled = order.sample(range(len(places)), len(places))
    query, key = torch.tensor([places[:3]]), torch.tensor([places])
    assert torch.equal(pattern.visible(query, key[:, shuffled]), pattern.visible(query, key)[..., shuffled])


def test_each_row_can_have_a_different_prefix() -> None:
    at = torch.arange(4).expand(2, 4)
    seen = AttentionPattern().visible(at, at, torch.tensor([0, 3]))
    assert seen[0].sum(-1).tolist() == [1, 2, 3, 4]
    assert seen[1].sum(-1).tolist() == [3, 3, 3, 4]


@given(pattern=rules, length=st.integers(1, 20))
def test_pattern_properties_match_the_mask(pattern: AttentionPattern, length: int) -> None:
    """`span`, `sparse` and `is_causal_within` allow the fused form to skip the mask, so they must be exact."""
    at = torch.arange(length)[None]
    seen = pattern.visible(at, at)[0]
    if pattern.is_causal_within(length):
        assert torch.equal(seen, torch.ones(length, length).tril().bool())
    if pattern.span is not None and pattern.causal:
        assert all(int(row.nonzero().min()) > q - pattern.span for q, row in enumerate(seen))
    if pattern.causal and not pattern.sparse:
        for row in seen:
            places = row.nonzero().flatten()
            assert len(places) == places.max() - places.min() + 1


@pytest.mark.parametrize("kind", SIZED)
def test_sizes_are_required_or_rejected_by_kind(kind: str) -> None:
    with pytest.raises(ValueError, match=f"{kind} attention needs a size of at least 1, not None"):
        AttentionPattern(kind)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not 0"):
        AttentionPattern(kind, 0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="full attention takes no size"):
        AttentionPattern("full", 4)


@pytest.mark.parametrize(
    "pattern",
    [
        AttentionPattern(),
        AttentionPattern(causal=False),
        *(AttentionPattern(kind, 4) for kind in ("window", "chunk", "strided", "fixed")),
        AttentionPattern("window", 4, causal=False),
    ],
    ids=str,
)
@pytest.mark.parametrize("prefixes", [None, torch.tensor([0, 3, 9])])
def test_equal_rows_share_one_mask(pattern: AttentionPattern, prefixes: torch.Tensor | None) -> None:
    """The mask is shared in memory, and it equals the mask of every row alone."""
    positions = torch.arange(12).expand(3, 12)
    visible, _ = ForwardContext(positions, prefix_lengths=prefixes).mask(pattern, positions)
    assert torch.equal(visible, pattern.visible(positions.contiguous(), positions.contiguous(), prefixes))
    if prefixes is None or not pattern.causal:
        assert visible.untyped_storage().nbytes() <= 12 * 12
