# %% [markdown]
# # 16 · Stability
#
# **Core · 86 min · 5 exercises · 18 points** · **Further · 62 min · 4 exercises · 13 points**
#
# *What is this run dying of, and what do you change while it is still running?*
#
# A run has cost a month and a million dollars. At step 41,000 the loss jumps, and an hour later it is NaN. You will make that happen here in seconds.
#
# At the end a doctor of yours watches four live runs. It may change one thing in each, once, and has to beat their untreated twins.
#
# **You need** attention (notebook 08), norms (10) and AdamW (04), but no GPU. Stuck? `hint("name_of_the_exercise")`.

# %%
import math
from statistics import fmean, median

import torch
from jaxtyping import Float
from torch import Tensor

from lmcourse.chapters.stability import figures
from lmcourse.chapters.stability.patients import peaks, query_gradient, stories, train, treat
from lmcourse.chapters.stability.stored import measured, shown_signs, stored, table_lines, unknown_signs
from lmcourse.chapters.stability.ward import DISEASES, signs_of, visits
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.widgets import Log

start("16-stability")
torch.set_num_threads(1)  # models this small are fastest on one

# %% [markdown]
# ## 1 · Two ways to die
#
# Our patients are transformers of two layers, $d = 64$, that read our little stories byte by byte. `train` stops if a number is not finite, or if the loss is twenty times that of guessing; both count as an explosion. It returns what it recorded at every step: `losses`, the `norms` of the gradient, the largest attention score (`scores`), and the mean $\lvert\log Z\rvert$ (`log_zs`; $Z$ is the sum of the exponentials of a byte's logits). Treatments have names: `train(0, **treat("A", "QK-norm"))` trains patient A with QK-norm and seed 0.
#
# How good is good? Count two entropies in the text: of single bytes, and of a byte when the one before it is known.

# %%
text = stories()
pairs = torch.bincount(text[:-1] * 128 + text[1:], minlength=128 * 128).reshape(128, 128).double()
pairs /= pairs.sum()
letters = -torch.special.xlogy(pairs.sum(0), pairs.sum(0)).sum().item()
after_one = -torch.special.xlogy(pairs, pairs).sum().item() - letters
print(f"guessing: {math.log(128):.2f} nats   single bytes: {letters:.2f}   after one byte: {after_one:.2f}")

# %% [markdown]
# **Patient A** is trained with AdamW at a rate of 0.03, ten times what would be good for it. **Patient B** is trained with SGD and momentum at a rate of 0.5. Seed 0 runs here, in a second or two; the runs of the seeds 1 and 2 are stored.

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
run_a, run_b = train(0, **treat("A")), train(0, **treat("B"))
print(f"A, seed 0: loss {run_a.end:.2f} at the end, largest score {max(run_a.scores):,.0f}")
print(f"B, seed 0: loss {run_b.losses[-1]:.0f} after {len(run_b.losses)} steps; exploded: {run_b.exploded}")
for name in "AB":
    row = measured(name, "none")
    print(f"{name}, seeds 1 and 2, stored: {row['steps'][1:]} steps, loss {row['loss'][1:]}, score {row['score'][1:]}")

# %% [markdown]
# B dies loudly: within a few dozen steps its loss is in the hundreds. A dies quietly. Its loss falls, as losses do, and stops far above what a *table of byte pairs* would reach. A table like that needs no attention. Has A any left?

# %%
predict("one_token_takes_it")

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
print("rows with a weight above 0.99, and the mean entropy of a row:")
for name, run in (("A", run_a), ("A at a tenth of the rate", train(0, **treat("A", "rate ÷ 10")))):
    shown = "; ".join(f"layer {layer}: {share:.0%}, {nats:.2f} nats" for layer, (share, nats) in enumerate(peaks(run.model)))
    print(f"{name}: {shown}")

# %% [markdown]
# Each row of A's attention looks at one token, and no gradient can tell it to look elsewhere: where a softmax is flat, all slopes are 0. Zhai et al. (2023) call this *entropy collapse*. It is the more dangerous death: no alarm goes off.

# %%
predict("who_saves_whom")

# %% [markdown]
# ## 2 · An alarm
#
# If you look at the loss alone, you learn of a spike when it is over. The norm of the gradient shows it earlier. But what is a large norm? Norms may fall by a factor of ten during a run, so a fixed limit is wrong at one end or the other. Compare with what was usual *lately*.
#
# By hand: the last norms were 1, 1, 1, 1, 1000. Now comes a 20. Their mean is 201, so 20 looks small; their **median** is 1, and 20 is twenty times that. A spike must not hide the next one.

# %% [markdown]
# ### Exercise 1 · Find the spikes  (3 points · 7 min · ●●)
#
# Return the indices of all spikes in `norms`. A norm is a spike if it is *more* than `factor` times the median of the last `window` finite norms before it (spikes among them count too), and if there were at least `fewest` of those. (`fewest` is never larger than `window`.) Whatever is infinite or NaN
# is a spike at any time, even in the first steps, and does not count as a norm afterwards. Indices count from 0 and come in ascending order.


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

