"""What no submission may see."""

from __future__ import annotations

from traitlets.config import Config


def private_folders(config: Config) -> tuple[str, ...]:
    """The folders that no submission may see, wherever they are: the course, and nbgrader's exchange with its copies.

    Args:
        config: nbgrader's.
    """
    from nbgrader.exchange.default import Exchange

    exchange = Exchange(config=config)
    return str(config.CourseDirectory.root), str(exchange.root), str(exchange.cache)
