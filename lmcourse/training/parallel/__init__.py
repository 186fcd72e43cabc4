"""A training step shared by many processes: torch's own data, tensor and pipeline parallelism on one device mesh.

- `process_group`: torchrun starts one program several times; here they find each other and part.
- `mesh`: the device mesh, with a dimension for every kind of parallelism.
- `parallelize`: from a model to this process's part of it. `checks` says what cannot be divided, `split_linear` splits
  fused matrices, `tensor_parallel` shards them (tensor and sequence parallelism), `data_parallel` wraps the model (DDP,
  FSDP2), `pipeline_parallel` gives each stage its blocks.
- `make_context`, `process_group_context`: what a step asks of the others, such as the norm of all `gradients`.
- `sharded_checkpoint`: files from many processes, for any other number of them.
"""
