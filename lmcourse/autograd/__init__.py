"""A scalar engine for reverse-mode differentiation, its graph as plain data, and its passes step by step.

`Value` is the whole engine. Nothing of the course trains with it: it is what PyTorch's autograd does, small enough to
be read.
"""

from lmcourse.autograd.differences import central_difference
from lmcourse.autograd.examples import EXAMPLES, example
from lmcourse.autograd.graph import Edge, Graph, Node, graph_of
from lmcourse.autograd.trace import Step, steps_of
from lmcourse.autograd.value import Value, topological_order

__all__ = [
    "EXAMPLES",
    "Edge",
    "Graph",
    "Node",
    "Step",
    "Value",
    "central_difference",
    "example",
    "graph_of",
    "steps_of",
    "topological_order",
]
