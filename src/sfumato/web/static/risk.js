// The risk of the raw table: figures, class sizes, what each column adds, and the records that are at risk.
import { attempt, get } from "./api.js";
import { bars } from "./charts/bars.js";
import { button, defined, figure, fill, h, number, percent, plural, table } from "./dom.js";
import { valueText } from "./settings.js";
import { headlines, here, state } from "./state.js";

const GROUPS = [
  [1, 1],
  [2, 2],
  [3, 4],
  [5, 9],
  [10, 19],
  [20, 49],
  [50, 99],
  [100, 499],
  [500, Infinity],
];
const NAMES = GROUPS.map(([low, high]) =>
  low === high ? String(low) : high === Infinity ? `${low}+` : `${low}–${high}`,
);
// A share that should be small is bad where there is any; a number that should be large where it says that one is
// alone.
const isBad = (measure, value) =>
  measure.direction === "max" ? value < 2 : measure.headline.warns && value > 0;

export function riskCard() {
  const figures = h("div", { class: "card", id: "risk" });
  const rows = h(
    "details",
    {
      class: "card",
      id: "at-risk",
      ontoggle: () => {
        if (rows.open) drawRows();
      },
    },
    h("summary", {}, "Records and columns at risk"),
    h("div", {}, h("p", { class: "quiet" }, "Looking …")),
  );
  let asking = null;
  let fresh = false;
  let drawing = 0; // which request for records is the last one; answers to others are of former roles

  async function measure() {
    asking?.abort();
    const mine = (asking = new AbortController());
    fresh = false;
    if (
      !state.declared.undecided?.length &&
      !Object.values(state.declared.study.columns).some(
        (column) => column.role === "quasi_identifier",
      )
    ) {
      fill(
        figures,
        h("h2", {}, "Risk of the raw table"),
        h(
          "p",
          {},
          "No column is a quasi-identifier, so nothing can be measured: say which columns outsiders may know.",
        ),
      );
      return;
    }
    const waits = h("span", {}, "Measuring the raw table …");
    const timer = setTimeout(
      () =>
        fill(
          figures,
          h(
            "div",
            { class: "empty" },
            h(
              "div",
              {},
              h("p", {}, waits),
              button(
                "Cancel",
                () => {
                  mine.abort();
                  stopped();
                },
                { class: "small", id: "cancel-audit" },
              ),
            ),
          ),
        ),
      figures.childElementCount ? 900 : 0,
    );
    const began = Date.now();
    const clock = setInterval(
      () => fill(waits, `Measuring the raw table … ${Math.round((Date.now() - began) / 1000)} s`),
      1000,
    );
    const problem = h("div", {});
    const audit = await attempt(
      () => get(`${here()}/audit`, "measuring the raw table …", mine.signal),
      problem,
    );
    clearTimeout(timer);
    clearInterval(clock);
    if (mine !== asking) return;
    if (audit) {
      draw(figures, audit);
      fresh = true;
      if (rows.open) drawRows();
    } else if (!mine.signal.aborted) fill(figures, [...problem.childNodes]);
  }
  const stopped = () =>
    fill(
      figures,
      h(
        "div",
        { class: "empty" },
        h("div", {}, h("p", {}, "Not measured."), button("Measure", measure, { class: "small" })),
      ),
    );

  async function drawRows() {
    if (!fresh) return;
    fresh = false;
    const mine = ++drawing;
    const place = rows.lastElementChild;
    const problem = h("div", {});
    const found = await attempt(
      () => get(`${here()}/grid`, "looking for records at risk …"),
      problem,
    );
    if (mine !== drawing) return;
    if (!found) {
      fill(place, [...problem.childNodes]);
      return;
    }
    const rest = h("div", {});
    fill(
      place,
      h(
        "p",
        { class: "quiet" },
        "Records in classes of fewer than ",
        Object.entries(found.below)
          .map(([limit, count]) => `${limit}: ${number(count)}`)
          .join("; "),
        ".",
      ),
      found.combinations.length > 0 && [
        h("h3", {}, "Columns that single people out"),
        h(
          "ul",
          { class: "words" },
          found.combinations
            .toSorted((a, b) => b.unique - a.unique)
            .slice(0, 6)
            .map((each) =>
              h(
                "li",
                {},
                h("b", {}, each.columns.join(" × ")),
                ` makes ${percent(each.unique)} unique`,
              ),
            ),
        ),
      ],
      rest,
      h("h3", {}, "Records, smallest classes first"),
      table(
        "Records at risk",
        [
          { text: "class", title: "Number of records with the same quasi-identifiers" },
          ...found.columns,
          ...found.masked,
        ],
        found.rows.map((row) => [
          h(
            "td",
            { class: `number risk-${row.class === 1 ? "one" : row.class < 5 ? "few" : "many"}` },
            number(row.class),
          ),
          ...row.cells.map((cell) => cell ?? "–"),
          ...found.masked.map(() => h("span", { class: "quiet" }, "•••")),
        ]),
        { id: "grid" },
      ),
    );
    const more = await attempt(() => get(`${here()}/uncounted`), rest);
    if (more && mine === drawing)
      fill(
        rest,
        more.columns.length > 0 && [
          h(
            "h3",
            {},
            defined(
              "Columns in no figure",
              "Released and not counted; somebody who knows one of them as well can single out more records",
            ),
          ),
          contribution(
            more.columns.map((each) => [each.column, each.unique_share - more.without]),
            " more unique if known too",
          ),
          more.left_out > 0 &&
            h("p", { class: "quiet" }, `${plural(more.left_out, "more column")} not counted.`),
        ],
      );
  }
  // The roles have changed: what was measured, or is being measured, is of others. Records at risk wait for the new
  // figures.
  const stale = () => {
    fresh = false;
    drawing += 1;
    asking?.abort();
    asking = null;
  };
  return { element: h("div", {}, figures, rows), measure, stale, cancel: () => asking?.abort() };
}

