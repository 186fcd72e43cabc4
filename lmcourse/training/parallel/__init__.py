"""A training step shared by many processes: torch's own data, tensor and pipeline parallelism on one device mesh.

- `process_group`: initialised from torchrun's environment, destroyed at the end.
- `parallelize`: checks that a model can be divided, divides it over the device mesh and returns this process's part.
  `split_linear` splits fused matrices, `tensor_parallel` shards them (tensor and sequence parallelism),
  `pipeline_parallel` gives each stage its blocks.
- `process_group_context`: the collectives of a step, such as the norm of all gradients.
"""
