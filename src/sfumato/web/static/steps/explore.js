// Explore: the question, the map with the chosen point beside it, the points, parallel coordinates; two points
// compared.
import { attempt, get } from "../api.js";
import { cloud } from "../charts/cloud.js";
import { matrix } from "../charts/matrix.js";
import { parallel } from "../charts/parallel.js";
import { chartButtons } from "../charts/saving.js";
import { drawChannel } from "../channel.js";
import { button, fill, h, number, percent, plural, select } from "../dom.js";
import { drawGroups } from "../groups.js";
import { outdated } from "../outdated.js";
import { drawPoint } from "../point.js";
import { pointList } from "../points.js";
import { aboutFront, chooser } from "../front-words.js";
import { asked, questions } from "../questions.js";
import { valueText } from "../settings.js";
import { go, here, measure, note, state } from "../state.js";
import { drawComparison } from "../two-points.js";

// What the plans share of which a floor is proven; labels where nothing is said.
const BOUNDED = { cells: "single cells suppressed" };

export async function exploreStep(place) {
  const jobs = [...state.jobs.values()]
    .filter(
      (job) =>
        job.study === state.study &&
        ["search", "channel", "groups"].includes(job.kind) &&
        job.front,
    )
    .sort((a, b) => b.added - a.added);
  if (!jobs.length) {
    fill(
      place,
      h("h1", {}, "Explore"),
      h(
        "div",
        { class: "card empty" },
        h(
          "div",
          {},
          h("p", {}, "No search of this table has a front yet."),
          button("Search →", () => go({ step: "search" }), { class: "main" }),
        ),
      ),
    );
    return undefined;
  }
  if (!jobs.some((job) => job.id === state.job)) note({ job: jobs[0].id, point: null });
  const kind = jobs.find((job) => job.id === state.job).kind;
  if (kind !== "search") {
    const other = h("div", {});
    fill(
      place,
      jobs.length > 1 && h("div", { class: "row spread" }, h("span", {}), chooser(jobs)),
      other,
    );
    await (kind === "channel" ? drawChannel : drawGroups)(other);
    return undefined;
  }
  const front = await attempt(() =>
    get(`${here()}/jobs/${state.job}/front`, "reading the front …"),
  );
  if (!front) return undefined;
  fill(place, ...(await explorer(front, jobs)));
  return undefined;
}

