// Jobs as people call them, and what a search looked for in a line: the settings that it was started with.
import { number, percent } from "./dom.js";
import { measure, state, usualObjectives } from "./state.js";

const KINDS = {
  search: "Search",
  channel: "Randomized response",
  groups: "Protection of a group",
  publish: "Release",
};

// "Search 2": the second of its kind in its study, by the time it was added.
export function titleOf(job) {
  const alike = [...state.jobs.values()].filter(
    (each) => each.study === job.study && each.kind === job.kind && each.added <= job.added,
  );
  return `${KINDS[job.kind] ?? job.kind} ${alike.length}`;
}

// A value of a measure as people write it: a share in per cent.
export const valueText = (name) => (value) =>
  value === null || value === undefined
    ? "–"
    : measure(name).unit === "share"
      ? percent(value)
      : number(value);

export function inWords(settings = {}) {
  const objectives = (settings.objectives ?? usualObjectives()).map(
    (each) => measure(each.name ?? each).title,
  );
  const limits = Object.entries(settings.constraints ?? {}).map(
    ([name, value]) =>
      `${measure(name).title} ${measure(name).direction === "max" ? "at least" : "at most"} ${number(value)}`,
  );
  const share = settings.max_suppression ?? 0;
  return [
    { cuts: "Cuts", lattice: "Levels", local: "Local groups", cells: "Cells" }[
      settings.system ?? "lattice"
    ] ?? settings.system,
    settings.problem ? `problem ${settings.problem}` : objectives.join(" and "),
    share
      ? `at most ${percent(share, Number.isInteger(Math.round(share * 1e6) / 1e4) ? 0 : 1)} suppressed`
      : "nothing suppressed",
    ...limits,
  ].join(", ");
}
