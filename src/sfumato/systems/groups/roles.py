"""Who attacks a file, and in which role: known attacks fit the plans, fresh ones choose among them, sealed ones judge.

Sealed attackers learn only when they are asked for, after the plans are made: nothing of them can reach a plan.
"""

from __future__ import annotations

from collections.abc import Sequence

from sfumato.errors import InputError, StoppedError, UnreachableError
from sfumato.runtime.stages import Progress
from sfumato.study import Study
from sfumato.study.groups import AttackerName, AuxiliarySettings
from sfumato.systems.groups.attack.attack import Attack, attack_with
from sfumato.systems.groups.files.microfile import Microfile
from sfumato.systems.groups.files.read import Truth, read_whole_auxiliary, settings_of
from sfumato.systems.run import Run

FRESH, SEALED = 1000, 9000  # fresh and sealed seeds start so far from the known ones


class Roles:
    """The attacks on a file by role. `silent` are those that could not be: no rule meets an attacker's limits."""

    def __init__(self, study: Study, target: Microfile, truths: Sequence[Truth], run: Run | None = None) -> None:
        self.study, self.target, self.truths, self.run = study, target, tuple(truths), run
        self.settings = settings_of(study)
        self.silent: dict[str, UnreachableError] = {}
        self._read: dict[int, Microfile] = {}
        if not self.settings.auxiliary:
            raise InputError("no auxiliary file is declared", expected="a file that shows who is in the group")

    def planning(self) -> tuple[list[Attack], list[Attack]]:
        """The attacks that plans are fitted to, and those that choose among plans."""
        protect, first = self.settings.protect, self.settings.attack.seed
        open_files = [i for i, one in enumerate(self.settings.auxiliary) if not one.held_out]
        if not open_files:
            raise InputError(
                "every auxiliary file is held out", expected="at least one that the swaps can be fitted to"
            )
        seeds = range(first, first + protect.known_seeds)
        known = self._attacks(open_files, protect.attackers, seeds, self._asked)
        if not known:
            raise next(iter(self.silent.values()))
        seeds = range(first + FRESH, first + FRESH + protect.fresh_seeds)
        return known, self._attacks(open_files, protect.attackers, seeds, self._asked)

    def sealed(self) -> list[Attack]:
        """The attacks that judge: other seeds, other kinds of models, files that are held out.

        They learn to the end even when asked to stop: the plans so far are kept, and none is offered without a verdict.
        """
        protect, first = self.settings.protect, self.settings.attack.seed + SEALED
        attackers = tuple(dict.fromkeys((*protect.attackers, *protect.sealed_attackers)))
        files, seeds = range(len(self.settings.auxiliary)), range(first, first + protect.sealed_seeds)
        sealed = self._attacks(files, attackers, seeds, self._told)
        if not sealed:
            raise next(iter(self.silent.values()))
        return sealed

    def _attacks(
        self, files: Sequence[int], attackers: Sequence[AttackerName], seeds: Sequence[int], progress: Progress
    ) -> list[Attack]:
        attacks: list[Attack] = []
        for number in files:
            one = self.settings.auxiliary[number]
            for truth in self.truths:
                for attacker in attackers:
                    attacks += self._made(number, one, truth.group, attacker, seeds, progress)
        return attacks

    def _made(
        self,
        number: int,
        one: AuxiliarySettings,
        group: str,
        attacker: str,
        seeds: Sequence[int],
        progress: Progress,
    ) -> list[Attack]:
        if number not in self._read:
            self._read[number] = read_whole_auxiliary(self.study, one, self.target)
        made: list[Attack] = []
        for seed in seeds:
            try:
                made += attack_with(self.study, self.target, self._read[number], attacker, group, [seed], progress)
            except UnreachableError as error:
                self.silent[f"{attacker} from {one.title}, group {group}"] = error
            except StoppedError:
                raise StoppedError("interrupted while the attackers were learning; nothing was saved") from None
        return made

    def _asked(self, done: int, total: int) -> bool:
        """Whether to stop. The last word comes after a model is ready: a search ends before the next one learns."""
        return done < total and self.run is not None and self.run.tell(0, self.settings.protect.levels)

    def _told(self, done: int, total: int) -> bool:  # noqa: ARG002
        """That the plans are ready; nobody is asked any more."""
        if self.run is not None:
            self.run.tell(self.settings.protect.levels, self.settings.protect.levels)
        return False
