# %% [markdown]
# # 04 · Optimization
#
# **160 min · 13 exercises · 35 points**
#
# After notebook 03 you know which way is down, for every parameter at once. You do not know how far. Every method of this notebook, from 1847 to
# the optimizer that trains today's language models, is one more answer to the same question: *how far do you step?*
#
# **You will be able to**
#
# - find the largest rate that a problem allows, and say what happens at 0.99 and at 1.01 times that rate;
# - derive and write momentum, AdaGrad, Adam and AdamW as PyTorch optimizers, equal to PyTorch's own;
# - measure how large a batch is worth its price;
# - test a theorem on data, and see where it stops being true;
# - say what warm-up, decay and a schedule do to a run, from experiments that you can repeat.
#
# **You need** gradients (notebook 03). Eigenvalues help; everything else is explained. No GPU.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run
# it again for the next one.

# %%
import math
import random
from collections.abc import Iterable
from functools import partial
from itertools import pairwise

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.func import grad_and_value, hessian, vmap
from torch.optim import Optimizer

from lmcourse.chapters.optimization import figures
from lmcourse.chapters.optimization.figures.bounds import measured_and_bound
from lmcourse.chapters.optimization.figures.paths import METHODS
from lmcourse.chapters.optimization.figures.schedules import SHAPES
from lmcourse.data.grammar import story_grammar
from lmcourse.data.loader import Loader
from lmcourse.models.initialize import initialize
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.styles import llama_like
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.training.schedules import Cosine, Schedule, WarmupStableDecay
from lmcourse.widgets import Log

start("04-optimization")
torch.set_num_threads(1)  # everything here is small, and fastest on one

# %% [markdown]
# ## 1 · One bowl, one knob
#
# The smallest problem with all the trouble in it is a bowl:
#
# $$f(x) = \tfrac12\,x^\top H x - b^\top x, \qquad x_{k+1} = x_k - \gamma\,\nabla f(x_k)$$
#
# with $x$ of shape $(d)$ and a symmetric matrix $H$ of shape $(d, d)$. The rate $\gamma$ is the only knob. The rule is
# Cauchy's, from 1847. By hand, in one dimension and with $b = 0$: the slope of $\tfrac12\lambda x^2$ is $\lambda x$, so a step is
#
# $$x \;\leftarrow\; x - \gamma\lambda x = (1 - \gamma\lambda)\,x.$$
#
# That is all: each step multiplies by the same number. In several dimensions this happens along each eigenvector of $H$, with its
# own curvature $\lambda$; the largest is called $L$, the smallest $\mu$. One rate has to serve them all.

# %%
predict("hair_above")

# %% [markdown]
# Count: curvatures 1 and 10, a start of 1 in both directions, and steps until both are below $10^{-6}$.

# %%
for scale in (0.5, 1.0, 1.8, 1.9, 2.0, 2.01):
    x, steps = [1.0, 1.0], 0
    while max(map(abs, x)) > 1e-6 and steps < 1000:
        x, steps = [(1 - scale / 10 * curvature) * each for each, curvature in zip(x, (1, 10), strict=True)], steps + 1
    print(f"γL = {scale:4}  {steps:5} steps, then at {x[0]:8.1e}, {x[1]:8.1e}")

# %% [markdown]
# Below the edge a larger rate is better, up to a point: at 1.9 it is the *steep* direction that needs most steps. At 2 it swings for
# ever. At 2.01 it explodes, slowly, and that is the treacherous thing: after a hundred steps you would hardly notice.
#
# ### Exercise 1 · Descend  (2 points · 5 min · ●)
#
# Return the whole path: the start, and the point after each step, in the dtype of the start. Work out the gradient of the bowl
# yourself, without autograd. The start must not change.

# %% exercise="descend"
def descend(
    H: Float[Tensor, "d d"], b: Float[Tensor, "d"], start: Float[Tensor, "d"], rate: float, steps: int
) -> Float[Tensor, "steps+1 d"]:
    """The path of gradient descent in the bowl ½xᵀHx − bᵀx."""
    ### BEGIN SOLUTION
    path = [start]
    for _ in range(steps):
        path.append(path[-1] - rate * (H @ path[-1] - b))
    return torch.stack(path)
    ### END SOLUTION


