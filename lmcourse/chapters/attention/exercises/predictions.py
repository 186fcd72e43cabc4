"""The predictions of notebook 08."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
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
        "which_mask",
        "Two new tokens after three old ones: two queries, five keys. Which mask is right? (One row after the other, 1 "
        "where a query may look.)",
        options=("1 0 0 0 0, then 1 1 0 0 0", "1 1 1 1 0, then 1 1 1 1 1", "1 1 1 0 0, then 1 1 1 1 0"),
        answer="1 1 1 1 0, then 1 1 1 1 1",
        because="The queries are tokens 3 and 4 of the text, counted from 0. Token 3 sees 0 to 3, token 4 sees all "
        "five. A mask with 1 0 0 0 0 takes them for tokens 0 and 1; with 1 1 1 0 0 no token sees itself.",
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
        "layers_to_copy",
        "A model of attention alone reads random tokens that begin again after a while. Guessing costs 3.5 nats per "
        "token. How well will one layer predict the second copy, and how well will two?",
        options=("both far below 1", "neither: the tokens are random", "only two layers below 1"),
        answer="only two layers below 1",
        because="To continue, a token must find what came *after* its first copy. That takes two steps.",
    ),
    NumberPrediction(
        "copying_starts",
        "The model of two layers is trained for 300 steps. At the start its loss is 3.6 nats per copied token, at the "
        "end below 0.6. At which step is it below 2 for the first time?",
        answer=160,
        low=0,
        high=300,
        unit="steps",
        because="It does not fall evenly: in the first 140 steps from 3.6 to 2.8, in the next 40 to 1.1.",
    ),
    NumberPrediction(
        "without_the_first_head",
        "In layer 0 two heads look one token back, with 0.31 (head 0) and 0.49 (head 1) of their attention. In text A, "
        "head 0 gets its result from text B. How much of the difference in loss between A and B does that destroy?",
        answer=4,
        low=0,
        high=100,
        unit="%",
        because="Nearly nothing: layer 1 takes what it needs from head 1. Where a head looks does not show whether "
        "another one reads its result.",
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
    NumberPrediction(
        "decoding_intensity",
        "Drop all constant factors, the 2 for keys and values too. Writing n tokens for each of b texts takes b·n·d² "
        "operations. Every step reads d² weights and, for each text, n·d numbers of cache. How many operations are "
        "there for each number that is read, for b = 32 texts of n = 2,048 tokens at a width of d = 4,096?",
        answer=1.88,
        low=0.1,
        high=100,
        unit="operations",
        log=True,
        because="The n steps read n·d² numbers of weights and b·n²·d of cache, together 17 times the weights. With "
        "the weights alone it would be b = 32 operations for each number; 32 / 17 = 1.88.",
    ),
    Prediction(
        "window_reach",
        "A model of 32 layers has a window of 4,096 tokens in every layer. From how far back can a token hear "
        "anything at all?",
        options=("from everywhere", "4,096 tokens", "about 131,000 tokens"),
        answer="about 131,000 tokens",
        because="Every layer carries it up to 4,095 tokens further: 32 · 4,095 + 1 = 131,041 tokens with itself.",
    ),
    Prediction(
        "dropped_weights",
        "In training, dropout sets each attention weight to zero with a chance of 10 % and divides the others by 0.9. "
        "What do the weights of a row then sum to?",
        options=("always 1", "always 0.9", "something between 0 and 1.11, on average 1"),
        answer="something between 0 and 1.11, on average 1",
        because="Which weights fall out is random: all of them may, or none. Division by 0.9 is right on average only.",
    ),
)
