// Explore: the map, linked to a table and parallel coordinates; the publisher's questions; one point, or two side by side.
import { attempt, get } from "../api.js";
import { cloud } from "../charts/cloud.js";
import { matrix } from "../charts/matrix.js";
import { parallel } from "../charts/parallel.js";
import { drawChannel } from "../channel.js";
import { button, defined, field, fill, h, number, percent, plural, select } from "../dom.js";
import { drawGroups } from "../groups.js";
import { drawComparison, drawPoint } from "../point.js";
import { asked, questions } from "../questions.js";
import { inWords, titleOf } from "../settings.js";
import { go, here, measure, note, state } from "../state.js";

const [ROWS, FEW] = [200, 24]; // rows of the list; of a large front few, because each selection lays them out anew

export async function exploreStep(place) {
  const jobs = [...state.jobs.values()].filter((job) => job.study === state.study && ["search", "channel", "groups"].includes(job.kind) && job.front).sort((a, b) => b.added - a.added);
  if (!jobs.length) {
    fill(place, h("div", { class: "card empty" }, h("div", {}, h("p", {}, "No search of this table has a front yet."), button("Search →", () => go({ step: "search" }), { class: "main" }))));
    return undefined;
  }
  if (!jobs.some((job) => job.id === state.job)) note({ job: jobs[0].id, point: null });
  const kind = jobs.find((job) => job.id === state.job).kind;
  if (kind !== "search") {
    const other = h("div", {});
    fill(place, jobs.length > 1 && h("div", { class: "row spread" }, h("span", {}), chooser(jobs)), other);
    await (kind === "channel" ? drawChannel : drawGroups)(other);
    return undefined;
  }
  const front = await attempt(() => get(`${here()}/jobs/${state.job}/front`, "reading the front …"));
  if (!front) return undefined;
  fill(place, ...(await explorer(front, jobs)));
  return undefined;
}

const chooser = (jobs) => field("Search", select(jobs.map((job) => [job.id, `${titleOf(job)}${job.kind === "search" ? `: ${inWords(job.settings)}` : ""} (${job.found?.points ?? "?"} points)`]), state.job, (job) => go({ job, point: null })));

// Limits that policies commonly set, each with the release of least loss within it.
function common(front, choose) {
  if (!front.presets?.length) return null;
  return h("div", { class: "card", id: "presets" }, h("h2", {}, "Common limits"), h("table", {}, h("tbody", {}, front.presets.map((each) => h("tr", {},
    h("td", {}, each.words), h("td", {}, each.point === null ? each.says : `k ${number(each.k)}, loss ${percent(each.loss)}, ${number(each.suppressed)} suppressed`),
    h("td", {}, each.point !== null && button(`Point ${each.point}`, () => choose(each.point), { class: "plain small" })))))));
}

