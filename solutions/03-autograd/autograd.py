# %% [markdown]
# # 03 · Autograd
#
# **150 min · 12 exercises · 33 points**
#
# Training asks the same question of every parameter: if you were a little larger, would the loss go up or down, and how
# fast? You could try it out, one parameter at a time. GPT-3 has 175 billion, and each try is a pass through the whole
# model. Nobody does that. In this notebook you find out how all the answers come at once, what they cost, and build the
# machine that gives them.
#
# **You will be able to**
#
# - draw a computation graph and push gradients through it by hand, also where a value is used twice;
# - write a reverse-mode engine that survives a chain of 10,000 nodes, train a small network with it, and check any gradient without trusting it;
# - derive the backward pass of a matrix product, of a network with a batch, and of LayerNorm;
# - say what a backward pass costs in FLOPs and what it makes you keep in memory;
# - give PyTorch an operation of your own, with a backward pass that keeps almost nothing.
#
# **You need** the derivative of a product and of a chain of functions, matrix products, and a little PyTorch. Notebook 01 helps in
# section 5. No GPU.
#
# In this notebook you rebuild autograd, so your answers do not use it, except where a task measures it. They never use the package `lmcourse`.
#
# Each exercise has a cell for your answer and a check below it. Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
from collections import Counter

import torch
from einops import einsum
from jaxtyping import Float, Int
from torch import Tensor

from lmcourse import autograd
from lmcourse.accounting.saved import saved_tensors
from lmcourse.chapters.autograd import figures
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("03-autograd")

# %% [markdown]
# ## 1 · Who gets a gradient?
#
# A number to start with. What would you bet?

# %%
predict("price_of_all_gradients")

# %% [markdown]
# Now the smallest model there is: three inputs, three weights, one squared error.
#
# $$\text{loss} = \tfrac12\,(x \cdot w - 5)^2$$
#
# PyTorch computes it forward. Then `loss.backward()` goes back through the computation and leaves gradients behind. Where?

# %%
x = torch.tensor([1.0, 2.0, 3.0])
w = torch.tensor([1.0, 1.0, 1.0], requires_grad=True)
pred = x @ w
loss = 0.5 * (pred - 5).pow(2)
loss.backward()

# %%
predict("which_grads")

# %%
for name, tensor in {"x": x, "w": w, "pred": pred, "loss": loss}.items():
    kept = tensor.grad if tensor.is_leaf else None  # asking anything but a leaf only brings a warning
    print(f"{name:5} is leaf: {tensor.is_leaf!s:6} requires grad: {tensor.requires_grad!s:6} grad: {kept}")

# %% [markdown]
# By hand: the prediction is $1 + 2 + 3 = 6$, the error is 1, and the gradient with respect to $w$ is the error times $x$: $[1, 2, 3]$.
#
# A **leaf** is a tensor without a recipe: nothing that requires a gradient went into it. (So `torch.ones(3) * 2` is a leaf, too.) Gradients stay on leaves that require one, because those are what an
# optimizer changes. The gradients of everything in between were computed as well, used, and dropped. If you want to look at one, say so
# *before* the backward pass:

# %%
w.grad = None
pred = x @ w
pred.retain_grad()
loss = 0.5 * (pred - 5).pow(2)
loss.backward()
print("pred.grad =", pred.grad.item(), "  w.grad =", w.grad.tolist())

# %% [markdown]
# ### The graph
#
# What did PyTorch go back through? While it computed, it took notes: each operation, what went in, what came out. These notes are a
# **computation graph**. It cuts a formula into atomic assignments, each so simple that you know its derivative by heart.
# It has three kinds of nodes:
#
# - **inputs**: data, which stays as it is;
# - **parameters**: what training changes;
# - **compute nodes**: the results of operations, the loss last.
#
# Here is a straight line fitted to the single point $x = 3$, $y = 10$:
#
# $$u = w_1 x, \qquad \hat y = w_0 + u, \qquad z = \hat y - y, \qquad L = z^2.$$
#
# Find the inputs, the parameters and the assignments, then look at the other graphs. (Leave the box `gradients` for later: the next section is about
# it, and asks you first.)

# %%
explore(figures.computation_graph, graph=list(autograd.EXAMPLES), gradients=False)

# %% [markdown]
# ### Why a square?
#
# A language model's loss is $-\log p_\text{model}(y \mid x, w)$: small where the model gave the right answer a high
# probability. So where does the $z^2$ come from? Suppose the model's answer is a Gaussian around $\hat y$ with standard
# deviation $\sigma$. Then
#
# $$-\log p(y) = \frac{(\hat y - y)^2}{2\sigma^2} + \log\big(\sigma\sqrt{2\pi}\big).$$

# %%
predict("gaussian_slope")

# %%
explore(figures.gaussian_loss, error=(-2.0, 2.0, 0.1), sigma=(0.6, 2.0, 0.01))

# %% [markdown]
# The two agree up to a factor $1/2\sigma^2$ and a constant. For which $\sigma$ does the factor disappear? (Move the slider until both slopes agree:
# $\sigma = 1/\sqrt2 \approx 0.71$.) For a language model, which chooses among words, $-\log p$ is no square at all: that is the graph "two-word softmax" above.

# %% [markdown]
# ## 2 · Back along every edge
#
# How does $w_1$ far at the left learn what it does to $L$ far at the right?
#
# By the **chain rule**. If $L$ depends on $y$ and $y$ depends on $x$, then
#
# $$\frac{dL}{dx} = \frac{dL}{dy}\,\frac{dy}{dx}.$$
#
# The smallest case: $y = x^2$ and $L = 2y$. Going back from the end, $\partial L/\partial L = 1$, then $\partial L/\partial y = 1 \cdot 2$, then
# $\partial L/\partial x = 2 \cdot 2x = 4x$. And indeed $L = 2x^2$ has the slope $4x$.
#
# Nothing in this needed the whole formula. Each step took the gradient that had arrived and multiplied it by one **local derivative**, which
# only knows its own operation. Walk through the line fit now, forward and then backward; the slider also moves with the arrow keys.

