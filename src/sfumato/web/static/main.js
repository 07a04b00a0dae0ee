// The frame: steps, the stream of jobs, what stands where.
import { attempt, changeStudy, connection, get, newSession, settled } from "./api.js";
import { button, byId, error, fill, h } from "./dom.js";
import { askForKey, entered, follow } from "./session.js";
import { showAs } from "./show-as.js";
import { go, here, onChange, readAddress, state, tell } from "./state.js";
import { declareStep } from "./steps/declare.js";
import { exploreStep } from "./steps/explore.js";
import { openStep, watchDrops } from "./steps/open.js";
import { publishStep } from "./steps/publish.js";
import { searchStep } from "./steps/search.js";
import { watchTips } from "./tips.js";

/** @type {[string, string, string, (place: HTMLElement) => Promise<any>][]} */
const STEPS = [
  ["open", "Open", "Choose a table", openStep],
  ["declare", "Declare", "Declare the role of each column", declareStep],
  ["search", "Search", "Find all non-dominated releases", searchStep],
  ["explore", "Explore", "Look, ask, compare", exploreStep],
  ["publish", "Publish", "Release, verify, download", publishStep],
];
const main = byId("main");
/** @type {(() => void) | null} */
let leave = null;
let drawn = 0;

// What is done and what is missing, in a word for each step.
function progress(name) {
  const declared = state.declared;
  if (!declared) return "";
  const jobs = [...state.jobs.values()].filter((job) => job.study === state.study);
  if (name === "open") return "✓";
  if (name === "declare")
    return declared.undecided?.length
      ? `${declared.undecided.length} open`
      : declared.reviewed
        ? "✓"
        : "confirm";
  if (name === "search")
    return jobs.some((job) => job.kind !== "publish" && ["running", "queued"].includes(job.status))
      ? "…"
      : jobs.some((job) => job.front)
        ? "✓"
        : "";
  if (name === "explore") return state.point !== null ? "✓" : "";
  return jobs.some((job) => job.kind === "publish" && ["running", "queued"].includes(job.status))
    ? "…"
    : jobs.some((job) => job.kind === "publish" && job.status === "done")
      ? "✓"
      : "";
}

function frame() {
  fill(
    byId("steps"),
    STEPS.map(([name, title, says], place) =>
      button(
        [
          h("i", { "aria-hidden": "true" }, place + 1),
          title,
          " ",
          h("small", { class: "mark" }, progress(name)),
        ],
        () => go({ step: name }),
        {
          title: says,
          "aria-current": state.step === name ? "step" : null,
          disabled: name !== "open" && !state.study,
          "data-step": name,
        },
      ),
    ),
  );
  const where = byId("where");
  fill(where, state.declared ? state.declared.name : "");
  where.title = state.declared?.name ?? "";
  fill(
    byId("tools"),
    state.study &&
      button("Show as …", () => showAs(), {
        class: "plain",
        title: "The run file and the Python program that do the same from the command line",
      }),
  );
}

async function draw() {
  const mine = ++drawn;
  leave?.();
  leave = null;
  for (const dialog of document.querySelectorAll("dialog")) dialog.remove(); // it was about what is left now
  frame();
  fill(main, h("p", { class: "quiet" }, "Loading …"));
  const notice = byId("notice");
  /** @type {Node[]} */
  let lost = [];
  if (state.study && state.declared?.id !== state.study) {
    const found = await attempt(() => get(here()));
    if (mine !== drawn) return;
    if (!found) {
      lost = [...notice.childNodes];
      state.study = null;
      state.step = "open";
      history.replaceState(null, "", "#/open");
    }
    state.declared = found ?? null;
  }
  const [, title, , step] = STEPS.find(([name]) => name === state.step) ?? STEPS[0];
  document.title = `${title} · Sfumato`;
  frame();
  const place = h("div", { class: `step ${state.step}` });
  const left = await attempt(() => step(place));
  if (mine !== drawn) {
    left?.();
    return;
  }
  leave = left ?? null;
  fill(
    main,
    !place.querySelector("h1") && h("h1", { class: "unseen" }, title),
    state.declared?.table_changed && changedTable(),
    place,
  );
  if (document.activeElement === document.body) main.focus({ preventScroll: true }); // the next Tab is in the new step
  if (lost.length) fill(notice, lost); // why we are not where the address said
  tell("shown");
}

function changedTable() {
  return h(
    "div",
    { class: "warning", id: "table-changed" },
    h("b", {}, "The table has changed since this study was declared."),
    h(
      "span",
      {},
      "Roles, hierarchies and searches were made for the earlier one, so nothing is " +
        "searched or published until you accept the table as it is now and check the " +
        "roles again.",
    ),
    h(
      "div",
      { class: "row" },
      button("Accept the table as it is now", async () => {
        const found = await attempt(() =>
          changeStudy({ accept_table: true }, "reading the table …"),
        );
        if (found) go({ step: "declare" });
      }),
    ),
  );
}

// This study has another version than the one shown: somebody else changed it, in another tab or program.
async function changedElsewhere({ study, version }) {
  if (study !== state.study || !state.declared || version === state.declared.version) return;
  await settled(); // a change of our own may be told here before its answer arrives
  if (study !== state.study || !state.declared || version === state.declared.version) return;
  const found = version && (await get(here()).catch(() => null));
  if (version && (!found || found.version === state.declared?.version)) return;
  fill(
    byId("notice"),
    h(
      "div",
      { class: "warning", id: "elsewhere" },
      h(
        "b",
        {},
        version
          ? "This study was changed in another tab or program."
          : "This study was deleted in another tab or program.",
      ),
      h(
        "span",
        {},
        version
          ? "What is shown here is out of date; nothing is searched or changed from here until it is loaded again."
          : "",
      ),
      h(
        "div",
        {},
        button("Reload", () => location.reload(), { class: "small", id: "reload-changed" }),
      ),
    ),
  );
}

function listen() {
  follow(
    "/events",
    (data) => {
      const told = JSON.parse(data);
      if (told.kind === undefined) {
        changedElsewhere(told);
        return;
      }
      const job = told;
      const before = state.jobs.get(job.id);
      if (before && !job.live && job.status === "running") job.live = before.live;
      state.jobs.set(job.id, job);
      tell("job");
      if (before?.status !== job.status) frame();
      if (job.status === "killed" && before?.status === "running")
        fill(byId("notice"), error(job.error));
    },
    connection,
    newSession,
  );
}

addEventListener("popstate", () => {
  readAddress();
  draw();
});
addEventListener("hashchange", () => {
  readAddress();
  draw();
});
onChange((what) => {
  if (what === "address") draw();
  if (what === "frame") frame();
});
watchTips();
readAddress();
if (!entered()) await askForKey(main);
state.about = await attempt(() => get("/about", "starting a worker …"));
if (state.about) {
  for (const job of (await attempt(() => get("/jobs"))) ?? []) state.jobs.set(job.id, job);
  watchDrops();
  listen();
  await draw();
} else fill(main);
