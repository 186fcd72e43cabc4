"""`python -m tests.grading.attacks`: every attack on nbgrader alone and on our grader, as tables in docs/attacks.md.

nbgrader takes ten seconds and more for each, so only attacks that the page does not have yet are tried on it; with
`--again` all are, and what it did is kept in a file of JSON lines, with which a run that was stopped goes on.
"""

from __future__ import annotations

import argparse
import json
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.grading.attacks import ATTACKS, BY_AIM, Attack
from tests.grading.attacks.channels import CHANNELS
from tests.grading.attacks.nbgrader_alone import outcomes
from tests.grading.attacks.our_grader import graded
from tests.grading.attacks.ruled_out import RULE_ATTACKS
from tests.grading.tiny_course import REPOSITORY

PAGE = REPOSITORY / "docs" / "attacks.md"
NOTHING, NOT_TRIED = "nothing", "not tried"

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

Questions to a notebook's process and its answers are signed, each with its number: a thread, a hook or a fork that
takes over the connection can read the inputs, and is believed nothing.

What is not prevented: a right answer that is somebody else's, copied at home; nor results of hidden cases that do not
depend on the seed, computed at home with the package, where the right answer stands as well.
"""

CHANNELS_HEAD = """## Between submissions

Notebooks that are examined at the same time share a machine. What two learners could tell each other through it is
their own answers and the inputs that they were asked, never what is right. `lmcourse grade --workers 1` examines one at
a time.
"""

RULES_HEAD = """## At the rules

An exercise rules out what would do its work: softmax where it is to be written, autograd where the gradient is. That is
refused where it is computed, whoever asks under whatever name, in a process in which the rules hold before the first
cell is run, and to the end. So no cell can leave a table of it, nor an answer while it is judged for another exercise.
A statement that runs into a rule is left out, and the cells are run anew without it:

- **torch's operators** of the family (private, fused and backward ones too, found in torch's own list) raise in its
  dispatcher: for every thread, callback and transformation. TorchScript is not there at all; `make_fx` refuses, and
  what `torch.compile` is given runs as it is.
- **Autograd** writes nothing down where it is ruled out, whatever `torch.enable_grad()` says, its engine does not run
  backwards, and the nodes of a graph from before cannot be called.
- **Functions in Python**, of torch and of this package, have their code replaced: who held them before is no better
  off. What a rule says of a class holds for its methods, and a family covers what is named after it in all of torch,
  also where it is made of other operators. Functions that were made of a library's code elsewhere (a module loaded
  anew, or under another name) are found before an answer is judged.
- **Imports** while rules hold: a module that is loaded then refuses too; a library that is ruled out whole cannot be
  imported, and is not on the sandbox's disk unless the notebook itself imports it. Of other libraries only those are
  there that torch, NumPy and figures need. The code of a library, as text or compiled, is read by imports alone.
- **Tensors without numbers** where all of torch is ruled out, and the functions by which torch computes with shapes.
- **Functions in C**, of Python and NumPy (`math.ulp`, what `struct` unpacks, arrays of tensors): the address that
  CPython calls is another one, also for callers in C such as `map` and `operator.methodcaller`.
- **The package**: of `lmcourse` only what the notebook imports is loaded in the sandbox; the rest is not on its disk.
  Nor are libraries of whole models (`transformers` and its like), which every exercise rules out.
- **Processes** that a notebook has started end before its first answer is judged: no rule would hold in them.
- **Guessing**: an answer earns nothing if one fixed answer would get as many hidden cases right, so stored results of
  the public ones earn nothing either; a case that is to be refused counts by the share of right values.

Each of these earned nothing. Most would be right if nothing were refused, which a test shows as well. The first table
has how many of a kind are tried in which notebook, the second each of them.
"""


WHAT_REMAINS = """
What remains: `ctypes` is refused by name and told as evidence; what NumPy rounds to another type while it makes an
array is not refused, but where NumPy is ruled out; code that a learner copied is the learner's own, as text. For
`decode_bits` the format of compiled modules, read by a caller in C, earns 4 of 4 points, and is told as evidence. With
`--isolation=process`
libraries stay where they are, and a notebook whose cells only define has one process for all its exercises, in which an
answer could leave something for another one. Not ruled out, because right answers use them: a normal distribution's
`cdf` for `gelu`, `logaddexp` of two numbers in `stable_softmax`, also folded over a row, `float.fromhex`, and a
derivative by numbers with an imaginary part. Whoever finds the objects that refuse can take them out: the ways over the
frames of callers, Python's list of objects and patched classes are told as evidence.
"""


def main() -> None:
    """Run what was not run yet, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--again", action="store_true", help="try all attacks on nbgrader alone")
    which.add_argument("--ours-only", action="store_true", help="try none on nbgrader alone")
    parser.add_argument("--kept", type=Path, default=Path("attacks-on-nbgrader.jsonl"), help="what nbgrader did")
    arguments = parser.parse_args()
    told = {} if arguments.again else on_the_page(PAGE.read_text(encoding="utf-8"))
    untold = [attack for attack in ATTACKS if told.get(attack.name, NOT_TRIED) == NOT_TRIED]
    alone = told | dict.fromkeys((attack.name for attack in untold), NOT_TRIED)
    if not arguments.ours_only:
        alone |= on_nbgrader(arguments.kept, untold)
    with tempfile.TemporaryDirectory(prefix="attacks-") as folder:
        batch = graded(Path(folder), ATTACKS, seconds=1800)
        PAGE.write_text(page(alone, batch.results), encoding="utf-8")
    print(f"{PAGE} is written.")


