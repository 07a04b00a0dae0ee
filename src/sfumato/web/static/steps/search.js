// Search: what to look for, how large that is, and what is at work; the front grows while it runs.
import { attempt, changeStudy, get, post, query, removeWithUndo, settled } from "../api.js";
import { cloud } from "../charts/cloud.js";
import {
  button,
  defined,
  error,
  field,
  fill,
  h,
  number,
  percent,
  plural,
  select,
  table,
  tabs,
} from "../dom.js";
import { channelForm, groupsForm } from "../other-searches.js";
import { inWords, titleOf } from "../settings.js";
import { go, headlines, here, measure, onChange, state, usualObjectives } from "../state.js";

// The systems that recode, in words; one that is registered and stands not here is called by its own name.
const SYSTEMS = {
  lattice: [
    "Same grouping for everyone, provably complete",
    "Each column is generalized to one level of its hierarchy. Every best release is found, with a proof.",
  ],
  unproven: [
    "Same grouping for everyone, the best found",
    "Each column is generalized to one level of its hierarchy. With the algorithm chosen under Advanced nothing proves that no release is better.",
  ],
  cuts: [
    "Finer groups, the best found",
    "Each column is cut where that costs least: less is lost, but nothing proves that no release is better.",
  ],
  local: [
    "Different groups for different records",
    "Records are grouped where they stand: the least detail is lost, and the same value may be released in several ways.",
  ],
  cells: [
    "Single cells suppressed",
    "Only the cells that make a record stand out are left out; all other values stay as they are.",
  ],
};
const ALGORITHMS = {
  exact: "exact: the complete front, proven",
  exhaustive: "exhaustive: every node",
  pbg_ea: "evolutionary: the best found",
  best_first: "best first: for very large lattices",
  memetic: "memetic: the best found",
  nsga2: "NSGA-II, as published",
};
const PROVING = ["exact", "exhaustive"];
const OTHERS = ["channel", "groups"]; // they have forms of their own
const system = (name) =>
  state.about.systems.find((each) => each.name === name) ?? { reads: [], algorithms: [] };
const WORDS = {
  queued: "queued",
  running: "running",
  done: "done",
  stopped: "stopped, best so far kept",
  failed: "failed",
  killed: "killed",
  interrupted: "interrupted",
};

