# %% [markdown]
# # 03 · Autograd
#
# **Core · 89 min · 5 exercises · 15 points** · **Further · 116 min · 6 exercises · 18 points**
#
# Training asks every parameter: if you were a little larger, would the loss go up or down, and how fast? GPT-3 has 175 billion, and to try one is a pass through the whole model. *How do all gradients come at once?*
#
# At the end you will have made an engine that gives them, and a training step, without autograd, that trains a language model exactly as PyTorch does, in a fiftieth of the memory.
#
# **You need** the derivative of a product and of a chain of functions, matrix products, a little PyTorch. No GPU.
#
# You rebuild autograd here, so your answers do not use it, nor the package `lmcourse`. Stuck? `hint("name_of_the_exercise")` gives a nudge.

# %%
import math
from collections import Counter
from dataclasses import replace

import torch
from einops import einsum, rearrange
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse import autograd
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.autograd import figures
from lmcourse.chapters.autograd.judge import judge
from lmcourse.chapters.autograd.own_step import by_autograd, print_step, train
from lmcourse.chapters.autograd.switches import Switches
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("03-autograd")

# %% [markdown]
# ## 1 · Who gets a gradient?

# %%
predict("price_of_all_gradients")

# %% [markdown]
# The smallest model there is: $\text{loss} = \tfrac12\,(x \cdot w - 5)^2$. `loss.backward()` leaves gradients behind. On which of the four tensors?

# %%
x, w = torch.tensor([1.0, 2.0, 3.0]), torch.ones(3, requires_grad=True)
pred = x @ w
pred.retain_grad()
loss = 0.5 * (pred - 5).pow(2)
loss.backward()
for name, tensor in {"x": x, "w": w, "pred": pred, "loss": loss}.items():
    print(name, "is leaf:", tensor.is_leaf, "grad:", tensor.grad if tensor.is_leaf or tensor.retains_grad else None)

# %% [markdown]
# By hand: the error is 1, and the gradient with respect to $w$ is the error times $x$. A **leaf** is a tensor without a recipe: nothing that requires a gradient went into it. Gradients stay on leaves that require one. The others were computed, used, and dropped; `retain_grad()`, called *before* the backward pass, keeps one.
#
# What did PyTorch go back through? While it computed, it wrote a **computation graph**: a formula cut into atomic assignments, whose derivatives you know by heart. Its nodes are inputs (data), parameters (what training changes) and computed ones, the loss last. A line fitted to the point $x = 3$, $y = 10$:
#
# $$u = w_1 x, \qquad \hat y = w_0 + u, \qquad z = \hat y - y, \qquad L = z^2.$$
#
# ## 2 · Back along every edge
#
# How does $w_1$ learn what it does to $L$? By the **chain rule**: if $L$ depends on $y$ and $y$ on $x$, then $\frac{dL}{dx} = \frac{dL}{dy}\,\frac{dy}{dx}$. Go back from the end. $\partial L/\partial L = 1$; each further gradient is the one that has arrived times one **local derivative**, which knows only its own operation. Walk back from $L$ by hand, through $z$, $\hat y$ and $u$:

# %%
predict("gradient_of_the_slope")

# %% [markdown]
# A node that is used twice is called **fan-out**, and it is the normal case: a weight is used by every example.

# %%
predict("both_paths")

# %% [markdown]
# A small push on $y$ moves $u$ *and* $v$, and their effects on $L$ add up: $\frac{d}{dx} f\big(g_1(x), \dots, g_M(x)\big) = \sum_m \frac{\partial f}{\partial g_m}\,\frac{d g_m}{dx}$.
#
# **Along a path multiply, over paths add.** In code, gradients start at 0 and arrive with `+=`. (`figures.GraphPlayer("linear regression")` plays the line fit.)

# %%
figures.GraphPlayer("fan-out")

# %% [markdown]
# Stop at $y$: its gradient goes from 0 to 8 to 11, and only then on to $x$.
#
# ## 3 · An engine
#
# Who writes down the graph? The *computation*, with a number that is a bit more than a number: when two are added, the result remembers its parents.

# %% [markdown]
# ### Exercise 1 · Local derivatives  (2 points · 8 min · ●●)
#
# Each operation returns a new `Value` with its result in `data`, the nodes it was computed from in `parents` (in the order of the operation; `a * a` has `a` twice), and in `locals` the derivative of the result with respect to each parent, a plain number. (`op` names the operation in drawings: `"+"`, `"×"`, `"**3"`, `"exp"`.)
#
# `other` may be a `Value` or a number, which becomes a parent, too: `as_value` makes a leaf of it. The exponent of `**` is a number and no parent. At 0 the derivative of relu is 0 by convention; `Value(0.0) ** 0` is 1, with the derivative 0. `Value(1000.0).tanh()` is 1, `Value(-1000.0).tanh()` is −1. Use `math`, not `torch`.


# %% exercise="Value"
class Value:
    """A number that remembers its parents and the derivative of itself with respect to each."""

    def __init__(self, data: float, parents: tuple["Value", ...] = (), locals: tuple[float, ...] = (), op: str = ""):
        self.data, self.grad = float(data), 0.0
        self.parents, self.locals, self.op = parents, locals, op

    def __add__(self, other: "Value | float") -> "Value":
        ### BEGIN SOLUTION
        other = as_value(other)
        return Value(self.data + other.data, (self, other), (1.0, 1.0), "+")
        ### END SOLUTION

    def __mul__(self, other: "Value | float") -> "Value":
        ### BEGIN SOLUTION
        other = as_value(other)
        return Value(self.data * other.data, (self, other), (other.data, self.data), "×")
        ### END SOLUTION

    def __pow__(self, exponent: float) -> "Value":
        ### BEGIN SOLUTION
        local = exponent * self.data ** (exponent - 1) if exponent else 0.0
        return Value(self.data**exponent, (self,), (local,), f"**{exponent:g}")
        ### END SOLUTION

    def exp(self) -> "Value":
        ### BEGIN SOLUTION
        result = math.exp(self.data)
        return Value(result, (self,), (result,), "exp")
        ### END SOLUTION

    def tanh(self) -> "Value":
        ### BEGIN SOLUTION
        result = math.tanh(self.data)
        return Value(result, (self,), (1 - result**2,), "tanh")
        ### END SOLUTION

    def relu(self) -> "Value":
        ### BEGIN SOLUTION
        return Value(max(self.data, 0.0), (self,), (float(self.data > 0),), "relu")
        ### END SOLUTION

    # What follows from the above.
    def __neg__(self) -> "Value":
        return self * -1

    def __sub__(self, other: "Value | float") -> "Value":
        return self + -other

    def __truediv__(self, other: "Value | float") -> "Value":
        return self * other**-1

    def __rsub__(self, other: float) -> "Value":
        return -self + other

    def __rtruediv__(self, other: float) -> "Value":
        return self**-1 * other

    __radd__, __rmul__ = __add__, __mul__


