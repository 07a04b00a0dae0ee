// A canvas that is as sharp as the screen, follows its width and the page's colours, and says what it shows.
import { h, number } from "../dom.js";

const NAMES = ["ink", "quiet", "line", "accent", "second", "faint", "card", "wash", "third"];
let known = null; // reading them makes the browser lay the page out, so once for each scheme

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  known = null;
  for (const canvas of document.querySelectorAll("canvas")) canvas.chart?.renew();
});

export function colours() {
  if (known) return known;
  const style = getComputedStyle(document.documentElement);
  known = Object.fromEntries(
    NAMES.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]),
  );
  return known;
}

// `paint` draws everything; where there is `over` too, what `paint` drew is kept and copied, and only `over` is drawn
// anew for a pointer that moves or a point that is chosen. `renew` when the still part has changed, else `redraw`.
export class Canvas {
  constructor(height, label, paint, over = null) {
    Object.assign(this, { height, paint, over });
    this.canvas = h("canvas", { role: "img", "aria-label": label, style: `height:${height}px` });
    this.canvas.chart = this;
    this.element = this.canvas;
    this.asked = false;
    this.still = null;
    new ResizeObserver(() => this.redraw()).observe(this.canvas);
  }

  renew() {
    this.still = null;
    this.redraw();
  }

  redraw() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame(() => {
      this.asked = false;
      this.now();
    });
  }

  now() {
    const width = this.canvas.clientWidth;
    if (!width) return;
    const sharp = window.devicePixelRatio || 1;
    const [w, tall] = [Math.round(width * sharp), Math.round(this.height * sharp)];
    if (this.canvas.width !== w || this.canvas.height !== tall) {
      this.canvas.width = w;
      this.canvas.height = tall;
      this.still = null;
    }
    this.width = width;
    const pen = ready(this.canvas, width, this.height, sharp);
    if (!this.over) {
      this.paint(pen, width, this.height, colours());
      return;
    }
    if (!this.still) {
      this.still = new OffscreenCanvas(w, tall);
      this.paint(ready(this.still, width, this.height, sharp), width, this.height, colours());
    }
    pen.drawImage(this.still, 0, 0, width, this.height);
    this.over(pen, width, this.height, colours());
  }

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }
}

function ready(canvas, width, height, sharp) {
  const pen = canvas.getContext("2d");
  pen.setTransform(sharp, 0, 0, sharp, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = "13px system-ui, sans-serif";
  pen.lineWidth = 1;
  return pen;
}

// An axis over values: linear, or logarithmic where everything is above 0.
export class Scale {
  constructor(low, high, from, to, log = false) {
    this.log = log && low > 0;
    if (low === high) {
      low -= this.log ? low / 2 : 0.5;
      high += 0.5;
    }
    Object.assign(this, { low, high, from, to });
  }

  place(value) {
    const f = this.log ? Math.log : (x) => x;
    return (
      this.from + ((f(value) - f(this.low)) / (f(this.high) - f(this.low))) * (this.to - this.from)
    );
  }

  value(place) {
    const share = (place - this.from) / (this.to - this.from);
    return this.log
      ? Math.exp(Math.log(this.low) + share * Math.log(this.high / this.low))
      : this.low + share * (this.high - this.low);
  }

  ticks(most = 6) {
    const found = [];
    if (this.log) {
      const decades = Math.log10(this.high / this.low);
      for (let power = Math.floor(Math.log10(this.low)); power <= Math.log10(this.high); power += 1)
        for (const digit of decades > 2.2 ? [1] : [1, 2, 5]) {
          const value = digit * 10 ** power;
          if (value >= this.low * 0.999 && value <= this.high * 1.001) found.push(value);
        }
      return found;
    }
    const raw = (this.high - this.low) / most;
    const power = 10 ** Math.floor(Math.log10(raw));
    const step =
      [1, 2, 2.5, 5, 10].map((factor) => factor * power).find((size) => size >= raw) ?? raw;
    for (
      let value = Math.ceil(this.low / step) * step;
      value <= this.high + step * 1e-9;
      value += step
    )
      found.push(Math.abs(value) < step * 1e-9 ? 0 : value); // never -0
    return found;
  }
}

export const short = (value) =>
  Math.abs(value) >= 1e7
    ? `${+(value / 1e6).toPrecision(3)} million`
    : number(+value.toPrecision(4));

export function axes(pen, colour, x, y, box, xTitle, yTitle, xText = short, yText = short) {
  pen.strokeStyle = colour.line;
  pen.fillStyle = colour.quiet;
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const tick of y.ticks(5)) {
    const place = Math.round(y.place(tick)) + 0.5;
    pen.beginPath();
    pen.moveTo(box.left, place);
    pen.lineTo(box.right, place);
    pen.stroke();
    pen.fillText(yText(tick), box.left - 6, place);
  }
  pen.textAlign = "center";
  pen.textBaseline = "top";
  for (const tick of x.ticks(box.right - box.left < 340 ? 4 : 8))
    pen.fillText(xText(tick), x.place(tick), box.bottom + 6);
  pen.fillText(xTitle, (box.left + box.right) / 2, box.bottom + 22);
  pen.textAlign = "left";
  pen.textBaseline = "alphabetic";
  pen.fillText(yTitle, 4, 12);
}
