# %% [markdown]
# # 11 · Feed-forward layers
#
# **Core · 90 min · 6 exercises · 20 points** · **Further · 114 min · 7 exercises · 20 points**
#
# Attention carries information from token to token. Then, in every block, a second layer works on what arrived. Two thirds of a block's weights are there, or more. **What do they do, and how would you prove it?**
#
# At the end, your layers have run a trained model, and you have found the eight of its 1,408 hidden units that carry one skill.
#
# **You need** matrix products, derivatives, and softmax's trouble with large numbers (notebook 01). No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
import statistics
from collections.abc import Callable
from copy import deepcopy
from functools import partial

import torch
import torch.nn.functional as F
from einops import einsum
from jaxtyping import Bool, Float
from torch import Tensor

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.parameters import count_parameters
from lmcourse.chapters.feed_forward import figures
from lmcourse.chapters.feed_forward.figures.units import in_words
from lmcourse.chapters.feed_forward.short_runs import MEASURED, MixtureOfExperts, OwnLayer, ShortRun, train_layers
from lmcourse.chapters.feed_forward.units import TextLoss, continued, hidden_numbers, of_kind, windows, without
from lmcourse.models.matrices import attention_matrices, feed_forward_matrices
from lmcourse.models.zoo import all_models, find_model
from lmcourse.nn.feed_forward import FeedForwardConfig, build_feed_forward
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.pretrained import load_pretrained
from lmcourse.widgets import Log

start("11-feed-forward")

# %% [markdown]
# ## 1 · Alone with what it has heard
#
# A token has looked at all others. Its vector holds what it found: "a capital is asked for", "France was named". Who turns that into "Paris"?
#
# Attention cannot. Given its weights, it takes *averages* of values, and an average of things that are there is not a new thing. So every block has a second part, the **feed-forward layer** (FFN; also called MLP). It makes many numbers of a vector, bends each of them, and makes a vector again.

# %%
predict("shuffled_tokens")

# %%
torch.manual_seed(0)
layer = build_feed_forward(FeedForwardConfig(32, "relu", gated=False, bias=True), d_model=8)
tokens = torch.randn(5, 8)
order = torch.tensor([3, 0, 4, 2, 1])
apart = (layer(tokens[order]) - layer(tokens)[order]).abs().max()
print(f"shuffled before the layer, or after it: the results differ by up to {apart:.5f}")

# %% [markdown]
# The layer is **position-wise**: no token sees another (Vaswani et al., 2017, §3.3).
#
# A layer of width $d$ with $d_\text{ff}$ hidden numbers has two matrices, $W_1$ ($d \times d_\text{ff}$) and $W_2$ ($d_\text{ff} \times d$), two biases, and the **ReLU**, $\max(0, z)$. Five operations: multiply by $W_1$ ("up"), add $b_1$, bend, multiply by $W_2$ ("down"), add $b_2$. In which order?
#
# - **A** up, bend, add $b_1$, down, add $b_2$
# - **B** up, add $b_1$, bend, down, add $b_2$
# - **C** bend, up, add $b_1$, down, add $b_2$
#
# Find out by hand. For the token $x = (1, -2)$ and
#
# $$W_1 = \begin{pmatrix} 1 & -1 & 0 \\ 0 & 1 & 1 \end{pmatrix},\quad b_1 = (0, 1, -1),\quad W_2 = \begin{pmatrix} 1 & 0 \\ 0 & 2 \\ 1 & 1 \end{pmatrix},\quad b_2 = (0, 0.5)$$
#
# the layer returns $(1, 0.5)$, and two of its three hidden units are silent (0). The other two orders return $(0, 1.5)$ and $(0, -0.5)$.
#
# Tokens are *rows* here, as in PyTorch, so a matrix comes after the token that it multiplies.

# %% [markdown]
# ### Exercise 1 · The feed-forward layer  (2 points · 5 min · ● · differentiable)
#
# `x` holds tokens as rows, with any axes before: `(d,)`, `(s, d)` or `(b, s, d)`. Return what the layer makes of each.

# %% exercise="ffn"
def ffn(
    x: Float[Tensor, "*batch d"],
    w1: Float[Tensor, "d d_ff"],
    b1: Float[Tensor, " d_ff"],
    w2: Float[Tensor, "d_ff d"],
    b2: Float[Tensor, " d"],
) -> Float[Tensor, "*batch d"]:
    """The feed-forward layer with a ReLU, for each token."""
    ### BEGIN SOLUTION
    hidden = (einsum(x, w1, "... d, d d_ff -> ... d_ff") + b1).clamp(min=0)
    return einsum(hidden, w2, "... d_ff, d_ff d -> ... d") + b2
    ### END SOLUTION

# %% check="ffn"

# %% [markdown]
# A unit is flat on one side and a ramp on the other. $b_1$ says where the ramp starts, $W_2$ how steep it is. Two ramps make $|x|$, three a hat: 0 up to $x = -1$, 1 at 0, and 0 again from 1 on. Which three numbers in `hat` do that? Change them and run the cell again.

# %%
hat = [1.0, 0.0, 0.0]  # how steep each ramp is; the ramps start at -1, 0 and 1
x = torch.tensor([[-2.0], [-1.0], [-0.5], [0.0], [0.5], [1.0], [2.0]])
with your("ffn"):
    absolute = ffn(x, torch.tensor([[1.0, -1.0]]), torch.zeros(2), torch.ones(2, 1), torch.zeros(1))
    hats = ffn(x, torch.ones(1, 3), torch.tensor([1.0, 0.0, -1.0]), torch.tensor(hat)[:, None], torch.zeros(1))
for name, y in (("x", x), ("|x|", absolute), ("hat (asked for: 0 0 0.5 1 0.5 0 0)", hats)):
    print(*(f"{one:5.1f}" for one in y.flatten()), "  ", name)

# %% [markdown]
# (`hat = [1, -2, 1]`: each number is the change of the slope.)
#
# ## 2 · Why bend at all?
#
# Take the curve away. What is left?

# %%
predict("wide_but_straight")

# %%
torch.manual_seed(0)
up, down = torch.randn(4, 1000, dtype=torch.float64), torch.randn(1000, 4, dtype=torch.float64)
x = torch.randn(3, 4, dtype=torch.float64)
together = up @ down  # computed once, before any x is known
apart = (x @ up @ down - x @ together).abs().max()
print(f"two matrices and one differ by up to {apart:.9f}, in numbers up to {(x @ together).abs().max():.0f}")

# %% [markdown]
# 8,000 weights do what 16 can do. One bend per hidden unit changes that: with ramps you can follow any curve piece by piece. Try one unit, then eight, then 64. Then take the activation away.

# %%
explore(figures.universal_fit, width=Log(1, 64), activation=["relu", "gelu", "identity"])

# %% [markdown]
# The **universal approximation theorem**: with enough hidden units, a two-layer network comes as close as you like to any *continuous* function on a *compact* set, such as the shaded interval.
#
# ## 3 · One gate, two curves
#
# ReLU is $z \cdot 1[z > 0]$: it **multiplies $z$ by a gate**, which is a step, closed or open. The gate of the **SiLU**, or Swish, is the sigmoid $\sigma(z) = 1/(1 + e^{-z})$; that of the **GELU** is the normal distribution. Both open smoothly, so there is a slope to follow even where the unit is nearly closed.
#
# The dotted line is the gate. Move $\beta$, the sharpness, up: what do GELU and SiLU turn into? (And at $\beta$ near 0?)

# %%
explore(figures.activation_explorer, activation=["relu", "gelu", "silu", "relu2", "elu", "selu"], sharpness=Log(0.1, 20.0), x=(-4.0, 4.0, 0.25))

# %% [markdown]
# At large $\beta$ they are ReLU; at small $\beta$ the gate is ½, and the bend is gone.
#
# ### A gradient that is not a number
#
# At $z = -100$ the exponential in the sigmoid overflows in fp32, and yet the SiLU is right: $-100/(1 + \infty) = -0$, and the true value is $-4 \cdot 10^{-42}$. So is all well? Ask for the gradient.

# %%
z = torch.tensor([-100.0, -1.0], requires_grad=True)
y = z / (1 + torch.exp(-z))
y.sum().backward()
print("values  ", y.detach())
print("gradient", z.grad)

# %% [markdown]
# On the way back autograd multiplies the 0 of the fraction by the $\infty$ of the exponential. One such number, and every weight before it is NaN after the next step. Another sigmoid uses $\tanh$, which goes from −1 to 1 and never overflows: what must be done to $\tanh(z/2)$?

