# %% [markdown]
# # 23 · Inside a model
#
# **Core · 90 min · 7 exercises · 21 points** · **Further · 21 min · 1 exercise · 2 points**
#
# A model can do something, and its weights lie open before you. **How do you find out what it uses?** What is *in there* is not the same as what is *used*.
#
# At the end you have cut a small model, read it and pushed it, and you have kept so little of it that most of it is gone, and the ability is still there.
#
# **You need** heads and their switch (notebook 08), the stream of a transformer and the logit lens (12). No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor

from lmcourse.chapters.inside import figures
from lmcourse.chapters.inside.circuits import HEAD_PRICE, Odds, fraction_kept, kept, price
from lmcourse.chapters.inside.copier import trained_copier
from lmcourse.chapters.inside.crowded import train_crowded
from lmcourse.chapters.inside.cut import loss_before_so, mean_parts, parts_at_so, recorded, story_run, streams
from lmcourse.chapters.inside.measured import directions, edit_at, lost_without_units, only, probe_tasks
from lmcourse.chapters.inside.models import new_model, story_model, story_settings
from lmcourse.chapters.inside.words import StoryRows, hero_tokens, paragraphs, vocabulary
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.own_package import load_parts

start("23-inside")
torch.set_num_threads(1)  # models this small are fastest on one

# %% [markdown]
# ## 1 · An ability and its measure
#
# The stories of notebook 05, this time as words. Each paragraph names a hero, and at its end names the hero again:
#
# > Clara is in the wood . One bear that many owls fear sleeps . Many hunters wait . So **Clara** goes home .
#
# A model of two blocks (64 features, four heads and 128 hidden units in each) has learned this with the trainer of notebook 13, on rows of 64 words that begin with a paragraph. Two models, which differ in the seed of weights and texts, are stored with the course.
#
# How well does it know the hero? The accuracy is 1.00, and stays there while you break a good part of the model. So we take the **odds** after "So": the logit of the right hero minus the logit of one other hero, averaged over 256 new paragraphs. At zero the model cannot tell the two apart.
#
# We also need texts in which everything is the same except the answer: put the other hero's name in the place of the first word, the only place where the hero is named. Now the odds should be as far *below* zero.

# %%
test = paragraphs(77, 256)
models = {"seed 0": story_model(0), "seed 1": story_model(1)}
clean, wrong = {}, {}
for name, model in models.items():
    run = story_run(model, test)  # runs the model on some texts, and returns the odds of the heroes of `test`
    clean[name], wrong[name] = run(test.texts), run(test.others)
    print(f"{name}: odds {clean[name]:.2f}, with the other hero as first word {wrong[name]:.2f}")

# %%
explore(figures.odds_along, paragraph=(0, 5), seed=[0, 1])

# %% [markdown]
# Strictly, these are *log*-odds: 8 means $e^8$ to 1, or 3,000 to 1. (Block E of Further trains a model of your own.)
#
# ## 2 · Cut a head
#
# Which parts does the model need? Take one away and look at the odds: **ablation**. But something must stand in the head's place:
#
# - **zero**, which this head may never say;
# - its **mean** over many texts: what it says anyway;
# - what it computes for the **other** hero, as in notebook 08 (`head_effect`): then only what depends on the hero is gone.

# %% [markdown]
# ### Exercise 1 · Replaced  (3 points · 8 min · ●●)
#
# `results` holds what the heads of one layer computed, (b, heads, s, d_head). `how` maps the number of a head to "zero", "mean" or "other"; heads that it does not name stay. `mean` has the mean of each head, (heads, d_head), the same at each word; `other` has the results for the other texts, with the shape of `results`. Return the results to continue with. The arguments stay as they are.


# %% exercise="replaced"
def replaced(
    results: Float[Tensor, "b heads s d_head"],
    how: dict[int, str],
    mean: Float[Tensor, "heads d_head"],
    other: Float[Tensor, "b heads s d_head"],
) -> Float[Tensor, "b heads s d_head"]:
    """The heads' results, some of them replaced."""
    ### BEGIN SOLUTION
    changed = results.clone()
    for head, way in how.items():
        if way == "zero":
            changed[:, head] = 0
        elif way == "mean":
            changed[:, head] = mean[head]
        else:
            changed[:, head] = other[:, head]
    return changed
    ### END SOLUTION


# %% check="replaced"

# %%
predict("head_set_to_zero")

# %% [markdown]
# The table shows which fraction of the odds is lost; in the third column 1 means that the odds are those of the other hero. `only(kind, layer, f)` is a change as in notebooks 08 and 11: it applies `f` in one layer.

