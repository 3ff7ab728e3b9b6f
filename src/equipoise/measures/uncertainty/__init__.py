"""How sure a Uniform Bias is: intervals, p-values and q-values, from counts alone.

All functions take arrays that broadcast together. In a lattice of G groups and k labels

====== =========== =======================================
name   shape       meaning
====== =========== =======================================
``x``  (G, k)      n_gy, rows of the group with the label
``m``  (G, 1)      n_g, rows of the group
``X``  (k,)        n_y, rows with the label
``N``  scalar      n, all rows
====== =========== =======================================

Inside, ``p1 = x/m`` is the rate within the group, ``p0 = (X-x)/(N-m)`` the rate in the rest,
``f = X/N`` the overall rate, ``P = m/N`` the group's share and ``R = p1/f``, so that UB = 1 - R.
Where UB is undefined (empty group, absent label) every result is ``nan``.
"""
