"""axe-core in a page: every rule it has, best practices and experimental ones included."""

from __future__ import annotations

import importlib.resources
from typing import Any

# The script of the package axe-playwright-python, of which nothing else is used.
SCRIPT = (importlib.resources.files("axe_playwright_python") / "axe.min.js").read_text("utf-8")
OFF: dict[str, str] = {}  # rules that are turned off, each with the reason
RUN = """async (off) => {
  const rules = Object.fromEntries(axe.getRules().map(({ ruleId }) => [ruleId, { enabled: !off.includes(ruleId) }]));
  const { violations } = await axe.run(document, { rules, resultTypes: ["violations"] });
  return violations.flatMap(({ id, impact, nodes }) => nodes.map((node) => {
    const why = [...node.any, ...node.all, ...node.none].map((check) => check.message).join("; ");
    return `${id} (${impact}) ${node.target.join(" ")}: ${why}: ${node.html.slice(0, 160)}`;
  }));
}"""


def violations(page: Any) -> list[str]:
    """What axe finds wrong with a page as it stands: the rule, the element, and why."""
    # Evaluated from outside the page, so its content policy, which allows no script but its own, stays as it is.
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(SCRIPT)
    return list(page.evaluate(RUN, sorted(OFF)))
