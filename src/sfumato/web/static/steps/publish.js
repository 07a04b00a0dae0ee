// Publish: a last look, the reason, the release, its verification, the pack. What runs or ran is known from the jobs.
import { refused, verdict } from "../accepting.js";
import { attempt, get, post } from "../api.js";
import {
  button,
  byId,
  defined,
  error,
  fill,
  h,
  leftOut,
  number,
  percent,
  plural,
  table,
} from "../dom.js";
import { lastLook } from "../last-look.js";
import { outdated } from "../outdated.js";
import { asked, inWords } from "../questions.js";
import { releaseList } from "../releases.js";
import { valueText } from "../settings.js";
import { go, here, measure, note, onChange, state } from "../state.js";
import { drawWhole, wholeFigures } from "../whole.js";

export async function publishStep(place) {
  const made = h("div", { class: "card" });
  const result = h("div", { id: "result", "aria-live": "polite" });
  const releases = releaseList();
  let shown = null; // the publication whose end is shown
  const lost = h("div", {});
  const chosen = await attempt(() => chosenPoint(), lost);
  const mine = () =>
    [...state.jobs.values()]
      .filter((job) => job.study === state.study && job.kind === "publish")
      .sort((a, b) => a.added - b.added);
  const same = (job) =>
    job.with.job === state.job &&
    job.with.number === state.point &&
    JSON.stringify(job.with.limits ?? null) === JSON.stringify(state.limits ?? null);
  const running = () => mine().find((job) => ["queued", "running"].includes(job.status));

  if (lost.childElementCount)
    fill(
      made,
      h("h2", {}, "Publish"),
      lost,
      h(
        "p",
        {},
        button("Try again", () => go({}), { class: "small" }),
      ),
    );
  else if (!chosen) {
    fill(
      made,
      h("h2", {}, "Publish"),
      h(
        "div",
        { class: "empty" },
        h(
          "div",
          {},
          h("p", {}, "No point is chosen."),
          button("Choose one →", () => go({ step: "explore" }), { class: "main" }),
        ),
      ),
      result,
    );
  } else {
    const whole = h("div", {});
    if (chosen.recoded) drawWhole(whole, chosen.offer, state.point, () => true);
    const draft = `reason ${state.study} ${state.job} ${state.point}`;
    const before = mine().filter(same).at(-1)?.with.reason;
    const reason = h("textarea", {
      rows: 3,
      id: "reason",
      maxlength: 4000,
      placeholder: "Why this point? The reason is recorded in the internal report.",
      oninput: () => sessionStorage.setItem(draft, reason.value),
    });
    reason.value = sessionStorage.getItem(draft) ?? before ?? "";
    fill(
      made,
      h("h2", {}, `Publish point ${state.point}`),
      outdated(chosen.changes),
      chosen.words,
      whole,
      h("label", { class: "field", style: "width:100%" }, h("span", {}, "Reason"), reason),
      lastLook(() => body({})),
      h(
        "div",
        { class: "row", style: "margin:.8rem 0" },
        button("Publish and verify", () => publish({}), { class: "main", id: "publish" }),
      ),
      result,
    );
  }
  const body = (more) => ({
    job: state.job,
    point: state.point,
    ...(chosen.kept ? { keep: [...chosen.kept] } : {}),
    ...(state.limits ? { limits: state.limits } : {}),
    ...more,
  });

  async function publish(accept) {
    const next = await attempt(
      () => post(`${here()}/releases`, body({ reason: byId("reason").value, accept })),
      result,
    );
    if (!next) return;
    state.jobs.set(next.id, next);
    followed();
  }
  // The publication that runs, or the last of this point: known from the jobs, so that a reload changes nothing.
  function followed() {
    const now = running() ?? mine().filter(same).at(-1);
    const start = byId("publish");
    if (start) start.disabled = Boolean(running());
    if (!now) return;
    if (["queued", "running"].includes(now.status)) {
      shown = null;
      fill(
        result,
        h(
          "p",
          { class: "quiet", id: "publishing" },
          now.status === "queued"
            ? "Waiting for another job …"
            : `Point ${now.with.number}: writing, reading back, measuring …`,
        ),
        h("progress", { "aria-label": "Publishing" }),
      );
      return;
    }
    if (shown === now.id) return;
    const first = shown === null && !result.childElementCount; // it had ended before this page was drawn
    shown = now.id;
    if (now.error?.findings) fill(result, refused(now.error.findings, publish));
    else if (now.error) fill(result, error(now.error));
    else {
      const figures = Object.entries(now.found.figures).map(([name, figure]) => [
        defined(measure(name).title, measure(name).sentence),
        figure.value === null || figure.value === undefined ? "–" : number(figure.value),
      ]);
      fill(
        result,
        verdict(now.found),
        wholeFigures(now.found.whole),
        now.found.warnings.map((warning) => h("div", { class: "warning" }, warning)),
        h(
          "details",
          {},
          h("summary", {}, `The ${figures.length} figures of the release`),
          table("Figures of the release", ["measure", "value"], figures),
        ),
      );
    }
    if (!first) releases.draw();
  }
  fill(place, h("h1", {}, "Publish"), h("div", { class: "halves" }, made, releases.element));
  await releases.draw();
  const watch = onChange((what) => {
    if (what === "job") followed();
  });
  queueMicrotask(followed);
  return watch;
}

