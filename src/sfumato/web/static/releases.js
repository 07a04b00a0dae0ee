// The releases of a study: what each is, when it was made, whether it verified, and how it is handed out.
import { verdict } from "./accepting.js";
import { attempt, get, post, removeWithUndo } from "./api.js";
import { button, fill, h, leftOut, number, percent, plural } from "./dom.js";
import { download, openTab } from "./session.js";
import { here } from "./state.js";
import { wholeLine } from "./whole.js";

const REPORTS = {
  "internal.html": "Report for you",
  "external.html": "Report for readers",
  "dictionary.html": "Data dictionary",
};
const day = (text) =>
  new Date(text).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });

export function releaseList() {
  const list = h("div", { class: "card", id: "releases" });
  async function draw() {
    const found = await attempt(
      () => get(`${here()}/releases`),
      list.childElementCount ? undefined : list,
    );
    if (!found) return;
    found.sort((a, b) => (a.created < b.created ? 1 : -1));
    fill(
      list,
      h("h2", {}, "Releases of this table"),
      found.length > 1 &&
        h(
          "div",
          { class: "warning" },
          "Several releases of one table can together disclose more than each alone. Each " +
            "new one is compared with those before, and refused where they give too much " +
            "together.",
        ),
      found.length > 0 &&
        h(
          "p",
          { class: "quiet" },
          h(
            "small",
            {},
            "Only the public pack (data, dictionary, report for readers) may be handed out. " +
              "The internal record holds the source’s path and digest, the hierarchies and " +
              "exact counts: keep it confidential. Each report has a button that prints it or " +
              "saves it as PDF.",
          ),
        ),
      found.length ? found.map(drawOne) : h("p", { class: "quiet" }, "None yet."),
    );
  }
  function drawOne(release) {
    const says = h("div", {});
    const at = `${here()}/releases/${release.name}`;
    const { verified } = release.about;
    return h(
      "div",
      { class: "job whole", "data-release": release.name },
      h(
        "div",
        {},
        h("b", {}, `Point ${release.about.point}`),
        " ",
        h(
          "span",
          { class: `badge ${verified ? "good" : verified === false ? "bad" : "wait"}` },
          verified ? "✓ verified" : verified === false ? "differs" : "not verified",
        ),
        " ",
        h("small", { class: "made" }, day(release.created)),
        release.accepted > 0 && h("small", {}, ` · ${plural(release.accepted, "rule")} accepted`),
        h(
          "div",
          {},
          h(
            "small",
            {},
            `${release.says}, loss ${percent(release.loss)}, ` +
              `${plural(release.released, "record")} released, ${number(release.suppressed)} ` +
              `suppressed${leftOut(release.left_out, release.records)}`,
          ),
        ),
        release.about.reason && h("div", {}, h("small", {}, `“${release.about.reason}”`)),
        h("small", {}, wholeLine(release.whole)),
        h(
          "details",
          {},
          h("summary", {}, h("small", {}, "Its folder and digest")),
          h("small", {}, release.folder),
          h("br"),
          h("small", { class: "digest" }, `SHA-256 of the file: ${release.sha256}`),
        ),
        says,
      ),
      h(
        "div",
        { class: "row" },
        button(
          "Public pack",
          () => download(`${at}/public.zip`, `${release.name.slice(0, -24)}-public.zip`),
          { class: "main", "data-download": release.name },
        ),
        button(
          "Internal record: not for release",
          () =>
            download(
              `${at}/record.zip`,
              `${release.name.slice(0, -24)}-internal-not-for-release.zip`,
            ),
          {
            "data-record": release.name,
            title:
              "Everything, including the internal report and the manifest: for your own files, not for release.",
          },
        ),
        release.reports.map((name) =>
          button(REPORTS[name] ?? name, () => openTab(`${at}/${name}`), { "data-report": name }),
        ),
        button("Verify again", async () => {
          const checked = await attempt(
            () => post(`${at}/verify`, {}, "measuring the release …"),
            says,
          );
          if (!checked) return;
          await draw();
          fill(
            list.querySelector(`[data-release="${release.name}"] > div > div:last-child`),
            verdict(checked),
          );
        }),
        button(
          "✕",
          () =>
            removeWithUndo(
              at,
              `The release of point ${release.about.point} was deleted here; the ledger still knows it.`,
              draw,
            ),
          {
            class: "plain small danger",
            "aria-label": `Delete the release of point ${release.about.point}`,
          },
        ),
      ),
    );
  }
  return { element: list, draw };
}
