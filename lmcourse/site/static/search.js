/* The search: sections, exercises and figures with their text around the first word found. SECTIONS is in sections.js. */
"use strict";

const AROUND = 110; // characters of the excerpt on both sides
const MOST = 50; // results that are listed

/** The words of a question, and its phrases: "ring attention" in quotation marks is one. */
function wordsOf(question) {
  return [...question.toLowerCase().matchAll(/"([^"]+)"?|[^\s"]+/g)].map((match) => (match[1] ?? match[0]).trim()).filter(Boolean);
}

/** A pattern for words that begin like this one: "ring" finds "rings", and not "exploring". */
function patternOf(...words) {
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replace(/\s+/g, "\\s+"));
  return `(?<![\\p{L}\\p{N}])(${escaped.join("|")})`;
}

function countOf(text, word) {
  return [...text.matchAll(new RegExp(patternOf(word), "giu"))].length;
}

/** How well a place answers: how many of the words it has comes first, then words in its title. */
function score([, chapter, , title, text, figure], words) {
  const inTitle = figure ? 4 : 10; // the beginning of a caption is less of a title than a heading
  const each = words.map((word) => inTitle * countOf(`${chapter} ${title}`, word) + Math.min(5, countOf(text, word)));
  return 1000 * each.filter(Boolean).length + each.reduce((sum, one) => sum + one);
}

/** The text around the first word that occurs, with all words marked. */
function excerpt(text, words) {
  const pattern = patternOf(...words);
  const start = Math.max(0, text.search(new RegExp(pattern, "iu")) - AROUND);
  const shown = text.slice(start, start + 2 * AROUND);
  const paragraph = document.createElement("p");
  paragraph.append(start ? "… " : "");
  shown.split(new RegExp(pattern, "iu")).forEach((part, place) => {
    paragraph.append(place % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part);
  });
  paragraph.append(" …");
  return paragraph;
}

function result([address, chapter, section, title, text, figure], words) {
  const link = Object.assign(document.createElement("a"), { href: address, textContent: title });
  const item = document.createElement("li");
  item.append(figure ? "Figure: " : "", link, ` in ${chapter}${section && `, ${section}`}`, excerpt(text, words));
  return item;
}

/** List the places that have all words of a question or, if none has, those that have some. */
function answer(question) {
  const words = wordsOf(question);
  const found = words.length ? SECTIONS.map((place) => [score(place, words), place]).filter(([points]) => points) : [];
  found.sort(([a], [b]) => b - a); // equal ones stay in the order of the course
  const all = found.filter(([points]) => points >= 1000 * words.length);
  if (all.length) found.splice(all.length);
  const results = `${found.length} ${found.length === 1 ? "result" : "results"}`;
  const count = found.length > MOST ? `The best ${MOST} of ${results}` : results;
  const which = all.length || words.length < 2 ? "with" : "with some of";
  document.querySelector(".search-count").textContent = words.length ? `${count} ${which} “${question.trim()}”` : "";
  document.querySelector(".found").replaceChildren(...found.slice(0, MOST).map(([, place]) => result(place, words)));
}

const box = document.querySelector("form.search input[name=q]");
box.value = new URLSearchParams(location.search).get("q") || "";
box.addEventListener("input", () => {
  history.replaceState(null, "", `?q=${encodeURIComponent(box.value)}`); // so that Back returns to these results
  answer(box.value);
});
answer(box.value);
