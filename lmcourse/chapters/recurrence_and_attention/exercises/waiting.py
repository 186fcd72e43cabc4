"""The exercise on steps that wait for each other, and on the path between two words."""

from __future__ import annotations

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
        *(case("one word", *each) for each in (("rnn", 1, 4), ("attention", 1, 2), ("window", 1, 3, 5))),
        *(case("two words", *each) for each in (("rnn", 2, 1), ("attention", 2, 1), ("window", 2, 5, 2))),
        case("a window that is ignored", "rnn", 7, 3, 1),
        case("longer texts", "rnn", 400, 6),
        *(case("a window that just reaches", "window", *sizes) for sizes in ((45, 4, 12), (12, 1, 12))),
        case("a window beyond the text", "window", 9, 4, 50),
        *(case("one move more than whole ones", "window", n, 6, 5) for n in (13, 14)),
        *(case("bad input", "window", *sizes) for sizes in ((13, 1, 12), (20, 30, 1), (1, 2, 1), (5, 9))),
        case("bad input", "lstm", 10, 2),
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
        case("two words", "attention", 2, 1),
        case("a window of two words", "window", 3, 5, 2),
        case("as many moves as layers", "window", 34, 3, 12),
        case("an RNN, whose window is ignored", "rnn", 9, 2, 1),
        case("a window of one word", "window", 1, 2, 1),
        case("layers that do not reach", "window", 100, 8, 12),
        case("layers that nearly reach", "window", 90, 8, 12),
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


@waiting.variant
def by_match(kind: str, n: int, layers: int = 1, window: int = 0) -> tuple[int, int]:
    match kind:
        case "rnn":
            return n + layers - 1, n - 1
        case "attention":
            return layers, min(1, n - 1)
        case "window" if window >= 2:
            moves = ceil((n - 1) / (window - 1))
            if moves > layers:
                raise ValueError("the layers do not reach the first word")
            return layers, moves
    raise ValueError("unknown kind or window")


waiting.slips(
    by_match,
    {
        "n + layers - 1 → n * layers": "You let layer 1 wait for all of layer 0. It can start earlier: n + L − 1 "
        "steps, not n · L.",
        "moves > layers → moves >= layers": "You reject windows whose layers just reach. As many moves as layers are "
        "allowed; only more than that is a ValueError.",
        "n + layers - 1 → n": "Your steps are those of one layer. The last state of the top layer comes L − 1 steps "
        "later.",
        "layers, min → n + layers - 1, min ;; return layers, moves → return n + layers - 1, moves": "You compute "
        "attention position by position. A layer computes all positions at once: one step per layer, whatever the "
        "length.",
        "return layers, min → return 1, min": "You let all layers of attention run at once. A layer waits for the one "
        "below it: one step for each.",
        "return layers, moves → return 1, moves": "You let all layers of a window run at once. A layer waits for the "
        "one below it: one step for each.",
        "min(1, n - 1) → layers": "Attention needs only one move: its first layer reaches every word.",
        "layers, moves → layers, ceil((n - 1) / window)": "The window includes the word itself, so a move reaches W − "
        "1 words further, not W.",
        "layers, moves → layers, (n - 1) // (window - 1)": "You round down. A last, short move is a move, too.",
        "layers - 1, n - 1 → layers - 1, n ;; layers, moves → layers, ceil(n / (window - 1))": "You count words, not "
        "moves. From the first of n words to the last there are n − 1 places.",
        "return layers, min → return n * n, min": "n² is the number of pairs that attention compares. They do not wait "
        "for one another.",
        "min(1, n - 1) → 1": "Attention to a single word needs no move: the first word is the last.",
        "layers, moves → layers, layers": "You count a move for each layer of a window. Going up at the same position "
        "is no move: count only what it takes to get there.",
        "return layers, moves → return moves, moves": "The steps of a window are its layers: each is one step, whether "
        "something moves in it or not.",
        'case "window" if window >= 2: → case "window" if window == n == 1:\n            return layers, 0\n        '
        'case "window" if window >= 2:': "You accept a window of one word. A window below 2 is a ValueError, even for "
        "a single word.",
        "layers - 1, n - 1 → layers - 1, n + layers - 2": "You count going up a layer of the RNN as a move. A move "
        "goes to another position.",
        "layers - 1, n - 1 → layers - 1, max(1, n - 1) ;; min(1, n - 1) → 1 ;; layers, moves "
        "→ layers, max(1, moves)": "With one word nothing has to move: 0 moves.",
        "moves > layers → n > layers * window": "Each layer reaches W − 1 words further, not W: raise a ValueError for "
        "more than L · (W − 1) + 1 words.",
        "moves > layers → False": "If the layers do not reach that far, raise a ValueError: each move takes a layer.",
        'match kind: → if window == 1:\n        raise ValueError("window")\n    match kind:': "You reject a small "
        'window for every kind. Only "window" uses it: the others ignore it.',
    },
)


for default in (1, -1):
    waiting.equivalent_mutant(
        "def waiting(kind: str, n: int, layers: int=1, window: int=0) -> tuple[int, int]: → def waiting(kind: str, n: "
        f"int, layers: int=1, window: int={default}) -> tuple[int, int]:",
        "Every window below 2 is refused, whichever it is.",
    )
