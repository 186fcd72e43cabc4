/* Turns a chapter's page into pages of a book: blocks unfold, and all answers stand at the end of the chapter. */
async () => {
  const chapter = document.querySelector(".bd-article > section");
  const make = (name, className, ...content) => {
    const element = Object.assign(document.createElement(name), { className });
    element.append(...content);
    return element;
  };
  const titleOf = (section) => {
    const title = section.querySelector("h1, h2, h3, h4").cloneNode(true);
    title.querySelector(".headerlink")?.remove();
    return title.textContent.trim();
  };

  document.querySelectorAll("details").forEach((details) => (details.open = !details.matches(".hide, .exercise-tools *")));
  document.getElementById("jb-print-docs-body")?.remove();

  const answers = make("section", "paper-answers", make("h2", "", "Answers"));
  answers.id = "paper-answers";
  for (const box of chapter.querySelectorAll(".prediction")) {
    const because = make("p", "", ...box.querySelector(".because").cloneNode(true).childNodes);
    answers.append(make("div", "paper-answer", make("p", "", ...box.querySelector(".question").cloneNode(true).childNodes), because));
  }
  for (const card of chapter.querySelectorAll("section.exercise")) {
    const answer = make("div", "paper-answer", make("h3", "", titleOf(card)));
    const hints = [...card.querySelectorAll("details.hint > p")];
    hints.forEach((hint, i) => answer.append(make("p", "", make("b", "", `Hint ${i + 1}. `), ...hint.cloneNode(true).childNodes)));
    answer.append(card.querySelector("details.answer .highlight-python").cloneNode(true));
    answers.append(answer);
    const where = make("a", "", "at the end of this chapter");
    where.href = "#paper-answers";
    card.querySelectorAll(".exercise-tools > details").forEach((details) => details.remove());
    card.querySelector(".exercise-tools").append(make("p", "card-label", "Hints and an answer stand ", where, "."));
  }
  if (answers.children.length > 1) chapter.append(answers);

  document.querySelectorAll("img").forEach((image) => (image.loading = "eager"));
  await Promise.all([...document.images].map((image) => image.decode()));
  await document.fonts.ready;
  const sections = [...chapter.querySelectorAll("section[id]")].filter((one) => one.querySelector(":scope > h2"));
  return sections.map((section) => [section.id, titleOf(section)]);
}
