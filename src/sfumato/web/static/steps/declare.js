// Declare: a role for every column, the missing rule, hierarchies; the risk of the raw table beside it, live.
import { attempt, changeStudy, get } from "../api.js";
import { bars, spread } from "../charts/bars.js";
import { button, defined, field, figure, fill, h, later, number, percent, plural, select } from "../dom.js";
import { editHierarchy } from "../hierarchy.js";
import { editJoining } from "../joining.js";
import { valueText } from "../settings.js";
import { go, headlines, here, state, tell } from "../state.js";

const MISSING = [
  ["drop", "exclude the record", "Rows with a missing value in a measured column are excluded, and their number is reported"],
  ["category", "a separate category", "“Missing” is treated as a category"],
  ["wildcard", "matches anything", "A record matches all records that agree where both values are known"],
];

export async function declareStep(place) {
  if (state.declared.study.groups && !Object.keys(state.declared.study.columns).length) {
    fill(place, h("div", { class: "card empty" }, h("div", {}, h("p", {}, "This study is about a group of people: its columns are declared under [groups] in the run file."),
      button("Search →", () => go({ step: "search" }), { class: "main", id: "to-search" }))));
    return undefined;
  }
  const profile = await attempt(() => get(`${here()}/profile`, "profiling the columns …"));
  if (!profile) return undefined;
  const tables = ((await attempt(() => get("/files")))?.files ?? []).filter((file) => file.kind === "table");
  const risk = h("div", { class: "card", id: "risk" });
  const says = h("div", {});
  const blocked = h("small", { class: "quiet", id: "blocked" });
  const list = h("div", { class: "card" });
  const refresh = later(() => drawRisk(risk), 350);

  async function change(changes) {
    const found = await attempt(() => changeStudy(changes), says);
    if (!found) return false;
    fill(says);
    tell("frame");
    drawList();
    refresh();
    return true;
  }
  const columns = () => structuredClone(state.declared.study.columns);
  const undecided = () => state.declared.undecided ?? [];

  // A key that the new role does not read would be refused: it seems to protect, and does nothing.
  function inRole(column, role, about) {
    const reads = state.about.roles.find((each) => each.name === role).keys;
    const next = { role, ...Object.fromEntries(Object.entries(column ?? {}).filter(([key]) => reads.includes(key))) };
    if (role === "sensitive" && !["ordered", "hierarchical"].includes(next.distance)) delete next.hierarchy;
    if (role === "quasi_identifier" && !next.hierarchy) next.hierarchy = { build: about.kind === "date" ? "date" : about.distinct > 20 ? (about.kind === "text" ? "frequency" : "interval") : "flat" };
    return next;
  }

  function drawRole(name, about) {
    const now = state.declared.study.columns[name] ?? { role: "" };
    const other = about.suggested_role && about.suggested_role !== now.role;
    return h("div", {}, select([...(now.role ? [] : [["", "choose …"]]), ...state.about.roles.map((role) => [role.name, role.name.replace("_", "-"), role.meaning])], now.role, async (role) => {
      const all = columns();
      all[name] = inRole(all[name], role, about);
      if (!(await change({ columns: all }))) drawList();
    }, { class: now.role ? null : "open", "aria-label": `Role of ${name}`, title: state.about.roles.find((role) => role.name === now.role)?.meaning ?? "Nothing runs until this column has a role" }),
    h("small", {}, other ? `suggested: ${about.suggested_role.replace("_", "-")} (${about.reason})` : about.reason));
  }

  // Codes that may mean missing, to be taken up with one click: for the whole table, because that is what the words are.
  function drawCandidates(data) {
    const found = new Map();
    for (const column of profile.columns) for (const word of column.missing_candidates) found.set(word, [...(found.get(word) ?? []), column.name]);
    const open = [...found].filter(([word]) => !(data.na ?? []).includes(word));
    return open.length > 0 && h("p", { class: "quiet", id: "candidates" }, "Perhaps missing: ", open.map(([word, names]) => [button(`${word} in ${plural(names.length, "column")}`, () => {
      const { path, ...rest } = data;
      change({ data: { ...rest, na: [...(data.na ?? []), word] } });
    }, { class: "small", "data-missing": word, title: `${names.join(", ")}. Taken as missing, “${word}” means missing in every column of the table.` }), " "]));
  }

  function drawReview() {
    const open = undecided();
    if (state.declared.reviewed && !open.length) return null;
    const names = open.length > 8 ? `${open.slice(0, 8).join(", ")} and ${open.length - 8} more` : open.join(", ");
    return h("div", { class: "warning", id: "review" }, open.length > 0
      ? h("span", {}, h("b", {}, `${plural(open.length, "column")} ${open.length === 1 ? "has" : "have"} no role yet: `), names, ". Nothing is searched or published until each has one.")
      : h("span", {}, "The roles are suggestions from names and values. Check every line, correct it where needed, then confirm."),
    h("div", {}, button("Confirm these roles", () => change({ reviewed: true }), { class: "main", id: "reviewed", disabled: open.length > 0 })));
  }

  function drawTree(name, about) {
    const now = state.declared.study.columns[name] ?? { role: "" };
    if (now.role !== "quasi_identifier" && !(now.role === "sensitive" && now.hierarchy)) return h("small", {}, state.about.roles.find((role) => role.name === now.role)?.meaning ?? "undecided: counted as known to outsiders");
    const tree = now.hierarchy;
    const said = !tree ? "none" : typeof tree === "string" ? tree.split("/").at(-1) : tree.path ? tree.path.split("/").at(-1) : tree.build;
    return h("div", {}, button("Hierarchy …", async () => {
      await editHierarchy(name, about, async () => { state.declared = await get(here()); drawList(); refresh(); });
    }, { class: "small", "data-tree": name }), " ",
    now.role === "quasi_identifier" && button("Order …", () => editJoining(name, () => { drawList(); refresh(); }), { class: "small", "data-order": name, title: "In which order a search over cuts joins neighbours; breaks; missing values" }), " ",
    h("span", { class: tree || now.role === "sensitive" ? "badge" : "badge bad", title: tree ? "How values are generalized" : "Without a hierarchy the column cannot be generalized" }, said));
  }

  function drawList() {
    const declared = state.declared.study;
    fill(blocked, undecided().length > 0 && `${plural(undecided().length, "column")} still without a role`);
    fill(list, h("div", { class: "row spread top" }, h("h2", {}, "Role of each column"),
      field("A missing value means", select(MISSING, declared.data.missing ?? "drop", (missing) => {
        const { path, ...data } = declared.data;
        change({ data: { ...data, missing } });
      }), "What happens to missing values in measured columns"),
      field("Codes for missing values", h("input", {
        value: (declared.data.na ?? []).join(", "), size: 12,
        onchange: (event) => {
          const { path, ...data } = declared.data;
          change({ data: { ...data, na: event.target.value.split(",").map((word) => word.trim()).filter(Boolean) } });
        },
      }), "Values that mean “missing”, separated by commas; an empty cell is always missing"),
      field("Population table", h("input", {
        value: declared.population?.path ?? "", size: 16, list: "tables", placeholder: "none", id: "population",
        onchange: (event) => change({ population: event.target.value.trim() ? { path: event.target.value.trim() } : {} }),
      }), "A file of the folder with the same quasi-identifiers for everybody: the journalist’s risk is measured against it"),
      h("datalist", { id: "tables" }, tables.map((file) => h("option", { value: file.path })))),
    says,
    drawCandidates(declared.data),
    drawReview(),
    profile.columns.map((about) => h("div", { class: "declared", "data-column": about.name },
      h("div", {}, h("div", { class: "name" }, about.name), h("small", { title: "Different values" }, plural(about.distinct, "value"), about.missing ? `, ${number(about.missing)} missing` : ""),
        about.missing_candidates.length > 0 && h("small", {}, h("br"), "perhaps missing: ", about.missing_candidates.join(", "))),
      spread(about.spread, 38), drawRole(about.name, about), drawTree(about.name, about))));
  }
  drawList();
  fill(place, h("div", { class: "columns" }, list, h("div", {}, h("div", { class: "sticky" }, h("div", { class: "row", style: "margin-bottom:.6rem" },
    button("Search →", () => {
      if (!undecided().length) { go({ step: "search" }); return; }
      const first = list.querySelector("select.open");
      first.scrollIntoView({ block: "center" });
      first.focus({ preventScroll: true });
    }, { class: "main", id: "to-search" }), blocked), risk))));
  fill(risk, h("div", { class: "empty" }, "Measuring the raw table …"));
  drawRisk(risk);
  return undefined;
}

