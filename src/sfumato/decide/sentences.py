"""How the answers of `ask` are worded."""

from __future__ import annotations

from sfumato.decide.offers import Offer, Privacy
from sfumato.measures.facts import Form
from sfumato.measures.standard import DISTINCT_L, WEIGHTED_K, K
from sfumato.runtime.figures import number, percent


def safe(offer: Offer) -> str:
    """The k and ℓ of an offer."""
    return f"{K.label} {offer.k:,}" + (f" and {DISTINCT_L.label} {offer.l}" if offer.l is not None else "")


def what(offer: Offer, privacy: Privacy, both: bool) -> str:
    """What an offer gives of what is sought."""
    return safe(offer) if both else f"{privacy.title} {number(offer.value)}"


def costs(offer: Offer) -> str:
    """What an offer costs."""
    gone = f"{percent(offer.suppression)} suppressed" if offer.suppressed else "nothing suppressed"
    return f"loss {percent(offer.loss)}, {gone}"


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
