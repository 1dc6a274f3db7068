"""From a sample of embedded memories to a similarity threshold.

Contract: calibration.sample.
"""

from __future__ import annotations

import numpy as np

from ..errors import Refused
from ..shared.settings import Settings
from . import measure
from .drawn import Drawn
from .measured import BALANCED, BETAS
from .plan import PERCENTILE, ZSCORE, Plan


def threshold_of(drawn: Drawn, plan: Plan, settings: Settings) -> tuple[float, str | None]:
    """Return the threshold and, for the separation, where its positives come from. Raises Refused above 1.0."""
    vectors = np.stack([row.vector for row in drawn.sample])
    null, proxy = measure.pair_similarities(vectors), None
    if plan.method == PERCENTILE:
        value = measure.quantile(null, plan.percentile)
    elif plan.method == ZSCORE:
        value = measure.zscore(null, plan.z_factor)
    else:
        proxy = measure.TEMPORAL if len(drawn.pairs) >= measure.LEAST_POSITIVE_PAIRS else measure.NEAREST
        if proxy == measure.TEMPORAL:
            positive = np.array([a.vector.astype(np.float64) @ b.vector for a, b in drawn.pairs])
        else:
            positive = measure.nearest_similarities(vectors)
        value = measure.separation(null, positive, BETAS[BALANCED])
    value = round(max(value, settings.calibrate_floor), 4)
    if value > 1.0:
        raise Refused(f"the measured threshold {value} is above 1.0, the largest similarity there is; nothing was kept")
    return value, proxy
