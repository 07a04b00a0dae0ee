// Lines over a common axis: who pays, the share of records at risk.
import { Canvas, Scale, axes } from "./canvas.js";

export function curves(series, { height = 260, label, xTitle, yTitle, logY = false, xText, yText }) {
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
        if (place) pen.lineTo(px, py); else pen.moveTo(px, py);
      });
      pen.stroke();
    }
    pen.setLineDash([]);
    pen.lineWidth = 1;
  });
  return chart.element;
}