export async function searchStep(place) {
  const says = h("div", {});
  const form = h("div", { class: "card" });
  const guess = h("div", { id: "estimate", style: "min-height:3rem;margin-bottom:.6rem" });
  const list = h("div", { class: "card" });
  const live = h("div", { class: "card" });
  const compared = h("div", {});
  let watched = null;
  let drawn = []; // the words of each point that is shown
  const chart = cloud({
    height: 340,
    label: "the front so far",
    xTitle: "information loss",
    yTitle: "",
    xText: (value) => percent(value, 0),
    yText: (value) => number(value),
    logY: true,
    says: (id) => drawn[id],
  });
  const caption = h("p", { class: "quiet" }, "The front appears here while a search runs.");
  chart.element.style.visibility = "hidden"; // its room is kept, so that nothing jumps when a front comes
  fill(live, h("h2", {}, "The front"), caption, chart.element);

  const settings = () => ({ ...state.declared.study.search });
  async function change(changes) {
    const before = settings();
    const turned = changes.system && changes.system !== (before.system ?? "lattice");
    const both = turned
      ? system(changes.system).reads.filter(
          (name) => name in before && system(before.system ?? "lattice").reads.includes(name),
        )
      : []; // the others belong to one system, and another refuses them
    const next = {
      ...(turned ? Object.fromEntries(both.map((name) => [name, before[name]])) : before),
      ...changes,
    };
    const found = await attempt(() => changeStudy({ search: next }), says);
    if (found) fill(says);
    draw();
    estimate();
  }
  // What keeps every search from starting: roles that nobody chose or confirmed.
  function blocked() {
    const open = state.declared.undecided?.length ?? 0;
    if (!open && state.declared.reviewed) return null;
    return h(
      "div",
      { class: "warning", id: "not-declared" },
      h(
        "b",
        {},
        open
          ? `${plural(open, "column")} ${open === 1 ? "has" : "have"} no role yet.`
          : "The roles are not confirmed yet.",
      ),
      h(
        "span",
        {},
        open
          ? "Nothing is searched or published until each column has a role."
          : "They are suggestions until you have looked at each.",
      ),
      h(
        "div",
        {},
        button("Declare the columns →", () => go({ step: "declare" }), { class: "small" }),
      ),
    );
  }
  const allow = () => {
    const start = document.getElementById("start");
    if (start) start.disabled = tooLarge || Boolean(blocked());
  };
  async function estimate() {
    const mine = ++estimates;
    tooLarge = false;
    allow();
    if (blocked()) {
      fill(guess, blocked());
      return;
    }
    if (!["lattice", "cuts"].includes(settings().system ?? "lattice")) {
      fill(guess);
      return;
    }
    fill(guess, h("small", {}, "Estimating …"));
    const found = await attempt(
      () => get(`${here()}/estimate`, "trying a few candidates …"),
      guess,
    );
    if (!found || mine !== estimates || found.space === null) return;
    const size = `${plural(found.tuples, "distinct tuple")} of ${number(found.records)} records, ${found.bytes < 1e5 ? "less than 0.1" : (found.bytes / 1e6).toFixed(1)} MB; a worker may use ${state.about.gigabytes} GB.`;
    const space = `${found.space > 1e12 ? `about 10${[...String(Math.round(Math.log10(found.space)))].map((digit) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[digit]).join("")}` : number(found.space)} ${found.unit}`;
    tooLarge = Boolean(found.limit);
    allow();
    if (tooLarge) {
      fill(
        guess,
        h(
          "div",
          { class: "warning", id: "too-large" },
          h(
            "b",
            {},
            `The hierarchies have ${space} together (the choices of a level for each column), too many to search completely (at most ${number(found.limit)}).`,
          ),
          h(
            "span",
            {},
            "Each quasi-identifier multiplies the number. Search for the best without a proof, or declare fewer quasi-identifiers: drop columns that nobody needs.",
          ),
          h(
            "div",
            { class: "row" },
            button("Best found, without a proof", () => change({ algorithm: found.instead }), {
              class: "small",
              id: "without-proof",
            }),
            button("Finer groups", () => document.getElementById("system-cuts").click(), {
              class: "small",
            }),
            button("Change the columns", () => go({ step: "declare" }), { class: "small" }),
          ),
        ),
      );
      return;
    }
    if (found.seconds === null) {
      fill(
        guess,
        h(
          "small",
          { title: "The search ends when it finds nothing better" },
          `${space}; how long it takes shows only while it runs. Stopped, it keeps the best so far. ${size}`,
        ),
      );
      return;
    }
    const time =
      found.seconds < 60
        ? `${Math.max(Math.ceil(found.seconds), 1)} s`
        : `${Math.ceil(found.seconds / 60)} min`;
    const long = found.at_most
      ? `at most ${time} of processor time here, if every one is tried; how many the exact search needs shows only while it runs`
      : `about ${time} of processor time here`;
    fill(
      guess,
      h(
        "small",
        { title: "Measured by two short searches of this table on this machine" },
        `${space[0].toUpperCase()}${space.slice(1)}; ${long}. ${size}`,
      ),
    );
  }
  const seconds = h("input", { type: "number", min: 1, placeholder: "no limit", id: "seconds" });
  const stopping = new Set(); // jobs that were asked to stop and have not ended yet
  let advanced = false;
  let tooLarge = false;
  let estimates = 0; // an answer that comes after the settings changed is of other settings
  let mode = state.declared.study.groups ? "groups" : "recode";
  const modes = tabs(
    { recode: "Recode", channel: "Randomized response", groups: "Protect a group" },
    mode,
    (next) => {
      mode = next;
      draw();
    },
    "What is searched for",
  );
  const begun = (path) => async (body) => {
    const job = await attempt(() => post(`${here()}/${path}`, body), says);
    if (job) {
      fill(says);
      state.jobs.set(job.id, job);
      watched = job.id;
      drawJobs();
    }
  };
  function draw() {
    live.hidden = mode !== "recode";
    if (mode !== "recode") {
      fill(
        form,
        h("h2", {}, "New search"),
        modes,
        says,
        mode === "channel" ? channelForm(begun("channels")) : groupsForm(begun("groups"), draw),
      );
      return;
    }
    const now = settings();
    const objectives = (now.objectives ?? usualObjectives()).map(
      (each) => measure(each.name ?? each).name,
    );
    const sensitive = Object.values(state.declared.study.columns).some(
      (column) => column.role === "sensitive",
    );
    const pills = (usual) =>
      h(
        "div",
        { class: "pills" },
        state.about.measures
          .filter(
            (each) =>
              (each.usual || objectives.includes(each.name)) === usual &&
              (each.reads !== "sensitive" || sensitive) &&
              !["population", "weights", "label"].includes(each.reads),
          )
          .map((each) =>
            h(
              "label",
              { title: `${each.title}: ${each.sentence}` },
              h("input", {
                type: "checkbox",
                checked: objectives.includes(each.name),
                disabled: Boolean(now.problem),
                onchange: (event) => {
                  if (objectives.length === 1 && !event.target.checked) {
                    event.target.checked = true;
                    fill(
                      says,
                      error({
                        what: "a search needs an objective",
                        expected: "at least one objective",
                        try: "choose another one before removing this one",
                      }),
                    );
                    return;
                  }
                  const next = event.target.checked
                    ? [...objectives, each.name]
                    : objectives.filter((name) => name !== each.name);
                  change({
                    objectives: next.sort(
                      (a, b) =>
                        (measure(a).kind === "privacy" ? 0 : 1) -
                        (measure(b).kind === "privacy" ? 0 : 1),
                    ),
                  });
                },
              }),
              each.title,
            ),
          ),
      );
    const amount = (name, value, properties, definition, apply) =>
      field(
        name,
        h("input", {
          type: "number",
          value,
          ...properties,
          onchange: (event) =>
            apply(event.target.value === "" ? undefined : Number(event.target.value)),
        }),
        definition,
      );
    const limits = Object.entries(now.constraints ?? {});
    const current = now.system ?? "lattice";
    const { reads, algorithms } = system(current);
    const choices = state.about.systems.filter((each) => !OTHERS.includes(each.name));
    fill(
      form,
      h("h2", {}, "New search"),
      modes,
      says,
      h(
        "fieldset",
        { class: "choices" },
        h("legend", {}, "How records may be grouped"),
        choices.map((each) => {
          const [title, text] = SYSTEMS[
            each.name === "lattice" && now.algorithm && !PROVING.includes(now.algorithm)
              ? "unproven"
              : each.name
          ] ?? [each.name, each.plans];
          return h(
            "label",
            {},
            h("input", {
              type: "radio",
              name: "system",
              id: `system-${each.name}`,
              value: each.name,
              checked: each.name === current,
              onchange: () =>
                change({
                  system: each.name,
                  ...(each.name === "cuts"
                    ? { problem: 2, objectives: undefined, constraints: undefined }
                    : {}),
                }),
            }),
            h("span", {}, h("b", {}, title), h("small", {}, text)),
          );
        }),
      ),
      h(
        "div",
        { class: "row top" },
        reads.includes("max_suppression") &&
          amount(
            "Suppress at most, %",
            Math.round((now.max_suppression ?? 0) * 1e4) / 100,
            { min: 0, max: 99, step: 0.5, id: "suppression" },
            "The share of the records that may be left out. A few outliers cost all others much detail: 1 or 2 % is usual",
            (value) => change({ max_suppression: (value ?? 0) / 100 }),
          ),
      ),
      !now.problem &&
        reads.includes("objectives") &&
        h("div", {}, h("h3", { style: "margin-top:.8rem" }, "Objectives"), pills(true)),
      h(
        "details",
        {
          style: "margin:.8rem 0",
          id: "advanced",
          open: advanced || limits.length > 0,
          ontoggle: (event) => {
            advanced = event.target.open;
          },
        },
        h("summary", {}, "Advanced"),
        !now.problem &&
          reads.includes("objectives") &&
          h("div", {}, h("h3", {}, "More objectives"), pills(false)),
        h(
          "div",
          { class: "row top", style: "margin:.6rem 0" },
          algorithms.length > 1 &&
            field(
              "Algorithm",
              select(
                algorithms.map((name) => [name, ALGORITHMS[name] ?? name]),
                now.algorithm ?? algorithms[0],
                (algorithm) => change({ algorithm }),
                { id: "algorithm" },
              ),
            ),
          current === "cuts" &&
            field(
              "Problem",
              select(
                [
                  ["", "own objectives"],
                  [1, "1: no suppression"],
                  [2, "2: k, within a limit"],
                  [3, "3: mean k, two losses"],
                  [4, "4: k and ℓ"],
                ],
                now.problem ?? "",
                (problem) =>
                  change(
                    problem
                      ? {
                          problem: Number(problem),
                          suppression: undefined,
                          objectives: undefined,
                          ...(problem === "1" ? { max_suppression: 0 } : {}),
                        }
                      : { problem: undefined, suppression: "within" },
                  ),
              ),
              "The four problems of the cuts paper",
            ),
          current === "cuts" &&
            amount(
              "Generations",
              now.generations ?? 250,
              { min: 1, max: 100000, id: "generations" },
              "When the search ends",
              (value) => change({ generations: value ?? 250 }),
            ),
          reads.includes("seed") &&
            amount(
              "Seed",
              now.seed ?? 1,
              { min: 0 },
              "The same seed gives the same front",
              (value) => change({ seed: value ?? 1 }),
            ),
          field("Stop after, seconds", seconds, "The best so far is kept"),
        ),
        reads.includes("constraints") &&
          h(
            "div",
            {},
            h("h3", {}, "Limits that every point must meet"),
            limits.map(([name, value]) =>
              h(
                "div",
                { class: "row" },
                h(
                  "span",
                  { title: measure(name).sentence },
                  `${measure(name).title} ${measure(name).direction === "max" ? "at least" : "at most"} ${number(value)}`,
                ),
                button(
                  "✕",
                  () => {
                    const rest = { ...now.constraints };
                    delete rest[name];
                    change({ constraints: rest });
                  },
                  { class: "plain small", "aria-label": `Remove the limit on ${name}` },
                ),
              ),
            ),
            addLimit(now, sensitive, change),
          ),
        reads.includes("weights") && weights(now, change),
      ),
      guess,
      button(
        "Start the search",
        async () => {
          await settled(); // a setting that was changed a moment ago is part of what is started
          const job = await attempt(
            () => post(`${here()}/jobs`, { seconds: seconds.value ? Number(seconds.value) : null }),
            says,
          );
          if (job) {
            fill(says);
            state.jobs.set(job.id, job);
            watched = job.id;
            drawJobs();
          }
        },
        { class: "main", id: "start", disabled: tooLarge || Boolean(blocked()) },
      ),
    );
  }
  const mine = () =>
    [...state.jobs.values()]
      .filter((job) => job.study === state.study && job.kind !== "publish")
      .sort((a, b) => b.added - a.added);

  function drawJobs() {
    const jobs = mine();
    fill(
      list,
      h("h2", {}, "Searches"),
      !jobs.length && h("p", { class: "quiet" }, "None yet."),
      jobs.map((job) => {
        const progress = job.progress;
        const act = async (what) => {
          const next = await attempt(() => post(`${here()}/jobs/${job.id}/${what}`));
          if (next) {
            state.jobs.set(job.id, next);
            drawJobs();
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
                class: `badge ${job.status === "done" ? "good" : ["failed", "killed", "interrupted"].includes(job.status) ? "bad" : ["queued"].includes(job.status) ? "wait" : ""}`,
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
                  drawJobs();
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
                title: "A search over cuts continues where it stopped",
              }),
            job.front &&
              button("Explore →", () => go({ step: "explore", job: job.id, point: null }), {
                class: "small main",
              }),
            !["running", "queued"].includes(job.status) &&
              button(
                "✕",
                () =>
                  removeWithUndo(
                    `${here()}/jobs/${job.id}`,
                    `${titleOf(job)} was deleted.`,
                    async () => {
                      state.jobs.delete(job.id);
                      const back = (await attempt(() => get(`${here()}/jobs`)))?.find(
                        (each) => each.id === job.id,
                      );
                      if (back) state.jobs.set(job.id, back);
                      drawJobs();
                    },
                  ),
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
      }),
      comparison(jobs),
    );
    const running =
      jobs.find((job) => job.status === "running") ??
      jobs.find((job) => job.id === watched) ??
      jobs.find((job) => job.front && job.kind === "search");
    drawLive(running);
  }
  function comparison(jobs) {
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
                `Compared by what both were searched for: ${found.objectives.map((name) => measure(name).title).join(" and ")}.`,
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
  let shown = null;
  async function drawLive(job) {
    if (!job || job.kind !== "search") return;
    let front = job.live;
    if (!front?.points && job.status !== "queued" && shown !== `${job.id} ${job.status}`) {
      shown = `${job.id} ${job.status}`;
      front = await attempt(() => get(`${here()}/jobs/${job.id}/live`), caption); // a notice at the top stays
    }
    if (!front?.points?.length) return;
    const first = front.objectives[0].name;
    chart.draw({ better: measure(first).direction === "max" ? "↖" : "↙" });
    fill(
      caption,
      `${titleOf(job)}: ${plural(front.number, "point")}${job.status === "running" ? " so far" : ""}, ${number(front.evaluations)} evaluated; `,
      defined(measure(first).title, measure(first).sentence),
      " against loss",
    );
    chart.element.style.visibility = "";
    chart.draw({
      joined: front.objectives.length <= 2,
      points: front.points.map((point, id) => ({ id, x: point.loss, y: point.values[first] })),
    });
    drawn = front.points.map((point) => [
      `${measure(first).title} ${number(point.values[first])}`,
      `loss ${percent(point.loss)}`,
    ]);
  }
  draw();
  drawJobs();
  if (mode === "recode") estimate();
  fill(
    place,
    h("h1", {}, "Search"),
    h("div", { class: "columns" }, h("div", {}, form, list), live),
  );
  return onChange((what) => {
    if (what === "job") drawJobs();
  });
}

// How far a search is: what it does, how many of what, and how long it will take where that can be said.
// A search of a lattice without a proof ends when it finds nothing better: the size of the lattice says nothing of it.
const endless = (job) =>
  job.kind === "search" &&
  (job.settings?.system ?? "lattice") === "lattice" &&
  Boolean(job.settings?.algorithm) &&
  !PROVING.includes(job.settings.algorithm);

function howFar(progress, open) {
  const { stage, done, total, unit, seconds } = progress;
  if (!total || stage?.startsWith("reading")) return `${stage}, ${seconds.toFixed(0)} s`;
  if (open) return `${stage}: ${number(done)} ${unit}, ${seconds.toFixed(0)} s`;
  const left = unit === "generations" && done > 4 ? (seconds * (total - done)) / done : null;
  const rest =
    left === null
      ? ""
      : `, about ${left < 60 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`} left`;
  return `${stage}: ${number(done)} of ${unit === "nodes" ? "at most " : ""}${number(total)} ${unit}, ${seconds.toFixed(0)} s${stage === "searching" ? rest : ""}`;
}

function addLimit(now, sensitive, change) {
  const name = select(
    state.about.measures
      .filter((each) => each.reads !== "sensitive" || sensitive)
      .map((each) => [each.name, `${each.title} ${each.direction === "max" ? "≥" : "≤"}`]),
    headlines()[0].name,
    () => {},
    { "aria-label": "Measure" },
  );
  const value = h("input", {
    type: "number",
    step: "any",
    "aria-label": "Limit",
    style: "width:6rem",
  });
  return h(
    "div",
    { class: "row" },
    name,
    value,
    button(
      "Add",
      () => {
        if (value.value !== "")
          change({
            constraints: { ...(now.constraints ?? {}), [name.value]: Number(value.value) },
          });
      },
      { class: "small" },
    ),
  );
}

// How much a column counts in the loss; 1 unless said.
function weights(now, change) {
  const columns = Object.entries(state.declared.study.columns)
    .filter(([, column]) => column.role === "quasi_identifier")
    .map(([name]) => name);
  const given = Object.fromEntries(
    Object.entries(now.weights ?? {}).filter(([name]) => columns.includes(name)),
  );
  return h(
    "details",
    { style: "margin:.8rem 0", open: Object.keys(given).length > 0, id: "weights" },
    h("summary", {}, `Weights of columns (${Object.keys(given).length})`),
    h(
      "p",
      { class: "quiet" },
      h("small", {}, "A column of weight 2 counts twice in the loss, one of weight 0 not at all."),
    ),
    h(
      "div",
      { class: "row top" },
      columns.map((name) =>
        field(
          name,
          h("input", {
            type: "number",
            min: 0,
            step: "any",
            value: given[name] ?? "",
            placeholder: "1",
            "data-weight": name,
            onchange: (event) => {
              const next = { ...given };
              if (event.target.value === "") delete next[name];
              else next[name] = Number(event.target.value);
              change({ weights: next });
            },
          }),
        ),
      ),
    ),
  );
}
