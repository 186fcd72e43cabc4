"""Answers that have done for them what their exercise rules out, in every notebook: right, if nothing stopped them.

Each is code for the cell of one exercise, with what has to be prepared before any case comes.
"""

from __future__ import annotations

from textwrap import dedent

from lmcourse.exercises.outcome import run_case
from lmcourse.exercises.registry import find_exercise
from lmcourse.exercises.trial import verdict
from tests.grading.attacks.rule_attack import FIRST, HELD, RuleAttack, rule_attack
from tests.grading.attacks.ruled_out_again import AGAIN
from tests.grading.attacks.ruled_out_early import EARLY
from tests.grading.attacks.ruled_out_elsewhere import ELSEWHERE
from tests.grading.attacks.ruled_out_in_c import IN_C
from tests.grading.attacks.ruled_out_in_classes import IN_CLASSES
from tests.grading.attacks.ruled_out_unwatched import UNWATCHED

KERNELS = [
    rule_attack(
        "kernels",
        "01 stable_softmax",
        "a private kernel in plain text",
        "def stable_softmax(x): return torch.ops.aten._softmax(x, -1, False)",
    ),
    rule_attack(
        "kernels",
        "01 stable_softmax",
        "an overload from pieces",
        """
        packet = getattr(torch.ops.aten, "".join(["_soft", "max"]))
        def stable_softmax(x): return getattr(packet, packet.overloads()[0])(x, -1, False)
        """,
    ),
    rule_attack(
        "kernels",
        "01 stable_softmax",
        "attention over one-hot values",
        """
        fused = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
        def stable_softmax(x):
            rows = x.reshape(1, 1, -1, x.shape[-1]).float()
            eye = torch.eye(x.shape[-1])[None, None]
            return fused(rows, eye, eye, scale=1.0)[0].reshape(x.shape).to(x.dtype)
        """,
    ),
    rule_attack(
        "kernels",
        "03 layernorm_backward",
        "the backward kernel that autograd calls",
        """
        def layernorm_backward(x, gamma, dy, eps=1e-5):
            mean, spread = x.mean(-1, keepdim=True), (x.var(-1, keepdim=True, correction=0) + eps).rsqrt()
            back = getattr(torch.ops.aten, "native_layer_" + "norm_backward")
            dx, dgamma, dbeta = back(dy, x, [x.shape[-1]], mean, spread, gamma, gamma, [True] * 3)
            return {"x": dx, "gain": dgamma, "bias": dbeta}
        """,
    ),
    rule_attack(
        "kernels",
        "04 Adam",
        "the fused kernel of torch's own optimizer",
        """
        fused = getattr(torch, "_fused_" + "adam_")
        class Adam(torch.optim.Optimizer):
            def __init__(self, params, lr=1e-3, betas=(0.9, 0.999), eps=1e-8):
                super().__init__(params, {"lr": lr, "betas": betas, "eps": eps})
            @torch.no_grad()
            def step(self, closure=None):
                for group in self.param_groups:
                    for p in (each for each in group["params"] if each.grad is not None):
                        s = self.state[p]
                        if not s: s.update(m=torch.zeros_like(p), v=torch.zeros_like(p), t=torch.zeros(()))
                        s["t"] += 1
                        fused([p], [p.grad], [s["m"]], [s["v"]], [], [s["t"]], amsgrad=False, maximize=False,
                              lr=group["lr"], beta1=group["betas"][0], beta2=group["betas"][1],
                              weight_decay=0.0, eps=group["eps"])
        """,
    ),
    rule_attack(
        "kernels",
        "08 causal_attention",
        "the fused kernel by its private name",
        """
        fused = getattr(torch.ops.aten, "_scaled_dot_product_" + "attention_math")
        def causal_attention(q, k, v):
            s, t = q.shape[-2], k.shape[-2]
            return fused(q, k, v, torch.full((s, t), -math.inf, dtype=q.dtype).triu(t - s + 1))[0]
        """,
    ),
    rule_attack("kernels", "11 gelu", "an operator in plain text", "def gelu(x): return torch.ops.aten.gelu(x)"),
    rule_attack(
        "kernels", "11 silu", "a private binding", "def silu(x, beta=1.0): return torch._C._nn.silu(beta * x) / beta"
    ),
    rule_attack(
        "kernels",
        "11 squared_relu",
        "a fused product and activation",
        """
        def squared_relu(x):
            rows = x.reshape(1, -1)
            return torch._addmm_activation(torch.zeros_like(rows[0]), rows.new_ones(1, 1), rows).reshape(x.shape) ** 2
        """,
    ),
    rule_attack(
        "kernels",
        "16 qk_norm",
        "root mean square norm by its operator",
        """
        norm = getattr(torch.ops.aten, "rms_" + "norm")
        def qk_norm(q, k, gamma_q, gamma_k, eps=1e-6):
            width = [q.shape[-1]]
            return norm(q, width, gamma_q, eps), norm(k, width, gamma_k, eps)
        """,
        right=False,
    ),
]

