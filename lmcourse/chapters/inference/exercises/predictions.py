"""The predictions of notebook 17."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "greedy_or_best",
        "A model always writes its likeliest token. Does that give the likeliest text?",
        options=("yes: the best of every step", "yes, if it is certain enough", "no: the best may begin with another"),
        answer="no: the best may begin with another",
        because="What follows is not chosen yet. A likely first token may be followed by many ends that share its "
        "probability, and a less likely one by a single sure end.",
    ),
    NumberPrediction(
        "tokens_without_cache",
        "24 prompts have 513 tokens together, and your loop writes 1,215 tokens, 51 for each text on average. Without "
        "a cache, how many tokens does it show to the model?",
        answer=79_066,
        low=1_000,
        high=1_000_000,
        log=True,
        unit="tokens",
        because="Each pass shows the whole text so far. The longest texts count most: 160 passes over 100 tokens and "
        "more. 1,704 would be enough to show every token once.",
    ),
    Prediction(
        "price_of_a_token",
        "Llama 3 8B on an H100: 2,048 tokens are read at once, then one token is written for the same text. How many "
        "times as long does a written token take as a read one?",
        options=("equally long", "twice", "about 20 times", "about 300 times"),
        answer="about 300 times",
        because="To write one token, the chip reads all weights from memory. To read 2,048 tokens, it reads them "
        "once too.",
    ),
    Prediction(
        "draft_changes_the_text",
        "A small model guesses four tokens ahead, and a large one checks them in a single pass. What happens to "
        "the texts?",
        options=("they get a little worse", "they are drawn from the same distribution", "they get a little shorter"),
        answer="they are drawn from the same distribution",
        because="The probability of keeping a guess and the distribution of its replacement are chosen so that "
        "together they give exactly the large model's distribution.",
    ),
    Prediction(
        "idle_slots",
        "A batch of 32 requests runs until the longest answer is finished, and then the next 32 start. The lengths of "
        "the answers are random (exponential). Which fraction of the slot-steps writes a token?",
        options=("about 80 %", "about 50 %", "about 25 %"),
        answer="about 25 %",
        because="The longest of 32 random lengths is about four times the mean, and all slots wait for it.",
    ),
    NumberPrediction(
        "rows_of_a_pass",
        "A pass reads one token of one text, with a cache. How many times as long does a pass take that reads one "
        "token of each of 8 texts?",
        answer=1.7,
        low=1,
        high=8,
        step=0.1,
        unit="times as long",
        because="A pass of this small model costs about 1.2 ms, whatever it reads, and each token in it 0.13 ms more: "
        "2.2 ms in place of 1.3. (Measured on one CPU; the next cell prints it for yours.)",
    ),
    Prediction(
        "top_p_keeps",
        "Three tokens have the probabilities 0.85, 0.10 and 0.05. How many does top-p with p = 0.9 keep?",
        options=("one", "two", "three"),
        answer="two",
        because="0.85 is less than 0.9, so one more token is needed. The token that crosses p stays: the kept tokens "
        "have at least p together.",
    ),
    Prediction(
        "surprise_of_its_own_text",
        "A model draws a text from its own probabilities, at temperature 1. How surprised is it by this text, in "
        "nats per token?",
        options=("almost not at all: it wrote it", "as much as its entropy", "as much as by any text"),
        answer="as much as its entropy",
        because="The average of −ln p over draws from p is the entropy. A text with less surprise was not drawn but "
        "chosen.",
    ),
    Prediction(
        "batch_of_64",
        "A model of 29 million weights in fp32 writes on one CPU thread. Instead of one text it writes 64 at once. How "
        "many times as many tokens a second does it write?",
        options=("about twice", "about 10 times", "64 times"),
        answer="about 10 times",
        because="Up to the knee the texts share the reading of the weights, and more texts are almost free. After it "
        "every text adds its arithmetic. The next cell prints the knee of your CPU.",
    ),
    Prediction(
        "int8_gains",
        "The same model with int8 weights, a quarter of the bytes. Where does it gain most, according to your "
        "`pass_seconds`?",
        options=("for one text", "for 64 texts", "the same everywhere"),
        answer="for one text",
        because="Fewer bytes help while the step waits for memory. For 64 texts it waits for arithmetic, and int8 "
        "weights do not make that less. (On a real machine converting them takes time, too: measure it below.)",
    ),
    Prediction(
        "cache_beyond_weights",
        "GPT-3, with its 350 GB of weights, serves texts of 2,048 tokens. From how many texts on do their caches take "
        "more memory than the weights?",
        options=("4", "37", "370", "3,700"),
        answer="37",
        because="The keys and values of a token take 4.7 MB in this model, so a text of 2,048 tokens takes 9.7 GB.",
    ),
)
