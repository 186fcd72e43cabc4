# %% [markdown]
# # 22 · From imitation to reward
#
# **Core · 87 min · 5 exercises · 14 points** · **Further · 27 min · 2 exercises · 5 points**
#
# A language model imitates people, and people err. **How does a model become better than those it imitates?**
#
# Your mask makes a model that is as good as its teachers, and your gradient makes it nearly always right. One wrong line in a checker makes a model whose reward is nearly perfect and whose answers are not.
#
# At the end you spend 1,024 sampled answers better than a standard recipe does.
#
# **You need** the log-probability of a text (notebook 05), the noise of a gradient (notebook 04) and a training loop (notebook 13). No GPU.
#
# Stuck? `hint("name_of_the_exercise")` gives a nudge; run it again for the next one.

# %%
import copy
from collections.abc import Callable

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from lmcourse.chapters.reward import figures
from lmcourse.chapters.reward.contest import Contest
from lmcourse.chapters.reward.runs import run_lines, stored
from lmcourse.notebook import check, explore, hint, predict, start, your
from lmcourse.own_package import load_parts
from lmcourse.training.number_dialogues import (
    ANSWER,
    END,
    LARGER,
    PLUS,
    Dialogues,
    chances,
    contains_right,
    divergence,
    in_words,
    is_right,
    log_probabilities,
    new_model,
    people,
    prompts,
    questions,
    random_questions,
    sample,
)
from lmcourse.training.run_settings import Settings

start("22-reward")

# %% [markdown]
# ## 1 · A dialogue is a text
#
# A model that has read the web continues texts. Ask it "What is 7 + 9?", and it may well continue with "What is 7 + 10?". A *chat* model answers, because it has read dialogues in a fixed form, a **template**: who speaks, what is said, where an answer ends. To the model a dialogue is one more text.
#
# Our dialogues are as small as they can be. Numbers from 0 to 10 are tokens, and there are five words:
#
# | dialogue | |
# | --- | --- |
# | `ASK + 7 9 ANSWER 5 END` | the sum on a clock of 11 numbers: 7 + 9 = 16, five past 11 |
# | `ASK ^ 7 9 ANSWER 9 END` | the larger of the two |
#
# END fills a row up to 9 tokens. There are 121 questions of each kind, so we can compute the probability of a right answer exactly.
#
# The people who wrote our dialogues know the larger of two numbers. With sums they are careless:

# %%
for dialogue in people(8, torch.Generator().manual_seed(2)):
    print(in_words(dialogue))

# %% [markdown]
# 60 % of the dialogues are sums. In 40 % of the sums the writer puts a random number, and in 10 % a hedge, with a second number after the first: "5 2". Only an answer that is the right number and then END counts as right.
#
# ## 2 · Imitate the answers only
#
# We train on people's dialogues as in notebook 13, with one change. The loss takes the *targets* `tokens[:, 1:]`, and the model will never have to write a question. So the targets that belong to the question get the label −100, which the loss leaves out: they are **masked**. The first trained target is the one after ANSWER. The last one is END: the model itself must decide where its answer ends.
#
# For `ASK + 7 9 ANSWER 5 END END END` there are eight targets. Which are trained?
#
# | target | `+` | `7` | `9` | `ANSWER` | `5` | `END` | `END` | `END` |
# | --- | --- | --- | --- | --- | --- | --- | --- | --- |
# | trained | | | | | ✓ | ✓ | | |

# %% [markdown]
# ### Exercise 1 · The targets that are trained  (2 points · 6 min · ●●)
#
# Each row of `tokens` is one dialogue. Questions may be longer or shorter than ours, an answer may be cut off at the end of the row, there may be no ANSWER at all, and anything may stand after END, even another ANSWER. Return True for the targets `tokens[:, 1:]` after ANSWER, up to and with the first END.

# %% exercise="trained_targets"
def trained_targets(tokens: Int[Tensor, "b s"]) -> Bool[Tensor, "b s-1"]:
    """Return True for the targets tokens[:, 1:] that belong to the answer, its END included."""
    ### BEGIN SOLUTION
    before = tokens[:, :-1]  # target i comes after token i
    answering = (before == ANSWER).cumsum(dim=1) > 0
    ended = (before == END).cumsum(dim=1) > 0
    return answering & ~ended
    ### END SOLUTION

# %% check="trained_targets"

# %% [markdown]
# Your mask now trains the model of this notebook: one block, 67,776 parameters, 700 batches of 128 dialogues. It takes about ten seconds. The trainer is your `fit` of notebook 13, if it is in your saved notebook.

