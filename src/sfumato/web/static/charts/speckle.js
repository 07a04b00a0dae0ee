// Thousands of points as pixels of an image: many times faster than as shapes.

const packed = (hex) => {
  const full =
    hex.length === 4 ? [...hex.slice(1)].map((digit) => digit + digit).join("") : hex.slice(1);
  const value = parseInt(full, 16);
  return (0xff000000 | ((value & 255) << 16) | (value & 0xff00) | (value >> 16)) >>> 0;
};

// Where points stand is worked out once for a size; which of them are in the accent may then change often.
export class Speckle {
  constructor(pen, width, height, layers, size = 3) {
    const sharp = pen.getTransform().a;
    this.wide = Math.round(width * sharp);
    this.side = Math.max(Math.round(size * sharp), 1);
    const tall = Math.round(height * sharp);
    const half = this.side >> 1;
    const within = (value, most) =>
      Math.min(Math.max(Math.round(value * sharp) - half, 0), most - this.side);
    this.image = pen.createImageData(this.wide, tall);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.layers = layers.map(({ xs, ys }) =>
      Int32Array.from(xs, (x, place) => within(ys[place], tall) * this.wide + within(x, this.wide)),
    );
  }

  // On an empty sheet: an image takes the place of what is there. What belongs behind it is drawn afterwards, behind.
  paint(pen, colour, kept) {
    this.pixels.fill(0);
    if (kept !== null) this.stamp(packed(colour.faint), kept, 0);
    this.stamp(packed(colour.accent), kept, 1);
    pen.putImageData(this.image, 0, 0);
  }

  stamp(tint, kept, keep) {
    const { pixels, wide, side } = this;
    for (const layer of this.layers) {
      for (let place = 0; place < layer.length; place += 1) {
        if (kept !== null && kept[place] !== keep) continue;
        for (let row = 0, at = layer[place]; row < side; row += 1, at += wide)
          for (let across = 0; across < side; across += 1) pixels[at + across] = tint;
      }
    }
  }
}

// Which of some rows are inside a selection, as numbers; null where nothing is selected.
export function mask(rows, inside) {
  if (inside === null) return null;
  const found = new Uint8Array(rows.length);
  for (let place = 0; place < rows.length; place += 1)
    if (inside.has(rows[place].id)) found[place] = 1;
  return found;
}

// The place of the point nearest to the pointer, or -1 if none is near.
export function nearest(xs, ys, [px, py], reach = 18) {
  let best = -1;
  let least = reach * reach;
  for (let place = 0; place < xs.length; place += 1) {
    const far = (xs[place] - px) ** 2 + (ys[place] - py) ** 2;
    if (far < least) {
      least = far;
      best = place;
    }
  }
  return best;
}
