"""The predictions of notebook 01."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "tiny_gradient",
        "A gradient of 1e-8 is stored in fp16, and another in bf16. What is left of them?",
        options=("about 1e-8 and 0", "0 and 0", "about 1e-8, both", "0 and about 1e-8"),
        answer="0 and about 1e-8",
        because="fp16's smallest positive number is 5.96e-8. bf16 has the exponents of fp32 and reaches down to "
        "9.2e-41.",
    ),
    Prediction(
        "fp16_unscaled",
        "The same run in fp16. Over the 100 steps, its loss …",
        options=("falls as in bf16", "rises", "stays where it is", "falls, but more slowly"),
        answer="rises",
        because="Most gradients round to 0, but not those of the right bytes' logits. These logits are pushed up in "
        "every step, and a wrong logit is pushed down only if its probability is above 1/8.",
    ),
    Prediction(
        "fp8_unscaled",
        "The same run in (4, 3), with a loss scale of 1. The smallest number of this format is 2⁻⁹. What does the "
        "model learn in 100 steps?",
        options=("nothing", "the wrong thing, as in fp16", "as much as in the exact run"),
        answer="nothing",
        because="All gradients of the run are smaller than half of 2⁻⁹, so all become 0, those of the right bytes too. "
        "No weight ever changes.",
    ),
    NumberPrediction(
        "fewest_bits",
        "Each format gets the middle of your two loss scales. Which is the smallest format, in bits with the sign, in "
        "which this model ends within 0.05 of the exact run, on average over three seeds?",
        answer=7,
        low=4,
        high=16,
        unit="bits",
        step=1,
        because="(4, 2) does: two mantissa bits are enough for this model, and one is not. Four exponent bits are "
        "enough, because the scale shifts the gradients into their range.",
    ),
    Prediction(
        "sum_of_hundredths",
        "Start at 0 and add 0.01 a thousand times in bf16. Where do you end?",
        options=("exactly 10", "4.0", "9.953", "10.04"),
        answer="4.0",
        because="4.01 rounds back to 4, so the next addition starts from 4 again. Why does the sum stop at 4, and not "
        "at 2?",
    ),
    Prediction(
        "numbers_per_binade",
        "bf16 has 128 numbers from 1 up to (not including) 2. How many does it have from 2 up to (not including) 4?",
        options=("64", "128", "256", "512"),
        answer="128",
        because="Each power of two gets the same 2⁷ codes, so the same number of values is spread over twice the "
        "length.",
    ),
    Prediction(
        "one_outlier",
        "One of the 49,152 numbers becomes 100 times as large as the largest. With one scale for all, which format's "
        "error grows much?",
        options=("both", "that of E4M3", "that of E2M1", "neither"),
        answer="that of E2M1",
        because="The scale makes all other numbers 100 times smaller. E4M3 has exponents of its own to follow; in E2M1 "
        "everything below 0.25 is 0.",
    ),
    Prediction(
        "softmax_overflow",
        "How large may a logit be before exp overflows in fp16?",
        options=("about 89", "65,504", "about 11", "about 709"),
        answer="about 11",
        because="exp(x) passes 65,504 at x = ln 65,504 ≈ 11.09. In fp32 and bf16 that happens at 88.7, in fp64 at "
        "709.8.",
    ),
)
