// The HTTP interface; every error comes as {what, expected, try}.
import { error, fill } from "./dom.js";
import { askForKey, authorization } from "./session.js";

export class Refused extends Error {
  constructor(found) { super(found.what); this.found = found; }
}

const busy = new Set();

function show() {
  const place = document.getElementById("busy");
  place.textContent = [...busy].at(-1)?.text ?? "";
  place.classList.toggle("on", busy.size > 0);
}

async function call(method, path, body, says) {
  const mark = { text: says || "working …" };
  const timer = setTimeout(() => { busy.add(mark); show(); }, 250);
  try {
    const options = { method, headers: authorization() };
    if (body instanceof Blob) options.body = body;
    else if (body !== undefined) {
      options.body = JSON.stringify(body);
      options.headers["content-type"] = "application/json";
    }
    let answer;
    try {
      answer = await fetch(`/api${path}`, options);
    } catch {
      throw new Refused({ what: "the server does not answer", expected: "sfumato serve running", try: "start it again in its terminal" });
    }
    if (answer.status === 401) await newSession();
    const kind = answer.headers.get("content-type") || "";
    const found = kind.includes("json") ? await answer.json() : await answer.text();
    if (!answer.ok) throw new Refused(found.error ?? { what: `the server answered ${answer.status}`, expected: "", try: "" });
    return found;
  } finally {
    clearTimeout(timer);
    busy.delete(mark);
    show();
  }
}

// The server was started again: a new key, and the page as its address says.
async function newSession() {
  await askForKey(document.getElementById("main"));
  location.reload();
  await new Promise(() => {});
}

export const get = (path, says) => call("GET", path, undefined, says);
export const post = (path, body = {}, says) => call("POST", path, body, says);
export const put = (path, body, says) => call("PUT", path, body, says);
export const remove = (path) => call("DELETE", path);

export function query(values) {
  const found = new URLSearchParams();
  for (const [name, value] of Object.entries(values)) if (value !== undefined && value !== null && value !== "") found.set(name, value);
  const text = found.toString();
  return text ? `?${text}` : "";
}

// Do something and tell what went wrong, in place or at the top of the page.
export async function attempt(act, place) {
  const notice = place ?? document.getElementById("notice");
  try {
    const found = await act();
    if (!place) fill(notice);
    return found;
  } catch (problem) {
    if (!(problem instanceof Refused)) throw problem;
    fill(notice, error(problem.found));
    if (!place) notice.scrollIntoView({ block: "nearest" });
    return undefined;
  }
}