// What is to be published, in words: a point of a front, the answer to a question, a protected or a disguised file.
async function chosenPoint() {
  const job = state.job ? state.jobs.get(state.job) : null;
  if (!job?.front || state.point === null) return null;
  if (job.kind === "groups") {
    const { protection, changes } = await get(`${here()}/jobs/${state.job}/groups`);
    const point = protection?.points[state.point];
    return (
      point && {
        changes,
        words: h(
          "p",
          {},
          `${plural(point.swaps, "swap")} of places between similar records; sealed ` +
            `attacks that found ${plural(protection.found_before, "area")} before find ` +
            `${point.sealed.areas} after. Columns that name the group are left out.`,
        ),
      }
    );
  }
  if (job.kind === "channel") return chosenChannel();
  if (job.kind !== "search") return null;
  const front = await get(`${here()}/jobs/${state.job}/front`);
  const point = front.points.find((each) => each.id === state.point);
  if (!point) return null;
  const found = state.limits && (await asked(state.limits));
  if (!found?.answer || found.answer.searched) {
    note({ point: point.id }); // the search's own suppression
    return {
      recoded: true,
      changes: front.changes,
      words: h(
        "p",
        {},
        front.objectives
          .filter((each) => !measure(each.name).loss_of_points)
          .map(
            (each) =>
              `${measure(each.name).title} ${valueText(each.name)(point.values[each.name])}`,
          )
          .join(", "),
        `; loss ${percent(point.loss)}, suppresses ` +
          `${plural(point.suppressed, "record")}${leftOut(front.left_out, front.rows)}.`,
      ),
    };
  }
  return {
    recoded: true,
    changes: front.changes,
    offer: found.answer,
    words: [
      h("p", {}, found.answer.says),
      h(
        "div",
        { class: "warning" },
        h(
          "span",
          {},
          `With the suppression of your question (${inWords(state.limits)}), not that of the search.`,
        ),
      ),
    ],
  };
}

// A channel: what it promises, and which plain columns go along.
async function chosenChannel() {
  const front = await get(`${here()}/jobs/${state.job}/channel`);
  const point = front.points.find((each) => each.id === state.point);
  if (!point) return null;
  const others = Object.entries(state.declared.study.columns)
    .filter(
      ([name, column]) =>
        !front.columns.includes(name) &&
        ["quasi_identifier", "label", "other"].includes(column.role),
    )
    .map(([name]) => name);
  const kept = new Set(front.keep ?? []);
  return {
    kept,
    changes: front.changes,
    words: [
      h(
        "p",
        {},
        `Each value of ${front.columns.join(", ")} is replaced by a report drawn at ` +
          `random: privacy ${point.privacy.toFixed(3)}, worst posterior ` +
          `${percent(point.worst_posterior)}. The rows are in random order, and only the ` +
          "columns that you choose are included.",
      ),
      others.length > 0 &&
        h(
          "details",
          {},
          h("summary", {}, "Columns to include unchanged"),
          h(
            "p",
            { class: "quiet" },
            h(
              "small",
              {},
              "Someone who has a whole row starts from the shares of records with the same " +
                "values. The figures of the release are given these columns, and it is refused " +
                "where a report then reveals too much. Columns that were chosen before the " +
                "search keep the rule.",
            ),
          ),
          h(
            "div",
            { class: "pills" },
            others.map((name) =>
              h(
                "label",
                {},
                h("input", {
                  type: "checkbox",
                  checked: kept.has(name),
                  onchange: (event) => (event.target.checked ? kept.add(name) : kept.delete(name)),
                }),
                name,
              ),
            ),
          ),
        ),
    ],
  };
}
