"""Tests of the checks: every known wrong answer must lose points, and every right one must earn them all.

`answers` reads the printed solutions and stubs from the notebooks' sources, and makes cells of the right answers of an
exercise; `mutants` changes a solution by one small slip at a time. `prove` submits all of these, every misconception
and answers that ignore their inputs; `matrix` is the table of the results.
"""
