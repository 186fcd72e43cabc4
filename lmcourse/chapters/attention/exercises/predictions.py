"""The predictions of notebook 08."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "who_changes",
        "Five tokens pass through an embedding, a norm and a feed-forward layer, without attention. You change the "
        "second token. Which outputs change?",
        options=("only the second", "the second and later ones", "all five", "none"),
        answer="only the second",
        because="Those layers work on each position alone. Without attention no token ever learns of another.",
    ),
    Prediction(
        "own_value",
        "A set of notes prints the result as o_i = Σ_j α_ij v_i, with v_i where it means v_j. What would that give?",
        options=("the same", "v_i itself", "the average of all values", "nonsense"),
        answer="v_i itself",
        because="v_i does not depend on j and comes out of the sum; the weights sum to one. The layer would mix "
        "nothing.",
    ),
    Prediction(
        "score_growth",
        "Every entry of q and k is drawn from a standard normal. You make the head four times wider. How much larger "
        "does a typical score q·k become?",
        options=("the same", "twice", "four times", "sixteen times"),
        answer="twice",
        because="The variances of the d products add up to d, so a typical score is √d: four times wider, twice as "
        "large.",
    ),
    Prediction(
        "leaky_mask",
        "By mistake a mask lets each token see the next one, too. You train a language model with it. What happens to "
        "the loss?",
        options=("it stays high", "it becomes a little lower", "it falls to nearly zero"),
        answer="it falls to nearly zero",
        because="The next token is what the model is asked for, and now it can copy it. The loss looks wonderful; "
        "the model has learned to copy, and can write nothing.",
    ),
    Prediction(
        "cut_into_heads",
        "A layer of width 512 has 8 heads. Now it gets 16, of half the width. What happens to its number of weights?",
        options=("it halves", "it stays", "it doubles"),
        answer="it stays",
        because="Four matrices of 512 × 512, whatever they are cut into. Heads share the width out; they do not add "
        "to it.",
    ),
    Prediction(
        "where_it_looks_back",
        "A small model of four layers was trained on the help texts of Python. One of its 16 heads looks more than all "
        "others at the previous token. In which layer is it?",
        options=("the first", "the second", "the third", "the last"),
        answer="the last",
        because="Nobody told the model where to put it. Here the earlier layers average over more distant tokens, and "
        "the last one looks at the neighbour just before the next token is predicted. In other models it is in an "
        "early layer.",
    ),
    Prediction(
        "what_is_kept",
        "While a model writes token by token, which of q, k and v of earlier tokens will be needed again?",
        options=("q, k and v", "k and v", "only v", "none of them"),
        answer="k and v",
        because="A query is used once, by its own token. Keys and values are looked at by every token that follows.",
    ),
    Prediction(
        "sharing_saves",
        "32 query heads now share 8 key heads. By what factor do the FLOPs of the scores q·k shrink?",
        options=("1: not at all", "2", "4"),
        answer="1: not at all",
        because="Every query head still multiplies its own queries with every key. What shrinks is what has to be "
        "stored and read.",
    ),
    Prediction(
        "window_reach",
        "A model of 32 layers has a window of 4,096 tokens in every layer. From how far back can a token hear "
        "anything at all?",
        options=("4,096 tokens", "about 131,000 tokens", "from everywhere"),
        answer="about 131,000 tokens",
        because="Every layer carries it up to 4,095 tokens further: 32 · 4,095 + 1 = 131,041 tokens with itself.",
    ),
)
