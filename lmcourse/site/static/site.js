/* Predictions that answer, and what a browser remembers. Nothing is sent anywhere: all of it lies in the pages. */
"use strict";

/* --- predictions --------------------------------------------------------------------------------------------- */

/** Hide the answer of a prediction, and return a function that shows and stores what the reader chose. */
function verdictOf(box) {
  const answer = box.querySelector("details");
  const because = answer.querySelector(".because");
  const verdict = box.querySelector(".verdict");
  answer.hidden = true;
  return (right, own, choice) => {
    const said = because.cloneNode(true);
    const first = said.querySelector("b");
    first.textContent = own(first.textContent);
    box.classList.add(right ? "was-right" : "was-wrong");
    verdict.replaceChildren(...said.childNodes);
    remember(nameOf(box), choice);
  };
}

function nameOf(box) {
  return `lmcourse: ${box.querySelector(".question").textContent}`;
}

function prediction(box) {
  const buttons = [...box.querySelectorAll("button")];
  const show = verdictOf(box);

  /** Say what is right; a disabled button would lose the keyboard's focus. */
  function choose(button) {
    if (box.querySelector(".verdict").hasChildNodes()) return;
    const right = "right" in button.dataset;
    for (const other of buttons) {
      other.setAttribute("aria-pressed", String(other === button));
      other.setAttribute("aria-disabled", "true");
      other.classList.toggle("right", "right" in other.dataset);
    }
    button.classList.toggle("wrong", !right);
    show(right, (answer) => (right ? "Yes." : `You chose “${button.textContent}”. ${answer}`), button.textContent);
  }

  for (const button of buttons) {
    button.disabled = false;
    button.addEventListener("click", () => choose(button));
  }
  const before = buttons.find((button) => button.textContent === remembered(nameOf(box)));
  if (before) choose(before);
}

/** Return the number that a reader typed, or null if it is no number of the scale; as `NumberScale.read`. */
function readNumber(text, { low, high, unit }) {
  const plain = (words) => words.toLowerCase().replaceAll("−", "-").replace(/[\s_'~≈]/g, "");
  const typed = /^([+-]?[0-9.,]+(?:e[+-]?[0-9]+)?)(.*)$/.exec(plain(text));
  if (!typed || !plain(unit).startsWith(typed[2])) return null;
  const grouped = /^[+-]?[1-9][0-9]{0,2}(,[0-9]{3})+(\.[0-9]*)?$/.test(typed[1]) ? [typed[1].replaceAll(",", "")] : [];
  const readings = [...grouped, typed[1].replaceAll(",", ".")].map((reading) => Number(reading) + 0); // -0 becomes 0
  return readings.find((number) => low <= number && number <= high) ?? null;
}

function numberPrediction(box) {
  const form = box.querySelector("form");
  const [slider, field] = form.querySelectorAll("input");
  const scale = JSON.parse(form.dataset.scale);
  const { answer, distances, stops, unit } = scale;
  const numbers = stops.map((stop) => readNumber(stop, scale));
  const show = verdictOf(box);
  let done = false;

  function follow() {
    const guess = readNumber(field.value, scale);
    if (guess === null) return;
    const away = numbers.map((number) => Math.abs(number - guess));
    slider.value = String(away.indexOf(Math.min(...away)));
    slider.setAttribute("aria-valuetext", `${field.value} ${unit}`);
  }

  function commit() {
    const guess = readNumber(field.value, scale);
    if (done) return;
    if (guess === null) {
      box.querySelector(".verdict").textContent = scale.help;
      return;
    }
    done = slider.disabled = field.readOnly = true;
    const [, words, right] = distances.find(
      ([edge]) => Math.min(edge, answer) <= guess && guess <= Math.max(edge, answer));
    const text = guess && Math.abs(guess) < 1e-4 ? guess : guess.toLocaleString("en-US", { maximumFractionDigits: 10 });
    const own = `You guessed ${text}${unit && " "}${unit}, ${words}.`;
    show(right, (theirs) => `${own} ${theirs}`, String(guess));
  }

  for (const control of form.querySelectorAll("input, button")) control.disabled = false;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    commit();
  });
  field.addEventListener("input", follow);
  slider.addEventListener("input", () => {
    field.value = stops[slider.value];
    follow();
  });
  slider.value = slider.defaultValue; // a browser may remember where it stood
  field.value = remembered(nameOf(box)) ?? "";
  follow();
  if (field.value) commit();
}

