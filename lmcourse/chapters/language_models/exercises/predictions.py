"""The predictions of notebook 05."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "simplex_of_three",
        "All probability distributions over three words form a set in space. How many dimensions does the set have?",
        options=("1", "2", "3"),
        answer="2",
        because="Two of the three numbers can be chosen; the third is what is left of 1. The set is a triangle.",
    ),
    Prediction(
        "cheaper_but_farther",
        "Two pairs of truth and model. In the first the cross-entropy is 2.0 bits, in the second 0.6 bits. In which of "
        "them is the model farther from the truth?",
        options=("that cannot be said", "the first", "the second"),
        answer="that cannot be said",
        because="The two truths may differ, and so does what even a perfect model pays. The next cell takes two pairs "
        "apart.",
    ),
    Prediction(
        "last_word",
        'A text ends with its only "zebra". A bigram model takes count("zebra w") / count("zebra") for every word w. '
        "What do these probabilities sum to?",
        options=("0", "1", "that is 0 / 0, an error"),
        answer="0",
        because='count("zebra") is 1, and nothing follows it: 0 / 1 for every word. Divide by how often the context '
        "was *followed by something*, and the gap is visible: 0 / 0.",
    ),
    Prediction(
        "below_the_floor",
        "The language of our stories has an entropy of 0.222 nats per byte. A model that looks seven bytes back counts "
        "in five stories, and is then tried on the same five. How high is its loss?",
        options=("below 0.222", "0.222", "above 0.222"),
        answer="below 0.222",
        because="On text that it has seen a model can remember what nobody could predict. The floor is for *new* text.",
    ),
    Prediction(
        "better_perplexity",
        "One model predicts bytes and has a perplexity of 2.2. Another predicts words of the same text, of about four "
        "bytes each, and has a perplexity of 5. Which is the better model of the text?",
        options=("the model of bytes", "the model of words", "they are equally good"),
        answer="the model of words",
        because="A choice among 2.2 for each byte is a choice among 2.2⁴, more than 20, for each word of four bytes.",
    ),
    Prediction(
        "least_alike",
        "Look at the six rows. Which of these pairs has the lowest cosine?",
        options=("man and woman", "king and apple", "queen and orange"),
        answer="man and woman",
        because="They point in opposite directions in gender, the largest number of both. A person and a fruit have "
        "almost nothing in common: their cosine is near 0, not negative.",
    ),
    Prediction(
        "king_minus_man",
        "king − man + woman: which of the six words has the largest cosine with it, if all six are allowed?",
        options=("king", "woman", "queen"),
        answer="queen",
        because="Gender is turned from −0.95 to 1.05, and everything else stays as it is for king.",
    ),
    Prediction(
        "owl_to_owls",
        "Vectors of the words of our stories are learned from the words around them. Singular and plural differ by an "
        "s, always in the same way. How often does owls − owl + bear lead to bears?",
        options=("nearly always", "half of the time", "less than once in six"),
        answer="less than once in six",
        because="Learned vectors hold what the neighbours of a word show. For an analogy, the plural would have to "
        "change the neighbours of every word by the same amount. It does not.",
    ),
    Prediction(
        "past_the_entropy",
        "The loss on the training text passes the entropy of the source. What is the model learning from there on?",
        options=("the kinds of the words, more exactly", "this text, by heart", "nothing: the loss only wavers"),
        answer="this text, by heart",
        because="Knowing the source perfectly costs the entropy, on average. What is cheaper than that is knowledge of "
        "this one text, and it makes new text more expensive.",
    ),
    Prediction(
        "one_epoch",
        "A text is cut into n windows. You draw windows at random, with replacement, n times: as many as one pass has. "
        "What share of them have you never seen?",
        options=("none", "about 37 %", "about 63 %"),
        answer="about 37 %",
        because="Each draw misses a given window with 1 − 1/n, all n draws with (1 − 1/n)ⁿ, which is close to 1/e.",
    ),
)
