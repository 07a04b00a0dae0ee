// The searches of a study: each with its progress and its buttons, and two of them compared.
import { attempt, get, post, query, removeWithUndo } from "./api.js";
import { button, defined, error, fill, h, number, plural, select, table } from "./dom.js";
import { DEFAULT, PROVING, system } from "./search-settings.js";
import { inWords, titleOf } from "./settings.js";
import { go, here, measure, state } from "./state.js";

// How the status of a job is coloured.
const LOOK = { done: "good", failed: "bad", killed: "bad", interrupted: "bad", queued: "wait" };
const WORDS = {
  queued: "queued",
  running: "running",
  done: "done",
  stopped: "stopped, best so far kept",
  failed: "failed",
  killed: "killed",
  interrupted: "interrupted",
};

// How far a search is: what it does, how many of what, and how long it will take where that can be said.
// A search of a lattice without a proof ends when it finds nothing better: the size of the lattice says nothing of it.
const endless = (job) =>
  job.kind === "search" &&
  system(job.settings?.system ?? DEFAULT).algorithms.some((each) => PROVING.includes(each)) &&
  Boolean(job.settings?.algorithm) &&
  !PROVING.includes(job.settings.algorithm);

export function howFar(progress, open) {
  const { stage, done, total, unit, seconds } = progress;
  if (!total || stage?.startsWith("reading")) return `${stage}, ${seconds.toFixed(0)} s`;
  if (open) return `${stage}: ${number(done)} ${unit}, ${seconds.toFixed(0)} s`;
  const left = unit === "generations" && done > 4 ? (seconds * (total - done)) / done : null;
  const rest =
    left === null
      ? ""
      : `, about ${left < 60 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`} left`;
  return (
    `${stage}: ${number(done)} of ` +
    `${unit === "nodes" ? "at most " : ""}${number(total)} ${unit}, ` +
    `${seconds.toFixed(0)} s${stage === "searching" ? rest : ""}`
  );
}

/**
 * A search in the list: what was looked for, how far it is, what can be done with it.
 * @param {any} job
 * @param {{stopping: Set<string>, redraw: () => void}} list
 */
export function jobRow(job, { stopping, redraw }) {
  const progress = job.progress;
  const act = async (what) => {
    const next = await attempt(() => post(`${here()}/jobs/${job.id}/${what}`));
    if (next) {
      state.jobs.set(job.id, next);
      redraw();
    }
  };
  return h(
    "div",
    { class: "job", "data-job": job.id, "data-status": job.status },
    h(
      "div",
      {},
      h("b", {}, job.kind === "search" ? inWords(job.settings) : titleOf(job)),
      " ",
      h(
        "span",
        {
          class: `badge ${LOOK[job.status] ?? ""}`,
        },
        WORDS[job.status] ?? job.status,
        job.ahead ? ` behind ${job.ahead}` : "",
      ),
      " ",
      h(
        "small",
        {},
        job.kind === "search" && `${titleOf(job)}. `,
        job.found
          ? `${plural(job.found.points, "point")}: ${job.found.how}`
          : progress
            ? howFar(progress, endless(job))
            : "",
      ),
    ),
    h(
      "div",
      { class: "row" },
      ["running", "queued"].includes(job.status) &&
        button(
          stopping.has(job.id) ? "Stopping …" : "Stop",
          () => {
            stopping.add(job.id);
            redraw();
            act("stop");
          },
          {
            class: "small",
            disabled: stopping.has(job.id),
            title: "Stop and keep the best so far",
          },
        ),
      ["stopped", "killed", "interrupted", "failed"].includes(job.status) &&
        button("Run again", () => act("again"), {
          class: "small",
          title: system(job.settings?.system ?? DEFAULT).resumable
            ? "The search continues where it stopped"
            : "It starts from the beginning",
        }),
      job.front &&
        button("Explore →", () => go({ step: "explore", job: job.id, point: null }), {
          class: "small main",
        }),
      !["running", "queued"].includes(job.status) &&
        button(
          "✕",
          () =>
            removeWithUndo(`${here()}/jobs/${job.id}`, `${titleOf(job)} was deleted.`, async () => {
              state.jobs.delete(job.id);
              const back = (await attempt(() => get(`${here()}/jobs`)))?.find(
                (each) => each.id === job.id,
              );
              if (back) state.jobs.set(job.id, back);
              redraw();
            }),
          {
            class: "plain small danger",
            "aria-label": `Delete ${titleOf(job)}`,
            title: "Delete this search and its front",
          },
        ),
    ),
    job.status === "running" &&
      h(
        "progress",
        endless(job)
          ? { "aria-label": "Progress" }
          : {
              max: progress?.total ?? 1,
              value: progress?.done ?? null,
              "aria-label": "Progress",
            },
      ),
    job.error && h("div", { style: "grid-column:1/-1" }, error(job.error)),
  );
}

/** @param {any[]} jobs
 * @param {HTMLElement} compared where the comparison is shown */
export function comparison(jobs, compared) {
  const ended = jobs.filter((job) => job.front && job.kind === "search");
  if (ended.length < 2) return null;
  const names = ended.map((job) => [job.id, titleOf(job)]);
  const one = select(names, names[1][0], () => {}, { "aria-label": "One search" });
  const two = select(names, names[0][0], () => {}, { "aria-label": "Another search" });
  return h(
    "div",
    { style: "margin-top:.8rem" },
    h(
      "div",
      { class: "row" },
      "Compare",
      one,
      "with",
      two,
      button(
        "Compare",
        async () => {
          const found = await attempt(
            () => get(`${here()}/fronts${query({ one: one.value, two: two.value })}`),
            compared,
          );
          if (!found) return;
          fill(
            compared,
            h(
              "p",
              { class: "quiet" },
              "Compared by what both were searched for: " +
                `${found.objectives.map((name) => measure(name).title).join(" and ")}.`,
            ),
            table(
              "Two searches",
              ["figure", ...[one, two].map((each) => each.selectedOptions[0].textContent)],
              [
                ["points", ...found.points.map(number)],
                [
                  defined(
                    "hypervolume",
                    "The share of the box around both fronts that a front dominates; more is better",
                  ),
                  ...found.hypervolume.map((value) => value.toFixed(4)),
                ],
                [
                  defined("dominated by the other", "Points that the other front dominates"),
                  ...found.dominated.map(number),
                ],
                ["also in the other", number(found.shared), number(found.shared)],
              ],
            ),
          );
        },
        { class: "small" },
      ),
    ),
    compared,
  );
}
