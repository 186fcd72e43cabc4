"""The exercises on an unknown patient: its disease, found from its recorded numbers, and its medicine."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

import numpy as np

from lmcourse.chapters.stability.patients import MEDICINES
from lmcourse.chapters.stability.stored import LIMITS, losses_under, shown_signs, unnamed_signs
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain, Special

# diagnose --------------------------------------------------------------------------------------------------------

Signs = dict[str, Any]


def _diagnosis(signs: Signs) -> str:
    """Apply the written rule in its order: signs at the end, then signs at any step, then the progress of the run."""
    if fmean(signs["loss"][-3:]) > signs["guessing"]:
        return "steps"
    if fmean(signs["score"][-10:]) > 100:
        return "scores"
    if max(signs["loss"][10:]) > signs["guessing"]:
        return "bad batch"
    return "healthy" if fmean(signs["loss"][-10:]) < 2.1 else "too slow"


diagnose = Exercise(
    "diagnose",
    points=3,
    minutes=12,
    difficulty=3,
    reference=_diagnosis,
    cases=[case(name, signs) for name, signs in shown_signs().items()],
    hidden_cases=lambda random: [case(f"other runs: {name}", signs) for name, signs in unnamed_signs()],
    hints=[
        "Print, for each of the five, the largest and the last number of each list. In which list does one patient "
        "differ most from the other four?",
        "The order of the questions matters. Is the loss above that of guessing *at the end*? If not, are the scores "
        "in the hundreds *at the end*? Only then look at single steps.",
        "A bad batch: one loss, after the first few, is above that of guessing, although the last ones are not. The "
        "remaining two differ only in their last losses.",
    ],
)


@diagnose.misconception(
    "You compare the highest loss with guessing. Every untrained model starts there, and one bad batch goes "
    "above it: look at the last losses."
)
def highest_loss(signs: Signs) -> str:
    return "steps" if max(signs["loss"]) > signs["guessing"] else _diagnosis(signs)


@diagnose.misconception(
    "You take one loss above that of guessing for an explosion. After a bad batch the run recovers: look at "
    "several of the last losses."
)
def one_high_loss(signs: Signs) -> str:
    return "steps" if max(signs["loss"][5:]) > signs["guessing"] else _diagnosis(signs)


def _spiky(norms: list[float]) -> bool:
    return any(norms[step] > 4 * median(norms[step - 20 : step]) for step in range(20, len(norms)))


@diagnose.misconception(
    "You take one large norm as a bad batch. The norms of SGD are uneven in a slow run, too: look at the loss of that "
    "step as well."
)
def by_the_norm(signs: Signs) -> str:
    named = _diagnosis(signs)
    if named in ("steps", "scores"):
        return named
    return "bad batch" if _spiky(signs["norm"]) else "healthy" if signs["loss"][-1] < 2.1 else "too slow"


@diagnose.misconception(
    "You compare the largest norm with the median of the whole run. Norms may be large in the first steps of "
    "any run: leave these out, and look at the loss of the step as well."
)
def largest_norm(signs: Signs) -> str:
    named = _diagnosis(signs)
    if named == "steps":
        return named
    spiky = max(signs["norm"]) > 5 * median(signs["norm"])
    return "bad batch" if spiky else named


@diagnose.misconception(
    "You look at the scores first. An explosion makes them large, too: first check whether the loss is above that of "
    "guessing."
)
def scores_first(signs: Signs) -> str:
    return "scores" if max(signs["score"]) > 100 else _diagnosis(signs)


@diagnose.misconception(
    "You look only at the loss. A run with exploding scores is stuck at a similar loss to a slow run: look at the "
    "scores, too."
)
def by_the_loss(signs: Signs) -> str:
    named = _diagnosis(signs)
    return "too slow" if named == "scores" else named


@diagnose.misconception(
    "You call every run with a falling loss healthy. The loss falls in four of these runs: check how far it falls, "
    "and look at the other lists."
)
def falls_so_healthy(signs: Signs) -> str:
    loss = signs["loss"]
    return "healthy" if loss[-1] < loss[0] else "steps"


@diagnose.misconception(
    "You never find single bad batches. Look for a step, after the first few, whose loss is above that of guessing."
)
def never_a_batch(signs: Signs) -> str:
    named = _diagnosis(signs)
    return "healthy" if named == "bad batch" else named


@diagnose.misconception(
    "You call a slow run healthy. Its loss falls, too, but not as far: compare its last losses with those of "
    "the healthy run."
)
def never_slow(signs: Signs) -> str:
    named = _diagnosis(signs)
    return "healthy" if named == "too slow" else named


@diagnose.misconception(
    "You look for spikes first. A run with too large a learning rate, or with exploding scores, has large norms as "
    "well."
)
def spikes_first(signs: Signs) -> str:
    norms = signs["norm"]
    spiky = any(norms[step] > 4 * median(norms[max(step - 20, 0) : step]) for step in range(5, len(norms)))
    return "bad batch" if spiky else _diagnosis(signs)


_LAST = "last = {name: median(signs[name][-5:]) for name in ('loss', 'score')}"
for _line, _changed in (
    (_LAST, _LAST.replace("-5", "-6")),
    (_LAST, _LAST.replace("-5", "-4")),
    ("if last['loss'] > signs['guessing']:", "if last['loss'] >= signs['guessing']:"),
    *(("if last['score'] > 100:", f"if last['score'] {test}:") for test in (">= 100", "> 101", "> 99")),
    *(
        ("if max(signs['loss'][10:]) > signs['guessing']:", f"if max(signs['loss'][{test} signs['guessing']:")
        for test in ("10:]) >=", "11:]) >", "9:]) >")
    ),
    (
        "return 'healthy' if last['loss'] < 2.1 else 'too slow'",
        "return 'healthy' if last['loss'] <= 2.1 else 'too slow'",
    ),
):
    diagnose.equivalent_mutant(f"{_line} → {_changed}", "A limit may move a little: no patient is near it.")


@diagnose.variant
def by_the_last_numbers(signs: dict[str, Any]) -> str:
    loss, norm = np.array(signs["loss"]), np.array(signs["norm"])
    if np.median(loss[-5:]) > signs["guessing"]:
        return "steps"
    if np.median(signs["score"][-20:]) > 80:
        return "scores"
    well = loss[-10:].mean() < 2
    jumps = [norm[step] / np.median(norm[step - 20 : step]) for step in range(20, len(norm))]
    if well and max(jumps) > 5:
        return "bad batch"
    return "healthy" if well else "too slow"


@diagnose.variant
def loss_jumps_back(signs: dict[str, Any]) -> str:
    loss = signs["loss"]
    exploded = min(loss[-2:]) > signs["guessing"]
    runaway = min(signs["score"][-5:]) > 100
    jump = max(loss[step] - loss[step - 1] for step in range(5, len(loss)))
    found = {"steps": exploded, "scores": runaway, "bad batch": jump > 2, "too slow": loss[-1] > 2}
    return next((name for name, holds in found.items() if holds), "healthy")


@diagnose.variant
def by_medians(signs: dict[str, Any]) -> str:
    loss = signs["loss"]
    if median(loss[-3:]) > 4.85:
        return "steps"
    if median(signs["score"][-9:]) > 150:
        return "scores"
    if median(loss[-9:]) > 2.3:
        return "too slow"
    for step in range(20, len(loss)):
        if loss[step] > 2 * median(loss[step - 20 : step]):
            return "bad batch"
    return "healthy"


# prescribe -------------------------------------------------------------------------------------------------------


def _best(patient: str) -> list[str]:
    """Return the smallest set of medicines with which every seed is below the limit."""
    names = [*MEDICINES]
    pairs = [[one, other] for one in names for other in names if one < other]
    for few in ([], *([name] for name in names), *pairs):
        if _cured(patient, few):
            return few
    raise ValueError(f"no set of medicines helps patient {patient}")


def _cured(patient: str, medicines: list[str]) -> bool:
    return all(loss is not None and loss < LIMITS[patient] for loss in losses_under(patient, medicines))


def _result(asked: Case, value: Plain) -> str:
    """Describe the result of a prescription: a verdict, and the losses unless the patient is saved."""
    if isinstance(value, Special) and value.kind == "a set":
        value = value.value
    if not isinstance(value, list) or not all(isinstance(name, str) and name in MEDICINES for name in value):
        return f"medicines come from this list: {', '.join(MEDICINES)}"
    names = [name for name in MEDICINES if name in value]
    if len(names) > 2:
        return "two medicines at most"
    patient = str(asked.args[0])
    if _cured(patient, names):
        return "every seed is saved"
    losses = ", ".join("explodes" if loss is None else f"{loss:.2f}" for loss in losses_under(patient, names))
    return f"{' and '.join(names) or 'no medicine'}: {losses} at the three seeds, and the limit is {LIMITS[patient]}"


prescribe = Exercise(
    "prescribe",
    points=1,
    minutes=6,
    difficulty=2,
    reference=_best,
    cases=[case("patient X", "X"), case("patient Y", "Y")],
    hints=[
        "Which number grows? X: look at its scores. Y is trained with SGD, like B.",
        "Run a seed of X with one medicine that acts on scores, and then with two.",
        "X has large scores because its first steps are too large. One medicine bounds the scores, another makes the "
        "first steps smaller. For Y, shorten the step.",
    ],
    view=_result,
)


def _prescription(x: list[str], y: list[str], patient: str) -> list[str]:
    return {"X": x, "Y": y}[patient]


@prescribe.misconception(
    "X needs two treatments: with QK-norm alone every seed stays above the limit. It bounds the scores, but the first "
    "steps are still too large."
)
def one_for_x(patient: str) -> list[str]:
    return _prescription(["QK-norm"], ["clipping"], patient)


@prescribe.misconception("You clip both. X uses AdamW, whose steps do not depend on the length of the gradients.")
def clip_both(patient: str) -> list[str]:
    return _prescription(["clipping"], ["clipping"], patient)


@prescribe.misconception(
    "Clipping does not save X: it shortens gradients, and the steps of X's AdamW do not depend on their length. Y "
    "needs it."
)
def patients_mixed_up(patient: str) -> list[str]:
    return _prescription(["clipping"], ["QK-norm", "warm-up"], patient)


@prescribe.misconception(
    "Y has a different problem from X. Its gradients grow, not only its scores, and an SGD step is proportional to the "
    "gradient."
)
def the_same_for_both(patient: str) -> list[str]:
    return _prescription(["QK-norm", "warm-up"], ["QK-norm", "warm-up"], patient)


@prescribe.misconception(
    "You give both patients QK-norm alone. It bounds scores, but the first steps of X stay too large, and the steps of "
    "Y are as long as its gradients."
)
def qk_norm_for_both(patient: str) -> list[str]:
    return ["QK-norm"]


@prescribe.misconception(
    "You hold back large logits in both patients: the z-loss those of the output, the soft cap the scores. No "
    "seed is saved: the first steps of X stay too large, and the gradients of Y grow."
)
def logits_held_back(patient: str) -> list[str]:
    return _prescription(["z-loss", "soft cap"], ["z-loss", "soft cap"], patient)


for _name, _patient, _medicines, _sentence in (
    (
        "decay_for_x",
        "X",
        ["decay"],
        "Decay alone leaves X above the limit at every seed. It keeps matrices small, but it bounds no score and the "
        "first steps stay as long as they were.",
    ),
    (
        "warm_up_for_x",
        "X",
        ["warm-up"],
        "Warm-up makes the steps of X smaller, and its scores can still grow. Add the medicine that bounds them.",
    ),
    (
        "qk_norm_and_decay",
        "X",
        ["QK-norm", "decay"],
        "QK-norm and decay both hold back the scores of X. Its first steps stay too large: replace one of the two.",
    ),
    (
        "decay_and_warm_up",
        "X",
        ["decay", "warm-up"],
        "With decay and warm-up X comes near the limit at one seed only: nothing bounds its scores. Replace the decay.",
    ),
    (
        "cap_and_warm_up",
        "X",
        ["soft cap", "warm-up"],
        "With a soft cap and warm-up only one seed of X is below the limit. The cap bounds what the softmax sees, and "
        "the raw scores can still grow: which medicine bounds them?",
    ),
    (
        "clipping_and_warm_up",
        "X",
        ["clipping", "warm-up"],
        "With clipping and warm-up only one seed of X is below the limit. Clipping does little for AdamW, and nothing "
        "bounds the scores.",
    ),
    (
        "qk_norm_and_clipping",
        "X",
        ["clipping", "QK-norm"],
        "Beside QK-norm, clipping does little for X: the steps of AdamW do not depend on the length of the gradient. "
        "Which medicine does make its steps smaller?",
    ),
    (
        "qk_norm_and_cap",
        "X",
        ["soft cap", "QK-norm"],
        "You bound the scores of X twice. Its first steps are still too large: use the second medicine for them.",
    ),
    (
        "three_for_x",
        "X",
        ["QK-norm", "decay", "warm-up"],
        "You name three medicines for X. At most two are allowed: which one is not needed?",
    ),
    (
        "qk_norm_for_y",
        "Y",
        ["QK-norm"],
        "QK-norm bounds the scores of Y, but an SGD step is as long as the gradient. Which medicine limits it?",
    ),
    (
        "warm_up_for_y",
        "Y",
        ["warm-up"],
        "Warm-up lowers the rate of Y, but an SGD step is still proportional to its gradient, and some steps are "
        "too long. Shorten only those.",
    ),
    (
        "clipping_and_z_loss_for_y",
        "Y",
        ["clipping", "z-loss"],
        "Clipping saves Y, and the z-loss beside it does harm: every seed ends above the limit. Leave the z-loss out.",
    ),
    (
        "clipping_and_decay_for_y",
        "Y",
        ["clipping", "decay"],
        "Clipping saves Y, but a decay of 1 at a rate of 0.3 takes 30 % of every weight at each step. Leave the decay "
        "out.",
    ),
    (
        "decay_for_y",
        "Y",
        ["decay"],
        "With SGD at a rate of 0.3, a decay of 1 takes 30 % of every weight at each step: Y forgets as fast as it "
        "learns.",
    ),
    (
        "z_loss_for_y",
        "Y",
        ["z-loss"],
        "A z-loss adds its own gradient to the steps of Y, which are too long already. Which medicine shortens them?",
    ),
    (
        "cap_for_y",
        "Y",
        ["soft cap"],
        "A soft cap on the scores of Y leaves the length of its steps as it was. Which medicine limits that length?",
    ),
):

    def _mistaken(patient: str, wrong: str = _patient, medicines: list[str] = _medicines) -> list[str]:
        return medicines if patient == wrong else _best(patient)

    _mistaken.__name__ = _name
    prescribe.misconception(_sentence)(_mistaken)


@prescribe.misconception("You return a word. Return a list of names, also for a single medicine.")
def a_word(patient: str) -> str:
    return {"X": "QK-norm", "Y": "clipping"}[patient]


@prescribe.variant
def as_a_dict(patient: str) -> list[str]:
    return {"X": ["warm-up", "QK-norm"], "Y": ["clipping"]}[patient]


@prescribe.variant
def as_sets(patient: str) -> set[str]:
    return {"clipping"} if patient == "Y" else {"QK-norm", "warm-up"}


@prescribe.variant
def as_tuples(patient: str) -> tuple[str, ...]:
    if patient == "X":
        return ("QK-norm", "warm-up")
    return ("clipping", "soft cap")
