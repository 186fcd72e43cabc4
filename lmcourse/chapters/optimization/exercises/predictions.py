"""The predictions of notebook 04."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "hair_above",
        "A bowl with largest curvature L. You choose a rate a hair above 2/L: 2.01/L. What happens?",
        options=("it swings to and fro for ever", "it explodes", "it arrives, only slower"),
        answer="it explodes",
        because="In the steepest direction every step multiplies the distance by 1 − 2.01 = −1.01. Ten steps make "
        "it a tenth larger, a thousand 21,000 times.",
    ),
    NumberPrediction(
        "best_rate_of_descent",
        "Descent with one rate for all steps, 500 steps in this race. Near which rate is the held-out loss lowest?",
        answer=0.5,
        low=0.0001,
        high=100,
        log=True,
        because="At 0.3 and 0.5 the loss is almost the same, and at 2 descent is lost. The best rate is not far below "
        "the largest one that works.",
    ),
    Prediction(
        "rate_with_momentum",
        "With β = 0.9 the ball's steps become ten times as long. How large may the rate be before the ball "
        "explodes, compared with gradient descent's 2/L?",
        options=("nearly twice as large", "the same", "a tenth"),
        answer="nearly twice as large",
        because="In the steepest direction gradients alternate in sign, and a sum of those is small: memory brakes "
        "there, and the ball's steps may be longer. A cell after the exercise measures the edge.",
    ),
    Prediction(
        "first_step",
        "Adam with β₁ = 0.9 and β₂ = 0.999, both means starting at 0 and used as they are. How long is the first step, "
        "in units of the rate?",
        options=("0.1", "1", "3.2", "32"),
        answer="3.2",
        because="m is 0.1 g after the first step, and √s is √0.001 · |g| = 0.032 |g|. Their quotient is 3.2.",
    ),
    Prediction(
        "who_decays",
        "Adam, with the decay λp added to the gradient. Which weight is nearer to 0 after these 2,000 steps?",
        options=("the one with gradients of ±0.01", "the one with gradients of ±10", "both are at about 0.82"),
        answer="the one with gradients of ±0.01",
        because="Adam divides the decay by the size of the gradients, too. λp is large beside 0.01 and tiny beside 10.",
    ),
    Prediction(
        "constant_or_cosine",
        "AdamW at a rate of 0.01, 500 steps: constant, or a cosine down to 0. Which ends lower?",
        options=("the cosine", "the constant rate", "they end alike"),
        answer="the cosine",
        because="A high rate leaves the weights swinging about the bottom; the cosine brings them down.",
    ),
    Prediction(
        "below_every_parabola",
        "A function lies below the parabola of curvature L at each of its points. Does its gradient change at most L "
        "times as fast as x?",
        options=("not necessarily", "yes, the two say the same"),
        answer="not necessarily",
        because="Take −x⁴: it bends downwards everywhere and lies below every such parabola, and its slope changes as "
        "fast as you like. The bound from above says nothing about how fast a function may fall.",
    ),
    Prediction(
        "sharper_or_flatter",
        "A small network is trained on all of its data at once with the fixed rate 0.4, for 2,000 steps. With a rate "
        "of 0.1 and four times as many steps, the largest curvature of its loss ends at 7 to 8. And with 0.4?",
        options=("at about 2/γ = 5", "at 7 to 8 as well", "far above 8", "it depends on the seed"),
        answer="at about 2/γ = 5",
        because="The curvature rises while the network learns, until the steps begin to swing; that turns them away "
        "from the steepest places. Here the rate chooses the curvature.",
    ),
    Prediction(
        "eight_times_the_batch",
        "A small net is trained until its loss is 1.6 nats, each batch size at the best of three rates. You go from 64 "
        "examples a step to 512. The number of steps falls …",
        options=("to an eighth", "to a half or a third", "not at all"),
        answer="to a half or a third",
        because="At 64 a good part of a step is still noise, and a cleaner gradient allows a larger rate. At 512 it is "
        "nearly the full gradient, and eight times the work buys much less than eight times the progress.",
    ),
    Prediction(
        "constant_rate",
        "Stochastic gradient descent, one example at a time, constant rate, on data that a line fits *exactly*. Does "
        "it reach the bottom?",
        options=("no, it stays at a floor that is as high as the rate is large", "yes"),
        answer="yes",
        because="At the best line the gradient of every single example is 0, so there is no noise left. The floor is "
        "made of σ² there, and that is 0.",
    ),
    Prediction(
        "who_notices",
        "All coordinates of a problem are turned, as if you looked at the same valley from another side. Whose path "
        "changes?",
        options=("gradient descent's", "the heavy ball's", "AdaGrad's", "that of all three", "none of them"),
        answer="AdaGrad's",
        because="It has a rate for each axis, so it matters where the axes are. The others add whole vectors, and "
        "vectors turn with the valley.",
    ),
    Prediction(
        "decay_and_rate",
        "You halve the rate and take twice as many steps. A weight whose gradient is always 0 should end where it "
        "ended before. What becomes of AdamW's λ?",
        options=("half as large", "the same", "twice as large", "four times as large"),
        answer="the same",
        because="(1 − γλ)ⁿ is nearly e to the power −γλn. Half the rate times twice the steps is the same product, so "
        "λ stays. Halve the rate alone, and λ has to double.",
    ),
    Prediction(
        "decay_and_validation",
        "Three runs of a language model, with more and more weight decay, are compared in pairs of training and "
        "validation loss. In all three the two are equal, because no text is seen twice. What can decay have done?",
        options=("changed how low the training loss gets", "prevented overfitting", "nothing"),
        answer="changed how low the training loss gets",
        because="Where both losses are the same there is nothing to regularise, but both can be lower. How decay "
        "does that, the next run shows.",
    ),
)
