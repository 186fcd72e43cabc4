"""The chapter on normalization and blocks: norms, where they stand, residual streams, serial and parallel blocks."""
