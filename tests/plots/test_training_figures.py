"""The curves of a run show all its numbers and mark unusual steps."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lmcourse import plots
from lmcourse.training.metrics import MetricsFile

ENTROPY = 0.62


def run(steps: int = 400, *, validate: int = 100) -> list[dict[str, Any]]:
    """Return records like the trainer's, with a spike at step 150, two skipped updates and some evaluations."""
    noise = np.random.default_rng(0).normal(size=steps)
    records: list[dict[str, Any]] = []
    for step in range(1, steps + 1):
        record: dict[str, Any] = {"step": step, "tokens": 512 * step, "loss": 0.7 + 4 / step + 0.1 * noise[step - 1]}
        record |= {"learning_rate": 1e-3 * (1 - step / steps), "gradient_norm": 0.5 + 1 / step}
        if step % validate == 0:
            record["validation_loss"] = 0.75 + 4 / step
        records.append(record)
    records[149] |= {"gradient_norm": 9.0, "spike": 17.5}
    for index in (0, 9):
        records[index] |= {"gradient_norm": math.inf, "skipped": True}
    return records


def lines(axes: Axes) -> dict[str, Line2D]:
    """Return the drawn lines by their names in the legend."""
    return {str(line.get_label()): line for line in axes.lines}


def test_every_curve_has_the_numbers_of_the_run() -> None:
    records = run()
    loss, rate, norm = plots.training_curves(records, entropy=ENTROPY).axes
    tokens = [record["tokens"] for record in records]
    drawn = lines(loss)
    assert list(drawn) == ["training loss", "mean of 40 steps around it", "validation loss", "entropy 0.620"]
    assert drawn["training loss"].get_xdata().tolist() == tokens
    assert drawn["training loss"].get_ydata().tolist() == [record["loss"] for record in records]
    assert drawn["validation loss"].get_xdata().tolist() == [512 * step for step in (100, 200, 300, 400)]
    assert drawn["validation loss"].get_ydata().tolist() == [0.75 + 4 / step for step in (100, 200, 300, 400)]
    assert set(drawn["entropy 0.620"].get_ydata()) == {ENTROPY}
    assert rate.lines[0].get_ydata().tolist() == [record["learning_rate"] for record in records]
    finite = [record["gradient_norm"] for record in records if "skipped" not in record]
    assert [norm for norm in norm.lines[0].get_ydata() if math.isfinite(norm)] == finite


def test_spikes_and_steps_without_update_are_marked_where_they_are() -> None:
    drawn = lines(plots.training_curves(run()).axes[2])
    assert drawn["spike"].get_xydata().tolist() == [[512 * 150, 9.0]]
    assert drawn["no update: overflow"].get_xdata().tolist() == [512, 5120]


def test_the_title_names_the_gap_to_the_entropy() -> None:
    figure = plots.training_curves(run(), entropy=ENTROPY)
    title = "Validation loss 0.760 nats/token after 400 steps, 0.140 above the entropy"
    assert figure.axes[0].get_title(loc="left") == title
    alt = f"Curves of a training run. {title}. Spikes of the gradient norm: 1. Steps without an update: 2."
    assert plots.alt_text(figure) == alt


def test_a_loss_below_the_entropy_is_not_called_above_it() -> None:
    assert "0.240 below the entropy" in plots.alt_text(plots.training_curves(run(), entropy=1.0))


def test_without_validation_the_mean_of_the_last_losses_is_reported() -> None:
    records = run(validate=1000)
    mean = np.mean([record["loss"] for record in records[-21:]])
    assert f"Mean training loss {mean:.3f} nats/token after 400 steps." in plots.alt_text(
        plots.training_curves(records)
    )


def test_the_mean_uses_a_tenth_of_the_steps() -> None:
    records = run()
    drawn = lines(plots.training_curves(records[:110]).axes[0])["mean of 11 steps around it"]
    assert drawn.get_ydata()[50] == pytest.approx(np.mean([record["loss"] for record in records[45:56]]), rel=1e-12)


def test_curves_have_units_and_share_the_token_axis() -> None:
    figure = plots.training_curves(run(), entropy=ENTROPY)
    loss, rate, norm = figure.axes
    assert [axes.get_ylabel() for axes in figure.axes] == ["loss (nats/token)", "learning rate", "gradient norm"]
    assert norm.get_xlabel() == "tokens seen"
    assert loss.get_xlim() == rate.get_xlim() == norm.get_xlim()
    assert norm.get_yscale() == "log"
    figure.draw_without_rendering()
    boxes = [axes.get_window_extent() for axes in figure.axes]
    assert len({round(box.x0) for box in boxes}) == 1
    assert boxes[0].y0 > boxes[1].y1 > boxes[1].y0 > boxes[2].y1


def test_the_run_of_a_byte_model_says_so_and_when_the_norm_is_taken() -> None:
    figure = plots.training_curves(run(), unit="byte", clipped=True)
    assert "nats/byte after" in plots.alt_text(figure)
    assert (figure.axes[0].get_ylabel(), figure.axes[2].get_xlabel()) == ("loss (nats/byte)", "bytes seen")
    assert "after clipping" in " ".join(figure._supxlabel.get_text().split())
    assert "before clipping" in " ".join(plots.training_curves(run())._supxlabel.get_text().split())


def test_legends_do_not_cover_data() -> None:
    figure = plots.training_curves(run(), entropy=ENTROPY)
    figure.draw_without_rendering()
    for axes in (figure.axes[0], figure.axes[2]):
        legend = axes.get_legend()
        assert legend is not None
        assert legend.get_window_extent().y0 >= axes.get_window_extent().y1 - 1


@pytest.mark.parametrize("steps", [1, 41])
def test_short_runs_are_drawn_without_a_warning(steps: int) -> None:
    records = run(500)[:steps]
    figure = plots.training_curves(records, entropy=ENTROPY)
    assert len(plots.png(figure)) > 1000
    assert figure.axes[0].lines[0].get_marker() == ("." if steps <= 40 else "None")
    assert f"after {steps} step{'s' if steps > 1 else ''}," in plots.alt_text(figure)


def test_the_run_of_a_folder_is_read_from_its_metrics(tmp_path: Path) -> None:
    with MetricsFile(tmp_path / "metrics.jsonl") as metrics:
        for record in run():
            metrics.write(record)
    assert json.loads((tmp_path / "metrics.jsonl").read_text().splitlines()[0])["gradient_norm"] is None
    from_folder = plots.run_curves(tmp_path, entropy=ENTROPY)
    assert plots.png(from_folder) == plots.png(plots.training_curves(run(), entropy=ENTROPY))


def test_runs_without_steps_are_rejected() -> None:
    with pytest.raises(ValueError, match="no steps to draw"):
        plots.training_curves([])
