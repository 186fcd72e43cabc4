"""docs/attacks.md has every attack of the suite, and no other."""

from __future__ import annotations

import importlib

from tests.grading.attacks import ATTACKS
from tests.grading.attacks.__main__ import PAGE, channels_section, on_the_page, rules_section
from tests.grading.attacks.channels import CHANNELS, OPEN

TEXT = PAGE.read_text(encoding="utf-8")
ADVICE = "run `python -m tests.grading.attacks`"


def test_the_page_has_the_attacks_of_the_suite() -> None:
    assert [*on_the_page(TEXT)] == [attack.name for attack in ATTACKS], ADVICE
    for attack in ATTACKS:
        what = attack.what.replace("|", "\\|")
        points = "0 points" if not attack.gain else f"{attack.gain:g} points"
        [row] = [line for line in TEXT.splitlines() if line.startswith(f"| `{attack.name}` | {what} | ")]
        assert row.rsplit(" | ", 1)[1].startswith(points), ADVICE


def test_the_page_has_the_channels_and_the_attacks_on_rules() -> None:
    for section in (channels_section(), rules_section()):
        assert section in TEXT, ADVICE


def test_what_is_said_of_a_channel_has_a_test() -> None:
    for channel in CHANNELS:
        module, _, name = channel.proof.partition(".")
        assert bool(channel.proof) == (channel.here != OPEN)
        assert not name or hasattr(importlib.import_module(f"tests.grading.{module}"), name)
