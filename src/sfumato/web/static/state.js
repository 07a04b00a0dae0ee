// What the page is about: the step, the study, the search, the point. Kept in the address, so a reload loses nothing.

/** @type {Set<(what: string) => void>} */
const listeners = new Set();
// `limits` is the question whose answer is chosen, where that suppresses other classes than the search did.
/**
 * `about` is what the server is, `declared` the study as the server last described it.
 * @type {{step: string, study: string | null, job: string | null, point: number | null,
 *   limits: Record<string, number> | null, about: any, declared: any, jobs: Map<string, any>}}
 */
export const state = {
  step: "open",
  study: null,
  job: null,
  point: null,
  limits: null,
  about: null,
  declared: null,
  jobs: new Map(),
};

/** @param {(what: string) => void} act */
export function onChange(act) {
  listeners.add(act);
  return () => listeners.delete(act);
}
/** @param {string} what */
export function tell(what) {
  for (const act of listeners) act(what);
}

const LIMITS = ["max_loss", "max_suppression", "min_k", "min_l"];
/** @param {string} part */
const plain = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return "";
  }
};

export function readAddress() {
  const [step, study, job, point, limits] = location.hash
    .replace(/^#\/?/, "")
    .split("/")
    .map(plain);
  state.step = ["open", "declare", "search", "explore", "publish"].includes(step) ? step : "open";
  if (study !== (state.study ?? "")) state.declared = null;
  state.study = study || null;
  state.job = job || null;
  state.point = /^\d+$/.test(point ?? "") ? Number(point) : null;
  const asked = [...new URLSearchParams(limits ?? "")].filter(
    ([name, value]) => LIMITS.includes(name) && Number.isFinite(Number(value)),
  );
  state.limits = asked.length
    ? Object.fromEntries(asked.map(([name, value]) => [name, Number(value)]))
    : null;
}

/** @param {Partial<typeof state>} changes */
function settle(changes) {
  if ("point" in changes || "job" in changes) state.limits = null;
  Object.assign(state, changes);
  const parts = [
    state.step,
    state.study ?? "",
    state.job ?? "",
    state.point ?? "",
    state.limits
      ? new URLSearchParams(
          Object.entries(state.limits).map(([name, value]) => [name, String(value)]),
        ).toString()
      : "",
  ];
  while (parts.length > 1 && parts.at(-1) === "") parts.pop();
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

/** @param {Partial<typeof state>} changes */
export function go(changes) {
  const hash = settle(changes);
  if (location.hash !== hash) history.pushState(null, "", hash);
  tell("address");
}

// The same without a new page: a point that is looked at is not a step to go back to.
/** @param {Partial<typeof state>} changes */
export function note(changes) {
  history.replaceState(null, "", settle(changes));
}

/** @param {string} name */
export const measure = (name) =>
  state.about?.measures.find((found) => found.name === name || found.aliases.includes(name)) ?? {
    name,
    title: name,
    sentence: "",
    direction: "max",
    kind: "privacy",
  };
// The measures that an audit shows first, in their order; and what is sought where a run file names no objectives.
export const headlines = () =>
  state.about.measures
    .filter((each) => each.headline)
    .sort((a, b) => a.headline.position - b.headline.position);
export const usualObjectives = () =>
  state.about.measures.filter((each) => each.default).map((each) => each.name);
export const here = () => `/studies/${state.study}`;
