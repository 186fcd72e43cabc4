"""The exercise on the numbers of a cache that share a scale."""

from lmcourse.exercises import value_exercise

key_axis = value_exercise(
    "key_axis",
    points=1,
    minutes=4,
    difficulty=2,
    reference=lambda: 0,
    hints=["Which numbers are similar in size: those of one token, or those of one channel? Print them for a layer."],
)
key_axis.wrong_value(1, "That gives each token a scale. Its large channels then leave hardly any steps for the others.")
key_axis.wrong_value(
    -1, "That is axis 1: a scale for each token. Large channels leave hardly any steps for the others."
)
key_axis.wrong_value(2, "`keys` has two axes: 0 counts tokens, 1 channels.")
key_axis.right_value("0.0")
