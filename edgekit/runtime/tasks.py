"""model(image): prepare, run, post-process, for one picture."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, cast
from weakref import WeakKeyDictionary

from edgekit.engines.feeds import find_bucket
from edgekit.errors import UsageError
from edgekit.vision.frame_transform import FrameTransform
from edgekit.vision.image_transform import Array, Preparer
from edgekit.vision.images import ImageLike
from edgekit.vision.results import Result
from edgekit.vision.tasks import Task, make_task

if TYPE_CHECKING:
    from edgekit.package.manifest import Manifest
    from edgekit.runtime.model import Model

Run = Callable[[dict[str, Array]], dict[str, Array]]


@dataclass(frozen=True)
class ImageTask:
    """How one thread runs a model on pictures.

    Attributes:
        preparer: Turns a picture into the input.
        task: Turns outputs into a result.
        input_name: Of the one input.
        buckets: See Manifest.buckets.
    """

    preparer: Preparer
    task: Task
    input_name: str
    buckets: tuple[Mapping[str, int], ...] = ()

    def bucket(self, transform: FrameTransform) -> int:
        """Index of the shape bucket of a prepared picture; 0 when the input's shape is fixed."""
        dims = zip(self.preparer.input_spec.shape, self.preparer.array_shape(transform.input_hw), strict=True)
        return find_bucket({dim: size for dim, size in dims if isinstance(dim, str)}, self.buckets)

    @classmethod
    def of(cls, manifest: Manifest) -> ImageTask:
        """Makes it from a package's manifest.

        Raises:
            UsageError: The package takes no picture, or has further inputs.
        """
        if manifest.preprocess is None:
            raise UsageError(
                "the package takes no picture",
                where=manifest.source_name,
                hint="convert it with --preprocess, or use model.run({name: array})",
            )
        if len(manifest.inputs) != 1:
            raise UsageError(
                "the package has more inputs than a picture",
                got=", ".join(spec.name for spec in manifest.inputs),
                hint="use model.run({name: array})",
            )
        spec = manifest.inputs[0]
        preparer = Preparer(manifest.preprocess, spec, manifest.buckets)
        return cls(preparer, make_task(manifest), spec.name, manifest.buckets)

    def run(self, image: ImageLike, run: Run) -> Result:
        """Prepares one picture, runs it and post-processes the outputs."""
        array, transform = self.preparer.prepare(image)
        return self.finish(run({self.input_name: array}), transform)

    def finish(self, outputs: dict[str, Array], transform: FrameTransform) -> Result:
        """Post-processes outputs; marks results of the engine "simulated"."""
        result = self.task.postprocess(outputs, transform)
        return replace(result, simulated=True) if getattr(outputs, "simulated", False) else result


_tasks: WeakKeyDictionary[Model, ImageTask] = WeakKeyDictionary()
_tasks_lock = threading.Lock()


def run_image(model: Model, image: object) -> Result:
    """Runs a model on one picture; see Model.__call__."""
    with _tasks_lock:
        task = _tasks.get(model)
        if task is None:
            task = _tasks[model] = ImageTask.of(model.manifest)
    return task.run(cast("ImageLike", image), model.run)
