// A JupyterLab extension, written as the module container that JupyterLab loads, so that nothing has to be compiled.
//
// JupyterLab shows a picture without the alt text that its output carries, and ipywidgets' sliders have no name and, where
// their steps are ratios or a list, tell a screen reader the exponent or the number of the step. This adds what is missing
// to everything that appears in an output, turns figures dark in a dark theme, keeps lines of text short on a wide
// screen, and puts tables, answers, controls and formulas where a reader of text expects them.
//
// A widget lives in the kernel. A notebook that is opened the next morning has only the saved picture of it, in the same
// output: this shows it, and offers to run the cells that it needs, as it does below the course's line on a missing name.
//
// A check that runs for a while says how long it waits. This is no output, so it is never saved.
//
// nbgrader's Validate works for a while with only a grey button: this says so.
//
// The welcome page shows the learner's progress, which is out of date when they come back from a notebook. This updates it.

const VIEW = "application/vnd.jupyter.widget-view+json";
const SAVED = ["text/html", "image/png", "text/plain"];
const WELCOME = "welcome.ipynb";
const PROGRESS = "__import__('lmcourse.jupyter.welcome').jupyter.welcome.progress_table()";
const RUN_ABOVE = "Run All Above Selected Cell"; // in the course's line on a name that a cell above defines
const CHECK = "lmcourse.check"; // the id of the messages when a check begins and ends
const PATIENCE = 5000; // milliseconds
const VALIDATING = "Your answers and their checks run in a new kernel. This takes up to a minute.";
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
  :is(.jp-OutputArea, .jp-OutputArea-child, .jp-OutputArea-output):has(.lmcourse-controls) { overflow: visible; }
  .lmcourse-controls { background: var(--jp-layout-color0); position: sticky; top: 0; z-index: 2; }
  @media (max-width: 640px) {
    .widget-html-content { overflow-x: auto; }
    .lmcourse-controls { position: static; } /* several lines would fill a phone */
    :is(.jp-RenderedImage, .widget-html-content) > img { min-width: 480px; } /* on a phone, the rest is swiped into view */
  }
  .lmcourse-still { color: var(--jp-ui-font-color1); font-family: var(--jp-ui-font-family); margin: 0.4em 0; }
  .lmcourse-still button {
    background: var(--jp-layout-color2); border: 1px solid var(--jp-border-color1); border-radius: 3px; color: inherit;
    cursor: pointer; font: inherit; padding: 0.1em 0.8em;
  }
  .jp-Cell > .lmcourse-still { padding-left: calc(var(--jp-cell-prompt-width) + var(--jp-cell-collapser-width) + 7px); }
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

