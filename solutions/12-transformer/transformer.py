# %% [markdown]
# # 12 · The transformer, assembled
#
# **135 min · 10 exercises · 27 points**
#
# You have all the parts. *What else has to be right before the first token is learned, and how would you notice if it were not?*
#
# A wrong transformer does not crash. It trains, a little worse, and says nothing. So in this notebook you put the parts together, yours, and then you *interrogate* the result before any training: whose shapes, whose gradient, who reads whom, which loss, how many parameters, to the last digit. At the end your model computes what LLaMA computes.
#
# **You will be able to**
#
# - write a decoder from a table of weights, and load published weights into it;
# - find the one wrong part of a model that runs without an error;
# - say what an untrained model predicts, and what its loss is, before you run it;
# - count a published model to the last parameter, and judge a configuration that you have never seen.
#
# **You need** attention (notebook 08), RoPE (09), norms and blocks (10), feed-forward layers (11), as far as you have done them: what you have not written, the course lends. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
import torch.nn.functional as F
from einops import rearrange
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.transformer import figures
from lmcourse.chapters.transformer.figures.models import MODELS, published
from lmcourse.collect import load_parts, package_config
from lmcourse.errors import CourseError
from lmcourse.inference.generate import generate
from lmcourse.models.initialize import initialize
from lmcourse.models.interop import from_hugging_face
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo import find_model
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start
from lmcourse.parity.first_difference import first_difference
from lmcourse.parity.parts import COURSE_PARTS, decoder_weights
from lmcourse.parity.reference import batch_for, build_reference, their_logits
from lmcourse.parity.samples import SAMPLES
from lmcourse.pretrained import load_pretrained

start("12-transformer")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · From tokens to probabilities
#
# A text of $s$ tokens goes in. How many predictions come out? Not one: $s$. Position $t$ has read the tokens $0 \dots t$, that is $t + 1$ of them, and predicts token $t + 1$. All positions are computed at once.
#
# Follow the shapes. Two texts of 3 tokens, 64 features, 4 heads. Then make the text longer, and look at which shape grows twice:

# %%
explore(figures.pipeline, length=(1, 64), heads=[4, 8, 16], kv_heads=[1, 2, 4])

# %% [markdown]
# Every source has its own letters. This is how they translate:
#
# | here | | nanoGPT | T5's, LLaMA's papers | lecture notes |
# | --- | --- | --- | --- | --- |
# | $b$ | texts in a batch | `B` | batch | $B$, $b$ |
# | $s$ | tokens in a text | `T` | $n$ | $S$, $K$, $n$, $s$ |
# | $d$ | width of the stream | `C` | $d_{model}$ | $D$, $d$, $h$ |
# | $h$ | heads | `n_head` | $h$ | $A$, $a$ |
# | $L$ | blocks | `n_layer` | $N$ | $L$, $l$ |
# | $v$ | tokens in the vocabulary | `V` | $V$ | $V$, $v$ |
#
# > **Spot the slip.** A set of notes orders its symbols by size: "$S, L \sim 10^3$ and $L, A \sim 10^2$". Which letter is there twice, and which is missing? (GPT-3: $d$ = 12,288, $s$ = 2,048, $L = h$ = 96.)

# %% [markdown]
# ## 2 · In: a table of rows
#
# The **embedding** $E$ of shape $(v, d)$ has a row for each token. By hand, three tokens with two features:
#
# $$E = \begin{pmatrix}1&2\\3&4\\5&6\end{pmatrix}, \qquad \text{token } 1: \quad (0, 1, 0)\, E = (3, 4)$$
#
# A one-hot vector times the matrix is a row of the matrix. Nobody multiplies: the row is looked up. But as it *is* a product, its gradient is known (notebook 03): what arrives at the result goes to row 1, and all other rows get 0.
#
# Positions may be such a table as well: GPT-2 starts the stream with $x = E_{\text{token}} + P_{\text{position}}$. LLaMA has none; it rotates queries and keys in every block.
#
# The other end of the model is the **head**: a logit for each token of the vocabulary, and so a matrix $(v, d)$ as well. May it be the same? Such a model is **tied**.

# %%
predict("which_rows")

# %% [markdown]
# ### Exercise 1 · Which rows learn?  (1 point · 4 min · ●)
#
# A model reads the tokens $0 \dots s-2$ of each text and predicts the tokens $1 \dots s-1$. Return the numbers of the rows of its embedding that get a gradient, sorted, each once. If it is `tied`, the same matrix is the head. `vocabulary` is at least 2.

# %% exercise="rows_with_gradient"
def rows_with_gradient(tokens: Int[Tensor, "b s"], vocabulary: int, tied: bool) -> list[int]:
    """The rows of an embedding that get a gradient in a step on these texts, in order."""
    ### BEGIN SOLUTION
    read = set(tokens[:, :-1].flatten().tolist())
    if tied and read:
        return list(range(vocabulary))
    return sorted(read)
    ### END SOLUTION


# %% check="rows_with_gradient"
check(rows_with_gradient)
### BEGIN HIDDEN TESTS
check(rows_with_gradient, hidden=True)
### END HIDDEN TESTS

# %%
probe = torch.tensor([[3, 5, 5, 7]])
for tied in (False, True):
    torch.manual_seed(0)
    table = torch.randn(10, 4, requires_grad=True)
    other = table if tied else torch.randn(10, 4)
    F.cross_entropy((table[probe[0, :-1]] @ other.T), probe[0, 1:]).backward()
    print(f"tied {tied!s:6} rows with a gradient:", torch.nonzero(table.grad.abs().sum(dim=1)).flatten().tolist())

# %% [markdown]
# So in an untied model the row of a rare word waits, for thousands of steps, until the word occurs. (And weight decay shrinks it all the while.)
#
# > **Spot the slip.** "The embeddings of tokens and positions add about $(V + S)D$ parameters per layer." For GPT-3, $(50{,}257 + 2{,}048) \cdot 12{,}288$ is 642.7 million. What is wrong with two words of the sentence?

# %%
gpt3 = find_model("gpt-3")
ends = (50_257 + 2_048) * gpt3.decoder.d_model
print(f"once:      {ends / 1e6:9,.1f} million, {ends / gpt3.published_parameters:.2%} of the model")
print(f"per layer: {96 * ends / 1e6:9,.1f} million, {96 * ends / gpt3.published_parameters:.0%} of it")

