// What is wrong with the view that is shown, for those who cannot see or point: a list of sentences.
() => {
  const found = [];
  const seen = (el) => el.checkVisibility?.({ visibilityProperty: true, opacityProperty: true }) && el.getClientRects().length;
  const told = (el) => `${el.tagName.toLowerCase()}${el.id ? "#" + el.id : ""}.${el.className} “${(el.textContent || "").trim().slice(0, 30)}”`;
  const parse = (text) => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = text; c.fillRect(0, 0, 1, 1);
    return [...c.getImageData(0, 0, 1, 1).data]; };
  const over = ([r, g, b, a], under) => [r, g, b].map((v, i) => (v * a + under[i] * (255 - a)) / 255).concat(255);
  const ground = (el) => { const chain = []; for (let up = el; up; up = up.parentElement) chain.push(parse(getComputedStyle(up).backgroundColor));
    let now = parse(getComputedStyle(document.body).backgroundColor); for (const each of chain.reverse()) now = over(each, now); return now; };
  const light = ([r, g, b]) => { const f = (v) => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
    return 0.2126 * f(r) + 0.7152 * f(g) + 0.0722 * f(b); };
  const contrast = (a, b) => { const [x, y] = [light(a), light(b)].sort((p, q) => q - p); return (x + 0.05) / (y + 0.05); };
  const name = (el) => (el.getAttribute("aria-label") || (el.labels && [...el.labels].map((l) => l.textContent).join(" ")) || el.textContent || el.title || "").trim();
  const top = document.querySelector("dialog[open]") ?? document;
  if (!document.documentElement.lang || !document.title) found.push("no language or title");
  if (top === document && document.querySelectorAll("h1").length !== 1) found.push(`${document.querySelectorAll("h1").length} first headings`);
  const ids = [...document.querySelectorAll("[id]")].map((el) => el.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push(`the id ${id} twice`);
  for (const el of top.querySelectorAll("button, a[href], input, select, textarea, summary, [tabindex='0'], canvas, [role]")) {
    if (!seen(el) || el.type === "hidden") continue;
    if (!name(el) && !["status", "alert", "tablist", "region", "tooltip"].includes(el.getAttribute("role"))) found.push(`no name: ${told(el)}`);
    if (el.getAttribute("role") === "tab" && !el.closest("[role=tablist]")) found.push(`a tab alone: ${told(el)}`);
    if (el.closest("[aria-hidden=true]")) found.push(`hidden and reachable: ${told(el)}`);
  }
  for (const el of top.querySelectorAll("th")) if (seen(el) && !name(el)) found.push("an empty th");
  for (const el of top.querySelectorAll("input:not([type=checkbox], [type=radio], [type=range]), select, textarea, button:not(.plain, .head, .tile)")) {
    const style = getComputedStyle(el);
    if (!seen(el) || el.disabled || el.closest("nav, .files") || style.borderTopWidth === "0px") continue;
    const rate = Math.max(contrast(parse(style.borderTopColor), ground(el.parentElement)), contrast(ground(el), ground(el.parentElement)));
    if (rate < 3) found.push(`border ${rate.toFixed(2)}: ${told(el)}`);
  }
  const walker = document.createTreeWalker(top === document ? document.body : top, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const el = node.parentElement;
    if (!node.textContent.trim() || !seen(el) || el.closest("script, noscript, option, .unseen, [inert], #busy")) continue;
    const style = getComputedStyle(el);
    const size = parseFloat(style.fontSize);
    if (size < 12.99) found.push(`${size} px: ${told(el)}`);
    if (el.closest(":disabled")) continue;
    const rate = contrast(over(parse(style.color), ground(el)), ground(el));
    if (rate < (size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700) ? 3 : 4.5) - 0.01) found.push(`text ${rate.toFixed(2)}: ${told(el)}`);
  }
  return [...new Set(found)];
}
