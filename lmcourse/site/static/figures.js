/* Figures with controls: a setting of the controls chooses one of the drawn frames, and the address names it. */
"use strict";

const FRAMES = "_frames/";

const COPY = "copy link";

const PAUSE = 300;
/* Milliseconds without a move until the address follows: Safari allows a hundred changes in half a minute. */

/** Where a control stands: the index of its value. */
function positionOf(input) {
  return input.type === "checkbox" ? Number(input.checked) : Number(input.value);
}

/** Let a control stand at the index of a value, and say its words. */
function place(inputs, index) {
  for (const input of inputs) {
    if (input.type === "radio") input.checked = Number(input.value) === index;
    else if (input.type === "checkbox") input.checked = index === 1;
    else input.value = String(index);
    if (input.type === "range") {
      const words = JSON.parse(input.dataset.values)[index];
      input.setAttribute("aria-valuetext", words);
      input.parentElement.querySelector("output").value = words;
    }
  }
}

/** Connect the controls of a figure with its frames, and its setting with the address. */
function explorable(figure) {
  // by setting: a frame's file, its alt text and its caption's HTML; by place: a control's name and those of its values
  const { frames, names } = JSON.parse(figure.querySelector("script").textContent);
  const image = figure.querySelector("img");
  const spoken = figure.querySelector(".spoken");
  const caption = figure.querySelector(".caption");
  const link = figure.querySelector(".link");
  const first = figure.dataset.start.split(",").map(Number);
  const controls = new Map(); // by place: the inputs of a control, several if they are radio buttons
  for (const input of figure.querySelectorAll("[data-place]")) {
    input.disabled = false;
    const at = Number(input.dataset.place);
    controls.set(at, [...(controls.get(at) || []), input]);
  }
  let setting = [...first];
  const loaded = new Map();

  function preload(frame) {
    if (!frame || loaded.has(frame[0])) return;
    loaded.set(frame[0], Object.assign(new Image(), { src: FRAMES + frame[0] }));
  }

  /** Load what one step of any control would show. */
  function preloadNeighbours() {
    for (const at of controls.keys())
      for (const step of [-1, 1]) preload(frames[setting.map((index, i) => (i === at ? index + step : index)).join()]);
  }

  const settings = Object.keys(frames).map((key) => key.split(",").map(Number));
  let moved = []; // places, the last one moved first

  /** The drawn setting with this value that leaves the most controls as they are, those moved last before others. */
  function nearest(at, index) {
    const order = [...moved, ...first.keys()].filter((i, n, all) => i !== at && all.indexOf(i) === n);
    const kept = (one) => one.filter((value, i) => value === setting[i]).length;
    const better = (one, other) => {
      if (kept(one) !== kept(other)) return kept(one) > kept(other);
      const i = order.find((place) => (one[place] === setting[place]) !== (other[place] === setting[place]));
      return i !== undefined && one[i] === setting[i];
    };
    return settings.filter((one) => one[at] === index).reduce((best, one) => (better(one, best) ? one : best));
  }

  function show(next) {
    setting = next;
    for (const [at, inputs] of controls) place(inputs, setting[at]);
    const [file, alt, text] = frames[setting.join()];
    image.src = FRAMES + file;
    image.alt = alt;
    caption.innerHTML = text;
    link.href = address();
    link.textContent = COPY;
  }

  /** The part of the address that names the setting: the controls that were changed. */
  function address() {
    const changed = [...controls.keys()].filter((at) => setting[at] !== first[at]);
    const said = changed.map((at) => `${names[at][0]}=${names[at][1][setting[at]]}`).join("&");
    return `#${figure.id}${said && `?${said}`}`;
  }

  let soon;

  function move(at, index) {
    moved = [at, ...moved.filter((place) => place !== at)];
    show(nearest(at, index));
    spoken.textContent = image.alt;
    preloadNeighbours();
    clearTimeout(soon);
    soon = setTimeout(() => history.replaceState(history.state, "", link.href), PAUSE);
  }

  /** Show the setting that the address names, if it is of this figure; unknown names and values are left out. */
  function restore(go) {
    const [id, said] = location.hash.slice(1).split("?");
    if (id !== figure.id) return;
    const given = new URLSearchParams(said);
    const wanted = first.map((index, at) => {
      const [name, values] = names[at] || ["", []];
      const found = values.findIndex((value) => decodeURIComponent(value) === given.get(name));
      return found < 0 ? index : found;
    });
    show(first);
    if (frames[wanted.join()]) show(wanted);
    else for (const [at, index] of wanted.entries()) if (index !== first[at]) show(nearest(at, index));
    if (!go) return;
    figure.scrollIntoView({ behavior: "instant" });
    figure.tabIndex = -1;
    figure.focus({ preventScroll: true }); // the next Tab goes to its controls
  }

  for (const [at, inputs] of controls)
    for (const input of inputs)
      input.addEventListener("input", () => move(at, positionOf(input)));

  link.textContent = COPY;
  link.addEventListener("blur", () => { link.textContent = COPY; });
  link.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return; // a new tab or window
    event.preventDefault();
    history.replaceState(history.state, "", link.href);
    copy(link.href).then((words) => { link.textContent = spoken.textContent = words; });
  });

  for (const [at, inputs] of controls) place(inputs, setting[at]); // a browser may remember where they stood
  restore(performance.getEntriesByType("navigation")[0].type === "navigate"); // otherwise the browser knows the place
  addEventListener("hashchange", () => restore(true));
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    preloadNeighbours();
  }, { rootMargin: "300px" }).observe(figure);
}

/** Copy a text, and return what to say; without permission or a secure connection, the address line has it. */
async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
    return "copied ✓";
  } catch {
    return "it is in the address line";
  }
}

/** Let a touch, or a key on a button, switch between all of a picture and letters that a phone shows large enough. */
function enlargeable(picture) {
  const button = Object.assign(document.createElement("button"), { type: "button", className: "enlarge" });
  const say = () => {
    const large = picture.classList.contains("large");
    button.textContent = large ? "↔ swipe, or tap to see all of it" : "tap to enlarge";
  };
  picture.addEventListener("click", () => {
    picture.classList.toggle("large");
    say();
  });
  say();
  picture.prepend(button);
}

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll(".picture").forEach(enlargeable);
  document.querySelectorAll("figure.explorable").forEach(explorable);
});