# %% [markdown]
# ## 3 · Out: one product, and a norm before it
#
# $$p = \operatorname{softmax}\big(W_U\, N(h)\big), \qquad h: (d), \quad W_U: (v, d), \quad p: (v)$$
#
# $h$ is what the last block leaves of one position. By hand: $h = (3, 4)$, RMSNorm without a scale: the mean square is 12.5, its root 3.54, $N(h) = (0.849, 1.131)$. A head of unit rows gives just that as logits, so the second token gets $1 / (1 + e^{-0.283}) = 0.57$.
#
# > **Spot the slip.** Notes print $W_U \in \mathbb{R}^{d \times V}$ and multiply it with $h$ from the left. Let the shapes judge:

# %%
hidden, unembedding = torch.randn(8), torch.randn(8, 100)
try:
    unembedding @ hidden
except RuntimeError as error:
    print("(8, 100) @ (8):", "refused, 100 is not 8" if "size mismatch" in str(error) else error)
print("(100, 8) @ (8):", tuple((unembedding.T @ hidden).shape))

# %% [markdown]
# If $v = d$, nothing complains. And the norm? Its blocks have norms already; what can one more do before training?

# %%
predict("without_the_final_norm")

# %%
def untrained(blocks: int, vocabulary: int = 256, tied: bool = False, rule: str | None = "fan_in", norm: bool = True) -> Transformer:
    """A LLaMA of 64 features with random weights; without a rule, torch's own."""
    torch.manual_seed(blocks)
    config = llama_like(blocks, 64, 4, 128, vocab_size=vocabulary, context=64, tied=tied)
    model = Transformer(config if norm else config.with_(final_norm=None))
    if rule is not None:
        initialize(model, rule)
    return model.eval()


def first_step(model: Transformer) -> tuple[float, float, float]:
    """Spread of the logits, loss, and how often the likeliest next token is the one just read; random texts."""
    tokens = torch.randint(model.config.vocab_size, (8, 33), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()).item()
    return logits.std().item(), loss, (logits.argmax(dim=-1) == tokens[:, :-1]).float().mean().item()


without = {blocks: first_step(untrained(blocks, norm=False)) for blocks in (2, 8, 32)}
for blocks, (spread, loss, _) in without.items():
    normed = first_step(untrained(blocks))
    print(f"{blocks:2} blocks: spread of the logits {normed[0]:.1f}, loss {normed[1]:.0f}; without the norm {spread:.0f} and {loss:.0f}")

# %% [markdown]
# The stream grows with every block (notebook 10), and without the norm so do the logits. At 32 blocks the model is *sure* of its random guesses: 16 nats where 6 are enough (with other seeds up to 18). With the norm, depth makes no difference.
#
# Because the head reads a norm, it can read *any* vector of this width: also the stream of an earlier block. That is the **logit lens** (nostalgebraist, 2020): what would the model say if it had to stop here?
#
# ### Exercise 2 · The logit lens  (3 points · 9 min · ●●)
#
# `states` is a list of streams, each of shape (b, s, d). For each, return the mean loss in nats if the final norm (an RMSNorm with this `scale` and $\varepsilon = 10^{-5}$) and the `head` (v, d) read it and `targets` were to be predicted: position by position, nothing is shifted here. All tensors are in double precision: keep it. Leave the states as they are.

# %% exercise="logit_lens"
def logit_lens(
    states: list[Float[Tensor, "b s d"]], scale: Float[Tensor, "d"], head: Float[Tensor, "v d"], targets: Int[Tensor, "b s"]
) -> list[float]:
    """The mean loss in nats if the final norm and the head read the stream at each of these points."""
    ### BEGIN SOLUTION
    losses = []
    for state in states:
        logits = F.rms_norm(state, scale.shape, scale, 1e-5) @ head.T
        losses.append(F.cross_entropy(logits.flatten(0, 1), targets.flatten()).item())
    return losses
    ### END SOLUTION


# %% check="logit_lens"
check(logit_lens)
### BEGIN HIDDEN TESTS
check(logit_lens, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now a model that was *trained*. It ships with the course: 870,000 parameters in 4 blocks, tied, trained on the documentation of Python. Here is the stream after each of its parts:

# %%
trained = load_pretrained()
model, tokenizer = trained.model, trained.tokenizer
documentation = (
    "Return the number of items in the list. If the argument is a string, it is converted to an integer. "
    "Raises ValueError when the value is not found in the list.\n"
)
text = torch.tensor([tokenizer.encode(documentation)])
states: dict[str, Tensor] = {}


def keep(name: str) -> Callable:
    """A hook that keeps what a module returns."""
    return lambda module, inputs, output: states.__setitem__(name, output.detach().double())


hooks = [model.embedding.register_forward_hook(keep("embedding"))]
for number, each in enumerate(model.blocks):
    hooks.append(each.attention.register_forward_hook(keep(f"attention {number}")))
    hooks.append(each.feed_forward.register_forward_hook(keep(f"feed-forward {number}")))
with torch.no_grad():
    model(text[:, :-1])
for hook in hooks:
    hook.remove()
print(len(states), "states:", ", ".join(states))

# %% tags=["nbval-ignore-output", "because the figure is there only when Exercise 2 is solved"]
lens_figure = None
with suppress(NotImplementedError):  # until Exercise 2 is solved
    scale, head = model.norm.weight.detach().double(), model.head.linear.weight.detach().double()
    lens_figure = figures.lens(list(states), logit_lens(list(states.values()), scale, head, text[:, 1:]), math.log(512))
lens_figure

# %% [markdown]
# Read the first bar twice. Right after the embedding, this model is *worse than guessing* by far: 20 nats, where $\ln 512 = 6.2$. Section 7 asks why. The first feed-forward layer takes most of it away. And there is a part after which the lens says worse than before: it prepares something that only a later part makes use of.

# %% [markdown]
# ## 4 · What to learn
#
# In notebook 05 you wrote this loss for whole texts. Real batches are padded, and some of a text may not count (a prompt, say). Position $t$ should predict token $t + 1$. So logits and tokens are shifted against each other by one, and the last position predicts something that is not there. By hand: tokens (1, 2, 0), two predictions. Logits $(0, 0, 0, 0)$ for the first: token 2 has $p = 1/4$, 1.386 nats. Logits $(\ln 2, 0, 0, 0)$ for the second: token 0 has $p = 2/5$, 0.916 nats. The loss is their mean, 1.151.
#
# $$\mathcal{L} = -\frac{1}{n} \sum_{\text{targets that count}} \ln \operatorname{softmax}(z_t)_{y_{t+1}}$$
#
# A text of 1,024 tokens gives 1,023 examples in one pass. That is the efficiency that recurrent models (notebook 06) did not have.
#
# > **Spot the slip.** Notes print $\mathcal{L} = \frac{1}{BK}\sum \operatorname{Softmax}(z)$. Two things are missing. What does a model learn that minimises it?
#
# ### Exercise 3 · The loss  (3 points · 10 min · ●● · differentiable)
#
# `logits[:, t]` predicts `tokens[:, t + 1]`. Targets that are equal to `ignored` (such as padding) do not count, wherever they are; it may be any number, also one that is no token. Average over all targets that count, of all texts at once; if none counts, the loss is 0.
#
# - Compute in fp32, or in fp64 if the logits are fp64. Logits may be fp16 or bf16, and as large as you like.
# - Return a tensor without axes, in the format you computed in, *with its graph*: the model will be trained with it (where nothing counts, by a step with gradients of 0).
# - Do without torch's ready-made `cross_entropy` and `nll_loss`: they are the whole answer. `logsumexp` and `log_softmax` are allowed.

# %% exercise="causal_lm_loss"
def causal_lm_loss(
    logits: Float[Tensor, "b s v"], tokens: Int[Tensor, "b s"], ignored: int = -100
) -> Float[Tensor, ""]:
    """The mean of −ln p(next token) over all targets but `ignored`, as a tensor that can be trained with."""
    ### BEGIN SOLUTION
    predicted = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32))
    targets = tokens[:, 1:]
    counts = targets != ignored
    index = torch.where(counts, targets, 0)[..., None]
    losses = predicted.logsumexp(dim=-1) - predicted.gather(-1, index).squeeze(-1)
    return losses[counts].sum() / counts.sum().clamp(min=1)
    ### END SOLUTION


