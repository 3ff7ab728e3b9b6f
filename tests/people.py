"""Tables of people for evaluations: biased by sex, with a label that features tell in part."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from equipoise.counts import CountRequest
from equipoise.evaluation.request import EvaluationRequest


def people(n=600, seed=0, labels=("no", "yes")):
    """Women have the last label less often; the skill tells the label, with noise."""
    generator = np.random.default_rng(seed)
    sex = generator.choice(["w", "m"], n, p=[0.4, 0.6])
    race = generator.choice(["a", "b"], n, p=[0.7, 0.3])
    skill = generator.normal(size=n) + 0.8 * (sex == "m")
    cuts = np.linspace(-0.2, 1.2, len(labels) - 1)
    label = np.searchsorted(cuts, skill + 0.7 * generator.normal(size=n))
    return pa.table(
        {
            "sex": sex,
            "race": race,
            "skill": skill.round(3),
            "years": generator.integers(0, 40, n),
            "town": generator.choice(["x", "y", "z"], n),
            "hired": np.array(labels)[label],
        }
    )


def asked(**options):
    """What is asked for of such a table."""
    sensitive = options.pop("sensitive", ("sex",))
    how = {k: options.pop(k) for k in ("na", "missing") if k in options}
    counting = CountRequest(sensitive=sensitive, label="hired", **how)
    return EvaluationRequest(counting=counting, **{"repeats": 2, **options})