# %% [markdown]
# Which factor finds every spike, and no noise? A made-up run in the manner of OLMo 2's (OLMo Team, 2025), with ten spikes from 3 to 200 times the usual. And how many steps would be clipped at a norm of 0.5?

# %%
explore(figures.gradient_spikes, factor=(1.5, 20.0, 0.5), clip=Log(0.1, 10.0))

# %% [markdown]
# There is little room: 2 calls noise a spike, and 5 misses the two smallest. Now your alarm on a run of B's kind, and on a healthy one that reads a batch of rubbish at step 40.

# %%
with your("spike_detector"):
    for name in ("steps", "bad batch"):
        signs = shown_signs()[name]
        rings = spike_detector(signs["norm"], factor=3.0, window=20, fewest=5)
        told = ", ".join(f"{step} ({signs['loss'][step]:.1f})" for step in rings)
        print(f"{name:9} alarms at step (loss) {told}; last loss {signs['loss'][-1]:.1f}")

# %% [markdown]
# It says *when*, not *what*: it rings at 17 for nothing, at 40 for a bad batch from which the run recovers by itself, and for an explosion when the loss is far above guessing.

# %% [markdown]
# ## 3 · Clip the gradient
#
# Why does B explode? SGD's step is as long as the gradient. One step too far leads to a place where the loss is steeper, the next gradient is longer, and so is the next step. The oldest cure stops this chain reaction (Pascanu et al., 2013): if the gradient is longer than $c$, make it $c$ long, and keep its direction. A shorter one stays as it is.
#
# The norm is that of *all* gradients of the model, laid end to end. By hand: $(3, 4)$ and $(12)$ have norms 5 and 12, and together 13. Clipped to 1, they become $(3/13, 4/13)$ and $(12/13)$.

# %% [markdown]
# ### Exercise 2 · Clip  (3 points · 6 min · ●●)
#
# Return the clipped gradients and the norm *before* clipping. Leave the inputs as they are. If the norm is infinite or NaN, raise `ValueError`: there is no direction to keep. Gradients of 300 in fp16 are among the cases, and keep their dtype; so are empty tensors. Do it by hand, without `torch.nn.utils`.


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

# %%
predict("halved_gradients")

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
with your("clip_by_global_norm"):
    clipped = train(0, **treat("B", "clipping"), clip_with=clip_by_global_norm)
print(f"B, clipped to 0.3, seed 0: loss {clipped.end:.2f} after {len(clipped.losses)} steps; exploded: {clipped.exploded}")
print("seeds 1 and 2, stored:", measured("B", "clipping")["loss"][1:])

# %% [markdown]
# B is saved.
#
# $$g \leftarrow g \cdot \min\!\Big(1, \frac{c}{\lVert g \rVert}\Big), \qquad \lVert g \rVert = \sqrt{\textstyle\sum_{\text{all weights}} g_i^2}$$

# %% [markdown]
# ## 4 · The problem child
#
# Where in a transformer can a number run away? Look for two operations: an exponential, and a division.
#
# | where | what it does | what makes it safe |
# | --- | --- | --- |
# | **softmax of attention** | exp, ÷ Z | subtract the maximum; QK-norm, or a cap |
# | **softmax of the output** | exp, ÷ Z, log | log-softmax in fp32; z-loss |
# | every norm | ÷ root of a mean square | $\varepsilon$ under the root; squares in fp32 |
# | Adam | ÷ root of the mean square | $\varepsilon$ beside the root; warm-up |
#
# Divisions are easy to guard. The two **softmaxes** head the list: nothing limits their inputs, which are products of learned weights.

# %% [markdown]
# ## 5 · QK-norm
#
# A score is $q \cdot k / \sqrt d$ with $q = W_q x$ and $k = W_k x$. If both matrices double, scores are four times as large, and a large rate makes matrices grow fast. That is what killed A.

# %%
predict("doubled_weights")

# %% [markdown]
# The cure is to normalise queries and keys before they meet (Henry et al., 2020). Dehghani et al. (2023) needed it for a vision transformer of 22 billion parameters. Language models have an RMSNorm for the queries and another for the keys (notebook 10: divide by the root of the mean square, with $\varepsilon$ under the root, then multiply by a learned scale).
#
# By hand: $q = (3, 4)$ has a mean square of 12.5 and a root mean square of 3.536, so $\hat q = (0.849, 1.131)$. The query $(6, 8)$ becomes the same vector: only the direction is left.

# %% [markdown]
# ### Exercise 3 · QK-norm  (3 points · 8 min · ●● · differentiable)
#
# Return the scores `(b, h, s, t)` in the dtype of `q`: RMSNorm on queries and keys, each with its scale, then the scaled product. Queries may come from a transpose, as after a split into heads. Queries of 300 in fp16 are among the cases. Do the norm by hand, without torch's `rms_norm`, `layer_norm`, `normalize` and their modules.


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

