"""The predictions of notebook 10, in the notebook's order."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

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
        because="An RMSNorm cannot subtract a mean. But the mean can be gone before the norm reads it. (The RMSNorms "
        "keep the shifts β, and GPT-2's head, which is its embedding, becomes a matrix of its own first.)",
    ),
    NumberPrediction(
        "left_after_12_blocks",
        "A post-norm model has 12 blocks of two branches. Each branch adds a vector as long as the stream, at a right "
        "angle to it. How much of the embedding's length is left in the end, in percent?",
        answer=0.0244,
        low=0.001,
        high=100.0,
        unit="%",
        log=True,
        because="Each of the 24 norms shortens everything that was there before by √2. The next exercise works it out "
        "for branches of any length.",
    ),
    NumberPrediction(
        "straight_alone",
        "48 post-norm blocks, at initialisation. Attention adds vectors about 0.9 times as long as the stream, SwiGLU "
        "about 0.6 times. Look at the straight part of the gradient alone, as if no branch passed anything back. By "
        "which factor does it change on its way through blocks 48 to 2, so through 94 branches?",
        answer=7.7e-10,
        low=1e-16,
        high=1e3,
        unit="times",
        log=True,
        because="On the straight way, each post-norm divides the gradient by about the factor by which it shortens "
        "the stream, √(1 + 0.9²) or √(1 + 0.6²). 94 divisions leave about a billionth.",
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
    NumberPrediction(
        "left_with_short_branches",
        "16 post-norm blocks. Each branch is 0.3 times as long as the stream that it joins, and at a right angle to "
        "it. What is the cosine of the embedding with the stream at the end?",
        answer=0.25,
        low=0.0,
        high=1.0,
        because="A norm now divides by √(1 + 0.3²) = 1.044, and 32 of them by 1.09¹⁶ = 4.0.",
    ),
    Prediction(
        "faster_norm",
        "2,048 tokens of 4,096 features on this processor, through torch's own functions. Which one is faster?",
        options=("F.layer_norm, which does more", "both the same, to a few percent", "F.rms_norm, which does less"),
        answer="F.layer_norm, which does more",
        because="On a CPU, PyTorch has one kernel for all of LayerNorm, which reads the features once and writes them "
        "once. RMSNorm is put together from several operations, and each of them reads and writes the memory.",
    ),
    NumberPrediction(
        "faster_kernels",
        "In a BERT on a GPU, LayerNorms and softmaxes take 25.5 % of the time. New kernels save 30 % of that. How many "
        "percent more steps does the model do in the same time?",
        answer=8.3,
        low=0.0,
        high=40.0,
        unit="%",
        because="The kernels save 0.3 · 0.255 = 7.65 % of the time, and 1 / (1 − 0.0765) = 1.083.",
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
    Prediction(
        "post_norm_gradients",
        "Look at the gradient of the last block's weights, at initialisation, in models of 2 to 48 blocks. In a "
        "pre-norm model it falls with depth. And in a post-norm model?",
        options=("it stays about the same", "it falls, too", "it grows more than tenfold"),
        answer="it stays about the same",
        because="The last norm brings the stream to the same length at any depth, so the last block cannot see how "
        "many blocks came before it.",
    ),
)
