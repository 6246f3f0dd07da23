// Keeps the parts of a page that change up to date while an operation is at work.
//
// An element with data-live names the operation to watch (data-operation) and where its body comes from (data-url).
// Messages of the WebSocket are hints: on each one the server renders the body anew, so that a lost message costs
// nothing. While the socket is down the body is fetched every five seconds. The body says in data-active when to stop.

const REFRESH_MS = 500;
const POLL_MS = 5000;
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const FORBIDDEN = [1008, 4003]; // the server will not talk to us: polling is all there is

class Live {
    constructor(element) {
        this.element = element;
        this.body = element.querySelector("[data-live-body]");
        this.state = element.querySelector("[data-live-state]");
        this.failures = 0;
        this.lastRefresh = 0;
        this.running = true;
        this.connect();
    }

    connect() {
        const scheme = location.protocol === "https:" ? "wss" : "ws";
        const path = `/ws/operations/${this.element.dataset.operation}/hints`;
        this.socket = new WebSocket(`${scheme}://${location.host}${path}`);
        this.socket.addEventListener("open", () => {
            this.failures = 0;
            this.stopPolling();
            this.show("live");
        });
        this.socket.addEventListener("message", () => this.hint());
        this.socket.addEventListener("close", (event) => this.lost(event.code));
    }

    lost(code) {
        if (!this.running) return;
        this.poll ??= setInterval(() => this.refresh(), POLL_MS);
        if (FORBIDDEN.includes(code)) {
            this.show("polling");
            return;
        }
        this.show("reconnecting");
        const wait = RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)];
        this.failures += 1;
        this.retry = setTimeout(() => this.connect(), wait);
    }

    // Refresh at once, or as soon as the last refresh is half a second old; hints in between are one.
    hint() {
        if (this.waiting) return;
        const wait = Math.max(0, this.lastRefresh + REFRESH_MS - Date.now());
        this.waiting = setTimeout(() => {
            this.waiting = null;
            this.refresh();
        }, wait);
    }

    async refresh() {
        if (this.refreshing) {
            this.again = true;
            return;
        }
        this.refreshing = true;
        this.lastRefresh = Date.now();
        try {
            const places = this.scrolled();
            await htmx.ajax("GET", this.element.dataset.url, { target: this.body, swap: "innerHTML" });
            this.scrollTo(places);
            if (!this.isActive()) this.stop();
        } finally {
            this.refreshing = false;
        }
        if (this.again && this.running) {
            this.again = false;
            this.hint();
        }
    }

    isActive() {
        return this.body.querySelector("[data-active]")?.dataset.active !== "false";
    }

    scrolled() {
        return [...this.body.querySelectorAll(".bb-scroll[id]")].map((part) => [part.id, part.scrollLeft]);
    }

    scrollTo(places) {
        for (const [id, left] of places) {
            const part = document.getElementById(id);
            if (part) part.scrollLeft = left;
        }
    }

    show(state) {
        const words = {
            live: "Live",
            reconnecting: "Reconnecting; updating every 5 seconds",
            polling: "Updating every 5 seconds",
            done: "",
        };
        this.element.dataset.state = state;
        this.state.textContent = words[state];
    }

    stopPolling() {
        clearInterval(this.poll);
        this.poll = null;
    }

    stop() {
        this.running = false;
        this.stopPolling();
        clearTimeout(this.retry);
        this.socket.close();
        this.show("done");
        document.dispatchEvent(new CustomEvent("benchbench:done"));
    }
}

// A session that ended answers with the login page; show that, not a login form inside the table.
document.addEventListener("htmx:beforeSwap", (event) => {
    const answer = new URL(event.detail.xhr.responseURL || location.href);
    const asked = new URL(event.detail.pathInfo.requestPath, location.href);
    if (answer.pathname !== asked.pathname) {
        event.detail.shouldSwap = false;
        location.reload();
    }
});

for (const element of document.querySelectorAll("[data-live]")) {
    const active = element.querySelector("[data-active]")?.dataset.active !== "false";
    if (element.dataset.operation && active) new Live(element);
}
