"""The predictions of notebook 07."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "bytes_of_e",
        "How many bytes do “é”, “人” and “😀” have in UTF-8?",
        options=("1, 1 and 1", "2, 3 and 4", "2, 2 and 4", "4, 4 and 4"),
        answer="2, 3 and 4",
        because="A character has one to four bytes: more, the later it comes in Unicode's table.",
    ),
    NumberPrediction(
        "words_looked_at",
        "For 256 merges you would look at 717,824 words. How many of these looks are at a word that holds the pair?",
        answer=7_318,
        low=1_000,
        high=717_824,
        unit="words",
        log=True,
        because="One in 98. The commonest pairs are in hundreds of words, the 256th is in about ten.",
    ),
    Prediction(
        "their_merges",
        "How many of your 256 merges does a program by other authors learn, too, at the same places of its list?",
        options=("all", "all but ties", "about half"),
        answer="all",
        because="Borders, ties and the end are decided as here; all else follows from the rule.",
    ),
    Prediction(
        "which_merge_first",
        "Two merges were learned: first b·c, then a·b. What becomes of the word “abc”?",
        options=("ab·c", "a·bc", "abc"),
        answer="a·bc",
        because="The merge that was learned first is applied first, wherever its pair is. After that no a·b is left.",
    ),
    Prediction(
        "a_space_in_front",
        "“ instructed”, with a space in front, is one token of GPT-4. How many has “instructed” without the space?",
        options=("1", "2", "3", "11"),
        answer="3",
        because="in·struct·ed. The space is part of the token. Without it, this is another string, which was rarer.",
    ),
    Prediction(
        "what_english_gains",
        "GPT-4 has 100,000 tokens, GPT-4o 200,000. An English text of 33 tokens in GPT-4: how many are left in GPT-4o?",
        options=("33", "25", "18"),
        answer="33",
        because="Its common words were single tokens already. The new tokens went to other languages.",
    ),
    Prediction(
        "larger_vocabulary",
        "The same stories are cut into 256 kinds of tokens (bytes), and into 400. A model that knows only how common "
        "each token is reads both. With 400, its perplexity per token …",
        options=("rises fourfold", "stays within 10%", "falls by half"),
        answer="rises fourfold",
        because="There are fewer tokens, and each is harder to guess. Perplexities of different tokens cannot be "
        "compared.",
    ),
    Prediction(
        "first_position",
        "A model reads windows of a text. Divide its loss at a window's first position by its loss at the eighth:",
        options=("about 1", "about 1.5", "4 to 6", "more than 10"),
        answer="4 to 6",
        because="At the first position it sees one token, at the eighth eight. The mean over a window hides this.",
    ),
    Prediction(
        "unseen_row",
        "A token never comes in training, neither as input nor as target. After 500 steps of AdamW without decay, its "
        "row of the input embedding …",
        options=("is zero", "is unchanged to the bit", "has drifted at random"),
        answer="is unchanged to the bit",
        because="Its gradient is 0 in every step, and so is its mean: Adam's step is 0 ÷ ε.",
    ),
    Prediction(
        "the_plain_mix",
        "The seven texts are joined, and one table of 512 tokens is learned from them. Who pays the most with it?",
        options=("English", "Ukrainian", "Hindi", "Burmese"),
        answer="Burmese",
        because="A letter has three bytes, and no other reader shares the alphabet.",
    ),
    NumberPrediction(
        "planted_thirty_times",
        "A passage that the model never read costs it 3.9 nats a token. What does one cost that it read 30 times among "
        "2,400 rows?",
        answer=2.3,
        low=0.0,
        high=4.0,
        unit="nats",
        because="Much of it is known by heart, although 30 of 2,400 rows are few.",
    ),
)
