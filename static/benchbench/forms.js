/* A list with search tells its choice to jQuery alone: tell the page of it, as a plain list does by itself. */
window.django.jQuery(document).on("select2:select select2:unselect select2:clear", ({ target }) => {
    for (const type of ["input", "change"]) target.dispatchEvent(new Event(type, { bubbles: true }));
});
