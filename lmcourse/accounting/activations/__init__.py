"""Predicted activation memory: what autograd saves of a forward pass, to the byte.

Read `saved_tensor_list` (tensors of which only the size is known), `layers` (a rule per layer), `heads` and
`attention`, then `model`.
`lmcourse.accounting.saved` measures the same.
"""

from lmcourse.accounting.activations.model import predict_block_bytes, predict_saved_bytes
from lmcourse.accounting.activations.saved_tensor_list import PARTS

__all__ = ["PARTS", "predict_block_bytes", "predict_saved_bytes"]
