"""The shape of a trade-off: its steps, its knee, where more privacy costs almost nothing and where it costs much."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfumato.algorithms.dominance import comparable, first_non_dominated
from sfumato.decide.offers import Offer, Offers, Privacy
from sfumato.decide.pick import knee_place
from sfumato.runtime.arrays import Counts64, Floats

STEPS = 600  # a curve with more is thinned before its stretches are sought
STRETCH = 3.0  # a flat stretch gains three times as fast as the whole curve, a steep one a third as fast
LEAST = 0.04  # share of the whole gain (flat) or of the whole loss (steep) that makes a stretch worth telling


@dataclass(frozen=True, eq=False)
class Curve:
    """The best of what is sought at every loss: steps of rising loss and rising gain, as places among offers."""

    offers: Offers
    privacy: Privacy
    places: Counts64

    @classmethod
    def of(cls, offers: Offers, privacy: Privacy) -> Curve:
        values = offers.values(privacy)
        known = np.flatnonzero(np.isfinite(values))
        gain = privacy.gain(values[known])
        order = np.lexsort((offers.suppressed[known], -gain, offers.loss[known]))
        price = comparable(np.stack([offers.loss[known], -gain], axis=1)[order])
        return cls(offers, privacy, known[order[first_non_dominated(price)]])

    def __len__(self) -> int:
        return len(self.places)

    @property
    def loss(self) -> Floats:
        return self.offers.loss[self.places]

    @property
    def values(self) -> Floats:
        return self.offers.values(self.privacy)[self.places]

    @property
    def gain(self) -> Floats:
        return self.privacy.gain(self.values)

    def at(self, step: int) -> Offer:
        return self.offers.at(int(self.places[step]), self.privacy)

    @property
    def rate(self) -> float:
        """What the whole curve gains for a loss of 1: what a step must beat to pay."""
        if len(self) < 2:
            return 0.0
        return float(np.ptp(self.gain) / max(np.ptp(self.loss), 1e-9))

    def knee(self) -> Offer | None:
        """The step farthest on the good side of the line between the ends."""
        step = knee_place(self.gain, self.loss)
        return None if step is None else self.at(step)

    @property
    def scale(self) -> str:
        """The scale on which the knee is one."""
        kind = "an even" if self.privacy.direction == "min" else "a logarithmic"
        return f"on {kind} scale of {self.privacy.title} and an even one of loss"

    def flat(self, limit: int = 3) -> list[tuple[Offer, Offer]]:
        """Stretches that gain much for almost no loss, the most gain first."""
        return self._stretches(limit, flat=True)

    def steep(self, limit: int = 3) -> list[tuple[Offer, Offer]]:
        """Stretches that lose much for almost no gain, the most loss first."""
        return self._stretches(limit, flat=False)

    def _stretches(self, limit: int, flat: bool) -> list[tuple[Offer, Offer]]:
        steps = np.unique(np.linspace(0, len(self) - 1, STEPS).astype(np.int64)) if len(self) else self.places
        if len(steps) < 4 or not np.ptp(self.gain) or not np.ptp(self.loss):
            return []
        gain, loss = self.gain[steps] / np.ptp(self.gain), self.loss[steps] / np.ptp(self.loss)
        rise, run = gain[None, :] - gain[:, None], loss[None, :] - loss[:, None]
        if flat:
            length = np.where((rise >= STRETCH * run) & (rise >= LEAST), rise, 0.0)
        else:
            length = np.where((rise * STRETCH <= run) & (run >= LEAST), run, 0.0)
        length = np.triu(length, 1)
        result: list[tuple[Offer, Offer]] = []
        while len(result) < limit and length.max() > 0:
            a, b = (int(position) for position in np.unravel_index(int(np.argmax(length)), length.shape))
            result.append((self.at(int(steps[a])), self.at(int(steps[b]))))
            # What overlaps what was found is no further stretch.
            length[:b, a + 1 :] = 0.0
        return result
