// A JupyterLab extension, written as the module container that JupyterLab loads, so that nothing has to be compiled.
//
// JupyterLab shows a picture without the alt text that its output carries, and ipywidgets' sliders have no name and, where
// their steps are ratios or a list, tell a screen reader the exponent or the number of the step. This adds what is missing
// to everything that appears in an output, turns figures dark in a dark theme, keeps lines of text short on a wide
// screen, and puts tables, answers, controls and formulas where a reader of text expects them.
//
// A widget lives in the kernel. A notebook that is opened the next morning has only the saved picture of it, in the same
// output: this shows it, and says what to do.
//
// The welcome page shows the learner's progress, which is out of date when they come back from a notebook. This updates it.

const VIEW = "application/vnd.jupyter.widget-view+json";
const SAVED = ["text/html", "image/png", "text/plain"];
const WELCOME = "welcome.ipynb";
const PROGRESS = "__import__('lmcourse.jupyter.welcome').jupyter.welcome.progress_table()";
const NO_MODEL = "Error displaying widget"; // what ipywidgets writes, alone or with ": model not found"

const STYLE = `
  :is(.jp-RenderedMarkdown, .jp-RenderedHTML) :is(p, ul, ol, blockquote, summary),
  .widget-html-content:not(:has(img, table, svg, pre)) {
    max-width: 72ch; /* about 80 letters, on wide screens */
  }
  .widget-html > .widget-html-content:not(:has(img, table, svg, pre)) {
    font-size: var(--jp-content-font-size1);
    line-height: var(--jp-content-line-height);
  }
  .jp-RenderedMarkdown table { margin-left: 0; }
  .jp-RenderedMarkdown details { margin-bottom: 1em; }
  .jp-RenderedMarkdown mjx-container:not([display]) { white-space: nowrap; } /* keeps the full stop after it */
  .jp-OutputArea-child + .jp-OutputArea-child { margin-top: 0.5em; }
  .widget-toggle-buttons { display: flex; flex-wrap: wrap; align-items: baseline; column-gap: 0.7em; }
  .widget-toggle-button.mod-active { background: var(--jp-brand-color1); color: var(--jp-ui-inverse-font-color1); }
  @media (max-width: 640px) {
    .widget-html-content { overflow-x: auto; }
    :is(.jp-RenderedImage, .widget-html-content) > img { min-width: 480px; } /* on a phone, the rest is swiped into view */
  }
  .lmcourse-still { color: var(--jp-ui-font-color1); font-family: var(--jp-ui-font-family); margin: 0.4em 0; }
  .lmcourse-dead > :not(.lmcourse-still) { opacity: 0.6; }
  .lmcourse-dead .jupyter-widgets-disconnected::before { content: none; }
  body[data-jp-theme-light="false"] { --jp-mirror-editor-comment-color: #6db3b3; }
  body[data-jp-theme-light="false"] .jp-OutputArea .jp-RenderedImage img,
  body[data-jp-theme-light="false"] .jp-OutputArea .widget-html-content > img {
    filter: invert(0.93) hue-rotate(180deg); /* white becomes the page's colour */
  }`;

// The words beside a control of ipywidgets, or those that hovering over it shows.
function label(control) {
  return control.querySelector(".widget-label")?.textContent.trim() || control.title;
}

function nameSliders(output) {
  for (const slider of output.querySelectorAll(".widget-slider")) {
    for (const handle of slider.querySelectorAll(".noUi-handle")) {
      const value = slider.querySelector(".widget-readout")?.textContent.trim() ?? "";
      setAttribute(handle, "aria-label", label(slider));
      setAttribute(handle, "aria-valuetext", value);
    }
  }
}

function nameButtons(output) {
  for (const group of output.querySelectorAll(".widget-toggle-buttons")) {
    setAttribute(group, "role", "group");
    setAttribute(group, "aria-label", label(group));
    for (const button of group.querySelectorAll("button")) {
      setAttribute(button, "aria-pressed", String(button.classList.contains("mod-active")));
    }
  }
  for (const button of output.querySelectorAll("button.widget-toggle-button")) {
    setAttribute(button, "aria-pressed", String(button.classList.contains("mod-active")));
  }
}

// The text that stands for a picture where there are no pictures is its description.
function describePictures(cell) {
  const area = cell.outputArea;
  if (!area) {
    return;
  }
  for (let number = 0; number < area.model.length; number++) {
    const picture = area.widgets[number]?.node.querySelector(".jp-RenderedImage img");
    const text = area.model.get(number).data["text/plain"];
    if (picture && text) {
      setAttribute(picture, "alt", Array.isArray(text) ? text.join("") : String(text));
    }
  }
}

