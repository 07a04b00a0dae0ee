// Definitions stand in titles, which a mouse shows by itself; here they are shown on keyboard focus and on touch too.
let shown = null;

function hide() {
  shown?.remove();
  shown = null;
}

function show(element) {
  hide();
  const text = element.title || element.querySelector?.(":scope > abbr")?.title;
  if (!text) return;
  shown = document.createElement("div");
  shown.id = "tip";
  shown.setAttribute("role", "tooltip");
  shown.textContent = text;
  (element.closest("dialog, header") ?? document.getElementById("main")).append(shown);
  const box = element.getBoundingClientRect();
  const own = shown.getBoundingClientRect();
  shown.style.left = `${Math.max(4, Math.min(box.left, innerWidth - own.width - 8))}px`;
  const below = box.bottom + own.height + 8 < innerHeight;
  shown.style.top = `${below ? box.bottom + 6 : Math.max(4, box.top - own.height - 6)}px`;
}

const titled = (target) =>
  target instanceof Element
    ? target.closest("abbr[title], .tile[title], label.field[title]")
    : null;

export function watchTips() {
  addEventListener("focusin", (event) => {
    const found = titled(event.target);
    if (found && /** @type {Element} */ (event.target).matches(":focus-visible")) show(found);
    else hide();
  });
  addEventListener("focusout", hide);
  addEventListener("pointerdown", (event) => {
    const found = titled(event.target);
    if (found && (event.pointerType === "touch" || found.matches(".tile"))) show(found);
    else hide();
  });
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
  addEventListener("scroll", hide, { capture: true, passive: true });
}
