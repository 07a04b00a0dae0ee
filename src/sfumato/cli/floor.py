"""`sfumato floor`: whether the floor of a saved front is proven by the prices that are saved with it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sfumato.cli.show import AsJson, OwnRun, emit, put, table


def command(
    folder: Annotated[Path, typer.Argument(help="The folder of a front of local recodings.")],
    run: OwnRun = None,
    as_json: AsJson = False,
) -> None:
    """Check the floor of a saved front from its prices, without the code that searched for them."""
    from sfumato.measures.standard import K
    from sfumato.runtime.figures import number
    from sfumato.systems.local.check import check_front, refuse_unpriced
    from sfumato.systems.registry import load_front

    front = load_front(folder, run)
    refuse_unpriced(front)  # before the table is read
    proven = check_front(front, front.study.table())
    if as_json:
        emit({"proven": {str(k): loss for k, loss in proven.items()}})
        return
    losses = {int(point.values[K.name]): point.loss for point in front.points}
    rows = [[number(k), f"{proven[k]:.3%}", f"{losses[k]:.3%}"] for k in proven]
    table("Floors, proven by their prices", [K.name, "proven minimum loss", "best found"], rows, right={0, 1, 2})
    put("Checked: in every box of the labels that holds k records, the k highest prices add up to at most what k")
    put("records lose in it. So no recoding with these labels loses less than the sum of all prices: the floor.")