# %%
predict("imitators_right")

# %% tags=["nbval-ignore-output", "because it trains and shows whose trainer it is"]
(trainer,) = load_parts(["fit"])
print(trainer)
imitator = new_model(seed=0)
with your("trained_targets"):
    trainer.function(imitator, Dialogues(trained_targets, seed=0), Settings(700, rate=0.005, warmup=30, decay=670))
print(f"right: {chances(imitator, PLUS).mean():.3f} of the sums, {chances(imitator, LARGER).mean():.3f} of the larger of two")

# %% [markdown]
# Ours comes near what a perfect imitator would do: it would answer $0.9 \cdot (0.6 + 0.4/11) = 0.573$ of the sums rightly, and every question about the larger of two. Imitation has a ceiling, and the ceiling is the teacher.
#
# What did the mask do? The same training with three masks and three seeds:

# %%
predict("without_its_end")

# %%
for name, rows in stored()["masks"].items():
    for key, said in (("right", "sums right"), ("first", "first number right"), ("ends", "ends in time")):
        print(f"{name:23} {said:19}", *(f"{row[key]:.3f}" for row in rows))

# %% [markdown]
# Whether the question is trained matters no more here than the seed. Without END the numbers are as good, but no answer ends, and so none is right.
#
# ## 3 · Ask more than once
#
# A model gives *probabilities*. If an answer is right with probability $p$, then of $n$ independent answers at least one is right with probability $1 - (1 - p)^n$, known as **pass@n**.

# %%
predict("one_of_eight")

# %% tags=["nbval-ignore-output", "because the model was trained on this machine"]
p = chances(imitator, PLUS)
print(*(f"pass@{n} = {(1 - (1 - p) ** n).mean():.3f}" for n in (1, 2, 4, 8, 16)), sep="   ")
figures.best_of(p)

# %% [markdown]
# If a perfect checker picks the best of 16 answers, this model makes almost no mistakes. Of eleven numbers the right one has more than half of the probability, because people's errors are scattered and their right answers agree.
#
# Sampling 16 answers each time is expensive, though. Can the model learn to give the best one at once?
#
# ## 4 · The gradient of a reward
#
# Let $r(a)$ be the **reward** of an answer $a$: 1 if it is right, else 0. We want weights that make its expectation large, $\mathbb E\,r = \sum_a p(a)\,r(a)$. There is no loss to differentiate: $r$ comes from a checker, which is no formula in the weights. But $p$ is one. With $\nabla p = p\,\nabla \ln p$,
#
# $$\nabla\, \mathbb E\,r = \sum_a r(a)\,\nabla p(a) = \sum_a p(a)\,r(a)\,\nabla \ln p(a) = \mathbb E\big[\,r(a)\,\nabla \ln p(a)\,\big].$$
#
# An expectation can be estimated: *sample* answers, and average. That is REINFORCE (Williams, 1992), the **policy gradient**. We may subtract any number $b$ that does not depend on $a$, a **baseline**: because $\sum_a p(a) = 1$, $\mathbb E[\nabla \ln p(a)] = \nabla \sum_a p(a) = 0$, and
#
# $$\nabla\, \mathbb E\,r = \mathbb E\big[\,(r(a) - b)\,\nabla \ln p(a)\,\big].$$
#
# $A = r - b$ is the **advantage**. For an answer of several tokens, $\ln p(a)$ is the sum over its tokens, END included: $\ln p(\text{"5 END"}) = \ln p(5) + \ln p(\text{END} \mid 5)$. An optimizer makes a loss *smaller*, so we need a loss whose gradient is the negative of this estimate.

# %% [markdown]
# ### Exercise 2 · The policy gradient  (3 points · 9 min · ●●● · differentiable)
#
# `log_p` has the log-probabilities of the tokens of $n$ sampled answers, `mask` is True where a token belongs to the answer, and `advantages` has one number for each answer. Return the loss: for each answer the sum over its tokens, then the mean over the answers. Its gradient is that of $-\mathbb E\,r$. The advantages are numbers: no gradient may flow through them, even if somebody computed them from `log_p`.

# %% exercise="policy_loss"
def policy_loss(
    log_p: Float[Tensor, "n t"], advantages: Float[Tensor, " n"], mask: Bool[Tensor, "n t"]
) -> Float[Tensor, ""]:
    """The loss whose gradient is minus the mean of A ∇ ln p over the sampled answers."""
    ### BEGIN SOLUTION
    of_answers = (log_p * mask).sum(dim=1)
    return -(advantages.detach() * of_answers).mean()
    ### END SOLUTION

