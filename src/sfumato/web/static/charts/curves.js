// Lines over a common axis: who pays, the share of records at risk.
import { Canvas } from "./canvas.js";
import { Scale, axes } from "./scale.js";
import { nearest } from "./speckle.js";

/**
 * @param {{x: number[], y: number[], colour: string, dashed?: boolean}[]} series
 * @param {{height?: number, label: string, xTitle: string, yTitle: string, logY?: boolean,
 *   xText?: (value: number) => string, yText?: (value: number) => string,
 *   marked?: (() => number) | null, picked?: ((place: number) => void) | null}} options
 */
export function curves(
  series,
  { height = 260, label, xTitle, yTitle, logY = false, xText, yText, marked = null, picked = null },
) {
  /** @type {import("./canvas.js").Place[]} */
  let places = []; // of the first series
  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    const frame = { left: 58, right: width - 24, top: 24, bottom: tall - 42 };
    const xs = series.flatMap((each) => each.x);
    const ys = series.flatMap((each) => each.y).filter((value) => Number.isFinite(value));
    const log = logY && Math.min(...ys) > 0;
    const x = new Scale(Math.min(...xs), Math.max(...xs), frame.left, frame.right);
    const y = new Scale(Math.min(...ys), Math.max(...ys), frame.bottom, frame.top, log);
    axes(pen, colour, x, y, frame, xTitle, yTitle, xText, yText);
    for (const each of series) {
      pen.strokeStyle = colour[each.colour];
      pen.lineWidth = 2;
      pen.setLineDash(each.dashed ? [6, 4] : []);
      pen.beginPath();
      each.x.forEach((value, place) => {
        const [px, py] = [x.place(value), y.place(each.y[place])];
        if (place) pen.lineTo(px, py);
        else pen.moveTo(px, py);
      });
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 1;
    if (!picked) return;
    places = series[0].x.map((value, place) => [x.place(value), y.place(series[0].y[place])]);
    places.forEach(([px, py], place) => {
      pen.fillStyle = pen.strokeStyle =
        place === marked?.() ? colour.second : colour[series[0].colour];
      pen.beginPath();
      pen.arc(px, py, 4.2, 0, 7);
      pen.fill();
      if (place === marked?.()) {
        pen.lineWidth = 2.5;
        pen.beginPath();
        pen.arc(px, py, 8, 0, 7);
        pen.stroke();
        pen.lineWidth = 1;
      }
    });
  });
  if (picked)
    chart.canvas.addEventListener("click", (event) => {
      const found = nearest(
        places.map(([px]) => px),
        places.map(([, py]) => py),
        chart.at(event),
      );
      if (found >= 0) picked(found);
    });
  return chart.element;
}
