// "Show as": the run file, the program and the commands that give the same result.
import { attempt, get, query } from "./api.js";
import { button, fill, h } from "./dom.js";
import { here, state } from "./state.js";

export async function showAs() {
  const job = ["explore", "publish"].includes(state.step) ? state.job : null;
  const asked = query({ job, point: job ? state.point : null, ...(job ? state.limits : {}) });
  const [toml, python, commands] = await Promise.all(
    ["run.toml", "run.py", "run.sh"].map((file) =>
      attempt(() => get(`${here()}/${file}${file === "run.toml" ? query({ job }) : asked}`)),
    ),
  );
  if (toml === undefined || python === undefined || commands === undefined) return;
  const pages = {
    "Run file": ["run.toml", toml],
    Python: ["run.py", python],
    Commands: ["run.sh", commands],
  };
  const text = h("pre", { tabindex: "0" });
  const save = h("a", { class: "button" });
  const copy = button("Copy", async () => {
    await navigator.clipboard.writeText(text.textContent);
    copy.textContent = "Copied";
  });
  const tabs = h("div", { class: "tabs", role: "tablist" });
  const open = (name) => {
    const [file, body] = pages[name];
    text.textContent = body;
    copy.textContent = "Copy";
    save.href = `data:text/plain;charset=utf-8,${encodeURIComponent(body)}`;
    save.download = file;
    fill(save, `Save ${file}`);
    fill(
      tabs,
      Object.keys(pages).map((each) =>
        button(each, () => open(each), {
          role: "tab",
          "aria-selected": each === name ? "true" : "false",
        }),
      ),
    );
  };
  open("Run file");
  const dialog = h(
    "dialog",
    {
      class: "wide",
      "aria-label": "Show as run file, Python or commands",
      onclose: () => dialog.remove(),
    },
    h("h2", {}, "The same from the command line"),
    h("p", { class: "quiet" }, "These give the same result: same table, same settings, same seed."),
    tabs,
    text,
    h(
      "div",
      { class: "row foot" },
      copy,
      save,
      button("Close", () => dialog.close(), { class: "plain" }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}
