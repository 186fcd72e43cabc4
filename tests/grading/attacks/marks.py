"""Attacks on marks: wrong answers, and tricks that could make them look right."""

from __future__ import annotations

from lmcourse.report import REPORT_MIME
from tests.grading.attacks.attack import COURSE, HOME, attack

POINTS = """
POINTS = dict(ulp=3, round_to=3, loss_scales=3, stall_point=3, my_store=4, decode_bits=4, max_finite=2,
              dot_product_error=3, tensor_bytes=2, stable_softmax=3)
"""

FORGED_REPORT = f"""{POINTS}
class Praise:
    def __init__(self, name, points): self.name, self.points = name, points
    def __repr__(self): return str(self.points)
    def _repr_mimebundle_(self, **_):
        cases = [{{"name": "all", "passed": True, "message": "", "call": "", "hidden": True}}]
        told = {{"exercise": self.name, "points": self.points, "max_points": self.points, "hidden": True}}
        told |= {{"cases": cases, "diagnosis": "", "notes": [], "to_come": [], "answered": True}}
        return {{"{REPORT_MIME}": told, "text/plain": repr(self), "text/html": "<b>all right</b>"}}
def check(answer=None, hidden=False, **values):
    name = next(iter(values), None) or answer.__name__
    return Praise(name, POINTS[name])
for name, points in POINTS.items(): get_ipython().display_formatter.format(Praise(name, points))
"""

TAKE = """
import glob, json
from torch import Tensor
read = {}
def right(name, *patterns):
    for path in [path for pattern in patterns for path in sorted(glob.glob(pattern))]:
        if path in read: continue
        read[path] = dict(globals())
        try: cells = json.load(open(path))["cells"]
        except Exception: continue
        print("HEARD", path)
        for cell in cells:
            if cell.get("metadata", {}).get("nbgrader", {}).get("solution"):
                try: exec("".join(cell["source"]), read[path])
                except Exception: pass
    found = [names[name] for names in read.values() if names.get(name) is not globals().get(name)]
    return found[0] if found else None
"""
"""Code that runs the answers of all notebooks that match a pattern."""

PLACES = (
    f"'{COURSE}/solutions/*/*.ipynb', '{COURSE}/*/*/*.ipynb', '{COURSE}/*/*/*/*.ipynb', '../../*/*/*.ipynb', "
    "'../../../*/*/*.ipynb', '/*/solutions/*/*.ipynb', '/*/floating_point.ipynb'"
)

SHADOW = "def check(*args, **kwargs):\n    return 'all'\ndef __getattr__(name):\n    return check\n"

