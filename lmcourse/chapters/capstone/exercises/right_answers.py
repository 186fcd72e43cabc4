"""Right answers to the exercises that many answers are right to, and to those on sources."""

from __future__ import annotations

import math

import numpy as np


def narrow_and_long() -> dict[str, float]:
    flops = 4_238 * 141_557_760
    return {
        "layers": 2,
        "d_model": 24,
        "steps": 4_238,
        "parameters": 20_088,
        "flops": flops,
        "states": 321_408,
        "loss": 0.347,
    }


def four_blocks() -> dict[str, float]:
    answer: dict[str, float] = dict(zip(("layers", "d_model", "steps"), (4.0, 24.0, 2270.0), strict=True))
    answer.update(parameters=34_008.0, flops=2270.0 * 264_241_152, states=16 * 34_008.0, loss=0.315)
    return answer


def one_block() -> dict[str, float]:
    n = np.int64(40_080)
    answer: dict[str, float] = {"layers": 1, "d_model": 48, "steps": 2445, "loss": 0.305}
    return answer | {"parameters": float(n), "flops": np.float64(2445 * 245_366_784), "states": float(16 * n)}


def nine_tenths_of_it() -> dict[str, float]:
    steps = math.ceil(0.9 * 6e11 / 229_638_144)
    costs = {"parameters": 33_440, "flops": steps * 229_638_144, "states": 535_040}
    return {"loss": 0.33, "steps": steps, "d_model": 32, "layers": 2, **costs}


def drawn_with_seed_1() -> dict[str, object]:
    verdicts = [4, 1.0, 1 / 128, 2, "right", "Right", "RIGHT", 11_274_289_152.0, 1]
    return {"seed": 1, "verdicts": verdicts}


def drawn_with_a_year() -> dict[str, object]:
    verdicts = (4096, 21.2, "right ", "Multi query", 2.0, 47.1, "right", np.int64(640), "right")
    return {"verdicts": verdicts, "seed": 2024}


def drawn_with_a_negative_seed() -> dict[str, object]:
    slope, gemma, softmax, theta, recipe, t5 = (
        2**-8 / 2**-1,
        14_336 / 3_584,
        2 * 5,
        50 ** (1 - 2 / 128),
        2 + 4 + 12,
        32 * 128,
    )
    return {"seed": -3, "verdicts": ["right", slope, gemma, softmax, theta, "right", recipe, "right", t5]}


def in_capitals() -> dict[str, str]:
    text = "SHAZEER-2020 SU-2021 XIONG-2020 IVANOV-2021 PRESS-2022 CHILD-2019 AINSLIE-2023 KAPLAN-2020 HOFFMANN-2022"
    keys = [*text.split(), "DANGELO-2024", "NARANG-2021", "KORTHIKANTI-2022"]
    return dict(zip("abcdefghijkl", keys, strict=True))


def by_author() -> dict[str, str]:
    found = {
        "shazeer": ("a", 2020),
        "su": ("b", 2021),
        "xiong": ("c", 2020),
        "ivanov": ("d", 2021),
        "press": ("e", 2022),
        "child": ("f", 2019),
        "ainslie": ("g", 2023),
        "kaplan": ("h", 2020),
        "hoffmann": ("i", 2022),
        "dangelo": ("j", 2024),
        "narang": ("k", 2021),
        "korthikanti": ("l", 2022),
    }
    return {letter: f"{author} {year}" for author, (letter, year) in found.items()}


def with_more_than_was_asked() -> dict[str, str]:
    authors = ["shazeer-2020", "su-2021", "xiong-2020", "ivanov-2021", "press-2022", "child-2019"]
    authors += ["ainslie-2023", "kaplan-2020"]
    answer = {chr(ord("a") + number): author for number, author in enumerate(authors)}
    answer |= {"i": "hoffmann-2022", "j": "dangelo-2024", "k": "narang-2021"}
    return answer | {"l": "korthikanti-2022", "m": "vaswani-2017"}


def in_small_letters() -> dict[str, str]:
    heard = ["POM", "P5", "Command Day", "Small LM", "5.4", "Quent", "Degani", "Edith Feekes"]
    said = ["palm", "t5", "command a", "smollm", "phi 4", "qwen", "dehghani", "idefics"]
    heard, said = [*heard, "low jets", "emit bias", "gamma", "Cellu"], [*said, "logits", "omit bias", "gemma", "selu"]
    return dict(zip(heard, said, strict=True))


def without_hyphens() -> dict[str, str]:
    models = {
        "POM": "PaLM",
        "P5": "T5",
        "Command Day": "CommandA",
        "Small LM": "Smol LM",
        "5.4": "Phi4",
        "Quent": "Qwen",
    }
    others = {"Edith Feekes": "IDEFICS", "gamma": "Gemma", "Degani": "Dehghani", "low jets": "Logits"}
    return models | others | {"emit bias": "omit-bias", "Cellu": "SELU"}


def one_by_one() -> dict[str, str]:
    said = {}
    said["POM"], said["P5"], said["Command Day"], said["Small LM"] = "PaLM", "T5", "Command-A", "Smol-LM"
    said["5.4"], said["Quent"], said["Degani"] = "PHI-4", "QWEN", "dehghani"
    said["Edith Feekes"], said["low jets"], said["emit bias"] = "Idefics", "LOGITS", "Omit Bias"
    said["gamma"], said["Cellu"] = "gemma", "SeLU"
    return said


DESIGNS = (narrow_and_long, four_blocks, one_block, nine_tenths_of_it)
HUNTS = (drawn_with_seed_1, drawn_with_a_year, drawn_with_a_negative_seed)
PAPERS = (in_capitals, by_author, with_more_than_was_asked)
NAMES = (in_small_letters, without_hyphens, one_by_one)
