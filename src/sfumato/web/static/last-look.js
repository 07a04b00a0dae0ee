// The last look before a release: column by column, what the policy says, earlier releases, ten rows. Nothing is kept.
import { attempt, post } from "./api.js";
import { button, fill, h, leftOut, number, percent, plural, table } from "./dom.js";
import { here } from "./state.js";

const ROLES = {
  identifier: "an identifier",
  drop: "as declared",
  vital: "it defines a group",
  sensitive: "sensitive",
  weight: "a weight",
};

export function lastLook(asked) {
  const place = h("div", { id: "look", "aria-live": "polite" });
  const start = button("Look at it first", look, {
    id: "last-look",
    title: "Everything is made and measured as for a release, and deleted again",
  });
  async function look() {
    start.disabled = true;
    fill(place, h("p", { class: "quiet" }, "Making the release and measuring it …"));
    const found = await attempt(
      () => post(`${here()}/look`, asked(), "measuring the release …"),
      place,
    );
    start.disabled = false;
    if (found) fill(place, drawn(found));
  }
  return h("div", { style: "margin-top:.8rem" }, start, place);
}

function drawn(found) {
  const unchanged = (column) =>
    column.entry?.words === "Unchanged." || column.entry?.done === "kept";
  const [recoded, kept, held] = [
    (column) => column.released && !unchanged(column),
    (column) => column.released && unchanged(column),
    (column) => !column.released,
  ].map((test) => found.columns.filter(test));
  const rows = [...recoded, ...kept, ...held].map((column) => [
    h("td", {}, h("b", {}, column.name)),
    h(
      "td",
      { class: "wrap" },
      column.released
        ? column.entry.words
        : h("span", {}, h("span", { class: "badge" }, "left out"), ` ${ROLES[column.role] ?? ""}`),
    ),
  ]);
  return [
    h(
      "div",
      { class: found.findings.length ? "warning" : "fine", id: "verdict" },
      h(
        "b",
        {},
        found.findings.length
          ? `The policy refuses this release: ${plural(found.findings.length, "rule")} broken.`
          : "The policy allows this release.",
      ),
      found.findings.map((finding) => h("span", {}, finding.what)),
    ),
    found.warnings.map((warning) => h("div", { class: "warning" }, warning)),
    h(
      "p",
      {},
      `The file ${found.data} would have ${plural(found.released, "record")} ` +
        `(${number(found.suppressed)} ` +
        `suppressed${leftOut(found.left_out, found.records)}, loss ` +
        `${percent(found.loss)}) and ${plural(recoded.length + kept.length, "column")}: ` +
        `${number(recoded.length)} changed, ${number(kept.length)} unchanged, ` +
        `${number(held.length)} left out.`,
    ),
    table("Columns of the release", ["column", "what is released"], rows),
    h("h3", { style: "margin-top:.8rem" }, "Ten of its rows"),
    h(
      "p",
      { class: "quiet" },
      h("small", {}, "Sensitive columns are masked here, not in the file."),
    ),
    table(
      "Rows of the release",
      found.rows.columns,
      found.rows.rows.map((row) => row.map((cell) => cell ?? "–")),
    ),
  ];
}
