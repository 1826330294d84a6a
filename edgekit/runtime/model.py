"""Model: a package loaded into an engine. What edgekit.load() returns."""

from __future__ import annotations

from collections.abc import Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

from edgekit.engines.base import Array, CompiledModel, LayerTime
from edgekit.errors import InputError
from edgekit.package.manifest import Manifest, Variant
from edgekit.package.reader import Package
from edgekit.package.specs import TensorSpec
from edgekit.records import Record
from edgekit.runtime.sessions import SessionPool

if TYPE_CHECKING:
    from edgekit.runtime.pipeline import Stream
    from edgekit.vision.results import Result

MAX_SESSIONS = 4


class SelfTest(Record):
    """Outcome of running a package's golden inputs.

    Attributes:
        samples: Number of samples run.
        sqnr_db: Output name to the worst signal-to-noise ratio against the expected output, dB; infinite when equal.
        min_sqnr_db: Output name to the least that passes.
    """

    samples: int
    sqnr_db: Mapping[str, float]
    min_sqnr_db: Mapping[str, float]

    @property
    def passed(self) -> bool:
        """True when every output reaches its tolerance."""
        return all(value >= self.min_sqnr_db[name] for name, value in self.sqnr_db.items())


class Model:
    """A loaded model; use it in a with statement or close() it. Threads may share it.

    Attributes:
        manifest: What the package says about itself.
        variant: The variant that runs.
        engine_name: The engine that runs it; "simulated" marks results that no model computed.
        threads: Threads within an inference.
        compiled: The engine's model.
        pool: Sessions; `with model.pool.lease() as session:` keeps one for a thread of one's own.
        skipped: One line for each variant before this one that can't run here.
    """

    def __init__(
        self,
        package: Package,
        variant: Variant,
        compiled: CompiledModel,
        *,
        engine_name: str,
        threads: int,
        skipped: tuple[str, ...] = (),
    ) -> None:
        self.manifest: Manifest = package.manifest
        self.variant = variant
        self.engine_name = engine_name
        self.threads = threads
        self.compiled = compiled
        self.pool = SessionPool(compiled.create_session, MAX_SESSIONS)
        self.skipped = skipped
        self._package = package

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        """Inputs as run() takes them."""
        return self.manifest.inputs

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        """Outputs as run() gives them."""
        return self.manifest.outputs

    @property
    def isa(self) -> str:
        """Instruction set or device that the engine runs on."""
        return self.compiled.isa

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        """Runs once on raw tensors.

        Args:
            feeds: Input name to array, of the declared dtype and shape; every input and nothing else.

        Returns:
            Output name to a fresh array.

        Raises:
            TensorError: A name, dtype or shape is wrong.
            EngineError: The engine failed, or the model is closed.
        """
        with self.pool.lease() as session:
            return session.run(feeds)

    def __call__(self, image: object) -> Result:
        """Runs on one picture.

        Args:
            image: A path, bytes of a picture file, a u8 array [height, width, 3] in RGB, a PIL image or a Frame.

        Returns:
            The task's result; coordinates are in pixels of the picture given.

        Raises:
            ImageError: It can't be decoded.
            UsageError: The package takes no picture.
        """
        from edgekit.runtime.tasks import run_image

        return run_image(self, image)

    def stream(self, source: object, *, live: bool | None = None, **options: Any) -> Stream:
        """Runs on frames with capture, preprocessing, inference and postprocessing overlapped.

        Args:
            source: A file, folder, camera index, URL, test pattern or iterable of pictures.
            live: True: keep only the newest frame; False: lose none; None: as the source is.
            options: See StreamOptions.

        Returns:
            A context manager that yields results in order.

        Raises:
            SourceError: The source can't be opened.
        """
        from edgekit.runtime.pipeline import open_stream

        return open_stream(self, source, live=live, **options)

    def profile(self, feeds: Mapping[str, Array]) -> list[LayerTime]:
        """Runs once and tells the time of each layer; empty where the engine can't tell."""
        with self.pool.lease() as session:
            return session.profile(feeds)

    def memory_bytes(self) -> dict[str, int]:
        """Returns bytes by kind, such as weights and arena; empty where the engine can't tell."""
        return self.compiled.memory_bytes()

    def example_feeds(self) -> dict[str, Array]:
        """Returns inputs that the model can run on: the golden ones where the package has some, otherwise noise.

        Floats are uniform in 0..1 and integers 0 or 1, seeded; symbolic dims take their smallest bucket.
        """
        from edgekit.package.golden import read_golden

        golden = read_golden(self._package)
        if golden is not None and golden.samples:
            return dict(golden.samples[0].inputs)
        import numpy as np

        bucket = self.manifest.buckets[0] if self.manifest.buckets else {}
        random = np.random.default_rng(0)
        feeds: dict[str, Array] = {}
        for spec in self.inputs:
            shape = tuple(bucket[dim] if isinstance(dim, str) else dim for dim in spec.shape)
            values = random.random(shape, np.float32) if spec.dtype == "float32" else random.integers(0, 2, shape)
            feeds[spec.name] = values.astype(spec.dtype)
        return feeds

    def self_test(self) -> SelfTest:
        """Runs the golden inputs of the package and compares with what the host computed.

        Raises:
            InputError: The package has no golden data.
        """
        from edgekit.package.golden import DEFAULT_MIN_SQNR_DB, read_golden

        golden = read_golden(self._package)
        if golden is None or not golden.samples:
            raise InputError("package has no golden data to test with", where=self._package.path)
        worst = {spec.name: float("inf") for spec in self.outputs}
        for sample in golden.samples:
            results = self.run(sample.inputs)
            for name in worst:
                worst[name] = min(worst[name], sqnr_db(results[name], sample.outputs[name]))
        tolerance = {name: golden.min_sqnr_db.get(name, DEFAULT_MIN_SQNR_DB) for name in worst}
        return SelfTest(len(golden.samples), worst, tolerance)

    def close(self) -> None:
        """Waits for runs in progress, then frees everything; safe to call twice."""
        self.pool.close()
        self.compiled.close()
        self._package.close()

    def __enter__(self) -> Model:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def sqnr_db(result: Array, expected: Array) -> float:
    """Returns 10 log10(sum(expected^2) / sum((result - expected)^2)) in dB.

    Infinite when they are equal; minus infinity when shapes differ or a value that should be finite is not.
    """
    import numpy as np

    if result.shape != expected.shape:
        return float("-inf")
    wanted, got = expected.astype(np.float64), result.astype(np.float64)
    if np.array_equal(wanted, got, equal_nan=True):
        return float("inf")
    noise = float(np.sum((got - wanted) ** 2))
    signal = float(np.sum(wanted**2))
    if not np.isfinite(noise) or not np.isfinite(signal) or signal == 0.0:
        return float("-inf")
    return float(10.0 * np.log10(signal / noise))