def on_nbgrader(kept: Path, attacks: Sequence[Attack]) -> dict[str, str]:
    """What nbgrader alone did with these attacks, in words, by name."""
    lines = kept.read_text(encoding="utf-8").splitlines() if kept.exists() else []
    known = {told["name"]: told["outcome"] for told in map(json.loads, lines)}
    with kept.open("a", encoding="utf-8") as book:
        for attack, outcome in outcomes([each for each in attacks if each.name not in known]):
            known[attack.name] = outcome
            print(json.dumps({"name": attack.name, "outcome": outcome}), file=book, flush=True)
    names = {attack.name for attack in attacks}
    return {name: in_words(outcome) for name, outcome in known.items() if name in names}


def on_the_page(text: str) -> dict[str, str]:
    """The same as the page tells it: the third column of the tables of attacks."""
    return dict(
        re.findall(r"^\| `(.+?)` \|.* \| ([^|]+) \| [^|]+ \|$", text.partition("## At the rules")[0], re.MULTILINE)
    )


def page(alone: Mapping[str, str], ours: Mapping[str, dict[str, Any]]) -> str:
    """The page as Markdown."""
    gained = [f"`{attack.name}`" for attack in ATTACKS if ours[attack.name]["score"] > 0]
    points = next(iter(ours.values()))["max_score"]
    head = {
        "chapter": "01-floating-point",
        "points": f"{points:g}",
        "plain": sum(alone[attack.name] not in (NOTHING, NOT_TRIED) for attack in ATTACKS),
        "tried": sum(alone[attack.name] != NOT_TRIED for attack in ATTACKS),
        "gained": f"**{len(gained)}**: {', '.join(gained)}" if gained else "**none**",
    }
    parts = [HEAD.format(**head)]
    for aim, attacks in BY_AIM.items():
        parts.append(f"## At {aim}\n\n| attack | what it does | nbgrader alone | here |\n| --- | --- | --- | --- |")
        parts[-1] += "".join(f"\n{row(attack, alone[attack.name], ours[attack.name])}" for attack in attacks)
        parts[-1] += "\n"
    return "\n".join([*parts, channels_section(), rules_section()])


def channels_section() -> str:
    """The part of the page on channels between submissions. What it says is what `test_sandbox_channels` asks for."""
    lines = [CHANNELS_HEAD, "| channel | what it would tell | here |", "| --- | --- | --- |"]
    lines += [f"| {one.what} | {one.tells} | {one.here} |" for one in CHANNELS]
    return "\n".join(lines) + "\n"


def rules_section() -> str:
    """The part of the page on rules. What it says of each attack is what `test_ruled_out` asks for."""
    numbers = sorted({one.number for one in RULE_ATTACKS})
    lines = [RULES_HEAD, f"| kind | {' | '.join(numbers)} |", f"| --- |{' --- |' * len(numbers)}"]
    for kind in dict.fromkeys(one.kind for one in RULE_ATTACKS):
        tried = Counter(one.number for one in RULE_ATTACKS if one.kind == kind)
        lines.append(f"| {kind} | {' | '.join(str(tried[number] or '') for number in numbers)} |")
    lines += ["", "| kind | notebook | exercise | what is tried | here |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {one.kind} | {one.number} | `{one.exercise}` | {one.what} | 0 points |" for one in RULE_ATTACKS]
    return "\n".join(lines) + f"\n{WHAT_REMAINS}"


def row(attack: Attack, alone: str, ours: dict[str, Any]) -> str:
    """One line of a table."""
    kinds = ", ".join(sorted({one["kind"] for one in ours["evidence"]}))
    here = f"{ours['score']:g} points" + (f"; {kinds}" if kinds else "")
    cells = [f"`{attack.name}`", attack.what.replace("|", "\\|"), alone, here]
    return "| " + " | ".join(cells) + " |"


def in_words(outcome: Mapping[str, Any]) -> str:
    """What an attack on nbgrader alone came to, in a few words each."""
    if "ended" in outcome:
        return "**grading hung**" if outcome["ended"] == "still running" else "**ended the grader itself**"
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
    return "; ".join(f"**{what}**" for what, is_so in told.items() if is_so) or NOTHING


if __name__ == "__main__":
    main()
