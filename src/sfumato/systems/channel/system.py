"""The channel system: randomized response matrices between privacy and error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sfumato.decide import Choice
from sfumato.front import Front, Point
from sfumato.plans.channel import Channel
from sfumato.release.draft import Draft
from sfumato.release.manifest import Manifest
from sfumato.release.policy import acceptances
from sfumato.release.verify import Verifier
from sfumato.runtime.figures import number, number_or_infinity, percent
from sfumato.study import Study
from sfumato.systems.applying import Applying
from sfumato.systems.channel.again import channel_of, refuse_unlike
from sfumato.systems.channel.disguise import disguise_draft
from sfumato.systems.channel.given import headline_rows, others_words
from sfumato.systems.channel.search import over_epsilon, search_channel
from sfumato.systems.channel.verify import DISGUISES
from sfumato.systems.run import Run
from sfumato.systems.system import Publishing, Verdict
from sfumato.tables.frequency import FrequencyTable

TELLING = 10.0  # a gain that a publisher is told of


@dataclass(frozen=True)
class Channels:
    """Plans are channels: with which probability each true category is reported as each output."""

    name: str = "channel"
    plan: type[Channel] = Channel
    plans: str = "channels"
    verifier: Verifier = DISGUISES
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
        if largest > TELLING:
            said.append(
                f"a report can make a rare category up to {number(largest)} times as likely as its share: "
                f"gain = {TELLING:g} under [channel] caps it"
            )
        said.append("the front reveals the shares: keep it confidential")
        return Verdict(tuple(said))

    def draft(self, choice: Choice, how: Publishing) -> Draft:
        front = choice.front
        refuse_unlike(front)
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
        from sfumato.report.front_page import front_page

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
    """The figures of a channel on the shares of the whole table, which someone knows who has a report and no more."""
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
    """The channel of a choice, for the publisher only: its notes tell of the shares, and of the front it is from."""
    points = [flat(point) for point in choice.front.points]
    front = {"chosen": choice.point.id, "points": points}
    channel = channel_of(choice.point)
    return replace(channel, notes={**channel.notes, "front": front})


def flat(point: Point) -> dict[str, object]:
    """A point's figures in one record, as a channel file and a report have them."""
    entries = {key: value for key, value in point.as_dict().items() if key not in ("values", "details", "bound")}
    values: dict[str, object] = point.as_dict()["values"]
    bound = point.bound
    ratio = None if bound is None else point.values["mse"] / bound
    return entries | values | {"lower_bound": bound, "ratio": ratio} | dict(point.details)


SYSTEMS = {"channel": Channels()}

__all__ = ["SYSTEMS", "Channels", "channel_of", "chosen_channel", "flat"]
