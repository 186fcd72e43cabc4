"""The exercise on the backward pass of attention, block by block."""

from __future__ import annotations

from random import Random

import numpy as np
import torch
from torch import Tensor

from lmcourse.exercises.cases import Case, case, edge, script
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.forbidden_names import NO_AUTOGRAD
from lmcourse.exercises.inputs import integers, normal

Gradients = tuple[Tensor, Tensor, Tensor]


def _by_jacobians(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> Gradients:
    """Compute with numpy in fp64, for each query from the whole Jacobian of its softmax."""
    queries, keys, values, gradients = (each.double().numpy() for each in (q, k, v, d_out))
    root = queries.shape[1] ** 0.5
    dq, dk, dv = (np.zeros_like(each) for each in (queries, keys, values))
    for i, (query, gradient) in enumerate(zip(queries, gradients, strict=True)):
        seen = slice(i + 1)
        scores = keys[seen] @ query / root
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        d_scores = (np.diag(weights) - np.outer(weights, weights)) @ (values[seen] @ gradient) / root
        dq[i] = d_scores @ keys[seen]
        dk[seen] += np.outer(d_scores, query)
        dv[seen] += np.outer(weights, gradient)
    d_queries, d_keys, d_values = (torch.from_numpy(each).to(q.dtype) for each in (dq, dk, dv))
    return d_queries, d_keys, d_values


def _forward(q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, Tensor]:
    """Return the result of attention, and the logarithm of each row's sum of e^score."""
    scores = (q.double() @ k.double().T / q.shape[-1] ** 0.5).masked_fill(
        torch.ones(len(q), len(k)).triu(1).bool(), -torch.inf
    )
    return (scores.softmax(dim=-1) @ v.double()).to(v.dtype), scores.logsumexp(dim=-1, keepdim=True).to(q.dtype)


def _inputs(random: Random, s: int, d: int, dv: int, dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    q, k = normal(random, s, d, dtype=dtype), normal(random, s, d, dtype=dtype)
    v, d_out = normal(random, s, dv, dtype=dtype), normal(random, s, dv, dtype=dtype)
    return q, k, v, *_forward(q, k, v), d_out


def _large(random: Random) -> tuple[Tensor, ...]:
    """Return inputs with scores in the thousands and two pairs of equal keys."""
    q, k = (64 * integers(random, 4, 16, dtype=torch.float64) for _ in range(2))
    k[1], k[3] = k[0], k[2]
    v, d_out = normal(random, 4, 3, dtype=torch.float64), normal(random, 4, 3, dtype=torch.float64)
    return q, k, v, *_forward(q, k, v), d_out


def _without_the_matrix(random: Random) -> Case:
    q, k, v, out, log_sum, d_out = _inputs(random, 48, 4, 6)
    lines = """
from lmcourse.exercises.work import largest_tensor, most_rows
largest_tensor(flash_backward, q, k, v, out, log_sum, d_out, 8) < 48 * 48
most_rows([k, v], flash_backward, q, k, v, out, log_sum, d_out, 8) <= 8
flash_backward(q, k, v, out, log_sum, d_out, 8)[2][:2]
"""
    name = "no tensor of s × s numbers, no product of more than 8 keys: s = 48, blocks of 8"
    return script(name, lines, q=q, k=k, v=v, out=out, log_sum=log_sum, d_out=d_out)


def _cases(random: Random) -> list[Case]:
    seen, f64 = Random(7), torch.float64
    s, d, block = random.randint(9, 20), random.randint(2, 5), random.randint(2, 7)
    return [
        edge(case("one token", *_inputs(seen, 1, 3, 2), 1)),
        case("fifty tokens", *_inputs(seen, 50, 8, 8), 7),
        case("one key at a time", *_inputs(seen, 6, 3, 4), 1),
        case("a block longer than the text", *_inputs(seen, 5, 3, 4), 64),
        case("double precision", *_inputs(seen, 7, 4, 6, f64), 3),
        case("other sizes", *_inputs(random, s, d, d + 1), block),
        case("other sizes", *_inputs(random, s + 1, d + 2, d), block),
        edge(case("large scores", *_large(random), 3)),
    ]


_FIXED = Random(9)

flash_backward = Exercise(
    "flash_backward",
    points=4,
    minutes=18,
    difficulty=3,
    reference=_by_jacobians,
    cases=[
        case("four tokens, blocks of two", *_inputs(_FIXED, 4, 4, 4), 2),
        case("five tokens, blocks of two; values wider than keys", *_inputs(_FIXED, 5, 2, 3), 2),
        case("all keys in one block", *_inputs(_FIXED, 4, 3, 2), 4),
        case("three tokens, one key at a time", *_inputs(Random(10), 3, 2, 4, torch.float64), 1),
        edge(case("scores of a thousand", *_large(_FIXED), 2)),
        _without_the_matrix(_FIXED),
    ],
    hidden_cases=_cases,
    hints=[
        "First compute the weights of a block. log_sum is m + log(denominator), so (scores − log_sum).exp() are the "
        "finished weights P, masked and normalised. Then dV of the block is P.T @ d_out.",
        "The gradient at P is dP = d_out @ v.T. The softmax of a row turns it into P · (dP − D), where D is the row's "
        "sum of P · dP. Write out dP in this sum and swap the two sums: D is d_out · out.",
        "dS = P * (dP − D) / √d. Then dk of the block is dS.T @ q, and dq collects dS @ k over all blocks.",
    ],
    forbid=[*NO_AUTOGRAD, ".scaled_dot_product_attention", ".multi_head_attention_forward"],
)


@flash_backward.variant
def one_block_of_keys_at_a_time(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    scale = q.shape[-1] ** -0.5
    shared = (d_out * out).sum(dim=-1, keepdim=True)
    rows = torch.arange(len(q))[:, None]
    for keys in torch.split(torch.arange(len(k)), block):
        scores = (q @ k[keys].T * scale).masked_fill(keys > rows, -torch.inf)
        p = (scores - log_sum).exp()
        dp = d_out @ v[keys].T
        ds = p * (dp - shared) * scale
        dq += ds @ k[keys]
        dk[keys] = ds.T @ q
        dv[keys] = p.T @ d_out
    return dq, dk, dv


flash_backward.slips(
    one_block_of_keys_at_a_time,
    {
        "dp - shared → dp": "You leave out what all weights of a row share: they sum to one, so if one grows the "
        "others shrink. dS is P · (dP − D), with one number D per row.",
        "dp - shared → dp - (p * dp).sum(dim=-1, keepdim=True)": "Your row sum of P · dP covers the keys of one block "
        "only. It is a sum over the whole row, which `out` and `d_out` together give.",
        "(dp - shared) * scale → (dp - shared)": "The scores were divided by √d, and so is the gradient that goes back "
        "through them.",
        "(dp - shared) * scale → (dp - shared) * scale**2": "You divide the gradient by d. The scores were divided by "
        "√d, once.",
        ".T * scale → .T": "The scores that you recompute are not divided by √d, as they were in the forward pass.",
        "rows = → top = torch.full_like(log_sum, -torch.inf)\n    rows = ;; scores - log_sum → scores - (top := "
        "top.maximum(scores.amax(dim=-1, keepdim=True)))": "You subtract the largest score so far, so your weights do "
        "not sum to one. Subtract log_sum: it holds the maximum and the denominator of the whole row.",
        "(scores - log_sum).exp() → scores.softmax(dim=-1)": "Your weights are a softmax over the block alone. log_sum "
        "is there to make them weights of the whole row.",
        "(scores - log_sum).exp() → scores.softmax(dim=-1).nan_to_num()": "Your weights of a block sum to one within "
        "the block. Take (scores − log_sum).exp(), which sum to one over the whole row.",
        "(d_out * out) → (out * out)": "Your D is out · out. It is d_out · out, the row's sum of P · dP.",
        "(scores - log_sum).exp() → scores.exp() / log_sum.exp()": "e^score overflows for large scores, and so does "
        "e^log_sum: subtract first, then exp.",
        ".masked_fill(keys > rows, -torch.inf) → ": "Your scores are not masked. The backward pass computes the scores "
        "again, so hide the future again.",
        "keys > rows → keys - keys[0] > rows": "In the second block your mask starts at 0 again: compare the keys' "
        "positions in the text with those of the queries.",
        "p * (dp - shared) → (dp - shared)": "The gradient at the scores is P · (dP − D); the factor P is missing.",
        ".sum(dim=-1, keepdim=True) → .sum()": "Your D is one number for all queries. Each row of weights sums to one "
        "on its own.",
        "dp - shared → dp + shared": "D is subtracted, not added: if one weight of a row grows, the others shrink.",
        "p.T @ d_out → ds.T @ d_out": "dv comes from the weights P, not from the gradient at the scores.",
        "p.T @ d_out → p.T @ out": "dv carries the gradient that arrives, `d_out`, back to the values; you took `out`.",
        "ds.T @ q → ds.T @ q / scale": "dq is right, but dk lacks the 1/√d: the scores were divided by √d, so both "
        "gradients are.",
        "dq += ds → dq = ds": "Each block replaces dq. A query has seen keys of several blocks: add the parts up.",
        "ds @ k[keys] → ds @ q[keys] ;; ds.T @ q → ds.T @ k": "Queries and keys are swapped at the end: dq comes from "
        "k, and dk from q.",
        "return dq, dk, dv → return dv, dk, dq": "The gradients are right, but in the wrong order. Return dq, dk, dv.",
        "len(k)), block → len(k)), len(k)": "The gradients are right, but all scores are in memory at once. Take "
        "`block` keys at a time.",
    },
)


@flash_backward.misconception(
    "The gradients are right, but your products take all keys that a query sees. Take `block` keys at a time."
)
def query_by_query(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> Gradients:
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for i in range(q.shape[0]):
        keys, values = k[: i + 1], v[: i + 1]
        p = torch.exp(keys @ q[i] / q.shape[1] ** 0.5 - log_sum[i])
        ds = p * (values @ d_out[i] - d_out[i] @ out[i]) / q.shape[1] ** 0.5
        dq[i] = ds @ keys
        dk[: i + 1] += torch.outer(ds, q[i])
        dv[: i + 1] += torch.outer(p, d_out[i])
    return dq, dk, dv


@flash_backward.variant
def blocks_of_queries_and_keys(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    dq, dk, dv = (torch.zeros(each.shape, dtype=each.dtype) for each in (q, k, v))
    delta = torch.einsum("ij,ij->i", d_out, out)
    for a in range(0, len(q), block):
        for b in range(0, a + 1, block):
            i, j = slice(a, a + block), slice(b, b + block)
            scores = torch.einsum("id,jd->ij", q[i], k[j]) / q.shape[1] ** 0.5
            p = torch.exp(scores - log_sum[i])
            if a == b:
                p = p.tril()
            ds = p * (torch.einsum("id,jd->ij", d_out[i], v[j]) - delta[i, None]) / q.shape[1] ** 0.5
            dq[i] += ds @ k[j]
            dk[j] += ds.T @ q[i]
            dv[j] += p.T @ d_out[i]
    return dq, dk, dv


@flash_backward.variant
def two_passes_over_the_blocks(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    shared = torch.zeros_like(log_sum)
    place = torch.arange(len(q)).unsqueeze(1)
    for first in range(0, len(k), block):
        near = slice(first, min(first + block, len(k)))
        hidden = torch.arange(len(k))[near] > place
        p = (q @ k[near].T * q.shape[1] ** -0.5).masked_fill(hidden, -torch.inf).sub(log_sum).exp()
        shared += (p * (d_out @ v[near].T)).sum(dim=1, keepdim=True)
    dq, dk, dv = torch.zeros_like(q), torch.zeros_like(k), torch.zeros_like(v)
    for first in range(0, len(k), block):
        near = slice(first, min(first + block, len(k)))
        hidden = torch.arange(len(k))[near] > place
        p = (q @ k[near].T * q.shape[1] ** -0.5).masked_fill(hidden, -torch.inf).sub(log_sum).exp()
        ds = p * (d_out @ v[near].T - shared) * q.shape[1] ** -0.5
        dq += ds @ k[near]
        dk[near], dv[near] = ds.T @ q, p.T @ d_out
    return dq, dk, dv


@flash_backward.variant
def by_numpy(
    q: Tensor, k: Tensor, v: Tensor, out: Tensor, log_sum: Tensor, d_out: Tensor, block: int
) -> tuple[Tensor, Tensor, Tensor]:
    Q, K, V, mixed, L, G = (each.double().numpy() for each in (q, k, v, out, log_sum, d_out))
    scale, dq, dk, dv = 1 / np.sqrt(Q.shape[1]), np.zeros_like(Q), np.zeros_like(K), np.zeros_like(V)
    D = np.sum(G * mixed, axis=1, keepdims=True)
    for first in range(0, len(K), block):
        near = np.arange(first, min(first + block, len(K)))
        scores = np.where(near > np.arange(len(Q))[:, None], -np.inf, scale * Q @ K[near].T)
        P = np.exp(scores - L)
        dS = P * (G @ V[near].T - D) * scale
        dq += dS @ K[near]
        dk[near] = dS.T @ Q
        dv[near] = P.T @ G
    return torch.from_numpy(dq).to(q.dtype), torch.from_numpy(dk).to(q.dtype), torch.from_numpy(dv).to(q.dtype)
