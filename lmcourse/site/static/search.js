/* The search: sections with their text around the first word found. SECTIONS comes from sections.js. */
"use strict";

const AROUND = 110; // characters of the excerpt on both sides
const MOST = 50; // sections that are listed

function countOf(text, word) {
  return text.split(word).length - 1;
}

/** How well a section answers: how many of the words it has comes first, then words in its title. */
function score([, chapter, title, text], words) {
  const [heading, body] = [`${chapter} ${title}`.toLowerCase(), text.toLowerCase()];
  const each = words.map((word) => 10 * countOf(heading, word) + Math.min(5, countOf(body, word)));
  return 1000 * each.filter(Boolean).length + each.reduce((sum, one) => sum + one);
}

/** The text around the first word that occurs, with all words marked. */
function excerpt(text, words) {
  const first = Math.min(...words.map((word) => text.toLowerCase().indexOf(word)).filter((at) => at >= 0));
  const start = Number.isFinite(first) ? Math.max(0, first - AROUND) : 0;
  const shown = text.slice(start, start + 2 * AROUND);
  const escaped = words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  const paragraph = document.createElement("p");
  paragraph.append(start ? "… " : "");
  shown.split(new RegExp(`(${escaped.join("|")})`, "i")).forEach((part, place) => {
    paragraph.append(place % 2 ? Object.assign(document.createElement("mark"), { textContent: part }) : part);
  });
  paragraph.append(" …");
  return paragraph;
}

function result([address, chapter, title, text], words) {
  const link = Object.assign(document.createElement("a"), { href: address, textContent: title });
  const item = document.createElement("li");
  item.append(link, ` in ${chapter}`, excerpt(text, words));
  return item;
}

const asked = new URLSearchParams(location.search).get("q") || "";
const words = asked.toLowerCase().split(/\s+/).filter(Boolean);
document.querySelector(".search input").value = asked;
if (words.length) {
  const found = SECTIONS.map((section) => [score(section, words), section]).filter(([points]) => points);
  found.sort(([a], [b]) => b - a); // equal ones stay in the order of the course
  const all = found.filter(([points]) => points >= 1000 * words.length);
  if (all.length) found.splice(all.length); // else those that have some of the words
  const count = found.length > MOST ? `The best ${MOST} of ${found.length} sections` : `${found.length} sections`;
  document.querySelector(".search-count").textContent = all.length || words.length < 2
    ? `${count} with “${asked}”` : `${count} with some of “${asked}”`;
  document.querySelector(".found").append(...found.slice(0, MOST).map(([, section]) => result(section, words)));
}
