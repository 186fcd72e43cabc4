"""More memory, output, files and time than a notebook needs. Whatever could hurt a machine is bounded."""

from __future__ import annotations

from tests.grading.attacks.attack import attack
from tests.grading.attacks.files import TRYING

RESOURCES = [
    # Where there is no evidence, it may be an honest mistake: a cell that is slow, or larger than its author thought.
    attack(
        "memory_without_end",
        "lists that grow until there is no memory",
        "kept = []\nwhile True: kept.append(bytearray(2**26))",
    ),
    attack(
        "memory_of_many",
        "eight processes of 800 MB each, none above its own limit",
        """
        children = []
        for _ in range(8):
            child = os.fork()
            if child == 0:
                kept = bytearray(b"x") * (800 * 2**20)
                time.sleep(20)
                os._exit(0)
            children.append(child)
        for child in children: os.waitpid(child, 0)
        """,
        "memory",
        "process",
        "crash",
        "text",
    ),
    attack(
        "shared_memory",
        "1 GB of anonymous shared memory and of /dev/shm",
        TRYING
        + """
import mmap
def share():
    shared = mmap.mmap(-1, 2**30)
    for page in range(0, 2**30, 4096): shared[page] = 1
    return "shared"
def file():
    with open("/dev/shm/large", "wb") as out:
        for _ in range(1024): out.write(bytes(2**20))
    return "file"
trying(file)
trying(share)
""",
    ),
    attack("returns_4_gb", "returns a tensor of 4 GB", every="return torch.ones(2**30)", value="torch.ones(2**30)"),
    attack(
        "returns_a_view",
        "returns a tensor of 2**50 numbers that takes no memory",
        every="return torch.zeros(1).expand(2**50)",
        value="torch.zeros(1).expand(2**50)",
    ),
    attack(
        "deep_list",
        "returns a list in a list, 100,000 deep",
        "deep = []\nfor _ in range(100_000): deep = [deep]",
        every="return deep if 'NAME' == 'ulp' else 0.5",
        value="deep",
    ),
    attack(
        "cyclic_list",
        "returns a list that holds itself",
        "cyclic = []\ncyclic.append(cyclic)",
        every="return cyclic if 'NAME' == 'ulp' else 0.5",
        value="cyclic",
    ),
    attack(
        "wide_list",
        "returns a tree of lists, of 2**40 leaves made of 40 objects",
        "wide = 0.0\nfor _ in range(40): wide = [wide, wide]",
        every="return wide if 'NAME' == 'ulp' else 0.5",
        value="0.0",
    ),
    attack(
        "long_number",
        "returns an integer of a million digits",
        "long = 7 ** 1_200_000",
        every="return long",
        value="long",
    ),
    attack(
        "endless_generator",
        "returns a generator without an end",
        "def without_end():\n    while True: yield 0.0",
        every="return without_end()",
        value="without_end()",
    ),
    attack(
        "recursion",
        "recursion with the limit taken away",
        "sys.setrecursionlimit(10**9)\ndef down(_): return sorted([1], key=down)\ndown(1)",
        "crash",
        "interpreter",
        "memory",
        "text",
    ),
    attack(
        "prints_without_end",
        "300 MB on stdout, in Python and below it",
        "for _ in range(3000): print('x' * 50_000)\nfor _ in range(3000): os.write(1, b'x' * 50_000)",
        "flood",
        "text",
    ),
    attack(
        "complains_without_end",
        "12 MB on stderr",
        "for _ in range(10**5): print('beware' * 20, file=sys.stderr)",
        "flood",
        "text",
    ),
    attack(
        "shows_100_mb",
        "displays a text of 100 MB",
        "from IPython.display import display, HTML\ndisplay(HTML('<b>' + 'x' * 100_000_000 + '</b>'))",
    ),
    attack(
        "error_of_50_mb",
        "raises an error whose message has 50 MB",
        "raise ValueError('x' * 50_000_000)",
        every="raise ValueError('x' * (5_000_000 if 'NAME' == 'ulp' else 1))",
    ),
    attack(
        "many_files",
        "20,000 empty files",
        "for number in range(20_000): open(f'file{number}', 'w').close()",
    ),
    attack(
        "large_files",
        "200 MB in one file and 200 MB in many, and a sparse file of 1 TB",
        TRYING
        + """
def write(name, megabytes):
    with open(name, "wb") as out:
        for _ in range(megabytes): out.write(bytes(2**20))
    return name
trying(lambda: os.truncate(open("sparse", "w").name, 2**40))
for number in range(20): trying(lambda: write(f"part{number}", 10))
trying(lambda: write("large", 200))
""",
    ),
    attack(
        "open_files",
        "opens files until the system says no",
        TRYING + "kept = []\ntrying(lambda: kept.extend(open('/dev/null') for _ in range(5000)))",
        "file",
        "flood",
        "crash",
        "text",
    ),
    attack(
        "busy_in_c",
        "a power that takes C code years",
        "x = pow(3, 10**10)",
        reason="still running|ran longer|could not be stopped",
    ),
]
"""All attacks of this file."""
