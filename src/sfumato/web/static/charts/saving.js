// A chart as a file: PNG as it stands on the screen, SVG drawn anew.
import { button, h } from "../dom.js";
import { colours } from "./canvas.js";
import { csvText } from "./csv.js";
import { SvgPen } from "./svg.js";

function saved(blob, name) {
  const link = h("a", { href: URL.createObjectURL(blob), download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export const saveText = (text, name, type) => saved(new Blob([text], { type }), name);

function asPng(canvas, name) {
  const copy = document.createElement("canvas");
  [copy.width, copy.height] = [canvas.width, canvas.height];
  const pen = /** @type {CanvasRenderingContext2D} */ (copy.getContext("2d"));
  pen.fillStyle = colours().card;
  pen.fillRect(0, 0, copy.width, copy.height);
  pen.drawImage(canvas, 0, 0);
  copy.toBlob((blob) => saved(blob, `${name}.png`), "image/png");
}

function asSvg(chart, name) {
  const pen = new SvgPen(chart.width, chart.height);
  chart.paint(pen, chart.width, chart.height, colours());
  chart.over?.(pen, chart.width, chart.height, colours());
  saveText(pen.text(colours().card), `${name}.svg`, "image/svg+xml");
  chart.renew(); // places were worked out for the file
}

export function chartButtons(canvas, name) {
  return h(
    "span",
    { class: "row" },
    button("PNG", () => asPng(canvas, name), {
      class: "plain small",
      "aria-label": `Save ${name} as PNG`,
      "data-save": "png",
    }),
    button("SVG", () => asSvg(canvas.chart, name), {
      class: "plain small",
      "aria-label": `Save ${name} as SVG`,
      "data-save": "svg",
    }),
  );
}

// A list as CSV, opened by spreadsheets.
export const saveCsv = (heads, rows, name) => saveText(csvText([heads, ...rows]), name, "text/csv");
