// Publish: the reason, the release, its verification, the pack.
import { attempt, get, post } from "../api.js";
import { button, defined, fill, h, number, percent, plural, table } from "../dom.js";
import { go, here, measure, onChange, state } from "../state.js";

export async function publishStep(place) {
  const made = h("div", { class: "card" });
  const list = h("div", { class: "card" });
  const job = state.job ? state.jobs.get(state.job) : null;
  let front = null;
  if (job?.front && state.point !== null) front = await attempt(() => get(`${here()}/jobs/${state.job}/front`));
  const point = front?.points[state.point];
  let running = null;
  const result = h("div", { id: "result" });

  if (!point) {
    fill(made, h("h2", {}, "Publish"), h("div", { class: "empty" }, h("div", {}, h("p", {}, "No point is chosen."), button("Choose one →", () => go({ step: "explore" }), { class: "main" }))));
  } else {
    const limits = state.choice?.job === state.job && state.choice?.point === state.point ? state.choice.limits : null;
    const reason = h("textarea", { rows: 3, id: "reason", placeholder: "Why this point? The reason goes into the internal report." });
    const starred = h("input", { type: "checkbox", id: "starred" });
    fill(made, h("h2", {}, `Publish point ${point.id}`),
      limits ? h("p", {}, state.choice.offer.says) : h("p", {}, front.objectives.map((each) => `${measure(each.name).title} ${number(point.values[each.name])}`).join(", "), `; loses ${percent(point.loss)} of the detail, suppresses ${plural(point.suppressed, "record")}.`),
      limits && h("div", { class: "warning" }, h("span", {}, `With the suppression of your question (${Object.entries(limits).map(([name, value]) => `${name.replace("_", " ")} ${value}`).join(", ")}), not that of the search.`)),
      h("label", { class: "field", style: "width:100%" }, h("span", {}, "Reason"), reason),
      h("p", {}, h("label", {}, starred, " keep suppressed records with every quasi-identifier hidden, instead of leaving them out")),
      button("Publish and verify", async (event) => {
        const next = await attempt(() => post(`${here()}/releases`, { job: state.job, point: state.point, reason: reason.value, starred: starred.checked, ...(limits ? { limits } : {}) }), result);
        if (next) { running = next.id; event.target.disabled = true; state.jobs.set(next.id, next); fill(result, h("p", { class: "quiet" }, "Recoding, writing, reading back, measuring …")); }
      }, { class: "main", id: "publish" }), h("div", { style: "height:.8rem" }), result);
  }

  async function drawReleases() {
    const found = await attempt(() => get(`${here()}/releases`));
    if (!found) return;
    fill(list, h("h2", {}, "Releases of this table"), found.length > 1 && h("div", { class: "warning" }, "Several releases of one table together can tell more than each alone."), found.length ? found.map((release) => {
      const says = h("div", {});
      return h("div", { class: "job whole" }, h("div", {}, h("b", {}, release.name), h("div", {}, h("small", {}, `k ${number(release.k)}, loss ${percent(release.loss)}, ${plural(release.released, "record")} released, ${number(release.suppressed)} suppressed; in ${release.folder}`)),
        release.about.reason && h("div", {}, h("small", {}, `“${release.about.reason}”`)), says),
      h("div", { class: "row" }, h("a", { class: "button main", href: `/api${here()}/releases/${release.name}/pack.zip`, download: `${release.name}.zip` }, "Download"),
        release.reports.map((name) => h("a", { class: "button", href: `/api${here()}/releases/${release.name}/${name}`, target: "_blank", rel: "noopener" }, name.replace(".html", ""))),
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
    if (now.error) fill(result, h("div", { class: "error" }, h("b", {}, now.error.what), h("span", {}, now.error.try)));
    else {
      const figures = Object.entries(now.found.figures).map(([name, figure]) => [defined(measure(name).title, measure(name).sentence), figure.value === null || figure.value === undefined ? "–" : number(figure.value)]);
      fill(result, verdict(now.found), now.found.warnings.map((warning) => h("div", { class: "warning" }, warning)),
        h("details", {}, h("summary", {}, `The ${figures.length} figures measured on the file that was written`), table(["measure", "value"], figures)));
    }
    drawReleases();
  }
  fill(place, h("div", { class: "halves" }, made, list));
  await drawReleases();
  return onChange((what) => { if (what === "job") followed(); });
}

function verdict(found) {
  return found.verified ? h("div", { class: "fine verified" }, h("b", {}, "✓ Verified"), h("span", {}, "The file was read back and measured: every figure and every row is as said."))
    : h("div", { class: "error" }, h("b", {}, "The release differs from what was published"), found.differences.map((each) => h("span", {}, each)));
}
