// The form of a search that recodes: how records may be grouped, objectives, limits, weights.
import { button, error, field, fill, h, number, select } from "./dom.js";
import { headlines, measure, state, usualObjectives } from "./state.js";

// The systems that recode, in words; one that is registered and stands not here is called by its own name.
const SYSTEMS = {
  lattice: [
    "Same grouping for everyone, provably complete",
    "Each column is generalized to one level of its hierarchy. Every best release is found, with a proof.",
  ],
  cuts: [
    "Finer groups, the best found",
    "Each column is cut where that costs least: less is lost, but nothing proves that no release is better.",
  ],
  local: [
    "Different groups for different records",
    "Records are grouped where they stand: the least detail is lost, and the same " +
      "value may be released in several ways.",
  ],
  cells: [
    "Single cells suppressed",
    "Only the cells that make a record stand out are left out; all other values stay as they are.",
  ],
};
// The same with an algorithm that proves nothing.
const UNPROVEN = {
  lattice: [
    "Same grouping for everyone, the best found",
    "Each column is generalized to one level of its hierarchy. With the algorithm " +
      "chosen under Advanced nothing proves that no release is better.",
  ],
};
const ALGORITHMS = {
  exact: "exact: the complete front, proven",
  exhaustive: "exhaustive: every node",
  pbg_ea: "evolutionary: the best found",
  best_first: "best first: for very large lattices",
  memetic: "memetic: the best found",
  nsga2: "NSGA-II, as published",
};
export const DEFAULT = "lattice"; // the method of a run file that names none
export const PROVING = ["exact", "exhaustive"];
const OTHERS = ["channel", "groups"]; // they have forms of their own
export const system = (name) =>
  state.about.systems.find((each) => each.name === name) ?? {
    reads: [],
    algorithms: [],
    problems: [],
  };
/**
 * The settings of a search that recodes; every change is sent at once.
 *
 * @param {any} now the settings as they are
 * @param {{change: (changes: any) => void, says: HTMLElement, seconds: HTMLElement, folds: {advanced: boolean}}} by
 */
