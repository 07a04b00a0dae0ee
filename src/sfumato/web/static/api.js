// The HTTP interface; every error comes as {what, expected, try}.
import { button, byId, error, fill, h, toast } from "./dom.js";
import { askForKey, authorization } from "./session.js";
import { here, state } from "./state.js";

export class Refused extends Error {
  constructor(found, stale = false) {
    super(found.what);
    this.found = found;
    this.stale = stale;
  }
}

const busy = new Set();

function show() {
  const place = byId("busy");
  place.textContent = [...busy].at(-1)?.text ?? "";
  place.classList.toggle("on", busy.size > 0);
}

// Changes that were sent and are not answered yet: what the server tells of meanwhile may be our own.
const sent = new Set();
export async function settled() {
  while (sent.size) await Promise.allSettled([...sent]);
}

function call(method, ...given) {
  const made = exchange(method, ...given);
  if (method !== "GET") {
    sent.add(made);
    made.catch(() => {}).finally(() => sent.delete(made));
  }
  return made;
}

async function exchange(method, path, body, says, signal) {
  const mark = { text: says || "working …" };
  const timer = setTimeout(() => {
    busy.add(mark);
    show();
  }, 250);
  try {
    const options = { method, headers: authorization(), signal };
    // A change says which version of the study it is made from; one that comes too late is refused.
    const version =
      method !== "GET" && path.startsWith(`/studies/${state.declared?.id}`)
        ? state.declared.version
        : undefined;
    if (version) options.headers["if-match"] = `"${version}"`;
    if (body instanceof Blob) options.body = body;
    else if (body !== undefined) {
      options.body = JSON.stringify(body);
      options.headers["content-type"] = "application/json";
    }
    let answer;
    try {
      answer = await fetch(`/api${path}`, options);
    } catch {
      if (signal?.aborted) throw new Refused({ what: "cancelled", expected: "", try: "" });
      connection(false);
      throw new Refused({
        what: "the server does not answer",
        expected: "",
        try: "start it again in its terminal: sfumato serve FOLDER",
      });
    }
    connection(true);
    if (answer.status === 401) await newSession();
    const kind = answer.headers.get("content-type") || "";
    const found = await (kind.includes("json") ? answer.json() : answer.text()).catch((problem) => {
      if (signal?.aborted) throw new Refused({ what: "cancelled", expected: "", try: "" });
      throw problem;
    });
    if (!answer.ok)
      throw new Refused(
        found.error ?? { what: `the server answered ${answer.status}`, expected: "", try: "" },
        Boolean(version) && answer.status === 409,
      );
    if (version && found.version) state.declared.version = found.version;
    return found;
  } finally {
    clearTimeout(timer);
    busy.delete(mark);
    show();
  }
}

// The server was started again: a new key, and the page as its address says.
export async function newSession() {
  await askForKey(document.getElementById("main"));
  location.reload();
  await new Promise(() => {});
}

// Whether the server answers: a banner while it does not, and a way back in.
let lost = false;
export function connection(answers) {
  if (lost === !answers) return;
  lost = !answers;
  fill(
    document.getElementById("connection"),
    lost &&
      h(
        "div",
        { class: "warning", id: "lost" },
        h("b", {}, "The server does not answer."),
        h(
          "span",
          {},
          "What is shown may be out of date, and nothing can be changed. Searches and " +
            "releases that are done are kept. Start the server again in its terminal " +
            "(sfumato serve FOLDER); this page then asks for the new key.",
        ),
        h(
          "div",
          {},
          button("Try again", () => location.reload(), { class: "small" }),
        ),
      ),
  );
}

export const get = (path, says, signal) => call("GET", path, undefined, says, signal);
export const post = (path, body = {}, says) => call("POST", path, body, says);
export const put = (path, body, says) => call("PUT", path, body, says);
export const remove = (path) => call("DELETE", path);

// Delete, and offer to undo it while that is possible; `done` is called after each.
export async function removeWithUndo(path, text, done) {
  const found = await attempt(() => remove(path));
  if (!found) return;
  await done();
  toast(text, "Undo", async () => {
    if (await attempt(() => post(`/trash/${found.undo}`))) await done();
  });
}

// Change what is declared. Changes are sent one after another, each applied to what the one before has left: of a
// section that is given, only what differs from the study as it was shown is changed.
/** @type {Promise<unknown>} */
let turn = Promise.resolve();
export function changeStudy(changes, says) {
  const shown = structuredClone(state.declared.study);
  const next = async () => {
    const body = Object.fromEntries(
      Object.entries(changes).map(([name, given]) => [
        name,
        SECTIONS.includes(name)
          ? rebased(given, shown[name] ?? {}, state.declared.study[name] ?? {})
          : given,
      ]),
    );
    state.declared = await put(`/studies/${state.declared.id}`, body, says);
    return state.declared;
  };
  const made = turn.then(next);
  turn = made.catch(() => {});
  return made;
}

const SECTIONS = ["data", "columns", "search", "groups"];
// What is declared now, with what was changed since it was shown.
export function rebased(given, shown, now) {
  const made = { ...now };
  for (const name of new Set([...Object.keys(given), ...Object.keys(shown)])) {
    if (JSON.stringify(given[name]) === JSON.stringify(shown[name])) continue;
    if (given[name] === undefined) delete made[name];
    else made[name] = given[name];
  }
  return made;
}

export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values))
    if (value !== undefined && value !== null && value !== "") found.set(name, value);
  const text = found.toString();
  return text ? `?${text}` : "";
}

// A point of the search that is shown; where an answer is offered, under its own suppression.
/**
 * @param {number} id
 * @param {any} offer
 * @param {string} [part]
 */
export const pointAddress = (id, offer, part = "") =>
  `${here()}/jobs/${state.job}/points/${id}${part}` +
  query(offer ? { size: offer.suppress_below, diversity: offer.diversity_below } : {});

// Do something and tell what went wrong, in place or at the top of the page.
export async function attempt(act, place) {
  const notice = place ?? document.getElementById("notice");
  try {
    const found = await act();
    if (!place) fill(notice);
    return found;
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    fill(
      notice,
      error(problem.found),
      problem.stale && button("Reload", () => location.reload(), { id: "reload" }),
    );
    if (!place) notice.scrollIntoView({ block: "nearest" });
    return undefined;
  }
}
