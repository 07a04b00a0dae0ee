"""What a method supplies for its releases: drafts that are written, and the facts of a released folder.

The facts of a folder are the entries of its manifest that follow from its files. Publication writes them into the
manifest, and verification computes them again and compares them. So a figure that is added to the facts is verified
without another line.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sfumato.auditing.uniqueness import WholeFile
from sfumato.auditing.units import counted_as
from sfumato.base.compare import ABSENT, CLOSE, LEAST, unlike
from sfumato.base.progress import stage
from sfumato.data.codebook import Codebook
from sfumato.data.engine import Engine, open_engine
from sfumato.data.source import Source
from sfumato.measures.classes import ClassTable
from sfumato.release.dictionary import described
from sfumato.release.format import Entry
from sfumato.release.history.description import Description
from sfumato.release.manifest import DICTIONARY, EXTERNAL, MANIFEST, Content
from sfumato.release.policy import Finding, Inherited
from sfumato.release.readback import table_of
from sfumato.study import Study

Entries = Mapping[str, object]  # entries of a manifest by their path, such as "own.exempt"
MEASURED = ("columns", "released", "whole")  # entries of every manifest that are measured on the data file
FILES = {"dictionary": DICTIONARY[0], "own.released_loss": EXTERNAL}  # other files that state an entry


@dataclass(frozen=True)
class Difference:
    """A difference between a file of a release and the published file."""

    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}"


@dataclass(frozen=True)
class ReleasedFolder:
    """A folder with a written file, the published study, and `own`, the run file that reads the file.

    Before publication, `manifest` has only the entries that are known before the file is measured. The labels that its
    dictionary states are in `codebook`.
    """

    path: Path
    manifest: Content
    study: Study
    own: Study
    codebook: Codebook

    @property
    def data(self) -> str:
        return self.manifest["data"]

    @property
    def written(self) -> Source:
        """Return the released file."""
        return table_of(self.own)


@dataclass(frozen=True)
class Facts:
    """The entries of a manifest that follow from a released folder, and what violates the policy.

    The dictionary is not yet completed by the cells of the file. `differences` are contradictions that no entry shows,
    and `classes` those of the file, if it has any.
    """

    records: int
    whole: WholeFile
    dictionary: Entry
    entries: Entries
    findings: Sequence[Finding] = ()
    differences: Sequence[Difference] = ()
    classes: ClassTable | None = None


@dataclass(frozen=True)
class Attack:
    """The repetition of an attack if the user names a run file. `otherwise` is reported if no run file is named."""

    compare: Callable[[ReleasedFolder, str], list[Difference]]
    otherwise: str


@dataclass(frozen=True)
class Verifier:
    """The functions of a method by which its releases are measured, verified, shown and applied.

    The reports are made by `pages` from the manifest. What follows from the folder is returned by `facts`, and what
    follows from the folder and the study's source by `on_source`. The function `says` returns the guarantee of a
    release as a clause. By the name of the data file, `files` returns the files that only this method writes. If the
    plan cannot be applied to another table, `own_records` is the reason. The entries `measured` show the data file if
    they differ, and not the manifest. Numbers are compared with the tolerances `close` and `least`.
    """

    pages: Callable[[Path, Content], Mapping[str, str]]
    facts: Callable[[ReleasedFolder], Facts]
    on_source: Callable[[ReleasedFolder, Study], tuple[Entries, list[Difference]]]
    says: Callable[[Content], str]
    files: Callable[[str], tuple[str, ...]] = lambda _: ()
    attack: Attack | None = None
    own_records: str = ""
    measured: Collection[str] = ()
    close: float = CLOSE
    least: float = LEAST

    def of(self, folder: ReleasedFolder) -> Facts:
        """Return the facts of a folder: those of the method, and those that every release has."""
        study, written = folder.study, folder.written
        with stage("measure the file"):
            facts = self.facts(folder)
        with stage("describe the columns"), open_engine(folder.own.engine, folder.own.engine_options) as engine:
            dictionary = described(engine, written, facts.dictionary, folder.codebook, study)
        absent = study.data.removed + study.data.left_out
        common = {
            "columns": list(written.names),
            "left_out": folder.manifest["source"]["rows_read"] - facts.records + absent,
            "released": facts.whole.everything.records,
            "whole": facts.whole.as_dict(),
            "records": facts.records,
            "dictionary": dictionary,
            "unit": counted_as(study),
            "policy": study.policy.model_dump(mode="json", exclude={"accept"}),
        }
        return replace(facts, entries={**common, **facts.entries})

    def differences(self, manifest: Content, entries: Entries, *, source: bool = False) -> Iterator[Difference]:
        """Compare a manifest with entries that follow from its folder, or from the source."""
        for path, name, stated in unlike_entries(manifest, entries, self.close, self.least):
            if source:
                yield Difference(MANIFEST, f"its {name} is not that of the source")
            elif path in FILES or path in (*MEASURED, *self.measured):
                what = f"its {name} is not {stated_words(stated)} of the manifest"
                yield Difference(FILES.get(path, manifest["data"]), what)
            else:
                yield Difference(MANIFEST, f"its {name} is not what the released files show")


def unlike_entries(
    manifest: Content, entries: Entries, close: float = CLOSE, least: float = LEAST
) -> Iterator[tuple[str, str, object]]:
    """Return the paths of entries that a manifest states otherwise, with the name and what it states.

    An entry is returned once, `figures` and `own` once for each entry in them.
    """
    for path, entry in entries.items():
        depth = max(2, len(path.split(".")))
        found = list(unlike(entry_at(manifest, path), entry, path, close, least))
        first = {".".join(name.split(".")[:depth]): (name, stated) for name, stated, _ in reversed(found)}
        for name, stated in first.values():
            yield path, name.removeprefix("figures.").removesuffix(".value"), stated


def entry_at(manifest: Content, path: str) -> object:
    """Return an entry of a manifest by its path."""
    entry: object = manifest
    for name in path.split("."):
        entry = entry.get(name, ABSENT) if isinstance(entry, Mapping) else ABSENT
    return entry


def stated_words(stated: object) -> str:
    """Return how a message names what a manifest states: only numbers, because texts may be values of a table."""
    if isinstance(stated, bool) or not isinstance(stated, int | float | None):
        return "that"
    return "the “not computed”" if stated is None else f"the {stated:.10g}"


@dataclass(eq=False, kw_only=True)
class Draft(ABC):
    """The part of publishing that a method supplies.

    `fingerprint` belongs to the table that the plan was made for, `data` is the name of the released file in the
    folder, and `inherited` holds the acceptances of an earlier release with this plan. The methods are called once
    each, in this order. The first two and the last two get no engine, because they may open one themselves.
    `findings` are violations of the policy that only the source shows.
    """

    system: str
    study: Study
    source: Source
    fingerprint: str
    data: str
    verifier: Verifier
    inherited: Sequence[Inherited] = ()
    findings: list[Finding] = field(init=False, default_factory=list)

    def foresee(self) -> Sequence[Finding]:
        """Return the policy findings that follow from the classes, before anything is written."""
        return ()

    def prepare(self, folder: Path) -> None:  # noqa: B027
        """Write the files that are needed to read the released file, as far as they need no shared engine."""

    @abstractmethod
    def describe(self, engine: Engine) -> Description | None:
        """Prepare the engine, with the source as `raw`. Return what the ledger compares, or None for a mere test."""

    @abstractmethod
    def write(self, engine: Engine, folder: Path) -> Study:
        """Write the data file, and the run file that reads it back."""

    @abstractmethod
    def compare(self, engine: Engine, own: Study) -> None:
        """Read the file by its run file, and raise unless it holds the intended rows."""

    @abstractmethod
    def stated(self, own: Study, /) -> dict[str, Any]:
        """Return the entries of the manifest that follow from the plan and the source, before the file is measured."""

    def compared(self, content: Content, after: ClassTable) -> Entries:  # noqa: ARG002
        """Return the entries that compare the classes of the file with the source."""
        return {}
