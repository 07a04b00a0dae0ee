// A release that breaks the policy: every broken rule, and a field for the reason it is accepted with.
import { button, fill, h } from "./dom.js";

export function refused(findings, publish) {
  // Met by a declaration, never by a reason alone.
  const unstated = findings.filter((finding) => finding.rule === "unit");
  if (unstated.length)
    return h(
      "div",
      { class: "warning", id: "refused" },
      h("b", {}, "Nothing was published: it is not declared what a row is."),
      unstated.map((finding) => h("span", {}, finding.what)),
      h(
        "p",
        {},
        "On Declare, give the column the role unit or household, or state there why " +
          "every row is a person. Then search again.",
      ),
    );
  // One reason covers a rule, however often it is broken.
  const keys = [...new Set(findings.map((finding) => finding.key))];
  const reasons = keys.map((key) => [
    key,
    h("textarea", {
      rows: 2,
      minlength: 10,
      maxlength: 2000,
      "aria-label": `Reason for accepting ${key}`,
    }),
  ]);
  const says = h("div", {});
  return h(
    "div",
    { class: "warning", id: "refused" },
    h("b", {}, "Nothing was published: the release does not meet your policy."),
    reasons.map(([key, field]) =>
      h(
        "label",
        { class: "field", style: "width:100%" },
        findings
          .filter((finding) => finding.key === key)
          .map((finding) => h("span", {}, finding.what)),
        field,
      ),
    ),
    h(
      "p",
      {},
      "Choose another point or other roles. Or accept every item with a reason of at " +
        "least ten characters; the reasons are recorded in the internal report.",
    ),
    button(
      "Accept and publish",
      () => {
        if (reasons.some(([, field]) => field.value.trim().length < 10)) {
          fill(says, h("p", {}, "Give a reason of at least ten characters for each item."));
          return;
        }
        publish(Object.fromEntries(reasons.map(([key, field]) => [key, field.value.trim()])));
      },
      { id: "accept" },
    ),
    says,
  );
}

export function verdict(found) {
  return found.verified
    ? h(
        "div",
        { class: "fine verified" },
        h("b", {}, "✓ Verified"),
        h("span", {}, "The file was read back and measured: all figures and rows agree."),
        (found.not_compared ?? []).map((each) => h("span", {}, `Not compared again: ${each}.`)),
      )
    : h(
        "div",
        { class: "error" },
        h("b", {}, "The release differs from what was published"),
        found.differences.map((each) => h("span", {}, each)),
      );
}
