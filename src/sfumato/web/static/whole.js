// How unique records are over all columns that are released, and how many of these no figure counts.
import { get, query } from "./api.js";
import { fill, h, percent, plural } from "./dom.js";
import { here, state } from "./state.js";

export function wholeSentence(whole) {
  const names = whole.columns_in_no_figure;
  const [be, them] = names.length === 1 ? ["is", "it"] : ["are", "them"];
  const share = whole.quasi_identifiers_and_kept.unique_share;
  const most = state.declared.study.policy?.uniques ?? 0.001;
  return h("p", { class: share > most ? "warning all-columns" : "quiet all-columns", title: names.length ? `Not counted: ${names.join(", ")}` : null },
    names.length ? `${plural(names.length, "column")} ${be} released unchanged and ${be} not counted in any figure; with ${them} ${percent(share)} of the records are unique.`
      : `Every released column is counted in the figures; ${percent(share)} of the records are unique.`);
}

// The same for a point that is not released yet; `current` says whether it is still looked at.
export async function drawWhole(place, offer, id, current) {
  fill(place, h("p", { class: "quiet" }, "Counting over all released columns …"));
  const found = await get(`${here()}/jobs/${state.job}/points/${id}/whole${query(offer ? { size: offer.suppress_below, diversity: offer.diversity_below } : {})}`).catch((problem) => {
    if (!problem.found) throw problem;
    return null;
  });
  if (current()) fill(place, found && wholeSentence(found));
}
