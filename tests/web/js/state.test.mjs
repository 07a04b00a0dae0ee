// The address of the page, and changes that are sent while another is on its way.
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

import { pointAddress, query, rebased } from "../../../src/sfumato/web/static/api.js";
import {
  go,
  measure,
  note,
  onChange,
  readAddress,
  state,
} from "../../../src/sfumato/web/static/state.js";

let written;
beforeEach(() => {
  written = [];
  globalThis.location = { hash: "" };
  globalThis.history = {
    pushState: (_, __, hash) => {
      written.push(["push", hash]);
      globalThis.location.hash = hash;
    },
    replaceState: (_, __, hash) => {
      written.push(["replace", hash]);
      globalThis.location.hash = hash;
    },
  };
  Object.assign(state, {
    step: "open",
    study: null,
    job: null,
    point: null,
    limits: null,
    declared: null,
  });
});

test("an address is read back as it was written", () => {
  go({ step: "explore", study: "people 1", job: "search-1", point: 7 });
  note({ limits: { max_loss: 0.3, min_k: 5 } });
  const before = { ...state };
  Object.assign(state, { step: "open", study: null, job: null, point: null, limits: null });
  readAddress();
  assert.deepEqual({ ...state }, before);
  assert.deepEqual(
    written.map(([how]) => how),
    ["push", "replace"],
  );
});

test("what an address may not say is left out", () => {
  globalThis.location.hash = "#/nowhere/study/job/-1/max_loss=x&min_k=5&evil=1";
  readAddress();
  assert.deepEqual(
    [state.step, state.study, state.job, state.point, state.limits],
    ["open", "study", "job", null, { min_k: 5 }],
  );
  globalThis.location.hash = "#/explore/%E0%A4%A";
  readAddress();
  assert.deepEqual([state.step, state.study], ["explore", null]);
});

test("another study forgets what was declared, another point the question", () => {
  Object.assign(state, { study: "a", declared: { id: "a" }, limits: { min_k: 2 }, point: 1 });
  globalThis.location.hash = "#/declare/b";
  readAddress();
  assert.equal(state.declared, null);
  Object.assign(state, { limits: { min_k: 2 } });
  note({ point: 2 });
  assert.equal(state.limits, null);
});

test("whoever listens is told of a new address until they leave", () => {
  const heard = [];
  const leave = onChange((what) => heard.push(what));
  go({ step: "declare", study: "a" });
  leave();
  go({ step: "search" });
  assert.deepEqual(heard, ["address"]);
});

test("a measure that the server does not know is called by its name", () => {
  state.about = { measures: [{ name: "first", aliases: ["one"], title: "First" }] };
  assert.deepEqual([measure("one").title, measure("none").title], ["First", "none"]);
});

test("of a section only what differs from what was shown is changed", () => {
  const shown = { a: 1, b: [2], c: 3 };
  assert.deepEqual(rebased({ a: 1, b: [9], d: 4 }, shown, { a: 7, b: [2], c: 3, e: 5 }), {
    a: 7,
    b: [9],
    d: 4,
    e: 5,
  });
  assert.deepEqual(shown, { a: 1, b: [2], c: 3 });
});

test("an address of the interface holds what is given and nothing else", () => {
  assert.equal(query({ a: 0, b: "", c: null, d: "x y", e: undefined }), "?a=0&d=x+y");
  assert.equal(query({}), "");
  Object.assign(state, { study: "s", job: "j" });
  assert.equal(pointAddress(3, null), "/studies/s/jobs/j/points/3");
  assert.equal(
    pointAddress(3, { suppress_below: 5, diversity_below: 0 }, "/whole"),
    "/studies/s/jobs/j/points/3/whole?size=5&diversity=0",
  );
});