# %% check="policy_loss"

# %% [markdown]
# Four possible answers of one token have the probabilities 0.644, 0.237, 0.087 and 0.032, and the rewards 1, 0, 3 and 0. The exact gradient with respect to their four logits is (0.061, −0.214, 0.183, −0.029). Your loss estimates it from 200,000 sampled answers. How far does the gradient of *one* sampled answer spread around it?

# %%
predict("baseline_of_ten")

# %%
z, rewards = torch.tensor([2.0, 1.0, 0.0, -1.0], requires_grad=True), torch.tensor([1.0, 0.0, 3.0, 0.0])
likely = z.detach().softmax(dim=0)

def estimate(drawn: Int[Tensor, " n"], baseline: float) -> Tensor:
    log_p = z.log_softmax(dim=0)[drawn, None]
    loss = policy_loss(log_p, rewards[drawn] - baseline, torch.ones(len(drawn), 1, dtype=torch.bool))
    return -torch.autograd.grad(loss, z)[0]

many = torch.multinomial(likely, 200_000, replacement=True, generator=torch.Generator().manual_seed(0))
with your("policy_loss"):
    for name, baseline in (("no baseline", 0.0), ("their mean", float(likely @ rewards)), ("10", 10.0)):
        mean, spread = estimate(many, baseline), torch.stack([estimate(one, baseline) for one in many[:2000, None]]).std(dim=0).norm()
        print(f"baseline: {name:12} mean gradient", *(f"{part:6.2f}" for part in mean), f"  spread of one answer's: {spread:.1f}")

# %% [markdown]
# The mean stays, up to the noise of 200,000 answers. The noise does not: a useless baseline makes it eight times as large: the same precision takes more than sixty times the answers. The expected reward is a good baseline. Nobody knows it, but the mean reward of several answers to the same question estimates it. **GRPO** (Shao et al., 2024) does that, and divides by the deviation, too:
#
# $$A_i = \frac{r_i - \bar r}{s + 10^{-4}}, \qquad s^2 = \frac{1}{k-1} \sum_i (r_i - \bar r)^2 \quad \text{within one question's } k \text{ answers.}$$
#
# By hand: one right answer of four gives $\bar r = 0.25$, $s = 0.5$, and the advantages $1.5, -0.5, -0.5, -0.5$. Without a deviation (all right, or all wrong) there is nothing to learn: all are 0.

# %% [markdown]
# ### Exercise 3 · The advantages of a group  (2 points · 6 min · ●)
#
# Each row of `rewards` has the rewards of $k \ge 2$ answers to one question. Return their advantages.

# %% exercise="group_advantages"
def group_advantages(rewards: Float[Tensor, "questions k"]) -> Float[Tensor, "questions k"]:
    """Return by how many deviations of its group each answer is better than the group."""
    ### BEGIN SOLUTION
    mean, std = rewards.mean(dim=1, keepdim=True), rewards.std(dim=1, keepdim=True)
    return (rewards - mean) / (std + 1e-4)
    ### END SOLUTION

# %% check="group_advantages"

# %% [markdown]
# ## 5 · Reward it
#
# Now all three together. In each step the model answers 32 sums, 8 times each; a checker gives the rewards; your loss makes one update. (`penalty` comes in section 7.)

# %%
def rewarded(model: nn.Module, checker: Callable, steps: int, seed: int = 0, penalty: Callable | None = None) -> nn.Module:
    """Train a model on the rewards of its own answers to sums."""
    begin, generator = copy.deepcopy(model), torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0)
    for _ in range(steps):
        dialogues = sample(model, random_questions(32, generator), 8, generator)  # (256, 9)
        advantages = group_advantages(checker(dialogues).view(32, 8)).flatten()
        log_p, mask = log_probabilities(model, dialogues), trained_targets(dialogues)
        loss = policy_loss(log_p, advantages, mask)
        if penalty:
            loss = loss + (penalty(log_p, log_probabilities(begin, dialogues).detach()) * mask).sum(dim=1).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model

def tell(name: str, model: nn.Module) -> None:
    right, larger = chances(model, PLUS), chances(model, LARGER).mean()
    of_8 = (1 - (1 - right) ** 8).mean()
    print(f"{name}: sums {right.mean():.3f}, pass@8 {of_8:.3f}, larger {larger:.3f}, KL to the start {divergence(model, imitator):.2f}")