/* --- what stays in the browser, if the reader allows that ---------------------------------------------------- */

function remember(name, value) {
  try {
    localStorage.setItem(name, value);
  } catch {
    // Without storage the page works all the same.
  }
}

function remembered(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

const LAST = "lmcourse: last page";

/** What is known of a page: the section where the reader was, the hints that are open, and whether it was read. */
function pageState(page) {
  return { place: null, open: [], read: false, ...JSON.parse(remembered(`lmcourse: ${page}`) || "{}") };
}

/** Keep the reader's place, open hints and answers, and the mark of a chapter read to its end. */
function rememberPage() {
  const page = decodeURIComponent(location.pathname).split("/").pop();
  const sections = [...document.querySelectorAll(".bd-article section[id]")];
  const end = document.querySelector(".prev-next-footer");
  if (!end || sections.length < 3 || !document.querySelector(".exercise")) return; // no chapter
  const state = pageState(page);
  const save = () => remember(`lmcourse: ${page}`, JSON.stringify(state));

  if (state.place && !location.hash) {
    const line = resumeLine("You were at ", `#${state.place.id}`, state.place.title);
    document.querySelector(".bd-article h1").after(line);
  }
  document.querySelectorAll("details.further, .exercise-tools details").forEach((details) => {
    const card = details.closest(".exercise-tools");
    const number = card ? [...card.querySelectorAll("details")].indexOf(details) : "all";
    const name = `${details.closest("section").id} ${number}`;
    details.open = state.open.includes(name);
    details.addEventListener("toggle", () => {
      state.open = state.open.filter((other) => other !== name).concat(details.open ? [name] : []);
      save();
    });
  });
  new IntersectionObserver(([entry]) => {
    if (!entry.isIntersecting) return;
    state.read = true;
    save();
  }).observe(end);
  addEventListener("pagehide", () => {
    const here = sections.findLast((one) => one.checkVisibility() && one.getBoundingClientRect().top < innerHeight / 2);
    if (!here || here === sections[0]) return;
    state.place = { id: here.id, title: titleOf(here), chapter: titleOf(sections[0]) };
    save();
    remember(LAST, page);
  });
}

function titleOf(section) {
  const title = section.querySelector("h1, h2, h3, h4").cloneNode(true);
  title.querySelector(".headerlink")?.remove();
  return title.textContent;
}

function resumeLine(words, address, title) {
  const line = Object.assign(document.createElement("p"), { className: "resume", textContent: words });
  line.append(Object.assign(document.createElement("a"), { href: address, textContent: title }), ".");
  return line;
}

/** Mark the chapters that were read, and offer the last one on the front page. */
function showReading() {
  for (const link of document.querySelectorAll("nav.bd-links a, ol.map a")) {
    const page = link.getAttribute("href").split("#")[0] || decodeURIComponent(location.pathname).split("/").pop();
    if (!pageState(page).read) continue;
    link.append(Object.assign(document.createElement("span"), { className: "read-mark", textContent: " ✓\u00a0read" }));
  }
  const last = remembered(LAST);
  const begin = document.querySelector(".begin");
  if (!last || !begin) return;
  const { id, title, chapter } = pageState(last).place;
  begin.after(resumeLine(`You were in ${chapter}, at `, `${last}#${id}`, title));
}

/* --- what is wider than the page ------------------------------------------------------- */

/** Who has no mouse scrolls with the arrow keys what can be focused. */
function reachable(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

/** Load the pictures that nobody has scrolled to: on paper a picture that is not loaded is blank. */
function loadPictures() {
  for (const image of document.querySelectorAll('img[loading="lazy"]')) image.loading = "eager";
}

window.addEventListener("load", () => {
  (window.requestIdleCallback || setTimeout)(loadPictures); // after what is in view
  document.querySelectorAll(".bd-article div.math, .bd-article table, .bd-article pre, .picture").forEach(reachable);
});

document.addEventListener("DOMContentLoaded", () => {
  for (const box of document.querySelectorAll(".prediction"))
    (box.querySelector("form") ? numberPrediction : prediction)(box);
  showReading();
  rememberPage();
});