# %% [markdown]
# $$\hat q = \gamma_q \odot \frac{q}{\sqrt{\tfrac1d\sum_i q_i^2 + \varepsilon}}, \qquad \hat k \text{ likewise}, \qquad \text{score} = \frac{\hat q \cdot \hat k}{\sqrt d}$$
#
# Your norm in patient A, in both layers, after RoPE, with scales that are learned:

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
with your("qk_norm"):
    for seed in (0, 1):
        normed = train(seed, **treat("A"), scores_with=qk_norm)
        print(f"A with your norm, seed {seed}: loss {normed.end:.2f}, largest score {max(normed.scores):.0f}")

# %% [markdown]
# Why does it help against *long steps*? The scores do not change if $W_q$ doubles. So what happens to its gradient?

# %%
predict("gradient_of_a_doubled_matrix")

# %%
for treatments in ((), ("QK-norm",)):
    once, twice = (query_gradient(factor, *treatments) for factor in (1, 2))
    print(f"{', '.join(treatments) or 'untreated':10} gradient of W_q {once:.4f}, of a doubled W_q {twice:.4f}: {twice / once:.2f} times")

# %% [markdown]
# A step that made $W_q$ large makes the next one turn it less. Without the norm nothing slows it.
#
# **QK-clip** (Kimi K2, 2025) needs no norm in the model: after an update, a head whose largest score $s$ is above a limit τ gets its $W_q$ and $W_k$ multiplied by $\sqrt{\tau / s}$. In the table below τ is 30.
#
# ## 6 · Side by side
#
# A and B with every treatment, three seeds each. A star marks a loss below the table of byte pairs (1.91): that run has learned something that needs attention. A dagger marks an explosion and the number of steps until then; M is a million. (All are stored runs of another machine.) Which rows contradict what you expected?

# %%
for patient in "AB":
    print("\n".join(table_lines(patient)), end="\n\n")

# %% [markdown]
# For A, each trick does exactly what it promises, and only that:
#
# - **z-loss**, a penalty on $\log^2 Z$, brings $\log Z$ down, and $\log Z$ was not the disease.
# - **Clipping** shortens gradients, and Adam does not care about their length.
# - **The soft cap** bends scores so that the softmax sees at most ±50. The raw scores in the table still reach 500 to 840, where no gradient comes back.
# - **QK-clip** and **QK-norm** bound the scores, and the disease was in the scores.
# - **Decay** of 1, ten times the usual, keeps all matrices small, and scores with them.
# - **A warm-up**, which is a lower rate for a while, and **a lower rate** act on everything.
#
# For B, 80 steps are too few for the table of pairs; compare with single bytes (3.04). Clipping is the medicine: the disease is the length of the step. QK-clip acts on scores alone, and B dies all the same. A tenth of the rate does not explode, and has learned little.
#
# So there is no best trick. There is a diagnosis: *which number grows?*
#
# ## 7 · Does a high rate pay?
#
# The best row of A is the lower rate. "A higher rate, where a model survives it, learns faster," people say. Clipped SGD reached about 2.03 at a rate of 0.5.

# %%
predict("twice_the_rate")

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
with your("clip_by_global_norm"):
    faster = train(0, **{**treat("B", "clipping"), "rate": 1.0}, clip_with=clip_by_global_norm)
print(f"B clipped, at 1.0, seed 0: {faster.end:.2f}")
for name, rates in stored()["rates"]["SGD"].items():
    print(f"{name}:")
    for rate, ends in rates.items():
        print(f"  {rate:4} {' '.join(f'{loss:.2f}' for loss in ends)}")

# %%
figures.loss_against_rate()

# %% [markdown]
# For SGD, clipping pays: the best untreated rate, 0.2, ends at 2.70 on average; clipped, at one and a half to five times that rate, it is 2.03 to 2.07, and every seed is better. For AdamW no treatment makes a high rate better than the right rate. It makes a wrong rate less costly: from 0.003 to 0.01 the untreated runs lose 0.8 nats, with QK-norm 0.35. And nobody knows the right rate of a large model in advance.
#
# ## 8 · An unknown patient
#
# A run arrives in the middle of the night, and it is not over. You have four lists, a number for each step so far: the loss, the norm of the gradient, the largest attention score, and the mean $\lvert\log Z\rvert$. Five records with a known diagnosis:
#
# - **"scores"**: attention scores are in the hundreds, and learning is stuck: the loss is above the limits below.
# - **"steps"**: the steps are too long. In the records the loss is above that of guessing and does not come back.
# - **"bad batch"**: *one* batch was rubbish (random bytes). The run is well again, and nothing is to be done.
# - **"too slow"**: nothing is wrong, except that the loss falls too slowly.
# - **"healthy"**.

# %%
explore(figures.vital_signs, patient=["healthy", "scores", "steps", "bad batch", "too slow", figures.UNKNOWN])

# %% [markdown]
# Which patients *besides* "bad batch" have a norm that is several times the usual? Which have been above the loss of guessing? The records are lists: `shown_signs()["scores"]["norm"][:3]`.