// A folded cell, such as the first one, has no number, so it would not show that it ran.
function numberFolded(cell) {
  const prompt = cell.node.querySelector(".jp-InputPlaceholder .jp-Placeholder-prompt");
  if (prompt && cell.model.type === "code") {
    const number = cell.model.executionState === "running" ? "*" : (cell.model.executionCount ?? " ");
    if (prompt.textContent !== `[${number}]:`) {
      prompt.textContent = `[${number}]:`;
    }
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
function markDead(output, offer) {
  output.classList.add("lmcourse-dead");
  for (const child of output.children) {
    child.inert = true;
  }
  output.append(note("The kernel of these controls has ended. Run the first cell, then this one, to use them.", offer()));
}

async function showSaved(output, saved, rendermime, offer) {
  const kind = SAVED.find((mime) => saved.data[mime]);
  output.classList.add("lmcourse-dead");
  const renderer = rendermime.createRenderer(kind);
  await renderer.renderModel(saved);
  const text = "This is what was saved. Run the first cell, then this one, to use its controls.";
  output.replaceChildren(renderer.node, note(text, offer()));
  output.classList.remove("lmcourse-dead");
  output.classList.add("lmcourse-saved");
}

function note(text, button) {
  const paragraph = document.createElement("p");
  paragraph.className = "lmcourse-still";
  paragraph.setAttribute("role", "note");
  paragraph.append(text && `${text} `, button);
  return paragraph;
}

function newButton(text, press) {
  const button = document.createElement("button");
  button.textContent = text;
  button.addEventListener("click", press);
  return button;
}

// A button that runs the cells above this one, and this one.
function runToHere(app, panel, cell) {
  const button = newButton("Run all cells up to here", async () => {
    button.disabled = true;
    const { content } = panel;
    const next = content.widgets.indexOf(cell) + 1;
    const all = next === content.widgets.length;
    content.activeCellIndex = all ? next - 1 : next;
    await app.commands.execute(all ? "notebook:run-all" : "notebook:run-all-above");
    button.disabled = false; // it is still there if a cell above failed
    content.activeCellIndex = next - 1;
    await content.scrollToItem(next - 1, "center");
  });
  return button;
}

// The widgets of a cell that have lost their kernel.
function replaceDeadWidgets(cell, rendermime, offer) {
  const area = cell.outputArea;
  for (let number = 0; number < (area?.model.length ?? 0); number++) {
    const output = area.widgets[number]?.node.querySelector(".jp-OutputArea-output");
    const saved = area.model.get(number);
    if (!output || !(VIEW in saved.data) || output.matches(".lmcourse-dead, .lmcourse-saved")) {
      continue;
    }
    if (output.childElementCount === 0 && output.textContent.startsWith(NO_MODEL)) {
      showSaved(output, saved, rendermime, offer);
    } else if (output.querySelector(".jupyter-widgets-disconnected")) {
      markDead(output, offer);
    }
  }
}

function offerCellsAbove(cell, offer) {
  const area = cell.outputArea;
  for (let number = 0; number < (area?.model.length ?? 0); number++) {
    const output = area.widgets[number]?.node.querySelector(".jp-OutputArea-output");
    if (area.model.get(number).type !== "error" || !output || output.querySelector(".lmcourse-still")) {
      continue;
    }
    if (output.textContent.includes(RUN_ABOVE)) {
      output.append(note("", offer()));
    }
  }
}

const watched = new WeakSet();

// While a check runs for a while, its cell has a note.
function watchChecks(panel) {
  const kernel = panel.sessionContext?.session?.kernel;
  if (!kernel || watched.has(kernel)) {
    return;
  }
  watched.add(kernel);
  let shown, timer;
  const end = () => {
    clearTimeout(timer);
    shown?.remove();
  };
  kernel.iopubMessage.connect((_, { header, content, parent_header }) => {
    if (header.msg_type !== "comm_msg" || content.comm_id !== CHECK) {
      return;
    }
    end();
    const { seconds } = content.data;
    const cell = panel.content?.widgets?.find((one) => one.outputArea?.future?.msg.header.msg_id === parent_header.msg_id);
    if (seconds && cell) {
      const text = `Still checking. It waits about ${seconds} s for the first case that does not end, and 1 s for each after it.`;
      shown = note(text, newButton("Stop the check now", () => kernel.interrupt()));
      timer = setTimeout(() => cell.outputArea.node.closest(".jp-Cell-outputWrapper").before(shown), PATIENCE);
    }
  });
  kernel.statusChanged.connect((_, status) => /restarting|terminating|dead/.test(status) && end());
}

// Writing what is there already would be seen as a change, and so on without end.
function setAttribute(element, name, value) {
  if (value && element.getAttribute(name) !== value) {
    element.setAttribute(name, value);
  }
}

function improve(app) {
  for (const panel of app.shell.widgets("main")) {
    watchChecks(panel);
    for (const cell of panel.content?.widgets ?? []) {
      const offer = () => runToHere(app, panel, cell);
      replaceDeadWidgets(cell, panel.content.rendermime, offer);
      offerCellsAbove(cell, offer);
      describePictures(cell);
      numberFolded(cell);
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
  const seen = { subtree: true, childList: true, characterData: true, attributes: true, attributeFilter: ["class"] };
  new MutationObserver(changed).observe(document.body, seen);
  // Without a kernel that answers, the page stays as it is.
  const update = () => updateProgress(app, app.shell.currentWidget).catch((error) => console.warn(error));
  app.shell.currentChanged?.connect(update);
  const validating = ({ target }) => {
    if (target.closest(".validate-button")) {
      app.commands.execute("apputils:notify", { message: VALIDATING, type: "info", options: { autoClose: 15000 } });
    }
  };
  document.addEventListener("click", validating, { capture: true }); // the toolbar keeps the event to itself
  document.addEventListener("visibilitychange", () => document.hidden || update());
}

const plugin = { id: "lmcourse-lab:plugin", autoStart: true, activate };

window._JUPYTERLAB ??= {};
window._JUPYTERLAB["lmcourse-lab"] = {
  init: () => {},
  get: () => Promise.resolve(() => ({ __esModule: true, default: plugin })),
};
