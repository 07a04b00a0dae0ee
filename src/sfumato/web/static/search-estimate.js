// What a search will cost, in words.
import { button, byId, h, number, plural } from "./dom.js";
import { go, state } from "./state.js";

const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";

/**
 * A number of recodings; above 10¹² its order of magnitude.
 * @param {number} count
 */
export function many(count) {
  if (count <= 1e12) return number(count);
  const digits = [...String(Math.round(Math.log10(count)))];
  return `about 10${digits.map((digit) => SUPERSCRIPTS[Number(digit)]).join("")}`;
}

/**
 * How large a search is and how long it takes at most; for one that is too large, what to do instead.
 * @param {any} found
 * @param {(changes: any) => void} change
 */
export function estimateWords(found, change) {
  const size =
    `${plural(found.tuples, "distinct tuple")} of ${number(found.records)} records, ` +
    `${found.bytes < 1e5 ? "less than 0.1" : (found.bytes / 1e6).toFixed(1)} MB; a ` +
    `worker may use ${state.about.gigabytes} GB.`;
  const space = `${many(found.space)} ${found.unit}`;
  if (found.limit) {
    return h(
      "div",
      { class: "warning", id: "too-large" },
      h(
        "b",
        {},
        `The hierarchies have ${space} together (the choices of a level for each ` +
          `column), too many to search completely (at most ${number(found.limit)}).`,
      ),
      h(
        "span",
        {},
        "Each quasi-identifier multiplies the number. Search for the best without a " +
          "proof, or declare fewer quasi-identifiers: drop columns that nobody needs.",
      ),
      h(
        "div",
        { class: "row" },
        button("Best found, without a proof", () => change({ algorithm: found.instead }), {
          class: "small",
          id: "without-proof",
        }),
        button("Finer groups", () => byId("system-cuts").click(), {
          class: "small",
        }),
        button("Change the columns", () => go({ step: "declare" }), { class: "small" }),
      ),
    );
  }
  if (found.seconds === null) {
    return h(
      "small",
      { title: "The search ends when it finds nothing better" },
      `${space}; how long it takes shows only while it runs. Stopped, it keeps the best so far. ${size}`,
    );
  }
  const time =
    found.seconds < 60
      ? `${Math.max(Math.ceil(found.seconds), 1)} s`
      : `${Math.ceil(found.seconds / 60)} min`;
  const long = found.at_most
    ? `at most ${time} of processor time here, if every one is tried; how many the ` +
      "exact search needs shows only while it runs"
    : `about ${time} of processor time here`;
  return h(
    "small",
    { title: "Measured by two short searches of this table on this machine" },
    `${space[0].toUpperCase()}${space.slice(1)}; ${long}. ${size}`,
  );
}
