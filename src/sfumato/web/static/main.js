// The frame: steps, the stream of jobs, what stands where.
import { attempt, changeStudy, get } from "./api.js";
import { button, error, fill, h } from "./dom.js";
import { askForKey, entered, follow } from "./session.js";
import { showAs } from "./show-as.js";
import { go, here, onChange, readAddress, state, tell } from "./state.js";
import { declareStep } from "./steps/declare.js";
import { exploreStep } from "./steps/explore.js";
import { openStep } from "./steps/open.js";
import { publishStep } from "./steps/publish.js";
import { searchStep } from "./steps/search.js";

const STEPS = [
  ["open", "Open", "Choose a table", openStep],
  ["declare", "Declare", "Declare the role of each column", declareStep],
  ["search", "Search", "Find all non-dominated releases", searchStep],
  ["explore", "Explore", "Look, ask, compare", exploreStep],
  ["publish", "Publish", "Release, verify, download", publishStep],
];
const main = document.getElementById("main");
let leave = null;
let drawn = 0;

function frame() {
  fill(document.getElementById("steps"), STEPS.map(([name, title, says], place) =>
    button([h("i", {}, place + 1), title], () => go({ step: name }), {
      title: says, "aria-current": state.step === name ? "step" : null, disabled: name !== "open" && !state.study, "data-step": name,
    })));
  fill(document.getElementById("where"), state.declared ? state.declared.name : "");
  fill(document.getElementById("tools"), state.study && button("Show as …", () => showAs(), {
    class: "plain", title: "The run file and the Python program that do the same from the command line",
  }));
}

async function draw() {
  const mine = ++drawn;
  leave?.();
  leave = null;
  frame();
  fill(main, h("p", { class: "quiet" }, "Loading …"));
  const notice = document.getElementById("notice");
  let lost = [];
  if (state.study && state.declared?.id !== state.study) {
    const found = await attempt(() => get(here()));
    if (mine !== drawn) return;
    if (!found) { lost = [...notice.childNodes]; state.study = null; state.step = "open"; history.replaceState(null, "", "#/open"); }
    state.declared = found ?? null;
  }
  const [, title, , step] = STEPS.find(([name]) => name === state.step);
  document.title = `${title} · Sfumato`;
  frame();
  const place = h("div", { class: `step ${state.step}` });
  const left = await attempt(() => step(place));
  if (mine !== drawn) { left?.(); return; }
  leave = left ?? null;
  fill(main, state.declared?.table_changed && changedTable(), place);
  if (document.activeElement === document.body) main.focus({ preventScroll: true }); // the next Tab is in the new step
  if (lost.length) fill(notice, lost); // why we are not where the address said
  tell("shown");
}

function changedTable() {
  return h("div", { class: "warning", id: "table-changed" }, h("b", {}, "The table has changed since this study was declared."),
    h("span", {}, "Roles, hierarchies and searches were made for the earlier one, so nothing is searched or published until you accept the table as it is now and check the roles again."),
    h("div", { class: "row" }, button("Accept the table as it is now", async () => {
      const found = await attempt(() => changeStudy({ accept_table: true }, "reading the table …"));
      if (found) go({ step: "declare" });
    })));
}

function listen() {
  follow("/events", (data) => {
    const job = JSON.parse(data);
    const before = state.jobs.get(job.id);
    if (before && !job.live && job.status === "running") job.live = before.live;
    state.jobs.set(job.id, job);
    tell("job");
    if (job.status === "killed" && before?.status === "running")
      fill(document.getElementById("notice"), error(job.error));
  }, (here) => fill(document.getElementById("connection"), !here && h("div", { class: "warning" }, "The server does not answer. What is shown may be out of date.")));
}

addEventListener("popstate", () => { readAddress(); draw(); });
addEventListener("hashchange", () => { readAddress(); draw(); });
onChange((what) => { if (what === "address") draw(); if (what === "frame") frame(); });
readAddress();
if (!entered()) await askForKey(main);
state.about = await attempt(() => get("/about", "starting a worker …"));
if (state.about) {
  for (const job of (await attempt(() => get("/jobs"))) ?? []) state.jobs.set(job.id, job);
  listen();
  await draw();
} else fill(main);
