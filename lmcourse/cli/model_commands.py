"""The commands about models, and their flags: `account`, `bench`, `train`, `generate`, `export`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lmcourse.cli.output import print_json, quiet
from lmcourse.root import typed_path


def add_account(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse account`."""
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="of the zoo, such as llama-3-8b")
    add("--gpu", metavar="NAME", help="such as h100; without it all that depends on no hardware")
    add("--gpus", type=int, default=1, metavar="N", help="how many; 1 by default")
    add("--batch", type=int, default=1, metavar="N", help="texts that a copy of the model reads at once; 1 by default")
    add(
        "--seq-len",
        type=int,
        metavar="N",
        help="tokens of each text; by default the longest that the model was made for",
    )
    add("--recipe", default="mixed", metavar="NAME", help="how numbers are stored: mixed by default, fp32, autocast, …")
    add(
        "--activation-checkpointing",
        choices=("nothing", "blocks"),
        default="nothing",
        help="what is recomputed to save memory",
    )
    add("--tensor-parallel", type=int, default=1, metavar="T", help="GPUs that share each matrix; 1 by default")
    add("--zero", type=int, default=0, choices=range(4), help="the stage of ZeRO among the copies; 0 by default")
    add("--tokens", type=float, metavar="N", help="of a whole training run, such as 15e12")
    add("--mfu", type=float, default=0.4, metavar="SHARE", help="of the peak that training reaches; 0.4 by default")


def account(options: Namespace) -> int:
    """Show what a model costs, by arithmetic: nothing is built or run."""
    from lmcourse.cli import account_command

    budget = account_command.make_budget(options)
    if options.json:
        print_json(budget.to_json())
    else:
        from lmcourse.cli import tables

        tables.show(*account_command.tables(budget))
    return 0


def add_bench(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse bench`."""
    add = parser.add_argument
    add("--model", metavar="NAME", help="of the zoo; by default mini, on a GPU course-124m")
    add("--batch", type=int, default=4, metavar="N", help="texts; 4 by default")
    add("--seq-len", type=int, default=256, metavar="N", help="tokens of each; 256 by default")
    add("--steps", type=int, default=5, metavar="N", help="how many are timed, of each kind; 5 by default")
    add("--precision", metavar="FORMAT", help="fp32, bf16, fp16 or fp64; by default fp32, on NVIDIA's newer GPUs bf16")


def bench(options: Namespace) -> int:
    """Measure this machine, and a model on it."""
    from lmcourse.bench.bench import bench as measure
    from lmcourse.device import telling_no_memory

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


def add_generate(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse generate`."""
    add = parser.add_argument
    where = (
        "the folder of a run, whose checkpoint with the lowest validation loss is taken; or of one checkpoint; or of a "
        "model as transformers has it; or micro-python-docs, the model that ships with the course"
    )
    add("--checkpoint", required=True, type=typed_path, metavar="FOLDER", help=where)
    add("--prompt", required=True, metavar="TEXT", help="how the text begins; - reads it from stdin")
    add("--last", action="store_true", help="the last checkpoint of the run, even if an earlier one is better")
    add(
        "--tokens",
        type=int,
        metavar="N",
        help="how many to write; by default as many as the context allows, 256 of a published model",
    )
    add("--temperature", type=float, default=1.0, metavar="T", help="0 takes the likeliest token; 1 by default")
    add("--top-k", type=int, metavar="K", help="draw from the K likeliest tokens")
    add("--top-p", type=float, metavar="P", help="draw from the likeliest tokens that together have probability P")
    add("--min-p", type=float, metavar="P", help="draw from tokens at least P times as likely as the likeliest")
    add("--seed", type=int, metavar="S", help="the same seed gives the same text; by default it is drawn, and told")
    add("--weights", choices=("bf16", "int8"), help="read the matrices in half or a quarter of fp32's bytes")
    add(
        "--compile",
        action="store_true",
        help="compile the decoding step: some twenty seconds, which long texts earn back",
    )


def generate(options: Namespace) -> int:
    """Continue a text with a trained model."""
    from lmcourse.cli import generating

    answer = generating.write(options)
    if options.json:
        print_json(answer.to_json())
    return 0


def add_export(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse export`."""
    add = parser.add_argument
    where = "the folder of a run, or of one of its checkpoints; or micro-python-docs"
    add("--checkpoint", required=True, type=typed_path, metavar="FOLDER", help=where)
    add("--out", required=True, type=typed_path, metavar="FOLDER", help="where to write it; it must not be there yet")
    add("--last", action="store_true", help="the last checkpoint of the run, even if an earlier one is better")


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
