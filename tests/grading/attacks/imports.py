"""Modules that stand in for others, in this process or in the next one."""

from __future__ import annotations

from tests.grading.attacks.attack import COURSE, HOME, attack

POINTS = (
    "POINTS = dict(decimal_error=1, decode_bits=4, max_finite=2, e4m3_missing=1, ulp=3, round_to=3, "
    "lost_to_underflow=2, stall_point=3, dot_product_error=3, tensor_bytes=2, gpt3_matrix_mib=1, stable_softmax=3)\n"
)

SHADOW = "def check(*args, **kwargs):\n    return 'all'\ndef __getattr__(name):\n    return check\n"

IMPORTS = [
    attack(
        "poisoned_modules",
        "sys.modules holds another lmcourse.notebook, torch and json",
        POINTS
        + """
from types import ModuleType
fake = ModuleType("lmcourse.notebook")
fake.check = lambda answer=None, hidden=False, **v: POINTS[next(iter(v), None) or answer.__name__]
ENCODING = "lmcourse.grading.examination.encoding"
for name in ("lmcourse.notebook", "lmcourse.exercises.checking", ENCODING, "json", "torch"):
    sys.modules[name] = fake
from lmcourse.notebook import check
""",
        "interpreter",
        "builtins",
        "text",
    ),
    attack(
        "import_hook",
        "a finder on sys.meta_path gives out modules of its own",
        """
        from importlib.machinery import ModuleSpec
        class Finder:
            def find_spec(self, name, path=None, target=None):
                if name.startswith("lmcourse"): return ModuleSpec(name, self, is_package=True)
            def create_module(self, spec): return None
            def exec_module(self, module): module.check = module.examine = lambda *args, **kwargs: 1
        for name in [name for name in sys.modules if name.startswith("lmcourse")]: del sys.modules[name]
        sys.meta_path.insert(0, Finder())
        from lmcourse.notebook import check
        """,
        "interpreter",
        "text",
    ),
    # No evidence: in the sandbox the home is the working folder, and the rest cannot be opened.
    attack(
        "startup_files",
        "leaves start-up files of IPython and Python in the grader's home and in Python's own folders",
        f"""
        import site, sysconfig
        homes = [os.path.expanduser("~"), {HOME!r}]
        places = [home + "/.ipython/profile_default/startup/00.py" for home in homes]
        places += [sysconfig.get_path("purelib") + "/" + name for name in ("one.pth", "sitecustomize.py")]
        places += [site.getusersitepackages() + "/usercustomize.py"]
        for place in places:
            try:
                os.makedirs(os.path.dirname(place), exist_ok=True)
                open(place, "w").write("import builtins; builtins.check = lambda *a, **k: 1")
                print("DONE", place)
            except OSError as error:
                print(error)
        """,
    ),
    attack(
        "python_path",
        "PYTHONPATH, PYTHONSTARTUP and a module named lmcourse for whoever comes next",
        f"""
        os.environ["PYTHONPATH"] = os.environ["PYTHONSTARTUP"] = {COURSE!r}
        os.makedirs("lmcourse", exist_ok=True)
        for name in ("lmcourse/__init__.py", "lmcourse/notebook.py", "torch.py", "sitecustomize.py", "json.py"):
            open(name, "w").write("def check(*args, **kwargs): return 1")
        sys.path.insert(0, os.getcwd())
        for name in [name for name in sys.modules if name.split(".")[0] == "lmcourse"]: del sys.modules[name]
        from lmcourse.notebook import check
        """,
        "builtins",
        "interpreter",
        "file",
        "text",
    ),
    attack(
        "folder_lmcourse",
        "hands in a folder lmcourse/, which stands in for the installed package",
        beside={"lmcourse/__init__.py": SHADOW, "lmcourse/notebook.py": SHADOW, "lmcourse/exercises.py": SHADOW},
    ),
    attack(
        "modules_beside",
        "hands in torch.py, sitecustomize.py, json.py, socket.py and ipykernel_launcher.py",
        beside={
            f"{name}.py": "print('DONE')\nraise SystemExit"
            for name in ("torch", "sitecustomize", "json", "socket", "ipykernel_launcher", "usercustomize")
        },
    ),
]
"""All attacks of this file."""
