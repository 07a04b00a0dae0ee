// A hierarchy with its levels as columns, as a table: each label with its records; names can be changed where they
// stand.
import { fill, h, number, plural } from "./dom.js";

const MOST = 150; // rows; the picture and the tree show the rest

/**
 * @param {any} found
 * @param {((level: number, label: string, to: string) => void) | null} [rename]
 */
export function levelsTable(found, rename = null) {
  const paths = found.paths.slice(0, MOST);
  const last = found.height;
  const records = found.levels.map(() => new Map());
  for (const path of found.paths)
    path.forEach((label, level) =>
      records[level].set(label, (records[level].get(label) ?? 0) + (found.counts[path[0]] ?? 0)),
    );
  const head = h(
    "tr",
    {},
    found.levels.map((each, level) =>
      h(
        "th",
        { scope: "col" },
        level === 0 ? "values" : level === last ? "all" : `level ${level}`,
        h("small", {}, ` ${number(each.labels)}`),
      ),
    ),
  );
  const rows = paths.map((path, row) =>
    h(
      "tr",
      {},
      path.map((label, level) => {
        if (row && level && sameAbove(paths[row - 1], path, level)) return null;
        let span = 1;
        if (level)
          while (
            row + span < paths.length &&
            sameAbove(paths[row + span - 1], paths[row + span], level)
          )
            span += 1;
        return cell(label, level, span);
      }),
    ),
  );
  function cell(label, level, span) {
    const text = h("span", {}, found.shown?.[label] ?? label);
    const box = h(
      "td",
      { rowspan: span > 1 ? span : null },
      text,
      h("small", {}, ` ${number(records[level].get(label))}`),
    );
    if (!rename || level === 0 || level === last) return box;
    const begin = () => {
      const input = h("input", {
        value: label,
        size: Math.max(label.length, 6),
        "aria-label": `New name of ${label}`,
        onkeydown: (event) => {
          if (event.key === "Enter") input.blur();
          if (event.key === "Escape") {
            event.stopPropagation();
            event.preventDefault();
            input.value = label;
            input.blur();
          }
        },
        onblur: () => {
          fill(box, text, h("small", {}, ` ${number(records[level].get(label))}`));
          const to = input.value.trim();
          if (to && to !== label) rename(level, label, to);
        },
      });
      fill(box, input);
      input.select();
    };
    box.title = "Double-click, or Enter, to give it another name";
    box.tabIndex = 0;
    box.addEventListener("dblclick", begin);
    box.addEventListener("keydown", (event) => {
      if (event.key === "Enter" && event.target === box) {
        event.preventDefault();
        begin();
      }
    });
    return box;
  }
  return h(
    "div",
    {
      class: "scroll levels",
      role: "region",
      tabindex: "0",
      id: "levels",
      "aria-label": "All levels as columns",
    },
    h("table", {}, h("thead", {}, head), h("tbody", {}, rows)),
    found.paths.length > MOST &&
      h(
        "p",
        { class: "quiet", style: "padding:.3rem .6rem" },
        `… ${plural(found.paths.length - MOST, "more value")}`,
      ),
  );
}

// Whether two rows that stand one under the other share a label of a level and all above it.
const sameAbove = (one, two, level) =>
  one.slice(level).every((label, place) => label === two[level + place]);
