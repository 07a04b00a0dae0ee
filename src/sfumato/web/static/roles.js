// The list of columns: filter, selection of many, a role for one or for all selected. Only what changed is drawn anew.
import { get } from "./api.js";
import { spread } from "./charts/bars.js";
import { button, fill, h, number, plural, select } from "./dom.js";
import { editHierarchy } from "./hierarchy.js";
import { editJoining } from "./joining.js";
import { here, state } from "./state.js";

const plain = (role) => role.replace("_", "-");

export function columnList(profile, change, refresh) {
  const rows = new Map(); // of each column: its element, its parts, and what they show
  const chosen = new Set();
  const tools = h("div", { class: "row", style: "margin:.4rem 0" });
  const body = h("div", {});
  let words = "";
  let only = "";
  const declared = (name) => state.declared.study.columns[name];
  const matches = (about) =>
    (!words || about.name.toLowerCase().includes(words)) &&
    (!only || (declared(about.name)?.role ?? "none") === only);
  const visible = () => profile.columns.filter(matches);

  // A key that the new role does not read would be refused: it seems to protect, and does nothing.
  function inRole(column, role, about) {
    const reads = state.about.roles.find((each) => each.name === role).keys;
    /** @type {any} */
    const given = {
      role,
      ...Object.fromEntries(Object.entries(column ?? {}).filter(([key]) => reads.includes(key))),
    };
    if (role === "sensitive" && !["ordered", "hierarchical"].includes(given.distance))
      delete given.hierarchy;
    if (role === "quasi_identifier" && !given.hierarchy)
      given.hierarchy = {
        build:
          about.kind === "date"
            ? "date"
            : about.distinct > 20
              ? about.kind === "text"
                ? "frequency"
                : "interval"
              : "flat",
      };
    return given;
  }
  function give(names, role) {
    const all = structuredClone(state.declared.study.columns);
    for (const about of profile.columns)
      if (names.includes(about.name)) all[about.name] = inRole(all[about.name], role, about);
    return change({ columns: all });
  }
  // What a row is, is declared by a column or by the statement; a column that repeats then needs no hint.
  const answered = (role) =>
    ["unit", "household"].includes(role) ||
    state.declared.study.data.unit === "row" ||
    Object.values(state.declared.study.columns).some((column) => column.role === "unit");
  function drawRole(about) {
    const { name } = about;
    const now = declared(name) ?? { role: "" };
    const other = about.suggested_role && about.suggested_role !== now.role;
    const why =
      { "nothing says more; check": "no hint was found: please decide" }[about.reason] ??
      about.reason;
    return [
      select(
        [
          ...(now.role ? [] : [["", "choose …"]]),
          ...state.about.roles.map((role) => [role.name, plain(role.name), role.meaning]),
        ],
        now.role,
        (role) => give([name], role),
        {
          class: now.role ? null : "open",
          "aria-label": `Role of ${name}`,
          title:
            state.about.roles.find((role) => role.name === now.role)?.meaning ??
            "Nothing runs until this column has a role",
        },
      ),
      h("small", {}, other ? `suggested: ${plain(about.suggested_role)} (${why})` : why),
      about.repeats &&
        !answered(now.role) &&
        h(
          "p",
          { class: "warning", "data-repeats": name },
          about.repeats,
          " Give it the role unit or household, or state above that every row is a " +
            "person. Until then nothing is published.",
        ),
    ];
  }
  function drawTree(about) {
    const { name } = about;
    const now = declared(name) ?? { role: "" };
    if (now.role !== "quasi_identifier" && !(now.role === "sensitive" && now.hierarchy))
      return h(
        "small",
        {},
        state.about.roles.find((role) => role.name === now.role)?.meaning ??
          "undecided: counted as known to outsiders",
      );
    const tree = now.hierarchy;
    const said = !tree
      ? "none"
      : typeof tree === "string"
        ? tree.split("/").at(-1)
        : tree.path
          ? tree.path.split("/").at(-1)
          : (tree.build ?? "own");
    return [
      button(
        "Hierarchy …",
        async () => {
          await editHierarchy(name, about, async () => {
            state.declared = await get(here());
            draw();
            refresh();
          });
        },
        { class: "small", "data-tree": name },
      ),
      " ",
      now.role === "quasi_identifier" &&
        button(
          "Order …",
          () =>
            editJoining(name, () => {
              draw();
              refresh();
            }),
          {
            class: "small",
            "data-order": name,
            title: "In which order a search over cuts joins neighbours; breaks; missing values",
          },
        ),
      " ",
      h(
        "span",
        {
          class: tree || now.role === "sensitive" ? "badge" : "badge bad",
          title: tree
            ? "How values are generalized"
            : "Without a hierarchy the column cannot be generalized",
        },
        said,
      ),
    ];
  }
  function made(about) {
    const { name } = about;
    const [role, tree] = [h("div", {}), h("div", {})];
    const tick = h("input", {
      type: "checkbox",
      "aria-label": `Select ${name}`,
      "data-select": name,
      checked: chosen.has(name),
      onchange: () => {
        if (tick.checked) chosen.add(name);
        else chosen.delete(name);
        drawTools();
      },
    });
    const element = h(
      "div",
      { class: "declared", "data-column": name },
      h(
        "div",
        {},
        h("label", { class: "name" }, tick, " ", name),
        h(
          "small",
          { title: "Different values" },
          plural(about.distinct, "value"),
          about.missing ? `, ${number(about.missing)} missing` : "",
        ),
        about.missing_candidates.length > 0 &&
          h("small", {}, h("br"), "perhaps missing: ", about.missing_candidates.join(", ")),
      ),
      spread(about.spread, 38),
      role,
      tree,
    );
    return { element, role, tree, tick, shown: null };
  }
  function drawTools() {
    const shown = visible();
    const names = [...chosen].filter((name) => rows.has(name));
    const every = h("input", {
      type: "checkbox",
      id: "select-all",
      checked: shown.length > 0 && shown.every((about) => chosen.has(about.name)),
      onchange: () => {
        for (const about of shown) {
          if (every.checked) chosen.add(about.name);
          else chosen.delete(about.name);
          rows.get(about.name).tick.checked = every.checked;
        }
        drawTools();
      },
    });
    fill(
      tools,
      h("input", {
        type: "search",
        placeholder: "Filter by name",
        "aria-label": "Filter columns by name",
        id: "filter",
        value: words,
        size: 16,
        oninput: (event) => {
          words = event.target.value.trim().toLowerCase();
          filter();
        },
      }),
      select(
        [
          ["", "every role"],
          ["none", "undecided"],
          ...state.about.roles.map((role) => [role.name, plain(role.name)]),
        ],
        only,
        (role) => {
          only = role;
          filter();
        },
        { "aria-label": "Filter columns by role", id: "filter-role" },
      ),
      h(
        "label",
        {},
        every,
        ` select all ${shown.length === profile.columns.length ? "" : "shown "}(${number(shown.length)})`,
      ),
      names.length > 0 &&
        select(
          [
            ["", `Role of ${plural(names.length, "selected column")} …`],
            ...state.about.roles.map((role) => [role.name, plain(role.name)]),
          ],
          "",
          async (role) => {
            if (!role || !(await give(names, role))) return;
            for (const name of names) rows.get(name).tick.checked = false;
            chosen.clear();
            drawTools();
          },
          { "aria-label": "Role of the selected columns", id: "bulk-role" },
        ),
    );
  }
  function filter() {
    for (const about of profile.columns) rows.get(about.name).element.hidden = !matches(about);
    drawTools();
  }
  function draw(all = false) {
    for (const about of profile.columns) {
      if (!rows.has(about.name)) rows.set(about.name, made(about));
      const row = rows.get(about.name);
      const now = JSON.stringify([
        declared(about.name) ?? null,
        about.repeats && answered(declared(about.name)?.role),
      ]);
      if (row.shown === now && !all) continue;
      row.shown = now;
      fill(row.role, drawRole(about));
      fill(row.tree, drawTree(about));
    }
    if (!body.childElementCount)
      fill(
        body,
        profile.columns.map((about) => rows.get(about.name).element),
      );
    filter();
  }
  // The profile was made again: every row is made of it.
  function renew() {
    rows.clear();
    fill(body);
    for (const name of [...chosen])
      if (!profile.columns.some((about) => about.name === name)) chosen.delete(name);
  }
  // The next column without a role: shown, whatever the filter, and with the focus.
  function next() {
    if (words || only) {
      words = "";
      only = "";
      filter();
    }
    const after = profile.columns.findIndex((about) =>
      rows.get(about.name).element.contains(document.activeElement),
    );
    const open = profile.columns.filter((about) => !declared(about.name));
    const target = open.find((about) => profile.columns.indexOf(about) > after) ?? open[0];
    if (!target) return;
    const row = rows.get(target.name);
    row.element.scrollIntoView({ block: "center" });
    row.role.querySelector("select").focus({ preventScroll: true });
  }
  return { element: h("div", {}, tools, body), draw, next, renew };
}
