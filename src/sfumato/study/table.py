"""Reading of a study's table, or of another one with the same columns."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sfumato.data.engine import open_engine
from sfumato.data.frame import Frame, is_frame
from sfumato.data.open import open_source
from sfumato.data.settings import IN_MEMORY, is_database, located
from sfumato.data.source import Source, refuse_disguised
from sfumato.data.treatment import Treatment, treated
from sfumato.errors import DataError, StudyError, shortened
from sfumato.hierarchies import Hierarchy
from sfumato.hierarchies.hierarchy import flat
from sfumato.hierarchies.recipes import RECIPES
from sfumato.study.declaration import Declaration, check_roles, declared_tree
from sfumato.tables.compress import Use, compress
from sfumato.tables.domain import KEYED, Builder
from sfumato.tables.frequency import FrequencyTable

BUILT = tuple(RECIPES.values())


def source_of(study: Declaration, path: object, undecided: bool) -> Source:
    """Return the table of a study, or another read the same way: see `Study.source`."""
    settings, frame = study.data, study.frame
    if is_frame(path):
        settings, frame = settings.model_copy(update={"path": IN_MEMORY, "format": None}), Frame(path)
    elif path is not None:
        elsewhere = {"path": located(str(path), Path()), "format": None, "sheet": None}
        if not is_database(str(path)):
            elsewhere |= {"table": None, "query": None, "password_file": None}
        settings = settings.model_copy(update=elsewhere)
    measured = [name for name, column in study.columns.items() if column.role in KEYED]
    source = open_source(settings, study.folder, frame)
    for file in source.originals or source.files:
        refuse_disguised(file, measured)
    check_roles(study.columns, source.names, partial=path is not None, undecided=undecided)
    return treated(source, study.treatments)


def table_of(
    study: Declaration, path: object, trees: Mapping[str, Hierarchy] | None, distances: Mapping[str, str]
) -> FrequencyTable:
    """Return the frequency table of a study, or of another table read the same way: see `Study.table`."""
    source = source_of(study, path, undecided=False)
    people = open_source(study.population, study.folder) if study.population else None
    built = trees if trees is not None else _built(study) if path is not None else {}
    uses = [
        Use(
            name,
            column.role,
            study.missing_rule(name),
            built.get(name) or _tree(study, name, source),
            distances.get(name) or column.distance or _distance(study.treatments.get(name)),
            column.order,
            column.along_tree,
            column.harmless or (),
        )
        for name, column in study.columns.items()
        if name in source.names
    ]
    with open_engine(study.engine, study.engine_options) as engine:
        return compress(engine, source, uses, people)


def _tree(study: Declaration, name: str, source: Source) -> Hierarchy | Builder | None:
    """Return the hierarchy of a column: declared, or the bands that its values are put in, in their order."""
    tree = declared_tree(name, study.columns[name], study.folder, source.decimal)
    labels = study.treatments[name].labels(source.decimal) if name in study.treatments else ()
    return flat(name, labels) if tree is None and labels else tree


def _distance(treatment: Treatment | None) -> str | None:
    """Return the distance of a column. Bands and parts of dates have an order, which rounded numbers have by value."""
    return "ordered" if treatment is not None and (treatment.bands or treatment.unit) else None


def _built(study: Declaration) -> dict[str, Hierarchy]:
    """Return the hierarchies of columns with a recipe, built from the study's own data."""
    recipes = [n for n, c in study.columns.items() if c.role in KEYED and isinstance(c.hierarchy, BUILT)]
    if not recipes:
        return {}
    try:
        table = table_of(study.model_copy(update={"population": None}), None, None, {})
    except DataError as error:
        raise StudyError(
            f"the hierarchies of {shortened(recipes)} are built from the original table, which cannot be read",
            expected="the table under [data], or hierarchy files",
            remedy="sfumato hierarchy build writes a file to name instead",
        ) from error
    domains = [*table.domains, *(values.domain for values in table.sensitive.values())]
    if table.label is not None:
        domains.append(table.label.domain)
    return {domain.name: domain.hierarchy for domain in domains if domain.name in recipes}
