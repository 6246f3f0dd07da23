// Says that a chosen file is too large before it is sent; the server checks it again.
// An input names its limit in data-max-bytes, and the sentence of the rule in data-too-large.

document.addEventListener(
    "change",
    (event) => {
        const input = event.target;
        const size = input.dataset?.maxBytes && input.files[0]?.size;
        if (!size) return;
        const error = document.getElementById(`error_${input.name}`);
        error.replaceChildren();
        if (size <= Number(input.dataset.maxBytes)) return;
        event.stopPropagation(); // no preview is asked for
        input.value = "";
        const megabytes = (size / 2 ** 20).toFixed(1);
        const sentence = document.createElement("p");
        sentence.textContent = `The file has ${megabytes} MB; ${input.dataset.tooLarge}`;
        error.append(sentence);
    },
    true,
);
