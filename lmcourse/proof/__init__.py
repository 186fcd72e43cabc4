"""The proof that checks have teeth, and bite nobody who is right.

`answers` reads the printed solutions and stubs from the notebooks' sources, `variants` makes cells of the right answers
that an exercise carries, `mutants` changes a solution by one small slip at a time (`operators`). `prove` submits all of
these and every known wrong answer; `matrix` is the table of what became of them. `graded` puts the right answers to the
processes of a grade.
"""
