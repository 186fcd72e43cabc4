"""The exercises on an unknown patient: its disease, found from its recorded numbers, and its medicine."""

from __future__ import annotations

from statistics import fmean, median
from typing import Any

from lmcourse.chapters.stability.patients import MEDICINES
from lmcourse.chapters.stability.stored import LIMITS, losses_under, shown_signs, unnamed_signs
from lmcourse.exercises.cases import Case, case
from lmcourse.exercises.exercise import Exercise
from lmcourse.exercises.values import Plain, Special

# diagnose --------------------------------------------------------------------------------------------------------


def _diagnosis(signs: dict[str, Any]) -> str:
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
    cases=[
        *(case(name, signs) for name, signs in shown_signs().items()),
        case("another run, shorter: healthy", [signs for name, signs in unnamed_signs() if name == "healthy"][-1]),
    ],
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


@diagnose.variant
def question_by_question(signs: dict[str, Any]) -> str:
    loss, score = median(signs["loss"][-5:]), median(signs["score"][-5:])
    if loss > signs["guessing"]:
        return "steps"
    if score > 100:
        return "scores"
    if max(signs["loss"][10:]) > signs["guessing"]:
        return "bad batch"
    return "healthy" if loss < 2.1 else "too slow"


diagnose.slips(
    question_by_question,
    {
        'if loss > → if max(signs["loss"]) >': "You compare the highest loss with guessing. Every untrained model "
        "starts there, and one bad batch goes above it: look at the last losses.",
        'if loss > → if max(signs["loss"][5:]) >': "You take one loss above that of guessing for an explosion. After a "
        "bad batch the run recovers: look at several of the last losses.",
        'if max(signs["loss"][10:]) > signs["guessing"] → norms = signs["norm"]\n    if any(norms[step] > 4 * '
        "median(norms[step - 20 : step]) for step in range(20, len(norms)))": "You take one large norm as a bad batch. "
        "The norms of SGD are uneven in a slow run, too: look at the loss of that step as well.",
        'if score > 100 → if max(signs["norm"]) > 5 * median(signs["norm"]):\n        return "bad batch"\n    if score '
        "> 100": "You compare the largest norm with the median of the whole run. Norms may be large in the first steps "
        "of any run: leave these out, and look at the loss of the step as well.",
        'if loss > → if max(signs["score"]) > 100:\n        return "scores"\n    if loss >': "You look at the scores "
        "first. An explosion makes them large, too: first check whether the loss is above that of guessing.",
        'loss > signs["guessing"] → len(signs["loss"]) < 90': "You take the shortest record for an explosion. Records "
        "end at any step, and a run above the loss of guessing may go on: compare the last losses with guessing.",
        'return "scores" → return "too slow"': "You look only at the loss. A run with exploding scores is stuck at a "
        "similar loss to a slow run: look at the scores, too.",
        'loss, score = → return "healthy" if signs["loss"][-1] < signs["loss"][0] else "steps"\n    loss, score '
        "=": "You call every run with a falling loss healthy. The loss falls in four of these runs: check how far it "
        "falls, and look at the other lists.",
        'return "bad batch" → return "healthy"': "You never find single bad batches. Look for a step, after the first "
        "few, whose loss is above that of guessing.",
        ' if loss < 2.1 else "too slow" → ': "You call a slow run healthy. Its loss falls, too, but not as far: "
        "compare its last losses with those of the healthy run.",
        'if loss > → norms = signs["norm"]\n    if any(norms[step] > 4 * median(norms[max(step - 20, 0) : step]) for '
        'step in range(5, len(norms))):\n        return "bad batch"\n    if loss >': "You look for spikes first. A run "
        "with too large a learning rate, or with exploding scores, has large norms as well.",
    },
)


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


@prescribe.variant
def as_a_dict(patient: str) -> list[str]:
    return {"X": ["QK-norm", "warm-up"], "Y": ["clipping"]}[patient]


