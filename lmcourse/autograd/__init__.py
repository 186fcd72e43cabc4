"""A scalar engine for reverse-mode differentiation, with its graph as plain data and its passes in single steps.

`Value` is the whole engine. The course does not train with it; it shows how PyTorch's autograd works, in a form that is
small enough to read.
"""

from lmcourse.autograd.examples import EXAMPLES as EXAMPLES
from lmcourse.autograd.examples import example as example
from lmcourse.autograd.graph import Edge as Edge
from lmcourse.autograd.graph import Graph as Graph
from lmcourse.autograd.graph import Node as Node
from lmcourse.autograd.graph import Step as Step
from lmcourse.autograd.graph import graph_of as graph_of
from lmcourse.autograd.graph import steps_of as steps_of
from lmcourse.autograd.value import Value as Value
from lmcourse.autograd.value import topological_order as topological_order