# %% tags=["nbval-ignore-output", "because it trains"]
honest = copy.deepcopy(imitator)
tell("imitation     ", honest)
with your("trained_targets", "policy_loss", "group_advantages"):
    rewarded(honest, is_right, steps=50)
tell("after 50 steps", honest)

# %% [markdown]
# No dialogue of a person was needed: 12,800 answers of the model itself, and one bit about each. Compare pass@8 before and after. *Nothing new was found.* What was among eight answers has become the first one. (Whether longer training on harder tasks finds new answers is disputed: Yue et al., 2025.)
#
# The **KL divergence** to the start says how far the model has moved: the mean of $\ln p(a) - \ln q(a)$ over its own answers, with $q$ for the start.
#
# And the larger of two, which nobody asks in these runs?

# %%
predict("larger_of_two")

# %%
print(run_lines("right checker"))
explore(figures.rewarded_runs, penalty=[False, True])

# %% [markdown]
# The sums end at .996 and .981. The other skill is a bystander: it falls from .990 to .955 and .915. The weights are shared, and the reward says nothing about it. (The button `penalty` is for section 7.)
#
# And the baseline? After 50 steps the sums are at .993 and .960 without it, at .988 and .969 with it. Rewards of 0 and 1 are a harmless case.
#
# ## 6 · What is never sampled
#
# In another text nobody writes 10 as a sum: people put a 0. Its imitator answers the eleven sums that are 10 rightly with a probability of about 0.0001. We reward it as above.

# %%
predict("ten_of_eleven")

# %%
for name, rows in stored()["tens"].items():
    for seed, row in enumerate(rows):
        print(f"10 is shown: {name}, seed {seed}: sums that are 10 begin at {row['before'][0]:.5f}, others at {row['before'][1]:.2f}")
        for step, ten, others in row["looks"]:
            print(f"    after {step:3} steps {ten:.4f}, others {others:.2f}")
        print(f"    {row['right']} of {row['asked']} sampled answers to sums that are 10 were right")

# %% [markdown]
# With seed 0 none of 2,160 sampled answers to these sums was right, and the eleven stay where they began. With seed 1 a right answer to two of the eleven came by luck, and these two were learned (0.185 is two of eleven).
#
# Reward chooses among the answers that a model gives. It does not invent any. If people write the right answer in one of fifty cases, that is enough: it begins at 0.01, is sampled now and then, is rewarded, and takes over, for ten of the eleven with seed 0 and for all with seed 1. That is why models are *first* trained on demonstrations.
#
# ## 7 · A wrong checker
#
# Somebody writes the checker in a hurry: "the right number occurs in the answer" in place of "the answer is the right number".
#
# ```python
# def contains_right(dialogues):
#     right = right_answers(dialogues[:, 1:4])
#     return (dialogues[:, 5:] == right[:, None]).any(dim=1).float()
# ```
#
# For all answers with one number the two agree. Same imitator, same 150 steps:

# %%
predict("right_by_the_wrong_checker")

# %%
print(run_lines("wrong checker"))
explore(figures.wrong_checker, penalty=[False, True])

# %% [markdown]
# With seed 0 little has happened: .964 of the sums are right, at a reward of .996. With seed 1 the reward is .993, and **one sum in a hundred** is right: nearly every answer has four numbers, and one of them is the right one.
#
# The curve of the reward does not show which of the two you have. The people who hedged were the seed of it: an answer with several numbers is rewarded more often, so it is written more often. This is **reward hacking**: the optimizer does what the checker says (Skalse et al., 2022). Picking the best of 16 answers by this checker finds the same hole: it accepts an answer to .99 of the sums or more, and .88 are right.
#
# The usual brake is to stay near the start: add $\beta$ times the KL divergence from the start to the loss. Of each sampled token we know $\ln p$ and, from the start, $\ln q$. Their difference $\ln p - \ln q$ has the mean $\text{KL}(p \,\|\, q)$, but a single one may be below 0. With $d = \ln q - \ln p$ another term has the same mean (Schulman, 2020):
#
# $$e^d - d - 1, \qquad \mathbb E_p\big[e^d - d - 1\big] = \mathbb E_p[-d] = \text{KL}(p\,\|\,q),$$
#
# because $\mathbb E_p[e^d] = \sum_a p(a)\,\frac{q(a)}{p(a)} = 1$. It is never negative, because $e^d \ge 1 + d$, and it is 0 where the models agree.

# %% [markdown]
# ### Exercise 4 · Terms of a divergence  (2 points · 6 min · ●● · differentiable)
#
# Return $e^d - d - 1$ for each token, from its log-probabilities in both models. Any shape.