# %% [markdown]
# ### Exercise 2 · SiLU  (3 points · 8 min · ●● · differentiable)
#
# $x\,\sigma(\beta x)$ of a tensor of any shape, in its own dtype, with values *and gradients* that are finite wherever the true ones are. A gate near 0 keeps few digits in 16 bits: compute those in float32 and round once, at the end. float64 stays float64. Write the sigmoid yourself: torch's (`sigmoid`, `logsigmoid`, `expit`) is not allowed here, and neither are `silu` and `glu`, which have it inside.

# %% exercise="silu"
def silu(x: Float[Tensor, "*shape"], beta: float = 1.0) -> Float[Tensor, "*shape"]:
    """x σ(βx), same shape and dtype as x."""
    ### BEGIN SOLUTION
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    gate = (1 + (beta * wide / 2).tanh()) / 2
    return (wide * gate).to(x.dtype)
    ### END SOLUTION

# %% check="silu"

# %% [markdown]
# ## 4 · Gates that look elsewhere
#
# In $x\,\sigma(x)$ a number decides about itself. A gate could also look at a different number. Project the same token twice, up to $d_\text{ff}$ numbers each: $z$ is the **gate**, $v$ the **value**. An activation bends $z$ alone, the two are multiplied number by number, and the product goes down. This is the **gated linear unit** (GLU; Dauphin et al., 2017), whose gate is a sigmoid. Shazeer (2020) put it into the transformer and tried other gates, named after the activation in front of "GLU": ReGLU, GEGLU, SwiGLU (with Swish, which is SiLU), and *bilinear*, which has no activation at all.
#
# By hand, for ReGLU: a token with $z = (1, -1)$ and $v = (4, 7)$. The gate is $(1, 0)$, the hidden layer $(4, 0)$. The 7 was a strong value, and it is lost.
#
# A gate multiplies two linear functions of $x$. Products ("France *and* capital") are what a plain layer has to assemble from many ramps. Move the two sliders: how does a bilinear layer differ from the others on the left side?

# %%
explore(figures.gate_surface, layer=["GLU", "Bilinear", "ReGLU", "GEGLU", "SwiGLU"], gate=(-4.0, 4.0, 0.25), value=(-4.0, 4.0, 0.25))

# %% [markdown]
# ### Exercise 3 · Five gated layers  (3 points · 8 min · ●● · differentiable)
#
# Implement all five, without biases, as they are usually used. `kind` is "glu", "bilinear", "reglu", "geglu" (with the exact GELU) or "swiglu"; anything else raises `ValueError`. The functions of `torch.nn.functional` are allowed (`F.gelu`, `F.silu`, …), except `F.glu`.
#
# So that we can experiment with the layer: if `change` is given, call it with the hidden numbers $f(z) \odot v$, (…, d_ff), and send what it returns down.

# %% exercise="glu_ffn"
def glu_ffn(
    x: Float[Tensor, "*batch d"],
    w_gate: Float[Tensor, "d d_ff"],
    w_value: Float[Tensor, "d d_ff"],
    w_down: Float[Tensor, "d_ff d"],
    kind: str,
    change: Callable[[Tensor], Tensor] | None = None,
) -> Float[Tensor, "*batch d"]:
    """The gated feed-forward layer of this kind, for each token."""
    ### BEGIN SOLUTION
    gates = {"glu": torch.sigmoid, "bilinear": lambda z: z, "reglu": F.relu, "geglu": F.gelu, "swiglu": F.silu}
    if kind not in gates:
        raise ValueError(f"unknown kind {kind!r}; there are {', '.join(gates)}")
    gate = gates[kind](einsum(x, w_gate, "... d, d d_ff -> ... d_ff"))
    hidden = gate * einsum(x, w_value, "... d, d d_ff -> ... d_ff")
    if change is not None:
        hidden = change(hidden)
    return einsum(hidden, w_down, "... d_ff, d_ff d -> ... d")
    ### END SOLUTION

# %% check="glu_ffn"

# %% [markdown]
# The course comes with a small model, trained on Python's help texts; its tokens are pieces of words. Its four blocks have SwiGLU layers. Let them run with your SiLU, then with your whole layer:

# %%
text = windows()  # 60 texts of 128 tokens each, from those that the model was trained on
trained = load_pretrained().model
with your("silu", "glu_ffn"), torch.no_grad():
    expected = trained(text[:4])
    mine = deepcopy(trained)
    for block in mine.blocks:
        block.feed_forward.layer.activation = silu
    for name, model in (("silu", mine), ("glu_ffn", TextLoss(text, glu_ffn).model)):
        print(f"with {name:8} the logits differ by up to {(model(text[:4]) - expected).abs().max():.4f}, in numbers up to {expected.abs().max():.0f}")

# %% [markdown]
# ## 5 · Does it help?
#
# Shazeer (2020) trained the base size of T5 with each layer, at equal parameters, and gave the average score on GLUE, a set of language tasks. Four gated layers got 84.20, 84.12, 84.36 and 84.67, the plain ReLU 83.80. So gates are better?
#
# One number decides: run the *same* model ten times, and the score scatters with a standard deviation of 0.235 (Raffel et al., 2020). Each score is one run.
#
# How surprising is a difference? A mean of $n$ runs scatters with $s/\sqrt n$. The difference of *two* such means is noisier than either: *variances* add. Divide the difference by its standard deviation; call that $z$. With $s = 0.235$, GLU's lead of 0.40 is 1.20 deviations (0.3323) with one run of each, 2.41 with 4, 6.02 with 25. Without any real difference, $|z|$ is above 2 in one case of 22.

# %% [markdown]
# ### Exercise 4 · Is it significant?  (3 points · 7 min · ●●)
#
# Return $z$ for every name but the baseline's. Each score is a mean of `runs` runs, and `deviation` is the standard deviation of one run.

# %% exercise="glue_significance"
def glue_significance(scores: dict[str, float], baseline: str, deviation: float, runs: int = 1) -> dict[str, float]:
    """The number of standard deviations of a difference by which each score is above the baseline's."""
    ### BEGIN SOLUTION
    noise = deviation * math.sqrt(2 / runs)
    return {name: (score - scores[baseline]) / noise for name, score in scores.items() if name != baseline}
    ### END SOLUTION

# %% check="glue_significance"

# %%
scores = {"ReLU": 83.80, "GLU": 84.20, "GEGLU": 84.12, "Bilinear": 83.79, "SwiGLU": 84.36, "ReGLU": 84.67}
with your("glue_significance"):
    for name, z in glue_significance(scores, "ReLU", 0.235).items():
        print(f"{name:9} z = {z:5.2f}")

# %% [markdown]
# One of five reaches 2: ReGLU, at 2.6. But it is the *best of five*. Throw five darts: the best one does not show how well you throw. If the five are independent, the chance that none strays that far by luck is $(1 - 0.009)^5$: about 4 of 100 such tables would show a winner where there is none.
#
# Repetition persuades. Narang et al. (2021) retrained dozens of proposed changes in one code base: most did nothing, and GLU variants were among the few that helped.
#
# ### On the spot
#
# Do not believe it, train. Four tiny transformers, two layers, $d = 64$, read our little stories byte by byte. They differ only in their feed-forward layers, which have the same number of weights up to a fifth of a percent. Each is trained with three seeds. (This takes half a minute.)

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
runs: dict[str, list[ShortRun]] = {}

def train_thrice(name: str, *layer: object) -> None:
    runs[name] = [train_layers(partial(OwnLayer, *layer), seed, steps=100) for seed in range(3)]
    print(f"{name:13} {', '.join(f'{run.loss:.2f}' for run in runs[name])} nats per byte")

with your("ffn"):
    train_thrice("no activation", lambda x, w1, b1, w2, b2: (x @ w1 + b1) @ w2 + b2, 256)
    train_thrice("ReLU", ffn, 256)

# %% tags=["nbval-ignore-output", "because losses of runs differ in the last digits between processors"]
with your("glu_ffn"):
    train_thrice("GELU", lambda x, w1, b1, w2, b2: F.gelu(x @ w1 + b1) @ w2 + b2, 256)
    train_thrice("SwiGLU", glu_ffn, 172, "swiglu")

# %% [markdown]
# Without a bend the model learns, too: attention's softmax is one. Which differences are larger than the scatter? Put the means into your $z$:

