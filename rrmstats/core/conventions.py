"""Conventions of statistics that several files share: evidence, far rows, leverage."""

from __future__ import annotations

#: Differences in BIC: hardly evidence up to the first, strong and very strong from the others on.
#: Derived: twice the logarithms of Bayes factors of 3, 20 and 150 (Kass and Raftery, 1995).
CLOSE, STRONG, VERY_STRONG = 2.0, 6.0, 10.0
#: A row is far from the others, in X or from a fit, where one good row in a thousand is.
#: Convention: a level at which a hundred clean rows have hardly one.
FAR = 1e-3
#: Largest hat value that a residual is corrected for, as in HC3: beyond, the correction is noise.
#: Convention: a residual counts at most a hundred times.
MOST_LEVERAGE = 0.99
