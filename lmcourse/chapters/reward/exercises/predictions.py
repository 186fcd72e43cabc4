"""The predictions of notebook 22."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    NumberPrediction(
        "imitators_right",
        "People answer 60 % of the sums carefully, and the others at random, which is right in one of eleven cases. "
        "One sum in ten gets a second number, and counts as wrong. How many sums does a perfect imitator answer "
        "rightly?",
        answer=57,
        low=0,
        high=100,
        unit="%",
        because="0.9 · (0.6 + 0.4/11) = 0.573. It hedges as often as people, and guesses as often.",
    ),
    Prediction(
        "without_its_end",
        "Another model is trained on the answers, but not on their END. How many of its sampled answers end within "
        "four tokens?",
        options=("nearly all", "about half", "none"),
        answer="none",
        because="END was never a target, so it is never likely. No run measured ended a single answer.",
    ),
    NumberPrediction(
        "one_of_eight",
        "One answer to a sum is right with a probability of 0.56 on average. You draw eight. How often is at least "
        "one of them right?",
        answer=99.9,
        low=0,
        high=100,
        unit="%",
        step=0.1,
        because="All eight are wrong in 0.44 to the power of 8 = 0.1 % of the cases. Some sums are harder than "
        "others, so the models measured below reach 99.3 to 99.8 %.",
    ),
    Prediction(
        "baseline_of_ten",
        "You subtract 10 from every reward, although the rewards are 0, 1 and 3. What changes in the gradient?",
        options=("its mean", "its noise", "its mean and its noise", "nothing"),
        answer="its noise",
        because="The mean stays: the expectation of ∇ log p is 0. One answer's gradient spreads eight times as wide "
        "as with the mean as baseline.",
    ),
    Prediction(
        "larger_of_two",
        "Only sums are asked and rewarded. What happens to the other skill, the larger of two numbers?",
        options=("it improves, too", "it stays exactly as it is", "it may get lost in part"),
        answer="it may get lost in part",
        because="The weights are shared, and nothing in the reward speaks for the other skill.",
    ),
    NumberPrediction(
        "ten_of_eleven",
        "Eleven sums are 10, and the imitator answers 10 with a probability of about 0.0001. The others are soon "
        "right in 99 %. How many of the eleven has seed 0 learned after 100 steps?",
        answer=0,
        low=0,
        high=11,
        unit="sums",
        step=1,
        because="What is never sampled is never rewarded. With seed 1 two of them were sampled once by luck, and "
        "learned.",
    ),
    NumberPrediction(
        "right_by_the_wrong_checker",
        "After 150 steps with this checker, seed 1 has a reward of 0.99. How many of its answers to sums are right?",
        answer=1,
        low=0,
        high=100,
        unit="%",
        because="Nearly all answers have four numbers, and one of them is right. With seed 0, at the same reward, 96 "
        "% of the answers are right.",
    ),
    Prediction(
        "few_numbers",
        "The imitator learns from right answers to sums, with 5,120 numbers of LoRA in place of all 67,776. What "
        "happens to the larger of two, which was right in .99?",
        options=("it is untouched", "it suffers, too", "it improves"),
        answer="it suffers, too",
        because="Few numbers do not protect what is not trained on.",
    ),
)
