// What the page is about: the step, the study, the search, the point. Kept in the address, so a reload loses nothing.

const listeners = new Set();
export const state = { step: "open", study: null, job: null, point: null, about: null, declared: null, jobs: new Map(), choice: null };

export function onChange(act) { listeners.add(act); return () => listeners.delete(act); }
export function tell(what) { for (const act of listeners) act(what); }

export function readAddress() {
  const [step, study, job, point] = location.hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  state.step = ["open", "declare", "search", "explore", "publish"].includes(step) ? step : "open";
  if (study !== (state.study ?? "")) state.declared = null;
  state.study = study || null;
  state.job = job || null;
  state.point = point === undefined || point === "" ? null : Number(point);
}

export function go(changes) {
  Object.assign(state, changes);
  const parts = [state.step, state.study ?? "", state.job ?? "", state.point ?? ""];
  while (parts.length > 1 && parts.at(-1) === "") parts.pop();
  const hash = `#/${parts.map(encodeURIComponent).join("/")}`;
  if (location.hash !== hash) history.pushState(null, "", hash);
  tell("address");
}

// The same without a new page: a point that is looked at is not a step to go back to.
export function note(changes) {
  Object.assign(state, changes);
  const parts = [state.step, state.study ?? "", state.job ?? "", state.point ?? ""];
  while (parts.length > 1 && parts.at(-1) === "") parts.pop();
  history.replaceState(null, "", `#/${parts.map(encodeURIComponent).join("/")}`);
}

export const measure = (name) => state.about?.measures.find((found) => found.name === name) ?? { name, title: name, sentence: "", direction: "max", kind: "privacy" };
export const here = () => `/studies/${state.study}`;