# %%
lost = {}
with your("replaced"):
    for name, model in models.items():
        run, mean, other = story_run(model, test), mean_parts(model), recorded(model, test.others)
        for layer, head in [(layer, head) for layer in (0, 1) for head in range(4)]:
            of_head = lost[name, layer, head] = {}
            for how in ("zero", "mean", "other"):
                values = {"mean": mean["heads", layer], "other": other["heads", layer]}
                cut = only("heads", layer, partial(replaced, how={head: how}, **values))
                gap = clean[name] - (wrong[name] if how == "other" else 0)
                of_head[how] = (clean[name] - run(test.texts, change=cut)) / gap
            row = (f"{how} {round(fraction, 2) + 0.0:5.2f}   " for how, fraction in of_head.items())
            print(f"{name}, layer {layer} head {head}:  ", *row)

# %% [markdown]
# With seed 0 one head carries nearly everything. With seed 1 the work is spread: head 3 of layer 0, heads 1 and 2 of layer 1. So say "in *this* model", always.
#
# For these heads the three columns nearly agree. That is luck. Now all 128 units of a layer at once:

# %%
for name, model in models.items():
    for layer in (0, 1):
        of_units = lost[name, layer, "units"] = lost_without_units(model, test, layer)
        print(f"{name}, units of layer {layer}:  ", *(f"{how} {fraction:.2f}  " for how, fraction in of_units.items()))

# %% [markdown]
# How much do the units of layer 0 do in seed 1: a fifth, or three fifths? **"What is lost" has no meaning without "replaced by what".** (Zhang and Nanda, 2024, and Miller et al., 2024, found the same in larger models.)
#
# ## 3 · Who writes the answer?
#
# Now take nothing away, and read. The last stream at "So" is a sum: the embedding, and what every head and every layer of units added. The last norm divides it by its root mean square and multiplies by a weight; the product with a row of the unembedding is a logit. Only the root mean square needs the whole sum. With this one number fixed, each part has its own share of the odds (*direct logit attribution*; Elhage et al., 2021).

# %% [markdown]
# ### Exercise 2 · Attribution  (3 points · 8 min · ●●)
#
# `parts` maps names to what each part added at "So", (b, d): together they are the last stream. $\text{RMS}(x) = \sqrt{\text{mean}(x^2) + 10^{-5}}$, over the features of a text. `norm_weight` is the weight of the last norm, (d,), and `unembedding` has a row for each word, (v, d). `right` and `wrong` are the tokens of the right and the other hero for each text. Return for each name its part of the odds (logit of right − logit of wrong), averaged over the texts, as a plain number. All together must add up to the odds.


# %% exercise="attribution"
def attribution(
    parts: dict[str, Float[Tensor, "b d"]],
    norm_weight: Float[Tensor, " d"],
    unembedding: Float[Tensor, "v d"],
    right: Int[Tensor, " b"],
    wrong: Int[Tensor, " b"],
) -> dict[str, float]:
    """Return what each part writes into the odds, by name."""
    ### BEGIN SOLUTION
    stream = torch.stack(list(parts.values())).sum(dim=0)
    rms = (stream.square().mean(dim=1, keepdim=True) + 1e-5).sqrt()
    direction = (unembedding[right] - unembedding[wrong]) * norm_weight / rms
    return {name: (part * direction).sum(dim=1).mean().item() for name, part in parts.items()}
    ### END SOLUTION


# %% check="attribution"

# %%
predict("who_writes_most")

# %%
written = {}
with your("attribution"):
    for name, model in models.items():
        pair = hero_tokens()[test.hero], hero_tokens()[test.other]
        weights = model.norm.weight, model.head.linear.weight
        written[name] = attribution(parts_at_so(model, test), *weights, *pair)
        print(f"{name}: the parts add up to {sum(written[name].values()):.3f}, the odds are {clean[name]:.3f}")

# %%
figures.written_odds(written)

# %% [markdown]
# Compare with section 2. In seed 1, head 3 of layer 0 writes 0.52 of 8.34, which is 6 %. Without it, more than a third of the odds is lost. **Direct attribution sees what a part writes itself, not what works through others.**
#
# ## 4 · Where is the hero?
#
# After block 1 the hero is in the stream at "So". And before? Run the text with the *other* hero and put the clean stream back, at one layer and some words: **patching** (*causal tracing*; Meng et al., 2022). The odds that come back show where the information is, on its way to the answer.

