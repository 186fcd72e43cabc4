"""The predictions of notebook 18."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "ring_of_receivers",
        "Three workers in a ring. Each first receives from its left neighbour, then sends to the right. What happens?",
        options=("the messages go round once", "worker 0 begins, the others follow", "nothing, for ever"),
        answer="nothing, for ever",
        because="Each line alone looks right. But all three wait for a message, and none gets as far as sending one.",
    ),
    NumberPrediction(
        "ring_of_a_thousand",
        "A ring adds up gradients of 1 GB. With 8 workers, each sends 1.75 GB. How much does each send with 1,000?",
        answer=1.998,
        low=0.1,
        high=1000,
        unit="GB",
        log=True,
        because="2(N − 1)/N · M: 1.75 M for 8 workers, 1.998 M for a thousand. Each of them sends smaller chunks more "
        "often. What grows is the number of rounds.",
    ),
    Prediction(
        "rounds_of_eight",
        "Eight workers add up a single number. Which way takes the fewest rounds?",
        options=("through rank 0", "the ring", "doubling", "all three take as many"),
        answer="doubling",
        because="Rank 0 receives seven messages and sends seven, and the ring has two times seven rounds: 14 each. "
        "Doubling has three.",
    ),
    NumberPrediction(
        "ring_from_here",
        "On a wire a message of M bytes takes 2 ms + M · 4 ns. Four workers add up, in a ring or by doubling. From how "
        "many bytes on is the ring faster?",
        answer=4_000_000,
        low=4_000,
        high=400_000_000,
        unit="bytes",
        log=True,
        because="The ring takes 6α + 1.5 βM, doubling 2α + 2 βM. They are equal if 4α = 0.5 βM, so at M = 8α/β: 4 MB.",
    ),
    Prediction(
        "bigger_model_slower_sync",
        "Data parallelism: you train a model with twice as many parameters, with the same tokens per device. How does "
        "the fraction of time that adding up gradients takes change?",
        options=("it halves", "it stays", "it doubles"),
        answer="it stays",
        because="Twice as many gradients are sent, and computing them takes twice as long. The number of parameters "
        "cancels; the tokens per device do not.",
    ),
    Prediction(
        "zero_one",
        "Each of 8 devices keeps an eighth of the optimizer (ZeRO 1) and takes the step for these weights. How many "
        "bytes does it send in a step, compared with plain data parallelism?",
        options=("as many", "half as many again", "twice as many"),
        answer="as many",
        because="An all-reduce is a reduce-scatter and an all-gather. Between the two each worker takes the step for "
        "its part; then weights are gathered instead of gradients.",
    ),
    Prediction(
        "rows_first",
        "Two workers each multiply with *half of the input features* of the first matrix, and apply GELU. The results "
        "are added, and multiplied with the second matrix. Is the layer still right?",
        options=("yes: sums can be taken in any order", "no", "only up to rounding"),
        answer="no",
        because="Half of the inputs gives a part of every hidden feature. GELU of two parts, added, is not GELU of "
        "their sum: the sum would have to come before.",
    ),
    Prediction(
        "sequence_parallel_traffic",
        "Sequence parallelism puts two collectives, an all-gather and a reduce-scatter, in the place of one "
        "all-reduce. How many bytes more are sent in the forward pass?",
        options=("none", "half as many again", "twice as many"),
        answer="none",
        because="A ring all-reduce is these two, one after the other. They have only moved apart: one is before the "
        "matrices, the other after them.",
    ),
    Prediction(
        "bubble_of_1f1b",
        "Four stages and four micro-batches. GPipe's stages idle 42.9% of the time. And 1F1B's?",
        options=("about 10%", "about 21%", "42.9%"),
        answer="42.9%",
        because="In both schedules the first micro-batch passes all stages forward, and the last one all stages "
        "backward. 1F1B frees memory earlier; it takes as long.",
    ),
    Prediction(
        "what_ddp_averages",
        "The mean over all four targets has the gradient (3 · 1 + 1 · 10)/4 = 3.25. Which gradient does DDP leave in "
        ".grad?",
        options=("3.25", "5.5", "11"),
        answer="5.5",
        because="DDP knows gradients, not targets. It sums them and divides by the number of workers.",
    ),
    Prediction(
        "idle_in_the_ring",
        "Ring attention with a causal mask, tokens in order. Which worker computes the fewest scores?",
        options=("worker 0", "the last worker", "all compute as many"),
        answer="worker 0",
        because="Its tokens are the first of the text. They see only themselves, and every block that arrives is "
        "hidden from them.",
    ),
)
