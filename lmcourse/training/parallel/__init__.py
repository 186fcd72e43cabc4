"""Share a training step among many processes: torch's data, tensor and pipeline parallelism on one device mesh.

- `process_group`: initialises torch's process group from torchrun's environment and destroys it at the end; makes the
  context of a process.
- `parallelize`: checks that a model can be divided, divides it over the device mesh and returns this process's part.
  `split_linear` splits fused matrices, `tensor_parallel` shards them (tensor and sequence parallelism),
  `pipeline_parallel` gives each stage its blocks.
- `process_group_context`: the collectives of a step, such as the norm of all gradients.
"""
