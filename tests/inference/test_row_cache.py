"""A cache whose rows have lengths of their own."""

from __future__ import annotations

import pytest
import torch

from lmcourse.inference.row_cache import RowCache
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like


@pytest.fixture(scope="module")
def model() -> Transformer:
    torch.manual_seed(0)
    return Transformer(llama_like(2, 32, 4, 64, vocab_size=50, context=64, kv_heads=2)).double().eval()


@torch.no_grad()
def test_rows_that_join_and_leave_match_passes_without_a_cache(model: Transformer) -> None:
    texts = [[5, 6, 7, 8], [9, 1], [3]]
    cache, fresh = RowCache(2, 12), RowCache(2, 12)
    model(torch.tensor([texts[0], [*texts[1], 0, 0]]), kv_cache=cache)
    cache.truncate([4, 2])
    model(torch.tensor([texts[2]]), kv_cache=fresh)
    cache.join(fresh)
    cache.keep([2, 0])
    new = [[4, 2], [7, 7]]
    found = model(torch.tensor(new), kv_cache=cache)
    for row, text in enumerate((texts[2] + new[0], texts[0] + new[1])):
        torch.testing.assert_close(found[row], model(torch.tensor([text]))[0, -2:])
    assert cache.lengths == [3, 6]


@torch.no_grad()
def test_a_pass_that_does_not_fit_is_rejected(model: Transformer) -> None:
    cache = RowCache(2, 3)
    model(torch.tensor([[1, 2], [3, 4]]), kv_cache=cache)
    with pytest.raises(ValueError, match="do not fit into 3 places"):
        model(torch.tensor([[1, 2], [3, 4]]), kv_cache=cache)
    with pytest.raises(ValueError, match="a pass of 1 rows"):
        model(torch.tensor([[1]]), kv_cache=cache)
    with pytest.raises(ValueError, match="cannot keep"):
        cache.truncate([3, 1])
    with pytest.raises(ValueError, match="can be joined"):
        cache.join(RowCache(2, 4))


def test_dropping_all_rows_empties_the_cache(model: Transformer) -> None:
    cache = RowCache(2, 4)
    with torch.no_grad():
        model(torch.tensor([[1, 2]]), kv_cache=cache)
        cache.keep([])
        assert cache.lengths == []
        model(torch.tensor([[3], [4], [5]]), kv_cache=cache)
    assert cache.lengths == [1, 1, 1]
