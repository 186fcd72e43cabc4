"""The cost of a model: parameters, FLOPs, bytes and seconds, predicted and counted.

Read `parameters` first, then `flops`, `activations` and `memory`. `flop_rules` and `activation_rules` have formulas
from papers; `saved`, `live` and `counter` measure with torch itself. `accelerators` lists the speed of hardware;
`latency` and `mfu` predict how long the work takes on it; `timing` and `machine` measure time. `workload` combines
everything. The public names are in `__init__.pyi`.
"""

from lmcourse.base.lazy import lazy_names

__getattr__, __dir__, __all__ = lazy_names(__name__, __file__)