# %%
figures.GraphPlayer("linear regression")

# %% [markdown]
# ### Exercise 1 · By hand, once  (2 points · 6 min · ●)
#
# For $u = w_1 x$, $\hat y = w_0 + u$, $z = \hat y - y$, $L = z^2$, return the gradient of $L$ with respect to `z`, `y_hat`, `u`, `w0` and
# `w1`, as a dictionary with these names. Without autograd.


# %% exercise="linear_regression_grads"
def linear_regression_grads(x: float, y: float, w0: float, w1: float) -> dict[str, float]:
    """∂L/∂(each node): {"z": -8.0, ..., "w1": -24.0} for x = 3, y = 10, w0 = 0, w1 = 2."""
    ### BEGIN SOLUTION
    z = 2 * (w0 + w1 * x - y)
    y_hat = z
    u = y_hat
    return {"z": z, "y_hat": y_hat, "u": u, "w0": y_hat, "w1": u * x}
    ### END SOLUTION


# %% check="linear_regression_grads"
check(linear_regression_grads)
### BEGIN HIDDEN TESTS
check(linear_regression_grads, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ### Two ways to the end
#
# So far each node was used once. What if a node is used twice? That is called **fan-out**, and it is the normal case: a weight is used by
# every example, and in a language model by every word.

# %%
predict("both_paths")

# %% [markdown]
# A small push on $y$ moves $u$ *and* $v$, and both move $L$. Their effects add up. That is the chain rule in several variables:
#
# $$\frac{d}{dx} f\big(g_1(x), \dots, g_M(x)\big) = \sum_{m=1}^{M} \frac{\partial f}{\partial g_m}\,\frac{d g_m}{dx}.$$
#
# **Along a path multiply, over paths add.** In code the sum is a single character: gradients start at 0 and arrive with `+=`.

# %%
figures.GraphPlayer("fan-out")

# %% [markdown]
# In the player, stop at $y$: its gradient changes twice, from 0 to 8 and then to 11, and only then is it passed on to $x$. The order
# matters: first $y(x)$, then $u(y)$ and $v(y)$, then $L(u, v)$; and backward the other way round.
#
# (Go back to the graphs of section 1 and tick `gradients`. In the softmax of two words, the gradients of the scores $a$ and $b$ are $p - 1$ and $1 - p$, for $p$ the
# probability of the right word. You will meet this pair again.)
#
# What does an engine draw that forgets the plus sign? One of the two wrong lines below. Where do all three agree?

# %%
explore(figures.two_paths, x=(-2.0, 2.0, 0.1))

# %% [markdown]
# ## 3 · An order that always works
#
# With eight nodes you see in which order to go. A model has millions. What is the rule?
#
# A node may pass on its gradient once it is **complete**: when every node that uses it has passed on its own gradient. Look at this
# graph, in which $a$ reaches the end $L$ directly and by a detour:
#
# ```
# x ──▶ a ──▶ b ──▶ c ──▶ L
#       └─────────────────▲
# ```
#
# If you go back from $L$ to all nodes at distance one, $a$ passes its half-finished gradient to $x$. The part that arrives
# later through $b$ is lost. An order in which every node comes after all its parents is called **topological**; the
# backward pass needs one, read from its end. Two ways to find it:
#
# - **count the uses**: each node knows how many others use it. When a node passes its gradient on, its parents' counts go down by one.
#   A node whose count reaches 0 is ready. PyTorch's engine works like this;
# - **go deep first**: from the end, follow each parent as far as possible, and list a node once all its parents are listed.
#
# Both visit every edge once. So the backward pass costs a small constant times the forward pass, however many parameters there are
# (Griewank & Walther, 2008, call it the cheap gradient principle).
#
# ### Exercise 2 · The backward pass of any graph  (3 points · 12 min · ●●●)
#
# Now without any mathematics left in it: the graph is data. `graph[node]` holds the node's parents, each with the local derivative
# $\partial\,\text{node}/\partial\,\text{parent}$; a leaf has an empty dictionary. **The nodes are listed in no particular order.** Return the gradient
# of `end` with respect to every node of the graph. It is 0 for a node that `end` does not depend on.
#
# A function that calls itself stops at Python's recursion limit. One that follows each path separately does not stop at all: forty fan-outs
# in a row are a trillion paths. Use a loop that visits every edge once (chains of 12,000 nodes are graded), and neither `graphlib` nor autograd.


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
check(backward_sweep)
### BEGIN HIDDEN TESTS
check(backward_sweep, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# ## 4 · An engine
#
# Who writes down the graph? Nobody wants to. The trick is to let the *computation* write it, with a number that is a bit more than a
# number: when two of them are added, the result remembers its parents.
#
# ### Exercise 3 · Local derivatives  (2 points · 8 min · ●●)
#
# Write the operations, for now without a backward pass. Each returns a new `Value` with its result in `data`, the nodes it was computed from in `parents`
# (in the order of the operation, and `a * a` has `a` twice), and in `locals` the derivative of the result with respect to each parent. No gradient
# arrives yet, so a local derivative is a plain number, known at the moment the operation runs. Six operations, six derivatives: derive each one before you
# type it.
#
# `other` may be a `Value` or a number, which becomes a parent, too: `as_value` makes a leaf of it. The exponent of `**` is a number and no parent. At 0 the derivative of relu is 0 by convention; `Value(0.0) ** 0` is 1, with the derivative 0. `Value(1000.0).tanh()` is 1, not an error. `op`
# is for drawings only: fill it in if you like. Use `math`, not `torch`. The operations at the end follow from yours.


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
check(Value)
### BEGIN HIDDEN TESTS
check(Value, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Your numbers now write their own graph. Look at it: the drawing reads nothing but your `data`, `parents` and `locals`.


# %%
def small_formula(number):
    x, k = number(0.5), number(-2.0)
    x.name, k.name = "x", "k"
    h = (x * k).tanh()
    h.name = "h"
    y = h * h + x
    y.name = "y"
    return y, k


with your("Value"):
    y, k = small_formula(Value)
figures.computation_graph(autograd.graph_of(y, parameters=[k]), locals_only=True)

# %% [markdown]
# Which number will arrive at $x$? Two of its paths run through $h$. Write the sum on paper before you let code do it.
#
# ### Exercise 4 · The sweep  (2 points · 10 min · ●●)
#
# You have written this already, in exercise 2, for a graph given as a dictionary. Now the nodes are objects. `backpropagate(end)` fills in `grad`: 1 for `end`, and
# for every node that `end` depends on the derivative of `end` with respect to it. It is called once in a graph, and all gradients are 0 before. A node that `end`
# does not depend on keeps its 0. A chain of 10,000 nodes must work, and so must forty fan-outs in a row. No `torch`, no `graphlib`.
#
# The check uses the course's nodes, so a slip in exercise 3 costs nothing here.


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
check(backpropagate)
### BEGIN HIDDEN TESTS
check(backpropagate, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Now hang the sweep on your class, and walk through your own graph. Was the number on your paper right?

# %%
with your("Value", "backpropagate"):
    Value.backward = backpropagate
    y, k = small_formula(Value)
    y.backward()
figures.GraphPlayer(autograd.graph_of(y, parameters=[k]))

# %% [markdown]
# That is the heart of PyTorch. The same formula, written once, runs on your numbers and on torch's:


# %%
def formula(a, b):
    c = (a * b).tanh() + a.exp() / (b**2 + 1)
    return c * c - c.relu() * a


s, t = (torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.7, -1.3))
with your("Value", "backpropagate"):
    Value.backward = backpropagate
    a, b = Value(0.7), Value(-1.3)
    formula(a, b).backward()
formula(s, t).backward()
for name, mine, torchs in (("a", a.grad, s.grad.item()), ("b", b.grad, t.grad.item())):
    print(f"d/d{name}: here {mine:.15f}, torch's {torchs:.15f}, difference {abs(mine - torchs):.0e}")

# %% [markdown]
# ### It trains
#
# Does your engine really train? The smallest task that a line cannot solve: of two switches, answer $+1$ if exactly one is on and $-1$ otherwise. A network with four
# hidden numbers, $\hat y = v \cdot \tanh(W x + b) + c$, has 17 parameters. A step of training computes the loss of all four cases, sets all gradients to
# 0, goes backward once, and moves each parameter a little against its gradient.

# %%
import random

SWITCHES = {(-1.0, -1.0): -1.0, (-1.0, 1.0): 1.0, (1.0, -1.0): 1.0, (1.0, 1.0): -1.0}


def train(number: type, steps: int = 101, rate: float = 0.1) -> tuple[list[float], list[float]]:
    """The loss at each step, and the answers of the last; all numbers of the network are of this type."""
    generator = random.Random(0)
    hidden = [[number(generator.gauss(0, 1)) for _ in range(3)] for _ in range(4)]
    v, c = [number(generator.gauss(0, 1)) for _ in range(4)], number(0.0)
    parameters = [c, *v, *(parameter for row in hidden for parameter in row)]
    losses = []
    for _ in range(steps):
        loss, answers = number(0.0), []
        for (left, right), wanted in SWITCHES.items():
            answer = c
            for weight, (w_left, w_right, b) in zip(v, hidden, strict=True):
                answer = answer + weight * (w_left * left + w_right * right + b).tanh()
            answers.append(answer.data)
            loss = loss + (answer - wanted) ** 2 * 0.25
        for parameter in parameters:
            parameter.grad = 0.0
        loss.backward()
        for parameter in parameters:
            parameter.data -= rate * parameter.grad
        losses.append(loss.data)
    return losses, answers


# %%
with your("Value", "backpropagate"):
    Value.backward = backpropagate
    curve = figures.learning_curve(train, Value)
curve

# %% [markdown]
# Nothing in this loop knows the formula of the network. Another layer, another loss, a billion parameters: the graph is longer, and the loop stays the same.

# %% [markdown]
# Torch can do one thing that this engine cannot: differentiate a gradient. With `create_graph=True` the backward pass writes a graph, too. What is the second
# derivative of $x^3$ at 2?

# %%
x = torch.tensor(2.0, requires_grad=True)
[slope] = torch.autograd.grad(x**3, x, create_graph=True)
[curvature] = torch.autograd.grad(slope, x)
print(f"first derivative {slope.item()}, second derivative {curvature.item()}")

# %% [markdown]
# The price: both graphs, with all that they keep, stay in memory until you drop `slope`. (Yours cannot do it, because its local derivatives are plain numbers. If they were
# `Value`s, it could.)

# %% [markdown]
# **In real models.** PyTorch stores no local derivatives while it runs forward. Each operation leaves a *recipe* (`grad_fn`) and the tensors that the
# recipe will need, and computes the derivatives when the gradient arrives (Paszke et al., 2019). For a matrix product the full table of local derivatives, the **Jacobian**,
# would be far larger than the matrices. A recipe multiplies the arriving gradient by it without writing it down: a
# *vector-Jacobian product* (VJP). Section 6 shows how. What is kept for it is the subject of section 9.

# %% [markdown]
# ## 5 · How would you know?
#
# Your gradient is a number. It may be wrong and look fine, and a network trains with a slightly wrong gradient, only worse. So how do you
# check one, without trusting any derivation?
#
# You try. Nudge one input up by $h$, then down by $h$, and look at what comes out:
#
# $$f'(x) \approx \frac{f(x + h) - f(x - h)}{2h}.$$
#
# By hand, for $x^3$ at 2 with $h = 0.1$: $(2.1^3 - 1.9^3)/0.2 = (9.261 - 6.859)/0.2 = 12.01$. The truth is 12. This **central difference** is off by a
# multiple of $h^2$, because the errors of the two sides cancel in first order. The one-sided one, $(f(x+h) - f(x))/h = 12.61$, is off by a multiple of $h$.
#
# ### Exercise 5 · Numeric gradient  (3 points · 8 min · ●●)
#
# `f` takes a tensor like `x` and returns one number as a tensor. Return the central difference for each element of `x`, in the shape and
# dtype of `x`. Compute in float64, whatever the dtype of `x`.


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
check(numeric_gradient)
### BEGIN HIDDEN TESTS
check(numeric_gradient, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The smaller the step, the better the formula. So why not a really small one?

# %%
predict("smaller_step")

# %%
explore(figures.gradient_check_error, step=Log(1e-12, 1.0), difference=["central", "forward"])

# %% [markdown]
# A valley with two slopes. On its right side the *formula* errs, by $h^2$. On its left side *rounding* errs: $f(x+h)$ and $f(x-h)$ agree in almost
# all their digits, the subtraction leaves the few that differ, and these are the least reliable ones. That error is about $\varepsilon/h$, with the
# $\varepsilon$ of notebook 01. Both are equal near $h = \sqrt[3]{\varepsilon}$: about 6e-6 in fp64, and 0.005 in fp32, where even the best step leaves
# an error of some $2 \cdot 10^{-5}$ (Press et al., 2007, §5.7). Below 6e-8 an fp32 step from 1 vanishes completely: $1 + h$ rounds back to 1.
#
# So a gradient check runs in fp64. `torch.autograd.gradcheck` warns when it is given anything less, for this reason.

# %%
for step in (1e-2, 1e-5, 1e-10):
    above, below = 1.1 + step, 1.1 - step
    quotient = (above * above * above - below * below * below) / (2 * step)
    print(f"h = {step:.0e}:  (x³)' at 1.1 is off by {abs(quotient - 3 * 1.1**2):.0e}")

# %% [markdown]
# Why not train like this? Each parameter needs two forward passes. Reverse mode needs one backward pass for all. Differences are for
# *checking*, and you will use them on your own gradients below.

# %% [markdown]
# ## 6 · From numbers to tensors
#
# A model does not multiply numbers, it multiplies matrices. Is there anything new to learn? Nothing but bookkeeping. A tensor is a
# bundle of nodes, and a gradient has the **shape of what it is the gradient of**: each element gets its own answer to "what if you were a
# little larger?".
#
# Take one layer of a network, $u = Ax$ and $y = \sigma(u + b)$, with $\sigma(t) = 1/(1 + e^{-t})$ and $\sigma' = \sigma(1 - \sigma)$, one index at a time:
#
# $$u_i = \sum_j A_{ij} x_j \quad\Rightarrow\quad \frac{\partial u_i}{\partial A_{ij}} = x_j, \qquad \frac{\partial u_i}{\partial x_j} = A_{ij}.$$
#
# $A_{ij}$ is used once, by $u_i$. But $x_j$ is used by *every* $u_i$: fan-out. So its gradient is a sum over $i$. In loops:

# %%
torch.manual_seed(0)
A, x, b, y_grad = torch.randn(3, 4), torch.randn(4), torch.randn(3), torch.randn(3)
s = torch.sigmoid(A @ x + b)
u_grad, b_grad, A_grad, x_grad = (torch.zeros(n) for n in ((3,), (3,), (3, 4), (4,)))
for i in range(3):
    u_grad[i] += y_grad[i] * s[i] * (1 - s[i])
    b_grad[i] += y_grad[i] * s[i] * (1 - s[i])
for i in range(A.shape[0]):
    for j in range(A.shape[1]):
        A_grad[i, j] += u_grad[i] * x[j]
        x_grad[j] += u_grad[i] * A[i, j]

A_, x_, b_ = (t.clone().requires_grad_() for t in (A, x, b))
torch.sigmoid(A_ @ x_ + b_).backward(y_grad)
for ours, theirs, name in ((A_grad, A_, "A"), (x_grad, x_, "x"), (b_grad, b_, "b")):
    print(f"{name}.grad: shape {tuple(ours.shape)!s:6} largest difference from torch's: {(ours - theirs.grad).abs().max():.0e}")

# %% [markdown]
# Loops are for understanding. Look at what they compute: $A$'s gradient is an outer product, $\nabla_u x^\top$, and $x$'s is a product with the
# transpose, $A^\top \nabla_u$. A layer of a model has its examples as rows, and a batch of them: $y = xW$ with shapes $(B, D)\,(D, K) \to (B, K)$, and $dy$
# for the gradient that arrives. Each example uses the same weight: fan-out again. What are $dW$ and $dx$?
#
# | tensor | shape |
# | --- | --- |
# | $x$ and $dx$ | $(B, D)$ |
# | $W$ and $dW$ | $(D, K)$ |
# | $y$ and $dy$ | $(B, K)$ |
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
# > Two things are wrong. With $B = 3$, $D = 5$, $K = 2$ the loops run without an error, and do 12 of the 30 steps they should do. With $B = 7$ they crash. Find both before
# > you write your own.
#
# ### Exercise 6 · The backward pass of a product  (3 points · 8 min · ●●)
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


# %% check="backward_matmul"
check(backward_matmul)
### BEGIN HIDDEN TESTS
check(backward_matmul, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# You never have to memorise this:
#
# $$dW = x^\top\, dy, \qquad dx = dy\; W^\top.$$
#
# Only one product of $x$ and $dy$ has the shape of $W$, and only one of $dy$ and $W$ that of $x$.

# %%
explore(figures.three_matmuls, B=(1, 12), D=(1, 12), K=(1, 12))

# %% [markdown]
# Now with a non-linearity around the product, as almost everywhere in a network: $z' = \phi(zW)$, with $z$ of shape $(\dots, I)$ and $W$ of
# shape $(I, J)$. Before you look: indices are a good place to slip.

# %%
predict("index_of_the_slope")

# %% [markdown]
# $$\frac{\partial L}{\partial W_{ij}} = \sum_d \frac{\partial L}{\partial z'_{dj}}\; \phi'\big((zW)_{dj}\big)\; z_{di}, \qquad
# \frac{\partial L}{\partial z_{di}} = \sum_j \frac{\partial L}{\partial z'_{dj}}\; \phi'\big((zW)_{dj}\big)\; W_{ij}.$$
#
# ### What does it cost?
#
# Count **FLOPs**, floating-point operations. A product of $(B, D)$ with $(D, K)$ takes $2BDK$ of them, a multiplication and an addition for each of the $BDK$ triples. The figure above
# has three of them: one forward, two backward. And with $\phi$ around it?

# %%
predict("backward_over_forward")

# %% [markdown]
# The first two factors, $\partial L/\partial z'_{dj}$ and $\phi'(\cdot)_{dj}$, have $B \times J$ entries each, and so has their product: as good as free next to
# the $B \times I \times J$ of a matrix product. Torch's own counter agrees:

# %%
from torch.utils.flop_counter import FlopCounterMode

z = torch.randn(64, 128, requires_grad=True)
W = torch.randn(128, 256, requires_grad=True)
with FlopCounterMode(display=False) as forward:
    out = torch.tanh(z @ W).sum()
with FlopCounterMode(display=False) as backward:
    out.backward()
print(f"forward {forward.get_total_flops():,}   backward {backward.get_total_flops():,}")

# %% [markdown]
# ### Exercise 7 · The bill  (1 point · 4 min · ●●)
#
# Two linear layers: `h1 = x @ w1`, `h2 = h1 @ w2`, `loss = h2.pow(2).mean()`, with $B = 64$ rows, `w1` of shape $(128, 128)$ and `w2` of
# shape $(128, 32)$. Both weights require a gradient; `x` is data.
#
# How many FLOPs do the matrix products of the backward pass take in all?

# %% exercise="two_layer_backward_flops"
two_layer_backward_flops = None  # a number in place of None
### BEGIN SOLUTION
two_layer_backward_flops = 4 * 64 * 128 * 32 + 2 * 64 * 128 * 128
### END SOLUTION

# %% check="two_layer_backward_flops"
check(two_layer_backward_flops=two_layer_backward_flops)
### BEGIN HIDDEN TESTS
check(two_layer_backward_flops=two_layer_backward_flops, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# "The backward pass costs twice the forward pass" would give $4BDK + 4BD^2$. It holds for the second layer, where half of it is the gradient of `h1`. In the first layer no one asks
# for the gradient of `x`. With `x.requires_grad_()` that product would run, too.
#
# **In real models.** Forward $2$, backward $4$, together $6$ FLOPs per parameter and token: the famous $6ND$ (Kaplan et al., 2020). The exception
# you just met does not occur in a language model: its first matrix reads an *embedding*, which is learned and needs its gradient. Torch's counter agrees:

# %%
embedding, w1 = torch.randn(1000, 64, requires_grad=True), torch.randn(64, 32, requires_grad=True)
ids = torch.randint(1000, (64,))
with FlopCounterMode(display=False) as forward:
    out = (embedding[ids] @ w1).sum()
with FlopCounterMode(display=False) as backward:
    out.backward()
print(f"forward {forward.get_total_flops():,}   backward {backward.get_total_flops():,}")

# %% [markdown]
# Notebook 15 counts the rest.

# %% [markdown]
# ## 7 · Two layers, then a batch
#
# Put it together: a network with one hidden layer, for one example, in the notation of textbooks, where $x$ is a column.
#
# | forward | shapes | to find on the way back |
# | --- | --- | --- |
# | $h = W_1 x$ | $(p, d)\,(d) \to (p)$ | $dW_1$ |
# | $z = \sigma(h)$ | $(p)$ | $dh$ |
# | $\hat y = W_2 z$ | $(q, p)\,(p) \to (q)$ | $dW_2$ and $dz$ |
# | $f = L(\hat y)$ | a number | $d\hat y = \nabla L(\hat y)$ |
#
# Read the left column downwards and the right one upwards. Each gradient is made of the one below it and of something from the forward pass.
#
# ### Exercise 8 · One example  (3 points · 8 min · ●●)
#
# Here $L(\hat y) = \tfrac12 \lVert \hat y - y \rVert^2$ and $\sigma$ is the sigmoid. Return `[dw1, dw2]`. The answer has to be right for $h = \pm 1000$, too. No autograd.


# %% exercise="backward_two_layer"
def backward_two_layer(
    x: Float[Tensor, "d"], w1: Float[Tensor, "p d"], w2: Float[Tensor, "q p"], y: Float[Tensor, "q"]
) -> list[Tensor]:
    """The gradients [dw1, dw2] of ½‖w2 σ(w1 x) − y‖²."""
    ### BEGIN SOLUTION
    z = torch.sigmoid(w1 @ x)
    dy_hat = w2 @ z - y
    dw2 = torch.outer(dy_hat, z)
    dz = w2.T @ dy_hat
    dh = dz * z * (1 - z)
    return [torch.outer(dh, x), dw2]
    ### END SOLUTION


# %% check="backward_two_layer"
check(backward_two_layer)
### BEGIN HIDDEN TESTS
check(backward_two_layer, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# In the order in which you computed them:
#
# | gradient | comes from |
# | --- | --- |
# | $d\hat y = \nabla L(\hat y)$ | the loss |
# | $dW_2 = d\hat y\; z^\top$ | an outer product |
# | $dz = W_2^\top\, d\hat y$ | the matrix, transposed |
# | $dh = dz \odot \sigma'(h)$ | element by element |
# | $dW_1 = dh\; x^\top$ | an outer product |
#
# ### Now $B$ of them
#
# A loss over a batch is a mean, $f = \frac1B \sum_b L(\hat y_b)$. Each example sends a gradient into the shared weights, and they add
# up. What does the $\frac1B$ do?

# %%
predict("twice_the_batch")

# %%
explore(figures.batch_gradients, batch=(1, 64))

# %% [markdown]
# A colleague divides by $B$ in $d\hat y$ and again in $dW_1$, "because each is a mean". Another divides nowhere, because the gradients "add up". Before you write yours: how
# often does a $\frac1B$ belong in each gradient?
#
# ### Exercise 9 · A batch  (3 points · 7 min · ●●)
#
# Examples are rows now: `x` is $(B, d)$ and `y` is $(B, q)$, the weights are as before, $h = x W_1^\top$ and $\hat y = z W_2^\top$. Return a dictionary with the gradients of
# the *mean* loss: `"y_hat"` of shape $(B, q)$, `"w1"` and `"w2"`. No autograd.


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


# %% check="backward_batch"
check(backward_batch)
### BEGIN HIDDEN TESTS
check(backward_batch, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The $1/B$ belongs to the loss. It enters once, with the first gradient of the backward pass, and every later one inherits it.
#
# **In real models.** A batch that does not fit into memory is cut into micro-batches whose gradients are added up in `.grad`: the `+=` of fan-out,
# over time. Then $B$ is the size of the *whole* batch. Several training libraries took the mean over the words of
# each micro-batch and then the mean of the means, which gives a word more weight the shorter its text is. That was reported in 2021, and
# fixed in October 2024 (Unsloth, 2024, *Bugs in LLM training*; Hugging Face, 2024, *Fixing gradient accumulation*).

# %% [markdown]
# ## 8 · Through a norm
#
# So far each output depended on its inputs through a product. A normalisation is different: *every* feature of a row moves the mean and the
# spread, and through them every output. How do you differentiate that?
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
# Multiply along each path, sum over $j$ where every $\hat x_j$ is reached, and add up the three. And remember that $\gamma$ and $\beta$ are shared by all rows of
# all texts.
#
# ### Exercise 10 · LayerNorm, backwards  (4 points · 14 min · ●●●)
#
# Return a dictionary with the gradients of `"x"`, `"gain"` ($\gamma$) and `"bias"` ($\beta$). `x` and `dy` have any number of axes in front of the features. The
# variance divides by $d$. No autograd, no ready-made LayerNorm. If you want to check it yourself first, you have
# `numeric_gradient`:
#
# ```python
# x, gain, dy = torch.randn(3, 2, 5, dtype=torch.float64)
# gain = gain[0]
# loss = lambda x: (torch.nn.functional.layer_norm(x, (5,), gain) * dy).sum()
# (numeric_gradient(loss, x) - layernorm_backward(x, gain, dy)["x"]).abs().max()
# ```


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


# %% check="layernorm_backward"
check(layernorm_backward)
### BEGIN HIDDEN TESTS
check(layernorm_backward, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The closed form, with means over the row:
#
# $$dx = \frac1s \Big( \underbrace{g}_{\text{directly}} - \underbrace{\operatorname{mean}(g)}_{\text{through } \mu} -
# \underbrace{\hat x \odot \operatorname{mean}(g \odot \hat x)}_{\text{through } s} \Big).$$
#
# The two subtractions say something: a LayerNorm ignores a shift and a stretch of its row, so the gradient has no part along
# $(1, \dots, 1)$ and, apart from $\epsilon$, none along $\hat x$. And $1/s$: a row with a large spread gets a small gradient.
#
# Below are the gradient that arrives at one row and the one that leaves, at the same scale. Drag the offset: the row
# moves up as a whole, and nothing happens. Drag the spread, and the gradient shrinks.

# %%
explore(figures.layernorm_gradient, spread=Log(0.25, 4.0), offset=(-3.0, 3.0, 0.5))

# %% [markdown]
# ## 9 · What has to be remembered
#
# The backward pass asked for values of the forward pass again and again. So they have to be kept. Which ones, and how much memory is it?

# %%
predict("kept_for_backward")

# %% [markdown]
# Go through the gradients of the network in the question, and underline what comes from the forward pass. (It is that of section 7 with examples as rows,
# $W_1$ of shape $(d, p)$ and $W_2$ of shape $(p, q)$. Its loss is the mean of all $Bq$ squares.)
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
# So we predict $4(Bd + Bp + Bq)$ bytes in fp32. PyTorch lets us watch: inside `saved_tensors_hooks(pack, unpack)` it calls `pack` with every tensor that it
# saves and keeps what `pack` returns; `unpack` gives it back in the backward pass. Here `pack` only looks:


# %%
def look(tensor: Tensor) -> Tensor:
    print(f"kept: shape {tuple(tensor.shape)}, {tensor.dtype}")
    return tensor


a, m = torch.ones(4, 3), torch.ones(3, 2, requires_grad=True)
with torch.autograd.graph.saved_tensors_hooks(look, lambda tensor: tensor):
    out = (a @ m).tanh()

# %% [markdown]
# The product keeps its input, and tanh its result. How many bytes is that? A shape does not say: several views may share one **storage**, and a small view keeps a large one
# alive (notebook 02). `tensor.untyped_storage()` has an address, `data_ptr()`, and a size, `nbytes()`.
#
# ### Exercise 11 · Measure it  (3 points · 8 min · ●●)
#
# `forward` is a function of nothing that runs a forward pass. Run it, and return how many bytes autograd keeps for its backward pass. Count every
# storage once, in full, even if several saved tensors are views of it or of a part of it; leave out the storages of the `parameters`, which are there anyway. An address is used
# again as soon as its tensor is gone: hold on to the tensors that the hook gets until you have counted.


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
check(saved_bytes)
### BEGIN HIDDEN TESTS
check(saved_bytes, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# Predicted and measured, by the course's own tool, for the network of the table with $B = 32$, $d = 64$, $p = 128$, $q = 10$:

# %%
B, d, p, q = 32, 64, 128, 10
x, y = torch.randn(B, d), torch.randn(B, q)
w1, w2 = torch.randn(d, p, requires_grad=True), torch.randn(p, q, requires_grad=True)
measured = saved_tensors(lambda: ((torch.sigmoid(x @ w1) @ w2 - y) ** 2).mean(), without=[w1, w2])
print(f"predicted {4 * B * (d + p + q):,} bytes")
print(f"measured  {measured.total:,} bytes: {', '.join(str(t.shape) for t in measured)}")

# %% [markdown]
# The activations grow with the batch; parameters do not. Where do they overtake?

# %%
explore(figures.saved_for_backward, batch=Log(1, 8192), width=Log(16, 1024))

# %% [markdown]
# **In real models.** For a large model and long texts this is the larger part of the memory. Two ways out trade it for FLOPs: *checkpointing* keeps only some
# activations and computes the others again on the way back (Chen et al., 2016), and FlashAttention never keeps the $T \times T$ attention weights at all (Dao et al.,
# 2022). How much it is for a transformer, and what recomputing costs, is the subject of notebook 14.

# %% [markdown]
# ## 10 · Your own operation
#
# The largest tensor in the training of a small language model is often not inside the model. It is the last one. With $n$ words in the batch and $V$ in the vocabulary, the logits
# $z = hW^\top$ are $n \times V$ numbers. For 2,048 words and a vocabulary of 32,000 that is 250 MiB in fp32, while $h$ with 64 features has half a MiB. And how much do the
# forward and backward pass of the loss need at their peak?

# %%
predict("peak_of_the_loss")

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
# In the backward pass three tensors of this size are alive at once: the log-probabilities that were kept, their gradient, and the gradient of the logits. (Notebook 14
# continues from here.)
#
# None of them has to exist in one piece. The rows do not depend on each other: you can compute the logits of 128 rows, take from them what the loss needs, and throw them away. The backward
# pass then needs them again, and computes them again, 128 rows at a time. But autograd would keep each chunk. So you have to write the backward pass yourself.
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
# ### Exercise 12 · A loss in chunks  (4 points · 18 min · ●●●)
#
# Write the mean cross-entropy of the logits `h @ W.T` as an operation of your own: `ChunkedCrossEntropy.apply(h, W, y, rows)`. The loss of one row with logits $z$ and right word $y$
# is $\log \sum_j e^{z_j} - z_y$. First derive on paper what reaches the logit $z_j$; in section 2 you saw the case of two words.
#
# - At no time are there logits, probabilities or gradients of more than a few chunks of `rows` rows, forward or backward. The last chunk may be shorter.
# - For the backward pass keep `h`, `W`, `y` and a few numbers for each row.
# - Logits of ±1000 must work. The gradient that arrives need not be 1. `h` and `W` may ask for a gradient or not.
#
# Autograd inside your operation is not allowed; any other function of torch is. `torch.autograd.gradcheck(ChunkedCrossEntropy.apply, (h, W, y, rows))` compares your gradients
# with differences, in float64.


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
check(ChunkedCrossEntropy)
### BEGIN HIDDEN TESTS
check(ChunkedCrossEntropy, hidden=True)
### END HIDDEN TESTS

# %% [markdown]
# The pair from section 2, for any number of words: $dz = (p - e_y)/n$, the probabilities minus a 1 at the right word. Measured on the example above, in chunks of 128 rows:

# %%
with your("ChunkedCrossEntropy"):
    figures.compare_losses(plain, lambda h, W: ChunkedCrossEntropy.apply(h, W, y, 128), h, W)

# %% [markdown]
# The price is a fourth matrix product: the logits are computed twice. Wijmans et al. (2024, *Cut your losses in large-vocabulary
# language models*) pay it, too. *Liger Kernel* (Hsu et al., 2024) avoids it: it computes both gradients in the forward pass, chunk by chunk, and keeps them.

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | what is a computation graph? | inputs, parameters and compute nodes; an edge carries one local derivative |
# | how does a gradient travel? | along a path the local derivatives multiply, over paths the products add |
# | in which order? | every node before its parents; a node passes its gradient on once it is complete |
# | who keeps a gradient? | leaves that require one; others after `retain_grad()` |
# | how is it checked? | central differences in fp64, with $h \approx \sqrt[3]{\varepsilon} \approx 6 \cdot 10^{-6}$ |
# | backward of $y = xW$? | $dW = x^\top dy$, $dx = dy\,W^\top$: two products, twice the FLOPs |
# | where is the $1/B$? | in the loss, once; every gradient after it inherits it |
# | backward of LayerNorm? | $\frac1s(g - \operatorname{mean}(g) - \hat x \operatorname{mean}(g \hat x))$ |
# | cross-entropy, backwards? | $dz = (p - e_y)/n$, a chunk of rows at a time |
# | what must be kept? | what the local derivatives need: inputs of products, results of sigmoid, tanh and exp |
#
# ## Check yourself
#
# 1. Forward mode pushes derivatives from the inputs to the outputs, along with the values. For which shape of function would it be the better choice?
# 2. You call `loss.backward()` twice, on two losses that share a parameter, without clearing `.grad`. What is in it?
# 3. Why does a residual connection, $y = x + f(x)$, help a gradient through a hundred layers? Draw the graph.
# 4. `relu` has no derivative at 0. Does that matter?
# 5. Your gradient check of a float32 layer shows a relative error of 0.1 %. Is the layer wrong?
# 6. An operation multiplies by a fixed mask (dropout). What must it keep, and how many bytes per element?
# 7. A colleague writes: "The loss is $-\log p$, that is $(\hat y - y)^2$." When is that true, and up to what?
# 8. A colleague writes: "For the backward pass of the two-layer network, store $h$, $z$ and $\hat y$." What is missing, and what is too much?
# 9. A colleague counts $5BIJ$ FLOPs for the backward pass of $\phi(zW)$: two products, and one more for $\phi'$. What do you answer?
#
# <details><summary>Answers</summary>
#
# 1. For few inputs and many outputs: it needs one pass for each input, as reverse mode needs one for each output. A loss is one output of billions of
#    inputs, the best case for reverse mode.
# 2. The sum of both gradients. This is how gradients are accumulated over micro-batches, and why a training loop has `zero_grad()`.
# 3. $x$ has two paths to $y$, and the local derivative of one is 1. Over a hundred layers there is a path on which nothing is multiplied by anything but 1.
# 4. Rarely: few floats are exactly 0. But a convention is needed, and PyTorch takes 0. (After another relu it is *often* exactly 0. Then the choice is part of the model.)
# 5. You cannot tell. With fp32 a difference quotient is off by up to a thousandth or more if the step is not chosen well. Check it in float64.
# 6. Only the mask: the local derivative is the mask itself, times $1/(1-p)$. As `torch.bool` it takes one byte per element.
# 7. If $p$ is a Gaussian of fixed width around $\hat y$, and only up to a factor and a constant (section 1). For a choice among words it is not.
# 8. The input $x$ is missing: without it there is no $dW_1$. $h$ is not needed, because $\sigma' = z(1 - z)$, and of $\hat y$ only the difference $\hat y - y$.
# 9. $4BIJ$. Multiplying by $\phi'$ is element by element, $B \times J$ multiplications, and no third product.
#
# </details>
#
# ## Further reading
#
# - Linnainmaa, 1970, the thesis in which reverse mode first appears; Rumelhart, Hinton & Williams, 1986, *Learning representations by back-propagating
#   errors*.
# - Griewank & Walther, 2008, *Evaluating Derivatives*, chapter 3.
# - Baydin et al., 2018, *Automatic differentiation in machine learning: a survey*.
# - Paszke et al., 2019, *PyTorch: an imperative style, high-performance deep learning library*.
# - Press et al., 2007, *Numerical Recipes*, §5.7, on the step of a difference.
# - In this package: `lmcourse/autograd/value.py`, a complete engine on two screens.

# %% [markdown]
# The numbers in the text above are checked here, each time the notebook is built. (The cell is folded; open it if you like.)

# %% tags=["hide-input"]
line, fan = autograd.example("linear regression"), autograd.example("fan-out")
grads = {node.label: node.grad for node in line.nodes}
assert (grads["z"], grads["w₁"], len(line.nodes)) == (-8, -24, 8)
place = {node.label: index for index, node in enumerate(fan.nodes)}
assert fan.nodes[place["x"]].grad == 44 == 1 * 3 * 4 + 1 * 8 * 4
assert list(dict.fromkeys(step.grads[place["y"]] for step in autograd.steps_of(fan))) == [0, 8, 11]
assert round((2.1**3 - 1.9**3) / 0.2, 9) == 12.01 and round((2.1**3 - 8) / 0.1, 9) == 12.61
assert [f"{eps ** (1 / 3):.0e}" for eps in (2.0**-52, 2.0**-23)] == ["6e-06", "5e-03"]
assert torch.tensor(1.1) + 5.9e-8 == torch.tensor(1.1) != torch.tensor(1.1) + 6.1e-8
assert 4 * 64 * 128 * 32 + 2 * 64 * 128 * 128 == 3_145_728 < 4 * 64 * 128 * (32 + 128)
losses, answers = train(autograd.Value)
assert 4 * 3 + 4 + 1 == 17 and losses[-1] < 1e-3 < 2 < losses[0]
assert [round(answer) for answer in answers] == [*SWITCHES.values()]
assert (3 * 2 * 2, 3 * 5 * 2) == (12, 30)  # B·K·K steps of the loop in section 6, B·D·K of the right one
assert 2048 * 32_000 * 4 / 2**20 == 250 and 2048 * 64 * 4 / 2**20 == 0.5
assert (round(kept / 2**20, 1), round(peak / 2**20)) == (250.5, 750)
