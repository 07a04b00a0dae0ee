// Axes: where a value is drawn, which values are written beside, and how.
import { number } from "../dom.js";

// An axis over values: linear, or logarithmic where everything is above 0.
export class Scale {
  /**
   * @param {number} low
   * @param {number} high
   * @param {number} from
   * @param {number} to
   * @param {boolean} [log]
   */
  constructor(low, high, from, to, log = false) {
    this.log = log && low > 0;
    if (low === high) {
      low -= this.log ? low / 2 : 0.5;
      high += 0.5;
    }
    this.low = low;
    this.high = high;
    this.from = from;
    this.to = to;
  }

  /** @param {number} value */
  place(value) {
    const f = this.log ? Math.log : (/** @type {number} */ x) => x;
    return (
      this.from + ((f(value) - f(this.low)) / (f(this.high) - f(this.low))) * (this.to - this.from)
    );
  }

  /** @param {number} place */
  value(place) {
    const share = (place - this.from) / (this.to - this.from);
    return this.log
      ? Math.exp(Math.log(this.low) + share * Math.log(this.high / this.low))
      : this.low + share * (this.high - this.low);
  }

  ticks(most = 6) {
    /** @type {number[]} */
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

/** @param {number} value */
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
