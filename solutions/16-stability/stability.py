# %% [markdown]
# # 16 · Stability
#
# **90 min · 9 exercises · 24 points**
#
# A run has cost a month and a million dollars. At step 41,000 the loss jumps, and an hour later it is NaN. You will make that happen here, in seconds, as often as you like, and then try
# every cure that papers recommend, side by side, on the same patient.
#
# **You will be able to**
#
# - tell a sick run from its gradient norms, before its loss does;
# - write z-loss, QK-norm, soft-capping, clipping and loss scaling, with their gradients, and say what each one bounds;
# - say which cure fits which disease, and which helps nothing.
#
# **You need** attention (notebook 08), norms (10) and the floating-point formats (01). No GPU.

# %%
import math
import random
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean, median

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from lmcourse.chapters.stability import figures
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.nn.qk_norm import QKNormConfig
from lmcourse.notebook import check, explore, predict, start
from lmcourse.training.precision import MixedPrecision
from lmcourse.training.step import NotFiniteError, training_step
from lmcourse.widgets import Log

start("16-stability")
torch.set_num_threads(1)  # models this small are fastest on one

# %% [markdown]
# ## 1 · Two ways to die
#
# The authors of OLMo 2 (OLMo Team, 2025) show two training runs. The loss of the first looks almost harmless, with a few bad spikes. The norm of its gradient is a row of needles that grow taller with time. In the second run, after many
# changes, the norm is low and flat. That second curve is what everything in this notebook is for.
#
# We need patients. Ours are transformers of two layers, $d = 64$, which read our little stories byte by byte. This is what we keep of a run:

# %%
stories = story_grammar()
source = random.Random(0)
text = torch.tensor(list("".join(stories.generate(source) for _ in range(300)).encode()))
SEEDS = (0, 1)
HOPELESS = 20 * math.log(128)  # twenty times the loss of guessing


@dataclass
class Run:
    """What was seen: the loss and the gradient norm of each step, the largest score, log Z at the end."""

    losses: list[float]
    norms: list[float]
    score: float
    log_z: float
    model: Transformer

    @property
    def end(self) -> float:
        """The mean of the last ten losses; NaN if there was one."""
        return fmean(self.losses[-10:])

    @property
    def exploded(self) -> bool:
        """Whether the loss became hopeless, or no number at all."""
        return not self.losses[-1] < HOPELESS


# %% [markdown]
# Two of them are found inside the model, where a hook can look on: the attention scores, and $\log Z$ of the output (what that is, section 4 says).

# %%
def watch(model: Transformer) -> tuple[list[float], list[float]]:
    """Two lists that grow at every step: the largest attention score (before a cap), and the mean |log Z|."""
    scores, log_zs = [], []

    def see_scores(_: nn.Module, __: object, placed: tuple[Tensor, Tensor]) -> None:
        q, k = (part.detach() for part in placed)
        scores.append((q @ k.mT).abs().max().item() / q.shape[-1] ** 0.5)

    def see_logits(_: nn.Module, __: object, logits: Tensor) -> None:
        log_zs.append(logits.detach().logsumexp(-1).abs().mean().item())

    for block in model.blocks:
        block.attention.layer.qk_transform.register_forward_hook(see_scores)
    model.head.register_forward_hook(see_logits)
    return scores, log_zs


# %% [markdown]
# Everything that will be done to a patient is a parameter of one function, `train`. Its loop is that of any training: set the rate, take a batch, update.

# %%
def make_optimiser(model: nn.Module, kind: str, rate: float, decay: float) -> torch.optim.Optimizer:
    if kind == "sgd":
        return torch.optim.SGD(model.parameters(), rate, momentum=0.9)
    return torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=decay, fused=True)