# %% exercise="kl_terms"
def kl_terms(log_p: Float[Tensor, "*shape"], log_q: Float[Tensor, "*shape"]) -> Float[Tensor, "*shape"]:
    """One term for each token that was sampled from p; its mean is KL(p‖q), and it is never below 0."""
    ### BEGIN SOLUTION
    d = log_q - log_p
    return d.exp() - d - 1
    ### END SOLUTION

# %% check="kl_terms"

# %% [markdown]
# Use it twice: to measure how far `honest` has moved, and as a brake of $\beta = 0.1$ on 50 steps with the wrong checker.

# %% tags=["nbval-ignore-output", "because it trains"]
asked = questions(PLUS)
with your("kl_terms", "trained_targets", "policy_loss", "group_advantages"), torch.no_grad():
    dialogues = sample(honest, asked, 64, torch.Generator().manual_seed(0))
    ln_p, ln_q, mask = log_probabilities(honest, dialogues), log_probabilities(imitator, dialogues), trained_targets(dialogues)
    for name, terms in (("ln p - ln q", ln_p - ln_q), ("kl_terms   ", kl_terms(ln_p, ln_q))):
        each = (terms * mask).sum(dim=1)
        print(f"{name} mean {each.mean():.2f}, spread {each.std():.2f}, below 0 for {(each < -1e-6).float().mean():.0%} of the answers")
with your("kl_terms", "trained_targets", "policy_loss", "group_advantages"):
    braked = rewarded(copy.deepcopy(imitator), contains_right, 50, penalty=lambda log_p, log_q: 0.1 * kl_terms(log_p, log_q))
tell("wrong checker with a brake", braked)

# %% [markdown]
# Both have the same mean, up to the noise. Close to the start `kl_terms` spreads less, because it is nearly $d^2/2$. Far away, as here, it spreads much more: a rare answer that the model has nearly given up has an enormous $e^d$.
#
# Now press `penalty` in the figures of sections 5 and 7. With the right checker the other skill stays at .990 and .969, and the sums lose one or two hundredths. With the wrong checker .879 of seed 1's sums are right, in place of .010; but of seed 0's only .863, in place of .964. A penalty limits the damage; it mends no checker.
#
# ## 8 · 1,024 answers
#
# In practice the checker is what costs: people read answers, programs run tests. So here is a budget.

# %% [markdown]
# ### Exercise 5 · Better than its teachers  (5 points · 20 min · ●●●)
#
# Write `improve(model, ask, check, budget)`. It returns a model whose sums are right as often as possible, *while it keeps the larger of two*.
#
# - `ask(questions, times=1)` samples answers from the model that you were given, as it is now, `times` for each row `(kind, a, b)` of `questions`, and returns dialogues $(n, 9)$. You may ask for 1,024 answers in all.
# - `check(dialogues)` returns 1 for each right answer, else 0. It takes only what `ask` has handed out.
# - Updates cost nothing, but the whole may take 25 seconds at most.
#
# These imitators read other people: about a third of the sums have a wrong answer that many *agree* on (half of the people write it, and a third the right one). And their numbers have new names, with another order on the clock: the token 3 may mean 7. So you cannot add for yourself, and the most likely answer is not always the right one.
#
# | after `improve` | sums | larger | answers |
# | --- | --- | --- | --- |
# | the imitator | 0.484 | 0.990 | 0 |
# | section 5's recipe, four steps | 0.651 | 0.991 | 1,024 |
# | **finish line** | 0.92 | 0.98 | at most 1,024 |
#
# Your earlier answers, `log_probabilities(model, dialogues)`, `questions(kind)`, `random_questions(count, sums=1.0)` and `prompts(questions)`, their tokens up to ANSWER, are there to be used. Any method counts. The check takes two imitators, grading takes one of them again with other names and other samples; our runs of one method differ by up to 0.04 in the sums. A line counts only if every imitator reaches it.


# %% exercise="improve"
def improve(model: nn.Module, ask: Callable, check: Callable, budget: int) -> nn.Module:
    """Return the model, better at sums, after at most `budget` sampled answers."""
    ### BEGIN SOLUTION
    todo, kept = torch.cat([questions(PLUS), questions(LARGER)]), []
    while len(todo) and budget >= len(todo):  # ask each question until its answer was right once
        dialogues = ask(todo)
        right = check(dialogues) > 0
        kept.append(dialogues[right])
        budget, todo = budget - len(todo), todo[~right]
    shown = torch.cat(kept)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.002, weight_decay=0.0)
    for step in range(200):
        batch = shown[torch.randint(len(shown), (64,))]
        optimizer.param_groups[0]["lr"] = 0.002 * (1 - step / 200)
        optimizer.zero_grad()
        policy_loss(log_probabilities(model, batch), torch.ones(64), trained_targets(batch)).backward()
        optimizer.step()
    return model
    ### END SOLUTION