def as_value(number: "Value | float") -> "Value":
    """A number as a leaf; a Value as it is."""
    return number if isinstance(number, Value) else Value(number)


# %% check="Value"

# %% [markdown]
# Your numbers now write their own graph, here of $y = x^2$ and $L = 2y$ at $x = 3$. The drawing reads only your `data`, `parents`, `locals` and `op`.

# %%
with your("Value"):
    L = Value(3.0) ** 2 * 2
figures.computation_graph(autograd.graph_of(L), locals_only=True)

# %% [markdown]
# Along the path it is $2 \cdot 6 = 12$, and indeed $L = 2x^2$ has the slope $4x$. In which order does code go? A node may pass on its gradient once it is **complete**: when every node that uses it has passed on its own gradient. Here $a$ reaches $L$ directly and by a detour:
#
# ```
# x ──▶ a ──▶ b ──▶ c ──▶ L
#       └─────────────────▲
# ```
#
# If you go back from $L$ to all nodes at distance one, $a$ passes its half-finished gradient to $x$, and the part that arrives later through $b$ is lost. You need a **topological** order, every node after all its parents, read from its end. Two ways:
#
# - **count the uses**: when a node passes its gradient on, its parents' counts go down by one. A node whose count reaches 0 is ready. PyTorch's engine does this;
# - **go deep first**: from the end, follow each parent as far as possible, and list a node once all its parents are listed.
#
# Both visit every edge once: a backward pass costs a small multiple of the forward pass (Griewank & Walther, 2008).

# %% [markdown]
# ### Exercise 2 · The sweep  (2 points · 10 min · ●●)
#
# `backpropagate(end)` fills in `grad`: 1 for `end`, and for every node that `end` depends on the derivative of `end` with respect to it. It is called once in a graph, and all gradients are 0 before. A node that `end` does not depend on keeps its 0. A chain of 10,000 nodes must work without recursion, at any recursion limit, and so must forty fan-outs in a row, a trillion paths. No `torch`, no `graphlib`. The check uses the course's nodes.


# %% exercise="backpropagate"
def backpropagate(end) -> None:
    """Set the grad of `end`, and of every node that it depends on; a node has data, grad, parents and locals."""
    ### BEGIN SOLUTION
    uses, seen, waiting = Counter(), {end}, [end]
    while waiting:
        for parent in waiting.pop().parents:
            uses[parent] += 1
            if parent not in seen:
                seen.add(parent)
                waiting.append(parent)
    end.grad, ready = 1.0, [end]
    while ready:
        node = ready.pop()
        for number, parent in enumerate(node.parents):
            parent.grad += node.grad * node.locals[number]
            uses[parent] -= 1
            if uses[parent] == 0:
                ready.append(parent)
    ### END SOLUTION


# %% check="backpropagate"

# %% [markdown]
# Walk through a graph of your own. Two paths of $x$ run through $h$: add up on paper what will arrive.

# %%
with your("Value", "backpropagate"):
    x, k = Value(0.5), Value(-2.0)
    h = (x * k).tanh()
    y = h * h + x
    backpropagate(y)
x.name, k.name, h.name, y.name = "x", "k", "h", "y"
figures.GraphPlayer(autograd.graph_of(y, parameters=[k]))

# %% [markdown]
# One formula runs on your numbers and on torch's:


# %%
def formula(a, b):
    return (a * b).tanh() * a - (a.exp() / (b**2 + 1)).relu()


s = torch.tensor([0.7, -1.3], dtype=torch.float64, requires_grad=True)
formula(*s).backward()
with your("Value", "backpropagate"):
    a, b = Value(0.7), Value(-1.3)
    backpropagate(formula(a, b))
print(f"here {a.grad:.12f} and {b.grad:.12f}, torch's {s.grad[0]:.12f} and {s.grad[1]:.12f}")

# %% [markdown]
# Does it train? The smallest task that a line cannot solve: of two switches, answer $+1$ if exactly one is on, else $-1$. The network $\hat y = v \cdot \tanh(W x + b) + c$ with four hidden numbers has 17 parameters, here of your type. Do the four answers become $-1, +1, +1, -1$?

# %%
with your("Value", "backpropagate"):
    network = Switches(Value)
    for step in range(101):
        loss = network.loss()
        backpropagate(loss)
        for parameter in network.parameters:  # a step against the gradient, and 0 for the next sweep
            parameter.data, parameter.grad = parameter.data - 0.1 * parameter.grad, 0.0
        if step % 25 == 0:
            print(f"step {step:3}: loss {loss.data:.4f}, answers", *(f"{answer:+.2f}" for answer in network.answers))

# %% [markdown]
# One more loss. A language model gives each word a score; $p$ is the softmax of the scores, and the loss is $-\log p$ of the right word, here the first of three. What reaches the scores?

# %%
with your("Value", "backpropagate"):
    scores = [Value(score) for score in (2.0, 1.0, -1.0)]
    powers = [score.exp() for score in scores]
    total = powers[0] + powers[1] + powers[2]
    p, loss = powers[0] / total, Value(0.0)
    loss.data, loss.parents, loss.locals = -math.log(p.data), (p,), (-1 / p.data,)  # a seventh operation
    backpropagate(loss)
for score, power in zip(scores, powers, strict=True):
    print(f"probability {power.data / total.data:.4f}, gradient {score.grad:+.4f}")

# %% [markdown]
# **The probability, minus 1 at the right word.** It is so for all scores $s_j$: for the right word $r$, $-\log p_r = \log \sum_k e^{s_k} - s_r$. The first term has the derivative $e^{s_j} / \sum_k e^{s_k} = p_j$, the second $-1$ if $j = r$.
#
# ## 4 · How would you know?
#
# A gradient may be wrong and look fine; a network then trains, only worse. To check one, nudge an input up by $h$, then down by $h$:
#
# $$f'(x) \approx \frac{f(x + h) - f(x - h)}{2h}.$$
#
# For $x^3$ at 2 with $h = 0.1$: $(9.261 - 6.859)/0.2 = 12.01$. The truth is 12. This **central difference** is off by a multiple of $h^2$; the one-sided $(f(x+h) - f(x))/h = 12.61$, by a multiple of $h$.

# %% [markdown]
# ### Exercise 3 · Numeric gradient  (3 points · 8 min · ●●)
#
# `f` takes a tensor like `x` and returns one number as a tensor. Return the central difference for each element of `x`, in the shape and dtype of `x`. Compute in float64, whatever the dtype of `x`, and leave `x` itself as it is.


# %% exercise="numeric_gradient"
def numeric_gradient(f, x: Tensor, step: float = 1e-5) -> Tensor:
    """The gradient of f at x by central differences, one element at a time."""
    ### BEGIN SOLUTION
    point = x.double().flatten()
    slopes = torch.empty_like(point)
    for i in range(len(point)):
        above, below = point.clone(), point.clone()
        above[i] += step
        below[i] -= step
        slopes[i] = (f(above.reshape(x.shape)) - f(below.reshape(x.shape))) / (2 * step)
    return slopes.reshape(x.shape).to(x.dtype)
    ### END SOLUTION


