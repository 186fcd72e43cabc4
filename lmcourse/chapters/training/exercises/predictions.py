"""The predictions of notebook 13."""

from __future__ import annotations

from lmcourse.exercises.prediction import NumberPrediction, Prediction

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
    NumberPrediction(
        "two_texts_one_short",
        "How wrong is the gradient then, in percent of the right one: the length of the difference over the length of "
        "the gradient?",
        answer=140,
        low=0,
        high=300,
        unit="%",
        because="On three new models it is 114 to 154 %. A few targets of the short text decide where the step goes.",
    ),
    Prediction(
        "forgotten_moments",
        "A run is resumed with its weights and its place in the text, but without the optimizer's moments. Is the "
        "first loss after that right?",
        options=("yes, to the last bit", "nearly: it is off by a little", "no, it is far off"),
        answer="yes, to the last bit",
        because="A loss is computed from weights and text, before the optimizer does anything. The second is wrong.",
    ),
    NumberPrediction(
        "sixty_updates",
        "Guessing among 128 bytes costs 4.85 nats, and after 300 updates the loss is about 0.45. How large is it "
        "after 60?",
        answer=1.35,
        low=0.2,
        high=4.85,
        unit="nats",
        because="Most is learned early. 1.35 nats are a choice among about four bytes each time: endings and short "
        "words are right, sentences are not.",
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
        because="0.85 of 1.11 nats. The cell below has all four, with their seeds.",
    ),
    NumberPrediction(
        "warm_up_on_top",
        "With a tied head, a warm-up of 50 steps gains 0.6 nats. How much does it gain if the head has weights of its "
        "own?",
        answer=0.14,
        low=0.0,
        high=1.2,
        unit="nats",
        because="Both changes cure the same trouble, early steps that do damage. Gains do not add up.",
    ),
)
