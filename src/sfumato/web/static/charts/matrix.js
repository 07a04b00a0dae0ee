// A scatter matrix: every figure against every other, linked to the map by selection and choice.
import { Canvas, Scale } from "./canvas.js";

export function matrix({ label, names, title, picked }) {
  let rows = [];
  let inside = null;
  let chosen = null;
  let cells = [];
  const count = names.length;
  const height = Math.min(130 * (count - 1) + 30, 560);

  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    const span = Object.fromEntries(names.map((name) => [name, rows.reduce(([low, high], row) => [Math.min(low, row[name]), Math.max(high, row[name])], [Infinity, -Infinity])]));
    const wide = (width - 4) / (count - 1);
    const high = (tall - 24) / (count - 1);
    cells = [];
    for (let down = 1; down < count; down += 1) {
      for (let across = 0; across < down; across += 1) {
        const [left, top] = [across * wide + 2, (down - 1) * high];
        const cell = {
          left, top, wide, high, xn: names[across], yn: names[down],
          x: new Scale(...span[names[across]], left + 10, left + wide - 10, span[names[across]][0] > 0 && names[across] === "k"),
          y: new Scale(...span[names[down]], top + high - 10, top + 18, span[names[down]][0] > 0 && names[down] === "k"),
        };
        cells.push(cell);
        pen.strokeStyle = colour.line;
        pen.strokeRect(left + 2.5, top + 2.5, wide - 5, high - 5);
        const size = rows.length > 1000 ? 1.5 : 2.5;
        for (const keep of [false, true]) {
          pen.fillStyle = keep ? colour.accent : colour.faint;
          for (const row of rows)
            if ((inside === null || inside.has(row.id)) === keep) pen.fillRect(cell.x.place(row[cell.xn]) - size / 2, cell.y.place(row[cell.yn]) - size / 2, size, size);
        }
        const one = rows.find((row) => row.id === chosen);
        if (one) {
          pen.strokeStyle = colour.second;
          pen.lineWidth = 2;
          pen.beginPath(); pen.arc(cell.x.place(one[cell.xn]), cell.y.place(one[cell.yn]), 5, 0, 7); pen.stroke();
          pen.lineWidth = 1;
        }
        pen.fillStyle = colour.quiet;
        pen.textAlign = "left";
        pen.textBaseline = "top";
        const said = `${title(cell.yn)} / ${title(cell.xn)}`;
        const fits = Math.floor((wide - 12) / 6.5);
        pen.fillText(said.length > fits ? `${said.slice(0, fits - 1)}…` : said, left + 7, top + 5);
      }
    }
  });
  chart.canvas.addEventListener("click", (event) => {
    const [px, py] = chart.at(event);
    const cell = cells.find((each) => px >= each.left && px < each.left + each.wide && py >= each.top && py < each.top + each.high);
    if (!cell) return;
    let best = null;
    let least = 15 * 15;
    for (const row of rows) {
      const far = (cell.x.place(row[cell.xn]) - px) ** 2 + (cell.y.place(row[cell.yn]) - py) ** 2;
      if (far < least) { least = far; best = row.id; }
    }
    if (best !== null) picked(best);
  });
  return {
    element: chart.element,
    draw(changes) {
      if (changes.rows) rows = changes.rows;
      if ("inside" in changes) inside = changes.inside;
      if ("chosen" in changes) chosen = changes.chosen;
      chart.redraw();
    },
  };
}
