"""Five claims for the hunt, and the right verdict on each."""

from __future__ import annotations

from dataclasses import dataclass

Verdict = float | str

RIGHT = "right"


@dataclass(frozen=True)
class Claim:
    """A claim from another person's notes.

    Attributes:
        text: the claim.
        asked: the number to give if the claim is wrong.
        truth: the right number, or "right" if the claim is right.
        printed: the number that is claimed, or "right".
    """

    text: str
    asked: str
    truth: Verdict
    printed: Verdict


CLAIMS: tuple[Claim, ...] = (
    Claim(
        "A cache of bf16 keys and values for one text of 2,048 tokens takes 3.75 GiB, in a model with d = 8,192 and "
        "60 layers whose heads all have keys of their own.",
        "its GiB",
        RIGHT,
        RIGHT,
    ),
    Claim(
        "8 heads project 10 tokens of 64 features to queries of 8 features each. The queries of all heads together "
        "are 8 · 64 · 8 = 4,096 numbers.",
        "how many numbers they are",
        640,
        4096,
    ),
    Claim(
        "Attention is softmax(q·k/√d)·v. If four tokens of a decoder all have equal scores, the first token looks at "
        "itself with a weight of 1/4.",
        "that weight",
        1,
        0.25,
    ),
    Claim(
        "A model of 70·10⁹ parameters that reads 15·10¹² tokens trains for 143.9 days on 1,024 H100s that each reach "
        "half of their 989.5 TFLOP/s (6ND).",
        "the days",
        RIGHT,
        RIGHT,
    ),
    Claim(
        "The feed-forward layers of Llama 3 8B (32 layers, d = 4,096, d_ff = 14,336) cost 7,516,192,768 FLOPs a token "
        "in the forward pass.",
        "the FLOPs",
        11_274_289_152,
        7_516_192_768,
    ),
)
"""Two of them are right."""


def show_claims() -> str:
    """Return the claims as a table in Markdown."""
    rows = [f"| {number} | {claim.text} | {claim.asked} |" for number, claim in enumerate(CLAIMS, start=1)]
    return "\n".join(["| | the notes say | if that is wrong, give |", "| --- | :--- | :--- |", *rows])
