"""The predictions of notebook 02."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

PREDICTIONS = (
    Prediction(
        "which_view_fails",
        "z = torch.arange(6).view(2, 3).t() has shape (3, 2) and is a transpose. Which of these raises an error?",
        options=("z.view(6)", "z[1:]", "z.t()", "z.view(3, 1, 2)"),
        answer="z.view(6)",
        because="Slices, a second transpose and one more axis only need other notes. For all six in one axis the steps "
        "would have to go back and forth, 0, 3, 1, 4, 2, 5, and no single stride does that.",
    ),
    Prediction(
        "flat_every_other",
        "y = torch.arange(24).view(3, 8)[:, ::2] leaves out every other number. What is y.view(12)?",
        options=("a copy", "a view", "an error"),
        answer="a view",
        because="Its strides are (8, 2), and its rows have 4 columns: the next row begins exactly four steps of 2 "
        "further. So twelve steps of 2 read it all.",
    ),
    Prediction(
        "first_loss",
        "Predictions have the shape (64,), targets (64, 1), and the loss is ((p − y)**2).mean(). At the start all "
        "predictions are equal. Compared with targets of shape (64,), the first loss is …",
        options=("64 times as large", "exactly as large", "larger, but less than twice", "smaller"),
        answer="exactly as large",
        because="(64,) − (64, 1) is (64, 64): every prediction against every target. While all predictions are equal, "
        "the average over all pairs is the same number. So the first loss does not show the mistake.",
    ),
    Prediction(
        "buffers_of_a_line",
        "x, y, z and w are tensors of one size. How many more tensors of that size must fit into memory for "
        "x*y + (y*z + (z*w + w*x))?",
        options=("2", "3", "5", "7"),
        answer="5",
        because="Each left product waits until its right side is done. When the innermost sum is computed, two left "
        "products wait, two are added, and the sum itself is the fifth. Written from the left it takes 3.",
    ),
    Prediction(
        "two_lines_need_more",
        "Two of the six lines need more than predicted: the one with mul_ by 524,288 bytes, w @ v by 262,144. Where do "
        "these bytes come from?",
        options=(
            "@ copies factors that are not one batch",
            "@ copies what is transposed",
            "PyTorch takes spare memory",
        ),
        answer="@ copies factors that are not one batch",
        because="A batched product has one batch axis, so texts and heads are merged. The strides of q, k and v do not "
        "allow this, so each of them is copied, 262,144 bytes. The weights w are fresh: their axes merge.",
    ),
    NumberPrediction(
        "scores_at_once",
        "Nothing in these lines is done in place. How many tensors of the size of the scores do they need at once?",
        answer=3,
        low=1,
        high=8,
        step=1,
        unit="tensors",
        because="Where exp runs, three are alive: the scores, which have a name, the difference, and the exponentials. "
        "Where the weights are divided, the scores are still there beside the old weights and the new ones.",
    ),
    Prediction(
        "place_in_the_row",
        "The elements of x = torch.arange(12).view(3, 4) are stored one after the other. Counted as people count "
        "(first, second, …), which of them is x[1, 2]?",
        options=("the 6th", "the 7th", "the 8th"),
        answer="the 7th",
        because="One row of four and two more: index 6. Indices start at 0, so index 6 is the seventh element.",
    ),
    Prediction(
        "every_eighth",
        "Summing 16.8 million floats takes this machine some milliseconds. You sum every eighth of them instead: an "
        "eighth of the numbers. How long does that take?",
        options=("an eighth of the time", "half the time", "about the same time", "eight times as long"),
        answer="about the same time",
        because="Memory comes in lines of 64 bytes, 16 floats. Every eighth float still touches every line, and "
        "fetching the lines takes the time.",
    ),
    Prediction(
        "a_wrong_annotation",
        'A function is annotated -> Float[Tensor, "b d"] and returns a tensor of shape (d, b). You call it. What '
        "happens?",
        options=("nothing", "a TypeError", "a warning"),
        answer="nothing",
        because="Python does not look at annotations when a function is called. They are documentation until something "
        "checks them.",
    ),
    Prediction(
        "added_twice",
        "out = torch.zeros(3), then out[torch.tensor([0, 0, 2])] += 1. What is out?",
        options=("[1, 0, 1]", "[2, 0, 1]", "an error"),
        answer="[1, 0, 1]",
        because="The line reads out[[0, 0, 2]], a copy of three zeros, adds 1 to each, and writes the three ones back. "
        "Place 0 is written twice, both times with 1.",
    ),
)