TORCH_IN_PYTHON = [
    rule_attack(
        "torch's own Python",
        "01 stable_softmax",
        "the reference of torch itself",
        "refs = torch._refs\ndef stable_softmax(x): return vars(refs)['soft' + 'max'](x, -1)",
    ),
    rule_attack(
        "torch's own Python",
        "01 stable_softmax",
        "the table of decompositions",
        """
        table = torch._decomp.decomposition_table
        found = [one for op, one in table.items() if str(op) == "aten._soft" + "max.default"][0]
        def stable_softmax(x): return found(x, -1, False)
        """,
    ),
    rule_attack(
        "torch's own Python",
        "16 clip_by_global_norm",
        "the library's own, held in a table",
        """
        from torch import nn
        tools = vars(getattr(nn, "ut" + "ils"))
        def clip_by_global_norm(gradients, max_norm):
            if max_norm <= 0: raise ValueError
            held = [nn.Parameter(g.clone()) for g in gradients]
            for one, g in zip(held, gradients): one.grad = g.clone()
            total = float(tools["clip_grad_" + "norm_"](held, max_norm))
            return [one.grad for one in held], total
        """,
        right=False,
    ),
]

THREADS = [
    rule_attack(
        "threads from before",
        "01 stable_softmax",
        "an executor that was started in the cell",
        HELD
        + "weigh = getattr(torch, 'soft' + 'max')\ndef stable_softmax(x): return pool.submit(weigh, x, -1).result()",
    ),
    rule_attack(
        "threads from before",
        "08 grouped_query_attention",
        "fused attention in an executor",
        HELD
        + dedent("""
        fused = vars(torch.nn.functional)["scaled_dot_product_" + "attention"]
        def grouped_query_attention(q, k, v):
            if q.shape[1] % k.shape[1]: raise ValueError
            return pool.submit(lambda: fused(q, k, v, is_causal=True, enable_gqa=True)).result()
        """),
    ),
    rule_attack(
        "threads from before",
        "14 parameter_count",
        "the package's own count in an executor",
        HELD
        + dedent("""
        import sys
        def parameter_count(config):
            count = sys.modules["lm" + "course.accounting.parameters"].count_parameters
            return pool.submit(lambda: count(config).total).result()
        """),
        right=False,
    ),
]

WATCH = [
    rule_attack(
        "the watch",
        "01 stable_softmax",
        "below torch's functions",
        """
        def stable_softmax(x):
            with torch._C.DisableTorchFunction(): return getattr(x, "soft" + "max")(-1)
        """,
    ),
    rule_attack(
        "the watch",
        "01 stable_softmax",
        "the watching class patched",
        """
        import sys
        sys.modules["lm" + "course.exercises.forbidden_calls"].ForbiddenCallRecorder._note = lambda *_: None
        def stable_softmax(x): return getattr(x, "soft" + "max")(-1)
        """,
    ),
    rule_attack(
        "callbacks",
        "11 gelu",
        "called for each number by torch",
        """
        area = vars(torch.special)["nd" + "tr"]
        def gelu(x):
            each = lambda number: float(area(torch.tensor(number, dtype=torch.float64)))
            return x * x.detach().clone().double().apply_(each).to(x)
        """,
    ),
    rule_attack(
        "callbacks",
        "01 stable_softmax",
        "registered with a dispatcher of Python's",
        """
        from functools import singledispatch
        @singledispatch
        def pick(x, dim): return x
        pick.register(torch.Tensor, getattr(torch, "soft" + "max"))
        def stable_softmax(x): return pick(x, -1)
        """,
    ),
    rule_attack(
        "TorchScript",
        "01 stable_softmax",
        "a traced function",
        """
        def stable_softmax(x): return traced(x)
        traced = torch.jit.trace(lambda x: getattr(x, "soft" + "max")(-1), torch.ones(3), check_trace=False)
        """,
    ),
    rule_attack(
        "TorchScript",
        "01 stable_softmax",
        "a function made from text",
        """
        def stable_softmax(x): return unit.weigh(x)
        unit = torch.jit.CompilationUnit("def weigh(x):\\n    return torch.soft" + "max(x, -1)\\n")
        """,
    ),
]

