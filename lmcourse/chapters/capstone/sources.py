"""Claims and names that the capstone asks about."""

from __future__ import annotations

CLAIMS = {
    "a": "Gates in the feed-forward layer lower the loss, and the author has no explanation for it.",
    "b": "Queries and keys are rotated by an angle that grows with their position.",
    "c": "With the norm in front of each layer, gradients are tame from the first step, and warm-up may go.",
    "d": "Normalisations are 0.17 % of a BERT's FLOPs and 25.5 % of its time: what limits is moving data.",
    "e": "Train short, test long: scores are lowered in proportion to the distance.",
    "f": "Long sequences: each head sees a sparse pattern of positions only.",
    "g": "Groups of heads share keys and values; a trained model with all heads is converted and "
    "trained a little more.",
    "h": "A token costs 6 FLOPs a parameter; the loss falls as a power law over seven decades.",
    "i": "About 20 tokens for every parameter, and earlier models were too large for their text.",
    "j": "What weight decay is for in deep learning: not to regularise, but to change how training moves.",
    "k": "Dozens of changes to the transformer compared: most do not help. RMSNorm makes it faster.",
    "l": "Recompute nothing but attention, and divide the sequence where tensors are not divided.",
}

PAPERS = (
    "ainslie-2023",
    "child-2019",
    "dangelo-2024",
    "hoffmann-2022",
    "ivanov-2021",
    "ivanov-2023",
    "kaplan-2020",
    "korthikanti-2022",
    "narang-2020",
    "narang-2021",
    "press-2022",
    "shazeer-2019",
    "shazeer-2020",
    "su-2021",
    "vaswani-2017",
    "wang-2021",
    "xiong-2020",
)

HEARD = (
    "POM",
    "P5",
    "Command Day",
    "Small LM",
    "5.4",
    "Quent",
    "Degani",
    "Edith Feekes",
    "low jets",
    "emit bias",
    "gamma",
    "Cellu",
)
