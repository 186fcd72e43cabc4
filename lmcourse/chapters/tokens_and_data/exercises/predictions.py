"""The predictions of notebook 07."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "bytes_of_e",
        "How many bytes have “é”, “人” and “😀” in UTF-8?",
        options=("1, 1 and 1", "2, 2 and 4", "2, 3 and 4"),
        answer="2, 3 and 4",
        because="One to four bytes, the more the later in Unicode's table. A character is no byte.",
    ),
    Prediction(
        "which_merge_first",
        "Two merges were learned: first b·c, then a·b. What becomes of the word “abc”?",
        options=("ab·c", "a·bc", "abc"),
        answer="a·bc",
        because="What was learned first is merged first, wherever it stands. After that no a·b is left.",
    ),
    Prediction(
        "a_blank_in_front",
        "“ instructed”, with a blank in front, is one token of GPT-4. How many has “instructed” without the blank?",
        options=("1", "2", "3"),
        answer="3",
        because="in·struct·ed. The blank is part of the token; without it this is another string, which was rarer.",
    ),
    Prediction(
        "what_english_gains",
        "GPT-4 has 100,000 tokens, GPT-4o 200,000. An English text of 33 tokens in GPT-4: how many are left in GPT-4o?",
        options=("18", "25", "33"),
        answer="33",
        because="Its common words were single tokens already. The new ones went to other languages.",
    ),
    Prediction(
        "larger_vocabulary",
        "The same stories are cut into 256 kinds of tokens (bytes), and into 400. A model that knows only how common "
        "each token is reads both. With 400, its perplexity per token …",
        options=("falls", "stays", "rises fourfold"),
        answer="rises fourfold",
        because="There are fewer tokens, and each is harder to guess. Perplexities of different tokens cannot be "
        "compared.",
    ),
    Prediction(
        "first_position",
        "A model reads windows of a text. Its loss at the first position of a window, against that at the eighth:",
        options=("equal", "1.5 times", "more than 4 times"),
        answer="more than 4 times",
        because="At the first position it sees one token, at the eighth eight. The mean over a window hides it.",
    ),
    Prediction(
        "unseen_row",
        "A token never comes in training, neither as input nor as target. After 500 steps of AdamW without decay, its "
        "row of the input embedding …",
        options=("has drifted at random", "is zero", "is unchanged to the bit"),
        answer="is unchanged to the bit",
        because="Its gradient is 0 in every step, and so is its mean: Adam's step is 0 ÷ ε.",
    ),
)