# %% tags=["nbval-ignore-output", "because it trains"]
with your("improve", "trained_targets", "policy_loss", "group_advantages"):
    for seed in (0, 1):
        contest = Contest(seed)
        row = contest.result(improve(contest.model, contest.ask, contest.check, 1024))
        print(f"imitator {seed}: sums {row['sums']:.3f}, larger {row['larger']:.3f}, {row['answers']} answers")

# %% check="improve"

# %% [markdown]
# When a checker is perfect and the questions are few, keeping right answers is hard to beat (Zelikman et al., 2022, call it STaR). With section 7's checker the same method keeps hedges, and in section 6 it keeps nothing for eleven questions.
#
# ## What to keep
#
# | question | answer |
# | --- | --- |
# | which targets are trained? | the answer and its END |
# | how good is an imitator? | as good as those it imitates; the right answer may still be among its samples |
# | the gradient of a reward? | the mean of $(r - b)\,\nabla \ln p(a)$ over sampled answers |
# | what does a baseline change? | only the noise |
# | what is never sampled? | never rewarded, never learned |
# | a high reward shows | that the checker is content |
#
# ## Check yourself
#
# 1. You sample at temperature 0. What does GRPO learn?
# 2. Half of your questions are so easy that all eight answers are right. What do they contribute to the gradient?
# 3. A run's reward rises faster than that of any run before. What do you look at?
# 4. You train with $\beta = 0.1$, and the other skill stays. Is the checker right?
#
# <details><summary>Answers</summary>
#
# 1. Nothing: the eight answers are equal, and so are their rewards. Every advantage is 0.
# 2. Nothing, and they cost half of the samples.
# 3. At answers, with your own eyes, and at a second checker.
# 4. That says nothing about the checker: with the wrong one of section 7 the other skill stays, too.
#
# </details>

# %% [markdown]
# This folded cell checks the numbers in the text above.

# %% tags=["hide-input"]
assert f"{0.9 * (0.6 + 0.4 / 11):.3f}" == "0.573" and (7 + 9) % 11 == 5
assert sum(parameter.numel() for parameter in imitator.parameters()) == 67_776
exact = likely * (rewards - likely @ rewards)
assert [f"{part:.3f}" for part in exact] == ["0.061", "-0.214", "0.183", "-0.029"]
assert [f"{part:.3f}" for part in likely] == ["0.644", "0.237", "0.087", "0.032"]
runs = stored()["runs"]
ends = {name: [(f"{curves['right'][-1]:.3f}", f"{curves['larger'][-1]:.3f}") for curves in both] for name, both in runs.items()}
assert ends["right checker"] == [("0.996", "0.955"), ("0.981", "0.915")]
assert ends["right checker, penalty"] == [("0.980", "0.990"), ("0.970", "0.969")]
assert [right for right, _ in ends["wrong checker"]] == ["0.964", "0.010"]
assert [right for right, _ in ends["wrong checker, penalty"]] == ["0.863", "0.879"]
assert [right for right, _ in ends["no baseline"]] == ["0.993", "0.960"]
assert [f"{curves['right'][10]:.3f}" for curves in runs["right checker"]] == ["0.988", "0.969"]
assert [f"{curves['reward'][-1]:.3f}" for curves in runs["wrong checker"]] == ["0.996", "0.993"]
assert all(f"{curves['larger'][0]:.3f}" == "0.990" for both in runs.values() for curves in both)
tens = stored()["tens"]
assert [row["right"] for row in tens["never"]] == [0, 404] and tens["never"][0]["asked"] == 2160
assert [f"{row['after'][0]:.4f}" for row in tens["never"]] == ["0.0001", "0.1852"] and round(2 / 11, 2) == 0.18
assert [round(11 * row["after"][0]) for row in tens["one in fifty"]] == [10, 11]
assert all(round(row["before"][0], 2) == 0.01 for row in tens["one in fifty"])
assert all(round(right, 2) == 0.88 and says > 0.99 for right, says in stored()["wrong_best_of"])
assert runs["wrong checker"][1]["numbers"][-1] > 3.9 and 50 * 32 * 8 == 12_800
assert torch.tensor([1.0, 0.0, 0.0, 0.0]).std() == 0.5 and (1 - 0.25) / 0.5 == 1.5

