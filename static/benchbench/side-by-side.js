// Keys j and k lead to the next and the previous query. A document under the pointer or the focus is marked in both lists, with its line.

document.addEventListener("keydown", (event) => {
    if (
        event.ctrlKey ||
        event.metaKey ||
        event.altKey ||
        event.target.closest("input, textarea, select, [contenteditable]")
    )
        return;
    document.querySelector(`a[data-key="${CSS.escape(event.key)}"]`)?.click();
});

const mark = ({ target }) => {
    const chosen = target.closest(".bb-slope [data-document]")?.dataset.document;
    for (const line of document.querySelectorAll(".bb-slope [data-document]"))
        line.classList.toggle("bb-marked", line.dataset.document === chosen);
};
document.addEventListener("mouseover", mark);
document.addEventListener("focusin", mark);
