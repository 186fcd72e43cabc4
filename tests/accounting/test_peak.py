"""Peak memory: what autograd keeps, as the allocator of a GPU sees it."""

from __future__ import annotations

import pytest
import torch

from lmcourse.accounting.peak import measured_peak
from lmcourse.accounting.saved import saved_tensors
from lmcourse.models.loss import next_token_loss
from lmcourse.models.transformer import Transformer
from lmcourse.models.zoo.course import modern

needs_cuda = pytest.mark.skipif(
    not torch.cuda.is_available(), reason="only CUDA's allocator knows its peak: this test needs an NVIDIA GPU"
)


@needs_cuda
def test_a_forward_pass_takes_what_autograd_keeps() -> None:
    """Within 2 %: while the last layer runs, its temporary tensors are there too."""
    model = Transformer(modern(24, 256, 4, 1024)).cuda()
    tokens = torch.randint(256, (8, 1024), device="cuda")

    def work() -> torch.Tensor:
        return next_token_loss(model(tokens), tokens)

    kept = saved_tensors(work, model, without=[tokens]).total
    assert measured_peak(work) == pytest.approx(kept, rel=0.02)


def test_other_devices_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match="NVIDIA GPU"):
        measured_peak(lambda: None, device="cpu")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ValueError, match="NVIDIA GPU"):
        measured_peak(lambda: None)
