// The hierarchy of a column: a recipe with a live histogram, an import, or a tree that is edited by hand.
import { attempt, get, post, put, query } from "./api.js";
import { bars } from "./charts/bars.js";
import { button, field, fill, h, later, plural, select } from "./dom.js";
import { here } from "./state.js";
import { treeEditor } from "./tree.js";

const KINDS = [
  ["interval", "intervals of equal width"], ["quantile", "about equal numbers of records"], ["breaks", "fixed breaks"], ["prefix", "fewer leading characters"],
  ["date", "months, years"], ["frequency", "combine rare values"], ["flat", "keep or hide the value"],
];
const numbers = (text) => text.split(",").map((part) => part.trim()).filter(Boolean).map(Number);

export async function editHierarchy(column, about, saved) {
  const start = await attempt(() => get(`${here()}/hierarchy${query({ column })}`, "reading the hierarchy …"));
  if (!start) return;
  let found = start;
  let recipe = start.declared?.build ? { ...start.declared } : null;
  let level = Math.min(1, start.height);
  const says = h("div", {});
  const options = h("div", {});
  const picture = h("div", {});
  const badge = h("div", {});
  const tabs = h("div", { class: "tabs", role: "tablist" });

  function show(next) {
    found = next;
    level = Math.min(level, found.height);
    fill(badge, h("span", { class: `badge ${found.covers ? "good" : "bad"}`, id: "badge" }, found.covers ? "✓ " : "✗ ", found.badge), " ",
      h("span", { class: "quiet" }, found.levels.map((each) => each.labels).join(" → "), " labels"));
    const choose = h("div", { class: "pills", role: "radiogroup", "aria-label": "Level shown" }, found.levels.map((each, place) => h("label", {},
      h("input", { type: "radio", name: "level", checked: place === level, onchange: () => { level = place; show(found); } }), place === 0 ? "values" : place === found.height ? "root" : `level ${place}`, ` (${each.labels})`)));
    const shown = found.levels[level].bars;
    fill(picture, choose, h("figure", {}, bars(shown.map(([, count]) => count), { labels: shown.map(([label]) => found.shown?.[label] ?? label), height: 170, label: `records under each label of level ${level}` }),
      h("figcaption", {}, `Records under each of ${plural(found.levels[level].labels, "label")} of this level`)));
  }
  const build = later(async (next) => {
    recipe = next;
    const made = await attempt(() => post(`${here()}/hierarchy/build`, { column, recipe: next }), says);
    if (made) { fill(says); show(made); }
  }, 120);

  function drawOptions(kind) {
    const given = recipe?.build === kind ? recipe : { build: kind };
    const text = (name, value, change, title) => field(name, h("input", { value, size: 24, oninput: (event) => change(event.target.value) }), title);
    if (kind === "interval") {
      const span = (about.highest ?? 1) - (about.lowest ?? 0) || 1;
      const unit = about.kind === "whole" ? 1 : 10 ** Math.floor(Math.log10(span / 100));
      const most = Math.max(Math.ceil(span / 2 / unit), 2);
      const widths = given.widths ?? [Math.max(Math.round(span / 16 / unit), 1) * unit];
      const slider = h("input", { type: "range", min: 1, max: most, step: 1, value: Math.min(Math.round(widths[0] / unit), most), id: "width", "aria-label": "Width of the finest intervals" });
      const many = h("input", { type: "number", min: 1, max: 8, value: given.widths?.length ?? 4, "aria-label": "Levels" });
      const list = h("input", { value: given.widths?.join(", ") ?? "", size: 20, "aria-label": "Widths" });
      const doubled = () => {
        const first = Number(slider.value) * unit;
        const made = Array.from({ length: Math.max(Number(many.value) || 1, 1) }, (_, step) => Number((first * 2 ** step).toPrecision(8)));
        list.value = made.join(", ");
        build({ build: kind, widths: made });
      };
      slider.addEventListener("input", doubled);
      many.addEventListener("input", doubled);
      list.addEventListener("input", () => build({ build: kind, widths: numbers(list.value) }));
      if (!given.widths) doubled(); else build(given);
      return h("div", {}, field("Width of the finest intervals", slider, "Each level above doubles it"), h("div", { class: "row top" }, field("Levels", many), field("Widths, finest first", list, "Each must be a multiple of the one before")));
    }
    build(given);
    if (kind === "quantile") return field("Groups", h("input", { type: "range", min: 2, max: 32, value: given.bins ?? 8, oninput: (event) => build({ build: kind, bins: Number(event.target.value) }) }), "How many groups the finest level has");
    if (kind === "breaks") return text("Breaks, finest level first; levels apart by ;", (given.levels ?? []).map((each) => each.join(", ")).join("; "), (value) => build({ build: kind, levels: value.split(";").map(numbers).filter((each) => each.length) }), "18, 30, 40, 65; 40");
    if (kind === "prefix") return text("Characters kept, per level", (given.keep ?? []).join(", "), (value) => build(value.trim() ? { build: kind, keep: numbers(value) } : { build: kind }), "4, 3, 2");
    if (kind === "date") return text("How days are written", given.pattern ?? "%Y-%m-%d", (value) => build({ build: kind, pattern: value }), "%d.%m.%Y");
    if (kind === "frequency") return text("Rarer than, per level", (given.shares ?? [0.005, 0.02, 0.1]).join(", "), (value) => build({ build: kind, shares: numbers(value) }), "Values rarer than this share of the records are combined");
    return h("p", { class: "quiet" }, "A value is either kept or hidden.");
  }

  function byRecipe() {
    const kind = recipe?.build ?? (about.kind === "text" ? "frequency" : "interval");
    const place = h("div", {});
    fill(options, field("Made by", select(KINDS, kind, (next) => { recipe = null; fill(place, drawOptions(next)); }, { id: "kind" })), place);
    fill(place, drawOptions(kind));
  }
  function byHand() {
    recipe = null;
    fill(options, treeEditor(column, found, says, show));
  }
  function byFile() {
    const text = h("textarea", { rows: 8, placeholder: "value;group;*  (one row per value; ARX, CSV or level tables)", "aria-label": "Hierarchy file" });
    const take = async () => {
      const made = await attempt(() => post(`${here()}/hierarchy/import`, { column, text: text.value }), says);
      if (made) { fill(says); recipe = null; show(made); }
    };
    const chooser = h("input", { type: "file", accept: ".csv,.txt", onchange: async () => { text.value = await chooser.files[0].text(); await take(); }, "aria-label": "Choose a hierarchy file" });
    fill(options, h("div", { class: "row" }, chooser, button("Check", take)), text);
  }
  const pages = { "Edit the tree": byHand, "Build from values": byRecipe, "Import a file": byFile };
  function open(name) {
    fill(says);
    fill(tabs, Object.keys(pages).map((each) => button(each, () => open(each), { role: "tab", "aria-selected": each === name ? "true" : "false" })));
    pages[name]();
  }
  const dialog = h("dialog", { class: "wide", id: "hierarchy", "aria-label": `Hierarchy of ${column}`, onclose: () => dialog.remove() },
    h("h2", {}, "Hierarchy of ", column), tabs, badge, says, options, picture,
    h("div", { class: "row foot" }, button("Use this hierarchy", async () => {
      const body = recipe ? { column, recipe } : { column, paths: found.paths };
      if (!(await attempt(() => put(`${here()}/hierarchy`, body, "saving …"), says))) return;
      dialog.close();
      await saved();
    }, { class: "main", id: "keep" }), button("Cancel", () => dialog.close(), { class: "plain" })));
  document.body.append(dialog);
  show(start);
  open(recipe && (about.kind === "whole" || about.kind === "number") ? "Build from values" : "Edit the tree");
  dialog.showModal();
}
