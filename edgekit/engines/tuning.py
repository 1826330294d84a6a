"""How single layers are to run, as `edgekit tune` measured it, and what that means to a native program.

Every way of running a layer gives the same results, so a tuning can change nothing but time. It is trusted in nothing:
what does not fit the program is refused as a whole.
"""

from collections import defaultdict
from collections.abc import Iterable

from edgekit import _native
from edgekit.records import Record

Plans = list[list[tuple[int, int]]]


class LayerChoice(Record, closed=True):
    """One layer that is to run otherwise than it would by itself.

    Attributes:
        part: Member that holds its program.
        bucket: Index of the shape bucket.
        index: Of the layer in that bucket's plan.
        layer: Its name, to check that it is the one that was measured.
        kernel: Name of the way to run it, one of _native.Program.kernels().
        tasks: Into how many tasks it is cut; 0: by its cost.
    """

    part: str
    bucket: int
    index: int
    layer: str
    kernel: str
    tasks: int


class Alternatives(Record):
    """The ways to run one layer.

    Attributes:
        part, bucket, index, layer: As in LayerChoice.
        kernels: Names; the first is what runs by itself.
    """

    part: str
    bucket: int
    index: int
    layer: str
    kernels: tuple[str, ...]


def program_alternatives(program: _native.Program, member: str, bucket: int, threads: int) -> list[Alternatives]:
    """The ways to run each layer of a program's bucket, in the order the layers run."""
    ways = program.kernels(bucket, _usable(threads))
    ops = program.ops(bucket)
    return [
        Alternatives(member, bucket, index, op[0], tuple(names))
        for index, (op, names) in enumerate(zip(ops, ways, strict=True))
    ]


def session_tuning(program: _native.Program, member: str, threads: int, choices: Iterable[LayerChoice]) -> Plans:
    """Turns the choices for one program into what _native.Session takes.

    Args:
        program: The program.
        member: Its name in the package; choices for others are passed over.
        threads: Threads within an inference.
        choices: The choices.

    Returns:
        By bucket and layer: way and number of tasks; empty when there is no choice for this program.

    Raises:
        ValueError: A choice does not fit the program; one line that says why.
    """
    by_bucket: dict[int, list[LayerChoice]] = defaultdict(list)
    for choice in choices:
        if choice.part == member:
            by_bucket[choice.bucket].append(choice)
    if unknown := by_bucket.keys() - range(program.plan_count):
        raise ValueError(f"there is no shape bucket {min(unknown)}")
    if not by_bucket:
        return []
    return [_plan(program, member, threads, bucket, by_bucket[bucket]) for bucket in range(program.plan_count)]


def _plan(
    program: _native.Program, member: str, threads: int, bucket: int, choices: list[LayerChoice]
) -> list[tuple[int, int]]:
    if not choices:
        return []
    layers = program_alternatives(program, member, bucket, threads)
    plan = [(0, 0)] * len(layers)
    for choice in choices:
        if not 0 <= choice.index < len(layers) or layers[choice.index].layer != choice.layer:
            raise ValueError(f"layer {choice.index} is not {ascii(choice.layer)[:80]}")
        kernels = layers[choice.index].kernels
        if choice.kernel not in kernels:
            raise ValueError(f"layer {choice.index} can't run on {ascii(choice.kernel)[:80]}")
        if not 0 <= choice.tasks <= _usable(threads):
            raise ValueError(f"layer {choice.index} can't be cut into {choice.tasks} tasks")
        plan[choice.index] = (kernels.index(choice.kernel), choice.tasks)
    return plan


def _usable(threads: int) -> int:
    """As many as a session takes of them."""
    return min(threads, _native.usable_cpus()) if threads else _native.usable_cpus()
