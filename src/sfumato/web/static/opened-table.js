// The table that was opened: its first rows, its columns, and the names of columns that a file lacks.
import { attempt, get, removeWithUndo } from "./api.js";
import { spread } from "./charts/bars.js";
import { button, error, fill, h, number, percent, plural, table } from "./dom.js";
import { go, here, state } from "./state.js";

// A file without a line of names: whoever knows them gives them here, and the columns are looked at anew by name.
function headless(columns, reopen) {
  const { data } = state.declared.study;
  const begun =
    state.declared.reviewed || [...state.jobs.values()].some((job) => job.study === state.study);
  if (
    begun ||
    data.header !== false ||
    !columns.every((name, place) => name === `column${place + 1}`)
  )
    return null;
  const says = h("div", {});
  const names = h("textarea", { rows: 2, id: "names", placeholder: "age, sex, occupation, …" });
  const use = async () => {
    const given = names.value
      .split(/[,;\t\n]/)
      .map((name) => name.trim())
      .filter(Boolean);
    if (given.length !== columns.length || new Set(given).size < given.length) {
      fill(
        says,
        error({
          what: `${plural(new Set(given).size, "different name")} for ${plural(columns.length, "column")}`,
          expected: "one name for each column",
          try: "list all of them in order, with commas between",
        }),
      );
      return;
    }
    const before = state.study;
    const { path, separator, encoding, decimal } = data;
    if (await reopen({ path, header: false, names: given, separator, encoding, decimal }))
      await removeWithUndo(`/studies/${before}`, "The study without names was deleted.", () =>
        go({ step: "open" }),
      );
  };
  return h(
    "div",
    { class: "warning", id: "headless" },
    h("b", {}, "The file has no line with the names of its columns."),
    h(
      "span",
      {},
      "They are called column1, column2, … until you name them. Names help to " +
        "recognise what each column is, and stand in the release.",
    ),
    says,
    h(
      "label",
      { class: "field", style: "width:100%" },
      h("span", {}, "Names in order, with commas between"),
      names,
    ),
    h("div", {}, button("Use these names", use, { class: "small", id: "use-names" })),
  );
}

/**
 * @param {HTMLElement} place
 * @param {(body: any) => Promise<boolean>} reopen opens the file once more, with other settings
 */
export async function look(place, reopen) {
  const mine = state.study;
  fill(place, h("div", { class: "card empty" }, "Looking at the table …"));
  const [preview, profile] = await Promise.all([
    attempt(() => get(`${here()}/preview`)),
    attempt(() => get(`${here()}/profile`, "profiling the columns …")),
  ]);
  if (!preview || !profile || state.study !== mine || !state.declared) {
    fill(place);
    return;
  }
  const all = state.declared?.combinations ?? [];
  const single = all.find((each) => each.columns.length === all.at(-1).columns.length);
  const numeric = new Set(
    profile.columns
      .filter((column) => ["whole", "number"].includes(column.kind))
      .map((column) => column.name),
  );
  fill(
    place,
    h(
      "div",
      { class: "card" },
      h(
        "div",
        { class: "row spread" },
        h(
          "h2",
          {},
          state.declared.name,
          " ",
          h(
            "span",
            { class: "badge" },
            plural(profile.rows, "row"),
            " · ",
            plural(profile.columns.length, "column"),
          ),
        ),
        button("Declare the columns →", () => go({ step: "declare" }), {
          class: "main",
          id: "to-declare",
        }),
      ),
      headless(preview.columns, reopen),
      single &&
        single.unique > 0 &&
        h(
          "p",
          { id: "singled-out" },
          `By ${single.columns.length === 1 ? "one column" : "these columns"} alone, `,
          h("b", {}, single.columns.join(" × ")),
          `, ${percent(single.unique)} of the records are unique; by all columns that may ` +
            `be released, ${percent(state.declared.unique)}.`,
        ),
      table(
        "First rows",
        preview.columns.map((text) => ({ text, class: numeric.has(text) ? "number" : null })),
        preview.rows.map((row) =>
          row.map((cell, at) =>
            h(
              "td",
              { class: numeric.has(preview.columns[at]) ? "number" : null },
              cell === null ? h("span", { class: "quiet", title: "missing" }, "–") : cell,
            ),
          ),
        ),
      ),
    ),
    h(
      "div",
      { class: "profiles" },
      profile.columns.map((column) =>
        h(
          "div",
          { class: "profile" },
          h("b", { title: column.name }, column.name),
          spread(column.spread),
          h(
            "small",
            { title: "Different values; how many records have none; how many values occur once" },
            plural(column.distinct, "value"),
            column.missing ? `, ${number(column.missing)} missing` : "",
            column.uniques ? `, ${number(column.uniques)} once` : "",
            column.na_words.length + column.missing_candidates.length > 0 &&
              h(
                "div",
                {},
                "perhaps missing: ",
                [...column.na_words, ...column.missing_candidates].join(", "),
              ),
          ),
        ),
      ),
    ),
  );
}
