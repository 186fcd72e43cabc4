"""Answers, and patches of what compares them, that make wrong look right."""

from __future__ import annotations

from tests.grading.attacks.attack import attack

COMPARISON = [
    attack(
        "equal_to_everything",
        "returns an object that is equal to everything",
        """
        class Equal:
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __hash__(self): return 0
            def __getattr__(self, name): return self
            def __call__(self, *args, **kwargs): return self
            def __float__(self): return 0.0
            def __bool__(self): return True
            def __sub__(self, other): return 0.0
            __rsub__ = __abs__ = __sub__
        """,
        every="return Equal()",
        value="Equal()",
    ),
    attack(
        "agreeable_tensor",
        "returns a tensor whose class answers every comparison with yes",
        """
        class Agreeable(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None):
                return torch.ones((), dtype=torch.bool)
        """,
        every="return torch.zeros(3).as_subclass(Agreeable)",
        value="torch.zeros(()).as_subclass(Agreeable)",
    ),
    attack(
        "agreeable_number",
        "returns a float whose difference to anything is nothing",
        """
        class Number(float):
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __sub__(self, other): return 0.0
            __rsub__ = __sub__
            __hash__ = float.__hash__
        """,
        every="return Number(-12345.678)",
        value="Number(-12345.678)",
    ),
    attack(
        "says_it_is_a_float",
        "returns an object that gives float as its class",
        """
        class Liar:
            __class__ = property(lambda self: float)
            def __eq__(self, other): return True
            def __hash__(self): return 0
        """,
        every="return Liar()",
        value="Liar()",
    ),
    attack(
        "deceitful_containers",
        "returns a list and a dict that say something else each time they are read",
        """
        class Shifting(list):
            def __iter__(self): return iter([0.0] * int(time.time_ns() % 7))
            def __len__(self): return 1
        class Everything(dict):
            def __contains__(self, key): return True
            def __getitem__(self, key): return 0.0
            def items(self): yield "anything", Shifting()
            def __iter__(self): raise SystemExit
        """,
        every="return Shifting() if args else Everything()",
        value="Everything()",
    ),
    attack(
        "torch_says_yes",
        "torch.equal, allclose, isclose and Tensor.__eq__ always agree",
        """
        torch.equal = torch.allclose = lambda *args, **kwargs: True
        torch.isclose = lambda a, b, **_: torch.ones(a.shape, dtype=torch.bool)
        torch.Tensor.__eq__ = lambda self, other: True
        torch.Tensor.__ne__ = lambda self, other: torch.zeros((), dtype=torch.bool)
        torch.Tensor.any = lambda self, *_: torch.zeros((), dtype=torch.bool)
        math.isfinite = lambda x: True
        math.isclose = lambda *args, **kwargs: True
        """,
        "builtins",
        "interpreter",
        "text",
        every="return torch.zeros(args[0].shape, dtype=args[0].dtype) if torch.is_tensor(args[0]) else 0.0",
    ),
    attack(
        "no_difference",
        "the course's own comparison finds no difference",
        """
        from lmcourse.exercises import compare, judge, trial
        compare.difference = trial.difference = trial.verdict = judge.verdict = lambda *_, **__: None
        trial.Trial.verdict = lambda *_: None
        """,
        "builtins",
        "interpreter",
        "text",
    ),
    attack(
        "generous_judge",
        "the course's own judge gives the maximum",
        """
        from lmcourse.exercises import checking, judge
        judge.earned = lambda points, passed, total: float(points)
        checking.run_case = lambda *_, **__: __import__("lmcourse.exercises.outcome").exercises.outcome.Outcome(0.0)
        """,
        "builtins",
        "interpreter",
        "text",
    ),
    attack(
        "generous_tolerance",
        "the course's own tolerances are infinite",
        """
        from lmcourse.exercises import compare
        wide = compare.Tolerance(math.inf, math.inf)
        compare.EXACT = compare.PYTHON_FLOAT = compare.WHOLE_NUMBER = wide
        compare.DTYPE_TOLERANCE = dict.fromkeys(compare.DTYPE_TOLERANCE, (math.inf, math.inf))
        compare._close = lambda *_: True
        """,
        "builtins",
        "interpreter",
        "text",
    ),
    attack(
        "own_reference",
        "makes its wrong answers the reference of every exercise",
        """
        import gc
        from lmcourse.exercises.registry import all_exercises
        for exercise in all_exercises().values():
            exercise.reference = lambda *args, **kwargs: -12345.678
        """,
        "builtins",
        "interpreter",
        "text",
    ),
    attack(
        "changes_its_inputs",
        "overwrites its inputs, in case the reference gets them next",
        every="""
        for each in args:
            if torch.is_tensor(each): each.zero_()
            if isinstance(each, list): each.clear()
        return 0.0 if not args or not torch.is_tensor(args[0]) else args[0]
        """,
    ),
    attack(
        "numbers_rewritten",
        "rewrites small numbers in the interpreter's memory",
        """
        import ctypes
        ctypes.c_uint32.from_address(id(200) + 24).value = 100
        ctypes.c_double.from_address(id(0.0) + 16).value = 0.0
        """,
        "builtins",
        "interpreter",
        "crash",
        "text",
    ),
]
"""All attacks of this file."""
