"""How the answers of `ask` are worded."""

from __future__ import annotations

from sfumato.decide.offers import Offer, Privacy
from sfumato.measures.facts import Form
from sfumato.measures.standard import DISTINCT_L, WEIGHTED_K, K


def share(value: float, other: float | None = None) -> str:
    """A share for people, with as many digits as tell it from another.

    >>> share(0.25), share(0.2477), share(0.25004, 0.25), share(0.00004)
    ('25.0 %', '24.8 %', '25.004 %', '0.004 %')
    """
    for digits in (1, 2, 3, 4):
        shown = _rounded(value, digits)
        differs = other is None or abs(value - other) < 1e-9 or shown != _rounded(other, digits)
        if differs and (float(shown) or value < 1e-9):
            break
    return f"{shown} %"


def _rounded(value: float, digits: int) -> str:
    whole, rest = f"{value * 100:.{digits}f}".split(".")
    return f"{whole}.{rest.rstrip('0') or '0'}" if value >= 1e-9 else "0"


def number(value: float) -> str:
    """A figure for people.

    >>> number(14.0), number(1396.42), number(4.142857), number(30162)
    ('14', '1,396', '4.14', '30,162')
    """
    if value == int(value):
        return f"{int(value):,}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.4f}"


def safe(offer: Offer) -> str:
    """The k and ℓ of an offer."""
    return f"{K.label} {offer.k:,}" + (f" and {DISTINCT_L.label} {offer.l}" if offer.l is not None else "")


def what(offer: Offer, privacy: Privacy, both: bool) -> str:
    """What an offer gives of what is sought."""
    return safe(offer) if both else f"{privacy.title} {number(offer.value)}"


def costs(offer: Offer) -> str:
    """What an offer costs."""
    gone = f"{share(offer.suppression)} suppressed" if offer.suppressed else "nothing suppressed"
    return f"loss {share(offer.loss)}, {gone}"


def whole(offer: Offer, privacy: Privacy, both: bool) -> str:
    """An offer in one clause: all that is known of its privacy, then its price."""
    parts = [what(offer, privacy, both)]
    if not both and privacy.form is not Form.SIZE and offer.k > 0:
        parts.append(f"{K.label} {offer.k:,}")
    if not both and privacy.form is not Form.DIVERSITY and offer.l is not None:
        parts.append(f"{DISTINCT_L.label} {offer.l}")
    if privacy.form not in (None, Form.MEAN_SIZE) and offer.weighted_k is not None:
        parts.append(f"{WEIGHTED_K.label} {number(offer.weighted_k)}")
    return f"{', '.join(parts)}; {costs(offer)} (point {offer.point})"
