// Publish: the reason, the release, its verification, the pack.
import { refused, verdict } from "../accepting.js";
import { attempt, get, post } from "../api.js";
import { button, defined, error, fill, h, number, percent, plural, table } from "../dom.js";
import { asked, inWords } from "../questions.js";
import { download, openTab } from "../session.js";
import { go, here, measure, note, onChange, state } from "../state.js";
import { drawWhole, wholeFigures, wholeLine } from "../whole.js";

const REPORTS = { "internal.html": "Report for you", "external.html": "Report for readers", "dictionary.html": "Data dictionary" };

export async function publishStep(place) {
  const made = h("div", { class: "card" });
  const list = h("div", { class: "card" });
  let running = null;
  const result = h("div", { id: "result", "aria-live": "polite" });
  const chosen = await attempt(() => chosenPoint());

  if (!chosen) {
    fill(made, h("h2", {}, "Publish"), h("div", { class: "empty" }, h("div", {}, h("p", {}, "No point is chosen."), button("Choose one →", () => go({ step: "explore" }), { class: "main" }))));
  } else {
    const whole = h("div", {});
    if (chosen.recoded) drawWhole(whole, chosen.offer, state.point, () => true);
    const reason = h("textarea", { rows: 3, id: "reason", maxlength: 4000, placeholder: "Why this point? The reason is recorded in the internal report." });
    fill(made, h("h2", {}, `Publish point ${state.point}`), chosen.words, whole,
      h("label", { class: "field", style: "width:100%" }, h("span", {}, "Reason"), reason),
      h("div", { style: "height:.8rem" }),
      button("Publish and verify", () => publish({}), { class: "main", id: "publish" }), h("div", { style: "height:.8rem" }), result);
  }

  async function publish(accept) {
    const given = { job: state.job, point: state.point, reason: document.getElementById("reason").value, accept, ...(chosen.kept ? { keep: [...chosen.kept] } : {}), ...(state.limits ? { limits: state.limits } : {}) };
    const next = await attempt(() => post(`${here()}/releases`, given), result);
    if (!next) return;
    running = next.id;
    document.getElementById("publish").disabled = true;
    state.jobs.set(next.id, next);
    fill(result, h("p", { class: "quiet" }, "Writing, reading back, measuring …"));
  }

  async function drawReleases() {
    const found = await attempt(() => get(`${here()}/releases`));
    if (!found) return;
    fill(list, h("h2", {}, "Releases of this table"), found.length > 1 && h("div", { class: "warning" }, "Several releases of one table can together disclose more than each alone."), found.length > 0 && h("p", { class: "quiet" }, h("small", {}, "Only the public pack (data, dictionary, report for readers) may be handed out. The internal record holds the source’s path and digest, the hierarchies and exact counts: keep it confidential.")), found.length ? found.map((release) => {
      const says = h("div", {});
      return h("div", { class: "job whole" }, h("div", {}, h("b", {}, `Point ${release.about.point}`), h("div", {}, h("small", {}, `${release.says}, loss ${percent(release.loss)}, ${plural(release.released, "record")} released, ${number(release.suppressed)} suppressed`)),
        release.about.reason && h("div", {}, h("small", {}, `“${release.about.reason}”`)), h("small", {}, wholeLine(release.whole)), h("details", {}, h("summary", {}, h("small", {}, "Its folder")), h("small", {}, release.folder)), says),
      h("div", { class: "row" }, button("Public pack", () => download(`${here()}/releases/${release.name}/public.zip`, `${release.name.slice(0, -24)}-public.zip`), { class: "main", "data-download": release.name }),
        button("Internal record: not for release", () => download(`${here()}/releases/${release.name}/record.zip`, `${release.name.slice(0, -24)}-internal-not-for-release.zip`), { "data-record": release.name, title: "Everything, including the internal report and the manifest: for your own files, not for release." }),
        release.reports.map((name) => button(REPORTS[name] ?? name, () => openTab(`${here()}/releases/${release.name}/${name}`), { "data-report": name })),
        button("Verify again", async () => {
          const checked = await attempt(() => post(`${here()}/releases/${release.name}/verify`, {}, "measuring the release …"), says);
          if (checked) fill(says, verdict(checked));
        })));
    }) : h("p", { class: "quiet" }, "None yet."));
  }
  function followed() {
    const now = running && state.jobs.get(running);
    if (!now || ["queued", "running"].includes(now.status)) return;
    running = null;
    const again = document.getElementById("publish");
    if (again) again.disabled = false;
    if (now.error?.findings) fill(result, refused(now.error.findings, publish));
    else if (now.error) fill(result, error(now.error));
    else {
      const figures = Object.entries(now.found.figures).map(([name, figure]) => [defined(measure(name).title, measure(name).sentence), figure.value === null || figure.value === undefined ? "–" : number(figure.value)]);
      fill(result, verdict(now.found), wholeFigures(now.found.whole), now.found.warnings.map((warning) => h("div", { class: "warning" }, warning)),
        h("details", {}, h("summary", {}, `The ${figures.length} figures measured on the file that was written`), table(["measure", "value"], figures)));
    }
    drawReleases();
  }
  fill(place, h("div", { class: "halves" }, made, list));
  await drawReleases();
  return onChange((what) => { if (what === "job") followed(); });
}

