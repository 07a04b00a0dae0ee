// A scatter matrix: every figure against every other, linked to the map by selection and choice.
import { Canvas } from "./canvas.js";
import { Scale } from "./scale.js";
import { Speckle, mask, nearest } from "./speckle.js";

export function matrix({ label, names, title, log, picked }) {
  let rows = [];
  let inside = null;
  let chosen = null;
  let cells = [];
  let laid = null; // the canvas that cells are worked out for
  let specks = null;
  const count = names.length;
  const height = Math.min(130 * (count - 1) + 30, 560);

  function layout(pen, width, tall) {
    if (laid === pen.canvas.width) return;
    laid = pen.canvas.width;
    const span = Object.fromEntries(
      names.map((name) => [
        name,
        rows.reduce(
          ([low, high], row) => [Math.min(low, row[name]), Math.max(high, row[name])],
          [Infinity, -Infinity],
        ),
      ]),
    );
    const wide = (width - 4) / (count - 1);
    const high = (tall - 24) / (count - 1);
    cells = [];
    for (let down = 1; down < count; down += 1) {
      for (let across = 0; across < down; across += 1) {
        const [left, top] = [across * wide + 2, (down - 1) * high];
        const [xn, yn] = [names[across], names[down]];
        const x = new Scale(span[xn][0], span[xn][1], left + 10, left + wide - 10, log(xn));
        const y = new Scale(span[yn][0], span[yn][1], top + high - 10, top + 20, log(yn));
        const [xs, ys] = [
          Float32Array.from(rows, (row) => x.place(row[xn])),
          Float32Array.from(rows, (row) => y.place(row[yn])),
        ];
        cells.push({ left, top, wide, high, xn, yn, xs, ys });
      }
    }
    specks = new Speckle(pen, width, tall, cells, rows.length > 1000 ? 2 : 3);
  }

  const chart = new Canvas(
    height,
    label,
    (pen, width, tall, colour) => {
      layout(pen, width, tall);
      specks.paint(pen, colour, mask(rows, inside));
      pen.globalCompositeOperation = "destination-over";
      for (const { left, top, wide, high, xn, yn } of cells) {
        pen.strokeStyle = colour.line;
        pen.strokeRect(left + 2.5, top + 2.5, wide - 5, high - 5);
        pen.fillStyle = colour.quiet;
        pen.textAlign = "left";
        pen.textBaseline = "top";
        const said = `${title(yn)} / ${title(xn)}`;
        const fits = Math.floor((wide - 12) / 6.5);
        pen.fillText(said.length > fits ? `${said.slice(0, fits - 1)}…` : said, left + 7, top + 5);
      }
    },
    (pen, width, tall, colour) => {
      const row = rows.findIndex((each) => each.id === chosen);
      if (row < 0) return;
      pen.strokeStyle = colour.second;
      pen.lineWidth = 2;
      for (const { xs, ys } of cells) {
        pen.beginPath();
        pen.arc(xs[row], ys[row], 5, 0, 7);
        pen.stroke();
      }
      pen.lineWidth = 1;
    },
  );
  chart.canvas.addEventListener("click", (event) => {
    const [px, py] = chart.at(event);
    const cell = cells.find(
      (each) =>
        px >= each.left &&
        px < each.left + each.wide &&
        py >= each.top &&
        py < each.top + each.high,
    );
    const found = cell ? nearest(cell.xs, cell.ys, [px, py]) : -1;
    if (found >= 0) picked(rows[found].id);
  });
  return {
    element: chart.element,
    draw(changes) {
      if (changes.rows) {
        rows = changes.rows;
        laid = null;
      }
      if ("inside" in changes) inside = changes.inside;
      if ("chosen" in changes) chosen = changes.chosen;
      if (changes.rows || "inside" in changes) chart.renew();
      else chart.redraw();
    },
  };
}
