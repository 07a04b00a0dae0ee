// The publisher's questions: limits in plain numbers, an answer in words, what would pay.
import { attempt, get, query } from "./api.js";
import { button, field, fill, h } from "./dom.js";
import { here, state } from "./state.js";

const LIMITS = { max_loss: "the limit on loss", max_suppression: "the limit on suppression", min_k: "the minimum k", min_l: "the minimum ℓ" };
const SHARES = ["max_loss", "max_suppression"];
const tidy = (share) => Math.round(share * 1e4) / 100;

export const asked = (limits, place) => attempt(() => get(`${here()}/jobs/${state.job}/ask${query(limits)}`, "asking …"), place);

// A question in words, for those who come back to its answer.
export const inWords = (limits) => Object.entries(limits).map(([name, value]) => `${LIMITS[name] ?? name} ${SHARES.includes(name) ? `${tidy(value)} %` : value}`).join(", ");

export function questions(choose) {
  const before = state.limits ?? { max_loss: 0.3, max_suppression: state.declared.study.search?.max_suppression ?? 0 };
  const input = (name, properties) => h("input", { type: "number", value: before[name] === undefined ? "" : SHARES.includes(name) ? tidy(before[name]) : before[name], ...properties });
  const inputs = {
    max_loss: input("max_loss", { min: 0, max: 100, step: "any", id: "ask-loss" }), max_suppression: input("max_suppression", { min: 0, max: 100, step: "any", id: "ask-suppression" }),
    min_k: input("min_k", { min: 1, step: 1, id: "ask-k" }), min_l: input("min_l", { min: 1, step: 1, id: "ask-l" }),
  };
  const answer = h("div", { id: "answer", "aria-live": "polite" });
  async function ask() {
    const given = Object.fromEntries(Object.entries(inputs).filter(([, each]) => each.value !== "").map(([name, each]) => [name, SHARES.includes(name) ? Number(each.value) / 100 : Number(each.value)]));
    answer.inert = true; // nobody shall take the old answer for the new one
    const found = await asked(given, answer);
    answer.inert = false;
    if (found) show(found, given);
  }
  function show(found, given) {
    const offer = found.answer;
    if (offer === null) {
      fill(answer, h("p", {}, "Set a limit, or choose one of the common limits: without one nothing is recommended."));
      return;
    }
    const list = (title, rows, definition) => rows?.length > 0 && h("div", {}, h("h3", { title: definition }, title), h("ul", { class: "words" }, rows.map((row) => h("li", {}, row))));
    fill(answer, h("div", { class: "fine" }, h("b", {}, offer.says), h("span", {}, found.binds.length ? `Binding limits: ${found.binds.map((name) => LIMITS[name] ?? name).join(" and ")}.` : ""),
      h("div", { class: "row" }, button(`Look at point ${offer.point}`, () => choose(offer.point, offer.searched ? null : given, offer.searched ? null : offer), { class: "small" }))),
    list("Worthwhile relaxations", found.relaxations.map((each) => each.says), "What slightly looser limits would gain"),
    list("Flat stretches: much privacy for little loss", found.stretches.flat, "Where more privacy costs little loss"),
    list("Steep stretches: where privacy is expensive", found.stretches.steep, "Where more privacy costs much loss"),
    found.notes.map((each) => h("p", { class: "quiet" }, h("small", {}, each))));
  }
  return h("form", { class: "card", novalidate: true, onsubmit: (event) => { event.preventDefault(); ask(); } }, h("h2", {}, "Best release within limits"),
    h("div", { class: "row top" }, field("Loss at most, %", inputs.max_loss, "As a share of all detail in the table"), field("Suppress at most, %", inputs.max_suppression, "As a share of all records"),
      field("k at least", inputs.min_k, "Minimum number of records with equal quasi-identifiers"), field("ℓ at least", inputs.min_l, "Different sensitive values in every class"),
      h("button", { class: "main", id: "ask", type: "submit" }, "Ask")), answer);
}
