// The publisher's questions: limits in plain numbers, an answer in words, and what else could be asked, as buttons.
import { attempt, get, query } from "./api.js";
import { button, field, fill, h, number, table, times } from "./dom.js";
import { here, state } from "./state.js";

const LIMITS = {
  max_loss: "the limit on loss",
  max_suppression: "the limit on suppression",
  min_k: "the minimum k",
  min_l: "the minimum ℓ",
};
const WORDS = {
  max_loss: "loss at most",
  max_suppression: "suppress at most",
  min_k: "k at least",
  min_l: "ℓ at least",
};
const SHARES = ["max_loss", "max_suppression"];
const tidy = (share) => Math.round(share * 1e4) / 100;
const text = (name, value) =>
  `${WORDS[name] ?? name} ${SHARES.includes(name) ? `${tidy(value)} %` : number(value)}`;

export const asked = (limits, place) =>
  attempt(() => get(`${here()}/jobs/${state.job}/ask${query(limits)}`, "asking …"), place);

// Notes name settings of a run file, which stand elsewhere on the page.
const onPage = (note) =>
  note
    .replace(
      /: objectives = .* under \[search\] finds the best ones\./,
      ". A search with ℓ among its objectives may find better ones.",
    )
    .replace(/: set order = \[.*$/, ": give them an order or a hierarchy under Declare.");

// A question in words, for those who come back to its answer.
export const inWords = (limits) =>
  Object.entries(limits)
    .map(
      ([name, value]) =>
        `${LIMITS[name] ?? name} ${SHARES.includes(name) ? `${tidy(value)} %` : value}`,
    )
    .join(", ");

export function questions(front, choose) {
  const before = state.limits ?? { max_loss: 0.3, max_suppression: front.max_suppression ?? 0 };
  const input = (name, properties) =>
    h("input", {
      type: "number",
      value:
        before[name] === undefined ? "" : SHARES.includes(name) ? tidy(before[name]) : before[name],
      ...properties,
    });
  const inputs = {
    max_loss: input("max_loss", { min: 0, max: 100, step: "any", id: "ask-loss" }),
    max_suppression: input("max_suppression", {
      min: 0,
      max: 100,
      step: "any",
      id: "ask-suppression",
    }),
    min_k: input("min_k", { min: 1, step: 1, id: "ask-k" }),
    min_l: input("min_l", { min: 1, step: 1, id: "ask-l" }),
  };
  const answer = h("div", { id: "answer", "aria-live": "polite" });
  const given = () =>
    Object.fromEntries(
      Object.entries(inputs)
        .filter(([name, each]) => front.limits.includes(name) && each.value !== "")
        .map(([name, each]) => [
          name,
          SHARES.includes(name) ? Number(each.value) / 100 : Number(each.value),
        ]),
    );

  async function ask() {
    const limits = given();
    answer.inert = true; // nobody shall take the old answer for the new one
    const found = await asked(limits, answer);
    answer.inert = false;
    if (found) show(found, limits);
  }
  // Other limits into the form, and asked at once; what is not named stays as it is.
  function take(limits) {
    for (const [name, value] of Object.entries(limits))
      inputs[name].value = SHARES.includes(name)
        ? tidy(Math.ceil(value * 1e4 - 1e-6) / 1e4)
        : Math.floor(value);
    return ask();
  }
  const buttons = (rows) =>
    h(
      "ul",
      { class: "words" },
      rows.map(([says, limits]) =>
        h(
          "li",
          {},
          button(says, () => take(limits), {
            class: "plain small ask",
            "data-limits": JSON.stringify(limits),
          }),
        ),
      ),
    );

  function show(found, limits) {
    if (found.nothing) {
      const near = Object.entries(found.nothing.nearest);
      fill(
        answer,
        h(
          "div",
          { class: "warning", id: "nothing" },
          h("b", {}, `Nothing is within ${inWords(limits)}.`),
          near.length
            ? [
                h("span", {}, "The nearest that there is, if one limit is changed:"),
                buttons(near.map(([name, value]) => [text(name, value), { [name]: value }])),
              ]
            : h("span", {}, "Relax two limits at once, or search again."),
        ),
      );
      return;
    }
    const offer = found.answer;
    if (offer === null) {
      fill(
        answer,
        h(
          "p",
          {},
          "Set a limit, or choose one of the common limits: without one nothing is recommended.",
        ),
      );
      return;
    }
    const list = (title, rows, definition) =>
      rows?.length > 0 && h("div", {}, h("h3", { title: definition }, title), buttons(rows));
    const stretch = (pairs) => pairs.map(([from, to]) => [`${from.says} → ${to.says}`, to.limits]);
    fill(
      answer,
      h(
        "div",
        { class: "fine" },
        h("b", {}, offer.says),
        h(
          "span",
          {},
          found.binds.length
            ? `Binding limits: ${found.binds.map((name) => LIMITS[name] ?? name).join(" and ")}.`
            : "",
        ),
        found.floor &&
          h(
            "span",
            {},
            `Every recoding with these labels loses at least ${tidy(found.floor.loss)} % at ` +
              `this k, which is proven; this one loses ${times(found.floor.ratio)} that.`,
          ),
        h(
          "div",
          { class: "row" },
          button(
            `Look at point ${offer.point}`,
            () =>
              choose(offer.point, offer.searched ? null : limits, offer.searched ? null : offer),
            { class: "small" },
          ),
        ),
      ),
      h(
        "div",
        { class: "thirds" },
        list(
          "Worthwhile relaxations",
          found.relaxations.map((each) => [each.says, { [each.limit]: each.to }]),
          "What slightly looser limits would gain",
        ),
        list(
          "Much privacy for little loss",
          stretch(found.stretches.flat),
          "Where more privacy costs little loss",
        ),
        list(
          "Where privacy is expensive",
          stretch(found.stretches.steep),
          "Where more privacy costs much loss",
        ),
      ),
      found.notes.map((each) => h("p", { class: "quiet" }, h("small", {}, onPage(each)))),
    );
  }
  // Limits that policies commonly set, each with the release of least loss within it.
  const common =
    front.presets?.length > 0 &&
    h(
      "details",
      { id: "presets" },
      h("summary", {}, "Common limits"),
      table(
        "Common limits",
        ["limit", "the least loss within it", "point"],
        front.presets.map((each) => [
          h("td", { class: "wrap" }, each.words),
          h(
            "td",
            { class: "wrap" },
            each.point === null
              ? each.says
              : `k ${number(each.k)}, loss ${tidy(each.loss)} %, ${number(each.suppressed)} suppressed`,
          ),
          h(
            "td",
            {},
            each.point !== null &&
              button(`Point ${each.point}`, () => choose(each.point), { class: "plain small" }),
          ),
        ]),
      ),
    );
  return h(
    "form",
    {
      class: "card",
      id: "question",
      novalidate: true,
      onsubmit: (event) => {
        event.preventDefault();
        ask();
      },
    },
    h(
      "div",
      { class: "row top" },
      h("h2", {}, "Best release within limits"),
      field("Loss at most, %", inputs.max_loss, "As a share of all detail in the table"),
      field("Suppress at most, %", inputs.max_suppression, "As a share of all records"),
      field("k at least", inputs.min_k, "Minimum number of records with equal quasi-identifiers"),
      front.limits.includes("min_l") &&
        field("ℓ at least", inputs.min_l, "Different sensitive values in every class"),
      h("button", { class: "main", id: "ask", type: "submit" }, "Ask"),
    ),
    answer,
    common,
  );
}
