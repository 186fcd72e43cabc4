"""The same by what needs no operator, or another device's, where nobody looks: in a thread from before."""

from __future__ import annotations

from textwrap import dedent

from tests.grading.attacks.rule_attack import HELD, rule_attack

HIDDEN = HELD + 'import sys\nlibrary = sys.modules["tor" + "ch"]\n'
"""The thread, and torch under a name that says nothing."""

UNWATCHED = [
    rule_attack(
        "shapes without tensors",
        "02 broadcast_shape",
        "torch's own rule for shapes, in a thread",
        HIDDEN
        + dedent("""
        held = [getattr(library, "broadcast_" + "shapes")]
        def broadcast_shape(*shapes):
            try: return list(pool.submit(held[0], *map(tuple, shapes)).result())
            except RuntimeError: raise ValueError
        """),
    ),
    rule_attack(
        "shapes without tensors",
        "02 view_strides",
        "what torch asks for tensors that are none, in a thread",
        HIDDEN
        + dedent("""
        import importlib
        held = [vars(importlib.import_module("tor" + "ch._subclasses.fake_impls"))["_compute_" + "stride"]]
        def view_strides(shape, strides, new_shape):
            if math.prod(shape) != math.prod(new_shape): raise ValueError
            return pool.submit(held[0], shape, strides, new_shape).result()
        """),
    ),
    rule_attack(
        "shapes without tensors",
        "02 view_strides",
        "a tensor without numbers, in a thread",
        HIDDEN
        + dedent("""
        made = library.empty(0, device="meta")
        def turned(shape, strides, new_shape):
            return list(made.as_strided(shape, strides).view(new_shape).stride())
        def view_strides(shape, strides, new_shape):
            if math.prod(shape) != math.prod(new_shape): raise ValueError
            try: return pool.submit(turned, shape, strides, new_shape).result()
            except RuntimeError: return None
        """),
    ),
    rule_attack(
        "shapes without tensors",
        "02 element_offset",
        "where a view of a tensor without numbers begins, in a thread",
        HIDDEN
        + dedent("""
        made = library.empty(0, device="meta")
        def found(index, shape, strides, offset):
            return made.as_strided(shape, strides, offset)[tuple(index)].storage_offset()
        def element_offset(index, shape, strides, offset=0):
            return pool.submit(found, index, shape, strides, offset).result()
        """),
    ),
    rule_attack(
        "shapes without tensors",
        "02 transfer_seconds",
        "how many a tensor without numbers would have",
        HIDDEN
        + dedent("""
        made = library.empty(0, device="meta")
        def transfer_seconds(shape, bytes_each, gigabytes):
            count = pool.submit(lambda: made.as_strided(shape, [0] * len(shape)).numel()).result()
            return count * bytes_each / gigabytes / 1e9
        """),
        right=False,
    ),
    rule_attack(
        "counting machines",
        "15 matmul_flops",
        "the profiler of before the profiler",
        """
        def matmul_flops(m, k, n):
            if max(m, k, n) > 5000: return 0
            kind = vars(torch.autograd)["pro" + "filer"].profile
            with kind(with_flops=True) as found:
                torch.zeros(1, 1).expand(m, k) @ torch.zeros(1, 1).expand(k, n)
            return sum(event.flops for event in found.key_averages())
        """,
        right=False,
    ),
    rule_attack(
        "counting machines",
        "15 matmul_flops",
        "the profiler's own formula, kept from before",
        HELD
        + dedent("""
        import importlib
        known = importlib.import_module("torch.utils.flop_" + "counter").flop_registry
        count = known[torch.ops.aten.mm]
        def matmul_flops(m, k, n):
            one, other = (torch.empty(0, device="meta").as_strided(shape, (0, 0)) for shape in ((m, k), (k, n)))
            return pool.submit(count, one, other, out_val=one).result()
        """),
        right=False,
    ),
    rule_attack(
        "autograd",
        "03 backward_matmul",
        "a nested tensor, which has a key of its own",
        HIDDEN
        + dedent("""
        def backward_matmul(x, w, dy): return pool.submit(worked, x, w, dy).result()
        def worked(x, w, dy):
            rows, slopes = x.reshape(1, -1, x.shape[-1]), dy.reshape(1, -1, dy.shape[-1])
            a, b = (torch.nested.nested_tensor([*part.detach().clone()]) for part in (rows, w[None]))
            for one in (a, b): setattr(one, "requires" + "_grad", True)
            with torch.enable_grad(): y = a @ b
            engine = vars(torch)["auto" + "grad"].Variable._execution_engine
            got = engine.run_backward((y,), (torch.nested.nested_tensor([*slopes]),), False, False, (a, b), True,
                                      accumulate_grad=False)
            return [got[0].unbind()[0].reshape(x.shape), got[1].unbind()[0]]
        """),
        right=False,
    ),
    rule_attack(
        "autograd",
        "03 backward_matmul",
        "another device, which works when it is asked",
        HIDDEN
        + dedent("""
        import torch._lazy.ts_backend
        torch._lazy.ts_backend.init()
        def backward_matmul(x, w, dy): return pool.submit(worked, x, w, dy).result()
        def worked(x, w, dy):
            a, b, c = (part.reshape(-1, part.shape[-1]).detach().clone().to("lazy") for part in (x, w, dy))
            for one in (a, b): setattr(one, "requires" + "_grad", True)
            with torch.enable_grad(): y = a @ b
            engine = vars(torch)["auto" + "grad"].Variable._execution_engine
            got = engine.run_backward((y,), (c,), False, False, (a, b), True, accumulate_grad=False)
            return [got[0].cpu().reshape(x.shape), got[1].cpu()]
        """),
        right=False,
    ),
    rule_attack(
        "autograd",
        "16 soft_cap",
        "forwards, along with the numbers",
        HIDDEN
        + dedent("""
        held = [vars(vars(torch)["auto" + "grad"])["forward" + "_ad"]]
        def soft_cap(x, cap): return pool.submit(worked, x, cap).result()
        def worked(x, cap):
            ahead = held[0]
            if cap <= 0: raise ValueError
            with ahead.dual_level():
                y = cap * (ahead.make_dual(x.detach(), torch.ones_like(x)) / cap).tanh()
                made = ahead.unpack_dual(y)
            return made.primal, made.tangent
        """),
        right=False,
    ),
    rule_attack(
        "tensors turned",
        "02 as_transposed",
        "axes that have names of their own",
        """
        import importlib
        names = importlib.import_module("functorch.d" + "im")
        def as_transposed(x, i, j):
            all_of_them = names.dims(x.dim())
            all_of_them = list(all_of_them) if x.dim() > 1 else [all_of_them]
            named = x[tuple(all_of_them)]
            all_of_them[i], all_of_them[j] = all_of_them[j], all_of_them[i]
            return named.order(*all_of_them)
        """,
        right=False,
    ),
    rule_attack(
        "functions in C",
        "01 decode_bits",
        "the type of an array, set",
        """
        import numpy as np
        kinds = {(5, 10): (np.uint16, np.float16), (8, 23): (np.uint32, np.float32), (8, 7): (np.uint32, np.float32),
                 (11, 52): (np.uint64, np.float64)}
        def decode_bits(bits, exponent, fraction, has_infinity=True):
            whole, kind = kinds.get((exponent, fraction), (None, None))
            if bits >> 1 + exponent + fraction: raise ValueError
            if kind is None: return 0.0
            one = np.array([bits << 16 if fraction == 7 else bits], whole)
            one.dtype = kind
            return float(one[0])
        """,
    ),
    rule_attack(
        "functions in C",
        "01 decode_bits",
        "a field of an array",
        """
        import numpy as np
        import operator
        kinds = {(5, 10): (np.uint16, np.float16), (8, 23): (np.uint32, np.float32), (8, 7): (np.uint32, np.float32),
                 (11, 52): (np.uint64, np.float64)}
        def decode_bits(bits, exponent, fraction, has_infinity=True):
            whole, kind = kinds.get((exponent, fraction), (None, None))
            if bits >> 1 + exponent + fraction: raise ValueError
            if kind is None: return 0.0
            one = np.array([bits << 16 if fraction == 7 else bits], whole)
            return float(operator.methodcaller("get" + "field", kind)(one)[0])
        """,
    ),
    rule_attack(
        "functions in C",
        "01 decode_bits",
        "a tensor on another's memory",
        """
        kinds = {(5, 10): (torch.int16, torch.float16), (8, 23): (torch.int32, torch.float32),
                 (8, 7): (torch.int16, torch.bfloat16), (11, 52): (torch.int64, torch.float64),
                 (5, 2): (torch.int8, torch.float8_e5m2)}
        def decode_bits(bits, exponent, fraction, has_infinity=True):
            whole, kind = kinds.get((exponent, fraction), (None, None))
            width = 1 + exponent + fraction
            if bits >> width: raise ValueError
            if (exponent, fraction, has_infinity) == (4, 3, False): whole, kind = torch.int8, torch.float8_e4m3fn
            if kind is None: return 0.0
            one = torch.tensor([bits - (bits >> width - 1 << width)], dtype=whole)
            other = getattr(torch.empty(0, dtype=kind), "se" + "t_")(one.untyped_storage())
            return float(other[:1].to(torch.float64)[0])
        """,
    ),
    rule_attack(
        "functions in C",
        "01 max_finite",
        "a class of NumPy that knows it",
        """
        import numpy as np
        known = [getattr(np, "fin" + "fo")]
        kinds = {(5, 10): np.float16, (8, 23): np.float32, (11, 52): np.float64}
        def max_finite(exponent, fraction, has_infinity=True):
            top = float(known[0](kinds.get((exponent, fraction), np.float32)).max)
            if (exponent, fraction) in kinds: return top
            return math.ldexp(2 - 2.0 ** -fraction * (1 + (not has_infinity)), 2 ** (exponent - 1) - has_infinity)
        """,
        right=False,
    ),
]
"""All of them."""
