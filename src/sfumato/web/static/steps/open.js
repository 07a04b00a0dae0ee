// Open: a file of the folder, an upload, the sample; then its first rows and how each column is spread.
import { attempt, get, post, put, query, remove } from "../api.js";
import { spread } from "../charts/bars.js";
import { button, error, fill, h, number, percent, plural, table } from "../dom.js";
import { go, here, note, state, tell } from "../state.js";

const size = (bytes) => bytes > 1e6 ? `${(bytes / 1e6).toFixed(1)} MB` : `${Math.max(Math.round(bytes / 1e3), 1)} kB`;

export async function openStep(place) {
  const files = h("div", { class: "card" });
  const studies = h("div", { class: "card" });
  const looked = h("div", {});
  fill(place, h("div", { class: "columns" }, files, h("div", {}, await uploads(place), studies)), looked);
  await Promise.all([listed(files, ""), listStudies(studies, place)]);
  if (state.study) await look(looked);
}

async function listed(card, folder) {
  const found = await attempt(() => get(`/files${query({ folder })}`));
  if (!found) return;
  const up = folder.split("/").slice(0, -1).join("/");
  const into = (name) => listed(card, folder ? `${folder}/${name}` : name);
  fill(card, h("h2", {}, "Tables in ", state.about.folder, folder && `/${folder}`),
    h("ul", { class: "files" },
      folder && h("li", {}, button(["↑ ", up || state.about.folder], () => listed(card, up))),
      found.folders.map((name) => h("li", {}, button([h("span", {}, "▸"), name], () => into(name)))),
      found.files.map((file) => h("li", {}, button([h("span", {}, file.kind === "table" ? "▦" : "⚙"), file.name, h("small", {}, file.kind, " · ", size(file.bytes))],
        () => opened({ path: file.path }), { "data-file": file.path })))),
    !found.files.length && !found.folders.length && h("p", { class: "quiet" }, "No table or run file here."),
    h("p", { class: "quiet" }, h("small", {}, "CSV (also .gz), Parquet, SPSS, Stata, SAS, Excel, or a run file (.toml). Nothing leaves this machine.")));
}

async function opened(body, says) {
  const found = await attempt(() => post("/studies", body, says ?? "reading the table …"));
  if (!found) return;
  state.declared = found;
  go({ step: "open", study: found.id, job: null, point: null });
}

async function uploads() {
  const chooser = h("input", { type: "file", hidden: true, accept: ".csv,.tsv,.txt,.data,.gz,.parquet,.pq,.sav,.zsav,.dta,.sas7bdat,.xlsx,.xlsm,.xlsb,.xls,.ods,.toml", onchange: () => send(chooser.files[0]) });
  const says = h("div", {});
  async function send(file) {
    if (!file) return;
    if (file.size > state.about.upload_bytes) {
      fill(says, error({ what: `${file.name} is larger than an upload may be`, expected: size(state.about.upload_bytes), try: "put the file into the folder of the workbench" }));
      return;
    }
    const found = await attempt(() => put(`/uploads/${encodeURIComponent(file.name)}`, file, `uploading ${file.name} …`), says);
    if (found) await opened({ path: found.path });
  }
  const drop = h("div", {
    class: "drop",
    ondragover: (event) => { event.preventDefault(); drop.classList.add("over"); },
    ondragleave: () => drop.classList.remove("over"),
    ondrop: (event) => { event.preventDefault(); drop.classList.remove("over"); send(event.dataTransfer.files[0]); },
  }, h("p", {}, "Drop a table here, or"), h("div", { class: "row", style: "justify-content:center" },
    button("Choose a file …", () => chooser.click()),
    button("Open the sample", () => opened({ sample: "adult" }), { class: "main", id: "sample", title: "UCI Adult: 32,561 people of the census of 1994, with hierarchies" })), chooser);
  return h("div", { class: "card" }, says, drop);
}

async function listStudies(card, place) {
  const found = await attempt(() => get("/studies"));
  if (!found) return;
  fill(card, h("h2", {}, "Studies"), found.length ? h("ul", { class: "files" }, found.map((study) => h("li", { class: "row tight" },
    h("div", { style: "flex:1;min-width:0" }, button([study.name, h("small", {}, new Date(study.opened * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" }))],
      () => { state.declared = null; go({ step: "open", study: study.id, job: null, point: null }); }, { "aria-current": study.id === state.study ? "true" : null })),
    button("✕", async () => {
      if (!confirm(`Delete the study "${study.name}" with its searches and releases? A table of the folder stays; an uploaded one is deleted with its last study.`)) return;
      if (await attempt(() => remove(`/studies/${study.id}`)) === undefined) return;
      if (state.study === study.id) { state.study = null; state.declared = null; note({ study: null, job: null, point: null }); tell("frame"); }
      await openStep(place);
    }, { class: "plain small danger", title: `Delete ${study.name}`, "aria-label": `Delete ${study.name}` }))))
    : h("p", { class: "quiet" }, "None yet. They are kept in the folder “workbench” and survive a restart."));
}

async function look(place) {
  fill(place, h("div", { class: "card empty" }, "Looking at the table …"));
  const [preview, profile] = await Promise.all([
    attempt(() => get(`${here()}/preview`)), attempt(() => get(`${here()}/profile`, "profiling the columns …"))]);
  if (!preview || !profile) { fill(place); return; }
  const all = state.declared?.combinations ?? [];
  const single = all.find((each) => each.columns.length === all.at(-1).columns.length);
  fill(place,
    h("div", { class: "card" }, h("div", { class: "row spread" }, h("h2", {}, state.declared.name, " ", h("span", { class: "badge" }, plural(profile.rows, "row"), " · ", plural(profile.columns.length, "column"))),
      button("Declare the columns →", () => go({ step: "declare" }), { class: "main", id: "to-declare" })),
    single && h("p", { id: "singled-out" }, `By ${single.columns.length === 1 ? "one column" : "these columns"} alone, `, h("b", {}, single.columns.join(" × ")), `, ${percent(single.unique)} of the records are unique; by all columns that may be released, ${percent(state.declared.unique)}.`),
    table(preview.columns, preview.rows.map((row) => row.map((cell) => cell === null ? h("span", { class: "quiet", title: "missing" }, "–") : cell)))),
    h("div", { class: "profiles" }, profile.columns.map((column) => h("div", { class: "profile" }, h("b", { title: column.name }, column.name),
      spread(column.spread),
      h("small", { title: "Different values; how many records have none; how many values occur once" },
        plural(column.distinct, "value"), column.missing ? `, ${number(column.missing)} missing` : "", column.uniques ? `, ${number(column.uniques)} once` : "",
        column.na_words.length + column.missing_candidates.length > 0 && h("div", {}, "perhaps missing: ", [...column.na_words, ...column.missing_candidates].join(", ")))))));
}
