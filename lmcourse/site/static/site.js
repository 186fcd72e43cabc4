/* Figures that move and predictions that answer. Nothing is sent anywhere: all of it lies in the pages. */
"use strict";

const FRAMES = "_frames/";

/* --- figures ------------------------------------------------------------------------------------------------- */

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

/** The frames of figures, by the name of the script that holds them: a promise, from when it is asked for. */
const asked = new Map();
const registered = new Map();

/** What such a script calls. It is a script, as a page that was opened from the disk may load no other data. */
function registerFrames(name, frames) {
  registered.set(name, frames);
}

function framesOf(name) {
  if (!asked.has(name)) {
    asked.set(name, new Promise((resolve, reject) => {
      const script = Object.assign(document.createElement("script"), { src: `${FRAMES}${name}.js` });
      script.addEventListener("load", () => resolve(registered.get(name)));
      script.addEventListener("error", () => {
        asked.delete(name); // so that the next move asks again
        script.remove();
        reject(new Error(`${script.src} cannot be loaded`));
      });
      document.head.append(script);
    }));
  }
  return asked.get(name);
}

/** Connect the controls of a figure with its frames. */
function explorable(figure) {
  const name = figure.dataset.frames;
  const image = figure.querySelector("img");
  const spoken = figure.querySelector(".spoken");
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
  function preloadNeighbours(frames) {
    for (const at of controls.keys())
      for (const step of [-1, 1]) preload(frames[setting.map((index, i) => (i === at ? index + step : index)).join()]);
  }

  function move(frames, at, index) {
    setting[at] = index;
    if (!frames[setting.join()]) setting = first.map((value, i) => (i === at ? index : value));
    for (const [other, theirs] of controls) place(theirs, setting[other]);
    const [file, alt] = frames[setting.join()];
    image.src = FRAMES + file;
    image.alt = alt;
    spoken.textContent = alt;
    preloadNeighbours(frames);
  }

  for (const [at, inputs] of controls)
    for (const input of inputs)
      input.addEventListener("input", async () => {
        const index = positionOf(input);
        place(inputs, index); // what a slider says is true before its picture is here
        const frames = await framesOf(name).catch(() => null);
        if (frames) move(frames, at, index);
        else spoken.textContent = "The pictures of this figure cannot be loaded.";
      });

  for (const [at, inputs] of controls) place(inputs, setting[at]); // a browser may remember where they stood
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    framesOf(name).then(preloadNeighbours, () => {}); // who moves a control is told
  }, { rootMargin: "300px" }).observe(figure);
}

/* --- predictions --------------------------------------------------------------------------------------------- */

function prediction(box) {
  const buttons = [...box.querySelectorAll("button")];
  const verdict = box.querySelector(".verdict");
  const answer = box.querySelector("details");
  const because = answer.querySelector(".because");
  answer.hidden = true;
  for (const button of buttons) {
    button.disabled = false;
    button.addEventListener("click", () => {
      const right = "right" in button.dataset;
      for (const other of buttons) {
        other.setAttribute("aria-pressed", String(other === button));
        other.classList.toggle("right", "right" in other.dataset);
        other.disabled = true;
      }
      const said = because.cloneNode(true);
      if (right) said.querySelector("b").textContent = "Yes.";
      box.classList.add(right ? "was-right" : "was-wrong");
      verdict.replaceChildren(...said.childNodes);
    });
  }
}

/* --- formulas and tables that are wider than the page ------------------------------------------------------- */

/** Who has no mouse scrolls with the arrow keys what can be focused. */
function reachable(box) {
  if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
}

window.addEventListener("load", () => {
  document.querySelectorAll(".bd-article div.math, .bd-article table").forEach(reachable);
});

document.addEventListener("DOMContentLoaded", () => {
  document.querySelectorAll("figure.explorable").forEach(explorable);
  document.querySelectorAll(".prediction").forEach(prediction);
});
