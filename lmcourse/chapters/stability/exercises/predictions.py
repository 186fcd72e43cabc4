"""The predictions of notebook 16."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    NumberPrediction(
        "one_token_takes_it",
        "In how many of 100 rows of A's attention does one token get more than 99 % of the weight, after 150 steps?",
        answer=96,
        low=0,
        high=100,
        unit="rows",
        because="Scores in the hundreds leave nothing for the second best. The same model at a tenth of the rate has "
        "next to no such rows.",
    ),
    Prediction(
        "who_saves_whom",
        "Patient B explodes after a few dozen steps of SGD. One thing is added and nothing else changed. Which one "
        "makes it learn? A z-loss: a penalty on large sums of the output's exponentials. A soft cap: attention scores "
        "bent so that they stay below 50. QK-norm: queries and keys normalised before their product. Clipping: a long "
        "gradient is shortened.",
        options=("z-loss", "clipping the gradient", "QK-norm", "soft cap"),
        answer="clipping the gradient",
        because="SGD moves as far as the gradient is long. A longer step makes a longer gradient, and so on. Clipping "
        "limits the step itself.",
    ),
    Prediction(
        "halved_gradients",
        "All gradients of a run are halved, from the first step to the last. The optimizer is AdamW. What happens to "
        "its updates?",
        options=("they are halved", "almost nothing", "they are a quarter"),
        answer="almost nothing",
        because="Adam divides the average gradient by its average size. A constant factor cancels, up to ε. That is "
        "why clipping does less for Adam than for SGD.",
    ),
    Prediction(
        "doubled_weights",
        "W_q and W_k are both doubled, and queries and keys are normalised before their product. What happens to the "
        "attention scores?",
        options=("they double", "they stay", "they are four times as large"),
        answer="they stay",
        because="A norm removes the length of its input. Without it the scores would be four times as large.",
    ),
    Prediction(
        "gradient_of_a_doubled_matrix",
        "With QK-norm, W_q is doubled. No score changes, and so no loss. What happens to the gradient of W_q?",
        options=("it doubles", "it stays", "it halves"),
        answer="it halves",
        because="Take the same small step in W_q: a matrix twice as long turns half as far, so the loss changes half "
        "as much. A matrix that a long step made large moves less with the next one.",
    ),
    NumberPrediction(
        "twice_the_rate",
        "At 0.5, B clipped to 0.3 ends at 2.02 to 2.04. Where does it end at a rate of 1.0? (Untreated, it explodes at "
        "both rates.)",
        answer=2.07,
        low=1.5,
        high=4.85,
        unit="nats",
        because="The step is limited, so twice the rate is no catastrophe, and here no gain either: 1.92 to 2.25 at "
        "three seeds. The best rate without clipping, 0.2, ends at 2.70 on average.",
    ),
    Prediction(
        "alarm_as_a_doctor",
        "Whoever rings the alarm gets a tenth of the rate. Compared with no treatment at all, what does this change in "
        "the mean loss of the four patients?",
        options=("it falls by more than 0.3", "it changes by less than 0.3", "it rises by more than 0.3"),
        answer="it changes by less than 0.3",
        because="The alarm rings for a bad batch, which needs no treatment, and too late or never for the others: A's "
        "kind dies quietly, and a run that is too slow has no spikes.",
    ),
    Prediction(
        "smallest_z",
        "Before the exponentials, a softmax subtracts the largest logit of the row. How small can its denominator be?",
        options=("1", "exactly 0", "tiny, but above 0"),
        answer="1",
        because="The largest logit has become 0, and e⁰ = 1 is one of the terms. A division by zero cannot happen.",
    ),
    Prediction(
        "ten_on_top",
        "You add 10 to all logits of a model. Let Z be the sum of their exponentials. What changes: the cross-entropy, "
        "log Z, both or neither?",
        options=("neither", "the cross-entropy", "log Z", "both"),
        answer="log Z",
        because="Softmax gives the same probabilities, so nothing in the cross-entropy holds the logits in place. "
        "log Z grows by 10.",
    ),
    Prediction(
        "norm_left_out",
        "A model was trained with QK-norm. To save time, you leave the norm out when the model is used. What happens "
        "to its loss?",
        options=("it stays the same", "it rises by more than 0.1 nats", "it rises by less than 0.1 nats"),
        answer="it rises by more than 0.1 nats",
        because="The norm is part of the function that was trained, with scales that were learned. Without it every "
        "score has another size.",
    ),
    Prediction(
        "through_the_cap",
        "A score of 100 is bent by a soft cap of 50. How much of its gradient comes back?",
        options=("48 %", "7 %", "all of it", "nothing"),
        answer="7 %",
        because="The value is 48.2, where the curve is nearly flat: its slope is 0.07. A hard limit would give 0.",
    ),
    NumberPrediction(
        "norms_in_gemma_3",
        "How many norms has a block of Gemma 3? (A block of Llama has two.)",
        answer=6,
        low=1,
        high=12,
        step=1,
        unit="norms",
        because="One before and one after each of the two branches, and two on queries and keys.",
    ),
)
