// A group of people to protect: who is in it, which areas, what an attacker can learn from, and what is not released.
import { attempt, changeStudy, get } from "./api.js";
import { button, error, field, fill, h, select } from "./dom.js";
import { go, here, state, tell } from "./state.js";

const listed = (text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);

export async function declareGroups(saved = () => go({ step: "search" })) {
  const [preview, files] = await Promise.all([
    attempt(() => get(`${here()}/preview?rows=1`)),
    attempt(() => get("/files")),
  ]);
  const columns = preview?.columns ?? [];
  const now = state.declared.study.groups ?? {};
  if (now.recipe)
    return h(
      "div",
      { class: "card" },
      h("h2", {}, "The group"),
      h("p", {}, `The group is declared by the recipe “${now.recipe}” of the run file.`),
      withheld(columns, now, saved),
    );
  const [group, conditions] = Object.entries(now.vital ?? {})[0] ?? ["", [{}]];
  const [column, values] = Object.entries(conditions[0] ?? {})[0] ?? ["", ""];
  const name = h("input", { value: group, id: "group-name", size: 14, placeholder: "military" });
  const where = select(["", ...columns], column, () => drawWithheld(), { id: "group-column" });
  const which = h("input", {
    value: [values].flat().join(", "),
    id: "group-values",
    size: 18,
    placeholder: "55*, 3..7",
  });
  const areas = new Set(now.area ?? []);
  const attributes = new Map(
    Object.entries(now.attributes ?? {}).map(([, attribute]) => [
      attribute.column,
      Boolean(attribute.ordinal),
    ]),
  );
  const auxiliary = h("input", {
    value: now.auxiliary?.[0]?.path ?? "",
    id: "group-auxiliary",
    list: "auxiliary-files",
    size: 24,
    placeholder: "a file of the folder",
  });
  const withhold = new Set(now.withhold ?? []);
  const hidden = h("div", { class: "pills", id: "group-withhold" });
  const others = select(
    [
      ["", "choose …"],
      ["release", "are released"],
      ["withhold", "are left out"],
    ],
    now.other_columns ?? "",
    () => {},
    { id: "group-others" },
  );
  const says = h("div", {});
  const roled = (each) =>
    ["quasi_identifier", "sensitive", "label", "weight", "other"].includes(
      state.declared.study.columns[each]?.role,
    );
  const pill = (held, each) =>
    h(
      "label",
      {},
      h("input", {
        type: "checkbox",
        checked: held.has(each),
        onchange: (event) => {
          if (event.target.checked) held.set ? held.set(each, true) : held.add(each);
          else held.delete(each);
        },
      }),
      each,
    );

  // The column that names the group is never released: its box is ticked and stays so.
  function drawWithheld() {
    fill(
      hidden,
      columns.map((each) =>
        each === where.value
          ? h(
              "label",
              { title: "It says who is in the group, so it is never released" },
              h("input", { type: "checkbox", checked: true, disabled: true }),
              each,
            )
          : pill(withhold, each),
      ),
    );
  }
  // What is still to be filled in, in the words of the form; what it says goes nowhere before that.
  function lacking() {
    const roles = state.declared.study.columns;
    const known = (each) =>
      each === where.value ||
      areas.has(each) ||
      attributes.has(each) ||
      withhold.has(each) ||
      roles[each];
    const twice = columns.filter(
      (each) => each === where.value && (areas.has(each) || attributes.has(each)),
    );
    return [
      !where.value && "the column that says who is in the group",
      !listed(which.value).length && "the values of members",
      !auxiliary.value.trim() && "the file that the attacker learns from",
      !areas.size && "the columns that distinguish areas",
      !attributes.size && "the characteristics that both files have",
      !others.value && !columns.every(known) && "whether the other columns are released",
      twice.length > 0 &&
        `another area or characteristic than ${twice[0]}, which says who is in the group`,
    ].filter(Boolean);
  }
  async function keep() {
    const open = lacking();
    if (open.length) {
      fill(says, error({ what: "the group cannot be kept yet", expected: open.join("; ") }));
      return;
    }
    if (roled(where.value)) withhold.add(where.value);
    const known = Object.fromEntries(
      Object.values(now.attributes ?? {}).map((attribute) => [attribute.column, attribute]),
    );
    const { [group]: _, ...otherGroups } = now.vital ?? {};
    const { [column]: __, ...otherConditions } = conditions[0] ?? {};
    const groups = {
      ...now,
      vital: {
        [name.value.trim() || "group"]: [
          { [where.value]: listed(which.value), ...otherConditions },
          ...conditions.slice(1),
        ],
        ...otherGroups,
      },
      area: columns.filter((each) => areas.has(each)),
      attributes: Object.fromEntries(
        [...attributes.keys()].map((each) => [
          each,
          known[each] ?? { column: each, ordinal: true, quantiles: 3 },
        ]),
      ),
      auxiliary: auxiliary.value.trim()
        ? [
            { ...(now.auxiliary?.[0] ?? {}), path: auxiliary.value.trim() },
            ...(now.auxiliary ?? []).slice(1),
          ]
        : [],
      withhold: [...withhold],
      other_columns: others.value || undefined,
    };
    const found = await attempt(() => changeStudy({ groups }, "checking …"), says);
    if (found) {
      fill(says);
      tell("frame");
      saved();
    }
  }
  drawWithheld();
  return h(
    "div",
    { class: "card", id: "group-form" },
    h("h2", {}, "The group, and what an attacker can learn from"),
    h(
      "p",
      {},
      "An attacker learns from another file, in which the group is named, how its " +
        "members look, and counts such people per area of your file. Say who is in the " +
        "group, and which columns both files share.",
    ),
    says,
    h(
      "div",
      { class: "row top" },
      field("Name of the group", name),
      field("Members have in column", where),
      field(
        "one of the values",
        which,
        "Values with commas between; 55* is what starts with 55, 3..7 a range",
      ),
      field(
        "The attacker learns from",
        auxiliary,
        "Another file with the same columns, in which the group can be recognised",
      ),
    ),
    h(
      "datalist",
      { id: "auxiliary-files" },
      (files?.files ?? [])
        .filter((file) => file.kind === "table")
        .map((file) => h("option", { value: file.path })),
    ),
    h("h3", { style: "margin-top:.8rem" }, "Areas are told apart by"),
    h(
      "div",
      { class: "pills", id: "group-area" },
      columns.map((each) => pill(areas, each)),
    ),
    h("h3", { style: "margin-top:.8rem" }, "Characteristics that both files have"),
    h(
      "div",
      { class: "pills", id: "group-attributes" },
      columns.map((each) => pill(attributes, each)),
    ),
    h("h3", { style: "margin-top:.8rem" }, "Columns that are not released"),
    hidden,
    h("div", { class: "row top", style: "margin:.8rem 0" }, field("Other columns", others)),
    h(
      "div",
      { class: "row" },
      button("Keep and go on →", keep, { class: "main", id: "keep-groups" }),
      Object.keys(now).length > 0 &&
        button("Search as it is →", () => saved(), { class: "plain", id: "to-search" }),
    ),
  );
}

// Columns that a release leaves out, for a group that a recipe declares.
export function withheld(columns, now, saved) {
  const held = new Set(now.withhold ?? []);
  const says = h("div", {});
  return h(
    "div",
    {},
    says,
    h("h3", {}, "Columns that are not released"),
    h(
      "div",
      { class: "pills", id: "group-withhold" },
      columns.map((each) =>
        h(
          "label",
          {},
          h("input", {
            type: "checkbox",
            checked: held.has(each),
            onchange: (event) => {
              if (event.target.checked) held.add(each);
              else held.delete(each);
            },
          }),
          each,
        ),
      ),
    ),
    h("div", { style: "height:.8rem" }),
    button(
      "Keep and go on →",
      async () => {
        const found = await attempt(
          () => changeStudy({ groups: { ...now, withhold: [...held] } }, "checking …"),
          says,
        );
        if (found) {
          tell("frame");
          saved();
        }
      },
      { class: "main", id: "keep-groups" },
    ),
    " ",
    button("Search as it is →", () => saved(), { class: "plain", id: "to-search" }),
  );
}
