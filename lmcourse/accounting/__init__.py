"""What a model costs: parameters, FLOPs, bytes and seconds, predicted and counted.

Read `parameters` first, then `flops`, `activations` and `memory`. `rules` and `activation_rules` are the formulas of
papers, and how far they are off; `saved` and `counter` ask torch itself. `accelerators` says what hardware can do,
`latency` and `cluster` how long the work takes on it; `timing`, `machine` and `mfu` measure. `account` puts it
together.
"""
