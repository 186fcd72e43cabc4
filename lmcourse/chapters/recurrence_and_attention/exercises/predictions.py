"""The predictions of notebook 06."""

from lmcourse.exercises.prediction import NumberPrediction, Prediction

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
    NumberPrediction(
        "radius_one",
        "A tanh network with a state of 64 reads 200 random inputs. Its matrix W_h has a spectral radius of exactly 1. "
        "After how many steps back is less than a hundredth of a gradient left?",
        answer=9,
        low=1,
        high=200,
        unit="steps",
        because="The radius tells what W_h does alone. On its way back the gradient passes a tanh in each step, too, "
        "and ordinary inputs push the states to where its slope is well below 1.",
    ),
    Prediction(
        "fresh_lstm",
        "An untrained LSTM, the biases of its forget gates at 0, reads random inputs. After how many steps back is "
        "half of a gradient at its cell lost?",
        options=("one or two", "about twenty", "about a hundred: that is what LSTMs are for"),
        answer="one or two",
        because="Its forget gates start near ½, so half is lost with each step. The way is there, but the gate has to "
        "be opened.",
    ),
    NumberPrediction(
        "trained_to_remember",
        "A text begins with one of two words, and 20 random words follow. An LSTM as PyTorch makes it is trained for "
        "500 steps to say which word came first. Of new texts, what percentage does it get right?",
        answer=49,
        low=0,
        high=100,
        unit="%",
        because="It guesses. At the start almost nothing of the gradient reaches the first word: a gate that is half "
        "closed hides the word that would teach it to open.",
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
    NumberPrediction(
        "can_one_state_sort",
        "The translators learn to sort: they read nine different symbols out of ten, and write them by size. Without "
        "attention, from one state alone, what percentage of the rows comes out without an error?",
        answer=100,
        low=0,
        high=100,
        unit="%",
        because="A set of symbols is ten bits: each was there, or it was not. To sort, nothing else must be kept.",
    ),
    Prediction(
        "more_arithmetic",
        "A text of 256 words, a state of 64 numbers, one processor. Attention does four times the arithmetic of the "
        "RNN. It takes ...",
        options=("four times as long", "about as long", "less time"),
        answer="less time",
        because="The RNN's 256 steps are tiny and wait for one another; attention is two large products.",
    ),
    NumberPrediction(
        "overwritten",
        "A 64 × 64 state is the sum of 32 products of a value and a key. Then each key gets a new value, and its "
        "product is added, too. Asked for a key, how often is its new value the best match, in percent?",
        answer=53,
        low=0,
        high=100,
        unit="%",
        because="A sum forgets nothing: it holds the old value and the new one with equal weight, and noise decides.",
    ),
)
