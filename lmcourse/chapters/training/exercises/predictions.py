"""The predictions of notebook 13."""

from __future__ import annotations

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "sixteen_layers",
        "Sixteen layers of width 512, weights drawn from a standard normal distribution, no norm. A vector of normal "
        "numbers goes in. About how large are the numbers that come out?",
        options=("about 1", "about 400", "about 10⁸", "about 10²¹"),
        answer="about 10²¹",
        because="Each layer multiplies by √512 = 22.6, and 22.6 to the 16th is 5 · 10²¹.",
    ),
    Prediction(
        "warm_up_of_half",
        "A run of 200 steps spends 100 of them warming up. Does it end better or worse than with a warm-up of 10?",
        options=("better", "no difference", "worse: half the steps are wasted"),
        answer="better",
        because="By 0.6 nats a token and more: early steps of full size do damage that later ones must repair.",
    ),
    Prediction(
        "two_texts_one_short",
        "Two micro-batches, one with 64 targets and one with 4. You average their mean losses. How much more does a "
        "target of the short one count?",
        options=("the same", "twice as much", "4 times as much", "16 times as much"),
        answer="16 times as much",
        because="Each mean has the weight ½, which is shared by 64 targets in one and by 4 in the other.",
    ),
    Prediction(
        "which_format",
        "A recipe for 8-bit training says `Format.E4M3`. Which tensors are stored in E4M3?",
        options=("those of the forward pass", "weights only", "all, gradients too"),
        answer="all, gradients too",
        because="E4M3 forward and E5M2 for gradients is another recipe, Format.HYBRID.",
    ),
    Prediction(
        "beats_the_pairs",
        "A table of pairs (which token follows which, counted) loses 3.56 nats a token on new text. Our small model "
        "gets 300 steps. Will it beat the table?",
        options=("from the first step on", "yes, but not at once", "never: it is too small"),
        answer="yes, but not at once",
        because="It first has to learn the table itself, and passes it after a third of the run or so.",
    ),
    Prediction(
        "forgotten_moments",
        "A run is resumed with its weights, but without the optimizer's moments. The first loss after that is …",
        options=("much too high", "a little too high", "exactly right"),
        answer="exactly right",
        because="A loss is computed from weights and text, before the optimizer does anything. The second is wrong.",
    ),
    Prediction(
        "epochs_of_the_run",
        "The run that `lmcourse train --recipe adamw` makes has 600 steps of 32 windows of 128 tokens. Its text has "
        "194,606 tokens. How often is each token read?",
        options=("once", "about 3 times", "about 13 times", "about 100 times"),
        answer="about 13 times",
        because="600 · 32 · 128 = 2,457,600 tokens, and that is 12.6 times the text.",
    ),
    Prediction(
        "what_decay_does",
        "A model reads the same 20,000 tokens fifteen times. Weight decay of 1, or dropout of 0.3: which lowers "
        "the loss on new text?",
        options=("neither", "decay alone", "dropout alone", "both"),
        answer="both",
        because="Where text comes back it can be learned by heart, and both make that harder.",
    ),
    Prediction(
        "largest_gain",
        "Four changes are made to a recipe, one after the other. Which of them gains most?",
        options=("a head of its own", "a warm-up of 50 steps", "QK-norm", "twice the rate"),
        answer="a head of its own",
        because="0.85 of 1.11 nats. Tied, the same 64 numbers a token have to do for reading and for writing.",
    ),
    Prediction(
        "race",
        "The last rung runs against itself with Muon for the matrices of its blocks. A step of Muon takes longer. "
        "Which has the lower loss when AdamW is done, by the clock?",
        options=("AdamW", "Muon", "neither: they differ by less than 0.1"),
        answer="Muon",
        because="It needs more seconds for a step, but far fewer steps.",
    ),
)
