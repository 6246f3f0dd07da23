// Grading items by key and by touch, without waiting for the server.
//
// The page holds the items that come next. What is said goes into an outbox in the browser, is sent in order, and
// leaves it once the server has it: a lost connection loses nothing. Each entry names its item, so that what is sent
// twice counts once. Grades of other judges, runs, ranks and scores never reach this page.

import { Outbox } from "./outbox.js";

const RETRY_MS = [1000, 2000, 4000, 8000, 15000];
const RENEW_MS = 240_000; // a lease lasts ten minutes
const IDLE_MS = 1_800_000; // who does nothing for so long holds nothing any more
const TOO_SOON_MS = 200; // a key that bounces, or a double tap, must not grade twice
const MOST_UNDONE = 10;
const LETTERS = { c: "cannot_judge", s: "skip", u: "undo", n: "note", f: "full", g: "scale" };

const $ = (id) => document.getElementById(`judging-${id}`);

class JudgePage {
    constructor(data) {
        this.data = data;
        this.outbox = new Outbox(`benchbench.judging.${data.url}.${data.user}`);
        this.items = new Map();
        this.order = [];
        this.history = data.last;
        this.current = null;
        this.failures = 0;
        this.active = Date.now();
        this.receive(data);
        if (this.outbox.all().length) this.sync();
        this.connection();
        setInterval(() => this.renew(), RENEW_MS);
    }

    // What an answer holds: new items, and which ones are ours now, in order.
    receive({ held: ids, items, progress, end }) {
        for (const item of items) this.items.set(item.id, item);
        const last = this.outbox.last();
        const first = this.order.filter((id) => id === this.current || last.get(id) === "undo");
        const next = ids.filter((id) => !first.includes(id) && (last.get(id) ?? "undo") === "undo");
        this.order = [...first, ...next].filter((id) => this.items.has(id));
        for (const id of this.items.keys()) if (!this.order.includes(id)) this.items.delete(id);
        this.end = end;
        this.progress(progress);
        if (this.awaited && this.items.has(this.awaited)) {
            this.order = [this.awaited, ...this.order.filter((id) => id !== this.awaited)];
            this.awaited = null;
            this.current = null;
        }
        if (this.current === null || !this.order.includes(this.current)) this.show();
    }

    // The first item in order, at once: it is here already.
    show(note = "") {
        const item = this.items.get(this.order[0]);
        this.current = item?.id ?? null;
        const box = $("item");
        if (item) box.innerHTML = item.html;
        else {
            const sentence = document.createElement("p");
            sentence.className = "bb-none bb-grading-end";
            sentence.textContent = this.end || "Fetching the next items …";
            box.replaceChildren(sentence);
            if (this.end) {
                const link = $("round").cloneNode(true);
                link.removeAttribute("id");
                link.classList.add("bb-button-primary");
                box.append(link);
            }
        }
        document.getElementById("judging").classList.toggle("bb-bench-end", !item && Boolean(this.end));
        for (const key of document.querySelectorAll("[data-votes]")) {
            const votes = box.querySelectorAll(`[data-vote="${key.parentElement.dataset.grade}"]`);
            key.textContent = Array.from(votes, (vote) => vote.dataset.judge).join(", ");
        }
        $("note").value = note;
        $("note-box").open = Boolean($("note").value);
        for (const key of document.querySelectorAll("[data-say=grade], [data-say=skip], [data-say=cannot_judge]"))
            key.disabled = !item;
        this.shownAt = performance.now();
        this.away = 0;
        if (this.announced) {
            box.focus({ preventScroll: true });
            if (box.getBoundingClientRect().top < 0) box.scrollIntoView({ block: "start" });
        }
    }

