"""The predictions of notebook 08."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "who_changes",
        "Five tokens pass through an embedding, a norm and a feed-forward layer, without attention. You change the "
        "second token. Which outputs change?",
        options=("all five", "the second and later ones", "only the second", "none"),
        answer="only the second",
        because="These layers work on each position alone. Without attention no token ever learns of another.",
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
        "own_value",
        "A slip of the pen: each weight of token i multiplies the value of token i itself, and not the value of the "
        "token that it belongs to. The weights sum to one. What does the layer return for token i?",
        options=("the average of all values", "something between the two", "zero", "the value of token i"),
        answer="the value of token i",
        because="The value no longer depends on the token that is looked at, and comes out of the sum. The weights sum "
        "to one, so they do nothing.",
    ),
    Prediction(
        "leaky_mask",
        "By mistake a mask lets each token see the next one, too. You train a language model with it. What happens to "
        "the loss?",
        options=("it falls to nearly zero", "it becomes a little lower", "it stays high"),
        answer="it falls to nearly zero",
        because="The next token is what the model is asked for, and now it can copy it. The loss looks wonderful, and "
        "the model can write nothing.",
    ),
    Prediction(
        "which_mask",
        "Two new tokens after three old ones: two queries, five keys. Which of the three masks is right?",
        options=("A", "B", "C"),
        answer="B",
        because="The queries are tokens 3 and 4 of the text, counted from 0. Token 3 sees 0 to 3, token 4 sees all "
        "five. A takes them for tokens 0 and 1; in C no token sees itself.",
    ),
    Prediction(
        "cut_into_heads",
        "A layer of width 512 has 8 heads. Now it gets 16, of half the width. What happens to its number of weights?",
        options=("it halves", "it stays the same", "it doubles"),
        answer="it stays the same",
        because="Four matrices of 512 × 512, whatever they are cut into. More heads do not add to the width; they "
        "divide it.",
    ),
    Prediction(
        "wrong_heads",
        "A trained model has a loss of 1.79 nats per token. Now every layer cuts queries, keys and values into heads "
        "by a `view` without a transpose, and joins the results in the same way. A model that knows nothing has a loss "
        "of ln 512 = 6.24. What happens?",
        options=("an error about shapes", "6.24: it knows nothing any more", "about 4", "1.79, as before"),
        answer="about 4",
        because="All shapes fit, so there is no error. The weights were trained for other heads and the attention "
        "layers return nonsense, but the feed-forward layers and the current token still work.",
    ),
    Prediction(
        "future_shown",
        "The same trained model, the right heads, but no mask: each token sees the whole text, the next token too. "
        "It is not trained again. What happens to its loss of 1.79?",
        options=("it falls to nearly zero", "it falls a little", "it stays the same", "it rises"),
        answer="it rises",
        because="The answer lies in front of the model, but it never learned to look there. In training no key was "
        "ever in the future, and such keys disturb every average.",
    ),
    Prediction(
        "where_it_looks_back",
        "One of the 16 heads of this model looks at the previous token more than all others do. In which layer is it?",
        options=("the first", "the second", "the third", "the last"),
        answer="the last",
        because="Here the earlier layers average over more distant tokens, and the last one looks at the neighbour "
        "just before the next token is predicted. In other models it is in an early layer.",
    ),
    Prediction(
        "layers_to_copy",
        "A model of attention alone reads random tokens that begin again after a while. Guessing costs 3.5 nats per "
        "token. How well will one layer predict the second copy, and how well will two?",
        options=("both far below 1", "neither: the tokens are random", "only two layers below 1"),
        answer="only two layers below 1",
        because="To continue, a token must find what came *after* its first copy. That takes two steps.",
    ),
    Prediction(
        "what_is_kept",
        "While a model writes token by token, which of q, k and v of earlier tokens will be needed again?",
        options=("k and v", "q, k and v", "only v", "none of them"),
        answer="k and v",
        because="A query is used once, by its own token. Keys and values are looked at by every token that follows.",
    ),
    Prediction(
        "sharing_saves",
        "32 query heads now share 8 key heads. By what factor do the FLOPs of the scores q·k shrink?",
        options=("4", "2", "1: not at all"),
        answer="1: not at all",
        because="Every query head still multiplies its own queries with every key. Sharing makes smaller what has to "
        "be stored and read.",
    ),
    Prediction(
        "latent_cache",
        "DeepSeek-V3 has 61 layers of 128 heads. With keys and values of 128 features for every head it would keep "
        "3,997,696 bytes for each token. It keeps 512 + 64 numbers of two bytes per layer. How many bytes are that?",
        options=("1,152", "70,272", "140,544", "8,994,816"),
        answer="70,272",
        because="61 · (512 + 64) · 2 = 70,272: one latent vector for keys and values of all heads, and not one for "
        "each. That is 57 times less.",
    ),
    Prediction(
        "window_reach",
        "A model of 32 layers has a window of 4,096 tokens in every layer. From how far back can a token hear "
        "anything at all?",
        options=("from everywhere", "4,096 tokens", "about 131,000 tokens"),
        answer="about 131,000 tokens",
        because="Every layer carries it up to 4,095 tokens further: 32 · 4,095 + 1 = 131,041 tokens with itself.",
    ),
)
