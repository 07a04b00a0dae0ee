// The risk–utility map: a front, what it dominates, a choice; hover, click, brush and arrow keys. Ten thousand points are fine.
import { Canvas, Scale, axes } from "./canvas.js";

// Thousands of points as pixels of an image: many times faster than as shapes.
function speckle(pen, points, inside, x, y, width, tall, colour) {
  const sharp = window.devicePixelRatio || 1;
  const [w, h] = [Math.round(width * sharp), Math.round(tall * sharp)];
  const sheet = new OffscreenCanvas(w, h);
  const ink = sheet.getContext("2d");
  const image = ink.createImageData(w, h);
  const pixels = new Uint32Array(image.data.buffer);
  const packed = (hex) => { const full = hex.length === 4 ? [...hex.slice(1)].map((c) => c + c).join("") : hex.slice(1); const n = parseInt(full, 16); return (0xff000000 | ((n & 255) << 16) | (n & 0xff00) | (n >> 16)) >>> 0; };
  const radius = Math.round(1.5 * sharp);
  for (const keep of inside === null ? [true] : [false, true]) {
    const tint = packed(keep ? colour.accent : colour.faint);
    for (const point of points) {
      if (inside !== null && inside.has(point.id) !== keep) continue;
      const px = Math.round(x.place(point.x) * sharp);
      const py = Math.round(y.place(point.y) * sharp);
      for (let row = Math.max(py - radius, 0); row <= Math.min(py + radius, h - 1); row += 1) pixels.fill(tint, row * w + Math.max(px - radius, 0), row * w + Math.min(px + radius, w - 1) + 1);
    }
  }
  ink.putImageData(image, 0, 0);
  pen.drawImage(sheet, 0, 0, width, tall);
}

