// A matrix as a heat map: one hue, stronger is more; hovering tells the cell.
import { Canvas } from "./canvas.js";

// A text, cut where it would be wider than its room.
function fitted(pen, text, room) {
  let shown = text;
  while (shown.length > 1 && pen.measureText(shown).width > room)
    shown = `${shown.replace(/…$/, "").slice(0, -1)}…`;
  return shown;
}

export function heat(matrix, { rows, columns, height = 320, label, text }) {
  /** @type {[number, number] | null} */
  let over = null;
  /** @type {((x: number, y: number) => [number, number]) | null} */
  let cell = null; // the cell at a place, once it is drawn
  const left = 108;
  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    const wide = (width - left) / columns.length;
    const high = (tall - 44) / rows.length;
    const most = Math.max(...matrix.flat(), 1e-12);
    pen.fillStyle = colour.accent;
    matrix.forEach((line, row) =>
      line.forEach((value, column) => {
        pen.globalAlpha = value > 0 ? 0.08 + 0.92 * (value / most) : 0;
        pen.fillRect(
          left + column * wide,
          row * high,
          Math.max(wide - 0.5, 0.5),
          Math.max(high - 0.5, 0.5),
        );
      }),
    );
    pen.globalAlpha = 1;
    pen.strokeStyle = colour.line;
    pen.strokeRect(left + 0.5, 0.5, width - left - 1, rows.length * high - 1);
    pen.fillStyle = colour.quiet;
    pen.textBaseline = "middle";
    pen.textAlign = "right";
    const every = Math.ceil(15 / high);
    rows.forEach((name, row) => {
      if (row % every === 0 && (row + 0.5) * high > 6)
        pen.fillText(fitted(pen, name, left - 8), left - 5, (row + 0.5) * high);
    });
    pen.textBaseline = "top";
    pen.textAlign = "center";
    const step = Math.ceil(84 / wide);
    columns.forEach((name, column) => {
      if (column % step === 0)
        pen.fillText(
          fitted(pen, name, 80),
          Math.min(left + (column + 0.5) * wide, width - 34),
          rows.length * high + 5,
        );
    });
    pen.textAlign = "left";
    pen.fillStyle = colour.ink;
    if (over) pen.fillText(text(over[0], over[1], matrix[over[0]][over[1]]), 2, tall - 18);
    cell = (x, y) => [Math.floor(y / high), Math.floor((x - left) / wide)];
  });
  chart.canvas.addEventListener("pointermove", (event) => {
    const [row, column] = cell?.(...chart.at(event)) ?? [-1, -1];
    over = matrix[row]?.[column] === undefined ? null : [row, column];
    chart.canvas.title = over ? text(row, column, matrix[row][column]) : "";
    chart.redraw();
  });
  return chart.element;
}