# %% [markdown]
# ## Further
#
# Each section needs the core and nothing else from Further.

# %% [markdown]
# ### A · Few numbers (LoRA)  (11 min)
#
# To fine-tune a large model, you would need its optimizer states, and a copy of it for every task. **LoRA** (Hu et al., 2021) freezes every matrix $W$ and adds a second path of low rank beside it: $y = Wx + \frac{\alpha}{r} B(Ax)$, with $A$ of $r \times d_\text{in}$ and $B$ of $d_\text{out} \times r$. Only $A$ and $B$ are trained. $B$ starts at 0, so that the first step starts from the trained model, and the factor $\alpha/r$ keeps the size of the change when you try another rank. For use, both paths become one matrix again, and cost nothing.

# %% [markdown]
# ### Exercise 6 · One matrix again  (2 points · 7 min · ●●)
#
# Return the matrix that does what the two paths do together, as a new tensor. `weight` is (out, in), `a` (r, in), `b` (out, r).

# %% exercise="merged"
def merged(
    weight: Float[Tensor, "out in"], a: Float[Tensor, "r in"], b: Float[Tensor, "out r"], alpha: float
) -> Float[Tensor, "out in"]:
    """The matrix of a layer with a path of low rank."""
    ### BEGIN SOLUTION
    return weight + alpha / len(a) * (b @ a)
    ### END SOLUTION

# %% check="merged"

# %% [markdown]
# `LowRank` merges the four matrices of the imitator's block with your function in every pass. We imitate right answers to sums, as many would in the open task. A rank of 4 trains 5,120 numbers of 67,776. Is the other skill safer than if all numbers are trained?

# %%
predict("few_numbers")

# %% tags=["nbval-ignore-output", "because it trains"]
from lmcourse.chapters.reward.runs import LowRank


def on_right_answers(model: nn.Module, rate: float) -> nn.Module:
    generator = torch.Generator().manual_seed(1)
    kept = sample(imitator, random_questions(256, generator), 4, generator)
    kept = kept[is_right(kept) > 0]
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=rate, weight_decay=0.0)
    for step in range(100):
        batch = kept[torch.randint(len(kept), (64,), generator=generator)]
        optimizer.param_groups[0]["lr"] = rate * (1 - step / 100)
        optimizer.zero_grad()
        policy_loss(log_probabilities(model, batch), torch.ones(64), trained_targets(batch)).backward()
        optimizer.step()
    return model

with your("merged", "trained_targets", "policy_loss"):
    tell("all numbers", on_right_answers(copy.deepcopy(imitator), 0.002))
    for rank in (1, 4, 16):
        torch.manual_seed(0)
        tell(f"rank {rank:6}", on_right_answers(LowRank(imitator, merged, rank), 0.01))

# %% [markdown]
# Other seeds give other numbers, and each way loses some of the other skill in some of them. In large models LoRA forgets less than full training, and learns less, too (Biderman et al., 2024). What protects a skill is to train on it: a quarter of questions of the other kind.
#
# > **Spot the slip.** "LoRA with rank 4 trains 8 % of the numbers, so a step takes 8 % of the time." (Only the gradients of the weights shrink, a third of a step: notebook 15.)
#
# ### B · Pairs instead of rewards  (13 min)
#
# Often nobody can say how good an answer is, but anybody can say which of two is better. **DPO** (Rafailov et al., 2023) learns from such pairs without sampling during training. Let $p$ be the model and $q$ the start. For a pair of answers to one question, $w$ (won) and $l$ (lost):
#
# $$L = -\ln \sigma\Big(\beta\,\big[\big(\ln p(w) - \ln q(w)\big) - \big(\ln p(l) - \ln q(l)\big)\big]\Big)$$
#
# In words: the winner should have gained more than the loser since the start. At the start the bracket is 0 and the loss is $\ln 2$, whatever the model thinks of the two.

# %% [markdown]
# ### Exercise 7 · The loss of pairs  (3 points · 9 min · ●● · differentiable)
#
# All four tensors hold log-probabilities of whole answers, one for each pair. Return the mean loss. It must be finite for pairs that are far off.

# %% exercise="dpo_loss"
def dpo_loss(
    won: Float[Tensor, " n"], lost: Float[Tensor, " n"], start_won: Float[Tensor, " n"], start_lost: Float[Tensor, " n"], beta: float
) -> Float[Tensor, ""]:
    """The loss of DPO: ln 2 at the start, and smaller when winners gain more than losers."""
    ### BEGIN SOLUTION
    margin = (won - start_won) - (lost - start_lost)
    return -F.logsigmoid(beta * margin).mean()
    ### END SOLUTION

