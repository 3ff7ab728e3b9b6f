"""Special functions for few values, without SciPy: loading it takes longer than most measurements.

The numbers are SciPy's own, to the last digit. The quantiles that usual confidence levels need
are kept as constants, and `erfc` is evaluated by the same rational approximations (Cephes, by
S. L. Moshier) in the same order of operations.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from equipoise.measures.uncertainty.arrays import Floats

_FEW = 5_000
"""For at most this many values, a loop in Python is faster than loading SciPy."""

_NORMAL = {0.95: 1.6448536269514722, 0.975: 1.959963984540054, 0.995: 2.5758293035489004}
_GAMMA = {
    1 - 0.90: (0.10536051565782632, 0.5318116083896118, 1.1020653282493211),
    1 - 0.95: (0.05129329438755058, 0.35536151069866223, 0.8176914471639536),
    1 - 0.99: (0.010050335853501444, 0.148554740253266, 0.4360451650782933),
}

_Ratio: TypeAlias = tuple[Sequence[float], Sequence[float]]
_BELOW_1: _Ratio = (
    (9.60497373987051638749e0, 9.00260197203842689217e1, 2.23200534594684319226e3,
     7.00332514112805075473e3, 5.55923013010394962768e4),
    (3.35617141647503099647e1, 5.21357949780152679795e2, 4.59432382970980127987e3,
     2.26290000613890934246e4, 4.92673942608635921086e4),
)  # fmt: skip
_BELOW_8: _Ratio = (
    (2.46196981473530512524e-10, 5.64189564831068821977e-1, 7.46321056442269912687e0,
     4.86371970985681366614e1, 1.96520832956077098242e2, 5.26445194995477358631e2,
     9.34528527171957607540e2, 1.02755188689515710272e3, 5.57535335369399327526e2),
    (1.32281951154744992508e1, 8.67072140885989742329e1, 3.54937778887819891062e2,
     9.75708501743205489753e2, 1.82390916687909736289e3, 2.24633760818710981792e3,
     1.65666309194161350182e3, 5.57535340817727675546e2),
)  # fmt: skip
_FROM_8: _Ratio = (
    (5.64189583547755073984e-1, 1.27536670759978104416e0, 5.01905042251180477414e0,
     6.16021097993053585195e0, 7.40974269950448939160e0, 2.97886665372100240670e0),
    (2.26052863220117276590e0, 9.39603524938001434673e0, 1.20489539808096656605e1,
     1.70814450747565897222e1, 9.60896809063285878198e0, 3.36907645100081516050e0),
)  # fmt: skip
_UNDERFLOW = -7.09782712893383996843e2


def normal_quantile(p: float) -> float:
    """Return the quantile of the standard normal distribution at a probability."""
    if p in _NORMAL:
        return _NORMAL[p]
    from scipy.special import ndtri

    return float(ndtri(p))


def gamma_quantiles(alpha: float) -> tuple[float, float, float]:
    """Return the quantiles at `alpha` of the gamma distributions of shape 1, 2 and 3."""
    if alpha in _GAMMA:
        return _GAMMA[alpha]
    from scipy.special import gammaincinv

    one, two, three = gammaincinv([1, 2, 3], alpha).tolist()
    return one, two, three


def erfc(x: Floats) -> Floats:
    """Return the complementary error function of numbers that are not negative."""
    if x.size <= _FEW and "scipy.special" not in sys.modules:
        return np.array([_erfc(each) for each in x.ravel().tolist()], np.float64).reshape(x.shape)
    from scipy.special import erfc as exact  # with where= it writes out of bounds up to SciPy 1.17

    return np.asarray(exact(x))


def _erfc(x: float) -> float:
    if x < 1:
        return 1.0 - x * _polynomial(x * x, _BELOW_1[0]) / _monic(x * x, _BELOW_1[1])
    power = -x * x
    if power < _UNDERFLOW:
        return 0.0
    top, bottom = _BELOW_8 if x < 8 else _FROM_8
    return math.exp(power) * _polynomial(x, top) / _monic(x, bottom)


def _polynomial(x: float, coefficients: Sequence[float]) -> float:
    value = coefficients[0]
    for each in coefficients[1:]:
        value = value * x + each
    return value


def _monic(x: float, coefficients: Sequence[float]) -> float:
    """Evaluate a polynomial whose leading coefficient, 1, is not listed."""
    return _polynomial(x, (1.0, *coefficients))
