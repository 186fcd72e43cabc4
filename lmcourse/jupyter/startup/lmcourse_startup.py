"""A startup file of IPython, which the package installs into `etc/ipython/startup`; it leaves no name behind."""

try:  # noqa: SIM105 - no name may be left behind
    __import__("lmcourse.one_line_errors").one_line_errors.install()
except ImportError:  # a kernel of another environment
    pass
