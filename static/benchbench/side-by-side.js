// A document under the pointer or the focus is marked in both lists, with its line.

const mark = ({ target }) => {
    const chosen = target.closest(".bb-slope [data-document]")?.dataset.document;
    for (const line of document.querySelectorAll(".bb-slope [data-document]"))
        line.classList.toggle("bb-marked", line.dataset.document === chosen);
};
document.addEventListener("mouseover", mark);
document.addEventListener("focusin", mark);
