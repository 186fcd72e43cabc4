"""Python and IPython themselves, bent before a check runs."""

from __future__ import annotations

from tests.grading.attacks.attack import attack

INTERPRETER = [
    attack(
        "input_transformer",
        "an input transformer replaces each check by a number",
        "def mild(lines):\n"
        "    return ['1\\n'] if any(line.startswith('check(') for line in lines) else lines\n"
        "get_ipython().input_transformers_post.append(mild)",
        "interpreter",
        "text",
    ),
    attack(
        "ast_transformer",
        "an AST transformer removes every `assert` and every check",
        """
        import ast
        class Mild(ast.NodeTransformer):
            def visit_Assert(self, node): return ast.Pass()
            def visit_Call(self, node):
                return ast.Constant(1) if getattr(node.func, "id", "") == "check" else node
        get_ipython().ast_transformers.append(Mild())
        """,
        "interpreter",
        "text",
    ),
    attack(
        "reads_hidden_tests",
        'events.register("pre_run_cell") prints the source of hidden tests',
        "get_ipython().events.register('pre_run_cell', lambda info: print('HEARD', info.raw_cell))",
        "interpreter",
        "text",
    ),
    attack(
        "patched_do_execute",
        "a patched kernel.do_execute answers for graded cells",
        """
        kernel = get_ipython().kernel
        execute = kernel.do_execute
        async def do_execute(code, *args, **kwargs):
            return await execute("1" if code.startswith("check(") else code, *args, **kwargs)
        kernel.do_execute = do_execute
        """,
        "interpreter",
        "text",
    ),
    attack(
        "patched_run_cell",
        "a patched run_cell_async runs something else in place of graded cells",
        """
        shell = get_ipython()
        run = shell.run_cell_async
        async def run_cell_async(raw_cell, *args, **kwargs):
            if raw_cell.startswith("check("): raw_cell = kwargs["transformed_cell"] = "1"
            return await run(raw_cell, *args, **kwargs)
        shell.run_cell_async = run_cell_async
        """,
        "interpreter",
        "text",
    ),
    attack(
        "patched_display",
        "what shows results shows full points, whatever they are",
        """
        from lmcourse.report import Report
        formatter = get_ipython().display_formatter
        formatter.format = lambda shown, *args, **kwargs: ({"text/plain": str(shown.max_points)}, {})
        """,
        "interpreter",
        "text",
    ),
    attack(
        "patched_builtins",
        "len, sum, all, any, isinstance, open, print and __import__ are its own",
        """
        import builtins
        builtins.all = lambda each: True
        builtins.any = lambda each: False
        builtins.sum = lambda each, start=0: len(list(each))
        builtins.abs = lambda x: 0.0
        builtins.zip = lambda *each, strict=False: iter(())
        builtins.print = lambda *args, **kwargs: None
        found = builtins.__import__
        builtins.__import__ = lambda name, *args, **kwargs: found(name, *args, **kwargs)
        """,
        "builtins",
        "interpreter",
    ),
    attack(
        "traces_the_checker",
        "sys.settrace rewrites the local variables of whoever calls it",
        """
        import ctypes
        def tracing(frame, event, arg):
            for name in ("wrong", "failing", "broken"):
                if name in frame.f_locals:
                    frame.f_locals[name] = None if name == "wrong" else []
                    ctypes.pythonapi.PyFrame_LocalsToFast(ctypes.py_object(frame), ctypes.c_int(0))
            return tracing
        sys.settrace(tracing)
        """,
        "interpreter",
        "text",
    ),
    attack(
        "never_out_of_time",
        "time, signals and alarms are its own, and then it never ends",
        """
        import signal
        time.monotonic = time.time = time.perf_counter = lambda: 0.0
        signal.setitimer = signal.alarm = lambda *args: (0.0, 0.0)
        signal.signal = lambda *args: None
        """,
        "builtins",
        "interpreter",
        "text",
        every="while 'NAME' == 'ulp': pass",
        reason="still running|ran longer|out of time",
    ),
    attack(
        "last_words",
        "atexit, __del__ and a weak reference's callback print marks on the way out",
        """
        import atexit, weakref
        class Last:
            def __del__(self): print("28"); os.write(1, b"28\\n")
        last = Last()
        atexit.register(lambda: os.write(1, b'{"points": 28}\\n'))
        weakref.finalize(last, print, 28)
        """,
        every="return Last()",
        value="Last()",
    ),
]
"""All attacks of this file."""
