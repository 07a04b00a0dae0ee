// One point in detail.
import { attempt, get, pointAddress } from "./api.js";
import { bars } from "./charts/bars.js";
import {
  button,
  defined,
  figure,
  fill,
  h,
  leftOut,
  number,
  percent,
  plural,
  table,
  times,
} from "./dom.js";
import { valueText } from "./settings.js";
import { go } from "./state.js";
import { drawWhole } from "./whole.js";

let asked = 0;

// What is warned of before anything is published: somebody stands alone, or a sensitive value follows from the class.
/**
 * @param {any} figures
 * @param {{ruled?: Record<string, string>, policy?: Record<string, any>}} rules
 */
function warnings(figures, { ruled = {}, policy = {} }) {
  const told = [];
  const [k, l, apart] = [ruled.k, ruled.l, ruled.t].map((name) => figures[name]?.after);
  if (k < 2) told.push("k is 1: some records share their quasi-identifiers with no other.");
  if (l < 2)
    told.push(
      "ℓ is 1: in some classes everybody has the same sensitive value, so whoever finds the class knows it.",
    );
  if (apart >= policy.t && policy.t < 1)
    told.push(
      `t is ${number(apart)}, not below the ${number(policy.t)} of your policy: in ` +
        "some classes the shares of sensitive values are far from those in the whole " +
        "table, which tells something about everybody in them.",
    );
  return (
    told.length > 0 &&
    h(
      "div",
      { class: "warning", id: "point-warnings" },
      told.map((each) => h("span", {}, each)),
    )
  );
}

// Where much is hidden whole, what would keep more: a publisher who sees one front only cannot know.
function hiddenWhole(columns) {
  const hidden = columns.filter((column) => column.labels[0] > 1 && column.labels[1] === 1);
  return (
    hidden.length >= 3 &&
    hidden.length * 3 >= columns.length &&
    h(
      "div",
      { class: "warning", id: "hidden-whole" },
      h(
        "span",
        {},
        `${number(hidden.length)} of ${plural(columns.length, "column")} are hidden ` +
          "whole. More is kept by finer groups or by different groups for different " +
          "records, by hierarchies with more levels, or with fewer quasi-identifiers.",
      ),
      h(
        "div",
        { class: "row" },
        button("Search in another way", () => go({ step: "search" }), { class: "small" }),
        button("Columns and hierarchies", () => go({ step: "declare" }), { class: "small" }),
      ),
    )
  );
}

export async function drawPoint(card, offer, id, publish, front) {
  const mine = ++asked;
  // An arrow key held down passes many points: only the last is measured.
  await new Promise((done) => setTimeout(done, 60));
  if (mine !== asked) return;
  const found = await attempt(() => get(pointAddress(id, offer), "measuring the point …"), card);
  if (!found || mine !== asked) return;
  const whole = h("div", {});
  const tile = ([name, each]) =>
    figure(
      valueText(name)(each.after),
      each.reason
        ? `${each.title}: ${each.reason}`
        : `${each.title}, before ${valueText(name)(each.before)}`,
      `${each.sentence} Before: ${valueText(name)(each.before)}. ${each.reason ?? ""}`,
    );
  fill(
    card,
    h(
      "div",
      { class: "row spread" },
      h("h2", { id: "point-title" }, `Point ${id}`),
      button("Publish this …", publish, { class: "main", id: "to-publish" }),
    ),
    h(
      "p",
      {},
      `Loss ${found.drawn ? "at most " : ""}${percent(found.loss)}, suppresses ` +
        `${plural(found.suppressed, "record")}${leftOut(front.left_out, front.rows)}.`,
      found.table_error.after !== null && [
        " ",
        defined("Error of two-way tables", found.table_error.sentence),
        ` ${percent(found.table_error.after)}.`,
      ],
      found.ratio && [
        " ",
        defined(
          "Floor",
          "What every recoding of this kind loses at least at this k, which is proven",
        ),
        `: it loses ${found.drawn ? "at most " : ""}${times(found.ratio)} the proven minimum.`,
      ],
      found.drawn &&
        " The file is drawn at random among recodings that lose little more than the one shown here.",
      offer &&
        " This is the answer to your question: the same recoding, with other classes suppressed than in the search.",
    ),
    warnings(found.figures, front),
    hiddenWhole(found.columns),
    h(
      "ul",
      { class: "words" },
      found.words.map((word) => h("li", {}, word)),
    ),
    found.own &&
      h(
        "details",
        {},
        h("summary", {}, h("small", {}, "What the search says of it")),
        h(
          "ul",
          { class: "words" },
          found.own.map((word) => h("li", {}, word)),
        ),
      ),
    whole,
    h("h3", { style: "margin-top:.8rem" }, "Disclosure risk"),
    h("div", { class: "tiles" }, Object.entries(found.attackers).map(tile)),
    h("h3", {}, "Privacy after"),
    found.divided > 0 &&
      found.sample.sensitive.length > 0 &&
      h(
        "p",
        { class: "quiet" },
        h(
          "small",
          {},
          `Records of ${plural(found.divided, "combination")} of values are in several ` +
            "classes. Which of them are where is drawn at publication, so ℓ and t may " +
            "differ a little in the file.",
        ),
      ),
    h(
      "div",
      { class: "tiles" },
      Object.entries(found.figures)
        .filter(([, each]) => !each.reason)
        .map(tile),
    ),
    h(
      "figure",
      {},
      bars(found.sizes.before, {
        labels: found.sizes.bins,
        second: found.sizes.after,
        height: 160,
        label: "records by class size before and after",
      }),
      h(
        "figcaption",
        {},
        h("span", { class: "swatch", style: "background:var(--faint)" }),
        "before ",
        h("span", { class: "swatch", style: "background:var(--accent)" }),
        `after: records by the size of their class${found.sizes.counted === "persons" ? " in persons" : ""}`,
      ),
    ),
    h(
      "details",
      {},
      h("summary", {}, "Every column before and after"),
      found.columns.map((column) =>
        h(
          "div",
          { style: "margin-bottom:.6rem" },
          h("b", {}, column.name),
          h(
            "small",
            {},
            ` ${plural(column.labels[0], "value")} → ${plural(column.labels[1], "label")}`,
          ),
          h(
            "div",
            { class: "halves" },
            ...["before", "after"].map((when) =>
              bars(
                column[when].map(([, count]) => count),
                {
                  labels: column[when].map(([label]) => label),
                  height: 46,
                  label: `${column.name} ${when}`,
                },
              ),
            ),
          ),
        ),
      ),
    ),
    h(
      "details",
      { id: "rows-after" },
      h("summary", {}, "Rows before → after"),
      h(
        "p",
        { class: "quiet" },
        h("small", {}, "Drawn at random; sensitive columns are masked here."),
      ),
      table(
        "Rows before and after",
        [
          ...found.sample.columns,
          ...found.sample.sensitive,
          {
            text: "class",
            title: `Number of ${found.sample.counted} with the same quasi-identifiers`,
          },
        ],
        found.sample.rows.map((row) => [
          ...row.cells.map((cell, at) =>
            cell === row.before[at]
              ? cell
              : h("td", {}, h("small", {}, row.before[at], " → "), cell),
          ),
          ...found.sample.sensitive.map(() => h("span", { class: "quiet" }, "•••")),
          row.suppressed ? h("span", { class: "badge bad" }, "suppressed") : number(row.class),
        ]),
      ),
    ),
  );
  setTimeout(() => {
    if (mine === asked) drawWhole(whole, offer, id, () => mine === asked);
  }, 400); // it reads the table: not for points that are passed by
}