# %% [markdown]
# ### Exercise 4 · Diagnose  (4 points · 10 min · ●●●)
#
# `signs` holds the lists `"loss"`, `"norm"`, `"score"` and `"log_z"`, all of one length, and the number `"guessing"`, the loss of guessing. Return the diagnosis, one of the five words. Records end after 25, 50 or 100 steps, those of each diagnosis alike. The rate, the optimizer, a warm-up and the first weights vary: scores may be small or in the hundreds in a healthy run. After 25 steps a healthy loss is below 3.2, after 50 below 2.6, after 100 below 2.3. Two signs may contradict each other: the order of your questions counts.


# %% exercise="diagnose"
def diagnose(signs: dict[str, list[float] | float]) -> str:
    """Return "scores", "steps", "bad batch", "too slow" or "healthy"."""
    ### BEGIN SOLUTION
    last = {name: median(signs[name][-5:]) for name in ("loss", "score")}
    if last["loss"] > signs["guessing"]:
        return "steps"  # before the scores, which an explosion takes along
    healthy = last["loss"] < 2 + 30 / len(signs["loss"])
    if last["score"] > 100 and not healthy:
        return "scores"
    if max(signs["loss"][10:]) > signs["guessing"]:  # not the first steps: an untrained model guesses
        return "bad batch"
    return "healthy" if healthy else "too slow"
    ### END SOLUTION


# %% check="diagnose"

# %% [markdown]
# Here is your rule on **X**, the patient of tonight, and on four runs of 150 steps after 10 and after 30 steps, beside what they really have.

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
with your("diagnose"):
    print("X:", diagnose(unknown_signs()))
    for name, disease in DISEASES.items():
        signs = signs_of(1, name, seed=0)
        seen = [{part: value if part == "guessing" else value[:steps] for part, value in signs.items()} for steps in (11, 30)]
        print(f"{name}: {' → '.join(map(diagnose, seen))}; really {disease!r}")

# %% [markdown]
# After ten steps the rule sees little, and R is healthy until its bad batch comes at step 60. Q's steps are too long although its loss stays below that of guessing: it ends at 2.6, and with clipping from step 6 on at 1.7. What is the *first* sign?
#
# ## 9 · The ward
#
# Your doctor watches the four while they run. It is called after every step with the signs so far, and returns None ("go on"), or a word. A word, once per patient, changes one thing from the next step on:
#
# | word | what it does |
# | --- | --- |
# | `"rate × 10"`, `"rate × 3"`, `"rate ÷ 3"`, `"rate ÷ 10"` | another learning rate |
# | `"clipping"` | clips to a norm of 0.3 |
# | `"QK-clip"` | keeps scores at 30 |
# | `"decay"` | a weight decay of 1 |
# | `"z-loss"` | adds $0.01 \log^2 Z$ to the loss |
#
# P is A again, Q is trained with SGD at 0.5 after a warm-up of 60, R with AdamW at 0.003, S with AdamW at 0.0002. The doctor is told neither names nor rates. The score is the mean loss of the last ten steps; an explosion counts as guessing, 4.85. A first idea, with your alarm:

# %%
predict("alarm_as_a_doctor")


# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
def alarmed(signs):
    """Lower the rate when the alarm rings."""
    rings = spike_detector(signs["norm"], factor=5.0, window=20, fewest=10)
    return "rate ÷ 10" if rings and rings[-1] == len(signs["norm"]) - 1 else None


with your("spike_detector"):
    found = visits(alarmed)
for visit in found:
    print(f"{visit.patient}: {visit.word} after {visit.step} steps, loss {visit.end:.2f}; untreated {visit.twin_end:.2f}")
print(f"mean {fmean(visit.end for visit in found):.2f}, untreated {fmean(visit.twin_end for visit in found):.2f}")

# %% [markdown]
# R's alarm was its bad batch, from which it had recovered by itself, and the lower rate made it worse. P and S gave no alarm in time.

# %% [markdown]
# ### Exercise 5 · A doctor  (5 points · 17 min · ●●●)
#
# Write `doctor(signs)`, with `signs` as in `diagnose`. All it knows is in the signs: it keeps nothing between calls, and it draws nothing. It is tried on this ward, and on one with other rates (0.05, 0.7, 0.002 and 0.0001) and a bad batch at step 90. Grading takes seed 1, which `visits(doctor, seed=1)` shows: keep a margin. A try takes 10 to 40 seconds.
#
# | mean loss, both wards | seed 0 | seed 1 |
# | --- | --- | --- |
# | no treatment | 2.39 | 2.35 |
# | an alarm, then a tenth of the rate | 2.40 | 2.47 |
# | the same word for everybody, at best (clipping) | 2.09 | |
# | **finish line** | 1.65 | 1.65 |


# %% exercise="doctor"
def doctor(signs: dict[str, list[float] | float]) -> str | None:
    """Return None, or the one thing to change in this run from now on."""
    ### BEGIN SOLUTION
    loss, score, step = signs["loss"][-1], signs["score"][-1], len(signs["loss"])
    if step >= 5 and score > 15:  # AdamW with too high a rate: scores run away first
        return "decay"
    if step == 6 and loss > 4.5:  # hardly below guessing
        return "rate × 10"
    if step == 6 and score < 0.2:  # the loss falls and the scores sleep: SGD
        return "clipping"
    return None
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
with your("doctor"):
    mine = visits(doctor)
