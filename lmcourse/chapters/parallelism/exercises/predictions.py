"""The predictions of notebook 18."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "ring_of_receivers",
        "Three workers in a ring. Each first receives from its left neighbour, then sends to the right. What happens?",
        options=("the messages go round once", "worker 0 begins, the others follow", "nothing, for ever"),
        answer="nothing, for ever",
        because="Each line alone looks right. But everybody waits for a message, and nobody gets as far as sending "
        "one.",
    ),
    Prediction(
        "ring_of_a_thousand",
        "A ring adds up gradients of 1 GB. With 8 workers, each sends 1.75 GB. With 1,000?",
        options=("about 2 GB", "about 20 GB", "about 220 GB"),
        answer="about 2 GB",
        because="2(N − 1)/N · M: 1.75 M for 8 workers, 1.998 M for a thousand. Each of them sends smaller chunks more "
        "often. What grows is the number of rounds.",
    ),
    Prediction(
        "bigger_model_slower_sync",
        "Data parallelism: a run with the same tokens per device moves on to a model of twice as many parameters. "
        "Which share of its time does it spend on adding up gradients?",
        options=("half of what it was", "the same", "twice as much"),
        answer="the same",
        because="Twice as many gradients travel, and computing them takes twice as long. The number of parameters "
        "cancels; the tokens per device do not.",
    ),
    Prediction(
        "zero_one",
        "Llama 3 8B in mixed precision on 8 devices. ZeRO stage 1 shares the optimiser out. Memory and bytes sent?",
        options=(
            "a third of the memory, more bytes",
            "a third of the memory, no byte more",
            "an eighth of the memory, no byte more",
        ),
        answer="a third of the memory, no byte more",
        because="An all-reduce *is* a reduce-scatter and an all-gather. Between the two, each worker does its share of "
        "the step; then weights are gathered instead of gradients.",
    ),
    Prediction(
        "rows_first",
        "Two workers each multiply with *half of the input features* of the first matrix, apply GELU, multiply with "
        "their half of the second matrix, and the results are added. Is the layer still right?",
        options=("yes: sums can be taken in any order", "no", "only up to rounding"),
        answer="no",
        because="Half of the inputs gives a part of every hidden number. GELU of two parts, added, is not GELU of "
        "their sum: the sum would have to come before.",
    ),
    Prediction(
        "sequence_parallel_traffic",
        "Sequence parallelism puts two collectives, an all-gather and a reduce-scatter, in the place of one "
        "all-reduce. How many bytes more are sent in the forward pass?",
        options=("none", "half as many again", "twice as many"),
        answer="none",
        because="A ring all-reduce is these two, one after the other. They have only moved apart: one stands before "
        "the matrices, the other behind.",
    ),
    Prediction(
        "bubble_of_1f1b",
        "Four stages and four micro-batches. GPipe's stages idle 42.9 % of the time. And 1F1B's?",
        options=("about 10 %", "about 21 %", "42.9 %"),
        answer="42.9 %",
        because="The first micro-batch has to go all the way down and back in either. 1F1B frees memory earlier, and "
        "no time.",
    ),
)
