"""The channel: exact points, OptRR's generations, square points, and ten million values disguised and estimated."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import sfumato as sf
from benchmarks.timing import show
from sfumato.base.arrays import Floats
from sfumato.base.progress import peak_memory
from sfumato.data.engine import open_engine
from sfumato.measures import channel as measures
from sfumato.methods.channel.estimate import estimate
from sfumato.methods.channel.exact import ExactSearch
from sfumato.methods.channel.optrr import OptrrSettings, optrr
from sfumato.methods.channel.release import disguise
from sfumato.methods.channel.square import SquareSearch
from sfumato.papers.channel import adult_priors, normal_prior
from sfumato.plans.channel import Channel

ROWS = int(os.environ.get("SFUMATO_BENCH_ROWS", "10000000"))


def main() -> None:
    adult = adult_priors()
    occupation = sf.read(sf.sample("adult-complete")).table().sensitive["occupation"]
    shares = np.bincount(occupation.values, occupation.counts).astype(np.float64)
    cases = {
        "normal, δ = 0.8": (normal_prior(), 0.8),
        "Adult occupation, δ = 0.75": (shares / shares.sum(), 0.75),
        "Adult education, δ = 0.75": (adult["education"], 0.75),
    }
    with threadpool_limits(1):
        _exact(cases)
        _others(normal_prior())
    _disguise(shares / shares.sum())


def _seconds(job: Callable[[], object]) -> tuple[float, object]:
    began = time.process_time()
    found = job()
    return time.process_time() - began, found


def _exact(cases: dict[str, tuple[Floats, float]]) -> None:
    rows = []
    for name, (prior, delta) in cases.items():
        gap = 0.0

        def job(prior: Floats = prior, delta: float = delta) -> int:
            nonlocal gap
            search = ExactSearch(prior, delta)
            for level in np.linspace(*search.range, 25)[:24]:
                found = search.at(float(level))
                gap = max(gap, measures.spread(found.matrix, prior) / found.lower_bound - 1)
            return len(search.heights)

        seconds, corners = _seconds(job)
        rows.append([name, str(len(prior)), f"{corners:,}", f"{seconds:.2f}", f"{gap:.1e}"])
    show("Exact, 24 points", ["prior", "n", "corners", "CPU s", "largest gap of the certificate"], rows)


def _others(prior: Floats) -> None:
    optrr(prior, 0.8, OptrrSettings(generations=300))  # compile
    seconds, archive = _seconds(lambda: optrr(prior, 0.8, OptrrSettings()))
    rows = [["OptRR, 20,000 generations, n = 10", f"{seconds:.1f}", f"{len(archive.privacy)} points"]]  # type: ignore[attr-defined]
    levels = np.linspace(0.2, 0.77, 12)
    seconds, _ = _seconds(lambda: SquareSearch(prior, 0.8, levels).run())
    rows.append(["square, 12 levels, n = 10", f"{seconds:.1f}", f"{seconds / 12:.1f} CPU s a level"])
    show("Other engines", ["job", "CPU s", ""], rows)


def _disguise(shares: Floats) -> None:
    """Ten million values of fourteen categories, with one plain column beside them, through files."""
    names = tuple(f"job {i:02d}" for i in range(len(shares)))
    channel = Channel(("job",), names, names, 0.5 * np.eye(len(shares)) + 0.5 / len(shares))
    with tempfile.TemporaryDirectory() as folder:
        source, out = Path(folder) / "people.parquet", Path(folder) / "release"
        edges = " ".join(
            f"WHEN u < {float(edge)!r} THEN '{name}'" for name, edge in zip(names, np.cumsum(shares), strict=True)
        )
        with open_engine() as engine:
            engine.run(
                f"COPY (SELECT CASE {edges} ELSE '{names[0]}' END AS job, (i % 50)::VARCHAR AS town FROM "
                f"(SELECT i, hash(i) / 18446744073709551616.0 AS u FROM range({ROWS}) AS t(i))) TO '{source}'"
            )
        study = sf.Study(data={"path": str(source)}, columns={}, engine_options={"memory_limit": "1GB"})
        spent, _ = _seconds(lambda: disguise(study, [channel], out, keep=["town"], state=folder))
        peak = peak_memory() / 1e9
        recovered, found = _seconds(lambda: estimate(out))
        off = np.abs(found.strata[0].recovered.raw - shares).max()  # type: ignore[attr-defined]
    rows = [
        [
            "disguise, shuffle, read back and compare, Parquet to CSV",
            f"{spent:.1f}",
            f"{ROWS / spent:,.0f}",
            f"{peak:.2f} GB at most",
        ],
        ["estimate", f"{recovered:.1f}", f"{ROWS / recovered:,.0f}", f"largest error of a share {off:.5f}"],
    ]
    show(f"{ROWS:,} rows, engine limited to 1 GB", ["job", "CPU s", "rows per CPU second", ""], rows)