# %% tags=["nbval-ignore-output", "because it shows losses measured on this machine"]
losses = {name: [run.loss for run in three] for name, three in runs.items()}
means = {name: statistics.mean(three) for name, three in losses.items()}
deviation = math.sqrt(statistics.mean(statistics.variance(three) for three in losses.values()))
with your("glue_significance"):
    for baseline in ("no activation", "ReLU"):
        z = glue_significance(means, baseline, deviation, runs=3)
        print(f"against {baseline:13}:", *(f"{name} {-one:.1f}" for name, one in z.items() if name != "no activation"), " (positive: a lower loss)")

# %% [markdown]
# When this was written, SwiGLU was more than 3 deviations ahead of no activation and 2 ahead of ReLU; ReLU and GELU could not be told apart. Before you believe a $z$ of 2 here: the deviation is estimated from a few runs, one learning rate served all four, and 100 steps on 25,000 bytes show who *starts* fast.
#
# And why does a gate help? Shazeer's paper attributes the success "to divine benevolence", and there is still no accepted explanation. What would count as one? Something that predicts, *before* the run, where a gate wins.
#
# ## 6 · What one unit does
#
# Read the layer as a memory (Geva et al., 2021). The columns of $W_\text{gate}$ and $W_\text{value}$ that make a hidden unit say what it looks for. Its row of $W_\text{down}$ is what it adds to the stream when it has found that.
#
# Does a trained layer work like this? Begin with unit 225 of layer 1: what does it wait for, and what does it say then? Try 286 of layer 0, 276 of layer 1 and 57 of layer 3, then some at random. How many could you name?

# %%
explore(figures.hidden_unit, layer=[0, 1, 2, 3], unit=(0, 351))

# %% [markdown]
# Unit 225 waits for *li* and makes *ter* and *st* likelier: *literal*, *list*. Unit 286 of layer 0 waits for the end of a sentence, and says "new line" or "space".
#
# Whether the model *uses* a unit, no picture tells. Switch it off, and see what the text loses.

# %% [markdown]
# ### Exercise 5 · Switch units off  (4 points · 12 min · ●●●)
#
# `loss(change)` returns the loss of every next token of a text, (b, s); `loss()` changes nothing. `change(layer, hidden)` is called for each layer, from 0 on, with its hidden numbers, (b, s, d_ff), and returns those to go on with. `units` is a list of pairs, (layer, unit). `wanted`, (b, s), is True where the effect is asked for.
#
# Switch all of `units` off at once: their hidden numbers become 0. Return by how much the mean loss rises where `wanted` is True, and by how much elsewhere. If there is no such place, that number is 0. Leave the tensors that you are given as they are.

# %% exercise="unit_effect"
def unit_effect(
    loss: Callable[..., Float[Tensor, "b s"]], units: list[tuple[int, int]], wanted: Bool[Tensor, "b s"]
) -> tuple[float, float]:
    """The rise of the loss without these units, where it is wanted and elsewhere."""
    ### BEGIN SOLUTION
    def change(layer: int, hidden: Tensor) -> Tensor:
        hidden = hidden.clone()
        hidden[..., [unit for place, unit in units if place == layer]] = 0
        return hidden

    rise = loss(change) - loss()
    on, off = (rise[places].mean().item() if places.any() else 0.0 for places in (wanted, ~wanted))
    return on, off
    ### END SOLUTION

# %% check="unit_effect"

# %% [markdown]
# Now measure on the 60 texts; the model's loss there is 1.52 nats per token. First, three questions.

# %%
predict("loss_after_li")

# %%
predict("unit_at_random")

# %%
predict("layer_to_spare")

# %%
with your("glu_ffn", "unit_effect"), torch.no_grad():
    loss = TextLoss(text, glu_ffn)
    sizes = hidden_numbers(loss).abs()  # (layers, texts, tokens, units)
    after_li, nowhere = of_kind(text[:, :-1], "li"), torch.zeros(60, 127, dtype=torch.bool)
    on, off = unit_effect(loss, [(1, 225)], after_li)
    print(f"unit 225 of layer 1: after li {on:+.3f} ({int(after_li.sum())} places), elsewhere {off:+.4f}")
    for layer, unit in ((0, 286), (1, 276), (3, 57)):
        largest = sizes[layer, ..., unit] > sizes[layer, ..., unit].quantile(0.99)
        on, off = unit_effect(loss, [(layer, unit)], largest)
        print(f"unit {unit} of layer {layer}: on the 1 % of places where it is largest {on:+.3f}, elsewhere {off:+.4f}")

# %%
with your("unit_effect"), torch.no_grad():
    for layer in range(4):
        print(f"all of layer {layer}: {unit_effect(loss, [(layer, unit) for unit in range(352)], nowhere)[1]:+.2f}")
    few, drawn = TextLoss(text[:20]), torch.randperm(4 * 352, generator=torch.Generator().manual_seed(1))[:60]
    alone = [unit_effect(few, [divmod(at, 352)], nowhere[:20])[1] for at in drawn.tolist()]
print(f"60 units at random: median {statistics.median(alone):+.4f}, largest {max(alone):+.4f}; below 0: {sum(rise < 0 for rise in alone)}")

# %% [markdown]
# So 225 helps after *li*, a little. 286 is used where it is large; 57, which you may have named, hardly. Most units cost next to nothing. Are they useless? All 352 of a layer are not: what a layer says is the sum of many small voices.
#
# Without layer 0 the loss is 7.34, worse than guessing among 512 tokens ($\ln 512 = 6.24$). Why the first? We do not know. (Perhaps because a model with one table for input and output begins by saying its own token again: notebook 12.)
#
# ## 7 · Find the units
#
# Which units carry *one skill*: closing a bracket? In the 60 texts, 82 of 7,620 next tokens begin with ")". Switch eight units off so that the loss of these rises as much as possible, and that of all others by at most 0.06.

# %% [markdown]
# ### Exercise 6 · Eight units  (5 points · 12 min · ●●●)
#
# `silence(loss, wanted, k)` returns at most `k` pairs, (layer, unit). `loss` is as above, of 60 texts; `loss(change, 20)` reads the first 20 only, which is faster: take `wanted[:20]`. `loss.text` holds the tokens, `loss.model` the model. Useful:
#
# - the hidden numbers: `kept = []`, and a `change` that appends `hidden` to it and returns it;
# - the slopes of a loss: let `change` append and return `hidden.requires_grad_()`, then `torch.autograd.grad(loss(change)[wanted].mean(), kept)`;
# - a number for each unit: `divmod(scores.argmax().item(), 352)` is the pair of the largest in a (4, 352) tensor.
#
# The check measures on 60 *other* texts, with other numbers; grading on 60 more. Both ask a second time, for tokens of *another kind* (in the check those that begin with a quote, '), whose loss must rise by 0.3 more than that of the rest. **Finish line:** brackets 2.2, all others at most 0.06. A search of 5 seconds can reach it; a check may take 60.

# %% exercise="silence"
def silence(loss: TextLoss, wanted: Bool[Tensor, "texts s"], k: int) -> list[tuple[int, int]]:
    """At most k units without which the loss rises where `wanted` is True, and hardly elsewhere."""
    ### BEGIN SOLUTION
    def rises(units):  # what the loss would rise by without each unit, if `units` are off already
        kept = []

        def keep(layer, hidden):
            hidden = hidden.clone()
            hidden[..., [unit for place, unit in units if place == layer]] = 0
            kept.append(hidden.requires_grad_())
            return hidden

        slopes = torch.autograd.grad(loss(keep)[wanted].mean(), kept)
        return torch.stack([-(hidden * slope).sum(dim=(0, 1)) for hidden, slope in zip(kept, slopes, strict=True)])

    units = []
    while len(units) < k:
        ranked = [divmod(at, 352) for at in rises(units).flatten().argsort(descending=True).tolist()]
        units += [pair for pair in ranked if pair not in units][: min(2, k - len(units))]
    return units
    ### END SOLUTION

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
wanted = of_kind(text[:, 1:], "closing bracket")
with your("silence", "unit_effect"):
    found = silence(TextLoss(text), wanted, 8)
    with torch.no_grad():
        on, off = unit_effect(TextLoss(text), found, wanted)
print(f"without the units of `silence`: brackets {on:+.2f}, all other tokens {off:+.2f}, on the text that was searched")

# %% check="silence"

# %% [markdown]
# What do your first three units wait for, and what does the model write without them all?

# %% tags=["nbval-ignore-output", "because the units are found on this machine"]
for unit in found[:3]:
    print(in_words(*unit))
for name, change in (("all units", None), ("without these", without(found))):
    print(f"{name}: {continued('str.find(sub[, start[, end', 24, change)!r}")

