"""The same by classes and functions of libraries that are made of operators which nothing rules out."""

from __future__ import annotations

from tests.grading.attacks.rule_attack import rule_attack

MODULES = [
    rule_attack(
        "library classes",
        "01 stable_softmax",
        "a transformation of distributions",
        """
        kinds = vars(torch.distributions.transforms)
        weigh = kinds["Soft" + "maxTransform"]()
        def stable_softmax(x): return weigh(x)
        """,
    ),
    rule_attack(
        "library classes",
        "06 lstm_step",
        "a cell that can be quantized",
        """
        import torch.ao.nn.quantizable
        kinds = vars(torch.ao.nn.quantizable)
        def lstm_step(x, h, c, W, U, b):
            cell = kinds["LSTM" + "Cell"](x.shape[-1], h.shape[-1])
            cell.igates.weight.data, cell.hgates.weight.data = W, U
            cell.igates.bias.data, cell.hgates.bias.data = b, torch.zeros_like(b)
            with torch.no_grad(): return cell(x, (h, c))
        """,
    ),
    rule_attack(
        "library classes",
        "06 rnn_probabilities",
        "another recurrent cell with its gates held open",
        """
        def rnn_probabilities(tokens, E, W_h, W_e, b1, U, b2, h0):
            d, e = W_e.shape
            cell = vars(torch.nn)["GRU" + "Cell"](e, d, dtype=torch.float64)
            none = torch.zeros(2 * d, e), torch.zeros(2 * d, d)
            gates = torch.tensor([60.0, -800.0]).repeat_interleave(d)
            cell.weight_ih.data = torch.cat([none[0], W_e]).double()
            cell.weight_hh.data = torch.cat([none[1], W_h]).double()
            cell.bias_ih.data, cell.bias_hh.data = torch.cat([gates, b1]).double(), torch.zeros(3 * d).double()
            rows, h = [], h0.double()[None]
            with torch.no_grad():
                for token in tokens:
                    h = cell(E[:, token].double()[None], h)
                    rows.append(U.double() @ h[0] + b2.double())
            return torch.stack(rows).softmax(-1).to(E.dtype)
        """,
    ),
    rule_attack(
        "library classes",
        "08 multi_head",
        "heads that can be quantized",
        """
        import torch.ao.nn.quantizable
        kinds = vars(torch.ao.nn.quantizable)
        def multi_head(x, source, w_q, w_k, w_v, w_out, heads, visible=None):
            layer = kinds["Multihead" + "Attention"](x.shape[-1], heads, bias=False, batch_first=True).to(x.dtype)
            parts = layer.linear_Q, layer.linear_K, layer.linear_V, layer.out_proj
            for part, weight in zip(parts, (w_q, w_k, w_v, w_out)): part.weight.data, part.bias = weight, None
            hidden = None if visible is None else ~visible
            with torch.no_grad(): return layer.eval()(x, source, source, attn_mask=hidden, need_weights=False)[0]
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "04 Adam",
        "torch's Adam for sparse gradients, with an epsilon that makes it the other one",
        """
        import torch.optim._functional
        rule = vars(torch.optim._functional)["sparse_" + "adam"]
        class Adam(torch.optim.Optimizer):
            def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
                super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in (each for each in group["params"] if each.grad is not None):
                        s, (b1, b2) = self.state[p], group["betas"]
                        if not s: s.update(m=torch.zeros_like(p).reshape(-1), v=torch.zeros_like(p).reshape(-1), t=0)
                        s["t"] += 1
                        flat, slope = p.reshape(-1), p.grad.reshape(-1)
                        places = torch.arange(len(slope))[None]
                        slope = torch.sparse_coo_tensor(places, slope, slope.shape).coalesce()
                        eps = group["eps"] * (1 - b2 ** s["t"]) ** 0.5
                        rule([flat], [slope], [s["m"]], [s["v"]], [s["t"]], eps=eps, beta1=b1, beta2=b2,
                             lr=group["lr"], maximize=False)
                        p.copy_(flat.reshape(p.shape))
        """,
    ),
    rule_attack(
        "library classes",
        "04 Momentum",
        "another optimizer that is told not to divide",
        """
        from torch import optim
        kind = vars(optim)["RMS" + "prop"]
        class Momentum(kind):
            def __init__(self, params, lr, momentum=0.9, nesterov=False):
                super().__init__(params, lr=lr, alpha=1.0, eps=1.0, momentum=momentum)
                self.ahead = nesterov
                for group in self.param_groups: group.setdefault("nesterov", nesterov)
            @torch.no_grad()
            def step(self, closure=None):
                super().step()
                for group in self.param_groups:
                    for p in (each for each in group["params"] if each.grad is not None and group["nesterov"]):
                        b = self.state[p]["momentum_buffer"]
                        p -= group["lr"] * (p.grad + group["momentum"] * b - b)
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "10 rms_norm",
        "the norm over neighbouring channels, with a window over all of them",
        """
        from torch.nn import functional
        norm = vars(functional)["local_response_" + "norm"]
        def rms_norm(x, gamma, eps=1e-6):
            n, wide = x.shape[-1], x.to(torch.promote_types(x.dtype, torch.float32))
            size = 2 * n - 1
            rows = wide.reshape(-1, n, 1)
            made = norm(rows, size, alpha=size / n, beta=0.5, k=eps).reshape(x.shape)
            return (made * gamma).to(x.dtype)
        """,
    ),
    rule_attack(
        "library classes",
        "10 rms_norm",
        "the norm of weights",
        """
        norm = vars(torch)["_weight_" + "norm"]
        def rms_norm(x, gamma, eps=1e-6):
            n, wide = x.shape[-1], x.to(torch.promote_types(x.dtype, torch.float32)).reshape(-1, x.shape[-1])
            rows = torch.cat([wide, torch.full_like(wide[:, :1], (n * eps) ** 0.5)], -1)
            made = norm(rows, torch.full_like(rows[:, :1], n**0.5), 0)[:, :-1].reshape(x.shape)
            return (made * gamma).to(x.dtype)
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "16 qk_norm",
        "rows cut to a length",
        """
        def qk_norm(q, k, gamma_q, gamma_k, eps=1e-6):
            def scaled(x, gamma):
                n, wide = x.shape[-1], x.double().reshape(-1, x.shape[-1])
                rows = torch.cat([wide, torch.full_like(wide[:, :1], (n * eps) ** 0.5)], -1)
                cut = getattr(rows * 1e6, "re" + "norm")(2, 0, 1.0)[:, :-1] * n**0.5
                return cut.reshape(x.shape) * gamma.double()
            return (scaled(q, gamma_q) @ scaled(k, gamma_k).mT / math.sqrt(q.shape[-1])).to(q.dtype)
        """,
    ),
    rule_attack(
        "library classes",
        "16 clip_by_global_norm",
        "rows cut to a length",
        """
        def clip_by_global_norm(gradients, max_norm):
            wide = torch.cat([g.double().flatten() for g in gradients])
            norm = float(wide.norm())
            if max_norm <= 0 or not math.isfinite(norm): raise ValueError
            cut = getattr(wide[None], "re" + "norm")(2, 0, max_norm)[0]
            parts = cut.split([g.numel() for g in gradients])
            return [part.reshape(g.shape).to(g.dtype) for part, g in zip(parts, gradients)], norm
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "10 layer_norm",
        "what torch's own reference of the norm calls",
        """
        import torch._refs
        part = vars(torch._refs)["_norm" + "alize"]
        def layer_norm(x, gamma, beta, eps=1e-5):
            return (part(x, [x.dim() - 1], eps)[0] * gamma + beta).to(x.dtype)
        """,
    ),
    rule_attack(
        "library classes",
        "08 causal_attention",
        "the pattern by which a compiler knows attention",
        """
        import importlib
        parts = vars(importlib.import_module("torch._inductor.fx_passes.fuse_atten" + "tion"))
        found = parts["_sfdp_pattern_" + "5"]
        def causal_attention(q, k, v):
            s, t = q.shape[-2], k.shape[-2]
            hidden = torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1)
            return found(q, k, v, hidden, q.shape[-1] ** 0.5)
        """,
    ),
    rule_attack(
        "library classes",
        "08 causal_attention",
        "the same, imported while it is judged",
        """
        import importlib
        def causal_attention(q, k, v):
            parts = vars(importlib.import_module("torch._inductor.fx_passes.fuse_atten" + "tion"))
            s, t = q.shape[-2], k.shape[-2]
            hidden = torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1)
            return parts["_sfdp_pattern_" + "5"](q, k, v, hidden, q.shape[-1] ** 0.5)
        """,
    ),
    rule_attack(
        "library classes",
        "08 grouped_query_attention",
        "the operator of an exchange format",
        """
        import importlib
        parts = vars(importlib.import_module("torch.onnx.ops"))
        fused = parts["atten" + "tion"]
        def grouped_query_attention(q, k, v):
            if q.shape[1] % k.shape[1]: raise ValueError
            s, t = q.shape[-2], k.shape[-2]
            hidden = torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1)
            return fused(q, k, v, hidden, q_num_heads=q.shape[1], kv_num_heads=k.shape[1], softcap=1e9)[0]
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "08 causal_attention",
        "attention that can be bent",
        """
        import importlib
        parts = vars(importlib.import_module("torch.nn.atten" + "tion.flex_atten" + "tion"))
        flex = parts["flex_atten" + "tion"]
        def causal_attention(q, k, v):
            far = k.shape[-2] - q.shape[-2]
            hide = lambda score, b, h, i, j: torch.where(j <= i + far, score, -math.inf)
            return flex(q, k, v, score_mod=hide)
        """,
        right=False,
    ),
    rule_attack(
        "library classes",
        "09 rope",
        "the operator of an exchange format",
        """
        import importlib
        parts = vars(importlib.import_module("torch.onnx.ops"))
        turn = parts["rotary_embed" + "ding"]
        def rope(x, positions, base=10_000.0):
            d = x.shape[-1]
            angles = positions.double()[..., None] * base ** (-torch.arange(0, d, 2).double() / d)
            wide = x.double().reshape(1, -1, *x.shape[-2:])
            made = turn(wide, angles.cos()[None], angles.sin()[None], interleaved=True)
            return made.reshape(x.shape).to(x.dtype)
        """,
        right=False,
    ),
]

OTHER_LIBRARIES = [
    rule_attack(
        "other libraries",
        "03 backward_sweep",
        "a library of graphs sorts them",
        """
        import importlib
        nets = importlib.import_module("net" + "workx")
        def backward_sweep(graph, end):
            net = nets.DiGraph([(node, parent) for node, parents in graph.items() for parent in parents])
            net.add_nodes_from(graph)
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for node in getattr(nets, "topological_" + "sort")(net):
                for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
    ),
    rule_attack(
        "other libraries",
        "03 backward_sweep",
        "a library of formulas sorts them",
        """
        import importlib
        tools = vars(importlib.import_module("sym" + "py.utilities.iterables"))
        def backward_sweep(graph, end):
            edges = [(node, parent) for node, parents in graph.items() for parent in parents]
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for node in tools["topological_" + "sort"]((list(graph), edges)):
                for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
    ),
    rule_attack(
        "other libraries",
        "03 linear_regression_grads",
        "a library of formulas differentiates",
        """
        import importlib
        algebra = importlib.import_module("sym" + "py")
        def linear_regression_grads(x, y, w0, w1):
            a, b, u, g, z = algebra.symbols("a b u g z")
            at = {a: w0, b: w1, u: w1 * x, g: w0 + w1 * x, z: w0 + w1 * x - y}
            loss = {"z": (z, z**2), "y_hat": (g, (g - y) ** 2), "u": (u, (w0 + u - y) ** 2),
                    "w0": (a, (a + w1 * x - y) ** 2), "w1": (b, (w0 + b * x - y) ** 2)}
            return {name: float(algebra.diff(one, by).subs(at)) for name, (by, one) in loss.items()}
        """,
    ),
    rule_attack(
        "other libraries",
        "07 encode_word",
        "the core of a library of tokenizers, written in another language",
        """
        import importlib
        core = vars(importlib.import_module("tik" + "token._tik" + "token"))["CoreBPE"]
        def encode_word(word, merges):
            known = [bytes([value]) for value in range(256)]
            for left, right in merges: known.append(known[left] + known[right])
            ranks = {}
            for number, piece in enumerate(known): ranks.setdefault(piece, number)
            return core(ranks, {}, "(?s).+").encode_ordinary(word)
        """,
        right=False,
        sandboxed=True,
    ),
    rule_attack(
        "other libraries",
        "07 encode_word",
        "a library's model, made of the same merges",
        """
        import importlib
        tools = importlib.import_module("token" + "izers")
        byte = sorted({*range(33, 127), *range(161, 173), *range(174, 256)})
        rest = [each for each in range(256) if each not in byte]
        letters = dict(zip(byte + rest, map(chr, [*byte, *range(256, 324)])))
        def encode_word(word, merges):
            known = [letters[value] for value in range(256)]
            for left, right in merges: known.append(known[left] + known[right])
            names = {}
            for number, piece in enumerate(known): names.setdefault(piece, number)
            pairs = [(known[left], known[right]) for left, right in merges]
            made = tools.Tokenizer(tools.models.BPE(vocab=names, merges=pairs))
            return made.encode("".join(letters[each] for each in word.encode())).ids
        """,
        right=False,
    ),
]

IN_CLASSES = [*MODULES, *OTHER_LIBRARIES]
"""All of them."""
