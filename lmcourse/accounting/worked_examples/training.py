"""Worked examples on training time and MFU."""

from __future__ import annotations

from lmcourse.accounting.accelerators import find_accelerator
from lmcourse.accounting.cluster import Cluster
from lmcourse.accounting.mfu import throughput_mfu
from lmcourse.accounting.rules import six_n_d
from lmcourse.accounting.worked_examples.worked_example import ASKED, WorkedExample, gpt_3_parameters


def training_examples() -> list[WorkedExample]:
    """Worked examples on training days, GPU-days and MFU, all by 6ND."""
    a100, h100 = find_accelerator("a100"), find_accelerator("h100")
    llama_70b, gpt_3 = six_n_d(70 * 10**9, 15 * 10**12), six_n_d(gpt_3_parameters(), 300 * 10**9)
    return [
        WorkedExample(
            "70B on 15T tokens, 1024 H100 at MFU 0.5", "143.9 days", Cluster(h100, 1024, 0.5).days(llama_70b), "days"
        ),
        WorkedExample("GPT-3 on 300B tokens", "3.14e23 FLOPs", float(gpt_3), "FLOPs"),
        WorkedExample("GPT-3 on A100 at MFU 0.4", "–", Cluster(a100, 1, 0.4).days(gpt_3), "GPU-days", ASKED),
        WorkedExample("GPT-3 on H100 at MFU 0.4", "–", Cluster(h100, 1, 0.4).days(gpt_3), "GPU-days", ASKED),
        WorkedExample(
            "MFU of a 7B at 1e5 tokens/s, 32 A100",
            "27,569",
            throughput_mfu(1e5, six_n_d(7 * 10**9, 1), a100, "bf16", devices=32),
            "",
            "the FLOPs of a batch of 32 · 2048 tokens stand for those of one token",
        ),
    ]