// After a restart the controls still stand there, and do nothing.
function markDead(output) {
  output.classList.add("lmcourse-dead");
  for (const child of output.children) {
    child.inert = true;
  }
  output.append(note("The kernel that these controls belong to has ended. Run this cell to use them."));
}

async function showSaved(output, saved, rendermime) {
  const kind = SAVED.find((mime) => saved.data[mime]);
  output.classList.add("lmcourse-dead");
  const renderer = rendermime.createRenderer(kind);
  await renderer.renderModel(saved);
  output.replaceChildren(renderer.node, note("This is what was saved. Run this cell to use its controls."));
  output.classList.remove("lmcourse-dead");
  output.classList.add("lmcourse-saved");
}

function note(text) {
  const paragraph = document.createElement("p");
  paragraph.className = "lmcourse-still";
  paragraph.setAttribute("role", "note");
  paragraph.textContent = text;
  return paragraph;
}

// The widgets of a cell that have lost their kernel.
function replaceDeadWidgets(cell, rendermime) {
  const area = cell.outputArea;
  for (let number = 0; number < (area?.model.length ?? 0); number++) {
    const output = area.widgets[number]?.node.querySelector(".jp-OutputArea-output");
    const saved = area.model.get(number);
    if (!output || !(VIEW in saved.data) || output.matches(".lmcourse-dead, .lmcourse-saved")) {
      continue;
    }
    if (output.childElementCount === 0 && output.textContent.startsWith(NO_MODEL)) {
      showSaved(output, saved, rendermime);
    } else if (output.querySelector(".jupyter-widgets-disconnected")) {
      markDead(output);
    }
  }
}

// Writing what is there already would be seen as a change, and so on without end.
function setAttribute(element, name, value) {
  if (value && element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

function improve(app) {
  for (const panel of app.shell.widgets("main")) {
    for (const cell of panel.content?.widgets ?? []) {
      replaceDeadWidgets(cell, panel.content.rendermime);
      describePictures(cell);
      nameSliders(cell.node);
      nameButtons(cell.node);
    }
  }
}

// Open notebooks that would soon be saved by themselves: progress is read from what is saved.
async function saveNotebooks(app) {
  if (!app.commands.isToggled("docmanager:toggle-autosave")) {
    return;
  }
  const open = [...app.shell.widgets("main")].map((panel) => panel.context);
  const changed = open.filter((document) => document?.path.endsWith(".ipynb") && document.model?.dirty);
  await Promise.allSettled(changed.filter((document) => document.contentsModel?.writable).map((one) => one.save()));
}

// Our own expression is evaluated, never the text of a cell, and only below a page that the learner trusts.
async function updateProgress(app, panel) {
  if (panel?.context?.path?.split("/").pop() !== WELCOME) {
    return;
  }
  await panel.context.ready;
  await panel.sessionContext.ready;
  const area = panel.content.widgets.find((cell) => cell.model.id === "progress-table")?.outputArea;
  const kernel = panel.sessionContext.session?.kernel;
  if (!kernel || area?.model.length !== 1 || !area.model.trusted) {
    return;
  }
  await saveNotebooks(app);
  const asked = { code: "", silent: true, store_history: false, user_expressions: { progress: PROGRESS } };
  const { content } = await kernel.requestExecute(asked).done;
  const table = content.user_expressions?.progress;
  const shown = area.model.get(0);
  if (table?.status === "ok" && table.data["text/html"] !== shown.data["text/html"]) {
    const { dirty } = panel.context.model;
    area.model.set(0, { ...shown.toJSON(), data: table.data });
    panel.context.model.dirty = dirty; // nothing to save: the next start writes the page anew
  }
}

function activate(app) {
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);
  let waiting = false;
  const changed = () => {
    if (!waiting) {
      waiting = true;
      setTimeout(() => {
        waiting = false;
        improve(app);
      }, 100);
    }
  };
  const watched = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class"] };
  new MutationObserver(changed).observe(document.body, watched);
  // Without a kernel that answers, the page stays as it is.
  const update = () => updateProgress(app, app.shell.currentWidget).catch((error) => console.warn(error));
  app.shell.currentChanged?.connect(update);
  document.addEventListener("visibilitychange", () => document.hidden || update());
}

const plugin = { id: "lmcourse-lab:plugin", autoStart: true, activate };

window._JUPYTERLAB ??= {};
window._JUPYTERLAB["lmcourse-lab"] = {
  init: () => {},
  get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
};
