"""A scalar engine for reverse-mode differentiation, its graph as plain data, and its passes step by step.

`Value` is the whole engine. Nothing of the course trains with it: it is what PyTorch's autograd does, small enough to
be read.
"""

from lmcourse.autograd.examples import EXAMPLES, example
from lmcourse.autograd.graph import Edge, Graph, Node, Step, graph_of, steps_of
from lmcourse.autograd.value import Value, topological_order

__all__ = [
    "EXAMPLES",
    "Edge",
    "Graph",
    "Node",
    "Step",
    "Value",
    "example",
    "graph_of",
    "steps_of",
    "topological_order",
]
