"""Attacks on rules that have the work done elsewhere: by a kernel's relative, a trace, a process, another library."""

from __future__ import annotations

from tests.grading.attacks.rule_attack import rule_attack

RELATIVES = [
    rule_attack(
        "kernels",
        "05 next_token_loss",
        "the same loss for pictures",
        """
        loss = vars(torch._C._nn)["nll_loss" + "2d"]
        def next_token_loss(logits, ids):
            rows = logits[:, :-1].log_softmax(-1).reshape(-1, logits.shape[-1])
            return loss(rows[..., None, None], ids[:, 1:].reshape(-1, 1, 1))
        """,
        right=False,
    ),
    rule_attack(
        "kernels",
        "06 lstm_step",
        "a layer of a library below torch",
        """
        layer = vars(torch)["mkldnn_" + "rnn_layer"]
        def lstm_step(x, h, c, W, U, b):
            empty = torch.zeros_like(b)
            _, h, c, _ = layer(x[None], W, U, b, empty, h[None], c[None], False, [], 2, h.shape[-1], 1, True, False,
                               False, False)
            return h[0], c[0]
        """,
        right=False,
    ),
    rule_attack(
        "kernels",
        "11 squared_relu",
        "of a compressed sparse tensor",
        """
        def squared_relu(x):
            rows = x.reshape(1, -1).to_sparse_csr()
            return vars(torch)["re" + "lu"](rows).to_dense().reshape(x.shape) ** 2
        """,
        right=False,
    ),
]

TRACES = [
    rule_attack(
        "traces",
        "01 stable_softmax",
        "traced into the operators that it is made of",
        """
        from torch._decomp import decomposition_table
        from torch.fx.experimental.proxy_tensor import make_fx
        weigh = lambda x: getattr(x, "soft" + "max")(-1)
        def stable_softmax(x): return traced[x.dim()](x)
        traced = {n: make_fx(weigh, decomposition_table, tracing_mode="symbolic")(torch.rand(*range(3, 3 + n)))
                  for n in range(1, 4)}
        """,
    ),
    rule_attack(
        "traces",
        "03 backward_matmul",
        "a gradient, traced while autograd was on",
        """
        from torch.fx.experimental.proxy_tensor import make_fx
        change = vars(torch)["fu" + "nc"]
        gradients = lambda x, w, dy: change.vjp(torch.matmul, x, w)[1](dy)
        def backward_matmul(x, w, dy): return list(traced(x, w, dy))
        traced = make_fx(gradients, tracing_mode="symbolic")(torch.rand(3, 4), torch.rand(4, 5), torch.rand(3, 5))
        """,
    ),
]

PROCESSES = [
    rule_attack(
        "processes from before",
        "01 stable_softmax",
        "a fork of the cell, asked over a pipe",
        """
        import os
        from multiprocessing import Pipe
        here, there = Pipe()
        if os.fork() == 0:
            while True:
                there.send(getattr(torch.tensor(there.recv(), dtype=torch.float64), "soft" + "max")(-1).tolist())
        def stable_softmax(x):
            here.send(x.tolist())
            return torch.tensor(here.recv() if here.poll(0.2) else [], dtype=x.dtype)
        """,
        right=False,
        sandboxed=True,
    ),
]

LIBRARIES = [
    rule_attack(
        "other libraries",
        "10 rms_norm",
        "a library of whole models, in the answer",
        """
        import importlib
        def rms_norm(x, gamma, eps=1e-5):
            models = importlib.import_module("trans" + "formers.models.llama.modeling_llama")
            norm = models.LlamaRMSNorm(x.shape[-1], eps)
            norm.weight.data = gamma
            return norm(x).detach()
        """,
        right=False,
        sandboxed=True,
    ),
    rule_attack(
        "other libraries",
        "08 causal_attention",
        "a library of whole models, in the cell",
        """
        import importlib
        models = importlib.import_module("trans" + "formers.models.llama.modeling_llama")
        class One: training, num_key_value_groups = False, 1
        def causal_attention(q, k, v):
            s, t = q.shape[-2], k.shape[-2]
            mask = torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1)
            return models.eager_attention_forward(One, q, k, v, mask, q.shape[-1] ** -0.5)[0].transpose(1, 2)
        """,
        right=False,
        sandboxed=True,
    ),
]

ELSEWHERE = [*RELATIVES, *TRACES, *PROCESSES, *LIBRARIES]
"""All of them."""
