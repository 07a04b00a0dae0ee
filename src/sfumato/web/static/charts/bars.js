// Bars: how many records there are of each. Small ones for a column, large ones with names; one or two series.
import { number } from "../dom.js";
import { Canvas } from "./canvas.js";

export function bars(counts, { labels = null, second = null, height = 56, label = "histogram", marked = null } = {}) {
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
      } else bar(count, left, size, place === chosen ? colour.ink : marked?.(place) ? colour.second : colour.accent);
    });
    pen.strokeStyle = colour.line;
    pen.beginPath(); pen.moveTo(0, floor + 0.5); pen.lineTo(width, floor + 0.5); pen.stroke();
    if (!edge) return;
    pen.fillStyle = colour.quiet;
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const room = Math.min(Math.max(...labels.map((text) => text.length)) * 7 + 8, 90);
    const every = Math.ceil(labels.length / Math.max(Math.floor(width / Math.max(room, 40)), 1));
    labels.forEach((text, place) => {
      if (place % every) return;
      const fits = Math.max(Math.floor((wide * every) / 7) - 1, 3);
      const said = text.length > fits ? `${text.slice(0, fits - 1)}…` : text;
      const half = pen.measureText(said).width / 2;
      pen.fillText(said, Math.min(Math.max((place + 0.5) * wide, half), width - half), floor + 6);
    });
    if (chosen >= 0) {
      pen.fillStyle = colour.ink;
      pen.textAlign = chosen > counts.length / 2 ? "right" : "left";
      const said = second ? `${labels[chosen]}: ${number(counts[chosen])} → ${number(second[chosen])}` : `${labels[chosen]}: ${number(counts[chosen])}`;
      pen.fillText(said, chosen > counts.length / 2 ? width - 2 : 2, 0);
    }
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    const place = Math.floor((chart.at(event)[0] / chart.width) * counts.length);
    if (place === chosen) return;
    chosen = place;
    if (labels) chart.canvas.title = `${labels[place] ?? ""}: ${number(counts[place])}${second ? ` → ${number(second[place])}` : ""} records`;
    chart.redraw();
  });
  chart.canvas.addEventListener("pointerleave", () => { chosen = -1; chart.redraw(); });
  return chart.element;
}

// The spread of a column as a profile tells it.
export function spread(found, height = 56) {
  const short = (value) => Number(value.toPrecision(6)).toString();
  const labels = found.kind === "bins" ? found.counts.map((_, i) => `${short(found.edges[i])} – ${short(found.edges[i + 1])}`) : [...found.labels];
  const counts = [...found.counts];
  if (found.rest > 0) { labels.push("all others"); counts.push(found.rest); }
  return bars(counts.length ? counts : [0], { labels: labels.length ? labels : ["no values"], height, label: "how its values are spread" });
}
