"""Generate text with the model: the program that `python -m` of this package runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from lmcourse.data.tokenizers.bpe import BPETokenizer
from lmcourse.own_package.package.model import Parts, load

WEIGHTS = Path(__file__).parent / "weights"


def main(parts: Parts, arguments: Sequence[str] | None = None) -> int:
    """Continue the prompt with the most likely tokens, and print both; return the exit status."""
    parser = argparse.ArgumentParser(description="Let the model continue a text with the likeliest tokens.")
    parser.add_argument("--prompt", required=True, help="beginning of the text")
    parser.add_argument("--tokens", type=int, default=40, help="number of tokens to generate (default: 40)")
    options = parser.parse_args(arguments)
    merges = json.loads((WEIGHTS / "tokenizer.json").read_text(encoding="utf-8"))["merges"]
    tokenizer = BPETokenizer(merges)
    model = load(WEIGHTS, parts)
    read = tokenizer.encode(options.prompt)
    if not 0 < len(read) < model.config.context:
        print(f"the prompt has {len(read)} tokens: give 1 to {model.config.context - 1}", file=sys.stderr)
        return 2
    print(options.prompt + tokenizer.decode(model.generate(read, options.tokens)))
    return 0
