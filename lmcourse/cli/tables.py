"""Tables for the terminal."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Any

from rich import box
from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.table import Table

from lmcourse.base.text import escape_unprintable, one_line
from lmcourse.base.units import MIB
from lmcourse.course.parts import joined
from lmcourse.course.progress import CORE_DONE, NotebookProgress, Progress, State

if TYPE_CHECKING:
    from lmcourse.bench.bench import Bench
    from lmcourse.check_tests.results import CheckResults, MisconceptionResult
    from lmcourse.grading.downloads import Person
    from lmcourse.grading.result import SubmissionResult
    from lmcourse.own_package.write import WrittenPackage

MARKS: dict[State, str] = {"done": "[green]✓[/]", "in progress": "[yellow]◐[/]", "not started": "[dim]·[/]"}

MAX_NAME_CHARS = 60

MAX_STUDENT_WIDTH = 24

MAX_EDIT_CHARS = 36
"""Number of characters of a slip in a table, so that a terminal of 80 columns shows the marks beside it."""


def show(*parts: RenderableType) -> None:
    """Print to the terminal in its full width; output to a pipe has no colours."""
    Console(highlight=False, emoji=False).print(*parts, sep="\n")


def course(chapters: Sequence[dict[str, Any]]) -> RenderableType:
    """Make the map of the course; a dash means that the notebook is not built yet."""
    table = new_table("notebook", right=("min", "exercises", "points"))
    for part, rows in groupby(chapters, key=lambda row: row["part"]):
        table.add_section()
        table.add_row(f"[bold]{part}[/]")
        for row in rows:
            numbers = (_in_parts(row, name) for name in ("minutes", "exercises", "points"))
            table.add_row(f"{row['id'][:2]}  {row['title']}", *numbers)
    return table


def _in_parts(row: dict[str, Any], name: str) -> str:
    """Return a count of a notebook; with Further, of the core and of Further: "88 + 70"."""
    most, core = row[name], row.get("core", {}).get(name)
    return "–" if most is None else f"{most:g}" if core is None else joined([core, most - core])


def progress(found: Progress) -> RenderableType:
    """Make a table of points per exercise, per notebook and in total."""
    if not found.notebooks:
        return "There are no notebooks here yet: `lmcourse build` makes them."
    parts: list[RenderableType] = [_notebook(notebook) for notebook in found.notebooks]
    parts.append(f"[bold]{_points(found.points, found.max_points)} points in all[/]")
    if found.core_done:
        parts.append(CORE_DONE)
    return Group(*parts)


def _notebook(notebook: NotebookProgress) -> RenderableType:
    if notebook.problem:
        return f"[red]{escape(notebook.problem)}[/]"
    table = new_table("", notebook.chapter.id, right=(notebook.earned,))
    for place, part in enumerate(notebook.parts):
        if place:
            table.add_row("", "[bold]Further[/]", "")
        for exercise in part:
            earned = f"{exercise.points:g}" if exercise.started else "–"
            table.add_row(MARKS[exercise.state], exercise.name, f"{earned} / {exercise.max_points:g}")
    return Group(table, "")


def written_package(found: WrittenPackage) -> RenderableType:
    """Make a table of a collection: each exercise, the result of its answer, and the origin of the package's
    function."""
    table = new_table("notebook", "exercise", "your answer", "in the package", "why")
    for number, rows in groupby(found.rows, key=lambda row: row.notebook):
        for row in rows:
            colour = {"yours": "green", "course": "yellow"}.get(row.package, "dim")
            table.add_row(
                number, row.exercise, row.state or "–", f"[{colour}]{row.package or '–'}[/]", escape(row.reason)
            )
        table.add_section()
    table.columns[-1].no_wrap = False
    return table


def result(graded: SubmissionResult) -> RenderableType:
    """Make a table of one submission: points per exercise, with reasons."""
    title = f"{escape(graded.student)} · {escape(graded.assignment) or 'no notebook of this course'}"
    table = new_table(title, right=(_points(graded.score, graded.max_score),))
    _fold(table, 0)
    for name, points in graded.exercises.items():
        table.add_row(escape(name), f"{points:g}")
    return Group(table, escape(graded.reason), "")


def results(graded: Sequence[SubmissionResult]) -> RenderableType:
    """Make a table of many submissions, one line each."""
    table = new_table("student", "assignment", right=("points",))
    _fold(table, MAX_STUDENT_WIDTH)
    table.add_column("why")
    for one in graded:
        points = _points(one.score, one.max_score)
        table.add_row(escape(one.student), escape(one.assignment), points, escape(one.reason))
    return table


def people(found: Sequence[Person], grades: Mapping[str, str]) -> RenderableType:
    """Make a table of the people in a download: their names in the gradebook and on the platform, files and grades."""
    table = new_table("student", f"in {found[0].platform}", right=("grade",) if grades else ())
    table.add_column("handed in")
    for one in found:
        files = ", ".join(_name(path.name) for path in one.files) + (" [yellow](late)[/]" if one.late else "")
        grade = (grades.get(one.student, "–"),) if grades else ()
        table.add_row(_name(one.student), _name(f"{one.name}, {one.number}"), *grade, files)
    return table


def _name(text: str) -> str:
    return escape(escape_unprintable(text, MAX_NAME_CHARS))


def check_results(proof: CheckResults) -> RenderableType:
    """Make a table of misconceptions by exercise: points in the notebook and in grading, and whether each is named."""
    table = new_table("exercise", "wrong answer", right=("public", "grade"))
    table.add_column("")
    exercise = ""
    for row in proof.rows:
        if row.exercise != exercise:
            table.add_section()
        first = "" if row.exercise == exercise else row.exercise
        exercise = row.exercise
        points = (_points(row.public_points, row.max_points), _points(row.graded_points, row.max_points))
        wrong = escape(one_line(row.misconception, MAX_EDIT_CHARS))
        table.add_row(first, wrong, *points, _tick(_fine(row)))
    for idea in proof.ideas:
        table.add_section()
        measured = escape(f"{idea.idea}: {idea.measured}")
        points = (f"{idea.public_points:g}", f"{idea.graded_points:g} of {idea.points:g}")
        table.add_row(idea.exercise, measured, *points, _tick(idea.as_stated))
    return table


def _tick(fine: bool) -> str:
    return "[green]✓[/]" if fine else "[red]✗[/]"


def _fine(row: MisconceptionResult) -> bool:
    return row.killed and row.named and not row.unnamed


def _caught(row: MisconceptionResult) -> str:
    if not row.killed:
        return "[red]✗ keeps its points[/]"
    if not row.named:
        return "[red]✗ not named[/]"
    return f"[red]✗ not named: {escape(', '.join(row.unnamed))}[/]"


def unexpected(proof: CheckResults) -> RenderableType:
    """List known mistakes and mutants that keep points or have no name, constants that earn points, and right answers
    that lose points."""
    rows = [f"{_caught(row)} {escape(f'{row.exercise}: {row.misconception}')}" for row in proof.rows if not _fine(row)]
    kept = [f"[red]✗ keeps all points[/] {escape(f'{one.exercise}: {one.change}')}" for one in proof.survivors]
    kept += [f"[red]✗ fails hidden cases only[/] {escape(f'{one.exercise}: {one.change}')}" for one in proof.unseen]
    guessable = [f"[red]✗ constant[/] {escape(line)}" for line in proof.guessable]
    lost = [
        f"[red]✗ loses points[/] {escape(f'{one.exercise}, {one.variant}: {one.lost}')}"
        for one in proof.variants
        if one.lost
    ]
    others = [
        f"[red]✗ other points[/] {escape(f'{one.exercise}, {one.idea}: {one.graded_points:g}, not {one.points:g}')}"
        for one in proof.ideas
        if not one.as_stated
    ]
    return "\n".join(["", *rows, *kept, *guessable, *lost, *others])


def verdict(proof: CheckResults) -> str:
    """Return the result of the answer checks in one or two sentences."""
    count = proof.to_json()
    lines = [
        f"{count['exercises']} exercises, {count['misconceptions']} wrong answers: "
        f"{count['killed']} lose points, {count['named']} are named.",
        f"{count['mutilated']} mutilated forms of them: {count['mutilated_unnamed']} should be named and are not.",
        f"{count['mutants']} mutants: {count['mutants_killed']} lose points, {count['equivalent']} are right too.",
        f"{count['variants']} right answers in other styles: {count['variants_full']} earn everything.",
        f"{count['constants']} constant answers: {len(count['guessable'])} earn points.",
        f"{len(proof.ideas)} ideas for open tasks: {sum(idea.as_stated for idea in proof.ideas)} earn what is stated.",
        _all_or("Every two wrong answers differ in public", "No public case tells apart", proof.confused),
        _all_or("Every right answer differs from the others", "Right answers to remove", proof.repeated),
        _all_or("Every mutant declared equivalent is", "Declared equivalent, but no mutant or caught", proof.untrue),
        _all_or("Every printed solution earns everything", "Solutions that do not", proof.not_full),
        _all_or("Every untouched stub earns nothing", "Stubs that earn points, or count as written", proof.not_zero),
    ]
    return "\n".join(lines)


def bench(found: Bench) -> RenderableType:
    """Show the measured peaks of this machine, and which fraction of the peaks a model reaches."""
    machine = new_table(found.machine.title, right=("measured", "of the data sheet"))
    for precision, peak in found.machine.peaks.items():
        share = found.peak_shares.get(precision)
        machine.add_row(f"{precision} products", f"{peak / 1e9:,.0f} GFLOP/s", "–" if share is None else f"{share:.0%}")
    machine.add_row("copy, read and write", f"{found.machine.bandwidth / 1e9:,.1f} GB/s", "–")
    model = f"{found.model}, {found.batch} × {found.seq_len} tokens, {found.precision}"
    steps = new_table(model, right=("predicted", "measured", "tokens/s"))
    for name, work in (("training step", found.training), ("decoding step", found.decoding)):
        times = (f"{seconds * 1e3:,.1f} ms" for seconds in (work.predicted, work.measured.median))
        steps.add_row(name, *times, f"{work.tokens_per_second:,.0f}")
    kept = (f"{size / MIB:,.1f} MiB" for size in (found.saved_predicted, found.saved_counted))
    steps.add_row("kept for backward", *kept, "")
    measured = "–" if found.peak_measured is None else f"{found.peak_measured / MIB:,.1f} MiB"
    steps.add_row("peak of training", f"{found.peak_predicted / MIB:,.1f} MiB", measured, "")
    shares = f"MFU {found.mfu:.0%} of the measured peak; decoding {found.bandwidth_share:.0%} of the bandwidth."
    if found.bandwidth_share > 1:
        shares += " Above 100 %: the weights stay in the processor's cache."
    return Group(machine, "", steps, "", shares, *map(escape, found.notes))


def _all_or(good: str, bad: str, names: Sequence[str]) -> str:
    return f"[red]✗ {bad}: {', '.join(names)}.[/]" if names else f"[green]✓[/] {good}."


def new_table(*left: str, right: Sequence[str] = ()) -> Table:
    """Return an empty table with these left-aligned and right-aligned columns."""
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False, header_style="bold")
    for name in left:
        table.add_column(name, no_wrap=True)
    for name in right:
        table.add_column(name, justify="right", no_wrap=True)
    return table


def _fold(table: Table, max_width: int) -> None:
    """Wrap the first column at this width (0: no limit), so that the other columns keep their positions."""
    table.columns[0].no_wrap = False
    table.columns[0].overflow = "fold"
    table.columns[0].max_width = max_width or None


def _points(earned: float, most: float) -> str:
    return f"{earned:g} / {most:g}"
