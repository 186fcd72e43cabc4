"""The exercise on a cache whose memory is assigned in pages."""

from __future__ import annotations

import math
from random import Random

from lmcourse.exercises.cases import Case, case, edge
from lmcourse.exercises.exercise import Exercise


def _token_by_token(lengths: list[int], page: int) -> tuple[int, float]:
    """Give each token of each text a place, one after the other, and count the pages."""
    if page < 1:
        raise ValueError("a page holds at least one token")
    taken = tokens = 0
    for length in lengths:
        room = 0
        for _ in range(length):
            if not room:
                taken, room = taken + 1, page
            room, tokens = room - 1, tokens + 1
    return taken, tokens / (taken * page) if taken else 1.0


def _hidden(random: Random) -> list[Case]:
    return [
        case("pages of one", [3, 1, 7], 1),
        case("pages of one", [2], 1),
        case("a token too many", [17], 16),
        case("a token too many", [9, 5, 1], 4),
        case("exactly full", [32, 16, 48], 16),
        case("exactly full", [6], 3),
        case("short texts in large pages", [1, 1, 2, 3], 512),
        case("short texts in large pages", [1, 4097], 4096),
        case("a long text", [100_000], 16),
        case("a long text", [99_999, 3], 128),
        case("empty texts", [0, 5, 0], 4),
        case("empty texts", [0, 0], 3),
        case("no texts", [], 7),
        case("no texts", [], 1),
        case("just under half a page", [7, 20], 16),
        *(case("bad input", [3, 4], page) for page in (0, -1)),
        *(
            case("other texts", random.sample(range(1, 900), random.randint(4, 9)), page)
            for page in random.sample(range(5, 70), 3)
        ),
    ]


pages = Exercise(
    "pages",
    points=2,
    minutes=5,
    difficulty=1,
    reference=_token_by_token,
    cases=[
        case("pages of 16", [1, 16, 17], 16),
        case("two half pages", [8, 8], 16),
        case("a text of no tokens", [0, 3], 4),
        case("two thirds of a page", [5, 5], 3),
        case("a little of each", [1, 1, 12], 10),
        edge(case("pages of one", [3, 1], 1)),
        case("no texts", [], 16),
        case("pages of nothing", [3], 0),
    ],
    hidden_cases=_hidden,
    hints=[
        "A text of n tokens needs n / page pages, rounded up, and shares none with another.",
        "Rounding up without floats: -(-n // page). Or (n + page - 1) // page.",
        "The fraction is sum(lengths) / (page · number of pages). Without a page it is 1.0.",
    ],
)


@pages.variant
def with_divmod(lengths: list[int], page: int) -> list[float]:
    if page <= 0:
        raise ValueError("page")
    count = 0
    for n in lengths:
        full, rest = divmod(n, page)
        count += full + (1 if rest else 0)
    return [count, 1.0 if not count else sum(lengths) / (count * page)]


@pages.variant
def rounded_up(lengths: list[int], page: int) -> tuple[int, float]:
    if page < 1:
        raise ValueError("a page holds at least one token")
    taken = sum(math.ceil(n / page) for n in lengths)
    if taken == 0:
        return 0, 1.0
    return taken, sum(lengths) / (taken * page)


pages.slips(
    rounded_up,
    {
        "math.ceil(n / page) → n // page": "You round down. A page with one token is a whole page.",
        "math.ceil(n / page) → int(n / page + 0.5)": "You round to the nearest. A page with one token is a whole page.",
        "sum(math.ceil(n / page) for n in lengths) → math.ceil(sum(lengths) / page)": "You add up the lengths first. "
        "Two texts cannot share a page.",
        "math.ceil(n / page) → n // page + 1": "You count one page too many for a text that fills its pages exactly. "
        "Sixteen tokens fill one page of 16.",
        "math.ceil(n / page) → max(math.ceil(n / page), 1)": "You count a page for a text without tokens. It takes "
        "none.",
        "math.ceil(n / page) → n / page": "You count fractions of pages. Round up for each text.",
        "sum(lengths) / (taken * page) → len(lengths) / taken": "You divide the number of texts by the number of "
        "pages. Divide the tokens by the tokens that all pages can hold.",
        "return taken, → return taken, 1 -": "You return the fraction that is wasted. Return the fraction that is "
        "used.",
        "/ (taken * page) → / taken": "You divide the tokens by the number of pages. A page has `page` tokens.",
        "sum(lengths) / (taken * page) → (taken * page) / sum(lengths)": "You divide the capacity by the tokens. "
        "Divide the other way round.",
        "0, 1.0 → 0, 100.0 ;; return taken, → return taken, 100 *": "You return a percentage. Return a fraction, at "
        "most 1.",
        "return taken, sum(lengths) / (taken * page) → shares = [n / math.ceil(n / page) / page for n in lengths if n]"
        "\n    return taken, sum(shares) / len(shares)": "You average the fractions of the texts. A text with more "
        "pages should count for more.",
        "sum(lengths) / (taken * page) → sum(n // page for n in lengths) / taken": "You return the fraction of pages "
        "that are full. A page that is half full counts as half a page: count tokens.",
        "0, 1.0 → 0, 0.0": "Without a page you return 0. Return 1.0.",
    },
)
