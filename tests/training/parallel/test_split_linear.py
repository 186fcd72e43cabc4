"""Matrices that lie in one are taken apart without a change to what they compute."""

from __future__ import annotations

from copy import deepcopy

import pytest
import torch

from lmcourse.training.parallel.split_linear import find_fused, split_tensor, unfuse
from tests.training.parallel.together import MODELS, model


@pytest.mark.parametrize("name", MODELS)
def test_it_computes_the_same_with_the_same_weights(name: str) -> None:
    whole = model(name)
    with torch.no_grad():
        for parameter in whole.parameters():
            parameter += torch.randn_like(parameter) / 10  # biases too
    apart = deepcopy(whole)
    cuts = find_fused(whole)
    unfuse(apart, cuts)
    tokens = torch.arange(12)[None]
    torch.testing.assert_close(apart(tokens), whole(tokens), rtol=1e-5, atol=1e-5)
    expected = {part: value for n, p in whole.named_parameters() for part, value in split_tensor(n, p, cuts)}
    found = dict(apart.named_parameters())
    assert found.keys() == expected.keys()
    assert all(torch.equal(found[part], expected[part]) for part in found)
    assert find_fused(apart) == cuts


def test_pieces_are_views_and_a_number_belongs_to_all() -> None:
    """Who reads a checkpoint into the pieces has read it into the whole."""
    cuts = {"a.qkv": {"q": 2, "k": 1, "v": 1}}
    weight = torch.zeros(4, 3)
    for number, (_, piece) in enumerate(split_tensor("a.qkv.weight", weight, cuts), start=1):
        piece.fill_(number)
    assert weight[:, 0].tolist() == [1, 1, 2, 3]
    step = torch.tensor(5.0)
    assert [name for name, value in split_tensor("a.qkv.weight", step, cuts) if value is step] == [
        f"a.qkv.{part}.weight" for part in ("q", "k", "v")
    ]
    assert list(split_tensor("a.out.weight", weight, cuts)) == [("a.out.weight", weight)]