# %% [markdown]
# ### Exercise 3 · Restore the stream  (3 points · 7 min · ●●)
#
# `run(tokens)` returns the odds of the right heroes for these texts. `run(tokens, edit)` calls `edit(layer, stream)` three times, in order: with 0 and the embedded words, with 1 and the stream after the first block, with 2 and the stream after the second. Streams have the shape (b, s, d), and the model continues with what `edit` returns. Run the texts `other`, and put in the stream of the run on `clean`, at `layer`, where `positions` (b, s) is True. Return the fraction of the gap that comes back: 0 for the odds of `other`, 1 for those of `clean`.


# %% exercise="restore_stream"
def restore_stream(
    run: Callable[..., float],
    other: Int[Tensor, "b s"],
    clean: Int[Tensor, "b s"],
    layer: int,
    positions: Bool[Tensor, "b s"],
) -> float:
    """The fraction of the odds that the clean stream restores, at one layer and some words."""
    ### BEGIN SOLUTION
    recorded = {}

    def record(at: int, stream: Tensor) -> Tensor:
        recorded[at] = stream
        return stream

    def restore(at: int, stream: Tensor) -> Tensor:
        return torch.where(positions[..., None], recorded[at], stream) if at == layer else stream

    high, low = run(clean, record), run(other)
    return (run(other, restore) - low) / (high - low)
    ### END SOLUTION


# %% check="restore_stream"

# %%
predict("where_is_the_hero")

# %%
restored = {}
with your("restore_stream"):
    for name, model in models.items():
        some = test[:128]  # half of the texts are enough here
        run, places = story_run(model, some), some.places.values()
        rows = [[restore_stream(run, some.others, some.texts, layer, where) for where in places] for layer in range(3)]
        restored[name] = rows
figures.restored_map(restored)

# %% [markdown]
# Before block 0 everything is at the first word, after block 1 at "So". In between, most is *still* at the first word: block 1 fetches it, with the heads of section 2. In seed 1 a good part is at "So" already: head 3 of layer 0 has begun. (Two shares of a row need not add up to 1: the odds are not linear in the stream.)
#
# ## 5 · A probe, and its controls
#
# Patching asks what the model uses. A **probe** asks what anybody could read: take the stream at "So" of many texts, and fit a linear map from it to the hero.

# %% [markdown]
# ### Exercise 4 · A probe  (3 points · 7 min · ●●)
#
# `x` has n vectors, (n, d), and `labels` their classes, from 0 to `classes` − 1. Subtract the mean of `x`, append a column of ones, and fit weights $W$ to a table $Y$ of zeros and ones, one column for each class, by least squares with a ridge on all rows of $W$:
#
# $$(A^\top A + \text{ridge} \cdot I)\, W = A^\top Y, \qquad A = [x - \bar x,\ 1]$$
#
# Return a *function*: it takes new vectors, (m, d), and returns for each the class with the largest value, (m,).


# %% exercise="probe"
def probe(
    x: Float[Tensor, "n d"], labels: Int[Tensor, " n"], classes: int, ridge: float = 0.1
) -> Callable[[Tensor], Tensor]:
    """A function that names the class of each new vector."""
    ### BEGIN SOLUTION
    mean = x.mean(dim=0)

    def rows(vectors: Tensor) -> Tensor:
        return F.pad(vectors - mean, (0, 1), value=1.0)

    a, y = rows(x), F.one_hot(labels, classes).to(x.dtype)
    weights = torch.linalg.solve(a.T @ a + ridge * torch.eye(a.shape[1]), a.T @ y)
    return lambda vectors: (rows(vectors) @ weights).argmax(dim=1)
    ### END SOLUTION


# %% check="probe"

# %% [markdown]
# A probe's score means nothing without **controls**: a label that is not needed at "So", here the *place* of the paragraph; a model that was *never trained*; and *shuffled* labels (Hewitt and Liang, 2019).

# %%
predict("probe_of_random_weights")

# %%
scores = {}
with your("probe"):
    for name, model in (models | {"never trained": new_model(5)}).items():
        for place, tasks in probe_tasks(model):
            for what, (fitted, points, labels) in tasks.items():
                scores[name, place, what] = (probe(*fitted)(points) == labels).double().mean().item()
            row = "   ".join(f"{what} {scores[name, place, what]:.2f}" for what in tasks)
            print(f"{name:13} {place:13}   {row}")

