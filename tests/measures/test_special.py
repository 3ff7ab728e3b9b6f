from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.special

from equipoise.measures.uncertainty import special


def test_few_values_have_the_error_function_that_scipy_gives():
    x = np.concatenate([np.random.default_rng(0).uniform(0, 27, 20_000), [0, 1, 8, 40, np.inf]])
    found = np.array([special._erfc(each) for each in x.tolist()])
    # The last digit may differ where a compiler fuses multiplication and addition.
    np.testing.assert_allclose(found, scipy.special.erfc(x), rtol=1e-14, atol=0)
    assert np.isnan(special._erfc(np.nan))


@pytest.mark.parametrize("confidence", [0.9, 0.95, 0.99, 0.8, 0.999])
def test_quantiles_are_those_of_scipy(confidence):
    alpha = 1 - confidence
    for p in (1 - alpha / 2, 0.5 + confidence / 2):
        assert special.normal_quantile(p) == pytest.approx(scipy.special.ndtri(p), rel=1e-15)
    expected = scipy.special.gammaincinv([1, 2, 3], alpha)
    np.testing.assert_allclose(special.gamma_quantiles(alpha), expected, rtol=1e-15)


def test_usual_confidence_levels_need_no_scipy():
    program = (
        "import sys, numpy as np\n"
        "from equipoise.measures.uncertainty import special\n"
        "for c in (0.9, 0.95, 0.99):\n"
        "    special.normal_quantile(1 - (1 - c) / 2), special.normal_quantile(0.5 + c / 2)\n"
        "    special.gamma_quantiles(1 - c)\n"
        "special.erfc(np.array([[0.5, 2.0]]))\n"
        "assert not [m for m in sys.modules if m.startswith('scipy')]\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
