// Axes: places, ticks, and values as they are written beside them.
import assert from "node:assert/strict";
import { test } from "node:test";

import { Scale, short } from "../../../src/sfumato/web/static/charts/scale.js";
import { nearest } from "../../../src/sfumato/web/static/charts/speckle.js";
import { roundWidth } from "../../../src/sfumato/web/static/recipes.js";
import { many } from "../../../src/sfumato/web/static/search-estimate.js";

const close = (found, expected) => assert.ok(Math.abs(found - expected) < 1e-9, `${found}`);

test("a value and its place belong together, on a linear and on a logarithmic axis", () => {
  for (const log of [false, true]) {
    const scale = new Scale(2, 50, 400, 20, log);
    close(scale.place(2), 400);
    close(scale.place(50), 20);
    for (const value of [2, 3, 10, 49]) close(scale.value(scale.place(value)), value);
  }
  close(new Scale(1, 100, 0, 10, true).place(10), 5);
  close(new Scale(0, 100, 0, 10).place(50), 5);
});

test("an axis with a value of 0 is not logarithmic, and one value alone has room", () => {
  assert.equal(new Scale(0, 10, 0, 1, true).log, false);
  const one = new Scale(3, 3, 0, 100);
  assert.deepEqual([one.low, one.high], [2.5, 3.5]);
  close(one.place(3), 50);
  assert.ok(Number.isFinite(new Scale(3, 3, 0, 100, true).place(3)));
});

test("ticks are round, within the axis, and no more than wanted", () => {
  assert.deepEqual(new Scale(0, 10, 0, 1).ticks(), [0, 2, 4, 6, 8, 10]);
  assert.deepEqual(new Scale(0.12, 0.31, 0, 1).ticks(4).map(short), ["0.15", "0.2", "0.25", "0.3"]);
  assert.deepEqual(new Scale(1, 80, 0, 1, true).ticks(), [1, 2, 5, 10, 20, 50]);
  assert.deepEqual(new Scale(1, 5000, 0, 1, true).ticks(), [1, 10, 100, 1000]);
  for (const [low, high] of [
    [-3, 7],
    [1e-6, 2e-6],
    [17, 90211],
  ]) {
    const ticks = new Scale(low, high, 0, 1).ticks(6);
    assert.ok(ticks.length > 1 && ticks.length <= 7, `${ticks}`);
    assert.ok(ticks.every((tick) => tick >= low - 1e-9 && tick <= high * (1 + 1e-6)));
  }
});

test("a tick of 0 is never written as -0", () => {
  const zero = new Scale(-4, 4, 0, 1).ticks().find((tick) => Math.abs(tick) < 1e-9);
  assert.ok(Object.is(zero, 0));
});

test("values of axes are short", () => {
  assert.deepEqual([0.123456, 1234.5, 25_000_000, -0.5].map(short), [
    "0.1235",
    "1,235",
    "25 million",
    "-0.5",
  ]);
});

test("a width of intervals is 1, 2 or 5 times a power of ten, and no finer than the unit", () => {
  assert.deepEqual(
    [
      [100, 1],
      [80, 1],
      [3, 1],
      [1600, 1],
      [0.5, 0.01],
    ].map(([span, unit]) => roundWidth(span, unit)),
    [10, 5, 1, 100, 0.05],
  );
});

test("a very large number of recodings is an order of magnitude", () => {
  assert.deepEqual(
    [many(1e12), many(3e18), many(12_345)],
    ["1,000,000,000,000", "about 10¹⁸", "12,345"],
  );
});

test("the nearest point is the one under the pointer, or none", () => {
  const [xs, ys] = [
    [10, 50, 90],
    [10, 50, 90],
  ];
  assert.equal(nearest(xs, ys, [52, 49]), 1);
  assert.equal(nearest(xs, ys, [500, 500]), -1);
});
