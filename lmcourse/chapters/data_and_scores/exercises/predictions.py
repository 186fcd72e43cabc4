"""The predictions of notebook 21."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    NumberPrediction(
        "by_sum_at_sixteen",
        "Answers of up to 4 tokens: the sum picks the right one of four in 79 %. What will it be with answers of up to "
        "16 tokens?",
        answer=20,
        low=0,
        high=100,
        unit="%",
        because="Every token makes a sum smaller, and the right answer is the longest. Guessing gets 25 %.",
    ),
    NumberPrediction(
        "halve_the_error",
        "A score from 300 questions has an error of 0.02. How many questions give it an error of 0.01?",
        answer=1200,
        low=300,
        high=6000,
        unit="questions",
        because="The error shrinks with the root of their number: four times as many for half of it.",
    ),
    Prediction(
        "the_honest_loss",
        "A quarter of the test paragraphs have slipped into a model's training text. You know which. Which loss on the "
        "test tells you how well it predicts new text?",
        options=("the loss on all paragraphs", "the loss on those that leaked", "the loss on the others"),
        answer="the loss on the others",
        because="They are as new to the model as the text that it will meet.",
    ),
    NumberPrediction(
        "error_of_64",
        "4 hash functions estimate these similarities with an error of about 0.21. What error do 64 have?",
        answer=0.05,
        low=0.0,
        high=0.25,
        step=0.01,
        because="Each function says yes with probability J, independently. Sixteen times as many: a quarter of the "
        "error.",
    ),
    Prediction(
        "past_the_bigrams",
        "Which of these does a filter stop that knows only which letters follow each other?",
        options=("help texts of Python", "shuffled words", "false sums", "near copies"),
        answer="help texts of Python",
        because="Words are the same if you shuffle them, and a filter of neighbouring letters sees little else.",
    ),
    Prediction(
        "copies_out",
        "From the pool as it comes to clean text, the loss falls by about 0.3. How much of that do you gain if you "
        "only drop exact copies?",
        options=("nothing", "about half", "nearly all"),
        answer="nothing",
        because="What moves up into their place is as bad.",
    ),
    Prediction(
        "three_times",
        "All paragraphs are clean. Is 60,000 letters made of 30 paragraphs of each place, each three times, worse than "
        "60,000 letters of new ones?",
        options=("much worse", "hardly worse, or not at all", "better"),
        answer="hardly worse, or not at all",
        because="The model reads its text five times in any case, and has not learned thirty paragraphs by heart.",
    ),
    NumberPrediction(
        "half_caught",
        "FineWeb compares documents by 14 bands of 8 hashes. Which similarity makes a pair a candidate half of the "
        "time?",
        answer=0.69,
        low=0.0,
        high=1.0,
        step=0.01,
        because="1 − (1 − J⁸)¹⁴ is ½ at J = 0.69, and rises steeply there.",
    ),
)
