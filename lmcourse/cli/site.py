"""`lmcourse site`: its flags, and what it prints."""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from pathlib import Path

from lmcourse.cli.output import print_json, quiet
from lmcourse.paths import typed_path
from lmcourse.root import find_root

EPILOG = "Nothing is run but figures; what was drawn before is kept in .cache/site. The pages open from the disk, too."


def add_site(parser: ArgumentParser) -> None:
    """The flags of `lmcourse site`."""
    add = parser.add_argument
    add("chapters", nargs="*", metavar="NN", help="notebooks by number or name; all that are written by default")
    add(
        "--out",
        type=typed_path,
        default=Path("_site"),
        metavar="DIR",
        help="the folder of the site; ./_site by default",
    )


def site(options: Namespace) -> int:
    """Build the site."""
    root = find_root(options.course)
    from lmcourse.cli.commands import find_chapters
    from lmcourse.site.build import build_site

    with quiet(options):
        built = build_site(root, options.out.resolve(), find_chapters(options.chapters))
    counts = {"chapters": built.chapters, "figures": built.figures, "frames": built.frames, "bytes": built.bytes}
    if options.json:
        print_json({"folder": str(options.out), **counts})
    else:
        size = f"{built.bytes / 1e6:.1f} MB"
        print(f"{options.out}: {built.chapters} chapters, {built.figures} figures that move, {size}")
        print(f"Open {options.out / 'index.html'} in a browser.")
    return 0
