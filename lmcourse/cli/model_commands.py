"""The commands about models, and their flags: `account`, `bench`, `train`, `generate`, `export`."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace

from lmcourse.base.path_argument import path_argument
from lmcourse.cli.output import print_json, quiet, show


def add_account(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse account`."""
    add = parser.add_argument
    add("--model", required=True, metavar="NAME", help="model from the zoo, such as llama-3-8b")
    add("--gpu", metavar="NAME", help="GPU, such as h100; without it only hardware-independent numbers are printed")
    add("--gpus", type=int, default=1, metavar="N", help="number of GPUs (default: 1)")
    add("--batch", type=int, default=1, metavar="N", help="texts per step and copy of the model (default: 1)")
    add("--seq-len", type=int, metavar="N", help="tokens per text (default: the model's context length)")
    add("--recipe", default="mixed", metavar="NAME", help="number formats: mixed, fp32, autocast, … (default: mixed)")
    again = "activations to recompute in the backward pass, to save memory (default: nothing)"
    add("--activation-checkpointing", choices=("nothing", "blocks"), default="nothing", help=again)
    add(
        "--tensor-parallel",
        type=int,
        default=1,
        metavar="T",
        help="number of GPUs that divide each matrix (default: 1)",
    )
    add("--zero", type=int, default=0, choices=range(4), help="ZeRO stage among the copies of the model (default: 0)")
    add("--tokens", type=float, metavar="N", help="tokens of a whole training run, such as 15e12")
    reached = "fraction of the peak FLOP/s that training reaches (default: 0.4)"
    add("--mfu", type=float, default=0.4, metavar="X", help=reached)


def account(options: Namespace) -> int:
    """Show the cost of a model, computed by arithmetic, without building or running the model."""
    from lmcourse.cli import account_command

    budget = account_command.make_budget(options)
    show(
        options, budget.to_json(), lambda _: [part for table in account_command.tables(budget) for part in (table, "")]
    )
    return 0


def add_bench(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse bench`."""
    add = parser.add_argument
    add("--model", metavar="NAME", help="model from the zoo (default: mini, or course-124m on a GPU)")
    add("--batch", type=int, default=4, metavar="N", help="texts per step (default: 4)")
    add("--seq-len", type=int, default=256, metavar="N", help="tokens per text (default: 256)")
    add("--steps", type=int, default=5, metavar="N", help="timed training steps and timed decoding steps (default: 5)")
    formats = "number format: fp32, bf16, fp16 or fp64 (default: fp32, or bf16 on newer NVIDIA GPUs)"
    add("--precision", metavar="FORMAT", help=formats)


def bench(options: Namespace) -> int:
    """Measure this machine, and a model on it."""
    from lmcourse.base.device import telling_no_memory
    from lmcourse.bench.bench import bench as measure

    sizes = {"batch": options.batch, "seq_len": options.seq_len, "steps": options.steps}
    with quiet(options), telling_no_memory("fewer texts (--batch), shorter ones (--seq-len) or a smaller --model"):
        found = measure(options.model, **sizes, precision=options.precision)
    show(options, found.to_json(), lambda tables: [tables.bench(found)])
    return 0


def train(options: Namespace) -> int:
    """Train a model. This command parses its own flags, which are made from the settings of a run."""
    from lmcourse.training.command import main

    return main.main(options.rest, program="lmcourse train")


def add_generate(parser: ArgumentParser) -> None:
    """Add the flags of `lmcourse generate`."""
    add = parser.add_argument
    where = (
        "folder of a run (its checkpoint with the lowest validation loss is used), of one checkpoint, or of a model in "
        "the format of transformers; or micro-python-docs, the model that ships with the course"
    )
    add("--checkpoint", required=True, type=path_argument, metavar="FOLDER", help=where)
    add("--prompt", required=True, metavar="TEXT", help="beginning of the text; - reads it from stdin")
    add("--last", action="store_true", help="use the last checkpoint of the run, even if an earlier one is better")
    count = "number of tokens to generate (default: up to the end of the context; 256 for a published model)"
    add("--tokens", type=int, metavar="N", help=count)
    heat = "temperature of sampling; 0 takes the likeliest token (default: 1)"
    add("--temperature", type=float, default=1.0, metavar="T", help=heat)
    add("--top-k", type=int, metavar="K", help="sample from the K likeliest tokens")
    add("--top-p", type=float, metavar="P", help="sample from the likeliest tokens that together have probability P")
    likely = "sample from tokens that are at least P times as likely as the likeliest"
    add("--min-p", type=float, metavar="P", help=likely)
    seed = "random seed; the same seed gives the same text (default: a new one, which is printed)"
    add("--seed", type=int, metavar="S", help=seed)
    add("--weights", choices=("bf16", "int8"), help="store matrices in 2 bytes (bf16) or 1 byte (int8) per weight")
    fast = "compile the decoding step, which takes about twenty seconds and speeds up long texts"
    add("--compile", action="store_true", help=fast)


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
    where = "folder of a run or of one of its checkpoints; or micro-python-docs, the model that ships with the course"
    add("--checkpoint", required=True, type=path_argument, metavar="FOLDER", help=where)
    add("--out", required=True, type=path_argument, metavar="FOLDER", help="folder to write; it must not exist yet")
    add("--last", action="store_true", help="use the last checkpoint of the run, even if an earlier one is better")


def export(options: Namespace) -> int:
    """Write a trained model as a folder of `transformers`."""
    from lmcourse.pretrained import PRETRAINED, pretrained_folder
    from lmcourse.pretrained.hugging_face import export_model
    from lmcourse.training.trained_model import load_trained_model

    name = str(options.checkpoint)
    folder = pretrained_folder(name) if name in PRETRAINED else options.checkpoint
    trained = load_trained_model(folder, last=options.last)
    family = export_model(trained, options.out)
    if options.json:
        told = {"checkpoint": str(trained.checkpoint), "step": trained.step, "family": family, "out": str(options.out)}
        print_json(told)
    else:
        print(f"{options.out}: the model of step {trained.step:,}, written as one of the family {family}.")
        print(f'AutoModelForCausalLM.from_pretrained("{options.out}") and AutoTokenizer load it.')
    return 0
