// What to ask for in randomized response and in the protection of a group.
import { button, field, h, select } from "./dom.js";
import { state } from "./state.js";

export function channelForm(start) {
  const sensitive = Object.entries(state.declared.study.columns).filter(([, column]) => column.role === "sensitive").map(([name]) => name);
  if (!sensitive.length) return h("div", { class: "empty" }, "No column is sensitive: declare one first.");
  const column = select(sensitive, sensitive[0], () => {}, { id: "channel-column" });
  const delta = h("input", { type: "number", min: 0.05, max: 1, step: 0.05, value: 0.75, id: "delta" });
  const points = h("input", { type: "number", min: 1, max: 200, value: 8, id: "channel-points" });
  const engine = select([["exact", "exact: certified, reports sets"], ["square", "square: reports stay in the column’s domain"], ["optrr", "OptRR, as published"]], "exact", () => {}, { id: "engine" });
  return h("div", {}, h("p", {}, "Each value of the column is replaced by a report drawn at random. From many reports the distribution can be estimated; from one, little can be believed of one person."),
    h("div", { class: "row top" }, field("Sensitive column", column), field("δ: believe at most", delta, "The most that a report may let anyone believe of a category"), field("Engine", engine), field("Points", points, "How many levels of privacy to look at")),
    h("div", { style: "height:.8rem" }), button("Find channels", () => start({ column: column.value, delta: Number(delta.value), engine: engine.value, points: Number(points.value) }), { class: "main", id: "start-channel" }));
}

export function groupsForm(start) {
  if (!state.declared.study.groups) return h("div", { class: "empty" }, h("div", {}, h("p", {}, "This study has no [groups] section."), h("p", { class: "quiet" }, "Open a run file that names the group, its areas and an auxiliary file to learn from.")));
  const protect = h("input", { type: "checkbox", checked: true, id: "protect" });
  const told = state.declared.study.groups;
  return h("div", {}, h("p", {}, "An attacker learns from another file what members of the group look like, counts such people per area, and sees where they gather. The protection swaps as few records as it can until no attack finds the areas."),
    h("ul", { class: "words" }, (told.auxiliary ?? []).map((file) => h("li", {}, `learns from ${file.name ?? file.path}`))),
    h("p", {}, h("label", {}, protect, " also protect, and attack again")), button("Attack", () => start({ protect: protect.checked }), { class: "main", id: "start-groups" }));
}