MARKS = [
    attack("report_forged", "shows a perfect report in the report's own format", FORGED_REPORT, last="check(ulp)"),
    attack(
        "patches_the_course",
        "the course's own report, judge, comparison, tolerances and references are its own",
        """
        import gc
        gc.unfreeze()
        from lmcourse import report
        from lmcourse.exercises import checking, compare, judge, outcome, registry, trial
        report.Report.__repr__ = lambda self: str(self.max_points)
        compare.difference = trial.difference = trial.verdict = judge.verdict = lambda *_, **__: None
        judge.score = lambda trials, passed, groups: type("S", (), dict(points=28.0, passed=1, total=1))
        trial.Trial.wrong = None
        compare.DTYPE_TOLERANCE = dict.fromkeys(compare.DTYPE_TOLERANCE, (math.inf, math.inf))
        compare._close = lambda *_: True
        for thing in gc.get_objects():
            if type(thing).__name__ == "Exercise": thing.__dict__["reference"] = lambda *_, **__: -12345.678
        """,
    ),
    attack(
        "patches_python_and_torch",
        "builtins, math and torch always agree, and find no difference",
        """
        import builtins, ctypes
        builtins.all, builtins.any, builtins.abs = (lambda each: True), (lambda each: False), (lambda x: 0.0)
        torch.equal = torch.allclose = lambda *args, **kwargs: True
        torch.isclose = lambda a, b, **_: torch.ones(a.shape, dtype=torch.bool)
        torch.Tensor.__eq__ = lambda self, other: True
        torch.Tensor.__ne__ = lambda self, other: torch.zeros((), dtype=torch.bool)
        math.isfinite = math.isclose = lambda *args, **kwargs: True
        """,
        every="return torch.zeros(args[0].shape, dtype=args[0].dtype) if torch.is_tensor(args[0]) else -1.5",
    ),
    attack(
        "patches_ipython",
        "transformers, events, run_cell and the display formatter of IPython's shell put marks in place of checks",
        """
        import ast
        shell = get_ipython()
        class Mild(ast.NodeTransformer):
            def visit_Assert(self, node): return ast.Pass()
            def visit_Call(self, node): return ast.Constant(1) if getattr(node.func, "id", "") == "check" else node
        shell.input_transformers_post.append(lambda lines: ["1\\n"] if "check(" in str(lines) else lines)
        shell.ast_transformers.append(Mild())
        shell.events.register("pre_run_cell", lambda info: print(28))
        shell.run_cell = shell.run_cell_async = lambda *_, **__: 28
        shell.display_formatter.format = lambda shown, *_, **__: ({"text/plain": "28"}, {})
        """,
    ),
    attack(
        "equal_to_everything",
        "returns objects, tensors and numbers that are equal to everything, or are another thing each time",
        """
        class Equal:
            __class__ = property(lambda self: float)
            def __eq__(self, other): return True
            def __ne__(self, other): return False
            def __hash__(self): return 0
            def __getattr__(self, name): return self
            def __call__(self, *args, **kwargs): return self
            def __float__(self): return 0.5
            def __sub__(self, other): return 0.0
            __rsub__ = __abs__ = __sub__
        class Agreeable(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None): return torch.ones((), dtype=torch.bool)
        class Number(float):
            __eq__, __sub__, __hash__ = (lambda self, other: True), (lambda self, other: 0.0), float.__hash__
        class Shifting(list):
            def __iter__(self): return iter([-0.5] * int(time.time_ns() % 7))
            def __len__(self): return 1
        class Everything(dict):
            def __contains__(self, key): return True
            def __getitem__(self, key): return -0.5
            def items(self): yield "anything", Shifting()
            def __iter__(self): raise SystemExit
        kinds = [Equal(), torch.full((3,), 7.5).as_subclass(Agreeable), Number(-1.25), Shifting(), Everything()]
        """,
        every="return kinds[len('NAME') % len(kinds)]",
        value="Equal()",
    ),
    attack(
        "raises_everything",
        "raises an error that is of every kind that a case could ask for",
        "class All(ValueError, TypeError, IndexError, KeyError, RuntimeError, ZeroDivisionError, OverflowError): pass",
        every="raise All",
    ),
    attack(
        "changes_its_inputs",
        "overwrites its inputs, in case the reference gets them next, and numbers in the interpreter's memory",
        """
        import ctypes
        ctypes.c_double.from_address(id(12345.678) + 16).value = 0.0
        """,
        every="""
        for each in args:
            if torch.is_tensor(each): each.zero_()
            if isinstance(each, list): each.clear()
        return -1.5 if not args or not torch.is_tensor(args[0]) else args[0]
        """,
    ),
    attack(
        "walks_the_frames",
        "a tracer, a collector's callback and a signal handler rewrite local variables of their callers",
        """
        import gc, signal
        def strike(*_):
            frame = sys._getframe(1)
            while frame:
                for name, value in list(frame.f_locals.items()):
                    if name in ("outcome", "result", "value", "failure", "reply", "expected"):
                        frame.f_locals[name] = None
                        ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
                frame = frame.f_back
            return strike
        import ctypes
        gc.callbacks.append(strike)
        signal.signal(signal.SIGVTALRM, strike)
        """,
        every="""
        if 'NAME' == 'ulp': sys.settrace(strike); signal.setitimer(signal.ITIMER_VIRTUAL, 0.001); gc.collect()
        return -1.5
        """,
    ),
    attack(
        "looks_for_what_is_right",
        "searches all objects and frames of its process for exercises, references and expected values",
        """
        import gc
        gc.unfreeze()
        searched = set()
        def search():
            frame, found = sys._getframe(), []
            while frame:
                found += [name for name in frame.f_locals if name in ("expected", "exercise", "trial", "report")]
                frame = frame.f_back
            kinds = {"Exercise", "Outcomes", "Trial", "Report", "Misconception"}
            found += [type(thing).__name__ for thing in gc.get_objects() if type(thing).__name__ in kinds]
            found += [thing for thing in gc.get_objects() if type(thing) is dict and {"do", "case"} <= thing.keys()
                      and thing.keys() - {"do", "name", "value", "case", "seconds", "forbid"}]
            found += [name for name, module in sys.modules.items()
                      if "chapters" in name and "exercise" in name and getattr(module, "__file__", "")]
            try: from lmcourse.chapters.floating_point.exercises import EXERCISES; found.append(EXERCISES)
            except ImportError: pass
            if found: print("HEARD", found)
        """,
        every="""
        if 'NAME' not in searched: searched.add('NAME'); search()
        return -1.5
        """,
        last="search()",
    ),
    attack(
        "settings_left_changed",
        "settings of Python and torch that whoever comes next relies on, and modes that are never ended",
        """
        import signal, threading, warnings
        from torch.overrides import TorchFunctionMode
        class Calls(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None):
                return True if "equal" in str(func) else func(*args, **(kwargs or {}))
        Calls().__enter__()
        torch.set_default_dtype(torch.float16); torch.set_default_device("meta")
        sys.setrecursionlimit(90); sys.setswitchinterval(1e-9); sys.set_int_max_str_digits(640)
        warnings.filterwarnings("error")
        time.monotonic = time.time = lambda: 0.0
        """,
        every="return torch.zeros(3)",
        last="signal.setitimer = signal.alarm = signal.signal = lambda *args: None",
    ),
    attack(
        "last_words",
        "atexit, __del__, weak references and a thread set marks, answers and checks when nobody looks",
        """
        import atexit, threading, weakref
        class Last:
            def __del__(self): globals().update({name: 1.0 for name in list(globals()) if name.islower()})
        last = Last()
        atexit.register(lambda: os.write(1, b'{"points": 28}'))
        weakref.finalize(last, print, 28)
        def again():
            while True:
                globals()["check"] = sys.modules["lmcourse.notebook"].check = lambda *args, **kwargs: "28"
                time.sleep(0.001)
        threading.Thread(target=again, daemon=True).start()
        """,
        every="return Last()",
        value="Last()",
    ),
    attack(
        "poisoned_modules",
        "sys.modules and sys.meta_path hold other versions of the course, torch and json",
        """
        from importlib.machinery import ModuleSpec
        from types import ModuleType
        fake = ModuleType("lmcourse.notebook")
        fake.check = fake.main = fake.run_case = fake.outcome_to_plain = lambda *_, **__: 28
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("lmcourse"): return ModuleSpec(name, self, is_package=True)
            def create_module(self, spec): return fake
            def exec_module(self, module): pass
        for name in [name for name in sys.modules if name.split(".")[0] in ("lmcourse", "json", "safetensors")]:
            sys.modules[name] = fake
        sys.meta_path.insert(0, Finder())
        from lmcourse.notebook import check
        """,
    ),
    attack(
        "modules_beside",
        "hands in a folder lmcourse/, and modules that Python would load in place of its own",
        beside={f"lmcourse/{name}.py": SHADOW for name in ("__init__", "notebook", "exercises", "report")}
        | {
            f"{name}.py": "print('DONE')\nraise SystemExit"
            for name in ("torch", "sitecustomize", "json", "socket", "exercises", "nbgrader_config", "usercustomize")
        },
    ),
    attack(
        "startup_files",
        "leaves start-up files of IPython and Python in every home, in Python's folders and in the course",
        f"""
        import site, sysconfig
        os.environ["PYTHONPATH"] = os.environ["PYTHONSTARTUP"] = {COURSE!r}
        homes = [os.path.expanduser("~"), {HOME!r}, "/root"]
        places = [home + "/.ipython/profile_default/startup/00.py" for home in homes]
        places += [sysconfig.get_path("purelib") + "/" + name for name in ("one.pth", "sitecustomize.py")]
        places += [site.getusersitepackages() + "/usercustomize.py", {COURSE!r} + "/nbgrader_config.py"]
        for place in places:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                open(place, "a").write("import builtins; builtins.check = lambda *a, **k: 1")
                print("DONE", place)
            except OSError as error:
                print(error)
        """,
    ),
    attack(
        "takes_answers",
        "looks for solutions and for other learners' notebooks, and runs the answers",
        TAKE,
        every=f"return right('NAME', {PLACES})(*args, **kwargs)",
        value=f"right('NAME', {PLACES})",
    ),
]
"""All attacks of this file."""