const contribution = (pairs, says = "") => {
  const most = Math.max(...pairs.map(([, value]) => value), 1e-9);
  return h(
    "div",
    { class: "parts" },
    pairs.map(([name, value]) =>
      h(
        "div",
        { class: "part" },
        h("span", {}, name),
        h("i", { style: `width:${Math.max((Math.max(value, 0) / most) * 70, 1)}px` }),
        h("span", {}, percent(Math.max(value, 0)), says),
      ),
    ),
  );
};

function draw(card, audit) {
  const of = (name) => audit.measures[name] ?? {};
  const tile = (measure) =>
    figure(
      valueText(measure.name)(of(measure.name).value),
      measure.headline.says,
      `${measure.title}: ${measure.sentence}`,
      { class: isBad(measure, of(measure.name).value) ? "tile bad" : "tile" },
    );
  const { size, classes } = audit.class_sizes;
  const noun = audit.units ? "persons" : "records";
  const records = GROUPS.map(([low, high]) =>
    size.reduce(
      (sum, value, place) => sum + (value >= low && value <= high ? value * classes[place] : 0),
      0,
    ),
  );
  const parts = Object.entries(audit.columns)
    .filter(([, column]) => column.risk_contribution)
    .sort((a, b) => b[1].risk_contribution.uniques - a[1].risk_contribution.uniques);
  fill(
    card,
    h("h2", {}, "Risk of the raw table"),
    h(
      "p",
      { class: "quiet", id: "counted" },
      `${number(audit.rows)} ` +
        `records${audit.units ? ` of ${plural(audit.units, "person")}` : ""} in ` +
        `${plural(audit.classes, "class", "classes")}: groups of records with the same ` +
        `quasi-identifiers.${audit.units ? " Classes count persons." : ""}`,
    ),
    audit.left_out > 0 &&
      h(
        "div",
        { class: "warning", id: "left-out" },
        h(
          "span",
          {},
          h(
            "b",
            {},
            `${number(audit.left_out)} of ${number(audit.left_out + audit.rows)} records ` +
              `(${percent(audit.left_out / (audit.left_out + audit.rows))}) are left out`,
          ),
          " because a value is missing. They are in no release and in no figure here, and " +
            "they count as lost in every loss. The rule “a separate category” leaves out " +
            "none.",
        ),
      ),
    audit.undecided.length > 0 &&
      h(
        "p",
        { class: "quiet", id: "counted-too" },
        `${plural(audit.undecided.length, "column")} without a role ` +
          `${audit.undecided.length === 1 ? "is" : "are"} counted as known to outsiders.`,
      ),
    h(
      "div",
      { class: "tiles" },
      headlines()
        .filter(({ name }) => of(name).value !== null && of(name).value !== undefined)
        .map(tile),
    ),
    h(
      "p",
      { id: "whole", class: audit.whole.columns_in_no_figure.length ? "warning" : "quiet" },
      audit.notes[0],
    ),
    h(
      "figure",
      {},
      bars(records, {
        labels: NAMES,
        height: 160,
        label:
          `${noun} by the size of their class: ` +
          `${records.map((count, place) => `${NAMES[place]}: ${count}`).join(", ")}`,
        marked: (place) => GROUPS[place][1] < 5,
      }),
      h(
        "figcaption",
        {},
        `Number of ${noun} by class size; red: classes of fewer than 5 ` +
          `${noun}${audit.units ? ". A person with records in two classes counts in both" : ""}`,
      ),
    ),
    h(
      "h3",
      {},
      defined(
        "Contribution of each column",
        "How much lower the share of unique records would be without the column",
      ),
    ),
    contribution(
      parts.slice(0, 30).map(([name, column]) => [name, column.risk_contribution.uniques]),
    ),
    parts.length > 30 &&
      h("p", { class: "quiet" }, `${parts.length - 30} more columns contribute less.`),
    audit.notes.slice(1).map((note) => h("p", { class: "quiet" }, h("small", {}, note))),
  );
  card.dataset.measured = state.declared.version;
}
