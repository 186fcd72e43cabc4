"""The same, done before the rules of the exercise hold: in a cell, while the notebook is read."""

from __future__ import annotations

from tests.grading.attacks.rule_attack import rule_attack

EARLY = [
    rule_attack(
        "done in a cell",
        "03 backward_matmul",
        "a graph, walked with other numbers put into its tensors",
        """
        a, b = (torch.zeros(1, 1, dtype=torch.float64, requires_grad=True) for _ in range(2))
        kinds = {}
        for dtype in (torch.float32, torch.float64):
            pair = [torch.zeros(1, 1, dtype=dtype, requires_grad=True) for _ in range(2)]
            kinds[dtype] = *pair, (pair[0] @ pair[1]).grad_fn
        def backward_matmul(x, w, dy):
            a, b, node = kinds[x.dtype]
            a.data, b.data = x.reshape(-1, x.shape[-1]), w
            dx, dw = node(dy.reshape(-1, dy.shape[-1]))
            return [dx.reshape(x.shape), dw]
        """,
    ),
    rule_attack(
        "done in a cell",
        "16 clip_by_global_norm",
        "a copy of the library's module under a name of one's own",
        """
        import importlib.util
        from torch import nn
        place = vars(nn)["ut" + "ils"].clip_grad.__file__
        spec = importlib.util.spec_from_file_location("mine", place)
        mine = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(mine)
        tools = vars(mine)
        def clip_by_global_norm(gradients, max_norm):
            if max_norm <= 0: raise ValueError
            held = [nn.Parameter(g.double()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.double()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            if not math.isfinite(total): raise ValueError
            return [one.grad.to(g.dtype) for one, g in zip(held, gradients)], total
        """,
    ),
    rule_attack(
        "done in a cell",
        "16 clip_by_global_norm",
        "the library's module, loaded anew",
        """
        import importlib
        from torch import nn
        tools = vars(importlib.reload(vars(nn)["ut" + "ils"].clip_grad))
        def clip_by_global_norm(gradients, max_norm):
            if max_norm <= 0: raise ValueError
            held = [nn.Parameter(g.double()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.double()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            if not math.isfinite(total): raise ValueError
            return [one.grad.to(g.dtype) for one, g in zip(held, gradients)], total
        """,
    ),
    rule_attack(
        "done in a cell",
        "16 clip_by_global_norm",
        "the library's module, loaded anew while it is judged",
        """
        import importlib
        from torch import nn
        module = vars(nn)["ut" + "ils"].clip_grad
        def clip_by_global_norm(gradients, max_norm):
            tools = vars(importlib.reload(module))
            if max_norm <= 0: raise ValueError
            held = [nn.Parameter(g.double()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.double()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            if not math.isfinite(total): raise ValueError
            return [one.grad.to(g.dtype) for one, g in zip(held, gradients)], total
        """,
    ),
    rule_attack(
        "done in a cell",
        "01 stable_softmax",
        "the code of a function of the library, for a function of one's own",
        """
        from types import FunctionType
        found = vars(torch._refs)["soft" + "max"]
        while hasattr(found, "__wrapped__"): found = found.__wrapped__
        def stable_softmax(x): return made(x, -1)
        made = FunctionType(found.__code__, found.__globals__, "mine", found.__defaults__)
        made.__kwdefaults__ = found.__kwdefaults__
        """,
    ),
    rule_attack(
        "done in a cell",
        "01 stable_softmax",
        "the code of a function of the library, made one while it is judged",
        """
        from types import FunctionType
        found = vars(torch._refs)["soft" + "max"]
        while hasattr(found, "__wrapped__"): found = found.__wrapped__
        code, names, kept = found.__code__, found.__globals__, found.__kwdefaults__
        def stable_softmax(x):
            made = FunctionType(code, names, "mine")
            made.__kwdefaults__ = kept
            return made(x, -1)
        """,
        right=False,
    ),
    rule_attack(
        "done in a cell",
        "06 lstm_step",
        "a layer made before, of a class of one's own that inherits everything",
        """
        import torch.ao.nn.quantizable
        class Mine(vars(torch.ao.nn.quantizable)["LSTM" + "Cell"]): pass
        layers = {}
        def lstm_step(x, h, c, W, U, b):
            cell = layers.setdefault((x.shape[-1], h.shape[-1]), None) or Mine(x.shape[-1], h.shape[-1])
            cell.igates.weight.data, cell.hgates.weight.data = W, U
            cell.igates.bias.data, cell.hgates.bias.data = b, torch.zeros_like(b)
            with torch.no_grad(): return cell(x, (h, c))
        """,
    ),
]
"""All of them."""
