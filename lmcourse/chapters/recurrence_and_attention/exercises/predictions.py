"""The predictions of notebook 06."""

from lmcourse.exercises.prediction import Prediction

PREDICTIONS = (
    Prediction(
        "which_memory",
        "A network of one number, h ← tanh(w h + 0.3 e), reads the keys that the man in the red coat lost on the way "
        "to the station. With which w does it say were?",
        options=("0.5", "1", "2"),
        answer="2",
        because="With 0.5 the last noun decides. With 1 all nouns vote, and four of them are singular. With 2 the "
        "state keeps the side that it took first.",
    ),
    Prediction(
        "radius_one",
        "A tanh network reads 60 ordinary inputs. Its matrix W_h has a spectral radius of exactly 1. How much of a "
        "gradient of length 1 is left 50 steps back?",
        options=("less than a billionth", "about 1", "it explodes", "about a hundredth"),
        answer="less than a billionth",
        because="The radius tells what W_h does alone. On its way back the gradient passes a tanh in each step, too, "
        "and ordinary inputs push the states to where its slope is well below 1.",
    ),
    Prediction(
        "without_tanh",
        "The same network without its tanh: h ← W h + x, spectral radius 1. How much is left 50 steps back?",
        options=("less than a billionth again", "more than a thousand", "between a hundredth and 1"),
        answer="between a hundredth and 1",
        because="Now the Jacobian is W_h itself, and the textbook's rule holds: at a radius of 1 the gradient lives.",
    ),
    Prediction(
        "radius_one_and_a_half",
        "The tanh network again, with a spectral radius of 1.5: 1.5⁵⁰ is 637 million. What is left 50 steps back now?",
        options=("it explodes, to about 10⁸", "it fades, to less than a thousandth", "about 1"),
        answer="it fades, to less than a thousandth",
        because="A larger W_h saturates the states more, and the slope of tanh falls with them. Here the slopes win.",
    ),
    Prediction(
        "fresh_lstm",
        "An LSTM as PyTorch makes it, untrained, reads the same inputs. What is left of the cell's gradient 50 steps "
        "back?",
        options=("about 1: that is what LSTMs are for", "about a hundredth", "less than a billionth"),
        answer="less than a billionth",
        because="Its forget gates start near ½, and ½⁵⁰ is 10⁻¹⁵. The way is there, but the gate has to be opened.",
    ),
    Prediction(
        "bias_three",
        "A forget bias of 3 gives σ = 0.953, and 0.953⁵⁰ = 0.09. In an untrained LSTM with a state of 64, how much of "
        "a gradient at the cell is left after 50 steps?",
        options=("about 0.09", "less: the gates vary", "more: there are other ways back"),
        answer="more: there are other ways back",
        because="The gates read the state, and the state reads the cell: these paths add to the one through the "
        "forget gate.",
    ),
    Prediction(
        "trained_to_remember",
        "A text begins with one of two words, and 20 random words follow. A tanh network and an LSTM as PyTorch makes "
        "it are trained for 500 steps to say which word came first. Which of them learns it with all of three seeds?",
        options=("both", "only the LSTM", "neither"),
        answer="neither",
        because="At the start almost nothing of the gradient reaches the first word, in both. A gate that is half "
        "closed hides the word that would teach it to open.",
    ),
    Prediction(
        "more_arithmetic",
        "A text of 256 words, a state of 64 numbers, one processor. Attention does four times the arithmetic of the "
        "RNN. It takes ...",
        options=("four times as long", "about as long", "less time"),
        answer="less time",
        because="The RNN's 256 steps are tiny and wait for one another; attention is two large products.",
    ),
    Prediction(
        "one_vector",
        "An LSTM of 64 numbers reads twelve symbols out of ten, and another writes them in reverse from its last state "
        "alone. After 400 steps of training, how many rows of twelve come out without an error?",
        options=("about half", "fewer than two in ten", "about nine in ten"),
        answer="fewer than two in ten",
        because="h and c are 128 numbers, which could hold twelve symbols many times over. Learning to put "
        "them in and to take them out again, one by one, is what fails.",
    ),
    Prediction(
        "where_it_looks",
        "The same task with attention. Nobody tells the decoder where to look. Drawn as a matrix, source to the right, "
        "target downwards, its weights will form ...",
        options=("the diagonal", "the other diagonal", "no pattern", "a column: the last state"),
        answer="the other diagonal",
        because="The first symbol to say is the last one that was read. A relief: here it does what you would hope.",
    ),
    Prediction(
        "perfect_rows",
        "With the true words to read, this decoder gets 93% of the symbols of rows of nine right, and about half of "
        "the rows perfectly. Reading its own words, it gets 87%. How many rows are perfect now?",
        options=("exactly as many", "a few fewer", "about half as many"),
        answer="exactly as many",
        because="Up to its first error it has read exactly the true words, so it makes that error in both runs or in "
        "neither. What differs comes after it.",
    ),
)
