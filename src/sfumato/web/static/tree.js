// The tree editor: select labels, join them, rename one, move some under another; every step can be undone.
import { attempt, post } from "./api.js";
import { button, fill, h, number } from "./dom.js";
import { here } from "./state.js";

const MOST = 400;
// A list of values, which a release names by those that released records have; lists in it are taken apart.
const values = (label) =>
  /^\{.* \| .*\}$/.test(label) ? label.slice(1, -1).split(" | ") : [label];
const listed = (labels) => `{${labels.flatMap(values).join(" | ")}}`;

export function treeEditor(column, start, says, changed) {
  let found = start;
  let chosen = new Map(); // "level label" → {level, label}
  const before = [];
  const after = [];
  const place = h("div", { class: "scroll trees", tabindex: "-1" });
  const bar = h("div", { class: "row", style: "margin:.5rem 0" });
  const key = (level, label) => `${level}\u0000${label}`;

  function take(next, keep = true) {
    if (keep) {
      before.push(found);
      after.length = 0;
    }
    found = next;
    chosen = new Map();
    changed(found);
    draw();
    // A button that went takes the focus along.
    if (!whole.contains(document.activeElement)) whole.focus({ preventScroll: true });
  }
  // Edits are made one after another, each on what the one before has left: none is lost.
  let turn = Promise.resolve();
  function edit(...changes) {
    turn = turn.then(async () => {
      for (const change of changes) {
        const next = await attempt(
          () => post(`${here()}/hierarchy/edit`, { column, paths: found.paths, ...change }),
          says,
        );
        if (!next) return;
        fill(says);
        take(next);
      }
    });
    return turn;
  }
  const picked = () => [...chosen.values()];
  const level = () =>
    new Set(picked().map((each) => each.level)).size === 1 ? picked()[0].level : null;
  const name = h("input", {
    id: "label-name",
    size: 18,
    placeholder: "name",
    "aria-label": "Name of the label",
    onkeydown: (event) => {
      if (event.key === "Enter") {
        event.preventDefault();
        if (chosen.size > 1) join();
        else rename();
      }
    },
  });

  // Values are grouped on the level above them; where that level says something else already, on a new one.
  function join() {
    const labels = picked().map((each) => each.label);
    const to = name.value.trim() || listed(labels);
    if (level() > 0) return edit({ do: "join", level: level(), labels, to });
    const above = [
      ...new Set(found.paths.filter((path) => labels.includes(path[0])).map((path) => path[1])),
    ];
    const whole_ =
      found.height > 1 &&
      found.paths.every((path) => !above.includes(path[1]) || labels.includes(path[0]));
    if (whole_ && above.length > 1) return edit({ do: "join", level: 1, labels: above, to });
    return edit({ do: "add_level", level: 1 }, { do: "join", level: 1, labels, to });
  }
  function rename() {
    const [{ level: where, label }] = picked();
    const to = name.value.trim();
    return to && to !== label
      ? edit({ do: "rename", level: where, labels: [label], to })
      : undefined;
  }
  function undo() {
    if (before.length) {
      after.push(found);
      take(before.pop(), false);
    }
  }
  function redo() {
    if (after.length) {
      before.push(found);
      take(after.pop(), false);
    }
  }

  function drawBar() {
    const where = level();
    const many = chosen.size;
    const above =
      where !== null && where + 1 <= found.height
        ? [...new Set(found.paths.map((path) => path[where + 1]))]
        : [];
    const target = h(
      "select",
      {
        "aria-label": "Move under",
        disabled: !many || above.length < 2 || where === null,
        onchange: () =>
          edit({
            do: "move",
            level: where,
            labels: picked().map((each) => each.label),
            to: target.value,
          }),
      },
      h("option", { value: "", selected: true, disabled: true }, "Move under …"),
      above.slice(0, MOST).map((label) => h("option", { value: label }, label)),
    );
    name.disabled = !many || where === null || where === found.height;
    if (document.activeElement !== name)
      name.value = many === 1 && where > 0 ? picked()[0].label : "";
    name.placeholder = many > 1 ? listed(picked().map((each) => each.label)) : "name";
    fill(
      bar,
      name,
      button("Group", join, {
        id: "join",
        disabled: many < 2 || where === null || where === found.height,
        title: "Make one label of those selected; values are grouped on the level above them",
      }),
      button("Rename", rename, {
        id: "rename",
        disabled: many !== 1 || where === 0 || where === found.height,
        title: "Give the selected label the name that stands in the field",
      }),
      target,
      button(
        "Add a level",
        () => edit({ do: "add_level", level: where === null ? 1 : Math.max(where, 1) }),
        {
          title:
            "A new level above the values, or under the selected level; labels can then be grouped on it",
        },
      ),
      button("Remove the level", () => edit({ do: "remove_level", level: where }), {
        disabled: where === null || where === 0 || where === found.height,
        title: "Leave out the level of the selected label",
      }),
      button("Undo", undo, { id: "undo", disabled: !before.length, title: "Ctrl+Z" }),
      button("Redo", redo, { disabled: !after.length, title: "Ctrl+Y" }),
      h("small", {}, many ? `${many} selected` : "Tick values or labels, or drag one onto another"),
    );
  }

  function node(depth, label, paths, most) {
    const records = paths.reduce((sum, path) => sum + (found.counts[path[0]] ?? 0), 0);
    const id = key(depth, label);
    const movable = depth < found.height;
    const row = h(
      "div",
      {
        class: "node",
        draggable: movable ? "true" : null,
        "data-level": depth,
        "data-label": label,
        ondragstart: (event) => {
          event.dataTransfer.setData("text/plain", JSON.stringify({ level: depth, label }));
          event.stopPropagation();
        },
        ondragover: (event) => {
          event.preventDefault();
          row.classList.add("over");
        },
        ondragleave: () => row.classList.remove("over"),
        ondrop: (event) => {
          event.preventDefault();
          row.classList.remove("over");
          dropped(JSON.parse(event.dataTransfer.getData("text/plain")), depth, label);
        },
      },
      h(
        "label",
        {},
        movable &&
          h("input", {
            type: "checkbox",
            checked: chosen.has(id),
            onchange: (event) => {
              if (event.target.checked) chosen.set(id, { level: depth, label });
              else chosen.delete(id);
              drawBar();
            },
          }),
        h("span", {}, found.shown?.[label] ?? label),
      ),
      h("span", {
        class: "bar",
        style: `width:${Math.round((records / Math.max(most, 1)) * 90)}px`,
      }),
      h("small", {}, number(records)),
    );
    if (depth === 0) return h("li", {}, row);
    const groups = new Map();
    for (const path of paths)
      groups.set(path[depth - 1], [...(groups.get(path[depth - 1]) ?? []), path]);
    const entries = [...groups.entries()];
    return h(
      "li",
      {},
      row,
      h(
        "ul",
        {},
        entries.slice(0, MOST).map(([below, inside]) => node(depth - 1, below, inside, most)),
        entries.length > MOST &&
          h("li", { class: "quiet" }, `… ${number(entries.length - MOST)} more`),
      ),
    );
  }
  async function dropped(what, depth, label) {
    const labels = chosen.has(key(what.level, what.label))
      ? picked().map((each) => each.label)
      : [what.label];
    if (depth === what.level + 1) await edit({ do: "move", level: what.level, labels, to: label });
    else if (depth === what.level && depth > 0 && !labels.includes(label))
      await edit({
        do: "join",
        level: depth,
        labels: [label, ...labels],
        to: listed([label, ...labels]),
      });
  }
  function draw() {
    const most = Object.values(found.counts).reduce((sum, count) => sum + count, 0);
    const where = place.scrollTop;
    fill(
      place,
      h("ul", { class: "tree" }, node(found.height, found.paths[0].at(-1), found.paths, most)),
    );
    place.scrollTop = where;
    drawBar();
  }
  const whole = h("div", { tabindex: "-1", class: "editor" }, bar, place);
  draw();
  return { element: whole, edit, undo, redo };
}
