"""The page in use: many points, the keyboard alone, a narrow screen, workers that die."""

from __future__ import annotations

import os
import signal
import statistics
import time
from typing import Any

from tests.doors.bench import Server, confirmed, declare, drawn

MANY = """async () => {
  const { explorer } = await import("/static/steps/explore.js");
  const points = Array.from({ length: 10000 }, (_, id) => (
    { id, loss: id / 10000, suppressed: id % 300, values: { k: 1 + id, distinct_l: 1 + (id * 7919) % 90, t: id % 77 } }));
  const objectives = ["k", "distinct_l", "t"].map((name) => ({ name, direction: "max" }));
  const front = { points, objectives, others: [], knee: 5, rows: 20000, how: "a test", exact: false };
  document.querySelector("main").replaceChildren(...(await explorer(front, [])));
  // Charts draw in a frame's callback; a task after it runs when the frame is laid out and painted.
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  await frame(); await frame();
  const canvas = document.querySelector("main canvas");
  const box = canvas.getBoundingClientRect();
  const fire = (kind, x, y) => canvas.dispatchEvent(
    new PointerEvent(kind, { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true }));
  canvas.setPointerCapture = () => {};
  const times = { brush: [], hover: [] };
  const timed = async (name, act) => {
    const began = performance.now();
    act();
    await frame();
    times[name].push(performance.now() - began);
  };
  for (let turn = 0; turn < 9; turn += 1) {
    fire("pointerdown", 80, 60);
    fire("pointermove", 300 + turn * 20, 300);
    await frame();
    await timed("brush", () => fire("pointerup", 300 + turn * 20, 300));
    await timed("hover", () => fire("pointermove", 200 + turn * 9, 100));
    canvas.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
    await frame();
  }
  fire("pointerdown", 80, 60);
  fire("pointermove", 300, 300);
  fire("pointerup", 300, 300);
  await frame();
  return { times, counted: document.getElementById("counted").textContent };
}"""


def test_ten_thousand_points_stay_interactive(page: Any) -> None:
    confirmed(page, "people.csv")
    page.click("#to-search")
    page.wait_for_selector("#start")
    took = page.evaluate(MANY)
    assert "selected" in took["counted"], took
    assert drawn(page, "main canvas") > 3000  # the map
    assert drawn(page, "main canvas >> nth=1") > 1000  # parallel coordinates
    assert drawn(page, "main canvas >> nth=2") > 3000  # the scatter matrix
    for name in ("brush", "hover"):
        print(f"{name} over 10,000 points, ms:", [round(each) for each in took["times"][name]])
        assert statistics.median(took["times"][name]) < 100, took["times"]