prescribe.slips(
    as_a_dict,
    {
        ', "warm-up" → ': "X needs two treatments: with QK-norm alone every seed stays above the limit. It bounds the "
        "scores, but the first steps are still too large.",
        '"QK-norm", "warm-up" → "clipping"': "You clip both. X uses AdamW, whose steps do not depend on the length of "
        "the gradients.",
        '"QK-norm", "warm-up" → "clipping" ;; ["clipping"] → ["QK-norm", "warm-up"]': "Clipping does not save X: it "
        "shortens gradients, and the steps of X's AdamW do not depend on their length. Y needs it.",
        '"clipping" → "QK-norm", "warm-up"': "Y has a different problem from X. Its gradients grow, not only its "
        "scores, and an SGD step is proportional to the gradient.",
        ', "warm-up" →  ;; "clipping" → "QK-norm"': "You give both patients QK-norm alone. It bounds scores, but the "
        "first steps of X stay too large, and the steps of Y are as long as its gradients.",
        '"QK-norm", "warm-up" → "z-loss", "soft cap" ;; "clipping" → "z-loss", "soft cap"': "You hold back large "
        "logits in both patients: the z-loss those of the output, the soft cap the scores. No seed is saved: the first "
        "steps of X stay too large, and the gradients of Y grow.",
        '"QK-norm", "warm-up" → "decay"': "Decay alone leaves X above the limit at every seed. It keeps matrices "
        "small, but it bounds no score and the first steps stay as long as they were.",
        '"QK-norm", "warm-up" → "warm-up"': "Warm-up makes the steps of X smaller, and its scores can still grow. Add "
        "the medicine that bounds them.",
        '"warm-up" → "decay"': "QK-norm and decay both hold back the scores of X. Its first steps stay too large: "
        "replace one of the two.",
        '"QK-norm" → "decay"': "With decay and warm-up X comes near the limit at one seed only: nothing bounds its "
        "scores. Replace the decay.",
        '"QK-norm" → "soft cap"': "With a soft cap and warm-up only one seed of X is below the limit. The cap bounds "
        "what the softmax sees, and the raw scores can still grow: which medicine bounds them?",
        '"QK-norm" → "clipping"': "With clipping and warm-up only one seed of X is below the limit. Clipping does "
        "little for AdamW, and nothing bounds the scores.",
        '"QK-norm", "warm-up" → "clipping", "QK-norm"': "Beside QK-norm, clipping does little for X: the steps of "
        "AdamW do not depend on the length of the gradient. Which medicine does make its steps smaller?",
        '"QK-norm", "warm-up" → "soft cap", "QK-norm"': "You bound the scores of X twice. Its first steps are still "
        "too large: use the second medicine for them.",
        '"warm-up" → "decay", "warm-up"': "You name three medicines for X. At most two are allowed: which one is not "
        "needed?",
        '"clipping" → "QK-norm"': "QK-norm bounds the scores of Y, but an SGD step is as long as the gradient. Which "
        "medicine limits it?",
        '"clipping" → "warm-up"': "Warm-up lowers the rate of Y, but an SGD step is still proportional to its "
        "gradient, and some steps are too long. Shorten only those.",
        '"clipping" → "clipping", "z-loss"': "Clipping saves Y, and the z-loss beside it does harm: every seed ends "
        "above the limit. Leave the z-loss out.",
        '"clipping" → "clipping", "decay"': "Clipping saves Y, but a decay of 1 at a rate of 0.3 takes 30 % of every "
        "weight at each step. Leave the decay out.",
        '"clipping" → "decay"': "With SGD at a rate of 0.3, a decay of 1 takes 30 % of every weight at each step: Y "
        "forgets as fast as it learns.",
        '"clipping" → "z-loss"': "A z-loss adds its own gradient to the steps of Y, which are too long already. Which "
        "medicine shortens them?",
        '"clipping" → "soft cap"': "A soft cap on the scores of Y leaves the length of its steps as it was. Which "
        "medicine limits that length?",
        '["QK-norm", "warm-up"] → "QK-norm" ;; ["clipping"] → "clipping"': "You return a word. Return a list of names, "
        "also for a single medicine.",
    },
)


@prescribe.variant
def as_sets(patient: str) -> set[str]:
    return {"clipping"} if patient == "Y" else {"QK-norm", "warm-up"}


@prescribe.variant
def as_tuples(patient: str) -> tuple[str, ...]:
    if patient == "X":
        return ("QK-norm", "warm-up")
    return ("clipping", "soft cap")
