// How the values of one column may be joined by a search over cuts, and its own rule for missing values.
import { attempt, changeStudy, get, query } from "./api.js";
import { button, field, h, plural, select } from "./dom.js";
import { here, state } from "./state.js";

const BY = {
  given: "This is the order you gave.",
  value: "Numbers are ordered by value.",
  tree: "The order is that of the hierarchy file.",
  alphabet:
    "No order is declared, so these values are in alphabetical order, and " +
    "neighbours in that order are joined. If they have a natural order (small, " +
    "medium, large), arrange them in it.",
};
const MOST = 2000;
const lines = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

export async function editJoining(column, saved) {
  const found = await attempt(() =>
    get(`${here()}/order${query({ column })}`, "reading the values …"),
  );
  if (!found) return;
  const now = state.declared.study.columns[column];
  const says = h("div", {});
  const order = h("textarea", {
    rows: Math.min(Math.max(found.order.length, 3), 14),
    id: "order",
    "aria-label": `Values of ${column} in order, one per line`,
    spellcheck: "false",
  });
  order.value = found.order.slice(0, MOST).join("\n");
  const before = order.value;
  const breaks = h("input", {
    value: (now.breaks ?? []).join(", "),
    size: 30,
    id: "breaks",
    placeholder: "anywhere",
  });
  const bound = select(
    [
      ["", `default (${found.has_tree ? "only whole groups of the tree" : "any neighbours"})`],
      ["true", "only whole groups of the tree"],
      ["false", "any neighbours"],
    ],
    now.constrained ?? "",
    () => {},
    { id: "constrained" },
  );
  const missing = select(
    [
      ["", "as for the whole table"],
      ["drop", "exclude the record"],
      ["category", "a separate category"],
      ["wildcard", "matches anything"],
    ],
    now.missing ?? "",
    () => {},
  );
  const drop = button("Remove my order", () => keep({ order: undefined }), {
    class: "small plain",
  });

  async function keep(changes) {
    const columns = structuredClone(state.declared.study.columns);
    columns[column] = {
      ...columns[column],
      constrained: bound.value === "" ? undefined : bound.value === "true",
      missing: missing.value || undefined,
      ...changes,
    };
    const next = await attempt(() => changeStudy({ columns }, "checking …"), says);
    if (!next) return;
    dialog.close();
    saved();
  }
  function given() {
    const numbers = breaks.value.split(/[,;\s]+/).filter(Boolean);
    return {
      ...(order.value === before ? {} : { order: lines(order.value) }),
      breaks: numbers.length
        ? numbers.map((each) => (Number.isFinite(Number(each)) ? Number(each) : each))
        : undefined,
    };
  }
  const dialog = h(
    "dialog",
    { id: "joining", "aria-label": `Order of ${column}`, onclose: () => dialog.remove() },
    h("h2", {}, "Order of ", column),
    h("p", {}, BY[found.by]),
    says,
    found.order.length > MOST
      ? h(
          "p",
          { class: "quiet" },
          `${plural(found.order.length, "value")}: too many to order by hand.`,
        )
      : !found.numbers &&
          h(
            "div",
            {},
            order,
            h("p", { class: "quiet" }, h("small", {}, "One value per line, each listed once.")),
          ),
    found.by === "given" && drop,
    h(
      "div",
      { class: "row top", style: "margin:.6rem 0 1rem" },
      field("Cuts may join", bound, "Whether groups must be nodes of the hierarchy"),
      found.numbers &&
        field(
          "Split only at these numbers",
          breaks,
          "Breaks in ascending order, separated by commas; for columns with thousands of values",
        ),
      field("A missing value here means", missing, "A different rule for this column"),
    ),
    h(
      "div",
      { class: "row foot" },
      button("Use this", () => keep(given()), { class: "main", id: "keep-order" }),
      button("Cancel", () => dialog.close(), { class: "plain" }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
