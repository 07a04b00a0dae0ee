// The risk–utility map: a front, what it dominates, a choice; hover, click, brush and arrow keys. Ten thousand
// points are fine.
import { Canvas } from "./canvas.js";
import { Scale, axes } from "./scale.js";
import { Speckle, mask, nearest } from "./speckle.js";

const MANY = 1500; // from here on points are pixels, not discs

function extent(lists, name) {
  let [low, high] = [Infinity, -Infinity];
  for (const list of lists)
    for (const point of list) {
      if (point[name] < low) low = point[name];
      if (point[name] > high) high = point[name];
    }
  return low > high ? [0, 1] : [low, high];
}

function steps(pen, colour, xs, ys) {
  // the best privacy at each loss
  pen.strokeStyle = colour.accent;
  pen.globalAlpha = 0.5;
  pen.beginPath();
  for (let place = 0; place < xs.length; place += 1) {
    if (place) pen.lineTo(xs[place], ys[place - 1]);
    pen.lineTo(xs[place], ys[place]);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

function discs(pen, colour, xs, ys, kept, size) {
  for (const keep of [0, 1]) {
    pen.fillStyle = keep ? colour.accent : colour.faint;
    pen.beginPath();
    for (let place = 0; place < xs.length; place += 1) {
      if ((kept === null ? 1 : kept[place]) !== keep) continue;
      pen.moveTo(xs[place] + size, ys[place]);
      pen.arc(xs[place], ys[place], size, 0, 7);
    }
    pen.fill();
  }
}

function ring(pen, frame, px, py, stroke, text, radius = 8) {
  pen.strokeStyle = pen.fillStyle = stroke;
  pen.lineWidth = 2.5;
  pen.beginPath();
  pen.arc(px, py, radius, 0, 7);
  pen.stroke();
  pen.lineWidth = 1;
  const late = px > frame.right - 60;
  pen.textAlign = late ? "right" : "left";
  pen.textBaseline = "alphabetic";
  if (text) pen.fillText(text, px + (late ? -12 : 12), py + (radius > 8 ? 14 : -6));
}

function bubble(pen, colour, width, tall, px, py, lines) {
  const wide = Math.max(...lines.map((line) => pen.measureText(line).width), 0) + 16;
  const left = Math.min(Math.max(px + 12, 2), width - wide - 2);
  const top = Math.min(Math.max(py - 12 - lines.length * 16, 2), tall - lines.length * 16 - 12);
  pen.fillStyle = colour.ink;
  pen.fillRect(left, top, wide, lines.length * 16 + 10);
  pen.fillStyle = colour.card;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  lines.forEach((line, row) => pen.fillText(line, left + 8, top + 6 + row * 16));
}

// Lines at limits that policies set, and what lies on the wrong side of the floor as a band.
function limits(pen, colour, frame, y, lines) {
  const written = [];
  for (const { value, text, floor } of lines) {
    if (!(value > y.low && value < y.high)) continue;
    const place = Math.round(y.place(value)) + 0.5;
    if (floor) {
      pen.fillStyle = colour.second;
      pen.globalAlpha = 0.08;
      pen.fillRect(frame.left, place, frame.right - frame.left, frame.bottom - place);
      pen.globalAlpha = 1;
    }
    pen.strokeStyle = pen.fillStyle = floor ? colour.second : colour.quiet;
    pen.setLineDash([3, 4]);
    pen.beginPath();
    pen.moveTo(frame.left, place);
    pen.lineTo(frame.right, place);
    pen.stroke();
    pen.setLineDash([]);
    pen.textAlign = "right";
    pen.textBaseline = "alphabetic";
    if (written.every((other) => Math.abs(other - place) > 14)) {
      const wide = pen.measureText(text).width;
      pen.fillStyle = colour.card;
      pen.fillRect(frame.right - wide - 5, place - 15, wide + 6, 14);
      pen.fillStyle = pen.strokeStyle;
      pen.fillText(text, frame.right - 2, place - 3);
    }
    written.push(place);
  }
}

// What is proven to be out of reach: at each k and above, less loss than so much.
function floored(pen, colour, frame, x, y, levels) {
  const across = (share) => Math.min(Math.max(x.place(share), frame.left), frame.right);
  const seen = levels
    .map(([low, share], place) => [
      low,
      place + 1 < levels.length ? levels[place + 1][0] : y.high,
      share,
    ])
    .filter(([low, high, share]) => high > y.low && low < y.high && across(share) > frame.left);
  const level = (value) => Math.min(Math.max(y.place(value), frame.top), frame.bottom);
  pen.fillStyle = colour.quiet;
  pen.globalAlpha = 0.16;
  for (const [low, high, share] of seen)
    pen.fillRect(frame.left, level(high), across(share) - frame.left, level(low) - level(high));
  pen.globalAlpha = 1;
  if (!seen.length) return;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.fillText("proven: nothing here", frame.left + 4, frame.top + 4);
}

/**
 * @param {{height?: number, label: string, xTitle: string, yTitle: string,
 *   xText?: (value: number) => string, yText?: (value: number) => string,
 *   says?: (id: number) => string[], picked?: (id: number, second: boolean) => void,
 *   brushed?: (ids: Set<number> | null) => void, logY?: boolean}} options
 */
export function cloud({
  height = 420,
  label,
  xTitle,
  yTitle,
  xText,
  yText,
  says,
  picked,
  brushed,
  logY = false,
}) {
  /** @type {any[]} */
  let lines = [];
  let better = "";
  let floor = []; // [k, least loss] of each step of the floor
  let logX = false;
  /** @type {{id: number, x: number, y: number}[]} */
  let points = [];
  /** @type {{x: number, y: number}[]} */
  let others = [];
  /** @type {Set<number> | null} */
  let inside = null; // ids within the brush, or null
  /** @type {any} */
  let marks = {}; // {chosen, knee, rival}
  let joined = true;
  let hover = -1;
  /** @type {{from: import("./canvas.js").Place, to?: import("./canvas.js").Place} | null} */
  let drag = null;
  /** @type {any} */
  let x = null; // the scales, and the room between them, once they are worked out
  /** @type {any} */
  let y = null;
  /** @type {any} */
  let frame = null;
  let [xs, ys] = [new Float32Array(), new Float32Array()];
  const at = new Map(); // the place of each id
  let laid = null; // the canvas that places are worked out for
  let specks = null;

  function layout(pen, width, tall) {
    if (laid === pen.canvas.width) return;
    laid = pen.canvas.width;
    frame = { left: 58, right: width - 22, top: 24, bottom: height - 44 };
    const [[xl, xh], [yl, yh]] = [
      extent([points, others, floor.map(([, share]) => ({ x: share }))], "x"),
      extent([points, others], "y"),
    ];
    const pad = (xh - xl) * 0.03 || 0.01;
    const across = logX && xl > 0;
    x = new Scale(
      across ? xl / 1.1 : xl - pad,
      across ? xh * 1.1 : xh + pad,
      frame.left,
      frame.right,
      across,
    );
    const log = logY && yl > 0;
    y = new Scale(
      log ? yl / 1.15 : yl - (yh - yl) * 0.05,
      log ? yh * 1.15 : yh + (yh - yl) * 0.05,
      frame.bottom,
      frame.top,
      log,
    );
    xs = Float32Array.from(points, (point) => x.place(point.x));
    ys = Float32Array.from(points, (point) => y.place(point.y));
    specks =
      points.length > MANY && pen.createImageData
        ? new Speckle(pen, width, tall, [{ xs, ys }])
        : null;
  }

  const chart = new Canvas(
    height,
    label,
    (pen, width, tall, colour) => {
      layout(pen, width, tall);
      const kept = mask(points, inside);
      specks?.paint(pen, colour, kept);
      pen.globalCompositeOperation = specks ? "destination-over" : "source-over";
      axes(pen, colour, x, y, frame, xTitle, yTitle, xText, yText);
      pen.fillStyle = colour.faint;
      for (const point of others)
        pen.fillRect(x.place(point.x) - 1.5, y.place(point.y) - 1.5, 3, 3);
      floored(pen, colour, frame, x, y, floor);
      limits(pen, colour, frame, y, lines);
      if (better) {
        pen.fillStyle = colour.accent;
        pen.textBaseline = "alphabetic";
        pen.textAlign = "↗↘".includes(better) ? "right" : "left";
        pen.fillText(
          `better ${better}`,
          "↗↘".includes(better) ? frame.right : frame.left + 4,
          "↖↗".includes(better) ? 14 : frame.bottom - 6,
        );
      }
      if (joined && points.length > 1 && points.length < 3000) steps(pen, colour, xs, ys);
      if (!specks) discs(pen, colour, xs, ys, kept, points.length > 300 ? 2.8 : 4.2);
    },
    (pen, width, tall, colour) => {
      const mark = (id, stroke, text, radius) => {
        const place = at.get(id);
        if (place !== undefined) ring(pen, frame, xs[place], ys[place], stroke, text, radius);
      };
      mark(marks.knee, colour.third, "knee", 11);
      mark(marks.rival, colour.ink, "B");
      if (marks.answer)
        ring(
          pen,
          frame,
          x.place(marks.answer.x),
          y.place(marks.answer.y),
          colour.second,
          "the answer",
        );
      else mark(marks.chosen, colour.second, (marks.rival ?? null) === null ? "" : "A");
      if (hover >= 0 && points[hover])
        bubble(pen, colour, width, tall, xs[hover], ys[hover], says?.(points[hover].id) ?? []);
      if (!drag?.to) return;
      pen.fillStyle = colour.accent;
      pen.globalAlpha = 0.14;
      pen.fillRect(
        Math.min(drag.from[0], drag.to[0]),
        Math.min(drag.from[1], drag.to[1]),
        Math.abs(drag.to[0] - drag.from[0]),
        Math.abs(drag.to[1] - drag.from[1]),
      );
      pen.globalAlpha = 1;
    },
  );

  const { canvas } = chart;
  canvas.tabIndex = 0;
  canvas.style.touchAction = "pan-y";
  canvas.addEventListener("pointerdown", (event) => {
    drag = { from: chart.at(event) };
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!x) return;
    const place = chart.at(event);
    if (drag && Math.hypot(place[0] - drag.from[0], place[1] - drag.from[1]) > 5) drag.to = place;
    const found = drag?.to ? -1 : nearest(xs, ys, place);
    if (found !== hover || drag?.to) {
      hover = found;
      chart.redraw();
    }
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag?.to && brushed) {
      const [ax, bx] = [drag.from[0], drag.to[0]].sort((a, b) => a - b);
      const [ay, by] = [drag.from[1], drag.to[1]].sort((a, b) => a - b);
      brushed(
        new Set(
          points
            .filter(
              (_, place) =>
                xs[place] >= ax && xs[place] <= bx && ys[place] >= ay && ys[place] <= by,
            )
            .map((point) => point.id),
        ),
      );
    } else if (x) {
      const found = nearest(xs, ys, chart.at(event));
      if (found >= 0) picked?.(points[found].id, event.shiftKey);
      else brushed?.(null);
    }
    drag = null;
    chart.redraw();
  });
  canvas.addEventListener("pointerleave", () => {
    hover = -1;
    chart.redraw();
  });
  canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") brushed?.(null);
    if (!step || !points.length) return;
    event.preventDefault();
    const now = at.get(marks.chosen) ?? -1;
    picked?.(points[Math.min(Math.max(now + step, 0), points.length - 1)].id, event.shiftKey);
  });
  return {
    element: chart.element,
    draw(changes) {
      const still = ["points", "others", "inside", "joined", "lines", "better", "floor"].some(
        (name) => name in changes,
      );
      if (changes.points || changes.others || changes.floor) laid = null;
      if (changes.points) {
        points = changes.points;
        at.clear();
        points.forEach((point, place) => at.set(point.id, place));
      }
      if (changes.others) others = changes.others;
      if (changes.lines) lines = changes.lines;
      if (changes.floor) floor = changes.floor;
      if ("better" in changes) better = changes.better;
      if ("logX" in changes) logX = changes.logX;
      if ("inside" in changes) inside = changes.inside;
      if (changes.marks) marks = changes.marks;
      if ("joined" in changes) joined = changes.joined;
      if (still) chart.renew();
      else chart.redraw();
    },
  };
}