# %% check="numeric_gradient"

# %% [markdown]
# So why not a really small step?

# %%
predict("smaller_step")

# %%
explore(figures.gradient_check_error, step=Log(1e-12, 1.0), difference=["central", "forward"])

# %% [markdown]
# On the right slope of the valley the *formula* errs, by $h^2$. On the left *rounding* errs: $f(x+h)$ and $f(x-h)$ agree in almost all their digits, and the subtraction leaves the least reliable ones, an error of about $\varepsilon/h$ (notebook 01). Both are equal near $h = \sqrt[3]{\varepsilon}$: about 6e-6 in fp64, and 0.005 in fp32 (Press et al., 2007, §5.7). So a gradient check runs in fp64.
#
# Each parameter needs two forward passes, so differences are for *checking*. From here on your `numeric_gradient` judges each of your backward passes, before `check` does.
#
# ## 5 · From numbers to tensors
#
# A tensor is a bundle of nodes, and a gradient has the **shape of what it is the gradient of**. One layer, $u = Ax$ and $y = \sigma(u + b)$, one index at a time:
#
# $$u_i = \sum_j A_{ij} x_j \quad\Rightarrow\quad \frac{\partial u_i}{\partial A_{ij}} = x_j, \qquad \frac{\partial u_i}{\partial x_j} = A_{ij}.$$
#
# $A_{ij}$ is used once. But $x_j$ is used by *every* $u_i$: fan-out, so its gradient is a sum over $i$. And $b$ gets the gradient of $u$ unchanged. Does your `numeric_gradient` agree about $x$?

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
A, x, b, y_grad = (torch.randn(n, dtype=torch.float64) for n in ((3, 4), (4,), (3,), (3,)))
s = torch.sigmoid(A @ x + b)
u_grad = y_grad * s * (1 - s)  # σ' = σ(1 − σ)
A_grad, x_grad = A * 0, x * 0
for i in range(3):
    for j in range(4):
        A_grad[i, j] += u_grad[i] * x[j]
        x_grad[j] += u_grad[i] * A[i, j]
with your("numeric_gradient"):
    numeric = numeric_gradient(lambda x: torch.sigmoid(A @ x + b) @ y_grad, x)
print(f"they differ by up to {(x_grad - numeric).abs().max().item():.0e}")

# %% [markdown]
# $A$'s gradient is an outer product, $\nabla_u x^\top$, and $x$'s a product with the transpose, $A^\top \nabla_u$. A layer of a model has its examples as rows: $y = xW$ with shapes $(B, D)\,(D, K) \to (B, K)$, and $dy$ for the gradient that arrives. All examples share the weight: fan-out. What are $dW$ and $dx$?
#
# > **Spot the slip.** A colleague writes $dW$ for $y = xW$ in loops:
# >
# > ```python
# > for b in range(B):
# >     for k in range(y.shape[1]):
# >         for d in range(w.shape[1]):
# >             w.grad[b, d] += y.grad[b, k] * x[b, d]
# > ```
# >
# > Two things are wrong. With $B = 3$, $D = 5$, $K = 2$ the loops run without an error, and do 12 of the 30 steps they should do. With $B = 7$ they crash. Find both.

# %% [markdown]
# ### Exercise 4 · The backward pass of a product  (3 points · 8 min · ●●)
#
# For `y = x @ w`, given `dy`, return `[dx, dw]`. `x` may have any number of axes in front of the last one, or none; all of them share `w`. No autograd.


# %% exercise="backward_matmul"
def backward_matmul(x: Float[Tensor, "... d"], w: Float[Tensor, "d k"], dy: Float[Tensor, "... k"]) -> list[Tensor]:
    """The gradients [dx, dw] of y = x @ w."""
    ### BEGIN SOLUTION
    dx = einsum(dy, w, "... k, d k -> ... d")
    dw = einsum(x, dy, "... d, ... k -> d k")
    return [dx, dw]
    ### END SOLUTION


# %%
with your("numeric_gradient"):
    judge("backward_matmul", numeric_gradient)

# %% check="backward_matmul"

# %% [markdown]
# $$dW = x^\top\, dy, \qquad dx = dy\; W^\top$$
#
# If $w$ is not square, the shapes allow no other products. (The colleague needs `w.grad[d, k]`, and a loop over $d$ that ends at `w.shape[0]`.) The bill: a product costs $2BDK$ FLOPs (a multiplication and an addition for each triple), its backward pass twice that.
#
# Two layers call it twice; a ReLU between them is a gate:


# %%
def two_layers(x, w1, w2, dy):
    h = x @ w1
    dz, dw2 = backward_matmul(h.relu(), w2, dy)
    dx, dw1 = backward_matmul(x, w1, dz * (h > 0))
    return dx, dw1, dw2


with your("numeric_gradient", "backward_matmul"):
    judge(two_layers, numeric_gradient)

# %% [markdown]
# And a batch? Its loss is a mean. The $1/n$ enters once, with the first gradient, and every later one inherits it. If you cut a batch into pieces and add up their gradients, $n$ is the size of the *whole* batch.
#
# ## 6 · What has to be remembered
#
# The backward pass asks for values of the forward pass. For $h = xW_1$, $z = \operatorname{relu}(h)$, scores $zW_2$:
#
# | gradient | needs | keep |
# | --- | --- | --- |
# | of the scores: $(p - 1_{\text{right}})/n$ | the probabilities $p$ | $n \times V$ |
# | $dW_2 = z^\top d(\text{scores})$ | $z$ | as large as $z$ |
# | $dh = dz \odot (z > 0)$ | $z$ again | nothing |
# | $dW_1 = x^\top dh$ | **the input $x$** | as large as $x$ |
#
# The first is the largest: $n$ words times a vocabulary of $V$.

# %%
predict("peak_of_the_loss")

# %% [markdown]
# At PyTorch's peak three matrices of this size are alive. The formulas of the table, written for all words at once, need four: log-probabilities, probabilities, a one-hot matrix, and their difference.
#
# ## 7 · Your own training step
#
# The same model in full predicts a word from the 8 before it. Their `ids` pick 8 rows of `table`, joined to one row $x$; $z = \operatorname{relu}(x \cdot \text{first})$; the scores are $z \cdot \text{head}^\top$; the loss is the mean of $-\log p$ of the right words `y`. Measured with $n = 2{,}048$, $V = 8{,}192$, `table` $(V, 16)$, `first` $(128, 64)$ and `head` $(V, 64)$ in float32. The parameters take 2.53 MiB, and the gradients as much again: that is the floor.

