// Groups: the areas as the attacker sees them, as they are, and as they look after the protection.
import { attempt, get } from "./api.js";
import { bars } from "./charts/bars.js";
import { button, defined, fill, h, number, percent, plural, table } from "./dom.js";
import { outdated } from "./outdated.js";
import { go, here, note, state } from "./state.js";

export async function drawGroups(place) {
  const found = await attempt(() =>
    get(`${here()}/jobs/${state.job}/groups`, "reading the attack …"),
  );
  if (!found) return;
  const { attack, protection } = found;
  const areas = attack.areas;
  const sensitive = attack.outliers.sensitive ?? [];
  const labels = areas.map((area) => area.area);
  const marked = (where) => sensitive.includes(labels[where]);
  const chosen = protection?.points[protection.chosen];
  const points = h("div", { id: "protections" });
  if (protection) drawPoints(points, protection);
  const left = protection
    ? sensitive.filter((area) =>
        protection.signals.some((signal) => signal.outliers_after.includes(area)),
      )
    : [];
  const bound =
    (chosen?.bound ?? null) === null ? "" : ` (proven lower bound ${chosen.bound.toFixed(1)})`;
  fill(
    place,
    h("h1", {}, `Where ${attack.group} people are`),
    outdated(found.changes),
    h(
      "p",
      { class: "quiet" },
      `${attack.attacker[0].toUpperCase()}${attack.attacker.slice(1)} attacker, ` +
        `learned from ${attack.auxiliary}; ${plural(areas.length, "area")}. Red areas ` +
        "must not be identified.",
    ),
    protection &&
      h(
        "div",
        { class: protection.holds && !left.length ? "fine" : "warning" },
        h(
          "b",
          {},
          protection.holds
            ? "No held-out attack identifies the sensitive areas any more"
            : "At least one held-out attack still identifies a sensitive area",
        ),
        left.length > 0 &&
          h(
            "span",
            {},
            `Some signals still show ${left.join(", ")} as outliers, ` +
              "which the attacks do not rank first: see below.",
          ),
        h(
          "span",
          {},
          `${plural(chosen.swaps, "swap")} at a cost of ` +
            `${number(chosen.cost)}${bound}; ` +
            `loss ${percent(chosen.loss, 3)}; found ${protection.found_before} before, ` +
            `${chosen.sealed.areas} after, over ` +
            `${plural(chosen.sealed.attacks, "held-out attack")} that no plan was fitted to ` +
            "or chosen by.",
        ),
      ),
    h(
      "div",
      { class: "halves" },
      h(
        "div",
        { class: "card" },
        h(
          "h2",
          {},
          defined(
            "What the attacker sees",
            "Grades of membership that rules learned from the auxiliary file give, summed per area",
          ),
        ),
        bars(
          areas.map((area) => Math.round(area.auxiliary * 100) / 100),
          { labels, height: 220, label: "the attacker's signal per area", marked },
        ),
      ),
      h(
        "div",
        { class: "card" },
        h("h2", {}, defined("The truth", "Members of the group in each area; never published")),
        areas[0]?.q === null
          ? h("p", { class: "quiet" }, "The file does not have the columns that define the group.")
          : bars(
              areas.map((area) => area.q),
              { labels, height: 220, label: "true members per area", marked },
            ),
      ),
      protection &&
        protection.signals.slice(0, 4).map((signal) =>
          h(
            "div",
            { class: "card" },
            h(
              "h2",
              {},
              signal.name === "truth"
                ? "The truth before and after"
                : `Attacker ${signal.name}, before and after`,
            ),
            bars(signal.before, {
              labels: protection.areas.map((area) => area.area),
              second: signal.after,
              height: 220,
              marked: (at) => sensitive.includes(protection.areas[at].area),
              label: `${signal.name} before and after`,
            }),
            h(
              "p",
              { class: "quiet" },
              h(
                "small",
                {},
                h("span", { class: "swatch", style: "background:var(--faint)" }),
                "before ",
                h("span", { class: "swatch", style: "background:var(--accent)" }),
                `after; outliers left: ${signal.outliers_after.join(", ") || "none"}`,
              ),
            ),
          ),
        ),
    ),
    protection &&
      h("div", { class: "card" }, h("h2", {}, "Cost and sensitive areas still identified"), points),
    attack.rules.length > 0 &&
      h(
        "div",
        { class: "card" },
        h("h2", {}, "How the attacker recognises members"),
        table(
          "Rules of the attacker",
          [
            "rule",
            { text: "RCF", title: "How much more often members meet the rule than others" },
            { text: "support", title: "The share of all records that meet it" },
          ],
          attack.rules
            .slice(0, 12)
            .map((rule) => [
              h("td", { class: "wrap" }, rule.words),
              rule.rcf === null ? "∞" : number(rule.rcf),
              number(rule.support),
            ]),
        ),
      ),
  );
}

const HEADS = [
  "point",
  {
    text: "reduction",
    title: "How far the sensitive areas are brought down to the level of the others",
  },
  "swaps",
  "cost",
  { text: "lower bound", title: "A proven lower bound of the cost" },
  { text: "known and fresh attacks find", title: "Attacks that plans are fitted to and chosen by" },
  {
    text: "held-out attacks find",
    title: "Attacks made when the plans were ready: the verdict is theirs",
  },
  "choice",
];

function drawPoints(place, protection) {
  const choose = (id) => {
    note({ point: id });
    drawPoints(place, protection);
  };
  const now = state.point ?? protection.chosen;
  fill(
    place,
    table(
      "Protections",
      HEADS,
      protection.points.map((point) => [
        point.id === protection.chosen ? `${point.id} (suggested)` : point.id,
        percent(point.level, 0),
        number(point.swaps),
        number(point.cost),
        point.bound === null ? "–" : point.bound.toFixed(1),
        `${point.found} of ${protection.planned_before}`,
        `${point.sealed.areas} of ${protection.found_before}`,
        h(
          "td",
          {},
          point.id === now
            ? h("span", { class: "badge" }, "chosen")
            : button("choose", () => choose(point.id), { class: "plain small" }),
        ),
      ]),
    ),
    h(
      "div",
      { class: "row", style: "margin-top:.8rem" },
      button(`Publish point ${now} …`, () => go({ step: "publish", point: now }), {
        class: "main",
        id: "to-publish",
      }),
    ),
  );
}