# %% [markdown]
# - 0.41 is no skill: so many of the new paragraphs have the commonest hero.
# - After block 0 the probe finds the hero nearly always, also in seed 0, where patching found it still at the first word.
# - It finds the hero with 0.94 in a model that was **never trained**. Random attention averages the words before, and a linear map finds the first one in the average. The score shows what a *linear map* can do.
# - The place is as legible as the hero, and useless for naming the hero.
# - 60 random labels are "found" on the 60 texts of the fit: 64 features can do that. Test on new texts.
#
# > **Spot the slip.** "A probe reads the hero at 'So' after block 0 with 1.00. So block 1 only has to copy it from there."
#
# (After block 0, "So" gives back 0.14 in seed 0. Belinkov, 2022, lists what probes have been taken for.)
#
# ## 6 · Legible or used? Erase, and push
#
# If a direction of the stream is used, taking it away must hurt (*amnesic probing*; Elazar et al., 2021), and adding it must act. The hero's directions: the mean of the stream for each hero gives eight points, and their differences span seven directions.

# %% [markdown]
# ### Exercise 5 · Erase  (2 points · 5 min · ●●)
#
# `stream` has b vectors, (b, d), and `means` the mean vector of each of k classes, (k, d). The *centre* is the mean of the class means. Change each vector of the stream so that within the span of the differences `means` − centre it is where the centre is, and outside of it stays what it is. What all classes share stays, too.


# %% exercise="erase"
def erase(stream: Float[Tensor, "b d"], means: Float[Tensor, "k d"]) -> Float[Tensor, "b d"]:
    """The stream without the differences between the classes."""
    ### BEGIN SOLUTION
    centre = means.mean(dim=0)
    directions, _ = torch.linalg.qr((means[1:] - means[0]).T)  # (d, k - 1): the same span as means - centre
    return stream - (stream - centre) @ directions @ directions.T
    ### END SOLUTION


# %% check="erase"

# %%
predict("erased_after_block_0")

# %%
odds_without = {}
with your("erase"):
    for name, model in models.items():
        for layer in (1, 2):
            for what, means in directions(model, layer).items():
                edit = edit_at(layer, partial(erase, means=means), test.so)
                odds_without[name, layer, what] = story_run(model, test)(test.texts, edit)
            row = "   ".join(
                f"{what} {odds_without[name, layer, what]:5.2f}" for what in ("hero", "place", "7 at random")
            )
            print(f"{name}: odds {clean[name]:.2f}; erased at So after block {layer - 1}:   {row}")

# %% [markdown]
# After block 0 the probe finds the hero nearly always; without these directions seed 0 loses 6 % of its odds, and seed 1 a third. After block 1 everything is lost. **Legible is not used.** (Without the place, 19 and 12 % are lost after block 1, more than without seven directions at random. This is measured, not explained.)
#
# Now push.

# %% [markdown]
# ### Exercise 6 · Steer  (2 points · 3 min · ●)
#
# `stream` is (b, s, d), `means` (k, d); `hero` and `other` have for each text the class that is there and another one, (b,). Add `a` times (mean of the other − mean of this one) where `where`, (b, s), is True. The stream that you are given stays as it is.


# %% exercise="steer"
def steer(
    stream: Float[Tensor, "b s d"],
    means: Float[Tensor, "k d"],
    hero: Int[Tensor, " b"],
    other: Int[Tensor, " b"],
    a: float,
    where: Bool[Tensor, "b s"],
) -> Float[Tensor, "b s d"]:
    """The stream, pushed from one class towards another at some words."""
    ### BEGIN SOLUTION
    push = a * (means[other] - means[hero])
    return stream + where[..., None] * push[:, None, :]
    ### END SOLUTION


# %% check="steer"

# %%
predict("steered_too_far")

# %%
steered, everywhere = {}, torch.ones_like(test.so)
with your("steer"):
    for name, model in models.items():
        pair = {"means": directions(model, 2)["hero"], "hero": test.hero, "other": test.other}
        for a in (0.0, 0.5, 1.0, 2.0, 4.0):
            pushed = steer(streams(model, test.texts)[2], **pair, a=a, where=test.so)
            says = test.at_so(model.head(model.norm(pushed))).softmax(dim=1)  # only norm and head follow
            turned = (says.argmax(dim=1) == hero_tokens()[test.other]).double().mean().item()
            edit = edit_at(2, partial(steer, **pair, a=a, where=everywhere))
            of_words = loss_before_so(model, test, edit=edit)
            steered[name, a] = turned, says[:, hero_tokens()].sum(dim=1).mean().item(), of_words
            row = "names the other {:.2f}, any hero {:.2f}; everywhere: loss {:.2f}".format(*steered[name, a])
            print(f"{name}, a = {a}: {row}")

