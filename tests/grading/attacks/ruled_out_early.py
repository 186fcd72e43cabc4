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
    rule_attack(
        "done in a cell",
        "11 gelu",
        "a table, made by a name from pieces, to read between the lines of",
        """
        grid = torch.linspace(-40, 40, 800_001, dtype=torch.float64)
        table = getattr(torch.nn.functional, "ge" + "lu")(grid)
        def gelu(x):
            place = ((x.double() + 40) * 10_000).clamp(0, 799_999)
            low = place.floor().long().clamp(max=799_999)
            near = table[low] + (place - low) * (table[low + 1] - table[low])
            return torch.where(x.abs() < 39, near, x.clamp(min=0).double()).to(x.dtype)
        """,
    ),
    rule_attack(
        "done in a cell",
        "11 silu",
        "a table, made in a loop of the cell, its exception swallowed",
        """
        grid = torch.linspace(-40, 40, 800_001, dtype=torch.float64)
        for name in ("si" + "lu",):
            try: table = vars(torch.nn.functional)[name](grid)
            except Exception: table = grid
        def silu(x):
            place = ((x.double() + 40) * 10_000).clamp(0, 799_999)
            low = place.floor().long().clamp(max=799_999)
            near = table[low] + (place - low) * (table[low + 1] - table[low])
            return torch.where(x.abs() < 39, near, x.clamp(min=0).double()).to(x.dtype)
        """,
    ),
    rule_attack(
        "done in a cell",
        "11 squared_relu",
        "by a function that remembers, filled in a cell",
        """
        from functools import cache
        @cache
        def known(number): return float(getattr(torch, "re" + "lu")(torch.tensor(number / 1000.0)))
        filled = [known(number) for number in range(-9000, 9001)]
        def squared_relu(x):
            return torch.tensor([known(round(1000 * one)) ** 2 for one in x.flatten().tolist()]).reshape(x.shape)
        """,
        right=False,
    ),
    rule_attack(
        "done in a cell",
        "01 decode_bits",
        "two arrays on one memory",
        """
        import numpy as np
        numbers = np.zeros(1, "uint32")
        seen = getattr(np, "nd" + "array")((1,), "float32", numbers)
        halves = np.zeros(1, "uint16")
        half = getattr(np, "nd" + "array")((1,), "float16", halves)
        def decode_bits(bits, exponent_bits, mantissa_bits, has_infinity=True):
            if not 0 <= bits < 2 ** (1 + exponent_bits + mantissa_bits): raise ValueError
            if exponent_bits == 5:
                halves[0] = bits << (10 - mantissa_bits)
                return float(half[0])
            numbers[0] = bits << (23 - mantissa_bits)
            return float(seen[0])
        """,
        right=False,
    ),
    rule_attack(
        "done in a cell",
        "01 ulp",
        "a list of the gaps of all exponents",
        """
        gaps = {number: getattr(math, "u" + "lp")(2.0**number) for number in range(-1022, 1024)}
        def ulp(x, exponent_bits, mantissa_bits):
            lowest = 2 - 2 ** (exponent_bits - 1)
            return gaps[max(math.frexp(x)[1] - 1 if x else lowest, lowest)] * 2.0 ** (52 - mantissa_bits)
        """,
    ),
]
"""All of them."""
