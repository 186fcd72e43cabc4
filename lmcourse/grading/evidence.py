"""What grading saw that honest work does not do. It changes no mark: somebody has to look at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from lmcourse.text import collapse_whitespace, replace_unprintable, shorten

Kind = Literal["file", "network", "process", "interpreter", "builtins", "protocol", "flood", "crash", "memory", "text"]
Source = Literal["seen", "told", "read"]

MAX_SENTENCE_CHARS = 200
"""Characters of one sentence."""

MAX_PIECES = 50
"""Pieces of evidence about one submission."""


@dataclass(frozen=True)
class Evidence:
    """One thing that was noticed.

    Attributes:
        kind: "file", "network" and "process": it reached for one outside its folder; "interpreter": it reached into
            Python or IPython itself; "builtins": it changed what every program relies on; "protocol": what it sent was
            no answer; "flood", "crash" and "memory": more than a notebook needs; "text": seen in its cells only.
        what: one sentence, with the cell where that is known.
        source: "seen" by the grader from outside; "told" by a hook in the notebook's own process, which the notebook
            can incriminate itself to but hardly avoid; "read" in its text, which may never have run.
    """

    kind: Kind
    what: str
    source: Source

    def __post_init__(self) -> None:
        """Raises ValueError for a kind or a source that does not exist; shortens the sentence to one short line."""
        if self.kind not in get_args(Kind) or self.source not in get_args(Source):
            raise ValueError(f"no such evidence: {self.kind!r}, {self.source!r}")
        line = collapse_whitespace(replace_unprintable(self.what))
        object.__setattr__(self, "what", shorten(line, MAX_SENTENCE_CHARS))

    def to_json(self) -> dict[str, str]:
        """Plain data; `Evidence(**data)` reads it back."""
        return {"kind": self.kind, "what": self.what, "source": self.source}


def distinct(found: list[Evidence]) -> tuple[Evidence, ...]:
    """Each piece once, in order, and not more than `MAX_PIECES`."""
    return tuple(dict.fromkeys(found))[:MAX_PIECES]


def read_evidence(data: Any) -> tuple[Evidence, ...]:
    """Evidence from `to_json`.

    Raises:
        ValueError, TypeError, KeyError: the data is something else.
    """
    return distinct([Evidence(str(one["kind"]), str(one["what"]), str(one["source"])) for one in data])  # type: ignore[arg-type]