# %% [markdown]
# ### Exercise 5 · Your own training step  (5 points · 18 min · ●●●)
#
# Return the loss, and a dict with the gradients of `table`, `first` and `head`, in their dtype, without autograd: PyTorch's numbers, with less memory.
#
# | beyond the parameters | peak | operators of torch |
# | --- | --- | --- |
# | PyTorch's autograd | 193.5 MiB | 33 |
# | the formulas for all words at once | 258.0 MiB | 30 |
# | **finish line** | 4 MiB | 5,000 |
#
# An operator is one call that torch runs, such as a product or a slice; thousands of tiny ones cost time. Points: 1 for right numbers; one more each for a peak of at most 100, 16, 8 and 4 MiB, **each with at most 5,000 operators**.
#
# An id may occur many times: `gradient.index_add_(0, ids, rows)` adds each of `rows` to the row that `ids` names. Scores of ±1,000 and float64 must work. The measured call runs in `torch.inference_mode`, in one thread, on new numbers. Return new tensors, and stay in torch: no NumPy, no `tolist` (`item` is fine).


# %% exercise="my_step"
def my_step(
    table: Float[Tensor, "v w"],
    first: Float[Tensor, "c*w h"],
    head: Float[Tensor, "v h"],
    ids: Int[Tensor, "n c"],
    y: Int[Tensor, "n"],
) -> tuple[float, dict[str, Tensor]]:
    """The mean of −log p over n words, and its gradients: {"table": ..., "first": ..., "head": ...}."""
    ### BEGIN SOLUTION
    grads = {"table": torch.zeros_like(table), "first": torch.zeros_like(first), "head": torch.zeros_like(head)}
    loss = 0.0
    for i, right in zip(ids.split(32), y.split(32), strict=True):
        x = rearrange(table[i], "n c w -> n (c w)")
        z = (x @ first).relu()
        d = z @ head.T
        row = torch.arange(len(right))
        lse = d.logsumexp(-1)
        loss += (lse - d[row, right]).sum().item() / len(y)
        d.sub_(lse[:, None]).exp_()
        d[row, right] -= 1
        d /= len(y)
        grads["head"].addmm_(d.T, z)
        dh = (d @ head) * (z > 0)
        del d  # or it is alive beside the next one
        grads["first"].addmm_(x.T, dh)
        grads["table"].index_add_(0, i.flatten(), rearrange(dh @ first.T, "n (c w) -> (n c) w", c=i.shape[1]))
    return loss, grads
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because it shows seconds"]
print_step(by_autograd)
with your("my_step"):
    print_step(my_step)
with your("numeric_gradient"):
    judge("my_step", numeric_gradient)

# %% check="my_step"

# %% [markdown]
# Does it train? 300 steps on the bytes of stories ($V = 128$), with autograd and with `my_step`, from the same numbers.

# %%
predict("two_trainings")

# %% tags=["nbval-ignore-output", "because the last digits differ between processors"]
by_torch = train(by_autograd)
with your("my_step"):
    by_hand = train(my_step)
print(*(f"after {k:3} steps: autograd {by_torch[k]:.3f}, `my_step` {by_hand[k]:.3f}" for k in (0, 100, 200)), sep="\n")

# %% [markdown]
# The same numbers, up to rounding: autograd is your bookkeeping, done for you.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | how does a gradient travel? | along a path the local derivatives multiply, over paths the products add |
# | in which order? | a node passes its gradient on once it is complete |
# | how is it checked? | central differences in fp64, with $h \approx 6 \cdot 10^{-6}$ |
# | backward of $y = xW$? | $dW = x^\top dy$, $dx = dy\,W^\top$: twice the FLOPs |
# | $-\log p$, backwards? | $p$, minus 1 at the right word |
# | what must be kept? | inputs of products, results of exp, tanh and relu |
#
# ## Check yourself
#
# 1. What is in `.grad` after two calls of `loss.backward()` without clearing it?
# 2. Your check of a float32 layer is off by 0.1 %. Is the layer wrong?
#
# <details><summary>Answers</summary>
#
# 1. The sum of both gradients: hence `zero_grad()`.
# 2. You cannot tell. Check it in float64.
#
# </details>

# %% tags=["hide-input"]
line, fan = autograd.example("linear regression"), autograd.example("fan-out")
assert {node.label: node.grad for node in line.nodes}["w₁"] == -24 == 2 * (0 + 2 * 3 - 10) * 3
place = {node.label: index for index, node in enumerate(fan.nodes)}
assert fan.nodes[place["x"]].grad == 44 == 1 * 3 * 4 + 1 * 8 * 4
assert list(dict.fromkeys(step.grads[place["y"]] for step in autograd.steps_of(fan))) == [0, 8, 11]
assert round((2.1**3 - 1.9**3) / 0.2, 9) == 12.01 and round((2.1**3 - 8) / 0.1, 9) == 12.61
assert [f"{eps ** (1 / 3):.0e}" for eps in (2.0**-52, 2.0**-23)] == ["6e-06", "5e-03"]
assert len(Switches(autograd.Value).parameters) == 4 * 3 + 4 + 1 == 17
assert (3 * 2 * 2, 3 * 5 * 2) == (12, 30)  # B·K·K steps of the loop in section 5, B·D·K of the right one
parameters = 8192 * 16 + 8 * 16 * 64 + 8192 * 64
assert round(parameters * 4 / 2**20, 2) == 2.53 and 2048 * 8192 * 4 / 2**20 == 64 and 193.5 / 4 > 48

# %% [markdown]
# ## Further
#
# Each block needs the core, and no other block. Read them in any order.

# %% [markdown]
# ### A · The backward pass of any graph  (16 min)
#
# Your sweep without any mathematics left in it: the graph is data.

# %% [markdown]
# ### Exercise 6 · The backward pass of any graph  (3 points · 12 min · ●●●)
#
# `graph[node]` holds the node's parents, each with the local derivative $\partial\,\text{node}/\partial\,\text{parent}$; a leaf has an empty dictionary. **The nodes are listed in no particular order.** Return the gradient of `end` with respect to every node of the graph. It is 0 for a node that `end` does not depend on.
#
# A function that calls itself stops at Python's recursion limit. One that follows each path separately does not stop at all: forty fan-outs in a row are a trillion paths. Use a loop that visits every edge once (the chains have 12,000 nodes), and neither `graphlib` nor autograd.


# %% exercise="backward_sweep"
def backward_sweep(graph: dict[str, dict[str, float]], end: str) -> dict[str, float]:
    """The gradient of `end` for every node: {"L": 1.0, "y": 2.0, "x": 12.0} for {"x": {}, "y": {"x": 6.0}, "L": {"y": 2.0}}."""
    ### BEGIN SOLUTION
    grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
    uses = Counter(parent for parents in graph.values() for parent in parents)
    ready = [node for node in graph if uses[node] == 0]
    while ready:
        node = ready.pop()
        for parent, local in graph[node].items():
            grads[parent] += grads[node] * local
            uses[parent] -= 1
            if uses[parent] == 0:
                ready.append(parent)
    return grads
    ### END SOLUTION


# %% check="backward_sweep"

# %% [markdown]
# The fan-out graph of section 2 as data, and your gradients in its boxes:

