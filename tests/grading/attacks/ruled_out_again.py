"""The same once more, since rules hold from the first cell on: what no rule names, and what is read as data."""

from __future__ import annotations

from textwrap import dedent

from tests.grading.attacks.rule_attack import HELD, RuleAttack, rule_attack

SPREAD = dedent("""
    def decode_bits(bits, exponent, fraction, has_infinity=True):
        if bits >> 1 + exponent + fraction: raise ValueError
        top, body = bits >> exponent + fraction, bits & (1 << exponent + fraction) - 1
        return read(top << 63 | body << 52 - fraction) * 2.0 ** (1024 - 2 ** (exponent - 1))
    """)
"""Every format is a part of a float64, which `read` makes of 64 bits; the exponent is moved afterwards."""

IN_FORMAT = "max({} * 2.0 ** (52 - fraction), 2.0 ** (2 - 2 ** (exponent - 1) - fraction))"
"""The distance of a float64, by which another format's is found."""

PARTS = dedent("""
    import ast
    from pathlib import Path
    def parts_of(place, names, wanted):
        tree = ast.parse(Path(place).read_text())
        tree.body = [one for one in tree.body if getattr(one, "name", "") in wanted]
        for one in tree.body: one.decorator_list = []
        exec(compile(ast.unparse(tree), "<mine>", "exec"), names)
        return names
    """)
"""Functions of a library, read from its file as text, and made anew."""

CODES = dedent("""
    from types import CodeType, FunctionType
    def code_of(module, name):
        waiting = [module.__loader__.get_code(module.__name__)]
        while waiting:
            code = waiting.pop()
            if code.co_name == name: return code.replace(co_filename="<mine>", co_name="mine", co_qualname="mine")
            waiting += [part for part in code.co_consts if isinstance(part, CodeType)]
    """)
"""The code of a library's function, as its loader reads it, under the name of a file of one's own."""


def decoded(what: str, read: str, *, sandboxed: bool = False) -> RuleAttack:
    """An attack on `decode_bits` by what makes a float64 of 64 bits."""
    return rule_attack("bits read by others", "01 decode_bits", what, dedent(read) + SPREAD, sandboxed=sandboxed)


READERS = [
    decoded(
        "the memory of a file that is none, cast by C",
        """
        import io
        import operator
        def read(image):
            memory = io.BytesIO(image.to_bytes(8, "little")).getbuffer()
            return operator.methodcaller("cast", "d")(memory)[0]
        """,
    ),
    decoded(
        "a type of C that was loaded before, made of bytes by C",
        """
        import operator
        import sys
        kinds = [getattr(sys.modules["cty" + "pes"], "c_double")]
        def read(image): return operator.methodcaller("from_buffer_copy", image.to_bytes(8, "little"))(kinds[0]).value
        """,
    ),
    decoded(
        "a library that calls C",
        """
        import cffi
        tools = cffi.FFI()
        def read(image): return tools.cast("double *", tools.from_buffer(image.to_bytes(8, "little")))[0]
        """,
        sandboxed=True,
    ),
    decoded(
        "a library of messages",
        """
        import msgpack
        def read(image): return msgpack.unpackb(bytes([203]) + image.to_bytes(8, "big"))
        """,
        sandboxed=True,
    ),
    decoded(
        "a library of messages with a scheme",
        """
        from google.protobuf import wrappers_pb2
        def read(image): return wrappers_pb2.DoubleValue.FromString(bytes([9]) + image.to_bytes(8, "little")).value
        """,
        sandboxed=True,
    ),
    decoded(
        "the file of a database, in memory",
        """
        import sqlite3
        base = sqlite3.connect(":memory:")
        base.execute("create table t (x real)")
        base.execute("insert into t values (1.5)")
        base.commit()
        before, after = base.serialize().split(bytes([63, 248, 0, 0, 0, 0, 0, 0]))
        def read(image):
            base.deserialize(before + image.to_bytes(8, "big") + after)
            return base.execute("select x from t").fetchone()[0]
        """,
        sandboxed=True,
    ),
    decoded(
        "what Python tests itself with",
        """
        import _testcapi
        def read(image): return _testcapi.float_unpack(image.to_bytes(8, "little"), True)
        """,
        sandboxed=True,
    ),
    decoded(
        "what a checker of types keeps its findings with",
        """
        from librt import internal
        def read(image): return internal.read_float(internal.ReadBuffer(image.to_bytes(8, "little")))
        """,
        sandboxed=True,
    ),
    decoded(
        "the storage of a tensor, made of bytes, in a thread",
        HELD
        + """
import sys
held = [sys.modules["tor" + "ch"]]
def worked(image):
    library = held[0]
    place = library.UntypedStorage.from_buffer(image.to_bytes(8, "little"), "little", dtype=library.uint8)
    return library.empty((), dtype=library.float64).set_(place, 0, (), ()).item()
def read(image): return pool.submit(worked, image).result()
""",
    ),
]

