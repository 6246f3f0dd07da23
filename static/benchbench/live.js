// Keeps the parts of a page that change up to date while an operation is at work.
//
// An element with data-live names the operation to watch (data-operation) and where its body comes from (data-url).
// Messages of the WebSocket are hints: on each one the server renders the body again, so that a lost message costs
// nothing. While no message comes, be the socket closed, connecting or silent, the body is fetched every five seconds.
// The page says "Live" only while the socket answers and the body is what the server sent last. The body says in
// data-active when to stop.

const REFRESH_MS = 500;
const POLL_MS = 5000;
const FIRST_MS = 5000; // from the call until the first message: before, a socket may hang in CONNECTING or be silent
const SILENT_MS = 5000; // without a message, after which the server is asked whether it is there
const ANSWER_MS = 5000; // for its answer
const SLOW_MS = 3000; // a body that is fetched for longer is old
const LOAD_MS = 10000; // then it is given up
const TICK_MS = 1000; // of a clock that shows that the machine slept
const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const FORBIDDEN = new Set([1008, 4003]); // the server will not talk to us: polling is all there is
const WORDS = {
    connecting: "Connecting; updating every 5 seconds",
    live: "Live",
    reconnecting: "Reconnecting; updating every 5 seconds",
    polling: "Updating every 5 seconds",
    stale: "Not up to date: the server does not answer; trying every 5 seconds",
    done: "",
};

class Live {
    constructor(element) {
        this.element = element;
        this.body = element.querySelector("[data-live-body]");
        this.failures = 0;
        this.lastRefresh = 0;
        this.running = true;
        this.stale = false;
        this.link = "connecting";
        this.watched = new AbortController();
        this.watch();
        this.connect();
    }

    // The network or the machine is back, or the reader looks again: what was known until now is doubtful.
    watch() {
        const { signal } = this.watched;
        window.addEventListener("online", () => this.check(), { signal });
        window.addEventListener("offline", () => this.lost(), { signal });
        window.addEventListener("pageshow", ({ persisted }) => persisted && this.check(), { signal });
        document.addEventListener("visibilitychange", () => document.hidden || this.check(), { signal });
        let last = Date.now();
        const tick = setInterval(() => {
            const slept = Date.now() - last > TICK_MS + SILENT_MS;
            last = Date.now();
            if (slept) this.check();
        }, TICK_MS);
        signal.addEventListener("abort", () => clearInterval(tick));
        const lengthen = ({ detail }) => detail.elt === this.element && (detail.timeout = LOAD_MS);
        this.element.addEventListener("htmx:configRequest", lengthen, { signal });
    }

    check() {
        this.refresh();
        if (this.link === "polling") return;
        this.show(this.link === "live" ? "connecting" : this.link);
        this.startPolling();
        if (this.socket?.readyState === WebSocket.OPEN) this.ask();
        else this.connect();
    }

    // What comes next, unless a message comes first.
    after(milliseconds, act) {
        clearTimeout(this.next);
        this.next = setTimeout(() => act.call(this), milliseconds);
    }

    connect() {
        this.leave();
        this.startPolling();
        const scheme = location.protocol === "https:" ? "wss" : "ws";
        const path = `/ws/operations/${this.element.dataset.operation}/hints`;
        const socket = new WebSocket(`${scheme}://${location.host}${path}`);
        this.socket = socket;
        this.show(this.link);
        this.after(FIRST_MS, this.lost);
        socket.addEventListener("message", ({ data }) => socket === this.socket && this.hear(JSON.parse(data).type));
        socket.addEventListener("close", ({ code }) => socket === this.socket && this.lost(code));
    }

    // Takes leave of a socket at once: one whose server is gone may say that it is closed minutes later.
    leave() {
        const socket = this.socket;
        this.socket = null;
        socket?.close();
    }

    hear(type) {
        if (type === "error") return; // the server closes next, and says why
        this.failures = 0;
        if (!this.stale) this.stopPolling();
        this.show("live");
        this.after(SILENT_MS, this.ask);
        if (type !== "pong") this.hint();
    }

    ask() {
        this.socket.send(JSON.stringify({ type: "ping" }));
        this.after(ANSWER_MS, this.lost);
    }

    lost(code) {
        if (!this.running || this.link === "polling") return;
        this.leave();
        this.startPolling();
        if (FORBIDDEN.has(code)) {
            clearTimeout(this.next);
            this.show("polling");
            return;
        }
        this.show("reconnecting");
        this.after(RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)], this.connect);
        this.failures += 1;
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
        const left = this.readView();
        const fresh = await this.load();
        this.refreshing = false;
        if (!this.running) return;
        this.mark(!fresh);
        if (fresh) this.restoreView(left);
        if (fresh && !this.isActive()) this.stop();
        else if (this.again) this.hint();
        this.again = false;
    }

    // Fetch the body; return whether the server sent it.
    async load() {
        let fresh = false;
        const note = ({ detail }) => detail.elt === this.element && (fresh = Boolean(detail.successful));
        const slow = setTimeout(() => this.mark(true), SLOW_MS);
        this.element.addEventListener("htmx:afterRequest", note);
        await htmx
            .ajax("GET", this.element.dataset.url, { source: this.element, target: this.body, swap: "innerHTML" })
            .catch(() => {});
        this.element.removeEventListener("htmx:afterRequest", note);
        clearTimeout(slow);
        return fresh;
    }

    mark(stale) {
        this.stale = stale;
        if (stale) this.startPolling();
        else if (this.link === "live") this.stopPolling();
        this.show(this.link);
    }

    isActive() {
        return this.body.querySelector("[data-active]")?.dataset.active !== "false";
    }

    // How far the reader scrolled the frames, and which details are open.
    readView() {
        const frames = [...this.body.querySelectorAll(".bb-scroll[id]")];
        return {
            places: frames.map((frame) => [frame.id, frame.scrollLeft]),
            open: [...this.body.querySelectorAll("details")].map((details) => details.open),
        };
    }

    restoreView({ places, open }) {
        for (const [id, left] of places) {
            const frame = document.getElementById(id);
            if (frame) frame.scrollLeft = left;
        }
        const details = [...this.body.querySelectorAll("details")];
        if (details.length === open.length) details.forEach((one, number) => (one.open = open[number]));
    }

    show(link) {
        this.link = link;
        const state = this.stale && link !== "done" ? "stale" : link;
        const element = this.element.querySelector("[data-live-state]");
        this.element.dataset.state = state;
        if (element.textContent !== WORDS[state]) element.textContent = WORDS[state]; // read aloud once
    }

    startPolling() {
        this.poll ??= setInterval(() => this.refresh(), POLL_MS);
    }

    stopPolling() {
        clearInterval(this.poll);
        this.poll = null;
    }

    stop() {
        this.running = false;
        this.watched.abort();
        this.stopPolling();
        clearTimeout(this.next);
        clearTimeout(this.waiting);
        this.leave();
        this.show("done");
        document.dispatchEvent(new CustomEvent("benchbench:done"));
    }
}

for (const element of document.querySelectorAll("[data-live]")) {
    const active = element.querySelector("[data-active]")?.dataset.active !== "false";
    if (element.dataset.operation && active) new Live(element);
}