# %%
fan_graph = autograd.example("fan-out")
edges = {node.label: {} for node in fan_graph.nodes}
for edge in fan_graph.edges:
    edges[fan_graph.nodes[edge.child].label][fan_graph.nodes[edge.parent].label] = edge.local
with your("backward_sweep"):
    found = backward_sweep(edges, "L")
figures.computation_graph(
    replace(fan_graph, nodes=tuple(replace(node, grad=found[node.label]) for node in fan_graph.nodes))
)

# %% [markdown]
# ### B · Graphs, two wrong engines, and a second derivative  (7 min)
#
# The smallest chain: $y = x^2$ and $L = 2y$.

# %%
predict("two_steps_back")

# %% [markdown]
# Now find the inputs, the parameters and the assignments in other graphs; then tick `gradients`. In the softmax of two words, the gradients of the scores $a$ and $b$ are $p - 1$ and $1 - p$, for $p$ the probability of the right word.

# %%
explore(figures.computation_graph, graph=list(autograd.EXAMPLES), gradients=False)

# %% [markdown]
# What does an engine draw that forgets the plus sign? One of the two wrong lines below. Where do all three agree?

# %%
explore(figures.two_paths, x=(-2.0, 2.0, 0.1))

# %% [markdown]
# Torch can do one thing that your engine cannot: differentiate a gradient. With `create_graph=True` the backward pass writes a graph, too. What is the second derivative of $x^3$ at 2?

# %%
point = torch.tensor(2.0, requires_grad=True)
[slope] = torch.autograd.grad(point**3, point, create_graph=True)
[curvature] = torch.autograd.grad(slope, point)
print(f"first derivative {slope.item()}, second derivative {curvature.item()}")

# %% [markdown]
# The price: both graphs, with all that they keep, stay in memory until you drop `slope`. (Yours cannot do it, because its local derivatives are plain numbers. If they were `Value`s, it could.)
#
# **In real models.** PyTorch stores no local derivatives while it runs forward. Each operation leaves a *recipe* (`grad_fn`) and the tensors that the recipe will need, and computes the derivatives when the gradient arrives (Paszke et al., 2019). For a matrix product the full table of local derivatives, the **Jacobian**, would be far larger than the matrices. A recipe multiplies the arriving gradient by it without writing it down: a *vector-Jacobian product* (VJP). Section 5 showed how.

# %% [markdown]
# ### C · Why a square?  (4 min)
#
# A language model's loss is $-\log p_\text{model}(y \mid x, w)$: small where the model gave the right answer a high probability. So where does the $z^2$ come from? Suppose the model's answer is a Gaussian around $\hat y$ with standard deviation $\sigma$. Then
#
# $$-\log p(y) = \frac{(\hat y - y)^2}{2\sigma^2} + \log\big(\sigma\sqrt{2\pi}\big).$$

# %%
predict("gaussian_slope")

# %%
explore(figures.gaussian_loss, error=(-2.0, 2.0, 0.1), sigma=(0.6, 2.0, 0.01))

# %% [markdown]
# The two agree up to a factor $1/2\sigma^2$ and a constant. For which $\sigma$ does the factor disappear? (Move the slider until both slopes agree: $\sigma = 1/\sqrt2 \approx 0.71$.) For a language model, which chooses among words, $-\log p$ is no square at all: section 3 has one with three words.

# %% [markdown]
# ### D · Around the product  (11 min)

# %%
explore(figures.three_matmuls, B=(1, 12), D=(1, 12), K=(1, 12))

# %% [markdown]
# Now with a non-linearity around the product, as almost everywhere in a network: $z' = \phi(zW)$, with $z$ of shape $(\dots, I)$ and $W$ of shape $(I, J)$. Before you look: indices are a good place to slip.

# %%
predict("index_of_the_slope")

# %% [markdown]
# $$\frac{\partial L}{\partial W_{ij}} = \sum_d \frac{\partial L}{\partial z'_{dj}}\; \phi'\big((zW)_{dj}\big)\; z_{di}, \qquad \frac{\partial L}{\partial z_{di}} = \sum_j \frac{\partial L}{\partial z'_{dj}}\; \phi'\big((zW)_{dj}\big)\; W_{ij}.$$
#
# A product alone takes $2BDK$ FLOPs, and its backward pass twice that. And with $\phi$ around it?

# %%
predict("backward_over_forward")

# %% [markdown]
# The first two factors, $\partial L/\partial z'_{dj}$ and $\phi'(\cdot)_{dj}$, have $B \times J$ entries each, and so has their product: as good as free next to the $B \times I \times J$ of a matrix product. Torch's own counter agrees:

# %%
from lmcourse.accounting.counter import count_flops

z, W = torch.randn(64, 128, requires_grad=True), torch.randn(128, 256, requires_grad=True)
print(count_flops(lambda: torch.tanh(z @ W), backward=True).parts)

# %% [markdown]
# ### Exercise 7 · The bill  (1 point · 4 min · ●●)
#
# Two linear layers: `h1 = x @ w1`, `h2 = h1 @ w2`, `loss = h2.pow(2).mean()`, with $B = 64$ rows, `w1` of shape $(128, 128)$ and `w2` of shape $(128, 32)$. Both weights require a gradient; `x` is data.
#
# How many FLOPs do the matrix products of the backward pass take in all?

# %% exercise="two_layer_backward_flops"
two_layer_backward_flops = None  # a number in place of None
### BEGIN SOLUTION
two_layer_backward_flops = 4 * 64 * 128 * 32 + 2 * 64 * 128 * 128
### END SOLUTION

# %% check="two_layer_backward_flops"

# %% [markdown]
# "The backward pass costs twice the forward pass" would give $4BDK + 4BD^2$. It holds for the second layer, where half of it is the gradient of `h1`. In the first layer nothing needs the gradient of `x`. With `x.requires_grad_()` that product would run, too.
#
# **In real models.** Forward $2$, backward $4$, together $6$ FLOPs per parameter and token: the famous $6ND$ (Kaplan et al., 2020). The exception you just met does not occur in a language model: its first matrix reads an *embedding*, which is learned and needs its gradient. (Notebook 15 counts the rest.) Torch's counter agrees:

# %%
embedding, w1 = torch.randn(1000, 64, requires_grad=True), torch.randn(64, 32, requires_grad=True)
ids = torch.randint(1000, (64,))
print(count_flops(lambda: embedding[ids] @ w1, backward=True).parts)

# %% [markdown]
# ### E · A network with a batch  (14 min)
#
# A network with one hidden layer, in the notation of textbooks, where one example $x$ is a column.
#
# | forward | shapes | to find on the way back |
# | --- | --- | --- |
# | $h = W_1 x$ | $(p, d)\,(d) \to (p)$ | $dW_1 = dh\; x^\top$ |
# | $z = \sigma(h)$ | $(p)$ | $dh = dz \odot \sigma'(h)$, element by element |
# | $\hat y = W_2 z$ | $(q, p)\,(p) \to (q)$ | $dW_2 = d\hat y\; z^\top$ and $dz = W_2^\top\, d\hat y$ |
# | $f = L(\hat y)$ | a number | $d\hat y = \nabla L(\hat y)$ |
#
# Read the left column downwards and the right one upwards. And for $B$ examples, $f = \frac1B \sum_b L(\hat y_b)$? Each sends a gradient into the shared weights, and they add up. What does the $\frac1B$ do?

