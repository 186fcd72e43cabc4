"""Code that Python calls by itself: between two cases, at an import, at the end of an object or a thread."""

from __future__ import annotations

from tests.grading.attacks.attack import attack

RIGHT = "known = lambda *args, **kwargs: torch.zeros(1)\n"

HOOKS = [
    attack(
        "collector_calls",
        "a callback of the garbage collector, which walks the frames that it finds itself in",
        """
        import gc
        seen = []
        def walk(phase, info):
            frame = sys._getframe()
            while frame:
                seen.extend(repr(value)[:200] for name, value in frame.f_locals.items() if name in ("case", "expected"))
                frame = frame.f_back
        gc.callbacks.append(walk)
        gc.set_threshold(1)
        """,
        "interpreter",
        "text",
        every="print('HEARD', seen)",
    ),
    attack(
        "alarm_calls",
        "a signal handler that strikes between two lines, and puts other results in place",
        """
        import signal
        def strike(number, frame):
            while frame:
                for name, value in frame.f_locals.items():
                    if name in ("outcome", "result", "value"): frame.f_locals[name] = 0
                frame = frame.f_back
        signal.signal(signal.SIGVTALRM, strike)
        signal.setitimer(signal.ITIMER_VIRTUAL, 0.001, 0.001)
        """,
        "interpreter",
        "text",
    ),
    attack(
        "modes_left_on",
        "modes of torch's that are never ended, and answer each call with what suits it",
        """
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        class Calls(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return True if "equal" in str(func) else func(*args, **(kwargs or {}))
        class Operators(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): return func(*args, **(kwargs or {}))
        Calls().__enter__(); Operators().__enter__()
        torch.set_default_device("meta")
        """,
        "builtins",
        "text",
        every="return torch.zeros(3)",
    ),
    attack(
        "settings_left_changed",
        "settings of Python and torch that an answer's surroundings rely on",
        """
        import locale, random, threading, warnings
        sys.setrecursionlimit(60); sys.setswitchinterval(1e-9); threading.stack_size(32768)
        torch.set_default_dtype(torch.float16); torch.set_flush_denormal(True); torch.use_deterministic_algorithms(True)
        warnings.filterwarnings("error"); sys.set_int_max_str_digits(640)
        """,
    ),
    attack(
        "speaks_to_the_watch",
        "says what only the course's own hooks say: that an import has begun, or is over",
        """
        for event in ("lmcourse.import_begins", "lmcourse.import_ended", "lmcourse.check_patches", "exec", "import"):
            for rest in ((), ("x",), (None, 1, 2), (compile("1", os.__file__, "exec"),)):
                try: sys.audit(event, *rest)
                except BaseException: pass
        import importlib._bootstrap as bootstrap
        """,
        every="""
        for event in ("lmcourse.import_begins", "lmcourse.import_ended"):
            for rest in ((), ("x",), (None, 1, 2)): sys.audit(event, *rest)
        return -1.0
        """,
    ),
    attack(
        "loads_its_own",
        "the function by which Python loads modules, changed back",
        """
        import importlib._bootstrap as bootstrap
        found = [part for part in bootstrap._find_and_load_unlocked.__code__.co_consts if hasattr(part, "_original")]
        print([vars(each) for each in found])
        bootstrap._find_and_load_unlocked.__code__ = found[0]._original.__code__
        """,
        "interpreter",
        "text",
    ),
    attack(
        "waits_for_the_end",
        "weak references, finalizers and generators that change the answers as they go",
        """
        import weakref
        class Thing:
            def __del__(self): globals().update({name: 1.0 for name in list(globals()) if name.islower()})
        def late():
            try: yield Thing()
            finally: globals().update(ulp=None)
        kept = late(); next(kept)
        weakref.finalize(kept, print, "HEARD")
        del kept
        """,
    ),
]
"""All attacks of this file."""
