// A pen that writes what is drawn as SVG: the same charts, for reports. It knows what the charts use of a canvas.
const escaped = (text) =>
  String(text).replace(
    /[&<>"]/g,
    (each) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[each],
  );
const round = (value) => Math.round(value * 100) / 100;
const ANCHOR = { left: "start", center: "middle", right: "end" };

export class SvgPen {
  /**
   * @param {number} width
   * @param {number} height
   */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    /** @type {string[]} */
    this.parts = [];
    this.path = "";
    this.fillStyle = "#000";
    this.strokeStyle = "#000";
    this.lineWidth = 1;
    this.globalAlpha = 1;
    this.font = "12px sans-serif";
    /** @type {"left" | "center" | "right"} */
    this.textAlign = "left";
    this.textBaseline = "alphabetic";
    /** @type {number[]} */
    this.dash = [];
    this.canvas = { width: -1 - Math.random(), height }; // of no size that a chart has worked out its places for
    this.measure = /** @type {CanvasRenderingContext2D} */ (
      document.createElement("canvas").getContext("2d")
    );
  }

  style(kind) {
    const colour = kind === "fill" ? this.fillStyle : this.strokeStyle;
    const dashes = this.dash.length ? ` stroke-dasharray="${this.dash.join(" ")}"` : "";
    const line = kind === "fill" ? "" : ` fill="none" stroke-width="${this.lineWidth}"${dashes}`;
    return `${kind}="${colour}"${line}${this.globalAlpha < 1 ? ` opacity="${this.globalAlpha}"` : ""}`;
  }
  getTransform() {
    return { a: 1 };
  }
  setTransform() {}
  clearRect() {}
  setLineDash(dash) {
    this.dash = dash;
  }
  beginPath() {
    this.path = "";
  }
  moveTo(x, y) {
    this.path += `M${round(x)} ${round(y)}`;
  }
  lineTo(x, y) {
    this.path += `${this.path ? "L" : "M"}${round(x)} ${round(y)}`;
  }
  arc(x, y, r) {
    this.path += `M${round(x - r)} ${round(y)}a${r} ${r} 0 1 0 ${2 * r} 0a${r} ${r} 0 1 0 ${-2 * r} 0`;
  }
  stroke() {
    if (this.path) this.parts.push(`<path d="${this.path}" ${this.style("stroke")}/>`);
  }
  fill() {
    if (this.path) this.parts.push(`<path d="${this.path}" ${this.style("fill")}/>`);
  }
  fillRect(x, y, width, height) {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" height="${round(height)}" ${this.style("fill")}/>`,
    );
  }
  strokeRect(x, y, width, height) {
    this.parts.push(
      `<rect x="${round(x)}" y="${round(y)}" width="${round(width)}" ` +
        `height="${round(height)}" ${this.style("stroke")}/>`,
    );
  }
  measureText(text) {
    this.measure.font = this.font;
    return this.measure.measureText(text);
  }
  fillText(text, x, y) {
    const shift = { top: 10, middle: 4 }[this.textBaseline] ?? 0;
    this.parts.push(
      `<text x="${round(x)}" y="${round(y + shift)}" ` +
        `text-anchor="${ANCHOR[this.textAlign]}" ` +
        `${this.style("fill")}>${escaped(text)}</text>`,
    );
  }
  text(ground) {
    const { width, height } = this;
    return [
      `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}"`,
      ` height="${height}" font-family="system-ui, sans-serif" font-size="12">`,
      `<rect width="100%" height="100%" fill="${ground}"/>${this.parts.join("")}</svg>\n`,
    ].join("");
  }
}
