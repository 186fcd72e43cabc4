"""The helper package of a hands-on course about transformer language models.

The notebooks import from it what earlier notebooks built, check answers with it and draw with it; it is
written to be read. Importing it costs nothing: every room loads what it needs when it is asked.
"""

__version__ = "0.1.0"