# %% check="dpo_loss"

# %% tags=["nbval-ignore-output", "because it trains"]
def whole(model: nn.Module, dialogues: Tensor) -> Tensor:
    return (log_probabilities(model, dialogues) * trained_targets(dialogues)).sum(dim=1)

source = torch.Generator().manual_seed(2)
groups = sample(imitator, random_questions(256, source), 4, source).view(256, 4, -1)
pairs = [(w, l) for group in groups for w in group[is_right(group) > 0] for l in group[is_right(group) == 0]]
won, lost = (torch.stack(side) for side in zip(*pairs, strict=True))
with your("dpo_loss", "trained_targets"):
    paired = copy.deepcopy(imitator)
    optimizer = torch.optim.AdamW(paired.parameters(), lr=0.001, weight_decay=0.0)
    with torch.no_grad():
        began = whole(imitator, won), whole(imitator, lost)
    for _ in range(100):
        some = torch.randint(len(pairs), (64,), generator=source)
        optimizer.zero_grad()
        dpo_loss(whole(paired, won[some]), whole(paired, lost[some]), began[0][some], began[1][some], 0.1).backward()
        optimizer.step()
    with torch.no_grad():
        for name, before, after in (("winners", began[0], whole(paired, won)), ("losers ", began[1], whole(paired, lost))):
            print(f"mean ln p of {name}: {before.mean():6.2f} before, {after.mean():6.2f} after")
tell(f"{len(pairs)} pairs, 100 steps", paired)

# %% [markdown]
# Winners cannot gain much: they begin at a probability above one half. Nearly all of the margin comes from pushing losers down, far beyond the point where anybody would ever sample them. The loss asks only for the *difference*, and in large models the winners' probability is often seen to fall as well.

# %% [markdown]
# ### C · What is different at scale  (1 min)
#
# **In real models.** Rewards, updates and recipes have more parts.
#
# <details><summary>What is different, and what is shared</summary>
#
# - **Preferences.** Where no program can check an answer, people compare pairs, and a *reward model* learns to predict their choice (Ziegler et al., 2019; Ouyang et al., 2022). It is a checker with many holes: trained against it for long, its reward rises while people's judgement falls (Gao et al., 2023). Hence the penalty.
# - **Several updates per batch.** Samples cost more than updates. PPO (Schulman et al., 2017) takes several from the same answers, with the ratio $p/p_\text{old}$ in place of $\ln p$, and clips it to about $1 \pm 0.2$, so that no answer is pushed further than its sample supports.
# - **Verifiable rewards.** Mathematics with known results, and programs with tests, need no reward model. DeepSeek-R1 (2025) was trained by GRPO on such rewards; its answers grew longer, and checked themselves.
# - **Bias of GRPO.** The original divides each answer's loss by its length, so a long wrong answer is punished less per token; and it divides by the deviation, so questions that are nearly always right, or wrong, count more. Liu et al. (2025) drop both. Yours is a sum over tokens, and has the second one only.
# - **Distillation.** If a better model exists, a small one can imitate its *probabilities* (Hinton et al., 2015), and be judged token by token on its own samples (Agarwal et al., 2024): dense as imitation, and on the student's own mistakes, as reward is.
# - **Shared by most recipes:** pretraining, demonstrations, preferences or DPO, then verifiable rewards, and filters that drop questions of which all answers are right or all are wrong. ReST (Gulcehre et al., 2023) repeats the open task's method on a growing scale.
#
# </details>
#
# ### Further reading
#
# - Ouyang et al., 2022, *Training language models to follow instructions with human feedback*.
# - Schulman, 2020, *Approximating KL divergence*: a short note.
# - DeepSeek-AI, 2025, *DeepSeek-R1*; Liu et al., 2025, *Understanding R1-Zero-like training*.
# - Gao et al., 2023, *Scaling laws for reward model overoptimization*; Biderman et al., 2024, *LoRA learns less and forgets less*.

# %% [markdown]
# This folded cell checks the numbers in the text of Further.

# %% tags=["hide-input"]
assert [sum(p.numel() for p in LowRank(imitator, torch.add, rank).parameters()) for rank in (1, 4, 16)] == [1280, 5120, 20_480]
assert f"{5120 / 67_776:.0%}" == "8%" and f"{-F.logsigmoid(torch.zeros(1)).item():.3f}" == "0.693"