    record(kind, grade = null) {
        const item = this.items.get(this.current);
        const took = performance.now() - this.shownAt;
        if (!item || took < TOO_SOON_MS) return;
        const note = $("note").value.trim();
        const seconds = Math.min(86_400, Math.max(0, (took - this.away) / 1000));
        this.outbox.add({ item: item.id, kind, grade, note, seconds });
        const label = this.label(kind, grade);
        this.history = [...this.history, { id: item.id, label, item, note }].slice(-MOST_UNDONE);
        this.order = this.order.filter((id) => id !== item.id);
        this.items.delete(item.id);
        this.announced = true;
        this.show();
        const next = this.items.get(this.current);
        this.announce(`${label}.`, next ? `Next: ${next.spoken}` : this.end);
        this.sync();
    }

    undo() {
        const last = this.history.pop();
        if (!last) return this.announce("Nothing to undo.");
        this.announced = true;
        this.outbox.add({ item: last.id, kind: "undo" });
        if (last.item) {
            this.items.set(last.id, last.item);
            this.order = [last.id, ...this.order];
            this.show(last.note);
        } else {
            this.awaited = last.id; // graded before this page was opened: it comes with the answer
        }
        this.announce(`Withdrawn: ${last.label}.`, last.item ? `Back to: ${last.item.spoken}` : "");
        this.sync();
    }

    label(kind, grade) {
        const { name } = this.data.scale.find((entry) => entry.grade === grade) ?? {};
        return { grade: `${grade} ${name}`, skip: "Skipped", cannot_judge: "Can’t judge" }[kind];
    }

    announce(...sentences) {
        $("said").textContent = sentences.filter(Boolean).join(" ");
    }

    // One exchange at a time; what is said meanwhile goes with the next one.
    async sync() {
        this.again = true;
        this.connection();
        if (this.sending) return;
        this.sending = true;
        clearTimeout(this.retry);
        try {
            while (this.again) {
                this.again = false;
                await this.exchange();
                this.failures = 0;
                this.trouble = "";
                if (this.outbox.all().length) this.again = true;
            }
        } catch (error) {
            this.trouble = error.sentence ?? "No connection";
            this.retry = setTimeout(() => this.sync(), RETRY_MS[Math.min(this.failures, RETRY_MS.length - 1)]);
            this.failures += 1;
        } finally {
            this.sending = false;
            this.connection();
        }
    }

    async exchange() {
        const entries = this.outbox.all().slice(0, 100);
        const answer = await fetch(this.data.url, {
            method: "POST",
            redirect: "manual",
            headers: {
                "Content-Type": "application/json",
                "X-CSRFToken": document.querySelector("[name=csrfmiddlewaretoken]").value,
            },
            body: JSON.stringify({ entries, present_ids: [...this.items.keys()], count: this.data.ahead }),
        });
        if (answer.type === "opaqueredirect" || answer.status === 403) {
            throw Object.assign(new Error(), { sentence: "You are signed out: sign in and reload this page" });
        }
        if (answer.status === 409 || answer.status === 400) {
            throw Object.assign(new Error(), { sentence: (await answer.json()).sentence });
        }
        if (!answer.ok) throw Object.assign(new Error(), { sentence: `The server returned status ${answer.status}` });
        const content = await answer.json();
        const refused = new Map(content.refused.map(({ key, sentence }) => [key, sentence]));
        for (const entry of entries) if (refused.has(entry.key)) this.refuse(entry, refused.get(entry.key));
        this.outbox.drop(entries.map(({ key }) => key));
        this.receive(content);
    }

    // A grade that the server does not take: it is named, so that it can be given elsewhere.
    refuse({ item, kind, grade, note }, sentence) {
        const problem = document.createElement("p");
        problem.className = "bb-note bb-note-bad";
        const pair = this.history.find(({ id }) => id === item)?.item?.spoken ?? `item ${item}`;
        problem.textContent = `Not saved: ${this.label(kind, grade) ?? "undo"} for ${pair}${note ? ` (“${note}”)` : ""}. ${sentence}`;
        $("problems").append(problem);
    }