export function settingsForm(now, { change, says, seconds, folds }) {
  const objectives = (now.objectives ?? usualObjectives()).map(
    (each) => measure(each.name ?? each).name,
  );
  const sensitive = Object.values(state.declared.study.columns).some(
    (column) => column.role === "sensitive",
  );
  const pills = (usual) =>
    h(
      "div",
      { class: "pills" },
      state.about.measures
        .filter(
          (each) =>
            (each.usual || objectives.includes(each.name)) === usual &&
            (each.reads !== "sensitive" || sensitive) &&
            !["population", "weights", "label"].includes(each.reads),
        )
        .map((each) =>
          h(
            "label",
            { title: `${each.title}: ${each.sentence}` },
            h("input", {
              type: "checkbox",
              checked: objectives.includes(each.name),
              disabled: Boolean(now.problem),
              onchange: (event) => {
                if (objectives.length === 1 && !event.target.checked) {
                  event.target.checked = true;
                  fill(
                    says,
                    error({
                      what: "a search needs an objective",
                      expected: "at least one objective",
                      try: "choose another one before removing this one",
                    }),
                  );
                  return;
                }
                const next = event.target.checked
                  ? [...objectives, each.name]
                  : objectives.filter((name) => name !== each.name);
                change({
                  objectives: next.sort(
                    (a, b) =>
                      (measure(a).kind === "privacy" ? 0 : 1) -
                      (measure(b).kind === "privacy" ? 0 : 1),
                  ),
                });
              },
            }),
            each.title,
          ),
        ),
    );
  const amount = (name, value, properties, definition, apply) =>
    field(
      name,
      h("input", {
        type: "number",
        value,
        ...properties,
        onchange: (event) =>
          apply(event.target.value === "" ? undefined : Number(event.target.value)),
      }),
      definition,
    );
  const limits = Object.entries(now.constraints ?? {});
  const current = now.system ?? DEFAULT;
  const { reads, algorithms, problems } = system(current);
  const choices = state.about.systems.filter((each) => !OTHERS.includes(each.name));
  return [
    h(
      "fieldset",
      { class: "choices" },
      h("legend", {}, "How records may be grouped"),
      choices.map((each) => {
        const unproven = now.algorithm && !PROVING.includes(now.algorithm);
        const [title, text] = (unproven && UNPROVEN[each.name]) ||
          SYSTEMS[each.name] || [each.name, each.plans];
        return h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "system",
            id: `system-${each.name}`,
            value: each.name,
            checked: each.name === current,
            onchange: () =>
              change({
                system: each.name,
                ...(each.problems.length
                  ? { problem: 2, objectives: undefined, constraints: undefined }
                  : {}),
              }),
          }),
          h("span", {}, h("b", {}, title), h("small", {}, text)),
        );
      }),
    ),
    h(
      "div",
      { class: "row top" },
      reads.includes("max_suppression") &&
        amount(
          "Suppress at most, %",
          Math.round((now.max_suppression ?? 0) * 1e4) / 100,
          { min: 0, max: 99, step: 0.5, id: "suppression" },
          "The share of the records that may be left out. A few outliers cost all others " +
            "much detail: 1 or 2 % is usual",
          (value) => change({ max_suppression: (value ?? 0) / 100 }),
        ),
    ),
    !now.problem &&
      reads.includes("objectives") &&
      h("div", {}, h("h3", { style: "margin-top:.8rem" }, "Objectives"), pills(true)),
    h(
      "details",
      {
        style: "margin:.8rem 0",
        id: "advanced",
        open: folds.advanced || limits.length > 0,
        ontoggle: (event) => {
          folds.advanced = event.target.open;
        },
      },
      h("summary", {}, "Advanced"),
      !now.problem &&
        reads.includes("objectives") &&
        h("div", {}, h("h3", {}, "More objectives"), pills(false)),
      h(
        "div",
        { class: "row top", style: "margin:.6rem 0" },
        algorithms.length > 1 &&
          field(
            "Algorithm",
            select(
              algorithms.map((name) => [name, ALGORITHMS[name] ?? name]),
              now.algorithm ?? algorithms[0],
              (algorithm) => change({ algorithm }),
              { id: "algorithm" },
            ),
          ),
        problems.length > 0 &&
          field(
            "Problem",
            select(
              [
                ["", "own objectives"],
                [1, "1: no suppression"],
                [2, "2: k, within a limit"],
                [3, "3: mean k, two losses"],
                [4, "4: k and ℓ"],
              ],
              now.problem ?? "",
              (problem) =>
                change(
                  problem
                    ? {
                        problem: Number(problem),
                        suppression: undefined,
                        objectives: undefined,
                        ...(problem === "1" ? { max_suppression: 0 } : {}),
                      }
                    : { problem: undefined, suppression: "within" },
                ),
            ),
            "The four problems of the cuts paper",
          ),
        problems.length > 0 &&
          amount(
            "Generations",
            now.generations ?? 250,
            { min: 1, max: 100000, id: "generations" },
            "When the search ends",
            (value) => change({ generations: value ?? 250 }),
          ),
        reads.includes("seed") &&
          amount("Seed", now.seed ?? 1, { min: 0 }, "The same seed gives the same front", (value) =>
            change({ seed: value ?? 1 }),
          ),
        field("Stop after, seconds", seconds, "The best so far is kept"),
      ),
      reads.includes("constraints") &&
        h(
          "div",
          {},
          h("h3", {}, "Limits that every point must meet"),
          limits.map(([name, value]) =>
            h(
              "div",
              { class: "row" },
              h(
                "span",
                { title: measure(name).sentence },
                `${measure(name).title} ` +
                  `${measure(name).direction === "max" ? "at least" : "at most"} ${number(value)}`,
              ),
              button(
                "✕",
                () => {
                  const rest = { ...now.constraints };
                  delete rest[name];
                  change({ constraints: rest });
                },
                { class: "plain small", "aria-label": `Remove the limit on ${name}` },
              ),
            ),
          ),
          addLimit(now, sensitive, change),
        ),
      reads.includes("weights") && weights(now, change),
    ),
  ];
}

function addLimit(now, sensitive, change) {
  const name = select(
    state.about.measures
      .filter((each) => each.reads !== "sensitive" || sensitive)
      .map((each) => [each.name, `${each.title} ${each.direction === "max" ? "≥" : "≤"}`]),
    headlines()[0].name,
    () => {},
    { "aria-label": "Measure" },
  );
  const value = h("input", {
    type: "number",
    step: "any",
    "aria-label": "Limit",
    style: "width:6rem",
  });
  return h(
    "div",
    { class: "row" },
    name,
    value,
    button(
      "Add",
      () => {
        if (value.value !== "")
          change({
            constraints: { ...(now.constraints ?? {}), [name.value]: Number(value.value) },
          });
      },
      { class: "small" },
    ),
  );
}

// How much a column counts in the loss; 1 unless said.
function weights(now, change) {
  const columns = Object.entries(state.declared.study.columns)
    .filter(([, column]) => column.role === "quasi_identifier")
    .map(([name]) => name);
  const given = Object.fromEntries(
    Object.entries(now.weights ?? {}).filter(([name]) => columns.includes(name)),
  );
  return h(
    "details",
    { style: "margin:.8rem 0", open: Object.keys(given).length > 0, id: "weights" },
    h("summary", {}, `Weights of columns (${Object.keys(given).length})`),
    h(
      "p",
      { class: "quiet" },
      h("small", {}, "A column of weight 2 counts twice in the loss, one of weight 0 not at all."),
    ),
    h(
      "div",
      { class: "row top" },
      columns.map((name) =>
        field(
          name,
          h("input", {
            type: "number",
            min: 0,
            step: "any",
            value: given[name] ?? "",
            placeholder: "1",
            "data-weight": name,
            onchange: (event) => {
              const next = { ...given };
              if (event.target.value === "") delete next[name];
              else next[name] = Number(event.target.value);
              change({ weights: next });
            },
          }),
        ),
      ),
    ),
  );
}
