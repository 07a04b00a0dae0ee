// Numbers and settings as the page writes them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { csvText } from "../../../src/sfumato/web/static/charts/csv.js";
import { leftOut, number, percent, plural, times } from "../../../src/sfumato/web/static/dom.js";
import { howFar } from "../../../src/sfumato/web/static/search-jobs.js";
import { inWords, titleOf, valueText } from "../../../src/sfumato/web/static/settings.js";
import { state } from "../../../src/sfumato/web/static/state.js";

const MEASURES = [
  { name: "first", aliases: ["one"], title: "First", direction: "max", default: true },
  { name: "second", aliases: [], title: "Second", direction: "min", unit: "share" },
];

test("a share that is not all is never written as all, and one above nothing never as nothing", () => {
  assert.deepEqual(
    [0, 0.0004, 0.005, 0.5, 0.99949, 0.9996, 1, null, undefined].map((share) => percent(share)),
    ["0 %", "< 0.1 %", "0.5 %", "50.0 %", "99.9 %", "> 99.9 %", "100 %", "–", "–"],
  );
  assert.equal(percent(0.25, 0), "25 %");
});

test("numbers have four digits, or separators between thousands", () => {
  assert.deepEqual(
    [0, 12_345, 1234.56, 0.123456, NaN, null, undefined].map((value) => number(value)),
    ["0", "12,345", "1,235", "0.1235", "–", "–", "–"],
  );
  assert.deepEqual([times(1.239), times(null)], ["1.24 ×", "–"]);
});

test("one of a thing is in the singular", () => {
  assert.deepEqual(
    [plural(1, "point"), plural(2, "point"), plural(3, "class", "classes")],
    ["1 point", "2 points", "3 classes"],
  );
  assert.equal(leftOut(0, 5), "");
  assert.match(leftOut(1, 3), /^, 1 record of the source left out .* \(25.0 %\)$/);
});

test("settings of a search are a line of words", () => {
  state.about = { measures: MEASURES };
  assert.equal(inWords({}), "Levels, First, nothing suppressed");
  assert.equal(
    inWords({
      system: "cuts",
      objectives: ["one", { name: "second" }],
      max_suppression: 0.025,
      constraints: { second: 0.4 },
    }),
    "Cuts, First and Second, at most 2.5 % suppressed, Second at most 0.4",
  );
  assert.equal(inWords({ system: "cuts", problem: 2 }), "Cuts, problem 2, nothing suppressed");
  assert.deepEqual([valueText("second")(0.5), valueText("first")(7)], ["50.0 %", "7"]);
});

test("jobs are numbered by kind within their study, in the order in which they were added", () => {
  const job = (id, kind, study, added) => ({ id, kind, study, added });
  const all = [
    job("a", "search", "s", 1),
    job("b", "publish", "s", 2),
    job("c", "search", "t", 3),
    job("d", "search", "s", 4),
  ];
  state.jobs = new Map(all.map((each) => [each.id, each]));
  assert.deepEqual(all.map(titleOf), ["Search 1", "Release 1", "Search 1", "Search 2"]);
});

test("progress says how long a search takes only where that is known", () => {
  const progress = { stage: "searching", done: 50, total: 100, seconds: 30 };
  assert.equal(
    howFar({ ...progress, unit: "generations" }, false),
    "searching: 50 of 100 generations, 30 s, about 30 s left",
  );
  assert.equal(
    howFar({ ...progress, unit: "nodes" }, false),
    "searching: 50 of at most 100 nodes, 30 s",
  );
  assert.equal(howFar({ ...progress, unit: "nodes" }, true), "searching: 50 nodes, 30 s");
  assert.equal(
    howFar({ ...progress, stage: "reading the table", total: 0 }, false),
    "reading the table, 30 s",
  );
});

test("a cell that a spreadsheet would run as a formula is marked as text, and quotes are doubled", () => {
  assert.equal(csvText([["=1+1", "-cmd", -5, 'a "b", c', null]]), `'=1+1,'-cmd,-5,"a ""b"", c",\n`);
});
