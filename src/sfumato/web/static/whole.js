// How unique records are over all columns that are released, and how many of these no figure counts.
import { get, pointAddress } from "./api.js";
import { figure, fill, h, number, percent, plural } from "./dom.js";
import { state } from "./state.js";

// What figures count: records, or persons where rows belong to persons.
const counted = (found) => found.counted ?? "records";
const noun = (found) => counted(found).slice(0, -1);

// Whether more records are unique over what outsiders may know than the policy allows.
const aboveLimit = (whole) =>
  whole.quasi_identifiers_and_kept.unique_share > (state.declared.study.policy?.uniques ?? 0.001);

function sentence(whole) {
  const names = whole.columns_in_no_figure;
  const [be, them] = names.length === 1 ? ["is", "it"] : ["are", "them"];
  const share = percent(whole.quasi_identifiers_and_kept.unique_share);
  return h(
    "p",
    {
      class: aboveLimit(whole) ? "warning all-columns" : "quiet all-columns",
      title: names.length ? `Not counted: ${names.join(", ")}` : null,
    },
    names.length
      ? `${plural(names.length, "column")} ${be} released and ${be} not counted in any ` +
          `figure; with ${them}, sensitive columns aside, ${share} of the ` +
          `${counted(whole)} are unique.`
      : "Every released column is counted in the figures; sensitive columns aside, " +
          `${share} of the ${counted(whole)} are unique.`,
  );
}

// A line for each released column that singles out too many records by itself.
function identifying(whole) {
  const limit = state.declared.study.policy?.identifying ?? 0.05;
  return Object.entries(whole.own_values ?? {})
    .filter(([, own]) => own.unique_share > limit && !own.category)
    .map(([name, own]) =>
      h(
        "p",
        { class: "warning identifying" },
        `${name} has a value that no other ${noun(own)} has for ` +
          `${percent(own.unique_share)} of the ${counted(own)}. An attacker who knows the ` +
          `value finds the ${noun(own)}.`,
      ),
    );
}

// The sentence, and the figures over all released columns together, sensitive ones included.
export function wholeFigures(whole) {
  const all = whole.all_columns;
  const names = whole.columns_in_no_figure;
  return h(
    "div",
    { class: "over-all-columns" },
    sentence(whole),
    identifying(whole),
    h("h3", {}, `Over all ${plural(all.columns, "released column")} together`),
    h(
      "div",
      { class: "tiles" },
      figure(
        number(all.unique),
        `unique ${counted(whole)} (${percent(all.unique_share)})`,
        whole.counted
          ? "Persons of whom a released record equals that of no other person in every " +
              "released column, sensitive ones included."
          : "Records that no other released record equals in every released column, sensitive ones included.",
      ),
      figure(
        number(all.smallest),
        "smallest class",
        `The fewest released ${counted(whole)} that are equal in every released column.`,
      ),
      figure(
        percent(all.expected_correct_matches),
        "expected correct matches",
        `The share of the released ${counted(whole)} that would be matched correctly by ` +
          "someone who knows every released column of everybody.",
      ),
      figure(
        `${number(names.length)} of ${number(all.columns)}`,
        "columns in no figure",
        names.length
          ? `Released and counted in no other figure: ${names.join(", ")}.`
          : "Every released column is counted in some other figure.",
      ),
    ),
  );
}

// The same in a line, for a list.
export function wholeLine(whole) {
  const all = whole.all_columns;
  return h(
    "p",
    { class: aboveLimit(whole) ? "warning all-columns" : "quiet all-columns" },
    `Over all ${plural(all.columns, "released column")} together: ` +
      `${plural(all.unique, `unique ${noun(whole)}`)} (${percent(all.unique_share)}), ` +
      `smallest class ${number(all.smallest)}, expected correct matches ` +
      `${percent(all.expected_correct_matches)}; ` +
      `${plural(whole.columns_in_no_figure.length, "column")} in no figure.`,
  );
}

// The figures of a point that is not released yet; `current` says whether it is still looked at.
export async function drawWhole(place, offer, id, current) {
  fill(place, h("p", { class: "quiet" }, "Counting over all released columns …"));
  const found = await get(pointAddress(id, offer, "/whole")).catch((problem) => {
    if (!problem.found) throw problem;
    return null;
  });
  if (current()) fill(place, found && wholeFigures(found));
}
