// The hierarchy of a column: a recipe with a live histogram, an import, or a tree that is edited by hand.
import { attempt, get, post, put, query } from "./api.js";
import { bars } from "./charts/bars.js";
import { button, byId, field, fill, h, later, plural, select, tabs } from "./dom.js";
import { levelsTable } from "./levels.js";
import { KINDS, recipeOptions } from "./recipes.js";
import { here } from "./state.js";
import { treeEditor } from "./tree.js";

const PAGES = { recipe: "Build from values", hand: "Edit the tree", file: "Import a file" };

export async function editHierarchy(column, about, saved) {
  const start = await attempt(() =>
    get(`${here()}/hierarchy${query({ column })}`, "reading the hierarchy …"),
  );
  if (!start) return;
  let found = start;
  let recipe = start.declared?.build ? { ...start.declared } : null;
  let level = start.height > 1 ? 1 : 0; // the root alone would be one block
  let ready = true; // whether what is shown is what "Use this hierarchy" would keep
  let touched = false;
  let editor = null;
  let asked = 0;
  const [says, options, picture, badge, leaving] = Array.from({ length: 5 }, () => h("div", {}));
  const use = button("Use this hierarchy", keep, { class: "main", id: "keep" });

  function settle(good, busy = false) {
    ready = good;
    use.disabled = !good;
    if (!good) fill(badge, busy && h("span", { class: "badge wait", id: "badge" }, "checking …"));
  }
  function show(next) {
    found = next;
    level = Math.min(level, found.height);
    settle(true);
    fill(
      badge,
      h(
        "span",
        { class: `badge ${found.covers ? "good" : "bad"}`, id: "badge" },
        found.covers ? "✓ " : "✗ ",
        found.badge,
      ),
      " ",
      h("span", { class: "quiet" }, found.levels.map((each) => each.labels).join(" → "), " labels"),
    );
    use.disabled = !found.covers;
    const choose = h(
      "div",
      { class: "pills", role: "radiogroup", "aria-label": "Level shown" },
      found.levels.map((each, place) =>
        h(
          "label",
          {},
          h("input", {
            type: "radio",
            name: "level",
            checked: place === level,
            onchange: () => {
              level = place;
              show(found);
            },
          }),
          place === 0 ? "values" : place === found.height ? "root" : `level ${place}`,
          ` (${each.labels})`,
        ),
      ),
    );
    const shown = found.levels[level].bars;
    fill(
      picture,
      choose,
      h(
        "figure",
        {},
        bars(
          shown.map(([, count]) => count),
          {
            labels: shown.map(([label]) => found.shown?.[label] ?? label),
            height: 150,
            label: `records under each label of level ${level}`,
          },
        ),
        h(
          "figcaption",
          {},
          `Records under each of ${plural(found.levels[level].labels, "label")} of this level`,
        ),
      ),
      levelsTable(
        found,
        editor
          ? (depth, label, to) => editor.edit({ do: "rename", level: depth, labels: [label], to })
          : null,
      ),
    );
  }
  // Only the answer to the last question is shown, and nothing can be kept until it is there.
  async function check(path, body) {
    const mine = ++asked;
    const made = await attempt(
      () => post(`${here()}/hierarchy/${path}`, { column, ...body }),
      says,
    );
    if (mine !== asked) return null;
    if (made) {
      fill(says);
      show(made);
    } else settle(false);
    return made;
  }
  const build = later(async (next) => {
    recipe = next;
    await check("build", { recipe: next });
  }, 120);
  const wait =
    (act) =>
    (...given) => {
      settle(false, true);
      act(...given);
    };

  function byRecipe() {
    const kind = recipe?.build ?? (about.kind === "text" ? "frequency" : "interval");
    const place = h("div", {});
    const draw = (next) => fill(place, recipeOptions(next, recipe, about, wait(build)));
    fill(
      options,
      field(
        "Made by",
        select(
          KINDS,
          kind,
          (next) => {
            recipe = null;
            draw(next);
          },
          { id: "kind" },
        ),
      ),
      place,
    );
    draw(kind);
  }
  function byHand() {
    recipe = null;
    editor = treeEditor(column, found, says, (next) => {
      touched = true;
      show(next);
    });
    fill(options, editor.element);
    show(found);
  }
  function byFile() {
    const text = h("textarea", {
      rows: 8,
      placeholder: "value;group;*  (one row per value; ARX, CSV or level tables)",
      "aria-label": "Hierarchy file",
      id: "import",
    });
    const take = later(async () => {
      if (!text.value.trim()) {
        fill(says);
        recipe = start.declared?.build ? { ...start.declared } : null;
        show(start);
        return;
      }
      if (await check("import", { text: text.value })) recipe = null;
    }, 300);
    text.addEventListener("input", wait(take));
    const chooser = h("input", {
      type: "file",
      accept: ".csv,.txt",
      onchange: async () => {
        text.value = await chooser.files[0].text();
        wait(take)();
      },
      "aria-label": "Choose a hierarchy file",
    });
    fill(
      options,
      h("div", { class: "row" }, chooser, h("small", {}, "Checked as you type or paste.")),
      text,
    );
  }
  for (const kind of ["input", "change"])
    options.addEventListener(kind, () => {
      touched = true;
    });
  const pages = { recipe: byRecipe, hand: byHand, file: byFile };
  function open(name) {
    fill(says);
    asked += 1;
    editor = null;
    if (!ready) show(found);
    pages[name]();
  }
  async function keep() {
    if (!ready) return;
    const body = recipe ? { column, recipe } : { column, paths: found.paths };
    if (!(await attempt(() => put(`${here()}/hierarchy`, body, "saving …"), says))) return;
    touched = false;
    dialog.close();
    await saved();
  }
  // Work that is not kept yet is not thrown away by a key.
  function leave() {
    if (!touched) {
      dialog.close();
      return;
    }
    fill(
      leaving,
      h(
        "div",
        { class: "warning", id: "leaving" },
        h("span", {}, "Your changes are not kept yet."),
        h(
          "div",
          { class: "row" },
          button(
            "Throw them away",
            () => {
              touched = false;
              dialog.close();
            },
            { class: "small", id: "discard" },
          ),
          button("Go on editing", () => fill(leaving), { class: "small" }),
        ),
      ),
    );
    byId("discard").focus();
  }
  const dialog = h(
    "dialog",
    {
      class: "wide",
      id: "hierarchy",
      "aria-label": `Hierarchy of ${column}`,
      onclose: () => dialog.remove(),
      oncancel: (event) => {
        event.preventDefault();
        leave();
      },
      onkeydown: (event) => {
        if (
          !(event.ctrlKey || event.metaKey) ||
          !editor ||
          event.target.matches("input:not([type=checkbox]), textarea")
        )
          return;
        if (event.key === "z") {
          event.preventDefault();
          editor.undo();
        }
        if (event.key === "y") {
          event.preventDefault();
          editor.redo();
        }
      },
    },
    h("h2", {}, "Hierarchy of ", column),
  );
  const first = recipe && (about.kind === "whole" || about.kind === "number") ? "recipe" : "hand";
  dialog.append(
    tabs(PAGES, first, open, "How the hierarchy is made"),
    badge,
    says,
    options,
    picture,
    h(
      "div",
      { class: "foot" },
      leaving,
      h("div", { class: "row" }, use, button("Cancel", leave, { class: "plain" })),
    ),
  );
  document.body.append(dialog);
  show(start);
  open(first);
  touched = false;
  dialog.showModal();
}
