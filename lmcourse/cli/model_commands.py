"""The commands about models: `account`, `bench`, `train`, `generate`, `export`."""

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
    from lmcourse.training.command.failures import telling_no_memory

    sizes = {"batch": options.batch, "seq_len": options.seq_len, "steps": options.steps}
    with quiet(options), telling_no_memory("fewer texts (--batch), shorter ones (--seq-len) or a smaller --model"):
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


def export(options: Namespace) -> int:
    """Write a trained model as a folder of `transformers`."""
    from lmcourse.pretrained import PRETRAINED, pretrained_folder
    from lmcourse.pretrained.hugging_face import export_model
    from lmcourse.training.command.trained_model import load_trained_model

    name = str(options.checkpoint)
    trained = load_trained_model(
        pretrained_folder(name) if name in PRETRAINED else options.checkpoint, last=options.last
    )
    family = export_model(trained, options.out)
    if options.json:
        told = {"checkpoint": str(trained.checkpoint), "step": trained.step, "family": family, "out": str(options.out)}
        print_json(told)
    else:
        print(f"{options.out}: the model of step {trained.step:,}, written as one of the family {family}.")
        print(f'AutoModelForCausalLM.from_pretrained("{options.out}") and AutoTokenizer load it.')
    return 0
