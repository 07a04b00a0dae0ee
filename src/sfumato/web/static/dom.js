// Elements are made from text, never from markup: a column called <script> is only a name.

// A part of the frame (index.html), or an element that the step that asks for it has drawn.
/**
 * @param {string} id
 * @returns {any}
 */
export const byId = (id) => document.getElementById(id);

/**
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...any} children
 * @returns {any}
 */
export function h(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (name === "class") made.className = value;
    else if (
      name in made &&
      !["list", "form", "width", "height", "colSpan"].includes(name) &&
      typeof value !== "string"
    )
      made[name] = value;
    else made.setAttribute(name, value === true ? "" : value);
  }
  add(made, children);
  return made;
}

// A number and its sign stay on one line.
const whole = (text) => text.replace(/(\d) (?=[%×])/g, "$1\u00a0");

export function add(parent, children) {
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false) continue;
    parent.append(child instanceof Node ? child : document.createTextNode(whole(String(child))));
  }
  return parent;
}

// Whoever works with the keyboard stays where they were when a part of the page is drawn anew.
const keyOf = (element) =>
  [
    element.tagName,
    element.id,
    element.getAttribute("aria-label"),
    ...Object.values(element.dataset),
    element.tagName === "BUTTON" ? element.textContent : "",
  ].join("|");

export function fill(parent, ...children) {
  const active =
    parent.contains(document.activeElement) && parent !== document.activeElement
      ? keyOf(document.activeElement)
      : null;
  parent.replaceChildren();
  add(parent, children);
  if (active)
    [...parent.querySelectorAll("button, input, select, textarea, a, [tabindex]")]
      .find((each) => keyOf(each) === active)
      ?.focus({ preventScroll: true });
  return parent;
}

/**
 * @param {number | null | undefined} share
 * @param {number} [digits]
 */
export const percent = (share, digits = 1) =>
  share === null || share === undefined
    ? "–"
    : share > 0 && share < 0.001
      ? "< 0.1 %"
      : Math.abs(share - 1) < 1e-9
        ? "100 %"
        : share < 1 - 1e-9 && share >= 0.9995 && digits === 1
          ? "> 99.9 %" // what is not all never reads so
          : `${(share * 100).toFixed(share === 0 || share === 1 ? 0 : digits)} %`;

/** @param {number | null | undefined} ratio */
export const times = (ratio) =>
  ratio === null || ratio === undefined ? "–" : `${ratio.toFixed(2)} ×`;

const WHOLE = new Intl.NumberFormat("en-GB", { maximumFractionDigits: 0 }); // one for all: making it is what costs

/** @param {number | null | undefined} value */
export function number(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value) || Math.abs(value) >= 1000) return WHOLE.format(value);
  return Number(value.toPrecision(4)).toString();
}

/**
 * @param {number} count
 * @param {string} word
 * @param {string} [many]
 */
export const plural = (count, word, many = `${word}s`) =>
  `${number(count)} ${count === 1 ? word : many}`;

// Records that the missing rule left out, behind other counts; nothing where there are none.
/**
 * @param {number} count
 * @param {number} entered
 */
export const leftOut = (count, entered) =>
  count > 0
    ? `, ${plural(count, "record")} of the source left out because of missing values ` +
      `(${percent(count / (count + entered))})`
    : "";

// A number with its definition one hover, one tab or one click away.
export function figure(value, says, definition, extra = {}) {
  return h(
    "button",
    {
      type: "button",
      class: "tile",
      title: definition,
      "aria-label": `${value} ${says}: ${definition}`,
      ...extra,
    },
    h("b", {}, value),
    " ",
    h("span", {}, says),
  );
}

export function defined(text, definition) {
  return h("abbr", { title: definition, tabindex: "0" }, text);
}

export function button(text, act, properties = {}) {
  return h("button", { type: "button", onclick: act, ...properties }, text);
}

export function select(options, chosen, changed, properties = {}) {
  const made = h("select", { onchange: () => changed(made.value), ...properties });
  for (const option of options) {
    const [value, text, title] = Array.isArray(option) ? option : [option, option];
    made.append(h("option", { value, title, selected: String(value) === String(chosen) }, text));
  }
  return made;
}

export function field(label, control, definition) {
  return h("label", { class: "field", title: definition }, h("span", {}, label), control);
}

// Fields as the page calls them, and what they take: the interface speaks of shares, the page of percent.
const FIELDS = {
  max_suppression: ["“Suppress at most, %”", "a number from 0 to 99"],
  max_loss: ["“Loss at most, %”", "a number from 0 to 100"],
  min_k: ["“k at least”", "a number of 1 or more, or nothing"],
  min_l: ["“ℓ at least”", "a number of 1 or more, or nothing"],
  seconds: ["“Stop after, seconds”", "a number above 0, or nothing for no limit"],
  generations: ["“Generations”", "a whole number of 1 or more"],
  seed: ["“Seed”", "a whole number of 0 or more"],
  delta: ["“δ: posterior at most”", "a number above 0 and at most 1"],
  points: ["“Points”", "a whole number from 1 to 200"],
};