# %% check="descend"
check(descend)
### BEGIN HIDDEN TESTS
check(descend, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The gradient is $Hx - b$, and it is zero at the bottom, where $Hx = b$. Play with the map: find the edge of gradient descent for a
# valley of 10 and for one of 100.

# %%
explore(figures.descent_path, rate=Log(0.005, 0.5), kappa=[10.0, 100.0])

# %% [markdown]
# ### Where do you meet bowls?
#
# Linear regression is one. For data $X$ of shape $(n, d)$ and targets $y$ of shape $(n)$,
#
# $$f(w) = \frac1{2n}\,\lVert Xw - y\rVert^2, \qquad \nabla f(w) = \frac1n X^\top(Xw - y).$$
#
# > **Spot the slip.** A colleague leaves out the $1/n$: "the minimum is the same, so it does not matter". What does it do to
# > the rate?
#
# ### Exercise 2 · The largest curvature  (2 points · 5 min · ●●)
#
# Return $L$, the largest curvature of the loss of linear regression as defined above, with the $1/n$.

# %% exercise="smoothness"
def smoothness(X: Float[Tensor, "n d"]) -> float:
    """The largest curvature L of ‖Xw − y‖²/2n."""
    ### BEGIN SOLUTION
    return torch.linalg.eigvalsh(X.T @ X / len(X)).max().item()
    ### END SOLUTION


# %% check="smoothness"
check(smoothness)
### BEGIN HIDDEN TESTS
check(smoothness, hidden=True)
### END HIDDEN TESTS

# %%
torch.manual_seed(0)
X, y = torch.randn(50, 3, dtype=torch.float64), torch.randn(50, dtype=torch.float64)
with your("smoothness"):
    for name, n in (("with 1/n", 50), ("without", 1)):
        w, rate = torch.zeros(3, dtype=torch.float64), 1 / float(smoothness(X))
        for _ in range(20):
            w = w - rate * X.T @ (X @ w - y) / n
        curvature = float(smoothness(X)) * 50 / n
        print(f"{name:8} L is {curvature:6.2f}; after 20 steps of {rate:.2f} the weights have length {w.norm():.2g}")

# %% [markdown]
# Without the $1/n$ the curvature is $n$ times as large, so the rate that was safe explodes. Sum or mean is the question of
# notebook 03 again, and the reason why a rate from a paper may be off by the size of a batch.

# %% [markdown]
# ## 2 · Shapes one can trust
#
# In a bowl there is one bottom, and down leads there. Which functions are as friendly?
#
# A set is **convex** if it holds, with any two points, the whole segment between them: $\theta x + (1 - \theta) y$ for
# $0 \le \theta \le 1$. A *hyperplane* $\{a \cdot x = b\}$ is, a *half-space* $\{a \cdot x \le b\}$ too, and a *ball*, and what is left when you intersect
# several half-spaces, a *polyhedron*. Draw two points at random from a set and look at the middle:

# %%
sets = {
    "half-space": lambda x: x[..., 0] + 2 * x[..., 1] <= 1,
    "ball": lambda x: x.square().sum(-1) <= 4,
    "polyhedron": lambda x: (x.abs().amax(-1) <= 2) & (x.sum(-1) <= 1),
    "ring": lambda x: (x.square().sum(-1) <= 4) & (x.square().sum(-1) >= 1),
}
torch.manual_seed(0)
points = 6 * torch.rand(40_000, 2) - 3
for name, inside in sets.items():
    members = points[inside(points)]
    pairs = members[: len(members) // 2 * 2].reshape(-1, 2, 2)
    outside = (~inside(pairs.mean(dim=1))).sum().item()
    print(f"{name:11} {outside:5,} of {len(pairs):6,} middles of two members are outside")

# %% [markdown]
# A *function* is **convex** if its chords lie above it: $f(\theta x + (1 - \theta) y) \le \theta f(x) + (1 - \theta) f(y)$. Among them are $e^{ax}$, every
# norm, $\lVert Ax - b\rVert^2$, and the logistic loss $\log(1 + e^{-y\,w \cdot x})$. So between two places where $f \le c$ there is no hill: the places with $f \le c$ form a convex *set*,
# and there are no two separate valleys. For smooth functions there is a second test: the matrix of second derivatives has no negative
# eigenvalue anywhere. A network's loss fails both:

# %%
torch.manual_seed(0)
data, labels = torch.randn(30, 3), torch.randn(30).sign()


def logistic_loss(w: Tensor) -> Tensor:
    """The mean of log(1 + e^(−y w·x)); w (3)."""
    return F.softplus(-labels * (data @ w)).mean()


def network_loss(w: Tensor) -> Tensor:
    """The same for a network with three hidden units; w (12)."""
    return F.softplus(-labels * ((data @ w[:9].reshape(3, 3)).tanh() @ w[9:])).mean()


for name, loss, size in (("logistic", logistic_loss, 3), ("network", network_loss, 12)):
    places = 2 * torch.randn(1000, size)
    heights = vmap(loss)(places)
    level = heights.quantile(0.2)
    pairs = places[heights <= level].reshape(-1, 2, size)
    higher = (vmap(loss)(pairs.mean(dim=1)) > level).sum().item()
    print(f"{name:9} {higher:2} of {len(pairs)} middles of two low places are higher")
    lowest = torch.linalg.eigvalsh(vmap(hessian(loss))(places[:50]))[:, 0].min().item()
    print(f"{name:9} the lowest eigenvalue at 50 random places: {lowest:6.3f}")

# %% [markdown]
# Deep networks are not convex. What survives is the other good property of a bowl: it does not bend too fast. $f$ is **L-smooth** if
#
# $$\lVert \nabla f(x) - \nabla f(y)\rVert \le L\,\lVert x - y\rVert :$$
#
# the gradient changes at most $L$ times as fast as $x$. For a bowl that is the largest eigenvalue again, and you have computed it.

# %% [markdown]
# ## 3 · The parabola above
#
# What is smoothness good for? It puts a lid on the function. If $f$ is L-smooth, then for all $x$ and $y$
#
# $$f(y) \;\le\; f(x) + \nabla f(x) \cdot (y - x) + \tfrac L2\,\lVert y - x\rVert^2 ,$$
#
# a parabola of curvature $L$ that touches $f$ at $x$ and lies above it everywhere. (This is called the *descent lemma*.) Move the point, and lower
# $L$ until the lid breaks:

# %%
explore(figures.chord_and_parabola, at=(-4.0, 4.0, 0.1), L=(0.2, 2.0, 0.05))

# %% [markdown]
# Smooth functions have the lid. And the other way round?

# %%
predict("below_every_parabola")

# %%
x = torch.linspace(-2, 2, 401, dtype=torch.float64)
f, slope = -(x**4), -4 * x**3
parabola = f[:, None] + slope[:, None] * (x - x[:, None]) + 0.01 / 2 * (x - x[:, None]) ** 2
print("−x⁴ above a parabola of curvature 0.01, at most:", max(0.0, (f - parabola).max().item()))
for reach in (2, 40):
    change = 4 * (reach**3 - (reach - 0.1) ** 3) / 0.1
    print(f"its slope between {reach - 0.1:g} and {reach} changes {change:,.0f} times as fast as x")

# %% [markdown]
# So smooth implies the lid, and the lid alone does not imply smooth. (For a *convex* function it does.)
#
# ### What a step is sure of
#
# Put $y = x - \gamma\nabla f(x)$ into the lid. What comes out is a promise: one step wins at least $\gamma\,(1 - \tfrac{\gamma L}2)\,\lVert\nabla f(x)\rVert^2$. It is
# positive up to $\gamma = 2/L$, the edge again, now for any smooth function. Lengthen the step:

# %%
explore(figures.chord_and_parabola, step=(0.1, 2.5, 0.1))

# %% [markdown]
# **Theorem** (gradient descent on a smooth function). With $0 < \gamma \le 1/L$ and $f^*$ the lowest value of $f$,
#
# $$\frac1{K+1}\sum_{k=0}^{K} \lVert\nabla f(x_k)\rVert^2 \;\le\; \frac{2\,(f(x_0) - f^*)}{\gamma\,(K+1)}.$$
#
# Here is its proof, in four lines. Before you open the reasons: why does each line follow?
#
# 1. $f(x_{k+1}) \le f(x_k) + \nabla f(x_k)\cdot(x_{k+1} - x_k) + \frac L2\lVert x_{k+1} - x_k\rVert^2$
# 2. $f(x_{k+1}) \le f(x_k) - \gamma\,(1 - \frac{\gamma L}2)\,\lVert\nabla f(x_k)\rVert^2$
# 3. $f(x_{k+1}) \le f(x_k) - \frac\gamma2\,\lVert\nabla f(x_k)\rVert^2$
# 4. $\frac\gamma2\sum_{k=0}^K \lVert\nabla f(x_k)\rVert^2 \le f(x_0) - f(x_{K+1}) \le f(x_0) - f^*$
#
# <details><summary>The reasons</summary>
#
# 1. $f$ is smooth: the lid, with $x = x_k$ and $y = x_{k+1}$.
# 2. Insert the step, $x_{k+1} - x_k = -\gamma\nabla f(x_k)$.
# 3. $\gamma \le 1/L$, so the bracket is at least $\frac12$.
# 4. Sum over $k$: everything between the first and the last value cancels, and the last is no lower than $f^*$.
#
# </details>
#
# It does not say that you arrive at a minimum. It says that the gradients get small: their average falls like $1/K$, so at least one is as small as that.
#
# ### Exercise 3 · The theorem on data  (3 points · 10 min · ●●)
#
# For linear regression, from $w = 0$, return both sides of the theorem after $K$ = `steps` steps: the average, and the bound. All numbers are in double precision. A rate above $1/L$ is
# not covered: raise `ValueError`. $1/L$ itself must pass, although rounding may make its product with $L$ a last digit larger than 1. Columns of $X$ may be equal to each other. You may call your `smoothness`.

# %% exercise="descent_certificate"
def descent_certificate(
    X: Float[Tensor, "n d"], y: Float[Tensor, "n"], rate: float, steps: int
) -> tuple[float, float]:
    """The average of ‖∇f‖² over k = 0 … steps, and the theorem's bound on it."""
    ### BEGIN SOLUTION
    if rate * smoothness(X) > 1 + 1e-9:
        raise ValueError(f"the theorem needs a rate of at most 1/L, not {rate}")
    best = torch.linalg.pinv(X) @ y
    w, squares = torch.zeros_like(best), []
    for _ in range(steps + 1):
        gradient = X.T @ (X @ w - y) / len(X)
        squares.append(gradient.square().sum())
        w = w - rate * gradient
    drop = (y.square().sum() - (X @ best - y).square().sum()) / (2 * len(X))
    return torch.stack(squares).mean().item(), (2 * drop / (rate * len(squares))).item()
    ### END SOLUTION


# %% check="descent_certificate"
check(descent_certificate)
### BEGIN HIDDEN TESTS
check(descent_certificate, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.certificate, scale=(0.1, 1.95, 0.05), seed=[0, 1, 2])

# %% [markdown]
# Up to $1/L$ the bound holds for every $K$ and every seed, as it must. At $1.9/L$ descent still goes down, and the *printed* bound is wrong: there the bracket of line 2 is only
# 0.05. A bound is true where it was proved; look up where that was.
#
# **In real models.** $L$ of a language model is not computed before training. What you take from the theorem is its shape: halve the rate and the guarantee needs twice the steps; go beyond $2/L$ and there is none.

# %% [markdown]
# ## 4 · The edge
#
# So you find $L$ and choose $\gamma < 2/L$. For a bowl, yes. But the curvature of a network changes while it learns.

# %%
predict("sharper_or_flatter")

# %% [markdown]
# Twenty points of a sine, twenty tanh units, gradient descent on all the data: 61 parameters, so the whole matrix of second derivatives fits on a page. Three rates, three seeds each, all nine runs at once:

# %% tags=["nbval-ignore-output", "because at the edge rounding decides which steps rise"]
points = torch.linspace(-1, 1, 20)
targets = torch.sin(4 * points)


def sine_loss(p: Tensor) -> Tensor:
    """Half the mean squared error of a network with 20 tanh units; p (61)."""
    w, b, v = p[:60].view(3, 20)
    return ((points[:, None] * w + b).tanh() @ v + p[60] - targets).square().mean() / 2


def first_weights(seed: int) -> Tensor:
    """Random weights of that network: (61)."""
    w, b, v = torch.randn(3, 20, generator=torch.Generator().manual_seed(seed))
    return torch.cat([w, b / 2, v / 80**0.5, torch.zeros(1)])


RATES, EVERY = (0.4, 0.3, 0.1), 100


def train_on_edge(seeds: Iterable[int], steps: int = 2001) -> tuple[dict[float, Tensor], Tensor]:
    """The largest curvature at every 100th step by rate, a column per seed; and all losses (steps, runs)."""
    p = torch.stack([first_weights(seed) for seed in seeds]).repeat(len(RATES), 1)
    rates = torch.tensor(RATES).repeat_interleave(len(p) // len(RATES))
    slope_and_height, curvature = vmap(grad_and_value(sine_loss)), vmap(hessian(sine_loss))
    sharpest, losses = [], []
    for step in range(steps):
        if step % EVERY == 0:
            sharpest.append(torch.linalg.eigvalsh(curvature(p))[:, -1])
        slope, height = slope_and_height(p)
        losses.append(height)
        p = p - rates[:, None] * slope
    return dict(zip(RATES, torch.stack(sharpest).chunk(len(RATES), dim=1), strict=True)), torch.stack(losses)


curvatures, edge_losses = train_on_edge((0, 1, 2))
for rate, values in curvatures.items():
    ends = ", ".join(f"{end:5.1f}" for end in values[-5:].mean(dim=0).tolist())
    print(f"rate {rate}: 2/γ = {2 / rate:4.1f}; the largest curvature at the end, three seeds: {ends}")
rises = (edge_losses[1:, :3] > edge_losses[:-1, :3]).sum(dim=0)
falls = ", ".join(f"{start:.2f} → {end:.3f}" for start, end in edge_losses[[0, -1], :3].T.tolist())
print(f"rate 0.4: the loss rose in {rises.tolist()} of 2,000 steps, and fell all the same: {falls}")

# %%
figures.sharpness(curvatures, EVERY)

# %% [markdown]
# The curvature *rises* until it meets $2/\gamma$, and stays there. (At 0.1 its edge would be 20, and 2,000 steps do not take it there.) At 0.4 the loss goes up in hundreds of single steps, and down all the same. If it trains long enough to get there, the choice of $\gamma$ is a choice of the curvature where training ends: "choose $\gamma < 2/L$" has it
# backwards. Wu, Ma & E (2018) saw that descent ends where the curvature is near $2/\gamma$; Cohen et al. (2021) showed it in detail.

# %% [markdown]
# ## 5 · With one example at a time
#
# GPT-3 was trained on 300 billion tokens (Brown et al., 2020). A gradient over all of them for a single step is out of the question. The problem really is
#
# $$\min_x\; f(x) = \mathbb E_\xi\big[F(x; \xi)\big],$$
#
# where $\xi$ is an example and its distribution is unknown: all you can do is draw. For least squares, $F(w; (x, y)) = \frac12 (x \cdot w - y)^2$. **Stochastic gradient descent** (Robbins & Monro, 1951) takes the gradient of what was drawn for
# the real one. On average it is right:

# %%
gradients = torch.tensor([[4.0, 0.0], [0.0, 2.0], [-2.0, 2.0], [2.0, -4.0]])  # of four examples, at some w
print("full gradient        ", gradients.mean(dim=0).tolist())
pairs = torch.combinations(torch.arange(4))
batches = gradients[pairs].mean(dim=1)
print("mean over all 6 pairs", batches.mean(dim=0).tolist())
print("the pairs            ", batches.tolist())

# %% [markdown]
# Two things are assumed of the noise, whatever was drawn before: its mean is zero, and its variance is at most $\sigma^2$. The first holds exactly, as you see. How large is the second?
#
# ### Exercise 4 · The noise of a batch  (3 points · 8 min · ●●)
#
# `gradients` holds the gradient of each of $n$ examples, at some fixed $w$. A batch of `batch` examples is drawn, with replacement or without, and its gradients are averaged. Return the mean of $\lVert\text{batch gradient} - \text{full gradient}\rVert^2$ over all
# batches, by a formula that neither lists the batches (of 30 examples there are 155 million batches of 15) nor samples them. There may be a single example.

# %% exercise="gradient_noise"
def gradient_noise(gradients: Float[Tensor, "n d"], batch: int, replacement: bool) -> float:
    """The mean of ‖gradient of a batch − full gradient‖² over all batches."""
    ### BEGIN SOLUTION
    n = len(gradients)
    noise = (gradients - gradients.mean(dim=0)).square().sum(dim=1).mean().item() / batch
    if replacement or n == 1:
        return noise
    return noise * (n - batch) / (n - 1)
    ### END SOLUTION


# %% check="gradient_noise"
check(gradient_noise)
### BEGIN HIDDEN TESTS
check(gradient_noise, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With replacement it is $\sigma^2/B$, where $\sigma^2 = \frac1n\sum_i \lVert g_i - \bar g\rVert^2$; without, $\frac{n - B}{n - 1}$ of that. Four times the batch is half the spread. When do you stop paying for it?
#
# ### Exercise 5 · The noise scale  (3 points · 12 min · ●●●)
#
# During training you see neither $\lVert G\rVert^2$, the squared length of the full gradient, nor $\sigma^2$. But you can measure the mean of $\lVert g\rVert^2$ over many batches of
# `b_small` examples (`small`), and over many of `b_large` (`large`), drawn with replacement. Return $\lVert G\rVert^2$, $\sigma^2$, and their quotient $B = \sigma^2/\lVert G\rVert^2$, the batch whose noise is as large as the gradient.
#
# Equal sizes say nothing: raise `ValueError`. Measurements are noisy, and $\lVert G\rVert^2$ or $\sigma^2$ may come out below 0: return them as they are. Where $\lVert G\rVert^2$ is 0 or below, $B$ is `math.inf`.

# %% exercise="noise_scale"
def noise_scale(small: float, large: float, b_small: int, b_large: int) -> tuple[float, float, float]:
    """‖G‖², σ² and σ²/‖G‖² from the mean ‖g‖² of batches of two sizes."""
    ### BEGIN SOLUTION
    if b_small == b_large:
        raise ValueError("two different sizes are needed")
    sigma2 = (small - large) / (1 / b_small - 1 / b_large)
    G2 = large - sigma2 / b_large
    return G2, sigma2, sigma2 / G2 if G2 > 0 else math.inf
    ### END SOLUTION


# %% check="noise_scale"
check(noise_scale)
### BEGIN HIDDEN TESTS
check(noise_scale, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now look at the price. A net predicts a byte of stories from the three before it, with plain SGD. (Its loss is in *nats*: the mean of $-\ln p$ for the right byte.)

# %%
predict("eight_times_the_batch")

# %% tags=["nbval-ignore-output", "because rounding differs between processors and may shift a step"]
stories, source = story_grammar(), random.Random(0)
text = torch.tensor(list("".join(stories.generate(source) for _ in range(3000)).encode()))
three = torch.arange(3)


def first_net(seed: int) -> list[Tensor]:
    """A table of 32 numbers for each byte at each of three places, and 128 scores from their tanh."""
    generator = torch.Generator().manual_seed(seed)
    shapes = ((384, 32), (32, 128), (1, 128))
    return [torch.randn(shape, generator=generator).div_(4).requires_grad_() for shape in shapes]


def byte_loss(net: list[Tensor], at: Tensor) -> Tensor:
    """Nats per byte after the three bytes that begin at these places of the text."""
    table, scores, bias = net
    return F.cross_entropy(table[text[at[:, None] + three] + 128 * three].sum(dim=1).tanh() @ scores + bias, text[at + 3])


def slopes(net: list[Tensor], batch: int, generator: torch.Generator) -> tuple[Tensor, ...]:
    """The gradient on a batch of random places."""
    at = torch.randint(len(text) - 3, (batch,), generator=generator)
    return torch.autograd.grad(byte_loss(net, at), net)


def steps_to_goal(batch: int, rate: float, seed: int, limit: int) -> int:
    """Steps of SGD until the loss on 1,000 fixed places is below 1.6 nats, looked at in every fourth step."""
    net, generator = first_net(seed), torch.Generator().manual_seed(seed)
    fixed = torch.randint(len(text) - 3, (1000,), generator=torch.Generator().manual_seed(99))
    for step in range(limit):
        if step % 4 == 0 and byte_loss(net, fixed).item() < 1.6:
            return step
        for p, slope in zip(net, slopes(net, batch, generator), strict=True):
            p.data -= rate * slope
    return limit


def best_steps(batch: int, rates: Iterable[float], seed: int) -> int:
    """The fewest steps to the goal with any of these rates."""
    best = 600
    for rate in rates:
        best = min(best, steps_to_goal(batch, rate, seed, best))
    return best


needed = {
    batch: [best_steps(batch, rates, seed) for seed in range(3)]
    for batch, rates in ((8, (1.0, 0.5, 2.0)), (64, (4.0, 2.0, 8.0)), (512, (8.0, 4.0, 16.0)))
}
for batch, steps in needed.items():
    print(f"batches of {batch:3}: {steps} steps (three seeds), {batch * sum(steps) / 3:6,.0f} examples")
few, more, most = (sum(steps) / 3 for steps in needed.values())
knee = (few - more) / (1 / 8 - 1 / 64)
least = more - knee / 64
print(f"S · (1 + B/batch) through the first two: S = {least:.0f} steps, B = {knee / least:.0f} examples")
print(f"for batches of 512 that would be {least + knee / 512:.0f} steps; measured {most:.0f}")

# %% [markdown]
# From 8 to 64 examples the steps fall to less than a fifth, and you pay about half as many examples again. From 64 to 512 they fall to about a third, and you pay about three times as many examples. In between lies a batch size $B$ at which you need twice the fewest steps; $S\,(1 + B/\text{batch})$ is the curve that McCandlish et al. (2018) found. Now measure the noise scale during such a run:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
with your("noise_scale"):
    scales = []
    net, generator = first_net(0), torch.Generator().manual_seed(0)
    for step in range(201):
        if step in (10, 30, 100, 200):
            small, large = (
                sum(sum(slope.square().sum().item() for slope in slopes(net, b, generator)) for _ in range(n)) / n
                for b, n in ((8, 200), (512, 20))
            )
            scales.append(noise_scale(small, large, 8, 512)[2])
            now = byte_loss(net, torch.arange(4000)).item()
            print(f"step {step:3}: loss {now:.2f}, σ²/‖G‖² = {scales[-1]:4.0f}")
        for p, slope in zip(net, slopes(net, 64, generator), strict=True):
            p.data -= 2.0 * slope

# %% [markdown]
# It has the order of magnitude of the $B$ above, and that is all: it *grows* while the loss falls, because the full gradient shrinks faster than the noise. That is an argument for small batches at the beginning of a run and larger ones later.
#
# **Theorem** (SGD). With $\gamma \le 1/L$, and $\Delta_0 = f(x_0) - f^*$,
#
# $$\frac1{K+1}\sum_{k=0}^K \mathbb E\,\lVert\nabla f(x_k)\rVert^2 \;\le\; \frac{2\Delta_0}{\gamma(K+1)} + \gamma L\sigma^2.$$
#
# The first part is the old one. What happens to the second as $K$ grows?

# %%
predict("constant_rate")

# %% tags=["nbval-ignore-output", "because of a floor that is made of rounding"]
RATES_B = (0.1, 0.05, 0.025, 0.0125)


def squared_gradients(seed: int, label_noise: float, steps: int = 4000) -> Tensor:
    """‖∇f‖² at each step (rows) for four rates (columns); the same example for all of them."""
    generator = torch.Generator().manual_seed(seed)
    X = torch.randn(64, 3, generator=generator, dtype=torch.float64)
    noise = torch.randn(64, generator=generator, dtype=torch.float64)
    y = X @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64) + label_noise * noise
    rates, w, found = torch.tensor(RATES_B, dtype=torch.float64), torch.zeros(4, 3, dtype=torch.float64), []
    for i in torch.randint(64, (steps,), generator=generator).tolist():
        found.append(((w @ X.T - y) @ X / 64).square().sum(dim=1))
        w = w - rates[:, None] * (w @ X[i] - y[i])[:, None] * X[i]
    return torch.stack(found)


noisy, exact = squared_gradients(0, 1.0), squared_gradients(0, 0.0)
floors = noisy[2000:].mean(dim=0)
print("noisy labels, floors by rate:", [f"{floor:.2f}" for floor in floors.tolist()])
print("labels that a line fits, at the end:", [f"{end:.0e}" for end in exact[-1].tolist()])

# %%
figures.noise_floor(noisy, RATES_B)

# %% [markdown]
# Halve the rate, and the floor is halved as well (a little more than that here). And with labels that a line fits exactly there is no floor at all. "SGD with a constant rate cannot converge" is true if $\sigma^2 > 0$ where it arrives. A model that can fit *all* of its data has $\sigma^2 = 0$ at the
# solution, and large networks are not far from that.
#
# **In real models.** This is why rates fall during training: high first, to come down soon; low at the end, to come down far. Section 10 is about how.

# %% [markdown]
# ## 6 · Memory
#
# Back to the bowl, with curvatures 1 and 100: descent zig-zags across the valley and crawls along it. A heavy ball would not. Polyak's (1964) keeps a fraction $\beta$ of its last step, and Nesterov's (1983) first rolls and then asks for the gradient:
#
# $$\text{heavy ball:}\quad x_{k+1} = x_k - \gamma\nabla f(x_k) + \beta\,(x_k - x_{k-1})$$
#
# $$\text{Nesterov:}\quad y_k = x_k + \beta\,(x_k - x_{k-1}), \qquad x_{k+1} = y_k - \gamma\nabla f(y_k)$$
#
# By hand: where the gradient is always $g$, steps grow until what is added is what is lost, $s = \gamma g + \beta s$. So $s = \gamma g/(1 - \beta)$: ten times as long, for $\beta = 0.9$.

# %%
predict("rate_with_momentum")

# %%
def kept(rate: float, beta: float, nesterov: bool) -> float:
    """The factor per step in a direction of curvature 1, from the matrix that takes (x_k, x_{k−1}) one step on."""
    now, before = 1 + beta - rate, -beta
    if nesterov:
        now, before = (1 - rate) * (1 + beta), -(1 - rate) * beta
    step = torch.tensor([[now, before], [1.0, 0.0]], dtype=torch.float64)
    return torch.linalg.eigvals(step).abs().max().item()


edges = {"descent": (2.0, 0.0, False), "heavy ball": (2 * 1.9, 0.9, False), "Nesterov": (3.8 / 2.8, 0.9, True)}
for name, (edge, beta, nesterov) in edges.items():
    below, above = (kept(share * edge, beta, nesterov) for share in (0.99, 1.01))
    print(f"{name:11} edge {edge:.3f}/L; per step × {below:.4f} at 1 % below it, × {above:.4f} at 1 % above")

# %% [markdown]
# The edge of the heavy ball is $2(1 + \beta)/L$, *above* that of descent; Nesterov's is $\frac{2 + 2\beta}{1 + 2\beta}\cdot\frac1L$, *below* it. See both happen: all three have the same rate here.

# %%
explore(figures.zig_zag, rate=Log(0.001, 0.05), momentum=(0.0, 0.95), kappa=Log(1.0, 200.0))

# %% [markdown]
# ### An optimizer in PyTorch
#
# All optimizers there are classes with the same contract, and so will yours be:
#
# - parameters come in **groups**, each a dictionary with its own settings;
# - `step()` reads each parameter's `.grad`, which is `None` for one that was not used, and changes the parameter in place, under `torch.no_grad()`;
# - what must be remembered about a parameter `p` is in `self.state[p]`, a dictionary that is empty at first. `state_dict()` saves it.

# %%
v, w = torch.zeros(2, requires_grad=True), torch.zeros(3, requires_grad=True)
optimizer = torch.optim.SGD([{"params": [v]}, {"params": [w], "lr": 0.01}], lr=0.1, momentum=0.9, foreach=False)
for group in optimizer.param_groups:
    print({name: group[name] for name in ("lr", "momentum")}, "of shapes", [tuple(p.shape) for p in group["params"]])
v.grad = torch.ones(2)
optimizer.step()
print("v is now", [round(each, 3) for each in v.tolist()], "and w, which has no gradient,", w.tolist())
print("remembered of v:", list(optimizer.state[v]), "and of w:", list(optimizer.state.get(w, [])))

# %% [markdown]
# ### Exercise 6 · Momentum  (4 points · 12 min · ●●●)
#
# Turn the two rules above into PyTorch's form. It keeps one buffer for each parameter, $b = -(x_k - x_{k-1})/\gamma$, which is 0 at first, and calls $\beta$ `momentum`. The heavy ball's parameter is $x$. Nesterov's is $y$,
# the place where the gradient $g$ will be asked for. So you have $b$, $\beta$, $\gamma$ and $g$: what is the new $b$, and how does the parameter move? Take pen and paper. (When a schedule changes $\gamma$, $b$ keeps its numbers.)
#
# `__init__` is there; write `step`. The buffer belongs in `self.state[p]`. A parameter without a gradient is left alone, and so is its buffer. Gradients must come out of `step` as they went in.

# %% exercise="Momentum"
class Momentum(Optimizer):
    """Steps along a sum of gradients, in which older ones fade."""

    def __init__(self, params: Iterable, lr: float, momentum: float = 0.9, nesterov: bool = False):
        super().__init__(params, {"lr": lr, "momentum": momentum, "nesterov": nesterov})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state, mu = self.state[p], group["momentum"]
                    b = state["b"] = mu * state["b"] + p.grad if "b" in state else p.grad.clone()
                    p -= group["lr"] * (p.grad + mu * b if group["nesterov"] else b)
        ### END SOLUTION


# %% check="Momentum"
check(Momentum)
### BEGIN HIDDEN TESTS
check(Momentum, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Both rules have the same buffer:
#
# $$b \leftarrow \beta\,b + g, \qquad p \leftarrow p - \gamma\,b \quad\text{or, with Nesterov,}\quad p \leftarrow p - \gamma\,(g + \beta\,b).$$
#
# With a constant rate they are exactly Polyak's and Nesterov's. And because $\gamma$ is outside $b$, a schedule acts on the whole memory at once.
#
# ### How much memory?
#
# In a bowl this can be answered. Along a direction of curvature $\lambda$ the heavy ball takes $(x_k, x_{k-1})$ one step on with a $2 \times 2$ matrix, whose larger eigenvalue (in absolute value) says what is left after each step. It is $\sqrt\beta$, as long as
#
# $$\big|1 - \sqrt{\gamma\lambda}\,\big| \le \sqrt\beta\,,$$
#
# and larger otherwise. This must hold for the flattest direction, $\mu$, and for the steepest, $L$.
#
# ### Exercise 7 · The best memory  (3 points · 12 min · ●●●)
#
# For a bowl with curvatures from $\mu$ to $L$, return the rate $\gamma$ and the memory $\beta$ with which the error falls fastest, and the factor $\sqrt\beta$ by which it falls per step.

# %% exercise="best_momentum"
def best_momentum(mu: float, L: float) -> tuple[float, float, float]:
    """The best rate γ and memory β of the heavy ball, and √β."""
    ### BEGIN SOLUTION
    rate = 4 / (math.sqrt(L) + math.sqrt(mu)) ** 2
    factor = 1 - math.sqrt(rate * mu)
    return rate, factor**2, factor
    ### END SOLUTION


# %% check="best_momentum"
check(best_momentum)
### BEGIN HIDDEN TESTS
check(best_momentum, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# With $\kappa = L/\mu$ the best factor is $\dfrac{\sqrt\kappa - 1}{\sqrt\kappa + 1}$; without memory it is $\dfrac{\kappa - 1}{\kappa + 1}$, at $\gamma = 2/(L + \mu)$. The root is the whole point of momentum. Steps until the error of both ends is below $10^{-6}$:

# %%
def steps_needed(rate: float, beta: float, kappa: float, nesterov: bool = False) -> int:
    """Steps from 1 to below 10⁻⁶ for good, in directions of curvature 1 and kappa."""
    worst = 0
    for curvature in (1.0, kappa):
        x = before = 1.0
        steps, last = 0, 0
        while steps < last + 300:
            y = x + beta * (x - before)
            x, before = y - rate * curvature * (y if nesterov else x), x
            steps += 1
            last = steps if abs(x) > 1e-6 else last
        worst = max(worst, last + 1)
    return worst


for kappa in (10, 100, 1000, 10_000):
    root = math.sqrt(kappa)
    q = (root - 1) / (root + 1)
    descent = steps_needed(2 / (1 + kappa), 0.0, kappa)
    ball = steps_needed(4 / (root + 1) ** 2, q**2, kappa)
    nesterov = steps_needed(1 / kappa, q, kappa, nesterov=True)
    print(f"κ = {kappa:6,}   descent {descent:7,}   heavy ball {ball:6,}   Nesterov {nesterov:6,}")

# %% [markdown]
# **In real models.** No loss of a network is a bowl, and $\beta = 0.9$ is the usual choice. That is the best memory of a bowl with $\kappa$ of about 1,400. Goh (2017), *Why momentum really works*, has the most beautiful pictures of all this.

# %% [markdown]
# ## 7 · A step for each coordinate
#
# One rate for all directions is the trouble. Could every coordinate have its own? The steep ones need short steps, the flat ones long steps, and the gradients themselves tell which is which. **AdaGrad** (Duchi et al., 2011) adds up the squares of each coordinate's gradients, and divides the gradient by the root of the sum.
#
# By hand: gradients 4, 4, 4. The steps are $\gamma \cdot 4/\sqrt{16} = \gamma$, then $4/\sqrt{32}$, then $4/\sqrt{48}$: $\gamma$, $0.71\,\gamma$, $0.58\,\gamma$. And for gradients of 0.001? The same. The size of a gradient does not matter, only how it compares with those before.
#
# > **Spot the slip.** A colleague's `step` begins with `grad = p.grad.data` for each parameter, and has always worked. When does it stop with an `AttributeError`?
#
# ### Exercise 8 · AdaGrad  (3 points · 8 min · ●●)
#
# The whole class this time, and its memory in `self.state[p]` again. So that 0 is not divided by 0, $\varepsilon$ is added to the root (not under it), as in PyTorch.

# %% exercise="AdaGrad"
class AdaGrad(Optimizer):
    """A rate for each coordinate, smaller where gradients have been large."""

    def __init__(self, params: Iterable, lr: float = 1e-2, eps: float = 1e-10):
        ### BEGIN SOLUTION
        super().__init__(params, {"lr": lr, "eps": eps})
        ### END SOLUTION

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is not None:
                        s = self.state[p]["s"] = self.state[p].get("s", 0.0) + p.grad.square()
                        p -= group["lr"] * p.grad / (s.sqrt() + group["eps"])
        ### END SOLUTION


# %% check="AdaGrad"
check(AdaGrad)
### BEGIN HIDDEN TESTS
check(AdaGrad, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A part of a model may be unused in a step, such as an expert that no token chose: that is when `.grad` is `None`. (Rare words share one table. In it, the rows that were not used get zeros.) As a formula, coordinate by coordinate:
#
# $$s \leftarrow s + g^2, \qquad p \leftarrow p - \gamma\,\frac{g}{\sqrt s + \varepsilon}$$
#
# An $\varepsilon$ of $10^{-5}$ *under* the root would be another rule: coordinates whose gradients are far below 0.003 would hardly move.
#
# Now turn the valley. Whose path changes?

# %%
predict("who_notices")

# %%
def steps_to_a_thousandth(make: partial[Optimizer], turn: Tensor, begin: Tensor, limit: int = 3000) -> int:
    """Steps of an optimizer until a bowl of ten curvatures from 1 to 1,000, turned by a rotation, is down to 1/1000."""
    H = turn @ torch.logspace(0, 3, 10, dtype=torch.float64).diag() @ turn.T
    p = (turn @ begin).requires_grad_()
    optimizer = make([p])
    goal = 1e-3 * (p.detach() @ H @ p.detach()).item()
    for step in range(limit):
        p.grad = H @ p.detach()
        if (p.detach() @ p.grad).item() < goal:
            return step
        optimizer.step()
    return limit


def turned_and_not(seed: int) -> dict[str, tuple[int, int]]:
    """For each method, at the best of four rates, the steps before and after a random rotation."""
    generator = torch.Generator().manual_seed(seed)
    rotation = torch.linalg.qr(torch.randn(10, 10, generator=generator, dtype=torch.float64))[0]
    begin = torch.randn(10, generator=generator, dtype=torch.float64)
    q = (math.sqrt(1000) - 1) / (math.sqrt(1000) + 1)
    methods = {
        "descent": [partial(torch.optim.SGD, lr=2 / 1001, foreach=False)],
        "heavy ball": [partial(torch.optim.SGD, lr=4 / (math.sqrt(1000) + 1) ** 2, momentum=q**2, foreach=False)],
        "AdaGrad": [partial(torch.optim.Adagrad, lr=rate, foreach=False) for rate in (0.1, 0.3, 1.0, 3.0)],
        "Adam": [partial(torch.optim.Adam, lr=rate, foreach=False) for rate in (0.03, 0.1, 0.3, 1.0)],
    }
    turns = (torch.eye(10, dtype=torch.float64), rotation)
    return {
        name: tuple(min(steps_to_a_thousandth(make, turn, begin) for make in makes) for turn in turns)
        for name, makes in methods.items()
    }


rotated = {seed: turned_and_not(seed) for seed in range(3)}
for name in ("descent", "heavy ball", "AdaGrad"):
    found = ", ".join("{} → {}".format(*rotated[seed][name]) for seed in rotated)
    print(f"{name:11} steps before → after turning, three seeds: {found}")

# %% [markdown]
# Aligned with the axes, AdaGrad needs a handful of steps for a valley of 1,000. Turned, it needs many times as many, while descent and the heavy ball do not change by a single step. A rate for each coordinate is as good as the coordinates. In a language model they mean something: a row of the embedding belongs to one word.

# %% [markdown]
# ## 8 · Adam
#
# AdaGrad never forgets, so its rates $\gamma/\sqrt s$ can only fall. **Adam** (Kingma & Ba, 2015) takes running means instead, of the gradient as well (that is momentum), and of its square:
#
# $$m \leftarrow \beta_1 m + (1 - \beta_1)\,g, \qquad s \leftarrow \beta_2 s + (1 - \beta_2)\,g^2 .$$
#
# Both start at 0. Suppose you step along $m/(\sqrt s + \varepsilon)$ with $m$ and $s$ as they are.

# %%
predict("first_step")

# %%
explore(figures.adam_steps, beta1=(0.0, 0.99, 0.01), beta2=[0.9, 0.95, 0.99, 0.999], corrected=False)

# %% [markdown]
# So the means must be corrected. By what?
#
# ### Exercise 9 · What a running mean weighs  (2 points · 6 min · ●●)
#
# $m \leftarrow \beta m + (1 - \beta)\,g$ begins at 0. After $k$ steps, $m$ is a sum of $g_1, \dots, g_k$ with certain weights. Return these weights, oldest first, each divided by what they all sum to. $\beta$ may be another number in each step, at least 0 and less than 1; no steps give `[]`.
#
# By hand: with β = 0.5, 0.9, 0.9 the weights are 0.405, 0.09 and 0.1 before the division. Where does 0.405 come from? And is there a short way to their sum, 0.595?

# %% exercise="mean_weights"
def mean_weights(betas: list[float]) -> list[float]:
    """The weights of g₁ … g_k in a running mean that began at 0, divided by their sum."""
    ### BEGIN SOLUTION
    weights, later = [], 1.0
    for beta in reversed(betas):
        weights.append((1 - beta) * later)
        later *= beta
    return [weight / (1 - later) for weight in reversed(weights)]
    ### END SOLUTION


# %% check="mean_weights"
check(mean_weights)
### BEGIN HIDDEN TESTS
check(mean_weights, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Exercise 10 · Adam  (3 points · 12 min · ●●●)
#
# Use what you found: the step is $-\gamma\,\hat m/(\sqrt{\hat s} + \varepsilon)$, where $\hat m$ and $\hat s$ are the means with weights that sum to 1. In both, $\beta$ is the same in all steps of a parameter.
#
# Write `step`, with its memory in `self.state[p]`. A parameter that gets its first gradient late is new then, whatever the others have done.

# %% exercise="Adam"
class Adam(Optimizer):
    """Momentum, divided by the recent size of the gradient."""

    def __init__(
        self, params: Iterable, lr: float = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    k = state["k"] = state.get("k", 0) + 1
                    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * p.grad
                    s = state["s"] = beta2 * state.get("s", 0.0) + (1 - beta2) * p.grad.square()
                    root = (s / (1 - beta2**k)).sqrt()
                    p -= group["lr"] * m / (1 - beta1**k) / (root + group["eps"])
        ### END SOLUTION


# %% check="Adam"
check(Adam)
### BEGIN HIDDEN TESTS
check(Adam, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The weights sum to $1 - \beta^k$; the rest, $\beta^k$, still belongs to the 0 at the beginning. That is the paper's correction:
#
# $$\hat m = \frac m{1 - \beta_1^k}, \qquad \hat s = \frac s{1 - \beta_2^k}, \qquad p \leftarrow p - \gamma\,\frac{\hat m}{\sqrt{\hat s} + \varepsilon}, \qquad k = 1, 2, \dots$$
#
# Adam still measures along the axes. Here is the turned valley of section 7 again:

# %%
found = ", ".join("{} → {}".format(*rotated[seed]["Adam"]) for seed in rotated)
print(f"Adam: steps before → after turning, three seeds: {found}")

# %% [markdown]
# Turning costs Adam steps too, though fewer than AdaGrad. Here are all methods on one map. Which of them mind the size of the valley, which its rotation?

# %%
explore(
    figures.descent_path,
    method=list(METHODS),
    rate=Log(0.001, 3.0),
    momentum=(0.0, 0.99),
    kappa=Log(1.0, 1000.0),
    rotation=(0.0, 90.0),
)

# %% [markdown]
# ### Why language models need it
#
# Words are rare: the frequency of the word of rank $r$ falls about as $1/r$ (Zipf). Here is a language of 166 words, in which each is followed by one of four, with probabilities ½, ¼, 0.15 and 0.1, and a table of scores that learns it, all of the text in every step. (The lowest loss possible is the language's *entropy*, notebook 05.) The gradient of a word's row is as small as the word is rare.

# %%
words = 166
frequency = 1 / torch.arange(1, words + 1, dtype=torch.float64)
frequency /= frequency.sum()
shares = torch.tensor([0.5, 0.25, 0.15, 0.1], dtype=torch.float64)


def excess_loss(optimizer: partial[Optimizer], seed: int, steps: int = 200) -> tuple[float, float]:
    """Return the loss above the language's entropy: after the 12 commonest words, and after the rarest tenth."""
    followers = torch.rand(words, words, generator=torch.Generator().manual_seed(seed)).argsort(dim=1)[:, :4]
    p = torch.zeros(words, words, dtype=torch.float64).scatter(1, followers, shares.expand(words, 4))
    scores = torch.zeros(words, words, dtype=torch.float64, requires_grad=True)
    update = optimizer([scores])
    for _ in range(steps):
        scores.grad = frequency[:, None] * (scores.detach().softmax(dim=1) - p)
        update.step()
    entropy = -torch.special.xlogy(shares, shares).sum()
    above = -(p * scores.detach().log_softmax(dim=1)).sum(dim=1) - entropy
    return above[:12].mean().item(), above[-words // 10 :].mean().item()


contenders = {
    f"momentum, rate {rate}": partial(torch.optim.SGD, lr=rate, momentum=0.9, foreach=False)
    for rate in (10.0, 30.0, 100.0)
}
contenders["Adam, rate 0.3"] = partial(torch.optim.Adam, lr=0.3, foreach=False)
rare_words = {name: excess_loss(optimizer, 0) for name, optimizer in contenders.items()}
for name, above in rare_words.items():
    common, rare = (f"{nats:.4f}" if nats < 0.12 else "over 0.12" for nats in above)
    print(f"{name:21} nats above the entropy: after common words {common + ',':10} after rare ones {rare}")

# %% [markdown]
# Momentum at its best rate has learned the common words and is far behind with the rare ones; a larger rate destroys the common ones. Adam learns all words equally fast, because the size of a gradient does not count. Kunstner et al. (2024) show the same on GPT-2, and that rare classes alone bring it about: in a linear model and in a network for images, too.
#
# The price is memory, two numbers for every weight:

# %%
figures.optimizer_bytes()

# %% [markdown]
# **In real models.** GPT-3 and Llama take $\beta_2 = 0.95$, a memory of about 20 steps in place of 1,000 (Brown et al., 2020; Touvron et al., 2023). Without correction the first step would then be *too short*, $0.447\,\gamma$. Notebook 14 counts the bytes of training as a whole.
#
# **Muon** (Jordan et al., 2024) treats a matrix as a whole: it keeps momentum only and makes the matrix of each step nearly orthogonal, so that all directions in which it acts get steps of about the same length. `torch.optim.Muon` is this rule; notebook 13 has more.

# %% [markdown]
# ## 9 · Decay, beside the gradient
#
# Adding $\frac\lambda2\lVert p\rVert^2$ to the loss adds $\lambda p$ to the gradient, which pulls all weights towards 0. In Adam that pull would be divided by $\sqrt{\hat s}$ like everything else: the weights with the largest gradients would decay least. **AdamW** (Loshchilov & Hutter, 2019) keeps it out of the means. It is
#
# $$p \leftarrow (1 - \gamma\lambda)\,p, \qquad\text{then Adam's step, with the gradient alone.}$$
#
# ### Exercise 11 · AdamW  (2 points · 5 min · ●●)
#
# Begin with a copy of your Adam. Groups may have their own decay, 0 included.

# %% exercise="AdamW"
class AdamW(Optimizer):
    """Adam with decay beside the gradient, not in it."""

    def __init__(
        self,
        params: Iterable,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
    ):
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "weight_decay": weight_decay})

    def step(self) -> None:
        """Change every parameter that has a gradient."""
        ### BEGIN SOLUTION
        with torch.no_grad():
            for group in self.param_groups:
                beta1, beta2 = group["betas"]
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    p *= 1 - group["lr"] * group["weight_decay"]
                    state = self.state[p]
                    k = state["k"] = state.get("k", 0) + 1
                    m = state["m"] = beta1 * state.get("m", 0.0) + (1 - beta1) * p.grad
                    s = state["s"] = beta2 * state.get("s", 0.0) + (1 - beta2) * p.grad.square()
                    root = (s / (1 - beta2**k)).sqrt()
                    p -= group["lr"] * m / (1 - beta1**k) / (root + group["eps"])
        ### END SOLUTION


# %% check="AdamW"
check(AdamW)
### BEGIN HIDDEN TESTS
check(AdamW, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# A question about the rate:

# %%
predict("decay_and_rate")

# %%
for rate, steps, decay in ((1e-3, 2000, 0.1), (5e-4, 4000, 0.05), (5e-4, 4000, 0.1), (5e-4, 4000, 0.2)):
    print(f"γ = {rate:g}, {steps:,} steps, λ = {decay:<4g}: {(1 - rate * decay) ** steps:.4f} of a weight is left")

# %% [markdown]
# Now with gradients. Two weights of 1; one has gradients of ±0.01, the other of ±10, with random signs, each sign 1,000 times. The gradients cancel, so 2,000 steps with $\gamma = 0.001$ and $\lambda = 0.1$ should shrink both to $(1 - \gamma\lambda)^{2000} = 0.819$, give or take the last signs.

# %%
def who_decays(seed: int) -> dict[str, list[float]]:
    """Two weights after 2,000 steps, with the decay in the gradient and beside it."""
    order = torch.rand(2000, 2, generator=torch.Generator().manual_seed(seed)).argsort(dim=0)
    signs = torch.where(order < 1000, 1, -1)  # as many of each
    ends = {}
    for name, kind in (("in the gradient", torch.optim.Adam), ("beside it", torch.optim.AdamW)):
        p = torch.ones(2, requires_grad=True)
        optimizer = kind([p], lr=1e-3, weight_decay=0.1, foreach=False)
        for row in signs:
            p.grad = row * torch.tensor([0.01, 10.0])
            optimizer.step()
        ends[name] = p.tolist()
    return ends


decayed = {seed: who_decays(seed) for seed in range(3)}
for name in ("in the gradient", "beside it"):
    small, large = (", ".join(f"{decayed[seed][name][which]:.2f}" for seed in range(3)) for which in (0, 1))
    print(f"{name:16} small gradients: the weight ends at {small}; large gradients: {large} (three seeds)")

# %% [markdown]
# In the gradient, decay takes the first weight nearly to 0 and leaves the second alone. Beside it, both shrink by the same factor.
#
# **In real models.** A decay of 0.1 is usual, and there are two groups: matrices decay; biases and the scales of norms do not. In PyTorch that is a list comprehension, and the reason why your optimizer had to respect its groups:

# %%
model = nn.Sequential(nn.Embedding(50, 8), nn.LayerNorm(8), nn.Linear(8, 50))
groups = [
    {"params": [p for p in model.parameters() if p.dim() >= 2], "weight_decay": 0.1},
    {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0},
]
for group in torch.optim.AdamW(groups, lr=1e-3).param_groups:
    print(f"decay {group['weight_decay']}:", [tuple(p.shape) for p in group["params"]])

# %% [markdown]
# ## 10 · The rate of the day
#
# From section 5: high first, low at the end. The usual way down is half a wave of the cosine (Loshchilov & Hutter, 2017). And the way *up*? Adam's first step moves every weight by $\gamma$ in the direction of a sign, however small and noisy its gradient was; after a few steps $\hat s$ measures the size. So the rate starts small and grows in a straight line: a **warm-up**.
#
# ### Exercise 12 · The rate of a step  (2 points · 6 min · ●●)
#
# Return the fraction of the full rate at `step`, counted from 0, in a run of `steps`. In the warm-up it is $1/W, 2/W, \dots, 1$, so that no step is wasted. Step number `warmup` is the first of the cosine and still has the full rate; step number `steps`, which would be the one after the last, has `floor`, and so have all later ones. If the warm-up is as long as the run, `floor` wins at step `steps`.

# %% exercise="rate_factor"
def rate_factor(step: int, steps: int, warmup: int, floor: float = 0.0) -> float:
    """The fraction of the full rate at a step, counted from 0."""
    ### BEGIN SOLUTION
    if step >= steps:
        return floor
    if step < warmup:
        return (step + 1) / warmup
    done = (step - warmup) / (steps - warmup)
    return floor + (1 - floor) * (1 + math.cos(math.pi * done)) / 2
    ### END SOLUTION


# %% check="rate_factor"
check(rate_factor)
### BEGIN HIDDEN TESTS
check(rate_factor, hidden=True)
### END HIDDEN TESTS

# %%
explore(figures.rate_schedule, shape=list(SHAPES), warmup=(0, 400, 10), floor=(0.0, 0.5, 0.05), drop=(0.1, 0.6, 0.05))

# %% [markdown]
# A **constant rate with a drop** at the end (*cool-down*, or WSD for warm-up, stable, decay) has one advantage over the cosine: until the drop begins, you need not know how long the run will be.
#
# ### Who needs the warm-up?
#
# "Post-norm needs warm-up" is often said (notebook 10 has the two placements of the norm). Train tiny transformers on stories, byte by byte, for 100 steps each, with two seeds:

# %% tags=["nbval-ignore-output", "because at a reckless rate rounding grows into the last digit shown"]
def final_loss(placement: str, rate: float, warmup: int, seed: int) -> float:
    """Nats per byte of a two-layer transformer, mean of the last ten of 100 steps."""
    torch.manual_seed(seed)
    model = Transformer(llama_like(2, 64, 2, 128, vocab_size=128, context=32, block={"placement": placement}))
    initialize(model)
    optimizer = torch.optim.AdamW(model.parameters(), rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True)
    losses = []
    with Loader(text[:40_000], batch=8, seq_len=32, seed=seed, prefetch=0) as batches:
        for step in range(100):
            optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / max(warmup, 1))
            batch = next(batches)
            loss = next_token_loss(model(batch.inputs), batch.targets)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.item())
    return sum(losses[-10:]) / 10


warmed = {
    (placement, rate, warmup): [final_loss(placement, rate, warmup, seed) for seed in (0, 1)]
    for placement, rate in (("post", 0.03), ("pre", 0.03), ("post", 0.01))
    for warmup in (0, 60)
}
counts = torch.bincount(text).double()
letters = -torch.special.xlogy(counts / len(text), counts / len(text)).sum().item()
print(f"knowing only how frequent each letter is: {letters:.2f} nats")
for (placement, rate, warmup), ends in warmed.items():
    print(f"{placement + '-norm':9} rate {rate}, warm-up of {warmup:2}: {sum(ends) / 2:.1f} nats")

# %% [markdown]
# At 0.03, a reckless rate, post-norm without warm-up has learned how frequent the letters are, and hardly anything else; with warm-up it gets far below. Pre-norm suffers less, and gains from a warm-up all the same. And at 0.01 post-norm does *better* without: the warm-up is only lost time there. So the sentence is true at high rates, and "a warm-up allows a
# higher rate" is the better one.
#
# ### What does decay do, if nothing is overfitted?
#
# A language model sees most of its text once. Its loss on text that it has not seen is the same as in training. Still, decay of 0.1 is usual.

# %%
predict("decay_and_validation")


# %% [markdown]
# Here is such a model: it predicts a byte from the twelve before it, with two layers that end in a norm, and no byte has to be predicted twice. Only the matrices in front of a norm decay. The rate follows a cosine from 0.0015 to 0. Three seeds, to see how much is chance.


# %% tags=["nbval-ignore-output", "because rounding differs between processors and grows in two thousand steps"]
def next_scores(weights: list[Tensor], context: Tensor) -> Tensor:
    """Scores of the next byte from the twelve before it, for several models at once: (n, 12) → (models, n, 128)."""
    table, first, second, head = weights
    x = F.rms_norm(table[:, context].flatten(2), (12 * 16,))
    for layer in (first, second):
        x = F.rms_norm((x @ layer).relu(), (64,))
    return x @ head


def next_byte_runs(settings: list[tuple[Schedule, float]], seed: int) -> list[tuple[list[float], float, float]]:
    """Train a model for each schedule and decay, side by side, all from the same weights and on the same batches.

    For each: training losses, the loss on text that was held out, and the norm of the second layer's weights in the end.
    """
    torch.manual_seed(seed)
    shapes = ((12 * 16, 64), (64, 64), (64, 128))
    layers = [nn.Embedding(128, 16).weight, *(nn.Linear(*shape, bias=False).weight.T for shape in shapes)]
    weights = [layer.detach().repeat(len(settings), 1, 1).requires_grad_() for layer in layers]
    means, squares = ([torch.zeros_like(p) for p in weights] for _ in range(2))
    decays = torch.tensor([decay for _, decay in settings])[:, None, None]
    end, window, losses = int(0.9 * len(text)), torch.arange(12), []
    starts = torch.randperm(end - 12, generator=torch.Generator().manual_seed(seed))[: 64 * 2000].split(64)
    for k, at in enumerate(starts, 1):
        if k % 1000 == 0:
            print(f"seed {seed}: step {k:,} of 2,000", flush=True)
        scores = next_scores(weights, text[at[:, None] + window])
        loss = -scores.log_softmax(dim=-1)[:, torch.arange(len(at)), text[at + 12]].mean(dim=1)
        losses.append(loss.detach())
        rates = 1.5e-3 * torch.tensor([schedule(k - 1) for schedule, _ in settings])[:, None, None]
        slopes = torch.autograd.grad(loss.sum(), weights)
        with torch.no_grad():  # AdamW, with a rate for each model
            for number, slope in enumerate(slopes):
                p, m, s = weights[number], means[number], squares[number]
                if number in (1, 2):
                    p.mul_(1 - rates * decays)
                m.lerp_(slope, 0.1)
                s.lerp_(slope.square(), 0.05)
                p.sub_(rates * (m / (1 - 0.9**k)) / ((s / (1 - 0.95**k)).sqrt() + 1e-8))
    at = torch.arange(end, len(text) - 12, 40)
    with torch.no_grad():
        held_out = [F.cross_entropy(each, text[at + 12]).item() for each in next_scores(weights, text[at[:, None] + window])]
    norms = [matrix.norm().item() for matrix in weights[2]]
    return list(zip(torch.stack(losses, dim=1).tolist(), held_out, norms, strict=True))


cosine, drop = Cosine(2000, 50), WarmupStableDecay(2000, 50, 400)
settings = {"decay 0": (cosine, 0.0), "decay 1.5": (cosine, 1.5), "drop, decay 0": (drop, 0.0), "drop, decay 1.5": (drop, 1.5)}
runs = {name: [] for name in settings}  # for each, its runs by seed
for seed in range(3):
    for name, run in zip(settings, next_byte_runs(list(settings.values()), seed), strict=True):
        runs[name].append(run)


def by_seed(numbers: Iterable[float]) -> str:
    """Numbers of the three seeds, to three decimals."""
    return ", ".join(f"{number:.3f}" for number in numbers)


def average(name: str, first: int, last: int) -> list[float]:
    """The mean training loss over these steps, by seed."""
    return [sum(losses[first:last]) / (last - first) for losses, _, _ in runs[name]]


for name in ("decay 0", "decay 1.5"):
    halfway, ends = by_seed(average(name, 900, 1100)), by_seed(average(name, 1900, 2000))
    held_out, norm = by_seed(run[1] for run in runs[name]), ", ".join(f"{run[2]:.0f}" for run in runs[name])
    print(f"{name:9}  half-way {halfway}; in the end {ends}, held out {held_out}; norm of the second layer {norm}")

# %%
figures.crossing_losses({name: runs[name][0][0] for name in ("decay 0", "decay 1.5")})

# %% [markdown]
# With each seed, the run with decay is behind half-way and ahead in the end, in training and on held-out text. (The picture shows seed 0.) In all six runs the held-out loss is the lower one, so there was no overfitting to prevent. Decay changed the *training*. Before a norm only the direction of a matrix counts, and a step at rate $\gamma$ turns a
# matrix of norm $\lVert W\rVert$ by an angle in proportion to $\gamma/\lVert W\rVert$. Decay keeps $\lVert W\rVert$ small, so steps turn more: the same as a higher rate. That is noisier in the middle, and further along when the cosine takes the rate to 0.
#
# ### Half a wave, or a drop?
#
# The same model, and the schedule that need not know its end: 50 steps of warm-up, then a constant rate, and in the last 400 of the 2,000 steps a straight line down to 0. First without decay, then with it. (Both were trained beside the runs above.)

# %% tags=["nbval-ignore-output", "because rounding differs between processors and grows in two thousand steps"]
for name in ("decay 0", "drop, decay 0", "drop, decay 1.5"):
    before, ends = by_seed(average(name, 1500, 1600)), by_seed(average(name, 1900, 2000))
    print(f"{'cosine, decay 0' if name == 'decay 0' else name:15}  before the drop {before}; in the end {ends}")

# %%
figures.crossing_losses({"cosine": runs["decay 0"][0][0], "constant, then a drop": runs["drop, decay 0"][0][0]})

# %%
figures.crossing_losses({name: runs[name][0][0] for name in ("drop, decay 0", "drop, decay 1.5")})

# %% [markdown]
# As long as its rate is high, the constant run is behind: it has reached the floor of section 5. With each seed, the drop takes it below the cosine, which had the same peak and, on average, little more than half the rate. With decay, the constant run is far behind before the drop, falls much further in it, and is still behind at the end: decay raises the true rate here, and a constant schedule leaves only the drop to bring it down. (This is one rate and one size of decay. Under the cosine, the same decay helped.) How long should a drop be? Hu et al. (2024) take a tenth of the run, Hägele et al. (2024) find that a fifth keeps up with the cosine on larger models.
#
# **In real models.** Cosine to a tenth of the peak and decay 0.1 is the recipe of GPT-3 and Llama; D'Angelo, Andriushchenko et al. (2023) show on such models what you have just seen, and that decay is "never useful as an explicit regularizer" there. Constant rates with a final drop are described by Hu et al. (2024) and Hägele et al. (2024). Notebook 13 trains a real model with all of this.

# %% [markdown]
# ## 11 · Choosing among words
#
# A language model ends in a choice. The simplest model that chooses is a **linear classifier**: a row of $W$, of shape $(c, d)$, for each class, scores $z = W x$, and a softmax that makes probabilities of them. The loss is the mean over $n$ examples of $-\log p_{y_i}$, with $p_i = \text{softmax}(W x_i)$.
#
# You met the smallest case in notebook 03: for two scores, the gradients were $p - 1$ for the right one, and $p$ of the other for the other. By hand: $W = 0$, two classes, $x = (1, 2)$, and the first is right. Both probabilities are ½. Nudge the first score: the loss falls with slope $-½$. What does that make of the four entries of the gradient?
#
# ### Exercise 13 · The gradient of a choice  (3 points · 8 min · ●●)
#
# Return the gradient of that mean with respect to $W$, by hand: no autograd. Scores of 1,000 must work.

# %% exercise="softmax_gradient"
def softmax_gradient(
    W: Float[Tensor, "c d"], X: Float[Tensor, "n d"], y: Int[Tensor, "n"]
) -> Float[Tensor, "c d"]:
    """The gradient of the mean of −log p of the right classes."""
    ### BEGIN SOLUTION
    error = (X @ W.T).softmax(dim=1)
    error[torch.arange(len(y)), y] -= 1
    return error.T @ X / len(X)
    ### END SOLUTION


# %% check="softmax_gradient"
check(softmax_gradient)
### BEGIN HIDDEN TESTS
check(softmax_gradient, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Each row of $W$ collects, from every example, $x$ times the row's probability, less 1 where its class was right. The last layer of every language model learns like this, with a row for each token of the vocabulary.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | how large may the rate be? | below $2/L$; $L$ is the largest curvature, and in a network it grows until it is $2/\gamma$ |
# | what is a step sure of? | $\gamma(1 - \gamma L/2)\lVert\nabla f\rVert^2$, for any smooth function |
# | what does a batch buy? | noise $\sigma^2/B$; far beyond $\sigma^2/\lVert G\rVert^2$ examples, little; at a constant rate, a floor in proportion to $\gamma\sigma^2$ |
# | what is momentum good for? | $\sqrt\kappa$ in place of $\kappa$; steps $1/(1 - \beta)$ times as long where gradients agree |
# | AdaGrad, Adam? | divide by the size of earlier gradients, per coordinate; rare words learn as fast as common ones |
# | why the correction? | means that start at 0 are too small; without it the first step is $3.2\,\gamma$ |
# | AdamW? | $p \leftarrow (1 - \gamma\lambda)\,p$ beside the gradient; not for biases and norms |
# | schedule? | warm-up, then cosine, or constant and a drop; steps count from 0 |
# | gradient of softmax and $-\log p$? | $(p - \text{one-hot})\,x^\top$, averaged over examples |
#
# ## Check yourself
#
# 1. You double the batch and average over it. What happens to $L$, what to $\sigma^2$, and what to the largest rate?
# 2. Gradient descent at $1.9/L$ needs more steps in the *steep* direction. Why does $1/L$ need more in the flat one?
# 3. Your loss is summed over the tokens of a batch, not averaged. Which optimizers of this notebook are affected?
# 4. Momentum 0.9 is switched on in the middle of a run, at the same rate. What do you change?
# 5. A colleague sets Adam's $\varepsilon$ to 1. What have they got?
# 6. Why does AdamW's decay need the rate in it, and what would a schedule do to a decay without it?
#
# <details><summary>Answers</summary>
#
# 1. $L$ belongs to the function and stays, up to chance; the noise is halved; the largest rate stays at $2/L$. (That one *may* raise the rate with the batch is about the floor, not about the edge.)
# 2. At $1/L$ the steep direction is done in one step, and a direction of curvature $\mu$ still has $1 - \mu/L$ of its error.
# 3. Descent and momentum: their steps grow by the number of tokens. AdaGrad and Adam divide by the size of gradients, so (except for $\varepsilon$) they are not, and AdamW's decay is not either.
# 4. Divide the rate by about 10: where gradients agree, steps become $1/(1 - 0.9) = 10$ times as long.
# 5. Where gradients are much smaller than 1, $\sqrt{\hat s} + 1 \approx 1$: momentum with corrected means.
# 6. So that both fall together. With a falling rate and a constant fraction, decay would win in the end and shrink the weights while nothing pushes back.
#
# </details>
#
# ## Further reading
#
# - Polyak, 1964, *Some methods of speeding up the convergence of iteration methods*; Nesterov, 1983; Goh, 2017, *Why momentum really works* (Distill).
# - Duchi, Hazan & Singer, 2011, *Adaptive subgradient methods*; Kingma & Ba, 2015, *Adam*; Loshchilov & Hutter, 2019, *Decoupled weight decay regularization*.
# - McCandlish et al., 2018, *An empirical model of large-batch training*.
# - Wu, Ma & E, 2018, *How SGD selects the global minima in over-parameterized learning*; Cohen et al., 2021, *Gradient descent on neural networks typically occurs at the edge of stability*.
# - Kunstner et al., 2024, *Heavy-tailed class imbalance and why Adam outperforms gradient descent on language models*.
# - D'Angelo, Andriushchenko et al., 2023, *Why do we need weight decay in modern deep learning?*
# - Hägele et al., 2024, *Scaling laws and compute-optimal training beyond fixed training durations*, on constant rates with a cool-down.
# - In this package: `lmcourse/training/optimizers/`, all five rules as PyTorch computes them; `lmcourse/training/schedules.py`.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
assert [round(1 - scale, 2) for scale in (1.9, 2.0, 2.01)] == [-0.9, -1.0, -1.01]
assert round(1.01**100, 1) == 2.7 and round(1.01**1000, -3) == 21_000
assert round(1 / (1 - 0.9)) == 10 and round(1 - 1.9 / 2, 2) == 0.05
for scale in (0.3, 1.0):
    for seed in (0, 1, 2):
        measured, bound = measured_and_bound(scale, seed)
        assert (measured <= bound * (1 + 1e-9)).all()
measured, bound = measured_and_bound(1.9)
assert (measured > bound).any() and (measured[1:] < measured[:-1]).all()
assert 1e-4 < (floors[0] / floors[1] - 2) < 1.5 and all(1.5 < a / b < 3.5 for a, b in pairwise(floors.tolist()))
for values, rate in zip(list(curvatures.values())[:2], RATES, strict=False):
    assert ((values[-5:].mean(dim=0) * rate / 2 - 1).abs() < 0.1).all() and (values[0] < 0.9 * 2 / rate).all()
assert few > 5 * more and 1.2 < 64 * more / (8 * few) < 1.8 and 2 < more / most < 4 and 50 < knee / least < 250
assert 60 < scales[0] < scales[-1] < 1500
assert 2 < 512 * most / (64 * more) < 4
assert curvatures[0.1][-1].max() < 10 and 61 == 3 * 20 + 1
kappa_of_09 = ((1 + math.sqrt(0.9)) / (1 - math.sqrt(0.9))) ** 2
assert round(kappa_of_09, -2) == 1400
assert [round(4 / math.sqrt(16 * k), 2) for k in (1, 2, 3)] == [1.0, 0.71, 0.58] and round(1e-5**0.5, 3) == 0.003
for ends in rotated.values():
    assert ends["descent"][0] == ends["descent"][1] and ends["heavy ball"][0] == ends["heavy ball"][1]
    assert ends["AdaGrad"][0] <= 20 and 10 * ends["AdaGrad"][0] < ends["AdaGrad"][1]
assert round((1 - 0.9) / math.sqrt(1 - 0.999), 1) == 3.2 and round((1 - 0.9) / math.sqrt(1 - 0.95), 3) == 0.447
longest = [(1 - 0.9**k) / math.sqrt(1 - 0.999**k) for k in range(1, 51)]
assert (round(longest[0], 2), round(max(longest), 2), longest.index(max(longest)) + 1) == (3.16, 6.57, 12)
best = min((rates for name, rates in rare_words.items() if "momentum" in name), key=max)
assert rare_words["momentum, rate 30.0"] is best and best[1] > 50 * best[0] and rare_words["momentum, rate 100.0"][0] > 0.12
assert max(rare_words["Adam, rate 0.3"]) < 1e-3
assert round((1 - 1e-4) ** 2000, 3) == 0.819
for ends in decayed.values():
    assert ends["in the gradient"][0] < 0.1 and ends["in the gradient"][1] > 0.8
    assert all(abs(end - 0.819) < 0.05 for end in ends["beside it"])
mean_of = {key: sum(ends) / 2 for key, ends in warmed.items()}
for placement, rate, better, by in (("post", 0.03, 60, 0.6), ("pre", 0.03, 60, 0.1), ("post", 0.01, 0, 0.1)):
    assert mean_of[placement, rate, better] < mean_of[placement, rate, 60 - better] - by
assert mean_of["post", 0.03, 0] > letters - 0.35 and mean_of["post", 0.03, 0] > mean_of["pre", 0.03, 0] + 0.1
above = {  # how much higher the first one's loss is, by seed
    (first, second, steps): [a - b for a, b in zip(average(first, *steps), average(second, *steps), strict=True)]
    for first, second in (("decay 0", "decay 1.5"), ("decay 0", "drop, decay 0"), ("drop, decay 1.5", "drop, decay 0"))
    for steps in ((900, 1100), (1500, 1600), (1900, 2000))
}
assert max(above["decay 0", "decay 1.5", (900, 1100)]) < 0 < min(above["decay 0", "decay 1.5", (1900, 2000)])
assert max(above["decay 0", "drop, decay 0", (900, 1100)] + above["decay 0", "drop, decay 0", (1500, 1600)]) < 0
assert min(above["decay 0", "drop, decay 0", (1900, 2000)]) > 0.005
assert min(above["drop, decay 1.5", "drop, decay 0", (1500, 1600)]) > 0.05
assert min(above["drop, decay 1.5", "drop, decay 0", (1900, 2000)]) > 0.005
for plain, with_decay in zip(runs["decay 0"], runs["decay 1.5"], strict=True):
    assert plain[1] > with_decay[1] and plain[2] > 3 * with_decay[2]
    assert all(held_out < sum(losses[-100:]) / 100 for losses, held_out, _ in (plain, with_decay))
cosine, drop = (sum(map(shape, range(2000))) / 2000 for shape in (Cosine(2000, 50), WarmupStableDecay(2000, 50, 400)))
assert 0.5 < cosine / drop < 0.6
assert [round(1 / (1 - beta)) for beta in (0.95, 0.999)] == [20, 1000]
assert [1 + size // 4 for size in (4, 8)] == [2, 3]
