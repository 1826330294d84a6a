"""The passes in the order in which they run (conversion.md, "Order of passes", 2 to 6).

Activations are recognised before constants are folded into Convs, although conversion.md numbers them the other way:
the 1/6 of a decomposed HardSwish would otherwise move into the next Conv and hide the pattern.
"""

from __future__ import annotations

from edgekit.converters.passes._pass import Pass
from edgekit.converters.passes.affine_conv import AFFINE_CONV
from edgekit.converters.passes.bn_conv import BN_CONV
from edgekit.converters.passes.clips import CLIPS
from edgekit.converters.passes.common_subexpressions import COMMON_SUBEXPRESSIONS
from edgekit.converters.passes.constant_if import CONSTANT_IF
from edgekit.converters.passes.dead_nodes import DEAD_NODES
from edgekit.converters.passes.fold_batchnorm import CONV_BN, CONVTRANSPOSE_BN, GEMM_BN
from edgekit.converters.passes.fold_constants import FOLD_CONSTANTS
from edgekit.converters.passes.hard_activations import HARD_SIGMOID, HARD_SWISH
from edgekit.converters.passes.identities import IDENTITIES
from edgekit.converters.passes.inline_functions import INLINE_FUNCTIONS
from edgekit.converters.passes.leftover_batchnorm import LEFTOVER_BATCHNORM
from edgekit.converters.passes.lift_constants import LIFT_CONSTANTS
from edgekit.converters.passes.norms import LAYER_NORM, RMS_NORM
from edgekit.converters.passes.pad_conv import PAD_CONV
from edgekit.converters.passes.reparameterise import REPARAMETERISE
from edgekit.converters.passes.shapes import INFER_SHAPES
from edgekit.converters.passes.smooth_activations import GELU, MISH, SILU
from edgekit.converters.passes.split_roles import SPLIT_ROLES
from edgekit.converters.passes.unique_names import UNIQUE_NAMES

NORMALISE: tuple[Pass, ...] = (INLINE_FUNCTIONS, LIFT_CONSTANTS, UNIQUE_NAMES)
"""Run before shapes are fixed."""

OPTIMISE: tuple[Pass, ...] = (
    INFER_SHAPES,
    FOLD_CONSTANTS,
    CONSTANT_IF,
    IDENTITIES,
    DEAD_NODES,
    COMMON_SUBEXPRESSIONS,
    SPLIT_ROLES,
    CLIPS,
    HARD_SWISH,
    HARD_SIGMOID,
    SILU,
    MISH,
    GELU,
    LAYER_NORM,
    RMS_NORM,
    PAD_CONV,
    AFFINE_CONV,
    CONV_BN,
    CONVTRANSPOSE_BN,
    GEMM_BN,
    BN_CONV,
    LEFTOVER_BATCHNORM,
    AFFINE_CONV,
    REPARAMETERISE,
)
"""Run after shapes are fixed. affine-conv runs twice: before, since a bias may stand between a layer and its
BatchNormalization, and after, for what then follows the layer."""