# %% [markdown]
# One vector, made of means, and the model names the hero you want in every text (*activation addition*; Turner et al., 2023; Rimsky et al., 2024). More does not help more: at a = 4 the stream is where training has never been, and the model often names no hero. Pushed at every word, the vector spoils the rest of the text: the last number is the loss of the other words.
#
# ## 7 · As little as possible
#
# **How little of the model is enough?** A *circuit* is a list of heads and units that compute as they are. All others are replaced by their mean over 512 other paragraphs. A head costs 16 and a unit 1, so everything costs 384.
#
# | what stays | price | odds kept, seed 0 and 1 |
# | --- | --- | --- |
# | nothing; all heads; all units | 0; 128; 256 | 0.16, 0.25; 0.22, 0.35; 0.14, 0.13 |
# | 4 heads and 64 units at random, mean of ten | 128 | 0.20, 0.34 |
# | 8 heads and 200 units at random, mean of ten | 328 | 0.83, 0.91 |

# %% [markdown]
# ### Exercise 7 · A circuit  (5 points · 12 min · ●●●)
#
# `odds()` returns the odds of each of 256 texts, (256,). `odds(change)` calls `change(kind, layer, values)` for the heads ("heads", results of the shape (b, 4, s, 16)) and the units ("units", (b, s, 128)) of both layers, and the model continues with what it returns; gradients flow through. `odds(change, rows)` reads only some of the texts, such as `torch.arange(64)`. `means` maps ("heads", layer) to (4, 16) and ("units", layer) to (128,): the means to put in.
#
# Return two lists of pairs (layer, number), both counted from 0: the heads and the units that stay. The course measures what they keep of the odds **on 400 new paragraphs**, in two models; the worse of the two counts, and the mean of both prices. Other models come in grading, so look for the parts, do not write them down. Your search may read 10,000 texts per model: `odds(change)` reads 256.
#
# Keep at least 0.9 of the odds. That earns 1 point; a price of at most 340 earns 2, 270 earns 3, and **200, the finish line, all 5.**