    connection() {
        const waiting = this.outbox.all().length;
        const line = $("connection");
        line.dataset.lost = this.trouble ? "true" : "";
        const wait = waiting
            ? `: ${waiting} ${waiting === 1 ? "entry waits" : "entries wait"} in this browser and will be sent later`
            : "";
        const words = this.trouble ? `${this.trouble}${wait}.` : waiting ? "Sending …" : "Everything is saved.";
        const memory = this.outbox.lasts ? "" : " This browser cannot store grades: keep this page open.";
        line.textContent = words + memory;
        const alarm = this.trouble ? `${this.trouble}. Continue: your grades are stored in this browser.` : "";
        if ($("alarm").textContent !== alarm) $("alarm").textContent = alarm; // read aloud once
    }

    progress({ done: count, wanted: total, mine, pace, left }) {
        $("progress").max = Math.max(total, 1);
        $("progress").value = count;
        const facts = [`${count} of ${total}`];
        if (mine !== null) facts.push(`${mine} by you`);
        if (pace) facts.push(`${pace < 10 ? pace.toFixed(1) : Math.round(pace)} s each`);
        if (left) facts.push(`about ${left < 90 ? `${Math.ceil(left)} s` : `${Math.ceil(left / 60)} min`} left`);
        $("pace").textContent = `${facts.join(" · ")}.`;
    }

    renew() {
        if (Date.now() - this.active < IDLE_MS) this.sync();
    }

    async showWhole(button) {
        const answer = await fetch(button.dataset.whole).catch(() => null);
        if (!answer?.ok || answer.redirected)
            return this.announce("The rest of the text could not be loaded. Try again.");
        button.closest("details").querySelector("[data-text]").innerHTML = await answer.text();
        button.remove();
    }

    act(kind, grade) {
        this.active = Date.now();
        if (kind === "undo") this.undo();
        else if (kind === "note") this.toggle($("note-box"), $("note"));
        else if (kind === "full") this.toggle($("item").querySelector(".bb-full"));
        else if (kind === "scale") this.toggle($("scale"));
        else this.record(kind, grade);
    }

    toggle(box, field) {
        if (!box) return;
        box.open = !box.open;
        if (box.open) (field ?? box.querySelector("summary")).focus();
        else $("item").focus({ preventScroll: true });
    }

    has(grade) {
        return this.data.scale.some((entry) => entry.grade === grade);
    }
}

const page = new JudgePage(JSON.parse($("data").textContent));
$("scale").open = matchMedia("(min-width: 1180px)").matches; // there is room next to the document
const switchKeys = $("keys");
switchKeys.checked = localStorage.getItem("benchbench.judging.keys") !== "off";
switchKeys.addEventListener("change", () =>
    localStorage.setItem("benchbench.judging.keys", switchKeys.checked ? "on" : "off"),
);

document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || !switchKeys.checked) return;
    if (event.target.closest("input:not([type=checkbox]), textarea, select, [contenteditable]")) {
        if (event.key === "Escape" && event.target === $("note")) $("item").focus();
        return;
    }
    const grade = /^[0-9]$/.test(event.key) ? Number(event.key) : null;
    const kind = grade === null ? LETTERS[event.key.toLowerCase()] : page.has(grade) ? "grade" : null;
    if (!kind || (kind !== "grade" && kind !== "scale" && !document.querySelector(`[data-say=${kind}]`))) return;
    event.preventDefault();
    page.act(kind, grade);
});
document.getElementById("judging").addEventListener("click", (event) => {
    const key = event.target.closest("[data-say]");
    if (key) page.act(key.dataset.say, key.dataset.grade === undefined ? null : Number(key.dataset.grade));
    const button = event.target.closest("[data-whole]");
    if (button) page.showWhole(button);
});
window.addEventListener("online", () => page.sync());
let hiddenAt = null;
document.addEventListener("visibilitychange", () => {
    if (document.hidden) hiddenAt = performance.now();
    else if (hiddenAt !== null) page.away += performance.now() - Math.max(hiddenAt, page.shownAt);
});