def train(
    seed: int,
    kind: str,
    rate: float,
    *,
    steps: int = 100,
    warmup: int = 0,
    clip: float | None = None,
    z_factor: float = 0.0,
    decay: float = 0.0,
    **architecture: object,
) -> Run:
    """Train a tiny LLaMA, with a treatment or without, until the steps are over or it explodes."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, 64, 2, 128, vocab_size=128, context=32, **architecture))
    initialize(model)
    scores, log_zs = watch(model)
    optimiser, precision = make_optimiser(model, kind, rate, decay), MixedPrecision("fp32", torch.device("cpu"))
    losses, norms = [], []
    with Loader(text, batch=8, seq_len=32, seed=seed, prefetch=0) as batches:
        for step in range(steps):
            for group in optimiser.param_groups:
                group["lr"] = rate * min(1, (step + 1) / (warmup + 1))
            try:
                result = training_step(model, [next(batches)], optimiser, precision, grad_clip=clip, z_loss=z_factor)
            except NotFiniteError:
                losses.append(math.nan)
                break
            losses.append(result.loss)
            norms.append(result.gradient_norm)
            if result.loss > HOPELESS:
                break
    return Run(losses, norms, max(scores), log_zs[-1], model)


# %% [markdown]
# `training_step` is the trainer's own step: it clips if it is told to, adds the z-loss, and refuses to update weights with a loss that is not finite. We catch that refusal and call it an explosion, as we do a loss twenty times as high as that of guessing.
#
# How good is good? Two numbers that anybody can count in the text: the entropy of single bytes, and that of a byte when the one before it is known.

# %%
pairs = torch.bincount(text[:-1] * 128 + text[1:], minlength=128 * 128).reshape(128, 128).double()
pairs /= pairs.sum()
letters = -torch.special.xlogy(pairs.sum(0), pairs.sum(0)).sum().item()
after_one = -torch.special.xlogy(pairs, pairs).sum().item() - letters
print(f"guessing: {math.log(128):.2f} nats   single bytes: {letters:.2f}   after one byte: {after_one:.2f}")

# %% [markdown]
# **Patient A** is trained with AdamW at a rate of 0.03, ten times what would be good for it. **Patient B** is trained with SGD and momentum at a rate of 0.5. Each has two seeds, which decide about its first weights and the order of the text.

# %%
A = {"kind": "adamw", "rate": 0.03, "steps": 150}
B = {"kind": "sgd", "rate": 0.5, "steps": 80}
sick_a = [train(seed, **A) for seed in SEEDS]
sick_b = [train(seed, **B) for seed in SEEDS]
for name, runs in (("A", sick_a), ("B", sick_b)):
    print(f"{name}: {sum(run.exploded for run in runs)} of {len(runs)} exploded")
print("A, worse than a table of byte pairs:", all(run.end > after_one for run in sick_a))
print("A, attention scores above 100:", all(run.score > 100 for run in sick_a))

# %% [markdown]
# B dies loudly: after a few dozen steps its loss is in the hundreds, and it would be NaN a few steps later. A dies quietly. Its loss falls, as losses do, and stops far above what a *table of byte pairs* would reach. A table like that needs no attention, and A has
# none any more: its scores are in the hundreds, its softmaxes look at one token only, and no gradient can tell them to look elsewhere. Zhai et al. (2023) call this *entropy collapse*, and it is the more dangerous of the two, because nothing rings.
#
# Before we treat them, commit yourself.

# %%
predict("who_saves_whom")

# %% [markdown]
# ### A bell that rings
#
# Look at the loss alone and you learn of a spike when it is over. The norm of the gradient tells earlier. But what is a large norm? Norms may fall by a factor of ten during a run, so a fixed limit is wrong at one end or the other. Compare with what was usual *lately*.
#
# By hand: the last norms were 1, 1, 1, 1, 1000. Now comes a 20. Their mean is 201, so 20 looks small; their **median** is 1, and 20 is twenty times that. A spike must not hide the next one.
#
# ### Exercise 1 · Find the spikes  (3 points · 8 min · ●●)
#
# Return the indices of all spikes in `norms`. A norm is a spike if it is *more* than `factor` times the median of the last `window` finite norms before it (spikes among them count too), and if there were at least `fewest` of those. (`fewest` is never larger than `window`.) Whatever is infinite or NaN
# is a spike at any time, and does not count as a norm afterwards. Indices count from 0 and come in ascending order.


# %% exercise="spike_detector"
def spike_detector(norms: list[float], factor: float, window: int, fewest: int) -> list[int]:
    """The steps whose gradient is far larger than usual: [4] for [1, 1, 1, 1, 8, 1] with factor 5 and fewest 3."""
    ### BEGIN SOLUTION
    spikes, usual = [], []
    for step, norm in enumerate(norms):
        if not math.isfinite(norm):
            spikes.append(step)
            continue
        if len(usual) >= fewest and norm > factor * median(usual[-window:]):
            spikes.append(step)
        usual.append(norm)
    return spikes
    ### END SOLUTION


# %% check="spike_detector"
check(spike_detector)
### BEGIN HIDDEN TESTS
check(spike_detector, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Below is a run in the manner of OLMo's. Which factor finds every spike and no noise? And how many steps would be clipped at a norm of 0.5?

# %%
explore(figures.gradient_spikes, factor=(1.5, 20.0, 0.5), clip=Log(0.1, 10.0))

# %% [markdown]
# ## 2 · Clip the gradient
#
# Why does B explode? SGD's step is as long as the gradient. One step too far leads to a place where the loss is steeper, the next gradient is longer, and so is the next step. It is a chain reaction, and the oldest cure cuts it (Pascanu et al., 2013): if the gradient is longer than $c$, make it $c$ long, and keep its direction.
#
# $$g \leftarrow g \cdot \min\!\Big(1, \frac{c}{\lVert g \rVert}\Big), \qquad \lVert g \rVert = \sqrt{\textstyle\sum_{\text{all weights}} g_i^2}$$
#
# The norm is that of *all* gradients of the model, laid end to end. By hand: $(3, 4)$ and $(12)$ have norms 5 and 12, and together $\sqrt{9 + 16 + 144} = 13$. Clipped to 1, they become $(3/13, 4/13)$ and $(12/13)$.
#
# ### Exercise 2 · Clip  (3 points · 7 min · ●●)
#
# Return the clipped gradients and the norm *before* clipping. Leave the inputs as they are. If the norm is infinite or NaN, raise `ValueError`: there is no direction to keep. Gradients of 300 in fp16 are among the cases, and keep their dtype; so are empty tensors. (By hand: not with `torch.nn.utils`.)


# %% exercise="clip_by_global_norm"
def clip_by_global_norm(gradients: list[Tensor], max_norm: float) -> tuple[list[Tensor], float]:
    """Gradients whose norm, all together, is at most max_norm; and the norm they had."""
    ### BEGIN SOLUTION
    norm = math.sqrt(sum(gradient.double().square().sum().item() for gradient in gradients))
    if not math.isfinite(norm):
        raise ValueError(f"the norm of the gradient is {norm}")
    factor = max_norm / max(norm, max_norm)  # which bears a norm of 0
    return [factor * gradient for gradient in gradients], norm
    ### END SOLUTION


# %% check="clip_by_global_norm"
check(clip_by_global_norm)
### BEGIN HIDDEN TESTS
check(clip_by_global_norm, hidden=True)
### END HIDDEN TESTS

# %%
predict("halved_gradients")

# %%
clipped_b = [train(seed, **B, clip=0.3) for seed in SEEDS]
print(f"B, clipped to 0.3: {sum(run.exploded for run in clipped_b)} of {len(clipped_b)} exploded")

# %% [markdown]
# Saved. Whether the same helps A, whose optimiser does not care how long a gradient is, we shall see in section 8.
#
# **In real models.** GPT-3, LLaMA and OLMo 2 clip to a norm of 1.0 (Brown et al., 2020; Touvron et al., 2023; OLMo Team, 2025). Adam's step hardly depends on the size of its gradients, so in these models clipping is a guard against single bad batches: one
# giant gradient would otherwise sit in Adam's averages for many steps.

# %% [markdown]
# ## 3 · The problem child
#
# Most of a transformer is sums and products of moderate numbers. Where can one of them run away? Look for two operations: an exponential, and a division.

# %%
figures.overflow_risks()

# %% [markdown]
# Divisions are easy to guard, and the model's norms, which divide, even limit what follows. The two **softmaxes** head the list. Their inputs come from products of learned weights, and nothing limits those.

# %%
predict("smallest_z")

# %% [markdown]
# So no softmax of a library divides by zero. Only the naive form can: $e^{-200}$ is 0 in fp32, and a row of such logits gives $0/0$. Every library subtracts the largest
# logit first (notebook 01), so that $Z \ge 1$. The arithmetic is safe. It is *learning* that is not.

# %%
row = torch.tensor([-200.0, -201.0])
naive = row.exp() / row.exp().sum()
shifted = (row - row.max()).exp()
print("naive:", naive.tolist(), "  Z after the subtraction:", round(shifted.sum().item(), 4))

# %% [markdown]
# See it for yourself. Let the logits grow, and watch the orange bars. They say how much a weight still answers to its logit: $p\,(1-p)$, times the slope of the cap if there is one (section 7). Which of scale, precision and cap makes them vanish, and does anything bring them back?

# %%
explore(
    figures.softmax_of_growing_logits,
    scale=Log(0.5, 200.0),
    precision=["fp32", "bf16", "fp16"],
    cap=["none", "50", "30", "10"],
)

# %% [markdown]
# With logits 20 times as large, one weight is 1 and all slopes are 0: in fp32 just as in fp16. More bits do not help. A cap of 10 spreads the weights again, and most slopes stay small, because the cap itself is flat out there. What helps is to keep logits small in the first place. There is one trick for the output softmax and there are two for attention, and the next four
# sections take them in turn.

# %% [markdown]
# ## 4 · z-loss, for the output
#
# The cross-entropy of a token is $-\log P = \log Z - x_\text{right}$, where $Z = \sum_j e^{x_j}$.

# %%
predict("ten_on_top")

# %% [markdown]
# So nothing holds the logits where they are. They drift, and $\log Z$ with them. Devlin et al. (2014) wanted $Z = 1$ for another reason: a translation system that knows $Z = 1$ need not compute it, which made decoding fast. Mesh TensorFlow (Shazeer et al., 2018) had the same penalty in its code, against drift, and PaLM (Chowdhery et al., 2022) made it known as a cure for
# instability: add a term that is 0 when $\log Z = 0$.
#
# $$L = -\log P + \alpha\,(\log Z)^2, \qquad \alpha = 10^{-4}$$
#
# By hand, for logits 5, 4, 3, of which the first is right: $Z = e^5 + e^4 + e^3 = 223.1$, $\log Z = 5.408$, $-\log P = 0.408$. With $\alpha = 0.1$ the z-loss adds $0.1 \cdot 5.408^2 = 2.924$. How does $L$ change with each logit? Nudge them, one at a time, and measure:
#
# | logit $x_j$ | probability $p_j$ | slope of $-\log P$ | slope of $0.1\,(\log Z)^2$ |
# | --- | --- | --- | --- |
# | 5 (right) | 0.665 | −0.335 | 0.719 |
# | 4 | 0.245 | 0.245 | 0.265 |
# | 3 | 0.090 | 0.090 | 0.097 |
#
# The third column is the probability again, less 1 for the right token. What is the fourth, divided by the second?
#
# ### Exercise 3 · z-loss and its gradient  (4 points · 10 min · ●●●)
#
# `logits` is `(n, v)`, `targets` is `(n,)`. Return the mean of $L$ over the $n$ tokens, and its gradient with respect to the logits, both in the dtype of the logits. Find the gradient by hand: autograd is not allowed, the functions of `torch` and `nn.functional` are. It must bear logits of 200.


# %% exercise="z_loss"
def z_loss(logits: Float[Tensor, "n v"], targets: Int[Tensor, " n"], alpha: float) -> tuple[Tensor, Tensor]:
    """The mean of −log P + α (log Z)², and its gradient (n, v)."""
    ### BEGIN SOLUTION
    n = len(targets)
    log_z = logits.logsumexp(dim=1, keepdim=True)
    right = logits.gather(1, targets[:, None])
    loss = (log_z - right + alpha * log_z.square()).mean()
    gradient = (logits - log_z).exp() * (1 + 2 * alpha * log_z)
    gradient[torch.arange(n), targets] -= 1
    return loss, gradient / n
    ### END SOLUTION


# %% check="z_loss"
check(z_loss)
### BEGIN HIDDEN TESTS
check(z_loss, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The fourth column is $2\alpha \log Z = 1.08$ times the second: $\partial \log Z / \partial x_j = p_j$, and the chain rule does the rest.
#
# $$\frac{\partial L}{\partial x_j} = p_j - [j = \text{right}] + 2\alpha \log Z \cdot p_j$$
#
# > **Spot the slip.** The notes print a "loss" $L(x) = \log P_i - \alpha \log^2 Z$, label its first part the *standard softmax loss*, and say that training minimises it. Minimise that, and the right token becomes less likely and $Z$ larger with every step. It is an objective to *maximise*; the loss is its negative.
#
# ### Exercise 4 · One step  (1 point · 3 min · ●)
#
# Take the logits 5, 4, 3 with the first one right and $\alpha = 0.1$. Do one step of gradient descent of size 0.5 on the *correct* loss, on the logits themselves. What is $\log Z$ afterwards? (Three digits after the point will do.)

# %% exercise="log_z_after"
log_z_after = None  # a number in place of None
### BEGIN SOLUTION
_logits = torch.tensor([[5.0, 4.0, 3.0]])
_, _gradient = z_loss(_logits, torch.tensor([0]), 0.1)
log_z_after = (_logits - 0.5 * _gradient).logsumexp(dim=1).item()
### END SOLUTION

# %% check="log_z_after"
check(log_z_after=log_z_after)
### BEGIN HIDDEN TESTS
check(log_z_after=log_z_after, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# **In real models.** After PaLM, Baichuan 2 (Yang et al., 2023, a variant with the largest logit), DCLM (Li et al., 2024) and OLMo 2 (OLMo Team, 2025) use a z-loss. One could put it on the softmaxes of attention too; nobody does. `next_token_loss` in `lmcourse/models/loss.py` is ours.

# %% [markdown]
# ## 5 · QK-norm, for attention
#
# A score is $q \cdot k / \sqrt d$ with $q = W_q x$ and $k = W_k x$. If both matrices double, scores are four times as large, and a large rate makes matrices grow fast. That is what killed A.

# %%
predict("doubled_weights")

# %% [markdown]
# The cure was proposed for translation (Henry et al., 2020), with vectors of length 1. It became a cure for large models in vision (Dehghani et al., 2023, a vision transformer of 22 billion parameters), and came back to text by way of models for text and pictures such as Chameleon and Idefics: normalise queries and keys before they meet, each with an RMSNorm of its own (notebook 10: divide by the root of the mean square, with $\varepsilon$ under the root, then multiply by a learned scale).
#
# By hand: $q = (3, 4)$ has a mean square of 12.5 and a root mean square of 3.536, so $\hat q = (0.849, 1.131)$. The query $(6, 8)$ becomes the very same vector: only the direction is left.
#
# ### Exercise 5 · QK-norm  (3 points · 8 min · ●● · differentiable)
#
# Return the scores `(b, h, s, t)` in the dtype of `q`: RMSNorm on queries and keys, each with its scale, then the scaled product. Queries of 300 in fp16 are among the cases. Do the norm by hand: torch's `rms_norm`, `layer_norm` and `normalize`, and the modules made of them, are not allowed.


# %% exercise="qk_norm"
def qk_norm(
    q: Float[Tensor, "b h s d"],
    k: Float[Tensor, "b h t d"],
    gamma_q: Float[Tensor, " d"],
    gamma_k: Float[Tensor, " d"],
    eps: float = 1e-6,
) -> Float[Tensor, "b h s t"]:
    """Attention scores of normalised queries and keys."""

    ### BEGIN SOLUTION
    def normalised(x: Tensor, gamma: Tensor) -> Tensor:
        wide = x.float()
        return wide * (wide.square().mean(dim=-1, keepdim=True) + eps).rsqrt() * gamma

    scores = normalised(q, gamma_q) @ normalised(k, gamma_k).mT / q.shape[-1] ** 0.5
    return scores.to(q.dtype)
    ### END SOLUTION


# %% check="qk_norm"
check(qk_norm)
### BEGIN HIDDEN TESTS
check(qk_norm, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# $$\hat q = \gamma_q \odot \frac{q}{\sqrt{\tfrac1d\sum_i q_i^2 + \varepsilon}}, \qquad \hat k \text{ likewise}, \qquad \text{score} = \frac{\hat q \cdot \hat k}{\sqrt d}$$
#
# How large can a score get now? Before their scales, $\hat q$ and $\hat k$ both have length $\sqrt d$. Two such vectors have a product of at most $d$, when they point the same way; divided by $\sqrt d$ that leaves $\sqrt d$: 8 for a head of 64, and 11.3 for one of 128. With the same scale $\gamma$ everywhere it is $\sqrt d\,\gamma^2$.

# %%
explore(figures.score_growth, growth=Log(0.1, 100.0), d_head=[16, 64, 128], gamma=(0.5, 3.0, 0.25))

# %% [markdown]
# ### Exercise 6 · The largest score  (2 points · 6 min · ●●●)
#
# The scales differ from feature to feature. What is the largest score that *any* two vectors can reach? Take $\varepsilon$ as 0 and let nothing happen between norm and product. (With RoPE in between, features of $q$ and $k$ are mixed in pairs, and this bound is not the last word.)


# %% exercise="max_logit_bound"
def max_logit_bound(gamma_q: Float[Tensor, " d"], gamma_k: Float[Tensor, " d"]) -> float:
    """The largest |score| under QK-norm: 8.0 for 64 scales of 1."""
    ### BEGIN SOLUTION
    return math.sqrt(len(gamma_q)) * (gamma_q * gamma_k).abs().max().item()
    ### END SOLUTION


# %% check="max_logit_bound"
check(max_logit_bound)
### BEGIN HIDDEN TESTS
check(max_logit_bound, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### May it be left out afterwards?
#
# Training is over, the weights are good. A student in a lecture asks whether the norm is still needed when the model writes.

# %%
predict("norm_left_out")

# %%
normed_a = [train(seed, **A, qk_norm=QKNormConfig()) for seed in SEEDS]


def loss_on(model: Transformer, windows: Iterable[int]) -> float:
    """The loss on a few windows of the text, nats per byte."""
    rows = torch.stack([text[32 * at : 32 * at + 33] for at in windows])
    with torch.no_grad():
        return next_token_loss(model(rows[:, :-1]), rows[:, 1:]).item()


for run in normed_a:
    kept = loss_on(run.model, range(64))
    for block in run.model.blocks:
        block.attention.layer.qk_transform.norm_before_rotary = False  # queries and keys go past their norms
    left_out = loss_on(run.model, range(64))
    print("without its norms the model is worse by more than 0.1 nats:", left_out > kept + 0.1)

# %% [markdown]
# The norm is not a crutch for training that could be taken off. It is part of the function that the weights were fitted to, learned scales included.

# %% [markdown]
# ## 6 · Norms everywhere
#
# Most models have a norm before each branch of a block (notebook 10). Some have one after the branch as well, or instead. Now there are norms on queries and keys too. It is striking how often the answer to "it is unstable" has been another norm.
#
# ### Exercise 7 · Count the norms  (1 point · 4 min · ●)
#
# How many norms does *one block* have in these models? Norms on queries and on keys count as one each. You may look into `lmcourse.models.zoo`.

# %% exercise="norms_per_block"
norms_per_block = None  # {"gpt-2": ..., "llama-7b": ..., "gemma-2-9b": ..., "olmo-2-7b": ..., "gemma-3-4b": ...}
### BEGIN SOLUTION
norms_per_block = {"gpt-2": 2, "llama-7b": 2, "gemma-2-9b": 4, "olmo-2-7b": 4, "gemma-3-4b": 6}
### END SOLUTION

# %% check="norms_per_block"
check(norms_per_block=norms_per_block)
### BEGIN HIDDEN TESTS
check(norms_per_block=norms_per_block, hidden=True)
### END HIDDEN TESTS

# %%
figures.norm_positions()

# %% [markdown]
# Among others, DCLM (Li et al., 2024), OLMo 2, Qwen3 and Gemma 3 normalise queries and keys. Who counts all norms of a model must not forget the last one, before the head.

# %% [markdown]
# ## 7 · Soft-capping
#
# QK-norm takes the length of *every* query away, small ones too. A gentler way is to leave small scores alone and only bend the large ones. A tanh does that: near 0 it is a straight line of slope 1, and it never goes beyond ±1. Scaled so that it never goes beyond $\pm c$ and still has the slope 1 at 0, it is called a *soft cap*. With $c = 50$:
#
# | score | 0 | 10 | 50 | 100 | −100 |
# | --- | --- | --- | --- | --- | --- |
# | capped | 0 | 9.87 | 38.08 | 48.20 | −48.20 |

# %%
predict("through_the_cap")

# %%
explore(figures.soft_cap_curve, cap=[10.0, 30.0, 50.0], logit=(-150.0, 150.0, 5.0))

# %% [markdown]
# ### Exercise 8 · Soft cap and slope  (3 points · 6 min · ●●)
#
# Return the capped logits, and the slope at each of them without autograd. Raise `ValueError` for a cap of zero or less.


# %% exercise="soft_cap"
def soft_cap(logits: Tensor, cap: float) -> tuple[Tensor, Tensor]:
    """Logits squeezed into ±cap, and the derivative of each by the logit it came from."""
    ### BEGIN SOLUTION
    if cap <= 0:
        raise ValueError(f"a cap must be positive, not {cap}")
    squeezed = torch.tanh(logits / cap)
    return cap * squeezed, 1 - squeezed**2
    ### END SOLUTION


# %% check="soft_cap"
check(soft_cap)
### BEGIN HIDDEN TESTS
check(soft_cap, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# $$\text{capped} = c \cdot \tanh\!\Big(\frac{z}{c}\Big), \qquad \frac{\partial\,\text{capped}}{\partial z} = 1 - \tanh^2\!\Big(\frac{z}{c}\Big)$$
#
# A cap bounds the *value* of a score. The gradient through a capped score is small, and behind the cap the weights go on growing unseen. Keep that in mind for section 8.
#
# **In real models.** A group at NVIDIA (Rybakov et al., 2024) trained a model of 830 million parameters at rising rates until it diverged. In their comparison the baseline has a perplexity of 11.19; capping alone is worse than that, and QK-norm better, because it allows a higher rate. A norm *and* a cap together allowed a rate 1.5 times
# as high as the norm alone. To get a feeling for such differences: a perplexity of 11.00 instead of 11.19 is 1.7 percent less, or 0.017 nats.

# %%
for perplexity in (11.19, 11.00):
    print(f"perplexity {perplexity:.2f} = {math.log(perplexity):.3f} nats")

# %% [markdown]
# ## 8 · Side by side
#
# A high rate is not a disease but a wish: it learns faster, where it can be borne. So the question to a treatment is which
# rates it makes bearable. Here A is trained at three of them, untreated and with three treatments, and everything else
# unchanged. "Saved" is who beats the table of byte pairs: who does not has learned nothing that needs attention.

# %%
RATES = (0.003, 0.03, 0.1)
TREATMENTS = {
    "untreated": {},
    "z-loss": {"z_factor": 1e-2},
    "QK-norm": {"qk_norm": QKNormConfig()},
    "decay 1": {"decay": 1.0},
}
seen = {("untreated", 0.03): sick_a[0], ("QK-norm", 0.03): normed_a[0]}
swept = {
    name: {rate: seen.get((name, rate)) or train(0, **{**A, "rate": rate}, **treatment) for rate in RATES}
    for name, treatment in TREATMENTS.items()
}
figures.loss_against_rate(
    {name: {rate: run.end for rate, run in runs.items()} for name, runs in swept.items()}, after_one
)

# %% [markdown]
# Why does the z-loss do nothing for A? Here is the rest of the medicine cabinet at the rate of 0.03, with two vital signs
# beside the loss: the largest score during the run, and $\log Z$ at its end.

# %%
OTHERS = {"clipping": {"clip": 0.3}, "soft cap": {"soft_cap": 50.0}}
ward_a = {name: runs[0.03] for name, runs in swept.items()}
ward_a |= {name: train(0, **A, **treatment) for name, treatment in OTHERS.items()}
ward_a["rate ÷ 10"] = swept["untreated"][0.003]
figures.training_diagnostics(
    {
        "final loss (nats)": {name: [run.end] for name, run in ward_a.items()},
        "largest |score|": {name: [run.score] for name, run in ward_a.items()},
        "mean |log Z|": {name: [run.log_z] for name, run in ward_a.items()},
    },
    {"final loss (nats)": round(after_one, 2), "largest |score|": 200.0, "mean |log Z|": 3.0},
    "Patient A at a rate of 0.03",
)

# %% [markdown]
# Each trick does exactly what it promises, and only that:
#
# - **z-loss** brings $\log Z$ down, and $\log Z$ was not the disease. (Our factor is 0.01, a hundred times PaLM's, because these runs are short.)
# - **Clipping** shortens gradients, and Adam does not care about their length.
# - **The soft cap** bounds what the softmax sees. The raw scores, which the figure shows, are as large as ever, and most of them are so far behind the cap that no gradient comes back.
# - **QK-norm** bounds the scores, and the disease was in the scores.
# - **Decay** of 1, ten times the usual, keeps all matrices small, and scores with them. A **lower rate** is the best cure here; people reach for the others because a higher rate, where it can be borne, learns faster.
#
# These are single runs. With three other seeds the same treatments saved A at 0.03, and no others. (Practitioners also report that large
# models are more stable without biases, for no reason that anybody is sure of, and most models since PaLM have none. A
# tiny model is no evidence for or against it.)
#
# The exploding patient next. B learns slowly, and 80 steps are too few for the table of pairs: "saved" is who has learned
# more than the frequencies of single bytes, by half a nat.

# %%
ward_b = {"untreated": sick_b, "clipping": clipped_b}
for name in ("rate ÷ 10", "z-loss", "QK-norm"):
    patient = {**B, "rate": B["rate"] / 10} if name == "rate ÷ 10" else B
    ward_b[name] = [train(seed, **patient, **TREATMENTS.get(name, {})) for seed in SEEDS]


def verdict(runs: list[Run]) -> str:
    if all(run.exploded for run in runs):
        return "exploded"
    return "saved" if fmean(run.end for run in runs) < letters - 0.5 else "not saved"


verdicts_b = {name: verdict(runs) for name, runs in ward_b.items()}
figures.compare_runs(
    {name: [run.losses for run in runs] for name, runs in ward_b.items()}, verdicts_b, "Patient B: SGD, rate 0.5", highest=15.0
)

# %% [markdown]
# Here clipping is the medicine: the disease is the length of the step. QK-norm mostly keeps B from exploding, because a step that makes $W_q$ huge no longer makes scores huge; but what it learns is little more than how frequent each letter is. A tenth of the
# rate does not explode, and has learned little more after 80 steps. The z-loss does harm, if anything: to a chain reaction it adds the gradient of a square. When this was written, B exploded after 11 and 8 steps with it, and after 19 and 32 without.
#
# So there is no best trick. There is a diagnosis: *which number grows?*
#
# And at step 41,000 of the run that cost a million? Nobody starts again. PaLM's team (Chowdhery et al., 2022) went back to a checkpoint about 100 steps before each spike, left out the next 200 to 500 batches, and trained on; the spike did not return at that place. The same batches in another state of the model made none, so the texts alone were not to blame. If it returns all the same, the next things to try are a lower rate from that checkpoint on, and then a change of the model, such as the norms above.
#
# ### Norms and warm-up
#
# Where the norm stands decides how much warm-up a model needs. The first transformers had it *after* the addition ("post"), and everybody used warm-up. Xiong et al. (2020) showed why: at the start, gradients near the output of a post-norm model are large, and with the norm before each branch they are not. Does our patient A agree?

# %%
POST = {"block": {"placement": "post"}}
GRID = {
    "post-norm": POST,
    "post-norm, warm-up": {**POST, "warmup": 150},
    "before, after, q and k": {"block": {"placement": "double"}, "qk_norm": QKNormConfig()},
}
grid = {name: train(0, **A, **changes) for name, changes in GRID.items()}
grid = {"untreated (pre-norm)": ward_a["untreated"]} | grid
ends = {name: run.end for name, run in grid.items()}
figures.training_diagnostics(
    {"final loss (nats)": {name: [end] for name, end in ends.items()}},
    {"final loss (nats)": round(after_one, 2)},
    "Patient A, with norms elsewhere",
)

# %%
print("post-norm without warm-up is the sickest:", ends["post-norm"] == max(ends.values()))
print("with post-norm, warm-up gains more than half a nat:", ends["post-norm"] - ends["post-norm, warm-up"] > 0.5)

# %% [markdown]
# It does. Post-norm without warm-up is the sickest of all, sicker than pre-norm (the untreated A); with a warm-up, which is
# a lower rate for a while and here for the whole run, it is among the healthy. And norms can do the work of a warm-up: with
# one before *and* after each branch, and on queries and keys, the model bears a rate that it could not bear before. (Pre-norm
# with the same warm-up is no sure cure: of four seeds it saved three.)

# %% [markdown]
# ## 9 · Sixteen bits
#
# All of this was in fp32. In 16 bits two more things can go wrong, one for each format.
#
# **fp16 has no room below.** Gradients under about $3 \cdot 10^{-8}$ round to 0 (notebook 01). The cure: multiply the loss by a large scale $S$ before the backward pass, and divide the gradients by $S$, in fp32, before the update. Which $S$? Too small, and gradients vanish; too large, and they overflow. So let it find out by itself (Micikevicius et al., 2018):
#
# - an overflow anywhere: leave this update out, and halve $S$;
# - so many good steps in a row: double $S$.
#
# By hand, with $S = 1024$ and doubling after 2 good steps: good, good ($S = 2048$), overflow ($S = 1024$, no update), good, good ($S = 2048$).

# %%
explore(figures.loss_scale_history, start=Log(1.0, 2.0**30, 2), interval=(10, 300, 10))

# %% [markdown]
# ### Exercise 9 · A loss scaler  (4 points · 10 min · ●●●)
#
# Write a class with an attribute `scale` and a method `unscale`, which is called once per step with the fp16 gradients of the *scaled* loss. If all are finite it returns them in float32, divided by the scale they were made with; if not, it returns `None`: the update is left out. Either way it then
# adapts `scale` as above, and after doubling or an overflow it counts from 0. (Torch's own scaler, in `torch.amp`, is not allowed.)


# %% exercise="LossScaler"
class LossScaler:
    """A dynamic loss scale: halves on overflow, doubles after `interval` good steps in a row."""

    def __init__(self, scale: float = 65536.0, interval: int = 2000) -> None:
        self.scale = scale
        ### BEGIN SOLUTION
        self.interval, self.good = interval, 0
        ### END SOLUTION

    def unscale(self, gradients: list[Tensor]) -> list[Tensor] | None:
        """The gradients of the loss in float32, or None if one of them is infinite or NaN."""
        ### BEGIN SOLUTION
        if not all(gradient.isfinite().all() for gradient in gradients):
            self.scale, self.good = self.scale / 2, 0
            return None
        result = [gradient.float() / self.scale for gradient in gradients]
        self.good += 1
        if self.good == self.interval:
            self.scale, self.good = 2 * self.scale, 0
        return result
        ### END SOLUTION


# %% check="LossScaler"
check(LossScaler)
### BEGIN HIDDEN TESTS
check(LossScaler, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With bf16 you leave the scaler out. It has the exponent of fp32: $10^{-8}$ stays $10^{-8}$, and there is nothing to scale.

# %%
tiny = torch.tensor(1e-8)
print("1e-8 in fp16:", tiny.half().item(), "  in bf16:", f"{tiny.bfloat16().item():.1e}")

# %% [markdown]
# **bf16 has no room beside.** With 8 bits of significand, a weight hears an update only if it is more than half a gap, and gaps grow with the weight. So a weight that is stored in bf16 and grows goes *deaf*. Weight decay works against that: if every update pushes the same way by $\eta$, then $w \leftarrow w - \eta\lambda w + \eta$ comes to rest at $w = 1/\lambda$.

# %%
explore(figures.lost_updates, rate=Log(1e-5, 1e-1, 10), decay=[0.01, 0.1, 1.0])

# %% [markdown]
# With $\eta = 0.001$ and $\lambda = 0.1$, weights may grow to 10, and they are deaf from 0.5 on. So decay alone does not make bf16 weights safe: real runs keep a master copy in fp32 (notebook 14). But D'Angelo et al. (2024) find that in mixed precision with bf16 too, models without decay diverge where those with it do not.

# %% [markdown]
# ## What to keep
#
# | trick | formula | what it bounds | what it does not |
# | --- | --- | --- | --- |
# | clipping | $g \cdot \min(1, c/\lVert g\rVert)$ | SGD's step; what enters Adam's averages | Adam's step |
# | z-loss | $+\,\alpha \log^2 Z$, gradient $2\alpha \log Z \cdot p$ | drift of the output logits | attention |
# | QK-norm | RMSNorm on $q$, $k$ | scores, by $\sqrt d \max\lvert\gamma_q\gamma_k\rvert$ | output logits |
# | soft cap | $c \tanh(z/c)$, slope $1 - \tanh^2$ | what the softmax sees | growth behind the cap |
# | loss scaling | $S$ halves on overflow, doubles after good steps | fp16's underflow | needed in fp16 only |
# | warm-up, norms, decay, a lower rate | | the first steps; what reaches a branch; weights; everything | |
# | a bell | norm above 5 × the median of late | nothing, but you know | |

# %% [markdown]
# ### Slips
#
# Sentences that circulate, and what is the case.
#
# - "Gemma 2 uses QK-norm." Its report (Gemma Team, 2024) and its configuration have soft caps instead, on scores (50) and on logits (30). It is Gemma 3 (Gemma Team, 2025) that has the norms, in place of the caps.
# - "A softmax divides, so it might divide by zero." The naive form might; see section 3.
# - A code example wraps the forward pass in `autocast(dtype=torch.float16)` and comments "or e.g. torch.bfloat16", with the loss scaler left as it is. With bf16 there is nothing to scale.
# - "OLMo 2 probably caps its scores." Its report lists norms after the branches, QK-norm and z-loss, and no cap.

# %% [markdown]
# ## Check yourself
#
# 1. Your run diverges. Which three numbers do you plot first, and which trick belongs to each?
# 2. QK-norm with $\gamma = 1$ and a head of 64: scores are at most 8. How peaked can a softmax over 1000 tokens become at most? Is that enough?
# 3. Why does the z-loss pull hardest at the most probable token?
# 4. PyTorch's fused attention (`scaled_dot_product_attention`) knows no soft cap, and QK-norm needs nothing from it. Why?
# 5. Your loss scaler halves at every step for 30 steps. What is going on?
#
# <details><summary>Answers</summary>
#
# 1. The norm of the gradient (clipping, a lower rate), the largest attention score (QK-norm, cap), $\log Z$ (z-loss).
# 2. One score of 8 and 999 of −8: $1/(1 + 999\,e^{-16})$, which is 0.9999. It can still look at one token, if the others all point the opposite way. Against 999 scores of 0 it is $1/(1 + 999\,e^{-8})$, or 0.75. Learned scales raise the bound where that is needed.
# 3. Its gradient is $2\alpha\log Z \cdot p_j$: lowering the largest logit lowers $Z$ most.
# 4. The cap acts on each score, inside the kernel, where scores never leave the chip. The norm acts on $q$ and $k$ before the kernel sees them.
# 5. The gradients are infinite or NaN whatever the scale: an overflow in the forward pass, or a NaN. Halving is no cure; our trainer gives up after 20 such steps.
#
# </details>
#
# ## Further reading
#
# - Wortsman et al., 2023, *Small-scale proxies for large-scale transformer training instabilities*: this notebook, done properly.
# - Zhai et al., 2023, *Stabilizing transformer training by preventing attention entropy collapse*.
# - Dehghani et al., 2023, *Scaling vision transformers to 22 billion parameters*, on QK-norm.
# - OLMo Team, 2025, *2 OLMo 2 Furious*, section 3, on spikes and what was changed against them.
# - Rybakov et al., 2024, *Methods of improving LLM training stability*.
# - In this package: `lmcourse/training/spike_detector.py`, `lmcourse/nn/qk_norm.py` and `lmcourse/models/loss.py`, which are short.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert all(run.exploded for run in sick_b) and not any(run.exploded for run in sick_a + clipped_b)
assert all(run.end > after_one + 0.2 and run.score > 200 for run in sick_a)
saved_a = {name for name, run in ward_a.items() if run.end < after_one}
assert saved_a == {"rate ÷ 10", "QK-norm", "decay 1"}, {name: run.end for name, run in ward_a.items()}
assert {name for name, word in verdicts_b.items() if word == "saved"} == {"clipping"}
assert {name for name, word in verdicts_b.items() if word == "exploded"} == {"untreated", "z-loss"}
assert {name for name, end in ends.items() if end > after_one} == {"untreated (pre-norm)", "post-norm"}, ends
assert median([1, 1, 1, 1, 1000]) == 1 and round(fmean([1, 1, 1, 1, 1000])) == 201
z_by_hand = sum(math.exp(x) for x in (5, 4, 3))
assert [round(z_by_hand, 1), round(math.log(z_by_hand), 3)] == [223.1, 5.408]
assert [round(math.log(z_by_hand) - 5, 3), round(0.1 * math.log(z_by_hand) ** 2, 3)] == [0.408, 2.924]
logits_by_hand = torch.tensor([5.0, 4.0, 3.0], dtype=torch.float64)
p_by_hand = logits_by_hand.softmax(0).tolist()
assert [round(p, 3) for p in p_by_hand] == [0.665, 0.245, 0.09] and round(p_by_hand[0] - 1, 3) == -0.335
assert [round(0.2 * math.log(z_by_hand) * p, 3) for p in p_by_hand] == [0.719, 0.265, 0.097]
assert round(0.2 * math.log(z_by_hand), 2) == 1.08 and round(50 * math.tanh(1), 2) == 38.08
assert round(math.sqrt(12.5), 3) == 3.536 and [round(x / math.sqrt(12.5), 3) for x in (3, 4)] == [0.849, 1.131]
assert [round(50 * math.tanh(x / 50), 2) for x in (10, 100)] == [9.87, 48.2] and round(1 - math.tanh(2) ** 2, 2) == 0.07
assert (
    round(math.sqrt(128), 1) == 11.3
    and round(math.log(11.19 / 11), 3) == 0.017
    and round(100 * (1 - 11 / 11.19), 1) == 1.7
)
assert round(1 / (1 + 999 * math.exp(-16)), 4) == 0.9999 and round(1 / (1 + 999 * math.exp(-8)), 2) == 0.75
assert torch.tensor(-200.0).exp() == 0 and torch.tensor(2.9e-8).half() == 0 and torch.tensor(3.1e-8).half() > 0
assert torch.tensor(0.5).bfloat16() + torch.tensor(0.001).bfloat16() == 0.5
assert torch.tensor(0.25).bfloat16() + torch.tensor(0.001).bfloat16() > 0.25
