"""A training step shared by many processes: torch's own data, tensor and pipeline parallelism on one device mesh.

- `process_group`: torchrun starts one program several times; here they find each other and part.
- `mesh`: their numbers, in a box with a side for every way to divide the work.
- `parallelize`: from a model to this process's part of it. `checks` says what cannot be divided, `fused` takes matrices
  apart that lie in one, `plans` cuts them (tensor and sequence parallelism), `shard` says who keeps which weights (DDP,
  FSDP2), `pipeline` whose blocks are whose.
- `process_team`: what a step asks of the others, such as the norm of all `gradients`.
- `sharded_checkpoint`: files from many processes, for any other number of them.
"""
