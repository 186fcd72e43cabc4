"""Checks of the checks: every known wrong answer loses points, and every right one earns them.

`answers` reads the printed solutions and stubs from the notebooks' sources, `variants` makes cells of the right answers
that an exercise carries, `mutants` changes a solution by one small slip at a time (`operators`), `constants` makes
answers that ignore their inputs. `prove` submits all of these and every misconception; `matrix` is the table of the
results.
"""
