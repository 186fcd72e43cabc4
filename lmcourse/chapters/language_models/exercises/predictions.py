"""The predictions of notebook 05."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "two_cross_entropies",
        "Two pairs of truth and model. In the first the cross-entropy is 2.0 bits, in the second 0.6 bits. In which of "
        "them is the model farther from the truth?",
        options=("that cannot be said", "the first", "the second"),
        answer="that cannot be said",
        because="The two truths may differ, and so does what even a perfect model pays. The next cell takes two pairs "
        "apart.",
    ),
    NumberPrediction(
        "first_loss_of_llama",
        "Llama 3 has a vocabulary of 128,256 tokens. Its weights are small random numbers. What is the loss of the "
        "first step, near enough?",
        answer=11.76,
        low=0,
        high=20,
        unit="nats per token",
        because="A model that knows nothing gives every token the same probability, 1/128,256: ln 128,256 is 11.76.",
    ),
    Prediction(
        "counts_or_training",
        "The loss of a trained table of logits, on the text that it is trained on, falls with each step. Where does it "
        "arrive, compared with the loss of the counts?",
        options=("above it", "at the same loss", "below it"),
        answer="at the same loss",
        because="On the text that was counted no table is better than the counts, and a table can say the same. So "
        "training comes down to them, from above.",
    ),
    Prediction(
        "scored_on_the_same",
        "The stories have an entropy of 0.222 nats per byte. A model that looks seven bytes back is fitted by counting "
        "five stories, then scored on the same five. How high is its loss?",
        options=("below 0.222", "0.222", "above 0.222"),
        answer="below 0.222",
        because="On text that it has seen a model can remember what nobody could predict. The floor is for *new* text.",
    ),
    NumberPrediction(
        "one_letter",
        "With the six lengths, new stories cost 0.38 nats per byte; the language costs 0.22. Now the model also knows "
        "in every context at which place the paragraph plays. What do new stories cost?",
        answer=0.36,
        low=0.22,
        high=0.4,
        unit="nats per byte",
        because="It is less than one hopes. Nouns get much cheaper; sums get dearer, because their counts are divided "
        "among places that do not matter to them.",
    ),
    Prediction(
        "simplex_of_three",
        "All probability distributions over three words form a set in space. How many dimensions does the set have?",
        options=("1", "2", "3"),
        answer="2",
        because="Two of the three numbers can be chosen; the third is what is left of 1. The set is a triangle.",
    ),
    Prediction(
        "bytes_or_words",
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
        "one_epoch",
        "A text is cut into n windows. You draw windows at random, with replacement, n times: as many as one pass has. "
        "What share of them have you never seen?",
        options=("none", "about 37 %", "about 63 %"),
        answer="about 37 %",
        because="Each draw misses a given window with 1 − 1/n, all n draws with (1 − 1/n)ⁿ, which is close to 1/e.",
    ),
)
