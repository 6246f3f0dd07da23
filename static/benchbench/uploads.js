// Says that a chosen file is too large before it is sent; the server checks it again.
// An input names its limit in data-max-bytes, and the sentence of the rule in data-too-large.

document.addEventListener(
    "change",
    (event) => {
        const input = event.target;
        if (!input.dataset?.maxBytes) return;
        const stale = input.name === "corpus" ? [] : document.querySelectorAll("select[name=column]");
        for (const select of stale) select.remove(); // columns of the files that this choice replaces
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
