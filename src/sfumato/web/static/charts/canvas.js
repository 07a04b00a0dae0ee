// A canvas that is as sharp as the screen, follows its width and the page's colours, and says what it shows.
import { h } from "../dom.js";

const NAMES = ["ink", "quiet", "line", "accent", "second", "faint", "card", "wash", "third"];
/** @type {Record<string, string> | null} */
let known = null; // reading them makes the browser lay the page out, so once for each scheme

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  known = null;
  for (const canvas of document.querySelectorAll("canvas"))
    /** @type {any} */ (canvas).chart?.renew();
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
/**
 * @typedef {CanvasRenderingContext2D | OffscreenCanvasRenderingContext2D | import("./svg.js").SvgPen} Pen
 * @typedef {(pen: any, width: number, tall: number, colour: Record<string, string>) => void} Paint
 * @typedef {[number, number]} Place
 */
export class Canvas {
  /**
   * @param {number} height
   * @param {string} label
   * @param {Paint} paint
   * @param {Paint | null} over
   */
  constructor(height, label, paint, over = null) {
    this.height = height;
    this.paint = paint;
    this.over = over;
    this.width = 0;
    this.canvas = h("canvas", { role: "img", "aria-label": label, style: `height:${height}px` });
    this.canvas.chart = this;
    this.element = this.canvas;
    this.asked = false;
    /** @type {OffscreenCanvas | null} */
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

  /**
   * @param {PointerEvent | MouseEvent} event
   * @returns {Place}
   */
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
