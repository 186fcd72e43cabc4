"""The predictions of notebook 19."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "who_waits",
        "A GPU needs 4 ms for a product, and 0.01 ms pass until the call returns. You look at the clock right before "
        "and right after the call. What do you read?",
        options=("0.01 ms", "4 ms", "4.01 ms", "nothing: it fails"),
        answer="0.01 ms",
        because="The call hands the work over and returns. If you do not wait for the device, you time the handing "
        "over, and find 400 times the speed.",
    ),
    Prediction(
        "one_slow_run",
        "Nine runs take 10 ms each, and one takes 110 ms because the system did something else. Which number says best "
        "how long a run takes?",
        options=("the mean, 20 ms", "the median, 10 ms", "the slowest, 110 ms"),
        answer="the median, 10 ms",
        because="No run took 20 ms. The median stays where most runs are; the quartiles beside it show how far they "
        "scatter.",
    ),
    Prediction(
        "ridge_over_time",
        "From V100 to H100, which grew faster: the peak for 16-bit products or the bandwidth of the memory?",
        options=("the peak", "the bandwidth", "both by the same factor"),
        answer="the peak",
        because="The peak grew 8-fold, the bandwidth 3.7-fold. So the ridge moved from 139 to 295 FLOPs per byte, and "
        "more and more operations wait for memory.",
    ),
    Prediction(
        "kernel_time",
        "A kernel computes for 3 µs and moves bytes for 2 µs. How long does it take at best?",
        options=("2 µs", "3 µs", "5 µs", "6 µs"),
        answer="3 µs",
        because="Both happen at the same time: while one tile is multiplied, the next is loaded. The longer of the two "
        "counts.",
    ),
    Prediction(
        "one_token_more",
        "One token passes a matrix of 8192 × 8192 on an A100, limited by memory. Now 100 tokens pass together. How "
        "long does it take?",
        options=("about as long as before", "10 times as long", "100 times as long"),
        answer="about as long as before",
        because="The weights are fetched once, for one token or for a hundred, and they are nearly all that moves. "
        "While they are on their way, there is time for more arithmetic than 100 tokens need.",
    ),
    Prediction(
        "three_kernels_in_one",
        "Scale, add a bias, GELU: 1, 1 and 20 operations on every number of a large tensor, in three kernels. You fuse "
        "them into one. How many times as fast is that on a GPU, at best?",
        options=("1.1 times", "3 times", "22 times"),
        answer="3 times",
        because="Each kernel waits for memory: it reads every number and writes it back, whether it does 1 operation "
        "or 20 in between. One trip instead of three is 3 times as fast.",
    ),
    Prediction(
        "free_flops",
        "In a BERT layer 99.8 % of the FLOPs are in matrix products. Which share of the time are they?",
        options=("99.8 %", "about 90 %", "about 60 %", "about 10 %"),
        answer="about 60 %",
        because="Ivanov et al. (2021, table 1) measured 61 % on a V100. Softmax and layer norm, one class in that "
        "table, have 0.17 % of the FLOPs and 25.5 % of the time, because they wait for memory. If they took no time "
        "at all, 74.5 % would be left: the layer would be 1 / 0.745 = 1.34 times as fast.",
    ),
    NumberPrediction(
        "enough_tokens",
        "An A100 does 312 TFLOP/s in bf16 and moves 2.039 TB/s. From how many tokens on does arithmetic limit a "
        "product with an 8192 × 8192 matrix in bf16? Use the formula above.",
        answer=159,
        low=1,
        high=1000,
        unit="tokens",
        because="The ridge is 312/2.039 = 153 FLOPs per byte. n·8192/(2n + 8192) reaches it at n = 158.94. With "
        "weights alone it would be 153 tokens, but inputs and outputs move, too. With 158 tokens there are 152.1 FLOPs "
        "per byte, a little less than the ridge. 163? "
        "That is for 2.0 TB/s, whose ridge is 156.",
    ),
    Prediction(
        "which_mend",
        "The step has these four faults, among others. Which one, mended alone, brings most on a CPU core?",
        options=(
            ".item() after each text",
            "attention in fp64",
            "tables that are made again for each text",
            "norm and GELU in many small operations",
        ),
        answer="tables that are made again for each text",
        because="The labels `positions` and `mask` take the largest share, so they can bring most. Waiting costs a CPU "
        "nothing: it has done the work anyway.",
    ),
    Prediction(
        "products_on_a_core",
        "A training step in fp32 on a single CPU core: 2 blocks of width 128, 8 texts of 64 tokens, AdamW. Nearly all "
        "of its FLOPs are in matrix products. Which share of its time do they take?",
        options=("about a quarter", "about half", "nearly all"),
        answer="about half",
        because="The figure below shows your share. A core multiplies slowly, but it also adds, copies and divides "
        "slowly, and at a width of 128 there is much to add and copy for each product.",
    ),
    NumberPrediction(
        "norm_in_one_kernel",
        "A LayerNorm of five operations reads a large tensor five times, and writes one three times. One kernel reads "
        "once and writes once. How many times as fast is it, if only memory counts?",
        answer=4,
        low=1,
        high=10,
        unit="times",
        step=0.5,
        because="Eight passes through memory become two. It is 5 only for those who count the reading alone.",
    ),
    Prediction(
        "bf16_on_a_cpu",
        "On an H100, which has tensor cores, bf16 made a training step more than twice as fast. On a processor without "
        "units for it, compared with fp32, training in bf16 becomes",
        options=("several times faster", "twice as fast", "slower or about as fast"),
        answer="slower or about as fast",
        because="Half the bytes move, but the products run in software or on the fp32 units, and every conversion "
        "takes time. A smaller format pays where there are units for it: measure.",
    ),
)