# %%
predict("twice_the_batch")

# %%
explore(figures.batch_gradients, batch=(1, 64))

# %% [markdown]
# A colleague divides by $B$ in $d\hat y$ and again in $dW_1$, "because each is a mean". Another divides nowhere, because the gradients "add up". Before you write yours: how often does a $\frac1B$ belong in each gradient?

# %% [markdown]
# ### Exercise 8 · A batch  (3 points · 7 min · ●●)
#
# Examples are rows now: `x` is $(B, d)$ and `y` is $(B, q)$, the weights are as before, $h = x W_1^\top$ and $\hat y = z W_2^\top$. Here $L(\hat y) = \tfrac12 \lVert \hat y - y \rVert^2$ and $\sigma$ is the sigmoid; $h = \pm 1000$ must work. With one example, $B = 1$, these are the gradients of the table. Return a dictionary with the gradients of the *mean* loss: `"y_hat"` of shape $(B, q)$, `"w1"` and `"w2"`. No autograd.


# %% exercise="backward_batch"
def backward_batch(
    x: Float[Tensor, "b d"], w1: Float[Tensor, "p d"], w2: Float[Tensor, "q p"], y: Float[Tensor, "b q"]
) -> dict[str, Tensor]:
    """The gradients of the mean over the batch of ½‖ŷ − y‖²."""
    ### BEGIN SOLUTION
    z = torch.sigmoid(x @ w1.T)
    dy_hat = (z @ w2.T - y) / len(x)
    dw2 = einsum(dy_hat, z, "b q, b p -> q p")
    dh = einsum(dy_hat, w2, "b q, q p -> b p") * z * (1 - z)
    dw1 = einsum(dh, x, "b p, b d -> p d")
    return {"y_hat": dy_hat, "w1": dw1, "w2": dw2}
    ### END SOLUTION


# %%
with your("numeric_gradient"):
    judge("backward_batch", numeric_gradient)

# %% check="backward_batch"

# %% [markdown]
# Five steps of training with it, and the loss falls:

# %%
torch.manual_seed(0)
points, targets, w1, w2 = (torch.randn(n) for n in ((64, 3), (64, 2), (8, 3), (2, 8)))
with your("backward_batch"):
    for _ in range(5):
        y_hat = torch.sigmoid(points @ w1.T) @ w2.T
        print(f"loss {((y_hat - targets) ** 2).sum().item() / 2 / 64:.2f}")
        gradients = backward_batch(points, w1, w2, targets)
        w1, w2 = w1 - gradients["w1"], w2 - 0.2 * gradients["w2"]

# %% [markdown]
# **In real models.** A batch that does not fit into memory is cut into micro-batches whose gradients are added up in `.grad`. Several training libraries took the mean over the words of each micro-batch and then the mean of the means, which gives a word more weight the shorter its text is. That was reported in 2021, and fixed in October 2024 (Unsloth, 2024, *Bugs in LLM training*; Hugging Face, 2024, *Fixing gradient accumulation*).

# %% [markdown]
# ### F · Through a norm  (21 min)
#
# So far each output depended on its inputs through a product. A normalisation is different: *every* feature of a row moves the mean and the spread, and through them every output. How do you differentiate that?
#
# As always: in atomic steps. For one row $x$ of $d$ features,
#
# $$\mu = \frac1d \sum_i x_i, \quad s = \sqrt{\frac1d \sum_i (x_i - \mu)^2 + \epsilon}, \quad \hat x = \frac{x - \mu}{s}, \quad y = \gamma \odot \hat x + \beta.$$
#
# There are three paths from $x_i$ to the outputs: directly, through $\mu$, and through $s$. Write $g = dy \odot \gamma$ for the gradient that reaches $\hat x$.
#
# Before you compute it:

# %%
predict("norm_row_sum")

# %% [markdown]
# Each path contributes one term, the product of its local derivatives (Ba et al., 2016, introduce the layer; the rest is the chain rule):
#
# | path | first step | second step |
# | --- | --- | --- |
# | directly | | $\partial \hat x_i/\partial x_i = 1/s$ |
# | through $\mu$ | $\partial \mu/\partial x_i = 1/d$ | $\partial \hat x_j/\partial \mu = -1/s$, for every $j$ |
# | through $s$ | $\partial s/\partial x_i = \hat x_i/d$ | $\partial \hat x_j/\partial s = -\hat x_j/s$, for every $j$ |
#
# Multiply along each path, sum over $j$ where every $\hat x_j$ is reached, and add up the three. And remember that $\gamma$ and $\beta$ are shared by all rows of all texts.

# %% [markdown]
# ### Exercise 9 · LayerNorm, backwards  (4 points · 14 min · ●●●)
#
# Return a dictionary with the gradients of `"x"`, `"gain"` ($\gamma$) and `"bias"` ($\beta$). `x` and `dy` have any number of axes in front of the features. The variance divides by $d$. No autograd, no ready-made LayerNorm.


# %% exercise="layernorm_backward"
def layernorm_backward(
    x: Float[Tensor, "... d"], gain: Float[Tensor, "d"], dy: Float[Tensor, "... d"], eps: float = 1e-5
) -> dict[str, Tensor]:
    """The gradients of y = gain · (x − μ)/s + bias with respect to x, gain and bias, given dy."""
    ### BEGIN SOLUTION
    centred = x - x.mean(-1, keepdim=True)
    s = (centred.square().mean(-1, keepdim=True) + eps).sqrt()
    normed = centred / s
    g = dy * gain
    dx = (g - g.mean(-1, keepdim=True) - normed * (g * normed).mean(-1, keepdim=True)) / s
    d_gain = einsum(dy * normed, "... d -> d")
    d_bias = einsum(dy, "... d -> d")
    return {"x": dx, "gain": d_gain, "bias": d_bias}
    ### END SOLUTION


# %%
with your("numeric_gradient"):
    judge("layernorm_backward", numeric_gradient)

# %% check="layernorm_backward"

# %% [markdown]
# The closed form, with means over the row:
#
# $$dx = \frac1s \Big( \underbrace{g}_{\text{directly}} - \underbrace{\operatorname{mean}(g)}_{\text{through } \mu} - \underbrace{\hat x \odot \operatorname{mean}(g \odot \hat x)}_{\text{through } s} \Big).$$
#
# The two subtractions say something: a LayerNorm ignores a shift and a stretch of its row, so the gradient has no part along $(1, \dots, 1)$ and, apart from $\epsilon$, none along $\hat x$. And $1/s$: a row with a large spread gets a small gradient.
#
# A norm before the head, as in most models, takes one more line on the way back:

