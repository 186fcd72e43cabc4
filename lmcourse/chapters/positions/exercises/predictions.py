"""The predictions of notebook 09."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

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
    NumberPrediction(
        "middle_wavelength",
        "Of the 512 pairs of d = 1024, pair 0 turns once in 6.28 tokens and pair 511 once in 61,712. And pair 256, "
        "in the middle?",
        answer=628,
        low=6,
        high=62_000,
        log=True,
        unit="tokens",
        because="The speeds fall in equal ratios, from 1 to nearly 1/10,000. In the middle that is 1/100, so a turn "
        "takes 100 · 6.28 tokens.",
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
    Prediction(
        "which_to_keep",
        "A model was trained on 32 tokens, in which its eight pairs turn 5.09 to 0.09 times. To read 128, which pair "
        "must keep its speed?",
        options=("the slowest", "the fastest", "none: the longer text needs all of them slower"),
        answer="the fastest",
        because="In 32 tokens it turns five times: it has shown every angle, so 128 tokens bring no new one. And it is "
        "the pair that tells neighbours apart, as the model has learned it.",
    ),
    Prediction(
        "at_once",
        "The speeds are changed, the weights are not. With which speeds does the copier copy best at 32 tokens, the "
        "length it was trained on?",
        options=("as trained", "interpolation", "NTK", "by parts"),
        answer="as trained",
        because="There nothing was wrong. Whatever slows a pair down changes the distances that the model has learned.",
    ),
    NumberPrediction(
        "best_single_pair",
        "The first copier costs 5.58 nats at 128 tokens. You divide the speed of a single pair by four, the best one "
        "there is. What does it cost then?",
        answer=5.04,
        low=0,
        high=6,
        step=0.02,
        unit="nats",
        because="No pair alone helps. As long as the others meet new angles, the scores stay strange.",
    ),
    Prediction(
        "after_fifty_steps",
        "After 50 steps on 128 tokens: with which speeds does the copier copy best at 128?",
        options=("as trained", "interpolation", "by parts", "NTK"),
        answer="by parts",
        because="Its slow pairs stay within angles that the model knows, and its fastest one has kept the neighbours. "
        "It has the least to learn.",
    ),
)
