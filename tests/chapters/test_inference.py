"""Notebook 17: references against independent sources, and what its figures show."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import pairwise

import pytest
import torch
from torch import Tensor

from lmcourse import plots
from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.kv_cache import cache_bytes
from lmcourse.accounting.latency import forward_operations, roofline_seconds
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.inference import exercises, figures, server
from lmcourse.chapters.inference.measured import (
    Draft,
    held_out,
    print_what_stays,
)
from lmcourse.chapters.inference.recorder import LoadedDice, TokenCache, at_temperature_2, print_all_drafts
from lmcourse.exercises.forbidden_names import full_name, matches
from lmcourse.exercises.open_task import Unfit
from lmcourse.inference import sampling
from lmcourse.inference.cache import Cache
from lmcourse.inference.own_loop import Dice, InOurModel
from lmcourse.inference.row_cache import RowCache
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from tests.plots.figures import said


def test_filters_match_the_package() -> None:
    logits = torch.randn(20, 30, generator=torch.Generator().manual_seed(1)) * 2
    for k, p, m in ((5, None, None), (None, 0.7, None), (None, None, 0.1), (9, 0.8, 0.05), (30, 1.0, 1.0)):
        rules = sampling.Sampling(1.0, k, p, m)
        torch.testing.assert_close(exercises.filter_logits.reference(logits, k, p, m), rules.logits(logits))
    found = exercises.temperature_probabilities.reference(logits, 0.7)
    torch.testing.assert_close(found, (logits / 0.7).softmax(-1))


@torch.no_grad()
def test_a_model_decodes_equally_with_both_caches() -> None:
    torch.manual_seed(0)
    config = llama_like(2, 32, 4, 64, vocab_size=50, context=32, kv_heads=2)
    model = Transformer(config).double().eval()
    text, wrong = torch.randint(50, (2, 12)), torch.randint(50, (2, 3))
    kept, ours = exercises.KVCache.reference(2, 16), Cache(config, 16)
    for part in (text[:, :7], wrong):
        model(part, kv_cache=InOurModel(kept))
    kept.truncate(7)
    found = [model(part, kv_cache=InOurModel(kept)) for part in (text[:, 7:8], text[:, 8:])]
    full = model(text)
    model(text, kv_cache=ours)
    torch.testing.assert_close(torch.cat(found, dim=1), full[:, 7:])
    assert kept.nbytes == ours.bytes == cache_bytes(config, 2, 16, precision="fp64").total


def test_a_timed_step_leaves_a_real_cache_at_its_length() -> None:
    torch.manual_seed(0)
    model = Transformer(llama_like(2, 32, 4, 64, vocab_size=50, context=32)).eval()
    kept, looks = exercises.KVCache.reference(2, 6), iter(range(100))
    model(torch.randint(50, (3, 5)), kv_cache=InOurModel(kept))
    with torch.no_grad():
        seconds = exercises.decode_seconds.reference(
            lambda: model(torch.zeros(3, 1, dtype=torch.long), kv_cache=InOurModel(kept)),
            kept,
            lambda: None,
            lambda: float(next(looks)),
            past=5,
            repeats=4,
        )
    assert (seconds, len(kept), next(looks)) == (1.0, 5, 10)


def test_decode_step_warns_beyond_the_trained_context() -> None:
    assert "at most 2,048 tokens" in said(figures.decode_step("falcon-40b", context=4096))
    assert "at most" not in said(figures.decode_step("llama-3-8b", context=8192))


def test_two_terms_match_the_roofline_of_all_operators() -> None:
    batch = 32
    chip, config = find_accelerator("h100-sxm"), find_model("llama-3-8b").decoder
    cached = cache_bytes(config, 1, 4096).total
    given = (count_parameters(config).total, cached, batch, 1, chip.peak("bf16"), chip.bandwidth)
    seconds, limit = exercises.pass_seconds.reference(*given)
    whole = roofline_seconds(forward_operations(config, batch, 1, past=4095), chip, "bf16").total
    assert (seconds, limit) == (pytest.approx(whole, rel=0.08), "memory")


def test_static_batch_use_is_one_over_a_harmonic_number() -> None:
    slots = 32
    dice = random.Random(slots)
    lengths = [1 + int(dice.expovariate(1 / 400)) for _ in range(40 * slots)]
    use = exercises.batch_use.reference(lengths, slots, False)
    assert use == pytest.approx(1 / sum(1 / i for i in range(1, slots + 1)), rel=0.1)
    assert exercises.batch_use.reference(lengths, slots, True) > 0.9


def _after(p: list[Fraction], q: list[Fraction], token: int) -> tuple[Fraction, list[Fraction]]:
    """The probability that the reference keeps a token, and the distribution from which it draws otherwise."""
    rows, tokens = torch.tensor([[float(x) for x in p]] * 2, dtype=torch.float64), torch.tensor([token])
    small = torch.tensor([[float(x) for x in q]], dtype=torch.float64)
    ratio = float(min(Fraction(1), p[token] / q[token]))
    answers = [
        exercises.speculate.reference(rows, small, tokens, torch.tensor([chance], dtype=torch.float64))
        for chance in (max(ratio - 1e-9, 0.0), min(ratio + 1e-9, 1 - 1e-9))
    ]
    (below, _), (above, rest) = answers
    if ratio < 1:
        assert (below, above) == (1, 0)
        return Fraction(ratio), [Fraction(x) for x in rest.tolist()]
    assert (below, above) == (1, 1)
    return Fraction(1), []


@pytest.mark.parametrize("seed", [0, 1])
def test_speculative_tokens_have_the_sampled_distribution(seed: int) -> None:
    dice = random.Random(seed)
    p, q = ([Fraction(n, 64) for n in _parts(dice)] for _ in range(2))
    found = [Fraction(0)] * 4
    for token, share in enumerate(q):
        stays, rest = _after(p, q, token)
        found[token] += share * stays
        for other, part in enumerate(rest):
            found[other] += share * (1 - stays) * part
    assert [float(x) for x in found] == pytest.approx([float(x) for x in p], abs=1e-12)


def _parts(dice: random.Random) -> list[int]:
    """Four positive whole numbers with the sum 64."""
    cuts = [0, *sorted(dice.sample(range(1, 64), 3)), 64]
    return [b - a for a, b in pairwise(cuts)]


SURE, UNSURE = figures.BEGINNINGS


def test_no_fixed_k_fits_both_sure_and_unsure_predictions() -> None:
    kept = {
        (place, rule): int(plots.alt_text(figures.next_token(place, **{rule: number})).split(":")[1].split()[0])
        for place in (SURE, UNSURE)
        for rule, number in (("top_p", 0.9), ("min_p", 0.1), ("top_k", 5))
    }
    assert kept[SURE, "top_k"] == kept[UNSURE, "top_k"] == 5
    assert kept[SURE, "top_p"] <= 4 < 20 < kept[UNSURE, "top_p"]
    assert kept[SURE, "min_p"] < kept[UNSURE, "min_p"]


def test_drafted_greedy_text_is_the_plain_greedy_text() -> None:
    model, prompt = server.small_model(), [5, 6, 7, 8]

    def best(logits: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(logits.argmax(-1), server.VOCABULARY).double()

    def guess(text: list[int]) -> tuple[list[int], Tensor]:
        guessed = [*text[-3:-1], 1]
        return guessed, torch.nn.functional.one_hot(torch.tensor(guessed), server.VOCABULARY).double()

    plain, caches = exercises.write.reference, [InOurModel(exercises.KVCache.reference(2, 60)) for _ in range(2)]
    texts = [
        plain(model, prompt, 30, lambda logits: int(logits.argmax())),
        plain(model, prompt, 30, lambda logits: int(logits.argmax()), caches[0]),
        exercises.write_with_draft.reference(model, prompt, 30, guess, caches[1], best, Dice()),
    ]
    assert texts[0] == texts[1] == texts[2]


def test_all_drafts_together_have_the_models_distribution(capsys: pytest.CaptureFixture[str]) -> None:
    print_all_drafts(exercises.speculate.reference)
    plain, speculated, from_p, largest = capsys.readouterr().out.splitlines()
    assert plain.split(":")[1].strip() == speculated.split(":")[1].strip() == "[0.5, 0.3, 0.2]"
    assert from_p.endswith("[0.35, 0.39, 0.26]")
    assert float(largest.split()[-1]) < 1e-14


def test_loaded_dice_draw_by_cumulative_probability() -> None:
    dice = LoadedDice([0.1, 0.2], [0.0, 0.49, 0.5, 0.99])
    assert [dice.draw(torch.tensor([1.0, 0.0, 1.0])) for _ in range(4)] == [0, 0, 2, 2]
    assert dice.chances(2).tolist() == [0.1, 0.2]
    with pytest.raises(ValueError, match="more often"):
        dice.chances(1)
    with pytest.raises(ValueError, match="cannot keep"):
        TokenCache([1]).truncate(2)


def test_draft_guesses_from_counts_of_the_held_out_text() -> None:
    guessed, q = Draft(at_temperature_2, Dice(), 3)(list(held_out()[:5]))
    assert len(guessed) == len(q) == 3
    assert q.sum(-1).tolist() == pytest.approx([1, 1, 1])


def test_only_the_first_layer_of_a_moving_window_stays(capsys: pytest.CaptureFixture[str]) -> None:
    print_what_stays("The value of an expression is the result of")
    rows = [line.split()[-5:] for line in capsys.readouterr().out.splitlines()]
    assert rows[1:] == [["same"] * 5, ["same", *["new"] * 4]]


def test_a_server_may_use_the_cache_and_dice_of_before() -> None:
    assert not any(matches(full_name(one), exercises.serve.rules) for one in (InOurModel, Dice, RowCache))


def test_a_server_that_reads_nothing_is_rejected() -> None:
    right = {key: server._task(server.SETS[0], *key)[1] for key in ((4, 160, 3), (12, 16, 0))}
    with pytest.raises(Unfit, match="these texts need"):
        server.inspect_server(lambda model, orders: right[(4, 160, 3) if len(orders) == 4 else (12, 16, 0)])
