/* While one reads: the part that is folded, the place in the contents, and the papers behind citations. */
"use strict";

/* --- Further ------------------------------------------------------------------------------------------------- */

/** Open what is folded around the target of a link, and return the target. */
function unfold(hash) {
  const target = document.getElementById(decodeURIComponent(hash.slice(1)));
  const first = target?.querySelector(":scope > details.further") ?? target?.closest("details");
  for (let fold = first; fold; fold = fold.parentElement.closest("details")) fold.open = true;
  return target;
}

addEventListener("click", (event) => {
  const link = event.target.closest("a[href^='#']");
  if (!link) return;
  unfold(link.hash); // before the browser scrolls there
  link.closest("dialog")?.close(); // on a phone the contents cover the page
});
addEventListener("hashchange", () => unfold(location.hash)?.scrollIntoView());
addEventListener("DOMContentLoaded", () => {
  if (location.hash) unfold(location.hash)?.scrollIntoView();
});

/** On paper nothing of the text is folded; hints and answers stay as the reader left them. */
addEventListener("beforeprint", () => {
  for (const fold of document.querySelectorAll("details.further:not([open])")) {
    fold.open = true;
    addEventListener("afterprint", () => { fold.open = false; }, { once: true });
  }
});

/* --- the contents beside the page ---------------------------------------------------------------------------- */

const HERE = 0.2; // of the window's height: the section whose heading is above this line is being read

/** Mark the section in view. The theme's own script marks one only while its heading enters the top of the window. */
function followContents(theirs) {
  const contents = theirs.cloneNode(true);
  theirs.replaceWith(contents); // the theme's script keeps marking the old one
  const links = [...contents.querySelectorAll("a[href^='#']")];
  const headings = links.map((link) => document.getElementById(decodeURIComponent(link.hash.slice(1))).firstElementChild);
  const entries = [...contents.querySelectorAll("li")];
  let marked = null;

  function mark() {
    const seen = headings.map((heading) => heading.checkVisibility() && heading.getBoundingClientRect().top);
    const link = links[seen.findLastIndex((top) => top !== false && top < HERE * innerHeight)];
    if (link === marked) return;
    marked?.removeAttribute("aria-current");
    marked = link;
    marked?.setAttribute("aria-current", "true");
    for (const other of [...links, ...entries]) other.classList.toggle("active", other === link || (other.tagName === "LI" && other.contains(link ?? null)));
    if (marked && contents.checkVisibility()) keepInView(marked, contents.closest(".bd-sidebar-secondary"));
  }

  let waiting = 0;
  const soon = () => { waiting ||= requestAnimationFrame(() => { waiting = 0; mark(); }); };
  for (const event of ["scroll", "resize"]) addEventListener(event, soon, { passive: true });
  document.querySelectorAll("details.further").forEach((fold) => fold.addEventListener("toggle", soon));
  mark();
}

/** Scroll a box, and not the page, until a part of it is in view. */
function keepInView(part, box) {
  if (!box) return;
  const { top, bottom } = part.getBoundingClientRect();
  const { top: first, bottom: last } = box.getBoundingClientRect();
  if (top < first) box.scrollTop += top - first;
  else if (bottom > last) box.scrollTop += bottom - last;
}

addEventListener("load", () => document.querySelectorAll("#pst-page-toc-nav").forEach(followContents));

/* --- citations ----------------------------------------------------------------------------------------------- */

const paper = Object.assign(document.createElement("div"), { id: "paper", role: "tooltip", hidden: true });
let cited = null; // the link whose paper is shown
let leaving = 0;

/** Show title, authors and year below a citation, with a link for those who tap. */
function showPaper(link) {
  clearTimeout(leaving);
  if (cited === link) return;
  hidePaper();
  cited = link;
  const [title, ...rest] = link.dataset.paper.split("\n");
  const open = Object.assign(document.createElement("a"), { href: link.href, textContent: title, tabIndex: -1 });
  paper.replaceChildren(open, ...rest.map((line) => Object.assign(document.createElement("span"), { textContent: line })));
  paper.hidden = false;
  link.setAttribute("aria-describedby", paper.id);
  const { left, bottom } = [...link.getClientRects()].at(-1);
  paper.style.left = `${Math.max(8, Math.min(left, document.documentElement.clientWidth - paper.offsetWidth - 8)) + scrollX}px`;
  paper.style.top = `${bottom + scrollY + 4}px`;
}

function hidePaper() {
  cited?.removeAttribute("aria-describedby");
  cited = null;
  paper.hidden = true;
}

/** A pointer may move from the citation to what it shows. */
function hideSoon() {
  clearTimeout(leaving);
  leaving = setTimeout(hidePaper, 300);
}

function citation(link) {
  link.dataset.paper = link.title;
  link.removeAttribute("title");
  link.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && showPaper(link));
  link.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hideSoon());
  link.addEventListener("focus", () => link.matches(":focus-visible") && showPaper(link));
  link.addEventListener("blur", hideSoon);
  link.addEventListener("click", (event) => {
    if (event.pointerType !== "touch" || cited === link) return; // a second tap follows the link
    event.preventDefault();
    showPaper(link);
  });
}

addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("a.cite").forEach(citation);
  document.body.append(paper);
  paper.addEventListener("pointerenter", () => clearTimeout(leaving));
  paper.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && hideSoon());
  addEventListener("keydown", (event) => event.key === "Escape" && hidePaper());
  addEventListener("pointerdown", (event) => event.target.closest("a.cite, #paper") || hidePaper());
});
