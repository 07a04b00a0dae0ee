// What a search looked for, in a line: the settings that it was started with.
import { number, percent } from "./dom.js";
import { measure } from "./state.js";

export function inWords(settings = {}) {
  const objectives = (settings.objectives ?? ["k", "general_loss"]).map((each) => measure(each.name ?? each).title);
  const limits = Object.entries(settings.constraints ?? {}).map(([name, value]) => `${measure(name).title} ${measure(name).direction === "max" ? "at least" : "at most"} ${number(value)}`);
  const share = settings.max_suppression ?? 0;
  return [settings.system === "cuts" ? "Cuts" : "Levels", settings.problem ? `problem ${settings.problem}` : objectives.join(" and "), share ? `at most ${percent(share, share < 0.01 ? 1 : 0)} suppressed` : "nothing suppressed", ...limits].join(", ");
}