# %% tags=["nbval-ignore-output", "because rounding differs between processors"]
inputs, w_in, w_out = (torch.randn(shape, dtype=torch.float64) for shape in ((6, 4), (4, 8), (8, 9)))
w_in.requires_grad_()
rows, gain = torch.arange(6), torch.ones(8, dtype=torch.float64)
h = inputs @ w_in
normed = torch.nn.functional.layer_norm(h.relu(), (8,), gain)
[wanted] = torch.autograd.grad(torch.nn.functional.cross_entropy(normed @ w_out, rows), w_in)
with torch.no_grad(), your("backward_matmul", "layernorm_backward"):
    d = (normed @ w_out).softmax(-1)
    d[rows, rows] -= 1
    d_normed, _ = backward_matmul(normed, w_out, d / 6)
    dz = layernorm_backward(h.relu(), gain, d_normed)["x"]
    _, dw_in = backward_matmul(inputs, w_in, dz * (h > 0))
print(f"off by up to {(dw_in - wanted).abs().max().item():.0e}")

# %% [markdown]
# Below are the gradient that arrives at one row and the one that leaves, at the same scale. Drag the offset: the row moves up as a whole, and nothing happens. Drag the spread, and the gradient shrinks.

# %%
explore(figures.layernorm_gradient, spread=Log(0.25, 4.0), offset=(-3.0, 3.0, 0.5))

# %% [markdown]
# ### G · Measure what is kept  (15 min)

# %%
predict("kept_for_backward")

# %% [markdown]
# Go through the gradients of the network in the prediction above, and underline what comes from the forward pass. (Examples are rows, $W_1$ of shape $(d, p)$ and $W_2$ of shape $(p, q)$. Its loss is the mean of all $Bq$ squares.)
#
# | gradient | needs | keep, in numbers |
# | --- | --- | --- |
# | $d\hat y = 2(\hat y - y)/Bq$ | the difference $\hat y - y$ | $Bq$ |
# | $dW_2 = z^\top d\hat y$ | $z$ | $Bp$ |
# | $dz = d\hat y\, W_2^\top$ | $W_2$, a parameter | none |
# | $dh = dz \odot z(1 - z)$ | $z$ again | none |
# | $dW_1 = x^\top dh$ | **the input $x$** | $Bd$ |
#
# $h$ is not needed, because $\sigma'$ can be written as $z(1 - z)$. An operation keeps its input or its result: the author of its backward pass *chooses*.
#
# So we predict $4(Bd + Bp + Bq)$ bytes in fp32. PyTorch lets us watch: inside `saved_tensors_hooks(pack, unpack)` it calls `pack` with every tensor that it saves and keeps what `pack` returns; `unpack` gives it back in the backward pass. Here `pack` only looks:


# %%
def look(tensor: Tensor) -> Tensor:
    print(f"kept: shape {tuple(tensor.shape)}, {tensor.dtype}")
    return tensor