figures.round_of(mine)

# %% check="doctor"

# %% [markdown]
# Do not wait until it is plain. A doctor who waits for scores above 60, a loss above guessing, or no progress after 30 steps reaches 1.67 with seed 0 and 2.34 with seed 1. The first sign is not in the loss: the scores of P rise within five steps.
#
# And at step 41,000 of the run that cost a million dollars? PaLM's team (Chowdhery et al., 2022) went back to a checkpoint about 100 steps before each spike, left out the next 200 to 500 batches, and continued; the spike did not return at that place. The same batches in another state of the model made none.

# %% [markdown]
# ## What to keep
#
# | trick | it bounds | not |
# | --- | --- | --- |
# | clipping | SGD's step; what enters Adam's averages | Adam's step |
# | z-loss | drift of the output logits | attention |
# | QK-norm, QK-clip | scores | output logits |
# | warm-up, decay, a lower rate | the first steps; weights; everything | |
#
# ## Check yourself
#
# 1. Your run diverges. Which three numbers do you plot first, and which trick belongs to each?
# 2. A run's norm jumps once, and its loss is back within five steps. What do you change?
#
# <details><summary>Answers</summary>
#
# 1. The norm of the gradient (clipping, a lower rate), the largest attention score (QK-norm, cap), $\log Z$ (z-loss).
# 2. Nothing. But look at the batch.
#
# </details>

# %% tags=["hide-input"]
assert [round(value, 2) for value in (letters, after_one)] == [3.04, 1.91]
assert run_a.end > after_one + 0.2 and max(run_a.scores) > 200 and run_b.exploded and not clipped.exploded
assert min(share for share, _ in peaks(run_a.model)) > 0.8
table = {name: stored()["table"][name] for name in "AB"}
always = {name for name, row in table["A"].items() if max(row["loss"]) < after_one}
assert set(table["A"]) - always == {"none", "clipping", "z-loss", "soft cap", "QK-clip"}, always
assert min(table["A"]["none"]["score"]) > 300 and max(table["A"]["z-loss"]["log_z"]) < 1.5
assert {name for name, row in table["B"].items() if None in row["loss"]} == {"none", "z-loss", "QK-clip"}
assert max(table["B"]["clipping"]["loss"]) < letters - 0.5 and min(table["B"]["rate ÷ 10"]["loss"]) > 2.8
assert median([1, 1, 1, 1, 1000]) == 1 and round(fmean([1, 1, 1, 1, 1000])) == 201
assert round(math.sqrt(12.5), 3) == 3.536 and [round(x / math.sqrt(12.5), 3) for x in (3, 4)] == [0.849, 1.131]
swept = stored()["rates"]
assert round(min(map(fmean, swept["SGD"]["none"].values())), 2) == 2.7
assert [round(fmean(swept["SGD"]["clipping"][rate]), 2) for rate in ("0.3", "0.5", "1.0")] == [2.03, 2.03, 2.07]
lost = {name: fmean(rates["0.01"]) - fmean(rates["0.003"]) for name, rates in swept["AdamW"].items()}
assert [round(lost["none"], 1), round(lost["QK-norm"], 2)] == [0.8, 0.35] and abs(twice / once - 0.5) < 0.01
assert torch.tensor(2.9e-8).half() == 0 and torch.tensor(3.1e-8).half() > 0

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %%
import torch.nn.functional as F
from jaxtyping import Int

from lmcourse.chapters.stability.patients import left_out

# %% [markdown]
# ### A · The output softmax, and z-loss  (19 min)
#
# Softmaxes subtract the largest logit of a row first (notebook 01). How close to a division by zero do they come?

# %%
predict("smallest_z")

# %% [markdown]
# So no softmax of a library divides by zero. Only the naive form can: $e^{-200}$ is 0 in fp32, and a row of such logits gives $0/0$. The arithmetic is safe. *Learning* is not.
#
# Let the logits grow, and watch the second bar of each pair. These bars show how strongly a weight still responds to its logit: $p\,(1-p)$, times the slope of the cap if there is one ($c\tanh(z/c)$, which keeps logits within $\pm c$). At which scale are they gone, and does more precision bring them back? A cap?

# %%
explore(
    figures.softmax_of_growing_logits,
    scale=Log(0.5, 200.0),
    precision=["fp32", "bf16", "fp16"],
    cap=["none", "50", "30", "10"],
)

# %% [markdown]
# With logits 20 times as large, one weight is 1, and all slopes are 0 in fp16 and at most 2e-09 in fp32. More bits do not help. A cap of 10 spreads the weights again, but most slopes stay small: the cap itself is flat out there. What helps is to keep logits small in the first place.
#
# The cross-entropy of a token is $-\log P = \log Z - x_\text{right}$, where $Z = \sum_j e^{x_j}$.

# %%
predict("ten_on_top")