# %% exercise="circuit"
def circuit(
    odds: Callable[..., Tensor], means: dict[tuple[str, int], Tensor]
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """The heads and the units that stay."""

    ### BEGIN SOLUTION
    def mixed(amounts: dict[tuple[str, int], Tensor]) -> Callable[[str, int, Tensor], Tensor]:
        def change(kind: str, layer: int, values: Tensor) -> Tensor:
            mean, amount = means[kind, layer], amounts[kind, layer]
            if kind == "heads":
                mean, amount = mean[:, None], amount[:, None, None]
            return mean + amount * (values - mean)

        return change

    scores = dict.fromkeys(means, 0.0)
    for a in (0.1, 0.3, 0.5, 0.7, 0.9):
        amounts = {place: (a * torch.ones(len(mean))).requires_grad_() for place, mean in means.items()}
        gradients = torch.autograd.grad(odds(mixed(amounts)).mean(), [*amounts.values()])
        scores = {place: scores[place] + gradient for place, gradient in zip(amounts, gradients, strict=True)}
    worth = [(score / (16 if place[0] == "heads" else 1)).tolist() for place, score in scores.items()]
    parts = [(value, place, at) for place, row in zip(scores, worth, strict=True) for at, value in enumerate(row)]
    parts.sort(reverse=True)
    few, count = 20, len(parts)  # too few parts, and enough
    with torch.no_grad():
        whole = odds().mean()
        while count - few > 1:
            middle = (few + count) // 2
            on = {place: torch.zeros(len(mean)) for place, mean in means.items()}
            for _, place, at in parts[:middle]:
                on[place][at] = 1
            if odds(mixed(on)).mean() >= 0.95 * whole:
                count = middle
            else:
                few = middle
    lists = [[(place[1], at) for _, place, at in parts[:count] if place[0] == kind] for kind in ("heads", "units")]
    return lists[0], lists[1]
    ### END SOLUTION


# %%
circuits = {}
with your("circuit"):
    for name, model in models.items():
        means = mean_parts(model)
        heads, units = circuits[name] = circuit(Odds(model, test), means)
        fraction = fraction_kept(model, heads, units, means)
        alone = loss_before_so(model, test, kept(heads, units, means))
        print(f"{name}: price {price(heads, units)}, {fraction:.3f} of the odds on new paragraphs;", end=" ")
        print(f"loss of the other words {alone:.2f} instead of {loss_before_so(model, test):.2f}")

# %% check="circuit"

# %%
figures.circuit_parts(circuits)

# %% [markdown]
# Do the two models keep the same parts? And what is left of the rest of their language?
#
# <details><summary>Afterwards: how others did it</summary>
#
# One gradient, taken while everything is on, misleads: the parts in its order need a price of 383 and 359, because parts stand in for each other. What works: mix every part with its mean, and take the gradient at several amounts on the way from nothing to everything (*integrated gradients*; Sundararajan et al., 2017). That gave prices of 181, 183, 201 and 175 with seeds 0 to 3, and kept about 0.93 or more on new paragraphs. One gradient half way, at 0.5, even gave 208, 151, 146 and 117. Learned amounts, with the price as a penalty, gave 114, 113, 69 and 107, with less room.
#
# With seed 0 layer 1 head 0 always stays, with seed 1 layer 0 head 3 and layer 1 heads 1 and 2: the heads of section 2.
#
# Automatic circuit discovery cuts edges one at a time (Conmy et al., 2023); attribution patching estimates all cuts with one gradient (Syed et al., 2023). Wang et al. (2022) found by hand the heads with which GPT-2 small names the right person in "Mary and John … John gave a drink to". When a part is cut, later parts may stand in for it: *self-repair* (McGrath et al., 2023).
#
# </details>

# %% [markdown]
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | Which measure? | one that moves before the answer flips: a difference of logits, and a text that differs in one word |
# | What is lost without a part? | it depends on what stands in its place: zero, a mean, another text |
# | What does a part write? | a share of the odds, with the norm of the whole stream; what works through others is not in it |
# | Where is the information? | where the clean stream, put into the other run, brings the odds back |
# | A probe scores 0.99? | compare with a model that was never trained, shuffled labels, and a label that is not needed |
# | Is it used? | erase it: the odds must fall; push it: the answer must turn |
# | What is the circuit? | of this model, for this ability, with this replacement |
#
# ## Check yourself
#
# 1. You set a head to zero and the loss doubles. A colleague puts in its mean, and nothing happens. What does the head do?
# 2. A head writes 0.02 of 8 into the odds. May you cut it?
# 3. A probe finds in layer 3 of a large model whether a sentence is true, with 0.9. Which three numbers do you ask for?
# 4. After the clean stream is put in at one word, 0.6 of the odds come back; at another word, 0.6, too. Is that possible?
#
# <details><summary>Answers</summary>
#
# 1. It says something that does not depend on the text, and the rest of the model counts on it.
# 2. Only after a test: a later part may read it (section 3).
# 3. The score for a model that was never trained; the score for shuffled labels, on new texts; what happens to the model's answers if the directions are erased.
# 4. Yes. Either word may be enough, or both are needed in part: shares need not add up to 1.
#
# </details>
#
# The folded cell checks these numbers.

# %% tags=["hide-input"]
answers = "The numbers of the text are those of the course's answers. Yours gave others."
assert [round(odds, 2) for odds in (*clean.values(), *wrong.values())][:2] == [8.77, 8.34] and min(
    wrong.values()
) > -8.7
assert len(test.texts) == 256 and len(vocabulary()) == 145 and round(math.exp(8), -2) == 3000
assert HEAD_PRICE * 8 + 256 == 384
heads = {place: of_head for place, of_head in lost.items() if place[2] != "units"}
assert {place for place, of_head in heads.items() if of_head["other"] > 0.1} == {
    ("seed 0", 1, 0),
    *(("seed 1", *place) for place in ((0, 3), (1, 1), (1, 2))),
}, answers
assert [round(lost["seed 1", 0, "units"][how], 1) for how in ("zero", "mean")] == [0.2, 0.6]
assert round(lost["seed 0", 1, 0]["zero"], 1) == 0.7 and min(lost["seed 1", 0, 3].values()) > 0.33, answers
for name, parts in written.items():
    assert max(parts, key=lambda part: parts[part]) == "layer 1 units" and parts["layer 1 units"] > clean[name] / 2, (
        answers
    )
assert round(written["seed 1"]["layer 0 head 3"], 2) == 0.52 and round(0.52 / 8.34, 2) == 0.06, answers
assert round(restored["seed 0"][1][0], 2) == 0.87 and round(restored["seed 0"][1][4], 2) == 0.14, answers
assert 0.4 < restored["seed 1"][1][4] < 0.6 < 1 < restored["seed 1"][1][0] + restored["seed 1"][1][4] + 0.1, answers
assert round(scores["seed 0", "embedded", "hero"], 2) == 0.41 and scores["seed 0", "after block 0", "hero"] > 0.99, (
    answers
)
assert abs(scores["never trained", "after block 1", "hero"] - 0.94) < 0.02, answers
gone = {name: 1 - odds_without[name, 1, "hero"] / clean[name] for name in ("seed 0", "seed 1")}
assert [round(each, 2) for each in gone.values()] == [0.06, 0.32], answers
assert max(odds_without[name, 2, "hero"] for name in gone) < 0.3, answers
for name in gone:
    assert steered[name, 1.0][0] > 0.99 > steered[name, 4.0][0] and steered[name, 4.0][1] < 0.8, answers

# %% [markdown]
# ## Further
#
# Four experiments and a look at large models. Each needs the core, and no other block.

# %% [markdown]
# ### A · More features than room  (12 min)
#
# Why does a single unit rarely mean one thing? A toy shows it (Elhage et al., 2022). 20 features, each between 0 and 1, must pass through 5 numbers: $y = \text{ReLU}(W^\top W x + b)$, trained so that $y$ is like $x$. The columns of $W$ ($5 \times 20$) are the directions of the features. Feature $i$ counts $0.9^i$ as much as feature 0. How many can be kept? A linear map would keep the five most important ones.

# %% [markdown]
# ### Exercise 8 · Features kept  (2 points · 6 min · ●●)
#
# `weights` has a column $w_i$ for each feature. A feature is *kept* if $|w_i| > ½$. Its share of a dimension is $|w_i|^2 / \sum_j (\hat w_i \cdot w_j)^2$, with $\hat w_i = w_i / |w_i|$; the sum runs over all features, $i$ among them. Return a dict from the number of each kept feature to its share, a plain number. For $w_0 = (1, 0)$, $w_1 = (-1, 0)$ and $w_2 = (0, 0.9)$ it is {0: 0.5, 1: 0.5, 2: 1.0}.


# %% exercise="features_kept"
def features_kept(weights: Float[Tensor, "room features"]) -> dict[int, float]:
    """The share of a dimension of each feature that is kept."""
    ### BEGIN SOLUTION
    shares = {}
    for i, w in enumerate(weights.T):
        length = w.norm()
        if length > 0.5:
            shares[i] = (length**2 / (w / length @ weights).square().sum()).item()
    return shares
    ### END SOLUTION


# %% check="features_kept"

# %%
predict("crowded_at_90")

# %%
crowded, kept_features = {}, {}
with your("features_kept"):
    for zeros in (0.0, 0.7, 0.9, 0.97):
        for seed in (0, 1):
            toy = train_crowded(zeros, seed)
            shares = kept_features[zeros, seed] = features_kept(toy.weights)
            mean = sum(shares.values()) / max(len(shares), 1)
            print(f"{zeros:.0%} zeros, seed {seed}: {len(shares):2} kept, mean share {mean:.2f}, loss {toy.loss:.2f}")
            if seed == 0:
                crowded[f"{zeros:.0%} zeros"] = toy.weights

# %%
figures.crowded_features(crowded)

# %% [markdown]
# Without zeros the toy keeps five features, one for each number, and drops the rest. If most features are 0 most of the time, it keeps two or three times as many: they collide rarely, and the ReLU cleans up small collisions. At 70 % they are ten, and each has about half of a dimension: opposite pairs. This is **superposition**. If a model does it, then a unit takes part in many features, and a feature is a direction that no single unit shows.

# %% [markdown]
# ### B · The copier again  (2 min)
#
# Notebook 08 found a head that looks one back and does nothing. It replaced the head by its result in another text. What does zero say? The copier is trained with your `multi_head`, if that notebook is solved.

# %% tags=["nbval-ignore-output", "because losses of a training run differ in the last digits between processors"]
(attention,) = load_parts(["multi_head"])
print(attention)
copier = trained_copier(attention.function)
low, high = copier.loss(), copier.loss(corrupted=True)
print(f"loss of the copied tokens {low:.2f}, with another first copy {high:.2f}")
own, others = copier.heads(), copier.heads(corrupted=True)
with your("replaced"):
    for layer, head in ((0, 0), (0, 1), (1, 0), (1, 1)):
        row = []
        for how in ("zero", "mean", "other"):
            cut = partial(replaced, how={head: how}, mean=own[layer].mean(dim=(0, 2)), other=others[layer])
            row.append(f"{how} {(copier.loss(layer, cut) - low) / (high - low):5.2f}")
        print(f"layer {layer} head {head}, destroyed:  ", *row)

# %% [markdown]
# Head 0 of layer 0, which also looks one back, does nothing by any measure. Head 1 is needed, and the measures disagree: with zero or the mean a third is lost, with the other text's result three quarters. (Two more seeds: 0.75 and 0.80, 0.32 and 0.66.) Silence takes a message away. The other text's result is a *wrong* message, and layer 1 believes it.

# %% [markdown]
# ### C · One head's path  (4 min)
#
# In seed 0, layer 1 head 0 writes 2.19 of 8.77, and without it 70 % is lost. Where is the difference? Give the head the other hero's result, once with everything after it free, and once with the units of layer 1 held at what they were: then only what the head writes *itself* can act. This is *path patching* in two lines.

# %%
predict("path_through_units")


# %%
def with_other_heads(name: str, heads: list[int], *, frozen: bool) -> float:
    model = models[name]
    own, other, mean = recorded(model, test.texts), recorded(model, test.others), mean_parts(model)

    def change(kind: str, at: int, values: Tensor) -> Tensor:
        if (kind, at) == ("heads", 1):
            return replaced(values, dict.fromkeys(heads, "other"), mean[kind, at], other[kind, at])
        return own[kind, at] if frozen and (kind, at) == ("units", 1) else values

    return story_run(model, test)(test.texts, change=change)


paths = {}
with your("replaced"):
    for name, heads in (("seed 0", [0]), ("seed 1", [1, 2])):
        free, held = (with_other_heads(name, heads, frozen=frozen) for frozen in (False, True))
        paths[name] = free, held
        print(f"{name}, heads {heads}: odds {clean[name]:.2f} → {free:.2f}; with frozen units {held:.2f}")

# %% [markdown]
# Most of what the heads do goes *through the units*: with frozen units the odds fall by about 4, with free ones by 8 or 15. Direct attribution books all of this under "units". It is right about who writes, and wrong about who decides.

# %% [markdown]
# ### D · In larger models  (1 min)
#
# **In real models.** The same tools, and their limits:
#
# - **Induction heads**, two heads that work together, were found with the same tools (Elhage et al., 2021; Olsson et al., 2022).
# - **Features instead of units.** Since units share features (block A), a *sparse autoencoder* learns a longer list of directions of which few are active at once; *transcoders* do so for a whole feed-forward layer. *Attribution graphs* then show which features of one layer feed which of the next. Criticism: part of the stream stays unexplained, other seeds give other features, and a feature that lights up is legible, which is not yet used.
# - **Erasure** as a tool: remove a concept so that no linear map finds it (Ravfogel et al., 2020; Belrose et al., 2023). Yours removes the differences between means.
# - **Self-repair**: in large models later layers often make up for a head that was cut (McGrath et al., 2023), so one cut at a time says too little.

# %% [markdown]
# ### E · A model of your own  (1 min)
#
# The stored models were trained like this, with `fit` of notebook 13; if yours is solved, it is yours that trains. The cell makes 20 steps. Set `steps = 400`, which take 15 to 60 seconds, add the model with `models["mine"] = mine`, and run the cells of the core again. Which parts does your model use? Another seed is another model.

# %% tags=["nbval-ignore-output", "because losses of a training run differ between processors"]
(trainer,) = load_parts(["fit"])
print(trainer)
mine = new_model(4)
steps = 20
losses = trainer.function(mine, StoryRows(4), story_settings(steps))
print(f"after {steps} steps: loss {losses[-1]:.2f}, odds {story_run(mine.eval(), test)(test.texts):.2f}")

# %% [markdown]
# ### Further reading
#
# - Elhage et al., 2021, *A mathematical framework for transformer circuits*; Olsson et al., 2022, *In-context learning and induction heads*.
# - nostalgebraist, 2020, *Interpreting GPT: the logit lens*; Meng et al., 2022, *Locating and editing factual associations in GPT*.
# - Wang et al., 2022, *Interpretability in the wild*; Conmy et al., 2023, *Towards automated circuit discovery*; Syed et al., 2023, *Attribution patching outperforms automated circuit discovery*.
# - Zhang and Nanda, 2024, *Towards best practices of activation patching*; Miller et al., 2024, *Transformer circuit faithfulness metrics are not robust*.
# - Hewitt and Liang, 2019, *Designing and interpreting probes with control tasks*; Belinkov, 2022, *Probing classifiers*.
# - Elazar et al., 2021, *Amnesic probing*; Ravfogel et al., 2020, *Null it out*; Belrose et al., 2023, *LEACE*.
# - Turner et al., 2023, *Activation addition*; Rimsky et al., 2024, *Steering Llama 2 via contrastive activation addition*.
# - Elhage et al., 2022, *Toy models of superposition*; McGrath et al., 2023, *The hydra effect*.

# %% tags=["hide-input"]
for seed in (0, 1):
    kept_here = [kept_features[zeros, seed] for zeros in (0.0, 0.7, 0.9, 0.97)]
    assert [len(shares) for shares in kept_here] == [5, 10, 12, 16], answers
    assert all(abs(share - 0.5) < 0.05 for share in kept_here[1].values()), answers
fell = [clean[name] - odds for name, both in paths.items() for odds in both]
assert [round(each) for each in fell] == [15, 4, 8, 4] and round(paths["seed 0"][1]) == 5, answers
assert round(written["seed 0"]["layer 1 head 0"], 2) == 2.19, answers
