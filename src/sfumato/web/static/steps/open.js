// Open: a file of the folder, an upload, the sample; then its first rows and how each column is spread.
import { attempt, changeStudy, get, post, put, query, removeWithUndo } from "../api.js";
import { askText, button, byId, error, fill, h, plural } from "../dom.js";
import { look } from "../opened-table.js";
import { go, note, state, tell } from "../state.js";

const size = (bytes) =>
  bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(Math.round(bytes / 1e3), 1)} kB`;
const KINDS =
  ".csv,.tsv,.txt,.data,.gz,.parquet,.pq,.sav,.zsav,.dta,.sas7bdat,.xlsx,.xlsm,.xlsb,.xls,.ods,.toml";

export async function openStep(place) {
  const files = h("div", { class: "card" });
  const studies = h("div", { class: "card" });
  const looked = h("div", {});
  fill(
    place,
    h("h1", {}, "Open a table"),
    welcome(),
    h("div", { class: "columns" }, h("div", {}, studies, files), uploads()),
    looked,
  );
  await Promise.all([listed(files, ""), listStudies(studies, place)]);
  if (state.study) await look(looked, opened);
}

// Three sentences for whoever comes for the first time; closed once, it stays closed in this browser.
function welcome() {
  if (localStorage.getItem("welcomed")) return null;
  const note_ = h(
    "div",
    { class: "fine", id: "welcome" },
    h("b", {}, "Make a table about people safe to hand out."),
    h(
      "span",
      {},
      "You say what each column is, the workbench finds every release that no other " +
        "beats in privacy and detail at once, you choose one, and it writes the file, " +
        "reads it back and checks it. Nothing leaves this machine. To try it, open the " +
        "sample: 32,561 people of a census of 1994, with everything declared.",
    ),
    h(
      "div",
      {},
      button(
        "Close this note",
        () => {
          localStorage.setItem("welcomed", "1");
          note_.remove();
        },
        { class: "small" },
      ),
    ),
  );
  return note_;
}

async function listed(card, folder) {
  const found = await attempt(() => get(`/files${query({ folder })}`));
  if (!found) return;
  const up = folder.split("/").slice(0, -1).join("/");
  const into = (name) => listed(card, folder ? `${folder}/${name}` : name);
  fill(
    card,
    h("h2", {}, "Tables in ", state.about.folder, folder && `/${folder}`),
    h(
      "ul",
      { class: "files" },
      folder &&
        h(
          "li",
          {},
          button(["↑ ", up || state.about.folder], () => listed(card, up)),
        ),
      found.folders.map((name) =>
        h(
          "li",
          {},
          button([h("span", { "aria-hidden": "true" }, "▸"), name], () => into(name), {
            "data-folder": name,
          }),
        ),
      ),
      found.files.map((file) =>
        h(
          "li",
          {},
          button(
            [
              h("span", { "aria-hidden": "true" }, { table: "▦", database: "⛁" }[file.kind] ?? "⚙"),
              h("span", { class: "long" }, file.name),
              h("small", {}, file.kind, " · ", size(file.bytes)),
            ],
            () => (file.kind === "database" ? chooseTable(file) : opened({ path: file.path })),
            { "data-file": file.path },
          ),
        ),
      ),
    ),
    !found.files.length &&
      !found.folders.length &&
      h("p", { class: "quiet" }, "No table or run file here."),
    h(
      "p",
      { class: "quiet" },
      h(
        "small",
        {},
        "CSV (also .gz), Parquet, SPSS, Stata, SAS, Excel, SQLite, or a run file (.toml).",
      ),
    ),
  );
}

let opening = false; // a second click on a file that is being opened would make a second study
async function opened(body, says) {
  if (opening) return false;
  opening = true;
  const main = byId("main");
  main.inert = true; // what is shown is of another table, and about to go
  try {
    const found = await attempt(() => post("/studies", body, says ?? "reading the table …"));
    if (!found) return false;
    state.declared = found;
    go({ step: "open", study: found.id, job: null, point: null });
    return true;
  } finally {
    opening = false;
    main.inert = false;
  }
}

async function chooseTable(file) {
  const found = await attempt(() =>
    get(`/tables${query({ path: file.path })}`, "reading the database …"),
  );
  if (!found) return;
  const dialog = h(
    "dialog",
    { "aria-label": `Tables of ${file.name}`, onclose: () => dialog.remove() },
    h("h2", {}, `Tables of ${file.name}`),
    h(
      "ul",
      { class: "files" },
      found.tables.map((name) =>
        h(
          "li",
          {},
          button(
            name,
            () => {
              dialog.close();
              opened({ path: file.path, table: name });
            },
            { "data-table": name },
          ),
        ),
      ),
    ),
    !found.tables.length && h("p", {}, "This database contains no tables."),
    h(
      "div",
      { class: "row foot" },
      button("Cancel", () => dialog.close(), { class: "plain" }),
    ),
  );
  document.body.append(dialog);
  dialog.showModal();
}

async function send(file, says) {
  if (!file) return;
  if (file.size > state.about.upload_bytes) {
    fill(
      says,
      error({
        what: `${file.name} is larger than an upload may be`,
        expected: size(state.about.upload_bytes),
        try: "put the file into the folder of the workbench",
      }),
    );
    return;
  }
  const found = await attempt(
    () => put(`/uploads/${encodeURIComponent(file.name)}`, file, `uploading ${file.name} …`),
    says,
  );
  if (found) await opened({ path: found.path });
}

// The whole window takes a file: one that is dropped beside a box must not replace the page.
export function watchDrops() {
  let inside = 0;
  const over = h("div", { id: "dropping" }, "Drop to open");
  const files = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
  const end = () => {
    inside = 0;
    over.remove();
  };
  addEventListener("dragenter", (event) => {
    if (!files(event)) return;
    inside += 1;
    document.body.append(over);
  });
  addEventListener("dragleave", (event) => {
    if (!files(event)) return;
    inside -= 1;
    if (inside <= 0) end();
  });
  addEventListener("dragover", (event) => {
    if (files(event)) event.preventDefault();
  });
  addEventListener("drop", (event) => {
    if (!files(event)) return;
    event.preventDefault();
    end();
    send(event.dataTransfer?.files[0], document.getElementById("notice"));
  });
}

function uploads() {
  const says = h("div", {});
  const chooser = h("input", {
    type: "file",
    hidden: true,
    accept: KINDS,
    onchange: () => send(chooser.files[0], says),
  });
  return h(
    "div",
    { class: "card" },
    says,
    h(
      "div",
      { class: "drop" },
      h("p", {}, "Drop a table anywhere on this page, or"),
      h(
        "div",
        { class: "row", style: "justify-content:center" },
        button("Choose a file …", () => chooser.click(), { class: "main" }),
        button("Open the sample", () => opened({ sample: "adult" }), {
          id: "sample",
          title: "UCI Adult: 32,561 people of the census of 1994, with hierarchies",
        }),
      ),
      chooser,
    ),
  );
}

async function forget(study, place) {
  const releases = study.releases ?? 0;
  if (
    releases &&
    (await askText(`Delete “${study.name}” and ${plural(releases, "release")}?`, {
      says:
        "The releases of this study are deleted too. Download what you need first. To " +
        "go on, type the name of the study:",
      must: study.name,
      act: "Delete",
    })) === null
  )
    return;
  const current = state.study === study.id;
  await removeWithUndo(
    `/studies/${study.id}${query({ releases: releases ? true : null })}`,
    `“${study.name}” was deleted; its table in the folder stays.`,
    async () => {
      if (current && state.study === study.id) {
        state.study = null;
        state.declared = null;
        note({ study: null, job: null, point: null });
        tell("frame");
      }
      await openStep(place);
    },
  );
}

async function rename(study, place) {
  const name = await askText("Name of the study", { value: study.name, act: "Rename" });
  if (!name || name === study.name) return;
  const now = await attempt(() => get(`/studies/${study.id}`));
  if (!now) return;
  const before = state.declared;
  state.declared = now;
  const found = await attempt(() => changeStudy({ name }));
  if (before?.id !== study.id) state.declared = before;
  if (found) {
    tell("frame");
    await openStep(place);
  }
}

async function listStudies(card, place) {
  const found = await attempt(() => get("/studies"));
  if (!found) return;
  fill(
    card,
    h("h2", {}, "Studies"),
    found.length
      ? h(
          "ul",
          { class: "files" },
          found.map((study) =>
            h(
              "li",
              { class: "row tight" },
              h(
                "div",
                { style: "flex:1;min-width:0" },
                button(
                  [
                    h("span", { class: "long" }, study.name),
                    h(
                      "small",
                      {},
                      new Date(study.opened * 1000).toLocaleString("en-GB", {
                        dateStyle: "medium",
                        timeStyle: "short",
                      }),
                    ),
                  ],
                  () => {
                    state.declared = null;
                    go({ step: "open", study: study.id, job: null, point: null });
                  },
                  {
                    "aria-current": study.id === state.study ? "true" : null,
                    "data-study": study.id,
                  },
                ),
              ),
              button("Rename", () => rename(study, place), {
                class: "plain small",
                "aria-label": `Rename ${study.name}`,
              }),
              button("✕", () => forget(study, place), {
                class: "plain small danger",
                title: `Delete ${study.name}`,
                "aria-label": `Delete ${study.name}`,
              }),
            ),
          ),
        )
      : h(
          "p",
          { class: "quiet" },
          "None yet. A study is a table with what you declared, searched and released of it; it survives a restart.",
        ),
  );
}
