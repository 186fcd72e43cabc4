"""The predictions of notebook 10."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "scale_of_the_gradient",
        "There is a norm before a layer. You make the input of the norm 100 times larger, and its output stays the "
        "same. What happens to the gradient with respect to that input?",
        options=("it stays the same", "it becomes a hundredth", "it becomes 100 times larger"),
        answer="it becomes a hundredth",
        because="The output ignores the factor 100. So a step of the same length now turns the input a hundred times "
        "less, and changes the loss a hundred times less.",
    ),
    Prediction(
        "twice_as_large_in_fp16",
        "(200, 400, 200, 0) in fp16 goes through an RMSNorm that computes in fp16, too. What comes out?",
        options=("zeros", "(0.82, 1.63, 0.82, 0), as for half of it", "infinities", "NaN"),
        answer="zeros",
        because="A norm does not depend on the size of its input, but its squares do: 400² = 160,000 is beyond fp16's "
        "65,504. The root mean square is infinite, and a number divided by infinity is 0.",
    ),
    Prediction(
        "from_layer_to_rms",
        "A GPT-2 was trained with LayerNorms. Can you turn it into a model with RMSNorms, without any training, that "
        "gives the same logits?",
        options=("nearly, if the means are small", "yes, exactly", "no: an RMSNorm cannot subtract a mean"),
        answer="yes, exactly",
        because="An RMSNorm cannot subtract a mean. But the mean can be gone before the norm reads it.",
    ),
    Prediction(
        "faster_norm",
        "2,048 tokens of 4,096 features on this processor, through torch's own functions. Which one is faster?",
        options=("F.layer_norm, which does more", "both the same, to a few percent", "F.rms_norm, which does less"),
        answer="F.layer_norm, which does more",
        because="On a CPU, PyTorch has one kernel for all of LayerNorm, which reads the features once and writes them "
        "once. RMSNorm is put together from several operations, and each of them reads and writes the memory.",
    ),
    Prediction(
        "left_after_12_blocks",
        "A post-norm model has 12 blocks. Each branch adds a vector as long as the stream and unrelated to it. How "
        "much of the embedding's length is left in the end?",
        options=("20 %", "4 %", "0.024 %"),
        answer="0.024 %",
        because="Each of the 24 post-norms shortens everything that was there before. The next exercise works out by "
        "how much.",
    ),
    Prediction(
        "post_norm_gradients",
        "48 post-norm blocks with SwiGLU (the feed-forward layer of notebook 11), at initialisation. How large is the "
        "gradient of the first block's weights, compared with the last block's?",
        options=("about the same", "a hundred times larger or more", "a hundred times smaller or less"),
        answer="a hundred times larger or more",
        because="A gradient that passes 96 norms and 96 branches is a product of many factors. Such a product may "
        "vanish, and it may explode. The activation and the weights decide which of the two.",
    ),
    Prediction(
        "straight_alone",
        "In the same 48 post-norm blocks, look at the straight part of the gradient only, as if no branch passed "
        "anything back. How much of it is left at the other end of 94 branches?",
        options=("about a billionth", "about a half", "about 500 times as much as at the start"),
        answer="about a billionth",
        because="On the straight way, each post-norm divides the gradient by about the factor by which it shortens "
        "the stream.",
    ),
    Prediction(
        "deep_post_norm",
        "A post-norm model and a pre-norm model learn for 60 steps, without warm-up. Once both have 2 blocks, once 16. "
        "Where is post-norm better?",
        options=("with 2 blocks", "with 16 blocks", "with both", "with neither"),
        answer="with 2 blocks",
        because="A shallow post-norm model learns faster here. With 16 blocks it learns only how often each byte "
        "occurs.",
    ),
    Prediction(
        "parallel_flops",
        "Attention and feed-forward layer read the same input, instead of one after the other. How do the FLOPs of a "
        "block change?",
        options=("they halve", "by less than 1 %", "by about 15 %"),
        answer="by less than 1 %",
        because="The same matrices are multiplied with as many tokens; only one norm is saved. The figure below shows "
        "what gets shorter.",
    ),
)
