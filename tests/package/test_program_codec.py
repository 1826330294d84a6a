"""write_program and read_program are inverse, and damaged files are refused with an error of ours."""

import numpy as np
import pytest

from edgekit.errors import EdgekitError, IntegrityError, InternalError, PackageError, PackageVersionError
from edgekit.package.program import Buffer, ConstantPool, Op, Plan, Program, Tensor, dense_strides
from edgekit.package.program_codec import read_program, write_program
from edgekit.package.program_schema import program_schema


def small_program() -> Program:
    pool = ConstantPool()
    lut = pool.add(np.arange(256, dtype=np.uint8))
    plan = Plan(
        buffers=[Buffer("arena", 128), Buffer("constants", 0), Buffer("input", 96), Buffer("output", 96)],
        tensors=[
            Tensor("x", "f32", (2, 3, 4), (12, 4, 1), 2),
            Tensor("xq", "u8", (2, 3, 4), (12, 1, 3), 0, 64, 0.5, 7),
            Tensor("lut", "u8", (256,), (1,), 1, lut),
            Tensor("y", "f32", (2, 3, 4), (12, -4, 1), 3, 32),
        ],
        ops=[
            Op("convert", (0,), (1,), {}, "quantize"),
            Op("lut_q8", (1, 2), (1,), {}, "table"),
            Op("unary", (0,), (3,), {"act": 2, "alpha": -1.5, "beta": 2.25}, "clip+\u00e4", 5),
        ],
        inputs=[0],
        outputs=[3],
    )
    program = Program("x86_avx2", [plan, plan], pool.section())
    plan.buffers[1].size_bytes = len(program.constants)
    return program


def test_round_trip() -> None:
    program = small_program()
    back = read_program(write_program(program))
    assert back.isa == program.isa
    assert bytes(back.constants) == program.constants
    assert back.plans[0] == program.plans[0] == back.plans[1]


def test_pool_stores_equal_contents_once_and_aligned() -> None:
    pool = ConstantPool()
    first, second, again = (
        pool.add(np.ones(3, np.float32)),
        pool.add(np.ones(3, np.int8)),
        pool.add(np.ones(3, np.float32)),
    )
    assert first == again != second
    assert second % 64 == 0
    assert len(pool.section()) == 192  # two entries and the guard


def test_sections_are_aligned() -> None:
    data = write_program(small_program())
    header = np.frombuffer(data, program_schema().records["header"], 1)[0]
    for name in ("plans", "buffers", "tensors", "ops", "operands", "attributes", "strings", "constants"):
        assert header[f"{name}_offset"] % 64 == 0


def test_dense_strides() -> None:
    assert dense_strides((2, 3, 4)) == (12, 4, 1)
    assert dense_strides(()) == ()


@pytest.mark.parametrize("change", [{"bogus": 1}, None])
def test_writer_refuses_what_the_schema_lacks(change: dict[str, int] | None) -> None:
    program = small_program()
    op = program.plans[0].ops[0]
    if change:
        op.attributes = change
    else:
        op.inputs = (0, 1, 2)
    with pytest.raises(InternalError):
        write_program(program)


def test_every_flipped_bit_of_the_body_and_every_truncation_is_refused() -> None:
    data = write_program(small_program())
    rng = np.random.default_rng(0)
    for position in rng.integers(program_schema().records["header"].itemsize, len(data), 200):
        damaged = bytearray(data)
        damaged[position] ^= 1 << int(rng.integers(8))
        with pytest.raises(IntegrityError):
            read_program(bytes(damaged))
    for size in range(0, len(data), 37):
        with pytest.raises(PackageError):
            read_program(data[:size])


def test_a_flipped_bit_of_the_header_is_refused_or_harmless() -> None:
    data = write_program(small_program())
    good = read_program(data)
    for bit in range(8 * program_schema().records["header"].itemsize):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << (bit % 8)
        try:
            read = read_program(bytes(damaged))
        except PackageError:
            continue
        assert read.plans == good.plans, f"bit {bit} changed the program unnoticed"


def test_newer_major_and_wrong_checksum_have_their_own_errors() -> None:
    data = bytearray(write_program(small_program()))
    data[-1] ^= 1
    with pytest.raises(IntegrityError):
        read_program(bytes(data))
    data[8] = 9
    with pytest.raises(PackageVersionError) as caught:
        read_program(bytes(data))
    assert isinstance(caught.value, EdgekitError)
    assert "\n" not in str(caught.value)