const sentence = (text) => text && text[0].toUpperCase() + text.slice(1);

export function error(told) {
  const [label, takes] =
    FIELDS[/^(?:\w+\.)?(\w+)(?: = \S+)? is not valid$/.exec(told.what)?.[1]] ?? [];
  const found = label ? { what: `${label} is not valid`, try: takes } : told;
  const expected = found.expected?.replace(/^Input should be /, "");
  return h(
    "div",
    { class: "error", role: "alert" },
    h("b", {}, sentence(found.what)),
    expected && h("span", {}, `Expected: ${expected}.`),
    found.try && h("span", {}, `Try: ${found.try}`),
  );
}

// A table that can be scrolled, by the keyboard too; every table of a view has a label of its own.
export function table(label, heads, rows, properties = {}) {
  return h(
    "div",
    { class: "scroll", role: "region", tabindex: "0", "aria-label": label, ...properties },
    h(
      "table",
      {},
      h(
        "thead",
        {},
        h(
          "tr",
          {},
          heads.map((head) =>
            head instanceof Node
              ? h("th", {}, head)
              : h("th", { title: head.title, class: head.class }, head.text ?? head),
          ),
        ),
      ),
      h(
        "tbody",
        {},
        rows.map((cells) =>
          h(
            "tr",
            {},
            cells.map((cell) => (cell instanceof HTMLTableCellElement ? cell : h("td", {}, cell))),
          ),
        ),
      ),
    ),
  );
}

export function later(act, wait) {
  let timer;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => act(...given), wait);
  };
}

// A note at the foot of the page that can be answered with one button for a while: "deleted", Undo.
export function toast(text, label, act) {
  document.getElementById("toast")?.remove();
  const made = h(
    "div",
    { id: "toast", role: "status", "aria-live": "polite" },
    h("span", {}, text),
    label &&
      button(
        label,
        async () => {
          made.remove();
          await act();
        },
        { class: "small", id: "toast-act" },
      ),
    button("✕", () => made.remove(), { class: "small plain", "aria-label": "Close this note" }),
  );
  document.body.append(made);
  return made;
}

// A question in a dialog of the page's own; resolves with the text, or null. `must` is a text that has to be typed.
export function askText(
  title,
  { value = "", says = "", label = title, must = null, act = "OK" } = {},
) {
  return new Promise((done) => {
    let answer = null;
    const input = h("input", {
      value,
      size: 36,
      maxlength: 200,
      "aria-label": label,
      id: "ask-text",
    });
    const ok = h(
      "button",
      { class: "main", type: "submit", id: "ask-ok", disabled: must !== null },
      act,
    );
    input.addEventListener("input", () => {
      ok.disabled = must === null ? !input.value.trim() : input.value !== must;
    });
    const dialog = h(
      "dialog",
      {
        "aria-label": title,
        onclose: () => {
          dialog.remove();
          done(answer);
        },
      },
      h(
        "form",
        {
          onsubmit: (event) => {
            event.preventDefault();
            answer = input.value.trim();
            dialog.close();
          },
        },
        h("h2", {}, title),
        says && h("p", {}, says),
        h("p", {}, input),
        h(
          "div",
          { class: "row" },
          ok,
          button("Cancel", () => dialog.close(), { class: "plain" }),
        ),
      ),
    );
    document.body.append(dialog);
    dialog.showModal();
    input.select();
  });
}

// Tabs that follow the arrow keys, with the panel they open.
export function tabs(pages, chosen, open, label) {
  const ids = Object.keys(pages);
  const bar = h("div", {
    class: "tabs",
    role: "tablist",
    "aria-label": label,
    onkeydown: (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const place = [...bar.children].indexOf(document.activeElement);
      const next = bar.children[(place + step + ids.length) % ids.length];
      event.preventDefault();
      next.click();
      [...bar.children].find((each) => each.getAttribute("aria-selected") === "true")?.focus();
    },
  });
  const draw = (now) =>
    fill(
      bar,
      ids.map((id) =>
        button(
          pages[id],
          () => {
            draw(id);
            open(id);
          },
          {
            role: "tab",
            "aria-selected": id === now ? "true" : "false",
            tabindex: id === now ? "0" : "-1",
            "data-mode": id,
          },
        ),
      ),
    );
  draw(chosen);
  bar.show = draw;
  return bar;
}
