"""The exercise on the entropy of a source whose rules are known."""

from __future__ import annotations

from random import Random

import torch
from torch import Tensor

from lmcourse.chapters.language_models.kinds import word_shares
from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.compare import Tolerance
from lmcourse.exercises.exercise import Exercise


def _entropy_rate(P: Tensor) -> float:
    return float(word_shares(P) @ torch.special.entr(P).sum(dim=1))


def _tensor(*rows: list[float]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def _drawn(random: Random, words: int, zeros: int) -> Tensor:
    """Rows of random probabilities with some zeros, and a cycle that connects every word with every other."""
    rows = [[random.uniform(0.05, 1.0) for _ in range(words)] for _ in range(words)]
    for i in range(words):
        for j in random.sample([j for j in range(words) if j != (i + 1) % words], zeros):
            rows[i][j] = 0.0
    P = torch.tensor(rows, dtype=torch.float64)
    return P / P.sum(dim=1, keepdim=True)


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("one word", _tensor([1.0])),
        case("a cycle", _tensor([0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0])),
        case("a cycle", _tensor([0, 0, 0.3, 0.7], [0, 0, 0.8, 0.2], [0.5, 0.5, 0, 0], [0.9, 0.1, 0, 0])),
        case("rarely a change", _tensor([0.999, 0.001], [0.002, 0.998])),
        case("rarely a change", _tensor([0.9999, 0.0001], [0.5, 0.5])),
        case("a word that hardly comes", _tensor([0.5, 0.499, 0.001], [0.4, 0.6, 0.0], [0.0, 0.1, 0.9])),
        case("all rows alike", _tensor([0.2, 0.3, 0.5], [0.2, 0.3, 0.5], [0.2, 0.3, 0.5])),
        case("many words", _drawn(Random(7), 30, 20)),
        case("columns that sum to one, too", _tensor([0.2, 0.5, 0.3], [0.5, 0.3, 0.2], [0.3, 0.2, 0.5])),
    ]
    for words, zeros in ((2, 0), (3, 1), (5, 3), (6, 2)):
        cases.append(case("other sources", _drawn(random, words, zeros)))
    return cases


entropy_rate = Exercise(
    "entropy_rate",
    points=4,
    minutes=12,
    difficulty=3,
    reference=_entropy_rate,
    cases=[
        case("two fair words", _tensor([0.5, 0.5], [0.5, 0.5])),
        case("one word holds on", _tensor([0.9, 0.1], [0.5, 0.5])),
        case("the two alternate", _tensor([0.0, 1.0], [1.0, 0.0])),
        case("three words, one of them forced", _tensor([0.5, 0.25, 0.25], [0.0, 0.0, 1.0], [0.75, 0.25, 0.0])),
        case("there and back", _tensor([0.0, 0.3, 0.7], [1.0, 0.0, 0.0], [0.8, 0.2, 0.0])),
        edge(case("a single word", _tensor([1.0]))),
        case("one word, then one of two", _tensor([0.0, 0.25, 0.75], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0])),
        case("there and back forever", _tensor([0, 0, 0.3, 0.7], [0, 0, 0.9, 0.1], [0.5, 0.5, 0, 0], [1, 0, 0, 0])),
    ],
    hidden_cases=_hidden,
    hints=[
        "Row i alone has the entropy h_i = −Σ_j P_ij ln P_ij: the mean surprise of the word after word "
        "i. The answer is an average of the h_i.",
        "The weights are the fractions π_i of the words in an endless text. They satisfy π_j = Σ_i π_i P_ij. With Σ π "
        "= 1 that is a system of linear equations.",
        "One equation of πP = π follows from the others: replace it by Σ π = 1, and use torch.linalg.solve. For "
        "0 · ln 0 = 0 there is torch.special.xlogy(P, P).",
    ],
    tolerance=Tolerance(1e-9, 1e-12),
)


@entropy_rate.variant
def shares_of_the_words(P: Tensor) -> float:
    balance, right = P.T - torch.eye(len(P), dtype=P.dtype), torch.zeros_like(P[0])
    balance[-1], right[-1] = 1, 1
    shares = torch.linalg.solve(balance, right)
    entropies = -torch.special.xlogy(P, P).sum(dim=1)
    return (shares @ entropies).item()


entropy_rate.slips(
    shares_of_the_words,
    {
        "shares @ entropies → entropies.mean()": "You weight all words equally, and a more frequent word should count "
        "more. Solve πP = π for the weights: Pπ = π makes them all equal.",
        "shares @ entropies → -torch.special.xlogy(shares, shares).sum()": "That is the entropy of single words, as if "
        "the text had no memory.",
        "entropies = → pairs = shares[:, None] * P\n    entropies = ;; shares @ entropies → "
        "-torch.special.xlogy(pairs, pairs).sum()": "That is the price of two words in a row. Return the price of one, "
        "given the word before.",
        "shares @ entropies → shares / shares.norm() @ entropies": "Your weights do not sum to one. `torch.linalg.eig` "
        "returns vectors of length 1: divide by the sum.",
        "torch.linalg.solve(balance, right) → (lambda values, vectors: vectors[:, (values.real - "
        "1).abs().argmin()].real)(*torch.linalg.eig(P.T))": "Your weights do not sum to one. `torch.linalg.eig` "
        "returns vectors of length 1, with either sign: divide by the sum.",
        ".item() → .item() / math.log(2)": "You return bits. Return nats.",
        "torch.special.xlogy(P, P) → (P * P.log())": "Your 0 · ln 0 is NaN. It counts as 0 here: a word that cannot "
        "come costs nothing.",
        "torch.linalg.solve(balance, right) → torch.linalg.matrix_power(P, 1001)[0]": "Your powers of P never settle "
        "where a source alternates. Solve π = πP.",
        "torch.linalg.solve(balance, right) → torch.linalg.matrix_power(P, 1000)[0]": "Where a source alternates, the "
        "words after an even number of steps are not those after an odd one: your powers of P never settle. Solve π = "
        "πP.",
        "torch.linalg.solve(balance, right) → torch.linalg.matrix_power(P, 1000).mean(dim=0)": "You begin with all "
        "words equally frequent and multiply by P. Where a source alternates, that never settles: solve π = πP.",
        "dim=1 → dim=0": "You add up P ln P in each column. The choice after word i is row i of P: add up the rows.",
        "shares @ entropies → entropies.sum()": "You add up the entropies of the rows. One word is written at a time: "
        "take their weighted average.",
        "torch.linalg.solve(balance, right) → P.mean(dim=0)": "You weight words by the column sums of P. The words "
        "before them are not equally frequent: solve π = πP.",
        "-torch.special → torch.special": "The minus is missing: entropy is never negative.",
    },
)


for _change in (
    "balance = P.T - torch.eye(v) → balance = torch.eye(v) - P.T",
    "return -(shares @ torch.special.xlogy(P, P).sum(dim=1)).item() → "
    "return -(torch.special.xlogy(P, P).sum(dim=1) @ shares).item()",
):
    entropy_rate.equivalent_mutant(_change, "Nothing flows in as nothing flows out, and a dot product has no order.")
