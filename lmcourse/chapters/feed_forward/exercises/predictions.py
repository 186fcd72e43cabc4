"""The predictions of notebook 11."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "shuffled_tokens",
        "You shuffle the tokens of a text and send them through a feed-forward layer. What comes out?",
        options=("the same vectors, in the new order", "the same vectors, in the old order", "other vectors"),
        answer="the same vectors, in the new order",
        because="The layer sees one token at a time and does the same to each. Only attention looks at others.",
    ),
    Prediction(
        "wide_but_straight",
        "A layer without an activation has 10,000 hidden units. How well can it follow a sine wave?",
        options=("as well as you like", "in a few bends", "like a straight line"),
        answer="like a straight line",
        because="Two matrices in a row are one matrix. However wide, the result is linear in the input.",
    ),
    Prediction(
        "silu_falls",
        "A lecture says that GELU and Swish are not 'monotonically decreasing'. For which x does SiLU, x·σ(x), fall?",
        options=("for no x", "for all x below 0", "for x below −1.28", "for x between −1.28 and 0"),
        answer="for x below −1.28",
        because="The word meant was *increasing*. From the left the curve falls from 0 to −0.278 at −1.278, and rises "
        "from there on.",
    ),
    Prediction(
        "gelu_backward",
        "The derivative of GELU has an erf and an exp. How much longer than ReLU's does its backward pass take, on an "
        "H100, as one kernel in bf16?",
        options=("about as long", "three times", "ten times", "thirty times"),
        answer="about as long",
        because="Both read two numbers and write one, and wait for memory. The arithmetic fits into the waiting.",
    ),
    Prediction(
        "smaller_by_two_thirds",
        "d = 4096, and a plain layer is 16,384 wide. Notes say that a gated one is 'smaller by about 2/3'. How wide is "
        "it with the same number of parameters?",
        options=("about 5,461", "about 8,192", "about 10,923", "16,384"),
        answer="about 10,923",
        because="It is smaller by a *factor* of 2/3. Three matrices of 2/3 weigh as much as two whole ones.",
    ),
    Prediction(
        "t5_width",
        "T5-11B has d = 1024. How wide are its feed-forward layers?",
        options=("2,731", "4,096", "16,384", "65,536"),
        answer="65,536",
        because="64 times d (Raffel et al., 2020): the largest matrices were to keep the accelerators busy.",
    ),
    Prediction(
        "falcon_2_activation",
        "A lecture names three large models that do without gates: GPT-3, Nemotron-4 340B and Falcon 2 11B, 'which "
        "uses a ReLU'. What is wrong with that?",
        options=("GPT-3 is gated", "Nemotron is gated", "Falcon 2 is gated", "Falcon 2 uses GELU"),
        answer="Falcon 2 uses GELU",
        because="None of the three is gated: GPT-3 and Falcon 2 use GELU, Nemotron-4 squared ReLU.",
    ),
)
