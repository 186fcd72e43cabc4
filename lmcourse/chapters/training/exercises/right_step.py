"""Right answers to the exercise on one step of training, in other styles than the printed one."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def line_by_line(
    model: nn.Module, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    optimizer.zero_grad()
    with torch.autocast(inputs.device.type, dtype, enabled=dtype is not None):
        logits = model(inputs)
    loss = F.cross_entropy(logits.float().flatten(0, 1), targets.flatten())
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


def by_log_softmax(
    model: nn.Module, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    model.zero_grad()
    with nullcontext() if dtype is None else torch.autocast("cpu", dtype=dtype):
        logits = model(inputs).float()
    loss = -torch.log_softmax(logits, dim=-1).gather(2, targets.unsqueeze(2)).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(list(model.parameters()), limit)
    scaler.step(optimizer)
    scaler.update()
    return float(loss.detach())


def clips_by_hand(
    model: nn.Module, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    for p in model.parameters():
        p.grad = None
    with torch.amp.autocast(inputs.device.type, enabled=bool(dtype), dtype=dtype or torch.bfloat16):
        logits = model(inputs)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1))
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    gradients = [p.grad for p in model.parameters() if p.grad is not None]
    norm = torch.stack([g.square().sum() for g in gradients]).sum().sqrt()
    if norm > limit:
        for g in gradients:
            g.mul_(limit / norm)
    scaler.step(optimizer)
    scaler.update()
    return loss.item()


def parameters_of_groups(
    model: nn.Module, inputs: Tensor, targets: Tensor, optimizer: Any, scaler: Any, limit: float, dtype: Any = None
) -> float:
    if dtype is not None:
        with torch.autocast(device_type="cpu", dtype=dtype):
            loss = F.cross_entropy(model(inputs).transpose(1, 2), targets)
    else:
        loss = F.cross_entropy(model(inputs).transpose(1, 2), targets)
    optimizer.zero_grad(set_to_none=False)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], limit)
    scaler.step(optimizer)
    scaler.update()
    return loss.detach().item()


RIGHT_STEPS = (line_by_line, by_log_softmax, clips_by_hand, parameters_of_groups)
