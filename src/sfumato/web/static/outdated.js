// A front that was searched with another declaration than the present one says so, and what has changed.
import { button, h } from "./dom.js";
import { go } from "./state.js";

export function outdated(changes) {
  if (!changes?.length) return null;
  return h(
    "div",
    { class: "warning", id: "outdated" },
    h("b", {}, "This was searched with other settings than are declared now."),
    h(
      "ul",
      { class: "words" },
      changes.map((change) => h("li", {}, change)),
    ),
    h("span", {}, "It can still be looked at and published, as it was declared then."),
    h(
      "div",
      {},
      button("Search again as it is declared now →", () => go({ step: "search" }), {
        class: "small",
      }),
    ),
  );
}
