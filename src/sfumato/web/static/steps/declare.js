// Declare: a role for every column, the missing rule, hierarchies; the risk of the raw table beside it, live.
import { attempt, changeStudy, get } from "../api.js";
import { button, byId, field, fill, h, later, plural, select, toast } from "../dom.js";
import { declareGroups } from "../groups-form.js";
import { columnList } from "../roles.js";
import { riskCard } from "../risk.js";
import { go, here, state, tell } from "../state.js";

/** @type {[string, string, string][]} */
const MISSING = [
  [
    "drop",
    "exclude the record",
    "Rows with a missing value in a measured column are excluded. They are in no release and count as lost",
  ],
  ["category", "a separate category", "“Missing” is treated as a category"],
  [
    "wildcard",
    "matches anything",
    "A record matches all records that agree where both values are known",
  ],
];
const CODED = [MISSING[1], MISSING[0], MISSING[2]]; // the rule that leaves out nothing comes first
/** @type {{past: any[], ahead: any[], study: string | null}} */
const known = { past: [], ahead: [], study: null }; // what was declared before each change of this visit

export async function declareStep(place) {
  if (state.declared.study.groups && !Object.keys(state.declared.study.columns).length) {
    fill(place, h("h1", {}, "Declare the group"), await declareGroups());
    return undefined;
  }
  if (known.study !== state.study)
    Object.assign(known, { past: [], ahead: [], study: state.study });
  const profile = await attempt(() => get(`${here()}/profile`, "profiling the columns …"));
  if (!profile) return undefined;
  const tables = ((await attempt(() => get("/files")))?.files ?? []).filter(
    (file) => file.kind === "table",
  );
  const says = h("div", {});
  const review = h("div", {});
  const bar = h("div", { class: "bottom", role: "region", "aria-label": "What is missing" });
  const settings = h("div", { class: "row top", style: "margin-bottom:.6rem" });
  const candidates = h("div", {});
  let costs = null; // what each value that may mean missing would cost, with the roles and codes as they are
  const risk = riskCard();
  const due = later(() => risk.measure(), 350);
  const refresh = () => {
    risk.stale();
    due();
  };
  const shown = () => ({
    columns: structuredClone(state.declared.study.columns),
    data: without(state.declared.study.data),
  });
  const without = ({ path, ...rest }) => rest;

  // What a column holds depends on the codes for missing values, so it is looked at again when these change.
  async function profiled() {
    const next = await attempt(() => get(`${here()}/profile`, "profiling the columns …"), says);
    if (next) {
      Object.assign(profile, next);
      list.renew();
    }
  }
  const count = later(async () => {
    if (!unknownCodes().size) return;
    const asked = state.declared.version;
    const found = await attempt(() =>
      get(`${here()}/missing`, "counting what a code would cost …"),
    );
    if (found && asked === state.declared.version) {
      costs = found.codes;
      drawCandidates();
    }
  }, 350);

  async function change(changes, remember = true) {
    const before = shown();
    const found = await attempt(() => changeStudy(changes), says);
    if (!found) {
      list.draw(true);
      return false;
    }
    if (remember && (changes.columns || changes.data)) {
      known.past.push(before);
      known.ahead.length = 0;
    }
    fill(says);
    tell("frame");
    if (changes.data) await profiled();
    drawAll();
    if (changes.columns || changes.data) {
      costs = null;
      count();
    }
    if (changes.columns || changes.data || changes.population) refresh();
    return true;
  }
  async function step(from, to) {
    const next = from.pop();
    if (!next) return;
    const before = shown();
    if (await change({ columns: next.columns, data: next.data }, false)) {
      to.push(before);
      drawBar();
    } else from.push(next);
  }
  const undo = () => step(known.past, known.ahead);
  const redo = () => step(known.ahead, known.past);
  const list = columnList(profile, change, refresh);
  const undecided = () => state.declared.undecided ?? [];

  // Codes that may mean missing, to be taken up with one click: for the whole table, because that is what the words
  // are.
  function unknownCodes() {
    const { data } = state.declared.study;
    const found = new Map();
    for (const column of profile.columns)
      for (const word of column.missing_candidates)
        found.set(word, [...(found.get(word) ?? []), column.name]);
    return new Map([...found].filter(([word]) => !(data.na ?? []).includes(word)));
  }
  function drawCandidates() {
    const { data } = state.declared.study;
    const open = [...unknownCodes()];
    // The rule is that of the whole table: a button says what it does to the records before it does it.
    const choice = (/** @type {string} */ word, /** @type {string[]} */ [rule, name]) =>
      button(
        [
          h("b", {}, `${name[0].toUpperCase()}${name.slice(1)}: `),
          costs?.[word]?.rules[rule] ?? "counting …",
        ],
        () => change({ data: { ...without(data), na: [...(data.na ?? []), word], missing: rule } }),
        {
          class: `small${rule === "drop" && costs?.[word]?.left_out > 0 ? " danger" : ""}`,
          disabled: !costs,
          "data-missing": word,
          "data-rule": rule,
        },
      );
    fill(
      candidates,
      open.length > 0 &&
        h(
          "div",
          { id: "candidates" },
          h(
            "p",
            { class: "quiet" },
            "Perhaps missing. If a value means “missing”, choose what a missing value " +
              "becomes. The code and the rule hold for every column of the table.",
          ),
          open.map(([word, names]) =>
            h(
              "div",
              {
                class: "row tight",
                style: "margin:.3rem 0",
                role: "group",
                "aria-label": `If ${word} means missing`,
              },
              h(
                "span",
                { title: names.join(", ") },
                h("b", {}, word),
                ` in ${plural(names.length, "column")}`,
                costs?.[word] && `, ${plural(costs[word].records, "record")}`,
              ),
              CODED.map((rule) => choice(word, rule)),
            ),
          ),
        ),
    );
  }
  function drawReview() {
    const open = undecided();
    const names =
      open.length > 8
        ? `${open.slice(0, 8).join(", ")} and ${open.length - 8} more`
        : open.join(", ");
    fill(
      review,
      !(state.declared.reviewed && !open.length) &&
        h(
          "div",
          { class: "warning", id: "review" },
          open.length > 0
            ? h(
                "span",
                {},
                h(
                  "b",
                  {},
                  `${plural(open.length, "column")} ${open.length === 1 ? "has" : "have"} no role yet: `,
                ),
                names,
                ". Nothing is searched or published until each has one.",
              )
            : h(
                "span",
                {},
                "The roles are suggestions from names and values. Check every line, correct it " +
                  "where needed, then confirm at the foot of the page.",
              ),
        ),
    );
  }
  function drawBar() {
    const open = undecided().length;
    fill(
      bar,
      h(
        "span",
        { id: "blocked" },
        h("b", {}, plural(profile.columns.length, "column")),
        open
          ? `, ${plural(open, "column")} still without a role`
          : state.declared.reviewed
            ? ", roles confirmed"
            : ", roles not confirmed yet",
      ),
      open > 0 &&
        button("Next undecided", () => list.next(), { class: "small", id: "next-undecided" }),
      h(
        "span",
        { class: "row tight push" },
        button("Undo", undo, {
          class: "small",
          id: "undo-role",
          disabled: !known.past.length,
          title: "Ctrl+Z",
        }),
        button("Redo", redo, {
          class: "small",
          id: "redo-role",
          disabled: !known.ahead.length,
          title: "Ctrl+Y",
        }),
      ),
      (open > 0 || !state.declared.reviewed) &&
        button("Confirm these roles", () => change({ reviewed: true }), {
          class: open ? "" : "main",
          id: "reviewed",
          disabled: open > 0,
        }),
      button(
        "Search →",
        () => {
          if (undecided().length) list.next();
          else if (!state.declared.reviewed) {
            toast("Confirm the roles first: they are suggestions until you have looked at each.");
            byId("reviewed").focus();
          } else go({ step: "search" });
        },
        { class: state.declared.reviewed && !open ? "main" : "", id: "to-search" },
      ),
    );
  }
  function drawSettings() {
    const declared = state.declared.study;
    fill(
      settings,
      field(
        "A missing value means",
        select(MISSING, declared.data.missing ?? "category", (missing) =>
          change({ data: { ...without(declared.data), missing } }),
        ),
        "What happens to missing values in measured columns",
      ),
      field(
        "Codes for missing values",
        h("input", {
          value: (declared.data.na ?? []).join(", "),
          size: 12,
          onchange: (event) =>
            change({
              data: {
                ...without(declared.data),
                na: event.target.value
                  .split(",")
                  .map((word) => word.trim())
                  .filter(Boolean),
              },
            }),
        }),
        "Values that mean “missing”, separated by commas; an empty cell is always missing",
      ),
      field(
        "Every row is a person, because",
        h("input", {
          value: declared.data.unit === "row" ? (declared.data.unit_reason ?? "") : "",
          size: 16,
          placeholder: "only if numbers repeat",
          id: "unit-reason",
          onchange: (event) => {
            const reason = event.target.value.trim();
            const { unit, unit_reason: before, ...rest } = without(declared.data);
            change({ data: reason ? { ...rest, unit: "row", unit_reason: reason } : rest });
          },
        }),
        "The reason goes into the internal report. Leave it empty where a column has the role unit or household",
      ),
      field(
        "Population table",
        h("input", {
          value: declared.population?.path ?? "",
          size: 12,
          list: "tables",
          placeholder: "none",
          id: "population",
          onchange: (event) =>
            change({
              population: event.target.value.trim() ? { path: event.target.value.trim() } : {},
            }),
        }),
        "A file of the folder with the same quasi-identifiers for everybody: the " +
          "journalist’s risk is measured against it",
      ),
      field(
        "Codebook",
        h("input", {
          value: declared.data.codebook ?? "",
          size: 10,
          placeholder: "none",
          id: "codebook",
          onchange: (event) =>
            change({
              data: { ...without(declared.data), codebook: event.target.value.trim() || undefined },
            }),
        }),
        "A file of the folder with labels of values and codes for missing: CSV, JSON, or DDI Codebook (XML)",
      ),
      h(
        "datalist",
        { id: "tables" },
        tables.map((file) => h("option", { value: file.path })),
      ),
    );
  }
  function drawAll() {
    drawSettings();
    drawCandidates();
    drawReview();
    list.draw();
    drawBar();
  }
  drawAll();
  count();
  const keys = (event) => {
    if (
      !(event.ctrlKey || event.metaKey) ||
      document.querySelector("dialog") ||
      event.target.matches?.("input, textarea")
    )
      return;
    if (event.key === "z") {
      event.preventDefault();
      undo();
    }
    if (event.key === "y") {
      event.preventDefault();
      redo();
    }
  };
  addEventListener("keydown", keys);
  fill(
    place,
    h("h1", {}, "Declare the columns"),
    h(
      "div",
      { class: "columns" },
      h(
        "div",
        { class: "card" },
        h("h2", {}, "Role of each column"),
        settings,
        says,
        candidates,
        review,
        list.element,
      ),
      h("div", { class: "sticky" }, risk.element),
    ),
    bar,
  );
  risk.measure();
  return () => {
    removeEventListener("keydown", keys);
    risk.cancel();
  };
}