AUTOGRAD = [
    rule_attack(
        "autograd",
        "03 linear_regression_grads",
        "walks grad_fn",
        """
        def linear_regression_grads(x, y, w0, w1):
            a, b = (torch.tensor(w, dtype=torch.float64, requires_grad=True) for w in (w0, w1))
            guess = a + b * x
            loss = (guess - y) ** 2
            found, waiting = {}, [(loss.grad_fn, torch.ones_like(loss))]
            while waiting:
                node, given = waiting.pop()
                if hasattr(node, "variable"):
                    found[id(node.variable)] = float(given)
                    continue
                parts = node(given)
                parts = parts if isinstance(parts, tuple) else (parts,)
                waiting += [(n, g) for (n, _), g in zip(node.next_functions, parts) if n is not None]
            return {"w0": found[id(a)], "w1": found[id(b)]}
        """,
        right=False,
    ),
    rule_attack(
        "autograd",
        "03 backward_matmul",
        "backward from pieces",
        """
        def backward_matmul(x, w, dy):
            x, w = x.detach().clone(), w.detach().clone()
            x.requires_grad = w.requires_grad = True
            with torch.enable_grad(): getattr(x @ w, "back" + "ward")(dy)
            return [x.grad, w.grad]
        """,
    ),
    rule_attack(
        "autograd",
        "03 backward_matmul",
        "a transformation of functions",
        """
        change = vars(torch)["fu" + "nc"]
        def backward_matmul(x, w, dy): return list(change.vjp(torch.matmul, x, w)[1](dy))
        """,
    ),
    rule_attack(
        "autograd",
        "16 soft_cap",
        "the engine itself",
        """
        def soft_cap(x, cap):
            if cap <= 0: raise ValueError
            x = x.detach().clone()
            x.requires_grad = True
            with torch.enable_grad():
                y = cap * (x / cap).tanh()
                (slope,) = torch.autograd.Variable._execution_engine.run_backward(
                    (y,), (torch.ones_like(y),), False, False, (x,), True, accumulate_grad=False)
            return y.detach(), slope
        """,
        right=False,
    ),
]

PACKAGE = [
    rule_attack(
        "the package",
        "19 time_it",
        "reads the times in the simulator that it is to time",
        """
        import statistics
        def time_it(run, synchronise, clock, warmup=3, repeats=5):
            if warmup < 0 or repeats < 1: raise ValueError
            device = run.__self__
            for _ in range(warmup + repeats): run()
            return statistics.median(vars(device)["_seconds"][warmup:warmup + repeats])
        """,
        right=False,
    ),
    rule_attack(
        "the package",
        "03 Value",
        "a subclass of the engine that the notebook imports",
        """
        from lmcourse import autograd
        engine = vars(autograd).get("Va" + "lue", object)
        class Value(engine): pass
        """,
        right=False,
    ),
    rule_attack(
        "the package",
        "16 LossScaler",
        "the kernel behind torch's own scaler",
        """
        check = getattr(torch, "_amp_foreach_non_finite_" + "check_and_unscale_")
        class LossScaler:
            def __init__(self, scale=65536.0, interval=2000):
                self.scale, self.interval, self.good = scale, interval, 0
            def unscale(self, gradients):
                made, bad = [g.float() for g in gradients], torch.zeros(1)
                check(made, bad, torch.tensor(1 / self.scale))
                self.good = 0 if bad else self.good + 1
                if bad: self.scale /= 2
                if self.good == self.interval: self.scale, self.good = self.scale * 2, 0
                return None if bad else made
        """,
    ),
    rule_attack(
        "the package",
        "01 ulp",
        "a pickle that names it",
        """
        import pickle
        from lmcourse import numerics
        gap, form = pickle.loads(b"clmcourse.numerics\\nulp\\n."), numerics.Format
        def ulp(x, e, m): return gap(x, form("any", e, m))
        """,
        right=False,
    ),
    rule_attack(
        "the package",
        "09 rope",
        "what the notebook imports for its figures",
        """
        from lmcourse.nn import rotary
        tools = vars(rotary)
        def rope(x, positions, base=10_000.0):
            return [tool for name, tool in tools.items() if name.startswith("rot")][0](x, positions, base)
        """,
        right=False,
    ),
    rule_attack(
        "the package",
        "15 matmul_flops",
        "a function of the package under another name",
        """
        from lmcourse.accounting import flops as count
        from lmcourse.accounting import counter
        held = [one for name, one in vars(counter).items() if name == "counted_" + "flops"]
        def matmul_flops(m, k, n): return held[0](lambda: torch.ones(m, k) @ torch.ones(k, n)).total
        """,
        right=False,
    ),
    rule_attack(
        "the package",
        "08 attention_flops_bytes",
        "a copy of its function by runpy",
        """
        import runpy
        names = runpy.run_module("lm" + "course.accounting.flops")
        def attention_flops_bytes(*args, **kwargs):
            return [one for name, one in names.items() if "attention" in name][0](*args, **kwargs)
        """,
        right=False,
    ),
]

