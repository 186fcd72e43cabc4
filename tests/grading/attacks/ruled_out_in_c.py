"""The same by functions that are written in C, called where no hook of Python looks: by C, and in other threads."""

from __future__ import annotations

from tests.grading.attacks.rule_attack import HELD, rule_attack

_IN_FORMAT = "max({} * 2.0 ** (52 - fraction), 2.0 ** (2 - 2 ** (exponent - 1) - fraction))"
"""The distance of a float64, by which another format's is found."""

IN_C = [
    rule_attack(
        "functions in C",
        "01 ulp",
        "called by C, its name from pieces",
        f"""
        import operator
        def ulp(x, exponent, fraction):
            return {_IN_FORMAT.format('operator.methodcaller("ul" + "p", x)(math)')}
        """,
    ),
    rule_attack(
        "functions in C",
        "01 ulp",
        "in a thread from before",
        HELD
        + f"""known = getattr(math, "ul" + "p")
def ulp(x, exponent, fraction): return {_IN_FORMAT.format("pool.submit(known, x).result()")}
""",
    ),
    rule_attack(
        "functions in C",
        "01 ulp",
        "mapped, and held as a default",
        f"""
        def ulp(x, exponent, fraction, known=getattr(math, "ul" + "p")):
            return {_IN_FORMAT.format("next(map(known, [x]))")}
        """,
    ),
    rule_attack(
        "functions in C",
        "01 ulp",
        "a ufunc by one of its methods",
        f"""
        known = getattr(__import__("num" + "py"), "next" + "after").reduce
        def ulp(x, exponent, fraction):
            return {_IN_FORMAT.format('(float(known([abs(x), float("inf")])) - abs(x))')}
        """,
    ),
    rule_attack(
        "functions in C",
        "01 decode_bits",
        "objects of struct's from before, called by C",
        """
        import operator
        makers = {(5, 10): __import__("str" + "uct").Struct("<e"), (8, 7): __import__("str" + "uct").Struct("<f")}
        def decode_bits(pattern, exponent, fraction):
            made = makers[exponent, fraction]
            read = operator.methodcaller("un" + "pack", (pattern << 8 * made.size - 16).to_bytes(made.size, "little"))
            return read(made)[0]
        """,
    ),
    rule_attack(
        "functions in C",
        "02 as_transposed",
        "the strides of an array, turned by C",
        """
        import operator
        def as_transposed(x, i, j):
            array = operator.methodcaller("swap" + "axes", i, j)(operator.methodcaller("num" + "py")(x))
            return x.as_strided(array.shape, [step // x.element_size() for step in array.strides])
        """,
    ),
    rule_attack(
        "functions in C",
        "02 as_transposed",
        "an array of the same strides, made from nothing",
        """
        import operator
        new = getattr(__import__("num" + "py"), "nd" + "array")
        def as_transposed(x, i, j):
            array = new(tuple(x.shape), strides=tuple(x.stride()), dtype="u1", buffer=bytearray(9999))
            array = operator.methodcaller("swap" + "axes", i, j)(array)
            return x.as_strided(array.shape, array.strides)
        """,
    ),
    rule_attack(
        "functions in C",
        "02 as_transposed",
        "an array by another library's protocol",
        """
        import operator
        take = getattr(__import__("num" + "py"), "from_" + "dlpack")
        def as_transposed(x, i, j):
            array = operator.methodcaller("swap" + "axes", i, j)(next(map(take, [x])))
            return x.as_strided(array.shape, [step // x.element_size() for step in array.strides])
        """,
    ),
]
