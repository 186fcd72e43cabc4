"""The predictions of notebook 09."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "shuffled_words",
        "A layer of attention without mask and without positions reads “dog bites man”, then “man bites dog”. What "
        "happens to the vectors it gives to the three words?",
        options=("they move with their words", "only that of “bites” stays", "all three change"),
        answer="they move with their words",
        because="Every word meets the same set of words, with the same weights. The layer is blind to the order, and "
        "so is every layer after it.",
    ),
    Prediction(
        "learned_beyond",
        "GPT-2 has learned a vector for each of 1,024 positions. What does it do with the token after them?",
        options=("it continues the pattern", "it uses the last vector again", "nothing: there is no such row"),
        answer="nothing: there is no such row",
        because="A learned table is a look-up. The row of position 1,024 does not exist, and if it did, no text would "
        "ever have trained it.",
    ),
    Prediction(
        "sine_collision",
        "Pair 2 of d = 1024 repeats every 6.51 tokens. At which two positions are its sines nearly the same?",
        options=("3 and 6", "28 and 47", "2 and 9", "at no two positions"),
        answer="28 and 47",
        because="The sines are 0.953 and 0.977, and only the cosines, −0.302 and 0.212, tell the two apart. At 3 and 6 "
        "the sines are 0.245 and −0.475.",
    ),
    Prediction(
        "one_matrix",
        "Is there one matrix that turns PE(0) into PE(5), PE(1) into PE(6), and PE(1000) into PE(1005)?",
        options=("no, it depends on the position", "yes, the same for all", "only for steps up to d"),
        answer="yes, the same for all",
        because="Each pair is a point on a circle, and five tokens later it has turned by 5ω, wherever it was.",
    ),
    Prediction(
        "relative_cost",
        "A text of 4,096 tokens, heads of 64 features, fp32. What would it take to store a vector a for every pair of "
        "query and key?",
        options=("1 MiB", "64 MiB", "4 GiB"),
        answer="4 GiB",
        because="4,096 × 4,096 × 64 × 4 bytes = 4 GiB, for a single head. But nearly all of them are copies of the "
        "same few vectors.",
    ),
    Prediction(
        "far_away",
        "The decoder of T5 (32 buckets, maximum distance 128) looks at a token 120 back and at one 12,000 back. Do "
        "they get the same bias?",
        options=("yes", "no"),
        answer="yes",
        because="The last bucket begins at a distance of 113 and has no end.",
    ),
    Prediction(
        "flattest_head",
        "The flattest of ALiBi's eight heads has the slope 1/256. At which distance has a token's weight fallen to a "
        "third (1/e) of the nearest one's, for equal q·k?",
        options=("8 tokens", "256 tokens", "2,048 tokens"),
        answer="256 tokens",
        because="A distance of 256 costs 256 · 1/256 = 1, and e to the −1 is 0.37. For the steepest head it takes 2 "
        "tokens.",
    ),
    Prediction(
        "which_rotation",
        "A lecturer says: inner products are invariant to arbitrary rotations. What may you really do to q and k "
        "without changing q·k?",
        options=("turn either of them", "turn both by the same angle", "turn each by an angle of its own"),
        answer="turn both by the same angle",
        because="q·k depends on the angle between the two. A common rotation keeps it; a rotation of one against the "
        "other is just what changes it, and that is the part RoPE uses.",
    ),
    Prediction(
        "no_positions",
        "A causal model gets no positions at all. Can its first layer find out where in the text a token stands?",
        options=("no, order is invisible", "yes, from the causal mask"),
        answer="yes, from the causal mask",
        because="Token s averages s vectors, and an average of many is smaller than an average of few. So the size of "
        "what a layer returns tells the position.",
    ),
    Prediction(
        "rope_beyond",
        "A small model with RoPE has been trained on 32 characters at a time and predicts them well. Now it reads 128. "
        "How well does it predict the last ones?",
        options=("as well as before", "somewhat worse", "worse than by frequency alone"),
        answer="worse than by frequency alone",
        because="Its scores are functions of the distance, but of distances that it has never seen: the slow pairs are "
        "at new angles, and nothing has taught the model what these mean.",
    ),
)
