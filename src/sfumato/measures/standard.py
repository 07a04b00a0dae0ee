"""The measures that rules are made of, under one name each.

A policy asks for k, ℓ and t; every point of a front carries a loss; the searches of a paper have its objectives. Code
that is about one of them takes it from here, and everything else asks a measure what it is.
"""

from __future__ import annotations

from sfumato.measures.facts import Form
from sfumato.measures.loss import general_loss, generalization_loss, suppression_loss, table_error
from sfumato.measures.measure import Measure
from sfumato.measures.privacy import distinct_l, households, k, prosecutor_risk, t_closeness, weighted_k, weighted_l

K: Measure = k.MEASURE
DISTINCT_L: Measure = distinct_l.MEASURE
T_CLOSENESS: Measure = t_closeness.MEASURE
HOUSEHOLDS: Measure = households.NUMBER
PROSECUTOR_RISK: Measure = prosecutor_risk.MEASURE
WEIGHTED_K: Measure = weighted_k.MEASURE
WEIGHTED_L: Measure = weighted_l.MEASURE

GENERAL_LOSS: Measure = general_loss.MEASURE  # as a share of its highest value, the `loss` of a point
GENERALIZATION_LOSS: Measure = generalization_loss.MEASURE  # the part of it that released records have
SUPPRESSION_LOSS: Measure = suppression_loss.MEASURE  # the part that suppressed records have
TABLE_ERROR: Measure = table_error.MEASURE

# The measure that each figure of a histogram is the value of.
OF_FORM: dict[Form, Measure] = {
    Form.SIZE: K,
    Form.DIVERSITY: DISTINCT_L,
    Form.MEAN_SIZE: WEIGHTED_K,
    Form.MEAN_DIVERSITY: WEIGHTED_L,
}
