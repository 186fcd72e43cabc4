"""`python -m tests.grading.attacks`: every attack on nbgrader alone and on our grader, as the table in docs/attacks.md.

nbgrader takes ten seconds and more for each, so what it did is kept in a file of JSON lines, and not done again.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.grading.attacks import ATTACKS, BY_AIM, Attack
from tests.grading.attacks.nbgrader_alone import outcomes
from tests.grading.attacks.our_grader import graded
from tests.grading.attacks.ruled_out import RULE_ATTACKS
from tests.grading.tiny_course import REPOSITORY

PAGE = REPOSITORY / "docs" / "attacks.md"

HEAD = """# Attacks on the grader

Notebooks that want points, secrets or the machine, made from the student's copy of a real notebook of the course
(`{chapter}`, {points} points), with a wrong answer in every exercise. Each was graded by nbgrader 0.9.6 alone, with its
own settings and the release's check cells and hidden tests, in a container; and by `lmcourse grade --record`, all in
one batch with three honest learners.

nbgrader alone was beaten by **{plain}** of the {tried} that were tried on it, our grader by {gained}.
The honest learners kept exactly their marks. The container limits memory and takes what is left
running with it, which nbgrader does not: on a real machine some would do more.

`tests/grading/attacks/` holds the attacks, and a test grades them all; `python -m tests.grading.attacks` writes this
page. In the last column stand the points and the kinds of evidence that a teacher gets to see. Where there is no
evidence, honest work could look the same.

What is not prevented: a right answer that is somebody else's, copied at home; nor results of hidden cases that do not
depend on the seed, computed at home with the package, where the right answer stands as well.
"""

RULES_HEAD = """## At the rules

An exercise rules out what would do its work: softmax where it is to be written, autograd where the gradient is. While
an answer is judged, that is refused where it is computed, whoever asks under whatever name:

- **torch's operators** of the family (private, fused and backward ones too, found in torch's own list) raise in its
  dispatcher: for every thread, callback and transformation. TorchScript is not there at all.
- **Autograd** writes nothing down where it is ruled out, whatever `torch.enable_grad()` says.
- **Functions in Python**, of torch and of this package, have their code replaced: who held them before is no better
  off.
- **The package**: of `lmcourse` only what the notebook imports is loaded in the sandbox; the rest is not on its disk.
- **Guessing**: an answer earns nothing if one fixed answer would get as many hidden cases right, so stored results of
  the public ones earn nothing either; a case that is to be refused counts by the share of right values.

Each of these earned nothing. Most would be right if nothing were refused, which a test shows as well.

What remains: a graph that was recorded in a cell, before the answer is judged, can be walked with other numbers put
into its tensors; functions written in C (`math.ulp`, numpy's `view`) are refused by name and when Python calls them,
not when C calls them; a function that one of the package's made in a cell before stays as it is, and code that a
learner copied from the package is the learner's own. Whoever finds the objects that refuse can take them out: the ways
over the frames of callers, Python's list of objects and patched classes are told as evidence.
"""


def main() -> None:
    """Run what was not run yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kept", type=Path, default=Path("attacks-on-nbgrader.jsonl"), help="what nbgrader did")
    kept: Path = parser.parse_args().kept
    plain = on_nbgrader(kept)
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        batch = graded(Path(folder), ATTACKS, seconds=1800)
        PAGE.write_text(page(plain, batch.results), encoding="utf-8")
    print(f"{PAGE} is written.")


def on_nbgrader(kept: Path) -> dict[str, dict[str, Any]]:
    """What nbgrader alone did with each attack, by name."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    known = {told["name"]: told["outcome"] for told in map(json.loads, lines)}
    with kept.open("a", encoding="utf-8") as book:
        for attack, outcome in outcomes([each for each in ATTACKS if each.name not in known]):
            known[attack.name] = outcome
            print(json.dumps({"name": attack.name, "outcome": outcome}), file=book, flush=True)
    return known


def page(plain: Mapping[str, dict[str, Any]], ours: Mapping[str, dict[str, Any]]) -> str:
    """The page as Markdown."""
    beaten = [name for name, outcome in plain.items() if harm(outcome)]
    gained = [f"`{attack.name}`" for attack in ATTACKS if ours[attack.name]["score"] > 0]
    points = next(iter(ours.values()))["max_score"]
    head = {
        "chapter": "01-floating-point",
        "points": f"{points:g}",
        "plain": len(beaten),
        "tried": len(plain),
        "gained": f"**{len(gained)}**: {', '.join(gained)}" if gained else "**none**",
    }
    parts = [HEAD.format(**head)]
    for aim, attacks in BY_AIM.items():
        parts.append(f"## At {aim}\n\n| attack | what it does | nbgrader alone | here |\n| --- | --- | --- | --- |")
        parts[-1] += "".join(f"\n{row(attack, plain.get(attack.name), ours[attack.name])}" for attack in attacks)
        parts[-1] += "\n"
    return "\n".join([*parts, rules_section()])


def rules_section() -> str:
    """The part of the page on rules. What it says of each attack is what `test_ruled_out` asks for."""
    lines = [RULES_HEAD, "| kind | notebook | exercise | what is tried | here |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {one.kind} | {one.number} | `{one.exercise}` | {one.what} | 0 points |" for one in RULE_ATTACKS]
    return "\n".join(lines) + "\n"


def row(attack: Attack, plain: dict[str, Any] | None, ours: dict[str, Any]) -> str:
    """One line of a table."""
    kinds = ", ".join(sorted({one["kind"] for one in ours["evidence"]}))
    here = f"{ours['score']:g} points" + (f"; {kinds}" if kinds else "")
    alone = "not tried" if plain is None else "; ".join(f"**{what}**" for what in harm(plain)) or "nothing"
    cells = [f"`{attack.name}`", attack.what, alone, here]
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def harm(outcome: Mapping[str, Any]) -> list[str]:
    """What an attack on nbgrader alone came to, in a few words each; nothing if it failed."""
    if "ended" in outcome:
        return ["grading hung" if outcome["ended"] == "still running" else "ended the grader itself"]
    told = {
        f"{outcome['points'] or 0:g} points": bool(outcome["points"]),
        "no grade": outcome["points"] is None,
        "changed others' marks": outcome["others"],
        "read secrets": outcome["secrets"],
        "had the gradebook handed out": outcome["gradebook"],
        "told what it found": outcome["heard"],
        "wrote elsewhere": bool(outcome["wrote"]),
        "reached a server": bool(outcome["connected"]),
        "went on afterwards": bool(outcome["running"]),
        f"left {outcome['megabytes']} MB": outcome["megabytes"] > 50,
        f"left {outcome['files']} files": outcome["files"] > 1000,
        "a script on the teacher's page": bool(outcome["scripts"]),
    }
    return [what for what, is_so in told.items() if is_so]


if __name__ == "__main__":
    main()
