"""The microfiles of a study: the file to publish, those that an attacker learns from, and conversions.

A harmonised microfile can be saved as Parquet. IPUMS extracts (fixed width or CSV with a DDI codebook) are converted to
Parquet with `ipumspy`.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow
import pyarrow.parquet

from sfumato.base.arrays import Counts64, Floats
from sfumato.base.arrow import arrow_table
from sfumato.base.files import new_file
from sfumato.base.trust import note_input
from sfumato.data.engine import open_engine
from sfumato.data.open import open_source
from sfumato.data.settings import Role
from sfumato.errors import DataError, StudyError, nearest
from sfumato.methods.groups.attack.outliers import Sensitive, sensitive_areas
from sfumato.methods.groups.attack.rules import Variable, variables_of
from sfumato.methods.groups.microfile import Microfile, read_microfile
from sfumato.study import Study
from sfumato.study.groups import AuxiliarySettings, GroupsSettings


def settings_of(study: Study) -> GroupsSettings:
    """Return the [groups] section, or raise if there is none."""
    if study.groups is None:
        raise StudyError(
            "the run file has no [groups] section",
            expected="who is in the group, the area, the attributes, and an auxiliary file",
            remedy='[groups] with recipe = "acs" for American Community Survey person files',
        )
    return study.groups


def read_target(study: Study) -> Microfile:
    """Read the records in range of the file to publish. Without the vital columns the truth is unknown."""
    return read_whole(study, None)


def read_whole(study: Study, columns: Sequence[str] | None) -> Microfile:
    """Read every row of the file to publish that has an area, with the columns as they are."""
    source, mapping = study.opened(), settings_of(study).mapping()
    unit = None if columns is None else moving_unit(study)
    unit = unit if unit in source.names else None
    with open_engine(study.engine, study.engine_options) as engine:
        microfile = read_microfile(
            engine, source, mapping, source.title, need_members=False, columns=columns, unit=unit
        )
    if len(microfile.areas) < 2:
        raise DataError(
            f"{source.title} has one area",
            expected="at least two areas to compare",
            remedy="another column for the area under [groups]",
        )
    return microfile


def moving_unit(study: Study) -> str | None:
    """Return the column whose rows move together: the household, else the unit, else the one in [groups]."""
    stated = settings_of(study).unit
    declared = [*study.named(Role.HOUSEHOLD), *study.named(Role.UNIT)]
    if declared and stated is not None and stated != declared[0]:
        raise StudyError(
            f"[groups] names {stated} as the unit that moves, and {declared[0]} is declared as one",
            expected="one column whose rows stay together",
            remedy="leave unit out under [groups]",
        )
    return declared[0] if declared else stated


def auxiliary_settings(study: Study, wanted: str | None = None) -> AuxiliarySettings:
    """Return an auxiliary file by its name or path; the first unless one is named."""
    listed = settings_of(study).auxiliary
    if not listed:
        raise StudyError(
            "no auxiliary file is declared",
            expected="a file that shows who is in the group",
            remedy='auxiliary = [{ path = "other.csv" }] under [groups]',
        )
    for one in listed:
        if wanted is None or wanted in (one.title, one.path):
            return one
    known = [one.title for one in listed]
    raise StudyError(
        f'there is no auxiliary file "{wanted}"', expected="one of the run file's", remedy=nearest(wanted or "", known)
    )


def read_auxiliary(study: Study, auxiliary: AuxiliarySettings, target: Microfile | None = None) -> Microfile:
    """Read the records in range of an auxiliary file.

    With a `target` it is every row that has an area, with the columns that the target has as well.
    """
    source = open_source(auxiliary, study.folder)
    mapping = settings_of(study).mapping(auxiliary)
    columns = None
    if target is not None:
        columns = [name for name in (target.wide.names if target.wide else ()) if name in source.names]
    with open_engine(study.engine, study.engine_options) as engine:
        return read_microfile(engine, source, mapping, auxiliary.title, columns=columns)


def variables_for(study: Study, auxiliary: Microfile) -> tuple[Variable, ...]:
    """Return the linguistic variables. Undeclared terms are proposed from the auxiliary file's values."""
    variables = variables_of(settings_of(study).mapping().attributes, auxiliary.column)
    if not variables:
        raise StudyError("no attribute has terms", expected="at least one linguistic variable")
    return variables


@dataclass(frozen=True)
class Truth:
    """The truth about a group in the file to publish: its signal, and the areas that must not be identified."""

    group: str
    sensitive: Sensitive
    quantity: Floats


def truth_of(study: Study, target: Microfile, group: str) -> Truth | None:
    """Return the truth, or None if the file lacks the vital columns."""
    if group not in target.members:
        return None
    settings = settings_of(study)
    quantity = target.quantity(group).astype(np.float64)
    expert, exclude = (area_indexes(target, names) for names in (settings.expert, settings.exclude))
    return Truth(group, sensitive_areas(quantity, settings.attack.significance, expert, exclude), quantity)


def area_indexes(target: Microfile, names: Sequence[str]) -> list[int]:
    """Return the indexes of named areas."""
    unknown = [name for name in names if name not in target.areas]
    if unknown:
        raise StudyError(
            f'the file has no area "{unknown[0]}"',
            expected="areas of the file",
            remedy=nearest(unknown[0], target.areas),
        )
    return [target.areas.index(name) for name in names]


def save_microfile(microfile: Microfile, path: Path, *, overwrite: bool = False) -> Path:
    """Write attributes, area, groups and the row of the original file. Only its owner can read the file."""
    columns: dict[str, np.ndarray] = {name: _whole(microfile.column(name)) for name in microfile.attributes}
    columns["area"] = np.array(microfile.areas)[microfile.area_of]
    columns |= {group: flags.astype(np.int8) for group, flags in microfile.members.items()}
    columns["rownum"] = microfile.rows
    with new_file(path, overwrite=overwrite, private=True) as part:
        pyarrow.parquet.write_table(arrow_table(columns), part)
    return path


def _whole(values: Floats) -> Floats | Counts64:
    return values.astype(np.int64) if (values == np.floor(values)).all() else values


CHUNK = 200_000


def convert_extract(ddi: Path, path: Path, data: Path | None = None, *, overwrite: bool = False) -> tuple[int, int]:
    """Convert an extract in chunks, and return the number of rows and columns. Codes are kept."""
    try:
        from ipumspy import readers
    except ImportError:
        raise StudyError(
            "reading IPUMS extracts needs ipumspy", expected='the extra "ipums"', remedy='pip install "sfumato[ipums]"'
        ) from None
    if not ddi.is_file():
        raise DataError(f"there is no file {ddi}", expected="the codebook of an extract")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it prints a request for a citation, which our docs contain
        codebook = readers.read_ipums_ddi(note_input(ddi))
    extract = data or ddi.parent / codebook.file_description.filename
    if not extract.is_file():
        raise DataError(f"there is no file {extract.name}", expected="the extract beside its codebook, or named")
    writer, rows, columns = None, 0, 0
    with new_file(path, overwrite=overwrite, private=True) as part:
        for chunk in readers.read_microdata_chunked(codebook, note_input(extract), chunksize=CHUNK):
            table = pyarrow.Table.from_pandas(chunk, preserve_index=False)
            if writer is None:
                writer = pyarrow.parquet.ParquetWriter(part, table.schema)
            writer.write_table(table.cast(writer.schema))
            rows, columns = rows + table.num_rows, table.num_columns
        if writer is None:
            raise DataError(f"{extract.name} has no rows", expected="an extract with rows")
        writer.close()
    return rows, columns
