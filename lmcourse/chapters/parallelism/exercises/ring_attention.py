"""The optional exercise on ring attention, whose tokens are divided among the workers."""

from __future__ import annotations

from random import Random

import torch
import torch.nn.functional as F
from torch import Tensor

from lmcourse.chapters.parallelism.exercises.inputs import ask
from lmcourse.chapters.parallelism.worker import Worker
from lmcourse.exercises.cases import Case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.inputs import normal64
from lmcourse.nn.attend import block_update


def with_the_fused_kernel(worker: Worker, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    keys, values = {worker.rank: k}, {worker.rank: v}
    for turn in range(worker.size - 1):
        at = (worker.rank - turn) % worker.size
        worker.send((worker.rank + 1) % worker.size, torch.cat([keys[at], values[at]], 1))
        arrived = worker.receive((worker.rank - 1) % worker.size)
        before = (at - 1) % worker.size
        keys[before], values[before] = arrived.chunk(2, 1)
    seen = range(worker.rank + 1)
    k, v = torch.cat([keys[rank] for rank in seen]), torch.cat([values[rank] for rank in seen])
    mask = torch.ones(len(q), len(k), dtype=torch.bool).tril(len(k) - len(q))
    return F.scaled_dot_product_attention(q[None, None], k[None, None], v[None, None], attn_mask=mask)[0, 0]


def _ask(name: str, random: Random, workers: int, t: int, d: int, *also: str, scale: float = 1.0) -> Case:
    """A case in which each worker has `t` tokens. It looks at the results, and at `also`."""
    qs, ks, vs = ([normal64(random, t, d, scale=size) for _ in range(workers)] for size in (scale, scale, 1.0))
    return ask(name, "ring_attention, qs, ks, vs", "run.results", *also, qs=qs, ks=ks, vs=vs)


SENT = ("run.sent", "run.links")


def _hidden(random: Random) -> list[Case]:
    fixed = Random(7)
    return [
        _ask("one worker", fixed, 1, 3, 2, *SENT),
        _ask("more workers", fixed, 5, 2, 3, *SENT),
        _ask("one token each", fixed, 4, 1, 2),
        _ask("one feature", fixed, 3, 2, 1, *SENT),
        _ask("scores in the thousands", fixed, 3, 2, 4, scale=60.0),
        _ask("other shapes", random, 3, random.randint(2, 4), random.randint(2, 5)),
    ]


ring_attention = Exercise(
    "ring_attention",
    points=3,
    minutes=15,
    difficulty=3,
    reference=with_the_fused_kernel,
    cases=[
        _ask("one worker", Random(1), 1, 2, 2),
        _ask("two workers, two tokens each", Random(2), 2, 2, 3, "run.changed"),
        _ask("four workers", Random(3), 4, 3, 2, *SENT),
        _ask("scores in the thousands", Random(4), 3, 2, 2, scale=40.0),
    ],
    hidden_cases=_hidden,
    hints=[
        "Begin with your own keys: top = −∞, total = 0, numerator = 0, and a triangular mask. Then every row has seen "
        "a key.",
        "After round s you hold the keys of rank − s (modulo N). If that rank is before yours, all its tokens are "
        "visible; if it is after yours, none are.",
        "Pass on the block that arrived last, not your own keys again: replace k, v by what you receive.",
        "In each round: send torch.stack([k, v]) to the right, receive the same from the left, and call block_update "
        "only if the block is from an earlier rank. At the end return numerator / total.",
    ],
    may_use_package=True,
)
ring_attention.variant(with_the_fused_kernel)


for _start in ("torch.ones_like(q)", "q"):
    ring_attention.equivalent_mutant(
        "state = (q.new_full((len(q), 1), -torch.inf), q.new_zeros(len(q), 1), torch.zeros_like(q)) → "
        f"state = (q.new_full((len(q), 1), -torch.inf), q.new_zeros(len(q), 1), {_start})",
        "The first block multiplies the old sum by exp(-inf), which is 0.",
    )


@ring_attention.variant
def block_by_block(worker: Worker, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    n, t = worker.size, len(q)
    state = q.new_full((t, 1), -torch.inf), q.new_zeros(t, 1), torch.zeros_like(q)
    for turn in range(n):
        rank = (worker.rank - turn) % n
        if rank <= worker.rank:
            scores = q @ k.T / q.shape[1] ** 0.5
            if rank == worker.rank:
                scores = scores.masked_fill(torch.ones(t, t).triu(1).bool(), -torch.inf)
            state = block_update(*state, scores, v)
        if turn < n - 1:
            worker.send((worker.rank + 1) % n, torch.stack([k, v]))
            k, v = worker.receive((worker.rank - 1) % n)
    return state[2] / state[1]


ring_attention.slips(
    block_by_block,
    {
        "rank <= worker.rank → True ;; rank == worker.rank → False": "Your tokens see the future. Hide the keys of "
        "later ranks, and the later keys within your own block.",
        "rank <= worker.rank → True ;; rank == worker.rank → True": "You mask every block with a triangle. All keys "
        "of an earlier rank are visible, and none of a later one.",
        "rank <= worker.rank → True": "You mask your own block only. The keys of later ranks are the future, too: "
        "pass them on, and do not use them.",
        "rank <= worker.rank → turn == 0": "Your tokens see only the keys of their own worker. Use the blocks that "
        "arrive, too.",
        "worker.rank - turn → worker.rank - max(turn - 1, 0)": "You assign the blocks to the wrong ranks. The block "
        "that arrives in round s comes from rank − s.",
        "rank <= worker.rank → rank >= worker.rank": "Your tokens see the blocks of later ranks but not of earlier "
        "ranks. The past is in the ranks below yours.",
        "triu(1) → triu()": "Your mask hides a token from itself. It sees itself and the tokens before it.",
        "torch.stack([k, v]) → k ;; k, v = → k =": "You pass on the keys and keep your own values. A weight belongs "
        "to a key and its value: pass on both.",
        "for turn → parts = []\n    for turn ;; state = block_update(*state, scores, v) → "
        "parts.append(scores.softmax(1) @ v) ;; state[2] / state[1] → torch.stack(parts).mean(0)": "You average the "
        "results of the blocks. A block with larger scores counts more: divide once, at the end.",
        "for turn → parts = []\n    for turn ;; state = block_update(*state, scores, v) → "
        "parts.append(scores.softmax(1) @ v) ;; state[2] / state[1] → torch.stack(parts).sum(0)": "You add the "
        "results of the blocks: the weights of a token then sum to more than 1.",
        " ** 0.5 → ": "You divide the scores by d. Divide them by √d.",
        "state = block_update(*state, scores, v) → top = torch.maximum(state[0], scores.amax(1, keepdim=True))"
        "\n            weights = (scores - top).exp()\n            state = top, state[1] + weights.sum(1, "
        "keepdim=True), state[2] + weights @ v": "When a block has a larger score than those before, you do not "
        "rescale the old sums: multiply them by exp(old top − new top).",
        "worker.rank - turn → worker.rank + turn": "You take the block of round s for that of rank + s. It comes from "
        "the left, so it is that of rank − s.",
        "if rank <= worker.rank: → if rank > worker.rank:\n            break\n        if rank <= worker.rank:": "You "
        "leave the ring at the first block of a later rank. Pass it on all the same: the others still wait for it.",
        "range(n) → range(worker.rank + 1) ;; if turn < n - 1:\n            worker.send((worker.rank + 1) % n, "
        "torch.stack([k, v]))\n            k, v = worker.receive((worker.rank - 1) % n) → if worker.rank < n - 1:"
        "\n            worker.send(worker.rank + 1, torch.stack([k, v]))\n        if turn < worker.rank:"
        "\n            k, v = worker.receive(worker.rank - 1)": "The result is right, but no block goes from the last "
        "rank to rank 0: yours is a chain. In a ring every worker sends in all N − 1 rounds, needed or not.",
        " / q.shape[1] ** 0.5 → ": "Your scores are not divided by √d.",
        "state = block_update(*state, scores, v) → weights = scores.exp()\n            state = state[0], state[1] + "
        "weights.sum(1, keepdim=True), state[2] + weights @ v": "Your results are right where scores are small. "
        "Exponentials of scores in the thousands overflow: carry the largest score along, as block_update does.",
        "state[2] / state[1] → state[2]": "You return the sum of weighted values. Divide it by the sum of the weights.",
        "turn < n - 1 → n > 1": "The result is right, but you pass your keys on one round too many: after N − 1 "
        "rounds all workers have seen them.",
        "for turn → own = torch.stack([k, v])\n    for turn ;; (worker.rank + 1) % n, torch.stack([k, v]) → "
        "(worker.rank + turn + 1) % n, own ;; receive((worker.rank - 1) → receive((worker.rank - turn - 1)": "The "
        "result is right, but each worker sends to all others. In a ring it sends to rank + 1 only.",
        "worker.rank - turn → worker.rank + turn ;; worker.rank + 1 → worker.rank - 1 ;; worker.rank - 1 → worker.rank "
        "+ 1": "The result is right, but you send blocks to the left. Then the block of a later rank comes first: "
        "send to rank + 1.",
        "worker.send((worker.rank + 1) % n, torch.stack([k, v]))\n            k, v = worker.receive((worker.rank - 1) "
        "% n) → k, v = worker.receive((worker.rank - 1) % n)\n            worker.send((worker.rank + 1) % n, "
        "torch.stack([k, v]))": "All workers wait for their left neighbour, and none of "
        "them sends. Every receive needs a send before it: send, then receive.",
        "for turn → own = torch.stack([k, v])\n    for turn ;; % n, torch.stack([k, v]) → % n, own": "You send your "
        "own keys in every round, so the right neighbour sees the same block N − 1 times. Pass on the block that came "
        "last.",
        "rank == worker.rank → False": "You do not mask your own block: a token sees the later tokens of its own "
        "worker. Hide them with a triangle.",
        "rank == worker.rank → True": "You mask the blocks of earlier ranks with a triangle, too. All their tokens are "
        "in the past: only your own block needs the triangle.",
        "rank <= worker.rank → rank < worker.rank": "You leave out your own block. A token sees itself and the earlier "
        "tokens of its worker.",
        "worker.rank + 1 → worker.rank - 1 ;; worker.rank - 1 → worker.rank + 1": "You send blocks to the left, but "
        "take what arrives for the blocks of earlier ranks. Send to rank + 1, and receive from rank − 1.",
        "range(n) → range(n - 1)": "You use N − 1 blocks. With your own there are N.",
        "range(n) → range(max(n - 1, 1))": "You use N − 1 blocks. With your own there are N.",
        "worker.rank - turn → worker.rank - turn - 1": "You assign each block to the rank before its own. Before the "
        "first round you hold your own block, after round s that of rank − s.",
    },
)