a, m = torch.ones(4, 3), torch.ones(3, 2, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(look, lambda tensor: tensor):
    out = (a @ m).tanh()

# %% [markdown]
# The product keeps its input, and tanh its result. How many bytes is that? A shape does not say: several views may share one **storage**, and a small view keeps a large one alive (notebook 02). `tensor.untyped_storage()` has an address, `data_ptr()`, and a size, `nbytes()`.

# %% [markdown]
# ### Exercise 10 · Measure it  (3 points · 8 min · ●●)
#
# `forward` is a function of nothing that runs a forward pass. Run it, and return how many bytes autograd keeps for its backward pass. Count every storage once, in full, even if several saved tensors are views of it or of a part of it; leave out the storages of the `parameters`, which are there anyway. An address is used again as soon as its tensor is gone: hold on to the tensors that the hook gets until you have counted.


# %% exercise="saved_bytes"
def saved_bytes(forward, parameters: list[Tensor]) -> int:
    """The bytes that autograd keeps of a forward pass, without the parameters."""
    ### BEGIN SOLUTION
    sizes = {}

    def pack(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        sizes[storage.data_ptr()] = storage.nbytes()
        return tensor  # autograd holds on to what `pack` returns, so no address is used again

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        forward()
    known = {parameter.untyped_storage().data_ptr() for parameter in parameters}
    return sum(size for address, size in sizes.items() if address not in known)
    ### END SOLUTION


# %% check="saved_bytes"

# %% [markdown]
# Predicted, and measured by you, for the network of the table with $B = 32$, $d = 64$, $p = 128$, $q = 10$:

# %%
B, d, p, q = 32, 64, 128, 10
x, y = torch.randn(B, d), torch.randn(B, q)
w1, w2 = torch.randn(d, p, requires_grad=True), torch.randn(p, q, requires_grad=True)
with your("saved_bytes"):
    measured = saved_bytes(lambda: ((torch.sigmoid(x @ w1) @ w2 - y) ** 2).mean(), [w1, w2])
print(f"predicted {4 * B * (d + p + q):,} bytes, measured {measured:,}")

# %% [markdown]
# The activations grow with the batch; parameters do not. Where do they overtake?

# %%
explore(figures.saved_for_backward, batch=Log(1, 8192), width=Log(16, 1024))

# %% [markdown]
# **In real models.** For a large model and long texts this is the larger part of the memory. Two ways out trade it for FLOPs: *checkpointing* keeps only some activations and computes the others again on the way back (Chen et al., 2016), and FlashAttention never keeps the $T \times T$ attention weights at all (Dao et al., 2022). How much it is for a transformer, and what recomputing costs, is the subject of notebook 14.

# %% [markdown]
# ### H · Your own operation  (25 min)
#
# Your step left autograd aside. The same loss can also live inside it. For 2,048 words and a vocabulary of 32,000 the logits $z = hW^\top$ take 250 MiB in fp32, while $h$ with 64 features has half a MiB. What do the forward and backward pass of the loss need at their peak? (Section 6 had the same ratio.)

# %%
from lmcourse.accounting.live import live_bytes

torch.manual_seed(0)
h, W = torch.randn(2048, 64, requires_grad=True), torch.randn(32_000, 64, requires_grad=True)
y = torch.randint(32_000, (2048,))


def plain(h: Tensor, W: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(h @ W.T, y)


kept = saved_tensors(lambda: plain(h, W), without=[W]).total
peak = live_bytes(lambda h, W: plain(h, W).backward(), h, W).peak
print(f"plain:  keeps {kept / 2**20:6.2f} MiB, peak {peak / 2**20:4.0f} MiB")

# %% [markdown]
# In the backward pass three tensors of this size are alive at once: the log-probabilities that were kept, their gradient, and the gradient of the logits. (Notebook 14 continues from here.)
#
# None of them has to exist in one piece. The rows do not depend on each other: you can compute the logits of 128 rows, take from them what the loss needs, and throw them away. The backward pass then needs them again, and computes them again, 128 rows at a time. But autograd would keep each chunk. So you have to write the backward pass yourself.
#
# For this PyTorch has `torch.autograd.Function`: two static methods, and `apply` to call it. Here is one that computes $x^2$:


# %%
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)  # tensors for the backward pass; anything else can be an attribute of ctx
        return x * x

    @staticmethod
    def backward(ctx, upstream):
        (x,) = ctx.saved_tensors
        return upstream * 2 * x  # a gradient for each argument of forward; None for one that has none


x = torch.tensor([1.0, -3.0], dtype=torch.float64, requires_grad=True)
Square.apply(x).sum().backward()
print(x.grad)
print("gradcheck:", torch.autograd.gradcheck(Square.apply, (x,)))

# %% [markdown]
# ### Exercise 11 · A loss in chunks  (4 points · 18 min · ●●●)
#
# Write the mean cross-entropy of the logits `h @ W.T` as an operation of your own: `ChunkedCrossEntropy.apply(h, W, y, rows)`. The loss of one row with logits $z$ and right word $y$ is $\log \sum_j e^{z_j} - z_y$. Section 3 derives what reaches the logit $z_j$.
#
# - At no time are there logits, probabilities or gradients of more than a few chunks of `rows` rows, forward or backward. The last chunk may be shorter.
# - For the backward pass keep `h`, `W`, `y` and a few numbers for each row.
# - Logits of ±1000 must work. The gradient that arrives need not be 1. `h` and `W` may ask for a gradient or not.
#
# Autograd inside your operation is not allowed; any other function of torch is. `torch.autograd.gradcheck(ChunkedCrossEntropy.apply, (h, W, y, rows))` compares your gradients with differences, in float64.


# %% exercise="ChunkedCrossEntropy"
class ChunkedCrossEntropy(torch.autograd.Function):
    """The mean cross-entropy of h @ W.T for the right words y, `rows` rows of logits at a time."""

    @staticmethod
    def forward(
        ctx, h: Float[Tensor, "n d"], W: Float[Tensor, "v d"], y: Int[Tensor, "n"], rows: int
    ) -> Float[Tensor, ""]:
        ### BEGIN SOLUTION
        lse, right = h.new_empty(len(h)), h.new_empty(len(h))
        for first in range(0, len(h), rows):
            chunk = slice(first, first + rows)
            z = h[chunk] @ W.T
            lse[chunk] = z.logsumexp(-1)
            right[chunk] = z[torch.arange(len(z)), y[chunk]]
        ctx.save_for_backward(h, W, y, lse)
        ctx.rows = rows
        return (lse - right).mean()
        ### END SOLUTION

    @staticmethod
    def backward(ctx, upstream: Float[Tensor, ""]) -> tuple[Tensor | None, Tensor | None, None, None]:
        ### BEGIN SOLUTION
        h, W, y, lse = ctx.saved_tensors
        dh, dW = torch.empty_like(h), torch.zeros_like(W)
        for first in range(0, len(h), ctx.rows):
            chunk = slice(first, first + ctx.rows)
            dz = (h[chunk] @ W.T).sub_(lse[chunk, None]).exp_()
            dz[torch.arange(len(dz)), y[chunk]] -= 1
            dz *= upstream / len(h)
            dh[chunk] = dz @ W
            dW += dz.T @ h[chunk]
        return dh, dW, None, None
        ### END SOLUTION


# %% check="ChunkedCrossEntropy"

# %% [markdown]
# As in section 3, but for the mean of $n$ words: $dz = (p - e_y)/n$, the probabilities minus a 1 at the right word. Measured on the example above, in chunks of 128 rows:

# %%
with your("ChunkedCrossEntropy"):
    figures.compare_losses(plain, lambda h, W: ChunkedCrossEntropy.apply(h, W, y, 128), h, W)

# %% [markdown]
# The price is a fourth matrix product: the logits are computed twice. Wijmans et al. (2024, *Cut your losses in large-vocabulary language models*) pay it, too. *Liger Kernel* (Hsu et al., 2024) avoids it: it computes both gradients in the forward pass, chunk by chunk, and keeps them.

# %% [markdown]
# ### Check yourself, again
#
# 1. Forward mode pushes derivatives from the inputs to the outputs, along with the values. For which shape of function would it be the better choice?
# 2. Why does a residual connection, $y = x + f(x)$, help a gradient through a hundred layers? Draw the graph.
# 3. `relu` has no derivative at 0. Does that matter?
# 4. An operation multiplies by a fixed mask (dropout). What must it keep, and how many bytes per element?
# 5. A colleague writes: "The loss is $-\log p$, that is $(\hat y - y)^2$." When is that true, and up to what?
# 6. A colleague writes: "For the backward pass of the two-layer network, store $h$, $z$ and $\hat y$." What is missing, and what is too much?
# 7. A colleague counts $5BIJ$ FLOPs for the backward pass of $\phi(zW)$: two products, and one more for $\phi'$. What do you answer?
#
# <details><summary>Answers</summary>
#
# 1. For few inputs and many outputs: it needs one pass for each input, as reverse mode needs one for each output. A loss is one output of billions of inputs, the best case for reverse mode.
# 2. $x$ has two paths to $y$, and the local derivative of one is 1. Over a hundred layers there is a path on which nothing is multiplied by anything but 1.
# 3. Rarely: few floats are exactly 0. But a convention is needed, and PyTorch takes 0. (After another relu it is *often* exactly 0. Then the choice is part of the model.)
# 4. Only the mask: the local derivative is the mask itself, times $1/(1-p)$. As `torch.bool` it takes one byte per element.
# 5. If $p$ is a Gaussian of fixed width around $\hat y$, and only up to a factor and a constant (block C). For a choice among words it is not.
# 6. The input $x$ is missing: without it there is no $dW_1$. $h$ is not needed, because $\sigma' = z(1 - z)$, and of $\hat y$ only the difference $\hat y - y$.
# 7. $4BIJ$. Multiplying by $\phi'$ is element by element, $B \times J$ multiplications, and no third product.
#
# </details>
#
# ### Further reading
#
# - Linnainmaa, 1970, the thesis in which reverse mode first appears; Rumelhart, Hinton & Williams, 1986, *Learning representations by back-propagating errors*.
# - Griewank & Walther, 2008, *Evaluating Derivatives*, chapter 3.
# - Baydin et al., 2018, *Automatic differentiation in machine learning: a survey*.
# - Paszke et al., 2019, *PyTorch: an imperative style, high-performance deep learning library*.
# - Press et al., 2007, *Numerical Recipes*, §5.7, on the step of a difference.
# - In this package: `lmcourse/autograd/value.py`, a complete engine on two screens.

# %% tags=["hide-input"]
assert 4 * 64 * 128 * 32 + 2 * 64 * 128 * 128 == 3_145_728 < 4 * 64 * 128 * (32 + 128)
assert 2048 * 32_000 * 4 / 2**20 == 250 and 2048 * 64 * 4 / 2**20 == 0.5
assert (round(kept / 2**20, 1), round(peak / 2**20)) == (250.5, 750)
