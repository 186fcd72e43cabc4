"""The predictions of notebook 19."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "who_waits",
        "A GPU needs 4 ms for a product, and 0.01 ms pass until the call returns. You look at the clock right before "
        "and right after the call. What do you read?",
        options=("0.01 ms", "4 ms", "4.01 ms", "nothing: it fails"),
        answer="0.01 ms",
        because="The call hands the work over and returns. Whoever does not wait for the device times the handing "
        "over, and finds 400 times the speed.",
    ),
    Prediction(
        "one_slow_run",
        "Nine runs take 10 ms each, and one takes 110 ms because the system did something else. Which number says best "
        "how long a run takes?",
        options=("the mean, 20 ms", "the median, 10 ms", "the slowest, 110 ms"),
        answer="the median, 10 ms",
        because="No run took 20 ms. The median stays where most runs are; the quartiles beside it tell how far they "
        "scatter.",
    ),
    Prediction(
        "ridge_over_time",
        "From V100 to H100, which grew faster: the peak for 16-bit products or the bandwidth of the memory?",
        options=("the peak", "the bandwidth", "both alike"),
        answer="the peak",
        because="The peak grew 8-fold, the bandwidth 3.7-fold. So the ridge moved from 139 to 295 FLOPs per byte, and "
        "more and more operations wait for memory.",
    ),
    Prediction(
        "kernel_time",
        "A kernel computes for 3 µs and moves bytes for 2 µs. How long does it take at best?",
        options=("2 µs", "3 µs", "5 µs", "6 µs"),
        answer="3 µs",
        because="Both go on at the same time: while one tile is multiplied, the next is loaded. The longer of the two "
        "counts.",
    ),
    Prediction(
        "one_token_more",
        "One token passes a matrix of 8192 × 8192 on an A100, limited by memory. Now 100 tokens pass together. How "
        "much longer does it take?",
        options=("hardly longer", "10 times", "100 times"),
        answer="hardly longer",
        because="The weights have to be fetched once, for one token or for a hundred, and they are nearly all that "
        "moves. Up to about 160 tokens arithmetic is faster than that.",
    ),
    Prediction(
        "free_flops",
        "In a BERT layer 99.8 % of the FLOPs are in matrix products. Which share of the time are they?",
        options=("99.8 %", "about 90 %", "about 60 %", "about 10 %"),
        answer="about 60 %",
        because="Ivanov et al. (2021, table 1) measured 61 %. Normalisation and element-wise operations take nearly no "
        "FLOPs, and 39 % of the time: they wait for memory.",
    ),
    Prediction(
        "bf16_on_a_cpu",
        "On a GPU with tensor cores bf16 makes training several times faster. On a processor without units for it, "
        "compared with fp32, training in bf16 becomes",
        options=("several times faster", "twice as fast", "slower or about as fast"),
        answer="slower or about as fast",
        because="Half the bytes move, but the products run in software or on the fp32 units, and every conversion "
        "takes time. Precision pays where there are units for it: measure.",
    ),
)
