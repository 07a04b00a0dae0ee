"""`sfumato doctor`: what is installed, and what is missing for which feature."""

from __future__ import annotations

from sfumato.cli.show import AsJson, emit, put, table


def command(as_json: AsJson = False) -> int:
    """Say which versions are installed, where things are kept, and what is missing for which feature."""
    from sfumato.runtime.doctor import examine

    examined = examine()
    if as_json:
        emit(examined.as_dict())
        return 2 if examined.problems else 0
    put(f"sfumato {examined.version}, Python {examined.python}, {examined.system}")
    put(f"{examined.threads} threads, {_gigabytes(examined.memory_bytes)} of memory, {examined.java or 'no Java'}\n")
    table(
        "Packages",
        ["package", "installed", "needed"],
        [[one.name, one.version or "missing", one.bounds or "any"] for one in examined.packages],
    )
    rows = [
        [one.extra, one.about, "ready" if not one.missing else f"pip install 'sfumato[{one.extra}]'"]
        for one in examined.features
    ]
    table("Features", ["extra", "for", ""], rows)
    rows = [
        [one.purpose, one.path, f"{_gigabytes(one.free_bytes)} free" if one.usable else "cannot be written"]
        for one in examined.folders
    ]
    table("Folders", ["for", "folder", ""], rows)
    put("\n".join(f"problem: {text}" for text in examined.problems) or "Everything that Sfumato itself needs is there.")
    return 2 if examined.problems else 0


def _gigabytes(count: int | None) -> str:
    return "an unknown amount" if count is None else f"{count / 1e9:,.1f} GB"