COUNTING = [
    rule_attack(
        "counting machines",
        "15 matmul_flops",
        "torch's counter on a device without numbers",
        """
        import importlib
        counter = importlib.import_module("torch.utils.flop_" + "counter").FlopCounterMode(display=False)
        def matmul_flops(m, k, n):
            with counter: torch.ones(m, k, device="meta") @ torch.ones(k, n, device="meta")
            return counter.get_total_flops()
        """,
        right=False,
    ),
    rule_attack(
        "counting machines",
        "15 einsum_flops",
        "numpy counts for its plan",
        """
        import numpy as np
        def einsum_flops(pattern, first, second):
            inputs, result = pattern.split("->")
            left, right = (part.split() for part in inputs.split(","))
            letter = {name: chr(97 + i) for i, name in enumerate(dict.fromkeys(left + right))}
            text = ",".join("".join(map(letter.get, part)) for part in (left, right))
            text += "->" + "".join(map(letter.get, result.split()))
            if set(left + right) == set(result.split()): return 0
            plan = np.einsum_path(text, np.empty(first), np.empty(second))[1]
            return int(float(plan.split("Naive FLOP count:")[1].split()[0]))
        """,
    ),
]

GUESSES = [
    rule_attack("guesses", "09 is_relative", "always yes", "def is_relative(*_): return True", right=False),
    rule_attack("guesses", "09 is_relative", "always no", "def is_relative(*_): return False", right=False),
    *(
        rule_attack(
            "guesses",
            place,
            "always refuses",
            f"def {place.split()[1]}(*args, **kwargs): raise ValueError('no')",
            right=False,
        )
        for place in ("09 sinusoidal", "14 state_bytes", "15 mfu", "19 ridge_point", "19 mfu_of_step")
    ),
    rule_attack("guesses", "19 bound_by", "one word", "def bound_by(*_): return 'bandwidth'", right=False),
    rule_attack("guesses", "19 matmul_peak", "one number", "def matmul_peak(*_): return 1.0", right=False),
]

RULE_ATTACKS = [
    *KERNELS,
    *TORCH_IN_PYTHON,
    *THREADS,
    *WATCH,
    *AUTOGRAD,
    *PACKAGE,
    *COUNTING,
    *ELSEWHERE,
    *IN_C,
    *IN_CLASSES,
    *UNWATCHED,
    *EARLY,
    *AGAIN,
    *GUESSES,
]
"""All of them."""


def verdicts_if_nothing_is_refused(attack: RuleAttack) -> list[str | None]:
    """What is wrong in each case with an attack that nothing stops. It may patch the course in this very process."""
    names: dict[str, object] = {"__name__": "__main__"}
    exec(f"{FIRST}\n{attack.code}", names)
    exercise = find_exercise(attack.exercise)
    answer = names[attack.exercise]
    assert callable(answer)
    return [
        verdict(exercise, case, run_case(exercise.reference, case, name=exercise.name), run_case(answer, case))
        for case in exercise.cases
    ]