// What is to be published, in words: a point of a front, the answer to a question, a protected or a disguised file.
async function chosenPoint() {
  const job = state.job ? state.jobs.get(state.job) : null;
  if (!job?.front || state.point === null) return null;
  if (job.kind === "groups") {
    const { protection } = await get(`${here()}/jobs/${state.job}/groups`);
    const point = protection?.points[state.point];
    return point && { words: h("p", {}, `${plural(point.swaps, "swap")} of places between similar records; sealed attacks that found ${protection.found_before} areas before find ${point.sealed.areas} after. Columns that name the group are left out.`) };
  }
  if (job.kind === "channel") return chosenChannel();
  if (job.kind !== "search") return null;
  const front = await get(`${here()}/jobs/${state.job}/front`);
  const point = front.points.find((each) => each.id === state.point);
  if (!point) return null;
  const found = state.limits && await asked(state.limits);
  if (!found || found.answer.searched) {
    note({ point: point.id }); // the search's own suppression
    return { recoded: true, words: h("p", {}, front.objectives.map((each) => `${measure(each.name).title} ${number(point.values[each.name])}`).join(", "), `; loss ${percent(point.loss)}, suppresses ${plural(point.suppressed, "record")}.`) };
  }
  return { recoded: true, offer: found.answer, words: [h("p", {}, found.answer.says), h("div", { class: "warning" }, h("span", {}, `With the suppression of your question (${inWords(state.limits)}), not that of the search.`))] };
}

// A channel: what it promises, and which plain columns go along.
async function chosenChannel() {
  const front = await get(`${here()}/jobs/${state.job}/channel`);
  const point = front.points.find((each) => each.id === state.point);
  if (!point) return null;
  const others = Object.entries(state.declared.study.columns).filter(([name, column]) => !front.columns.includes(name) && ["quasi_identifier", "label", "other"].includes(column.role)).map(([name]) => name);
  const kept = new Set();
  return { kept, words: [h("p", {}, `Each value of ${front.columns.join(", ")} is replaced by a report drawn at random: privacy ${point.privacy.toFixed(3)}, worst posterior ${percent(point.worst_posterior)}. The rows are in random order, and only the columns that you choose are included.`),
    others.length > 0 && h("details", {}, h("summary", {}, "Columns to include unchanged"), h("p", { class: "quiet" }, h("small", {}, "They can raise the disclosure risk: someone who knows a person’s sex can use the shares for that sex.")),
      h("div", { class: "pills" }, others.map((name) => h("label", {}, h("input", { type: "checkbox", onchange: (event) => event.target.checked ? kept.add(name) : kept.delete(name) }), name))))] };
}
