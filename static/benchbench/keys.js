// Keys j and k lead to the next and the previous query, except in a field.

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
