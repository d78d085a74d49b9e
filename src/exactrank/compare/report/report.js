"use strict";
// The page reads without this; it sorts tables, shows tips, and lets the reader choose data set, fold and baseline.
document.documentElement.classList.add("chosen");

const all = (selector, inside = document) => [...inside.querySelectorAll(selector)];

// Tables: a click on a heading sorts by its column, numbers from the largest first, and back; rows without a value stay last.
const leading = (text) => (/^[<+]?(-?\d+(?:\.\d+)?)/.exec(text.replaceAll(",", "").replace("−", "-")) ?? ["", text])[1];
function sortBy(heading) {
  const table = heading.closest("table"), body = table.tBodies[0], column = heading.cellIndex, words = heading.matches(".words");
  const order = (cell) => cell.dataset.order ?? (words ? cell.textContent.toLowerCase() : leading(cell.textContent));
  const rows = [...body.rows].map((row) => ({ row, by: "last" in row.dataset ? "" : order(row.cells[column]) }));
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
// The points of a line are held as text, "across down what-is-said...", and become marks when the chart is first pointed at.
function mark(name, given, said) {
  const made = document.createElementNS(document.querySelector("svg").namespaceURI, name);
  for (const [key, value] of Object.entries(given)) made.setAttribute(key, String(value));
  made.dataset.tip = said;
  return made;
}
function marks(chart) {
  for (const line of all("[data-at]", chart)) {
    const said = line.dataset.at ? line.dataset.at.split(";").map((point) => point.split(" ")) : [];
    delete line.dataset.at;
    line.append(...said.map(([x, y, ...values]) =>
      mark("circle", { class: "unseen", cx: x + "%", cy: y + "%", r: 4 }, line.dataset.say.replace(/\{\}/g, () => values.shift()))));
  }
  chart.closest("figure")?.bars?.();
  return all("[data-tip]", chart);
}
function nearest(chart, event) {
  const across = chart.dataset.near === "x";
  let found = null, least = across ? Infinity : 30;
  for (const mark of marks(chart)) {
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
  chart.addEventListener("focus", () => { if (chart.matches(":focus-visible")) point(marks(chart)[0]); });
  chart.addEventListener("blur", () => point(null));
  chart.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (event.key === "Escape") point(null);
    const there = step ? marks(chart) : [];
    if (!there.length) return;
    event.preventDefault();
    point(there[(there.indexOf(pointed) + step + there.length) % there.length]);
  });
}
addEventListener("scroll", () => point(pointed), { passive: true });

// Choices: what is not chosen goes away; on paper all data sets are there.
function pick(name, value) {
  for (const part of all("[data-of]")) if (part.dataset.of === name) part.classList.toggle("away", value !== "" && part.dataset.is !== value);
  for (const select of all("select[data-picks]")) if (select.dataset.picks === name) select.value = value;
}
for (const select of all("select[data-picks]")) {
  select.addEventListener("change", () => pick(select.dataset.picks, select.value));
  pick(select.dataset.picks, select.options[0].value);
}

// Query by query: the same areas as the charts have at first, against another baseline.
const written = (value, plus = false) => {
  const text = value.toLocaleString("en-US", { minimumFractionDigits: 4, maximumFractionDigits: 4 });
  if (!/[1-9]/.test(text)) return text.replace("-", "");
  return plus && value > 0 ? "+" + text : text.replace("-", "−");
};
function area(differences, it, sign) {
  const column = it.span / Math.max(differences.length, 1), zero = it.span / 2, round = (value) => Math.floor(value + 0.5);
  const own = differences.map((value, i) => [i, value]).filter(([, value]) => sign * value > 0);
  const tops = own.map(([i, value]) => `V${round(zero * (1 - value / it.reach))}H${round((i + 1) * column)}`).join("");
  return own.length ? `M${round(own[0][0] * column)} ${zero}${tops}V${zero}Z` : "";
}
function drawn(it, own, base) {
  const difference = (q) => it.values[own][q] - it.values[base][q];
  const order = it.qid.map((_, q) => q).filter((q) => it.values[own][q] !== null && it.values[base][q] !== null);
  order.sort((p, q) => difference(q) - difference(p) || p - q);
  if (order.length <= it.columns) return order;
  return Array.from({ length: it.columns }, (_, i) => order[Math.floor((i * (order.length - 1)) / (it.columns - 1))]);
}
function bars(plot, it, own, base, order) {
  const width = 100 / Math.max(order.length, 1);
  plot.append(...order.map((at, place) => {
    const [a, b] = [it.values[own][at] / it.unit, it.values[base][at] / it.unit], high = (50 * Math.abs(a - b)) / it.reach;
    const given = { class: "unseen", x: place * width + "%", y: (a > b ? 50 - high : 50) + "%", width: width + "%", height: high + "%" };
    return mark("rect", given, `query ${it.qid[at]}\n${it.names[own]}: ${written(a)}\n${it.names[base]}: ${written(b)}\ndifference: ${written(a - b, true)}`);
  }));
}
for (const part of all(".win-loss")) {
  const it = JSON.parse(part.querySelector("script").textContent), select = part.querySelector(".baseline");
  const against = (base) => all("figure", part).forEach((figure, own) => {
    const plot = figure.querySelector(".chart > svg");
    all("rect", plot).forEach((rect) => rect.remove());
    figure.bars = () => { figure.bars = null; bars(plot, it, own, base, drawn(it, own, base)); };
  });
  against(Number(select.value));
  select.addEventListener("change", () => {
    const base = Number(select.value);
    against(base);
    all("figure", part).forEach((figure, own) => {
      const differences = drawn(it, own, base).map((q) => (it.values[own][q] - it.values[base][q]) / it.unit);
      figure.hidden = own === base;
      figure.querySelector(".against").textContent = "against " + it.names[base];
      const [wins, ties, losses] = it.counts[own][base];
      figure.querySelector(".count").textContent = `${wins} won, ${ties} tied, ${losses} lost`;
      figure.querySelector(".chart").setAttribute("aria-label", `${it.names[own]} against ${it.names[base]}, query by query`);
      figure.querySelector(".win").setAttribute("d", area(differences, it, 1));
      figure.querySelector(".loss").setAttribute("d", area(differences, it, -1));
    });
  });
}