export async function explorer(front, jobs) {
  const names = front.objectives.map((each) => each.name);
  let xName = "loss";
  let yName = names.find((name) => measure(name).kind === "privacy") ?? names[0];
  const searched = jobs.find((job) => job.id === state.job);
  let inside = null;
  let rival = null;
  const value = (point, name) => name === "loss" ? point.loss : name === "suppressed" ? point.suppressed : point.values[name];
  const text = (name) => (each) => name === "loss" ? percent(each) : number(each);
  const title = (name) => ({ loss: "information loss", suppressed: "records suppressed" })[name] ?? measure(name).title;
  const log = (name) => measure(name).scale === "log";
  const says = (name) => ({ loss: "The share of all detail that is lost, suppressed records counting in full", suppressed: "Records that are left out" })[name] ?? measure(name).sentence;
  const panel = h("div", { class: "card", id: "point" }, h("div", { class: "empty" }, "Choose a point on the map, in the table, or by a question."));
  const side = h("div", {});
  const list = h("div", { class: "scroll", style: "max-height:300px", tabindex: "0", id: "points" });
  const counted = h("span", { class: "badge", id: "counted" });

  const byId = new Map(front.points.map((point) => [point.id, point]));
  function spoken(id) {
    const point = byId.get(id);
    return [`point ${id}`, ...names.map((name) => `${title(name)} ${number(point.values[name])}`), `loss ${percent(point.loss)}, ${number(point.suppressed)} suppressed`];
  }
  const map = cloud({
    height: 400, label: `risk–utility map of ${front.points.length} points`, xTitle: "", yTitle: "", logY: true,
    xText: (tick) => text(xName)(tick).replace(".0 %", " %"), yText: (tick) => text(yName)(tick), says: spoken, picked: (id, shift) => shift ? versus(id) : choose(id), brushed: keep,
  });
  const coordinates = ["loss", ...names.filter((name) => !measure(name).loss_of_points), "suppressed"];
  const lines = parallel({
    label: "parallel coordinates of the points", brushed: keep,
    axes: coordinates.map((name) => ({ name, title: title(name), log: log(name), text: text(name), better: name === "loss" || name === "suppressed" || front.objectives.find((each) => each.name === name)?.direction === "min" ? "less" : "more" })),
  });

  const pairs = names.length > 2 ? matrix({ label: "every pair of figures", names: coordinates, title, log, picked: (id) => choose(id) }) : null;

  function marks() { return { chosen: state.point, knee: front.knee, rival }; }
  function drawMap() {
    const points = front.points.map((point) => ({ id: point.id, x: value(point, xName), y: value(point, yName) })).sort((a, b) => a.x - b.x);
    const others = (front.others ?? []).filter((other) => other[xName] !== undefined && other[yName] !== undefined).map((other) => ({ x: other[xName], y: other[yName] }));
    map.draw({ points, others, marks: marks(), inside, joined: xName === "loss" && names.length <= 2 });
    fill(axisTitles, select([...coordinates, ...names.filter((name) => !coordinates.includes(name))].map((name) => [name, title(name)]), yName, (next) => { yName = next; drawMap(); }, { "aria-label": "Vertical axis" }), " against ",
      select(coordinates.map((name) => [name, title(name)]), xName, (next) => { xName = next; drawMap(); }, { "aria-label": "Horizontal axis" }));
  }
  function drawList() {
    const shown = front.points.filter((point) => inside === null || inside.has(point.id));
    fill(counted, inside === null ? plural(shown.length, "point") : `${number(shown.length)} of ${number(front.points.length)} selected`);
    const some = shown.slice(0, front.points.length > ROWS ? FEW : ROWS);
    if (state.point !== null && shown.length > some.length && !some.some((point) => point.id === state.point)) some.unshift(byId.get(state.point));
    fill(list, h("table", {}, h("thead", {}, h("tr", {}, h("th", {}, "id"), names.map((name) => h("th", {}, defined(title(name), says(name)))), h("th", {}, defined("loss", says("loss"))), h("th", {}, defined("suppressed", says("suppressed"))), h("th", {}, ""))),
      h("tbody", {}, some.map((point) => h("tr", {
        class: "pick", tabindex: "0", "data-point": point.id, "aria-selected": point.id === state.point ? "true" : null,
        onclick: () => choose(point.id), onkeydown: (event) => { if (event.key === "Enter") choose(point.id); },
      }, h("td", {}, point.id), names.map((name) => h("td", {}, number(point.values[name]))), h("td", {}, percent(point.loss)), h("td", {}, number(point.suppressed)),
      h("td", {}, point.id === front.knee && h("span", { class: "badge", title: `The knee ${front.knee_scale}: no recommendation, and elsewhere on another scale` }, "knee"), button("vs", (event) => { event.stopPropagation(); versus(point.id); }, { class: "plain small", title: "Compare with the chosen point, record by record" })))))),
    shown.length > some.length && h("p", { class: "quiet", style: "padding:.3rem .6rem" }, `… ${number(shown.length - some.length)} more: drag over the map to select a part`));
  }
  function markRow() {
    const row = list.querySelector(`[data-point="${state.point}"]`);
    if (!row) { drawList(); return; }
    list.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    row.setAttribute("aria-selected", "true");
  }
  function keep(next) {
    inside = next;
    map.draw({ inside });
    lines.draw({ inside });
    pairs?.draw({ inside });
    drawList();
  }
  async function choose(id, limits = null, offer = null) {
    note({ point: id, limits });
    map.draw({ marks: marks() });
    lines.draw({ chosen: id });
    pairs?.draw({ chosen: id });
    markRow();
    await drawPoint(panel, offer, id, () => go({ step: "publish" }));
    if (rival !== null) await versus(rival);
  }
  // The answer to a question that the address remembers is asked for again: it suppresses other classes than the search.
  async function again() {
    const { limits } = state;
    const found = limits && await asked(limits);
    if (found && found.answer.point === state.point && !found.answer.searched) await choose(state.point, limits, found.answer);
    else await choose(state.point);
  }
  async function versus(id) {
    if (state.point === null) { await choose(id); return; }
    rival = id === state.point ? null : id;
    map.draw({ marks: marks() });
    await drawComparison(side, state.point, rival, () => { rival = null; map.draw({ marks: marks() }); fill(side); });
  }
  const axisTitles = h("span", {});
  drawMap();
  const rows = front.points.map((point) => Object.fromEntries([["id", point.id], ...coordinates.map((name) => [name, value(point, name)])]));
  lines.draw({ rows, chosen: state.point });
  pairs?.draw({ rows, chosen: state.point });
  drawList();
  if (byId.has(state.point)) again();

  return [
    h("div", { class: "row spread" }, h("h1", {}, "Risk–utility map"), h("div", { class: "row" }, jobs.length > 1 && chooser(jobs)) ),
    h("p", { class: "quiet" }, `${plural(front.points.length, "non-dominated release")} of ${number(front.rows)} records: ${front.how}.`, front.exact && " No generalization of the lattice is better.", searched && ` Searched for: ${inWords(searched.settings)}.`),
    h("div", { class: "columns linked" },
      h("div", {}, h("div", { class: "card" }, h("div", { class: "row spread" }, axisTitles, counted, button("Show all", () => keep(null), { class: "plain small" })),
        map.element, h("p", { class: "quiet" }, h("small", {}, "Click to choose, Shift+click to compare, drag to select; the arrow keys move along the front."))),
      h("div", { class: "card late" }, h("h2", {}, "Points"), list), h("div", { class: "card late" }, h("h2", {}, "All figures at once"), lines.element, h("p", { class: "quiet" }, h("small", {}, "Better is up on every axis. Drag along an axis to filter; click it to clear the filter."))),
      pairs && h("div", { class: "card late" }, h("h2", {}, "Every pair of figures"), pairs.element)),
      h("div", {}, common(front, choose), questions(choose), panel)),
    side,
  ];
}
