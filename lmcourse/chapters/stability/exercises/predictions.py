"""The predictions of notebook 16."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "who_saves_whom",
        "Patient B explodes after a few dozen steps of SGD. Nothing else is changed: which trick makes it learn?",
        options=("z-loss", "soft-capped scores", "QK-norm", "clipping the gradient"),
        answer="clipping the gradient",
        because="SGD moves as far as the gradient is long. A longer step makes a longer gradient, and so on. Clipping "
        "limits the step itself.",
    ),
    Prediction(
        "halved_gradients",
        "All gradients of a run are halved, from the first step to the last. The optimiser is AdamW. What happens to "
        "its updates?",
        options=("they are halved", "they are a quarter", "next to nothing"),
        answer="next to nothing",
        because="Adam divides the average gradient by its average size. A constant factor cancels, up to ε. That is "
        "why clipping does less for Adam than for SGD.",
    ),
    Prediction(
        "smallest_z",
        "Before the exponentials, a softmax subtracts the largest logit of the row. How small can its denominator be?",
        options=("exactly 0", "tiny, but above 0", "1"),
        answer="1",
        because="The largest logit has become 0, and e⁰ = 1 is one of the terms. There is nothing to divide by zero.",
    ),
    Prediction(
        "ten_on_top",
        "You add 10 to all logits of a model. Which losses change?",
        options=("neither", "the cross-entropy", "the z-loss", "both"),
        answer="the z-loss",
        because="Softmax does not see a constant, so nothing in the cross-entropy holds the logits in place. The "
        "z-loss sees it: log Z grows by 10.",
    ),
    Prediction(
        "doubled_weights",
        "W_q and W_k are both doubled. There is QK-norm. What happens to the attention scores?",
        options=("they stay", "they double", "they are four times as large"),
        answer="they stay",
        because="A norm takes the length of what comes in away. Without it the scores would be four times as large.",
    ),
    Prediction(
        "norm_left_out",
        "A model was trained with QK-norm. To save time, you leave it out when the model is used. What do you get?",
        options=("the same text, faster", "about the same text", "another model"),
        answer="another model",
        because="The norm is part of the function that was trained, with scales that were learned. Without it every "
        "score has another size.",
    ),
    Prediction(
        "through_the_cap",
        "A score of 100 goes through a soft cap of 50. Which share of its gradient comes back?",
        options=("all of it", "48 %", "7 %", "nothing"),
        answer="7 %",
        because="The value is 48.2, where the curve is nearly flat: its slope is 0.07. A hard limit would give 0.",
    ),
)
