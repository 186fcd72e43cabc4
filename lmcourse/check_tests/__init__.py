"""Test the checks: every known wrong answer must lose points, and every right answer must earn all points.

`answers` reads printed solutions and stubs from the notebooks' sources, and makes cells from the right answers to an
exercise; `mutants` makes one small change to a solution at a time. `prove` submits all of these, every misconception,
and answers that ignore their inputs; `matrix` has the table of results.
"""
