// What the page is about: the step, the study, the search, the point. Kept in the address, so a reload loses nothing.

const listeners = new Set();
// `limits` is the question whose answer is chosen, where that suppresses other classes than the search did.
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

export function onChange(act) {
  listeners.add(act);
  return () => listeners.delete(act);
}
export function tell(what) {
  for (const act of listeners) act(what);
}

const LIMITS = ["max_loss", "max_suppression", "min_k", "min_l"];
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
  const asked = [...new URLSearchParams(limits ?? "")]
    .map(([name, value]) => [name, Number(value)])
    .filter(([name, value]) => LIMITS.includes(name) && Number.isFinite(value));
  state.limits = asked.length ? Object.fromEntries(asked) : null;
}

function settle(changes) {
  if ("point" in changes || "job" in changes) state.limits = null;
  Object.assign(state, changes);
  const parts = [
    state.step,
    state.study ?? "",
    state.job ?? "",
    state.point ?? "",
    state.limits ? new URLSearchParams(state.limits).toString() : "",
  ];
  while (parts.length > 1 && parts.at(-1) === "") parts.pop();
  return `#/${parts.map(encodeURIComponent).join("/")}`;
}

export function go(changes) {
  const hash = settle(changes);
  if (location.hash !== hash) history.pushState(null, "", hash);
  tell("address");
}

// The same without a new page: a point that is looked at is not a step to go back to.
export function note(changes) {
  history.replaceState(null, "", settle(changes));
}

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