# %% [markdown]
# So the cross-entropy does not hold the logits where they are. They drift, and $\log Z$ with them. Devlin et al. (2014) wanted $Z = 1$ for another reason: a translation system that knows $Z = 1$ need not compute it, which made decoding fast. Mesh TensorFlow (Shazeer et al., 2018) had the same penalty in its code, against drift, and PaLM (Chowdhery et al., 2022) made it known as a cure for
# instability. It is a term that is 0 when $\log Z = 0$.
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

# %% [markdown]
# ### Exercise 6 · z-loss and its gradient  (4 points · 10 min · ●●●)
#
# `logits` is `(n, v)`, `targets` is `(n,)`. Return the mean of $L$ over the $n$ tokens, and its gradient with respect to the logits, both in the dtype of the logits. Find the gradient by hand: autograd is not allowed, the functions of `torch` and `nn.functional` are. Logits of 200 must not overflow.


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

# %% [markdown]
# <details><summary>The gradient, once yours passes</summary>
#
# The fourth column is $2\alpha \log Z = 1.08$ times the second: $\partial \log Z / \partial x_j = p_j$, and the chain rule does the rest.
#
# $$\frac{\partial L}{\partial x_j} = p_j - [j = \text{right}] + 2\alpha \log Z \cdot p_j$$
#
# </details>
#
# > **Spot the slip.** A colleague has read that the objective is $\log P - \alpha \log^2 Z$ and hands it to `loss.backward()`. What happens?
# > <details><summary>Answer</summary>The optimizer goes down. So the right token becomes less likely and $Z$ moves away from 1, faster with every step. Papers print what they maximise; the loss is its negative.</details>

# %% [markdown]
# **In real models.** After PaLM, Baichuan 2 (Yang et al., 2023, a variant with the largest logit), DCLM (Li et al., 2024) and OLMo 2 (OLMo Team, 2025) use a z-loss. A mixture of experts may have one on the softmax of its router (Zoph et al., 2022). `next_token_loss` in `lmcourse/models/loss.py` is ours.

# %% [markdown]
# ### B · How large can a score get?  (10 min)
#
# With QK-norm, how large can a score get? Before their scales, $\hat q$ and $\hat k$ both have length $\sqrt d$. Two such vectors have a product of at most $d$, when they point the same way; divided by $\sqrt d$ that leaves $\sqrt d$: 8 for a head of 64, and 11.3 for one of 128. With the same scale $\gamma$ everywhere it is $\sqrt d\,\gamma^2$.

# %%
torch.manual_seed(0)
x, (w_q, w_k) = torch.randn(32, 256), torch.randn(2, 256, 64) / 16
with your("qk_norm"):
    for growth in (1, 10, 100):
        q, k = (x @ (growth * w)[None, None] for w in (w_q, w_k))
        plain, normed = (q @ k.mT).abs().max() / 8, qk_norm(q, k, torch.ones(64), torch.ones(64)).abs().max()
        print(f"W_q and W_k times {growth:3}: largest score {plain:,.0f}; with your norm {normed:.1f}")

# %% [markdown]
# Without a norm scores grow with the square of the weights. With it they stay, and no 32 × 32 random pair comes near the bound of 8.

# %% [markdown]
# ### Exercise 7 · The largest score  (2 points · 6 min · ●●●)
#
# The scales differ from feature to feature. What is the largest score that *any* two vectors can reach? Take $\varepsilon$ as 0 and let nothing happen between norm and product. (With RoPE in between, features of $q$ and $k$ are mixed in pairs, and this bound is not the last word.)


# %% exercise="max_logit_bound"
def max_logit_bound(gamma_q: Float[Tensor, " d"], gamma_k: Float[Tensor, " d"]) -> float:
    """The largest |score| under QK-norm: 4.0 for the scales (2, 1, 1, 1) and (1, 1, 1, 1)."""
    ### BEGIN SOLUTION
    return math.sqrt(len(gamma_q)) * (gamma_q * gamma_k).abs().max().item()
    ### END SOLUTION


# %% check="max_logit_bound"

# %% [markdown]
# **May it be left out afterwards?** Training is over, the weights are good. Is the norm still needed when the model writes?

# %%
predict("norm_left_out")

# %% tags=["nbval-ignore-output", "because losses of these runs differ between processors"]
kept, without = left_out(train(0, **treat("A", "QK-norm")))
print(f"seed 0: {kept:.2f} nats with its norms, {without:.2f} without")
for seed in (1, 2):
    kept, without = stored()["left_out"][seed]
    print(f"seed {seed}, stored: {kept:.2f} with, {without:.2f} without")

# %% [markdown]
# So the norm stays. It is part of the function that the weights were fitted to, learned scales included.

# %% [markdown]
# ### C · Soft-capping  (11 min)
#
# QK-norm removes the length of *every* query, small ones too. A gentler way is to leave small scores alone and to bend only the large ones. A tanh does that: near 0 it is a straight line of slope 1, and it never goes beyond ±1. Scaled so that it never goes beyond $\pm c$ and still has the slope 1 at 0, it is called a *soft cap*. With $c = 50$:
#
# | score | 0 | 10 | 50 | 100 | −100 |
# | --- | --- | --- | --- | --- | --- |
# | capped | 0 | 9.87 | 38.08 | 48.20 | −48.20 |

