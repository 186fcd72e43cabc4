"""Pictures, the only attachments of a text cell and the only files in an output that are kept."""

from __future__ import annotations

import re
from typing import Any

PICTURES = ("image/png", "image/jpeg")

_BASE64 = re.compile(r"[A-Za-z0-9+/=\s]*")


def is_picture(mime: str, value: Any) -> bool:
    """Whether this is the Base64 of a picture in a format that cannot hold a script."""
    return mime in PICTURES and isinstance(value, str) and _BASE64.fullmatch(value) is not None


def attached_pictures(attachments: Any) -> dict[str, dict[str, str]]:
    """Pictures attached to a text cell, and nothing else that calls itself an attachment."""
    kept: dict[str, dict[str, str]] = {}
    for name, bundle in attachments.items() if isinstance(attachments, dict) else ():
        for mime, value in bundle.items() if isinstance(bundle, dict) else ():
            if is_picture(mime, value):
                kept[printable(str(name))] = {mime: value}
    return kept


def printable(text: str) -> str:
    """The text without halves of surrogate pairs, which JSON can hold and UTF-8 cannot."""
    return text.encode("utf-8", "replace").decode("utf-8")
