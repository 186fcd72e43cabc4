const main = document.querySelector("main");
const about = JSON.parse(main.dataset.about);
const learners = [...main.querySelectorAll("article")];
let saved = true;

const part = (learner, selector) => learner.querySelector(selector);
const ticked = learner => [...learner.querySelectorAll("[data-item]")].filter(box => box.checked);

function show() {
  for (const learner of learners) {
    const sum = ticked(learner).reduce((all, box) => all + about.items[box.dataset.item][0], 0);
    part(learner, "output").value = sum;
    learner.classList.toggle("done", part(learner, ".is-done").checked);
  }
  const done = learners.filter(learner => part(learner, ".is-done").checked).length;
  document.querySelector("#count").textContent = `${done} of ${learners.length} done`;
}

function offer(event) {
  const select = event.target;
  const words = new Set(learners.map(learner => part(learner, "textarea").value.trim()).filter(Boolean));
  select.replaceChildren(select.options[0], ...[...words].map(text => new Option(text.slice(0, 90), text)));
}

main.addEventListener("input", event => {
  const learner = event.target.closest("article");
  if (event.target.matches("select")) {
    const words = part(learner, "textarea");
    words.value = [words.value.trim(), event.target.value].filter(Boolean).join("\n");
    event.target.selectedIndex = 0;
  }
  if (!event.target.matches(".is-done")) part(learner, ".is-done").checked = true;
  saved = false;
  show();
});
for (const select of main.querySelectorAll("select")) select.addEventListener("focus", offer);

document.querySelector("#save").addEventListener("click", () => {
  const marks = {};
  for (const learner of learners.filter(one => part(one, ".is-done").checked)) {
    const items = ticked(learner).map(box => Number(box.dataset.item));
    marks[learner.dataset.student] = {items, comment: part(learner, "textarea").value};
  }
  const file = new Blob([JSON.stringify({...about, marks}, null, 1)], {type: "application/json"});
  const link = Object.assign(document.createElement("a"), {href: URL.createObjectURL(file), download: `${about.task}.json`});
  link.click();
  saved = true;
});
addEventListener("beforeunload", event => { if (!saved) event.preventDefault(); });
show();