export async function explorer(front, jobs) {
  const names = front.objectives.map((each) => each.name);
  const asks = front.limits?.length > 0;
  const recoded = front.compared ?? true; // records of others are not compared one by one
  let xName = "loss";
  let yName = names.find((name) => measure(name).kind === "privacy") ?? names[0];
  const searched = jobs.find((job) => job.id === state.job);
  let inside = null;
  let rival = null;
  /** @type {any} */
  let offered = null; // the answer to a question, where it suppresses otherwise than the search
  const value = (point, name) =>
    name === "loss" ? point.loss : name === "suppressed" ? point.suppressed : point.values[name];
  const text = (name) => (each) =>
    name === "loss" ? percent(each) : name === "suppressed" ? number(each) : valueText(name)(each);
  const title = (name) =>
    ({ loss: "information loss", suppressed: "records suppressed" })[name] ??
    front.objectives.find((each) => each.name === name)?.title ??
    measure(name).title;
  const log = (name) => measure(name).scale === "log";
  const less = (name) =>
    name === "loss" ||
    name === "suppressed" ||
    front.objectives.find((each) => each.name === name)?.direction === "min";
  const says = (name) =>
    ({
      id: "The number of the point",
      loss:
        "The share of all detail that is lost, suppressed records and records left out " +
        "because of missing values counting in full",
      ratio:
        "The loss divided by what every recoding of this kind loses at least at this k, which is proven",
      suppressed: "Records that are left out",
    })[name] ?? measure(name).sentence;
  const panel = h(
    "div",
    { class: "card", id: "point" },
    h(
      "div",
      { class: "empty" },
      asks
        ? "Choose a point on the map, in the table, or by a question."
        : "Choose a point on the map or in the table.",
    ),
  );
  const side = h("div", {});
  const spokenHere = h("div", {
    class: "unseen",
    role: "status",
    "aria-live": "polite",
    id: "spoken",
  });

  const byId = new Map(front.points.map((point) => [point.id, point]));
  function spoken(id) {
    const point = byId.get(id);
    return [
      `point ${id}`,
      ...names.map((name) => `${title(name)} ${text(name)(point.values[name])}`),
      `loss ${percent(point.loss)}, ${number(point.suppressed)} suppressed`,
    ];
  }
  const everything = button("Show all", () => keep(null), { class: "plain small", hidden: true });
  const map = cloud({
    height: 400,
    label: `risk–utility map of ${plural(front.points.length, "point")}; the arrow keys choose a point`,
    xTitle: "",
    yTitle: "",
    logY: true,
    xText: (tick) => text(xName)(tick).replace(".0 %", " %"),
    yText: (tick) => text(yName)(tick),
    says: spoken,
    picked: (id, shift) => (shift && recoded ? versus(id) : choose(id)),
    brushed: keep,
  });
  const coordinates = [
    "loss",
    ...names.filter((name) => !measure(name).loss_of_points),
    "suppressed",
  ];
  const lines = parallel({
    label: "parallel coordinates of the points",
    brushed: keep,
    axes: coordinates.map((name) => ({
      name,
      title: title(name),
      log: log(name),
      text: text(name),
      better: less(name) ? "less" : "more",
    })),
  });
  const pairs =
    names.length > 2
      ? matrix({
          label: "every pair of figures",
          names: coordinates,
          title,
          log,
          picked: (id) => choose(id),
        })
      : null;
  const list = pointList(front, { names, title, says, choose, versus: recoded && versus });

  // The answer to a question stands where its own figures put it, which may be no point of the search.
  function marks() {
    const answer =
      offered &&
      [front.ruled?.k, front.ruled?.l, "loss", "suppressed"].includes(yName) &&
      ["loss", "suppressed"].includes(xName)
        ? {
            x: offered[xName],
            y:
              yName === front.ruled?.l
                ? offered.l
                : yName === front.ruled?.k
                  ? offered.k
                  : offered[yName],
          }
        : null;
    return {
      chosen: state.point,
      knee: front.knee,
      rival,
      answer: answer && Number.isFinite(answer.y) ? answer : null,
    };
  }
  function policyLines() {
    const policy = front.policy ?? {};
    if (yName === front.ruled?.k)
      return [...new Set([policy.k ?? 3, 5, 10])].map((each) => ({
        value: each,
        text: each === policy.k ? `k ${each}: your policy` : `k ${each}`,
        floor: each === policy.k,
      }));
    return yName === front.ruled?.l
      ? [{ value: policy.l ?? 2, text: `ℓ ${policy.l ?? 2}: your policy`, floor: true }]
      : [];
  }
  const floor = () => (xName === "loss" && yName === front.ruled?.k ? (front.floor ?? []) : []);
  function drawMap() {
    const points = front.points
      .map((point) => ({ id: point.id, x: value(point, xName), y: value(point, yName) }))
      .sort((a, b) => a.x - b.x);
    const others = (front.others ?? [])
      .filter((other) => other[xName] !== undefined && other[yName] !== undefined)
      .map((other) => ({ x: other[xName], y: other[yName] }));
    const better = less(yName) ? (less(xName) ? "↙" : "↘") : less(xName) ? "↖" : "↗";
    map.draw({
      points,
      others,
      marks: marks(),
      inside,
      joined: xName === "loss" && names.length <= 2,
      lines: policyLines(),
      floor: floor(),
      better,
      logX: log(xName),
    });
    fill(
      axisTitles,
      select(
        [...coordinates, ...names.filter((name) => !coordinates.includes(name))].map((name) => [
          name,
          title(name),
        ]),
        yName,
        (next) => {
          yName = next;
          drawMap();
        },
        { "aria-label": "Vertical axis" },
      ),
      " against ",
      select(
        coordinates.map((name) => [name, title(name)]),
        xName,
        (next) => {
          xName = next;
          drawMap();
        },
        { "aria-label": "Horizontal axis" },
      ),
    );
  }
  function keep(next) {
    inside = next;
    everything.hidden = inside === null;
    map.draw({ inside });
    lines.draw({ inside });
    pairs?.draw({ inside });
    list.keep(next);
  }
  /**
   * @param {number} id
   * @param {Record<string, number> | null} [limits]
   * @param {any} [offer]
   */
  async function choose(id, limits = null, offer = null) {
    note({ point: id, limits });
    offered = offer;
    map.draw({ marks: marks() });
    lines.draw({ chosen: id });
    pairs?.draw({ chosen: id });
    list.mark();
    spokenHere.textContent = offer ? `The answer: ${offer.says}` : spoken(id).join(", ");
    await drawPoint(panel, offer, id, () => go({ step: "publish" }), front);
    if (rival !== null) await versus(rival);
  }
  // The answer to a question that the address remembers is asked for again: it suppresses other classes than the
  // search.
  async function again() {
    const { limits } = state;
    const found = limits && (await asked(limits));
    if (found?.answer && found.answer.point === state.point && !found.answer.searched)
      await choose(found.answer.point, limits, found.answer);
    else if (state.point !== null) await choose(state.point);
  }
  async function versus(id) {
    if (state.point === null) {
      await choose(id);
      return;
    }
    rival = id === state.point ? null : id;
    map.draw({ marks: marks() });
    side.parentElement.scrollTop = 0; // it stands above the point
    await drawComparison(side, state.point, rival, () => {
      rival = null;
      map.draw({ marks: marks() });
      fill(side);
    });
  }
  const axisTitles = h("span", {});
  drawMap();
  const rows = front.points.map((point) =>
    Object.fromEntries([
      ["id", point.id],
      ...coordinates.map((name) => [name, value(point, name)]),
    ]),
  );
  lines.draw({ rows, chosen: state.point });
  pairs?.draw({ rows, chosen: state.point });
  list.draw();
  if (byId.has(state.point)) again();

  return [
    h(
      "div",
      { class: "row spread" },
      h("h1", {}, "Risk–utility map"),
      h("div", { class: "row" }, jobs.length > 1 && chooser(jobs)),
    ),
    outdated(front.changes),
    aboutFront(front, searched),
    asks && questions(front, choose),
    spokenHere,
    h(
      "div",
      { class: "columns linked even" },
      h(
        "div",
        {},
        h(
          "div",
          { class: "card" },
          h(
            "div",
            { class: "row spread" },
            axisTitles,
            list.counted,
            everything,
            chartButtons(map.element, "map"),
          ),
          map.element,
          h(
            "p",
            { class: "quiet" },
            h(
              "small",
              {},
              `Click to choose, ${recoded ? "Shift+click to compare, " : ""}drag to select; ` +
                "the arrow keys move along the front. Dashed: limits that policies set.",
              front.floor?.length > 0 &&
                " Grey: no recoding with " +
                  `${BOUNDED[front.system] ?? "these labels"} loses ` +
                  "so little, which is proven.",
            ),
          ),
        ),
        h(
          "div",
          { class: "card late" },
          h("div", { class: "row spread" }, h("h2", {}, "Points"), list.csv),
          list.element,
        ),
        h(
          "div",
          { class: "card late" },
          h(
            "div",
            { class: "row spread" },
            h("h2", {}, "All figures at once"),
            chartButtons(lines.element, "figures"),
          ),
          lines.element,
          h(
            "p",
            { class: "quiet" },
            h(
              "small",
              {},
              "Better is up on every axis. Drag along an axis to filter; click it to clear the filter.",
            ),
          ),
        ),
        pairs &&
          h("div", { class: "card late" }, h("h2", {}, "Every pair of figures"), pairs.element),
      ),
      h("div", { class: "aside" }, side, panel),
    ),
  ];
}
