"""The predictions of notebook 10."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "scale_of_the_gradient",
        "A norm stands in front of a layer. What comes into the norm is made 100 times larger; the output stays the "
        "same. What happens to the gradient with respect to that input?",
        options=("100 times larger", "the same", "a hundredth"),
        answer="a hundredth",
        because="The output does not notice the factor 100. So a step of the same length now changes the direction of "
        "the input a hundred times less, and with it the loss.",
    ),
    Prediction(
        "twice_as_large_in_fp16",
        "(200, 400, 200, 0) in fp16 goes through an RMSNorm that somebody wrote without thinking of number formats. "
        "What comes out?",
        options=("(0.82, 1.63, 0.82, 0), as for half of it", "zeros", "infinities", "NaN"),
        answer="zeros",
        because="A norm does not depend on the size of its input, but its squares do: 400² = 160,000 is beyond fp16's "
        "65,504. The root mean square is infinite, and everything divided by it 0.",
    ),
    Prediction(
        "from_layer_to_rms",
        "A GPT-2 was trained with LayerNorms. Can it be turned into a model with RMSNorms, without any training, that "
        "gives the same logits?",
        options=("no: an RMSNorm cannot subtract a mean", "nearly, if the means are small", "yes, exactly"),
        answer="yes, exactly",
        because="The mean can be subtracted earlier: from the weights of everything that writes into the stream. Then "
        "every vector that a norm meets has mean 0 already.",
    ),
    Prediction(
        "faster_norm",
        "2,048 tokens of 4,096 features on this processor, through torch's own functions. Which is faster?",
        options=("F.rms_norm, which does less", "F.layer_norm, which does more", "both the same, to a few per cent"),
        answer="F.layer_norm, which does more",
        because="PyTorch has one kernel for all of LayerNorm on a CPU, that reads the features once and writes them "
        "once. RMSNorm is put together from several operations, and each of them goes through the memory.",
    ),
    Prediction(
        "left_after_12_blocks",
        "A post-norm model of 12 blocks. Each branch adds a vector as long as the stream and unrelated to it. How "
        "much of the embedding's length is left in the end?",
        options=("20 %, one part of 25 by squares", "4 %, one part of 25", "0.024 %"),
        answer="0.024 %",
        because="Each post-norm divides what was there by √2, and there are 24 of them: 2⁻¹² = 0.024 %.",
    ),
    Prediction(
        "post_norm_gradients",
        "48 post-norm blocks with SwiGLU, at initialisation. How large is the gradient of the first block's weights, "
        "compared with the last block's?",
        options=("it has vanished", "about the same", "a hundred times larger or so"),
        answer="a hundred times larger or so",
        because="A gradient that passes 96 norms is a product of many factors. Everybody has learned that such a "
        "product vanishes; it explodes just as well. Which of the two depends on the activation and the weights.",
    ),
    Prediction(
        "deep_post_norm",
        "A post-norm model against a pre-norm one, no warm-up, 60 steps each. Once with 2 blocks, once with 16. Where "
        "is post-norm better?",
        options=("nowhere", "with 2 blocks", "with 16 blocks", "with both"),
        answer="with 2 blocks",
        because="A shallow post-norm model learns faster here. With 16 blocks it learns nothing but how often each "
        "byte occurs.",
    ),
    Prediction(
        "parallel_flops",
        "Attention and feed-forward layer side by side, instead of one after the other. How do the FLOPs of a block "
        "change?",
        options=("they halve", "a few per cent less", "not at all, but for a norm"),
        answer="not at all, but for a norm",
        because="The same matrices are multiplied with as many tokens. What gets shorter is the chain of products that "
        "have to wait for each other.",
    ),
)
