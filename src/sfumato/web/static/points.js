// The list of points: sorted by any figure, linked to the map, saved as CSV. One stop of the Tab key; arrows move
// in it.
import { saveCsv } from "./charts/saving.js";
import { button, fill, h, number, percent, plural, times } from "./dom.js";
import { valueText } from "./settings.js";
import { measure, state } from "./state.js";

const [ROWS, FEW] = [200, 24]; // rows of the list; of a large front few, because each selection lays them out anew

export function pointList(front, { names, title, says, choose, versus }) {
  const list = h("div", { class: "scroll", style: "max-height:340px", id: "points" });
  const counted = h("span", { class: "badge", id: "counted" });
  const byId = new Map(front.points.map((point) => [point.id, point]));
  let inside = null;
  let sort = { name: "id", up: true };
  const ratios = front.ratios ?? {}; // of each point: how many times the proven floor at its k it loses
  const columns = [
    "id",
    ...names.filter((name) => !measure(name).loss_of_points),
    "loss",
    ...(Object.keys(ratios).length ? ["ratio"] : []),
    "suppressed",
  ]; // one loss, in per cent
  const value = (point, name) =>
    name === "id"
      ? point.id
      : name === "loss"
        ? point.loss
        : name === "ratio"
          ? ratios[point.id]
          : name === "suppressed"
            ? point.suppressed
            : point.values[name];
  const text = (name, each) =>
    name === "loss"
      ? percent(each)
      : name === "ratio"
        ? times(each)
        : name === "id" || name === "suppressed"
          ? number(each)
          : valueText(name)(each);
  const heading = (name) =>
    name === "id"
      ? "point"
      : name === "loss"
        ? "loss"
        : name === "ratio"
          ? "× floor"
          : name === "suppressed"
            ? "suppressed"
            : title(name);

  function shown() {
    const found = front.points.filter((point) => inside === null || inside.has(point.id));
    if (sort.name !== "id" || !sort.up)
      found.sort(
        (a, b) => ((value(a, sort.name) ?? 0) - (value(b, sort.name) ?? 0)) * (sort.up ? 1 : -1),
      );
    return found;
  }
  function draw() {
    const found = shown();
    fill(
      counted,
      inside === null
        ? plural(found.length, "point")
        : `${number(found.length)} of ${number(front.points.length)} selected`,
    );
    const some = found.slice(0, front.points.length > ROWS ? FEW : ROWS);
    if (
      state.point !== null &&
      byId.has(state.point) &&
      !some.some((point) => point.id === state.point)
    )
      some.unshift(byId.get(state.point));
    fill(
      list,
      h(
        "table",
        {},
        h(
          "thead",
          {},
          h(
            "tr",
            {},
            columns.map((name) =>
              h(
                "th",
                {
                  scope: "col",
                  class: "number",
                  "aria-sort": sort.name === name ? (sort.up ? "ascending" : "descending") : null,
                },
                button(
                  [heading(name), sort.name === name ? (sort.up ? " ▲" : " ▼") : ""],
                  () => {
                    sort = { name, up: sort.name === name ? !sort.up : true };
                    draw();
                  },
                  { class: "head", title: says(name), tabindex: "-1", "data-sort": name },
                ),
              ),
            ),
            h("th", { scope: "col" }, h("span", { class: "unseen" }, "compare")),
          ),
        ),
        h(
          "tbody",
          {},
          some.map((point) =>
            h(
              "tr",
              {
                class: "pick",
                tabindex: point.id === (state.point ?? some[0].id) ? "0" : "-1",
                "data-point": point.id,
                "aria-selected": point.id === state.point ? "true" : null,
                onclick: () => choose(point.id),
                onkeydown: (event) => key(event, point.id),
              },
              columns.map((name) => h("td", { class: "number" }, text(name, value(point, name)))),
              h(
                "td",
                {},
                point.id === front.knee &&
                  h(
                    "span",
                    {
                      class: "badge",
                      title: `The knee ${front.knee_scale}: no recommendation, and elsewhere on another scale`,
                    },
                    "knee",
                  ),
                versus &&
                  button(
                    "compare",
                    (event) => {
                      event.stopPropagation();
                      versus(point.id);
                    },
                    {
                      class: "plain small",
                      tabindex: "-1",
                      title: "Compare with the chosen point, record by record (Shift+Enter)",
                      "aria-label": `compare point ${point.id} with the chosen one`,
                    },
                  ),
              ),
            ),
          ),
        ),
      ),
      found.length > some.length &&
        h(
          "p",
          { class: "quiet", style: "padding:.3rem .6rem" },
          `… ${number(found.length - some.length)} more: drag over the map to select a part`,
        ),
    );
  }
  function key(event, id) {
    if (event.key === "Enter") {
      if (event.shiftKey && versus) versus(id);
      else choose(id);
    }
    const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
    if (step) {
      event.preventDefault();
      event.currentTarget[step]?.focus();
    }
  }
  function mark() {
    const row = list.querySelector(`[data-point="${state.point}"]`);
    if (!row) {
      draw();
      return;
    }
    const before = list.querySelector("[aria-selected]");
    before?.removeAttribute("aria-selected");
    before?.setAttribute("tabindex", "-1");
    row.setAttribute("aria-selected", "true");
    row.setAttribute("tabindex", "0");
    if (
      row.offsetTop < list.scrollTop + 30 ||
      row.offsetTop + row.offsetHeight > list.scrollTop + list.clientHeight
    )
      list.scrollTop = Math.max(row.offsetTop - list.clientHeight / 2, 0);
  }
  const csv = button(
    "CSV",
    () =>
      saveCsv(
        columns,
        shown().map((point) => columns.map((name) => value(point, name))),
        "points.csv",
      ),
    { class: "plain small", "aria-label": "Save the points as CSV", "data-save": "csv" },
  );
  return {
    element: list,
    counted,
    csv,
    draw,
    mark,
    keep(next) {
      inside = next;
      draw();
    },
  };
}
