"""The predictions of notebook 12."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "another_order_of_sums",
        "Your norm adds up its squares in another order than the course's, and its results differ in the seventh "
        "digit. Is that a wrong part?",
        options=("no, it is rounding", "yes, a right part gives equal numbers", "only the loss can tell"),
        answer="no, it is rounding",
        because="fp32 keeps seven digits. A test that accuses right parts is soon switched off.",
    ),
    Prediction(
        "positions_from_one",
        "One of the twelve counts positions from 1, and so rotates every query and key one step too far. What happens "
        "to the logits?",
        options=("nothing", "all of them change", "those of the first token change"),
        answer="nothing",
        because="A score depends on the difference of two positions (notebook 09), and that is the same.",
    ),
    NumberPrediction(
        "found_by_logits",
        "Of twelve wrong models, how many does the obvious test find: those whose logits move?",
        answer=7,
        low=0,
        high=12,
        step=1,
        unit="models",
        because="Five have the right logits. Four of these send back wrong gradients.",
    ),
    NumberPrediction(
        "rows_as_in_the_file",
        "Loaded in the right order, the trained model has a loss of 1.92 nats on 128 tokens of documentation; a model "
        "that guesses has 6.24. Now load its rows as they are in the file. What is the loss?",
        answer=3.97,
        low=1.9,
        high=10.0,
        unit="nats",
        because="Heads that look at a place look at the wrong one; those that go by content alone still work, and so "
        "do the feed-forward layers. So the model is bad, and still far better than guessing.",
    ),
    Prediction(
        "rare_word",
        "The row of a rare word gets a gradient of 0 for 1,000 steps of AdamW, with a learning rate of 0.001 and a "
        "weight decay of 0.1. What happens to the row?",
        options=("it shrinks by a tenth", "nothing", "it shrinks to almost nothing"),
        answer="it shrinks by a tenth",
        because="AdamW's decay does not ask for a gradient: each step multiplies by 1 − 0.001 · 0.1, and 1,000 of them "
        "leave 0.905.",
    ),
    Prediction(
        "without_the_final_norm",
        "32 blocks with fan-in weights, 256 tokens, untrained: the loss is about 6. Now leave out the norm before the "
        "head. What is the loss at the start?",
        options=("about 15", "about 8", "about 6: a norm does nothing before training"),
        answer="about 15",
        because="Watch the spread of the logits below: nothing holds it any more.",
    ),
    Prediction(
        "two_windows",
        "Two layers of attention, each with a window of 2 tokens (itself and the one before). On how many tokens does "
        "the last output depend?",
        options=("4", "2", "3"),
        answer="3",
        because="Each layer reaches one token further back: 1 + 2 · 1. (Notebook 08 did this with windows of "
        "thousands.)",
    ),
    Prediction(
        "untrained_and_tied",
        "A tied model with small random weights, never trained, has read a text. What does it predict as the next "
        "token?",
        options=("the token that it has just read", "always the same token", "any token, by chance"),
        answer="the token that it has just read",
        because="Both ends of the model are the same table. The end of this block works out what follows.",
    ),
    Prediction(
        "cuts_noticed",
        "Each decoder is trained on one batch of random tokens. Embedding, last norm and head are frozen, so only the "
        "blocks learn. Which of the four can *not* learn the batch by heart?",
        options=("none of them", "norm", "norm and part", "all four"),
        answer="norm",
        because="Below the cut before the last norm nothing is trained. In the other three some weights of the blocks "
        "still get their gradient, and these are enough to learn four texts.",
    ),
    Prediction(
        "untying_llama",
        "Llama 3 8B is not tied: it has two tables for 128,256 tokens, of width 4,096. Which fraction of its "
        "parameters would tying save?",
        options=("0.7 %", "7 %", "30 %"),
        answer="7 %",
        because="128,256 · 4,096 is 525 million, of 8.03 billion. In GPT-2, which is tied, the one table is 31 % of "
        "124 million.",
    ),
    NumberPrediction(
        "rule_of_thumb_405b",
        "12 · L · d² was derived for GPT-3's blocks. Llama 3.1 405B shares its keys, has a gate, and is not tied. How "
        "far is the rule from its number of parameters, in percent of it?",
        answer=0.005,
        low=0.0001,
        high=100.0,
        unit="percent",
        log=True,
        because="Errors cancel. After the next exercise you can say which.",
    ),
    Prediction(
        "least_agreed",
        "In one of these choices the zoo's models of 2025 and 2026 do *not* agree. In which?",
        options=("dropout or none", "LayerNorm or RMSNorm", "biases or none", "a tied head or a separate one"),
        answer="a tied head or a separate one",
        because="13 of 19 are tied, ten of them with fewer than 5 billion parameters. None has biases or dropout, and "
        "18 of 19 have RMSNorm.",
    ),
    Prediction(
        "deep_or_wide",
        "Four models of 98,304 weights besides the table: one block 96 wide, two of 64, four of 48, eight of 32. Each "
        "learns our stories for 600 steps. By how much does the worst loss exceed the best?",
        options=("about 5 %", "about 30 %", "it is twice as high"),
        answer="about 5 %",
        because="The numbers below are three seeds of each.",
    ),
)
