"""A training step shared by many processes: torch's own data, tensor and pipeline parallelism on one device mesh.

- `process_group`: initialised from torchrun's environment, destroyed at the end.
- `mesh`: the device mesh, with a dimension for every kind of parallelism.
- `parallelize`: divides a model and returns this process's part. `checks` says what cannot be divided, `split_linear`
  splits fused matrices, `tensor_parallel` shards them (tensor and sequence parallelism), `data_parallel` wraps the
  model (DDP, FSDP2), `pipeline_parallel` gives each stage its blocks.
- `make_context`, `process_group_context`: the collectives of a step, such as the norm of all `gradients`.
- `worker`, `simulated`, `together`: a program that every worker runs (SPMD), in a simulation that counts bytes, or on
  real processes, each of which is a `runner`. Read them beside notebook 18.
- `sharded_checkpoint`: a checkpoint written by all processes, readable by any number of them.
"""
