// Parallel coordinates: a line a point, an axis a figure; drag along an axis to keep only what passes there.
import { Canvas, Scale, short } from "./canvas.js";

const MOST = 700;

export function parallel({ height = 260, label, axes, brushed, picked }) {
  let rows = [];
  let inside = null;
  let chosen = null;
  const ranges = new Map();
  let scales = [];
  let drag = null;
  const left = (place, width) => 46 + (place * (width - 92)) / Math.max(axes.length - 1, 1);

  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    scales = axes.map((axis) => {
      let [low, high] = [Infinity, -Infinity];
      for (const row of rows) { const value = row[axis.name]; if (value < low) low = value; if (value > high) high = value; }
      if (low > high) [low, high] = [0, 1];
      // Better is up, on every axis.
      return axis.better === "less" ? new Scale(low, high, 34, tall - 26, axis.log) : new Scale(low, high, tall - 26, 34, axis.log);
    });
    const strands = (keep, stroke, alpha) => {
      pen.strokeStyle = stroke;
      pen.globalAlpha = alpha;
      pen.beginPath();
      let drawn = rows.filter((row) => (inside === null || inside.has(row.id)) === keep);
      const every = Math.ceil(drawn.length / MOST); // more strands than this are one colour anyway
      if (every > 1) drawn = drawn.filter((_, place) => place % every === 0);
      for (const row of drawn) {
        axes.forEach((axis, place) => {
          const at = scales[place].place(row[axis.name]);
          if (place) pen.lineTo(left(place, width), at); else pen.moveTo(left(0, width), at);
        });
      }
      pen.stroke();
      pen.globalAlpha = 1;
    };
    strands(false, colour.faint, rows.length > 500 ? 0.12 : 0.4);
    strands(true, colour.accent, rows.length > 500 ? 0.25 : 0.6);
    const one = rows.find((row) => row.id === chosen);
    if (one) {
      pen.strokeStyle = colour.second;
      pen.lineWidth = 2.5;
      pen.beginPath();
      axes.forEach((axis, place) => { const at = scales[place].place(one[axis.name]); if (place) pen.lineTo(left(place, width), at); else pen.moveTo(left(0, width), at); });
      pen.stroke();
      pen.lineWidth = 1;
    }
    axes.forEach((axis, place) => {
      const at = left(place, width);
      pen.strokeStyle = colour.quiet;
      pen.beginPath(); pen.moveTo(at, 30); pen.lineTo(at, tall - 22); pen.stroke();
      const range = ranges.get(axis.name);
      if (range) { pen.fillStyle = colour.second; pen.globalAlpha = 0.3; pen.fillRect(at - 6, Math.min(...range), 12, Math.abs(range[1] - range[0])); pen.globalAlpha = 1; }
      pen.fillStyle = colour.ink;
      pen.textAlign = place === 0 ? "left" : place === axes.length - 1 ? "right" : "center";
      const edge = place === 0 ? 2 : place === axes.length - 1 ? width - 2 : at;
      pen.textBaseline = "top";
      pen.fillText(axis.title, edge, 0);
      pen.fillStyle = colour.quiet;
      const text = axis.text ?? short;
      pen.fillText(text(scales[place].value(34)), edge, 15);
      pen.textBaseline = "bottom";
      pen.fillText(text(scales[place].value(tall - 26)), edge, tall - 4);
    });
  });

  const apply = () => {
    if (!ranges.size) { brushed(null); return; }
    brushed(new Set(rows.filter((row) => axes.every((axis, place) => {
      const range = ranges.get(axis.name);
      if (!range) return true;
      const at = scales[place].place(row[axis.name]);
      return at >= Math.min(...range) - 1 && at <= Math.max(...range) + 1;
    })).map((row) => row.id)));
  };
  chart.canvas.addEventListener("pointerdown", (event) => {
    const [px, py] = chart.at(event);
    const place = axes.findIndex((_, each) => Math.abs(left(each, chart.width) - px) < 22);
    if (place >= 0) { drag = { axis: axes[place].name, from: py }; chart.canvas.setPointerCapture(event.pointerId); }
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    ranges.set(drag.axis, [drag.from, chart.at(event)[1]]);
    apply();
    chart.redraw();
  });
  chart.canvas.addEventListener("pointerup", (event) => {
    if (drag && Math.abs(chart.at(event)[1] - drag.from) < 4) { ranges.delete(drag.axis); apply(); }
    drag = null;
    chart.redraw();
  });
  return {
    element: chart.element,
    draw(changes) {
      if (changes.rows) rows = changes.rows;
      if ("inside" in changes) { inside = changes.inside; if (inside === null) ranges.clear(); }
      if ("chosen" in changes) chosen = changes.chosen;
      chart.redraw();
    },
    now: () => chart.now(),
  };
}