export function cloud({ height = 420, label, xTitle, yTitle, xText, yText, picked, brushed, logY = false }) {
  let points = [];
  let others = [];
  let inside = null; // ids within the brush, or null
  let marks = {}; // {chosen, knee, rival}
  let hover = -1;
  let drag = null;
  let x;
  let y;
  let spans = null;
  function extent(name) {
    let [low, high] = [Infinity, -Infinity];
    for (const list of [points, others]) for (const point of list) { if (point[name] < low) low = point[name]; if (point[name] > high) high = point[name]; }
    return low > high ? [0, 1] : [low, high];
  }
  const box = () => ({ left: 58, right: chart.width - 22, top: 24, bottom: height - 44 });

  const chart = new Canvas(height, label, (pen, width, tall, colour) => {
    const frame = box();
    spans ??= [extent("x"), extent("y")];
    const [[xl, xh], [yl, yh]] = spans;
    const pad = (xh - xl) * 0.03 || 0.01;
    x = new Scale(xl - pad, xh + pad, frame.left, frame.right);
    const log = logY && yl > 0;
    y = new Scale(log ? yl / 1.15 : yl - (yh - yl) * 0.05, log ? yh * 1.15 : yh + (yh - yl) * 0.05, frame.bottom, frame.top, log);
    axes(pen, colour, x, y, frame, xTitle, yTitle, xText, yText);
    pen.fillStyle = colour.faint;
    pen.globalAlpha = 0.45;
    for (const point of others) pen.fillRect(x.place(point.x) - 1.5, y.place(point.y) - 1.5, 3, 3);
    pen.globalAlpha = 1;
    if (points.length > 1 && points.length < 3000 && chart.joined) {
      pen.strokeStyle = colour.accent;
      pen.globalAlpha = 0.5;
      pen.beginPath();
      let before = null;
      for (const point of points) { // a step: what can be had at this loss
        const [px, py] = [x.place(point.x), y.place(point.y)];
        if (before === null) pen.moveTo(px, py);
        else { pen.lineTo(px, before); pen.lineTo(px, py); }
        before = py;
      }
      pen.stroke();
      pen.globalAlpha = 1;
    }
    const size = points.length > 300 ? 2.8 : 4.2;
    if (points.length > 1500) speckle(pen, points, inside, x, y, width, tall, colour);
    else for (const pass of [0, 1]) {
      pen.fillStyle = pass ? colour.accent : colour.faint;
      pen.beginPath();
      for (const point of points) {
        if ((inside === null || inside.has(point.id) ? 1 : 0) !== pass) continue;
        const [px, py] = [x.place(point.x), y.place(point.y)];
        pen.moveTo(px + size, py);
        pen.arc(px, py, size, 0, 7);
      }
      pen.fill();
    }
    const ring = (id, stroke, text, radius = 8) => {
      const point = points.find((each) => each.id === id);
      if (!point) return;
      const [px, py] = [x.place(point.x), y.place(point.y)];
      pen.strokeStyle = stroke;
      pen.lineWidth = 2.5;
      pen.beginPath(); pen.arc(px, py, radius, 0, 7); pen.stroke();
      pen.lineWidth = 1;
      pen.fillStyle = stroke;
      pen.textAlign = px > frame.right - 60 ? "right" : "left";
      pen.textBaseline = "alphabetic";
      if (text) pen.fillText(text, px + (px > frame.right - 60 ? -12 : 12), py + (radius > 8 ? 14 : -6));
    };
    ring(marks.knee, colour.third, "knee", 11);
    ring(marks.rival, colour.ink, "B");
    ring(marks.chosen, colour.second, marks.rival !== null && marks.rival !== undefined ? "A" : "");
    if (hover >= 0 && points[hover]) {
      const point = points[hover];
      pen.fillStyle = colour.ink;
      const lines = point.says ?? [];
      const wide = Math.max(...lines.map((line) => pen.measureText(line).width), 0) + 16;
      const [px, py] = [x.place(point.x), y.place(point.y)];
      const left = Math.min(Math.max(px + 12, 2), width - wide - 2);
      const top = Math.min(Math.max(py - 12 - lines.length * 16, 2), tall - lines.length * 16 - 12);
      pen.fillRect(left, top, wide, lines.length * 16 + 10);
      pen.fillStyle = colour.card;
      pen.textAlign = "left";
      pen.textBaseline = "top";
      lines.forEach((line, row) => pen.fillText(line, left + 8, top + 6 + row * 16));
    }
    if (drag?.to) {
      pen.fillStyle = colour.accent;
      pen.globalAlpha = 0.14;
      pen.fillRect(Math.min(drag.from[0], drag.to[0]), Math.min(drag.from[1], drag.to[1]), Math.abs(drag.to[0] - drag.from[0]), Math.abs(drag.to[1] - drag.from[1]));
      pen.globalAlpha = 1;
    }
  });
  chart.joined = true;

  const nearest = ([px, py]) => {
    let best = -1;
    let least = 18 * 18;
    points.forEach((point, place) => {
      const far = (x.place(point.x) - px) ** 2 + (y.place(point.y) - py) ** 2;
      if (far < least) { least = far; best = place; }
    });
    return best;
  };
  chart.canvas.tabIndex = 0;
  chart.canvas.style.touchAction = "pan-y";
  chart.canvas.addEventListener("pointerdown", (event) => { drag = { from: chart.at(event) }; chart.canvas.setPointerCapture(event.pointerId); });
  chart.canvas.addEventListener("pointermove", (event) => {
    if (!x) return;
    const place = chart.at(event);
    if (drag && Math.hypot(place[0] - drag.from[0], place[1] - drag.from[1]) > 5) drag.to = place;
    const found = drag?.to ? -1 : nearest(place);
    if (found !== hover || drag?.to) { hover = found; chart.redraw(); }
  });
  chart.canvas.addEventListener("pointerup", (event) => {
    if (drag?.to && brushed) {
      const [ax, bx] = [x.value(drag.from[0]), x.value(drag.to[0])].sort((a, b) => a - b);
      const [ay, by] = [y.value(drag.from[1]), y.value(drag.to[1])].sort((a, b) => a - b);
      brushed(new Set(points.filter((p) => p.x >= ax && p.x <= bx && p.y >= ay && p.y <= by).map((p) => p.id)));
    } else {
      const found = nearest(chart.at(event));
      if (found >= 0) picked?.(points[found].id, event.shiftKey);
      else brushed?.(null);
    }
    drag = null;
    chart.redraw();
  });
  chart.canvas.addEventListener("pointerleave", () => { hover = -1; chart.redraw(); });
  chart.canvas.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
    if (event.key === "Escape") brushed?.(null);
    if (!step || !points.length) return;
    event.preventDefault();
    const now = points.findIndex((point) => point.id === marks.chosen);
    picked?.(points[Math.min(Math.max(now + step, 0), points.length - 1)].id, false);
  });
  return {
    element: chart.element,
    draw(changes) {
      if (changes.points) { points = changes.points; spans = null; }
      if (changes.others) { others = changes.others; spans = null; }
      if ("inside" in changes) inside = changes.inside;
      if (changes.marks) marks = changes.marks;
      if ("joined" in changes) chart.joined = changes.joined;
      chart.redraw();
    },
    now: () => chart.now(),
    place: (id) => { const point = points.find((each) => each.id === id); return point && x ? [x.place(point.x), y.place(point.y)] : null; },
  };
}