async function drawRisk(card) {
  const audit = await attempt(() => get(`${here()}/audit`, "measuring the raw table …"), card);
  if (!audit) return;
  const of = (name) => audit.measures[name] ?? {};
  const tile = ({ name, title, sentence, headline }) => figure(valueText(name)(of(name).value), headline.says, `${title}: ${sentence}`, { class: headline.warns ? "tile bad" : "tile" });
  const { size, classes } = audit.class_sizes;
  const groups = [[1, 1], [2, 2], [3, 4], [5, 9], [10, 19], [20, 49], [50, 99], [100, 499], [500, Infinity]];
  const records = groups.map(([low, high]) => size.reduce((sum, value, place) => sum + (value >= low && value <= high ? value * classes[place] : 0), 0));
  const parts = Object.entries(audit.columns).filter(([, column]) => column.risk_contribution)
    .sort((a, b) => b[1].risk_contribution.uniques - a[1].risk_contribution.uniques);
  fill(card, h("h2", {}, "Risk of the raw table"), h("p", { class: "quiet" }, `${number(audit.rows)} records in ${plural(audit.classes, "class", "classes")}`),
    audit.undecided.length > 0 && h("p", { class: "quiet", id: "counted-too" }, `${plural(audit.undecided.length, "column")} without a role ${audit.undecided.length === 1 ? "is" : "are"} counted as known to outsiders.`),
    h("div", { class: "tiles" }, headlines().filter(({ name }) => of(name).value !== null && of(name).value !== undefined).map(tile)),
    h("p", { id: "whole", class: audit.whole.columns_in_no_figure.length ? "warning" : "quiet" }, audit.notes[0]),
    h("figure", {}, bars(records, { labels: groups.map(([low, high]) => low === high ? String(low) : high === Infinity ? `${low}+` : `${low}–${high}`), height: 150, label: "records by the size of their class", marked: (place) => groups[place][1] < 5 }),
      h("figcaption", {}, "Number of records by class size; red: classes of fewer than 5 records")),
    h("h3", {}, defined("Contribution of each column", "How much lower the share of unique records would be without the column")),
    h("div", {}, parts.map(([name, column]) => h("div", { class: "row", style: "gap:.4rem;font-size:.85rem" },
      h("span", { style: "flex:1;overflow-wrap:anywhere" }, name), h("span", {}, percent(Math.max(column.risk_contribution.uniques, 0)))))),
    audit.notes.slice(1).map((note) => h("p", { class: "quiet" }, h("small", {}, note))));
}
