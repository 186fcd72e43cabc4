"""The predictions of notebook 13."""

from __future__ import annotations

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "sixteen_layers",
        "Sixteen layers of width 512, weights drawn from a standard normal distribution, no norm. A vector of standard "
        "normal numbers goes in. How large are the numbers that come out?",
        options=("about 400", "about 10⁸", "about 10²¹", "about 1"),
        answer="about 10²¹",
        because="Each layer multiplies by √512 = 22.6, and 22.6 to the 16th is 5 · 10²¹.",
    ),
    Prediction(
        "sixteen_bit_parts",
        "A block trains under `torch.autocast` with bfloat16. Which of these are bfloat16: the stream between layers, "
        "the logits, the gradients of the weights?",
        options=("only the stream", "the stream and the logits", "only the logits", "all three"),
        answer="only the logits",
        because="Autocast converts the inputs of matrix products. The stream is a sum that starts in fp32, and each "
        "gradient has the dtype of its weight.",
    ),
    Prediction(
        "warm_up_of_half",
        "A run of 200 steps spends 100 of them warming up. Does it end better or worse than with a warm-up of 10?",
        options=("worse: half the steps are wasted", "no difference", "better"),
        answer="better",
        because="By 0.6 nats a token or more: early steps of full size do damage that later ones must repair.",
    ),
    Prediction(
        "two_texts_one_short",
        "Two micro-batches, one with 64 targets and one with 4. You average their mean losses. How much more does a "
        "target of the short one count?",
        options=("4 times as much", "16 times as much", "as much as the others", "twice as much"),
        answer="16 times as much",
        because="Each mean has the weight ½, which is shared by 64 targets in one and by 4 in the other.",
    ),
    Prediction(
        "forgotten_moments",
        "A run is resumed with its weights, but without the optimizer's moments. The first loss after that is …",
        options=("exactly right", "a little too high", "much too high"),
        answer="exactly right",
        because="A loss is computed from weights and text, before the optimizer does anything. The second is wrong.",
    ),
    Prediction(
        "sixty_updates",
        "After 60 of 300 updates the loss is about 1.4 nats a byte; guessing among the bytes would cost 4.9. What does "
        "the model write then?",
        options=("random bytes", "pieces of words", "sentences with wrong words"),
        answer="pieces of words",
        because="1.4 nats are a choice among about four bytes each time. Frequent endings are right; few long "
        "words survive that many choices.",
    ),
    Prediction(
        "four_times_the_batch",
        "With 16 windows a batch this model needs 93 updates until new stories cost 1 nat a byte. How many with 64 "
        "windows?",
        options=("about 93", "about 63", "about 46", "about 23"),
        answer="about 63",
        because="A gradient of 16 windows is already about half signal. More windows can only remove the noise.",
    ),
    Prediction(
        "best_at_128",
        "At widths 16, 32 and 64 the best rate is where the rings are. Where is it at width 128?",
        options=("0.016", "0.002", "0.004", "0.008"),
        answer="0.004",
        because="From 32 on, each doubling of the width halved the best rate; it does so once more.",
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
        options=("decay alone", "both", "dropout alone", "neither"),
        answer="both",
        because="Both make it harder to learn by heart. The figure below says by how much.",
    ),
    Prediction(
        "largest_gain",
        "Four changes are made to a recipe, one after the other. Which of them gains most?",
        options=("a warm-up of 50 steps", "twice the rate", "a head of its own", "QK-norm"),
        answer="a head of its own",
        because="0.85 of 1.11 nats. The figure below has all four, with their seeds.",
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
