// Randomized response: the privacy–error front with the certified bound, a matrix as a heat map.
import { attempt, get } from "./api.js";
import { curves } from "./charts/curves.js";
import { heat } from "./charts/heat.js";
import { button, defined, figure, fill, h, number, percent, plural } from "./dom.js";
import { outdated } from "./outdated.js";
import { go, here, note, state } from "./state.js";

const WHAT = {
  privacy:
    "One minus the accuracy of the best guess, given the report and how common each category is",
  mse: "The mean squared error of the shares that are estimated from the reports",
  bound:
    "The smallest error that any channel with this privacy and δ can have (proven by linear programming)",
  worst: "The highest posterior probability of any category given any report; at most δ",
  gain:
    "How many times more likely the most telling report makes a category than its " +
    "share does; rare categories have the largest",
  epsilon: "ε of local differential privacy; infinite where some report excludes a category",
};

// What is said where other columns are released too.
function keptToo(front) {
  if (!front.keep?.length) return "";
  const cap = front.epsilon_cap === null ? "∞" : front.epsilon_cap.toFixed(3);
  return (
    ` ε is at most ${cap}, because ${front.keep.join(", ")} will be released too. These figures are ` +
    "for someone who has the report alone; those of the release are given the other columns."
  );
}

export async function drawChannel(place) {
  const front = await attempt(() =>
    get(`${here()}/jobs/${state.job}/channel`, "reading the channels …"),
  );
  if (!front) return;
  const panel = h(
    "div",
    { class: "card", id: "channel-point" },
    h("div", { class: "empty" }, "Choose a channel on the curve or in the table."),
  );
  const list = h("div", { class: "scroll", style: "max-height:340px" });
  const points = front.points;
  const series = [
    {
      x: points.map((point) => point.privacy),
      y: points.map((point) => point.mse),
      colour: "accent",
    },
  ];
  const bounded = points.filter((point) => point.lower_bound !== null);
  if (bounded.length > 1)
    series.push({
      x: bounded.map((point) => point.privacy),
      y: bounded.map((point) => point.lower_bound),
      colour: "second",
      dashed: true,
    });
  const picture = curves(series, {
    height: 340,
    label: "error against privacy",
    xTitle: "privacy",
    yTitle: "error (mse), logarithmic",
    logY: true,
    yText: (value) => value.toExponential(0),
    marked: () => points.findIndex((point) => point.id === state.point),
    picked: (at) => choose(points[at].id),
  });
  const rows = () =>
    fill(
      list,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            [
              ["id"],
              ["privacy", WHAT.privacy],
              ["error", WHAT.mse],
              ["ratio to bound", WHAT.bound],
              ["worst posterior", WHAT.worst],
              ["largest gain", WHAT.gain],
              ["ε", WHAT.epsilon],
              ["loss", "The share of the information in the reports that is lost"],
            ].map(([text, title]) => h("th", {}, title ? defined(text, title) : text)),
          ),
        ),
        h(
          "tbody",
          {},
          points.map((point) =>
            h(
              "tr",
              {
                class: "pick",
                tabindex: "0",
                "data-channel": point.id,
                "aria-selected": point.id === state.point ? "true" : null,
                onclick: () => choose(point.id),
                onkeydown: (event) => {
                  if (event.key === "Enter") choose(point.id);
                },
              },
              [
                point.id,
                point.privacy.toFixed(4),
                point.mse.toExponential(3),
                point.ratio === null ? "–" : point.ratio.toFixed(4),
                point.worst_posterior.toFixed(4),
                `${number(Number(point.gain.toPrecision(3)))} ×`,
                point.epsilon === null ? "∞" : number(point.epsilon),
                percent(point.loss),
              ].map((cell, column) =>
                h(
                  "td",
                  {},
                  cell,
                  column === 0 && point.id === front.knee && h("span", { class: "badge" }, "knee"),
                ),
              ),
            ),
          ),
        ),
      ),
    );

  async function choose(id) {
    note({ point: id });
    rows();
    picture.chart.redraw();
    const found = await attempt(() => get(`${here()}/jobs/${state.job}/channel/${id}`), panel);
    if (!found) return;
    fill(
      panel,
      h("h2", {}, `Channel ${id} for ${front.columns.join(", ")}`),
      h(
        "div",
        { class: "tiles" },
        figure(found.privacy.toFixed(3), "privacy", WHAT.privacy),
        figure(found.mse.toExponential(2), "error of shares", WHAT.mse),
        figure(
          found.ratio === null ? "–" : found.ratio.toFixed(3),
          "times the proven minimum",
          WHAT.bound,
        ),
        figure(percent(found.worst_posterior), "worst posterior", WHAT.worst),
      ),
      h(
        "figure",
        {},
        heat(found.matrix, {
          rows: found.outputs_shown,
          columns: found.categories,
          label: "probability of each report given the truth",
          text: (row, column, value) =>
            `a true “${found.categories[column]}” is reported as ` +
            `“${found.outputs_shown[row]}” with probability ${value.toFixed(4)}`,
        }),
        h(
          "figcaption",
          {},
          "Reports down, truths across; the stronger the colour, the more " +
            `probable${found.left_out ? `; ${plural(found.left_out, "rare report")} not shown` : ""}`,
        ),
      ),
      h(
        "div",
        { class: "row", style: "margin-top:.6rem" },
        button(`Publish with channel ${id} …`, () => go({ step: "publish", point: id }), {
          class: "main",
          id: "to-publish",
        }),
      ),
    );
  }
  rows();
  fill(
    place,
    h("h1", {}, "Privacy against error"),
    outdated(front.changes),
    h(
      "p",
      { class: "quiet" },
      `${plural(points.length, "channel")} for ${front.columns.join(", ")}: ` +
        `${front.categories} categories of ${number(front.records)} records, δ = ` +
        `${front.delta}, designed for ${front.designed_for}; ` +
        `${front.how}.${keptToo(front)}`,
    ),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        {},
        h(
          "div",
          { class: "card" },
          h(
            "figure",
            {},
            picture,
            h(
              "figcaption",
              {},
              h("span", { class: "swatch", style: "background:var(--accent)" }),
              "found ",
              h("span", { class: "swatch", style: "background:var(--second)" }),
              "proven lower bound (dashed)",
            ),
          ),
        ),
        h("div", { class: "card" }, h("h2", {}, "Channels"), list),
      ),
      panel,
    ),
  );
  if (state.point !== null && points[state.point]) await choose(state.point);
}
