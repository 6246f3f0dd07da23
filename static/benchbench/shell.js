// unfold's shell on the build of Alpine that evaluates no code, so that the content security policy can forbid that.
//
// That build reads single expressions without globals, arrow functions and statements. The functions that unfold's
// expressions call are registered here by name, and its expressions that the build cannot read are replaced.

const SIDEBAR = "sidebarDesktopOpen";
const COMPONENTS = ["theme", "searchForm", "searchDropdown", "searchCommand"]; // of unfold's app.js

const REPLACED = [
    // The state of the page, on <body>, with the first tab of a form; it reads and stores whether the sidebar is open.
    [
        /^\{[^}]*sidebarMobileOpen: false,[^}]*localStorage[^}]*\}$/,
        (state) => `shell('${/activeTab: '([\w-]*)'/.exec(state)?.[1] ?? ""}')`,
    ],
    [/^activeTab = [^;]*;\s*\$watch\('sidebarDesktopOpen'.*$/s, ""],
    [/^sidebarDesktopOpen = !sidebarDesktopOpen; localStorage.*$/s, "sidebarDesktopOpen = !sidebarDesktopOpen"],
    [/^activeTab && activeTab !== 'general' \? window\.location.*$/s, "formAction()"],
    [/^if \((!\$event\.metaKey && !\$event\.ctrlKey)\) (selectItem\(\w+, \w+\))$/, "$1 && $2"],
];

function makeReadable(expression) {
    const text = expression.trim();
    for (const [pattern, replacement] of REPLACED) if (pattern.test(text)) return text.replace(pattern, replacement);
    return expression;
}

function shell(firstTab) {
    return {
        activeTab: firstTab && (getCurrentTab() || firstTab),
        sidebarMobileOpen: false,
        [SIDEBAR]: localStorage.getItem(SIDEBAR) !== "0",
        init() {
            this.$watch(SIDEBAR, (open) => localStorage.setItem(SIDEBAR, open ? "1" : "0"));
        },
        formAction() {
            const tab = this.activeTab && this.activeTab !== "general" ? `#${this.activeTab}` : "";
            return location.pathname + location.search + tab;
        },
    };
}

document.addEventListener("alpine:init", () => {
    Alpine.data("shell", shell);
    for (const name of COMPONENTS) Alpine.data(name, window[name]);
    Alpine.mapAttributes(({ name, value }) => ({
        name,
        value: name.startsWith("x-") && typeof value === "string" ? makeReadable(value) : value,
    }));
});
htmx.config.allowEval = false;
// A part that is fetched every few seconds waits for its last request: one that is never answered must end.
document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.verb === "get") detail.timeout ||= 60_000;
});

// A session that ended answers a part of a page with the login page. The page stays, with what was typed into it, and
// says so; after signing in elsewhere its forms take the new token.
document.addEventListener("htmx:beforeSwap", (event) => {
    const answer = new URL(event.detail.xhr.responseURL || location.href);
    const requested = new URL(event.detail.pathInfo.requestPath, location.href);
    const isSignedOut = answer.pathname !== requested.pathname;
    const note = document.getElementById("bb-signed-out");
    if (!isSignedOut) note?.remove();
    if (!isSignedOut) return;
    event.detail.shouldSwap = false;
    if (!note) sayThatSignedOut(answer.pathname);
});

function sayThatSignedOut(login) {
    const note = document.createElement("p");
    note.id = "bb-signed-out";
    note.className = "bb-note bb-note-bad";
    note.setAttribute("role", "alert");
    const link = document.createElement("a");
    link.href = `${login}?next=${encodeURIComponent(location.pathname + location.search)}`;
    link.target = "_blank";
    link.textContent = "Sign in in another tab";
    note.append("You are signed out. ", link, ", then continue here: what you typed stays.");
    (document.getElementById("main-content") ?? document.body).prepend(note);
}

const TOKEN = "csrfmiddlewaretoken";
const findToken = () => /(?:^|; )csrftoken=([^;]+)/.exec(document.cookie)?.[1];
document.addEventListener("submit", ({ target }) => {
    const field = target.querySelector?.(`[name=${TOKEN}]`);
    if (field) field.value = findToken() ?? field.value;
});
document.addEventListener("htmx:configRequest", ({ detail }) => {
    if (detail.parameters[TOKEN] && findToken()) detail.parameters[TOKEN] = findToken();
});

// A button copies the field or text that it names; where the page may not write to the clipboard, that is selected.
document.addEventListener("click", async ({ target }) => {
    const button = target.closest?.("[data-copies]");
    if (!button) return;
    const field = document.getElementById(button.dataset.copies);
    if (field.select) field.select();
    else getSelection().selectAllChildren(field);
    try {
        await navigator.clipboard.writeText(field.value ?? field.textContent);
        button.textContent = "Copied";
    } catch {
        button.textContent = "Selected: press Ctrl C";
    }
});

// A cell of a list that is cut off has its text as a title.
document.addEventListener("mouseover", ({ target }) => {
    const cell = target.closest?.("#result_list .data-row > *");
    if (cell && !cell.title && cell.scrollWidth > cell.clientWidth) cell.title = cell.innerText;
});

// A choice shows what it chooses. A form without scripts has a button.
document.addEventListener("change", ({ target }) => {
    if (target.matches("form:is(.bb-filter, [data-submits])[method=get] select")) target.form.requestSubmit();
});

// A menu of buttons closes as menus do.
document.addEventListener("click", ({ target }) => {
    for (const menu of document.querySelectorAll(".bb-menu[open]")) if (!menu.contains(target)) menu.open = false;
});
document.addEventListener("keydown", ({ key }) => {
    const menu = document.querySelector(".bb-menu[open]");
    if (key !== "Escape" || !menu) return;
    menu.open = false;
    menu.querySelector("summary").focus();
});

// unfold opens a folded part of the menu by a click on its title: here also by keyboard.
for (const title of document.querySelectorAll("#nav-sidebar h2.cursor-pointer")) {
    Object.assign(title, { tabIndex: 0, role: "button" });
    title.addEventListener("keydown", ({ key }) => key === "Enter" && title.click());
}
