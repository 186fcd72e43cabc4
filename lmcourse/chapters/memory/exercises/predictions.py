"""The predictions of notebook 14."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "linear_model_memory",
        "36 parameters, 36 gradients, 36 numbers of AdaGrad, 16 activations, all in fp32. How many bytes is that?",
        options=("124 bytes", "232 bytes", "496 bytes", "992 bytes"),
        answer="496 bytes",
        because="Every one of the 124 numbers takes 4 bytes. It is 232 if only the parameters are multiplied by 4.",
    ),
    Prediction(
        "mixed_states",
        "Mixed precision multiplies 16-bit weights and sums gradients in fp32. Beside fp32, what do all states take "
        "together?",
        options=("half", "three quarters", "the same", "more"),
        answer="more",
        because="The fp32 weights are still there, as master weights, and the 16-bit ones are added: 18 bytes per "
        "parameter instead of 16. The activations get smaller.",
    ),
    Prediction(
        "train_or_write",
        "A card of 80 GB can hold a model of 40 billion parameters in 16 bits, for inference. How large a model can it "
        "train with AdamW in mixed precision, before any activation?",
        options=("40 billion", "20 billion", "10 billion", "4.4 billion"),
        answer="4.4 billion",
        because="Training takes 18 bytes a parameter, nine times as much: gradients, master weights and two moments.",
    ),
    Prediction(
        "keeps_nothing",
        "For which of these does autograd keep nothing?",
        options=("x + y", "x · y", "GELU(x)", "LayerNorm(x)"),
        answer="x + y",
        because="Both inputs of a sum get the gradient as it is, whatever they were. All others need a number from the "
        "forward pass.",
    ),
    NumberPrediction(
        "twice_the_length",
        "GPT-3 (D = 12,288, A = 96, 16 bits) reads a text of 2048 tokens, then one of 4096. By which factor do its "
        "activations grow?",
        answer=3.4,
        low=1,
        high=16,
        unit="times",
        step=0.1,
        because="34·D bytes per token do not depend on the length, 5·A·S do. At 2048 tokens scores are 70 % "
        "already, so the growth is nearer to 4 than to 2.",
    ),
    Prediction(
        "batch_of_gpt3",
        "GPT-3 trains in mixed precision on texts of 2048 tokens, and nothing is recomputed. From which batch on do "
        "the activations take more than weights, gradients and optimizer together?",
        options=("2 texts", "12 texts", "100 texts", "1,000 texts"),
        answer="12 texts",
        because="One text leaves 256.5 GiB; the states take 2,927 GiB, 11.4 times as much.",
    ),
    Prediction(
        "eight_devices",
        "Eight devices share every matrix of GPT-3. What is left of the activations on each, at 2048 tokens?",
        options=("one eighth", "a fifth", "a half", "all of them"),
        answer="a fifth",
        because="10 of the 114 bytes per token and feature are whole on every device: (10 + 24/8 + 80/8)/114 = 0.20.",
    ),
    Prediction(
        "logits_in_a_variable",
        "A training loop says: logits = head(h); loss = cross_entropy(logits, y); loss.backward(). The loss keeps one "
        "number for each logit. How many tensors as large as the logits are in memory at the worst moment?",
        options=("1", "2", "3", "4"),
        answer="4",
        because="The loss's log-probabilities, their gradient, the gradient of the logits, and the logits, which "
        "the variable still holds.",
    ),
    NumberPrediction(
        "list_of_losses",
        "`losses.append(loss)`: after 12 steps the list holds 12 losses, each with its graph. How many MiB does it add "
        "to the peak of the training steps?",
        answer=0,
        low=0,
        high=300,
        unit="MiB",
        because="`backward` frees what the graph has kept, and a loss is 4 bytes. In the validation, where nobody "
        "calls `backward`, the graph of each loss stays as long as the loss.",
    ),
    Prediction(
        "twice_the_texts",
        "The given script reads 8 texts a batch in place of 4. What happens to its peak of 131.5 MiB?",
        options=("it stays", "a little less than twice", "exactly twice", "four times"),
        answer="a little less than twice",
        because="Activations and logits double, leaked or not. Moments and gradients, 8.3 MiB, do not depend on the "
        "batch.",
    ),
)
