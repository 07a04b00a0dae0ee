"""A saved front of channels worked out again from its matrices: nothing that it says is believed without that."""

from __future__ import annotations

from sfumato.errors import InputError
from sfumato.front import Front, Point
from sfumato.plans.channel import Channel
from sfumato.release.sources import require_source
from sfumato.systems.channel.matrices import CLOSE
from sfumato.systems.channel.prior import prior_of
from sfumato.systems.channel.search import over_epsilon, point_of
from sfumato.systems.unlike import first_unlike, shown


def channel_of(point: Point) -> Channel:
    """The channel of a point."""
    if isinstance(point.plan, Channel):
        return point.plan
    raise InputError("the point is not a channel", expected="a front of the channel system")


def refuse_unlike(front: Front) -> None:
    """Raise unless a front is of the table that its study names, and says of each channel what that has on it."""
    study = front.study
    given = study.channel.prior
    if given is not None and study.folder / study.data.path == study.folder / given:
        raise InputError(
            "the front was searched with shares from a file, and no table is declared that could be disguised",
            expected="a run file with a table under [data]",
            remedy="sfumato channel export writes a channel, and sfumato channel disguise takes it for a table",
        )
    source = study.opened()
    if front.fingerprint:
        require_source(source, front.fingerprint)
    prior = prior_of(study.with_channel(columns=channel_of(front.point(0)).columns))
    for point in front.points:
        channel = channel_of(point)
        if channel.columns != prior.columns or channel.cells != prior.cells:
            raise _unlike(f"channel {point.id} is of other columns or categories than the table has")
        again = point_of(prior, point.id, channel, point.bound, beside=over_epsilon(front))
        where = first_unlike(point.as_dict(), again.as_dict())
        if where is not None:
            name, said, true = where
            raise _unlike(f"the front says {name} = {shown(said)} of channel {point.id}, but it is {shown(true)}")
        if point.bound is not None and point.bound > again.values["mse"] * (1 + CLOSE):
            raise _unlike(f"the error of channel {point.id} is below the lower bound that the front states")


def _unlike(what: str) -> InputError:
    return InputError(
        f"{what}: nothing was released",
        expected="an unchanged front, and the table that was searched",
        remedy="search again",
    )
