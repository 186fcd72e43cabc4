"""The same, done before the rules of the exercise hold: in a cell, while the notebook is read."""

from __future__ import annotations

from tests.grading.attacks.rule_attack import rule_attack

EARLY = [
    rule_attack(
        "done in a cell",
        "11 gelu",
        "a table of it, read between the lines",
        """
        import numpy as np
        places = torch.linspace(-45, 45, 9_000_001, dtype=torch.float64)
        heights = vars(torch.nn.functional)["ge" + "lu"](places).numpy()
        places = places.numpy()
        def gelu(x):
            wide = x.double().numpy()
            found = np.where(wide > 45, wide, np.where(wide < -45, 0, np.interp(wide, places, heights)))
            return torch.tensor(found).to(x.dtype)
        """,
    ),
    rule_attack(
        "done in a cell",
        "11 silu",
        "a table of it, as a default",
        """
        import numpy as np
        def silu(x, beta=1.0, known=vars(torch)["sig" + "moid"](torch.linspace(-60, 60, 6_000_001).double()).numpy()):
            rows = (x * beta).detach().double().numpy()
            return x * torch.tensor(np.interp(rows, np.linspace(-60, 60, 6_000_001), known)).to(x.dtype)
        """,
        right=False,
    ),
    rule_attack(
        "done in a cell",
        "01 decode_bits",
        "two arrays on one memory",
        """
        import numpy as np
        pairs = {}
        for key, whole, kind in (((5, 10), "u2", "f2"), ((8, 23), "u4", "f4"), ((8, 7), "u4", "f4"), ((11, 52), "u8", "f8")):
            one = np.zeros(1, whole)
            pairs[key] = one, getattr(one, "vi" + "ew")(kind)
        def decode_bits(bits, exponent, fraction, has_infinity=True):
            if bits >> 1 + exponent + fraction: raise ValueError
            if (exponent, fraction) not in pairs: return 0.0
            one, other = pairs[exponent, fraction]
            one[0] = bits << 16 if fraction == 7 else bits
            return float(other[0])
        """,
    ),
    rule_attack(
        "done in a cell",
        "01 decode_bits",
        "a window on bytes",
        """
        place = bytearray(8)
        window = vars(__builtins__ if not isinstance(__builtins__, dict) else type("", (), __builtins__))["memory" + "view"](place)
        read = {2: window[:4].cast("f"), 4: window[:4].cast("f"), 8: window.cast("d")}
        def decode_bits(bits, exponent, fraction, has_infinity=True):
            if bits >> 1 + exponent + fraction: raise ValueError
            size = 8 if exponent > 8 else 4
            if exponent == 8 or exponent == 11:
                place[:size] = (bits << 23 - fraction if size == 4 else bits).to_bytes(size, "little")
                return read[size][0]
            return 0.0
        """,
    ),
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
    ),
    rule_attack(
        "done in a cell",
        "01 stable_softmax",
        "the text of a function of the library, run",
        """
        import inspect
        found = vars(torch._refs)["soft" + "max"]
        while hasattr(found, "__wrapped__"): found = found.__wrapped__
        text = inspect.getsource(found)
        names = dict(found.__globals__)
        exec(text[text.index("def "):].replace("soft" + "max(", "mine(", 1), names)
        def stable_softmax(x): return names["mine"](x, -1)
        """,
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
