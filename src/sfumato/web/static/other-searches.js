// What to ask for in randomized response and in the protection of a group.
import { button, field, fill, h, select } from "./dom.js";
import { declareGroups } from "./groups-form.js";
import { state } from "./state.js";

export function channelForm(start) {
  const sensitive = Object.entries(state.declared.study.columns)
    .filter(([, column]) => column.role === "sensitive")
    .map(([name]) => name);
  if (!sensitive.length)
    return h("div", { class: "empty" }, "No column is sensitive: declare one first.");
  const column = select(sensitive, sensitive[0], () => {}, { id: "channel-column" });
  const gain = h("input", {
    type: "number",
    min: 1.5,
    max: 1000,
    step: 0.5,
    placeholder: "no cap",
    id: "gain",
  });
  const delta = h("input", {
    type: "number",
    min: 0.05,
    max: 1,
    step: 0.05,
    value: 0.75,
    id: "delta",
  });
  const others = Object.entries(state.declared.study.columns)
    .filter(([, other]) => ["quasi_identifier", "label", "other"].includes(other.role))
    .map(([name]) => name);
  const keep = new Set();
  const points = h("input", { type: "number", min: 1, max: 200, value: 8, id: "channel-points" });
  const engine = select(
    [
      ["exact", "exact: proven optimal, reports sets of values"],
      ["square", "square: reports stay in the column’s domain"],
      ["optrr", "OptRR, as published"],
    ],
    "exact",
    () => {},
    { id: "engine" },
  );
  return h(
    "div",
    {},
    h(
      "p",
      {},
      "Each value of the column is replaced by a report drawn at random. The " +
        "distribution can be estimated from many reports; a single report reveals " +
        "little about one person.",
    ),
    h(
      "div",
      { class: "row top" },
      field("Sensitive column", column),
      field(
        "δ: posterior at most",
        delta,
        "Upper bound on the posterior probability of any category given a report",
      ),
      field(
        "Gain: at most",
        gain,
        "Upper bound on posterior divided by share, for every category; protects rare categories (exact engine)",
      ),
      field("Engine", engine),
      field("Points", points, "Number of privacy levels to search"),
    ),
    others.length > 0 &&
      h(
        "details",
        { id: "channel-keep" },
        h("summary", {}, "Columns to release beside the reports"),
        h(
          "p",
          { class: "quiet" },
          h(
            "small",
            {},
            "Someone who has a whole row knows more than the report. With other columns, ε " +
              "is bounded, so that a report raises no share above the limit of the policy, " +
              "and the error is larger.",
          ),
        ),
        h(
          "div",
          { class: "pills" },
          others.map((name) =>
            h(
              "label",
              {},
              h("input", {
                type: "checkbox",
                onchange: (event) => (event.target.checked ? keep.add(name) : keep.delete(name)),
              }),
              name,
            ),
          ),
        ),
      ),
    h("div", { style: "height:.8rem" }),
    button(
      "Find channels",
      () =>
        start({
          column: column.value,
          keep: [...keep],
          delta: Number(delta.value),
          gain: gain.value === "" ? null : Number(gain.value),
          engine: engine.value,
          points: Number(points.value),
        }),
      { class: "main", id: "start-channel" },
    ),
  );
}

export function groupsForm(start, again) {
  if (!state.declared.study.groups) {
    const place = h("div", {}, h("p", { class: "quiet" }, "Reading the columns …"));
    declareGroups(again).then((form) => fill(place, form));
    return place;
  }
  const protect = h("input", { type: "checkbox", checked: true, id: "protect" });
  const told = state.declared.study.groups;
  return h(
    "div",
    {},
    h(
      "p",
      {},
      "An attacker learns from another file which characteristics members of the " +
        "group have, counts such people per area, and sees where they are concentrated. " +
        "The protection swaps as few records as possible until no attack identifies the " +
        "areas.",
    ),
    h(
      "ul",
      { class: "words" },
      (told.auxiliary ?? []).map((file) => h("li", {}, `learns from ${file.name ?? file.path}`)),
    ),
    h("p", {}, h("label", {}, protect, " also protect, and repeat the attack")),
    h(
      "div",
      { class: "row" },
      button("Attack", () => start({ protect: protect.checked }), {
        class: "main",
        id: "start-groups",
      }),
      button(
        "Change the group or what is withheld …",
        () =>
          declareGroups(again).then((form) => fill(document.getElementById("group-place"), form)),
        { class: "plain" },
      ),
    ),
    h("div", { id: "group-place" }),
  );
}
