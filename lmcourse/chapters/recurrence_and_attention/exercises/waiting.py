"""The exercise on steps that wait for each other, and on the path between two words."""

from __future__ import annotations

from fractions import Fraction
from math import ceil
from random import Random

from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise


def _on_the_graph(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    """Compute both numbers from the graph of all states: the longest chain of waiting, and the fewest moves."""
    if kind not in ("rnn", "attention", "window") or (kind == "window" and window < 2):
        raise ValueError("unknown kind or window")
    finished = [0] * n
    moves: list[float] = [0.0, *[float("inf")] * (n - 1)]
    for _ in range(layers):
        below, moved = list(finished), list(moves)
        for i in range(n):
            first = {"rnn": i, "attention": 0, "window": max(0, i - window + 1)}[kind]
            finished[i] = 1 + max(below[first : i + 1])
            moves[i] = min(moved[j] + (j < i) for j in range(first, i + 1))
            if kind == "rnn" and i:
                finished[i] = max(finished[i], 1 + finished[i - 1])
                moves[i] = min(moves[i], moves[i - 1] + 1)
    if moves[-1] == float("inf"):
        raise ValueError("the layers do not reach that far")
    return max(finished), int(moves[-1])


def _hidden(random: Random) -> list[Case]:
    cases = [
        case("one word", "rnn", 1, 4),
        case("one word", "attention", 1, 2),
        case("one word", "window", 1, 3, 5),
        case("two words", "rnn", 2, 1),
        case("two words", "attention", 2, 1),
        case("two words", "window", 2, 5, 2),
        case("a window that is ignored", "rnn", 7, 3, 1),
        case("a window that is ignored", "attention", 9, 2, 1),
        case("longer texts", "rnn", 400, 6),
        case("longer texts", "attention", 130, 8),
        case("a window that just reaches", "window", 45, 4, 12),
        case("a window that just reaches", "window", 8, 7, 2),
        case("a window that just reaches", "window", 12, 1, 12),
        case("a window beyond the text", "window", 9, 4, 50),
        case("one move more than whole ones", "window", 13, 6, 5),
        case("one move more than whole ones", "window", 14, 6, 5),
        case("bad input", "window", 35, 3, 12),
        case("bad input", "window", 13, 1, 12),
        case("bad input", "window", 20, 30, 1),
        case("bad input", "window", 1, 2, 1),
        case("bad input", "window", 5, 9),
        case("bad input", "lstm", 10, 2),
        case("bad input", "RNN", 10, 20, 5),
    ]
    for _ in range(3):
        n, layers, window = random.randint(20, 90), random.randint(30, 60), random.randint(4, 8)
        reached = 2 + (window - 1) * random.randint(3, 12)  # one place farther than a number of whole moves reaches
        cases += [case("other sizes", "rnn", n, layers), case("other sizes", "window", reached, layers, window)]
    return cases


waiting = Exercise(
    "waiting",
    points=3,
    minutes=7,
    difficulty=2,
    reference=_on_the_graph,
    cases=[
        case("an RNN", "rnn", 100),
        case("an RNN of three layers", "rnn", 100, 3),
        case("attention", "attention", 100),
        case("three layers of attention", "attention", 100, 3),
        case("thirty layers of a window", "window", 100, 30, 12),
        case("a window, one word further", "window", 42, 30, 5),
        case("one word", "window", 1, 2, 3),
        case("one word, which attends", "attention", 1, 2),
        case("as many moves as layers", "window", 34, 3, 12),
        case("an RNN, whose window is ignored", "rnn", 9, 2, 1),
        case("a window of one word", "window", 1, 2, 1),
        case("layers that do not reach", "window", 100, 8, 12),
        case("an unknown kind", "transformer", 100, 30, 12),
    ],
    hidden_cases=_hidden,
    hints=[
        "Draw three words and two layers of an RNN. In which step is each state ready, if everything that can run "
        "does? The last one is ready after 3 + 2 − 1 steps.",
        "A layer of attention computes all positions in one step, and one move reaches any of them: but with one word "
        "nothing has to move.",
        "A window of W reaches W − 1 words further in each move, so n − 1 places take ⌈(n − 1)/(W − 1)⌉ moves, each in "
        "its own layer. -(-a // b) rounds up.",
    ],
)


@waiting.misconception("You let layer 2 wait for all of layer 1. It can start earlier: n + L − 1 steps, not n · L.")
def layers_times_n(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return n * layers if kind == "rnn" else steps, moves


@waiting.misconception(
    "You reject windows whose layers just reach. As many moves as layers are allowed; only more than that is a "
    "ValueError."
)
def just_reaching_refused(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    if kind == "window" and moves >= layers:
        raise ValueError("the layers do not reach the first word")
    return steps, moves


@waiting.misconception("Your steps are those of one layer. The last state of the top layer comes L − 1 steps later.")
def layers_for_nothing(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return n if kind == "rnn" else steps, moves


@waiting.misconception(
    "You compute attention position by position. A layer computes all positions at once: one step per layer, whatever "
    "the length."
)
def attention_waits(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    return n + layers - 1, _on_the_graph(kind, n, layers, window)[1]


@waiting.misconception("Attention needs only one move: its first layer reaches every word.")
def moves_are_layers(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, layers if kind == "attention" else moves


@waiting.misconception("The window includes the word itself, so a move reaches W − 1 words further, not W.")
def window_not_minus_one(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, ceil(Fraction(n - 1, window)) if kind == "window" else moves


@waiting.misconception("You round down. A last, short move is a move, too.")
def rounded_down(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, (n - 1) // (window - 1) if kind == "window" else moves


@waiting.misconception("You count words, not moves. From the first of n words to the last there are n − 1 places.")
def words_counted(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    if kind == "window":
        return steps, ceil(Fraction(n, window - 1))
    return steps, n if kind == "rnn" else moves


@waiting.misconception("n² is the number of pairs that attention compares. They do not wait for one another.")
def pairs(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return n * n if kind == "attention" else steps, moves


@waiting.misconception("Attention to a single word needs no move: the first word is the last.")
def one_move_for_one_word(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, 1 if kind == "attention" else moves


@waiting.misconception(
    "You count a move for each layer of a window. Going up at the same position is no move: count only what it takes "
    "to get there."
)
def a_move_in_every_layer(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, layers if kind == "window" else moves


@waiting.misconception("The steps of a window are its layers: each is one step, whether something moves in it or not.")
def steps_are_moves(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return moves if kind == "window" else steps, moves


@waiting.misconception("You accept a window of one word. A window below 2 is a ValueError, even for a single word.")
def window_of_one(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    return (layers, 0) if kind == "window" and window == n == 1 else _on_the_graph(kind, n, layers, window)


@waiting.misconception("You count going up a layer of the RNN as a move. A move goes to another position.")
def upwards_is_a_move(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, moves + layers - 1 if kind == "rnn" else moves


@waiting.misconception("With one word nothing has to move: 0 moves.")
def first_is_last(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    steps, moves = _on_the_graph(kind, n, layers, window)
    return steps, max(1, moves)


@waiting.misconception("If the layers do not reach that far, raise a ValueError: each move takes a layer.")
def reaches_anyway(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    if kind == "window" and window >= 2:
        return layers, ceil(Fraction(n - 1, window - 1))
    return _on_the_graph(kind, n, layers, window)


@waiting.misconception('You reject a small window for every kind. Only "window" uses it: the others ignore it.')
def window_of_every_kind(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    if window == 1:
        raise ValueError("window")
    return _on_the_graph(kind, n, layers, window)


for default in (1, -1):
    waiting.equivalent_mutant(
        "def waiting(kind: str, n: int, layers: int=1, window: int=0) -> tuple[int, int]: → def waiting(kind: str, n: "
        f"int, layers: int=1, window: int={default}) -> tuple[int, int]:",
        "Every window below 2 is refused, whichever it is.",
    )


@waiting.variant
def by_walking(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    if kind == "rnn":
        return len({place + layer for place in range(n) for layer in range(layers)}), n - 1
    if kind == "attention":
        window = max(2, n)
    elif kind != "window" or window < 2:
        raise ValueError(f"there is no {kind} with a window of {window}")
    place = moves = 0
    while place < n - 1:
        place, moves = place + window - 1, moves + 1
        if moves > layers:
            raise ValueError("the layers do not reach the first word")
    return layers, moves


@waiting.variant
def by_match(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    match kind:
        case "rnn":
            return n + layers - 1, n - 1
        case "attention":
            return layers, min(1, n - 1)
        case "window" if window >= 2:
            moves = (n + window - 3) // (window - 1)
            if moves <= layers:
                return layers, moves
    raise ValueError(kind)


@waiting.variant
def from_a_table(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    if kind not in {"rnn", "attention", "window"}:
        raise ValueError("unknown")
    reach = {"rnn": 1, "attention": max(1, n - 1), "window": window - 1}[kind]
    if reach < 1 or (kind == "window" and reach * layers < n - 1):
        raise ValueError("the layers do not reach the first word")
    return layers + (n - 1 if kind == "rnn" else 0), ceil(Fraction(n - 1, reach))