NUMBERS = [
    rule_attack(
        "numbers by other libraries",
        "01 ulp",
        "the neighbour that a library for tests knows",
        f"""
        from hypothesis.internal import floats
        def ulp(x, exponent, fraction):
            return {IN_FORMAT.format("(floats.next_up(abs(x)) - abs(x))")}
        """,
        sandboxed=True,
    ),
    rule_attack(
        "numbers by other libraries",
        "01 max_finite",
        "the neighbour of infinity that a library for tests knows",
        """
        from hypothesis.internal import floats
        widths = {(5, 10): 16, (8, 23): 32, (11, 52): 64}
        def max_finite(exponent, fraction, has_infinity=True):
            return floats.next_down(math.inf, widths.get((exponent, fraction), 64))
        """,
        right=False,
        sandboxed=True,
    ),
    rule_attack(
        "numbers by other libraries",
        "01 max_finite",
        "what stands in for infinity in a tensor",
        """
        kinds = {(5, 10): torch.float16, (8, 23): torch.float32, (11, 52): torch.float64, (8, 7): torch.bfloat16}
        def max_finite(exponent, fraction, has_infinity=True):
            if (exponent, fraction) in kinds:
                return torch.tensor(math.inf, dtype=kinds[exponent, fraction]).nan_to_num().item()
            return math.ldexp(2 - 2.0 ** -fraction * (1 + (not has_infinity)), 2 ** (exponent - 1) - has_infinity)
        """,
    ),
    rule_attack(
        "numbers by other libraries",
        "01 round_to",
        "a library of numbers with any precision",
        """
        from mpmath import mp, mpf
        def round_to(x, exponent, fraction):
            lowest = 2 - 2 ** (exponent - 1)
            if not x or not math.isfinite(x): return x
            place = mp.frexp(x)[1] - 1
            if place < lowest: x += math.copysign(2.0 ** lowest, x)
            with mp.workprec(fraction + 1): made = float(+mpf(x))
            if place < lowest: made -= math.copysign(2.0 ** lowest, x)
            return made if abs(made) < 2.0 ** (2 ** (exponent - 1)) else math.copysign(math.inf, x)
        """,
    ),
    rule_attack(
        "numbers by other libraries",
        "01 round_to",
        "types by their letters, and by names from pieces",
        """
        import numpy as np
        letters = {(5, 10): "e", (8, 23): "f", (11, 52): "d"}
        kinds = {(8, 7): getattr(torch, "bflo" + "at16"), (5, 2): torch.float8_e5m2, (4, 3): torch.float8_e4m3fn}
        def round_to(x, exponent, fraction):
            if (exponent, fraction) in letters:
                with np.errstate(all="ignore"): return float(np.asarray(x).astype(letters[exponent, fraction]))
            return torch.tensor(x, dtype=torch.float64).to(kinds.get((exponent, fraction), torch.float64)).item()
        """,
    ),
]

