"""The commands about models: `account`, `bench`, `train`, `generate`."""

from __future__ import annotations

from argparse import Namespace

from lmcourse.cli.output import print_json, quiet


def account(options: Namespace) -> int:
    """Show what a model costs, by arithmetic: nothing is built or run."""
    from lmcourse.cli.budget import make_budget

    budget = make_budget(options)
    if options.json:
        print_json(budget.to_json())
    else:
        from lmcourse.cli import budget_tables, tables

        tables.show(*budget_tables.budget(budget))
    return 0


def bench(options: Namespace) -> int:
    """Measure this machine, and a model on it."""
    from lmcourse.bench.bench import bench as measure

    sizes = {"batch": options.batch, "seq_len": options.seq_len, "steps": options.steps}
    with quiet(options):
        found = measure(options.model, **sizes, precision=options.precision)
    if options.json:
        print_json(found.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(tables.bench(found))
    return 0


def train(options: Namespace) -> int:
    """Train a model. Its flags are made from the settings of a run, so it reads them itself."""
    from lmcourse.training.command import main

    return main.main(options.rest, program="lmcourse train")


def generate(options: Namespace) -> int:
    """Continue a text with a trained model."""
    from lmcourse.cli import generating

    answer = generating.write(options)
    if options.json:
        print_json(answer.to_json())
    return 0
