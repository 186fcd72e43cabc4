"""A scalar engine for reverse-mode differentiation, with its graph as plain data and its passes in single steps.

`Value` is the whole engine. The course does not train with it; it shows how PyTorch's autograd works, in a form that is
small enough to read.
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