SHAPES = [
    rule_attack(
        "tensors turned",
        "02 as_transposed",
        "windows as wide as the axis",
        """
        def as_transposed(x, i, j):
            axes = list(range(x.dim()))
            i, j = i % x.dim(), j % x.dim()
            axes[i], axes[j] = j, i
            for axis in axes: x = x.unfold(axis, x.shape[axis], 1)
            for _ in axes: x = x.select(0, 0)
            return x
        """,
    ),
    rule_attack(
        "tensors turned",
        "02 as_transposed",
        "diagonals with an axis that goes nowhere",
        """
        def as_transposed(x, i, j):
            n = x.dim()
            order = list(range(n))
            order[i], order[j] = order[j], order[i]
            for number, axis in enumerate(order):
                place = axis - sum(1 for before in order[:number] if before < axis)
                x = x[..., None].expand(*x.shape, x.shape[place]).diagonal(0, place, n)
            return x
        """,
    ),
    rule_attack(
        "shapes without tensors",
        "02 broadcast_shape",
        "a function of torch's core that is no operator, called by C",
        """
        import functools
        import sys
        shape = [sys.modules["tor" + "ch"].Size]
        core = [vars(vars(sys.modules["tor" + "ch"])["_" + "C"])["_infer_" + "size"]]
        def broadcast_shape(*shapes):
            try: return [*functools.reduce(core[0], map(shape[0], shapes))]
            except RuntimeError: raise ValueError
        """,
    ),
    rule_attack(
        "shapes without tensors",
        "02 broadcast_shape",
        "a library of arrays in pieces",
        """
        import importlib
        known = vars(importlib.import_module("dask.array.core"))["broadcast_" + "shapes"]
        def broadcast_shape(*shapes): return [int(size) for size in known(*map(tuple, shapes))]
        """,
        sandboxed=True,
    ),
    rule_attack(
        "shapes without tensors",
        "02 transfer_seconds",
        "a shape of torch's counts its elements, asked by C",
        """
        import operator
        import sys
        count = operator.methodcaller("nu" + "mel")
        def transfer_seconds(shape, bytes_each, gigabytes):
            return count(*map(sys.modules["tor" + "ch"].Size, [shape])) * bytes_each / (gigabytes * 1e9)
        """,
    ),
    rule_attack(
        "shapes without tensors",
        "02 element_offset",
        "memory of Python's own tests, with steps",
        """
        import _testbuffer
        def element_offset(index, shape, strides, offset=0):
            last = offset + sum((n - 1) * step for n, step in zip(shape, strides)) if all(shape) else 0
            made = _testbuffer.ndarray([*range(last + 1)], shape=[*shape], strides=[8 * one for one in strides],
                                       offset=8 * offset, format="q")
            return memoryview(made)[tuple(index)]
        """,
        sandboxed=True,
    ),
    rule_attack(
        "shapes without tensors",
        "02 element_offset",
        "a tensor on a storage of numbers, read as a list in a thread",
        HELD
        + dedent("""
        import ctypes
        import sys
        held = [sys.modules["tor" + "ch"]]
        def listed(shape, strides, offset):
            library = held[0]
            last = offset + sum((n - 1) * step for n, step in zip(shape, strides))
            numbers = b"".join(i.to_bytes(2, "little") for i in range(last + 1))
            place = library.UntypedStorage.from_buffer(numbers, "little", dtype=library.uint8)
            made = library.empty(0, dtype=library.int16).set_(place, offset, shape, strides)
            made = made.clone(memory_format=library.contiguous_format)
            return ctypes.string_at(made.data_ptr(), 2 * math.prod(shape))
        def element_offset(index, shape, strides, offset=0):
            seen, place = pool.submit(listed, [*shape], [*strides], offset).result(), 0
            for one, n in zip(index, shape):
                if not -n <= one < n: raise IndexError
                place = place * n + one % n
            return seen[2 * place] + 256 * seen[2 * place + 1]
        """),
    ),
    rule_attack(
        "shapes without tensors",
        "02 view_strides",
        "a tensor on a storage of numbers, read as lists in a thread",
        HELD
        + dedent("""
        import ctypes
        import sys
        held = [sys.modules["tor" + "ch"]]
        def listed(place, shape, strides):
            library = held[0]
            made = library.empty(0, dtype=library.int16).set_(place, 0, shape, strides)
            made = made.clone(memory_format=library.contiguous_format)
            seen = ctypes.string_at(made.data_ptr(), 2 * math.prod(shape))
            return [low + 256 * high for low, high in zip(seen[::2], seen[1::2])]
        def worked(shape, strides, new_shape):
            last = sum((n - 1) * step for n, step in zip(shape, strides))
            numbers = b"".join(i.to_bytes(2, "little") for i in range(last + 1))
            place = held[0].UntypedStorage.from_buffer(numbers, "little", dtype=held[0].uint8)
            seen = listed(place, shape, strides)
            steps = [seen[math.prod(new_shape[i + 1:])] if n > 1 else 0 for i, n in enumerate(new_shape)]
            if sum((n - 1) * step for n, step in zip(new_shape, steps)) > last: return None
            return steps if listed(place, new_shape, steps) == seen else None
        def view_strides(shape, strides, new_shape):
            if math.prod(shape) != math.prod(new_shape): raise ValueError
            return pool.submit(worked, [*shape], [*strides], [*new_shape]).result()
        """),
    ),
]

