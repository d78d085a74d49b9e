"use strict";
// The page reads without this; it sorts tables, shows tips, and lets the reader choose data set, fold and baseline.

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// Tables: a click on a heading sorts by its column, numbers from the largest first, and back; rows without a value stay last.
function sortBy(heading) {
  const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex;
  const rows = [...body.rows].map((row) => ({ row, by: "last" in row.dataset ? "" : row.cells[column].dataset.order ?? row.cells[column].textContent }));
  const numeric = rows.every(({ by }) => !Number.isNaN(Number(by)));
  const before = heading.getAttribute("aria-sort"), up = before === "none" ? !numeric || column === 0 : before === "descending";
  const compared = (a, b) => (numeric ? a - b : a.localeCompare(b)) * (up ? 1 : -1);
  rows.sort((a, b) => (a.by === "") - (b.by === "") || compared(a.by, b.by));
  body.append(...rows.map(({ row }) => row));
  for (const other of all("th[aria-sort]", table)) other.setAttribute("aria-sort", "none");
  heading.setAttribute("aria-sort", up ? "ascending" : "descending");
}
for (const button of all("th button")) button.addEventListener("click", () => sortBy(button.closest("th")));

// Tips: of the mark nearest to the mouse, or reached by the arrow keys.
const tip = document.getElementById("tip");
let pointed = null;
function point(mark) {
  pointed?.classList.remove("pointed");
  pointed = mark;
  tip.hidden = !mark;
  if (!mark) return;
  mark.classList.add("pointed");
  tip.textContent = mark.dataset.tip;
  const at = mark.getBoundingClientRect(), own = tip.getBoundingClientRect();
  const left = Math.min(Math.max(4, at.left + at.width / 2 - own.width / 2), document.documentElement.clientWidth - own.width - 4);
  tip.style.left = left + "px";
  tip.style.top = (at.top - own.height - 8 > 0 ? at.top - own.height - 8 : at.bottom + 8) + "px";
}
function nearest(chart, event) {
  const across = chart.dataset.near === "x";
  let found = null, least = across ? Infinity : 30;
  for (const mark of all("[data-tip]", chart)) {
    const box = mark.getBoundingClientRect();
    const x = Math.max(box.left - event.clientX, 0, event.clientX - box.right), y = Math.max(box.top - event.clientY, 0, event.clientY - box.bottom);
    const away = across ? x : Math.hypot(x, y);
    if (away < least) [found, least] = [mark, away];
  }
  return found;
}
for (const chart of all(".chart")) {
  chart.addEventListener("pointermove", (event) => point(nearest(chart, event)));
  chart.addEventListener("pointerleave", () => point(null));
  chart.addEventListener("focus", () => { if (chart.matches(":focus-visible")) point(chart.querySelector("[data-tip]")); });
  chart.addEventListener("blur", () => point(null));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    const marks = all("[data-tip]", chart);
    if (event.key === "Escape") point(null);
    if (!step || !marks.length) return;
    event.preventDefault();
    point(marks[(marks.indexOf(pointed) + step + marks.length) % marks.length]);
  });
}
addEventListener("scroll", () => point(pointed), { passive: true });

// Choices: what is not chosen goes away, but for print.
function pick(name, value) {
  for (const part of all("[data-of]")) if (part.dataset.of === name) part.classList.toggle("away", value !== "" && part.dataset.is !== value);
  for (const select of all("select[data-picks]")) if (select.dataset.picks === name) select.value = value;
}
for (const select of all("select[data-picks]")) {
  select.addEventListener("change", () => pick(select.dataset.picks, select.value));
  pick(select.dataset.picks, select.options[0].value);
}

// Query by query: the same bars as the charts have at first, against another baseline.
const written = (value, plus = false) => {
  const text = value.toLocaleString("en-US", { minimumFractionDigits: 4, maximumFractionDigits: 4 });
  if (!/[1-9]/.test(text)) return text.replace("-", "");
  return plus && value > 0 ? "+" + text : text.replace("-", "−");
};
function bar(chart, width, place, at, it, own, base) {
  const { left, zero, unit } = chart.dataset, height = Number(unit) * ((it.values[own][at] - it.values[base][at]) / it.unit);
  const rect = document.createElementNS(chart.namespaceURI, "rect");
  const given = { x: Number(left) + place * width, y: zero - Math.max(height, 0), width: 0.85 * width, height: Math.abs(height) };
  for (const [name, value] of Object.entries(given)) rect.setAttribute(name, String(Number(value.toFixed(2))));
  rect.setAttribute("class", height > 0 ? "win" : height < 0 ? "loss" : "tie");
  const [a, b] = [it.values[own][at] / it.unit, it.values[base][at] / it.unit];
  rect.dataset.tip = `query ${it.qid[at]}\n${it.names[own]}: ${written(a)}\n${it.names[base]}: ${written(b)}\ndifference: ${written(a - b, true)}`;
  return rect;
}
function drawn(it, own, base) {
  const difference = (q) => it.values[own][q] - it.values[base][q];
  const order = it.qid.map((_, q) => q).filter((q) => it.values[own][q] !== null && it.values[base][q] !== null);
  order.sort((p, q) => difference(q) - difference(p) || p - q);
  if (order.length <= it.columns) return order;
  return Array.from({ length: it.columns }, (_, i) => order[Math.floor((i * (order.length - 1)) / (it.columns - 1))]);
}
for (const part of all(".win-loss")) {
  const it = JSON.parse(part.querySelector("script").textContent), select = part.querySelector(".baseline");
  select.addEventListener("change", () => {
    const base = Number(select.value);
    all("figure", part).forEach((figure, own) => {
      const chart = figure.querySelector(".chart"), order = drawn(it, own, base), width = chart.dataset.across / Math.max(order.length, 1);
      figure.hidden = own === base;
      figure.querySelector(".against").textContent = "against " + it.names[base];
      const [wins, ties, losses] = it.counts[own][base];
      figure.querySelector(".count").textContent = `${wins} wins, ${ties} ties, ${losses} losses`;
      chart.setAttribute("aria-label", `${it.names[own]} against ${it.names[base]}, query by query`);
      chart.querySelector(".bars").replaceChildren(...order.map((at, place) => bar(chart, width, place, at, it, own, base)));
    });
  });
}

// On paper all parts are open.
addEventListener("beforeprint", () => all("details:not([open])").forEach((each) => { each.open = true; each.dataset.opened = ""; }));
addEventListener("afterprint", () => all("details[data-opened]").forEach((each) => { each.open = false; delete each.dataset.opened; }));
