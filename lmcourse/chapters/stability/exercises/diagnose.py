"""The exercise on an unknown patient: its disease, found from its recorded numbers."""

from __future__ import annotations

from statistics import median
from typing import Any

from lmcourse.chapters.stability.stored import public_signs, shown_signs, unnamed_signs
from lmcourse.exercises.cases import case
from lmcourse.exercises.exercise import Exercise


def question_by_question(signs: dict[str, Any]) -> str:
    loss, score = median(signs["loss"][-5:]), median(signs["score"][-5:])
    if loss > signs["guessing"]:
        return "steps"
    healthy = loss < 2 + 30 / len(signs["loss"])
    if score > 100 and not healthy:
        return "scores"
    if max(signs["loss"][10:]) > signs["guessing"]:
        return "bad batch"
    return "healthy" if healthy else "too slow"


diagnose = Exercise(
    "diagnose",
    points=4,
    minutes=10,
    difficulty=3,
    reference=question_by_question,
    cases=[
        *(case(name, signs) for name, signs in shown_signs().items()),
        *(case(f"another run: {name}", signs) for name, signs in public_signs()),
    ],
    hidden_cases=lambda random: [case(f"other runs: {name}", signs) for name, signs in unnamed_signs()],
    hints=[
        "Print, for each run, the length and the last number of each list, and the largest loss after the first ten. "
        "In which list does one patient differ most from the other four?",
        "The order of the questions matters. Is the loss above that of guessing *at the end*? If not, are the scores "
        "in the hundreds *at the end*? Only then look at single steps.",
        "A bad batch: one loss, after the first few, is above that of guessing, although the last ones are not. The "
        "remaining two differ only in their last losses, and in how many steps they had to get there.",
    ],
)


diagnose.variant(question_by_question)

diagnose.slips(
    question_by_question,
    {
        'if loss > → if max(signs["loss"]) >': "You compare the highest loss with guessing. Every untrained model "
        "starts there, and one bad batch goes above it: look at the last losses.",
        'if loss > → if max(signs["loss"][5:]) >': "You take one loss above that of guessing for an explosion. After "
        "a bad batch the run recovers: look at several of the last losses.",
        'if max(signs["loss"][10:]) > signs["guessing"] → if max(signs["norm"][10:]) > 8': "You take one large norm as "
        "a bad batch. The norms of SGD are uneven in a slow run, too: look at the loss of that step as well.",
        'if score > 100 → if max(signs["norm"]) > 5 * median(signs["norm"]):\n        return "bad batch"\n    if score '
        "> 100": "You compare the largest norm with the median of the whole run. Norms may be large in the first steps "
        "of any run: leave these out, and look at the loss of the step as well.",
        'if loss > → if max(signs["score"]) > 100:\n        return "scores"\n    if loss >': "You look at the scores "
        "first. An explosion makes them large, too, and healthy runs may have large ones: look at the loss as well.",
        " and not healthy → ": "You call every run with large scores sick. They may be large in a healthy run: look at "
        "its loss, too.",
        'loss, score = → return {25: "healthy", 50: "scores"}.get(len(signs["loss"]), "too slow")\n    loss, score =': (
            "You read the diagnosis off the length of the record. Any record may have any length: look at its numbers."
        ),
        'loss > signs["guessing"] → len(signs["loss"]) < 30': "You take a short record for an explosion. Records end "
        "at any step, and a run above the loss of guessing may go on: compare the last losses with guessing.",
        'return "scores" → return "too slow"': "You look only at the loss. A run with exploding scores is stuck at a "
        "similar loss to a slow run: look at the scores, too.",
        'loss, score = → return "healthy" if signs["loss"][-1] < signs["loss"][0] else "steps"\n    loss, score '
        "=": "You call every run with a falling loss healthy. The loss falls in four of these runs: check how far it "
        "falls, and look at the other lists.",
        'return "bad batch" → return "healthy"': "You never find single bad batches. Look for a step, after the first "
        "few, whose loss is above that of guessing.",
        ' if healthy else "too slow" → ': "You call a slow run healthy. Its loss falls, "
        "too, but not as far: compare its last losses with those of a healthy run of the same length.",
        '2 + 30 / len(signs["loss"]) → 2.3': "You call a healthy run too slow because its record is short. After 25 "
        "steps a healthy loss is higher than after 100: let the limit depend on the number of steps.",
        '2 + 30 / len(signs["loss"]) → 3.2': "You call a slow run healthy: what is good after 25 steps is bad after "
        "100. Let the limit of the loss depend on the number of steps.",
        "if healthy else → if score > 1 else": "You take small scores for slow learning. SGD learns with "
        "small scores, and large first weights have larger ones: look at the last losses.",
        'if loss > → norms = signs["norm"]\n    if any(norms[step] > 4 * median(norms[max(step - 20, 0) : step]) for '
        'step in range(5, len(norms))):\n        return "bad batch"\n    if loss >': "You look for spikes first. A run "
        "with too large a learning rate, or with exploding scores, has large norms as well.",
    },
)

_LAST = "last = {name: median(signs[name][-5:]) for name in ('loss', 'score')}"
_BAD = "if max(signs['loss'][10:]) > signs['guessing']:"
_HEALTHY = "healthy = last['loss'] < 2 + 30 / len(signs['loss'])"
for _line, _old, _news in (
    (_LAST, "-5", ("-6", "-4")),
    ("if last['loss'] > signs['guessing']:", ">", (">=",)),
    ("if last['score'] > 100 and (not healthy):", "> 100", (">= 100", "> 101", "> 99")),
    (_BAD, "10:]) >", ("10:]) >=", "11:]) >", "9:]) >")),
    (_HEALTHY, "< 2 + 30", ("<= 2 + 30", "< 2 + 31", "< 2 + 29")),
):
    for _new in _news:
        _mutant = f"{_line} → {_line.replace(_old, _new)}"
        diagnose.equivalent_mutant(_mutant, "A limit may move a little: no patient is near it.")