# %%
predict("through_the_cap")

# %%
explore(figures.soft_cap_curve, cap=[10, 30, 50], logit=(-150.0, 150.0, 5.0))

# %% [markdown]
# ### Exercise 8 · Soft cap and slope  (3 points · 6 min · ●●)
#
# Return the capped logits, and the slope at each of them without autograd. Logits of 100,000 must not overflow. Raise `ValueError` for a cap of zero or less.


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

# %% [markdown]
# $$\text{capped} = c \cdot \tanh\!\Big(\frac{z}{c}\Big), \qquad \frac{\partial\,\text{capped}}{\partial z} = 1 - \tanh^2\!\Big(\frac{z}{c}\Big)$$
#
# A cap bounds the *value* of a score. The gradient through a capped score is small, and beyond the cap the weights can grow unseen. In the table of A they do: 500 to 840.
#
# **In real models.** A group at NVIDIA (Rybakov et al., 2024) trained a model of 830 million parameters at rising rates until it diverged. In their comparison the baseline has a perplexity of 11.19; capping alone is worse than that, and QK-norm better, because it allows a higher rate. A norm *and* a cap together allowed a rate 1.5 times
# as high as the norm alone. It is one model, and perplexity on one set of texts, without repeats.

# %% [markdown]
# ### D · Sixteen bits  (16 min)
#
# The core was all in fp32. In 16 bits two more things can go wrong, one for each format.
#
# **fp16 ends too early below.** Gradients under about $3 \cdot 10^{-8}$ round to 0 (notebook 01). The cure: multiply the loss by a large scale $S$ before the backward pass, and divide the gradients by $S$, in fp32, before the update. Which $S$? Too small, and gradients vanish; too large, and they overflow. So the scale adapts by itself (Micikevicius et al., 2018):
#
# - after an overflow anywhere, skip this update and halve $S$;
# - after `interval` good steps in a row, double $S$.
#
# By hand, with $S = 1024$ and doubling after 2 good steps: good, good ($S = 2048$), overflow ($S = 1024$, no update), good, good ($S = 2048$).

# %% [markdown]
# ### Exercise 9 · A loss scaler  (4 points · 10 min · ●●●)
#
# Write a class with an attribute `scale` and a method `unscale`, which is called once per step with the fp16 gradients of the *scaled* loss. If all are finite it returns them in float32, divided by the scale they were made with; if not, it returns `None`: the update is skipped. Either way it then
# adapts `scale` as above, and after doubling or an overflow it counts from 0. A step with an empty list of gradients is a good step. (Torch's own scaler, in `torch.amp`, is not allowed.)


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

# %% [markdown]
# Your scaler in a made-up run, whose gradients shrink from 0.3 to 0.01. PyTorch starts at $2^{16}$ and waits for 2,000 good steps.

# %%
with your("LossScaler"):
    scaler, skipped = LossScaler(2.0**24, interval=100), []
    for step in range(1001):
        largest = torch.tensor([0.3 * math.exp(-step / 300) + 0.01]) * scaler.scale
        skipped += [step] if scaler.unscale([largest.half()]) is None else []
        if step % 250 == 0:
            print(f"step {step}: scale 2^{math.log2(scaler.scale):.0f}, {len(skipped)} steps skipped")

# %% [markdown]
# With bf16 you need no scaler: it has the exponent of fp32 (notebook 01).
#
# **bf16 has wide gaps.** With 8 bits of significand, an update changes a weight only if it is more than half a gap, and gaps grow with the weight. So a weight that is stored in bf16 and grows stops learning. Weight decay works against that: if every update pushes the same way by $\eta$, then $w \leftarrow w - \eta\lambda w + \eta$ comes to rest at $w = 1/\lambda$. Take $\eta = 0.001$. From which size on is an update lost? And which decay would keep every weight below that?

# %%
explore(figures.lost_updates, rate=Log(1e-5, 1e-1, 10), decay=Log(0.01, 10.0))

# %% [markdown]
# With $\eta = 0.001$ updates are lost from 0.5 on. The usual $\lambda = 0.1$ lets weights grow to 10; it would take $\lambda = 2$ to stop them at 0.5. So decay alone does not make bf16 weights safe: real runs keep a master copy in fp32 (notebook 14). But D'Angelo et al. (2023) find that in mixed precision with bf16 too, models without decay diverge where those with it do not.

# %% [markdown]
# ### E · Norms everywhere, warm-up, biases  (4 min)
#
# Most models have a norm before each branch of a block (notebook 10). Some have one after the branch as well, or instead. Now there are norms on queries and keys too. It is striking how often the answer to "it is unstable" has been another norm. How many has a block today?

# %%
predict("norms_in_gemma_3")

# %%
figures.norm_positions()

# %% [markdown]
# DCLM (Li et al., 2024), OLMo 2, Qwen3 and Gemma 3, among others, normalise queries and keys. The model has one more norm than its blocks: the last one, before the head.
#
# The place of the norm also decides how much warm-up a model needs. The first transformers had it *after* the addition ("post"), and were trained with warm-up. Xiong et al. (2020) showed why: at the start, gradients near the output of a post-norm model are large, and with the norm before each branch they are not. Does patient A agree? Compare with the table of section 6: untreated, it ends between 2.56 and 2.73.