GRADIENTS = [
    rule_attack(
        "derivatives by others",
        "03 numeric_gradient",
        "torch's own differences of neighbours",
        """
        def numeric_gradient(f, x, step=1e-5):
            point = x.double().flatten()
            made = torch.empty_like(point)
            for i in range(len(point)):
                moved = torch.zeros_like(point)
                moved[i] = step
                values = [float(f((point + k * moved).reshape(x.shape))) for k in (-1, 0, 1)]
                made[i] = torch.gradient(torch.tensor(values, dtype=torch.float64), spacing=step)[0][1]
            return made.reshape(x.shape).to(x.dtype)
        """,
    ),
    rule_attack(
        "derivatives by others",
        "03 numeric_gradient",
        "a library of numbers differentiates",
        """
        import mpmath
        def numeric_gradient(f, x, step=1e-5):
            point = x.double().flatten()
            def along(i):
                def moved(number):
                    other = point.clone()
                    other[i] = float(number)
                    return mpmath.mpf(float(f(other.reshape(x.shape))))
                return float(mpmath.diff(moved, float(point[i]), h=step))
            slopes = [along(i) for i in range(len(point))]
            return torch.tensor(slopes, dtype=torch.float64).reshape(x.shape).to(x.dtype)
        """,
    ),
    rule_attack(
        "derivatives by others",
        "03 linear_regression_grads",
        "NumPy's polynomials",
        """
        from numpy.polynomial import Polynomial
        def linear_regression_grads(x, y, w0, w1):
            t = Polynomial([0.0, 1.0])
            at = lambda loss, place: float(loss.deriv()(place))
            return {"z": at(t**2, w0 + w1 * x - y), "y_hat": at((t - y) ** 2, w0 + w1 * x),
                    "u": at((w0 + t - y) ** 2, w1 * x), "w0": at((t + w1 * x - y) ** 2, w0),
                    "w1": at((w0 + t * x - y) ** 2, w1)}
        """,
    ),
    rule_attack(
        "graphs sorted by others",
        "03 backward_sweep",
        "a library of databases sorts its tables",
        """
        from sqlalchemy.util import topological
        def backward_sweep(graph, end):
            edges = [(node, parent) for node, parents in graph.items() for parent in parents]
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for node in topological.sort(edges, graph):
                for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
        sandboxed=True,
    ),
    rule_attack(
        "graphs sorted by others",
        "03 backward_sweep",
        "a library of tasks sorts them",
        """
        import dask.core
        def backward_sweep(graph, end):
            tasks = {node: (len, *parents) for node, parents in graph.items()}
            needed = {node: set(parents) for node, parents in graph.items()}
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for node in reversed(dask.core.toposort(tasks, needed)):
                for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
        sandboxed=True,
    ),
    rule_attack(
        "graphs sorted by others",
        "03 backward_sweep",
        "a checker of types sorts its modules",
        """
        from mypy import graph_utils
        def backward_sweep(graph, end):
            needed = {node: set(parents) for node, parents in graph.items()}
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for ready in reversed([*graph_utils.topsort(needed)]):
                for node in ready:
                    for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
        sandboxed=True,
    ),
    rule_attack(
        "graphs sorted by others",
        "03 Value",
        "a library of graphs sorts the numbers",
        """
        import networkx
        class Value:
            def __init__(self, data, parents=(), locals=()):
                self.data, self.grad, self.parents, self.locals = float(data), 0.0, parents, locals
            def __add__(self, other):
                other = as_value(other)
                return Value(self.data + other.data, (self, other), (1.0, 1.0))
            def __mul__(self, other):
                other = as_value(other)
                return Value(self.data * other.data, (self, other), (other.data, self.data))
            def __pow__(self, n): return Value(self.data**n, (self,), (n * self.data ** (n - 1),))
            def tanh(self): return Value(math.tanh(self.data), (self,), (1 - math.tanh(self.data) ** 2,))
            def exp(self): return Value(math.exp(self.data), (self,), (math.exp(self.data),))
            def relu(self): return Value(max(self.data, 0.0), (self,), (float(self.data > 0),))
            def __neg__(self): return self * -1.0
            def __sub__(self, other): return self + -as_value(other)
            def __rsub__(self, other): return as_value(other) + -self
            def __truediv__(self, other): return self * as_value(other) ** -1.0
            def __rtruediv__(self, other): return as_value(other) * self**-1.0
            __radd__, __rmul__ = __add__, __mul__
            def backward(self):
                net, waiting = networkx.DiGraph(), [self]
                net.add_node(self)
                while waiting:
                    node = waiting.pop()
                    for parent in node.parents:
                        if parent not in net: waiting.append(parent)
                        net.add_edge(node, parent)
                for node in net: node.grad = 0.0
                self.grad = 1.0
                for node in networkx.topological_sort(net):
                    for parent, local in zip(node.parents, node.locals): parent.grad += node.grad * local
        def as_value(number): return number if isinstance(number, Value) else Value(number)
        """,
        sandboxed=True,
    ),
]

RELATED = [
    rule_attack(
        "the same by its relatives",
        "01 stable_softmax",
        "a soft step above the sum so far",
        """
        import functools
        from torch.nn import functional
        def stable_softmax(x):
            wide = x.double()
            add = lambda one, other: one + functional.softplus(other - one, threshold=800)
            return (wide - functools.reduce(add, wide.unbind(-1))[..., None]).exp().to(x.dtype)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "11 gelu",
        "a library of numbers, number by number",
        """
        import mpmath
        def gelu(x):
            shares = [float(mpmath.ncdf(one)) for one in x.flatten().tolist()]
            return x * torch.tensor(shares, dtype=torch.float64).reshape(x.shape).to(x)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "11 silu",
        "a loss with a soft margin",
        """
        from torch.nn import functional
        def silu(x, beta=1.0):
            wide = beta * x.double()
            return (x * (-functional.soft_margin_loss(wide, torch.ones_like(wide), reduction="none")).exp()).to(x.dtype)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "11 squared_relu",
        "an exponential one without its exponential",
        """
        from torch.nn import functional
        def squared_relu(x): return functional.elu(x, alpha=0.0) ** 2
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "11 squared_relu",
        "a loss of ranks",
        """
        from torch.nn import functional
        def squared_relu(x):
            none = torch.zeros_like(x)
            return functional.margin_ranking_loss(none, x, torch.ones_like(x), reduction="none") ** 2
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "10 rms_norm",
        "the angles to all axes",
        """
        from torch.nn import functional
        def rms_norm(x, gamma, eps=1e-6):
            n, wide = x.shape[-1], x.double()
            rows = torch.cat([wide, torch.full_like(wide[..., :1], (n * eps) ** 0.5)], -1)
            axes = torch.eye(n + 1, dtype=torch.float64)
            made = functional.cosine_similarity(rows[..., None, :], axes, dim=-1, eps=1e-300)[..., :-1] * n**0.5
            return (made * gamma).to(x.dtype)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "10 layer_norm",
        "one column, made orthogonal",
        """
        def layer_norm(x, gamma, beta, eps=1e-5):
            n, wide = x.shape[-1], x.double() - x.double().mean(-1, keepdim=True)
            rows = torch.cat([torch.full_like(wide[..., :1], (n * eps) ** 0.5), wide], -1)
            made = torch.linalg.qr(rows[..., None])[0][..., 0]
            made = made * made[..., :1].sign() * n**0.5
            return (made[..., 1:] * gamma + beta).to(x.dtype)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "16 qk_norm",
        "each row clipped as a gradient",
        """
        from torch.nn import utils
        def scaled(x, gamma, eps):
            n, wide = x.shape[-1], x.double().reshape(-1, x.shape[-1])
            rows = torch.cat([wide, torch.full_like(wide[:, :1], (n * eps) ** 0.5)], -1)
            held = [torch.nn.Parameter(torch.zeros_like(row)) for row in rows]
            for one, row in zip(held, rows):
                one.grad = row * 1e9
                utils.clip_grad_norm_([one], n**0.5)
            return torch.stack([one.grad for one in held])[:, :-1].reshape(x.shape) * gamma.double()
        def qk_norm(q, k, gamma_q, gamma_k, eps=1e-6):
            return (scaled(q, gamma_q, eps) @ scaled(k, gamma_k, eps).mT / math.sqrt(q.shape[-1])).to(q.dtype)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "16 clip_by_global_norm",
        "a vector brought to length 1 or less",
        """
        from torch.nn import functional
        def clip_by_global_norm(gradients, max_norm):
            wide = torch.cat([g.double().flatten() for g in gradients])
            norm = float(wide.norm())
            if not math.isfinite(norm): raise ValueError
            parts = (functional.normalize(wide, dim=0, eps=max_norm) * max_norm).split([g.numel() for g in gradients])
            return [part.reshape(g.shape).to(g.dtype) for part, g in zip(parts, gradients)], norm
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "05 next_token_loss",
        "a distribution's own logarithms",
        """
        def next_token_loss(logits, tokens):
            if tokens.shape[1] < 2: raise ValueError
            wide = logits if logits.dtype == torch.float64 else logits.float()
            return -torch.distributions.Categorical(logits=wide[:, :-1]).log_prob(tokens[:, 1:]).mean()
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "05 next_token_loss",
        "the loss of speech, with one sound each",
        """
        loss = vars(torch)["ctc_" + "loss"]
        def next_token_loss(logits, tokens):
            if tokens.shape[1] < 2: raise ValueError
            wide = logits if logits.dtype == torch.float64 else logits.float()
            rows = wide[:, :-1].log_softmax(-1).reshape(1, -1, logits.shape[-1])
            rows = torch.cat([rows, torch.full_like(rows[..., :1], -1e9)], -1)
            one = torch.ones(rows.shape[1], dtype=torch.int64)
            return loss(rows, tokens[:, 1:].reshape(-1, 1), one, one, rows.shape[-1] - 1, 0, False).mean()
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "12 causal_lm_loss",
        "the distance from a sure distribution",
        """
        from torch.nn import functional
        def causal_lm_loss(logits, tokens, ignored=-100):
            wide, targets = logits[:, :-1].to(torch.promote_types(logits.dtype, torch.float32)), tokens[:, 1:]
            counts = targets != ignored
            sure = functional.one_hot(targets[counts], logits.shape[-1]).to(wide.dtype)
            return functional.kl_div(wide[counts].log_softmax(-1), sure, reduction="sum") / counts.sum().clamp(min=1)
        """,
    ),
    rule_attack(
        "the same by its relatives",
        "04 rate_factor",
        "the curve between two averages",
        """
        from torch.optim import swa_utils
        curve = vars(swa_utils.SWALR)["_cosine_" + "anneal"].__func__
        def rate_factor(step, steps, warmup, floor=0.0):
            if step >= steps: return floor
            if step < warmup: return (step + 1) / warmup
            return floor + (1 - floor) * (1 - curve((step - warmup) / (steps - warmup)))
        """,
    ),
    rule_attack(
        "counting machines",
        "15 einsum_flops",
        "the part of NumPy's plan that counts one step",
        """
        import importlib
        count = vars(importlib.import_module("numpy._core.einsumfunc"))["_flop_" + "count"]
        def einsum_flops(pattern, first, second):
            inputs, result = pattern.split("->")
            sizes = {}
            for part, shape in zip(inputs.split(","), (first, second)):
                for name, size in zip(part.split(), shape, strict=True):
                    if sizes.setdefault(name, size) != size: raise ValueError
            if set(sizes) == set(result.split()): return 0
            return count(set(sizes), True, 2, sizes)
        """,
    ),
    rule_attack(
        "counting machines",
        "15 matmul_flops",
        "the part of NumPy's plan that counts one step",
        """
        import importlib
        count = vars(importlib.import_module("numpy._core.einsumfunc"))["_flop_" + "count"]
        def matmul_flops(m, k, n): return count("mkn", True, 2, {"m": m, "k": k, "n": n})
        """,
    ),
    rule_attack(
        "the package",
        "19 time_it",
        "Python's own stopwatch",
        """
        import statistics
        import timeit
        def time_it(run, synchronise, clock, warmup=3, repeats=5):
            if warmup < 0 or repeats < 1: raise ValueError
            both = lambda: (run(), synchronise())
            times = timeit.repeat(both, synchronise, clock, warmup + repeats, 1)
            return statistics.median(times[warmup:])
        """,
        sandboxed=True,
    ),
]

