// A front in words: which searches there are to look at, and what is known of the points of one.
import { field, h, number, percent, plural, select } from "./dom.js";
import { inWords, titleOf } from "./settings.js";
import { go, state } from "./state.js";

export const chooser = (jobs) =>
  field(
    "Search",
    select(
      jobs.map((job) => [
        job.id,
        `${job.kind === "search" ? inWords(job.settings) : titleOf(job)} ` +
          `(${job.found?.points === undefined ? "no points yet" : plural(job.found.points, "point")})`,
      ]),
      state.job,
      (job) => go({ job, point: null }),
      { id: "chooser" },
    ),
  );

// What the points are, in a sentence that says no more than is proven.
export function aboutFront(front, searched) {
  const many = plural(front.points.length, "release");
  const first = front.exact
    ? `${many} of ${number(front.rows)} records, complete: no other generalization of ` +
      "the lattice is better in every figure."
    : `The best ${many} ` +
      `${front.stopped ? "found before the search was stopped" : "that the search found"}, ` +
      `of ${number(front.rows)} records: none of them beats another, and others may ` +
      "beat them.";
  return h(
    "p",
    { class: "quiet", id: "about-front" },
    first,
    front.left_out > 0 &&
      h(
        "b",
        { id: "front-left-out" },
        ` ${number(front.left_out)} of ${number(front.left_out + front.rows)} records ` +
          `of the source (${percent(front.left_out / (front.left_out + front.rows))}) are ` +
          "left out because of missing values, and count as lost.",
      ),
    ` Found: ${front.how}.`,
    searched && ` Searched for: ${inWords(searched.settings)}.`,
  );
}
