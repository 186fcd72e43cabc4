"""The predictions of notebook 23."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    NumberPrediction(
        "head_set_to_zero",
        "In the model of seed 0 the result of layer 1 head 0 is set to zero. Which fraction of the odds is lost?",
        answer=70,
        low=0,
        high=100,
        unit="% of the odds",
        because="No other head comes near. With its mean in its place, or with the other hero's result, more is lost.",
    ),
    Prediction(
        "who_writes_most",
        "The last stream is a sum of eleven parts. Which one writes most of the odds into it?",
        options=("the embedding of So", "a head of layer 0", "a head of layer 1", "the units of layer 1"),
        answer="the units of layer 1",
        because="They write more than half of it in both models: the last part has the last word.",
    ),
    Prediction(
        "where_is_the_hero",
        "After block 0, which word's vector must you put in to bring most of the odds back?",
        options=("the first word's, the hero's", "that of So", "those of the words between"),
        answer="the first word's, the hero's",
        because="In both models most still has to be fetched: block 1 does it.",
    ),
    NumberPrediction(
        "probe_of_random_weights",
        "In a model that was never trained, a probe reads the stream at So after both blocks. In which fraction of new "
        "texts does it name the right hero?",
        answer=94,
        low=0,
        high=100,
        unit="% of the texts",
        because="Random attention averages all words, the first one among them. A linear map finds it in the average.",
    ),
    Prediction(
        "erased_after_block_0",
        "After block 0, a probe at So finds the hero nearly always. You erase the hero's directions there. How much of "
        "the odds is lost?",
        options=("nearly everything", "more than half", "less than half"),
        answer="less than half",
        because="6 % with seed 0, 32 % with seed 1: block 1 fetches most from the first word (section 4).",
    ),
    Prediction(
        "steered_too_far",
        "Pushed by a = 1, the model names the other hero in every text. And with a = 4?",
        options=("in every text", "in fewer texts", "in none"),
        answer="in fewer texts",
        because="So far out there are no streams from which the model has learned to continue: it names other words.",
    ),
    NumberPrediction(
        "crowded_at_90",
        "20 features, 5 numbers, and 90 % of the features are 0 in each example. How many features are kept?",
        answer=12,
        low=0,
        high=20,
        unit="features",
        because="More than twice as many as numbers: two features that are rarely there at once can share a direction.",
    ),
    NumberPrediction(
        "path_through_units",
        "In seed 0, layer 1 head 0 gets the other hero's result, and the odds fall from 9 to about −6. Now the units "
        "of layer 1 stay as they were. To which odds do they fall?",
        answer=5,
        low=-10,
        high=10,
        because="Most of what the head does reaches the answer through the units.",
    ),
)