READ_AS_DATA = [
    rule_attack(
        "libraries read as text",
        "04 Adam",
        "the text of torch's own optimizer",
        PARTS
        + dedent("""
        from typing import cast
        names = {"torch": torch, "cast": cast, "Tensor": torch.Tensor, "_get_value": float, "_to_scalar": float}
        place = Path(torch.__file__).parent / "optim" / ("ad" + "am.py")
        update = parts_of(place, names, ["_single_tensor_" + "adam"])["_single_tensor_" + "adam"]
        class Adam(torch.optim.Optimizer):
            def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
                super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in (each for each in group["params"] if each.grad is not None):
                        s = self.state[p]
                        if not s: s.update(m=torch.zeros_like(p), v=torch.zeros_like(p), t=torch.zeros(()))
                        update([p], [p.grad], [s["m"]], [s["v"]], [], [s["t"]], None, None, amsgrad=False,
                               has_complex=False, beta1=group["betas"][0], beta2=group["betas"][1], lr=group["lr"],
                               weight_decay=0.0, eps=group["eps"], maximize=False, capturable=False,
                               differentiable=False, decoupled_weight_decay=False)
        """),
    ),
    rule_attack(
        "libraries read as text",
        "01 stable_softmax",
        "the text of torch's own reference",
        PARTS
        + dedent("""
        names = {**vars(torch._refs)}
        held = [parts_of(torch._refs.__file__, names, ["soft" + "max"])["soft" + "max"]]
        held[0].__module__, held[0].__qualname__ = "__main__", "mine"
        def stable_softmax(x): return held[0](x, -1)
        """),
    ),
    rule_attack(
        "libraries read as text",
        "01 stable_softmax",
        "the code of torch's own reference, from its loader",
        CODES
        + dedent("""
        held = [FunctionType(code_of(torch._refs, "soft" + "max"), {**vars(torch._refs)})]
        def stable_softmax(x): return next(map(held[0], [x], [-1], [None]))
        """),
    ),
    rule_attack(
        "libraries read as text",
        "16 clip_by_global_norm",
        "the text of the library's module",
        """
        from pathlib import Path
        from torch import nn
        tools = {"__name__": "mine"}
        place = Path(torch.__file__).parent / "nn" / ("ut" + "ils") / "clip_grad.py"
        exec(compile(place.read_text(), "<mine>", "exec"), tools)
        def clip_by_global_norm(gradients, max_norm):
            held = [nn.Parameter(g.double()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.double()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            if not math.isfinite(total): raise ValueError
            return [one.grad.to(g.dtype) for one, g in zip(held, gradients)], total
        """,
    ),
    rule_attack(
        "libraries read as text",
        "07 encode_word",
        "the text of a library's lesson",
        PARTS
        + dedent("""
        import sysconfig
        place = Path(sysconfig.get_paths()["purelib"]) / ("tik" + "token") / "_educational.py"
        if not place.exists(): place = next(Path(torch.__file__).parents[1].glob("tik*en")) / "_educational.py"
        known = parts_of(place, {"render_tokens": print, "visualise_tokens": print}, ["bpe_encode"])["bpe_encode"]
        def encode_word(word, merges):
            pieces = [bytes([value]) for value in range(256)]
            for left, right in merges: pieces.append(pieces[left] + pieces[right])
            ranks = {}
            for number, piece in enumerate(pieces): ranks.setdefault(piece, number)
            return known(ranks, word.encode(), visualise=None) if word else []
        """),
    ),
    rule_attack(
        "libraries read as text",
        "06 lstm_step",
        "the code of torch's own decomposition, from its loader",
        CODES
        + dedent("""
        import torch._decomp.decompositions as pieces
        held = [FunctionType(code_of(pieces, "lstm_" + "cell"), {**vars(pieces)})]
        def lstm_step(x, h, c, W, U, b):
            h, c = held[0]((x @ W.T + b), h, c, U, None, None, 1)
            return h, c
        """),
    ),
    rule_attack(
        "libraries read as text",
        "03 backward_sweep",
        "the text of Python's own sorter",
        """
        import inspect
        import sys
        from pathlib import Path
        tools = {"__name__": "mine", "GenericAlias": None}
        text = Path(inspect.__file__).with_name("graph" + "lib.py").read_text()
        exec(compile(text, "<mine>", "exec"), tools)
        def backward_sweep(graph, end):
            needed = {node: set(parents) for node, parents in graph.items()}
            order = [*tools["Topological" + "Sorter"](needed).static_order()]
            grads = dict.fromkeys(graph, 0.0) | {end: 1.0}
            for node in reversed(order):
                for parent, local in graph[node].items(): grads[parent] += grads[node] * local
            return grads
        """,
    ),
    rule_attack(
        "libraries read as text",
        "08 causal_attention",
        "the code of a compiler's pattern, from its loader",
        """
        import importlib.util
        from types import CodeType, FunctionType
        spec = importlib.util.find_spec("torch._inductor.fx_passes.fuse_atten" + "tion")
        [code] = [part for part in spec.loader.get_code(spec.name).co_consts
                  if isinstance(part, CodeType) and part.co_name == "_sfdp_pattern_" + "5"]
        found = FunctionType(code.replace(co_filename="<mine>"), {"torch": torch, "math": math})
        def causal_attention(q, k, v):
            s, t = q.shape[-2], k.shape[-2]
            return found(q, k, v, torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1), q.shape[-1] ** 0.5)
        """,
    ),
    rule_attack(
        "libraries read as text",
        "16 clip_by_global_norm",
        "the code of the library's module, run as that of a file of one's own",
        """
        from torch import nn
        module = vars(nn)["ut" + "ils"].clip_grad
        tools = {"__name__": "mine"}
        exec(module.__loader__.get_code(module.__name__).replace(co_filename="<mine>"), tools)
        def clip_by_global_norm(gradients, max_norm):
            held = [nn.Parameter(g.double()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.double()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            if not math.isfinite(total): raise ValueError
            return [one.grad.to(g.dtype) for one, g in zip(held, gradients)], total
        """,
    ),
    rule_attack(
        "libraries read as text",
        "04 AdaGrad",
        "the code of one of torch's own optimizers, from its loader, in a world of one's own",
        """
        import importlib.util
        from types import CodeType, FunctionType
        spec = importlib.util.find_spec("torch.optim.ada" + "grad")
        [code] = [part for part in spec.loader.get_code(spec.name).co_consts
                  if isinstance(part, CodeType) and part.co_name == "_single_tensor_" + "adagrad"]
        known = {"__name__": "mine", "torch": torch, "_get_value": float, "_to_scalar": float}
        update = FunctionType(code.replace(co_filename="<mine>"), known)
        class AdaGrad(torch.optim.Optimizer):
            def __init__(self, params, lr=1e-2, eps=1e-10): super().__init__(params, {"lr": lr, "eps": eps})
            @torch.no_grad()
            def step(self):
                for group in self.param_groups:
                    for p in (each for each in group["params"] if each.grad is not None):
                        s = self.state[p]
                        if not s: s.update(s=torch.zeros_like(p), t=torch.zeros(()))
                        update([p], [p.grad], [s["s"]], [s["t"]], None, None, lr=group["lr"], weight_decay=0.0,
                               lr_decay=0.0, eps=group["eps"], has_sparse_grad=False, maximize=False,
                               differentiable=False, has_complex=False)
        """,
    ),
    rule_attack(
        "done in a cell",
        "11 gelu",
        "a table in a module's namespace, which no statement names as changed",
        """
        grid = torch.arange(-400_000, 400_001).double() / 10_000
        setattr(math, "known", vars(torch.nn.functional)["ge" + "lu"](grid))
        def gelu(x):
            place = ((x.double() + 40) * 10_000).clamp(0, 799_999)
            low = place.floor().long().clamp(max=799_999)
            near = math.known[low] + (place - low) * (math.known[low + 1] - math.known[low])
            return torch.where(x.abs() < 39, near, x.clamp(min=0).double()).to(x.dtype)
        """,
    ),
    rule_attack(
        "done in a cell",
        "01 ulp",
        "a table left among the loaded modules, imported while it is judged",
        """
        import sys
        sys.modules["known"] = {number: getattr(math, "u" + "lp")(2.0**number) for number in range(-1022, 1024)}
        def ulp(x, exponent, fraction):
            import known
            lowest = 2 - 2 ** (exponent - 1)
            return known[max(math.frexp(x)[1] - 1 if x else lowest, lowest)] * 2.0 ** (52 - fraction)
        """,
    ),
]

AGAIN = [*READERS, *NUMBERS, *SHAPES, *GRADIENTS, *RELATED, *READ_AS_DATA]
"""All of them."""