# %% [markdown]
# Why does one way to choose find so much more than another? What a unit's row says is only the straight way to the head; units of layers 0 and 1 act through the layers above. For full stops and commas, the largest units do as well as any that we found. Why? We have no answer.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what does the layer do? | up, bend, down, for each token alone |
# | a gated layer? | $(f(xW_\text{gate}) \odot xW_\text{value})\,W_\text{down}$; SwiGLU takes SiLU |
# | is a difference real? | divide by $s\sqrt{2/n}$, and mind how many you tried |
# | does the model use a unit? | switch it off, and measure what the text loses |
#
# ## Check yourself
#
# 1. You switch two units off, one at a time, and each costs nothing. Can both together cost much?
# 2. A ReLU layer starts with $W_1$ and both biases at 0. What does $W_1$ learn?
#
# <details><summary>Answers</summary>
#
# 1. Yes: each may do the other's work.
# 2. Nothing. Every hidden number is 0, where torch takes ReLU's slope to be 0.
#
# </details>

# %% tags=["hide-input"]
hand = torch.tensor([1.0, -2.0]) @ torch.tensor([[1.0, -1, 0], [0, 1, 1]]) + torch.tensor([0.0, 1, -1])
assert hand.tolist() == [1, -2, -3]
out = hand.clamp(min=0) @ torch.tensor([[1.0, 0], [0, 2], [1, 1]]) + torch.tensor([0, 0.5])
assert out.tolist() == [1, 0.5]
up, down = torch.tensor([[1.0, -1, 0], [0, 1, 1]]), torch.tensor([[1.0, 0], [0, 2], [1, 1]])
b1, b2, token = torch.tensor([0.0, 1, -1]), torch.tensor([0, 0.5]), torch.tensor([1.0, -2])
assert (((token @ up).relu() + b1) @ down + b2).tolist() == [0, 1.5]
assert ((token.relu() @ up + b1) @ down + b2).tolist() == [0, -0.5]
grid = torch.tensor([-2.0, -1, -0.5, 0, 0.5, 1, 2])
ramps = sum(steep * (grid + start).relu() for steep, start in zip((1, -2, 1), (1, 0, -1), strict=True))
assert ramps.tolist() == [0, 0, 0.5, 1, 0.5, 0, 0]
assert f"{-100 * math.exp(-100):.0e}" == "-4e-42"
normal = statistics.NormalDist()
z = {name: (score - scores["ReLU"]) / (0.235 * math.sqrt(2)) for name, score in scores.items()}
assert [f"{z[name]:.1f}" for name in ("GLU", "SwiGLU", "ReGLU")] == ["1.2", "1.7", "2.6"]
assert [name for name in z if z[name] >= 2] == ["ReGLU"]
assert round(1 / (2 * normal.cdf(-2))) == 22
noises = [0.235 * math.sqrt(2 / n) for n in (1, 4, 25)]
assert f"{noises[0]:.4g}" == "0.3323" and [f"{0.40 / noise:.2f}" for noise in noises] == ["1.20", "2.41", "6.02"]
chance = 2 * normal.cdf(-z["ReGLU"])
assert round(chance, 3) == 0.009 and round(100 * (1 - (1 - chance) ** 5)) == 4
assert f"{(2 * 0.235) ** 2 * 2 / 0.32**2:.1f}" == "4.3"
assert abs((3 * 172 * 64) / (2 * 256 * 64 + 256 + 64) - 1) < 0.002 and 8 * 32 * 100 == 25_600
assert 2 * 4 * 1000 == 8000 and 4 * 352 == 1408 and f"{math.log(512):.2f}" == "6.24" and text.shape == (60, 128)
stored = TextLoss(text)
with torch.no_grad():
    before = stored()
    alone_225, without_0 = (stored(without(off)) - before for off in ([(1, 225)], [(0, unit) for unit in range(352)]))
assert f"{before.mean():.2f} {before.mean() + without_0.mean():.2f}" == "1.52 7.34"
assert f"{alone_225[of_kind(text[:, :-1], 'li')].mean():.2f}" == "0.05"
assert (int(wanted.sum()), wanted.numel()) == (82, 7620)
assert max(alone) < 0.05 and statistics.median(alone) < 0.002 and sum(rise < 0.01 for rise in alone) == 58

# %% [markdown]
# ## Further
#
# Each block needs the core, and no other block. Read them in any order.

# %% [markdown]
# ### A · The zoo  (21 min)
#
# Which curve?
#
# | name | $f(x)$ | used in |
# | --- | --- | --- |
# | **sigmoid** $\sigma$ | $1 / (1 + e^{-x})$ | gates, LSTMs |
# | **ReLU** | $\max(0, x)$ | the first transformer, T5, OPT |
# | **GELU** | $x\,\Phi(x)$ | GPT-1, 2, 3, GPT-J, BERT, BLOOM, Falcon, Falcon 2 |
# | **SiLU** or **Swish** | $x\,\sigma(x)$, or $x\,\sigma(\beta x)$ | LLaMA, PaLM, inside a gate |
# | **ReLU²** | $\max(0, x)^2$ | Nemotron-4 340B |
# | **ELU** | $x$, or $e^x - 1$ below 0 | before transformers |
# | **SELU** | ELU, stretched to keep variances | before transformers |
#
# (GELU: Hendrycks and Gimpel, 2016. Swish: Ramachandran et al., 2017. ReLU²: So et al., 2021. ELU: Clevert et al., 2016. SELU: Klambauer et al., 2017.)
#
# The explorer of section 3 draws these curves, except for the sigmoid. ReLU² is $x$ times a gate that opens wider the larger $x$ is; a machine found it, searching over small changes of the transformer (So et al., 2021). The universal approximation theorem of section 2 (Cybenko, 1989; Hornik, 1991) holds for any activation that is not a polynomial (Leshno et al., 1993). It promises that weights exist. It does not say how many it takes, nor that training finds them. Which curve makes them easy to find is a question for experiments, and that is why there is a zoo.
#
# #### GELU, exactly
#
# PyTorch has no $\Phi$ under this name, but it has the error function, which the rest of mathematics uses:
#
# $$\operatorname{erf}(z) = \frac{2}{\sqrt\pi} \int_0^z e^{-t^2}\, dt, \qquad
# \Phi(x) = \frac{1}{\sqrt{2\pi}} \int_{-\infty}^x e^{-t^2/2}\, dt.$$
#
# The first goes from −1 to 1, the second from 0 to 1, and the second curve is wider. What do you have to do to the input and to the result of erf?
#
# One trap is numerical. For $x = -3$ the erf that you need is −0.9973, and in fp16 $1 - 0.9973$ keeps two or three bits. You know the cure from notebook 01: compute in fp32, cast at the end.

# %% [markdown]
# ### Exercise 7 · GELU  (3 points · 8 min · ●● · differentiable)
#
# The exact GELU, $x\,\Phi(x)$, of a tensor of any shape, in its own dtype (fp16, bf16, fp32 or fp64): not one of the approximations that you may know. `torch.erf` is allowed; torch's own GELU and its $\Phi$ (`torch.special.ndtr`) are not.