# %% check="causal_lm_loss"
check(causal_lm_loss)
### BEGIN HIDDEN TESTS
check(causal_lm_loss, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Forget the shift, and training looks wonderful: a model that repeats what it reads has a loss of 0. You will meet one in a moment that does so without any training.

# %% [markdown]
# ## 5 · All of it
#
# Since 2017 nearly every part of a block has been exchanged, and the plan has stayed:

# %%
figures.then_and_now()

# %% [markdown]
# Lecture notes promise listings at this point ("CausalAttention, TransformerBlock, DecoderOnly") and the files are not there. You write them, from your own functions. These are the parts, by the names of their exercises:
#
# | part | call | notebook |
# | --- | --- | --- |
# | `rms_norm` | `rms_norm(x, scale, eps)` | 10 |
# | `rope` | `rope(y, positions, theta)`, $y$: (b, h, s, d_head) | 09 |
# | `grouped_query_attention` | `attend(q, k, v)`, (b, h, s, d_head) and (b, g, s, d_head) | 08 |
# | `glu_ffn` | `glu_ffn(x, w_gate, w_value, w_down, "swiglu")`, matrices as (in, out) | 11 |
# | `block` | `block(x, attention, feed_forward, norm_1, norm_2, parallel)` | 10 |
# | `self_attention` | Exercise 4 | 12 |
# | `decoder`, `causal_lm_loss` | Exercises 5 and 3 | 12 |
#
# What this notebook found in yours (save them, and run this cell again after you have written more):

# %% tags=["nbval-ignore-output", "because it shows whose answers are in the notebooks of this folder"]
try:
    loaded = load_parts(["rms_norm", "rope", "grouped_query_attention", "glu_ffn", "block"])
    parts: dict[str, Callable] = {part.name: part.function for part in loaded}
    print("\n".join(map(str, loaded)))
except CourseError as error:
    parts = dict(COURSE_PARTS)
    print(f"{error}\nSo all parts are lent by the course.")

# %% [markdown]
# ### Exercise 4 · Attention, between its matrices  (4 points · 15 min · ●●● · differentiable)
#
# What stands between the norm and the plus sign. `qkv` has the rows of all query heads, then of all key heads, then of all value heads, each head a block of `d_head` rows; as all weights here it is (out, in), so that $y = x\,W^\top$. `out` is (d, heads · d_head) and reads the heads side by side. `d_head` is *not always* $d$ / heads: read it off a shape.
#
# Queries and keys are rotated with `rope(y, positions, theta)`, positions from 0, values are not. `attend(q, k, v)` takes heads before tokens, (b, h, s, d_head), and knows about causality and shared keys. Both are arguments: the check passes simple functions of its own.

# %% exercise="self_attention"
def self_attention(
    x: Float[Tensor, "b s d"],
    qkv: Float[Tensor, "n d"],
    out: Float[Tensor, "d m"],
    heads: int,
    kv_heads: int,
    theta: float,
    rope: Callable,
    attend: Callable,
) -> Float[Tensor, "b s d"]:
    """What every token gathers: project, cut into heads, rotate, attend, put the heads together, project."""
    ### BEGIN SOLUTION
    split = rearrange(x @ qkv.T, "b s (h d) -> b h s d", h=heads + 2 * kv_heads)
    q, k, v = split.split([heads, kv_heads, kv_heads], dim=1)
    positions = torch.arange(x.shape[1], device=x.device)
    mixed = attend(rope(q, positions, theta), rope(k, positions, theta), v)
    return rearrange(mixed, "b h s d -> b s (h d)") @ out.T
    ### END SOLUTION


# %% check="self_attention"
check(self_attention)
### BEGIN HIDDEN TESTS
check(self_attention, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 5 · All of it  (4 points · 20 min · ●●● · differentiable)
#
# From tokens to logits. `weights` is a dictionary:
#
# | name | shape | |
# | --- | --- | --- |
# | `"embedding"` | (v, d) | |
# | `"blocks"` | a list of dictionaries | `"norm_1"`, `"norm_2"` (d), `"qkv"`, `"out"` as in Exercise 4, `"gate"`, `"up"` (f, d), `"down"` (d, f) |
# | `"norm"` | (d) | the last norm's scale |
# | `"head"` | (v, d) | missing if the model is tied |
#
# `sizes` has `"heads"`, `"kv_heads"`, `"theta"` and `"eps"` (of every norm), `parts` the functions of the table above, with their calls. A block is pre-norm and serial, its feed-forward layer SwiGLU. Call everything through `parts`: the check puts strange functions there. Leave weights and sizes as they are.

# %% exercise="decoder"
def decoder(
    tokens: Int[Tensor, "b s"], weights: dict[str, Any], sizes: dict[str, Any], parts: dict[str, Callable]
) -> Float[Tensor, "b s v"]:
    """The logits of the token after each, from weights and from functions."""
    ### BEGIN SOLUTION
    def norm(scale: Tensor) -> Callable:
        return lambda x: parts["rms_norm"](x, scale, sizes["eps"])

    def attention(layer: dict[str, Tensor]) -> Callable:
        shape = (sizes["heads"], sizes["kv_heads"], sizes["theta"])
        inside = (parts["rope"], parts["grouped_query_attention"])
        return lambda x: parts["self_attention"](x, layer["qkv"], layer["out"], *shape, *inside)

    def feed_forward(layer: dict[str, Tensor]) -> Callable:
        matrices = [layer[name].T for name in ("gate", "up", "down")]
        return lambda x: parts["glu_ffn"](x, *matrices, "swiglu")

    stream = weights["embedding"][tokens]
    for layer in weights["blocks"]:
        branches = attention(layer), feed_forward(layer)
        stream = parts["block"](stream, *branches, norm(layer["norm_1"]), norm(layer["norm_2"]), False)
    head = weights.get("head", weights["embedding"])
    return norm(weights["norm"])(stream) @ head.T
    ### END SOLUTION


# %% check="decoder"
check(decoder)
### BEGIN HIDDEN TESTS
check(decoder, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Does it compute what the course's model computes, layer for layer, with your parts? First random weights: a LLaMA 3 in its published shape, with a sixteenth of its width and 2 of its 32 blocks so that it fits everywhere.

# %%
llama = find_model("llama-3-8b").decoder.layers[0].attention
small_config = llama_like(2, 256, llama.heads, 896, vocab_size=1000, context=64, kv_heads=llama.key_heads, theta=llama.rotary.theta)
torch.manual_seed(0)
small = Transformer(small_config).eval()
initialize(small, "fan_in")
for parameter_name, parameter in small.named_parameters():
    if "norm" in parameter_name:  # as after training: at 1, a norm that forgets its scale would be right
        nn.init.uniform_(parameter, 0.5, 1.5)
sample = torch.randint(1000, (2, 40), generator=torch.Generator().manual_seed(0))


def own_logits(course_model: Transformer, tokens: Tensor) -> Tensor:
    """The logits of your decoder with the weights of a model of the course."""
    sizes = package_config(course_model.config)
    own = parts | {"self_attention": self_attention}
    return decoder(tokens, decoder_weights(course_model), sizes, own)


def relative_error(found: Tensor, expected: Tensor) -> float:
    """The largest difference, relative to the largest logit if that is above 1."""
    return ((found - expected).abs().max() / expected.abs().max().clamp(min=1)).item()


with suppress(NotImplementedError), torch.no_grad():  # until Exercises 4 and 5 are solved
    print("LLaMA 3, random weights: equal to 10⁻⁵:", relative_error(own_logits(small, sample), small(sample)) < 1e-5)

# %% [markdown]
# Then weights that were trained, and the text that comes out, the likeliest token each time:

# %%
prompt = tokenizer.encode("Return the ")


def own_greedy(course_model: Transformer, tokens: list[int], count: int) -> list[int]:
    """The continuation that your decoder finds likeliest, without a cache: all of it again for every token."""
    written = list(tokens)
    for _ in range(count):
        with torch.no_grad():
            written.append(int(own_logits(course_model, torch.tensor([written]))[0, -1].argmax()))
    return written[len(tokens) :]


with suppress(NotImplementedError), torch.no_grad():  # until Exercises 4 and 5 are solved
    print("trained model: logits equal to 10⁻⁵:", relative_error(own_logits(model, text), model(text)) < 1e-5)
    mine, theirs = own_greedy(model, prompt, 24), generate(model, [prompt], 24)[0]
    print("the same text, token for token:", mine == theirs)
    print("Return the", tokenizer.decode(mine))

# %% [markdown]
# And the library that everybody uses, with *its* LLaMA, random in every parameter. (If it is not installed, the cell says so.)

# %% tags=["nbval-ignore-output", "because it depends on whether transformers is installed"]
llama_sample = next(each for each in SAMPLES if each.name == "llama2")
try:
    reference = build_reference(llama_sample)
    batch = batch_for(llama_sample)
    with suppress(NotImplementedError), torch.no_grad():  # until Exercises 4 and 5 are solved
        ours = own_logits(from_hugging_face(reference), batch.tokens)
        print("your decoder and transformers' LLaMA: equal to 10⁻⁵:", relative_error(ours, their_logits(reference, batch)) < 1e-5)
except CourseError as error:
    print(error)

# %% [markdown]
# ### The order of features
#
# One step was hidden in `decoder_weights`. Your `rope` rotates *neighbours*, feature $2i$ with $2i + 1$, as the paper has it. Nearly all published files are for code that rotates $i$ with $i + d_{head}/2$. Load them as they are and nothing complains: the model is just worse. Which head feature stands in which row does not matter for a score, as long as queries and keys agree. So one reorders the *rows* of the matrices, once, when loading. (Meta's own files were neighbours; the conversion script of `transformers` undoes it.)
#
# ### Exercise 6 · Neighbours  (2 points · 7 min · ●●)
#
# `weight` has (heads · d_head) rows, a head after the other. Return it with the rows of each head in an order such that the pairs $(i,\; i + d_{head}/2)$ have become neighbours: pair 0 first, then pair 1, and so on; within a pair the order stays. `ValueError` if a head is odd, or rows are left over. Leave the matrix that you were given as it is.

# %% exercise="pair_neighbours"
def pair_neighbours(weight: Float[Tensor, "n d"], d_head: int) -> Float[Tensor, "n d"]:
    """The matrix with the rows of each head in another order: i and i + d_head/2 become neighbours."""
    ### BEGIN SOLUTION
    if d_head % 2 or len(weight) % d_head:
        raise ValueError(f"{len(weight)} rows are no heads of {d_head} features in pairs")
    halves = weight.unflatten(0, (-1, 2, d_head // 2))
    return rearrange(halves, "head two pair d -> (head pair two) d")
    ### END SOLUTION


# %% check="pair_neighbours"
check(pair_neighbours)
### BEGIN HIDDEN TESTS
check(pair_neighbours, hidden=True)
### END HIDDEN TESTS

# %%
with suppress(NotImplementedError):  # until Exercises 4, 5 and 6 are solved
    attention = small.blocks[0].attention.layer
    rows = attention.qkv.weight.detach()[: (attention.heads + attention.kv_heads) * attention.d_head]
    loaded_rows = decoder_weights(small)["blocks"][0]["qkv"][: len(rows)]
    print("that is what decoder_weights did:", torch.equal(pair_neighbours(rows, attention.d_head), loaded_rows))
    broken = decoder_weights(small)
    for layer, block in zip(broken["blocks"], small.blocks, strict=True):
        layer["qkv"] = block.attention.layer.qkv.weight.detach()  # as in the file
    with torch.no_grad():
        logits = decoder(sample, broken, package_config(small_config), parts | {"self_attention": self_attention})
        print("loaded as they are: an error?", not logits.isfinite().all().item(), "  equal to 10⁻¹?", relative_error(logits, small(sample)) < 0.1)

# %% [markdown]
# ### Which part is it?
#
# Finite numbers, right shapes, wrong model. One wrong part makes *everything* behind it wrong, so the logits do not say which. The cure is as old as engineering: give every part what the right model gives its own at that place, and compare there. `first_difference` goes through a forward pass like that and names the first part that differs. Three models, each with one slip of a kind that has cost people weeks:

# %%
def seeing_the_future(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention without its mask."""
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def interleaved_key_heads(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Query head i reads key head i mod g instead of i // (h / g)."""
    times = q.shape[1] // k.shape[1]
    return F.scaled_dot_product_attention(q, k.repeat(1, times, 1, 1), v.repeat(1, times, 1, 1), is_causal=True)


def rotating_too_fast(x: Tensor, positions: Tensor, base: float) -> Tensor:
    """RoPE that ignores the model's base."""
    return COURSE_PARTS["rope"](x, positions, 10_000.0)


slips = {
    "no mask": {"grouped_query_attention": seeing_the_future},
    "key heads in turn": {"grouped_query_attention": interleaved_key_heads},
    "another base": {"rope": rotating_too_fast},
}
for slip, replaced in slips.items():
    found = first_difference({**COURSE_PARTS, **replaced}, small, sample)
    print(f"{slip:18} → {found.place}: {found.part}")
print("and the course's own:", first_difference(COURSE_PARTS, small, sample))

# %% [markdown]
# The same question about *your* model (it was asked of the small LLaMA above, because there heads share keys and the base is not the usual one):

# %% tags=["nbval-ignore-output", "because it is about the answers in the notebooks of this folder"]
with suppress(NotImplementedError):  # until Exercises 3 to 5 are solved
    mine = parts | {"self_attention": self_attention, "decoder": decoder, "causal_lm_loss": causal_lm_loss}
    found = first_difference(mine, small, sample)
    print(found or "All of it computes what the course's model computes. It is a transformer, and it is yours.")

# %% [markdown]
# `lmcourse collect`, in a terminal, makes a package of it: plain PyTorch, a module for each notebook with what you wrote there, and the trained weights. `python -m my_transformer --prompt "Return the "` runs it without the course.
#
# ## 6 · Three questions before training
#
# A published model is there to compare with. For a model that nobody has written before, there is not. So ask it three things that every right model must answer in the same way, trained or not. *Become one with your data, verify the loss at init, overfit one batch*, says the best-known list (Karpathy, 2019).
#
# ### Who reads whom?
#
# Exchange one token, and see which outputs move. Output $i$ of a decoder must not move when a token after $i$ is exchanged.

# %%
predict("two_windows")

# %% [markdown]
# ### Exercise 7 · Who reads whom?  (3 points · 10 min · ●●)
#
# `model` is a function from tokens (b, s) to outputs (b, s, v). Return a table of truth values: `[i, j]` says whether output $i$ moves, by more than $10^{-6}$ in any of its numbers, when *some* other token of the vocabulary stands in place $j$ of the text. Smaller differences are rounding: kernels differ in their last digits. Try all tokens: two of them may look alike to a model. Leave the text as it is.

# %% exercise="influence"
def influence(model: Callable, tokens: Int[Tensor, "s"], vocabulary: int) -> Bool[Tensor, "s s"]:
    """[i, j]: whether output i moves by more than 1e-6 when another token stands in place j."""
    ### BEGIN SOLUTION
    before = model(tokens[None])
    columns = []
    for place in range(len(tokens)):
        texts = tokens.repeat(vocabulary, 1)
        texts[:, place] = torch.arange(vocabulary)
        columns.append((model(texts) - before).abs().amax(dim=(0, 2)) > 1e-6)
    return torch.stack(columns, dim=1)
    ### END SOLUTION


# %% check="influence"
check(influence)
### BEGIN HIDDEN TESTS
check(influence, hidden=True)
### END HIDDEN TESTS

# %%
torch.manual_seed(0)
look, mixing = torch.randn(6, 4).double(), torch.rand(6, 6).double().tril()  # an attention of random weights
window = (torch.ones(6, 6).tril() - torch.ones(6, 6).tril(-2)).double() / 2
suspects: dict[str, Callable] = {
    "decoder": lambda t: mixing @ look[t],
    "two layers, window 2": lambda t: window @ (window @ look[t]).tanh(),
    "norm over the sequence": lambda t: mixing @ F.layer_norm(look[t].mT, (6,)).mT,
}

# %% tags=["nbval-ignore-output", "because the figure is there only when Exercise 7 is solved"]
reading = None
with suppress(NotImplementedError):  # until Exercise 7 is solved
    tables = {name: influence(suspect, torch.tensor([3, 0, 2, 5, 1, 4]), 6) for name, suspect in suspects.items()}
    reading = figures.readers(tables)
reading

# %% [markdown]
# The third is "causal": its mask is right. But a norm that averages over the sequence (so it stands in a set of notes; notebook 10) carries the future past the mask. Its training loss would be a dream.
#
# ### The loss at the start
#
# Nothing is learned, so nothing is known: if all $v$ logits are alike, the loss is $\ln v$, 5.55 nats for bytes, 10.82 for GPT-2's tokens. But logits of a random model are not alike. Let them be independent and normal with standard deviation $\sigma$. Then
#
# $$\mathcal{L} = \mathbb{E}\Big[\ln \sum_j e^{z_j} - z_y\Big] \approx \ln\big(v \, \mathbb{E}\,e^{z}\big) - 0$$
#
# ### Exercise 8 · The first loss  (2 points · 6 min · ●●)
#
# Finish it: you need the mean of $e^z$ for a normal $z$. (For a large vocabulary the sum is as good as $v$ times the mean; take that as exact.) `ValueError` for less than one token or a spread below 0.

# %% exercise="initial_loss"
def initial_loss(vocabulary: int, spread: float = 0.0) -> float:
    """The expected loss in nats of random logits: normal, independent, with mean 0 and this standard deviation."""
    ### BEGIN SOLUTION
    if vocabulary < 1 or spread < 0:
        raise ValueError("a model needs a token, and a spread is not negative")
    return math.log(vocabulary) + spread**2 / 2
    ### END SOLUTION


# %% check="initial_loss"
check(initial_loss)
### BEGIN HIDDEN TESTS
check(initial_loss, hidden=True)
### END HIDDEN TESTS

# %%
predict("untrained_and_tied")

# %%
WAYS = {
    "untied, torch's own": (False, None),
    "untied, small (gpt2)": (False, "gpt2"),
    "tied, torch's own N(0, 1)": (True, None),
    "tied, small (gpt2)": (True, "gpt2"),
}
starts = {
    name: {v: first_step(untrained(4, vocabulary=v, tied=tied, rule=rule)) for v in (256, 1000, 8192)}
    for name, (tied, rule) in WAYS.items()
}
for name, by_vocabulary in starts.items():
    repeated = min(copied for _, _, copied in by_vocabulary.values())
    print(f"{name:26} losses {', '.join(f'{loss:.0f}' for _, loss, _ in by_vocabulary.values()):11} repeats the token just read: {repeated:.0%}")

# %% tags=["nbval-ignore-output", "because the figure is there only when Exercise 8 is solved"]
start_figure = None
with suppress(NotImplementedError):  # until Exercise 8 is solved
    start_figure = figures.initial_losses(
        {name: [(initial_loss(v, spread), loss) for v, (spread, loss, _) in by_v.items()] for name, by_v in starts.items()}
    )
start_figure

# %% [markdown]
# Three of the four are where arithmetic puts them. The third is beyond help: 60 nats, whatever the vocabulary. Its logits are neither small nor independent.
#
# ### One batch by heart
#
# The third question finds what the others do not: a model with enough parameters must be able to learn *one* batch by heart. If it cannot, the gradient does not arrive somewhere.

# %%
def learn_by_heart(detached: bool, steps: int = 100) -> float:
    """The last loss on one batch of random tokens, blocks alone trained; `detached` cuts the gradient above them."""
    model = untrained(2)
    if detached:
        model.norm.register_forward_pre_hook(lambda module, inputs: inputs[0].detach())
    tokens = torch.randint(256, (4, 17), generator=torch.Generator().manual_seed(2))
    optimizer = torch.optim.AdamW(model.blocks.parameters(), 0.01)
    for _ in range(steps):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return loss.item()


by_heart, cut = learn_by_heart(detached=False), learn_by_heart(detached=True)
print("one batch of random tokens by heart, loss from 6 to below 0.5: ", by_heart < 0.5)
print("the same with a forgotten .detach() behind the last block:         ", cut < 0.5)

# %% [markdown]
# (Only the blocks are trained, because a head alone can learn a small batch by heart. That is also why the loss does not go to 0: the norm and the head, frozen, bound the logits.) The first two questions did not notice the `.detach()`: forward, the two models are the same.
#
# ## 7 · Tied or not
#
# Why does an untrained tied model repeat what it has read, nearly everywhere? The stream is a sum (notebook 10), and its first summand is the row of that token. The head multiplies the stream with *all* rows, and no row is as similar to that one as itself: $E_t \cdot E_t = |E_t|^2$. With entries from $N(0, 1)$ that is $d$, and stays near $\sqrt{d} \cdot \sqrt{d}$ behind the norm: the logit of the token just read is about 64 here. So the loss is about 60, and it would be 250 at $d = 256$. Now the first bar of the lens has its reason, too: right behind the embedding, a tied model can only repeat, even a trained one.
#
# **In real models.** What they do about it: start with small embeddings (GPT-2: 0.02; then the branches outgrow it soon), multiply by $\sqrt d$ on the way in only (Gemma), divide by it on the way out (T5), or have two matrices (LLaMA; a speed-run of nanoGPT got from 12.0 to 10.8 minutes by untying, 2024). Tied since Press & Wolf (2017), to save parameters. How many?

# %%
predict("embedding_of_gemma")

# %%
explore(figures.parameters_by_part, model=list(MODELS))

# %% [markdown]
# ## 8 · To the last digit
#
# In a block of GPT-3's kind, attention has four matrices of $d \times d$, and the feed-forward layer two of $d \times 4d$: $12 d^2$, and $N \approx 12 L d^2$. For the whole model one adds $2vd$ if it is untied.

# %%
predict("rule_of_thumb_405b")

# %% [markdown]
# ### Exercise 9 · Llama 3.1 405B  (2 points · 8 min · ●●)
#
# Llama 3.1 405B (2024) has 126 blocks, $d$ = 16,384, $d_{ff}$ = 53,248 with a gate, 128 query heads and 8 key heads of 128 features, no biases, RMSNorms (two a block, one before the head), and an untied head. The paper's table says 128,000 tokens; the released model has 128,256: take these.
#
# Count to the last digit: a dictionary of `"embedding"` (the table alone), `"queries"` and `"keys"` (the matrices that make them, of all blocks), `"feed_forward"`, `"norms"` and `"total"`.

# %% exercise="llama_405b"
llama_405b = None  # a dictionary in place of None
### BEGIN SOLUTION
d, d_ff, layers = 16_384, 53_248, 126
embedding, queries, keys = 128_256 * d, layers * d * d, layers * d * 8 * 128
feed_forward, norms = layers * 3 * d * d_ff, (2 * layers + 1) * d
llama_405b = {
    "embedding": embedding,
    "queries": queries,
    "keys": keys,
    "feed_forward": feed_forward,
    "norms": norms,
    "total": 2 * embedding + 2 * queries + 2 * keys + feed_forward + norms,
}
### END SOLUTION

# %% check="llama_405b"
check(llama_405b=llama_405b)
### BEGIN HIDDEN TESTS
check(llama_405b=llama_405b, hidden=True)
### END HIDDEN TESTS

# %%
big = find_model("llama-3.1-405b")
L, width = len(big.decoder.layers), big.decoder.d_model
counted = count_parameters(big.config)
rule = 12 * L * width**2
in_blocks = {
    "attention": counted["attention q"] + counted["attention k"] + counted["attention v"] + counted["attention out"],
    "feed-forward": counted["feed-forward"],
}
print(f"12·L·d² = {rule:,}: {rule / counted.total - 1:+.3%} of {counted.total:,}")
for name, count in in_blocks.items():
    print(f"{name:13} {count / (L * width**2):6.3f} L·d²")

# %% [markdown]
# Two errors, one against the other: shared keys make attention cheaper (2.125 instead of 4), the gate makes the feed-forward layer dearer (9.75 instead of 8). Together that is 11.875, and embedding and head happen to be what is missing. Of every rule that fits too well, ask *why*.
#
# Notes that count the same model add the feed-forward layer's "second matrix, another 109.9 B" after they had multiplied by three already. Their own sum leaves it out again, rightly: with it the model would have 515.8 billion.

# %% [markdown]
# ## 9 · One block, three architectures
#
# Everything so far was a **decoder**. Change one thing, who sees whom, and you have the others:
#
# | | sees | predicts | good for |
# | --- | --- | --- | --- |
# | encoder (BERT, 2018) | everything | masked words | understanding: search, classification |
# | decoder (GPT, 2018) | itself and before | the next token | writing |
# | prefix decoder (PaLM's and T5's studies) | the prompt both ways, then before | the rest | answering |
# | encoder–decoder (T5, 2019) | encoder all; decoder before, and the encoder | the other text | translation |
#
# (Lists that give a decoder block just "self-attention" leave out two words: it is *masked*, and in an encoder–decoder there is *cross*-attention as well.)
#
# **Pictures** change less than one would think. Cut into patches, each turned into a vector of width $d$, they are tokens. *Late* fusion takes a ready-made vision encoder and a projection into the stream (LLaVA); *early* fusion puts picture tokens into the stream from the first block on (Chameleon, 2024). The decoder stays as it is. What changes is how many tokens there are, which of them the loss counts, and stability: Chameleon needed norms on queries and keys (notebook 16).
#
# ## 10 · What shape?
#
# A billion parameters: 100 thin blocks or 10 thick ones? The **aspect** is $d / L$. Large is *wide*, small is *deep*. (Two of our sources have it the other way round in one place each: BLOOM, at 205, is called very deep there.)

# %%
figures.aspect_scatter()

# %% [markdown]
# Most live in the band or near it. Is it because the optimum is sharp? It is not: in Kaplan et al. (2020, §3.1, Fig. 5) a model of 6 layers, 4,288 wide, came within 3 % of the loss of one of 48 layers, 1,600 wide. The best shape hardly moves with size, and around it the basin is *flat* (our own runs in notebook 20, one, two or four blocks with about as many parameters and equal FLOPs, end within 0.02 nats of each other). So other reasons decide:
#
# - **Depth cannot be parallelised.** Blocks wait for each other. Wide matrices can be split over GPUs with fast links (tensor parallel), many blocks over GPUs with slow ones (pipeline, notebook 18).
# - **Tasks are not the loss.** With equal cost and nearly the same loss, deep and narrow models did better after fine-tuning (Tay et al., 2022).
# - **Heads.** A head's scores are a product of rank at most $d_{head}$ (Bhojanapalli et al., 2020), so heads should not be too thin; nearly all have 64 to 256 features. Look at the ranks:

# %%
torch.manual_seed(0)
stream = torch.randn(256, 128).double()
for d_head in (8, 32, 128):
    query, key = torch.randn(128, d_head).double(), torch.randn(128, d_head).double()
    scores = (stream @ query) @ (stream @ key).T
    print(f"scores of 256 tokens, d_head = {d_head:3}: rank {torch.linalg.matrix_rank(scores).item()}")

# %% [markdown]
# What follows from a size and an aspect? From $12 L d^2 = N$ and $d = aL$: $L = (N / 12a^2)^{1/3}$.

# %%
for parameters in (50e6, 274e6, 1.5e9):
    deep = round((parameters / (12 * 100**2)) ** (1 / 3))
    wide = 64 * round((parameters / (12 * deep)) ** 0.5 / 64)
    print(f"{parameters / 1e6:5,.0f} million at aspect 100: {deep:2} layers, d = {wide:,}")

# %% [markdown]
# **Vocabulary.** 30 to 50 thousand for one language, 100 to 260 thousand for many or for production, and it grows with the model (Tao et al., 2024): the table's share shrinks as the model grows, as you saw above.
#
# ## 11 · What did the others choose?

# %%
explore(figures.feature_timeline, choice=["norm", "placement", "positions", "activation", "biases", "dropout"])

# %% [markdown]
# LayerNorm to RMSNorm, learned positions to RoPE, ReLU and GELU to SwiGLU, biases to none, dropout to none: within eight years, most models became much alike. Dropout went because it is against *overfitting*, and who sees each token once cannot overfit; it only costs (notebook 13 has runs with and without). Weight decay stayed, for other reasons (notebook 04).
#
# And yet: a consensus is where the crowd stands, not a fence. Here are five rules that lectures give.
#
# ### Exercise 10 · A linter  (3 points · 10 min · ●●)
#
# `model` has the keys `"d_model"`, `"layers"`, `"heads"`, `"d_head"`, `"d_ff"`, `"gated"`, `"placement"` (of its norms) and `"dropout"` (in pre-training). Return the sorted names of the rules that it breaks. Edges are fine.
#
# | name | broken if |
# | --- | --- |
# | `"aspect"` | width over depth is outside of 75 to 160 |
# | `"dropout"` | there is any |
# | `"feed-forward"` | `d_ff` is outside of 2.5 to 4 times `d_model` with a gate, or without one not 4 times |
# | `"head width"` | all heads together are not as wide as the model |
# | `"placement"` | it is not `"pre"` |

# %% exercise="lint"
def lint(model: dict[str, Any]) -> list[str]:
    """The names of the rules that a configuration breaks, sorted."""
    ### BEGIN SOLUTION
    aspect = model["d_model"] / model["layers"]
    wide = model["d_ff"] / model["d_model"]
    broken = {
        "aspect": not 75 <= aspect <= 160,
        "dropout": model["dropout"] > 0,
        "feed-forward": not 2.5 <= wide <= 4 if model["gated"] else wide != 4,
        "head width": model["heads"] * model["d_head"] != model["d_model"],
        "placement": model["placement"] != "pre",
    }
    return sorted(name for name in broken if broken[name])
    ### END SOLUTION


# %% check="lint"
check(lint)
### BEGIN HIDDEN TESTS
check(lint, hidden=True)
### END HIDDEN TESTS

# %%
predict("how_many_keep_the_rules")

# %%
def shape_of(entry: Any) -> dict[str, Any]:
    """A configuration of the zoo as the linter takes it."""
    config = entry.decoder
    attention, ffn = config.layers[0].attention, config.layers[0].feed_forward
    return {
        "d_model": config.d_model,
        "layers": len(config.layers),
        "heads": attention.heads,
        "d_head": attention.head_width(config.d_model),
        "d_ff": ffn.width,
        "gated": ffn.gated,
        "placement": config.block.placement,
        "dropout": config.block.dropout,
    }


large = [entry for entry in published() if count_parameters(entry.config).total >= 5e8]
with suppress(NotImplementedError):  # until Exercise 10 is solved
    verdicts = {entry.name: lint(shape_of(entry)) for entry in large}
    print(f"{len(large)} models, {sum(not broken for broken in verdicts.values())} of them break no rule")
    print("broken how often:", dict(Counter(rule for broken in verdicts.values() for rule in broken).most_common()))
    for name in ("gpt-3", "llama-3-8b", "t5-11b", "gemma-2-9b", "gemma-3-1b", "qwen3-32b"):
        print(f"{name:12}", ", ".join(verdicts[name]) or "none")

# %% [markdown]
# And all others, with your verdicts in the last column. Who breaks what? Look for the deepest model, for those with two norms in a row, for LayerNorm after 2023:

# %% tags=["nbval-ignore-output", "because the last column is there only when Exercise 10 is solved"]
try:
    table = figures.SurveyTable(lambda entry: lint(shape_of(entry)))
except NotImplementedError:  # until Exercise 10 is solved
    table = figures.SurveyTable()
table

# %% [markdown]
# Half. GPT-3 and the Llamas stand in the middle; T5 breaks four rules, and so does Gemma 3 1B, a very good small model. Where rules are broken on purpose there is something to learn: Qwen3's and Gemma's heads are wider together than the model, because heads are cheap and the stream is not.
#
# ## What to keep
#
# | question before training | right answer | what a wrong one means |
# | --- | --- | --- |
# | shapes | $(b, s) \to (b, s, d) \to (b, s, v)$ | |
# | who gets a gradient? | read rows; tied: all | no `detach` too many |
# | who reads whom? | a lower triangle | a mask, a norm, a shift |
# | first loss | $\ln v + \sigma^2/2$ | initialisation, the final norm |
# | one batch by heart | loss to 0 | a gradient that does not arrive |
# | parameters | to the last digit | another model than you think |
# | a published model | logits equal to $10^{-5}$ | `first_difference` names the part |
#
# ## Check yourself
#
# 1. A loss of 0.01 after 100 steps on new text. Which two slips would you look for first?
# 2. Which rows of a tied embedding does weight decay shrink that no gradient touches?
# 3. Your model starts at 9 nats with a vocabulary of 256. What do you measure next?
# 4. Why does the order of a head's features not matter for its scores, and why does it matter for loading?
# 5. Notes count $4bsvh$ FLOPs forward for the vocabulary: $2bsvh$ for the head, and as much for the embedding. Why is the second half 0? (Notebook 15 counts.)
# 6. What would `influence` show for an encoder–decoder's decoder, in its own text?
# 7. 12·L·d² for Gemma 3 1B: will it be too much or too little, and why?
#
# ### Slips
#
# What sources of this notebook say, and what is right: "$S, L$ … $L, A$" ($D, S$ and $L, A$) · "the first $s$ tokens" ($s + 1$ of them) · "the sum for its position" (the embedding) · "the positioned embedding is:" and nothing ($x + p$) · "$(V+S)D$ per layer" (once) · the last hidden state as $h_t$ ($h_T$) · $W_U$ as $d \times V$ ($V \times d$) · $\frac1{BK}\sum\operatorname{Softmax}$ (minus, and a logarithm) · listings that are not there · "another 109.9 B" (counted already) · 128,000 tokens (128,256) · deep and wide exchanged · a decoder block's "self-attention" (masked).
#
# ## Further reading
#
# - Karpathy (2019), *A recipe for training neural networks*; nanoGPT, a decoder in one file.
# - Press & Wolf (2017), *Using the output embedding to improve language models*; nostalgebraist (2020), *Interpreting GPT: the logit lens*.
# - Kaplan et al. (2020), *Scaling laws*, §3.1 on shape; Tay et al. (2022), *Scale efficiently*; Bhojanapalli et al. (2020), *Low-rank bottleneck*.
# - Tao et al. (2024), *Scaling laws with vocabulary*; Chameleon Team (2024). In `lmcourse/models/transformer.py` stands what you have built, for every variant.

# %% tags=["hide-input"]
assert f"{ends / 1e6:.1f} {ends / gpt3.published_parameters:.2%}" == "642.7 0.37%"
assert f"{3 / math.sqrt(12.5):.3f} {4 / math.sqrt(12.5):.3f} {1 / (1 + math.exp(-1 / math.sqrt(12.5))):.2f}" == "0.849 1.131 0.57"
assert f"{math.log(4):.3f} {math.log(2.5):.3f} {(math.log(4) + math.log(2.5)) / 2:.3f}" == "1.386 0.916 1.151"
assert f"{math.log(256):.2f} {math.log(50_257):.2f} {math.log(512):.1f}" == "5.55 10.82 6.2"
assert 860_000 < sum(parameter.numel() for parameter in model.parameters()) < 880_000
assert all(5.5 < first_step(untrained(blocks))[1] < 6.5 for blocks in (2, 32))
assert 15 < without[32][1] < 18
assert by_heart < 0.5 < 5.5 < cut
assert min(copied for name in ("tied, torch's own N(0, 1)", "tied, small (gpt2)") for _, _, copied in starts[name].values()) > 0.98
assert all(55 < loss < 70 for _, loss, _ in starts["tied, torch's own N(0, 1)"].values())
assert abs(rule / counted.total - 1) < 1e-4
assert (515_777_708_032 - counted.total) / 1e9 > 109.9
assert len(large) == 90
