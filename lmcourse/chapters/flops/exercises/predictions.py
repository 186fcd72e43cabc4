"""The predictions of notebook 15."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "flops_or_rate",
        "A job needs 3 · 10¹⁸ FLOPs. A data sheet says '312 teraFLOPs'. Can you say how long the job takes at best?",
        options=("yes: about 10,000 seconds", "no: that is an amount, too", "no: it depends on the number of GPUs"),
        answer="yes: about 10,000 seconds",
        because="The sheet means 312 · 10¹² per second, although it writes an amount. 3 · 10¹⁸ divided by it is "
        "9,615 seconds.",
    ),
    Prediction(
        "twice_as_wide",
        "You double both widths of a model, of its features and inside its feed-forward layers, and keep the number of "
        "its layers and its short text. How many more FLOPs does a token take?",
        options=("the same", "about twice as many", "about four times as many", "about eight times as many"),
        answer="about four times as many",
        because="A weight matrix has both an input and an output width, so it has four times as many weights; and "
        "each takes 2 FLOPs per token.",
    ),
    NumberPrediction(
        "head_share",
        "GPT-2 small reads 1024 tokens. It has 12 layers and one head, to 50,257 tokens. How much of the forward pass "
        "is the head?",
        answer=27,
        low=0,
        high=100,
        unit="%",
        because="A head of 768 × 50,257 has 38.6M weights, nearly half as many as all twelve layers together, and each "
        "takes 2 FLOPs per token.",
    ),
    Prediction(
        "two_layers_back",
        "Two layers, 128 × 128 and then 128 × 32, are trained on a batch that itself needs no gradient. How many "
        "times the forward pass does the backward pass take?",
        options=("0.5 times", "exactly once", "1.2 times", "2 times", "2.5 times"),
        answer="1.2 times",
        because="The second layer has two gradients, the first only one, that of its weights: (4·32 + 2·128) / "
        "(2·32 + 2·128) = 1.2.",
    ),
    Prediction(
        "as_long_as_wide",
        "A text is as long as the model is wide, S = D. How much of a layer's forward FLOPs goes into scores and "
        "values?",
        options=("one half", "one third", "one seventh", "one hundredth"),
        answer="one seventh",
        because="Scores and values take 4·S·D per token, the matrices 24·D². With S = D these are 4 of 28.",
    ),
    Prediction(
        "more_gpus",
        "A run takes 60 days on 512 GPUs. You get 1024, and MFU falls from 0.5 to 0.4. What happens to the bill, "
        "paid per GPU-hour?",
        options=("it halves", "it stays", "it grows by a quarter", "it doubles"),
        answer="it grows by a quarter",
        because="The number of GPUs cancels: GPU-hours are FLOPs / (peak · MFU). Only MFU counts, 0.5 / 0.4 = 1.25. "
        "The run is done after 37.5 days.",
    ),
    Prediction(
        "writing_a_text",
        "'Transformers have quadratic runtime.' A model of width 4096 generates 2048 tokens with a KV cache. "
        "How much of its layers' work is the part that grows with the square?",
        options=("4 %", "33 %", "67 %", "96 %"),
        answer="4 %",
        because="At step t attention takes 4·t·d and the matrices 24·d². On average t is 1024, a quarter of d: a "
        "twenty-fourth of the matrices' work.",
    ),
    Prediction(
        "which_is_faster",
        "The same training on the same H100: in fp32 it reaches 70 % of the fp32 peak, in bf16 only 35 % of the bf16 "
        "peak. Which is faster?",
        options=("fp32, twice as fast", "equally fast", "bf16, twice as fast", "bf16, seven times as fast"),
        answer="bf16, seven times as fast",
        because="0.70 · 67 = 47 TFLOP/s, and 0.35 · 989 = 346 TFLOP/s. A share says how well you use a peak, not how "
        "high it is.",
    ),
    Prediction(
        "recompute_less",
        "A 175B model recomputes every block, and a step takes 18.13 s. The authors change it to recompute only scores "
        "and values; then a step takes 13.75 s. What happens to the share of the peak that is really computed (HFU)?",
        options=("it falls by a quarter", "it stays nearly the same", "it rises by a third"),
        answer="it stays nearly the same",
        because="The GPUs do less work, and in proportion less time: they were as busy before. What rises by a third "
        "is MFU, the share that is useful.",
    ),
    Prediction(
        "their_factor",
        "The same paper publishes an HFU of 52.8 % for the run in which scores and values are computed a second time. "
        "By what must its authors have multiplied their part of a training step?",
        options=("by 1", "by 4/3", "by 5/3", "by 2"),
        answer="by 2",
        because="Model FLOPs are 51.4 %, and 1.4 of it are scores and values. One more forward pass of them makes 4/3 "
        "of 1.4, in all 51.8 %. Only 2 · 1.4 gives 52.8 %.",
    ),
    NumberPrediction(
        "given_mfu",
        "The given run reads one text of 64 bytes a step, with four layers of width 64. What is its MFU?",
        answer=10,
        low=0,
        high=100,
        unit="%",
        because="On our machines it was 7 to 14 %; a cell below measures yours. Its products are so small that most of "
        "a step is something else.",
    ),
    Prediction(
        "half_the_layers",
        "The width is doubled, and of the layers half are left. What happens to the MFU?",
        options=("it rises", "it stays", "it falls"),
        answer="it rises",
        because="Products of twice the width have four times the FLOPs, and there are half as many of them, and of all "
        "the small operations around them.",
    ),
)
