"""The predictions of notebook 11."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "shuffled_tokens",
        "You shuffle the tokens of a text and send them through a feed-forward layer. What comes out?",
        options=("other vectors", "the same vectors, in the old order", "the same vectors, in the new order"),
        answer="the same vectors, in the new order",
        because="The layer sees one token at a time and does the same to each. Only attention looks at others.",
    ),
    Prediction(
        "wide_but_straight",
        "A layer without an activation has 10,000 hidden units. How well can it follow a sine wave?",
        options=("as well as you like", "like a straight line", "in a few bends"),
        answer="like a straight line",
        because="Two matrices in a row are one matrix. However wide, the result is linear in the input.",
    ),
    NumberPrediction(
        "loss_after_li",
        "Unit 225 of layer 1 waits for li. Without it, by how much does the mean loss of the token after li rise?",
        answer=0.05,
        low=0,
        high=2,
        step=0.01,
        unit="nats",
        because="The unit helps a little. Other units make ter and st likelier, too, and many words begin with li.",
    ),
    Prediction(
        "unit_at_random",
        "You switch off one unit drawn at random. Does the mean loss of the whole text rise by less than 0.01 nats?",
        options=("yes, nearly always", "about every second time", "hardly ever"),
        answer="yes, nearly always",
        because="There are 1,408 units. Of 60 that were drawn, 58 cost less, and 7 of them less than nothing.",
    ),
    Prediction(
        "layer_to_spare",
        "You switch off all 352 units of one layer. Of which layer can the model spare them least?",
        options=("layer 0, the first", "layer 1 or 2", "layer 3, the last", "all layers cost about the same"),
        answer="layer 0, the first",
        because="Without it the loss rises by 5.8 nats; without layer 3 by 0.7, and by 0.3 without 1 or 2.",
    ),
    Prediction(
        "gelu_backward",
        "The derivative of GELU has an erf and an exp. How long does its backward pass take on an H100, as one kernel "
        "in bf16, compared with ReLU's?",
        options=("thirty times as long", "ten times as long", "three times as long", "about as long"),
        answer="about as long",
        because="Both read two numbers and write one, and wait for memory. The arithmetic fits into the waiting.",
    ),
    Prediction(
        "t5_width",
        "T5-11B has d = 1024. How wide are its feed-forward layers?",
        options=("2,731", "4,096", "16,384", "65,536"),
        answer="65,536",
        because="64 times d, by far the largest ratio in the figure below. The list says why.",
    ),
    Prediction(
        "qwen3_heads",
        "Qwen3-0.6B has d = 1024, and each of its heads is 128 wide. How many heads are there?",
        options=("4", "8", "16", "64"),
        answer="16",
        because="Together they are 2048 wide, twice as wide as the model. The output projection returns to 1024.",
    ),
    Prediction(
        "gemma_table",
        "Gemma 3 1B has a table of 262,144 tokens. Which fraction of its parameters is it?",
        options=("3 %", "10 %", "30 %", "60 %"),
        answer="30 %",
        because="262,144 · 1152 is 302 million, of one billion.",
    ),
    Prediction(
        "moe_flops",
        "A layer has 8 experts, and each token uses 2. It has 8 times the parameters of one such expert. And how many "
        "FLOPs for a token?",
        options=("as many", "2 times as many", "4 times as many", "8 times as many"),
        answer="2 times as many",
        because="A token passes two experts, and the router, which is small. The other six compute nothing for it.",
    ),
)
