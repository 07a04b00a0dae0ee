// Search: what to look for, how large that is, and what is at work; the front grows while it runs.
import { attempt, changeStudy, get, post, settled } from "../api.js";
import { cloud } from "../charts/cloud.js";
import { button, byId, defined, fill, h, number, percent, plural, tabs } from "../dom.js";
import { channelForm, groupsForm } from "../other-searches.js";
import { estimateWords } from "../search-estimate.js";
import { comparison, jobRow } from "../search-jobs.js";
import { DEFAULT, settingsForm, system } from "../search-settings.js";
import { titleOf } from "../settings.js";
import { go, here, measure, onChange, state } from "../state.js";

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
    const turned = changes.system && changes.system !== (before.system ?? DEFAULT);
    const both = turned
      ? system(changes.system).reads.filter(
          (name) => name in before && system(before.system ?? DEFAULT).reads.includes(name),
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
    const start = byId("start");
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
    if (!system(settings().system ?? DEFAULT).estimated) {
      fill(guess);
      return;
    }
    fill(guess, h("small", {}, "Estimating …"));
    const found = await attempt(
      () => get(`${here()}/estimate`, "trying a few candidates …"),
      guess,
    );
    if (!found || mine !== estimates || found.space === null) return;
    tooLarge = Boolean(found.limit);
    allow();
    fill(guess, estimateWords(found, change));
  }
  const seconds = h("input", { type: "number", min: 1, placeholder: "no limit", id: "seconds" });
  const stopping = new Set(); // jobs that were asked to stop and have not ended yet
  const folds = { advanced: false };
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
    fill(
      form,
      h("h2", {}, "New search"),
      modes,
      says,
      settingsForm(now, { change, says, seconds, folds }),
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
      jobs.map((job) => jobRow(job, { stopping, redraw: drawJobs })),
      comparison(jobs, compared),
    );
    const running =
      jobs.find((job) => job.status === "running") ??
      jobs.find((job) => job.id === watched) ??
      jobs.find((job) => job.front && job.kind === "search");
    drawLive(running);
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
      `${titleOf(job)}: ` +
        `${plural(front.number, "point")}${job.status === "running" ? " so far" : ""}, ` +
        `${number(front.evaluations)} evaluated; `,
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
