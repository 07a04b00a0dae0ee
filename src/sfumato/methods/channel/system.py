"""The system `channel`: randomized response matrices between privacy and error.

A saved front of channels is checked by computing its figures from its matrices: the folder is untrusted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from sfumato.base.compare import shown, unlike
from sfumato.base.text import number, number_or_infinity, percent
from sfumato.decide.pick import Choice
from sfumato.errors import InputError
from sfumato.front import Front, Point
from sfumato.methods.channel.given import headline_rows, others_words
from sfumato.methods.channel.matrices import CLOSE
from sfumato.methods.channel.prior import prior_of
from sfumato.methods.channel.release import DISGUISES, disguise_draft
from sfumato.methods.channel.search import over_epsilon, point_of, search_channel
from sfumato.methods.run import Run
from sfumato.methods.system import Abilities, Applying, Publishing, Verdict
from sfumato.plans.channel import Channel
from sfumato.release.draft import Draft, Verifier
from sfumato.release.manifest import Manifest
from sfumato.release.policy import acceptances
from sfumato.release.readback import require_source
from sfumato.report.page import front_page
from sfumato.study import Study
from sfumato.tables.frequency import FrequencyTable

NOTHING = 1e-13  # absolute tolerance: the errors of large tables are small figures, and must be compared too


def channel_of(point: Point) -> Channel:
    """Return the channel of a point."""
    if isinstance(point.plan, Channel):
        return point.plan
    raise InputError("the point is not a channel", expected="a front of the channel system")


def refuse_other_figures(front: Front) -> None:
    """Raise unless a front belongs to the table of its study and its figures are those of its channels."""
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
    prior = prior_of(study.replace(channel={"columns": channel_of(front.point(0)).columns}))
    for point in front.points:
        channel = channel_of(point)
        if channel.columns != prior.columns or channel.cells != prior.cells:
            raise _mismatch(f"channel {point.id} is of other columns or categories than the table has")
        again = point_of(prior, point.id, channel, point.bound, beside=over_epsilon(front))
        for name, said, true in unlike(point.as_dict(), again.as_dict(), least=NOTHING):
            raise _mismatch(f"the front says {name} = {shown(said)} of channel {point.id}, but it is {shown(true)}")
        if point.bound is not None and point.bound > again.values["mse"] * (1 + CLOSE):
            raise _mismatch(f"the error of channel {point.id} is below the lower bound that the front states")


def _mismatch(what: str) -> InputError:
    return InputError(
        f"{what}: nothing was released",
        expected="an unchanged front, and the table that was searched",
        remedy="search again",
    )


NOTABLE_GAIN = 10.0  # a gain from which on the publisher is warned


@dataclass(frozen=True)
class Channels:
    """The system whose plans are channels: the probability of each report given each true category."""

    name: str = "channel"
    plan: type[Channel] = Channel
    plans: str = "channels"
    verifier: Verifier = DISGUISES
    abilities: ClassVar[Abilities] = Abilities()
    apply: Callable[[Applying], Draft] | None = None

    def unit(self, study: Study) -> str:
        return "generations" if study.channel.engine == "optrr" else "steps"

    def search(self, study: Study, run: Run, table: FrequencyTable | None = None) -> Front:  # noqa: ARG002
        return search_channel(study, run)

    def verdict(self, front: Front) -> Verdict:
        details = front.details
        low, high = details["range"]
        said = [f"{details['categories']} categories of {' × '.join(details['columns'])}, {front.rows:,} records"]
        if not over_epsilon(front):
            said.append(f"privacy can range from {low:.4f} to {high:.4f}")
        said.append(f"matrices are designed for {details['designed_for']}")
        given = details.get("given")
        if given is not None:
            said.append(
                f"limits for {number(given['limited'])} combinations of {others_words(given['columns'])}"
                + (f", ε for {number(given['small'])} smaller ones" if given["small"] else "")
            )
        cap, keep = details["epsilon_cap"], front.study.channel.keep
        if keep and cap is not None and given is None and front.study.channel.epsilon is None:
            said.append(
                f"ε is at most {cap:.4g}, so that the policy rule response holds beside {', '.join(keep)}: "
                f"given = {list(keep)} under [channel] searches for these columns alone"
            )
        worst = [a["worst_posterior"] for p in front.points for a in p.details.get("attributes", {}).values()]
        if any(one > details["delta"] + 1e-9 for one in worst):
            said.append(f"δ = {details['delta']:g} applies to the columns jointly; individual columns may exceed it")
        largest = max((point.values["gain"] for point in front.points), default=1.0)
        if largest > NOTABLE_GAIN:
            said.append(
                f"a report can make a rare category up to {number(largest)} times as likely as its share: "
                f"gain = {NOTABLE_GAIN:g} under [channel] caps it"
            )
        said.append("the front reveals the shares: keep it confidential")
        return Verdict(tuple(said))

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front = choice.front
        refuse_other_figures(front)
        study = front.study.with_accepted(acceptances(how.accept))
        return disguise_draft(
            study, [chosen_channel(choice)], study.channel.keep, name=how.name or f"data.{how.format or 'csv'}"
        )

    def figures(self, manifest: Manifest) -> Mapping[str, list[list[str]]]:
        beside = manifest["own"]["given"]
        return {
            f"Computed from the matrix and the source: {name}": [
                *headline_rows(figures, beside),
                *_rows(figures, beside),
            ]
            for name, figures in manifest["figures"].items()
        }

    def page(
        self,
        front: Front,
        chosen: int | None,
        compare: tuple[int, int] | None,  # noqa: ARG002
        table: FrequencyTable | None = None,  # noqa: ARG002
    ) -> str:
        return front_page(front, self.columns(front), chosen, title="Channels", bound="proven minimum error")

    def columns(self, front: Front) -> Mapping[str, list[str]]:
        points = front.points
        columns = {
            "error / bound": ["–" if p.bound is None else f"{p.values['mse'] / p.bound:.4f}" for p in points],
            "worst posterior": [f"{point.values['worst_posterior']:.4f}" for point in points],
            "largest gain": [f"{point.values['gain']:.1f}" for point in points],
            "ε": [number(point.values["epsilon"]) for point in points],
            "outputs": [str(len(channel_of(point).outputs)) for point in points],
        }
        for name in points[0].details.get("beside", {}) if points else ():
            columns[f"{name} / error"] = [f"{p.details['beside'][name] / p.values['mse']:.3f}" for p in points]
        for name in front.details["columns"] if len(front.details["columns"]) > 1 else ():
            attributes = [point.details["attributes"][name] for point in points]
            columns[f"{name}: privacy / worst"] = [
                f"{a['privacy']:.4f} / {a['worst_posterior']:.4f}" for a in attributes
            ]
        return columns


def _rows(figures: Mapping[str, Any], beside: Mapping[str, Any] | None) -> list[list[str]]:
    """Return the figures of a channel on the shares of the whole table: an attacker has a report and nothing else."""
    alone = "" if beside is None else f"without {others_words(beside['columns'])}: "
    return [
        [f"{alone}privacy", f"{figures['privacy']:.4f}"],
        [f"{alone}worst posterior", f"{figures['worst_posterior']:.4f}"],
        ["ε", number_or_infinity(figures["epsilon"])],
        ["error of an estimated share (mse)", number_or_infinity(figures["mse_of_estimate"])],
        [f"{alone}largest gain of a report over a share", f"{figures['largest_gain']:.1f} times"],
        ["loss", percent(figures["loss"])],
    ]


def chosen_channel(choice: Choice) -> Channel:
    """Return the channel of a choice, for the publisher only: its notes reveal the shares and the front."""
    points = [flat(point) for point in choice.front.points]
    front = {"chosen": choice.point.id, "points": points}
    channel = channel_of(choice.point)
    return replace(channel, notes={**channel.notes, "front": front})


def flat(point: Point) -> dict[str, object]:
    """Return the figures of a point in one record, as in a channel file and a report."""
    entries = {key: value for key, value in point.as_dict().items() if key not in ("values", "details", "bound")}
    values: dict[str, object] = point.as_dict()["values"]
    bound = point.bound
    ratio = None if bound is None else point.values["mse"] / bound
    return entries | values | {"lower_bound": bound, "ratio": ratio} | dict(point.details)


SYSTEMS = {"channel": Channels()}

__all__ = ["SYSTEMS", "Channels", "channel_of", "chosen_channel", "flat"]
