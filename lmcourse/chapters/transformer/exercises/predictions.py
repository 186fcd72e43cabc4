"""The predictions of notebook 12."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "which_rows",
        "An embedding of 1,000 rows is *tied*: it is the head as well. One step on a batch with three different "
        "tokens. How many rows get a gradient?",
        options=("3", "6", "1,000"),
        answer="1,000",
        because="As a head, every row makes a logit, and the softmax pushes all logits of wrong tokens down a little.",
    ),
    Prediction(
        "without_the_final_norm",
        "32 blocks with fan-in weights, 256 tokens, untrained: the loss is 6.0. Somebody leaves out the norm before "
        "the head. The loss at the start?",
        options=("6.0: a norm does nothing before training", "about 8", "about 16"),
        answer="about 16",
        because="The stream has grown with every block, and so have the logits: guesses at random, and sure of it.",
    ),
    Prediction(
        "untrained_and_tied",
        "A tied model with small random weights, never trained, has read a text. What does it predict as the next "
        "token?",
        options=("any token, by chance", "the token that it has just read", "always the same token"),
        answer="the token that it has just read",
        because="The stream still contains the row of that token, and of all rows in the head none is as similar to it "
        "as itself.",
    ),
    Prediction(
        "two_windows",
        "Two layers of attention, each with a window of 2 tokens (itself and the one before). Of how many tokens does "
        "the last output hear?",
        options=("2", "3", "4"),
        answer="3",
        because="Each layer reaches one token further back: 1 + 2 · 1. (Notebook 08 did this with windows of "
        "thousands.)",
    ),
    Prediction(
        "embedding_of_gemma",
        "Gemma 3 1B has a vocabulary of 262,144. Which share of its parameters is the embedding?",
        options=("3 %", "10 %", "30 %"),
        answer="30 %",
        because="262,144 rows of 1,152 numbers are 302 million of one billion. In a model of 405 billion, embedding "
        "and head together are 1 %.",
    ),
    Prediction(
        "rule_of_thumb_405b",
        "12 · L · d² was derived for GPT-3's blocks. Llama 3.1 405B shares its keys, has a gate, and no ties. How far "
        "is the rule from its number of parameters?",
        options=("20 % or so", "2 %", "less than a hundredth of 1 %"),
        answer="less than a hundredth of 1 %",
        because="Attention is 2.125 L·d² instead of 4, the feed-forward layer 9.75 instead of 8. The two ends happen "
        "to fill what is missing, to 0.005 %.",
    ),
    Prediction(
        "how_many_keep_the_rules",
        "Five rules that lectures call consensus. Of the 90 published models in the zoo with half a billion parameters "
        "or more, how many break none of them?",
        options=("nearly all", "half", "hardly any"),
        answer="half",
        because="45 of 90. What they have in common is a centre, not a wall.",
    ),
)
