// Says that a chosen file is too large before it is sent; the server checks it again.
// An input names its limit in data-max-bytes, and the sentence of the rule in data-too-large.

document.addEventListener(
    "change",
    (event) => {
        const input = event.target;
        if (!input.dataset?.maxBytes) return;
        const columns = input.name === "corpus" ? "corpus_column" : "column";
        for (const select of document.querySelectorAll(`select[name=${columns}]`)) select.remove(); // columns of the files that this choice replaces
        const size = [...input.files].reduce((sum, file) => sum + file.size, 0);
        if (!size) return;
        const error = document.getElementById(`error_${input.name}`);
        error.replaceChildren();
        if (size <= Number(input.dataset.maxBytes)) return;
        event.stopPropagation(); // no preview is asked for
        const megabytes = (size / 2 ** 20).toFixed(1);
        const sentence = document.createElement("p");
        sentence.textContent = `${input.files.length > 1 ? "The files have" : "The file has"} ${megabytes} MB; ${input.dataset.tooLarge}`;
        error.append(sentence);
        input.value = "";
    },
    true,
);

// Errors are shown once: those of a form that was sent replace equal ones of its previews, and a new preview replaces them.
document.addEventListener("htmx:afterSwap", ({ target }) => {
    const sent = [...document.querySelectorAll("#form_faults .bb-note-bad")];
    for (const note of target.id === "form_faults" ? document.querySelectorAll("section .bb-note-bad") : [])
        if (sent.some((error) => error.textContent === note.textContent)) note.remove();
});
document.addEventListener("htmx:beforeRequest", ({ target }) => {
    if (target.id === "preview") document.getElementById("form_faults")?.replaceChildren();
});

// A changed field gives up its error, and the link to it.
document.addEventListener("input", ({ target }) => {
    const field = target.closest(".bb-field");
    field?.querySelector(".bb-error")?.replaceChildren();
    for (const note of document.querySelectorAll(".bb-faulty:not(:has(a + a))"))
        if (field && note.querySelector(`a[href="#${field.id}"]`)) note.remove();
});

// A new error opens the fold that hides its field.
document.addEventListener("htmx:oobAfterSwap", ({ target }) => {
    if (target.matches(".bb-error:has(p)")) target.closest("details")?.setAttribute("open", "");
});

// A form with files stays on its page when it is sent. The sentence of an error page, or of no answer, is shown there.
function showFailure({ target, detail: { xhr } }) {
    if (target.id !== "page_form") return;
    const answer = new DOMParser().parseFromString(xhr.responseText, "text/html");
    const unsent =
        "The form was not sent. Choose files again that were changed since, check the connection, and retry.";
    const sentence = document.createElement("p");
    sentence.className = "bb-note bb-note-bad";
    sentence.textContent =
        answer.querySelector("main p, .bb-intro")?.textContent ||
        (xhr.status ? `The site answered ${xhr.status} ${xhr.statusText}.` : unsent);
    document.getElementById("form_faults").replaceChildren(sentence);
}
for (const event of ["htmx:responseError", "htmx:sendError"]) document.addEventListener(event, showFailure);
