"""Write files so that a crash in the middle leaves the old ones."""

from __future__ import annotations

from pathlib import Path


def write_all(texts: dict[Path, str]) -> None:
    """Write several files, first all under temporary names, then moved into place."""
    temporary = {path: path.with_name(f".{path.name}.new") for path in texts}
    try:
        for path, text in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary[path].write_text(text, encoding="utf-8", newline="\n")
        for path, new in temporary.items():
            new.replace(path)
    finally:
        for new in temporary.values():
            new.unlink(missing_ok=True)
