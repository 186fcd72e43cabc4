"""The predictions of notebook 20."""

from __future__ import annotations

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "which_is_exact",
        "Before a model is trained: which of your forecasts can be right to the last digit?",
        options=("these, and the seconds", "all, the loss too", "parameters, FLOPs, bytes of states", "none"),
        answer="parameters, FLOPs, bytes of states",
        because="They are counted. Seconds depend on the machine and on what else it does; the loss on data, order and "
        "luck.",
    ),
    NumberPrediction(
        "recipe_of_the_order",
        "2 × 24 with 6·10¹⁰ FLOPs and seed 0 ended at 0.393 with batches of 4. At which loss does it end with the "
        "recipe of the order, batches of 16?",
        answer=0.407,
        low=0.3,
        high=0.5,
        unit="nats a byte",
        because="It makes a fourth of the steps. The text is the same, and the gradients are less noisy, but that does "
        "not make up for all of the lost steps. Of 423 steps, 30 are warm-up.",
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
        "six_longer_pairs",
        "One pair of runs with 10¹⁰ FLOPs said that AdamW is better. Six pairs with 3.3·10¹⁰ FLOPs a run and the "
        "batches of the order, three designs with two seeds each, say:",
        options=("AdamW, p = 0.03", "Muon, p = 0.03", "nothing: the signs are mixed"),
        answer="Muon, p = 0.03",
        because="Muon is better in all six, by 0.022 to 0.070. Six pairs of half that length have mixed signs: in 71 "
        "to 129 steps, 30 of them warm-up, there is not enough to see.",
    ),
    NumberPrediction(
        "one_rate_for_all",
        "You measure the FLOPs per second of a model that is 16 wide. How many times that rate does one that is 96 "
        "wide reach? (Measured on one machine; the next cell measures yours.)",
        answer=2.0,
        low=0.5,
        high=8.0,
        log=True,
        because="Small matrices spend their time on calls and copies. On two machines it was 1.8 and more than 2. A "
        "probe is valid for the model and the machine that it ran on.",
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
    NumberPrediction(
        "tokens_per_parameter",
        "By the law of the sixteen runs, how many bytes of text a parameter are best for the order's 2·10¹¹ FLOPs?",
        answer=22.4,
        low=2,
        high=1000,
        log=True,
        unit="bytes a parameter",
        because="That this is near the famous 20 tokens is chance. The next cell shows how little these runs know.",
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
)
