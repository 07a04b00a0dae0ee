// Parallel coordinates: a line a point, an axis a figure; drag along an axis to keep only what passes there.
import { Canvas } from "./canvas.js";
import { Scale, short } from "./scale.js";
import { mask } from "./speckle.js";

const MOST = 300; // more strands than this are one colour anyway
const [TOP, FOOT] = [34, 26];

export function parallel({ height = 260, label, axes, brushed }) {
  let rows = [];
  let inside = null;
  let chosen = null;
  const ranges = new Map();
  let scales = [];
  let places = []; // for each axis, where each row passes
  const only = {};
  let drag = null;
  const left = (place, width) => 46 + (place * (width - 92)) / Math.max(axes.length - 1, 1);

  function layout(tall) {
    scales = axes.map((axis) => {
      let [low, high] = [Infinity, -Infinity];
      for (const row of rows) {
        const value = row[axis.name];
        if (value < low) low = value;
        if (value > high) high = value;
      }
      if (low > high) [low, high] = [0, 1];
      only[axis.name] = low === high ? low : null; // every point has it: an axis around it would be made up
      // Better is up, on every axis.
      return axis.better === "less"
        ? new Scale(low, high, TOP, tall - FOOT, axis.log)
        : new Scale(low, high, tall - FOOT, TOP, axis.log);
    });
    places = axes.map((axis, place) =>
      Float32Array.from(rows, (row) => scales[place].place(row[axis.name])),
    );
  }
  function strand(pen, width, row) {
    for (let place = 0; place < axes.length; place += 1) {
      if (place) pen.lineTo(left(place, width), places[place][row]);
      else pen.moveTo(left(0, width), places[0][row]);
    }
  }
  function strands(pen, width, kept, keep, stroke, alpha) {
    const drawn = [];
    for (let row = 0; row < rows.length; row += 1)
      if ((kept === null ? 1 : kept[row]) === keep) drawn.push(row);
    const every = Math.ceil(drawn.length / MOST) || 1;
    pen.strokeStyle = stroke;
    pen.globalAlpha = alpha;
    pen.beginPath();
    for (let place = 0; place < drawn.length; place += every) strand(pen, width, drawn[place]);
    pen.stroke();
    pen.globalAlpha = 1;
  }

  const chart = new Canvas(
    height,
    label,
    (pen, width, tall, colour) => {
      if (places.length === 0) layout(tall);
      const kept = mask(rows, inside);
      strands(pen, width, kept, 0, colour.faint, rows.length > 500 ? 0.25 : 0.4);
      strands(pen, width, kept, 1, colour.accent, rows.length > 500 ? 0.3 : 0.6);
    },
    (pen, width, tall, colour) => {
      const row = rows.findIndex((each) => each.id === chosen);
      if (row >= 0) {
        pen.strokeStyle = colour.second;
        pen.lineWidth = 2.5;
        pen.beginPath();
        strand(pen, width, row);
        pen.stroke();
        pen.lineWidth = 1;
      }
      axes.forEach((axis, place) => {
        const at = left(place, width);
        pen.strokeStyle = colour.quiet;
        pen.beginPath();
        pen.moveTo(at, TOP - 4);
        pen.lineTo(at, tall - FOOT + 4);
        pen.stroke();
        const range = ranges.get(axis.name);
        if (range) {
          pen.fillStyle = colour.second;
          pen.globalAlpha = 0.3;
          pen.fillRect(at - 6, Math.min(...range), 12, Math.abs(range[1] - range[0]));
          pen.globalAlpha = 1;
        }
        pen.fillStyle = colour.ink;
        pen.textAlign = place === 0 ? "left" : place === axes.length - 1 ? "right" : "center";
        const edge = place === 0 ? 2 : place === axes.length - 1 ? width - 2 : at;
        pen.textBaseline = "top";
        // A title at an edge reaches inwards, to the half of its neighbour.
        const apart = (width - 92) / Math.max(axes.length - 1, 1);
        const fits = Math.max(Math.floor(Math.min(apart - 8, (apart + 36) / 1.5) / 7), 4);
        pen.fillText(
          axis.title.length > fits ? `${axis.title.slice(0, fits - 1)}…` : axis.title,
          edge,
          0,
        );
        pen.fillStyle = colour.quiet;
        const text = axis.text ?? short;
        const same = only[axis.name];
        pen.fillText(
          same === null ? text(scales[place].value(TOP)) : `all ${text(same)}`,
          edge,
          15,
        );
        pen.textBaseline = "bottom";
        if (same === null) pen.fillText(text(scales[place].value(tall - FOOT)), edge, tall - 4);
      });
    },
  );

  const apply = () => {
    if (!ranges.size) {
      brushed(null);
      return;
    }
    const passes = axes.flatMap((axis, place) =>
      ranges.has(axis.name)
        ? [
            [
              places[place],
              Math.min(...ranges.get(axis.name)) - 1,
              Math.max(...ranges.get(axis.name)) + 1,
            ],
          ]
        : [],
    );
    brushed(
      new Set(
        rows
          .filter((_, row) => passes.every(([at, low, high]) => at[row] >= low && at[row] <= high))
          .map((row) => row.id),
      ),
    );
  };
  let asked = false;
  const soon = () => {
    // a pointer moves more often than a screen is drawn
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      apply();
    });
  };
  chart.canvas.addEventListener("pointerdown", (event) => {
    const [px, py] = chart.at(event);
    const place = axes.findIndex((_, each) => Math.abs(left(each, chart.width) - px) < 22);
    if (place >= 0) {
      drag = { axis: axes[place].name, from: py };
      chart.canvas.setPointerCapture(event.pointerId);
    }
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    if (!drag) return;
    ranges.set(drag.axis, [drag.from, chart.at(event)[1]]);
    soon();
  });
  chart.canvas.addEventListener("pointerup", (event) => {
    if (drag && Math.abs(chart.at(event)[1] - drag.from) < 4) {
      ranges.delete(drag.axis);
      apply();
    }
    drag = null;
    chart.redraw();
  });
  return {
    element: chart.element,
    draw(changes) {
      if (changes.rows) {
        rows = changes.rows;
        places = [];
      }
      if ("inside" in changes) {
        inside = changes.inside;
        if (inside === null) ranges.clear();
      }
      if ("chosen" in changes) chosen = changes.chosen;
      if (changes.rows || "inside" in changes) chart.renew();
      else chart.redraw();
    },
  };
}
