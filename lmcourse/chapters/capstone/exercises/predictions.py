"""The predictions of notebook 20."""

from __future__ import annotations

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "which_is_exact",
        "Before a model is trained: which of your forecasts can be right to the last digit?",
        options=("these, and the seconds", "all, the loss too", "parameters, FLOPs, bytes of states", "none"),
        answer="parameters, FLOPs, bytes of states",
        because="They are counted. Seconds depend on the machine and on what else it does; the loss on data, order and "
        "luck.",
    ),
    Prediction(
        "one_rate_for_all",
        "You measure the FLOPs per second of a model that is 16 wide. What does one that is 96 wide reach here?",
        options=("more than twice that", "half of that", "the same"),
        answer="more than twice that",
        because="Small matrices spend their time on calls and copies. A probe is valid for the model that it ran.",
    ),
    Prediction(
        "unknown_floor",
        "Fit the law with a floor of 0 in place of the entropy. It fits the small runs about as well. What does it "
        "promise for the best model with 100 times the order's FLOPs?",
        options=("a loss above that of the right law", "a loss below the entropy", "about the same loss"),
        answer="a loss below the entropy",
        because="The power laws also had to explain what no model can learn. Near the floor the loss stops falling, "
        "and they do not.",
    ),
    Prediction(
        "agreement",
        "You fit the law twice, on the runs of two seeds. The two forecasts for 2 × 32 at the order's size differ by "
        "0.016. What do you know about the error of the forecast?",
        options=("it is at most 0.016", "only that the seed alone makes 0.016 of it", "it is about 0.016 / √2"),
        answer="only that the seed alone makes 0.016 of it",
        because="Both share the formula, the recipe and the designs. An error of those is the same in each.",
    ),
    Prediction(
        "small_batch_first",
        "A run with batches of 4 texts needs about 1,000 steps to a loss of 0.5. You take batches of 16, with the rate "
        "that is best for them. How many steps does it need?",
        options=("about 250", "about 310", "about 600", "about 1,000"),
        answer="about 310",
        because="The gradients of larger batches are less noisy. As long as noise is the problem, four times the batch "
        "saves almost three quarters of the steps. With larger batches you gain less and less.",
    ),
    Prediction(
        "tokens_per_parameter",
        "Suppose the size's term has a larger exponent than the text's term (a > b). With ten times the budget, the "
        "best number of bytes per parameter is",
        options=("smaller", "the same", "larger"),
        answer="larger",
        because="The term that falls faster needs less of what is added. Of a larger budget, more goes into the text.",
    ),
)
