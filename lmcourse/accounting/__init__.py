"""What a model costs: parameters, FLOPs, bytes and seconds, predicted, counted and measured.

Read `parameters` first, then `flops`, `activations` and `memory`; `accelerators` says what hardware can do, `latency`
how long the work takes on it, and `measure` how long it really took.
"""