# %% exercise="gelu"
def gelu(x: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """x Φ(x), same shape and dtype as x."""
    ### BEGIN SOLUTION
    wide = x.float() if x.dtype in (torch.float16, torch.bfloat16) else x
    gate = (1 + (wide / math.sqrt(2)).erf()) / 2
    return (wide * gate).to(x.dtype)
    ### END SOLUTION

# %% check="gelu"

# %% [markdown]
# When erf was slow, two approximations came into use, and both are in published weights:
#
# $$\tfrac12 x \Big(1 + \tanh\big(\sqrt{2/\pi}\,(x + 0.044715\,x^3)\big)\Big) \qquad\text{and}\qquad x\,\sigma(1.702\,x).$$

# %%
x = torch.linspace(-6, 6, 120_001, dtype=torch.float64)
exact = F.gelu(x)
approximations = {"tanh": F.gelu(x, approximate="tanh"), "sigmoid": x * (1.702 * x).sigmoid(), "SiLU": F.silu(x)}
for name, near in approximations.items():
    error = (near - exact).abs()
    print(f"{name:8} at most {error.max():.4f} off, at x = ±{x[error.argmax()].abs():.2f}")

# %% [markdown]
# The tanh is off by less than bf16 can tell apart near 1; SiLU is another function. GPT-2 and GPT-J were trained with the tanh, CLIP's text model with the sigmoid. BERT's weights are run by two programs: Google's has the tanh, Hugging Face's the exact form. Before you run weights, find out which one they were trained with.
#
# #### A dip below zero
#
# GELU and SiLU do something that ReLU does not: they go *down* first. For which $x$?
#
# In the explorer of section 3, look where the dashed slope is negative. For SiLU the minimum can be found on paper. The slope of $x\,\sigma(x)$ is
#
# $$\sigma(x) + x\,\sigma(x)\,(1 - \sigma(x)) = \sigma(x)\,\big(1 + x\,(1 - \sigma(x))\big),$$
#
# which is zero where $x\,(1 - \sigma(x)) = -1$. Then $x\,\sigma(x) = x + 1$: the value at the minimum is the place plus one. No simple formula gives the place; you need a search. GELU's is nearer to zero and shallower.

# %% [markdown]
# ### Exercise 8 · Where the dip is  (3 points · 8 min · ●●)
#
# Return `[x, f(x)]` at the minimum of $x\,\sigma(s x)$ (`kind="silu"`) or $x\,\Phi(s x)$ (`kind="gelu"`), where $s$ is `scale` (above 0). Four correct digits are enough. (Search as you like. Is there a way to search once, for $s = 1$, and know the answer for every $s$?)

# %% exercise="activation_minimum"
def activation_minimum(kind: str, scale: float = 1.0) -> list[float]:
    """[x, f(x)] at the minimum: about [-1.278, -0.278] for "silu"."""
    ### BEGIN SOLUTION
    z = torch.linspace(-3, 0, 300_001, dtype=torch.float64)  # z = scale · x, and f(x) = z · gate(z) / scale
    y = F.silu(z) if kind == "silu" else F.gelu(z)
    lowest = y.argmin()
    return [z[lowest].item() / scale, y[lowest].item() / scale]
    ### END SOLUTION

# %% check="activation_minimum"

# %% [markdown]
# **A student asks:** "To the left of the dip the slope is negative. Can a unit get trapped there, pushed ever further out?" Look at the numbers. For GELU the slope is never below −0.129, for SiLU never below −0.100, and far to the left it fades to zero: a weak push, which dies away. ReLU's slope is *exactly* zero on that whole side; a ReLU unit that is negative for every input gets no gradient at all and is called **dead**. So the dip does not make things worse than they were. And units do not sit still: their inputs move with every layer below, and with large learning rates and momentum they are carried across dips of a few tenths.

# %% [markdown]
# ### B · Does a fancy curve cost time?  (8 min)
#
# Another student: "Isn't GELU's derivative slow to compute?"

# %%
predict("gelu_backward")

# %% [markdown]
# To answer, count two things: operations, and bytes. An activation reads each number from memory, computes, and writes the result. Their ratio is the **arithmetic intensity** (notebook 08):
#
# $$I = \frac{\text{operations}}{\text{bytes read and written}}$$
#
# ReLU in bf16: one operation, 2 bytes in, 2 bytes out, so $I = 1/4$. The product of gate and value: one operation, 4 bytes in, 2 out, $I = 1/6$. A GELU of, say, 20 operations: $I = 5$.
#
# A chip has a ratio of its own, the **ridge**: peak FLOP/s over bytes per second. Below it, the arithmetic units wait for memory. An H100 reaches 67 TFLOP/s on its ordinary fp32 units and moves 3.35 TB/s, so its ridge for such work is 20. (Its famous 989 TFLOP/s are those of the tensor cores, which only multiply matrices.)

# %% [markdown]
# ### Exercise 9 · Intensity  (2 points · 5 min · ●)
#
# Several elementwise kernels run one after the other on the same number of elements. Each is `[operations, reads, writes]`: operations per element, and how many arrays it reads and writes. A number takes `bytes_each` bytes. Return the intensity of all together.

# %% exercise="elementwise_intensity"
def elementwise_intensity(kernels: list[list[int]], bytes_each: int) -> float:
    """Operations per byte: 0.25 for [[1, 1, 1]] (ReLU) at 2 bytes."""
    ### BEGIN SOLUTION
    work = sum(operations for operations, _, _ in kernels)
    arrays = sum(reads + writes for _, reads, writes in kernels)
    return work / (arrays * bytes_each)
    ### END SOLUTION

# %% check="elementwise_intensity"

# %% [markdown]
# Every activation is far below the ridge of a GPU. In bf16 an H100 could spend 80 operations on each number before it noticed. So GELU takes as long as ReLU, and ReLU as long as a copy; their backward passes, which read two arrays, take half as long again.
#
# What does cost time is a *chain* of small kernels. A tanh-GELU written in plain PyTorch takes eight (cube, scale, add $x$, scale, tanh, add 1, times $x$, halve), and between any two every number goes to memory and back: 18 arrays in all. **Fusing** them into one kernel moves 2, is several times faster and changes no operation. That is why `F.gelu` exists, why `torch.compile` helps, and why programs that serve LLaMA bring a fused SwiGLU.

# %% [markdown]
# ### C · What shape?  (45 min)
#
# #### A fair comparison
#
# A gated layer has a third matrix. If it wins against a plain one of the same width, was it the gate, or the weights? To find out, both must have the same number of parameters.
#
# A plain layer of width $4d$ has $8d^2$ weights. (Attention has $4d^2$, so feed-forward to attention is 2 to 1.) Count those of a gated layer, and find the width at which it has as many. For $d = 4096$ that width is 10,922⅔, which is as inconvenient as a number can be: matrix units like multiples of 64 or more.

# %% [markdown]
# ### Exercise 10 · The matched width  (3 points · 7 min · ●●)
#
# A plain layer has width `expansion` · `d_model`. Return the smallest width of a gated layer that is a multiple of `multiple` and has at least as many weights.

# %% exercise="matched_d_ff"
def matched_d_ff(d_model: int, expansion: int = 4, multiple: int = 1) -> int:
    """The smallest width with enough weights: 11008 for (4096, 4, 256), as in LLaMA-7B."""
    ### BEGIN SOLUTION
    return -(-2 * expansion * d_model // (3 * multiple)) * multiple
    ### END SOLUTION

# %% check="matched_d_ff"

# %% [markdown]
# A gated layer is narrower by a *factor* of 2/3, and that is exact: three matrices of 2/3 are as large as two whole ones. ("Smaller by 2/3" would leave one third.) Without rounding, $w = \tfrac83 d$.
#
# The ratio $r = d_\text{ff}/d$ is the **expansion factor**. Three costs grow with it, all in proportion:
#
# | per layer | plain | gated |
# | --- | --- | --- |
# | parameters | $2 r d^2$ | $3 r d^2$ |
# | FLOPs for each token, forward | $4 r d^2$ | $6 r d^2$ |
# | hidden numbers kept for the backward pass, for each token | $2 r d$: before and after the activation | $4 r d$: gate before and after, value, product |
#
# What share of a block is feed-forward? Two thirds for the plain $4d$, and of published models:

# %%
for name in ("gpt-3", "t5-11b", "t5-v1.1-xxl", "llama-7b", "llama-3-8b", "llama-3.1-405b", "gemma-2-27b"):
    model = find_model(name).decoder
    first = model.layers[0]
    forward = sum(matrix.weights for matrix in feed_forward_matrices(first.feed_forward, model.d_model))
    attention = sum(matrix.weights for matrix in attention_matrices(first.attention, model.d_model))
    share = forward / (forward + attention)
    print(f"{name:15} attention {attention / 1e6:7,.1f} M   feed-forward {forward / 1e6:7,.1f} M   share {share:.0%}")

# %% [markdown]
# Where the share is above two thirds, the keys and values of attention are shared among heads (notebook 08), so attention is smaller, or the feed-forward layer is wider than it had to be. (For T5 this is the decoder's attention to itself; its attention to the encoder is extra.)
#
# A decoder has a handful of sizes: layers $L$, width $d$, the feed-forward width, the number of heads and their width, and the vocabulary $V$. No theory gives them. So look at what others chose, one size after another, and ask of each habit what it is good for.
#
# #### The feed-forward width

# %%
predict("t5_width")

# %%
explore(figures.width_ratios)

# %% [markdown]
# - **Plain: 4.** From the first transformer ($d = 512$, $d_\text{ff} = 2048$) to GPT-3 and Nemotron-4, nearly all chose it. For $d = 768$ that is 3,072.
# - **Gated: 8/3 at first.** LLaMA, DeepSeek, OLMo, Yi-6B and Qwen2.5-14B lie at 2.67 to 2.7, which is 8/3 rounded up. Others took more: 2.86 in Yi-34B, 3.5 in Llama 2 70B, Mistral and the Llama 3 models of 8B and 70B, 3.25 in that of 405B, 4 in PaLM, 5.4 in Qwen2.5-32B.
# - **T5-11B: 64.** Its authors said why: matrix units are busiest with large dense products (Raffel et al., 2020). Its successor, T5 v1.1 of the same size, is at 2.5, with a gate.
# - **Gemma 2.** The 27B model has 36,864 / 4,608 = 8. The 9B model has 14,336 / 3,584 = 4, and you get 8 only if you count gate and value together, as a configuration that fuses them might suggest. Before you compare ratios, ask what was counted.
#
# Does it matter? Kaplan et al. (2020, Figure 5) held the number of parameters fixed and varied the shape. Over a wide range of ratios the loss varied by a few percent: a wide basin, and 4 is in it by custom. (Their figure is for small plain models; how far it carries is not known.)
#
# **A student asks:** "If the loss is flat, what does the ratio trade?" Time against depth. At a fixed budget a larger ratio means fewer, wider layers: larger products, which fill a machine, and fewer that have to wait for each other. But each layer is also a step of computation, and what needs two steps cannot be done in one, however wide.
#
# #### Heads, aspect, vocabulary

# %%
predict("qwen3_heads")

# %%
explore(figures.model_shapes, choice=["all heads", "aspect", "vocabulary"])

# %% [markdown]
# - **Heads.** In 93 of the 109 models the heads' combined width equals the model's. In 59 of the 109 a head has 128 features, in 32 it has 64. The first is a habit: the projections of attention may have any width. T5-11B's heads are 16 times as wide together as the model, PaLM 540B's two thirds as wide. The second has a reason: the scores of a head are a product of rank at most its width, so thin heads can say little (Bhojanapalli et al., 2020). The cell below computes that rank.
# - **Aspect, $d/L$.** 80 of 109 have between 60 and 160. The basin is flat here, too, so other reasons decide: layers wait for each other, and wide matrices can be split over GPUs (notebook 18). SmolLM2-135M, made for small devices, is at 19; the widest, at 205, are BLOOM, Gopher and Command R.
# - **Vocabulary.** Look at the years. A larger vocabulary makes texts shorter and serves more languages. What does it cost?

# %%
d = 64
print("d_head   rank of QKᵀ   loss, four seeds (nats per byte)")
for d_head, ends in figures.THIN_HEADS.items():
    w_q, w_k = torch.randn(2, d, d_head, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    print(f"{d_head:6} {torch.linalg.matrix_rank(w_q @ w_k.T):13}  ", *(f"{end:.2f}" for end in ends))

# %% [markdown]
# The scores of a head are $x W_Q W_K^\top x^\top$, and the matrix between them has a rank of at most $d_\text{head}$, however long the text. The losses are stored: models as in section 5, with 16, 8, 4 and 2 heads, whose combined width is always 64, so all have equally many weights. With every seed, heads of 4 end above heads of 8, by 0.15 to 0.20. But heads of 32 do, too, by 0.21 to 0.27: there are only two of them. How much a head can say is one thing, how many say something another.

# %%
predict("gemma_table")

# %%
for years in ((2017, 2020), (2021, 2023), (2024, 2025)):
    sizes = [entry.decoder.vocab_size for entry in figures.published() if years[0] <= entry.year <= years[1]]
    print(f"{years[0]} to {years[1]}: median vocabulary {statistics.median(sizes):9,.0f} of {len(sizes)} models")
for name in ("gpt-2", "llama-7b", "llama-3-8b", "llama-3.1-405b", "qwen3-0.6b", "gemma-3-1b", "gemma-3-27b"):
    entry = find_model(name)
    table = entry.decoder.vocab_size * entry.decoder.d_model
    tied = "one table" if entry.decoder.head.tied else "two tables"
    share = table * (1 if entry.decoder.head.tied else 2) / count_parameters(entry.config).total
    print(f"{name:15} {table / 1e6:7,.1f} M for {entry.decoder.vocab_size:7,} tokens, {tied}: {share:.1%} of all")

# %% [markdown]
# The table of a large model hardly counts; that of a small one takes the parameters away from its layers. Now choose a shape yourself.

# %% [markdown]
# ### Exercise 11 · A shape of your own  (3 points · 14 min · ●●)
#
# A LLaMA-like decoder: gated feed-forward layers, no biases, as many key heads as query heads, and a tied table (embedding and head share it). Norms are too small to count. Return `{"layers": …, "d_model": …, "heads": …, "d_ff": …}` such that
#
# - the heads, each `head_width` wide, have a combined width that equals the model's;
# - `d_ff` is a multiple of 64 and between 2.5 and 4 times `d_model`;
# - the aspect is between 60 and 160;
# - the model has `parameters` parameters, within 3 %.
#
# Several shapes may keep the rules; any of them is right. If there is none, raise `ValueError`. You are asked for at most 1.3 billion parameters, and have 20 seconds for each case: the first shape that fits will do.

# %% exercise="decoder_shape"
def decoder_shape(parameters: int, vocab_size: int, head_width: int = 128) -> dict[str, int]:
    """Layers, width, heads and feed-forward width of a decoder with about this many parameters."""
    ### BEGIN SOLUTION
    d = head_width
    while vocab_size * d < parameters:
        for layers in range(math.ceil(d / 160), d // 60 + 1):
            for d_ff in range(64 * math.ceil(2.5 * d / 64), 4 * d + 1, 64):
                count = vocab_size * d + layers * (4 * d * d + 3 * d * d_ff)
                if abs(count - parameters) <= 0.03 * parameters:
                    return {"layers": layers, "d_model": d, "heads": d // head_width, "d_ff": d_ff}
        d += head_width
    raise ValueError(f"no shape has about {parameters:,} parameters")
    ### END SOLUTION

# %% check="decoder_shape"

# %% [markdown]
# What does a larger vocabulary do to a model of GPT-2's size? And how near are your shapes to published ones?

# %%
with your("decoder_shape"):
    for vocab_size in (32_000, 50_257, 128_256, 262_144):
        shape = decoder_shape(124_000_000, vocab_size, 64)
        share = vocab_size * shape["d_model"] / 124e6
        print(f"124 M, {vocab_size:7,} tokens: {shape['layers']:2} layers, d = {shape['d_model']:5,}, table {share:.0%}")
    for name, head_width in (("gpt-2", 64), ("llama-3.2-1b", 64), ("gemma-3-1b", 256), ("smollm2-1.7b", 64)):
        entry = find_model(name)
        shape = decoder_shape(count_parameters(entry.config).total, entry.decoder.vocab_size, head_width)
        theirs = f"{len(entry.decoder.layers)} layers, d = {entry.decoder.d_model:,}"
        print(f"{name:13} yours: {shape['layers']:2} layers, d = {shape['d_model']:5,}   published: {theirs}")

# %% [markdown]
# The larger the table, the less is left for layers: at 262,144 tokens only a few layers, at 100 million parameters nothing that keeps the rules. So a small model with a large vocabulary is tempted to break them. Gemma 3 1B breaks three: it is narrow, to keep its table small, and deep instead (26 layers, $d = 1152$, an aspect of 44); its feed-forward layers are $6d$ wide; and its heads are 1,024 wide together.
#
# #### And the ratio?
#
# Is the expansion factor a wide basin? The training of section 5, with plain GELU layers: six models of two layers, each with 98,304 weights outside of the table (to 0.2 %), from a wide stream with thin feed-forward layers to the opposite. The runs are stored, three seeds each. Where does the loss rise by more than the scatter?

# %%
for ratio, (d, width, ends) in figures.BASIN.items():
    print(f"d_ff / d = {ratio:5.2f} (d = {d:3}, d_ff = {width:3}):", *(f"{end:.2f}" for end in ends), f"  mean {statistics.mean(ends):.2f}")

# %% [markdown]
# From 0.27 to 4 the means differ by less than the seeds do. At 8.7 each seed ends above its run at 4, by 0.08 to 0.14, and at 22 higher still: there the stream has 32 features, and a hidden layer of 704 has nothing more to read. It is the picture of Kaplan et al. in small: the exact ratio hardly matters, until one of the two widths is starved.
#
# Back to the scores of section 5. How many runs of each would make GEGLU's lead of 0.32 over ReLU two deviations, if the means had stayed as they are?

# %%
explore(figures.glue_scores, runs=(1, 16))

# %% [markdown]
# $0.32 = 2 \cdot 0.235 \sqrt{2/n}$ gives $n = 4.3$: five of each.
#
# **In real models.** A gate helps; it is not necessary. GPT-3 (GELU, 2020), Falcon 2 11B (GELU, 2024) and Nemotron-4 340B (squared ReLU, 2024) are plain, and good. Most others have SwiGLU (PaLM, LLaMA 1 to 3, Mistral, Qwen, OLMo, DeepSeek, Yi, Phi-3) or GEGLU (T5 v1.1, LaMDA, Gemma 1 to 3).

# %% [markdown]
# ### D · Not all of it for every token  (33 min)
#
# So far every weight works on every token. Does a comma need the weights that know capitals?
#
# Take $E$ small gated layers, the **experts**. A **router**, one matrix $W_r$ of $d \times E$, scores them for each token: $p = \text{softmax}(x W_r)$. The token goes to the $k$ experts with the largest $p$, and their results are added with the weights $p$, divided by the sum of these $k$. This is a **mixture of experts** (MoE; Shazeer et al., 2017), and most of the largest open models of today are one.
#
# By hand: four experts, $k = 2$, and a token with the scores $(2, 1, 0, -1)$. Then $p = (0.644, 0.237, 0.087, 0.032)$. Experts 0 and 1 compute; say they return $(10, 0)$ and $(0, 10)$. Their weights are $0.644 / 0.881 = 0.731$ and $0.269$, and the token gets $(7.31, 2.69)$. For $k = 1$ the weight is $p$ itself. (Divided by itself it would always be 1, and no gradient would reach the router.)

# %%
predict("moe_flops")

# %% [markdown]
# Two things can go wrong.
#
# - **An expert is full.** Experts are on different GPUs, and each reserves memory for a fixed number of tokens. With a **capacity** of $c$ an expert takes at most $\lfloor c\, n k / E \rfloor$ of the $n$ tokens, those that come first in the text. For the others it adds nothing. They are not lost: the residual stream carries them on.
# - **One expert takes all.** An expert that is chosen more often learns more, and is chosen more often. A **balance loss** works against that (Fedus et al., 2022): $E \sum_e f_e\, \bar p_e$, where $f_e$ is the fraction of the $n k$ choices that fell on expert $e$, and $\bar p_e$ the mean of $p_e$ over all tokens. Only $\bar p$ has a gradient: $f$ counts. Equal shares give 1. What does it give when every token is certain of the same expert?

# %% [markdown]
# ### Exercise 12 · A mixture of experts  (4 points · 18 min · ●●● · differentiable)
#
# `x` holds $n$ tokens. Expert $e$ is a SwiGLU layer with the matrices `w_gate[e]`, `w_value[e]` and `w_down[e]`. Return `(y, balance)`: the result for each token, and the balance loss, which counts the choices before any token is dropped. Without a `capacity` there is no limit.
#
# An expert computes its own tokens only: one that no token chose may hold anything, even NaN. A loop over experts is fine. (A loop over tokens would be slow in the training below.)

# %% exercise="moe"
def moe(
    x: Float[Tensor, "n d"],
    w_router: Float[Tensor, "d e"],
    w_gate: Float[Tensor, "e d w"],
    w_value: Float[Tensor, "e d w"],
    w_down: Float[Tensor, "e w d"],
    k: int,
    capacity: float | None = None,
) -> tuple[Float[Tensor, "n d"], Float[Tensor, ""]]:
    """Each token through its k experts, and the balance loss."""
    ### BEGIN SOLUTION
    experts = len(w_gate)
    p = (x @ w_router).softmax(dim=-1)
    largest, chosen = p.topk(k, dim=-1)  # (n, k)
    weights = largest / largest.sum(dim=-1, keepdim=True) if k > 1 else largest
    picked = torch.zeros_like(p).scatter(1, chosen, 1.0)  # (n, e): who chose whom
    balance = experts * (picked.mean(dim=0) / k * p.mean(dim=0)).sum()
    if capacity is not None:
        place = picked.cumsum(dim=0)  # in each expert's queue
        picked = picked * (place <= math.floor(capacity * chosen.numel() / experts))
    shares = torch.zeros_like(p).scatter(1, chosen, weights)
    y = torch.zeros_like(x)
    for expert in range(experts):
        (rows,) = picked[:, expert].nonzero(as_tuple=True)
        hidden = F.silu(x[rows] @ w_gate[expert]) * (x[rows] @ w_value[expert])
        y = y.index_add(0, rows, shares[rows, expert, None] * (hidden @ w_down[expert]))
    return y, balance
    ### END SOLUTION

# %% check="moe"

# %% [markdown]
# Does it learn? The tiny transformer of section 5, its feed-forward layers replaced by eight experts, each 32 wide, with *your* function inside. $k = 1$, with and without the balance loss (added to the loss with a weight of 0.01).

# %%
shares: dict[str, list[Tensor]] = {}
with your("moe"):
    for name, weight in (("no balance loss", 0.0), ("balance loss 0.01", 0.01)):
        shares[name] = train_layers(partial(MixtureOfExperts, moe, 32, 8, 1), steps=80, batch=16, balance=weight).shares

# %% tags=["nbval-ignore-output", "because it shows shares measured on this machine"]
figures.expert_shares(shares)

# %% [markdown]
# The router plays favourites at once, and a small loss is enough to stop it. Is it worth having? We ran this for 150 steps, with three seeds each:

# %%
for name, (of_seeds, observed) in MEASURED.items():
    print(f"{name:32}", *(f"{loss:.3f}" for loss in of_seeds), f"  {observed}")

# %% [markdown]
# The first two rows are the scale for the others. With $k = 2$ a token uses 66,880 parameters, nearly as many as in the narrow dense model (65,856), and the model has 140,608 in all, nearly as many as the wide one (139,584). With every seed the mixture ends below the narrow model and above the wide one: for equal FLOPs it wins, for equal parameters it loses. That is the bargain. The balance loss halves the favourite's share. Whether it lowers the loss itself, three seeds of so small a model cannot say. A capacity of 1.25 without balance drops a third of all choices, and the loss rises with every seed.

# %% [markdown]
# ### Exercise 13 · Count a mixture  (2 points · 6 min · ●)
#
# Return `[parameters, parameters that a token uses, FLOPs for a token]` of one layer, forward: `experts` gated experts of the given `width`, of which each token uses `k`; `shared` more experts of that width, which every token uses and no router scores; and the router. A weight that a token uses costs 2 FLOPs.

# %% exercise="moe_counts"
def moe_counts(d_model: int, width: int, experts: int, k: int, shared: int = 0) -> list[int]:
    """Parameters, parameters a token uses, FLOPs a token: [40, 22, 44] for (2, 3, 2, 1)."""
    ### BEGIN SOLUTION
    expert, router = 3 * d_model * width, d_model * experts
    used = (k + shared) * expert + router
    return [(experts + shared) * expert + router, used, 2 * used]
    ### END SOLUTION

# %% check="moe_counts"

# %% [markdown]
# > **Spot the slip.** A colleague writes: "Mixtral 8×7B has eight experts of 7 billion, so 56 billion parameters. A token uses two of eight, 14 billion." Count the experts of its 32 layers ($d = 4096$, width 14,336). It has 46.7 billion parameters in all.

# %%
with your("moe_counts"):
    for name, layers, sizes in (("Mixtral 8×7B", 32, (4096, 14_336, 8, 2)), ("DeepSeek-V3", 58, (7168, 2048, 256, 8))):
        whole, used, flops = (layers * count for count in moe_counts(*sizes))
        print(f"{name:13} experts {whole / 1e9:6.1f} billion, {used / 1e9:5.1f} of them used by a token", end="")
        print(f", {flops / layers / 1e6:,.0f} million FLOPs a layer")

# %% [markdown]
# The eight are the feed-forward layers alone: attention, norms and tables are there once. So 45.1 of the 46.7 billion are experts, a token uses 11.3 of these 45.1, and with the rest that is 12.9 billion. (DeepSeek-V3's shared expert is extra.) The printed numbers include the routers; without them both models give a token the same FLOPs in each layer, 705 million: 2 wide experts of 8, or 8 narrow ones of 256. Narrow ones can be combined in far more ways.
#
# **In real models.** FLOPs are saved, memory is not: all experts must be stored, and they are why these models need many GPUs (notebook 18).
#
# | model | experts | used | shared | parameters, used |
# | --- | --- | --- | --- | --- |
# | Mixtral 8×7B (2023) | 8 | 2 | 0 | 46.7 billion, 12.9 |
# | DeepSeek-V3 (2024) | 256 | 8 | 1 | 671 billion, 37 |
# | Llama 4 Scout (2025) | 16 | 1 | 1 | 109 billion, 17 |
# | Qwen3-235B-A22B (2025) | 128 | 8 | 0 | 235 billion, 22 |
# | gpt-oss-120b (2025) | 128 | 4 | 0 | 117 billion, 5.1 |
#
# Routers differ: DeepSeek-V3 scores with a sigmoid, and keeps the balance mainly by a bias per expert, which is raised while the expert gets too few tokens.
#
# #### More questions
#
# 1. GPT-2's weights are run with the exact GELU in place of the tanh. How far off can one hidden number be? Is that why the logits differ in the third digit?
# 2. At which width does a gated layer have as many parameters as a plain one with $r = 6$?
# 3. A gated layer has two more elementwise kernels than a plain one, if nothing is fused. Which, and are they worth worrying about in training? In decoding one token at a time?
# 4. A layer has 64 experts and $k = 2$. You decode 8 texts at once, one token each. How many experts' weights are read at most? What does that say about the speed of a mixture of experts with few and with many texts?
#
# <details><summary>Answers</summary>
#
# 1. By at most 0.00047. That is less than half the spacing of fp16 at 1 (0.00049), but it is repeated in every layer: compare in fp32 before you blame something else.
# 2. At $4d$: two thirds of 6.
# 3. The activation acts on half of the hidden numbers, the product is new, and so is cutting the projection in two if it copies. In training, memory traffic of hidden numbers counts: fuse. When decoding a token, the *weights* are read for one token, which is thousands of times more: there you can forget the kernels.
# 4. At most 16. With one text it reads 2 of 64, and is as fast as a small model. With a hundred texts it reads nearly all of them, for as many FLOPs as a small model has: memory decides, and each expert has only about three tokens.
#
# </details>
#
# ### Further reading
#
# - Vaswani et al., 2017, *Attention is all you need*, §3.3.
# - Hendrycks and Gimpel, 2016, *Gaussian error linear units*; Ramachandran et al., 2017, *Searching for activation functions*.
# - Shazeer, 2020, *GLU variants improve Transformer*: short, and worth it to the last sentence.
# - Narang et al., 2021, *Do Transformer modifications transfer across implementations and applications?*
# - Fedus et al., 2022, *Switch Transformers*; Jiang et al., 2024, *Mixtral of experts*; DeepSeek-AI, 2024, *DeepSeek-V3*.
# - Kaplan et al., 2020, *Scaling laws for neural language models*, Figure 5.
# - In this package: `lmcourse.nn.feed_forward`, a hundred lines.

# %% tags=["hide-input"]
x = torch.linspace(-8, 8, 1_600_001, dtype=torch.float64, requires_grad=True)
dips = {name: f(x).detach() for name, f in (("gelu", F.gelu), ("silu", F.silu))}
assert [f"{y.min():.3f} {x[y.argmin()]:.3f}" for y in dips.values()] == ["-0.170 -0.752", "-0.278 -1.278"]
slopes = [torch.autograd.grad(f(x).sum(), x)[0].min().item() for f in (F.gelu, F.silu)]
assert [f"{slope:.3f}" for slope in slopes] == ["-0.129", "-0.100"]
assert f"{math.erf(-3 / math.sqrt(2)):.4f}" == "-0.9973"
h100 = find_accelerator("h100-sxm")
assert (h100.peak("fp32"), h100.bandwidth, round(h100.peak("bf16") / 1e12)) == (67e12, 3.35e12, 989)
assert h100.ridge("fp32") == 20 and h100.ridge("fp32") * 4 == 80
assert 6 * 2 + 2 * 3 == 18 and 43 * 256 == 11_008 and 8 * 4096 / 3 == 10_922 + 2 / 3
decoders = {entry.name: entry.decoder for entry in all_models()}
forwards = {name: decoder.layers[0].feed_forward for name, decoder in decoders.items()}
ratio = {name: forwards[name].width / decoder.d_model for name, decoder in decoders.items()}
assert ratio["gemma-2-27b"] == 36_864 / 4_608 == 8 and ratio["gemma-2-9b"] == 14_336 / 3_584 == 4
assert [ratio[name] for name in ("t5-11b", "t5-v1.1-xxl", "palm-540b")] == [64, 2.5, 4]
assert {ratio[name] for name in ("mistral-7b", "llama-2-70b", "llama-3-8b", "llama-3-70b")} == {3.5}
assert ratio["llama-3.1-405b"] == 3.25 and f"{ratio['yi-34b']:.2f} {ratio['qwen2.5-32b']:.1f}" == "2.86 5.4"
assert all(8 / 3 < ratio[name] <= 2.7 for name in ("llama-7b", "deepseek-67b", "yi-6b", "qwen2.5-14b", "olmo-7b"))
assert {ratio[name] for name in ("transformer-base", "gpt-3", "nemotron-4-340b")} == {4}
plain = {name: forwards[name].activation for name in ("gpt-3", "gpt-j-6b", "bert-base", "falcon-2-11b", "nemotron-4-340b")}
assert list(plain.values()) == ["gelu_tanh", "gelu_tanh", "gelu", "gelu", "relu2"]
assert not any(forwards[name].gated for name in plain)
thin = [[other - eight for other, eight in zip(figures.THIN_HEADS[d_head], figures.THIN_HEADS[8], strict=True)] for d_head in (4, 32)]
assert [f"{min(above):.2f} {max(above):.2f}" for above in thin] == ["0.15 0.20", "0.21 0.27"]
shapes = [entry.decoder for entry in figures.published()]
attentions = [(config.layers[0].attention, config.d_model) for config in shapes]
head_widths = [attention.head_width(d) for attention, d in attentions]
assert len(shapes) == 109 and (head_widths.count(128), head_widths.count(64)) == (59, 32)
assert sum(attention.heads * attention.head_width(d) == d for attention, d in attentions) == 93
aspects = {entry.name: entry.decoder.d_model / len(entry.decoder.layers) for entry in figures.published()}
assert sum(60 <= aspect <= 160 for aspect in aspects.values()) == 80
assert min(aspects, key=aspects.get) == "smollm2-135m" and round(aspects["smollm2-135m"]) == 19
widest = {name for name, aspect in aspects.items() if round(aspect) == 205}
assert widest == {"bloom-176b", "gopher-280b", "command-r"} and round(max(aspects.values())) == 205
gemma = find_model("gemma-3-1b").decoder
assert (len(gemma.layers), gemma.d_model, round(aspects["gemma-3-1b"])) == (26, 1152, 44)
p = torch.tensor([2.0, 1, 0, -1]).softmax(dim=0)
assert [f"{share:.3f}" for share in p] == ["0.644", "0.237", "0.087", "0.032"]
assert f"{p[:2].sum():.3f} {p[0] / p[:2].sum():.3f} {p[1] / p[:2].sum():.3f}" == "0.881 0.731 0.269"
rest = 4 * 64 * 64 * 2 + 128 * 64 + 5 * 64  # attention, table, norms
dense = [rest + 2 * 3 * 64 * width for width in (64, 256)]
experts = [rest + 2 * (count * 3 * 64 * 32 + 64 * 8) for count in (2, 8)]
assert (*dense, *experts) == (65_856, 139_584, 66_880, 140_608)
sizes = {ratio: 2 * (4 * d * d + 2 * d * width) for ratio, (d, width, _) in figures.BASIN.items()}
assert all(abs(size - 98_304) < 0.002 * 98_304 for size in sizes.values()) and sizes[4.0] == 98_304
means = {ratio: statistics.mean(ends) for ratio, (_, _, ends) in figures.BASIN.items()}
assert max(means[ratio] for ratio in means if ratio <= 4) < min(means.values()) + 0.06 and means[22.0] > min(means.values()) + 0.25
above = [high - low for high, low in zip(figures.BASIN[8.67][2], figures.BASIN[4.0][2], strict=True)]
assert f"{min(above):.2f} {max(above):.2f}" == "0.08 0.14"
mixture = MEASURED["8 experts, k = 2, balance 0.01"][0]
assert all(a < b for a, b in zip(mixture, MEASURED["dense, 64 wide"][0], strict=True))
assert max(MEASURED["dense, 256 wide"][0]) < min(mixture)
one_expert = 3 * 4096 * 14_336
assert f"{32 * 8 * one_expert / 1e9:.1f} {32 * 2 * one_expert / 1e9:.1f}" == "45.1 11.3"
assert f"{46.7 - 45.1 + 11.3:.1f}" == "12.9" and 2 * 2 * one_expert == 2 * 8 * 3 * 7168 * 2048
