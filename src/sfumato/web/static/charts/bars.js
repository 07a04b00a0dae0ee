// Bars: how many records there are of each. Small ones for a column, large ones with names; one or two series.
import { number } from "../dom.js";
import { Canvas } from "./canvas.js";

/**
 * @param {number[]} counts
 * @param {{labels?: string[] | null, second?: number[] | null, height?: number, label?: string,
 *   marked?: ((place: number) => boolean) | null, apart?: number}} [options]
 */
export function bars(
  counts,
  {
    labels = null,
    second = null,
    height = 56,
    label = "histogram",
    marked = null,
    apart = -1,
  } = {},
) {
  let chosen = -1;
  const edge = labels && height > 90 ? 34 : 0;
  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    const most = Math.max(1, ...counts, ...(second ?? [0]));
    const floor = tall - edge - 1;
    const wide = width / counts.length;
    const gap = wide > 6 ? Math.min(wide * 0.15, 4) : wide > 2.5 ? 0.5 : 0;
    const bar = (value, left, size, fill) => {
      const high = value ? Math.max((value / most) * (floor - (edge ? 16 : 2)), 1.5) : 0;
      pen.fillStyle = fill;
      pen.fillRect(left, floor - high, size, high);
    };
    counts.forEach((count, place) => {
      const left = place * wide + gap / 2;
      const size = Math.max(wide - gap, 0.8);
      if (second) {
        bar(count, left, size / 2, colour.faint);
        bar(second[place], left + size / 2, size / 2, colour.accent);
      } else
        bar(
          count,
          left + (place === apart ? 3 : 0),
          size - (place === apart ? 3 : 0),
          place === chosen
            ? colour.ink
            : place === apart
              ? colour.faint
              : marked?.(place)
                ? colour.second
                : colour.accent,
        );
    });
    pen.strokeStyle = colour.line;
    pen.beginPath();
    pen.moveTo(0, floor + 0.5);
    pen.lineTo(width, floor + 0.5);
    pen.stroke();
    if (!edge || !labels) return;
    pen.fillStyle = colour.quiet;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const room = Math.min(Math.max(...labels.map((text) => pen.measureText(text).width)) + 8, 90);
    const rows = wide < room && wide * 2 >= room ? 2 : 1; // names that do not fit side by side stand in two lines
    const every =
      rows === 2
        ? 1
        : Math.ceil(labels.length / Math.max(Math.floor(width / Math.max(room, 40)), 1));
    const red = marked ? labels.map((_, place) => place).filter((place) => marked(place)) : [];
    /** @type {[number, number, number][]} */
    const taken = []; // where names stand already, so that none is written over another; marked bars always have theirs
    const write = (place) => {
      const text = labels[place];
      const fits = Math.max(Math.floor((wide * every * rows) / 7) - 1, 3);
      const said =
        text.length > fits && !red.includes(place) ? `${text.slice(0, fits - 1)}…` : text;
      const half = pen.measureText(said).width / 2;
      const at = Math.min(Math.max((place + 0.5) * wide, half), width - half);
      const line = rows === 2 ? place % 2 : 0;
      if (
        taken.some(([other, reach, on]) => on === line && Math.abs(other - at) < reach + half + 3)
      )
        return;
      taken.push([at, half, line]);
      pen.fillText(said, at, floor + 4 + line * 14);
    };
    if (red.length < labels.length / 2) {
      pen.fillStyle = colour.second;
      red.forEach(write);
      pen.fillStyle = colour.quiet;
    }
    labels.forEach((_, place) => {
      if (place % every === 0) write(place);
    });
    pen.textAlign = "left";
    if (chosen < 0) pen.fillText(number(most), 2, 0); // the height of the highest bar
    pen.textAlign = "center";
    if (chosen >= 0) {
      pen.fillStyle = colour.ink;
      pen.textAlign = chosen > counts.length / 2 ? "right" : "left";
      const said = second
        ? `${labels[chosen]}: ${number(counts[chosen])} → ${number(second[chosen])}`
        : `${labels[chosen]}: ${number(counts[chosen])}`;
      pen.fillText(said, chosen > counts.length / 2 ? width - 2 : 2, 0);
    }
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    const place = Math.floor((chart.at(event)[0] / chart.width) * counts.length);
    if (place === chosen) return;
    chosen = place;
    if (labels)
      chart.canvas.title =
        `${labels[place] ?? ""}: ` +
        `${number(counts[place])}${second ? ` → ${number(second[place])}` : ""} records`;
    chart.redraw();
  });
  chart.canvas.addEventListener("pointerleave", () => {
    chosen = -1;
    chart.redraw();
  });
  return chart.element;
}

// The spread of a column as a profile tells it.
export function spread(found, height = 56) {
  const short = (value) => Number(value.toPrecision(6)).toString();
  const labels =
    found.kind === "bins"
      ? found.counts.map((_, i) => `${short(found.edges[i])} – ${short(found.edges[i + 1])}`)
      : [...found.labels];
  const counts = [...found.counts];
  if (found.rest > 0) {
    labels.push("all others");
    counts.push(found.rest);
  }
  return bars(counts.length ? counts : [0], {
    labels: labels.length ? labels : ["no values"],
    height,
    apart: found.rest > 0 ? counts.length - 1 : -1,
    label: "how its values are spread",
  });
}
