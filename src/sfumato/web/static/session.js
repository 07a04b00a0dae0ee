// The session of this tab: a secret that a key was exchanged for. It stays in this tab and goes nowhere but to the
// server, in a header that no browser adds by itself; a reload keeps it, a new tab needs a key of its own.
import { button, error, fill, h } from "./dom.js";

const NAME = "session";
export const entered = () => sessionStorage.getItem(NAME) !== null;
export const authorization = () => ({ authorization: `Bearer ${sessionStorage.getItem(NAME)}` });
export const keep = (secret) => sessionStorage.setItem(NAME, secret);

// Ask for a key until there is a session.
export function askForKey(place) {
  sessionStorage.removeItem(NAME);
  return new Promise((/** @type {(entered?: undefined) => void} */ done) => {
    const says = h("div", {});
    const key = h("input", {
      id: "key",
      size: 40,
      autocomplete: "off",
      spellcheck: "false",
      "aria-label": "Key",
      placeholder: "paste a key",
    });
    const send = async () => {
      const answer = await fetch("/api/session", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ key: key.value.trim() || "none" }),
      }).catch(() => null);
      const found = answer
        ? await answer.json()
        : {
            error: {
              what: "the server does not answer",
              expected: "sfumato serve running",
              try: "start it again",
            },
          };
      if (found.error) {
        fill(says, error(found.error));
        key.select();
        return;
      }
      keep(found.secret);
      done();
    };
    key.addEventListener("keydown", (event) => {
      if (event.key === "Enter") send();
    });
    fill(
      place,
      h(
        "div",
        { class: "card", style: "max-width:44rem;margin:3rem auto" },
        h("h1", {}, "Key needed"),
        h(
          "p",
          {},
          "The workbench shows tables about people, so this tab needs a key. A key can be " +
            "used once; it admits one tab until the server stops.",
        ),
        says,
        h("div", { class: "row" }, key, button("Enter", send, { class: "main", id: "enter" })),
        h(
          "p",
          { class: "quiet", style: "margin-top:.8rem" },
          "sfumato serve prints a key when it starts. To get another one, run in a terminal as the same user:",
        ),
        h("pre", {}, "sfumato serve FOLDER --link"),
      ),
    );
    key.focus();
  });
}

// The address of a file, good for one use: a download and a report in a tab of its own cannot send our header.
export async function addressOnce(path) {
  const answer = await fetch("/api/tickets", {
    method: "POST",
    headers: { ...authorization(), "content-type": "application/json" },
    body: JSON.stringify({ path: `/api${path}` }),
  });
  const found = await answer.json();
  if (!answer.ok) throw new Error(found.error.what);
  return `/api${path}?ticket=${encodeURIComponent(found.ticket)}`;
}

export async function download(path, name) {
  const link = h("a", { href: await addressOnce(path), download: name });
  document.body.append(link);
  link.click();
  link.remove();
}

export async function openTab(path) {
  const tab = window.open("about:blank", "_blank"); // at once, while the click counts as one
  const address = await addressOnce(path);
  if (tab) {
    tab.opener = null;
    tab.location.replace(address);
  } else location.assign(address);
}

// Server-sent events, read from a fetch: an EventSource cannot send our header. `heard` gets each event's data;
// `connected` is told when the stream begins and when it ends.
export async function follow(path, heard, connected, expired) {
  const leaving = new AbortController();
  addEventListener("pagehide", () => leaving.abort());
  while (!leaving.signal.aborted) {
    try {
      const answer = await fetch(`/api${path}`, {
        headers: authorization(),
        signal: leaving.signal,
      });
      if (answer.status === 401) {
        await expired();
        return;
      }
      connected(true);
      await read(answer.body, heard);
    } catch {
      /* the server is gone, or this page is */
    }
    if (leaving.signal.aborted) return;
    connected(false);
    await new Promise((done) => setTimeout(done, 1000));
  }
}

async function read(body, heard) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    const events = text.split("\n\n");
    text = events.pop() ?? "";
    for (const event of events) {
      const data = event
        .split("\n")
        .filter((line) => line.startsWith("data: "))
        .map((line) => line.slice(6))
        .join("\n");
      if (data) heard(data);
    }
  }
}