# %%
print("\n".join(table_lines("A, other models")))

# %% [markdown]
# It does. Post-norm without warm-up is the sickest row, sicker than pre-norm. With a warm-up, which is a lower rate for a while and here for the whole run, it is among the healthy. And norms can do the work of a warm-up: with one before *and* after each branch, and on queries and keys, the model survives a rate that it could not survive before.
#
# **Biases** make no clear difference. (Large models are said to be more stable without, and most models since PaLM have none. Two rows of a tiny model prove nothing about that.)
#
# ### F · In real models  (1 min)
#
# **Clipping.** GPT-3, LLaMA and OLMo 2 clip to a norm of 1.0 (Brown et al., 2020; Touvron et al., 2023; OLMo Team, 2025). Adam's step hardly depends on the size of its gradients, so in these models clipping is a guard against single bad batches: one
# giant gradient would otherwise sit in Adam's averages for many steps.
#
# **z-loss, QK-norm, cap.** DCLM (Li et al., 2024) and OLMo 2 have the first two, Qwen3 and Gemma 3 the second, Gemma 2 the third.
#
# ### Check yourself
#
# 1. Why does the z-loss pull hardest at the most probable token?
# 2. PyTorch's fused attention (`scaled_dot_product_attention`) has no soft cap, and QK-norm needs nothing from it. Why?
# 3. Your loss scaler halves at every step for 30 steps. What is going on?
# 4. QK-norm with $\gamma = 1$ and a head of 64: scores are at most 8. How peaked can a softmax over 1000 tokens become at most? Is that enough?
#
# <details><summary>Answers</summary>
#
# 1. Its gradient is $2\alpha\log Z \cdot p_j$: lowering the largest logit lowers $Z$ most.
# 2. The cap acts on each score, inside the kernel, where scores never leave the chip. The norm acts on $q$ and $k$ before the kernel sees them.
# 3. The gradients are infinite or NaN at any scale: an overflow in the forward pass, or a NaN. Halving does not help; our trainer gives up after 20 such steps.
# 4. One score of 8 and 999 of −8: $1/(1 + 999\,e^{-16})$, which is 0.9999. It can still look at one token, if the others all point the opposite way. Against 999 scores of 0 it is $1/(1 + 999\,e^{-8})$, or 0.75. Learned scales raise the bound where that is needed.
#
# </details>
#
# ### Further reading
#
# - Wortsman et al., 2023, *Small-scale proxies for large-scale transformer training instabilities*: this notebook, done properly, at many sizes.
# - Zhai et al., 2023, *Stabilizing transformer training by preventing attention entropy collapse*.
# - Dehghani et al., 2023, *Scaling vision transformers to 22 billion parameters*, on QK-norm.
# - OLMo Team, 2025, *2 OLMo 2 Furious*, section 3, on spikes and what was changed against them.
# - Rybakov et al., 2024, *Methods of improving LLM training stability*.
# - In this package: `lmcourse/training/spike_detector.py`, `lmcourse/nn/qk_norm.py` and `lmcourse/models/loss.py`, which are short.

# %% tags=["hide-input"]
other = stored()["table"]["A, other models"]
assert {name for name, row in other.items() if max(row["loss"]) > after_one} == {"post-norm", "biases"}
assert min(other["post-norm"]["loss"]) > max(table["A"]["none"]["loss"])
z_by_hand = sum(math.exp(x) for x in (5, 4, 3))
assert [round(z_by_hand, 1), round(math.log(z_by_hand), 3)] == [223.1, 5.408]
assert [round(math.log(z_by_hand) - 5, 3), round(0.1 * math.log(z_by_hand) ** 2, 3)] == [0.408, 2.924]
logits_by_hand = torch.tensor([5.0, 4.0, 3.0], dtype=torch.float64)
p_by_hand = logits_by_hand.softmax(0).tolist()
assert [round(p, 3) for p in p_by_hand] == [0.665, 0.245, 0.09] and round(p_by_hand[0] - 1, 3) == -0.335
assert [round(0.2 * math.log(z_by_hand) * p, 3) for p in p_by_hand] == [0.719, 0.265, 0.097]
assert round(0.2 * math.log(z_by_hand), 2) == 1.08 and round(50 * math.tanh(1), 2) == 38.08
assert [round(50 * math.tanh(x / 50), 2) for x in (10, 100)] == [9.87, 48.2] and round(1 - math.tanh(2) ** 2, 2) == 0.07
assert round(math.sqrt(128), 1) == 11.3 and torch.tensor(-200.0).exp() == 0
assert round(1 / (1 + 999 * math.exp(-16)), 4) == 0.9999 and round(1 / (1 + 999 * math.exp(-8)), 2) == 0.75
assert torch.tensor(0.5).bfloat16() + torch.tensor(0.001).bfloat16() == 0.5
assert torch.tensor(0.25).bfloat16() + torch.tensor(0.001).bfloat16() > 0.25
