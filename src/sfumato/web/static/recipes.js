// Options of each kind of hierarchy that is built from the values; every change builds it anew.
import { field, h } from "./dom.js";

export const KINDS = [
  ["interval", "intervals of equal width"],
  ["ends", "top and bottom coding (single values, then 85+)"],
  ["quantile", "about equal numbers of records"],
  ["breaks", "fixed breaks"],
  ["prefix", "fewer leading characters"],
  ["date", "months, years"],
  ["frequency", "combine rare values"],
  ["flat", "keep or hide the value"],
];
const numbers = (text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean)
    .map(Number);
const value = (input) => (input.value.trim() === "" ? undefined : Number(input.value));

// A round width that makes about sixteen groups: 1, 2 or 5 times a power of ten.
/**
 * @param {number} span
 * @param {number} unit
 */
export function roundWidth(span, unit) {
  const wanted = Math.max(span / 16, unit);
  const power = 10 ** Math.floor(Math.log10(wanted));
  return Math.max(
    [1, 2, 5, 10].map((digit) => digit * power).find((each) => each >= wanted * 0.999) ??
      10 * power,
    unit,
  );
}

export function recipeOptions(kind, recipe, about, build) {
  const given = recipe?.build === kind ? recipe : { build: kind };
  const text = (name, shown, change, title) =>
    field(
      name,
      h("input", { value: shown, size: 24, oninput: (event) => change(event.target.value) }),
      title,
    );
  if (kind === "interval") return intervals(given, about, build);
  if (kind === "ends") return ends(given, about, build);
  build(given);
  if (kind === "quantile")
    return field(
      "Groups",
      h("input", {
        type: "range",
        min: 2,
        max: 32,
        value: given.bins ?? 8,
        oninput: (event) => build({ build: kind, bins: Number(event.target.value) }),
      }),
      "How many groups the finest level has",
    );
  if (kind === "breaks")
    return text(
      "Breaks, finest level first; levels apart by ;",
      (given.levels ?? []).map((each) => each.join(", ")).join("; "),
      (typed) =>
        build({
          build: kind,
          levels: typed
            .split(";")
            .map(numbers)
            .filter((each) => each.length),
        }),
      "18, 30, 40, 65; 40",
    );
  if (kind === "prefix")
    return text(
      "Characters kept, per level",
      (given.keep ?? []).join(", "),
      (typed) => build(typed.trim() ? { build: kind, keep: numbers(typed) } : { build: kind }),
      "4, 3, 2",
    );
  if (kind === "date")
    return text(
      "How days are written",
      given.pattern ?? "%Y-%m-%d",
      (typed) => build({ build: kind, pattern: typed }),
      "%d.%m.%Y",
    );
  if (kind === "frequency")
    return text(
      "Rarer than, per level",
      (given.shares ?? [0.005, 0.02, 0.1]).join(", "),
      (typed) => build({ build: kind, shares: numbers(typed) }),
      "Values rarer than this share of the records are combined",
    );
  return h("p", { class: "quiet" }, "A value is either kept or hidden.");
}

function intervals(given, about, build) {
  const span = (about.highest ?? 1) - (about.lowest ?? 0) || 1;
  const unit = about.kind === "whole" ? 1 : 10 ** Math.floor(Math.log10(span / 100));
  const most = Math.max(Math.ceil(span / 2 / unit), 2);
  const widths = given.widths ?? [roundWidth(span, unit)];
  const slider = h("input", {
    type: "range",
    min: 1,
    max: most,
    step: 1,
    value: Math.min(Math.round(widths[0] / unit), most),
    id: "width",
    "aria-label": "Width of the finest intervals",
  });
  const many = h("input", {
    type: "number",
    min: 1,
    max: 8,
    value: given.widths?.length ?? Math.max(Math.min(Math.ceil(Math.log2(span / widths[0])), 4), 1),
    "aria-label": "Levels",
  });
  const list = h("input", {
    value: given.widths?.join(", ") ?? "",
    size: 20,
    "aria-label": "Widths",
  });
  const origin = h("input", {
    type: "number",
    step: "any",
    value: given.origin ?? 0,
    id: "origin",
    "aria-label": "Intervals start at",
  });
  const make = (sizes) =>
    build({
      build: "interval",
      widths: sizes,
      ...(Number(origin.value) ? { origin: Number(origin.value) } : {}),
    });
  const doubled = () => {
    const first = Number(slider.value) * unit;
    const sizes = Array.from({ length: Math.max(Number(many.value) || 1, 1) }, (_, step) =>
      Number((first * 2 ** step).toPrecision(8)),
    );
    list.value = sizes.join(", ");
    make(sizes);
  };
  slider.addEventListener("input", doubled);
  many.addEventListener("input", doubled);
  list.addEventListener("input", () => make(numbers(list.value)));
  origin.addEventListener("input", () => make(numbers(list.value)));
  if (!given.widths) doubled();
  else build(given);
  return h(
    "div",
    {},
    field("Width of the finest intervals", slider, "Each level above doubles it"),
    h(
      "div",
      { class: "row top" },
      field("Levels", many),
      field("Widths, finest first", list, "Each must be a multiple of the one before"),
      field("Intervals start at", origin, "With 1 and width 2: 1–2, 3–4 …"),
    ),
  );
}

function ends(given, about, build) {
  const number = (name, shown) =>
    h("input", { type: "number", step: "any", value: shown ?? "", id: name, placeholder: "none" });
  const [bottom, top] = [
    number("bottom", given.bottom),
    number(
      "top",
      given.top ??
        (given.bottom === undefined
          ? Math.ceil(
              ((about.lowest ?? 0) + ((about.highest ?? 1) - (about.lowest ?? 0)) * 0.9) / 5,
            ) * 5
          : undefined),
    ),
  ];
  const list = h("input", {
    value: (given.widths ?? [5, 10]).join(", "),
    size: 16,
    "aria-label": "Widths between",
  });
  const make = () =>
    build(
      Object.fromEntries(
        Object.entries({
          build: "ends",
          bottom: value(bottom),
          top: value(top),
          widths: numbers(list.value),
        }).filter(([, each]) => each !== undefined),
      ),
    );
  for (const input of [bottom, top, list]) input.addEventListener("input", make);
  make();
  return h(
    "div",
    { class: "row top" },
    field("Everything below", bottom, "Stands together; single values start here"),
    field("This and everything above", top, "Stands together, such as 85+"),
    field("Then widths in between", list, "Intervals of the levels above; empty for none"),
  );
}
