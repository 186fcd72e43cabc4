"""The predictions of notebook 20."""

from __future__ import annotations

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "which_is_exact",
        "Before a model is trained: which of your forecasts will be right to the last digit?",
        options=("none", "parameters, FLOPs, bytes of states", "these, and the seconds", "all, the loss too"),
        answer="parameters, FLOPs, bytes of states",
        because="They are counted. Seconds depend on the machine and its mood; the loss on data, order and luck.",
    ),
    Prediction(
        "one_rate_for_all",
        "You measure the FLOPs per second of a model that is 16 wide. What does one that is 96 wide reach here?",
        options=("half of that", "the same", "more than twice that"),
        answer="more than twice that",
        because="Small matrices spend their time on calls and copies. A probe tells about the model that it ran.",
    ),
    Prediction(
        "unknown_floor",
        "You do not know the entropy, fit the law with a floor of 0, and it fits the small runs "
        "even better. Its forecast for "
        "ten times the compute, 48 wide, is",
        options=("better as well", "about the same", "much too low", "much too high"),
        answer="much too low",
        because="The power laws had to explain what cannot be learned. Near the floor the loss stops "
        "falling, and they do not.",
    ),
    Prediction(
        "tokens_per_parameter",
        "At a budget of 6·10¹⁰ FLOPs the law asks for so many bytes of text per parameter. At "
        "ten times the budget it asks for",
        options=("more bytes per parameter", "as many: about 20 is a constant", "fewer bytes per parameter"),
        answer="fewer bytes per parameter",
        because="Here the text's term falls faster (b > a), so it needs the smaller part of what is added.",
    ),
    Prediction(
        "flat_valley",
        "Two blocks, all of 6·10¹¹ FLOPs: how much do the losses of 24, 32 and 48 wide differ?",
        options=("one of them wins by 0.1", "by about 0.03", "by less than 0.01"),
        answer="by less than 0.01",
        because="Near a minimum everything is flat: a size that is wrong by a factor of three costs next to nothing.",
    ),
    Prediction(
        "where_consensus_is",
        "Of the published models in our zoo since 2023, how many have all three: RMSNorm, RoPE "
        "and a gated feed-forward layer?",
        options=("about a quarter", "about half", "about three quarters"),
        answer="about three quarters",
        because="The architecture has nearly settled. What an order like yours decides is sizes, text and steps.",
    ),
)
