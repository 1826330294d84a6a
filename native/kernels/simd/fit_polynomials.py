"""Derives the polynomial coefficients of float_math.inc: minimax fits by the Remez exchange in 60-digit arithmetic.

Usage: python fit_polynomials.py   (needs mpmath; prints each set, lowest power first, with its greatest error)
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 60
Function = Callable[[mp.mpf], mp.mpf]


def remez(target: Function, weight: Function, span: tuple[mp.mpf, mp.mpf], degree: int) -> tuple[list[mp.mpf], mp.mpf]:
    """The polynomial of that degree with the least max of |weight * (polynomial - target)| on span, and that max."""
    low, high = span
    count = degree + 2
    nodes = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * (i + mp.mpf(1) / 2) / count) for i in range(count)]
    coefficients: list[mp.mpf] = []
    for _ in range(12):
        system = mp.matrix(count, count)
        right = mp.matrix(count, 1)
        for row, x in enumerate(nodes):
            for power in range(degree + 1):
                system[row, power] = x**power
            system[row, degree + 1] = (-1) ** row / weight(x)
            right[row] = target(x)
        solution = mp.lu_solve(system, right)
        coefficients = list(solution)[: degree + 1]
        nodes = extrema(lambda x, c=coefficients: weight(x) * (mp.polyval(c[::-1], x) - target(x)), span, count)
    return coefficients, max(abs(weight(x) * (mp.polyval(coefficients[::-1], x) - target(x))) for x in nodes)


def extrema(error: Function, span: tuple[mp.mpf, mp.mpf], count: int) -> list[mp.mpf]:
    """The `count` places where the error is greatest between its changes of sign, on a fine Chebyshev grid."""
    low, high = span
    steps = 1200
    grid = [(low + high) / 2 - (high - low) / 2 * mp.cos(mp.pi * i / steps) for i in range(steps + 1)]
    values = [error(x) for x in grid]
    peaks = [0]
    for i in range(1, steps + 1):
        if mp.sign(values[i]) == mp.sign(values[peaks[-1]]):
            if abs(values[i]) > abs(values[peaks[-1]]):
                peaks[-1] = i
        else:
            peaks.append(i)
    while len(peaks) > count:
        peaks.pop(0 if abs(values[peaks[0]]) < abs(values[peaks[-1]]) else -1)
    return [grid[i] for i in peaks]


def show(name: str, fit: tuple[list[mp.mpf], mp.mpf]) -> None:
    """Prints one set as C++ float literals."""
    print(f"{name}: error {mp.nstr(fit[1], 3)}")
    for coefficient in fit[0]:
        print(f"  {mp.nstr(coefficient, 10)}f")


def near_zero(function: Function, limit: mp.mpf) -> Function:
    """`function`, with its limit at 0 filled in."""
    return lambda x: limit if abs(x) < mp.mpf("1e-18") else function(x)


def main() -> None:
    """Prints every set."""
    half_ln2 = mp.log(2) / 2
    show(
        "expm1(r) = r + r^2 q(r), |r| <= ln(2)/2",
        remez(
            near_zero(lambda r: (mp.expm1(r) - r) / r**2, mp.mpf(1) / 2),
            lambda r: r * r + mp.mpf("1e-6"),
            (-half_ln2 - mp.mpf("0.0005"), half_ln2 + mp.mpf("0.0005")),
            4,
        ),
    )
    show(
        "log(1 + f) = f - f^2/2 + f^3 p(f), sqrt(1/2) <= 1 + f <= sqrt(2)",
        remez(
            near_zero(lambda f: (mp.log1p(f) - f + f * f / 2) / f**3, mp.mpf(1) / 3),
            lambda f: abs(f) ** 2 + mp.mpf("1e-3"),
            (mp.sqrt(mp.mpf(1) / 2) - 1 - mp.mpf("0.0005"), mp.sqrt(2) - 1 + mp.mpf("0.0005")),
            7,
        ),
    )
    show(
        "erf(x) = x + x p(x^2), |x| <= 1",
        remez(
            near_zero(lambda s: mp.erf(mp.sqrt(s)) / mp.sqrt(s) - 1, 2 / mp.sqrt(mp.pi) - 1),
            lambda s: mp.mpf(1),
            (mp.mpf(0), mp.mpf(1)),
            6,
        ),
    )
    show(
        "erfc(x) = exp(q(x)), 1 <= x <= 4",
        remez(lambda x: mp.log(mp.erfc(x)), lambda x: mp.erfc(x) / mp.erf(x), (mp.mpf(1), mp.mpf(4)), 7),
    )


if __name__ == "__main__":
    main()
