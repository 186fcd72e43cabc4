"""The predictions of notebook 17."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "greedy_or_best",
        "A model always writes its likeliest token. Does that give the likeliest text?",
        options=("yes: the best of every step", "yes, if it is certain enough", "no: the best may begin with another"),
        answer="no: the best may begin with another",
        because="What follows is not chosen yet. A likely first token may be followed by many ends that share its "
        "probability, and a less likely one by a single sure end.",
    ),
    Prediction(
        "top_p_keeps",
        "Three tokens have the probabilities 0.85, 0.10 and 0.05. How many does top-p with p = 0.9 keep?",
        options=("one", "two", "three"),
        answer="two",
        because="0.85 is less than 0.9, so the set needs one more. The token that crosses the line belongs to it: the "
        "kept ones have *at least* p together.",
    ),
    Prediction(
        "surprise_of_its_own_text",
        "A model draws a text from its own probabilities, at temperature 1. How surprised is it by what it wrote, in "
        "nats per token?",
        options=("hardly at all: it wrote it", "as much as its entropy", "as much as by any text"),
        answer="as much as its entropy",
        because="The average of −ln p over draws from p *is* the entropy. A text that its model finds more probable "
        "than that was not drawn but chosen.",
    ),
    Prediction(
        "price_of_a_token",
        "Llama 3 8B on an H100: 2,048 tokens are read at once, then one token is written for the same text. How many "
        "times as long does a written token take as a read one?",
        options=("equally long", "twice", "about 20 times", "about 300 times"),
        answer="about 300 times",
        because="To write one token, all weights have to come from memory. To read 2,048, they come once, too.",
    ),
    Prediction(
        "cache_beyond_weights",
        "GPT-3 with its 350 GB of weights serves texts of 4,096 tokens. From how many texts at once do their caches "
        "weigh more than the model?",
        options=("19", "190", "1,900"),
        answer="19",
        because="A token's keys and values take 4.7 MB in this model, so a text of 4,096 tokens takes 19 GB.",
    ),
    Prediction(
        "idle_slots",
        "A batch of 32 requests runs until the longest answer is finished; then come the next 32. The lengths of "
        "answers are random, as in a queue. What share of the work is for anybody?",
        options=("about 80 %", "about 50 %", "about 25 %"),
        answer="about 25 %",
        because="The longest of 32 random lengths is about four times the mean, and everybody waits for it.",
    ),
    Prediction(
        "draft_changes_the_text",
        "A small model guesses four tokens ahead, a large one checks them in a single pass. What happens to the texts?",
        options=("they get a little worse", "they are drawn from the same distribution", "they get a little shorter"),
        answer="they are drawn from the same distribution",
        because="A guess is kept with just such a probability, and replaced from just such a distribution, that the "
        "outcome is the large model's to the last digit.",
    ),
)
