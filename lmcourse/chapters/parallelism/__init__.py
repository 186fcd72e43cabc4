"""The chapter on parallelism: collectives, and what is cut in data, tensor, sequence and pipeline parallelism."""
