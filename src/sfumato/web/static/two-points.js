// Two points record by record: who is better off under which.
import { attempt, get, query } from "./api.js";
import { curves } from "./charts/curves.js";
import { button, defined, figure, fill, h, number, percent, select, table } from "./dom.js";
import { valueText } from "./settings.js";
import { headlines, here, state } from "./state.js";

export async function drawComparison(place, one, two, close) {
  if (two === null) {
    fill(place);
    return;
  }
  const chosen = place.dataset.measure ?? headlines()[0].name;
  const [found, ...both] = await Promise.all([
    attempt(
      () =>
        get(
          `${here()}/jobs/${state.job}/compare${query({ one, two, measure: chosen })}`,
          "comparing record by record …",
        ),
      place,
    ),
    ...[one, two].map((id) =>
      attempt(() => get(`${here()}/jobs/${state.job}/points/${id}`), place),
    ),
  ]);
  if (!found || both.some((each) => !each)) return;
  const [a, b] = both;
  const wordOf = (point, column) =>
    point.words.find((word) => word === column || word.startsWith(`${column} `)) ?? "";
  const sides = [
    ["loss", percent(a.loss), percent(b.loss)],
    ["suppressed", number(a.suppressed), number(b.suppressed)],
    ...Object.entries(a.figures)
      .filter(([, each]) => !each.reason)
      .map(([name, each]) => [
        each.title,
        valueText(name)(each.after),
        valueText(name)(b.figures[name]?.after),
      ]),
    ...a.columns.map((column) => [
      column.name,
      wordOf(a, column.name).replace(`${column.name} `, "") || "unchanged",
      wordOf(b, column.name).replace(`${column.name} `, "") || "unchanged",
    ]),
  ];
  const able = state.about.measures
    .filter((each) => ["sizes", "sensitive", "cells"].includes(each.reads))
    .map((each) => [each.name, each.title]);
  fill(
    place,
    h(
      "div",
      { class: "card", id: "who-pays" },
      h(
        "div",
        { class: "row spread" },
        h("h2", {}, `Effect on records: point ${one} (A) against point ${two} (B)`),
        h(
          "div",
          { class: "row" },
          select(
            able,
            chosen,
            (next) => {
              place.dataset.measure = next;
              drawComparison(place, one, two, close);
            },
            { "aria-label": "Measure" },
          ),
          button("Close", close, { class: "plain small" }),
        ),
      ),
      table(
        "Two points side by side",
        ["figure", `A: point ${one}`, `B: point ${two}`],
        sides.map(([name, ...cells]) => [
          h("td", {}, h("b", {}, name)),
          ...cells.map((cell) =>
            h("td", { class: cells[0] === cells[1] ? "wrap quiet" : "wrap" }, cell),
          ),
        ]),
        { id: "side-by-side", style: "margin-bottom:.8rem" },
      ),
      h(
        "div",
        { class: "halves" },
        h(
          "div",
          {},
          h(
            "figure",
            {},
            curves(
              [
                { x: found.share, y: found.curves[0], colour: "second" },
                { x: found.share, y: found.curves[1], colour: "ink", dashed: true },
              ],
              {
                label: "the measure of every record under both points, sorted",
                xTitle: "share of the records, worst first",
                yTitle: found.title,
                logY: true,
                xText: (value) => percent(value, 0),
              },
            ),
            h(
              "figcaption",
              {},
              h("span", { class: "swatch", style: "background:var(--second)" }),
              `A: point ${one} `,
              h("span", { class: "swatch", style: "background:var(--ink)" }),
              `B: point ${two} (dashed). One number per record, each curve sorted by itself.`,
            ),
          ),
          h(
            "div",
            { class: "tiles" },
            figure(
              number(found.better),
              "records better off under B",
              "Records whose own figure is better under B than under A",
            ),
            figure(
              number(found.worse),
              "records worse off under B",
              "Records whose own figure is worse under B than under A",
            ),
            figure(number(found.same), "the same", "Records whose figure does not change"),
          ),
        ),
        h(
          "div",
          {},
          h(
            "h3",
            {},
            defined(
              "Who gains and who loses under B",
              "The mean change over records with a value, for values that at least 1 % of the records have",
            ),
          ),
          found.who.length
            ? table(
                "Who gains and who loses",
                ["people with", "records", "mean change"],
                found.who.map((each) => [
                  `${each.column} = ${each.value}`,
                  number(each.records),
                  h(
                    "td",
                    { style: each.gain < 0 ? "color:var(--second)" : "color:var(--accent)" },
                    `${each.gain < 0 ? "worse" : "better"} by ${number(Math.abs(each.gain))}`,
                  ),
                ]),
              )
            : h("p", { class: "quiet" }, "No differences."),
        ),
      ),
    ),
  );
}
