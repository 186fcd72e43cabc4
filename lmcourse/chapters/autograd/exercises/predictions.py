"""The predictions of notebook 03."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "price_of_all_gradients",
        "A model has 175 billion parameters. Computing the loss once costs one unit. What do the derivatives of the "
        "loss with respect to all of them cost?",
        options=("about 2 units", "about 96 units, one for each layer", "175 billion units"),
        answer="about 2 units",
        because="One backward pass gives them all, and costs about two forward passes. How many parameters there are "
        "does not matter. Section 5 counts.",
    ),
    NumberPrediction(
        "gradient_of_the_slope",
        "x = 3, y = 10, w₀ = 0 and w₁ = 2, so ŷ = 6 and z = −4. What is the gradient of L = z² with respect to w₁?",
        answer=-24,
        low=-40,
        high=40,
        because="z gets 2z = −8. ŷ and u get it unchanged, because they enter by a sum, and w₁ gets it times x = 3.",
    ),
    Prediction(
        "both_paths",
        "x = 2, y = x² = 4, u = 3y, v = y², L = u + v. What is dL/dx?",
        options=("12", "32", "44", "384"),
        answer="44",
        because="Through u it is 1 · 3 · 4 = 12, through v 1 · 8 · 4 = 32, together 44.",
    ),
    Prediction(
        "smaller_step",
        "In fp64 you take the derivative of x³ by central differences with h = 1e-5. Then with h = 1e-10. What happens "
        "to the error?",
        options=("10 billion times smaller", "100,000 times smaller", "it stays", "thousands of times larger"),
        answer="thousands of times larger",
        because="At 1e-5 the error is about 1e-10, at 1e-10 about 1e-6. Something that grows as h shrinks has taken "
        "over. The next figure shows it.",
    ),
    NumberPrediction(
        "peak_of_the_loss",
        "2,048 words and a vocabulary of 8,192: the scores take 64 MiB. The model around them is small. How much "
        "memory beyond the parameters do PyTorch's forward and backward pass need at their peak?",
        answer=194,
        low=16,
        high=1024,
        unit="MiB",
        log=True,
        because="Three tensors of n × V numbers are alive at once, 192 MiB: the log-probabilities that were kept, "
        "their gradient, and the gradient of the scores.",
    ),
    Prediction(
        "two_trainings",
        "The same steps with autograd and with a right `my_step`: how far apart are their losses after 200 steps?",
        options=("less than a thousandth", "about a tenth", "more than one: rounding errors add up"),
        answer="less than a thousandth",
        because="Both compute the same formulas. Float32 adds up their terms in another order, which changes the last "
        "digits alone.",
    ),
    NumberPrediction(
        "two_steps_back",
        "y = x² and L = 2y. What is dL/dx at x = 3?",
        answer=12,
        low=-20,
        high=20,
        because="∂L/∂y = 2, and ∂y/∂x = 2x = 6: along the path it is 2 · 6. And L = 2x² has the slope 4x.",
    ),
    Prediction(
        "gaussian_slope",
        "Let p be a Gaussian of standard deviation 1 around the prediction. How does the gradient of −log p compare "
        "with that of (ŷ − y)²?",
        options=("they are equal", "half as large", "twice as large", "it points elsewhere"),
        answer="half as large",
        because="−log p = (ŷ − y)²/2 + ½ log 2π. The constant has no gradient, and the factor ½ stays.",
    ),
    Prediction(
        "index_of_the_slope",
        "z' = φ(zW) with indices: z'_dj = φ(Σ_i z_di W_ij). Which index does φ' carry beside d in ∂L/∂W_ij?",
        options=("i", "j", "both", "neither"),
        answer="j",
        because="φ' is taken at zW, which has one entry for each output j. The input index i has been summed over.",
    ),
    Prediction(
        "backward_over_forward",
        "Without φ the backward pass of y = zW takes the FLOPs of two forward passes, for dW and dz. With z' = φ(zW), "
        "and φ' in both sums: about how many forward passes?",
        options=("2", "2.5", "3", "4"),
        answer="2",
        because="φ' is no third product. It multiplies element by element, once for both sums.",
    ),
    Prediction(
        "twice_the_batch",
        "The loss is the mean over the batch. You double the batch. What happens, roughly, to the gradient of a "
        "weight?",
        options=("it doubles", "it stays about the same", "it halves"),
        answer="it stays about the same",
        because="Twice as many terms, each divided by twice as much. It becomes less noisy, not longer.",
    ),
    Prediction(
        "norm_row_sum",
        "LayerNorm turns a row x into y, and dy comes back. What is the sum of dx over the row?",
        options=("0", "1", "the sum of dy", "it depends on the row"),
        answer="0",
        because="Adding the same number to every feature changes nothing in y, so the gradient has no part in that "
        "direction.",
    ),
    Prediction(
        "kept_for_backward",
        "h = xW₁, z = σ(h), ŷ = zW₂, f = mean of (ŷ − y)². Beside the weights, what does PyTorch keep for the backward "
        "pass?",
        options=("h, z and ŷ", "x, z and ŷ − y", "x, h, z and ŷ", "nothing, it recomputes"),
        answer="x, z and ŷ − y",
        because="dW₁ needs x, dW₂ needs z, σ' = z(1 − z) needs z again, and the square needs what was squared.",
    ),
)
