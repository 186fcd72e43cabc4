"""A checkpoint of many processes: each writes what it has, in the format of `torch.distributed.checkpoint`.

__0_0.distcp …   weights and the optimiser's moments, from each process
.metadata        which part of which tensor is where
state.pt, checkpoint.json   as in `lmcourse.training.checkpoint`, and the same promises hold

Tensors have the names of a model whose matrices are apart (`fused`), and torch finds the parts that a process needs:
so any number of processes can read it, one too.

Read only checkpoints that you trust: .metadata is a pickle, and whoever wrote it chooses what is run when it is read.
"""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from torch import Tensor, nn
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save

from lmcourse.training.checkpoint import MODEL, STATE, digest, load_state, publish, set_aside
from lmcourse.training.moments import Moments, begin_moments, get_moments
from lmcourse.training.parallel.fused import Cuts, find_cuts, pieces
from lmcourse.training.team import Team


def write_sharded(
    place: Path,
    model: nn.Module,
    optimiser: torch.optim.AdamW,
    state: Mapping[str, Any],
    facts: Mapping[str, Any],
    team: Team,
) -> None:
    """Write a checkpoint together; it appears under its name when all of it is on the disk.

    Args:
        place: the folder, which all processes must be able to reach. One that is there already is replaced.
        model, optimiser: this process's part.
        state, facts: as in `write_checkpoint`; those of the leader count.
        team: all processes.
    """
    begin_moments(optimiser)
    aside = team.decide(set_aside(place) if team.leader else None)
    assert aside is not None
    save(_tensors(model, get_moments(optimiser, model), find_cuts(model)), checkpoint_id=aside)
    if team.leader:
        torch.save(dict(state), aside / STATE)
    digests = _digests(aside, team)
    if team.leader:
        publish(aside, place, facts, digests)
    team.decide(None)  # nobody goes on before it is there


def _digests(folder: Path, team: Team) -> dict[str, str]:
    """Of all files, each read by one process."""
    names = team.decide(sorted(path.name for path in folder.iterdir()))
    number = len(team.gather(None))
    mine = {name: digest(folder / name) for name in names[team.rank :: number]}
    return dict(sorted(pair for part in team.gather(mine) for pair in part.items()))


def load_sharded(place: Path, model: nn.Module, optimiser: torch.optim.AdamW | None = None) -> None:
    """Give a whole model, on one process, the weights of a checkpoint, and its optimiser the moments."""
    if optimiser is not None:
        begin_moments(optimiser)
    moments = get_moments(optimiser, model) if optimiser is not None else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "torch.distributed is disabled")  # as it is asked to be
        load(_tensors(model, moments, find_cuts(model)), checkpoint_id=place, no_dist=True)


def load_together(place: Path, model: nn.Module, optimiser: torch.optim.AdamW, team: Team) -> None:
    """Give all parts of a model the weights of a checkpoint, and their optimisers the moments.

    It may be of any number of processes. That of a single one is brought into this format first, for a moment.
    """
    begin_moments(optimiser)
    plain = team.decide((place / MODEL).exists())
    source = place.with_name(f".{place.name}.sharded") if plain else place
    if plain:
        cuts = {name: rows for found in team.gather(find_cuts(model)) for name, rows in found.items()}
        if team.leader:
            _convert(place, source, cuts)
        team.decide(None)
    load(_tensors(model, get_moments(optimiser, model), find_cuts(model)), checkpoint_id=source)
    team.gather(None)  # all have read
    if plain and team.leader:
        shutil.rmtree(source)


def _convert(place: Path, target: Path, cuts: Cuts) -> None:
    """The tensors of a single process's checkpoint in this format."""
    shutil.rmtree(target, ignore_errors=True)
    with safe_open(place / MODEL, "pt") as file:
        weights = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no dictionary
        # A matrix with two names is stored under one of them.
        weights |= {name: weights[kept] for name, kept in (file.metadata() or {}).items() if kept in weights}
    moments: Moments = load_state(place)["optimiser"]
    tensors = dict(_named(weights, moments, cuts))
    save(tensors, checkpoint_id=target, no_dist=True)


def _tensors(model: nn.Module, moments: Moments, cuts: Cuts) -> dict[str, Tensor]:
    """What a checkpoint holds of a model, as views: who reads into them has read into the model."""
    return dict(_named({name: p.detach() for name, p in model.named_parameters()}, moments, cuts))


def _named(weights: Mapping[str, Tensor], moments: Moments, cuts: Cuts) -> Iterator[tuple[str, Tensor]]:
    for name, weight in weights.items():
        for piece, value in pieces(name, weight, cuts):
            yield f"model.{piece}", value
    for name, remembered in moments.items():
        for what, moment in remembered.items():
            for piece, value in pieces(name, moment, cuts):
                yield f"optimiser.{piece}.{what}", value
